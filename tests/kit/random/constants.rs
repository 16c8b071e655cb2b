//! Random constant expressions, each evaluated again from buffers: what a front end computes while it reads must be what a device computes. A second
//! kernel has overrides in place of the literals.
//!
//! The numbers are small and most operations exact, so that no comparison and no rounding down comes out in two ways.

use crate::case::{Case, Values};
use crate::inputs::Random;

/// Expressions of one kernel.
const COUNT: usize = 12;

/// Scalar types.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    F32,
    I32,
    U32,
    Bool,
}

impl Kind {
    fn name(self, size: usize) -> String {
        let scalar = match self {
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        };
        if size == 1 { scalar.to_owned() } else { format!("vec{size}<{scalar}>") }
    }
}

/// An expression in two forms: as a constant, and with its literals by name.
struct Pair {
    constant: String,
    named: String,
}

/// Where the literals of the second form come from.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Buffers,
    Overrides,
}

struct Generator {
    random: Random,
    form: Form,
    floats: Vec<f32>,
    signed: Vec<i32>,
    unsigned: Vec<u32>,
}

/// The kernel of a seed.
pub fn case(seed: u64, form: Form) -> Case {
    let mut generator =
        Generator { random: Random::new(seed ^ 0xC057), form, floats: vec![0.0], signed: vec![0], unsigned: vec![0] };
    let (mut module, mut body) = (String::new(), String::new());
    for number in 0..COUNT {
        let (kind, size) = (generator.kind(), 1 + generator.below(4));
        let depth = 2 + generator.below(3);
        let Pair { constant, named } = generator.member(kind, size, depth);
        let ty = kind.name(size);
        let declared = format!("const c{number}: {ty} = {constant};\n");
        match generator.below(3) {
            0 => module.push_str(&declared),
            1 => body.push_str(&format!("    let c{number}: {ty} = {constant};\n")),
            _ => body.push_str(&format!("    {declared}")),
        }
        body.push_str(&format!("    let r{number}: {ty} = {named};\n"));
        let slot = 4 * number;
        for part in 0..size {
            let access = if size == 1 { String::new() } else { format!("[{part}]") };
            for (name, out) in [('c', "constant"), ('r', "again")] {
                // A component of the constant itself, at times: that is computed while reading as well.
                let value = match (name, part % 2) {
                    ('c', 1) => format!("({constant}){access}"),
                    _ => format!("{name}{number}{access}"),
                };
                body.push_str(&format!("    {out}[{}] = f32({value});\n", slot + part));
            }
        }
    }
    let Generator { floats, signed, unsigned, .. } = generator;
    let mut case = String::from("struct Pair { v: vec3<f32>, w: f32 }\n");
    if form == Form::Overrides {
        let numbers = floats.iter().map(|value| ("f32", format!("{value:?}f")));
        let numbers = numbers.chain(signed.iter().map(|value| ("i32", format!("{value}i"))));
        let numbers = numbers.chain(unsigned.iter().map(|value| ("u32", format!("{value}u"))));
        let lengths = [floats.len(), signed.len(), unsigned.len()];
        let places = lengths.into_iter().flat_map(|length| 0..length);
        for ((ty, value), place) in numbers.zip(places) {
            case.push_str(&format!("override {ty}_{place}: {ty} = {value};\n"));
        }
    }
    case.push_str(&format!("{module}@compute @workgroup_size(1)\nfn main() {{\n{body}}}\n"));
    let zeros = vec![0.0_f32; 4 * COUNT];
    let mut case = Case::new(format!("constants {seed}"), case);
    if form == Form::Buffers {
        case = case.read("floats", floats).read("signed", signed).read("unsigned", unsigned);
    }
    case.scratch("again", zeros.clone()).check("constant", zeros, |finals| {
        let [.., again, constant] = finals else { return Err("two results are missing".to_owned()) };
        same(constant, again)
    })
}

fn same(constant: &Values, again: &Values) -> Result<(), String> {
    for (place, (constant, again)) in constant.f32s().iter().zip(again.f32s()).enumerate() {
        let near = (constant - again).abs() <= 1e-4 * (1.0 + again.abs());
        if !near {
            return Err(format!("expression {}: {constant} as a constant, {again} evaluated again", place / 4));
        }
    }
    Ok(())
}

const SIZES: [&str; 5] = ["", "", "2", "3", "4"];

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u32) as usize
    }

    fn kind(&mut self) -> Kind {
        [Kind::F32, Kind::F32, Kind::F32, Kind::I32, Kind::U32, Kind::Bool][self.below(6)]
    }

    /// A form of both of the same text around parts; `$` and a digit stand for them.
    fn around(template: &str, parts: &[Pair]) -> Pair {
        let fill = |of: fn(&Pair) -> &str| {
            let mut text = template.to_owned();
            for (place, part) in parts.iter().enumerate() {
                text = text.replace(&format!("${place}"), of(part));
            }
            text
        };
        Pair { constant: fill(|part| &part.constant), named: fill(|part| &part.named) }
    }

    fn name(&self, ty: &str, buffer: &str, place: usize) -> String {
        match self.form {
            Form::Buffers => format!("{buffer}[{place}]"),
            Form::Overrides => format!("{ty}_{place}"),
        }
    }

    /// A number; abstract at times.
    fn literal(&mut self, kind: Kind) -> Pair {
        let is_abstract = self.below(3) == 0;
        match kind {
            Kind::F32 => {
                let value = self.below(17) as f32 * 0.5 - 4.0;
                self.floats.push(value);
                let named = self.name("f32", "floats", self.floats.len() - 1);
                Pair { constant: format!("({value:?}{})", if is_abstract { "" } else { "f" }), named }
            }
            Kind::I32 => {
                let value = self.below(21) as i32 - 10;
                self.signed.push(value);
                let named = self.name("i32", "signed", self.signed.len() - 1);
                Pair { constant: format!("({value}{})", if is_abstract { "" } else { "i" }), named }
            }
            Kind::U32 => {
                let value = self.below(20) as u32;
                self.unsigned.push(value);
                let named = self.name("u32", "unsigned", self.unsigned.len() - 1);
                Pair { constant: format!("{value}u"), named }
            }
            Kind::Bool => {
                let parts = [self.literal(Kind::I32), self.literal(Kind::I32)];
                Self::around("($0 < $1)", &parts)
            }
        }
    }

    /// Zeros without arguments, and what has the same value without being one.
    fn zero(&mut self, kind: Kind, size: usize) -> Pair {
        let ty = kind.name(size);
        let zero = match kind {
            Kind::F32 => self.name("f32", "floats", 0),
            Kind::I32 => self.name("i32", "signed", 0),
            Kind::U32 => self.name("u32", "unsigned", 0),
            Kind::Bool => format!("({} > 0)", self.name("i32", "signed", 0)),
        };
        Pair { constant: format!("{ty}()"), named: format!("{ty}({zero})") }
    }

    fn value(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        if depth == 0 {
            return match self.below(5) {
                0 => self.zero(kind, size),
                _ if size == 1 => self.literal(kind),
                1 => {
                    let parts = [self.literal(kind)];
                    Self::around(&format!("{}($0)", kind.name(size)), &parts)
                }
                _ => self.composed(kind, size, 0),
            };
        }
        let below = depth - 1;
        match self.below(8) {
            0 | 1 if size > 1 => self.composed(kind, size, below),
            2 => self.picked(kind, size, below),
            3 => self.selected(kind, size, below),
            4 if kind != Kind::Bool => self.converted(kind, size, below),
            _ => match kind {
                Kind::F32 => self.float(size, below),
                Kind::I32 | Kind::U32 => self.whole(kind, size, below),
                Kind::Bool => self.truth(size, below),
            },
        }
    }

    /// A vector made of scalars and vectors.
    fn composed(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        let (mut parts, mut left) = (Vec::new(), size);
        while left > 0 {
            let part = 1 + self.below(left.min(3));
            let part = if part == size { part - 1 } else { part };
            parts.push(if self.below(4) == 0 { self.zero(kind, part) } else { self.value(kind, part, depth.min(1)) });
            left -= part;
        }
        let places: Vec<String> = (0..parts.len()).map(|place| format!("${place}")).collect();
        Self::around(&format!("{}({})", kind.name(size), places.join(", ")), &parts)
    }

    /// A member of a structure, at times. Never within a builtin: those that naga lacks are evaluated by the reader, which knows no structures
    /// (`docs/naga.md`), and such a text is refused.
    fn member(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        if kind != Kind::F32 || !matches!(size, 1 | 3) || self.below(4) > 0 {
            return self.value(kind, size, depth);
        }
        let parts = [self.value(kind, 3, depth - 1), self.value(kind, 1, depth - 1)];
        Self::around(if size == 1 { "Pair($0, $1).w" } else { "Pair($0, $1).v" }, &parts)
    }

    /// Components of a larger vector, or an element of an array.
    fn picked(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        match (self.below(4), kind, size) {
            (0, ..) => {
                let (index, ty) = (self.below(2), kind.name(size));
                let parts = [self.value(kind, size, depth), self.value(kind, size, depth)];
                Self::around(&format!("array<{ty}, 2>($0, $1)[{index}]"), &parts)
            }
            (2, _, 1) => {
                let of = 2 + self.below(3);
                let index = self.below(of);
                let parts = [self.value(kind, of, depth)];
                Self::around(&format!("($0)[{index}]"), &parts)
            }
            _ => {
                let of = 2 + self.below(3);
                let letters = [b"xyzw", b"rgba"][self.below(2)];
                let swizzle: String = (0..size).map(|_| char::from(letters[self.below(of)])).collect();
                let parts = [self.value(kind, of, depth)];
                Self::around(&format!("($0).{swizzle}"), &parts)
            }
        }
    }

    fn selected(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        let by = if self.below(2) == 0 { 1 } else { size };
        let parts = [self.value(kind, size, depth), self.value(kind, size, depth), self.value(Kind::Bool, by, depth)];
        Self::around("select($0, $1, $2)", &parts)
    }

    fn converted(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        let (from, template) = match kind {
            Kind::F32 => (Kind::I32, "$T($0)"),
            // Numbers of a range that both have.
            Kind::I32 => (Kind::F32, "$T(clamp($0, $F(-99.0), $F(99.0)))"),
            _ => (Kind::F32, "$T(clamp($0, $F(0.0), $F(99.0)))"),
        };
        let template = template.replace("$T", &kind.name(size)).replace("$F", &Kind::F32.name(size));
        let parts = [self.value(from, size, depth)];
        Self::around(&template, &parts)
    }

    fn float(&mut self, size: usize, depth: usize) -> Pair {
        let n = SIZES[size];
        let of = |generator: &mut Self, sizes: &[usize]| -> Vec<Pair> {
            sizes.iter().map(|&size| generator.value(Kind::F32, size, depth)).collect()
        };
        match self.below(16) {
            0 | 1 => Self::around("($0 + $1)", &of(self, &[size, size])),
            2 => Self::around("($0 - $1)", &of(self, &[size, size])),
            3 => Self::around("($0 + $1)", &of(self, &[size, 1])),
            4 => {
                let parts = [self.value(Kind::F32, size, depth), self.literal(Kind::F32)];
                Self::around("($0 * $1)", &parts)
            }
            5 => Self::around("min($0, $1)", &of(self, &[size, size])),
            6 => Self::around("max($0, $1)", &of(self, &[size, size])),
            7 => Self::around("abs($0)", &of(self, &[size])),
            8 => {
                let name = ["floor", "ceil", "trunc", "fract", "sign", "saturate"][self.below(6)];
                Self::around(&format!("{name}($0)"), &of(self, &[size]))
            }
            9 => Self::around("(-$0)", &of(self, &[size])),
            10 => {
                let part = ["0.0", "0.5", "1.0"][self.below(3)];
                Self::around(&format!("mix($0, $1, {part})"), &of(self, &[size, size]))
            }
            11 => Self::around("step($0, $1)", &of(self, &[size, size])),
            12 if size == 1 => {
                let of_size = 2 + self.below(3);
                let parts = [self.value(Kind::F32, of_size, depth), self.composed(Kind::F32, of_size, 0)];
                Self::around("dot($0, $1)", &parts)
            }
            12 if size == 3 => {
                let parts = [self.value(Kind::F32, 3, depth), self.composed(Kind::F32, 3, 0)];
                Self::around("cross($0, $1)", &parts)
            }
            13 if size > 1 => {
                let columns = 2 + self.below(3);
                let mut parts: Vec<Pair> = (0..columns).map(|_| self.value(Kind::F32, size, depth.min(1))).collect();
                let places: Vec<String> = (0..columns).map(|place| format!("${place}")).collect();
                let matrix = format!("mat{columns}x{n}<f32>({})", places.join(", "));
                match self.below(3) {
                    0 => {
                        let column = self.below(columns);
                        Self::around(&format!("{matrix}[{column}]"), &parts)
                    }
                    1 => {
                        parts.push(self.composed(Kind::F32, columns, 0));
                        Self::around(&format!("({matrix} * ${columns})"), &parts)
                    }
                    _ => {
                        parts.push(self.composed(Kind::F32, columns, 0));
                        Self::around(&format!("(${columns} * transpose({matrix}))"), &parts)
                    }
                }
            }
            _ => {
                let parts = [self.value(Kind::F32, size, depth), self.literal_of(size)];
                Self::around("clamp($0, $1 - 9.0, $1 + 9.0)", &parts)
            }
        }
    }

    /// The same number in each component.
    fn literal_of(&mut self, size: usize) -> Pair {
        let parts = [self.literal(Kind::F32)];
        Self::around(&format!("{}($0)", Kind::F32.name(size)), &parts)
    }

    fn whole(&mut self, kind: Kind, size: usize, depth: usize) -> Pair {
        let ty = kind.name(size);
        let mut of =
            |sizes: &[usize]| -> Vec<Pair> { sizes.iter().map(|&size| self.value(kind, size, depth)).collect() };
        let (both, one) = (of(&[size, size]), of(&[size]));
        let by = 1 + self.below(7);
        let template = match self.below(12) {
            0 | 1 => "($0 + $1)".to_owned(),
            2 if kind == Kind::I32 => "($0 - $1)".to_owned(),
            3 => format!("($0 * {ty}({by}))"),
            4 => format!("($0 / {ty}({by}))"),
            5 => format!("($0 % {ty}({by}))"),
            6 => "($0 & $1)".to_owned(),
            7 => "($0 | $1)".to_owned(),
            8 => "($0 ^ $1)".to_owned(),
            9 => "min($0, $1)".to_owned(),
            10 => "max($0, $1)".to_owned(),
            _ => {
                let shifts = Kind::U32.name(size);
                return Self::around(&format!("(($0) >> {shifts}({by}u))"), &one);
            }
        };
        Self::around(&template, &both)
    }

    fn truth(&mut self, size: usize, depth: usize) -> Pair {
        match self.below(6) {
            0 => Self::around("(!$0)", &[self.value(Kind::Bool, size, depth)]),
            1 if size == 1 => {
                let of = 2 + self.below(3);
                let name = ["all", "any"][self.below(2)];
                Self::around(&format!("{name}($0)"), &[self.value(Kind::Bool, of, depth)])
            }
            2 => {
                let op = ["&", "|"][self.below(2)];
                let parts = [self.value(Kind::Bool, size, depth), self.value(Kind::Bool, size, depth)];
                Self::around(&format!("($0 {op} $1)"), &parts)
            }
            _ => {
                let kind = [Kind::F32, Kind::I32, Kind::U32][self.below(3)];
                let op = ["<", "<=", ">", ">=", "==", "!="][self.below(6)];
                let parts = [self.value(kind, size, depth), self.value(kind, size, depth)];
                Self::around(&format!("($0 {op} $1)"), &parts)
            }
        }
    }
}
