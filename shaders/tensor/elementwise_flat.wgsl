// An invocation computes an element. words[0] = (elements). Given: element(i), y.

@compute @workgroup_size(256)
fn elementwise(@builtin(global_invocation_id) id: vec3u) {
    if id.x < words[0].x { y[id.x] = element(id.x); }
}
