// An invocation computes an element of a row. words[0] = (length of a row). Given: element(row, column), y.

@compute @workgroup_size(256)
fn elementwise(@builtin(global_invocation_id) id: vec3u) {
    if id.x < words[0].x { y[id.y * words[0].x + id.x] = element(id.y, id.x); }
}
