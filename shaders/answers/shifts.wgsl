// Shifts by amounts that are known at run time only; those of 32 and more count modulo 32.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(8)
fn shifts(@builtin(local_invocation_index) place: u32) {
    let amount = given[place];
    answer[3u * place] = 0x80000001u << amount;
    answer[3u * place + 1u] = 0x80000001u >> amount;
    answer[3u * place + 2u] = bitcast<u32>(bitcast<i32>(0x80000001u + place - place) >> amount);
}
