// Quotients and remainders, by zero and of the least number too.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<i32>;

@compute @workgroup_size(8)
fn integer_division(@builtin(local_invocation_index) place: u32) {
    let a = given[2u * place];
    let b = given[2u * place + 1u];
    answer[4u * place] = bitcast<u32>(a / b);
    answer[4u * place + 1u] = bitcast<u32>(a % b);
    answer[4u * place + 2u] = bitcast<u32>(a) / bitcast<u32>(b);
    answer[4u * place + 3u] = bitcast<u32>(a) % bitcast<u32>(b);
}
