// First pass of coherence: partial sums for the mean, the largest magnitude, and whether all values are finite.
//
// `partials[workgroup]` is (sum of (value - first) factor, largest |value| or -1 if one is NaN or infinite, first, 0),
// with `first` the first of all values: from there, the sum loses nothing to a large common offset, and a constant
// field gives exactly 0. The host adds the partials in f64. `factor` is 1, or a power of two below it if the sum
// would overflow.

@group(0) @binding(0)
var<uniform> span: Span;

@group(0) @binding(1)
var<storage, read> values: array<f32>;

@group(0) @binding(2)
var<storage, read_write> partials: array<vec4f>;

var<workgroup> largest_bits: atomic<u32>;

const INFINITY_BITS = 2139095040u;

@compute @workgroup_size(256, 1, 1)
fn coherence_mean(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = values[0];
    let start = group.x * span.blocks * ROWS * LANES;
    let rows = min((span.count - start) / LANES, span.blocks * ROWS);
    var total = 0.0;
    var largest = 0u;
    for (var block = 0u; block < rows; block += ROWS) {
        var sum = 0.0;
        let end = min(block + ROWS, rows);
        for (var row = block; row < end; row++) {
            let value = values[start + row * LANES + lane];
            largest = max(largest, bitcast<u32>(value) & 2147483647u);
            sum += (value - first) * span.factor;
        }
        total += sum;
    }
    let rest = span.count - start - rows * LANES;
    if (rows < span.blocks * ROWS) & (lane < rest) {
        let value = values[start + rows * LANES + lane];
        largest = max(largest, bitcast<u32>(value) & 2147483647u);
        total += (value - first) * span.factor;
    }
    atomicMax(&largest_bits, largest);
    let sum = workgroup_sum(lane, vec2f(total, 0.0)).x;
    if lane == 0u {
        let bits = atomicLoad(&largest_bits);
        let magnitude = select(bitcast<f32>(min(bits, INFINITY_BITS - 1u)), -1.0, bits >= INFINITY_BITS);
        partials[group.x] = vec4f(sum, magnitude, first, 0.0);
    }
}

const LANES = 256u;

const ROWS = 32u;

struct Span {
    count: u32,
    blocks: u32,
    high: f32,
    factor: f32,
    shift: f32
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
