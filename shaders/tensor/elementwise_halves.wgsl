// An invocation computes two halves, which share a word. words[0] = (elements). Given: element(i) -> f32, y.

@compute @workgroup_size(256)
fn elementwise(@builtin(global_invocation_id) id: vec3u) {
    let i = 2u * id.x;
    if i >= words[0].x { return; }
    var pair = vec2f(element(i), 0.0);
    if i + 1u < words[0].x { pair.y = element(i + 1u); }
    y[id.x] = pack2x16float(pair);
}
