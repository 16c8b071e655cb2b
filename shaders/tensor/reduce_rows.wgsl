// A workgroup reduces a row, or a part of one: words[0] = (rows, length of a row, length of a part, number of parts).
// Given: the type Total, load(row, place) -> Total, combine(a, b) -> Total, store(at, row, total).

const LANES = 256u;

var<workgroup> lanes: array<Total, LANES>;

@compute @workgroup_size(LANES)
fn reduce_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let start = group.x * words[0].z;
    let end = min(start + words[0].z, words[0].y);
    // Sixteen values are added up before they are carried: the error grows with the depth of the sums.
    var total = initial(row, start);
    for (var begin = start; begin < end; begin += 16u * LANES) {
        var sum = initial(row, start);
        for (var base = begin; base < min(begin + 16u * LANES, end); base += LANES) {
            let place = base + lane;
            if place < end { sum = combine(sum, load(row, place)); }
        }
        total = combine(total, sum);
    }
    lanes[lane] = total;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] = combine(lanes[lane], lanes[lane + stride]); }
        workgroupBarrier();
    }
    if lane == 0u { store(row * words[0].w + group.x, row, lanes[0]); }
}
