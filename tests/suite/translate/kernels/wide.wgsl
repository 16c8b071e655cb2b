@group(0) @binding(0) var<storage> a: array<i64>;
@group(0) @binding(1) var<storage> b: array<f64>;
@group(0) @binding(2) var<storage, read_write> out: array<u64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x = a[id.x] / (a[id.x + 1u] - 5li);
    out[id.x] = u64(x) ^ (u64(b[id.x] * 0.5lf) << 3u);
}
