// A workgroup normalises a row: e^(x - m) over its sum, m the greatest x of the row. words[0] = (rows, length of a row).
// Given: element(row, place) -> f32, float_exp, float_log, float_max, lanes, lanes_sum, store(row, place, value).

const LANES = 256u;
const LOGARITHM = false;

@compute @workgroup_size(LANES)
fn softmax(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    // What is in blocks of four times the workgroup needs no question about its end.
    let whole = length / (4u * LANES) * (4u * LANES);
    var greatest = element(row, 0u);
    for (var base = 0u; base < whole; base += 4u * LANES) {
        let place = base + lane;
        let first = float_max(element(row, place), element(row, place + LANES));
        let second = float_max(element(row, place + 2u * LANES), element(row, place + 3u * LANES));
        greatest = float_max(greatest, float_max(first, second));
    }
    for (var base = whole; base < length; base += LANES) {
        let place = base + lane;
        if place < length { greatest = float_max(greatest, element(row, place)); }
    }
    lanes[lane] = greatest;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] = float_max(lanes[lane], lanes[lane + stride]); }
        workgroupBarrier();
    }
    greatest = workgroupUniformLoad(&lanes[0]);
    var sum = 0.0;
    for (var base = 0u; base < whole; base += 2u * LANES) {
        let place = base + lane;
        sum += float_exp(element(row, place) - greatest) + float_exp(element(row, place + LANES) - greatest);
    }
    for (var base = whole; base < length; base += LANES) {
        let place = base + lane;
        if place < length { sum += float_exp(element(row, place) - greatest); }
    }
    let total = lanes_sum(lane, sum);
    if LOGARITHM {
        let shift = greatest + float_log(total);
        for (var base = 0u; base < length; base += LANES) {
            let place = base + lane;
            if place < length { store(row, place, element(row, place) - shift); }
        }
    } else {
        let factor = 1.0 / total;
        for (var base = 0u; base < whole; base += LANES) {
            let place = base + lane;
            store(row, place, float_exp(element(row, place) - greatest) * factor);
        }
        for (var base = whole; base < length; base += LANES) {
            let place = base + lane;
            if place < length { store(row, place, float_exp(element(row, place) - greatest) * factor); }
        }
    }
}
