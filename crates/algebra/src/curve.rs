//! Curves y² = x³ + b: points in affine and in Jacobian coordinates, exact for all of them. Sums, encodings and the CPU's operations compute with it.
//! Formulas are complete by their exceptions: equal points, opposites and infinity are asked for, so a point may be anything on the curve. Nothing takes
//! the same time for all points.

use std::fmt;

use super::curves::CurveKind;
use super::field::{Field, PrimeField, batch_inverse};
use cantus_base::listed::Listed;

/// A group of points of a curve y² = x³ + b.
pub trait Curve: Copy + Send + Sync + fmt::Debug + 'static {
    /// The type of the coordinates.
    type Base: Field;
    /// The field of the group's order.
    type Scalar: PrimeField;
    /// Its name as data.
    const KIND: CurveKind;
    /// The constant of the equation.
    fn b() -> Self::Base;
    /// The standard generator.
    fn generator() -> Affine<Self>;
    /// Returns whether a point of the curve is in the group: always where the cofactor is 1.
    fn is_in_group(point: Affine<Self>) -> bool {
        let order: Vec<u64> = Self::Scalar::KIND
            .modulus()
            .chunks(2)
            .map(|pair| u64::from(pair[0]) | u64::from(pair[pair.len() - 1]) << 32)
            .listed();
        Projective::from(point).times(&order).is_infinity()
    }
    /// Bits of the magnitudes that [`Curve::split`] gives.
    const SPLIT_BITS: u32 = 0;
    /// β of the endomorphism (x, y) -> (β x, y), which multiplies by λ, where multiples are split by it.
    fn endomorphism() -> Option<Self::Base> {
        None
    }
    /// Additions that [`Curve::add_batch`] takes at a time on this processor; 0 where it takes none.
    fn batch() -> usize {
        0
    }
    /// Adds points in pairs, of different x and none of them infinity, a multiple of 8 of them, by vectors.
    fn add_batch(_a: &[Affine<Self>], _b: &[Affine<Self>], _sums: &mut [Affine<Self>]) {}
    /// Splits k = k1 + λ k2: magnitudes, with true for negative ones.
    fn split(_scalar: Self::Scalar) -> [(u128, bool); 2] {
        [(0, false); 2]
    }
}

/// A point by its coordinates; infinity is (0, 0), which is on none of these curves.
///
/// ```
/// use cantus::zk::{Affine, Bn254G1, Curve, Projective};
///
/// let g = Bn254G1::generator();
/// let sum = Projective::from(g).add(Projective::from(-g));
/// assert_eq!(sum.to_affine(), Affine::INFINITY);
/// ```
#[repr(C)]
pub struct Affine<C: Curve> {
    /// x.
    pub x: C::Base,
    /// y.
    pub y: C::Base,
}

impl<C: Curve> Clone for Affine<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: Curve> Copy for Affine<C> {}
impl<C: Curve> PartialEq for Affine<C> {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x && self.y == other.y
    }
}
impl<C: Curve> Eq for Affine<C> {}
impl<C: Curve> Default for Affine<C> {
    fn default() -> Self {
        Self::INFINITY
    }
}
impl<C: Curve> fmt::Debug for Affine<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_infinity() { f.write_str("infinity") } else { write!(f, "({:?}, {:?})", self.x, self.y) }
    }
}
impl<C: Curve> std::ops::Neg for Affine<C> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { x: self.x, y: -self.y }
    }
}

// SAFETY: two fields of one Zeroable type.
unsafe impl<C: Curve> bytemuck::Zeroable for Affine<C> {}
// SAFETY: two fields of one Pod type: no padding between or behind them.
unsafe impl<C: Curve> bytemuck::Pod for Affine<C> {}

impl<C: Curve> Affine<C> {
    /// The neutral element.
    pub const INFINITY: Self = Self { x: C::Base::ZERO, y: C::Base::ZERO };

    /// Returns whether it is the neutral element.
    #[must_use]
    #[inline(always)]
    pub fn is_infinity(self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    /// Returns whether the coordinates are below the modulus, and fulfil the equation or are infinity.
    #[must_use]
    pub fn is_on_curve(self) -> bool {
        self.x.is_reduced()
            && self.y.is_reduced()
            && (self.is_infinity() || self.y.square() == self.x.square() * self.x + C::b())
    }

    /// Returns whether it is in the group; it is on the curve.
    #[must_use]
    pub fn is_in_group(self) -> bool {
        C::is_in_group(self)
    }

    /// Multiplies the point by a scalar.
    #[must_use]
    pub fn times(self, scalar: C::Scalar) -> Projective<C> {
        let limbs = scalar.to_limbs();
        let words: Vec<u64> =
            limbs.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[pair.len() - 1]) << 32).listed();
        Projective::from(self).times(&words)
    }
}

/// A point by Jacobian coordinates (X, Y, Z): x = X / Z², y = Y / Z³; infinity has Z = 0.
pub struct Projective<C: Curve> {
    /// X.
    pub x: C::Base,
    /// Y.
    pub y: C::Base,
    /// Z.
    pub z: C::Base,
}

impl<C: Curve> Clone for Projective<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: Curve> Copy for Projective<C> {}
impl<C: Curve> fmt::Debug for Projective<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_affine().fmt(f)
    }
}
impl<C: Curve> PartialEq for Projective<C> {
    fn eq(&self, other: &Self) -> bool {
        self.to_affine() == other.to_affine()
    }
}
impl<C: Curve> Eq for Projective<C> {}

impl<C: Curve> From<Affine<C>> for Projective<C> {
    fn from(point: Affine<C>) -> Self {
        if point.is_infinity() { Self::INFINITY } else { Self { x: point.x, y: point.y, z: C::Base::ONE } }
    }
}

impl<C: Curve> Projective<C> {
    /// The neutral element.
    pub const INFINITY: Self = Self { x: C::Base::ONE, y: C::Base::ONE, z: C::Base::ZERO };

    /// Returns whether it is the neutral element.
    #[must_use]
    pub fn is_infinity(self) -> bool {
        self.z.is_zero()
    }

    /// Converts from homogeneous coordinates, x = X / Z and y = Y / Z, as the kernels have them.
    #[must_use]
    pub fn from_homogeneous([x, y, z]: [C::Base; 3]) -> Self {
        if z.is_zero() { Self::INFINITY } else { Self { x: x * z, y: y * z.square(), z } }
    }

    /// Twice itself (dbl-2009-l of the Explicit-Formulas Database).
    #[must_use]
    pub fn double(self) -> Self {
        let a = self.x.square();
        let b = self.y.square();
        let c = b.square();
        let d = ((self.x + b).square() - a - c).double();
        let e = a.double() + a;
        let x = e.square() - d.double();
        let y = e * (d - x) - c.double().double().double();
        Self { x, y, z: (self.y * self.z).double() }
    }

    /// The sum (add-2007-bl of the Explicit-Formulas Database, and its exceptions).
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "groups are written with methods here")]
    pub fn add(self, other: Self) -> Self {
        if self.is_infinity() {
            return other;
        }
        if other.is_infinity() {
            return self;
        }
        let (zz, other_zz) = (self.z.square(), other.z.square());
        let (u1, u2) = (self.x * other_zz, other.x * zz);
        let (s1, s2) = (self.y * other.z * other_zz, other.y * self.z * zz);
        let (h, r) = (u2 - u1, (s2 - s1).double());
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::INFINITY };
        }
        let i = h.double().square();
        let j = h * i;
        let v = u1 * i;
        let x = r.square() - j - v.double();
        let y = r * (v - x) - (s1 * j).double();
        Self { x, y, z: ((self.z + other.z).square() - zz - other_zz) * h }
    }

    /// The sum with an affine point (madd-2007-bl of the Explicit-Formulas Database, and its exceptions).
    #[must_use]
    pub fn add_affine(self, other: Affine<C>) -> Self {
        if other.is_infinity() {
            return self;
        }
        if self.is_infinity() {
            return other.into();
        }
        let zz = self.z.square();
        let u2 = other.x * zz;
        let s2 = other.y * self.z * zz;
        let (h, r) = (u2 - self.x, (s2 - self.y).double());
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::INFINITY };
        }
        let hh = h.square();
        let i = hh.double().double();
        let j = h * i;
        let v = self.x * i;
        let x = r.square() - j - v.double();
        let y = r * (v - x) - (self.y * j).double();
        Self { x, y, z: (self.z + h).square() - zz - hh }
    }

    /// Multiplies the point by a number in 64-bit words, the least significant first.
    #[must_use]
    pub fn times(self, scalar: &[u64]) -> Self {
        let mut result = Self::INFINITY;
        for word in scalar.iter().rev() {
            for bit in (0..64).rev() {
                result = result.double();
                if word >> bit & 1 == 1 {
                    result = result.add(self);
                }
            }
        }
        result
    }

    /// Converts to affine coordinates.
    #[must_use]
    pub fn to_affine(self) -> Affine<C> {
        let Some(inverse) = self.z.inverse() else { return Affine::INFINITY };
        let square = inverse.square();
        Affine { x: self.x * square, y: self.y * square * inverse }
    }

    /// The affine coordinates of many, by one inversion.
    #[must_use]
    pub fn to_affines(points: &[Self]) -> Vec<Affine<C>> {
        let mut inverses: Vec<C::Base> = points.iter().map(|point| point.z).listed();
        batch_inverse(&mut inverses);
        let pairs = points.iter().zip(inverses);
        pairs
            .map(|(point, inverse)| {
                let square = inverse.square();
                // Of infinity the inverse is 0, and so are both coordinates.
                Affine { x: point.x * square, y: point.y * square * inverse }
            })
            .listed()
    }
}
