// Products of matrices and vectors, of whole numbers.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<f32>;

@compute @workgroup_size(1)
fn matrices() {
    let m = mat3x2f(given[0], given[1], given[2], given[3], given[4], given[5]);
    let n = mat2x3f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    let right = m * vec3f(1.0, 10.0, 100.0);
    let left = vec2f(1.0, 1000.0) * m;
    let both = m * n;
    let turned = transpose(m);
    answer[0] = u32(right.x);
    answer[1] = u32(right.y);
    answer[2] = u32(left.x);
    answer[3] = u32(left.z);
    answer[4] = u32(both[0].x + 100.0 * both[1].y);
    answer[5] = u32(turned[0].z + 10.0 * turned[1].x);
    answer[6] = u32(dot(vec3f(1.0, 2.0, 3.0), n[1]) + cross(vec3f(1.0, 0.0, 0.0), vec3f(0.0, 1.0, 0.0)).z);
}
