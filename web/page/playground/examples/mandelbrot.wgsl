// How many rounds until z = z² + c leaves the circle of radius 2.
struct View {
    center: vec2f,
    scale: f32,
    rounds: u32,
    side: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<f32>;

@compute @workgroup_size(16, 16)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= view.side || id.y >= view.side {
        return;
    }
    let c = view.center + (vec2f(id.xy) / f32(view.side) - 0.5) * view.scale;
    var z = vec2f();
    var n = 0u;
    while n < view.rounds && dot(z, z) < 4.0 {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    picture[id.y * view.side + id.x] = sqrt(f32(n) / f32(view.rounds));
}
