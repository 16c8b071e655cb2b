// What the invocations of a workgroup, whose number is a constant, combine: a tree, with the same bits on every device. Given: LANES.

var<workgroup> lanes: array<f32, LANES>;

// The sum of `value` over the workgroup, in every invocation. Called in uniform control flow.
fn lanes_sum(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] += lanes[lane + stride]; }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&lanes[0]);
}
