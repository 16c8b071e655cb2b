//! Programs as WGSL.

use std::fmt::Write as _;

use super::program::*;
use super::{INPUTS, LANES};

impl Expression {
    pub(super) fn text(&self) -> String {
        let list = |parts: &[Self]| parts.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Input(by, from) => format!("input[(lid * {by}u + {from}u) & {}u]", INPUTS - 1),
            Self::Literal(value, Width::Single) => format!("f32({value:?})"),
            Self::Literal(value, Width::Half) => format!("f16({value:?})"),
            Self::Load(place) => place.text.clone(),
            Self::Apply(function, arguments) => function.text(&self.ty().name(), arguments),
            Self::Compose(ty, parts) => format!("{}({})", ty.name(), list(parts)),
            Self::Swizzle(base, order) => {
                let letters: String = order.iter().map(|&at| ['x', 'y', 'z', 'w'][at]).collect();
                format!("{}.{letters}", base.text())
            }
            Self::Column(matrix, column) => format!("{}[{column}]", matrix.text()),
            Self::Product(left, right) => format!("({} * {})", left.text(), right.text()),
            Self::Transpose(matrix) => format!("transpose({})", matrix.text()),
            Self::Dot(a, b) => format!("dot({}, {})", a.text(), b.text()),
            Self::Length(a) => format!("length({})", a.text()),
            Self::Cross(a, b) => format!("cross({}, {})", a.text(), b.text()),
            Self::Select(parts) => {
                let [a, b, c, d] = &**parts;
                format!("select({}, {}, {} < {})", a.text(), b.text(), c.text(), d.text())
            }
            Self::Convert(_, value) => format!("{}({})", self.ty().name(), value.text()),
        }
    }
}

impl Function {
    pub(super) fn text(self, ty: &str, arguments: &[Expression]) -> String {
        let texts: Vec<String> = arguments.iter().map(Expression::text).collect();
        let first = &texts[0];
        let second = texts.get(1).cloned().unwrap_or_default();
        let call = |name: &str| format!("{name}({})", texts.join(", "));
        match self {
            Self::Negate => format!("(-({first}))"),
            Self::Abs => call("abs"),
            Self::Floor => call("floor"),
            Self::Trunc => call("trunc"),
            Self::Round => call("round"),
            Self::Fract => call("fract"),
            Self::Sign => call("sign"),
            Self::Saturate => call("saturate"),
            Self::Sqrt => format!("sqrt(abs({first}))"),
            Self::Exp => format!("exp(clamp({first}, {ty}(-4.0), {ty}(4.0)))"),
            Self::Sin => format!("sin(clamp({first}, {ty}(-3.0), {ty}(3.0)))"),
            Self::Add => format!("({first} + {second})"),
            Self::Sub => format!("({first} - {second})"),
            Self::Mul => format!("({first} * {second})"),
            Self::Div => format!("({first} / (abs({second}) + {ty}(1.0)))"),
            Self::Min => call("min"),
            Self::Max => call("max"),
            Self::Step => call("step"),
            // With the bounds the wrong way round, WGSL says nothing definite.
            Self::Clamp => format!("clamp({first}, {second}, max({second}, {}))", texts[2]),
            Self::Mix => call("mix"),
            Self::Fma => call("fma"),
        }
    }
}

impl Program {
    pub(super) fn wgsl(&self) -> String {
        let mut text = String::new();
        if self.halves {
            text.push_str("enable f16;\n");
        }
        text.push_str(STRUCTS);
        for (number, function) in self.functions.iter().enumerate() {
            let parameters = function.parameters.iter().enumerate();
            let parameters: Vec<String> =
                parameters.map(|(at, ty)| format!("p{at}: ptr<function, {}>", ty.name())).collect();
            let _ = writeln!(text, "fn f{number}(lid: u32, {}) -> f32 {{", parameters.join(", "));
            write_block(&mut text, &function.body, 1);
            let _ = writeln!(text, "    return {};\n}}", function.result.text());
        }
        let _ =
            writeln!(text, "@compute @workgroup_size({LANES})\nfn main(@builtin(local_invocation_index) lid: u32) {{");
        write_block(&mut text, &self.main, 1);
        for (at, output) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "    out[lid * {}u + {at}u] = {};", self.outputs.len(), output.text());
        }
        text.push_str("}\n");
        text
    }
}

pub(super) fn write_block(text: &mut String, statements: &[Statement], depth: usize) {
    let indent = "    ".repeat(depth);
    for statement in statements {
        let _ = match statement {
            Statement::Declare(place, value) => {
                writeln!(text, "{indent}var {}: {} = {};", place.text, place.ty.name(), value.text())
            }
            Statement::Assign(place, value, false) => writeln!(text, "{indent}{} = {};", place.text, value.text()),
            Statement::Assign(place, value, true) => {
                writeln!(text, "{indent}{{ let p = &{}; *p = {}; }}", place.text, value.text())
            }
            Statement::If(bits, then, otherwise) => {
                let _ = writeln!(text, "{indent}if (lid & {bits}u) == 0u {{");
                write_block(text, then, depth + 1);
                let _ = writeln!(text, "{indent}}} else {{");
                write_block(text, otherwise, depth + 1);
                writeln!(text, "{indent}}}")
            }
            Statement::Repeat(count, body) => {
                let _ = writeln!(text, "{indent}for (var i = 0; i < {count}; i++) {{");
                write_block(text, body, depth + 1);
                writeln!(text, "{indent}}}")
            }
            Statement::Call(result, number, pointed) => {
                let pointers: Vec<String> = pointed.iter().map(|place| format!("&{}", place.text)).collect();
                writeln!(text, "{indent}var {} = f{number}(lid, {});", result.text, pointers.join(", "))
            }
        };
    }
}
