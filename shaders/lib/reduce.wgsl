// Sums over a workgroup of 256, as a tree: the error grows with the logarithm of the number of terms.

const LANES = 256u;

// Rows of 256 values that one invocation adds up before it carries to its total.
const ROWS = 32u;

// Which values a workgroup reduces, and how they are centred: z = (value - high) factor - shift.
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

// The sum of `value` over the workgroup, in every invocation.
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
