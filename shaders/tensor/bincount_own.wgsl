// A workgroup counts elements in its own memory, and adds its counts to the result once. words[0] = (elements, bins, workgroups, rounds of each).
// A line with a hash sign stands for EACH lines, one for each element of a round, which are read before they are counted. Given: EACH; BINS, no fewer than
// the bins; COPIES, counts of each bin, for neighbouring invocations; element(i) -> u32, y of zeros.

const LANES = 256u;
const NONE = 0xffffffffu;

// Zeros at first, as all workgroup memory.
var<workgroup> counts: array<atomic<u32>, BINS * COPIES>;

fn bin(i: u32) -> u32 {
    if i < words[0].x { return element(i); }
    return NONE;
}

@compute @workgroup_size(LANES)
fn bincount(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let bins = words[0].y;
    let copy = lane % COPIES;
    for (var turn = 0u; turn < words[0].w; turn++) {
        let start = (turn * words[0].z + group.x) * EACH * LANES + lane;
        let bin# = bin(start + #u * LANES);
        if bin# < bins { atomicAdd(&counts[bin# * COPIES + copy], 1u); }
    }
    workgroupBarrier();
    for (var at = lane; at < bins; at += LANES) {
        var count = 0u;
        for (var other = 0u; other < COPIES; other++) { count += atomicLoad(&counts[at * COPIES + other]); }
        if count > 0u { atomicAdd(&y[at], count); }
    }
}
