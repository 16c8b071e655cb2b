// Integers wrap, and no compiler concludes otherwise.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<i32>;

@compute @workgroup_size(1)
fn integer_arithmetic() {
    let largest = given[0];
    let least = given[1];
    answer[0] = bitcast<u32>(largest + 1);
    answer[1] = select(0u, 1u, largest + 1 > largest);
    answer[2] = bitcast<u32>(least - 1);
    answer[3] = bitcast<u32>(largest * largest);
    answer[4] = bitcast<u32>(-least);
    answer[5] = bitcast<u32>(abs(least));
    answer[6] = bitcast<u32>(least >> 4u);
    answer[7] = bitcast<u32>(min(largest, least)) ^ bitcast<u32>(clamp(7, least, 5));
}
