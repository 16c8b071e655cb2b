// A workgroup orders a block of 64 elements of a row, each by counting those before it: words[0] = (rows, length of a row).
// Given: order(row, place) -> u32, y, in which an element has two words: its order and its place.

const LANES = 64u;

var<workgroup> orders: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn sort_blocks(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let length = words[0].y;
    let first = group.x * LANES;
    let filled = min(LANES, length - first);
    if lane < filled { orders[lane] = order(row, first + lane); }
    workgroupBarrier();
    if lane >= filled { return; }
    let own = orders[lane];
    var before = 0u;
    for (var other = 0u; other < filled; other++) {
        // Of equal ones the first stays first.
        before += select(0u, 1u, orders[other] < own || (orders[other] == own && other < lane));
    }
    let at = row * length + first + before;
    y[2u * at] = own;
    y[2u * at + 1u] = first + lane;
}
