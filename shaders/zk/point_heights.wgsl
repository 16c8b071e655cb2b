// Z of each point.
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> a: array<Point>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

@compute @workgroup_size(64)
fn point_heights(@builtin(global_invocation_id) id: vec3u) {
    if id.x < count { y[id.x] = a[id.x].z; }
}
