// y = a x + y, one invocation for each element.
struct Params {
    a: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) {
        y[id.x] += params.a * x[id.x];
    }
}
