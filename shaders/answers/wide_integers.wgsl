// 64-bit integers: products, quotients and shifts across the middle.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(1)
fn wide_integers() {
    let a = (u64(given[0]) << 32u) | u64(given[1]);
    let product = a * u64(given[2]);
    answer[0] = u32(product);
    answer[1] = u32(product >> 32u);
    let quotient = a / u64(given[2]);
    answer[2] = u32(quotient);
    answer[3] = u32(quotient >> 32u);
    let negative = -i64(given[1]) * 5li;
    answer[4] = u32(u64(negative >> 33u));
    answer[5] = select(0u, 1u, negative < 0li);
}
