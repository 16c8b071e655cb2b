//! Sine, cosine and tangent: Cody & Waite reduction by multiples of pi, one odd polynomial, and a slow repair of the
//! lanes whose argument is too large for that. The sine and tangent of -0 are -0: the reduction loses the sign, so zeros are put back.

use super::{Isa, ROUNDER, SIGN, flip_sign, horner, select};
use core::mem::MaybeUninit;

/// The fast forms [`sin`], [`cos`] and [`tan`] hold their accuracy up to this magnitude.
pub const FAST_TRIG_LIMIT: f32 = 12_800.0;

const FRAC_1_PI: f32 = 0.318_309_873;
const FRAC_2_PI: f32 = 0.636_619_747;

// With fused multiply-add, two full words of pi are enough for n up to 2^13: the first product is not rounded, and the
// difference is exact because the argument is close to it.
const PI_FUSED: [f32; 2] = [3.141_592_74, -8.742_277_66e-8];
// Without, words of 8 and 11 bits, whose products with n are exact, and a full word for the rest.
const PI_SPLIT: [f32; 3] = [3.140_625, 9.675_025_94e-4, 1.509_958_03e-7];

// The tangent has poles, so its reduced argument must be right relatively: words enough to go below the closest that a
// float comes to a multiple of pi/2.
const HALF_PI_FUSED: [f32; 3] = [1.570_796_37, -4.371_138_83e-8, -1.715_124_51e-15];
const HALF_PI_SPLIT: [f32; 5] = [1.570_312_5, 4.839_897_16e-4, -1.629_814_51e-7, 6.082_245_82e-11, -5.145_311_46e-14];

/// Sine for `|x|` up to [`FAST_TRIG_LIMIT`]: within 2 ULP, or 1e-10 absolutely next to a zero.
#[inline(always)]
pub fn sin<I: Isa>(x: f32) -> f32 {
    let k = I::mul_add(x, FRAC_1_PI, ROUNDER);
    let r = minus_multiple_of_pi::<I>(x, k - ROUNDER);
    select(x == 0.0, x, flip_sign(sin_reduced::<I>(r), k.to_bits() << 31))
}

/// Cosine for `|x|` up to [`FAST_TRIG_LIMIT`]: within 2 ULP, or 1e-10 absolutely next to a zero.
#[inline(always)]
pub fn cos<I: Isa>(x: f32) -> f32 {
    // cos x = sin(x + pi/2): with n the integer nearest to x/pi + 1/2, that is (-1)^n sin(x - (n - 1/2) pi).
    let k = I::mul_add(x, FRAC_1_PI, 0.5) + ROUNDER;
    let r = minus_multiple_of_pi::<I>(x, (k - ROUNDER) - 0.5);
    // Next to 0 it is 1, which the polynomial misses by an ULP: a rotation by nothing stays one.
    select(x.abs() < 1e-4, 1.0, flip_sign(sin_reduced::<I>(r), k.to_bits() << 31))
}

/// Tangent for `|x|` up to [`FAST_TRIG_LIMIT`], within 4 ULP.
#[inline(always)]
pub fn tan<I: Isa>(x: f32) -> f32 {
    let k = I::mul_add(x, FRAC_2_PI, ROUNDER);
    let n = k - ROUNDER;
    let r = if I::FMA {
        HALF_PI_FUSED.iter().fold(x, |r, &word| I::mul_add(n, -word, r))
    } else {
        HALF_PI_SPLIT.iter().fold(x, |r, &word| r - n * word)
    };
    let s = r * r;
    let p =
        horner!(I, s, 0.333_331_555, 0.133_388_355, 5.340_820_18e-2, 2.444_139_12e-2, 3.101_482_29e-3, 9.396_526_03e-3);
    let t = I::mul_add(s * r, p, r);
    select(x == 0.0, x, select(k.to_bits() & 1 == 0, t, -1.0 / t))
}

/// `x - n pi`, `n` a multiple of one half.
#[inline(always)]
fn minus_multiple_of_pi<I: Isa>(x: f32, n: f32) -> f32 {
    if I::FMA {
        I::mul_add(n, -PI_FUSED[1], I::mul_add(n, -PI_FUSED[0], x))
    } else {
        ((x - n * PI_SPLIT[0]) - n * PI_SPLIT[1]) - n * PI_SPLIT[2]
    }
}

/// Sine of `r` in [-pi/2, pi/2].
#[inline(always)]
fn sin_reduced<I: Isa>(r: f32) -> f32 {
    let s = r * r;
    // Trimmed by hand after the fit, so that no argument gives more than 1.
    let p = horner!(I, s, -0.166_666_582, 8.333_062_75e-3, -1.980_980_6e-4, 2.606_067_48e-6);
    I::mul_add(s * r, p, r)
}

/// Lanes between two looks for large arguments; the most that a repair has to remember.
const BLOCK: usize = 256;

/// `fast` for every lane, then `exact` for the lanes beyond the fast range.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` floats each; they are the same or do not overlap.
#[inline(always)]
unsafe fn repaired(dst: *mut f32, src: *const f32, n: usize, fast: impl Fn(f32) -> f32, exact: fn(f64) -> f64) {
    let mut start = 0;
    while start < n {
        let lanes = BLOCK.min(n - start);
        // SAFETY: start + lanes is at most n. The two slices are never used while the other one's lanes may change:
        // one of the two loops below runs, and where both pointers are the same it is the one with a single slice.
        unsafe {
            let (from, to) = (src.add(start), dst.add(start));
            let beyond = any_beyond(core::slice::from_raw_parts(from, lanes));
            let mut arguments = MaybeUninit::<[f32; BLOCK]>::uninit();
            if beyond {
                core::ptr::copy_nonoverlapping(from, arguments.as_mut_ptr().cast(), lanes);
            }
            if core::ptr::eq(from, to) {
                core::slice::from_raw_parts_mut(to, lanes).iter_mut().for_each(|x| *x = fast(*x));
            } else {
                apply(core::slice::from_raw_parts_mut(to, lanes), core::slice::from_raw_parts(from, lanes), &fast);
            }
            if beyond {
                // The first `lanes` of the arguments were copied above.
                let arguments = core::slice::from_raw_parts(arguments.as_ptr().cast(), lanes);
                repair(core::slice::from_raw_parts_mut(to, lanes), arguments, exact);
            }
        }
        start += lanes;
    }
}

/// Two slices as parameters, so that the compiler knows them apart.
#[inline(always)]
fn apply(y: &mut [f32], x: &[f32], fast: &impl Fn(f32) -> f32) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = fast(x);
    }
}

#[inline(always)]
fn any_beyond(x: &[f32]) -> bool {
    // The difference is negative where |x| is within the limit: three integer operations, and no reduction of flags.
    let within = x.iter().fold(SIGN, |all, x| all & (x.to_bits() & !SIGN).wrapping_sub(FAST_TRIG_LIMIT.to_bits() + 1));
    within == 0
}

#[cold]
#[inline(never)]
fn repair(y: &mut [f32], x: &[f32], exact: fn(f64) -> f64) {
    for (y, &x) in y.iter_mut().zip(x) {
        if x.abs() > FAST_TRIG_LIMIT {
            *y = exact(f64::from(x)) as f32;
        }
    }
}

/// Sines of `n` lanes, right for every finite argument; NaN for NaN and the infinities.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` floats each; they are the same or do not overlap.
#[inline(always)]
pub unsafe fn sin_lanes<I: Isa>(dst: *mut f32, src: *const f32, n: usize) {
    // SAFETY: `n` floats on both sides, which are the same or apart (this function's contract).
    unsafe { repaired(dst, src, n, sin::<I>, f64::sin) }
}

/// Cosines of `n` lanes, right for every finite argument; NaN for NaN and the infinities.
///
/// # Safety
/// As [`sin_lanes`].
#[inline(always)]
pub unsafe fn cos_lanes<I: Isa>(dst: *mut f32, src: *const f32, n: usize) {
    // SAFETY: `n` floats on both sides, which are the same or apart (this function's contract).
    unsafe { repaired(dst, src, n, cos::<I>, f64::cos) }
}

/// Tangents of `n` lanes, right for every finite argument; NaN for NaN and the infinities.
///
/// # Safety
/// As [`sin_lanes`].
#[inline(always)]
pub unsafe fn tan_lanes<I: Isa>(dst: *mut f32, src: *const f32, n: usize) {
    // SAFETY: `n` floats on both sides, which are the same or apart (this function's contract).
    unsafe { repaired(dst, src, n, tan::<I>, f64::tan) }
}
