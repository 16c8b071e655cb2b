// A workgroup normalises a row: (x - m) / sqrt(mean of (x - m)^2 + eps), m the mean of the row.
// words[0] = (rows, length of a row, bits of eps). Given: element(row, place) -> f32, lanes_sum, store(row, place, value).

const LANES = 256u;

fn squared(x: f32) -> f32 {
    return x * x;
}

@compute @workgroup_size(LANES)
fn layer_norm(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    // What is in blocks of four times the workgroup needs no question about its end.
    let whole = length / (4u * LANES) * (4u * LANES);
    var sum = 0.0;
    for (var base = 0u; base < whole; base += 4u * LANES) {
        let place = base + lane;
        let first = element(row, place) + element(row, place + LANES);
        sum += first + (element(row, place + 2u * LANES) + element(row, place + 3u * LANES));
    }
    for (var base = whole; base < length; base += LANES) {
        let place = base + lane;
        if place < length { sum += element(row, place); }
    }
    let mean = lanes_sum(lane, sum) / f32(length);
    var squares = 0.0;
    for (var base = 0u; base < whole; base += 4u * LANES) {
        let place = base + lane;
        let first = squared(element(row, place) - mean) + squared(element(row, place + LANES) - mean);
        let second = squared(element(row, place + 2u * LANES) - mean) + squared(element(row, place + 3u * LANES) - mean);
        squares += first + second;
    }
    for (var base = whole; base < length; base += LANES) {
        let place = base + lane;
        if place < length { squares += squared(element(row, place) - mean); }
    }
    let factor = 1.0 / sqrt(lanes_sum(lane, squares) / f32(length) + bitcast<f32>(words[0].z));
    for (var base = 0u; base < whole; base += LANES) {
        let place = base + lane;
        store(row, place, (element(row, place) - mean) * factor);
    }
    for (var base = whole; base < length; base += LANES) {
        let place = base + lane;
        if place < length { store(row, place, (element(row, place) - mean) * factor); }
    }
}
