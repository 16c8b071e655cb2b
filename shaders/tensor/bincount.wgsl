// An invocation counts an element: words[0] = (elements, bins). Given: element(i) -> u32, y of zeros.

fn add(bin: u32, count: u32) { atomicAdd(&y[bin], count); }

@compute @workgroup_size(256)
fn bincount(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= words[0].x { return; }
    let bin = element(id.x);
    if bin < words[0].y { add(bin, 1u); }
}
