//! AVX-512's and AVX2's vectors. `run` selects it by `InstructionSet`. Results of a multiplication may lie between -p and p until they are closed; each
//! function says what it takes. A 32-bit product's quotient is hidden from the compiler, which would otherwise use slower 64-bit multiplications.

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::small::Montgomery31;
use super::{Arithmetic, COUNT, Halving, Lanes};

/// One vector of AVX-512.
#[derive(Clone, Copy)]
pub(crate) struct Avx512<F>(__m512i, PhantomData<F>);

/// Two vectors of AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<F>([__m256i; 2], PhantomData<F>);

/// A factor, and what a product's lower word times the modulus' inverse is by it: the quotient comes from the other operand alone.
#[derive(Clone, Copy)]
pub(crate) struct Factor(u32, u32);

impl Factor {
    #[inline(always)]
    fn of<F: Montgomery31>(x: F) -> Self {
        Self(x.word(), x.word().wrapping_mul(F::INVERSE))
    }
}

impl<F: Montgomery31> Avx512<F> {
    #[inline(always)]
    fn of(x: __m512i) -> Self {
        Self(x, PhantomData)
    }

    #[inline(always)]
    fn set(x: u32) -> __m512i {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe { _mm512_set1_epi32(x.cast_signed()) }
    }

    /// The upper words, brought from between -p and p to below p.
    #[inline(always)]
    fn closed(even: __m512i, odd: __m512i) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let upper = _mm512_mask_shuffle_epi32::<0b11_11_01_01>(odd, 0x5555, even);
            Self::of(_mm512_min_epu32(upper, _mm512_add_epi32(upper, Self::set(F::MODULUS))))
        }
    }

    /// A product's quotient by the modulus, in the lower word. The compiler is kept from seeing that no more counts: it would multiply by 64 bits,
    /// which takes several instructions or a slow one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn quotient(product: __m512i) -> __m512i {
        let mut q = _mm512_mul_epi32(product, Self::set(F::INVERSE));
        // SAFETY: no instruction stands in the text.
        unsafe { asm!("/* {0} */", inout(zmm_reg) q, options(pure, nomem, nostack, preserves_flags)) };
        q
    }

    /// Even elements to the power of 3 or 7: of what lies within -p and p. The last product's reduction is left.
    #[inline(always)]
    fn raised<const EXPONENT: u32>(x: __m512i) -> __m512i {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let p = Self::set(F::MODULUS);
            // Of what lies within -p and p, and within them.
            let product = |a, b| {
                let product = _mm512_mul_epi32(a, b);
                let q = Self::quotient(product);
                _mm512_srli_epi64::<32>(_mm512_sub_epi64(product, _mm512_mul_epi32(q, p)))
            };
            let square = product(x, x);
            if EXPONENT == 3 {
                _mm512_mul_epi32(square, x)
            } else {
                _mm512_mul_epi32(product(square, x), product(square, square))
            }
        }
    }

    /// The product of any 32 bits with a factor.
    #[inline(always)]
    fn product(x: __m512i, by: Factor) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let (factor, p) = (Self::set(by.0), Self::set(F::MODULUS));
            let q = _mm512_mullo_epi32(x, Self::set(by.1));
            let (even, odd) = (_mm512_mul_epu32(x, factor), _mm512_mul_epu32(_mm512_srli_epi64::<32>(x), factor));
            // Less q p: what is left stays in the upper words.
            let even = _mm512_sub_epi64(even, _mm512_mul_epu32(q, p));
            let odd = _mm512_sub_epi64(odd, _mm512_mul_epu32(_mm512_srli_epi64::<32>(q), p));
            Self::closed(even, odd)
        }
    }
}

impl<F: Montgomery31> Arithmetic for Avx512<F> {
    type Element = F;
    type Factor = Factor;

    #[inline(always)]
    fn splat(x: F) -> Self {
        Self::of(Self::set(x.word()))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let sum = _mm512_add_epi32(self.0, other.0);
            Self::of(_mm512_min_epu32(sum, _mm512_sub_epi32(sum, Self::set(F::MODULUS))))
        }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let difference = _mm512_sub_epi32(self.0, other.0);
            Self::of(_mm512_min_epu32(difference, _mm512_add_epi32(difference, Self::set(F::MODULUS))))
        }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512.
        unsafe {
            let (p, inverse) = (Self::set(F::MODULUS), Self::set(F::INVERSE));
            let even = _mm512_mul_epu32(self.0, other.0);
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(self.0), _mm512_srli_epi64::<32>(other.0));
            let (q_even, q_odd) = (_mm512_mul_epu32(even, inverse), _mm512_mul_epu32(odd, inverse));
            let even = _mm512_sub_epi64(even, _mm512_mul_epu32(q_even, p));
            let odd = _mm512_sub_epi64(odd, _mm512_mul_epu32(q_odd, p));
            Self::closed(even, odd)
        }
    }

    #[inline(always)]
    fn factor(x: F) -> Factor {
        Factor::of(x)
    }

    #[inline(always)]
    fn scaled(self, by: Factor) -> Self {
        Self::product(self.0, by)
    }
}

impl<F: Montgomery31> Lanes for Avx512<F> {
    #[inline(always)]
    fn load(from: &[F; COUNT]) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512; `from` has so many words.
        Self::of(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [F; COUNT]) {
        // SAFETY: `Set::run` calls this in code that may use AVX-512; `to` has so many words.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn load_some(from: &[F]) -> Self {
        let mask = ((1_u32 << from.len().min(COUNT)) - 1) as u16;
        // SAFETY: `Set::run` calls this in code that may use AVX-512; what the mask leaves out is not read.
        Self::of(unsafe { _mm512_maskz_loadu_epi32(mask, from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store_some(self, to: &mut [F]) {
        let mask = ((1_u32 << to.len().min(COUNT)) - 1) as u16;
        // SAFETY: `Set::run` calls this in code that may use AVX-512; what the mask leaves out is not written.
        unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), mask, self.0) };
    }

    #[inline(always)]
    fn power<const EXPONENT: u32>(self, plus: F) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512. From -p to below p.
        unsafe {
            let p = Self::set(F::MODULUS);
            let x = _mm512_add_epi32(self.0, Self::set(plus.word().wrapping_sub(F::MODULUS)));
            let even = Self::raised::<EXPONENT>(x);
            let odd = Self::raised::<EXPONENT>(_mm512_srli_epi64::<32>(x));
            let even = _mm512_sub_epi64(even, _mm512_mul_epi32(Self::quotient(even), p));
            let odd = _mm512_sub_epi64(odd, _mm512_mul_epi32(Self::quotient(odd), p));
            Self::closed(even, odd)
        }
    }

    #[inline(always)]
    fn halved(self, by: Halving, sum: Self) -> Self {
        // SAFETY: `Set::run` calls this in code that may use AVX-512. One less than what is to be added, or taken off.
        unsafe {
            let one = Self::set(1);
            let less = _mm512_sub_epi32(self.0, one);
            let high = _mm512_srav_epi32(less, Self::set(by.shift));
            let low = _mm512_andnot_si512(less, Self::set(by.mask()));
            let halved = _mm512_add_epi32(high, _mm512_mullo_epi32(low, Self::set(by.factor)));
            let p = Self::set(F::MODULUS);
            if by.negative {
                let difference = _mm512_sub_epi32(_mm512_sub_epi32(sum.0, one), halved);
                Self::of(_mm512_min_epu32(difference, _mm512_add_epi32(difference, p)))
            } else {
                let sum = _mm512_add_epi32(_mm512_add_epi32(sum.0, one), halved);
                Self::of(_mm512_min_epu32(sum, _mm512_sub_epi32(sum, p)))
            }
        }
    }

    #[inline(always)]
    fn butterfly(self, other: Self, by: Factor) -> (Self, Self) {
        // SAFETY: `Set::run` calls this in code that may use AVX-512. The difference is below 2 p.
        let difference = unsafe { _mm512_add_epi32(_mm512_sub_epi32(self.0, other.0), Self::set(F::MODULUS)) };
        (self.add(other), Self::product(difference, by))
    }

    #[inline(always)]
    fn transpose(square: &mut [Self; COUNT]) {
        // Pairs of words, then of pairs, then of quarters within each four vectors.
        for step in 0..2 {
            let before = *square;
            for i in 0..COUNT {
                // SAFETY: `Set::run` calls this in code that may use AVX-512.
                square[i].0 = unsafe {
                    match (step, i % 4) {
                        (0, 0) => _mm512_unpacklo_epi32(before[i].0, before[i + 1].0),
                        (0, 1) => _mm512_unpackhi_epi32(before[i - 1].0, before[i].0),
                        (0, 2) => _mm512_unpacklo_epi32(before[i].0, before[i + 1].0),
                        (0, _) => _mm512_unpackhi_epi32(before[i - 1].0, before[i].0),
                        (_, 0) => _mm512_unpacklo_epi64(before[i].0, before[i + 2].0),
                        (_, 1) => _mm512_unpackhi_epi64(before[i - 1].0, before[i + 1].0),
                        (_, 2) => _mm512_unpacklo_epi64(before[i - 1].0, before[i + 1].0),
                        (_, _) => _mm512_unpackhi_epi64(before[i - 2].0, before[i].0),
                    }
                };
            }
        }
        // Quarter k of vector 4 i + j is column 4 k + j of rows 4 i to 4 i + 3.
        for j in 0..4 {
            // SAFETY: `Set::run` calls this in code that may use AVX-512.
            unsafe {
                let [a, b, c, d] = [square[j].0, square[4 + j].0, square[8 + j].0, square[12 + j].0];
                let (ab_low, ab_high) =
                    (_mm512_shuffle_i32x4::<0b10_00_10_00>(a, b), _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b));
                let (cd_low, cd_high) =
                    (_mm512_shuffle_i32x4::<0b10_00_10_00>(c, d), _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d));
                square[j] = Self::of(_mm512_shuffle_i32x4::<0b10_00_10_00>(ab_low, cd_low));
                square[4 + j] = Self::of(_mm512_shuffle_i32x4::<0b10_00_10_00>(ab_high, cd_high));
                square[8 + j] = Self::of(_mm512_shuffle_i32x4::<0b11_01_11_01>(ab_low, cd_low));
                square[12 + j] = Self::of(_mm512_shuffle_i32x4::<0b11_01_11_01>(ab_high, cd_high));
            }
        }
    }
}

impl<F: Montgomery31> Avx2<F> {
    #[inline(always)]
    fn of(x: [__m256i; 2]) -> Self {
        Self(x, PhantomData)
    }

    #[inline(always)]
    fn set(x: u32) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe { _mm256_set1_epi32(x.cast_signed()) }
    }

    #[inline(always)]
    fn sum(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let sum = _mm256_add_epi32(a, b);
            _mm256_min_epu32(sum, _mm256_sub_epi32(sum, Self::set(F::MODULUS)))
        }
    }

    #[inline(always)]
    fn difference(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let difference = _mm256_sub_epi32(a, b);
            _mm256_min_epu32(difference, _mm256_add_epi32(difference, Self::set(F::MODULUS)))
        }
    }

    #[inline(always)]
    fn product(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let (p, inverse) = (Self::set(F::MODULUS), Self::set(F::INVERSE));
            let even = _mm256_mul_epu32(a, b);
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            let (q_even, q_odd) = (_mm256_mul_epu32(even, inverse), _mm256_mul_epu32(odd, inverse));
            let even = _mm256_sub_epi64(even, _mm256_mul_epu32(q_even, p));
            let odd = _mm256_sub_epi64(odd, _mm256_mul_epu32(q_odd, p));
            Self::closed(even, odd)
        }
    }

    /// As [`Avx512::quotient`].
    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotient(product: __m256i) -> __m256i {
        let mut q = _mm256_mul_epi32(product, Self::set(F::INVERSE));
        // SAFETY: no instruction stands in the text.
        unsafe { asm!("/* {0} */", inout(ymm_reg) q, options(pure, nomem, nostack, preserves_flags)) };
        q
    }

    /// As [`Avx512::raised`].
    #[inline(always)]
    fn raised<const EXPONENT: u32>(x: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let p = Self::set(F::MODULUS);
            let product = |a, b| {
                let product = _mm256_mul_epi32(a, b);
                let q = Self::quotient(product);
                _mm256_srli_epi64::<32>(_mm256_sub_epi64(product, _mm256_mul_epi32(q, p)))
            };
            let square = product(x, x);
            if EXPONENT == 3 {
                _mm256_mul_epi32(square, x)
            } else {
                _mm256_mul_epi32(product(square, x), product(square, square))
            }
        }
    }

    #[inline(always)]
    fn power_half<const EXPONENT: u32>(x: __m256i, plus: F) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2. From -p to below p.
        unsafe {
            let p = Self::set(F::MODULUS);
            let x = _mm256_add_epi32(x, Self::set(plus.word().wrapping_sub(F::MODULUS)));
            let even = Self::raised::<EXPONENT>(x);
            let odd = Self::raised::<EXPONENT>(_mm256_srli_epi64::<32>(x));
            let even = _mm256_sub_epi64(even, _mm256_mul_epi32(Self::quotient(even), p));
            let odd = _mm256_sub_epi64(odd, _mm256_mul_epi32(Self::quotient(odd), p));
            Self::closed(even, odd)
        }
    }

    /// As [`Avx512::halved`].
    #[inline(always)]
    fn halved_half(x: __m256i, by: Halving, sum: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let (one, p) = (Self::set(1), Self::set(F::MODULUS));
            let less = _mm256_sub_epi32(x, one);
            let high = _mm256_srav_epi32(less, Self::set(by.shift));
            let low = _mm256_andnot_si256(less, Self::set(by.mask()));
            let halved = _mm256_add_epi32(high, _mm256_mullo_epi32(low, Self::set(by.factor)));
            if by.negative {
                let difference = _mm256_sub_epi32(_mm256_sub_epi32(sum, one), halved);
                _mm256_min_epu32(difference, _mm256_add_epi32(difference, p))
            } else {
                let sum = _mm256_add_epi32(_mm256_add_epi32(sum, one), halved);
                _mm256_min_epu32(sum, _mm256_sub_epi32(sum, p))
            }
        }
    }

    /// a - b, for b below the modulus, times a factor.
    #[inline(always)]
    fn turned(a: __m256i, b: __m256i, by: Factor) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        Self::scaled_half(unsafe { _mm256_add_epi32(_mm256_sub_epi32(a, b), Self::set(F::MODULUS)) }, by)
    }

    /// As [`Avx512::closed`].
    #[inline(always)]
    fn closed(even: __m256i, odd: __m256i) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let upper = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
            _mm256_min_epu32(upper, _mm256_add_epi32(upper, Self::set(F::MODULUS)))
        }
    }

    /// As [`Avx512::product`].
    #[inline(always)]
    fn scaled_half(x: __m256i, by: Factor) -> __m256i {
        // SAFETY: `Set::run` calls this in code that may use AVX2.
        unsafe {
            let (factor, p) = (Self::set(by.0), Self::set(F::MODULUS));
            let q = _mm256_mullo_epi32(x, Self::set(by.1));
            let (even, odd) = (_mm256_mul_epu32(x, factor), _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), factor));
            let even = _mm256_sub_epi64(even, _mm256_mul_epu32(q, p));
            let odd = _mm256_sub_epi64(odd, _mm256_mul_epu32(_mm256_srli_epi64::<32>(q), p));
            Self::closed(even, odd)
        }
    }
}

impl<F: Montgomery31> Arithmetic for Avx2<F> {
    type Element = F;
    type Factor = Factor;

    #[inline(always)]
    fn splat(x: F) -> Self {
        Self::of([Self::set(x.word()); 2])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::of([Self::sum(self.0[0], other.0[0]), Self::sum(self.0[1], other.0[1])])
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::of([Self::difference(self.0[0], other.0[0]), Self::difference(self.0[1], other.0[1])])
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::of([Self::product(self.0[0], other.0[0]), Self::product(self.0[1], other.0[1])])
    }

    #[inline(always)]
    fn factor(x: F) -> Factor {
        Factor::of(x)
    }

    #[inline(always)]
    fn scaled(self, by: Factor) -> Self {
        Self::of([Self::scaled_half(self.0[0], by), Self::scaled_half(self.0[1], by)])
    }
}

impl<F: Montgomery31> Lanes for Avx2<F> {
    #[inline(always)]
    fn load(from: &[F; COUNT]) -> Self {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: `Set::run` calls this in code that may use AVX2; `from` has so many words.
        Self::of(unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] })
    }

    #[inline(always)]
    fn store(self, to: &mut [F; COUNT]) {
        let to = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: `Set::run` calls this in code that may use AVX2; `to` has so many words.
        unsafe {
            _mm256_storeu_si256(to, self.0[0]);
            _mm256_storeu_si256(to.add(1), self.0[1]);
        }
    }

    #[inline(always)]
    fn power<const EXPONENT: u32>(self, plus: F) -> Self {
        Self::of([Self::power_half::<EXPONENT>(self.0[0], plus), Self::power_half::<EXPONENT>(self.0[1], plus)])
    }

    #[inline(always)]
    fn halved(self, by: Halving, sum: Self) -> Self {
        Self::of([Self::halved_half(self.0[0], by, sum.0[0]), Self::halved_half(self.0[1], by, sum.0[1])])
    }

    #[inline(always)]
    fn butterfly(self, other: Self, by: Factor) -> (Self, Self) {
        let right = [Self::turned(self.0[0], other.0[0], by), Self::turned(self.0[1], other.0[1], by)];
        (self.add(other), Self::of(right))
    }

    #[inline(always)]
    fn transpose(square: &mut [Self; COUNT]) {
        // Four squares of eight, of which two change places.
        let before = *square;
        for place in 0..4 {
            let (rows, half) = (8 * (place / 2), place % 2);
            let (mut pairs, mut fours) = ([before[0].0[0]; 8], [before[0].0[0]; 8]);
            // SAFETY: `Set::run` calls this in code that may use AVX2.
            unsafe {
                for i in (0..8).step_by(2) {
                    let (a, b) = (before[rows + i].0[half], before[rows + i + 1].0[half]);
                    (pairs[i], pairs[i + 1]) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
                }
                for i in [0, 1, 4, 5] {
                    let (a, b) = (pairs[i], pairs[i + 2]);
                    let to = i + i % 4;
                    (fours[to], fours[to + 1]) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
                }
                for i in 0..4 {
                    let (a, b) = (fours[i], fours[4 + i]);
                    square[8 * half + i].0[rows / 8] = _mm256_permute2x128_si256::<0x20>(a, b);
                    square[8 * half + 4 + i].0[rows / 8] = _mm256_permute2x128_si256::<0x31>(a, b);
                }
            }
        }
    }
}
