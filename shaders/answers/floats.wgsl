// Float arithmetic on numbers whose results are exact, and comparisons.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<f32>;

@compute @workgroup_size(1)
fn floats() {
    let a = given[0];
    let b = given[1];
    answer[0] = bitcast<u32>(a + b);
    answer[1] = bitcast<u32>(a * b - 1.0);
    answer[2] = bitcast<u32>(floor(-a) + ceil(a) * 4.0 + trunc(-a) * 16.0);
    answer[3] = bitcast<u32>(round(2.5 * b));
    answer[4] = select(0u, 1u, a < b) | select(0u, 2u, a == a) | select(0u, 4u, -a <= b);
    answer[5] = bitcast<u32>(fma(a, b, 0.5));
    answer[6] = bitcast<u32>(max(a, b) + min(a, b) * 8.0 + abs(-b));
    answer[7] = bitcast<u32>(f32(given[0] > 0.0) + f32(-7i) + f32(9u));
}
