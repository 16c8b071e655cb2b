// First pass of coherence, in one reading: the mean, the sum of squared distances from it, the largest magnitude, and whether all values are finite.
//
// `partials[workgroup]` is (mean - first, sum of squares, largest |value| or -1 if one is NaN or infinite, first), with `first` the first of all
// values: a large common offset costs no digits, and a constant field gives exactly 0. Distances are multiplied by `factor`, 1 or a power of two
// that keeps their squares in range. The host combines the partials in f64.
//
// An invocation sums a column of 32 values around the column's own first value p and combines columns as Chan, Golub and LeVeque do ("Updating
// Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979). What cancels is at most 32 (p - mean)^2, and (p - mean)^2 is itself a
// part of the field's sum of squares: the relative error stays near 32 roundings, wherever p lies.


@group(0) @binding(0) var<uniform> span: Span;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<vec4f>;

var<workgroup> largest_bits: atomic<u32>;

// Magnitudes as integers: they order like the floats, and no compiler can assume that NaN and infinity are absent.
const INFINITY_BITS = 0x7f800000u;

@compute @workgroup_size(256, 1, 1)
fn coherence_moments(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = values[0];
    let start = group.x * span.blocks * ROWS * LANES;
    let rows = min((span.count - start) / LANES, span.blocks * ROWS);
    var mean = 0.0;
    var squares = 0.0;
    var largest = 0u;
    for (var block = 0u; block < rows; block += ROWS) {
        let pivot = values[start + block * LANES + lane];
        var sum = 0.0;
        var own = 0.0;
        let end = min(block + ROWS, rows);
        for (var row = block; row < end; row++) {
            let value = values[start + row * LANES + lane];
            largest = max(largest, bitcast<u32>(value) & 0x7fffffffu);
            let distance = (value - pivot) * span.factor;
            sum += distance;
            own += distance * distance;
        }
        let count = f32(end - block);
        let step = (pivot - first) * span.factor + sum / count - mean;
        let share = count / f32(end);
        mean += step * share;
        squares += max(own - sum * sum / count, 0.0) + step * step * (f32(block) * share);
    }
    // What is left of the last workgroup's last row.
    var count = f32(rows);
    let rest = span.count - start - rows * LANES;
    if (rows < span.blocks * ROWS) & (lane < rest) {
        let value = values[start + rows * LANES + lane];
        largest = max(largest, bitcast<u32>(value) & 0x7fffffffu);
        let step = (value - first) * span.factor - mean;
        let share = 1.0 / (count + 1.0);
        mean += step * share;
        squares += step * step * (count * share);
        count += 1.0;
    }
    atomicMax(&largest_bits, largest);
    let all = f32(min(span.count - start, span.blocks * ROWS * LANES));
    let centre = workgroup_sum(lane, vec2f(mean * count, 0.0)).x / all;
    workgroupBarrier();
    let apart = mean - centre;
    let sum = workgroup_sum(lane, vec2f(squares + count * apart * apart, 0.0)).x;
    if lane == 0u {
        let bits = atomicLoad(&largest_bits);
        let magnitude = select(bitcast<f32>(min(bits, INFINITY_BITS - 1u)), -1.0, bits >= INFINITY_BITS);
        partials[group.x] = vec4f(centre, sum, magnitude, first);
    }
}

// lib/reduce.wgsl
const LANES = 256u;
const ROWS = 32u;
struct Span {
    // Number of values; a workgroup takes `blocks` times 8,192 of them. The number of workgroups is
    // ceil(count / (8192 blocks)), at most 65,535.
    count: u32,
    blocks: u32,
    high: f32,
    factor: f32,
    shift: f32,
}
var<workgroup> lanes: array<vec2f, LANES>;
fn workgroup_sum(lane: u32, value: vec2f) -> vec2f {
    lanes[lane] = value;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride {
            lanes[lane] += lanes[lane + stride];
        }
        workgroupBarrier();
    }
    return lanes[0];
}
