@group(0) @binding(0) var<storage> a: array<vec4i>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4i>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let v = a[id.x];
    let w = v.wzyx;
    var r = v / w + v % w - (v << vec4u(w)) * abs(v);
    r.x = i32(bitcast<f32>(v.x)) + countOneBits(v.y) + firstLeadingBit(v.z) + extractBits(v.w, 3u, 7u);
    r = select(r, -v, v < w);
    out[id.x] = clamp(r, vec4i(-2147483647 - 1), vec4i(i32(pack4x8snorm(unpack4x8unorm(u32(v.x))))));
}
