// An invocation computes the four numbers of a block. words[0] = (numbers, low and high half of the seed). Given: number(bits), y.

@compute @workgroup_size(64)
fn random(@builtin(global_invocation_id) id: vec3u) {
    let first = 4u * id.x;
    if first >= words[0].x { return; }
    let block = random_block(id.x, words[0].yz);
    y[first] = number(block.x);
    if first + 1u < words[0].x { y[first + 1u] = number(block.y); }
    if first + 2u < words[0].x { y[first + 2u] = number(block.z); }
    if first + 3u < words[0].x { y[first + 3u] = number(block.w); }
}
