// An invocation computes the elements that share a word, EACH of them. words[0] = (elements). Given: element(i), bits(value) -> u32, y.

@compute @workgroup_size(256)
fn elementwise(@builtin(global_invocation_id) id: vec3u) {
    let i = EACH * id.x;
    if i >= words[0].x { return; }
    var word = bits(element(i));
    // REST
    y[id.x] = word;
}
