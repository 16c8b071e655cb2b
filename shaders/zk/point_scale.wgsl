// A word's bits of each point's multiple, from the scalar's highest word down: `y` holds what the words above came to. A word at a time, because
// some systems end kernels, and some drivers loops, that take long.
struct Sizes { count: u32, word: u32, first: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> a: array<Affine>;
@group(0) @binding(2) var<storage> scalars: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<Point>;

@compute @workgroup_size(64)
fn point_scale(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    let p = from_affine(a[id.x]);
    let bits = scalars[sizes.word * sizes.count + id.x];
    var sum = infinity();
    if sizes.first == 0u { sum = y[id.x]; }
    for (var bit = 32u; bit > 0u; bit--) {
        sum = point_double(sum);
        if ((bits >> (bit - 1u)) & 1u) == 1u { sum = point_add(sum, p); }
    }
    y[id.x] = sum;
}
