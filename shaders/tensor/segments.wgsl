// A workgroup combines each value of its tile of a row with those before it in the tile that have its target: words[0] = (rows, length of a row).
// Given: the type Number; target_of(row, i) -> u32, the targets of the values in ascending order, value(row, i) -> Number, combine(a, b) -> Number; y.

const LANES = 256u;
const EACH = 4u;
const NONE = 0xffffffffu;

// What an invocation's last value has become, and its target.
var<workgroup> totals: array<Number, 2u * LANES>;
var<workgroup> targets: array<u32, LANES>;

fn target_at(row: u32, i: u32) -> u32 {
    if i < words[0].y { return target_of(row, i); }
    return NONE;
}

fn value_at(row: u32, i: u32) -> Number {
    if i < words[0].y { return value(row, i); }
    return Number();
}

fn store(row: u32, i: u32, total: Number) {
    if i < words[0].y { y[row * words[0].y + i] = total; }
}

// b, behind a if both have one target.
fn joined(a: Number, b: Number, same: bool) -> Number {
    if same { return combine(a, b); }
    return b;
}

@compute @workgroup_size(LANES)
fn segments(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let first = (group.x * LANES + lane) * EACH;
    let t0 = target_at(row, first);
    let t1 = target_at(row, first + 1u);
    let t2 = target_at(row, first + 2u);
    let t3 = target_at(row, first + 3u);
    let v0 = value_at(row, first);
    let v1 = joined(v0, value_at(row, first + 1u), t0 == t1);
    let v2 = joined(v1, value_at(row, first + 2u), t1 == t2);
    let v3 = joined(v2, value_at(row, first + 3u), t2 == t3);
    var total = v3;
    var half = 0u;
    totals[lane] = total;
    targets[lane] = t3;
    workgroupBarrier();
    for (var distance = 1u; distance < LANES; distance *= 2u) {
        // Targets ascend: if the last ones of two invocations are one, so are all between them.
        if lane >= distance && targets[lane - distance] == t3 { total = combine(totals[half + lane - distance], total); }
        half = LANES - half;
        totals[half + lane] = total;
        workgroupBarrier();
    }
    var before = NONE;
    var behind = Number();
    if lane > 0u {
        before = targets[lane - 1u];
        behind = totals[half + lane - 1u];
    }
    store(row, first, joined(behind, v0, before == t0));
    store(row, first + 1u, joined(behind, v1, before == t1));
    store(row, first + 2u, joined(behind, v2, before == t2));
    store(row, first + 3u, total);
}
