//! Builtin functions on numbers, component by component. Halves are computed as floats. `expr` asks `math` for every builtin on numbers: the language's own
//! function where it has WGSL's meaning, else a helper. Halves are widened, computed and rounded. What has no helper is refused with its name.

use naga::{BinaryOperator, MathFunction};

use super::super::types::Ty;
use super::super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    pub(crate) fn math(
        &mut self,
        function: MathFunction,
        result: Ty,
        types: &[Ty],
        values: &[String],
    ) -> Result<String> {
        if let Some(text) = self.geometry(function, result, types, values)? {
            return Ok(text);
        }
        if let Some(text) = self.packing(function, values)? {
            return Ok(text);
        }
        if matches!(function, MathFunction::Outer | MathFunction::Inverse) {
            return self.unsupported(format!("the function {function:?}"));
        }
        let name = format!("{function:?}").to_ascii_lowercase();
        let pairs: Vec<(Ty, &str)> = types.iter().copied().zip(values.iter().map(String::as_str)).listed();
        self.map(&name, result, &pairs, &move |writer, kind, x| writer.scalar_math(function, kind, x))
    }

    fn scalar_math(&mut self, function: MathFunction, kind: Scalar, x: &[String]) -> Result<String> {
        use MathFunction as F;
        if kind.is_float() {
            return self.float_math(function, kind, x);
        }
        match function {
            F::Abs | F::Sign | F::Min | F::Max | F::Clamp => self.integer_math(function, kind, x),
            F::Dot4I8Packed | F::Dot4U8Packed => self.unsupported("this dot product"),
            _ => self.bit_math(function, kind, x),
        }
    }

    fn integer_math(&mut self, function: MathFunction, kind: Scalar, x: &[String]) -> Result<String> {
        use MathFunction as F;
        let ty = kind.name();
        let (name, body) = match function {
            F::Abs if kind.is_signed() => {
                let unsigned = if kind == Scalar::I64 { "u64" } else { "u32" };
                ("abs", format!("return a < 0 ? ({ty})(({unsigned})0 - ({unsigned})a) : a;"))
            }
            F::Abs => return Ok(x[0].clone()),
            F::Sign if kind.is_signed() => ("sign", format!("return ({ty})(a > 0 ? 1 : a < 0 ? -1 : 0);")),
            F::Sign => return self.unsupported("sign of unsigned numbers"),
            F::Min => ("min", "return a < b ? a : b;".to_owned()),
            F::Max => ("max", "return a > b ? a : b;".to_owned()),
            _ => {
                // As naga's back ends do where the bounds are the wrong way round: the upper one wins.
                ("clamp", "const T x = a > b ? a : b; return x < c ? x : c;".replace('T', ty))
            }
        };
        self.call_scalar(name, kind, ty, x, &body)
    }

    /// Defines a helper on scalars `a`, `b`, … of one kind, and calls it.
    pub(super) fn call_scalar(
        &mut self,
        name: &str,
        kind: Scalar,
        result: &str,
        x: &[String],
        body: &str,
    ) -> Result<String> {
        let parameters: Vec<String> =
            x.iter().zip(["a", "b", "c"]).map(|(_, letter)| format!("{} {letter}", kind.name())).listed();
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).listed();
        let helper = self.scalar_helper(name, kind, result, &parameters, body)?;
        Ok(format!("{helper}({})", x.join(", ")))
    }

    /// A function of the language's own on floats.
    pub(super) fn float_call(&mut self, name: &str, kind: Scalar, x: &[String]) -> Result<String> {
        if kind == Scalar::F16 {
            let wide = self.widen_half()?;
            let x: Vec<String> = x.iter().map(|x| format!("{wide}({x})")).listed();
            let inner = self.float_call(name, Scalar::F32, &x)?;
            return Ok(format!("{}({inner})", self.round_to_half()?));
        }
        self.type_name(Ty::Scalar(kind))?;
        Ok(format!("{}({})", self.language.float_function(name, kind), x.join(", ")))
    }

    fn float_math(&mut self, function: MathFunction, kind: Scalar, x: &[String]) -> Result<String> {
        use MathFunction as F;
        if let Some(direct) = function_of_c(function) {
            return self.float_call(direct, kind, x);
        }
        if kind == Scalar::F16 {
            let wide = self.widen_half()?;
            let x: Vec<String> = x
                .iter()
                .enumerate()
                .map(|(place, x)| match (function, place) {
                    (F::Ldexp, 1) => x.clone(),
                    _ => format!("{wide}({x})"),
                })
                .listed();
            let inner = self.float_math(function, Scalar::F32, &x)?;
            return Ok(format!("{}({inner})", self.round_to_half()?));
        }
        let ty = kind.name();
        let call = |writer: &mut Self, name: &str, x: &[&str]| {
            let x: Vec<String> = x.iter().map(|x| (*x).to_owned()).listed();
            writer.float_call(name, kind, &x)
        };
        let f = if kind == Scalar::F64 { "" } else { "f" };
        let (name, body) = match function {
            F::Clamp => {
                let inner = call(self, "fmax", &["a", "b"])?;
                ("clamp", format!("return {};", call(self, "fmin", &[&inner, "c"])?))
            }
            F::Saturate => {
                let inner = call(self, "fmax", &["a", &format!("0.0{f}")])?;
                ("saturate", format!("return {};", call(self, "fmin", &[&inner, &format!("1.0{f}")])?))
            }
            F::Radians => ("radians", format!("return a * 0.017453292519943295{f};")),
            F::Degrees => ("degrees", format!("return a * 57.29577951308232{f};")),
            F::Fract => ("fract", format!("return a - {};", call(self, "floor", &["a"])?)),
            F::Sign => ("sign", format!("return a > 0.0{f} ? 1.0{f} : a < 0.0{f} ? -1.0{f} : 0.0{f};")),
            F::Mix => ("mix", format!("return a * (1.0{f} - c) + b * c;")),
            F::Step => ("step", format!("return a <= b ? 1.0{f} : 0.0{f};")),
            F::SmoothStep => {
                let x = ["((c - a) / (b - a))".to_owned()];
                let t = self.float_math(F::Saturate, kind, &x)?;
                ("smoothstep", format!("const {ty} t = {t}; return t * t * (3.0{f} - 2.0{f} * t);"))
            }
            F::InverseSqrt => {
                let body = match self.language.inverse_sqrt(kind) {
                    Some(name) => format!("return {name}(a);"),
                    None => format!("return 1.0{f} / {};", call(self, "sqrt", &["a"])?),
                };
                ("inverse_sqrt", body)
            }
            F::QuantizeToF16 => {
                let (wide, narrow) = (self.widen_half()?, self.round_to_half()?);
                return Ok(format!("{wide}({narrow}({}))", x[0]));
            }
            F::Ldexp => {
                let name = self.language.float_function("ldexp", kind);
                return Ok(format!("{name}({}, {})", x[0], x[1]));
            }
            _ => return self.unsupported(format!("the function {function:?} of this type")),
        };
        self.call_scalar(name, kind, ty, x, &body)
    }

    /// `a op b` on scalars of a kind.
    pub(super) fn scalar(&mut self, op: BinaryOperator, kind: Scalar, a: &str, b: &str) -> Result<String> {
        self.operate(op, kind, a, b)
    }
}

/// The function of the languages' own that does the same on floats.
fn function_of_c(function: MathFunction) -> Option<&'static str> {
    use MathFunction as F;
    Some(match function {
        F::Cos => "cos",
        F::Cosh => "cosh",
        F::Sin => "sin",
        F::Sinh => "sinh",
        F::Tan => "tan",
        F::Tanh => "tanh",
        F::Acos => "acos",
        F::Asin => "asin",
        F::Atan => "atan",
        F::Atan2 => "atan2",
        F::Asinh => "asinh",
        F::Acosh => "acosh",
        F::Atanh => "atanh",
        F::Ceil => "ceil",
        F::Floor => "floor",
        F::Round => "rint",
        F::Trunc => "trunc",
        F::Exp => "exp",
        F::Exp2 => "exp2",
        F::Log => "log",
        F::Log2 => "log2",
        F::Pow => "pow",
        F::Sqrt => "sqrt",
        F::Abs => "fabs",
        F::Min => "fmin",
        F::Max => "fmax",
        F::Fma => "fma",
        _ => return None,
    })
}
