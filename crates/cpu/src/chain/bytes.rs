//! Chains of bytes and truths in lanes of their own, where no number but bytes shows: sums and products are taken modulo 256, which leaves them the same.
//! `chain` asks `signed` first. It follows the least and greatest number that each step may give: a step whose wide result shows (a sum that is divided)
//! makes the whole chain one of float32 lanes. A lane of one byte does four times as many elements in an instruction.

use crate::backend::native::{ElementsShape, One, Step, Two};
use crate::forms::forms;

/// The least and the greatest number that a step may give.
type Reach = (i64, i64);

const UNSIGNED: Reach = (0, 255);
const SIGNED: Reach = (-128, 127);
/// As far as float32 has all whole numbers, in which the steps are stated.
const EXACT: i64 = 1 << 24;

/// Returns whether the numbers of all of these are signed bytes; `None` if one of them is not a byte.
fn sign_of(reaches: &[Reach]) -> Option<bool> {
    let all = |(least, greatest): Reach| reaches.iter().all(|&(low, high)| least <= low && high <= greatest);
    if all(UNSIGNED) { Some(false) } else { all(SIGNED).then_some(true) }
}

/// Returns for each step whether it reads signed bytes; `None` if a chain has wider numbers.
pub(super) fn signed(shape: &ElementsShape) -> Option<Vec<bool>> {
    let wide = |bytes: usize| bytes != 1;
    if wide(shape.bytes)
        || shape.row.is_some()
        || shape.inputs.iter().any(|view| wide(view.bytes))
        || shape.more.iter().any(|&(_, bytes)| wide(bytes))
    {
        return None;
    }
    let mut reaches: Vec<Reach> = Vec::with_capacity(shape.steps.len());
    let mut signed = Vec::with_capacity(shape.steps.len());
    for step in &shape.steps {
        let of = |step: u16| reaches.get(usize::from(step)).copied();
        let (reach, sign) = match *step {
            Step::Input(_) | Step::Rolled(..) => (UNSIGNED, false),
            Step::Constant(bits) => {
                let value = f32::from_bits(bits);
                let whole = value as i64;
                let is_byte = whole as f32 == value && (SIGNED.0..=UNSIGNED.1).contains(&whole);
                is_byte.then_some(((whole, whole), false))?
            }
            Step::One(op, x) => {
                let (low, high) = of(x)?;
                let sign = sign_of(&[(low, high)]);
                match op {
                    One::Byte => (UNSIGNED, false),
                    One::SignedByte => (SIGNED, false),
                    One::Neg => ((-high, -low), false),
                    One::Abs => ((0, high.max(-low)), sign?),
                    One::Sign => ((if low < 0 { -1 } else { 0 }, 1), sign?),
                    One::Not => ((0, 1), sign?),
                    _ => return None,
                }
            }
            Step::Two(op, x, y) => {
                let ((a, b), (c, d)) = (of(x)?, of(y)?);
                let both = || sign_of(&[(a, b), (c, d)]);
                match op {
                    Two::Add => ((a + c, b + d), false),
                    Two::Sub => ((a - d, b - c), false),
                    Two::Mul => {
                        let all = [a * c, a * d, b * c, b * d];
                        ((all.into_iter().min()?, all.into_iter().max()?), false)
                    }
                    Two::And | Two::Or => {
                        sign_of(&[(a, b)])?;
                        sign_of(&[(c, d)])?;
                        ((0, 1), false)
                    }
                    Two::Eq | Two::Ne | Two::Lt | Two::Le | Two::Gt | Two::Ge => ((0, 1), both()?),
                    Two::Min => ((a.min(c), b.min(d)), both()?),
                    Two::Max => ((a.max(c), b.max(d)), both()?),
                    _ => return None,
                }
            }
            Step::Choose(condition, x, y) => {
                sign_of(&[of(condition)?])?;
                let ((a, b), (c, d)) = (of(x)?, of(y)?);
                ((a.min(c), b.max(d)), false)
            }
            Step::Place(_) | Step::WideConstant(_) | Step::Row => return None,
        };
        if reach.0 < -EXACT || reach.1 > EXACT {
            return None;
        }
        reaches.push(reach);
        signed.push(sign);
    }
    Some(signed)
}

forms! {
    /// Runs steps for this number of bytes: `at` says where each step's are, and `signed` which of them read signed ones.
    ///
    /// # Safety
    /// `count` bytes of each step lie there, and what is written overlaps nothing that the same step reads.
    pub(super) unsafe fn steps(steps: &[Step], signed: &[bool], at: &[*mut u8], count: usize) = steps_by
}

/// # Safety
/// As [`steps`].
#[inline(always)]
unsafe fn steps_by<I>(steps: &[Step], signed: &[bool], at: &[*mut u8], count: usize) {
    for ((step, &to), &signed) in steps.iter().zip(at).zip(signed) {
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
            Step::One(op, x) => one(op, signed, read(x), to),
            Step::Two(op, x, y) => two(op, signed, [read(x), read(y)], to),
            Step::Choose(condition, x, y) => {
                for (((to, &condition), &x), &y) in to.iter_mut().zip(read(condition)).zip(read(x)).zip(read(y)) {
                    let takes_y = 0_u8.wrapping_sub(u8::from(condition == 0));
                    *to = x & !takes_y | y & takes_y;
                }
            }
        }
    }
}

#[inline(always)]
fn each(x: &[u8], to: &mut [u8], of: impl Fn(u8) -> u8) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = of(x);
    }
}

#[inline(always)]
fn pairs([x, y]: [&[u8]; 2], to: &mut [u8], of: impl Fn(u8, u8) -> u8) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = of(x, y);
    }
}

/// Applies a function of two bytes that depends on their order only, signed or unsigned.
#[inline(always)]
fn ordered(xs: [&[u8]; 2], to: &mut [u8], signed: bool, of: impl Fn(u8, u8) -> u8) {
    // Signed bytes with their first bit turned have the order of unsigned ones.
    if signed { pairs(xs, to, |x, y| of(x ^ 128, y ^ 128)) } else { pairs(xs, to, of) }
}

#[inline(always)]
fn one(op: One, signed: bool, x: &[u8], to: &mut [u8]) {
    match op {
        One::Neg => each(x, to, u8::wrapping_neg),
        One::Abs if signed => each(x, to, |x| x.cast_signed().unsigned_abs()),
        One::Sign if signed => each(x, to, |x| x.cast_signed().signum().cast_unsigned()),
        One::Sign => each(x, to, |x| u8::from(x != 0)),
        One::Not => each(x, to, |x| u8::from(x == 0)),
        _ => to.copy_from_slice(x),
    }
}

#[inline(always)]
fn two(op: Two, signed: bool, xs: [&[u8]; 2], to: &mut [u8]) {
    match op {
        Two::Sub => pairs(xs, to, u8::wrapping_sub),
        Two::Mul => pairs(xs, to, u8::wrapping_mul),
        Two::And => pairs(xs, to, |x, y| u8::from(x != 0) & u8::from(y != 0)),
        Two::Or => pairs(xs, to, |x, y| u8::from(x | y != 0)),
        Two::Eq => pairs(xs, to, |x, y| u8::from(x == y)),
        Two::Ne => pairs(xs, to, |x, y| u8::from(x != y)),
        Two::Lt => ordered(xs, to, signed, |x, y| u8::from(x < y)),
        Two::Le => ordered(xs, to, signed, |x, y| u8::from(x <= y)),
        Two::Gt => ordered(xs, to, signed, |x, y| u8::from(x > y)),
        Two::Ge => ordered(xs, to, signed, |x, y| u8::from(x >= y)),
        Two::Min if signed => pairs(xs, to, |x, y| x.cast_signed().min(y.cast_signed()).cast_unsigned()),
        Two::Max if signed => pairs(xs, to, |x, y| x.cast_signed().max(y.cast_signed()).cast_unsigned()),
        Two::Min => pairs(xs, to, u8::min),
        Two::Max => pairs(xs, to, u8::max),
        // What has no bytes was left to floats.
        _ => pairs(xs, to, u8::wrapping_add),
    }
}
