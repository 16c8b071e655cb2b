//! Scalar float functions written so that a plain lane loop over them vectorises; and what lanes do to shared memory (`atomic`) and with each
//! other (`subgroup`). The executor and kernels compiled ahead compute with the same code.
//!
//! Every function of floats is `inline(always)`, free of branches, tables and calls, and generic over an [`Isa`] marker that says
//! what the surrounding `#[target_feature]` function may use. This module knows nothing of registers, masks or
//! bytecode.
//!
//! The shape is the classic one: reduce the argument (Cody & Waite, *Software Manual for the Elementary Functions*,
//! 1980; Muller et al., *Handbook of Floating-Point Arithmetic*, chapters 9 and 10), evaluate a short minimax polynomial
//! on the small interval, rebuild. The coefficients were found by linear programming on Chebyshev nodes for the least
//! relative error, then rounded to `f32` one after another, the rest being fitted again after each rounding.
//!
//! Errors are given in ULP of the result over all finite arguments; `tests/suite/math_accuracy.rs` holds them to it.

// A coefficient is written with the digits that name its f32 exactly; some start like a well-known constant.
#![allow(
    clippy::excessive_precision,
    clippy::approx_constant,
    reason = "coefficients are exact f32 values, not approximations of constants"
)]

mod atomic;
mod exp;
mod half;
mod hyperbolic;
mod inverse_trig;
pub mod lane;
mod log;
mod pow;
mod round;
mod subgroup;
mod trig;

pub use atomic::{AtomicOperation, atomic_u32, atomic_u64, plain_u32, plain_u64};
pub use exp::{exp, exp2};
pub use half::{f16_to_f32, f32_to_f16, round_f16};
pub use hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub use inverse_trig::{acos, asin, atan, atan2};
pub use log::{log, log2};
pub use pow::{inverse_sqrt, pow, sqrt};
pub use round::{ceil, floor, fract, round_even, trunc};
pub use subgroup::{SCAN_EXCLUSIVE, SCAN_INCLUSIVE, SCAN_REDUCE, ballot, collect, gather};
pub use trig::{FAST_TRIG_LIMIT, cos, cos_lanes, sin, sin_lanes, tan, tan_lanes};

/// The instructions that the code around a lane loop may use.
///
/// A marker promises nothing about safety: outside a function that enables the features, the same expressions give the
/// same results, only slowly.
pub trait Isa: Copy + 'static {
    /// True if [`Isa::mul_add`] rounds once.
    const FMA: bool;
    /// True if `f32::floor` and its kin are instructions (SSE4.1 and later, NEON, simd128) and not calls.
    const ROUND: bool;
    /// The bytes of its widest vectors.
    const VECTOR_BYTES: usize;
    /// `a * b + c`, with one rounding if [`Isa::FMA`], else with two.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c` in `f64`, with one rounding if [`Isa::FMA`], else with two.
    fn mul_add_f64(a: f64, b: f64, c: f64) -> f64;
}

/// The target's own baseline: SSE2 on x86-64, simd128 or plain wasm, NEON on aarch64 (where fused multiply-add is part
/// of the baseline).
#[derive(Debug, Clone, Copy)]
pub struct Baseline;

impl Isa for Baseline {
    const FMA: bool = cfg!(target_arch = "aarch64");
    const ROUND: bool = cfg!(any(target_arch = "aarch64", target_arch = "wasm32", target_feature = "sse4.1"));
    const VECTOR_BYTES: usize = 16;

    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        if Self::FMA { a.mul_add(b, c) } else { a * b + c }
    }

    #[inline(always)]
    fn mul_add_f64(a: f64, b: f64, c: f64) -> f64 {
        if Self::FMA { a.mul_add(b, c) } else { a * b + c }
    }
}

/// Markers for code inside a function that enables `fma` and `sse4.1` or later.
macro_rules! fused {
    ($($(#[$attribute:meta])* $name:ident: $bytes:literal;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Isa for $name {
            const FMA: bool = true;
            const ROUND: bool = true;
            const VECTOR_BYTES: usize = $bytes;

            #[inline(always)]
            fn mul_add(a: f32, b: f32, c: f32) -> f32 {
                a.mul_add(b, c)
            }

            #[inline(always)]
            fn mul_add_f64(a: f64, b: f64, c: f64) -> f64 {
                a.mul_add(b, c)
            }
        }
    )*};
}
fused! {
    /// Code inside a function that enables AVX2 and `fma`.
    Fma: 32;
    /// Code inside a function that enables AVX-512.
    Fma512: 64;
}

/// Horner's rule: `horner!(I, x, c0, c1, c2)` is `c0 + x (c1 + x c2)`.
macro_rules! horner {
    ($isa:ident, $x:expr, $last:expr) => { $last };
    ($isa:ident, $x:expr, $first:expr, $($rest:expr),+) => {
        $isa::mul_add(horner!($isa, $x, $($rest),+), $x, $first)
    };
}
use horner;

/// `1.5 * 2^23`: adding it rounds a float of less than 2^22 to the nearest integer, ties to even, and leaves that
/// integer in the low bits of the sum.
const ROUNDER: f32 = 12_582_912.0;

const SIGN: u32 = 0x8000_0000;

/// Both arms are already computed, so that this stays a blend.
#[inline(always)]
fn select(condition: bool, yes: f32, no: f32) -> f32 {
    if condition { yes } else { no }
}

/// The smaller of the two; NaN in `x` comes through (one instruction on x86).
#[inline(always)]
fn at_most(x: f32, limit: f32) -> f32 {
    if limit < x { limit } else { x }
}

/// The larger of the two; NaN in `x` comes through (one instruction on x86).
#[inline(always)]
fn at_least(x: f32, limit: f32) -> f32 {
    if limit > x { limit } else { x }
}

/// The magnitude of the first with the sign bit of the second, exclusive-or'ed: `|x|` is not taken.
#[inline(always)]
fn flip_sign(x: f32, sign: u32) -> f32 {
    f32::from_bits(x.to_bits() ^ sign)
}

#[inline(always)]
fn sign_of(x: f32) -> u32 {
    x.to_bits() & SIGN
}
