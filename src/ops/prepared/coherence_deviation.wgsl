// Second pass of coherence: partial sums of z and z^2 for the standard deviation, z = (value - high) factor - shift.
//
// With `high` the mean rounded to f32, `shift` what it lacks of the mean (times factor), and `factor` a power of two
// that brings the values near 1, so that no square overflows or vanishes. The host adds the partials in f64 and takes
// (sum of z)^2 / count off the sum of squares: what the mean was still wrong by.

@group(0) @binding(0)
var<uniform> span: Span;

@group(0) @binding(1)
var<storage, read> values: array<f32>;

@group(0) @binding(2)
var<storage, read_write> partials: array<vec2f>;

@compute @workgroup_size(256, 1, 1)
fn coherence_deviation(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let start = group.x * span.blocks * ROWS * LANES;
    let rows = min((span.count - start) / LANES, span.blocks * ROWS);
    var total = vec2f();
    for (var block = 0u; block < rows; block += ROWS) {
        var sum = vec2f();
        let end = min(block + ROWS, rows);
        for (var row = block; row < end; row++) {
            let z = (values[start + row * LANES + lane] - span.high) * span.factor - span.shift;
            sum += vec2f(z, z * z);
        }
        total += sum;
    }
    let rest = span.count - start - rows * LANES;
    if (rows < span.blocks * ROWS) & (lane < rest) {
        let z = (values[start + rows * LANES + lane] - span.high) * span.factor - span.shift;
        total += vec2f(z, z * z);
    }
    let sum = workgroup_sum(lane, total);
    if lane == 0u {
        partials[group.x] = sum;
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
