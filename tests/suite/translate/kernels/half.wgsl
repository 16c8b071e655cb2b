enable f16;
@group(0) @binding(0) var<storage> a: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> out: array<f16>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let v = a[id.x];
    out[id.x] = dot(v, vec4<f16>(1.0h, 2.0h, -0.5h, 0.25h)) + sqrt(abs(v.x)) + f16(i32(v.y));
}
