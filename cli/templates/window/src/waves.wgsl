// Waves of six sources on a circle that turns. Each pixel adds up what reaches it.
struct View { time: f32, wavelength: f32, side: u32 }
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

@compute @workgroup_size(16, 16)
fn waves(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= view.side || id.y >= view.side { return; }
    let p = (vec2f(id.xy) * 2.0 - f32(view.side)) / f32(view.side);
    var height = 0.0;
    for (var i = 0u; i < 6u; i++) {
        let angle = f32(i) * 1.0472;
        let source = 0.62 * vec2f(cos(angle + view.time * 0.15), sin(angle + view.time * 0.15));
        let far = distance(p, source);
        height += sin(far * 6.2832 / view.wavelength - view.time * 3.0 + angle) / (1.0 + 3.0 * far);
    }
    let t = 0.5 + 0.42 * height;
    let cold = mix(vec3f(0.03, 0.05, 0.16), vec3f(0.05, 0.45, 0.52), smoothstep(0.1, 0.55, t));
    let color = mix(cold, vec3f(0.98, 0.78, 0.36), smoothstep(0.52, 0.95, t));
    picture[id.y * view.side + id.x] = pack4x8unorm(vec4f(color, 1.0));
}
