// A workgroup normalises a row: (x - m) / sqrt(mean of (x - m)^2 + eps), m the mean of the row, or 0 where it is not centred.
// words[0] = (rows, length of a row, bits of eps). Given: element(row, place) -> f32, store(row, place, value).

const LANES = 256u;
const CENTRED = false;

var<workgroup> lanes: array<f32, LANES>;

fn lanes_sum(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] += lanes[lane + stride]; }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&lanes[0]);
}

@compute @workgroup_size(LANES)
fn moments(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    var mean = 0.0;
    if CENTRED {
        var sum = 0.0;
        for (var base = 0u; base < length; base += LANES) {
            let place = base + lane;
            if place < length { sum += element(row, place); }
        }
        mean = lanes_sum(lane, sum) / f32(length);
    }
    var squares = 0.0;
    for (var base = 0u; base < length; base += LANES) {
        let place = base + lane;
        if place < length {
            let distance = element(row, place) - mean;
            squares += distance * distance;
        }
    }
    let factor = 1.0 / sqrt(lanes_sum(lane, squares) / f32(length) + bitcast<f32>(words[0].z));
    for (var base = 0u; base < length; base += LANES) {
        let place = base + lane;
        if place < length { store(row, place, (element(row, place) - mean) * factor); }
    }
}
