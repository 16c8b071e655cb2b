// A workgroup normalises a row, as softmax.wgsl does, and reads it once: an invocation holds EACH of its elements, LANES apart. words[0] = (rows, length of
// a row). A line with a hash sign stands for EACH lines, one for each element. Given: EACH, with LANES enough for the row; element(row, place) -> f32,
// float_exp, float_log, float_max, lanes, lanes_sum, store(row, place, value).

const LANES = 256u;
const LOGARITHM = false;

@compute @workgroup_size(LANES)
fn softmax(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    // Beyond the end the last one again, which does not count in the sum.
    let value# = element(row, min(lane + #u * LANES, length - 1u));
    var greatest = value0;
    greatest = float_max(greatest, value#);
    lanes[lane] = greatest;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] = float_max(lanes[lane], lanes[lane + stride]); }
        workgroupBarrier();
    }
    greatest = workgroupUniformLoad(&lanes[0]);
    let power# = float_exp(value# - greatest);
    var sum = 0.0;
    sum += select(0.0, power#, lane + #u * LANES < length);
    let total = lanes_sum(lane, sum);
    if LOGARITHM {
        let shift = greatest + float_log(total);
        if lane + #u * LANES < length { store(row, lane + #u * LANES, value# - shift); }
    } else {
        let factor = 1.0 / total;
        if lane + #u * LANES < length { store(row, lane + #u * LANES, power# * factor); }
    }
}
