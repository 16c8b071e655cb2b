// A workgroup reduces a row, or a part of one: words[0] = (rows, length of a row, length of a part, number of parts).
// Given: the type Total, load(row, place) -> Total, combine(a, b) -> Total, store(at, row, total).

const LANES = 256u;
const BLOCK = 16u * LANES;

var<workgroup> lanes: array<Total, LANES>;

fn four(row: u32, place: u32) -> Total {
    let first = combine(load(row, place), load(row, place + LANES));
    return combine(first, combine(load(row, place + 2u * LANES), load(row, place + 3u * LANES)));
}

@compute @workgroup_size(LANES)
fn reduce_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let start = group.x * words[0].z;
    let end = min(start + words[0].z, words[0].y);
    // Sixteen values are added up, by fours and pairs, before they are carried: the error grows with the depth of the sums.
    var total = initial(row, start);
    var begin = start;
    for (; begin + BLOCK <= end; begin += BLOCK) {
        var sum = four(row, begin + lane);
        for (var base = begin + 4u * LANES; base < begin + BLOCK; base += 4u * LANES) {
            sum = combine(sum, four(row, base + lane));
        }
        total = combine(total, sum);
    }
    var rest = initial(row, start);
    for (; begin < end; begin += LANES) {
        let place = begin + lane;
        if place < end { rest = combine(rest, load(row, place)); }
    }
    total = combine(total, rest);
    lanes[lane] = total;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] = combine(lanes[lane], lanes[lane + stride]); }
        workgroupBarrier();
    }
    if lane == 0u { store(row * words[0].w + group.x, row, lanes[0]); }
}
