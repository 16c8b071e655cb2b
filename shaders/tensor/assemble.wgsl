// An invocation writes an element of a part to its place in the whole. words[0] = (elements of the part). Given: element(i), place(i).

@compute @workgroup_size(256)
fn assemble(@builtin(global_invocation_id) id: vec3u) {
    if id.x < words[0].x { y[place(id.x)] = element(id.x); }
}
