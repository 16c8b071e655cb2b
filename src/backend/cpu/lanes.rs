//! Vectors of float32 by name, for loops whose registers are counted: the compiler keeps arrays of lanes in registers only while loops over them
//! are simple.

use crate::spmd::math::{Baseline, Isa as _};
#[cfg(target_arch = "x86_64")]
use crate::spmd::math::{Fma, Fma512};

/// What an instruction set's widest vectors do.
///
/// # Safety
/// Whoever calls any of it is code that the set may run in, all of it inlined there; what is read or written is valid for so many floats.
pub(super) trait Lanes {
    type Vector: Copy;
    const LANES: usize;
    unsafe fn zero() -> Self::Vector;
    unsafe fn splat(at: *const f32) -> Self::Vector;
    unsafe fn load(at: *const f32) -> Self::Vector;
    unsafe fn store(at: *mut f32, value: Self::Vector);
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a b + c, rounded once where [`crate::spmd::math::Isa::FMA`].
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The sum of the lanes.
    unsafe fn total(value: Self::Vector) -> f32;
    /// Asks for what is written soon.
    #[inline(always)]
    unsafe fn prefetch(_: *const f32) {}
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86 {
    ($isa:ident, $lanes:literal, $vector:ident: $zero:ident $splat:ident $load:ident $store:ident $add:ident $fma:ident) => {
        impl Lanes for $isa {
            type Vector = std::arch::x86_64::$vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self::Vector {
                // SAFETY: the caller's promise, here and below.
                unsafe { std::arch::x86_64::$zero() }
            }

            #[inline(always)]
            unsafe fn splat(at: *const f32) -> Self::Vector {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$splat(*at) }
            }

            #[inline(always)]
            unsafe fn load(at: *const f32) -> Self::Vector {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$load(at) }
            }

            #[inline(always)]
            unsafe fn store(at: *mut f32, value: Self::Vector) {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$store(at, value) }
            }

            #[inline(always)]
            unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$add(a, b) }
            }

            #[inline(always)]
            unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$fma(a, b, c) }
            }

            #[inline(always)]
            unsafe fn total(value: Self::Vector) -> f32 {
                // SAFETY: a vector is so many floats.
                let lanes: [f32; $lanes] = unsafe { std::mem::transmute(value) };
                total(&lanes)
            }

            #[inline(always)]
            unsafe fn prefetch(at: *const f32) {
                // SAFETY: it reads nothing.
                unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
x86!(Fma, 8, __m256: _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps);
#[cfg(target_arch = "x86_64")]
x86!(Fma512, 16, __m512: _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps);

/// Words of two bf16: a product is that of both, added to float32. What is too small for a normal number counts as zero.
#[cfg(target_arch = "x86_64")]
pub(super) struct Pairs;

#[cfg(target_arch = "x86_64")]
impl Lanes for Pairs {
    type Vector = std::arch::x86_64::__m512;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self::Vector {
        // SAFETY: the caller's promise, here and below.
        unsafe { Fma512::zero() }
    }

    #[inline(always)]
    unsafe fn splat(at: *const f32) -> Self::Vector {
        // SAFETY: as above.
        unsafe { Fma512::splat(at) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self::Vector {
        // SAFETY: as above.
        unsafe { Fma512::load(at) }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, value: Self::Vector) {
        // SAFETY: as above.
        unsafe { Fma512::store(at, value) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: as above.
        unsafe { Fma512::add(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: as above; the types are 512 bits each.
        unsafe {
            use std::arch::x86_64::{__m512, __m512bh, _mm512_dpbf16_ps};
            let words = |value| std::mem::transmute::<__m512, __m512bh>(value);
            _mm512_dpbf16_ps(c, words(a), words(b))
        }
    }

    #[inline(always)]
    unsafe fn total(value: Self::Vector) -> f32 {
        // SAFETY: as above.
        unsafe { Fma512::total(value) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const f32) {
        // SAFETY: as above.
        unsafe { Fma512::prefetch(at) }
    }
}

/// Four floats, which become a vector wherever the target has some: NEON's, those of simd128, SSE's.
impl Lanes for Baseline {
    type Vector = [f32; 4];
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self::Vector {
        [0.0; 4]
    }

    #[inline(always)]
    unsafe fn splat(at: *const f32) -> Self::Vector {
        // SAFETY: the caller's promise, here and below.
        [unsafe { *at }; 4]
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self::Vector {
        // SAFETY: as above.
        unsafe { *at.cast() }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, value: Self::Vector) {
        // SAFETY: as above.
        unsafe { *at.cast() = value }
    }

    #[inline(always)]
    unsafe fn add([a, b, c, d]: Self::Vector, x: Self::Vector) -> Self::Vector {
        [a + x[0], b + x[1], c + x[2], d + x[3]]
    }

    #[inline(always)]
    unsafe fn multiply_add([a, b, c, d]: Self::Vector, x: Self::Vector, sum: Self::Vector) -> Self::Vector {
        [
            Self::mul_add(a, x[0], sum[0]),
            Self::mul_add(b, x[1], sum[1]),
            Self::mul_add(c, x[2], sum[2]),
            Self::mul_add(d, x[3], sum[3]),
        ]
    }

    #[inline(always)]
    unsafe fn total(value: Self::Vector) -> f32 {
        total(&value)
    }
}

/// By halves.
#[inline(always)]
fn total(lanes: &[f32]) -> f32 {
    match lanes {
        [a, b, c, d] => (a + c) + (b + d),
        _ => {
            let (low, high) = lanes.split_at(lanes.len() / 2);
            let mut halves = [0.0; 8];
            for (half, (low, high)) in halves.iter_mut().zip(low.iter().zip(high)) {
                *half = low + high;
            }
            if low.len() == 8 {
                total(&[0, 1, 2, 3].map(|lane| halves[lane] + halves[lane + 4]))
            } else {
                total(&halves[..4])
            }
        }
    }
}
