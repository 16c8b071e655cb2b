// A workgroup scans as many blocks of 1,024 elements of a row as its share is, each element combined with those before it: words[0] = (rows,
// length of a row, workgroups of a row, 1 where an element's own value is left out). Given: the type Number, neutral() -> Number,
// combine(a, b) -> Number, element(row, place) -> Number, y. Where a row has several workgroups, their totals follow the scanned rows in y.

const LANES = 256u;
const EACH = 4u;

var<workgroup> lanes: array<Number, LANES>;

fn store(index: u32, value: Number) { y[index] = value; }

@compute @workgroup_size(LANES)
fn scan(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let length = words[0].y;
    let groups = words[0].z;
    let blocks = (length - 1u) / (LANES * EACH) + 1u;
    let share = (blocks - 1u) / groups + 1u;
    let end = min(blocks, (group.x + 1u) * share);
    var before = neutral();
    for (var block = group.x * share; block < end; block++) {
        let first = block * LANES * EACH + lane * EACH;
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
            var earlier = neutral();
            if lane >= distance { earlier = lanes[lane - distance]; }
            workgroupBarrier();
            lanes[lane] = combine(earlier, lanes[lane]);
            workgroupBarrier();
        }
        var running = before;
        if lane > 0u { running = combine(before, lanes[lane - 1u]); }
        for (var i = 0u; i < EACH; i++) {
            let with_own = combine(running, values[i]);
            if first + i < length { store(row * length + first + i, select(with_own, running, words[0].w != 0u)); }
            running = with_own;
        }
        before = combine(before, lanes[LANES - 1u]);
        workgroupBarrier();
    }
    if lane == LANES - 1u && groups > 1u { store(words[0].x * length + row * groups + group.x, before); }
}
