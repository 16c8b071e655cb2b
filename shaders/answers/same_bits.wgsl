// Whether the reproducible form of float32 arithmetic has the bits that it must have: products that would be fused, sums that would be
// reordered, quotients and roots that would be estimates, results near the smallest numbers, and conversions.
@group(0) @binding(0) var<storage, read> given: array<u32>;
@group(0) @binding(1) var<storage, read_write> answer: array<u32>;

// Permuted congruential generator (O'Neill, 2014).
fn hashed(word: u32) -> u32 {
    let state = word * 747796405u + 2891336453u;
    let mixed = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (mixed >> 22u) ^ mixed;
}

fn with_exponent(word: u32, exponent: u32) -> f32 {
    return bitcast<f32>((word & 0x807fffffu) | (exponent << 23u));
}

fn number(word: u32) -> f32 {
    return with_exponent(word, 96u + ((word >> 23u) & 63u));
}

fn unit(word: u32) -> f32 {
    return with_exponent(word & 0x7fffffffu, 127u);
}

fn small(word: u32) -> f32 {
    return with_exponent(word, 60u + ((word >> 23u) & 7u));
}

@compute @workgroup_size(64)
fn same_bits(@builtin(global_invocation_id) id: vec3u) {
    let seed = given[0] + 3u * id.x;
    let words = vec3u(hashed(seed), hashed(seed + 1u), hashed(seed + 2u));
    let a = number(words.x);
    let b = number(words.y);
    let c = number(words.z);
    let x = unit(words.x);
    let y = unit(words.y);
    let z = unit(words.z);
    let at = 10u * id.x;
    answer[at] = bitcast<u32>(a + b);
    answer[at + 1u] = bitcast<u32>(a * b + c);
    answer[at + 2u] = bitcast<u32>(a * b - c * a);
    answer[at + 3u] = bitcast<u32>(a / b);
    answer[at + 4u] = bitcast<u32>(sqrt(abs(c)));
    answer[at + 5u] = bitcast<u32>(((x * y + z) * y + x) * y - z);
    answer[at + 6u] = bitcast<u32>(small(words.x) * small(words.y));
    answer[at + 7u] = bitcast<u32>((a + b) + c - (a + (b + c)));
    answer[at + 8u] = pack2x16float(vec2f(a, b));
    answer[at + 9u] = bitcast<u32>(i32(c));
}
