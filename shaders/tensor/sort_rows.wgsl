// A workgroup sorts a row, which is no longer than its tile: words[0] = (rows, length of a row, bits of a key, elements to store). Given: what
// sort_tile.wgsl has; order(row, place) -> u32, the key of an element; store(row, at, key, place).

fn key(row: u32, place: u32) -> u32 {
    if place < words[0].y { return order(row, place); }
    return 0xffffffffu;
}

@compute @workgroup_size(LANES)
fn sort_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    // Neighbours read neighbours.
    tile[spot(#u * LANES + lane)] = key(row, #u * LANES + lane);
    workgroupBarrier();
    var own = Own(
        tile[spot(EACH * lane + #u)], EACH * lane + #u,
    );
    for (var shift = 0u; shift < words[0].z; shift += 4u) {
        own = split(own, lane, shift, shift + 4u >= words[0].z);
    }
    if #u * LANES + lane < words[0].w { store(row, #u * LANES + lane, own.key#, own.place#); }
}
