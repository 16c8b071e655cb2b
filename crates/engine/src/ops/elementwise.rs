//! Functions of elements: one table, from which come the enums [`Unary`] and [`Binary`], the methods of [`Expr`] and [`Tensor`], their
//! documentation, the WGSL, and which dtypes a function takes. A new function is a row here, and its oracle in
//! `tests/tensor_ops/elementwise.rs`; what WGSL has no builtin for is written in `shaders/elementwise/functions.wgsl`.

use super::expr::Operand;
use super::expr::node::{Expr, Node, Typed, is_float};
use super::expr::number::{family, scalar};
use super::expr::shape;
use super::host::{self, ByHost};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// A row of the table.
pub(super) struct Function {
    name: &'static str,
    /// WGSL over the operands `{x}` and `{y}`, by the numbers that it is for: the first row that [`covers`] a dtype. `{t}` is the type that
    /// they are computed in, `{f}` what the library's functions of it begin with.
    forms: &'static [(&'static str, &'static str)],
    gives: Gives,
    accuracy: &'static str,
}

/// The dtype of a function's result.
#[derive(Clone, Copy)]
enum Gives {
    /// The operands' dtype.
    Same,
    Bool,
    /// The dtype of the operands' parts.
    Real,
    /// The complex dtype whose parts have the operands' dtype.
    Complex,
}

/// Returns whether a form for these numbers is for a dtype.
fn covers(numbers: &str, dtype: DType) -> bool {
    match numbers {
        "boolean" => dtype == DType::Bool,
        "float" => dtype.kind() == Kind::Float,
        "integer" => matches!(dtype.kind(), Kind::Signed | Kind::Unsigned),
        "signed" => dtype.kind() == Kind::Signed,
        "unsigned" => dtype.kind() == Kind::Unsigned,
        "complex" => dtype.kind() == Kind::Complex,
        "f32" => is_float(dtype),
        _ => numbers == dtype.name(),
    }
}

impl Function {
    /// The function of operands of a dtype, as WGSL.
    pub(super) fn wgsl(&self, dtype: DType, [x, y]: [&str; 2]) -> Result<String> {
        let form = self.forms.iter().find(|(numbers, _)| covers(numbers, dtype));
        let (_, form) = form.ok_or_else(|| self.refusal(dtype))?;
        let form = form.replace("{t}", scalar(dtype)).replace("{f}", family(dtype));
        Ok(form.replace("{x}", x).replace("{y}", y))
    }

    /// Returns whether it looks at numbers as their dtype holds them, not at what they are computed in: a predicate, or what has a form for halves.
    fn looks(&self) -> bool {
        matches!(self.gives, Gives::Bool) || self.forms.iter().any(|(numbers, _)| *numbers == DType::F16.name())
    }

    fn takes(&self, dtype: DType) -> bool {
        self.forms.iter().any(|(numbers, _)| covers(numbers, dtype))
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> {
        DType::ALL.iter().copied().filter(|dtype| self.takes(*dtype))
    }

    /// The dtype of the result.
    pub(super) fn result(&self, dtype: DType) -> Result<DType> {
        if !self.takes(dtype) {
            return Err(self.refusal(dtype));
        }
        Ok(match (self.gives, dtype) {
            (Gives::Bool, _) => DType::Bool,
            (Gives::Real, DType::Complex64) => DType::F32,
            (Gives::Real, DType::Complex128) => DType::F64,
            (Gives::Complex, DType::F64) => DType::Complex128,
            (Gives::Complex, _) => DType::Complex64,
            _ => dtype,
        })
    }

    /// The largest error on the CPU in units in the last place of float32. `None` where what is small is not relatively accurate: near roots,
    /// and in tails that are no longer normal numbers.
    fn ulps(&self) -> Option<u32> {
        match (self.accuracy, self.name) {
            ("exact", _) => Some(0),
            (_, "lgamma" | "digamma" | "log_add_exp" | "hard_sigmoid" | "hard_swish" | "gelu" | "gelu_tanh") => None,
            (_, "mish") => Some(40),
            (_, "silu") => Some(16),
            (_, "erfc") => Some(12),
            (_, "pow") => Some(16),
            _ => Some(4),
        }
    }

    /// Selects one of two costs: of functions that take a few instructions, and of those computed by a series.
    pub(super) fn cost(&self, [simple, series]: [f64; 2]) -> f64 {
        if self.accuracy == "exact" || ["div", "reciprocal"].contains(&self.name) { simple } else { series }
    }

    fn refusal(&self, dtype: DType) -> Error {
        let dtypes: Vec<String> = self.dtypes().map(|dtype| dtype.to_string()).listed();
        Error::dtype(format!("{} of {dtype}", self.name), format!("it is for {} (cast first)", dtypes.join(", ")))
    }
}

/// The kinds of numbers of a form, in words.
macro_rules! numbers {
    (boolean) => {
        "bool "
    };
    (float) => {
        "floats "
    };
    (integer) => {
        "integers "
    };
    (signed) => {
        "signed integers "
    };
    (unsigned) => {
        "unsigned integers "
    };
    (complex) => {
        "complex numbers "
    };
    (f32) => {
        "f32, f16, bf16 "
    };
    (f64) => {
        "f64 "
    };
    // Part of what another form covers.
    ($other:ident) => {
        ""
    };
}

/// The dtype of a result.
macro_rules! result {
    () => {
        Gives::Same
    };
    (bool) => {
        Gives::Bool
    };
    (real) => {
        Gives::Real
    };
    (complex) => {
        Gives::Complex
    };
}

/// The methods of a function.
macro_rules! methods {
    (Unary, $Variant:ident, $method:ident, $($doc:literal)+) => {
        impl Expr {
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self) -> Self {
                self.unary(Unary::$Variant)
            }
        }
        impl Tensor {
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self) -> Expr {
                self.expr().$method()
            }
        }
    };
    (Binary, $Variant:ident, $method:ident, $($doc:literal)+) => {
        impl Expr {
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self, other: impl Into<Operand>) -> Self {
                self.binary(Binary::$Variant, other)
            }
        }
        impl Tensor {
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self, other: impl Into<Operand>) -> Expr {
                self.expr().$method(other)
            }
        }
    };
}

/// One half of the table. A row is `Variant, name -> dtype of the result, { numbers => WGSL }, accuracy`, with what it computes as
/// its doc. The rows of `operators` are methods of `std::ops`' traits, the others of [`Expr`] and [`Tensor`].
macro_rules! functions {
    (
        $(#[$about:meta])*
        $Arity:ident;
        operators { $($(#[doc = $odoc:literal])+ $Operator:ident, $oname:ident, { $($oforms:tt)+ }, $oaccuracy:literal;)* }
        methods { $($(#[doc = $doc:literal])+ $Variant:ident, $method:ident $(-> $gives:ident)?, { $($forms:tt)+ }, $accuracy:literal;)* }
    ) => {
        functions! { @enum $(#[$about])* $Arity;
            $($(#[doc = $odoc])+ $Operator, $oname, (), { $($oforms)+ }, $oaccuracy;)*
            $($(#[doc = $doc])+ $Variant, $method, ($($gives)?), { $($forms)+ }, $accuracy;)*
        }
        $(methods! { $Arity, $Variant, $method, $($doc)+ })*
    };
    (
        @enum $(#[$about:meta])* $Arity:ident;
        $($(#[doc = $doc:literal])+ $Variant:ident, $name:ident, ($($gives:ident)?),
            { $($($scalar:ident)|+ => $form:literal),+ }, $accuracy:literal;)*
    ) => {
        $(#[$about])*
        ///
        /// | | computes | for | error |
        /// | --- | --- | --- | --- |
        $(#[doc = concat!(
            "| `", stringify!($name), "` |", $($doc,)+ " | ", $($(numbers!($scalar),)+)+ $("gives ", stringify!($gives),)? " | ", $accuracy, " |"
        )])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Arity {
            $($(#[doc = $doc])+ $Variant,)*
        }

        impl $Arity {
            /// All variants, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$Variant),*];

            pub(super) fn function(self) -> &'static Function {
                match self {
                    $(Self::$Variant => &Function {
                        name: stringify!($name),
                        forms: &[$($((stringify!($scalar), $form)),+),+],
                        gives: result!($($gives)?),
                        accuracy: $accuracy,
                    },)*
                }
            }

            /// Returns its name: that of the method, or of the operator's.
            #[must_use]
            pub fn name(self) -> &'static str {
                self.function().name
            }

            /// Returns the dtypes that it takes.
            pub fn dtypes(self) -> impl Iterator<Item = DType> {
                DType::ALL.iter().copied().filter(move |&dtype| self.function().takes(dtype) || self.by_host(dtype))
            }

            /// Returns the largest error in float32, absolute below 1 and relative above, or `exact`.
            #[must_use]
            pub fn accuracy(self) -> &'static str {
                self.function().accuracy
            }

            /// Returns the largest error on the CPU in units in the last place of float32, away from overflow; `None` if only [`Self::accuracy`] holds,
            /// near roots and for results too small to be normal numbers.
            #[must_use]
            pub fn ulps(self) -> Option<u32> {
                self.function().ulps()
            }
        }
    };
}

functions! {
    /// A function of one element.
    Unary;
    operators {
        /// -x; integers wrap.
        Neg, neg, { float | signed | complex => "-{x}" }, "exact";
    }
    methods {
        /// The magnitude; that of the least integer is itself; of a complex number it is real.
        Abs, abs -> real, { unsigned => "{x}", float | signed => "abs({x})", complex => "{f}_abs({x})" }, "exact";
        /// The real part; what is real stays.
        Real, real -> real, { complex => "{x}.x", float | integer => "{x}" }, "exact";
        /// The imaginary part; of what is real 0.
        Imag, imag -> real, { complex => "{x}.y", float | integer => "{t}(0)" }, "exact";
        /// The conjugate: the imaginary part with the other sign.
        Conj, conj, { complex => "{t}({x}.x, -{x}.y)", float | integer => "{x}" }, "exact";
        /// The angle of a complex number, from -π to π; of a real one 0 or π.
        Angle, angle -> real, { f32 => "float_atan2(0.0, {x})", complex64 => "complex_angle({x})" }, "2e-6";
        /// -1, 0 or 1; NaN stays.
        Sign, sign, { float => "{f}_sign({x})", signed => "sign({x})", unsigned => "min({x}, {t}(1))" }, "exact";
        /// The greatest whole number that is not above x.
        Floor, floor, { float => "floor({x})", integer => "{x}" }, "exact";
        /// The least whole number that is not below x.
        Ceil, ceil, { float => "ceil({x})", integer => "{x}" }, "exact";
        /// The nearest whole number, an even one where two are.
        Round, round, { float => "round({x})", integer => "{x}" }, "exact";
        /// The whole part, towards 0.
        Trunc, trunc, { float => "trunc({x})", integer => "{x}" }, "exact";
        /// x²; integers wrap.
        Square, square, { float | integer => "{x} * {x}", complex => "{f}_mul({x}, {x})" }, "exact";
        /// 1 / x
        Reciprocal, reciprocal, { float => "{t}(1) / {x}", complex => "{f}_div({t}(1, 0), {x})" }, "3e-7";
        /// The square root; NaN below 0.
        Sqrt, sqrt, { float => "sqrt({x})", complex => "{f}_sqrt({x})" }, "2e-6";
        /// 1 / √x; NaN below 0.
        Rsqrt, rsqrt, { float => "{t}(1) / sqrt({x})" }, "2e-6";
        /// The cube root, of negative numbers too.
        Cbrt, cbrt, { f32 => "float_cbrt({x})" }, "5e-7";
        /// e^x
        Exp, exp, { f32 => "float_exp({x})", complex64 => "complex_exp({x})" }, "2e-6";
        /// 2^x; exact for whole numbers.
        Exp2, exp2, { f32 => "float_exp2({x})" }, "2e-6";
        /// e^x - 1, with all its digits near 0.
        Expm1, expm1, { f32 => "float_expm1({x})" }, "2e-6";
        /// The natural logarithm; NaN below 0.
        Log, log, { f32 => "float_log({x})", complex64 => "complex_log({x})" }, "2e-6";
        /// The logarithm to the base 2, exact for powers of 2; -∞ at 0, NaN below.
        Log2, log2, { f32 => "float_log2({x})" }, "2e-6";
        /// The logarithm to the base 10; -∞ at 0, NaN below.
        Log10, log10, { f32 => "float_log10({x})" }, "2e-6";
        /// log(1 + x), with all its digits near 0; -∞ at -1, NaN below.
        Log1p, log1p, { f32 => "float_log1p({x})" }, "2e-6";
        /// The sine of radians; NaN of an infinity.
        Sin, sin, { f32 => "float_sin({x})" }, "2e-6";
        /// The cosine of radians; NaN of an infinity.
        Cos, cos, { f32 => "float_cos({x})" }, "2e-6";
        /// The tangent of radians; near a pole as accurate as sine and cosine are.
        Tan, tan, { f32 => "float_tan({x})" }, "5e-6";
        /// The arc sine, from -π/2 to π/2; NaN beyond 1.
        Asin, asin, { f32 => "float_asin({x})" }, "2e-6";
        /// The arc cosine, from 0 to π; NaN beyond 1.
        Acos, acos, { f32 => "float_acos({x})" }, "2e-6";
        /// The arc tangent, from -π/2 to π/2.
        Atan, atan, { f32 => "float_atan({x})" }, "2e-6";
        /// The hyperbolic sine.
        Sinh, sinh, { f32 => "float_sinh({x})" }, "2e-6";
        /// The hyperbolic cosine.
        Cosh, cosh, { f32 => "float_cosh({x})" }, "2e-6";
        /// The inverse of the hyperbolic sine.
        Asinh, asinh, { f32 => "float_asinh({x})" }, "2e-6";
        /// The inverse of the hyperbolic cosine; NaN below 1.
        Acosh, acosh, { f32 => "float_acosh({x})" }, "2e-6";
        /// The inverse of the hyperbolic tangent; infinite at 1 and -1, NaN beyond.
        Atanh, atanh, { f32 => "float_atanh({x})" }, "2e-6";
        /// The hyperbolic tangent.
        Tanh, tanh, { f32 => "float_tanh({x})" }, "2e-6";
        /// max(x, 0); NaN stays.
        Relu, relu, { float => "{f}_relu({x})" }, "exact";
        /// The logistic function, 1 / (1 + e^-x).
        Sigmoid, sigmoid, { f32 => "float_sigmoid({x})" }, "2e-6";
        /// x / (1 + e^-x)
        Silu, silu, { f32 => "float_silu({x})" }, "2e-6";
        /// x Φ(x), with Φ the normal distribution's, by the error function.
        Gelu, gelu, { f32 => "float_gelu({x})" }, "2e-6";
        /// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) (Hendrycks and Gimpel, 2016).
        GeluTanh, gelu_tanh, { f32 => "float_gelu_tanh({x})" }, "2e-6";
        /// The error function, 2/√π times the integral of e^(-t²) from 0 to x.
        Erf, erf, { f32 => "float_erf({x})" }, "3e-7";
        /// 1 - erf(x), with its digits where that is small.
        Erfc, erfc, { f32 => "float_erfc({x})" }, "5e-7";
        /// log |Γ(x)|; infinite at 0 and the negative whole numbers.
        Lgamma, lgamma, { f32 => "float_lgamma({x})" }, "5e-6";
        /// The derivative of log Γ(x); NaN at 0 and the negative whole numbers.
        Digamma, digamma, { f32 => "float_digamma({x})" }, "5e-6";
        /// min(max(x, 0), 6); NaN stays.
        Relu6, relu6, { float => "{f}_clamp({x}, {t}(0), {t}(6))" }, "exact";
        /// 1.0507 x above 0 and 1.7581 (e^x - 1) below (Klambauer et al., 2017).
        Selu, selu, { f32 => "float_selu({x})" }, "2e-6";
        /// log(1 + e^x)
        Softplus, softplus, { f32 => "float_softplus({x})" }, "2e-6";
        /// -log(1 + e^-x), the logarithm of the logistic function.
        LogSigmoid, log_sigmoid, { f32 => "-float_softplus(-{x})" }, "2e-6";
        /// x tanh(log(1 + e^x)) (Misra, 2019).
        Mish, mish, { f32 => "float_mish({x})" }, "2e-6";
        /// x/6 + 1/2, limited to 0 and 1.
        HardSigmoid, hard_sigmoid, { f32 => "float_hard_sigmoid({x})" }, "3e-7";
        /// x times its `hard_sigmoid`.
        HardSwish, hard_swish, { f32 => "{x} * float_hard_sigmoid({x})" }, "5e-7";
        /// True for NaN.
        IsNan, is_nan -> bool, { float => "{f}_is_nan({x})" }, "exact";
        /// True for the infinities.
        IsInfinite, is_infinite -> bool, { float => "{f}_is_infinite({x})" }, "exact";
        /// False for NaN and the infinities.
        IsFinite, is_finite -> bool, { float => "{f}_is_finite({x})" }, "exact";
        /// True for 0.
        LogicalNot, logical_not -> bool, { boolean => "1u - {x}", float | integer => "select(0u, 1u, {x} == {t}(0))", complex => "select(0u, 1u, all({x} == {t}()))" }, "exact";
        /// Each bit turned over.
        BitwiseNot, bitwise_not, { boolean => "1u - {x}", integer => "~{x}" }, "exact";
        /// The number of bits that are 1.
        CountOnes, count_ones, { i8 => "i32(countOneBits({x} & 255))", i16 => "countOneBits({x} & 65535)", i64 | u64 => "{f}_count_ones({x})", integer => "countOneBits({x})" }, "exact";
    }
}

functions! {
    /// A function of two elements, of one dtype once they are promoted.
    Binary;
    operators {
        /// x + y; integers wrap.
        Add, add, { float | integer | complex => "{x} + {y}" }, "exact";
        /// x - y; integers wrap.
        Sub, sub, { float | integer | complex => "{x} - {y}" }, "exact";
        /// x y; integers wrap.
        Mul, mul, { float | integer => "{x} * {y}", complex => "{f}_mul({x}, {y})" }, "exact";
        /// x / y; integers as WGSL has it: towards zero, and x / 0 = x.
        Div, div, { float => "{x} / {y}", integer => "{x} / select({y}, {t}(1), {y} == {t}(0))", complex => "{f}_div({x}, {y})" }, "3e-7";
    }
    methods {
        /// The complex number x + y i.
        Complex, complex -> complex, { f32 => "vec2f({x}, {y})", f64 => "vec2<f64>({x}, {y})" }, "exact";
        /// x^y; for x below 0 a number where y is whole, and NaN elsewhere.
        Pow, pow, { f32 => "float_power({x}, {y})" }, "1e-5";
        /// The lesser; NaN if either is.
        Min, minimum, { float => "{f}_min({x}, {y})", boolean | integer => "min({x}, {y})" }, "exact";
        /// The greater; NaN if either is.
        Max, maximum, { float => "{f}_max({x}, {y})", boolean | integer => "max({x}, {y})" }, "exact";
        /// The angle of the point (y, x), x being the ordinate: the arc tangent of x / y in all four quadrants, from -π to π.
        Atan2, atan2, { f32 => "float_atan2({x}, {y})" }, "2e-6";
        /// √(x² + y²), where the squares may be out of range.
        Hypot, hypot, { f32 => "float_hypot({x}, {y})" }, "5e-7";
        /// The magnitude of x with the sign of y.
        CopySign, copysign, { float => "{f}_with_sign({x}, {y})" }, "exact";
        /// The number of the dtype next to x in the direction of y.
        NextAfter, next_after, { f16 => "half_next_after({x}, {y})", bf16 => "bfloat_next_after({x}, {y})", f32 => "float_next_after({x}, {y})" }, "exact";
        /// The remainder of x by y when the quotient is rounded towards 0: exact, with the sign of x. NaN, or 0 for integers, where y = 0.
        Fmod, fmod, { float | signed => "{f}_rest({x}, {y})", unsigned => "{x} % select({y}, {t}(1), {y} == {t}(0))" }, "exact";
        /// The remainder of x by y when the quotient is rounded down, as Python's `%`: with the sign of y. NaN, or 0 for integers, where y = 0.
        Remainder, remainder, { float | signed => "{f}_remainder({x}, {y})", unsigned => "{x} % select({y}, {t}(1), {y} == {t}(0))" }, "3e-7";
        /// x / y rounded down, as Python's `//`; by 0 as `/`.
        FloorDivide, floor_divide, { float | signed => "{f}_floor_divide({x}, {y})", unsigned => "{x} / select({y}, {t}(1), {y} == {t}(0))" }, "3e-7";
        /// log(e^x + e^y)
        LogAddExp, log_add_exp, { f32 => "float_log_add_exp({x}, {y})" }, "2e-6";
        /// x above 0, and y (e^x - 1) below (Clevert, Unterthiner and Hochreiter, 2015); y is 1 mostly.
        Elu, elu, { f32 => "float_elu({x}, {y})" }, "2e-6";
        /// x above 0, and x y below; y is a small slope.
        LeakyRelu, leaky_relu, { float => "{f}_leaky_relu({x}, {y})" }, "3e-7";
        /// True where neither is 0.
        LogicalAnd, logical_and -> bool, { boolean => "{x} & {y}", float | integer => "select(1u, 0u, {x} == {t}(0) || {y} == {t}(0))" }, "exact";
        /// True where one of them is not 0.
        LogicalOr, logical_or -> bool, { boolean => "{x} | {y}", float | integer => "select(1u, 0u, {x} == {t}(0) && {y} == {t}(0))" }, "exact";
        /// True where just one of them is 0.
        LogicalXor, logical_xor -> bool, { boolean => "{x} ^ {y}", float | integer => "select(0u, 1u, ({x} == {t}(0)) != ({y} == {t}(0)))" }, "exact";
        /// The bits that both have.
        BitwiseAnd, bitwise_and, { boolean | integer => "{x} & {y}" }, "exact";
        /// The bits that one of them has.
        BitwiseOr, bitwise_or, { boolean | integer => "{x} | {y}" }, "exact";
        /// The bits that just one of them has.
        BitwiseXor, bitwise_xor, { boolean | integer => "{x} ^ {y}" }, "exact";
        /// x 2^y, y from 0 on; 0 where all bits have left.
        ShiftLeft, shift_left, { integer => "{f}_shift_left({x}, {y})" }, "exact";
        /// x / 2^y rounded down, y from 0 on.
        ShiftRight, shift_right, { integer => "{f}_shift_right({x}, {y})" }, "exact";
        /// True where x = y.
        Eq, equal -> bool, { f32 => "float_equal({x}, {y})", boolean | f64 | integer => "select(0u, 1u, {x} == {y})", complex => "select(0u, 1u, all({x} == {y}))" }, "exact";
        /// True where x ≠ y.
        Ne, not_equal -> bool, { f32 => "1u - float_equal({x}, {y})", boolean | f64 | integer => "select(1u, 0u, {x} == {y})", complex => "select(1u, 0u, all({x} == {y}))" }, "exact";
        /// True where x < y.
        Lt, less -> bool, { f32 => "float_less({x}, {y})", boolean | f64 | integer => "select(0u, 1u, {x} < {y})" }, "exact";
        /// True where x ≤ y.
        Le, less_equal -> bool, { f32 => "float_less_equal({x}, {y})", boolean | f64 | integer => "select(0u, 1u, {x} <= {y})" }, "exact";
        /// True where x > y.
        Gt, greater -> bool, { f32 => "float_less({y}, {x})", boolean | f64 | integer => "select(0u, 1u, {x} > {y})" }, "exact";
        /// True where x ≥ y.
        Ge, greater_equal -> bool, { f32 => "float_less_equal({y}, {x})", boolean | f64 | integer => "select(0u, 1u, {x} >= {y})" }, "exact";
    }
}

impl Expr {
    /// Applies a function to each element.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[4.0_f32])?.expr();
    /// assert_eq!(x.unary(cantus::ops::Unary::Sqrt).eval()?.item::<f32>()?, 2.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn unary(&self, op: Unary) -> Self {
        self.derived(|typed| {
            if !op.function().takes(typed.dtype) && op.by_host(typed.dtype) {
                return Ok(host::unary(op, typed));
            }
            let dtype = op.function().result(typed.dtype)?;
            let operand = if op.function().looks() { typed.rounded() } else { typed.clone() };
            Ok(Typed::new(Node::Unary(op, operand), typed.shape.clone(), dtype))
        })
    }

    /// Combines element by element with a number or another expression; shapes broadcast, and dtypes are [promoted](DType::promoted).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[4.0_f32, 1.0])?.expr();
    /// assert_eq!(x.binary(cantus::ops::Binary::Max, 2.0).eval()?.to_vec::<f32>()?, [4.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn binary(&self, op: Binary, other: impl Into<Operand>) -> Self {
        let other = other.into().beside(self);
        self.derived(|typed| {
            let other = self.beside(&other)?;
            let (left, right) = self.promoted(typed, &other, op.name())?;
            if !op.function().takes(left.dtype) && op.by_host(left.dtype) {
                return host::binary(op, &left, &right);
            }
            let dtype = op.function().result(left.dtype)?;
            let shape = shape::broadcast(&left.shape, &right.shape)?;
            let (left, right) = if op.function().looks() { (left.rounded(), right.rounded()) } else { (left, right) };
            Ok(Typed::new(Node::Binary(op, left, right), shape, dtype))
        })
    }

    /// Returns -x; integers wrap.
    #[must_use]
    pub fn negate(&self) -> Self {
        self.unary(Unary::Neg)
    }
}

impl Tensor {
    /// See [`Expr::unary`].
    #[must_use]
    pub fn unary(&self, op: Unary) -> Expr {
        self.expr().unary(op)
    }

    /// See [`Expr::binary`].
    #[must_use]
    pub fn binary(&self, op: Binary, other: impl Into<Operand>) -> Expr {
        self.expr().binary(op, other)
    }

    /// See [`Expr::negate`].
    #[must_use]
    pub fn negate(&self) -> Expr {
        self.expr().negate()
    }
}
