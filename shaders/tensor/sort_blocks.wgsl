// A workgroup orders a row of at most 64 elements, each by counting those before it: words[0] = (rows, length of a row, unused, elements to store).
// Given: order(row, place) -> u32, the key of an element; store(row, at, key, place).

const LANES = 64u;

var<workgroup> orders: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn sort_blocks(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    if lane < length { orders[lane] = order(row, lane); }
    workgroupBarrier();
    if lane >= length { return; }
    let own = orders[lane];
    var before = 0u;
    for (var other = 0u; other < length; other++) {
        // Of equal ones the first stays first.
        before += select(0u, 1u, orders[other] < own || (orders[other] == own && other < lane));
    }
    if before < words[0].w { store(row, before, own, lane); }
}
