// A tank of shallow water: the height of each cell follows its four neighbours. Drops fall; press to touch the surface.
struct View {
    resolution: vec2f,
    frame: u32,
    mouse: vec3f,
    damping: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> water: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

fn index(p: vec2i) -> u32 {
    let size = vec2i(view.resolution);
    let q = clamp(p, vec2i(0), size - 1);
    return u32(q.y * size.x + q.x);
}

fn drop(p: vec2f, center: vec2f, radius: f32) -> f32 {
    let d = distance(p, center) / radius;
    return exp(-d * d);
}

@compute @workgroup_size(16, 16)
fn wave(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    // x is the height now, y the height before.
    let own = water[index(p)];
    let around = water[index(p + vec2i(1, 0))].x + water[index(p - vec2i(1, 0))].x + water[index(p + vec2i(0, 1))].x + water[index(p - vec2i(0, 1))].x;
    var height = (own.x * 2.0 - own.y + 0.24 * (around - 4.0 * own.x)) * (1.0 - view.damping * 0.01);
    if view.frame % 45u == 0u {
        let n = view.frame / 45u;
        let place = fract(vec2f(f32(n) * 0.7548777, f32(n) * 0.5698403)) * 0.8 + 0.1;
        height -= 1.6 * drop(vec2f(p), place * view.resolution, 5.0);
    }
    if view.mouse.z > 0.0 { height -= 0.25 * drop(vec2f(p), view.mouse.xy, 5.0); }
    next[index(p)] = vec2f(height, own.x);
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let i = index(p);
    water[i] = next[i];
    let slope = vec2f(next[index(p + vec2i(1, 0))].x - next[index(p - vec2i(1, 0))].x, next[index(p + vec2i(0, 1))].x - next[index(p - vec2i(0, 1))].x);
    // Light from the upper left, and a tiled floor seen through the surface.
    let seen = vec2f(p) + slope * 34.0;
    let tile = abs(fract(seen / 32.0) - 0.5);
    let grout = smoothstep(0.47, 0.5, max(tile.x, tile.y));
    let floor_ = mix(vec3f(0.20, 0.62, 0.70), vec3f(0.85, 0.95, 0.95), 0.55 * grout);
    let glint = pow(clamp(dot(normalize(vec3f(-slope * 5.0, 1.0)), normalize(vec3f(-0.5, -0.6, 0.75))), 0.0, 1.0), 28.0);
    let caustic = clamp(1.0 - 2.2 * (water[index(p + vec2i(1, 1))].x + water[index(p - vec2i(1, 1))].x - 2.0 * next[i].x), 0.6, 1.6);
    picture[i] = pack4x8unorm(vec4f(floor_ * caustic * (0.86 + 0.4 * slope.x) + 0.7 * glint, 1.0));
}
