// A workgroup moves a tile of a row to where its digits go: words[0] = (rows, length of a row, lowest bit of the digit, tiles of a row), words[1] =
// (elements, bits of a digit). Given: what sort_tile.wgsl has; BINS; key_of(row, place) -> u32, place_of(row, place) -> u32; before(row, i) -> u32, how
// many elements of the row come before the digits of a tile, digit by digit; store(at, key, place).

var<workgroup> starts: array<u32, BINS>;

fn digit_of(key: u32) -> u32 {
    return (key >> words[0].z) & (BINS - 1u);
}

// Behind the row come the greatest keys, which the tile then has last.
fn key(row: u32, place: u32) -> u32 {
    if place < words[0].y { return key_of(row, place); }
    return 0xffffffffu;
}

fn place(row: u32, place: u32) -> u32 {
    if place < words[0].y { return place_of(row, place); }
    return 0u;
}

fn note_start(at: u32, key: u32) {
    if at == 0u || digit_of(tile[spot(at - 1u)]) != digit_of(key) { starts[digit_of(key)] = at; }
}

fn move_to(row: u32, group: u32, at: u32, key: u32, place: u32) {
    if group * LANES * EACH + at >= words[0].y { return; }
    let digit = digit_of(key);
    store(row * words[0].y + before(row, digit * words[0].w + group) + at - starts[digit], key, place);
}

@compute @workgroup_size(LANES)
fn sort_move(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let first = group.x * LANES * EACH;
    // Neighbours read neighbours.
    let read# = place(row, first + #u * LANES + lane);
    tile[spot(#u * LANES + lane)] = key(row, first + #u * LANES + lane);
    workgroupBarrier();
    let key# = tile[spot(EACH * lane + #u)];
    workgroupBarrier();
    tile[spot(#u * LANES + lane)] = read#;
    workgroupBarrier();
    var own = Own(
        key#, tile[spot(EACH * lane + #u)],
    );
    let end = words[0].z + words[1].y;
    for (var shift = words[0].z; shift < end; shift += 4u) {
        own = split(own, lane, shift, shift + 4u >= end);
    }
    note_start(#u * LANES + lane, own.key#);
    workgroupBarrier();
    move_to(row, group.x, #u * LANES + lane, own.key#, own.place#);
}
