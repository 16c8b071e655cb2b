// An invocation computes an element of a row from all values that are scattered to it: words[0] = (length of a row, values for a row). Given:
// sorted(row, i) -> u32, the targets of the values in ascending order; the type Number, element(row, place) -> Number, combine(a, b) -> Number;
// all_until(row, last) -> Number, all values up to the last one of its target; store(row, place, value).

// The number of sorted targets up to one.
fn until(row: u32, wanted: u32) -> u32 {
    var low = 0u;
    var high = words[0].y;
    while low < high {
        let half = low + (high - low) / 2u;
        if sorted(row, half) <= wanted { low = half + 1u; } else { high = half; }
    }
    return low;
}

@compute @workgroup_size(64)
fn scatter(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= words[0].x { return; }
    var total = element(id.y, id.x);
    let end = until(id.y, id.x);
    if end > 0u && sorted(id.y, end - 1u) == id.x { total = combine(total, all_until(id.y, end - 1u)); }
    store(id.y, id.x, total);
}
