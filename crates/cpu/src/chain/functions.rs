//! The functions of steps, over a block of lanes, and those of whole rows. Formulas are those of `shaders/elementwise/functions.wgsl`.
//!
//! Loops are plain ones over slices: functions between them and the forms' instruction sets, such as `array::map`, are not always inlined, and then
//! do not use the sets.

// A coefficient is written with the digits that name its f32; some start like a well-known constant.
#![allow(clippy::excessive_precision, clippy::approx_constant, reason = "they are those of the WGSL")]

use super::quotients::{self, Signed, Unsigned};
use crate::backend::native::{Combination, Number, One, Step, Two};
use crate::forms::forms;
use crate::spmd::math::{self, Isa};

/// Sums that are carried side by side.
const LANES: usize = 64;

forms! {
    /// Runs steps for `count` elements: `at` says where each step's are.
    ///
    /// # Safety
    /// `count` floats of each step lie there, and what is written overlaps nothing that the same step reads.
    pub(super) unsafe fn steps(steps: &[Step], at: &[*mut f32], count: usize) = steps_by
}
forms! {
    /// The same number everywhere.
    pub(super) fn filled(value: f32, to: &mut [f32]) = filled_by
}
forms! {
    /// Bytes as numbers.
    pub(super) fn widened(x: &[u8], to: &mut [f32]) = widened_by
}
forms! {
    /// Whole numbers of up to 24 bits modulo 256.
    pub(super) fn narrowed(x: &[f32], to: &mut [u8]) = narrowed_by
}
forms! {
    /// The greatest element, NaN if there is one.
    pub(crate) fn greatest(row: &[f32]) -> f32 = greatest_by
}
forms! {
    /// The least element, NaN if there is one.
    pub(crate) fn least(row: &[f32]) -> f32 = least_by
}
forms! {
    /// Adds rows to the totals of their columns.
    pub(crate) fn add_lines(lines: &[&[f32]], totals: &mut [f64]) = add_lines_by
}
forms! {
    /// The greatest elements of columns, NaN if there is one.
    pub(crate) fn greatest_of_lines(lines: &[&[f32]], totals: &mut [f64]) = greatest_of_lines_by
}
forms! {
    /// The least elements of columns, NaN if there is one.
    pub(crate) fn least_of_lines(lines: &[&[f32]], totals: &mut [f64]) = least_of_lines_by
}
forms! {
    /// Combines each `count` consecutive elements.
    pub(crate) fn fold_few(by: Combination, number: Number, elements: &[f32], count: usize, to: &mut [f32]) = fold_few_by
}
forms! {
    /// Combines words: few enough that float64 holds all sums.
    pub(crate) fn fold_words(by: Combination, number: Number, words: &[f32]) -> f64 = fold_words_by
}
forms! {
    /// Combines contiguous short lines into totals of their columns.
    pub(crate) fn fold_lines(by: Combination, number: Number, elements: &[f32], totals: &mut [f64]) = fold_lines_by
}
forms! {
    /// e^(x - shift) of each element, and their sum.
    pub(super) fn powers(x: &[f32], to: &mut [f32], shift: f32) -> f32 = powers_by
}
forms! {
    /// The sum of e^(x - shift).
    pub(super) fn sum_of_powers(row: &[f32], shift: f32) -> f32 = sum_of_powers_by
}
forms! {
    pub(super) fn logarithm(x: f32) -> f32 = logarithm_by
}
forms! {
    /// (x - shift) factor of each element.
    pub(super) fn scaled(x: &[f32], to: &mut [f32], shift: f32, factor: f32) = scaled_by
}
forms! {
    /// The same, times the elements of another row.
    pub(super) fn scaled_by_row(x: &[f32], to: &mut [f32], shift: f32, factor: f32, factors: &[f32]) = scaled_by_row_by
}
forms! {
    /// The same, and those of a third added.
    pub(super) fn scaled_and_moved(x: &[f32], to: &mut [f32], shift: f32, factor: f32, factors: &[f32], terms: &[f32]) =
        scaled_and_moved_by
}
forms! {
    pub(super) fn multiply(row: &mut [f32], factor: f32) = multiply_by
}
forms! {
    pub(crate) fn sum(row: &[f32]) -> f64 = sum_by
}
forms! {
    /// The sum of (x - shift)².
    pub(super) fn squares(row: &[f32], shift: f32) -> f64 = squares_by
}

/// Elements whose sum is taken in float32.
const PART: usize = 512;

#[inline(always)]
fn add_up(row: &[f32], of: impl Fn(f32) -> f32) -> f64 {
    let mut all = 0.0;
    for part in row.chunks(PART) {
        let mut sums = [0.0_f32; LANES];
        let (lines, rest) = part.as_chunks::<LANES>();
        for line in lines {
            for (sum, &value) in sums.iter_mut().zip(line) {
                *sum += of(value);
            }
        }
        for (sum, &value) in sums.iter_mut().zip(rest) {
            *sum += of(value);
        }
        all += f64::from(total(&sums));
    }
    all
}

/// Adds the lanes by halves of known widths, in registers.
#[inline(always)]
fn total(sums: &[f32; LANES]) -> f32 {
    let sums: [f32; 32] = halved(sums);
    let sums: [f32; 16] = halved(&sums);
    let sums: [f32; 8] = halved(&sums);
    let [a, b, c, d] = halved(&sums);
    (a + c) + (b + d)
}

#[inline(always)]
fn halved<const N: usize, const HALF: usize>(sums: &[f32; N]) -> [f32; HALF] {
    let mut half = [0.0; HALF];
    for (place, half) in half.iter_mut().enumerate() {
        *half = sums[place] + sums[place + HALF];
    }
    half
}

#[inline(always)]
fn sum_by<I: Isa>(row: &[f32]) -> f64 {
    add_up(row, |x| x)
}

#[inline(always)]
fn squares_by<I: Isa>(row: &[f32], shift: f32) -> f64 {
    add_up(row, |x| (x - shift) * (x - shift))
}

#[inline(always)]
fn sum_of_powers_by<I: Isa>(row: &[f32], shift: f32) -> f32 {
    add_up(row, |x| math::exp::<I>(x - shift)) as f32
}

#[inline(always)]
fn powers_by<I: Isa>(x: &[f32], to: &mut [f32], shift: f32) -> f32 {
    each(x, to, |x| math::exp::<I>(x - shift));
    add_up(to, |x| x) as f32
}

#[inline(always)]
fn logarithm_by<I: Isa>(x: f32) -> f32 {
    math::log::<I>(x)
}

#[inline(always)]
fn scaled_by<I: Isa>(x: &[f32], to: &mut [f32], shift: f32, factor: f32) {
    each(x, to, |x| (x - shift) * factor);
}

#[inline(always)]
fn scaled_by_row_by<I: Isa>(x: &[f32], to: &mut [f32], shift: f32, factor: f32, factors: &[f32]) {
    for ((to, &x), &by) in to.iter_mut().zip(x).zip(factors) {
        *to = (x - shift) * factor * by;
    }
}

#[inline(always)]
fn scaled_and_moved_by<I: Isa>(x: &[f32], to: &mut [f32], shift: f32, factor: f32, factors: &[f32], terms: &[f32]) {
    for (((to, &x), &by), &term) in to.iter_mut().zip(x).zip(factors).zip(terms) {
        *to = (x - shift) * factor * by + term;
    }
}

#[inline(always)]
fn multiply_by<I: Isa>(row: &mut [f32], factor: f32) {
    for x in row {
        *x *= factor;
    }
}

#[inline(always)]
fn greatest_by<I: Isa>(row: &[f32]) -> f32 {
    extreme(row, f32::NEG_INFINITY, |value, most| value > most)
}

#[inline(always)]
fn least_by<I: Isa>(row: &[f32]) -> f32 {
    extreme(row, f32::INFINITY, |value, least| value < least)
}

#[inline(always)]
fn extreme(row: &[f32], start: f32, better: impl Fn(f32, f32) -> bool) -> f32 {
    let (lines, rest) = row.as_chunks::<LANES>();
    let mut best = [start; LANES];
    let mut nan = [0_u32; LANES];
    for line in lines {
        for ((best, nan), &value) in best.iter_mut().zip(&mut nan).zip(line) {
            *best = if better(value, *best) { value } else { *best };
            *nan |= u32::from(value.is_nan());
        }
    }
    for ((best, nan), &value) in best.iter_mut().zip(&mut nan).zip(rest) {
        *best = if better(value, *best) { value } else { *best };
        *nan |= u32::from(value.is_nan());
    }
    if nan.iter().fold(0, |any, nan| any | nan) != 0 {
        return f32::NAN;
    }
    best.into_iter().fold(start, |best, value| if better(value, best) { value } else { best })
}

#[inline(always)]
fn add_lines_by<I: Isa>(lines: &[&[f32]], totals: &mut [f64]) {
    let Ok([a, b, c, d, e, f, g, h]) = <&[&[f32]; 8]>::try_from(lines) else {
        for line in lines {
            for (total, &value) in totals.iter_mut().zip(*line) {
                *total += f64::from(value);
            }
        }
        return;
    };
    let count = totals.len();
    // As long as the totals, so the loop has no bounds check.
    let [a, b, c, d, e, f, g, h] =
        [&a[..count], &b[..count], &c[..count], &d[..count], &e[..count], &f[..count], &g[..count], &h[..count]];
    for (at, total) in totals.iter_mut().enumerate() {
        let sum = ((a[at] + b[at]) + (c[at] + d[at])) + ((e[at] + f[at]) + (g[at] + h[at]));
        *total += f64::from(sum);
    }
}

#[inline(always)]
fn fold_few_by<I: Isa>(by: Combination, number: Number, elements: &[f32], count: usize, to: &mut [f32]) {
    let unsigned = |a: f32, b: f32, greater: bool| if (a.to_bits() > b.to_bits()) == greater { a } else { b };
    match (by, number) {
        (Combination::Sum | Combination::Product, Number::F32) => few(elements, count, to, |a, b| a + b),
        (Combination::Greatest, Number::F32) => {
            few(elements, count, to, |a, b| if a.is_nan() || a > b { a } else { b })
        }
        (Combination::Least, Number::F32) => few(elements, count, to, |a, b| if a.is_nan() || a < b { a } else { b }),
        (Combination::Sum | Combination::Product, _) => {
            few(elements, count, to, |a, b| word(signed(a).wrapping_add(signed(b))));
        }
        (Combination::Greatest, Number::I32) => few(elements, count, to, |a, b| word(signed(a).max(signed(b)))),
        (Combination::Least, Number::I32) => few(elements, count, to, |a, b| word(signed(a).min(signed(b)))),
        (Combination::Greatest, _) => few(elements, count, to, |a, b| unsigned(a, b, true)),
        (Combination::Least, _) => few(elements, count, to, |a, b| unsigned(a, b, false)),
    }
}

#[inline(always)]
fn fold_words_by<I: Isa>(by: Combination, number: Number, words: &[f32]) -> f64 {
    let unsigned = |word: &f32| word.to_bits();
    let all = words.iter();
    match (by, number) {
        (Combination::Sum | Combination::Product, Number::U32) => {
            all.map(|x| u64::from(x.to_bits())).sum::<u64>() as f64
        }
        (Combination::Sum | Combination::Product, _) => all.map(|&x| i64::from(signed(x))).sum::<i64>() as f64,
        (Combination::Greatest, Number::U32) => all.map(unsigned).fold(0, u32::max).into(),
        (Combination::Least, Number::U32) => all.map(unsigned).fold(u32::MAX, u32::min).into(),
        (Combination::Greatest, _) => all.map(|&x| signed(x)).fold(i32::MIN, i32::max).into(),
        (Combination::Least, _) => all.map(|&x| signed(x)).fold(i32::MAX, i32::min).into(),
    }
}

#[inline(always)]
fn few(elements: &[f32], count: usize, to: &mut [f32], of: impl Fn(f32, f32) -> f32) {
    match count {
        2 => few_of::<2>(elements, to, of),
        3 => few_of::<3>(elements, to, of),
        4 => few_of::<4>(elements, to, of),
        8 => few_of::<8>(elements, to, of),
        _ => {
            for (to, all) in to.iter_mut().zip(elements.chunks_exact(count)) {
                let [first, rest @ ..] = all else { continue };
                let mut total = *first;
                for &value in rest {
                    total = of(total, value);
                }
                *to = total;
            }
        }
    }
}

#[inline(always)]
fn few_of<const N: usize>(elements: &[f32], to: &mut [f32], of: impl Fn(f32, f32) -> f32) {
    for (to, all) in to.iter_mut().zip(elements.as_chunks::<N>().0) {
        let mut total = all[0];
        for &value in &all[1..] {
            total = of(total, value);
        }
        *to = total;
    }
}

/// Lines that are added up in float32, side by side.
const BESIDE: usize = 16;

#[inline(always)]
fn fold_lines_by<I: Isa>(by: Combination, number: Number, elements: &[f32], totals: &mut [f64]) {
    let length = totals.len();
    if number != Number::F32 {
        let value = |x: f32| if number == Number::I32 { signed(x).into() } else { f64::from(x.to_bits()) };
        for line in elements.chunks_exact(length) {
            for (total, &x) in totals.iter_mut().zip(line) {
                let x = value(x);
                *total = match by {
                    Combination::Sum | Combination::Product => *total + x,
                    Combination::Greatest => total.max(x),
                    Combination::Least => total.min(x),
                };
            }
        }
        return;
    }
    if matches!(by, Combination::Sum | Combination::Product) {
        let mut sums = [0.0_f32; BESIDE * LANES];
        let Some(sums) = sums.get_mut(..BESIDE * length) else { return };
        for lines in elements.chunks(BESIDE * length) {
            for (sum, &value) in sums.iter_mut().zip(lines) {
                *sum += value;
            }
        }
        for sums in sums.chunks_exact(length) {
            for (total, &sum) in totals.iter_mut().zip(sums) {
                *total += f64::from(sum);
            }
        }
        return;
    }
    for line in elements.chunks_exact(length) {
        if by == Combination::Greatest {
            greatest_of_lines_by::<I>(&[line], totals);
        } else {
            least_of_lines_by::<I>(&[line], totals);
        }
    }
}

#[inline(always)]
fn greatest_of_lines_by<I: Isa>(lines: &[&[f32]], totals: &mut [f64]) {
    for line in lines {
        for (total, &value) in totals.iter_mut().zip(*line) {
            let value = f64::from(value);
            *total = if total.is_nan() | (*total > value) { *total } else { value };
        }
    }
}

#[inline(always)]
fn least_of_lines_by<I: Isa>(lines: &[&[f32]], totals: &mut [f64]) {
    for line in lines {
        for (total, &value) in totals.iter_mut().zip(*line) {
            let value = f64::from(value);
            *total = if total.is_nan() | (*total < value) { *total } else { value };
        }
    }
}

/// # Safety
/// As [`steps`].
#[inline(always)]
unsafe fn steps_by<I: Isa>(steps: &[Step], at: &[*mut f32], count: usize) {
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
            Step::Two(op, a, b) => two::<I>(op, [read(a), read(b)], to),
            Step::Choose(a, b, c) => choose(read(a), [read(b), read(c)], to),
        }
    }
}

#[inline(always)]
fn filled_by<I: Isa>(value: f32, to: &mut [f32]) {
    to.fill(value);
}

#[inline(always)]
fn widened_by<I: Isa>(x: &[u8], to: &mut [f32]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = f32::from(x);
    }
}

#[inline(always)]
fn narrowed_by<I: Isa>(x: &[f32], to: &mut [u8]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = whole(x) as u8;
    }
}

#[inline(always)]
fn each(x: &[f32], to: &mut [f32], of: impl Fn(f32) -> f32) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = of(x);
    }
}

#[inline(always)]
fn pairs([a, b]: [&[f32]; 2], to: &mut [f32], of: impl Fn(f32, f32) -> f32) {
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = of(a, b);
    }
}

#[inline(always)]
fn choose(condition: &[f32], [a, b]: [&[f32]; 2], to: &mut [f32]) {
    // With masks: the compiler turned `if` into a selection of addresses and loads of single elements.
    for (((to, &condition), &a), &b) in to.iter_mut().zip(condition).zip(a).zip(b) {
        let takes_b = 0_u32.wrapping_sub(u32::from(condition == 0.0));
        *to = f32::from_bits(a.to_bits() & !takes_b | b.to_bits() & takes_b);
    }
}

#[inline(always)]
fn one<I: Isa>(op: One, x: &[f32], to: &mut [f32]) {
    match op {
        One::Neg => each(x, to, |x| -x),
        One::Abs => each(x, to, f32::abs),
        One::Sign => each(x, to, |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }),
        One::Floor => each(x, to, math::floor::<I>),
        One::Ceil => each(x, to, math::ceil::<I>),
        One::Round => each(x, to, math::round_even::<I>),
        One::Trunc => each(x, to, math::trunc::<I>),
        One::Square => each(x, to, |x| x * x),
        One::Reciprocal => each(x, to, |x| 1.0 / x),
        One::Sqrt => each(x, to, math::sqrt::<I>),
        One::Rsqrt => each(x, to, |x| 1.0 / math::sqrt::<I>(x)),
        One::Exp => each(x, to, math::exp::<I>),
        One::Expm1 => each(x, to, expm1::<I>),
        One::Log => each(x, to, math::log::<I>),
        One::Log1p => each(x, to, log1p::<I>),
        // SAFETY: both are of one length.
        One::Sin => unsafe { math::sin_lanes::<I>(to.as_mut_ptr(), x.as_ptr(), x.len()) },
        // SAFETY: both are of one length.
        One::Cos => unsafe { math::cos_lanes::<I>(to.as_mut_ptr(), x.as_ptr(), x.len()) },
        One::Tanh => each(x, to, math::tanh::<I>),
        One::Relu => each(x, to, |x| if x < 0.0 { 0.0 } else { x }),
        One::Relu6 => each(x, to, |x| clamp(x, 0.0, 6.0)),
        One::Sigmoid => each(x, to, sigmoid::<I>),
        One::Silu => each(x, to, |x| x * sigmoid::<I>(x)),
        One::Gelu => each(x, to, gelu),
        One::GeluTanh => each(x, to, |x| 0.5 * x * (1.0 + math::tanh::<I>(0.797_884_56 * (x + 0.044_715 * x * x * x)))),
        One::Erf => each(x, to, erf::<I>),
        One::Selu => each(x, to, |x| 1.050_701 * elu::<I>(x, 1.673_263_2)),
        One::Softplus => each(x, to, softplus::<I>),
        One::LogSigmoid => each(x, to, |x| -softplus::<I>(-x)),
        One::HardSigmoid => each(x, to, hard_sigmoid),
        One::HardSwish => each(x, to, |x| x * hard_sigmoid(x)),
        One::IsNan => each(x, to, |x| truth(x.is_nan())),
        One::Not => each(x, to, |x| truth(x == 0.0)),
        One::Byte => each(x, to, |x| x - 256.0 * math::floor::<I>(x * (1.0 / 256.0))),
        One::SignedByte => each(x, to, |x| x - 256.0 * math::floor::<I>((x + 128.0) * (1.0 / 256.0))),
        One::WordNeg => each(x, to, |x| word(signed(x).wrapping_neg())),
        One::WordAbs => each(x, to, |x| word(signed(x).wrapping_abs())),
        One::WordSign => each(x, to, |x| word(signed(x).signum())),
        One::WordNot => each(x, to, |x| word(!signed(x))),
        One::ToWord => each(x, to, |x| word(whole(x))),
        One::SaturatedToSigned => each(x, to, |x| word(saturated(x))),
        One::SaturatedToUnsigned => each(x, to, |x| f32::from_bits(saturated_unsigned(x))),
        // Comparisons take NaN to 0 where they keep only what is greater than that.
        One::SaturatedToByte => each(x, to, |x| math::trunc::<I>(below(if x > 0.0 { x } else { 0.0 }, 255.0))),
        One::SaturatedToSignedByte => each(x, to, |x| {
            let x = if x.is_nan() { 0.0 } else { x };
            math::trunc::<I>(below(if x > -128.0 { x } else { -128.0 }, 127.0))
        }),
        One::OfSigned => each(x, to, |x| signed(x) as f32),
        One::OfUnsigned => each(x, to, |x| x.to_bits() as f32),
        One::LowByte => each(x, to, |x| (x.to_bits() & 255) as f32),
        // Wide chains alone have halves of words: none is served here.
        One::LowWord | One::OfLowWord | One::OfSingle | One::ToSingle | One::SignedToSingle | One::UnsignedToSingle => {
            to.copy_from_slice(x)
        }
    }
}

#[inline(always)]
fn two<I: Isa>(op: Two, xs: [&[f32]; 2], to: &mut [f32]) {
    match op {
        Two::Add => pairs(xs, to, |a, b| a + b),
        Two::Sub => pairs(xs, to, |a, b| a - b),
        Two::Mul => pairs(xs, to, |a, b| a * b),
        Two::Div => pairs(xs, to, |a, b| a / b),
        Two::Pow => pairs(xs, to, power::<I>),
        Two::Min => pairs(xs, to, |a, b| {
            if a.is_nan() {
                a
            } else if b.is_nan() || b < a {
                b
            } else {
                a
            }
        }),
        Two::Max => pairs(xs, to, |a, b| {
            if a.is_nan() {
                a
            } else if b.is_nan() || b > a {
                b
            } else {
                a
            }
        }),
        Two::Elu => pairs(xs, to, elu::<I>),
        Two::LeakyRelu => pairs(xs, to, |x, slope| if x < 0.0 { x * slope } else { x }),
        Two::Hypot => pairs(xs, to, hypot::<I>),
        Two::And => pairs(xs, to, |a, b| truth((a != 0.0) & (b != 0.0))),
        Two::Or => pairs(xs, to, |a, b| truth((a != 0.0) | (b != 0.0))),
        Two::Eq => pairs(xs, to, |a, b| truth(a == b)),
        Two::Ne => pairs(xs, to, |a, b| truth(a != b)),
        Two::Lt => pairs(xs, to, |a, b| truth(a < b)),
        Two::Le => pairs(xs, to, |a, b| truth(a <= b)),
        Two::Gt => pairs(xs, to, |a, b| truth(a > b)),
        Two::Ge => pairs(xs, to, |a, b| truth(a >= b)),
        Two::WordAdd => pairs(xs, to, |a, b| word(signed(a).wrapping_add(signed(b)))),
        Two::WordSub => pairs(xs, to, |a, b| word(signed(a).wrapping_sub(signed(b)))),
        Two::WordMul => pairs(xs, to, |a, b| word(signed(a).wrapping_mul(signed(b)))),
        Two::WordAnd => pairs(xs, to, |a, b| word(signed(a) & signed(b))),
        Two::WordOr => pairs(xs, to, |a, b| word(signed(a) | signed(b))),
        Two::WordXor => pairs(xs, to, |a, b| word(signed(a) ^ signed(b))),
        Two::SignedMin => pairs(xs, to, |a, b| word(signed(a).min(signed(b)))),
        Two::SignedMax => pairs(xs, to, |a, b| word(signed(a).max(signed(b)))),
        Two::UnsignedMin => pairs(xs, to, |a, b| f32::from_bits(a.to_bits().min(b.to_bits()))),
        Two::UnsignedMax => pairs(xs, to, |a, b| f32::from_bits(a.to_bits().max(b.to_bits()))),
        Two::SignedQuotient => pairs(xs, to, |a, b| word(quotients::signed(Signed::Quotient, signed(a), signed(b)))),
        Two::SignedRemainder => pairs(xs, to, |a, b| word(quotients::signed(Signed::Remainder, signed(a), signed(b)))),
        Two::SignedRest => pairs(xs, to, |a, b| word(quotients::signed(Signed::Rest, signed(a), signed(b)))),
        Two::UnsignedQuotient => {
            pairs(xs, to, |a, b| f32::from_bits(quotients::unsigned(Unsigned::Quotient, a.to_bits(), b.to_bits())));
        }
        Two::UnsignedRemainder => {
            pairs(xs, to, |a, b| f32::from_bits(quotients::unsigned(Unsigned::Remainder, a.to_bits(), b.to_bits())));
        }
        Two::WordEq => pairs(xs, to, |a, b| truth(signed(a) == signed(b))),
        Two::WordNe => pairs(xs, to, |a, b| truth(signed(a) != signed(b))),
        Two::SignedLt => pairs(xs, to, |a, b| truth(signed(a) < signed(b))),
        Two::SignedLe => pairs(xs, to, |a, b| truth(signed(a) <= signed(b))),
        Two::UnsignedLt => pairs(xs, to, |a, b| truth(a.to_bits() < b.to_bits())),
        Two::UnsignedLe => pairs(xs, to, |a, b| truth(a.to_bits() <= b.to_bits())),
    }
}

#[inline(always)]
fn hypot<I: Isa>(x: f32, y: f32) -> f32 {
    let (larger, smaller) = if x.abs() > y.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    let scale = if larger < f32::MIN_POSITIVE { 33_554_432.0 } else { 1.0 };
    let (larger, smaller) = (larger * scale, smaller * scale);
    let quotient = smaller / if larger > f32::MIN_POSITIVE { larger } else { f32::MIN_POSITIVE };
    let length = larger * math::sqrt::<I>(1.0 + quotient * quotient) / scale;
    let length = if x.is_nan() | y.is_nan() { f32::NAN } else { length };
    if x.is_infinite() | y.is_infinite() { f32::INFINITY } else { length }
}

/// The smaller of a number and a limit.
#[inline(always)]
fn below(x: f32, limit: f32) -> f32 {
    if x < limit { x } else { limit }
}

/// A whole number of up to 24 bits, which `as` would saturate lane by lane.
#[inline(always)]
fn whole(x: f32) -> i32 {
    const MOST: f32 = 16_777_216.0;
    // SAFETY: whatever it was, it now lies between -2^24 and 2^24.
    unsafe { below(if x > -MOST { x } else { -MOST }, MOST).to_int_unchecked() }
}

/// `x as i32` without a branch.
#[inline(always)]
fn saturated(x: f32) -> i32 {
    let within = below(if x > -2_147_483_648.0 { x } else { -2_147_483_648.0 }, 2_147_483_520.0);
    // SAFETY: NaN and what is less became -2^31, and what is greater the last float32 below 2^31: an i32 holds each, rounded towards zero.
    let whole = unsafe { within.to_int_unchecked::<i32>() };
    let whole = if x >= 2_147_483_648.0 { i32::MAX } else { whole };
    if x.is_nan() { 0 } else { whole }
}

/// `x as u32` without a branch.
#[inline(always)]
fn saturated_unsigned(x: f32) -> u32 {
    const HALF: f32 = 2_147_483_648.0;
    let within = below(if x > 0.0 { x } else { 0.0 }, 4_294_967_040.0);
    let is_high = within >= HALF;
    let low = if is_high { within - HALF } else { within };
    // SAFETY: NaN and what is less than 0 became 0; from 2^31 on that was subtracted. An i32 holds what is left, rounded towards zero.
    let whole = unsafe { low.to_int_unchecked::<i32>() }.cast_unsigned();
    let whole = if is_high { whole ^ 1 << 31 } else { whole };
    if x >= 4_294_967_296.0 { u32::MAX } else { whole }
}

/// A word as an i32.
#[inline(always)]
fn signed(word: f32) -> i32 {
    word.to_bits().cast_signed()
}

#[inline(always)]
fn word(value: i32) -> f32 {
    f32::from_bits(value.cast_unsigned())
}

#[inline(always)]
fn truth(condition: bool) -> f32 {
    if condition { 1.0 } else { 0.0 }
}

#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

#[inline(always)]
fn sigmoid<I: Isa>(x: f32) -> f32 {
    let e = math::exp::<I>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

#[inline(always)]
fn erf<I: Isa>(x: f32) -> f32 {
    let s = x * x;
    let mut p = (7.882_497_45e-5 * s - 8.018_855e-4) * s + 5.189_312_1e-3;
    p = ((p * s - 2.685_432_9e-2) * s + 0.112_835_974) * s - 0.376_126_26;
    let near = x * (p * s + 1.128_379_1);
    let a = if x.abs() < 4.2 { x.abs() } else { 4.2 };
    let t = 1.0 / (1.0 + 0.5 * a);
    let mut q = (5.628_364_9e-2 * t - 0.102_870_852) * t - 9.067_700_8e-2;
    q = ((q * t + 0.194_218_338) * t + 0.118_083_134) * t + 0.263_343_036;
    q = (q * t + 0.279_614_955) * t + 0.282_250_375;
    let far = 1.0 - q * t * math::exp::<I>(-a * a);
    let signed = if x < 0.0 { -far } else { far };
    if x.abs() < 1.0 {
        near
    } else if x.is_nan() {
        x
    } else {
        signed
    }
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    let s = if x * x < 30.802_5 { x * x } else { 30.802_5 };
    let mut p = ((2.261_096e-8 * s + 6.294_227_7e-6) * s + 1.666_833_3e-4) * s + 4.663_944e-3;
    p = (p * s + 3.368_816_5e-2) * s + 0.398_942_26;
    let mut q = ((1.189_149_9e-6 * s + 7.272_94e-5) * s + 1.872_664_1e-3) * s + 2.854_323_4e-2;
    q = (q * s + 0.251_110_08) * s + 1.0;
    let middle = 0.5 + x * (p / q);
    let below = if x > 5.55 { 1.0 } else { middle };
    x * if x < -5.55 { 0.0 } else { below }
}

#[inline(always)]
fn expm1<I: Isa>(x: f32) -> f32 {
    let mut p = ((2.755_731_9e-6 * x + 2.480_158_7e-5) * x + 1.984_127_0e-4) * x + 1.388_888_9e-3;
    p = ((p * x + 8.333_333_3e-3) * x + 4.166_666_7e-2) * x + 0.166_666_67;
    let near = x + x * x * (p * x + 0.5);
    let far = math::exp::<I>(x) - 1.0;
    let near = if x == 0.0 { x } else { near };
    if x.abs() < 0.5 { near } else { far }
}

#[inline(always)]
fn elu<I: Isa>(x: f32, factor: f32) -> f32 {
    let below = factor * expm1::<I>(x);
    if x < 0.0 { below } else { x }
}

#[inline(always)]
fn log1p<I: Isa>(x: f32) -> f32 {
    let q = x / (2.0 + x);
    let s = q * q;
    let mut p = ((6.666_666_7e-2 * s + 7.692_307_7e-2) * s + 9.090_909_1e-2) * s + 0.111_111_11;
    p = ((p * s + 0.142_857_14) * s + 0.2) * s + 0.333_333_33;
    let near = 2.0 * q + 2.0 * q * s * p;
    let near = if x == 0.0 { x } else { near };
    let far = math::log::<I>(1.0 + x);
    if x.abs() < 0.5 { near } else { far }
}

#[inline(always)]
fn softplus<I: Isa>(x: f32) -> f32 {
    let larger = if x.is_nan() || x > 0.0 { x } else { 0.0 };
    let distance = if x == 0.0 { 0.0 } else { x.abs() };
    let sum = larger + log1p::<I>(math::exp::<I>(-distance));
    if larger.is_finite() { sum } else { larger }
}

#[inline(always)]
fn hard_sigmoid(x: f32) -> f32 {
    clamp(x / 6.0 + 0.5, 0.0, 1.0)
}

#[inline(always)]
fn power<I: Isa>(a: f32, b: f32) -> f32 {
    let magnitude = math::pow::<I>(a.abs(), b);
    let whole = math::floor::<I>(b) == b;
    let half = b * 0.5;
    // Beyond 2^24 every float is even.
    let odd = (b.abs() < 16_777_216.0) & (math::floor::<I>(half) != half);
    // An infinity and -0 have powers that are not whole.
    let part = if (a.is_infinite() | (a == 0.0)) & !b.is_nan() { magnitude } else { f32::NAN };
    let below = if whole { if odd { -magnitude } else { magnitude } } else { part };
    let any = if a.is_sign_positive() { magnitude } else { below };
    if (b == 0.0) | (a == 1.0) { 1.0 } else { any }
}
