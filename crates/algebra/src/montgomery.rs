//! Fields of 254 to 381 bits in Montgomery's form, by 64-bit words. The fields of BN254 and BLS12-381. A value is always reduced below the order, in
//! Montgomery's form, which is also what the tensors' memory has. The order's highest bit is free, and the multiplication relies on that.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Neg, Sub};

use super::field::{Field, PrimeField, assigning};
use super::kind::FieldKind;
use cantus_base::listed::Listed;

/// The constants of a field.
pub trait Modulus<const N: usize>: Copy + Send + Sync + 'static {
    /// Its name as data.
    const KIND: FieldKind;
    /// Its order; the highest bit is free.
    const MODULUS: [u64; N];
    /// The least generator of the multiplicative group.
    const GENERATOR: u64;
}

/// An element of a field of prime order in `N` words of 64 bits, times 2^(64 N) (Montgomery's form), below the order.
///
/// ```
/// use cantus::zk::{Bn254Fr, Field};
///
/// let three = Bn254Fr::from_u64(3);
/// assert_eq!(three * three.inverse().unwrap(), Bn254Fr::ONE);
/// assert_eq!((three - three.double()).to_limbs()[0], 0xf000_0001 - 3);
/// ```
#[repr(transparent)]
pub struct Prime<M, const N: usize>(pub(super) [u64; N], PhantomData<M>);

impl<M, const N: usize> Clone for Prime<M, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const N: usize> Copy for Prime<M, N> {}
impl<M, const N: usize> PartialEq for Prime<M, N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<M, const N: usize> Eq for Prime<M, N> {}
impl<M: Modulus<N>, const N: usize> std::hash::Hash for Prime<M, N> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<M, const N: usize> Default for Prime<M, N> {
    fn default() -> Self {
        Self([0; N], PhantomData)
    }
}
impl<M: Modulus<N>, const N: usize> fmt::Debug for Prime<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.canonical().iter().rev().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

// SAFETY: transparent over words, of which every pattern is a value (though not one below the order).
unsafe impl<M: Modulus<N>, const N: usize> bytemuck::Zeroable for Prime<M, N> {}
// SAFETY: transparent over words, without padding, and every pattern is a value.
unsafe impl<M: Modulus<N>, const N: usize> bytemuck::Pod for Prime<M, N> {}

/// a + b c + d, and its high word.
#[inline(always)]
const fn mac(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + d as u128;
    (sum as u64, (sum >> 64) as u64)
}

#[inline(always)]
const fn add_carry(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(carry as u64);
    (sum, first | second)
}

#[inline(always)]
const fn subtract<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let mut result = [0; N];
    let mut borrow = false;
    let mut i = 0;
    while i < N {
        let (difference, first) = a[i].overflowing_sub(b[i]);
        let (difference, second) = difference.overflowing_sub(borrow as u64);
        result[i] = difference;
        borrow = first | second;
        i += 1;
    }
    (result, borrow)
}

#[inline(always)]
const fn add_words<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut result = [0; N];
    let mut carry = false;
    let mut i = 0;
    while i < N {
        (result[i], carry) = add_carry(a[i], b[i], carry);
        i += 1;
    }
    result
}

#[inline(always)]
const fn masked<const N: usize>(a: &[u64; N], mask: u64) -> [u64; N] {
    let mut result = [0; N];
    let mut i = 0;
    while i < N {
        result[i] = a[i] & mask;
        i += 1;
    }
    result
}

/// `a` less the modulus where it is at least that.
#[inline(always)]
const fn reduce_once<const N: usize>(a: [u64; N], modulus: &[u64; N]) -> [u64; N] {
    let (reduced, borrow) = subtract(&a, modulus);
    let keep = (borrow as u64).wrapping_neg();
    let mut result = [0; N];
    let mut i = 0;
    while i < N {
        result[i] = (a[i] & keep) | (reduced[i] & !keep);
        i += 1;
    }
    result
}

/// -1 / `low` modulo 2^64, by Newton's iteration.
const fn negative_inverse(low: u64) -> u64 {
    let mut inverse = 1_u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(low.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg()
}

/// 2^`exponent` modulo the modulus.
const fn power_of_two<const N: usize>(exponent: usize, modulus: &[u64; N]) -> [u64; N] {
    let mut value = [0; N];
    value[0] = 1;
    let mut i = 0;
    while i < exponent {
        value = reduce_once(add_words(&value, &value), modulus);
        i += 1;
    }
    value
}

/// a b / 2^(64 N) modulo the modulus, whose highest bit is free: rounds of one word of b, with no carry beyond N words.
#[inline(always)]
const fn product<const N: usize>(a: &[u64; N], b: &[u64; N], modulus: &[u64; N], inverse: u64) -> [u64; N] {
    let mut t = [0_u64; N];
    let mut i = 0;
    while i < N {
        let (low, mut carry) = mac(t[0], a[0], b[i], 0);
        let m = low.wrapping_mul(inverse);
        let (_, mut other) = mac(low, m, modulus[0], 0);
        let mut j = 1;
        while j < N {
            let (word, next) = mac(t[j], a[j], b[i], carry);
            carry = next;
            let (word, next) = mac(word, m, modulus[j], other);
            other = next;
            t[j - 1] = word;
            j += 1;
        }
        t[N - 1] = carry + other;
        i += 1;
    }
    reduce_once(t, modulus)
}

impl<M: Modulus<N>, const N: usize> Prime<M, N> {
    pub(super) const INVERSE: u64 = negative_inverse(M::MODULUS[0]);
    const R: [u64; N] = power_of_two(64 * N, &M::MODULUS);
    const R2: [u64; N] = power_of_two(128 * N, &M::MODULUS);

    /// Converts from words in Montgomery's form, as arkworks' `Fp` holds them; `None` when they are not below the order.
    ///
    /// ```
    /// use cantus::zk::{Bn254Fr, Field};
    ///
    /// let x = Bn254Fr::from_u64(7);
    /// assert_eq!(Bn254Fr::from_montgomery(x.to_montgomery()), Some(x));
    /// assert_eq!(Bn254Fr::from_montgomery([u64::MAX; 4]), None);
    /// ```
    #[must_use]
    pub fn from_montgomery(words: [u64; N]) -> Option<Self> {
        let value = Self(words, PhantomData);
        value.is_reduced().then_some(value)
    }

    /// The words in Montgomery's form.
    #[must_use]
    pub fn to_montgomery(self) -> [u64; N] {
        self.0
    }

    /// The value in 64-bit words, the least significant first.
    #[must_use]
    pub fn canonical(self) -> [u64; N] {
        let mut one = [0; N];
        one[0] = 1;
        product(&self.0, &one, &M::MODULUS, Self::INVERSE)
    }

    /// Converts a value in 64-bit words, which the caller knows to be below the order.
    pub(super) const fn of(words: [u64; N]) -> Self {
        Self(product(&words, &Self::R2, &M::MODULUS, Self::INVERSE), PhantomData)
    }

    /// The word that has every bit below the order's second half: which of x and -x is the larger.
    pub(super) fn is_large(self) -> bool {
        let (own, other) = (self.canonical(), (-self).canonical());
        own.iter().rev().cmp(other.iter().rev()).is_gt()
    }

    /// A root where there is one; the order is 3 modulo 4.
    pub(super) fn square_root(self) -> Option<Self> {
        // (p + 1) / 4.
        let mut exponent = M::MODULUS;
        exponent[0] += 1;
        for at in 0..N {
            let above = exponent.get(at + 1).copied().unwrap_or(0);
            exponent[at] = exponent[at] >> 2 | above << 62;
        }
        let root = Field::pow(self, &exponent);
        (root.square() == self).then_some(root)
    }
}

impl<M: Modulus<N>, const N: usize> Add for Prime<M, N> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(reduce_once(add_words(&self.0, &other.0), &M::MODULUS), PhantomData)
    }
}
impl<M: Modulus<N>, const N: usize> Sub for Prime<M, N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (difference, borrow) = subtract(&self.0, &other.0);
        let lifted = masked(&M::MODULUS, u64::from(borrow).wrapping_neg());
        Self(add_words(&difference, &lifted), PhantomData)
    }
}
impl<M: Modulus<N>, const N: usize> Neg for Prime<M, N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        if self.0 == [0; N] { self } else { Self(subtract(&M::MODULUS, &self.0).0, PhantomData) }
    }
}
impl<M: Modulus<N>, const N: usize> Mul for Prime<M, N> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(product(&self.0, &other.0, &M::MODULUS, Self::INVERSE), PhantomData)
    }
}
assigning!([M: Modulus<N>, const N: usize] Prime<M, N>);

impl<M: Modulus<N>, const N: usize> Field for Prime<M, N> {
    const KIND: FieldKind = M::KIND;
    const DEGREE: usize = 1;
    const WORDS: usize = 2 * N;
    const ZERO: Self = Self([0; N], PhantomData);
    const ONE: Self = Self(Self::R, PhantomData);

    fn inverse(self) -> Option<Self> {
        inverse(&self.0, &M::MODULUS).map(|words| {
            // The inverse of x R is 1 / (x R): two factors of R² / R bring it to R / x.
            Self::of(product(&words, &Self::R2, &M::MODULUS, Self::INVERSE))
        })
    }

    fn from_limbs(limbs: &[u32]) -> Option<Self> {
        if limbs.len() != 2 * N {
            return None;
        }
        let mut words = [0; N];
        for (word, pair) in words.iter_mut().zip(limbs.chunks_exact(2)) {
            *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        subtract(&words, &M::MODULUS).1.then(|| Self::of(words))
    }

    fn to_limbs(self) -> Vec<u32> {
        self.canonical().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).listed()
    }

    fn is_reduced(&self) -> bool {
        subtract(&self.0, &M::MODULUS).1
    }

    fn from_u64(value: u64) -> Self {
        let mut words = [0; N];
        words[0] = value;
        Self::of(words)
    }
}

impl<M: Modulus<N>, const N: usize> PrimeField for Prime<M, N> {
    const GENERATOR: u64 = M::GENERATOR;
}

/// 1 / a modulo an odd modulus, by the binary extended algorithm of Euclid; `None` for 0.
fn inverse<const N: usize>(a: &[u64; N], modulus: &[u64; N]) -> Option<[u64; N]> {
    if *a == [0; N] {
        return None;
    }
    let one = {
        let mut one = [0; N];
        one[0] = 1;
        one
    };
    let halve = |x: &mut [u64; N], top: u64| {
        for i in 0..N {
            let above = x.get(i + 1).copied().unwrap_or(top);
            x[i] = x[i] >> 1 | above << 63;
        }
    };
    // The highest bit of the modulus is free, so that a sum of two stays within the words.
    let halve_modulo = |x: &mut [u64; N]| {
        if x[0] & 1 == 1 {
            *x = add_words(x, modulus);
        }
        halve(x, 0);
    };
    let minus = |x: &[u64; N], y: &[u64; N]| {
        let (difference, borrow) = subtract(x, y);
        if borrow { add_words(&difference, modulus) } else { difference }
    };
    let (mut u, mut v, mut b, mut c) = (*a, *modulus, one, [0; N]);
    while u != one && v != one {
        while u[0] & 1 == 0 {
            halve(&mut u, 0);
            halve_modulo(&mut b);
        }
        while v[0] & 1 == 0 {
            halve(&mut v, 0);
            halve_modulo(&mut c);
        }
        let (difference, borrow) = subtract(&u, &v);
        if borrow {
            v = subtract(&v, &u).0;
            c = minus(&c, &b);
        } else {
            u = difference;
            b = minus(&b, &c);
        }
    }
    Some(if u == one { b } else { c })
}

macro_rules! primes {
    ($($(#[$doc:meta])* $name:ident, $marker:ident, $words:literal, $generator:literal, [$($word:literal),*];)*) => {$(
        #[doc = concat!("What tells [`", stringify!($name), "`] from other fields.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $marker;
        impl Modulus<$words> for $marker {
            const KIND: FieldKind = FieldKind::$name;
            const MODULUS: [u64; $words] = [$($word),*];
            const GENERATOR: u64 = $generator;
        }
        $(#[$doc])*
        pub type $name = Prime<$marker, $words>;
    )*};
}

primes! {
    /// Scalars of the curve BN254 (alt_bn128), as in EIP-196: 254 bits.
    Bn254Fr, Bn254FrModulus, 4, 5,
    [0x43e1_f593_f000_0001, 0x2833_e848_79b9_7091, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];
    /// Coordinates of the curve BN254 (alt_bn128), as in EIP-196: 254 bits.
    Bn254Fq, Bn254FqModulus, 4, 3,
    [0x3c20_8c16_d87c_fd47, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];
    /// Scalars of the curve BLS12-381: 255 bits.
    Bls12381Fr, Bls12381FrModulus, 4, 7,
    [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
    /// Coordinates of the curve BLS12-381: 381 bits.
    Bls12381Fq, Bls12381FqModulus, 6, 2,
    [0xb9fe_ffff_ffff_aaab, 0x1eab_fffe_b153_ffff, 0x6730_d2a0_f6b0_f624, 0x6477_4b84_f385_12bf, 0x4b1b_a7b6_434b_acd7, 0x1a01_11ea_397f_e69a];
}
