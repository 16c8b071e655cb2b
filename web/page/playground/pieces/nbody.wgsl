// Stars that attract each other, every pair in every frame: two small galaxies meet.
struct View {
    resolution: vec2f,
    gravity: f32,
    mouse: vec3f,
}
struct Star {
    place: vec2f,
    speed: vec2f,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> stars: array<Star>;
@group(0) @binding(2) var<storage, read_write> moved: array<Star>;
@group(0) @binding(3) var<storage, read_write> glow: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> picture: array<u32>;

fn hash(n: u32) -> f32 {
    var x = n * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28u) + 4u)) ^ x) * 277803737u;
    return f32((x >> 8u) ^ ((x >> 22u) & 0xffffu)) / 16777216.0;
}

@compute @workgroup_size(64)
fn scatter(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&stars) { return; }
    // Two discs that turn, and drift past each other.
    let second = id.x % 2u == 1u;
    let center = select(vec2f(-0.42, -0.16), vec2f(0.42, 0.16), second);
    let drift = select(vec2f(0.10, 0.0), vec2f(-0.10, 0.0), second);
    let r = 0.03 + 0.26 * sqrt(hash(id.x));
    let angle = 6.2832 * hash(id.x + 7919u);
    let way = vec2f(cos(angle), sin(angle));
    let turn = 0.36 * sqrt(r / (r + 0.06)) * select(-1.0, 1.0, second);
    stars[id.x] = Star(center + r * way, drift + turn * vec2f(-way.y, way.x));
}

@compute @workgroup_size(64)
fn move_(@builtin(global_invocation_id) id: vec3u) {
    let count = arrayLength(&stars);
    if id.x >= count { return; }
    var star = stars[id.x];
    var pull = vec2f();
    for (var i = 0u; i < count; i++) {
        let way = stars[i].place - star.place;
        pull += way * inverseSqrt(pow(dot(way, way) + 0.002, 3.0));
    }
    pull *= view.gravity / f32(count);
    if view.mouse.z > 0.0 {
        let way = (view.mouse.xy * 2.0 - view.resolution) / view.resolution.y - star.place;
        pull += 0.12 * way * inverseSqrt(pow(dot(way, way) + 0.01, 3.0));
    }
    star.speed += pull * 0.012;
    star.place += star.speed * 0.012;
    moved[id.x] = star;
}

@compute @workgroup_size(64)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&stars) { return; }
    let star = moved[id.x];
    stars[id.x] = star;
    let size = vec2i(view.resolution);
    let at = vec2i((star.place * view.resolution.y + view.resolution) * 0.5);
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            let p = at + vec2i(dx, dy);
            if all(p >= vec2i(0)) && all(p < size) {
                atomicAdd(&glow[p.y * size.x + p.x], select(40u, 160u, dx == 0 && dy == 0));
            }
        }
    }
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let i = id.y * size.x + id.x;
    let light = atomicLoad(&glow[i]);
    atomicStore(&glow[i], light * 15u / 16u);
    let t = 1.0 - exp(-f32(light) / 900.0);
    let color = vec3f(pow(t, 1.3), pow(t, 1.7) * 0.92, 0.06 + 0.94 * pow(t, 0.9)) * vec3f(1.0, 0.95, 0.9);
    picture[i] = pack4x8unorm(vec4f(color, 1.0));
}
