// An invocation moves an element of two neighbouring sorted runs of a row to its place in both together: words[0] = (rows, length of a row,
// length of a run). Given: word_of(i) -> u32, the words of the elements, two each: order and place; y, which is like them.

@compute @workgroup_size(256)
fn sort_merge(@builtin(global_invocation_id) id: vec3u) {
    let place = id.x;
    let length = words[0].y;
    if place >= length { return; }
    let row = id.y * length;
    let width = words[0].z;
    let start = place / (2u * width) * (2u * width);
    let middle = min(start + width, length);
    let end = min(middle + width, length);
    let own = word_of(2u * (row + place));
    // How many of the other run come before: of equal ones those of the first run do.
    let is_first = place < middle;
    var low = select(start, middle, is_first);
    var high = select(middle, end, is_first);
    while low < high {
        let half = low + (high - low) / 2u;
        let other = word_of(2u * (row + half));
        if other < own || (other == own && !is_first) { low = half + 1u; } else { high = half; }
    }
    let at = row + place + low - middle;
    y[2u * at] = own;
    y[2u * at + 1u] = word_of(2u * (row + place) + 1u);
}
