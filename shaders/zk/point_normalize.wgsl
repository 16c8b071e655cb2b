// Affine coordinates, by the inverses of Z; infinity becomes (0, 0).
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> a: array<Point>;
@group(0) @binding(2) var<storage> inverse: array<Fe>;
@group(0) @binding(3) var<storage, read_write> y: array<Affine>;

@compute @workgroup_size(64)
fn point_normalize(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= count { return; }
    let i = id.x;
    y[i] = Affine(fe_mul(a[i].x, inverse[i]), fe_mul(a[i].y, inverse[i]));
}
