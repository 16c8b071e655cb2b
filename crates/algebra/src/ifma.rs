//! Additions of points, eight at a time, by AVX-512's products of 52 bits (IFMA). Chosen at run time.
//!
//! Values are in limbs of 52 bits, L for N words, with v 2^s in place of v, where s = 52 L - 64 N: products divide by 2^(52 L), so that memory's
//! form of Montgomery comes out again after a division by 2^s. Bounds are in the comments as multiples of the modulus p, k being 2^s.

use std::arch::x86_64::*;

use super::curve::{Affine, Curve};
use super::field::{Field, batch_inverse};
use super::montgomery::{Modulus, Prime};
use cantus_base::instructions::InstructionSet;

/// Additions in a batch, which share an inversion.
pub(super) const BATCH: usize = 2048;

const MASK: u64 = (1 << 52) - 1;

/// Returns whether this processor has what it takes.
pub(super) fn serves() -> bool {
    InstructionSet::best() == InstructionSet::Avx512 && is_x86_feature_detected!("avx512ifma")
}

type Lanes<const L: usize> = [__m512i; L];

/// The modulus in limbs, times a small number.
const fn limbs<const N: usize, const L: usize>(modulus: [u64; N], factor: u64) -> [u64; L] {
    let mut result = [0; L];
    let mut carry = 0_u128;
    let mut limb = 0;
    while limb < L {
        let (at, shift) = (52 * limb / 64, 52 * limb % 64);
        let mut value = if at < N { modulus[at] >> shift } else { 0 };
        if shift > 12 && at + 1 < N {
            value |= modulus[at + 1] << (64 - shift);
        }
        carry += (value & MASK) as u128 * factor as u128;
        result[limb] = carry as u64 & MASK;
        carry >>= 52;
        limb += 1;
    }
    result
}

/// A field's constants.
struct Constants<M, const N: usize, const L: usize>(M);

impl<M: Modulus<N>, const N: usize, const L: usize> Constants<M, N, L> {
    const SHIFT: u32 = 52 * L as u32 - 64 * N as u32;
    const P: [u64; L] = limbs(M::MODULUS, 1);
    const TWO_P: [u64; L] = limbs(M::MODULUS, 2);
    const K_P: [u64; L] = limbs(M::MODULUS, 1 << Self::SHIFT);
    const TWO_K_P: [u64; L] = limbs(M::MODULUS, 2 << Self::SHIFT);
    const MORE_P: [u64; L] = limbs(M::MODULUS, (2 << Self::SHIFT) + 2);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x.cast_signed())
}

/// Brings limbs below 2^52 by carries, which may be negative, except the last.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carried<const L: usize>(mut x: Lanes<L>) -> Lanes<L> {
    let mask = splat(MASK);
    for limb in 0..L - 1 {
        x[limb + 1] = _mm512_add_epi64(x[limb + 1], _mm512_srai_epi64::<52>(x[limb]));
        x[limb] = _mm512_and_si512(x[limb], mask);
    }
    x
}

/// a - b + c.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn difference<const L: usize>(a: &Lanes<L>, b: &Lanes<L>, c: &[u64; L]) -> Lanes<L> {
    let mut result = *a;
    for limb in 0..L {
        result[limb] = _mm512_add_epi64(_mm512_sub_epi64(a[limb], b[limb]), splat(c[limb]));
    }
    carried(result)
}

/// a b / 2^(52 L), below a b / 2^(52 L) + p.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product<M: Modulus<N>, const N: usize, const L: usize>(a: &Lanes<L>, b: &Lanes<L>) -> Lanes<L> {
    let zero = _mm512_setzero_si512();
    let inverse = splat(Prime::<M, N>::INVERSE & MASK);
    let modulus = Constants::<M, N, L>::P;
    let mut t = [zero; L];
    for round in a {
        let mut above = [zero; L];
        for limb in 0..L {
            t[limb] = _mm512_madd52lo_epu64(t[limb], *round, b[limb]);
            above[limb] = _mm512_madd52hi_epu64(above[limb], *round, b[limb]);
        }
        let q = _mm512_madd52lo_epu64(zero, t[0], inverse);
        for limb in 0..L {
            let p = splat(modulus[limb]);
            t[limb] = _mm512_madd52lo_epu64(t[limb], q, p);
            above[limb] = _mm512_madd52hi_epu64(above[limb], q, p);
        }
        let carry = _mm512_srli_epi64::<52>(t[0]);
        for limb in 0..L {
            let next = if limb + 1 < L { t[limb + 1] } else { zero };
            t[limb] = _mm512_add_epi64(next, above[limb]);
        }
        t[0] = _mm512_add_epi64(t[0], carry);
    }
    carried(t)
}

/// Reads word `word` of a coordinate of eight points, each `stride` words from the last.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn words<const N: usize>(points: &[u64], stride: usize, first: usize) -> [__m512i; N] {
    let mut result = [_mm512_setzero_si512(); N];
    for (word, result) in result.iter_mut().enumerate() {
        let at = |lane: usize| points[lane * stride + first + word].cast_signed();
        *result = _mm512_set_epi64(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
    }
    result
}

/// Limbs of v 2^s.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn opened<const N: usize, const L: usize>(words: &[__m512i; N]) -> Lanes<L> {
    let (shift, mask) = (52 * L - 64 * N, splat(MASK));
    let mut result = [_mm512_setzero_si512(); L];
    for (limb, result) in result.iter_mut().enumerate() {
        // The bits of v from 52 limb - s on; below 0 there are none.
        let from = 52 * limb as i64 - shift as i64;
        let (at, by) = (from.div_euclid(64), from.rem_euclid(64) as u32);
        let word = |at: i64| usize::try_from(at).ok().and_then(|at| words.get(at)).copied();
        let mut bits = _mm512_setzero_si512();
        if let Some(low) = word(at) {
            bits = _mm512_srl_epi64(low, _mm_cvtsi32_si128(by.cast_signed()));
        }
        if let Some(high) = word(at + 1).filter(|_| by > 12) {
            bits = _mm512_or_si512(bits, _mm512_sll_epi64(high, _mm_cvtsi32_si128(64 - by.cast_signed())));
        }
        *result = _mm512_and_si512(bits, mask);
    }
    result
}

/// v below the modulus from v 2^s below 3 k p, in words.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn closed<M: Modulus<N>, const N: usize, const L: usize>(x: &Lanes<L>) -> [__m512i; N] {
    let (shift, mask) = (Constants::<M, N, L>::SHIFT, splat(MASK));
    let zero = _mm512_setzero_si512();
    // x + m p is a multiple of 2^s.
    let inverse = splat(Prime::<M, N>::INVERSE & MASK);
    let m = _mm512_and_si512(_mm512_madd52lo_epu64(zero, x[0], inverse), splat((1 << shift) - 1));
    let mut t = *x;
    for limb in 0..L {
        let p = splat(Constants::<M, N, L>::P[limb]);
        t[limb] = _mm512_madd52lo_epu64(t[limb], m, p);
        if limb + 1 < L {
            t[limb + 1] = _mm512_madd52hi_epu64(t[limb + 1], m, p);
        }
    }
    let t = carried(t);
    let (down, up) = (_mm_cvtsi32_si128(shift.cast_signed()), _mm_cvtsi32_si128(52 - shift.cast_signed()));
    let mut value = t;
    for limb in 0..L {
        let high = if limb + 1 < L { _mm512_sll_epi64(t[limb + 1], up) } else { zero };
        value[limb] = _mm512_and_si512(_mm512_or_si512(_mm512_srl_epi64(t[limb], down), high), mask);
    }
    // Below 4 p now.
    for multiple in [Constants::<M, N, L>::TWO_P, Constants::<M, N, L>::P] {
        let mut less = value;
        for limb in 0..L {
            less[limb] = _mm512_sub_epi64(value[limb], splat(multiple[limb]));
        }
        let less = carried(less);
        let negative = _mm512_cmplt_epi64_mask(less[L - 1], zero);
        for limb in 0..L {
            value[limb] = _mm512_mask_blend_epi64(negative, less[limb], value[limb]);
        }
    }
    let mut words = [zero; N];
    for (word, result) in words.iter_mut().enumerate() {
        for (limb, value) in value.iter().enumerate() {
            let at = 52 * limb as i64 - 64 * word as i64;
            if at > -52 && at < 64 {
                let by = _mm_cvtsi32_si128(at.unsigned_abs() as i32);
                let bits = if at < 0 { _mm512_srl_epi64(*value, by) } else { _mm512_sll_epi64(*value, by) };
                *result = _mm512_or_si512(*result, bits);
            }
        }
    }
    words
}

/// Sums of points whose x differ, none of them infinity, in each place of `a` and `b`; up to [`BATCH`] of them, a multiple of 8.
///
/// `N` words and `L` limbs are those of the curve's coordinates.
pub(super) fn add<C, M, const N: usize, const L: usize>(a: &[Affine<C>], b: &[Affine<C>], sums: &mut [Affine<C>])
where
    C: Curve<Base = Prime<M, N>>,
    M: Modulus<N>,
{
    debug_assert!(serves() && a.len() == b.len() && a.len() == sums.len() && a.len().is_multiple_of(8));
    if serves() {
        // SAFETY: the processor has these instructions.
        unsafe {
            add_lanes::<C, M, N, L>(bytemuck::cast_slice(a), bytemuck::cast_slice(b), bytemuck::cast_slice_mut(sums))
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn add_lanes<C, M, const N: usize, const L: usize>(a: &[u64], b: &[u64], sums: &mut [u64])
where
    C: Curve<Base = Prime<M, N>>,
    M: Modulus<N>,
{
    let stride = 2 * N;
    let groups = a.len() / (8 * stride);
    let group = |list: &[u64], place: usize, first: usize| -> Lanes<L> {
        opened(&words::<N>(&list[place * 8 * stride..], stride, first))
    };
    let (k_p, two_k_p, more_p) =
        (Constants::<M, N, L>::K_P, Constants::<M, N, L>::TWO_K_P, Constants::<M, N, L>::MORE_P);
    // Coordinates are below k p, differences below 2 k p; products with them stay below 2 p.
    let one: [__m512i; N] = Prime::<M, N>::ONE.0.map(|word| _mm512_set1_epi64(word.cast_signed()));
    let mut running: Lanes<L> = opened(&one);
    let mut before = Vec::with_capacity(groups);
    let mut runs = Vec::with_capacity(groups);
    for place in 0..groups {
        let run = difference(&group(b, place, 0), &group(a, place, 0), &k_p);
        before.push(running);
        runs.push(run);
        running = product::<M, N, L>(&running, &run);
    }
    let mut lanes = [Prime::<M, N>::ZERO; 8];
    store(&closed::<M, N, L>(&running), bytemuck::cast_slice_mut(&mut lanes), N, 0);
    batch_inverse(&mut lanes);
    let mut inverse: Lanes<L> = opened(&words::<N>(bytemuck::cast_slice(&lanes), N, 0));
    for place in (0..groups).rev() {
        let own = product::<M, N, L>(&inverse, &before[place]);
        inverse = product::<M, N, L>(&inverse, &runs[place]);
        let (x1, x2, y1) = (group(a, place, 0), group(b, place, 0), group(a, place, N));
        let rise = difference(&group(b, place, N), &y1, &k_p);
        let slope = product::<M, N, L>(&rise, &own);
        let square = product::<M, N, L>(&slope, &slope);
        let mut both = x1;
        for limb in 0..L {
            both[limb] = _mm512_add_epi64(x1[limb], x2[limb]);
        }
        // Below (2 k + 2) p.
        let x = difference(&square, &both, &two_k_p);
        let left = difference(&x1, &x, &more_p);
        let y = difference(&product::<M, N, L>(&slope, &left), &y1, &k_p);
        let target = &mut sums[place * 8 * stride..][..8 * stride];
        store(&closed::<M, N, L>(&x), target, stride, 0);
        store(&closed::<M, N, L>(&y), target, stride, N);
    }
}

/// Writes words of eight numbers, each `stride` words from the last.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store<const N: usize>(words: &[__m512i; N], target: &mut [u64], stride: usize, first: usize) {
    for (word, values) in words.iter().enumerate() {
        let mut lanes = [0_u64; 8];
        // SAFETY: there is room for eight.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), *values) };
        for (lane, value) in lanes.into_iter().enumerate() {
            target[lane * stride + first + word] = value;
        }
    }
}
