// Second pass of coherence: partial sums of LAMBDA |PHI z z_above + PHI z z_left| = |z (z_above + z_left)|, because
// LAMBDA PHI = 1, over all values but the first row and column; z = (value - high) factor - shift, with `factor` one
// over the standard deviation.
//
// Workgroup (x, y) takes columns 1 + 256 x .. and rows 1 + 32 blocks y .., each invocation walking down one column.
// `partials[y * columns of workgroups + x]` is its sum; the host adds them in f64.


struct Sheet {
    width: u32,
    height: u32,
    blocks: u32,
    high: f32,
    factor: f32,
    shift: f32,
}

@group(0) @binding(0) var<uniform> sheet: Sheet;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;

fn z(index: u32) -> f32 {
    return (values[index] - sheet.high) * sheet.factor - sheet.shift;
}

@compute @workgroup_size(256, 1, 1)
fn coherence_neighbour_sum(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = 1u + group.x * LANES + lane;
    let inside = column < sheet.width;
    let first = 1u + group.y * sheet.blocks * ROWS;
    let rows = min(sheet.height - first, sheet.blocks * ROWS);
    var total = 0.0;
    var above = 0.0;
    if inside {
        above = z((first - 1u) * sheet.width + column);
    }
    for (var block = 0u; block < rows; block += ROWS) {
        var sum = 0.0;
        let end = min(block + ROWS, rows);
        for (var row = block; row < end; row++) {
            let index = (first + row) * sheet.width + column;
            if inside {
                let here = z(index);
                sum += abs(here * (above + z(index - 1u)));
                above = here;
            }
        }
        total += sum;
    }
    let sum = workgroup_sum(lane, vec2f(total, 0.0)).x;
    if lane == 0u {
        partials[group.y * groups.x + group.x] = sum;
    }
}

// lib/reduce.wgsl
const LANES = 256u;
const ROWS = 32u;
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
