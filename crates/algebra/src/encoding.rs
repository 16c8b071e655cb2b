//! Points as bytes. `PointTensor` and the service read points by it. Each point has one accepted form: other bytes are errors, also where flags or padding
//! are off. Reading a compressed point takes a square root and does not tell whether it is in the group.

use super::curve::{Affine, Curve};
use super::curves::CurveKind;
use super::extension::{Binomial, Extension};
use super::field::Field;
use super::montgomery::{Modulus, Prime};
use cantus_base::listed::Listed;

/// An encoding of points as bytes. All are big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PointEncoding {
    /// x and y as Ethereum's precompiles take them; infinity is zeros. BN254 (EIP-196, EIP-197): 32 bytes for a number, of an extension the
    /// coefficient of u first. BLS12-381 (EIP-2537): 64 bytes for a number, of which the first 16 are zeros, and the constant first.
    Eip,
    /// x with flags in its first bits: a point's y is the larger or the smaller root. BLS12-381 as Zcash defined it (48 bytes, 96 in the second
    /// group); BN254 as gnark writes it (32 and 64 bytes).
    Compressed,
}

/// The operations that encodings need from coordinates.
pub trait Coordinate: Field {
    /// Numbers of the prime field in it, the constant first.
    fn numbers(self) -> Vec<Vec<u8>>;
    /// Converts big-endian numbers; `None` if one is not below the modulus.
    fn from_numbers(numbers: &[&[u8]]) -> Option<Self>;
    /// Returns whether it is larger than its opposite, by the last coefficient that is not 0.
    fn is_larger(self) -> bool;
    /// A square root where there is one.
    fn root(self) -> Option<Self>;
}

impl<M: Modulus<N>, const N: usize> Coordinate for Prime<M, N> {
    fn numbers(self) -> Vec<Vec<u8>> {
        vec![self.canonical().iter().rev().flat_map(|word| word.to_be_bytes()).listed()]
    }

    fn from_numbers(numbers: &[&[u8]]) -> Option<Self> {
        let [number] = numbers else { return None };
        let limbs: Vec<u32> =
            number.rchunks(4).map(|bytes| bytes.iter().fold(0, |limb, &byte| limb << 8 | u32::from(byte))).listed();
        Self::from_limbs(&limbs)
    }

    fn is_larger(self) -> bool {
        self.is_large()
    }

    fn root(self) -> Option<Self> {
        self.square_root()
    }
}

/// Over u² = -1, where -1 has no root below.
impl<M: Modulus<N>, B: Binomial<Prime<M, N>, 2>, const N: usize> Coordinate for Extension<Prime<M, N>, B, 2> {
    fn numbers(self) -> Vec<Vec<u8>> {
        self.0.into_iter().flat_map(Coordinate::numbers).listed()
    }

    fn from_numbers(numbers: &[&[u8]]) -> Option<Self> {
        let [constant, linear] = numbers else { return None };
        Some(Self::new([Coordinate::from_numbers(&[constant])?, Coordinate::from_numbers(&[linear])?]))
    }

    fn is_larger(self) -> bool {
        let [constant, linear] = self.0;
        if linear.is_zero() { constant.is_large() } else { linear.is_large() }
    }

    fn root(self) -> Option<Self> {
        let [constant, linear] = self.0;
        let root = if linear.is_zero() {
            match constant.square_root() {
                Some(root) => Self::new([root, Prime::ZERO]),
                None => Self::new([Prime::ZERO, (-constant).square_root()?]),
            }
        } else {
            // (a + b u)² with a² the half of constant ± norm's root, and 2 a b = linear.
            let norm = (constant.square() + linear.square()).square_root()?;
            let half = Prime::from_u64(2).inverse()?;
            let a = [constant + norm, constant - norm].into_iter().find_map(|twice| (twice * half).square_root())?;
            Self::new([a, linear * a.double().inverse()?])
        };
        (root.square() == self).then_some(root)
    }
}

/// The flags of an encoding's first byte.
struct Flags {
    compressed: u8,
    infinity: u8,
    larger: u8,
    /// All of them.
    mask: u8,
}

impl CurveKind {
    fn flags(self) -> Flags {
        match self {
            Self::Bn254G1 | Self::Bn254G2 => Flags { compressed: 0x80, infinity: 0x40, larger: 0x40, mask: 0xc0 },
            Self::Bls12381G1 | Self::Bls12381G2 => Flags { compressed: 0x80, infinity: 0xc0, larger: 0x20, mask: 0xe0 },
        }
    }

    /// Bytes of a number, and the number of zeros in front.
    fn number(self, encoding: PointEncoding) -> (usize, usize) {
        let bytes = 4 * self.base().0.words();
        let whole = if encoding == PointEncoding::Eip { bytes.next_power_of_two() } else { bytes };
        (whole, whole - bytes)
    }

    /// Returns whether the constant comes before the coefficient of u.
    fn constant_first(self, encoding: PointEncoding) -> bool {
        encoding == PointEncoding::Eip && self == Self::Bls12381G2
    }

    /// Bytes of a point.
    ///
    /// ```
    /// use cantus::zk::{CurveKind, PointEncoding};
    ///
    /// assert_eq!(CurveKind::Bls12381G1.encoded_bytes(PointEncoding::Compressed), 48);
    /// assert_eq!(CurveKind::Bls12381G1.encoded_bytes(PointEncoding::Eip), 128);
    /// ```
    #[must_use]
    pub fn encoded_bytes(self, encoding: PointEncoding) -> usize {
        let one = self.base().1 * self.number(encoding).0;
        if encoding == PointEncoding::Eip { 2 * one } else { one }
    }
}

/// A coordinate's bytes.
fn write<F: Coordinate>(value: F, curve: CurveKind, encoding: PointEncoding) -> Vec<u8> {
    let mut numbers = value.numbers();
    if !curve.constant_first(encoding) {
        numbers.reverse();
    }
    let (_, zeros) = curve.number(encoding);
    numbers.into_iter().flat_map(|number| std::iter::repeat_n(0, zeros).chain(number)).listed()
}

fn read<F: Coordinate>(bytes: &[u8], curve: CurveKind, encoding: PointEncoding) -> Result<F, &'static str> {
    let (whole, zeros) = curve.number(encoding);
    let mut numbers = Vec::new();
    for number in bytes.chunks(whole) {
        let (front, number) = number.split_at(zeros.min(number.len()));
        if front.iter().any(|&byte| byte != 0) {
            return Err("the bytes in front of a coordinate are not zeros");
        }
        numbers.push(number);
    }
    if !curve.constant_first(encoding) {
        numbers.reverse();
    }
    F::from_numbers(&numbers).ok_or("a coordinate is not below the modulus")
}

impl<C: Curve> Affine<C>
where
    C::Base: Coordinate,
{
    /// The point as bytes.
    ///
    /// ```
    /// use cantus::zk::{Affine, Bls12381G1, Curve, PointEncoding};
    ///
    /// let g = Bls12381G1::generator();
    /// let bytes = g.to_bytes(PointEncoding::Compressed);
    /// assert_eq!((bytes.len(), bytes[0]), (48, 0x97));
    /// assert_eq!(Affine::from_bytes(&bytes, PointEncoding::Compressed), Ok(g));
    /// ```
    #[must_use]
    pub fn to_bytes(self, encoding: PointEncoding) -> Vec<u8> {
        let mut bytes = write(self.x, C::KIND, encoding);
        match encoding {
            PointEncoding::Eip => bytes.extend(write(self.y, C::KIND, encoding)),
            PointEncoding::Compressed => {
                let flags = C::KIND.flags();
                if let Some(first) = bytes.first_mut() {
                    *first |= match self.is_infinity() {
                        true => flags.infinity,
                        false if self.y.is_larger() => flags.compressed | flags.larger,
                        false => flags.compressed,
                    };
                }
            }
        }
        bytes
    }

    /// A point of the curve from bytes, of which each point has one form alone. Whether it is in the group is another question
    /// ([`Affine::is_in_group`]).
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8], encoding: PointEncoding) -> Result<Self, &'static str> {
        if bytes.len() != C::KIND.encoded_bytes(encoding) {
            return Err("the number of bytes is wrong");
        }
        let point = match encoding {
            PointEncoding::Eip => {
                let (x, y) = bytes.split_at(bytes.len() / 2);
                Self { x: read(x, C::KIND, encoding)?, y: read(y, C::KIND, encoding)? }
            }
            PointEncoding::Compressed => {
                let flags = C::KIND.flags();
                let mut bytes = bytes.to_vec();
                let first = bytes.first_mut().ok_or("the number of bytes is wrong")?;
                let own = *first & flags.mask;
                *first &= !flags.mask;
                if own == flags.infinity {
                    return if bytes.iter().all(|&byte| byte == 0) {
                        Ok(Self::INFINITY)
                    } else {
                        Err("bits of infinity other than its flag are set")
                    };
                }
                let larger = match own {
                    own if own == flags.compressed => false,
                    own if own == flags.compressed | flags.larger => true,
                    _ => return Err("the flags are not those of a compressed point"),
                };
                let x: C::Base = read(&bytes, C::KIND, encoding)?;
                let y = (x.square() * x + C::b()).root().ok_or("no point of the curve has this x")?;
                Self { x, y: if y.is_larger() == larger { y } else { -y } }
            }
        };
        if point.is_on_curve() { Ok(point) } else { Err("the point is not on the curve") }
    }
}
