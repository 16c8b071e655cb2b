// An invocation finds the place at which a value would keep a sorted row in order: words[0] = (values for a row, length of a row).
// Given: AFTER, whether behind equal elements; sorted(row, place) and value(row, place), order(x) -> u32; y.

@compute @workgroup_size(256)
fn searchsorted(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= words[0].x { return; }
    let wanted = order(value(id.y, id.x));
    var low = 0u;
    var high = words[0].y;
    while low < high {
        let half = low + (high - low) / 2u;
        let other = order(sorted(id.y, half));
        if other < wanted || (other == wanted && AFTER) { low = half + 1u; } else { high = half; }
    }
    y[id.y * words[0].x + id.x] = low;
}
