//! The operations of every field. Whatever is generic over fields is written against `Field` and `PrimeField`. Memory is that of the kernels, word by word,
//! so tensors and host slices are the same bytes. An inverse of 0 is `None`, or stays 0 in a batch.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::kind::FieldKind;
use cantus_base::listed::Listed;

/// Elements of a finite field. Memory is that of the kernels: words of 32 bits, the least significant first, in Montgomery's form where
/// [`FieldKind::is_montgomery`] says so.
pub trait Field:
    Copy
    + Debug
    + Default
    + PartialEq
    + Eq
    + Send
    + Sync
    + bytemuck::Pod
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// The prime field that it is made of.
    const KIND: FieldKind;
    /// Elements of the prime field in one of these.
    const DEGREE: usize;
    /// 32-bit words of an element.
    const WORDS: usize;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// Its square.
    #[must_use]
    fn square(self) -> Self {
        self * self
    }

    /// Twice itself.
    #[must_use]
    fn double(self) -> Self {
        self + self
    }

    /// Its inverse; `None` for 0.
    #[must_use]
    fn inverse(self) -> Option<Self>;

    /// Returns whether it is 0.
    #[must_use]
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Its power; the exponent's least significant word comes first.
    #[must_use]
    fn pow(self, exponent: &[u64]) -> Self {
        let mut result = Self::ONE;
        for word in exponent.iter().rev() {
            for bit in (0..64).rev() {
                result = result.square();
                if word >> bit & 1 == 1 {
                    result *= self;
                }
            }
        }
        result
    }

    /// Converts a value in 32-bit limbs, the least significant first, and an extension's coefficients one after the other; `None` unless there
    /// are [`Field::WORDS`] limbs and the values are below the modulus.
    #[must_use]
    fn from_limbs(limbs: &[u32]) -> Option<Self>;

    /// Its value in 32-bit limbs, the least significant first.
    #[must_use]
    fn to_limbs(self) -> Vec<u32>;

    /// Returns whether the memory is that of an element: below the modulus.
    #[must_use]
    fn is_reduced(&self) -> bool;

    /// Converts a small number.
    #[must_use]
    fn from_u64(value: u64) -> Self;
}

/// A field of prime order.
pub trait PrimeField: Field {
    /// The least generator of the multiplicative group.
    const GENERATOR: u64;

    /// Converts any value in 32-bit limbs, the least significant first, taken modulo the order.
    #[must_use]
    fn reduced_from_limbs(limbs: &[u32]) -> Self {
        let shift = Self::from_u64(1 << 32);
        limbs.iter().rev().fold(Self::ZERO, |sum, &limb| sum * shift + Self::from_u64(u64::from(limb)))
    }

    /// A primitive root of unity of order 2^`log`, the power of [`PrimeField::GENERATOR`]; `None` above the two-adicity.
    #[must_use]
    fn root_of_unity(log: u32) -> Option<Self> {
        if log > Self::KIND.two_adicity() {
            return None;
        }
        let mut exponent: Vec<u64> = Self::KIND
            .modulus()
            .chunks(2)
            .map(|pair| u64::from(pair[0]) | pair.get(1).map_or(0, |&high| u64::from(high) << 32))
            .listed();
        if let Some(low) = exponent.first_mut() {
            *low -= 1;
        }
        let places = exponent.len();
        for _ in 0..log {
            for at in 0..places {
                let above = exponent.get(at + 1).map_or(0, |next| next & 1);
                exponent[at] = exponent[at] >> 1 | above << 63;
            }
        }
        Some(Self::from_u64(Self::GENERATOR).pow(&exponent))
    }
}

/// `first` times the powers of a base, from the power 0 on.
pub fn powers<F: Field>(base: F, first: F, count: usize) -> Vec<F> {
    let mut power = first;
    let next = |_| {
        let own = power;
        power *= base;
        own
    };
    (0..count).map(next).listed()
}

/// Inverts all by one inversion (Montgomery's trick); 0 stays 0.
pub fn batch_inverse<F: Field>(values: &mut [F]) {
    let mut products = Vec::with_capacity(values.len());
    let mut product = F::ONE;
    for &value in values.iter() {
        products.push(product);
        if !value.is_zero() {
            product *= value;
        }
    }
    let mut inverse = product.inverse().unwrap_or(F::ZERO);
    for (value, before) in values.iter_mut().zip(products).rev() {
        if !value.is_zero() {
            let own = inverse * before;
            inverse *= *value;
            *value = own;
        }
    }
}

/// The operators by assignment, from those that return.
macro_rules! assigning {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> std::ops::AddAssign for $type {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl<$($generics)*> std::ops::SubAssign for $type {
            #[inline(always)]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl<$($generics)*> std::ops::MulAssign for $type {
            #[inline(always)]
            fn mul_assign(&mut self, other: Self) {
                *self = *self * other;
            }
        }
    };
}
pub(super) use assigning;
