// An invocation computes an element of a row from all values that are scattered to it, in their order: words[0] = (length of a row, values for
// a row). Given: sorted(row, i) -> u32, the targets of the values in ascending order, source(row, i) -> u32, the places of the values in that
// order; the type Number, value(row, place) and element(row, place) -> Number, combine(a, b) -> Number, store(row, place, value).

// The first of the sorted targets that is not below one.
fn first_of(row: u32, wanted: u32) -> u32 {
    var low = 0u;
    var high = words[0].y;
    while low < high {
        let half = low + (high - low) / 2u;
        if sorted(row, half) < wanted { low = half + 1u; } else { high = half; }
    }
    return low;
}

@compute @workgroup_size(64)
fn scatter(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= words[0].x { return; }
    var total = element(id.y, id.x);
    for (var i = first_of(id.y, id.x); i < words[0].y; i++) {
        if sorted(id.y, i) != id.x { break; }
        total = combine(total, value(id.y, source(id.y, i)));
    }
    store(id.y, id.x, total);
}
