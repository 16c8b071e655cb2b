// A workgroup computes some rows of attention at once: each the weighted mean of the values, weighted by the softmax of the query's products with the
// keys (Dao and others, 2022). Keys and values come through workgroup memory; no score is kept.
// words[0] = (queries, keys, elements of a key, elements of a value), words[1] = (bits of the scale).
// Given: DEPTH and WIDTH, elements of a key and of a value, rounded up to a multiple of ACROSS; OWN and EACH, the rows and keys of an invocation;
// CAUSAL, whether a query sees only keys up to its own place, the last query's being that of the last key; query(head, row, d), key(head, at, d),
// value_of(head, at, d), bias(head, row, at) -> f32; store(head, row, d, value).

const LANES = 64u;
// Invocations beside each other: over keys, then over the elements of a value.
const ACROSS = 16u;
const ROWS = LANES / ACROSS * OWN;
const KEYS = ACROSS * EACH;
const PARTS = WIDTH / ACROSS;
// Between keys in workgroup memory: reads beside each other come from different banks.
const STEP = DEPTH + 1u;
// Below all scores but -infinity: an exponential of it is 0, and their difference is a number.
const LOWEST = -3.0e38;
const HIDDEN = -3.3e38;

var<workgroup> asked: array<f32, ROWS * DEPTH>;
// Of keys, then of values.
var<workgroup> block: array<f32, KEYS * max(STEP, WIDTH)>;
var<workgroup> scores: array<f32, ROWS * KEYS>;
// What a row's sums are multiplied by; at the end its total.
var<workgroup> factors: array<f32, ROWS>;

@compute @workgroup_size(LANES)
fn attention_tiles(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let head = group.y;
    let begin = group.x * ROWS;
    let queries = words[0].x;
    let keys = words[0].y;
    for (var i = lane; i < ROWS * DEPTH; i += LANES) {
        let row = begin + i / DEPTH;
        let d = i % DEPTH;
        var value = 0.0;
        if row < queries && d < words[0].z { value = query(head, row, d) * bitcast<f32>(words[1].x); }
        asked[i] = value;
    }
    let rows = lane / ACROSS * OWN;
    let column = lane % ACROSS;
    var seen = keys;
    if CAUSAL { seen = min(keys, keys - queries + begin + ROWS); }
    // Of the row that an invocation of the first ones looks after.
    var greatest = LOWEST;
    var total = 0.0;
    var sums: array<f32, OWN * PARTS>;
    for (var first = 0u; first < seen; first += KEYS) {
        for (var i = lane; i < KEYS * DEPTH; i += LANES) {
            let at = i / DEPTH;
            let d = i % DEPTH;
            var value = 0.0;
            if first + at < keys && d < words[0].z { value = key(head, first + at, d); }
            block[at * STEP + d] = value;
        }
        workgroupBarrier();
        var products: array<f32, OWN * EACH>;
        for (var d = 0u; d < DEPTH; d++) {
            var left: array<f32, OWN>;
            for (var i = 0u; i < OWN; i++) { left[i] = asked[(rows + i) * DEPTH + d]; }
            for (var j = 0u; j < EACH; j++) {
                let right = block[(column + j * ACROSS) * STEP + d];
                for (var i = 0u; i < OWN; i++) { products[i * EACH + j] += left[i] * right; }
            }
        }
        for (var i = 0u; i < OWN; i++) {
            for (var j = 0u; j < EACH; j++) {
                let row = begin + rows + i;
                let at = first + column + j * ACROSS;
                var score = HIDDEN;
                if row < queries && at < keys && (!CAUSAL || at + queries <= keys + row) {
                    score = products[i * EACH + j] + bias(head, row, at);
                }
                scores[(rows + i) * KEYS + column + j * ACROSS] = score;
            }
        }
        workgroupBarrier();
        if lane < ROWS {
            var top = greatest;
            for (var i = 0u; i < KEYS; i++) { top = float_max(top, scores[lane * KEYS + i]); }
            // What was summed before is as large beside the new greatest score.
            let factor = float_exp(greatest - top);
            greatest = top;
            var chunk = 0.0;
            for (var i = 0u; i < KEYS; i++) {
                let power = float_exp(scores[lane * KEYS + i] - top);
                scores[lane * KEYS + i] = power;
                chunk += power;
            }
            total = total * factor + chunk;
            factors[lane] = factor;
        }
        for (var i = lane; i < KEYS * WIDTH; i += LANES) {
            let at = first + i / WIDTH;
            let d = i % WIDTH;
            var value = 0.0;
            if at < keys && d < words[0].w { value = value_of(head, at, d); }
            block[i] = value;
        }
        workgroupBarrier();
        for (var i = 0u; i < OWN; i++) {
            for (var part = 0u; part < PARTS; part++) { sums[i * PARTS + part] *= factors[rows + i]; }
        }
        for (var at = 0u; at < KEYS; at++) {
            var weights: array<f32, OWN>;
            for (var i = 0u; i < OWN; i++) { weights[i] = scores[(rows + i) * KEYS + at]; }
            for (var part = 0u; part < PARTS; part++) {
                let value = block[at * WIDTH + part * ACROSS + column];
                for (var i = 0u; i < OWN; i++) { sums[i * PARTS + part] += weights[i] * value; }
            }
        }
        workgroupBarrier();
    }
    if lane < ROWS { factors[lane] = total; }
    workgroupBarrier();
    for (var i = 0u; i < OWN; i++) {
        let row = begin + rows + i;
        if row < queries {
            let all = factors[rows + i];
            for (var part = 0u; part < PARTS; part++) {
                let d = part * ACROSS + column;
                // Who sees no key gets 0.
                if d < words[0].w { store(head, row, d, select(sums[i * PARTS + part] / all, 0.0, all == 0.0)); }
            }
        }
    }
}
