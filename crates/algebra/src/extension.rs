//! Extensions by a root of a binomial: x^D = W. Second groups of curves and provers' extensions are instances. Multiplication and inverse are written for
//! any degree and root, so a new extension is a row of the macro at the end.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Neg, Sub};

use super::field::{Field, assigning};
use super::kind::FieldKind;
use super::montgomery::{Bls12381Fq, Bn254Fq};
use super::small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};
use cantus_base::listed::Listed;

/// The D-th power of the root that is adjoined.
pub trait Binomial<F, const D: usize>: Copy + Send + Sync + 'static {
    /// W in x^D = W.
    fn root() -> F;
    /// True if W is -1, which saves products.
    const MINUS_ONE: bool = false;
}

/// c_0 + c_1 x + … with x^D = W.
#[repr(transparent)]
pub struct Extension<F, B, const D: usize>(pub [F; D], PhantomData<B>);

impl<F, B, const D: usize> Extension<F, B, D> {
    /// Creates an element from its coefficients, the constant first.
    #[must_use]
    pub const fn new(coefficients: [F; D]) -> Self {
        Self(coefficients, PhantomData)
    }
}

impl<F: Copy, B, const D: usize> Clone for Extension<F, B, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Copy, B, const D: usize> Copy for Extension<F, B, D> {}
impl<F: PartialEq, B, const D: usize> PartialEq for Extension<F, B, D> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<F: Eq, B, const D: usize> Eq for Extension<F, B, D> {}
impl<F: Field, B, const D: usize> Default for Extension<F, B, D> {
    fn default() -> Self {
        Self::new([F::ZERO; D])
    }
}
impl<F: fmt::Debug, B, const D: usize> fmt::Debug for Extension<F, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// SAFETY: transparent over an array of what is Zeroable.
unsafe impl<F: Field, B: Binomial<F, D>, const D: usize> bytemuck::Zeroable for Extension<F, B, D> {}
// SAFETY: transparent over an array of what is Pod.
unsafe impl<F: Field, B: Binomial<F, D>, const D: usize> bytemuck::Pod for Extension<F, B, D> {}

impl<F: Field, B: Binomial<F, D>, const D: usize> Add for Extension<F, B, D> {
    type Output = Self;
    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
        self
    }
}
impl<F: Field, B: Binomial<F, D>, const D: usize> Sub for Extension<F, B, D> {
    type Output = Self;
    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own -= other;
        }
        self
    }
}
impl<F: Field, B: Binomial<F, D>, const D: usize> Neg for Extension<F, B, D> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(self.0.map(|coefficient| -coefficient))
    }
}
impl<F: Field, B: Binomial<F, D>, const D: usize> Mul for Extension<F, B, D> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let mut result = [F::ZERO; D];
        for (i, place) in result.iter_mut().enumerate() {
            let mut around = F::ZERO;
            for j in 0..D {
                if j <= i {
                    *place += a[j] * b[i - j];
                } else {
                    around += a[j] * b[D + i - j];
                }
            }
            *place = if B::MINUS_ONE { *place - around } else { *place + around * B::root() };
        }
        Self::new(result)
    }
}
assigning!([F: Field, B: Binomial<F, D>, const D: usize] Extension<F, B, D>);

impl<F: Field, B: Binomial<F, D>, const D: usize> Field for Extension<F, B, D> {
    const KIND: FieldKind = F::KIND;
    const DEGREE: usize = D * F::DEGREE;
    const WORDS: usize = D * F::WORDS;
    const ZERO: Self = Self::new([F::ZERO; D]);
    const ONE: Self = {
        let mut coefficients = [F::ZERO; D];
        coefficients[0] = F::ONE;
        Self::new(coefficients)
    };

    /// The product of the conjugates by the inverse of the norm, which lies in the field below: a linear system of D equations, solved.
    fn inverse(self) -> Option<Self> {
        if self.is_zero() {
            return None;
        }
        // Column j is self x^j.
        let mut rows = [[F::ZERO; D]; D];
        let mut column = self.0;
        for j in 0..D {
            for (row, value) in rows.iter_mut().zip(column) {
                row[j] = value;
            }
            column.rotate_right(1);
            column[0] *= B::root();
        }
        let mut right = Self::ONE.0;
        for at in 0..D {
            let pivot = (at..D).find(|&row| !rows[row][at].is_zero())?;
            rows.swap(at, pivot);
            right.swap(at, pivot);
            let inverse = rows[at][at].inverse()?;
            for value in &mut rows[at] {
                *value *= inverse;
            }
            right[at] *= inverse;
            for row in 0..D {
                let factor = rows[row][at];
                if row != at && !factor.is_zero() {
                    let source = rows[at];
                    for (value, source) in rows[row].iter_mut().zip(source) {
                        *value -= factor * source;
                    }
                    let source = right[at];
                    right[row] -= factor * source;
                }
            }
        }
        Some(Self::new(right))
    }

    fn from_limbs(limbs: &[u32]) -> Option<Self> {
        if limbs.len() != Self::WORDS {
            return None;
        }
        let mut coefficients = [F::ZERO; D];
        for (coefficient, limbs) in coefficients.iter_mut().zip(limbs.chunks_exact(F::WORDS)) {
            *coefficient = F::from_limbs(limbs)?;
        }
        Some(Self::new(coefficients))
    }

    fn to_limbs(self) -> Vec<u32> {
        self.0.iter().flat_map(|coefficient| coefficient.to_limbs()).listed()
    }

    fn is_reduced(&self) -> bool {
        self.0.iter().all(F::is_reduced)
    }

    fn from_u64(value: u64) -> Self {
        let mut coefficients = [F::ZERO; D];
        coefficients[0] = F::from_u64(value);
        Self::new(coefficients)
    }
}

/// An extension of degree 2.
pub type Quadratic<F, B> = Extension<F, B, 2>;

macro_rules! binomials {
    ($($(#[$doc:meta])* $name:ident, $field:ty, $degree:literal, $root:expr, $minus_one:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl Binomial<$field, $degree> for $name {
            const MINUS_ONE: bool = $minus_one;
            fn root() -> $field {
                $root
            }
        }
    )*};
}
binomials! {
    /// u² = -1 over BN254's coordinates.
    Bn254Root, Bn254Fq, 2, -Bn254Fq::ONE, true;
    /// u² = -1 over BLS12-381's coordinates.
    Bls12381Root, Bls12381Fq, 2, -Bls12381Fq::ONE, true;
    /// x⁴ = 11 over BabyBear.
    BabyBearRoot, BabyBear, 4, BabyBear::from_u64(11), false;
    /// x⁴ = 3 over KoalaBear.
    KoalaBearRoot, KoalaBear, 4, KoalaBear::from_u64(3), false;
    /// x² = 7 over Goldilocks.
    GoldilocksRoot, Goldilocks, 2, Goldilocks::from_u64(7), false;
    /// i² = -1 over Mersenne31.
    Mersenne31Root, Mersenne31, 2, -Mersenne31::ONE, true;
}

/// Coordinates of BN254's second group: u² = -1.
pub type Bn254Fq2 = Quadratic<Bn254Fq, Bn254Root>;
/// Coordinates of BLS12-381's second group: u² = -1.
pub type Bls12381Fq2 = Quadratic<Bls12381Fq, Bls12381Root>;
/// BabyBear's extension of degree 4: x⁴ = 11.
pub type BabyBear4 = Extension<BabyBear, BabyBearRoot, 4>;
/// KoalaBear's extension of degree 4: x⁴ = 3.
pub type KoalaBear4 = Extension<KoalaBear, KoalaBearRoot, 4>;
/// Goldilocks' extension of degree 2: x² = 7.
pub type Goldilocks2 = Extension<Goldilocks, GoldilocksRoot, 2>;
/// The complex numbers over Mersenne31: i² = -1.
pub type Mersenne31Complex = Extension<Mersenne31, Mersenne31Root, 2>;
