//! Random numbers, beside Philox in 64-bit arithmetic.

use cantus::ops::{rand, randn, random_bits};

use crate::{by_turns, name};

/// Philox 4x32-10 as its paper defines it, with 64-bit products.
fn philox(counter: u32, seed: u64) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (a, b) = (0xD251_1F53_u64 * u64::from(c[0]), 0xCD9E_8D57_u64 * u64::from(c[2]));
        c = [(b >> 32) as u32 ^ c[1] ^ key[0], b as u32, (a >> 32) as u32 ^ c[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

#[test]
fn random_numbers_are_the_same_everywhere() {
    // The published test vector of a counter and a key of zeros.
    assert_eq!(philox(0, 0), [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
    let seed = 0x0123_4567_89AB_CDEF;
    let count = 20_001;
    let bits: Vec<u32> = (0..count).map(|i| philox(i / 4, seed)[i as usize % 4]).collect();
    for engine in by_turns() {
        let on = name(engine);
        let got = random_bits(engine, &[count as usize], seed).eval().unwrap().to_vec::<u32>().unwrap();
        assert_eq!(got, bits, "{on}");
        let uniform = rand(engine, &[3, count as usize / 3], seed).eval().unwrap().to_vec::<f32>().unwrap();
        let expected: Vec<f32> = bits.iter().map(|bits| (bits >> 8) as f32 / (1 << 24) as f32).collect();
        assert_eq!(uniform, expected, "{on}");
        let normal = randn(engine, &[count as usize], seed).eval().unwrap().to_vec::<f32>().unwrap();
        for (i, &got) in normal.iter().enumerate() {
            let [a, b, ..] = philox(i as u32 / 2, seed).map(|bits| f64::from(bits >> 8));
            let radius = (-2.0 * ((a + 0.5) / 16_777_216.0).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * b / 16_777_216.0).sin_cos();
            let want = radius * if i % 2 == 1 { sine } else { cosine };
            assert!((f64::from(got) - want).abs() < 2e-5, "{i}: {got}, expected {want}, on {on}");
        }
        let mean = normal.iter().map(|&x| f64::from(x)).sum::<f64>() / f64::from(count);
        let square = normal.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }
}
