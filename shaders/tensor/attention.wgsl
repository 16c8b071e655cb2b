// A workgroup computes a row of attention: the weighted mean of the values, weighted by the softmax of the query's products with the keys. Keys
// come by 64; no score is kept. words[0] = (queries, keys, elements of a key, elements of a value), words[1] = (bits of the scale).
// Given: DEPTH and PARTS, elements of a key and 64ths of a value, rounded up; CAUSAL, whether a query sees only keys up to its own place, the
// last query's being that of the last key; query(head, row, d), key(head, at, d), value_of(head, at, d), bias(head, row, at) -> f32;
// store(head, row, d, value).

const LANES = 64u;
// Below all scores but -infinity: an exponential of it is 0, and their difference is a number.
const LOWEST = -3.0e38;

var<workgroup> scores: array<f32, LANES>;
var<workgroup> asked: array<f32, DEPTH>;

@compute @workgroup_size(LANES)
fn attention(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let head = group.y;
    let queries = words[0].x;
    let keys = words[0].y;
    for (var d = lane; d < words[0].z; d += LANES) { asked[d] = query(head, row, d) * bitcast<f32>(words[1].x); }
    workgroupBarrier();
    var seen = keys;
    if CAUSAL { seen = keys - queries + row + 1u; }
    var greatest = LOWEST;
    var total = 0.0;
    var sums: array<f32, PARTS>;
    for (var first = 0u; first < seen; first += LANES) {
        let count = min(LANES, seen - first);
        if lane < count {
            var score = 0.0;
            for (var d = 0u; d < words[0].z; d++) { score += asked[d] * key(head, first + lane, d); }
            scores[lane] = score + bias(head, row, first + lane);
        }
        workgroupBarrier();
        var top = greatest;
        for (var i = 0u; i < count; i++) { top = float_max(top, scores[i]); }
        // What was summed before is as large beside the new greatest score.
        let factor = float_exp(greatest - top);
        greatest = top;
        workgroupBarrier();
        if lane < count { scores[lane] = float_exp(scores[lane] - top); }
        workgroupBarrier();
        var chunk = 0.0;
        for (var i = 0u; i < count; i++) { chunk += scores[i]; }
        total = total * factor + chunk;
        for (var part = 0u; part < PARTS; part++) {
            let d = part * LANES + lane;
            if d < words[0].w {
                var sum = 0.0;
                for (var i = 0u; i < count; i++) { sum += scores[i] * value_of(head, first + i, d); }
                sums[part] = sums[part] * factor + sum;
            }
        }
        workgroupBarrier();
    }
    for (var part = 0u; part < PARTS; part++) {
        let d = part * LANES + lane;
        // Who sees no key gets 0.
        if d < words[0].w { store(head, row, d, select(sums[part] / total, 0.0, total == 0.0)); }
    }
}
