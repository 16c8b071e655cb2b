//! Vectors of complex numbers, real and imaginary parts in turn, for each instruction set.
//!
//! Methods are inlined into functions that are compiled for the instruction set; calling them elsewhere is what `unsafe` is about.

use num_complex::Complex;

use crate::real::Real;

/// A vector of 2^LOG complex numbers.
///
/// # Safety
/// Each function may be called only where the processor has the instruction set. Addresses are valid for 2^LOG complex numbers, aligned to their parts.
pub(crate) trait Lanes: Copy + Send + Sync + 'static {
    type Part: Real;
    const LOG: usize;
    type Vector: Copy + Send + Sync;

    unsafe fn load(from: *const Complex<Self::Part>) -> Self::Vector;
    unsafe fn store(to: *mut Complex<Self::Part>, vector: Self::Vector);
    unsafe fn zero() -> Self::Vector;
    /// All parts the same.
    unsafe fn splat(part: Self::Part) -> Self::Vector;
    /// a * b + c, part by part.
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Multiplies by i: (-im, re).
    unsafe fn times_i(vector: Self::Vector) -> Self::Vector;
    /// Real parts twice each, and imaginary ones.
    unsafe fn parts(vector: Self::Vector) -> (Self::Vector, Self::Vector);
    /// The complex number at k comes from k ^ mask.
    unsafe fn exchange(vector: Self::Vector, mask: usize) -> Self::Vector;
}

/// Plain Rust, which every target compiles as well as it can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<T>(std::marker::PhantomData<T>);

impl<T: Real> Lanes for Plain<T> {
    type Part = T;
    const LOG: usize = 1;
    type Vector = [T; 4];

    #[inline(always)]
    unsafe fn load(from: *const Complex<T>) -> [T; 4] {
        // SAFETY: the caller's address has two complex numbers.
        unsafe { from.cast::<[T; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut Complex<T>, vector: [T; 4]) {
        // SAFETY: the caller's address has two complex numbers.
        unsafe { to.cast::<[T; 4]>().write_unaligned(vector) }
    }

    #[inline(always)]
    unsafe fn zero() -> [T; 4] {
        [T::ZERO; 4]
    }

    #[inline(always)]
    unsafe fn splat(part: T) -> [T; 4] {
        [part; 4]
    }

    #[inline(always)]
    unsafe fn multiply_add(a: [T; 4], b: [T; 4], c: [T; 4]) -> [T; 4] {
        [a[0] * b[0] + c[0], a[1] * b[1] + c[1], a[2] * b[2] + c[2], a[3] * b[3] + c[3]]
    }

    #[inline(always)]
    unsafe fn times_i(v: [T; 4]) -> [T; 4] {
        [-v[1], v[0], -v[3], v[2]]
    }

    #[inline(always)]
    unsafe fn parts(v: [T; 4]) -> ([T; 4], [T; 4]) {
        ([v[0], v[0], v[2], v[2]], [v[1], v[1], v[3], v[3]])
    }

    #[inline(always)]
    unsafe fn exchange(v: [T; 4], mask: usize) -> [T; 4] {
        if mask & 1 == 1 { [v[2], v[3], v[0], v[1]] } else { v }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    use num_complex::Complex;

    use super::Lanes;

    /// The 32-bit parts that an exchange takes, for each mask and size of complex numbers.
    const fn exchanges<const MASKS: usize>(words: usize) -> [[i32; 16]; MASKS] {
        let mut all = [[0; 16]; MASKS];
        let mut mask = 0;
        while mask < MASKS {
            let mut at = 0;
            while at < 16 {
                all[mask][at] = (((at / words) ^ mask) * words + at % words) as i32;
                at += 1;
            }
            mask += 1;
        }
        all
    }

    static SINGLE: [[i32; 16]; 8] = exchanges(2);
    static DOUBLE: [[i32; 16]; 4] = exchanges(4);

    macro_rules! lanes {
        ($(#[$doc:meta])* $name:ident, $part:ty, $log:literal, $vector:ty, $table:ident,
         $load:ident, $store:ident, $zero:ident, $splat:ident, $fma:ident, |$v:ident| $times_i:expr, $parts:expr, |$w:ident, $mask:ident| $exchange:expr) => {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub(crate) struct $name;

            impl Lanes for $name {
                type Part = $part;
                const LOG: usize = $log;
                type Vector = $vector;

                #[inline(always)]
                unsafe fn load(from: *const Complex<$part>) -> $vector {
                    // SAFETY: as the caller promises.
                    unsafe { $load(from.cast()) }
                }

                #[inline(always)]
                unsafe fn store(to: *mut Complex<$part>, vector: $vector) {
                    // SAFETY: as the caller promises.
                    unsafe { $store(to.cast(), vector) }
                }

                #[inline(always)]
                unsafe fn zero() -> $vector {
                    // SAFETY: as the caller promises.
                    unsafe { $zero() }
                }

                #[inline(always)]
                unsafe fn splat(part: $part) -> $vector {
                    // SAFETY: as the caller promises.
                    unsafe { $splat(part) }
                }

                #[inline(always)]
                unsafe fn multiply_add(a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: as the caller promises.
                    unsafe { $fma(a, b, c) }
                }

                #[inline(always)]
                unsafe fn times_i($v: $vector) -> $vector {
                    // SAFETY: as the caller promises.
                    unsafe { $times_i }
                }

                #[inline(always)]
                unsafe fn parts($v: $vector) -> ($vector, $vector) {
                    // SAFETY: as the caller promises.
                    unsafe { $parts }
                }

                #[inline(always)]
                unsafe fn exchange($w: $vector, $mask: usize) -> $vector {
                    // SAFETY: as the caller promises; a row of the table has 64 bytes.
                    unsafe { $exchange }
                }
            }
        };
    }

    lanes! {
        /// Eight complex64.
        Wide32, f32, 3, __m512, SINGLE, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_setzero_ps, _mm512_set1_ps, _mm512_fmadd_ps,
        |v| {
            let sign = _mm512_set1_epi64(0x8000_0000);
            _mm512_castsi512_ps(_mm512_xor_epi32(_mm512_castps_si512(_mm512_permute_ps::<0xB1>(v)), sign))
        },
        (_mm512_moveldup_ps(v), _mm512_movehdup_ps(v)),
        |v, mask| _mm512_permutexvar_ps(_mm512_loadu_si512(SINGLE[mask & 7].as_ptr().cast()), v)
    }
    lanes! {
        /// Four complex128.
        Wide64, f64, 2, __m512d, DOUBLE, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_setzero_pd, _mm512_set1_pd, _mm512_fmadd_pd,
        |v| {
            let sign = _mm512_set_epi64(0, i64::MIN, 0, i64::MIN, 0, i64::MIN, 0, i64::MIN);
            _mm512_castsi512_pd(_mm512_xor_epi64(_mm512_castpd_si512(_mm512_permute_pd::<0x55>(v)), sign))
        },
        (_mm512_movedup_pd(v), _mm512_permute_pd::<0xFF>(v)),
        |v, mask| {
            let order = _mm512_loadu_si512(DOUBLE[mask & 3].as_ptr().cast());
            _mm512_castps_pd(_mm512_permutexvar_ps(order, _mm512_castpd_ps(v)))
        }
    }
    lanes! {
        /// Four complex64.
        Narrow32, f32, 2, __m256, SINGLE, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_setzero_ps, _mm256_set1_ps, _mm256_fmadd_ps,
        |v| _mm256_xor_ps(_mm256_permute_ps::<0xB1>(v), _mm256_castsi256_ps(_mm256_set1_epi64x(0x8000_0000))),
        (_mm256_moveldup_ps(v), _mm256_movehdup_ps(v)),
        |v, mask| _mm256_permutevar8x32_ps(v, _mm256_loadu_si256(SINGLE[mask & 3].as_ptr().cast()))
    }
    lanes! {
        /// Two complex128.
        Narrow64, f64, 1, __m256d, DOUBLE, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_setzero_pd, _mm256_set1_pd, _mm256_fmadd_pd,
        |v| {
            let sign = _mm256_castsi256_pd(_mm256_set_epi64x(0, i64::MIN, 0, i64::MIN));
            _mm256_xor_pd(_mm256_permute_pd::<0x5>(v), sign)
        },
        (_mm256_movedup_pd(v), _mm256_permute_pd::<0xF>(v)),
        |v, mask| {
            let order = _mm256_loadu_si256(DOUBLE[mask & 1].as_ptr().cast());
            _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), order))
        }
    }
}
