//! Each operation on registers as an expression of Rust. `generator` writes one line of Rust for each instruction by it. The semantics are those of
//! `spmd::math::lane`, whose functions the text calls, so results have the executor's bits. Operands are mentioned once or are names.

use cantus_spmd::Register;
use cantus_spmd::bytecode::{Compare, Convert, Float, Float2, Instr, Int, Int2, IntCompare, Op};

use super::analysis::Ty;

/// Gives operands as expressions of a wanted type.
pub(super) trait Operands {
    /// The register's value in the wanted type.
    fn value(&self, register: Register, ty: Ty) -> String;
    /// The register's own type.
    fn ty(&self, register: Register) -> Ty;
    /// The name of a prepared divisor, if the register has one.
    fn divisor(&self, register: Register) -> Option<String>;
    /// Returns whether a sine may be the fast one, its argument's size being looked at afterwards.
    fn fast_trig(&self) -> bool;
}

fn compare(op: Compare) -> &'static str {
    match op {
        Compare::Equal => "==",
        Compare::NotEqual => "!=",
        Compare::Less => "<",
        Compare::LessEqual => "<=",
        Compare::Greater => ">",
        Compare::GreaterEqual => ">=",
    }
}

/// The value that a computation gives, in the type `d` of its target. `None` for operations that are none.
pub(super) fn expression(o: &dyn Operands, i: &Instr, d: Ty) -> Option<String> {
    use Ty::{Bool, F32, F64, U32, U64};
    let a = |ty| o.value(i.a, ty);
    let b = |ty| o.value(i.b, ty);
    let c = |ty| o.value(i.c, ty);
    let (text, ty) = match i.op {
        Op::Copy | Op::Copy64 | Op::Blend | Op::Blend64 => (a(d), d),
        Op::Select | Op::Select64 => (format!("select({}, {}, {})", c(Bool), a(d), b(d)), d),
        Op::Float(op) => float(o, op, a(F32)),
        Op::Float2(op) => float2(op, a(F32), if op == Float2::Ldexp { b(U32) } else { b(F32) }),
        Op::FloatCompare(op) => (format!("{} {} {}", a(F32), compare(op), b(F32)), Bool),
        Op::Fma => (format!("lane::fma::<I>({}, {}, {})", a(F32), b(F32), c(F32)), F32),
        Op::Int(Int::Not) if o.ty(i.a) == Bool && d == Bool => (format!("!{}", a(Bool)), Bool),
        Op::Int(op) => (int(op, a(U32)), U32),
        Op::Int2(op @ (Int2::And | Int2::Or | Int2::Xor)) if d == Bool => {
            (format!("{} {} {}", a(Bool), bitwise(op), b(Bool)), Bool)
        }
        Op::Int2(op @ (Int2::DivUnsigned | Int2::RemUnsigned)) if o.divisor(i.b).is_some() => {
            let function = if op == Int2::DivUnsigned { "quotient" } else { "remainder" };
            (format!("{}.{function}({})", o.divisor(i.b).unwrap_or_default(), a(U32)), U32)
        }
        Op::Int2(op) => (int2(op, &a(U32), &b(U32)), U32),
        Op::IntCompare(op) => (int_compare(op, &a(U32), &b(U32), "i32"), Bool),
        Op::ExtractSigned => (format!("lane::extract_signed({}, {}, {})", a(U32), b(U32), c(U32)), U32),
        Op::ExtractUnsigned => (format!("lane::extract_unsigned({}, {}, {})", a(U32), b(U32), c(U32)), U32),
        Op::Wide(op) => (wide(op, a(U64)), U64),
        Op::Wide2(op) => (
            match op {
                Int2::ShiftLeft | Int2::ShiftRightSigned | Int2::ShiftRightUnsigned => wide_shift(op, &a(U64), &b(U32)),
                _ => wide2(op, &a(U64), &b(U64)),
            },
            U64,
        ),
        Op::WideCompare(op) => (int_compare(op, &a(U64), &b(U64), "i64"), Bool),
        Op::Double(op) => double(op, a(F64)),
        Op::Double2(op) => (double2(op, a(F64), if op == Float2::Ldexp { b(U32) } else { b(F64) }), F64),
        Op::DoubleCompare(op) => (format!("{} {} {}", a(F64), compare(op), b(F64)), Bool),
        Op::Fma64 => (format!("f64::mul_add({}, {}, {})", a(F64), b(F64), c(F64)), F64),
        Op::Convert(op) => convert(op, &a),
        _ => return None,
    };
    Some(cast(text, ty, d))
}

/// An expression of one type as another, bits kept; bools are all bits or none.
pub(super) fn cast(text: String, from: Ty, to: Ty) -> String {
    use Ty::{Bool, F32, F64, U32, U64};
    match (from, to) {
        (U32, F32) => format!("f32::from_bits({text})"),
        (F32, U32) => format!("({text}).to_bits()"),
        (Bool, U32) => format!("truth({text})"),
        (Bool, F32) => format!("f32::from_bits(truth({text}))"),
        (U32, Bool) => format!("(({text}) != 0)"),
        (F32, Bool) => format!("(({text}).to_bits() != 0)"),
        (U64, F64) => format!("f64::from_bits({text})"),
        (F64, U64) => format!("({text}).to_bits()"),
        _ => text,
    }
}

fn float(o: &dyn Operands, op: Float, a: String) -> (String, Ty) {
    let call = |function: &str| format!("math::{function}::<I>({a})");
    let trig = |function: &str| {
        if o.fast_trig() { format!("math::{function}::<I>({a})") } else { format!("rt::{function}::<I>({a})") }
    };
    let text = match op {
        Float::Neg => format!("-{a}"),
        Float::Abs => format!("f32::abs({a})"),
        Float::Sign => format!("lane::sign({a})"),
        Float::Sqrt => call("sqrt"),
        Float::InverseSqrt => call("inverse_sqrt"),
        Float::Floor => call("floor"),
        Float::Ceil => call("ceil"),
        Float::Trunc => call("trunc"),
        Float::Round => call("round_even"),
        Float::Fract => call("fract"),
        Float::Exp => call("exp"),
        Float::Exp2 => call("exp2"),
        Float::Log => call("log"),
        Float::Log2 => call("log2"),
        Float::Sin => trig("sin"),
        Float::Cos => trig("cos"),
        Float::Tan => trig("tan"),
        Float::Asin => call("asin"),
        Float::Acos => call("acos"),
        Float::Atan => call("atan"),
        Float::Sinh => call("sinh"),
        Float::Cosh => call("cosh"),
        Float::Tanh => call("tanh"),
        Float::Asinh => call("asinh"),
        Float::Acosh => call("acosh"),
        Float::Atanh => call("atanh"),
        Float::RoundHalf => format!("math::round_f16({a})"),
        Float::Fraction => format!("lane::split({a}).0"),
        Float::Exponent => return (format!("lane::split({a}).1 as u32"), Ty::U32),
    };
    (text, Ty::F32)
}

fn float2(op: Float2, a: String, b: String) -> (String, Ty) {
    let text = match op {
        Float2::Add => format!("{a} + {b}"),
        Float2::Sub => format!("{a} - {b}"),
        Float2::Mul => format!("{a} * {b}"),
        Float2::Div => format!("{a} / {b}"),
        Float2::Rem => format!("{a} % {b}"),
        Float2::Min => format!("lane::min({a}, {b})"),
        Float2::Max => format!("lane::max({a}, {b})"),
        Float2::Pow => format!("math::pow::<I>({a}, {b})"),
        Float2::Atan2 => format!("math::atan2::<I>({a}, {b})"),
        Float2::Ldexp => format!("lane::ldexp({a}, {b} as i32)"),
    };
    (text, Ty::F32)
}

fn double(op: Float, a: String) -> (String, Ty) {
    let call = |function: &str| format!("f64::{function}({a})");
    let text = match op {
        Float::Neg => format!("-{a}"),
        Float::Abs => call("abs"),
        Float::Sign => format!("lane::sign_f64({a})"),
        Float::Sqrt => call("sqrt"),
        Float::InverseSqrt => format!("1.0 / f64::sqrt({a})"),
        Float::Floor => call("floor"),
        Float::Ceil => call("ceil"),
        Float::Trunc => call("trunc"),
        Float::Round => call("round_ties_even"),
        Float::Fract => format!("{a} - f64::floor({a})"),
        Float::Exp => call("exp"),
        Float::Exp2 => call("exp2"),
        Float::Log => call("ln"),
        Float::Log2 => call("log2"),
        Float::Sin => call("sin"),
        Float::Cos => call("cos"),
        Float::Tan => call("tan"),
        Float::Asin => call("asin"),
        Float::Acos => call("acos"),
        Float::Atan => call("atan"),
        Float::Sinh => call("sinh"),
        Float::Cosh => call("cosh"),
        Float::Tanh => call("tanh"),
        Float::Asinh => call("asinh"),
        Float::Acosh => call("acosh"),
        Float::Atanh => call("atanh"),
        Float::RoundHalf => format!("f64::from(lane::f64_to_half({a}))"),
        Float::Fraction => format!("lane::split_f64({a}).0"),
        Float::Exponent => return (format!("lane::split_f64({a}).1 as u32"), Ty::U32),
    };
    (text, Ty::F64)
}

fn double2(op: Float2, a: String, b: String) -> String {
    match op {
        Float2::Add => format!("{a} + {b}"),
        Float2::Sub => format!("{a} - {b}"),
        Float2::Mul => format!("{a} * {b}"),
        Float2::Div => format!("{a} / {b}"),
        Float2::Rem => format!("{a} % {b}"),
        Float2::Min => format!("lane::min_f64({a}, {b})"),
        Float2::Max => format!("lane::max_f64({a}, {b})"),
        Float2::Pow => format!("f64::powf({a}, {b})"),
        Float2::Atan2 => format!("f64::atan2({a}, {b})"),
        Float2::Ldexp => format!("lane::ldexp_f64({a}, {b} as i32)"),
    }
}

fn int(op: Int, a: String) -> String {
    match op {
        Int::Neg => format!("u32::wrapping_neg({a})"),
        Int::Not => format!("!{a}"),
        Int::Abs => format!("lane::abs({a})"),
        Int::Sign => format!("lane::signum({a})"),
        Int::LeadingZeros => format!("u32::leading_zeros({a})"),
        Int::TrailingZeros => format!("u32::trailing_zeros({a})"),
        Int::OneBits => format!("u32::count_ones({a})"),
        Int::Reverse => format!("u32::reverse_bits({a})"),
        Int::FirstLeadingSigned => format!("lane::first_leading_signed({a})"),
        Int::FirstLeadingUnsigned => format!("lane::first_leading_unsigned({a})"),
        Int::FirstTrailing => format!("lane::first_trailing({a})"),
    }
}

fn wide(op: Int, a: String) -> String {
    match op {
        Int::Neg => format!("u64::wrapping_neg({a})"),
        Int::Not => format!("!{a}"),
        Int::Abs => format!("({a} as i64).wrapping_abs() as u64"),
        Int::Sign => format!("({a} as i64).signum() as u64"),
        Int::LeadingZeros => format!("u64::from(u64::leading_zeros({a}))"),
        Int::TrailingZeros => format!("u64::from(u64::trailing_zeros({a}))"),
        Int::OneBits => format!("u64::from(u64::count_ones({a}))"),
        Int::Reverse => format!("u64::reverse_bits({a})"),
        Int::FirstLeadingSigned => format!("lane::first_leading_i64({a})"),
        Int::FirstLeadingUnsigned => format!("lane::first_leading_u64({a})"),
        Int::FirstTrailing => format!("lane::first_trailing_u64({a})"),
    }
}

fn bitwise(op: Int2) -> &'static str {
    match op {
        Int2::And => "&",
        Int2::Or => "|",
        _ => "^",
    }
}

fn int2(op: Int2, a: &str, b: &str) -> String {
    match op {
        Int2::Add => format!("u32::wrapping_add({a}, {b})"),
        Int2::Sub => format!("u32::wrapping_sub({a}, {b})"),
        Int2::Mul => format!("u32::wrapping_mul({a}, {b})"),
        Int2::DivSigned => format!("lane::div_signed({a} as i32, {b} as i32) as u32"),
        Int2::DivUnsigned => format!("lane::div({a}, {b})"),
        Int2::RemSigned => format!("lane::rem_signed({a} as i32, {b} as i32) as u32"),
        Int2::RemUnsigned => format!("lane::rem({a}, {b})"),
        Int2::And | Int2::Or | Int2::Xor => format!("{a} {} {b}", bitwise(op)),
        Int2::ShiftLeft => format!("u32::wrapping_shl({a}, {b})"),
        Int2::ShiftRightSigned => format!("i32::wrapping_shr({a} as i32, {b}) as u32"),
        Int2::ShiftRightUnsigned => format!("u32::wrapping_shr({a}, {b})"),
        Int2::MinSigned => format!("i32::min({a} as i32, {b} as i32) as u32"),
        Int2::MaxSigned => format!("i32::max({a} as i32, {b} as i32) as u32"),
        Int2::MinUnsigned => format!("u32::min({a}, {b})"),
        Int2::MaxUnsigned => format!("u32::max({a}, {b})"),
    }
}

fn wide_shift(op: Int2, a: &str, b: &str) -> String {
    match op {
        Int2::ShiftLeft => format!("u64::wrapping_shl({a}, {b})"),
        Int2::ShiftRightSigned => format!("i64::wrapping_shr({a} as i64, {b}) as u64"),
        _ => format!("u64::wrapping_shr({a}, {b})"),
    }
}

fn wide2(op: Int2, a: &str, b: &str) -> String {
    match op {
        Int2::Add => format!("u64::wrapping_add({a}, {b})"),
        Int2::Sub => format!("u64::wrapping_sub({a}, {b})"),
        Int2::Mul => format!("u64::wrapping_mul({a}, {b})"),
        Int2::DivSigned => format!("lane::div_i64({a} as i64, {b} as i64) as u64"),
        Int2::DivUnsigned => format!("{a} / {b}.max(1)"),
        Int2::RemSigned => format!("lane::rem_i64({a} as i64, {b} as i64) as u64"),
        Int2::RemUnsigned => format!("{a} % {b}.max(1)"),
        Int2::And | Int2::Or | Int2::Xor => format!("{a} {} {b}", bitwise(op)),
        Int2::ShiftLeft | Int2::ShiftRightSigned | Int2::ShiftRightUnsigned => wide_shift(op, a, b),
        Int2::MinSigned => format!("i64::min({a} as i64, {b} as i64) as u64"),
        Int2::MaxSigned => format!("i64::max({a} as i64, {b} as i64) as u64"),
        Int2::MinUnsigned => format!("u64::min({a}, {b})"),
        Int2::MaxUnsigned => format!("u64::max({a}, {b})"),
    }
}

pub(super) fn int_compare(op: IntCompare, a: &str, b: &str, signed: &str) -> String {
    match op {
        IntCompare::Equal => format!("{a} == {b}"),
        IntCompare::NotEqual => format!("{a} != {b}"),
        IntCompare::LessSigned => format!("({a} as {signed}) < ({b} as {signed})"),
        IntCompare::LessEqualSigned => format!("({a} as {signed}) <= ({b} as {signed})"),
        IntCompare::LessUnsigned => format!("{a} < {b}"),
        IntCompare::LessEqualUnsigned => format!("{a} <= {b}"),
    }
}

fn convert(op: Convert, a: &dyn Fn(Ty) -> String) -> (String, Ty) {
    use Ty::{Bool, F32, F64, U32, U64};
    match op {
        Convert::F32ToI32 => (format!("lane::f32_to_i32({}) as u32", a(F32)), U32),
        Convert::F32ToU32 => (format!("lane::f32_to_u32({})", a(F32)), U32),
        Convert::I32ToF32 => (format!("({} as i32) as f32", a(U32)), F32),
        Convert::U32ToF32 => (format!("{} as f32", a(U32)), F32),
        Convert::F32ToI64 => (format!("lane::f32_to_i64({}) as u64", a(F32)), U64),
        Convert::F32ToU64 => (format!("lane::f32_to_u64({})", a(F32)), U64),
        Convert::I64ToF32 => (format!("({} as i64) as f32", a(U64)), F32),
        Convert::U64ToF32 => (format!("{} as f32", a(U64)), F32),
        Convert::F64ToI32 => (format!("lane::f64_to_i32({}) as u32", a(F64)), U32),
        Convert::F64ToU32 => (format!("lane::f64_to_u32({})", a(F64)), U32),
        Convert::I32ToF64 => (format!("f64::from({} as i32)", a(U32)), F64),
        Convert::U32ToF64 => (format!("f64::from({})", a(U32)), F64),
        Convert::F64ToI64 => (format!("lane::f64_to_i64({}) as u64", a(F64)), U64),
        Convert::F64ToU64 => (format!("lane::f64_to_u64({})", a(F64)), U64),
        Convert::I64ToF64 => (format!("({} as i64) as f64", a(U64)), F64),
        Convert::U64ToF64 => (format!("{} as f64", a(U64)), F64),
        Convert::F32ToF64 => (format!("f64::from({})", a(F32)), F64),
        Convert::F64ToF32 => (format!("{} as f32", a(F64)), F32),
        Convert::F64ToHalf => (format!("lane::f64_to_half({})", a(F64)), F32),
        Convert::I32ToI64 => (format!("i64::from({} as i32) as u64", a(U32)), U64),
        Convert::U32ToU64 => (format!("u64::from({})", a(U32)), U64),
        Convert::I64ToI32 => (format!("{} as u32", a(U64)), U32),
        Convert::HighWord => (format!("({} >> 32) as u32", a(U64)), U32),
        Convert::SignExtend16 => (format!("i32::from({} as i16) as u32", a(U32)), U32),
        Convert::ZeroExtend16 => (format!("{} & 0xffff", a(U32)), U32),
        Convert::F32ToHalfBits => (format!("u32::from(math::f32_to_f16({}))", a(F32)), U32),
        Convert::HalfBitsToF32 => (format!("math::f16_to_f32({} as u16)", a(U32)), F32),
        Convert::WideIsNonZero => (format!("{} != 0", a(U64)), Bool),
        Convert::Unorm8(byte) => (format!("lane::unorm8::<I, {}>({})", byte & 3, a(U32)), F32),
        Convert::ToUnorm8(byte) => (format!("lane::to_unorm8({}, {byte})", a(F32)), U32),
        Convert::DoubleIsNonZero => (format!("{} != 0.0", a(F64)), Bool),
    }
}
