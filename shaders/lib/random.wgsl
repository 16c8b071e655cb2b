// Random numbers by place: Philox 4x32-10. The n-th number under a seed is the same on every device, and no state is kept. A seed's two words are
// its low and its high half; `uniform` and `normal` are the numbers of the engine's own tensors of random numbers under that seed.

import package::functions::{random_block, random_bits, float_random_uniform, float_random_normal, wide_product};

// Four random words: the n-th block of a seed.
fn block(n: u32, seed: vec2u) -> vec4u {
    return random_block(n, seed);
}

// The n-th random word.
fn bits(n: u32, seed: vec2u) -> u32 {
    return random_bits(n, seed);
}

// The n-th number in [0, 1), a multiple of 2^-24.
fn uniform(n: u32, seed: vec2u) -> f32 {
    return float_random_uniform(n, seed);
}

// The n-th number of a normal distribution with mean 0 and deviation 1.
fn normal(n: u32, seed: vec2u) -> f32 {
    return float_random_normal(n, seed);
}

// The n-th whole number below `end`, which is at least 1: the upper half of a product, whose bias is below end / 2^32.
fn below(n: u32, end: u32, seed: vec2u) -> u32 {
    return wide_product(random_bits(n, seed), end).y;
}
