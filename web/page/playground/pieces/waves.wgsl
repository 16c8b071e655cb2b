// Waves of six sources on a circle; the pointer is a seventh. Each pixel adds up what reaches it.
struct View {
    resolution: vec2f,
    time: f32,
    mouse: vec3f,
    wavelength: f32,
    spread: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

fn wave(p: vec2f, source: vec2f, delay: f32) -> f32 {
    let far = distance(p, source);
    return sin(far * 6.2832 / view.wavelength - view.time * 3.0 + delay) / (1.0 + 3.0 * far);
}

@compute @workgroup_size(16, 16)
fn waves(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.x >= size.x || id.y >= size.y { return; }
    let p = (vec2f(id.xy) * 2.0 - view.resolution) / view.resolution.y;
    var height = 0.0;
    for (var i = 0u; i < 6u; i++) {
        let angle = f32(i) * 1.0472 + view.time * 0.15;
        height += wave(p, view.spread * vec2f(cos(angle), sin(angle)), f32(i) * 1.0472);
    }
    if view.mouse.z > 0.0 {
        height += 2.0 * wave(p, (view.mouse.xy * 2.0 - view.resolution) / view.resolution.y, 0.0);
    }
    // From deep blue over teal to gold, with bright crests.
    let t = 0.5 + 0.42 * height;
    let base = mix(vec3f(0.03, 0.05, 0.16), vec3f(0.05, 0.45, 0.52), smoothstep(0.1, 0.55, t));
    let warm = mix(base, vec3f(0.98, 0.78, 0.36), smoothstep(0.52, 0.95, t));
    let shade = 1.0 - 0.35 * dot(p, p) * 0.5;
    picture[id.y * size.x + id.x] = pack4x8unorm(vec4f(warm * shade, 1.0));
}
