const WEIGHTS = array<f32, 5>(0.0625, 0.25, 0.375, 0.25, 0.0625);
@group(0) @binding(0) var<uniform> m: array<mat2x3f, 2>;
@group(0) @binding(1) var<storage, read_write> out: array<vec3f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let v = vec2f(id.xy) * WEIGHTS[id.x % 5u];
    let square = m[0] * transpose(m[1]);
    out[id.x] = square * (m[id.y] * v) + determinant(square) * normalize(cross(m[0][1], m[1][0]));
}
