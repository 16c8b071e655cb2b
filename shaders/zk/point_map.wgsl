// y = apply(a, b) for points, in homogeneous coordinates; `apply` takes the element's number.
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> a: array<Affine>;
@group(0) @binding(3) var<storage, read_write> y: array<Point>;

@compute @workgroup_size(64)
fn point_map(@builtin(global_invocation_id) id: vec3u) {
    if id.x < count { y[id.x] = apply(id.x); }
}
