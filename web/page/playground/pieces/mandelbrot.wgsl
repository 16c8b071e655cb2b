// How many rounds until z = z² + c leaves a circle, zoomed in and out on the seahorses' valley.
struct View {
    resolution: vec2f,
    time: f32,
    rounds: u32,
    depth: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

@compute @workgroup_size(16, 16)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.x >= size.x || id.y >= size.y { return; }
    let scale = exp2(-1.4 - view.depth * (0.5 - 0.5 * cos(view.time * 0.25)));
    let p = (vec2f(id.xy) * 2.0 - view.resolution) / view.resolution.y;
    let c = vec2f(-0.7436439, 0.1318259) + p * scale;
    var z = vec2f();
    var n = 0u;
    while n < view.rounds && dot(z, z) < 64.0 {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    var color = vec3f();
    if n < view.rounds {
        // A fraction of a round from how far z went: no bands.
        let smooth_n = f32(n) + 1.0 - log2(log2(dot(z, z)) * 0.5);
        let t = sqrt(max(smooth_n, 0.0)) * 0.42;
        color = 0.5 + 0.5 * cos(6.2832 * (t * vec3f(0.9, 0.85, 0.7) + vec3f(0.55, 0.62, 0.72)));
    }
    picture[id.y * size.x + id.x] = pack4x8unorm(vec4f(color, 1.0));
}
