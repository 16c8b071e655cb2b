// The damped spiral wave of the view Field, with a whole number of arms: then the angle's seam cannot be seen.
struct View {
    resolution: vec2f,
    time: f32,
    arms: u32,
    frequency: f32,
    damping: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;

@compute @workgroup_size(16, 16)
fn spiral(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.x >= size.x || id.y >= size.y { return; }
    let p = (vec2f(id.xy) * 2.0 - view.resolution) / view.resolution.y;
    let r = length(p);
    let phase = 0.01 * view.frequency * 1.618034 * r + f32(view.arms) * atan2(p.y, p.x) - 2.178 * view.time;
    values[id.y * size.x + id.x] = sin(phase) * exp(-view.damping * r);
}
