//! Inputs: edge values and random ones from a fixed seed.

/// SplitMix64: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub const EDGES: [u32; 16] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    255,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0x8000_0001,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
    0x5555_5555,
];

/// All pairs of edge values, then random pairs, as two columns of 320.
pub fn pairs_u32(seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut random = Random::new(seed);
    let mut pairs: Vec<(u32, u32)> = EDGES.iter().flat_map(|&a| EDGES.iter().map(move |&b| (a, b))).collect();
    // Random ones of all magnitudes.
    pairs.extend((0..64).map(|_| {
        let (a, b) = (random.u32(), random.u32());
        (a >> random.below(32), b >> random.below(32))
    }));
    pairs.into_iter().unzip()
}

pub fn pairs_i32(seed: u64) -> (Vec<i32>, Vec<i32>) {
    let (a, b) = pairs_u32(seed);
    (signed(&a), signed(&b))
}

pub fn signed(v: &[u32]) -> Vec<i32> {
    v.iter().map(|&x| x as i32).collect()
}

/// All pairs of 64-bit edge values, then random ones.
pub fn pairs_u64(seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random::new(seed);
    let edges =
        [0, 1, 2, 3, 63, 64, 0xFFFF_FFFF, 1 << 32, i64::MAX as u64, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let mut pairs: Vec<(u64, u64)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    pairs.extend((0..87).map(|_| {
        let (a, b) = (random.u64(), random.u64());
        (a >> random.below(64), b >> random.below(64))
    }));
    pairs.into_iter().unzip()
}

/// `n` random bit patterns.
pub fn words(seed: u64, n: usize) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.u32()).collect()
}

/// `n` random integers in `low..high`.
pub fn ints(seed: u64, n: usize, low: i32, high: i32) -> Vec<i32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| low + random.below((high - low) as u32) as i32).collect()
}

/// `n` random floats, uniform in `low..high`.
pub fn floats(seed: u64, n: usize, low: f64, high: f64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| (low + (high - low) * random.unit()) as f32).collect()
}

/// `n` random floats of either sign with exponents uniform in `low..high` (powers of two).
pub fn spread(seed: u64, n: usize, low: f64, high: f64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n)
        .map(|_| {
            let magnitude = (low + (high - low) * random.unit()).exp2();
            (if random.u32() & 1 == 0 { magnitude } else { -magnitude }) as f32
        })
        .collect()
}
