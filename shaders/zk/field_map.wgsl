// y = apply(a, b), element by element; a step of 0 takes one element for all.
struct Sizes { count: u32, a_step: u32, b_step: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> a: array<Fe>;
@group(0) @binding(2) var<storage> b: array<Fe>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

@compute @workgroup_size(64)
fn field_map(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    y[id.x] = apply(a[id.x * sizes.a_step], b[id.x * sizes.b_step]);
}
