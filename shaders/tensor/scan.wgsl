// A workgroup scans a block of 1,024 elements of a row, each combined with those before it: words[0] = (rows, length of a row, blocks of a row,
// 1 where an element's own value is left out). Given: the type Number, neutral() -> Number, combine(a, b) -> Number,
// element(row, place) -> Number, y; the blocks' totals follow the scanned rows in y.

const LANES = 256u;
const EACH = 4u;

var<workgroup> lanes: array<Number, LANES>;

@compute @workgroup_size(LANES)
fn scan(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let length = words[0].y;
    let first = group.x * LANES * EACH + lane * EACH;
    var values: array<Number, EACH>;
    var total = neutral();
    for (var i = 0u; i < EACH; i++) {
        values[i] = neutral();
        if first + i < length { values[i] = element(row, first + i); }
        total = combine(total, values[i]);
    }
    lanes[lane] = total;
    workgroupBarrier();
    for (var distance = 1u; distance < LANES; distance *= 2u) {
        var before = neutral();
        if lane >= distance { before = lanes[lane - distance]; }
        workgroupBarrier();
        lanes[lane] = combine(before, lanes[lane]);
        workgroupBarrier();
    }
    var running = neutral();
    if lane > 0u { running = lanes[lane - 1u]; }
    for (var i = 0u; i < EACH; i++) {
        let with_own = combine(running, values[i]);
        if first + i < length { y[row * length + first + i] = select(with_own, running, words[0].w != 0u); }
        running = with_own;
    }
    if lane == LANES - 1u { y[words[0].x * length + row * words[0].z + group.x] = lanes[lane]; }
}
