//! Random numbers by their place: the same ones in whichever order they are drawn.

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A number from 0 to 1, without 1: the `event`-th one of a shot.
pub(crate) fn uniform(seed: u64, shot: u64, event: u64) -> f64 {
    let bits = mixed(mixed(mixed(seed) ^ shot) ^ event);
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}
