// y = x: bound by memory.

@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn copy(@builtin(global_invocation_id) id: vec3u) {
    y[id.x] = x[id.x];
}
