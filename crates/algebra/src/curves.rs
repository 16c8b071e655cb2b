//! The curves: BN254 and BLS12-381, both groups of each. Each curve says its constant, generator, membership test, and how a scalar is split by its
//! endomorphism. A point on BLS12-381 may be outside the group of prime order, and on BN254's first group it never is. Only the first groups have
//! endomorphisms and vectorised additions.

use super::curve::{Affine, Curve, Projective};
use super::extension::{Bls12381Fq2, Bn254Fq2, Extension};
use super::field::Field;
#[cfg(target_arch = "x86_64")]
use super::ifma;
use super::kind::FieldKind;
use super::montgomery::{Bls12381Fq, Bls12381Fr, Bn254Fq, Bn254Fr, Prime};
#[cfg(target_arch = "x86_64")]
use super::montgomery::{Bls12381FqModulus, Bn254FqModulus};

/// The group of a tensor's points, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CurveKind {
    /// BN254 (alt_bn128), y² = x³ + 3.
    Bn254G1,
    /// BN254's second group, y² = x³ + 3 / (9 + u).
    Bn254G2,
    /// BLS12-381, y² = x³ + 4.
    Bls12381G1,
    /// BLS12-381's second group, y² = x³ + 4 + 4 u.
    Bls12381G2,
}

impl CurveKind {
    /// Its name.
    ///
    /// ```
    /// assert_eq!(cantus::zk::CurveKind::Bn254G1.name(), "bn254_g1");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bn254G1 => "bn254_g1",
            Self::Bn254G2 => "bn254_g2",
            Self::Bls12381G1 => "bls12_381_g1",
            Self::Bls12381G2 => "bls12_381_g2",
        }
    }

    /// The field of its coordinates, and how many elements of it a coordinate has.
    #[must_use]
    pub fn base(self) -> (FieldKind, usize) {
        match self {
            Self::Bn254G1 => (FieldKind::Bn254Fq, 1),
            Self::Bn254G2 => (FieldKind::Bn254Fq, 2),
            Self::Bls12381G1 => (FieldKind::Bls12381Fq, 1),
            Self::Bls12381G2 => (FieldKind::Bls12381Fq, 2),
        }
    }

    /// The field of its scalars.
    #[must_use]
    pub fn scalar(self) -> FieldKind {
        match self {
            Self::Bn254G1 | Self::Bn254G2 => FieldKind::Bn254Fr,
            Self::Bls12381G1 | Self::Bls12381G2 => FieldKind::Bls12381Fr,
        }
    }

    /// 32-bit words of an affine point.
    #[must_use]
    pub fn point_words(self) -> usize {
        let (field, degree) = self.base();
        2 * degree * field.words()
    }
}

/// BN254's first group (alt_bn128, EIP-196): y² = x³ + 3, cofactor 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bn254G1;
/// BN254's second group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bn254G2;
/// BLS12-381's first group: y² = x³ + 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bls12381G1;
/// BLS12-381's second group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bls12381G2;

impl Curve for Bn254G1 {
    type Base = Bn254Fq;
    type Scalar = Bn254Fr;
    const KIND: CurveKind = CurveKind::Bn254G1;
    const SPLIT_BITS: u32 = 127;

    fn b() -> Bn254Fq {
        Bn254Fq::from_u64(3)
    }

    fn generator() -> Affine<Self> {
        Affine { x: Bn254Fq::ONE, y: Bn254Fq::from_u64(2) }
    }

    fn is_in_group(_point: Affine<Self>) -> bool {
        true
    }

    fn endomorphism() -> Option<Bn254Fq> {
        Some(Prime::of([0x5763_4731_77ff_fffe, 0xd4f2_63f1_acdb_5c4f, 0x59e2_6bce_a0d4_8bac, 0]))
    }

    #[cfg(target_arch = "x86_64")]
    fn batch() -> usize {
        if ifma::serves() { ifma::BATCH } else { 0 }
    }

    #[cfg(target_arch = "x86_64")]
    fn add_batch(a: &[Affine<Self>], b: &[Affine<Self>], sums: &mut [Affine<Self>]) {
        ifma::add::<Self, Bn254FqModulus, 4, 5>(a, b, sums);
    }

    fn split(scalar: Bn254Fr) -> [(u128, bool); 2] {
        split_bn254(scalar.canonical())
    }
}

/// k = k1 + λ k2 by a reduced basis of the lattice of (x, y) with x + λ y = 0 modulo the order (Gallant, Lambert, Vanstone):
/// (`SHORT`, -`LONG`) and (`LONG` + `SHORT`, `SHORT`).
fn split_bn254(k: [u64; 4]) -> [(u128, bool); 2] {
    const SHORT: u128 = 0x89d3_2568_94d2_13e3;
    const LONG: u128 = 0x6f4d_8248_eeb8_59fc_8211_bbeb_7d4f_1128;
    // 2^256 SHORT / r and 2^256 LONG / r, rounded.
    const SHORT_BY_ORDER: [u64; 3] = [0xd91d_232e_c7e0_b3d7, 2, 0];
    const LONG_BY_ORDER: [u64; 3] = [0x7a7b_d9d4_391e_b18e, 0x4cce_f014_a773_d2cf, 2];
    let c1 = high_product(k, SHORT_BY_ORDER);
    let c2 = high_product(k, LONG_BY_ORDER);
    // k1 = k - c1 SHORT - c2 (LONG + SHORT); k2 = c1 LONG - c2 SHORT: below 2^128 in magnitude, so that 192 bits tell the sign.
    let times = |c: u128, x: u128| product192(c, x);
    let k = [k[0], k[1], k[2]];
    let k1 = minus192(minus192(k, times(c1, SHORT)), times(c2, LONG + SHORT));
    let k2 = minus192(times(c1, LONG), times(c2, SHORT));
    [signed(k1), signed(k2)]
}

/// (k m + 2^255) / 2^256.
fn high_product(k: [u64; 4], m: [u64; 3]) -> u128 {
    let mut t = [0_u64; 8];
    t[3] = 1 << 63;
    for (i, &m) in m.iter().enumerate() {
        let mut carry = 0_u128;
        for (j, &k) in k.iter().enumerate() {
            let sum = u128::from(t[i + j]) + u128::from(m) * u128::from(k) + carry;
            t[i + j] = sum as u64;
            carry = sum >> 64;
        }
        let mut at = i + 4;
        while carry != 0 && at < 8 {
            let sum = u128::from(t[at]) + carry;
            t[at] = sum as u64;
            carry = sum >> 64;
            at += 1;
        }
    }
    u128::from(t[4]) | u128::from(t[5]) << 64
}

fn product192(a: u128, b: u128) -> [u64; 3] {
    let (a, b) = ([a as u64, (a >> 64) as u64], [b as u64, (b >> 64) as u64]);
    let low = u128::from(a[0]) * u128::from(b[0]);
    let middle = u128::from(a[0]) * u128::from(b[1]);
    let other = u128::from(a[1]) * u128::from(b[0]);
    let first = (low >> 64) + u128::from(middle as u64) + u128::from(other as u64);
    let second = ((first >> 64) as u64)
        .wrapping_add((middle >> 64) as u64)
        .wrapping_add((other >> 64) as u64)
        .wrapping_add(a[1].wrapping_mul(b[1]));
    [low as u64, first as u64, second]
}

fn minus192(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    let mut result = [0; 3];
    let mut borrow = false;
    for i in 0..3 {
        let (difference, first) = a[i].overflowing_sub(b[i]);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        result[i] = difference;
        borrow = first | second;
    }
    result
}

fn signed(value: [u64; 3]) -> (u128, bool) {
    let negative = value[2] >> 63 == 1;
    let [low, high, _] = if negative { minus192([0; 3], value) } else { value };
    (u128::from(low) | u128::from(high) << 64, negative)
}

impl Curve for Bls12381G1 {
    type Base = Bls12381Fq;
    type Scalar = Bls12381Fr;
    const KIND: CurveKind = CurveKind::Bls12381G1;
    const SPLIT_BITS: u32 = 128;

    fn b() -> Bls12381Fq {
        Bls12381Fq::from_u64(4)
    }

    fn generator() -> Affine<Self> {
        Affine {
            x: Prime::of([
                0xfb3a_f00a_db22_c6bb,
                0x6c55_e83f_f97a_1aef,
                0xa14e_3a3f_171b_ac58,
                0xc368_8c4f_9774_b905,
                0x2695_638c_4fa9_ac0f,
                0x17f1_d3a7_3197_d794,
            ]),
            y: Prime::of([
                0x0caa_2329_46c5_e7e1,
                0xd03c_c744_a288_8ae4,
                0x00db_18cb_2c04_b3ed,
                0xfcf5_e095_d5d0_0af6,
                0xa09e_30ed_741d_8ae4,
                0x08b3_f481_e3aa_a0f1,
            ]),
        }
    }

    fn endomorphism() -> Option<Bls12381Fq> {
        Some(Prime::of([
            0x2e01_ffff_fffe_fffe,
            0xde17_d813_620a_0002,
            0xddb3_a93b_e6f8_9688,
            0xba69_c607_6a0f_77ea,
            0x5f19_672f_df76_ce51,
            0,
        ]))
    }

    #[cfg(target_arch = "x86_64")]
    fn batch() -> usize {
        if ifma::serves() { ifma::BATCH } else { 0 }
    }

    #[cfg(target_arch = "x86_64")]
    fn add_batch(a: &[Affine<Self>], b: &[Affine<Self>], sums: &mut [Affine<Self>]) {
        ifma::add::<Self, Bls12381FqModulus, 6, 8>(a, b, sums);
    }

    /// The endomorphism multiplies by -x², where x is the curve's parameter, in this group and nowhere else on the curve (Scott, 2021).
    fn is_in_group(point: Affine<Self>) -> bool {
        let square = Projective::from(point).times(&[PARAMETER]).times(&[PARAMETER]);
        let turned = Self::endomorphism().map_or(point.x, |beta| beta * point.x);
        square.add_affine(Affine { x: turned, y: point.y }).is_infinity()
    }

    /// k = k1 + c x², where c is k / x², rounded: the order is x⁴ - x² + 1, so both are short.
    fn split(scalar: Bls12381Fr) -> [(u128, bool); 2] {
        const SQUARE: u128 = PARAMETER as u128 * PARAMETER as u128;
        // 2^256 / x², rounded.
        const BY_SQUARE: [u64; 3] = [0x63f6_e522_f6cf_ee2e, 0x7c6b_ecf1_e01f_aadd, 1];
        let k = scalar.canonical();
        let c = high_product(k, BY_SQUARE);
        let k1 = minus192([k[0], k[1], k[2]], product192(c, SQUARE));
        [signed(k1), (c, true)]
    }
}

/// The magnitude of BLS12-381's parameter.
const PARAMETER: u64 = 0xd201_0000_0001_0000;

impl Curve for Bn254G2 {
    type Base = Bn254Fq2;
    type Scalar = Bn254Fr;
    const KIND: CurveKind = CurveKind::Bn254G2;

    fn b() -> Bn254Fq2 {
        Extension::new([
            Prime::of([0x3267_e6dc_24a1_38e5, 0xb5b4_c5e5_59db_efa3, 0x81be_1899_1be0_6ac3, 0x2b14_9d40_ceb8_aaae]),
            Prime::of([0xe4a2_bd06_85c3_15d2, 0xa74f_a084_e52d_1852, 0xcd2c_afad_eed8_fdf4, 0x0097_13b0_3af0_fed4]),
        ])
    }

    fn generator() -> Affine<Self> {
        Affine {
            x: Extension::new([
                Prime::of([0x46de_bd5c_d992_f6ed, 0x6743_22d4_f75e_dadd, 0x426a_0066_5e5c_4479, 0x1800_deef_121f_1e76]),
                Prime::of([0x97e4_85b7_aef3_12c2, 0xf1aa_4933_35a9_e712, 0x7260_bfb7_31fb_5d25, 0x198e_9393_920d_483a]),
            ]),
            y: Extension::new([
                Prime::of([0x4ce6_cc01_66fa_7daa, 0xe3d1_e769_0c43_d37b, 0x4aab_7180_8dcb_408f, 0x12c8_5ea5_db8c_6deb]),
                Prime::of([0x55ac_dadc_d122_975b, 0xbc4b_3133_70b3_8ef3, 0xec9e_99ad_690c_3395, 0x0906_89d0_585f_f075]),
            ]),
        }
    }
}

impl Curve for Bls12381G2 {
    type Base = Bls12381Fq2;
    type Scalar = Bls12381Fr;
    const KIND: CurveKind = CurveKind::Bls12381G2;

    fn b() -> Bls12381Fq2 {
        Extension::new([Bls12381Fq::from_u64(4); 2])
    }

    fn generator() -> Affine<Self> {
        Affine {
            x: Extension::new([
                Prime::of([
                    0xd480_56c8_c121_bdb8,
                    0x0bac_0326_a805_bbef,
                    0xb451_0b64_7ae3_d177,
                    0xc6e4_7ad4_fa40_3b02,
                    0x2608_0527_2dc5_1051,
                    0x024a_a2b2_f08f_0a91,
                ]),
                Prime::of([
                    0xe5ac_7d05_5d04_2b7e,
                    0x334c_f112_1394_5d57,
                    0xb5da_61bb_dc7f_5049,
                    0x596b_d0d0_9920_b61a,
                    0x7dac_d3a0_8827_4f65,
                    0x13e0_2b60_5271_9f60,
                ]),
            ]),
            y: Extension::new([
                Prime::of([
                    0xe193_5486_08b8_2801,
                    0x923a_c9cc_3bac_a289,
                    0x6d42_9a69_5160_d12c,
                    0xadfd_9baa_8cbd_d3a7,
                    0x8cc9_cdc6_da2e_351a,
                    0x0ce5_d527_727d_6e11,
                ]),
                Prime::of([
                    0xaaa9_075f_f05f_79be,
                    0x3f37_0d27_5cec_1da1,
                    0x2674_92ab_572e_99ab,
                    0xcb3e_287e_85a7_63af,
                    0x32ac_d2b0_2bc2_8b99,
                    0x0606_c4a0_2ea7_34cc,
                ]),
            ]),
        }
    }
}
