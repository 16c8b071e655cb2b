// Floats beyond an integer's range become the nearest float that it holds.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<f32>;

@compute @workgroup_size(8)
fn float_to_int(@builtin(local_invocation_index) place: u32) {
    answer[2u * place] = bitcast<u32>(i32(given[place]));
    answer[2u * place + 1u] = u32(given[place]);
}
