//! The field of a tensor's elements, as data. Kernels, native operations and the service name a field by it, since they cannot be generic. It must say the
//! same as the type: a test goes through all of them.

/// A prime field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FieldKind {
    /// Scalars of BN254 (alt_bn128), 254 bits.
    Bn254Fr,
    /// Coordinates of BN254, 254 bits.
    Bn254Fq,
    /// Scalars of BLS12-381, 255 bits.
    Bls12381Fr,
    /// Coordinates of BLS12-381, 381 bits.
    Bls12381Fq,
    /// 15 · 2^27 + 1.
    BabyBear,
    /// 127 · 2^24 + 1.
    KoalaBear,
    /// 2^64 - 2^32 + 1.
    Goldilocks,
    /// 2^31 - 1.
    Mersenne31,
}

impl FieldKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Bn254Fr,
        Self::Bn254Fq,
        Self::Bls12381Fr,
        Self::Bls12381Fq,
        Self::BabyBear,
        Self::KoalaBear,
        Self::Goldilocks,
        Self::Mersenne31,
    ];

    /// Its name, as in the program's arguments and the kernels' names.
    ///
    /// ```
    /// assert_eq!(cantus::zk::FieldKind::Bls12381Fr.name(), "bls12_381_fr");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bn254Fr => "bn254_fr",
            Self::Bn254Fq => "bn254_fq",
            Self::Bls12381Fr => "bls12_381_fr",
            Self::Bls12381Fq => "bls12_381_fq",
            Self::BabyBear => "babybear",
            Self::KoalaBear => "koalabear",
            Self::Goldilocks => "goldilocks",
            Self::Mersenne31 => "mersenne31",
        }
    }

    /// 32-bit words of an element.
    #[must_use]
    pub fn words(self) -> usize {
        match self {
            Self::Bn254Fr | Self::Bn254Fq | Self::Bls12381Fr => 8,
            Self::Bls12381Fq => 12,
            Self::BabyBear | Self::KoalaBear | Self::Mersenne31 => 1,
            Self::Goldilocks => 2,
        }
    }

    /// The modulus, its least significant word first.
    #[must_use]
    pub fn modulus(self) -> &'static [u32] {
        match self {
            Self::Bn254Fr => &[
                0xf000_0001,
                0x43e1_f593,
                0x79b9_7091,
                0x2833_e848,
                0x8181_585d,
                0xb850_45b6,
                0xe131_a029,
                0x3064_4e72,
            ],
            Self::Bn254Fq => &[
                0xd87c_fd47,
                0x3c20_8c16,
                0x6871_ca8d,
                0x9781_6a91,
                0x8181_585d,
                0xb850_45b6,
                0xe131_a029,
                0x3064_4e72,
            ],
            Self::Bls12381Fr => &[
                0x0000_0001,
                0xffff_ffff,
                0xfffe_5bfe,
                0x53bd_a402,
                0x09a1_d805,
                0x3339_d808,
                0x299d_7d48,
                0x73ed_a753,
            ],
            Self::Bls12381Fq => &[
                0xffff_aaab,
                0xb9fe_ffff,
                0xb153_ffff,
                0x1eab_fffe,
                0xf6b0_f624,
                0x6730_d2a0,
                0xf385_12bf,
                0x6477_4b84,
                0x434b_acd7,
                0x4b1b_a7b6,
                0x397f_e69a,
                0x1a01_11ea,
            ],
            Self::BabyBear => &[0x7800_0001],
            Self::KoalaBear => &[0x7f00_0001],
            Self::Goldilocks => &[1, 0xffff_ffff],
            Self::Mersenne31 => &[0x7fff_ffff],
        }
    }

    /// Returns whether memory holds `x · 2^(32 · words)` in place of `x`: Montgomery's form.
    #[must_use]
    pub fn is_montgomery(self) -> bool {
        !matches!(self, Self::Goldilocks | Self::Mersenne31)
    }

    /// The greatest k for which 2^k divides the modulus less 1: transforms have at most 2^k elements.
    #[must_use]
    pub fn two_adicity(self) -> u32 {
        match self {
            Self::Bn254Fr => 28,
            Self::Bls12381Fr | Self::Goldilocks => 32,
            Self::BabyBear => 27,
            Self::KoalaBear => 24,
            Self::Bn254Fq | Self::Bls12381Fq | Self::Mersenne31 => 1,
        }
    }

    /// Bits of the modulus.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Bn254Fr | Self::Bn254Fq => 254,
            Self::Bls12381Fr => 255,
            Self::Bls12381Fq => 381,
            Self::BabyBear | Self::KoalaBear | Self::Mersenne31 => 31,
            Self::Goldilocks => 64,
        }
    }
}

impl std::fmt::Display for FieldKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
