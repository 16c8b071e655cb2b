//! Chains of 64-bit lanes: float64, and words of 64 bits in the same registers. `functions` has the 32-bit forms of each step. A chain with a step that
//! is missing here (`Lane::has`), such as a power, runs as a kernel.

use super::quotients::{self, Signed, Unsigned};
use super::{BLOCK, Lane, Plan, SHORT, narrow, pairs, precise};
use crate::backend::native::{One, Step, Two};
use crate::forms::forms;
use crate::spmd::math::Isa;

impl Lane for f64 {
    const BLOCK: usize = BLOCK / 2;

    fn has(step: &Step) -> bool {
        match *step {
            Step::One(op, _) => function_of_one(op).is_some(),
            Step::Two(op, ..) => !matches!(op, Two::Pow | Two::Elu),
            Step::Row => false,
            _ => true,
        }
    }

    /// The low half of a word.
    fn constant(value: f32) -> Self {
        Self::from_bits(value.to_bits().into())
    }

    fn wide_constant(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn of_byte(byte: u8) -> Self {
        byte.into()
    }

    fn of_bytes(bytes: &[u8], to: &mut [Self]) {
        widened(bytes, to);
    }

    fn of_words(words: &[u32], to: &mut [Self]) {
        doubled(words, to);
    }

    fn narrowed(lanes: &[Self], to: &mut [u8]) {
        narrowed(lanes, to);
    }

    fn halved(lanes: &[Self], to: &mut [u32]) {
        halved(lanes, to);
    }

    fn fill(self, to: &mut [Self]) {
        // A loop that ends after a few is quicker than a call.
        if to.len() < SHORT { to.fill(self) } else { filled(self, to) }
    }

    unsafe fn every_second(from: *const Self, to: &mut [Self]) {
        // SAFETY: they lie there (this function's contract).
        unsafe { pairs::every_second_double(from, to) }
    }

    fn interleaved(parts: [&[Self]; 2], to: &mut [Self]) {
        pairs::interleaved_doubles(parts, to);
    }

    fn complex_products(factors: [&[Self]; 2], to: &mut [Self]) {
        pairs::products_of_doubles(factors, to);
    }

    fn sums(terms: [&[Self]; 2], to: &mut [Self]) {
        pairs::sums_of_doubles(terms, to);
    }

    fn differences(terms: [&[Self]; 2], to: &mut [Self]) {
        pairs::differences_of_doubles(terms, to);
    }

    unsafe fn steps(plan: &Plan<'_>, at: &[*mut Self], count: usize) {
        // SAFETY: the steps' `count` lanes lie where `at` says, apart from what they read (this function's contract).
        unsafe { steps(plan.steps, at, count) }
    }

    fn has_narrow(step: &Step, bytes: usize) -> bool {
        narrow::has_wide(step, bytes)
    }

    unsafe fn narrow_step(step: &Step, at: &[*mut Self], count: usize, to: *mut u8) {
        // SAFETY: the lanes lie there, and there is room for the numbers (this function's contract).
        unsafe { narrow::of_doubles(step, at, count, to) }
    }
}

forms! {
    /// Runs steps for `count` elements: `at` says where each step's are.
    ///
    /// # Safety
    /// `count` lanes of each step lie there, and what is written overlaps nothing that the same step reads.
    unsafe fn steps(steps: &[Step], at: &[*mut f64], count: usize) = steps_by
}
forms! {
    fn filled(value: f64, to: &mut [f64]) = filled_by
}
forms! {
    fn widened(x: &[u8], to: &mut [f64]) = widened_by
}
forms! {
    /// Words in lanes of twice their bits.
    fn doubled(words: &[u32], to: &mut [f64]) = doubled_by
}
forms! {
    /// Whole numbers of up to 24 bits modulo 256.
    fn narrowed(x: &[f64], to: &mut [u8]) = narrowed_by
}
forms! {
    /// The low halves of words.
    fn halved(x: &[f64], to: &mut [u32]) = halved_by
}

/// # Safety
/// As [`steps`].
#[inline(always)]
unsafe fn steps_by<I: Isa>(steps: &[Step], at: &[*mut f64], count: usize) {
    for (step, &to) in steps.iter().zip(at) {
        if step.reads().next().is_none() {
            continue;
        }
        // SAFETY: the steps' `count` lanes lie where `at` says, apart from what they read (this function's contract).
        let (read, to) = unsafe {
            let read = |number: u16| std::slice::from_raw_parts(at[usize::from(number)].cast_const(), count);
            (read, std::slice::from_raw_parts_mut(to, count))
        };
        match *step {
            Step::Input(_)
            | Step::Rolled(..)
            | Step::Place(_)
            | Step::Constant(_)
            | Step::WideConstant(_)
            | Step::Row => {}
            Step::One(op, a) => one::<I>(op, read(a), to),
            Step::Two(op, a, b) => two(op, [read(a), read(b)], to),
            Step::Choose(a, b, c) => choose(read(a), [read(b), read(c)], to),
        }
    }
}

#[inline(always)]
fn filled_by<I>(value: f64, to: &mut [f64]) {
    to.fill(value);
}

#[inline(always)]
fn widened_by<I>(x: &[u8], to: &mut [f64]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = f64::from(x);
    }
}

#[inline(always)]
fn doubled_by<I>(words: &[u32], to: &mut [f64]) {
    for (to, &word) in to.iter_mut().zip(words) {
        *to = f64::from_bits(word.into());
    }
}

#[inline(always)]
fn narrowed_by<I>(x: &[f64], to: &mut [u8]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = whole(x) as u8;
    }
}

#[inline(always)]
fn halved_by<I>(x: &[f64], to: &mut [u32]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = x.to_bits() as u32;
    }
}

#[inline(always)]
fn each(x: &[f64], to: &mut [f64], of: impl Fn(f64) -> f64) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = of(x);
    }
}

#[inline(always)]
fn both([a, b]: [&[f64]; 2], to: &mut [f64], of: impl Fn(f64, f64) -> f64) {
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = of(a, b);
    }
}

#[inline(always)]
fn choose(condition: &[f64], [a, b]: [&[f64]; 2], to: &mut [f64]) {
    // With masks: the compiler turned `if` into a selection of addresses and loads of single elements.
    for (((to, &condition), &a), &b) in to.iter_mut().zip(condition).zip(a).zip(b) {
        let takes_b = 0_u64.wrapping_sub(u64::from(condition == 0.0));
        *to = f64::from_bits(a.to_bits() & !takes_b | b.to_bits() & takes_b);
    }
}

/// Calls a macro with the functions of one element, so that they are listed once.
macro_rules! functions_of_one {
    ($($op:ident => |$x:ident| $of:expr;)*) => {
        #[inline(always)]
        fn one<I: Isa>(op: One, x: &[f64], to: &mut [f64]) {
            match op {
                One::Sin => waves::<I>(x, to, 0, f64::sin),
                One::Cos => waves::<I>(x, to, 1, f64::cos),
                $(One::$op => each(x, to, |$x| $of),)*
                // None is served.
                _ => to.copy_from_slice(x),
            }
        }

        fn function_of_one(op: One) -> Option<()> {
            match op {
                One::Sin | One::Cos => Some(()),
                $(One::$op => Some(()),)*
                _ => None,
            }
        }
    };
}

functions_of_one! {
    Neg => |x| -x;
    Abs => |x| x.abs();
    Sign => |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
    Floor => |x| x.floor();
    Ceil => |x| x.ceil();
    Round => |x| x.round_ties_even();
    Trunc => |x| x.trunc();
    Square => |x| x * x;
    Reciprocal => |x| 1.0 / x;
    Sqrt => |x| x.sqrt();
    Rsqrt => |x| 1.0 / x.sqrt();
    Exp => |x| precise::exp::<I>(x);
    Expm1 => |x| precise::expm1::<I>(x);
    Log => |x| precise::log::<I>(x);
    Log1p => |x| precise::log1p::<I>(x);
    Tanh => |x| precise::tanh::<I>(x);
    Sigmoid => |x| precise::sigmoid::<I>(x);
    Silu => |x| x * precise::sigmoid::<I>(x);
    Relu => |x| if x < 0.0 { 0.0 } else { x };
    Relu6 => |x| x.clamp(0.0, 6.0);
    IsNan => |x| truth(x.is_nan());
    Not => |x| truth(x == 0.0);
    Byte => |x| x - 256.0 * (x * (1.0 / 256.0)).floor();
    SignedByte => |x| x - 256.0 * ((x + 128.0) * (1.0 / 256.0)).floor();
    WordNeg => |x| word(signed(x).wrapping_neg());
    WordAbs => |x| word(signed(x).wrapping_abs());
    WordSign => |x| word(signed(x).signum());
    WordNot => |x| word(!signed(x));
    ToWord => |x| word(whole(x).into());
    SaturatedToSigned => |x| word(x as i64);
    SaturatedToUnsigned => |x| f64::from_bits(x as u64);
    SaturatedToByte => |x| below(if x > 0.0 { x } else { 0.0 }, 255.0).trunc();
    SaturatedToSignedByte => |x| {
        let x = if x.is_nan() { 0.0 } else { x };
        below(if x > -128.0 { x } else { -128.0 }, 127.0).trunc()
    };
    OfSigned => |x| signed(x) as f64;
    OfUnsigned => |x| x.to_bits() as f64;
    LowByte => |x| f64::from(x.to_bits() as u8);
    LowWord => |x| f64::from_bits(x.to_bits() & 0xffff_ffff);
    OfLowWord => |x| word((signed(x) << 32) >> 32);
    OfSingle => |x| f64::from(f32::from_bits(x.to_bits() as u32));
    ToSingle => |x| f64::from_bits((x as f32).to_bits().into());
    SignedToSingle => |x| f64::from_bits((signed(x) as f32).to_bits().into());
    UnsignedToSingle => |x| f64::from_bits((x.to_bits() as f32).to_bits().into());
}

/// Sines of numbers, a number of right angles later. Those of large numbers are repaired by the library's own function, which knows more digits of π.
#[inline(always)]
fn waves<I: Isa>(x: &[f64], to: &mut [f64], quarters: u64, exact: fn(f64) -> f64) {
    let is_far = |x: f64| x.abs() > precise::FAR;
    each(x, to, |x| precise::sine::<I>(x, quarters));
    if x.iter().fold(0, |any, &x| any | u64::from(is_far(x))) != 0 {
        for (to, &x) in to.iter_mut().zip(x).filter(|(_, x)| is_far(**x)) {
            *to = exact(x);
        }
    }
}

#[inline(always)]
fn two(op: Two, xs: [&[f64]; 2], to: &mut [f64]) {
    match op {
        Two::Add => both(xs, to, |a, b| a + b),
        Two::Sub => both(xs, to, |a, b| a - b),
        Two::Mul => both(xs, to, |a, b| a * b),
        Two::Div => both(xs, to, |a, b| a / b),
        Two::Min => both(xs, to, |a, b| if a.is_nan() || !(b.is_nan() || b < a) { a } else { b }),
        Two::Max => both(xs, to, |a, b| if a.is_nan() || !(b.is_nan() || b > a) { a } else { b }),
        Two::LeakyRelu => both(xs, to, |x, slope| if x < 0.0 { x * slope } else { x }),
        Two::Hypot => both(xs, to, hypot),
        Two::And => both(xs, to, |a, b| truth((a != 0.0) & (b != 0.0))),
        Two::Or => both(xs, to, |a, b| truth((a != 0.0) | (b != 0.0))),
        Two::Eq => both(xs, to, |a, b| truth(a == b)),
        Two::Ne => both(xs, to, |a, b| truth(a != b)),
        Two::Lt => both(xs, to, |a, b| truth(a < b)),
        Two::Le => both(xs, to, |a, b| truth(a <= b)),
        Two::Gt => both(xs, to, |a, b| truth(a > b)),
        Two::Ge => both(xs, to, |a, b| truth(a >= b)),
        Two::WordAdd => both(xs, to, |a, b| word(signed(a).wrapping_add(signed(b)))),
        Two::WordSub => both(xs, to, |a, b| word(signed(a).wrapping_sub(signed(b)))),
        Two::WordMul => both(xs, to, |a, b| word(signed(a).wrapping_mul(signed(b)))),
        Two::WordAnd => both(xs, to, |a, b| word(signed(a) & signed(b))),
        Two::WordOr => both(xs, to, |a, b| word(signed(a) | signed(b))),
        Two::WordXor => both(xs, to, |a, b| word(signed(a) ^ signed(b))),
        Two::SignedMin => both(xs, to, |a, b| word(signed(a).min(signed(b)))),
        Two::SignedMax => both(xs, to, |a, b| word(signed(a).max(signed(b)))),
        Two::UnsignedMin => both(xs, to, |a, b| f64::from_bits(a.to_bits().min(b.to_bits()))),
        Two::UnsignedMax => both(xs, to, |a, b| f64::from_bits(a.to_bits().max(b.to_bits()))),
        Two::SignedQuotient => quotients::long(Signed::Quotient, xs, to),
        Two::SignedRemainder => quotients::long(Signed::Remainder, xs, to),
        Two::SignedRest => quotients::long(Signed::Rest, xs, to),
        Two::UnsignedQuotient => quotients::unsigned_long(Unsigned::Quotient, xs, to),
        Two::UnsignedRemainder => quotients::unsigned_long(Unsigned::Remainder, xs, to),
        Two::WordEq => both(xs, to, |a, b| truth(signed(a) == signed(b))),
        Two::WordNe => both(xs, to, |a, b| truth(signed(a) != signed(b))),
        Two::SignedLt => both(xs, to, |a, b| truth(signed(a) < signed(b))),
        Two::SignedLe => both(xs, to, |a, b| truth(signed(a) <= signed(b))),
        Two::UnsignedLt => both(xs, to, |a, b| truth(a.to_bits() < b.to_bits())),
        Two::UnsignedLe => both(xs, to, |a, b| truth(a.to_bits() <= b.to_bits())),
        // None is served.
        Two::Pow | Two::Elu => {}
    }
}

/// A word as an i64.
#[inline(always)]
fn signed(word: f64) -> i64 {
    word.to_bits().cast_signed()
}

#[inline(always)]
fn word(value: i64) -> f64 {
    f64::from_bits(value.cast_unsigned())
}

#[inline(always)]
fn truth(condition: bool) -> f64 {
    if condition { 1.0 } else { 0.0 }
}

#[inline(always)]
fn hypot(x: f64, y: f64) -> f64 {
    let (larger, smaller) = if x.abs() > y.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    let scale = if larger < f64::MIN_POSITIVE { 18_014_398_509_481_984.0 } else { 1.0 };
    let (larger, smaller) = (larger * scale, smaller * scale);
    let quotient = smaller / if larger > f64::MIN_POSITIVE { larger } else { f64::MIN_POSITIVE };
    let length = larger * (1.0 + quotient * quotient).sqrt() / scale;
    let length = if x.is_nan() | y.is_nan() { f64::NAN } else { length };
    if x.is_infinite() | y.is_infinite() { f64::INFINITY } else { length }
}

/// The smaller of a number and a limit.
#[inline(always)]
fn below(x: f64, limit: f64) -> f64 {
    if x < limit { x } else { limit }
}

/// A whole number of up to 24 bits, which `as` would saturate lane by lane.
#[inline(always)]
fn whole(x: f64) -> i32 {
    const MOST: f64 = 16_777_216.0;
    // SAFETY: whatever it was, it now lies between -2^24 and 2^24.
    unsafe { below(if x > -MOST { x } else { -MOST }, MOST).to_int_unchecked() }
}
