// A step of heat along a rod.
struct Params { rate: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> before: array<f32>;
@group(0) @binding(2) var<storage, read_write> after: array<f32>;

@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3u) {
    let last = arrayLength(&before) - 1u;
    if id.x > last { return; }
    // No heat leaves at the ends.
    let left = before[max(id.x, 1u) - 1u];
    let right = before[min(id.x + 1u, last)];
    after[id.x] = before[id.x] + params.rate * (left + right - 2.0 * before[id.x]);
}
