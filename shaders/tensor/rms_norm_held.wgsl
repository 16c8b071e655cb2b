// A workgroup normalises a row, as rms_norm.wgsl does, and reads it once: an invocation holds EACH of its elements, LANES apart. words[0] = (rows, length
// of a row, bits of eps). A line with a hash sign stands for EACH lines, one for each element. Given: EACH, with LANES enough for the row;
// element(row, place) -> f32, lanes_sum, store(row, place, value).

const LANES = 256u;

@compute @workgroup_size(LANES)
fn rms_norm(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let length = words[0].y;
    // Beyond the end the last one again, which does not count.
    let value# = element(row, min(lane + #u * LANES, length - 1u));
    var squares = 0.0;
    squares += select(0.0, value# * value#, lane + #u * LANES < length);
    let factor = 1.0 / sqrt(lanes_sum(lane, squares) / f32(length) + bitcast<f32>(words[0].z));
    if lane + #u * LANES < length { store(row, lane + #u * LANES, value# * factor); }
}
