// Waves from two sources, one value for each pixel.
struct Params { time: f32 }
override WIDTH = 320u;
override HEIGHT = 240u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> picture: array<f32>;

@compute @workgroup_size(16, 16)
fn waves(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= WIDTH || id.y >= HEIGHT { return; }
    let place = vec2f(id.xy) / f32(HEIGHT);
    let one = distance(place, vec2f(0.4, 0.5));
    let other = distance(place, vec2f(0.93, 0.5));
    picture[id.y * WIDTH + id.x] = 0.5 * (sin(60.0 * one - params.time) + sin(60.0 * other - params.time));
}
