// The coherence of a whole field by one workgroup, for devices that have a native kernel in its place: words[0] = (height, width, bits of the
// factor). Given: element(place) -> f32, y. y = (mean, sum of d^2, largest |value| or -1 if one is NaN or infinite,
// sum of |d (d_above + d_left)| over all values but the first row and column), d = (value - mean) factor.

const LANES = 256u;
const INFINITY_BITS = 0x7f800000u;

var<workgroup> lanes: array<f32, LANES>;
var<workgroup> largest_bits: atomic<u32>;

fn store(index: u32, value: f32) { y[index] = value; }

fn all_sum(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] += lanes[lane + stride]; }
        workgroupBarrier();
    }
    let sum = lanes[0];
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(LANES)
fn coherence_whole(@builtin(local_invocation_index) lane: u32) {
    let width = words[0].y;
    let count = words[0].x * width;
    let factor = bitcast<f32>(words[0].z);
    let first = element(0u);
    var sum = 0.0;
    var largest = 0u;
    for (var at = lane; at < count; at += LANES) {
        let value = element(at);
        largest = max(largest, bitcast<u32>(value) & 0x7fffffffu);
        sum += (value - first) * factor;
    }
    atomicMax(&largest_bits, largest);
    // What float32 cannot hold of the mean goes into the shift.
    let high = first + all_sum(lane, sum) / f32(count) / factor;
    sum = 0.0;
    for (var at = lane; at < count; at += LANES) { sum += (element(at) - high) * factor; }
    let shift = all_sum(lane, sum) / f32(count);
    var squares = 0.0;
    sum = 0.0;
    for (var at = lane; at < count; at += LANES) {
        let here = (element(at) - high) * factor - shift;
        squares += here * here;
        if at >= width && at % width != 0u {
            let above = (element(at - width) - high) * factor - shift;
            let left = (element(at - 1u) - high) * factor - shift;
            sum += abs(here * (above + left));
        }
    }
    squares = all_sum(lane, squares);
    sum = all_sum(lane, sum);
    if lane == 0u {
        let bits = atomicLoad(&largest_bits);
        store(0u, high + shift / factor);
        store(1u, squares);
        store(2u, select(bitcast<f32>(min(bits, INFINITY_BITS - 1u)), -1.0, bits >= INFINITY_BITS));
        store(3u, sum);
    }
}
