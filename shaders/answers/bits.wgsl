// Functions of bits, at their edges.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(1)
fn bits() {
    for (var i = 0u; i < 4u; i++) {
        let x = given[i];
        let to = 9u * i;
        answer[to] = countOneBits(x);
        answer[to + 1u] = countLeadingZeros(x);
        answer[to + 2u] = countTrailingZeros(x);
        answer[to + 3u] = firstLeadingBit(x);
        answer[to + 4u] = firstTrailingBit(x);
        answer[to + 5u] = reverseBits(x);
        answer[to + 6u] = extractBits(x, given[4], given[5]);
        answer[to + 7u] = bitcast<u32>(extractBits(bitcast<i32>(x), given[4], given[5]));
        answer[to + 8u] = insertBits(x, 0xffu, given[4], given[5]);
    }
}
