//! Fields of one word: BabyBear, KoalaBear, Mersenne31 and Goldilocks. Provers' fields. BabyBear and KoalaBear are in Montgomery's form, Mersenne31 and
//! Goldilocks are not, and memory has the same form as the type: `FieldKind::is_montgomery` says which.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

use super::field::{Field, PrimeField, assigning};
use super::kind::FieldKind;
use cantus_base::listed::Listed;

/// Operators, and the trait, by the functions of each type.
macro_rules! small {
    ($name:ident, $word:ty, $words:literal, $modulus:expr, $generator:literal, $one:expr) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.value())
            }
        }
        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(Self::sum(self.0, other.0))
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                let (difference, borrow) = self.0.overflowing_sub(other.0);
                Self(if borrow { difference.wrapping_add($modulus) } else { difference })
            }
        }
        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self(if self.0 == 0 { 0 } else { $modulus - self.0 })
            }
        }
        impl Mul for $name {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(Self::product(self.0, other.0))
            }
        }
        assigning!([] $name);

        impl Field for $name {
            const KIND: FieldKind = FieldKind::$name;
            const DEGREE: usize = 1;
            const WORDS: usize = $words;
            const ZERO: Self = Self(0);
            const ONE: Self = Self($one);

            fn inverse(self) -> Option<Self> {
                (!self.is_zero()).then(|| self.pow(&[$modulus as u64 - 2]))
            }

            fn from_limbs(limbs: &[u32]) -> Option<Self> {
                if limbs.len() != $words {
                    return None;
                }
                let value = limbs.iter().rev().fold(0_u64, |value, &limb| value << 32 | u64::from(limb));
                (value < $modulus as u64).then(|| Self::of(value as $word))
            }

            fn to_limbs(self) -> Vec<u32> {
                let value = u64::from(self.value());
                [value as u32, (value >> 32) as u32].into_iter().take($words).listed()
            }

            fn is_reduced(&self) -> bool {
                self.0 < $modulus
            }

            fn from_u64(value: u64) -> Self {
                Self::of((value % $modulus as u64) as $word)
            }
        }

        impl PrimeField for $name {
            const GENERATOR: u64 = $generator;
        }

        impl $name {
            /// The value, below the order.
            ///
            /// ```
            #[doc = concat!("use cantus::zk::{Field, ", stringify!($name), "};")]
            ///
            #[doc = concat!("assert_eq!(", stringify!($name), "::from_u64(5).value(), 5);")]
            /// ```
            #[must_use]
            #[inline(always)]
            pub fn value(self) -> $word {
                Self::canonical(self.0)
            }
        }
    };
}

/// Fields of 31 bits in Montgomery's form, with 2^32, one word in memory: what vectors are made for.
pub(super) trait Montgomery31: PrimeField {
    const MODULUS: u32;
    /// 1 / the modulus, modulo 2^32.
    #[cfg(target_arch = "x86_64")]
    const INVERSE: u32;
    /// The word in memory.
    fn word(self) -> u32;
    /// The element of a word below the modulus.
    fn of_word(word: u32) -> Self;
}

/// Two fields of 31 bits in Montgomery's form, with 2^32.
macro_rules! montgomery31 {
    ($(#[$doc:meta])* $name:ident, $modulus:literal, $generator:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name(pub(super) u32);

        impl $name {
            const INVERSE: u32 = {
                let mut inverse = 1_u32;
                let mut i = 0;
                while i < 5 {
                    inverse = inverse.wrapping_mul(2_u32.wrapping_sub(($modulus as u32).wrapping_mul(inverse)));
                    i += 1;
                }
                inverse
            };

            #[inline(always)]
            fn sum(a: u32, b: u32) -> u32 {
                let sum = a + b;
                sum.min(sum.wrapping_sub($modulus))
            }

            #[inline(always)]
            fn product(a: u32, b: u32) -> u32 {
                Self::reduced(u64::from(a) * u64::from(b))
            }

            /// x / 2^32, for x below 2^32 times the order.
            #[inline(always)]
            fn reduced(x: u64) -> u32 {
                let q = (x as u32).wrapping_mul(Self::INVERSE);
                let high = (x >> 32) as u32;
                let other = (u64::from(q) * $modulus >> 32) as u32;
                let difference = high.wrapping_sub(other);
                difference.min(difference.wrapping_add($modulus))
            }

            #[inline(always)]
            fn canonical(word: u32) -> u32 {
                Self::reduced(u64::from(word))
            }

            #[inline(always)]
            const fn of(value: u32) -> Self {
                Self((((value as u64) << 32) % $modulus) as u32)
            }
        }
        small!($name, u32, 1, $modulus, $generator, ((1_u64 << 32) % $modulus) as u32);

        impl Montgomery31 for $name {
            const MODULUS: u32 = $modulus;
            #[cfg(target_arch = "x86_64")]
            const INVERSE: u32 = Self::INVERSE;

            #[inline(always)]
            fn word(self) -> u32 {
                self.0
            }

            #[inline(always)]
            fn of_word(word: u32) -> Self {
                Self(word)
            }
        }
    };
}

montgomery31! {
    /// An element of the field of order 15 · 2^27 + 1.
    ///
    /// ```
    /// use cantus::zk::{BabyBear, Field};
    ///
    /// let x = BabyBear::from_u64(2_013_265_920);
    /// assert_eq!(x + BabyBear::ONE, BabyBear::ZERO);
    /// ```
    BabyBear, 0x7800_0001, 31
}
montgomery31! {
    /// An element of the field of order 127 · 2^24 + 1.
    KoalaBear, 0x7f00_0001, 3
}

/// An element of the field of order 2^31 - 1.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Mersenne31(pub(super) u32);

const MERSENNE31: u32 = (1 << 31) - 1;

impl Mersenne31 {
    #[inline(always)]
    fn sum(a: u32, b: u32) -> u32 {
        let sum = a + b;
        sum.min(sum.wrapping_sub(MERSENNE31))
    }

    #[inline(always)]
    fn product(a: u32, b: u32) -> u32 {
        let product = u64::from(a) * u64::from(b);
        Self::sum(product as u32 & MERSENNE31, (product >> 31) as u32)
    }

    #[inline(always)]
    fn canonical(word: u32) -> u32 {
        word
    }

    const fn of(value: u32) -> Self {
        Self(value)
    }
}
small!(Mersenne31, u32, 1, MERSENNE31, 7, 1);

/// An element of the field of order 2^64 - 2^32 + 1.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Goldilocks(pub(super) u64);

const GOLDILOCKS: u64 = 0xffff_ffff_0000_0001;
/// 2^64 modulo the order.
const EPSILON: u64 = 0xffff_ffff;

impl Goldilocks {
    #[inline(always)]
    fn sum(a: u64, b: u64) -> u64 {
        let (sum, carry) = a.overflowing_add(b);
        let (reduced, borrow) = sum.overflowing_sub(GOLDILOCKS);
        if carry || !borrow { reduced } else { sum }
    }

    #[inline(always)]
    fn product(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let (low, high) = (product as u64, (product >> 64) as u64);
        // 2^96 is -1, 2^64 is 2^32 - 1.
        let (mut result, borrow) = low.overflowing_sub(high >> 32);
        if borrow {
            result = result.wrapping_sub(EPSILON);
        }
        let (sum, carry) = result.overflowing_add((high & EPSILON) * EPSILON);
        let sum = if carry { sum.wrapping_add(EPSILON) } else { sum };
        if sum >= GOLDILOCKS { sum - GOLDILOCKS } else { sum }
    }

    #[inline(always)]
    fn canonical(word: u64) -> u64 {
        word
    }

    const fn of(value: u64) -> Self {
        Self(value)
    }
}
small!(Goldilocks, u64, 2, GOLDILOCKS, 7, 1);
