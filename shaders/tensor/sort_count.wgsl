// A workgroup counts the digits of a tile of a row: words[0] = (rows, length of a row, lowest bit of the digit, tiles of a row). Given: LANES, EACH,
// BINS, key_of(row, place) -> u32; y, the counts of a row's tiles, digit by digit.

var<workgroup> counts: array<atomic<u32>, BINS>;

@compute @workgroup_size(LANES)
fn sort_count(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let first = group.x * LANES * EACH + lane;
    let end = min(first + LANES * EACH, words[0].y);
    for (var place = first; place < end; place += LANES) {
        atomicAdd(&counts[(key_of(row, place) >> words[0].z) & (BINS - 1u)], 1u);
    }
    workgroupBarrier();
    if lane < BINS { y[(row * BINS + lane) * words[0].w + group.x] = atomicLoad(&counts[lane]); }
}
