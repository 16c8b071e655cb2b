//! Vectors of float32 by name, for loops whose registers are counted: the compiler keeps arrays of lanes in registers only while loops over them
//! are simple.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m512bh, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_epi32, _mm256_add_ps,
    _mm256_castps_si256, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_extractf128_ps, _mm256_mullo_epi32,
    _mm512_add_epi32, _mm512_castps_si512, _mm512_castps512_ps256, _mm512_castsi512_ps, _mm512_dpbf16_ps,
    _mm512_dpbusd_epi32, _mm512_extractf32x8_ps, _mm512_mullo_epi32, _mm512_set1_epi32, _mm512_xor_si512,
};

use crate::spmd::math::{Baseline, Isa as _};
#[cfg(target_arch = "x86_64")]
use crate::spmd::math::{Fma, Fma512};

/// The operations of an instruction set's widest vectors.
///
/// # Safety
/// The caller is code that the set may run in, and all of it is inlined there. A whole vector of floats can be read or written at each address.
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
    /// Asks for what is written soon.
    #[inline(always)]
    unsafe fn prefetch(_: *const f32) {}
    /// The first `count` lanes of a vector, the others zero; only they are read.
    #[inline(always)]
    unsafe fn load_first(at: *const f32, count: usize) -> Self::Vector {
        let mut lanes = [0.0_f32; MOST_LANES];
        // SAFETY: as many floats can be read there (the contract of `Lanes`), and there are no more lanes than these.
        unsafe {
            at.copy_to_nonoverlapping(lanes.as_mut_ptr(), count.min(MOST_LANES));
            Self::load(lanes.as_ptr())
        }
    }
    /// Writes the first `count` lanes.
    #[inline(always)]
    unsafe fn store_first(at: *mut f32, value: Self::Vector, count: usize) {
        let mut lanes = [0.0_f32; MOST_LANES];
        // SAFETY: as many floats can be written there (the contract of `Lanes`), and there are no more lanes than these.
        unsafe {
            Self::store(lanes.as_mut_ptr(), value);
            lanes.as_ptr().copy_to_nonoverlapping(at, count.min(MOST_LANES));
        }
    }
}

/// Lanes of the widest vector.
const MOST_LANES: usize = 16;

/// The mask of the first lanes of eight.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn first_of_eight(count: usize) -> std::arch::x86_64::__m256i {
    const ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: eight words lie there, and code that calls this may use AVX2.
    unsafe { std::arch::x86_64::_mm256_loadu_si256(ONES.as_ptr().add(8 - count.min(8)).cast()) }
}

/// The operations on vectors of floats.
///
/// # Safety
/// As [`Lanes`].
pub(super) trait Total: Lanes {
    /// The sum of the lanes, by halves.
    unsafe fn total(value: Self::Vector) -> f32;
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86 {
    (
        $isa:ident, $lanes:literal, $vector:ident: $zero:ident $splat:ident $load:ident $store:ident $add:ident $fma:ident,
        |$from:ident, $of:ident| $first:expr, |$to:ident, $value:ident, $count:ident| $write:expr
    ) => {
        impl Lanes for $isa {
            type Vector = std::arch::x86_64::$vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$zero() }
            }

            #[inline(always)]
            unsafe fn splat(at: *const f32) -> Self::Vector {
                // SAFETY: the float can be read, by code that may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$splat(*at) }
            }

            #[inline(always)]
            unsafe fn load(at: *const f32) -> Self::Vector {
                // SAFETY: a vector can be read there, by code that may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$load(at) }
            }

            #[inline(always)]
            unsafe fn store(at: *mut f32, value: Self::Vector) {
                // SAFETY: a vector can be written there, by code that may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$store(at, value) }
            }

            #[inline(always)]
            unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$add(a, b) }
            }

            #[inline(always)]
            unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Lanes`).
                unsafe { std::arch::x86_64::$fma(a, b, c) }
            }

            #[inline(always)]
            unsafe fn prefetch(at: *const f32) {
                // SAFETY: it reads nothing.
                unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
            }

            #[inline(always)]
            unsafe fn load_first($from: *const f32, $of: usize) -> Self::Vector {
                // SAFETY: the lanes can be read there, by code that may use these instructions (the contract of `Lanes`).
                unsafe { $first }
            }

            #[inline(always)]
            unsafe fn store_first($to: *mut f32, $value: Self::Vector, $count: usize) {
                // SAFETY: the lanes can be written there, by code that may use these instructions (the contract of `Lanes`).
                unsafe { $write }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
x86!(
    Fma, 8, __m256: _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps,
    |at, count| std::arch::x86_64::_mm256_maskload_ps(at, first_of_eight(count)),
    |at, value, count| std::arch::x86_64::_mm256_maskstore_ps(at, first_of_eight(count), value)
);
#[cfg(target_arch = "x86_64")]
x86!(
    Fma512, 16, __m512: _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps,
    |at, count| std::arch::x86_64::_mm512_maskz_loadu_ps(((1_u32 << count) - 1) as u16, at),
    |at, value, count| std::arch::x86_64::_mm512_mask_storeu_ps(at, ((1_u32 << count) - 1) as u16, value)
);

#[cfg(target_arch = "x86_64")]
impl Total for Fma {
    #[inline(always)]
    unsafe fn total(value: Self::Vector) -> f32 {
        // SAFETY: the caller's code may use AVX2 (the contract of `Lanes`).
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps::<1>(value));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Total for Fma512 {
    #[inline(always)]
    unsafe fn total(value: Self::Vector) -> f32 {
        // SAFETY: the caller's code may use AVX-512, and with it AVX2 (the contract of `Lanes`).
        unsafe { Fma::total(_mm256_add_ps(_mm512_castps512_ps256(value), _mm512_extractf32x8_ps::<1>(value))) }
    }
}

/// Words in a set's registers: what `splat`, `add` and `multiply_add` do with them is given, the rest is as for floats.
macro_rules! words {
    ($($(#[$gate:meta])* $name:ident in $isa:ident: |$at:ident| $splat:expr, |$x:ident, $y:ident| $add:expr, |$a:ident, $b:ident, $c:ident| $fma:expr;)*) => {$(
        $(#[$gate])*
        pub(super) struct $name;

        $(#[$gate])*
        #[allow(unused_unsafe, reason = "some of what is given is safe")]
        impl Lanes for $name {
            type Vector = <$isa as Lanes>::Vector;
            const LANES: usize = $isa::LANES;

            #[inline(always)]
            unsafe fn zero() -> Self::Vector {
                // SAFETY: the caller's code may use the set's instructions (the contract of `Lanes`).
                unsafe { $isa::zero() }
            }

            #[inline(always)]
            unsafe fn splat($at: *const f32) -> Self::Vector {
                // SAFETY: a word can be read there, by code that may use the set (the contract of `Lanes`); types have one size and take any bits.
                unsafe { $splat }
            }

            #[inline(always)]
            unsafe fn load(at: *const f32) -> Self::Vector {
                // SAFETY: a vector can be read there, by code that may use the set (the contract of `Lanes`).
                unsafe { $isa::load(at) }
            }

            #[inline(always)]
            unsafe fn store(at: *mut f32, value: Self::Vector) {
                // SAFETY: a vector can be written there, by code that may use the set (the contract of `Lanes`).
                unsafe { $isa::store(at, value) }
            }

            #[inline(always)]
            unsafe fn add($x: Self::Vector, $y: Self::Vector) -> Self::Vector {
                // SAFETY: the caller's code may use the set (the contract of `Lanes`); types have one size and take any bits.
                unsafe { $add }
            }

            #[inline(always)]
            unsafe fn multiply_add($a: Self::Vector, $b: Self::Vector, $c: Self::Vector) -> Self::Vector {
                // SAFETY: the caller's code may use the set (the contract of `Lanes`); types have one size and take any bits.
                unsafe { $fma }
            }

            #[inline(always)]
            unsafe fn prefetch(at: *const f32) {
                // SAFETY: it reads nothing.
                unsafe { $isa::prefetch(at) }
            }
        }
    )*};
}

words! {
    /// Words of two bf16: a product is that of both, added to float32. What is too small for a normal number counts as zero.
    #[cfg(target_arch = "x86_64")]
    Pairs in Fma512: |at| Fma512::splat(at), |a, b| Fma512::add(a, b), |a, b, c| {
        let words = |value| std::mem::transmute::<std::arch::x86_64::__m512, __m512bh>(value);
        _mm512_dpbf16_ps(c, words(a), words(b))
    };

    /// Words of four signed bytes: a product is that of all four, added to i32. The left ones are taken 128 more than they are.
    #[cfg(target_arch = "x86_64")]
    Quads in Fma512: |at| {
        let bytes = _mm512_set1_epi32(at.cast::<i32>().read());
        _mm512_castsi512_ps(_mm512_xor_si512(bytes, _mm512_set1_epi32(0x8080_8080_u32 as i32)))
    }, |a, b| Integers512::add(a, b), |a, b, c| {
        let sums = _mm512_dpbusd_epi32(_mm512_castps_si512(c), _mm512_castps_si512(a), _mm512_castps_si512(b));
        _mm512_castsi512_ps(sums)
    };

    /// Integers of 32 bits.
    #[cfg(target_arch = "x86_64")]
    Integers512 in Fma512: |at| Fma512::splat(at), |a, b| {
        _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)))
    }, |a, b, c| {
        let product = _mm512_mullo_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
        _mm512_castsi512_ps(_mm512_add_epi32(product, _mm512_castps_si512(c)))
    };

    /// Integers of 32 bits.
    #[cfg(target_arch = "x86_64")]
    Integers256 in Fma: |at| Fma::splat(at), |a, b| {
        _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)))
    }, |a, b, c| {
        let product = _mm256_mullo_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
        _mm256_castsi256_ps(_mm256_add_epi32(product, _mm256_castps_si256(c)))
    };

    /// Integers of 32 bits.
    Integers in Baseline: |at| Baseline::splat(at), |a, b| {
        let sum = |lane: usize| f32::from_bits(a[lane].to_bits().wrapping_add(b[lane].to_bits()));
        [sum(0), sum(1), sum(2), sum(3)]
    }, |a, b, c| {
        let sum = |lane: usize| {
            let product = a[lane].to_bits().wrapping_mul(b[lane].to_bits());
            f32::from_bits(product.wrapping_add(c[lane].to_bits()))
        };
        [sum(0), sum(1), sum(2), sum(3)]
    };
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
        // SAFETY: the float can be read (the contract of `Lanes`).
        [unsafe { *at }; 4]
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self::Vector {
        // SAFETY: four floats can be read there (the contract of `Lanes`).
        unsafe { *at.cast() }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, value: Self::Vector) {
        // SAFETY: four floats can be written there (the contract of `Lanes`).
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
}

impl Total for Baseline {
    #[inline(always)]
    unsafe fn total([a, b, c, d]: Self::Vector) -> f32 {
        (a + c) + (b + d)
    }
}
