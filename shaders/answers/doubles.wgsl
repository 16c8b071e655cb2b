// f64 keeps what f32 would round away.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(1)
fn doubles() {
    let a = f64(given[0]);
    let b = f64(given[1]);
    answer[0] = u32(a + b - a);
    answer[1] = u32((a * b) / a);
    answer[2] = select(0u, 1u, a + b > a);
    answer[3] = u32(sqrt(b * b));
}
