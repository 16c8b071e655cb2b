//! Kernels of a few statements, made by a grammar with types: nearly all of them pass the front check, and each takes a fraction of what a whole
//! kernel takes. One in eight is larger. Between them they use every statement, every operator and every builtin function that Cantus knows.

use std::fmt::Write as _;

use crate::mutate::Rng;

/// The scalars of values, and how many make a vector (1: none).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Type {
    scalar: &'static str,
    width: usize,
}

const SCALARS: [&str; 4] = ["f32", "i32", "u32", "bool"];
/// Types that need an extension or a feature.
const RARE: [&str; 4] = ["f16", "f64", "i64", "u64"];

const FLOAT_1: [&str; 31] = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "exp2",
    "floor",
    "fract",
    "inverseSqrt",
    "log",
    "log2",
    "quantizeToF16",
    "radians",
    "round",
    "saturate",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "-",
    "normalize",
];
const FLOAT_2: [&str; 8] = ["atan2", "max", "min", "pow", "step", "distance", "reflect", "dot"];
const FLOAT_3: [&str; 5] = ["clamp", "fma", "mix", "smoothstep", "faceForward"];
const INT_1: [&str; 9] = [
    "abs",
    "countLeadingZeros",
    "countOneBits",
    "countTrailingZeros",
    "firstLeadingBit",
    "firstTrailingBit",
    "reverseBits",
    "sign",
    "~",
];
const INT_2: [&str; 2] = ["max", "min"];
const PACKING: [(&str, usize); 10] = [
    ("pack4x8snorm", 4),
    ("pack4x8unorm", 4),
    ("pack2x16snorm", 2),
    ("pack2x16unorm", 2),
    ("pack2x16float", 2),
    ("unpack4x8snorm", 4),
    ("unpack4x8unorm", 4),
    ("unpack2x16snorm", 2),
    ("unpack2x16unorm", 2),
    ("unpack2x16float", 2),
];
const SUBGROUP: [&str; 12] = [
    "subgroupAdd",
    "subgroupMul",
    "subgroupMin",
    "subgroupMax",
    "subgroupExclusiveAdd",
    "subgroupInclusiveMul",
    "subgroupBroadcastFirst",
    "quadSwapX",
    "quadSwapDiagonal",
    "subgroupInclusiveAdd",
    "subgroupExclusiveMul",
    "quadSwapY",
];
const ATOMICS: [&str; 8] =
    ["atomicAdd", "atomicSub", "atomicMax", "atomicMin", "atomicAnd", "atomicOr", "atomicXor", "atomicExchange"];

/// Constants of a module, by what naga's front end is spared: their values are found before it.
const CONSTANTS: [(&str, &str); 16] = [
    ("const k = ((7u << 2u) | (5u & 3u)) ^ 1u;", "u32"),
    ("const k = 4294967295u >> 3u;", "u32"),
    ("const k = ~7 + 3 * -2;", "i32"),
    ("const k = vec3i(7, -8, 9).y % 5;", "i32"),
    ("const k = (vec2i(1, 2) * 3 - vec2i(4)).x << 1u;", "i32"),
    ("const k = i32(u32(5.75) / 2u);", "i32"),
    ("const m = mat2x2f(1, 2, 3, 4); const k = (m * vec2f(0.5, 2)).x;", "f32"),
    ("const m = mat2x2f(1, 2, 3, 4); const k = (vec2f(0.5, 2) * m)[1];", "f32"),
    ("const m = mat2x3f(1, 2, 3, 4, 5, 6); const k = (m * mat3x2f(1, 0, 0, 1, 2, 2))[2].y;", "f32"),
    ("const m = mat2x2f(1, 2, 3, 4); const k = (2 * m - m * 3.0 + m)[0][1];", "f32"),
    ("const k = select(1.5, -2.0, 3 > 2 && !(1.0 == 2.0)) % 4.0;", "f32"),
    ("const k = max(fract(2.75), length(vec2f(3, 4))) + clamp(7.0, 1.0, 2.0);", "f32"),
    ("struct C { x: u32, y: vec2f } const c = C(3u, vec2f(1, 2)); const k = c.y.x * f32(c.x);", "f32"),
    ("const c = array<f32, 3>(1, 2, 4); const k = c[1 + 1] / c[0];", "f32"),
    ("const k = (vec4f(1, 2, 3, 4) * 2 / vec4f(4)).wz.x;", "f32"),
    ("const_assert 3 > 2; alias F = f32; const k: F = F(1u) - F(true);", "f32"),
];

impl Type {
    const INDEX: Self = Self { scalar: "u32", width: 1 };
    const TRUTH: Self = Self { scalar: "bool", width: 1 };

    fn name(self) -> String {
        if self.width == 1 { self.scalar.to_owned() } else { format!("vec{}<{}>", self.width, self.scalar) }
    }

    fn is_float(self) -> bool {
        self.scalar.starts_with('f')
    }

    fn of(self, width: usize) -> Self {
        Self { width, ..self }
    }
}

struct Writer<'a> {
    rng: &'a mut Rng,
    out: String,
    /// The type of values in this kernel, beside indices and truths.
    value: Type,
    /// Variables in scope, and whether each may be assigned.
    names: Vec<(String, Type, bool)>,
    depth: usize,
    /// The deepest nesting of blocks and expressions, and the most statements in a row.
    most: usize,
    made: usize,
    subgroups: bool,
    helper: Option<Type>,
    in_loop: bool,
}

/// A kernel's text.
pub fn text(rng: &mut Rng) -> String {
    let rare = rng.one_in(12);
    let scalar = if rare { *rng.pick(&RARE) } else { *rng.pick(&SCALARS[..3]) };
    let value = Type { scalar, width: *rng.pick(&[1, 1, 1, 2, 3, 4]) };
    let subgroups = rng.one_in(12);
    // Most need little; what only size shows has a share.
    let most = *rng.pick(&[1, 1, 2, 2, 2, 2, 2, 4]);
    let mut writer = Writer {
        rng,
        out: String::new(),
        value,
        names: Vec::new(),
        depth: 0,
        most,
        made: 0,
        subgroups,
        helper: None,
        in_loop: false,
    };
    writer.kernel();
    writer.out
}

impl Writer<'_> {
    fn kernel(&mut self) {
        if self.value.scalar == "f16" {
            self.out.push_str("enable f16;\n");
        }
        // Most of what a grammar makes calls them where control flow varies.
        if self.subgroups {
            self.out.push_str("diagnostic(off, subgroup_uniformity);\n");
        }
        let tail = self.resources();
        let (shared, atomics) = self.variables();
        if self.rng.one_in(4) {
            self.function();
        }
        self.entry_point();
        self.body(shared, atomics);
        let last = self.expression(self.value);
        let _ = writeln!(self.out, "a[id.x]{tail} = {last};\n}}");
    }

    /// Buffers and a uniform. Returns the suffix by which an element of the first is a value.
    fn resources(&mut self) -> &'static str {
        let element = self.value.name();
        // Rows of matrices and members of structures, now and then.
        let whole = match self.rng.below(12) {
            0 if self.value.is_float() && self.value.width > 1 => {
                format!("mat{0}x{0}<{1}>", self.value.width, self.value.scalar)
            }
            1 => {
                let _ = writeln!(self.out, "struct S {{ p: u32, q: {element}, r: array<{element}, 3> }}");
                "S".to_owned()
            }
            _ => element.clone(),
        };
        let _ = writeln!(self.out, "@group(0) @binding(0) var<storage, read_write> a: array<{whole}>;");
        let tail = match whole.as_str() {
            "S" => ".q",
            matrix if matrix.starts_with("mat") => "[1]",
            _ => "",
        };
        let mut place = |name: &str, writable: bool| self.names.push((format!("{name}{tail}"), self.value, writable));
        place("a[id.x]", true);
        place("a[id.x + 1u]", true);
        if self.rng.one_in(3) {
            let _ = writeln!(self.out, "@group(0) @binding(1) var<storage> b: array<{element}>;");
            self.names.push(("b[id.x]".to_owned(), self.value, false));
            self.names.push(("arrayLength(&b)".to_owned(), Type::INDEX, false));
        }
        if self.rng.one_in(4) {
            let _ = writeln!(self.out, "struct P {{ n: u32, v: {element} }}\n@group(0) @binding(2) var<uniform> p: P;");
            self.names.push(("p.v".to_owned(), self.value, false));
            self.names.push(("p.n".to_owned(), Type::INDEX, false));
        }
        tail
    }

    /// Constants and variables. Returns whether there is workgroup memory, and whether there are atomics.
    fn variables(&mut self) -> (bool, bool) {
        let element = self.value.name();
        if self.rng.one_in(10) {
            let (text, scalar) = *self.rng.pick(&CONSTANTS);
            let _ = writeln!(self.out, "{text}");
            self.names.push(("k".to_owned(), Type { scalar, width: 1 }, false));
            if scalar == "u32" {
                let _ = writeln!(self.out, "var<private> t: array<u32, k>;");
            }
        }
        if self.rng.one_in(6) {
            self.out.push_str("override n: u32 = 3;\n");
            self.names.push(("n".to_owned(), Type::INDEX, false));
        }
        let shared = self.rng.one_in(4);
        if shared {
            let _ = writeln!(self.out, "var<workgroup> w: array<{element}, 8>;");
            self.names.push(("w[lid % 8u]".to_owned(), self.value, true));
            self.names.push(("w[3]".to_owned(), self.value, false));
        }
        if self.rng.one_in(5) {
            let _ = writeln!(self.out, "var<private> g: array<{element}, 5>;");
            self.names.push(("g[id.x % 5u]".to_owned(), self.value, true));
            self.names.push(("g[2]".to_owned(), self.value, true));
        }
        let atomics = self.rng.one_in(6);
        if atomics {
            let scalar = *self.rng.pick(&["u32", "i32"]);
            let _ = writeln!(self.out, "@group(0) @binding(3) var<storage, read_write> c: array<atomic<{scalar}>>;");
            self.names.push(("atomicLoad(&c[id.x])".to_owned(), Type { scalar, width: 1 }, false));
        }
        (shared, atomics)
    }

    fn entry_point(&mut self) {
        // A subgroup's builtins are refused where a workgroup has several dimensions.
        let sizes = ["1", "8", "32", "64", "4, 2", "2, 2, 3"];
        let size = *self.rng.pick(if self.subgroups { &sizes[..4] } else { &sizes });
        let lanes = if self.subgroups {
            ", @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32"
        } else if self.rng.one_in(6) {
            ", @builtin(num_workgroups) groups: vec3u, @builtin(workgroup_id) group: vec3u"
        } else {
            ""
        };
        let _ = writeln!(
            self.out,
            "@compute @workgroup_size({size})\nfn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lid: u32{lanes}) {{"
        );
        self.names.push(("id.x".to_owned(), Type::INDEX, false));
        self.names.push(("lid".to_owned(), Type::INDEX, false));
        if self.subgroups {
            self.names.push(("(lane + lanes)".to_owned(), Type::INDEX, false));
        } else if lanes.contains("groups") {
            self.names.push(("(groups.x + group.y)".to_owned(), Type::INDEX, false));
        }
    }

    fn body(&mut self, shared: bool, atomics: bool) {
        for _ in 0..1 + self.rng.below(self.most) {
            if atomics && self.rng.one_in(3) {
                let call = *self.rng.pick(&ATOMICS);
                let scalar = if self.out.contains("atomic<u32>") { "u32" } else { "i32" };
                let amount = self.expression(Type { scalar, width: 1 });
                let _ = writeln!(self.out, "{call}(&c[id.x], {amount});");
            }
            if (shared || atomics) && self.rng.one_in(3) {
                let barrier = *self.rng.pick(&["workgroupBarrier();\n", "storageBarrier();\n"]);
                self.out.push_str(barrier);
            }
            self.statement();
        }
    }

    /// A function of two values, that the rest may call.
    fn function(&mut self) {
        let kept = std::mem::take(&mut self.names);
        let name = self.value.name();
        let by_pointer = self.rng.one_in(3);
        let second = if by_pointer { format!("ptr<function, {name}>") } else { name.clone() };
        let _ = writeln!(self.out, "fn f(x: {name}, y: {second}) -> {name} {{");
        self.names.push(("x".to_owned(), self.value, false));
        self.names.push((if by_pointer { "(*y)" } else { "y" }.to_owned(), self.value, by_pointer));
        if self.rng.one_in(2) {
            self.statement();
        }
        if self.rng.one_in(3) {
            let (condition, early) = (self.expression(Type::TRUTH), self.expression(self.value));
            let _ = writeln!(self.out, "if {condition} {{ return {early}; }}");
        }
        let result = self.expression(self.value);
        let _ = writeln!(self.out, "return {result};\n}}");
        self.names = kept;
        if !by_pointer {
            self.helper = Some(self.value);
        }
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn block(&mut self) {
        self.out.push_str("{\n");
        let names = self.names.len();
        self.depth += 1;
        for _ in 0..1 + self.rng.below(2) {
            self.statement();
        }
        self.depth -= 1;
        self.names.truncate(names);
        self.out.push_str("}\n");
    }

    fn statement(&mut self) {
        let deep = self.depth > self.most / 2;
        match self.rng.below(if deep { 6 } else { 14 }) {
            0 | 1 => self.assign(),
            2 => {
                let (name, kind) = (self.name(), self.kind());
                let value = self.expression(kind);
                let variable = self.rng.one_in(2);
                let _ = writeln!(self.out, "{} {name} = {value};", if variable { "var" } else { "let" });
                self.names.push((name, kind, variable));
            }
            3 => {
                let name = self.name();
                let side = 2 + self.rng.below(4);
                let kind = self.value.name();
                let filled: Vec<String> = (0..side).map(|_| self.leaf(self.value)).collect();
                let _ = writeln!(self.out, "var {name} = array<{kind}, {side}>({});", filled.join(", "));
                let index = self.leaf(Type::INDEX);
                self.names.push((format!("{name}[{index} % {side}u]"), self.value, true));
                self.names.push((format!("{name}[1]"), self.value, true));
            }
            4 if self.in_loop => {
                let condition = self.expression(Type::TRUTH);
                let way = *self.rng.pick(&["break", "continue"]);
                let _ = writeln!(self.out, "if {condition} {{ {way}; }}");
            }
            4 | 5 => self.assign(),
            6 | 7 => {
                let condition = self.expression(Type::TRUTH);
                let _ = write!(self.out, "if {condition} ");
                self.block();
                if self.rng.one_in(2) {
                    self.out.push_str("else ");
                    self.block();
                }
            }
            8 | 9 => {
                let (name, bound) = (self.name(), self.leaf(Type::INDEX));
                let _ = write!(self.out, "for (var {name} = 0u; {name} < min({bound}, 6u); {name}++) ");
                self.names.push((name, Type::INDEX, false));
                self.looped();
                self.names.pop();
            }
            10 => {
                let (name, condition) = (self.name(), self.expression(Type::TRUTH));
                let _ = writeln!(self.out, "var {name} = 0u;\nloop {{\nif {name} > 4u {{ break; }}");
                self.names.push((name.clone(), Type::INDEX, false));
                self.looped();
                let ends = self.rng.one_in(2);
                let ends = if ends { format!(" break if {condition};") } else { String::new() };
                let _ = writeln!(self.out, "continuing {{ {name} += 1u;{ends} }}\n}}");
            }
            11 => {
                let (name, condition) = (self.name(), self.expression(Type::TRUTH));
                let _ = writeln!(self.out, "var {name} = 3;\nwhile {name} > 0 && {condition} {{ {name}--;");
                self.looped();
                self.out.push_str("}\n");
            }
            12 => {
                let value = self.expression(Type::INDEX);
                let _ = write!(self.out, "switch {value} {{\ncase 0u, 2u: ");
                let outer = std::mem::replace(&mut self.in_loop, false);
                self.block();
                self.out.push_str("case 5u: ");
                self.block();
                self.out.push_str("default: ");
                self.block();
                self.in_loop = outer;
                self.out.push_str("}\n");
            }
            _ => {
                let condition = self.expression(Type::TRUTH);
                // The entry point returns nothing, a function returns a value.
                let value = if self.out.contains("fn main") { String::new() } else { self.leaf(self.value) };
                let _ = writeln!(self.out, "if {condition} {{ return {value}; }}");
            }
        }
    }

    fn looped(&mut self) {
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.block();
        self.in_loop = outer;
    }

    fn assign(&mut self) {
        let targets: Vec<(String, Type)> =
            self.names.iter().filter(|name| name.2).map(|(name, kind, _)| (name.clone(), *kind)).collect();
        if targets.is_empty() {
            return;
        }
        let (mut target, mut kind) = self.rng.pick(&targets).clone();
        if kind.width > 1 && self.rng.one_in(4) {
            let part = *self.rng.pick(&[".x", ".y", "[1]"]);
            target.push_str(part);
            kind = kind.of(1);
        }
        let sign = if kind.scalar == "bool" { "=" } else { *self.rng.pick(&["=", "=", "+=", "-=", "*=", "/="]) };
        let value = self.expression(kind);
        let _ = writeln!(self.out, "{target} {sign} {value};");
    }

    fn kind(&mut self) -> Type {
        match self.rng.below(6) {
            0 => Type::INDEX,
            1 => Type::TRUTH,
            2 => {
                let scalar = *self.rng.pick(&SCALARS);
                Type { scalar, width: 1 + self.rng.below(4) }
            }
            _ => self.value,
        }
    }

    fn literal(&mut self, scalar: &str) -> String {
        let number = self.rng.number();
        match scalar {
            "bool" => (number & 1 == 0).to_string(),
            "f16" => format!("{}.5h", number % 100),
            "f64" => format!("{}.25lf", number % 1000),
            "f32" => match self.rng.below(6) {
                0 => format!("{}e{}f", number % 100, self.rng.below(30)),
                1 => format!("-{}.0", number % 100),
                _ => format!("{}.{}", number % 10, number % 7),
            },
            "i32" => format!("{}", (number as i32) >> self.rng.below(31)).replace("-2147483648", "-7"),
            "i64" => format!("{}li", number as i32),
            "u64" => format!("{number}lu"),
            _ => format!("{}u", number as u32 >> self.rng.below(32)),
        }
    }

    fn leaf(&mut self, kind: Type) -> String {
        let known: Vec<String> =
            self.names.iter().filter(|name| name.1 == kind).map(|(name, ..)| name.clone()).collect();
        // Constants are few: naga computes what they make, and refuses what overflows.
        if !known.is_empty() && !self.rng.one_in(5) {
            return self.rng.pick(&known).clone();
        }
        let index = self.names.iter().find(|name| name.1 == Type::INDEX).map(|(name, ..)| name.clone());
        if let Some(index) = index
            && !self.rng.one_in(3)
        {
            return match (kind.scalar, kind.width) {
                ("bool", 1) => format!("({index} > 2u)"),
                (_, 1) => format!("{}({index})", kind.scalar),
                ("bool", _) => format!("{}({index} > 2u)", kind.name()),
                _ => format!("{}({}({index}))", kind.name(), kind.scalar),
            };
        }
        if kind.width > 1 {
            let parts = if self.rng.one_in(2) { 1 } else { kind.width };
            let parts: Vec<String> = (0..parts).map(|_| self.literal(kind.scalar)).collect();
            return format!("{}({})", kind.name(), parts.join(", "));
        }
        let literal = self.literal(kind.scalar);
        if literal.starts_with('-') { format!("({literal})") } else { literal }
    }

    fn expression(&mut self, kind: Type) -> String {
        if self.depth >= self.most || self.rng.one_in(4) {
            return self.leaf(kind);
        }
        self.depth += 1;
        let text = self.compound(kind);
        self.depth -= 1;
        text
    }

    fn call(&mut self, name: &str, kinds: &[Type]) -> String {
        let parts: Vec<String> = kinds.iter().map(|kind| self.expression(*kind)).collect();
        format!("{name}({})", parts.join(", "))
    }

    fn compound(&mut self, kind: Type) -> String {
        // Forms that every type has.
        match self.rng.below(12) {
            0 => return self.call("select", &[kind, kind, Type::TRUTH]),
            1 if kind.width > 1 => {
                let mask = Type::TRUTH.of(kind.width);
                return self.call("select", &[kind, kind, mask]);
            }
            2 if kind.width == 1 => {
                // A part of a vector.
                let width = 2 + self.rng.below(3);
                let whole = self.expression(kind.of(width));
                let index = self.leaf(Type::INDEX);
                return if self.rng.one_in(3) {
                    format!("({whole})[{index} % {width}u]")
                } else {
                    format!("({whole}).y")
                };
            }
            3 if kind.width > 1 => {
                let whole = self.expression(kind.of(4));
                return format!("({whole}).{}", &["xy", "zyx", "wxyz"][kind.width - 2]);
            }
            4 if kind.width > 2 => {
                let (start, end) = (self.expression(kind.of(2)), self.expression(kind.of(kind.width - 2)));
                return format!("{}({start}, {end})", kind.name());
            }
            5 => {
                let scalar = *self.rng.pick(&SCALARS);
                let from = Type { scalar, width: kind.width };
                let value = self.expression(from);
                return format!("{}({value})", kind.name());
            }
            6 if self.helper == Some(kind) => return self.call("f", &[kind, kind]),
            7 if ["f32", "i32", "u32"].contains(&kind.scalar) => {
                let scalar = *self.rng.pick(&SCALARS[..3]);
                let from = Type { scalar, width: kind.width };
                let value = self.expression(from);
                return format!("bitcast<{}>({value})", kind.name());
            }
            _ => {}
        }
        match kind.scalar {
            "bool" => self.truth(kind),
            scalar if scalar.starts_with('f') => self.float(kind),
            _ => self.integer(kind),
        }
    }

    fn truth(&mut self, kind: Type) -> String {
        if self.rng.one_in(4) {
            let (a, b) = (self.expression(kind), self.expression(kind));
            let sign = if kind.width == 1 { *self.rng.pick(&["&&", "||", "&", "|", "==", "!="]) } else { "&" };
            return format!("({a} {sign} {b})");
        }
        if self.rng.one_in(6) {
            return format!("!({})", self.expression(kind));
        }
        if kind.width == 1 && self.rng.one_in(6) {
            let width = 2 + self.rng.below(3);
            let call = *self.rng.pick(&["any", "all"]);
            return self.call(call, &[kind.of(width)]);
        }
        if self.subgroups && kind.width == 1 && self.rng.one_in(4) {
            let call = *self.rng.pick(&["subgroupAll", "subgroupAny"]);
            return self.call(call, &[kind]);
        }
        let scalar = if self.rng.one_in(3) { self.value.scalar } else { *self.rng.pick(&SCALARS[..3]) };
        let of = Type { scalar, width: kind.width };
        let (a, b) = (self.expression(of), self.expression(of));
        let sign = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        format!("({a} {sign} {b})")
    }

    fn float(&mut self, kind: Type) -> String {
        // naga has few functions of f64.
        if kind.scalar == "f64" && self.rng.one_in(2) {
            match self.rng.below(16) {
                0 => return self.call("min", &[kind, kind]),
                1 => return self.call("max", &[kind, kind]),
                2 => return format!("frexp({}).fract", self.expression(kind)),
                3 if kind.width == 1 => {
                    return format!("ldexp({}, {})", self.expression(kind), self.rng.below(9));
                }
                _ => {}
            }
            let call = *self.rng.pick(&["abs", "floor", "ceil", "trunc", "sign", "round", "sqrt", "fract"]);
            return self.call(call, &[kind]);
        }
        let few = if kind.scalar == "f64" { 4 } else { 12 };
        match self.rng.below(few) {
            0..=3 => {
                let (a, b) = (self.expression(kind), self.expression(kind));
                format!("({a} {} {b})", self.rng.pick(&["+", "-", "*", "/", "%"]))
            }
            4..=6 => {
                let call = *self.rng.pick(&FLOAT_1);
                match call {
                    "normalize" if kind.width == 1 => self.call("sqrt", &[kind]),
                    "quantizeToF16" if kind.scalar != "f32" => self.call("exp2", &[kind]),
                    _ => self.call(call, &[kind]),
                }
            }
            7 => match *self.rng.pick(&FLOAT_2) {
                "distance" | "dot" | "reflect" if kind.width == 1 => {
                    let call = *self.rng.pick(&["distance", "dot"]);
                    self.call(call, &[kind.of(3), kind.of(3)])
                }
                "distance" => self.call("refract", &[kind, kind, kind.of(1)]),
                "dot" => self.call("reflect", &[kind, kind]),
                call => self.call(if call == "reflect" && kind.width == 1 { "min" } else { call }, &[kind, kind]),
            },
            8 => match *self.rng.pick(&FLOAT_3) {
                "faceForward" if kind.width == 1 => self.call("fma", &[kind; 3]),
                call => self.call(call, &[kind; 3]),
            },
            9 if kind.width == 3 => self.call("cross", &[kind, kind]),
            9 if kind.width > 1 => {
                let parts = vec![kind; kind.width];
                let matrix = self.call(&format!("mat{0}x{0}<{1}>", kind.width, kind.scalar), &parts);
                let vector = self.expression(kind);
                let matrix = if self.rng.one_in(3) { format!("transpose({matrix})") } else { matrix };
                if self.rng.one_in(2) { format!("({matrix} * {vector})") } else { format!("({vector} * {matrix})") }
            }
            9 => {
                let side = *self.rng.pick(&[2, 2, 3, 4]);
                let columns = vec![kind.of(side); side];
                let matrix = self.call(&format!("mat{side}x{side}<{}>", kind.scalar), &columns);
                format!("determinant({matrix})")
            }
            10 => {
                let whole = self.expression(kind);
                match self.rng.below(3) {
                    0 if kind.width == 1 => {
                        format!("ldexp({whole}, {})", self.expression(Type { scalar: "i32", width: 1 }))
                    }
                    1 => format!("modf({whole}).fract"),
                    _ => format!("frexp({whole}).fract"),
                }
            }
            _ if self.subgroups => self.subgroup(kind),
            _ if kind.scalar == "f32" && (kind.width == 4 || kind.width == 2) => {
                let fitting: Vec<&str> = PACKING
                    .iter()
                    .filter(|(name, width)| name.starts_with("unpack") && *width == kind.width)
                    .map(|(name, _)| *name)
                    .collect();
                let call = *self.rng.pick(&fitting);
                self.call(call, &[Type::INDEX])
            }
            _ if kind.width == 1 => self.call("length", &[kind.of(2)]),
            _ => self.call("-", &[kind]),
        }
    }

    fn subgroup(&mut self, kind: Type) -> String {
        if self.rng.one_in(5) {
            // A lane of either kind of integer.
            let call = *self.rng.pick(&["subgroupBroadcast", "quadBroadcast", "subgroupShuffle", "subgroupShuffleUp"]);
            let (lane, sign) = (self.rng.below(4), *self.rng.pick(&["", "i", "u"]));
            return format!("{call}({}, {lane}{sign})", self.expression(kind));
        }
        if self.rng.one_in(3) {
            let shuffle =
                *self.rng.pick(&["subgroupShuffle", "subgroupShuffleXor", "subgroupShuffleUp", "subgroupShuffleDown"]);
            return self.call(shuffle, &[kind, Type::INDEX]);
        }
        let call = *self.rng.pick(&SUBGROUP);
        self.call(call, &[kind])
    }

    fn integer(&mut self, kind: Type) -> String {
        let wide = kind.scalar.ends_with("64");
        match self.rng.below(10) {
            0..=3 => {
                let (a, b) = (self.expression(kind), self.expression(kind));
                format!("({a} {} {b})", self.rng.pick(&["+", "-", "*", "/", "%", "&", "|", "^"]))
            }
            4 => {
                let (a, b) = (self.expression(kind), self.expression(Type::INDEX.of(kind.width)));
                let sign = *self.rng.pick(&["<<", ">>"]);
                // A literal beyond the width is an error of its own.
                format!("({a} {sign} ({b} % {}({}u)))", Type::INDEX.of(kind.width).name(), 32)
            }
            5 => {
                let call = *self.rng.pick(&INT_1);
                let unsigned = kind.scalar.starts_with('u');
                let call = if wide && call != "~" || unsigned && call == "sign" { "abs" } else { call };
                self.call(call, &[kind])
            }
            6 => {
                let call = *self.rng.pick(&INT_2);
                self.call(call, &[kind, kind])
            }
            7 if !wide => {
                if self.rng.one_in(2) {
                    self.call("extractBits", &[kind, Type::INDEX, Type::INDEX])
                } else {
                    self.call("insertBits", &[kind, kind, Type::INDEX, Type::INDEX])
                }
            }
            8 if self.subgroups => {
                if self.rng.one_in(3) {
                    let call = *self.rng.pick(&["subgroupAnd", "subgroupOr", "subgroupXor"]);
                    return self.call(call, &[kind]);
                }
                self.subgroup(kind)
            }
            8 if kind.width == 1 => {
                let call = *self.rng.pick(&["dot", "dot4U8Packed", "dot4I8Packed"]);
                match (call, kind.scalar) {
                    ("dot4U8Packed", "u32") | ("dot4I8Packed", "i32") => self.call(call, &[Type::INDEX, Type::INDEX]),
                    _ => self.call("dot", &[kind.of(3), kind.of(3)]),
                }
            }
            _ if kind == Type::INDEX => {
                let fitting: Vec<_> = PACKING.iter().filter(|(name, _)| name.starts_with("pack")).collect();
                let &&(call, width) = self.rng.pick(&fitting);
                self.call(call, &[Type { scalar: "f32", width }])
            }
            _ => self.call("clamp", &[kind; 3]),
        }
    }
}
