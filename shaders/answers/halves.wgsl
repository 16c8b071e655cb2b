// Arithmetic in f16 on numbers that it holds exactly.
enable f16;
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<f16>;

@compute @workgroup_size(4)
fn halves(@builtin(local_invocation_index) place: u32) {
    let x = given[place];
    let v = vec3<f16>(x, x * 2.0h, given[3u - place]);
    answer[2u * place] = u32(f32(dot(v, vec3<f16>(1.0h)) * 4.0h));
    answer[2u * place + 1u] = u32(f32(max(x, 3.0h) + floor(x)) * 8.0);
}
