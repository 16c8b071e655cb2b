// Birds that keep their distance, look where their neighbours fly, and stay together. The pointer frightens them.
struct View {
    resolution: vec2f,
    mouse: vec3f,
    sight: f32,
    cohesion: f32,
}
struct Bird {
    place: vec2f,
    speed: vec2f,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> birds: array<Bird>;
@group(0) @binding(2) var<storage, read_write> moved: array<Bird>;
@group(0) @binding(3) var<storage, read_write> sky: array<vec3f>;
@group(0) @binding(4) var<storage, read_write> picture: array<u32>;

fn hash(n: u32) -> f32 {
    let x = (n ^ 61u ^ (n >> 16u)) * 9u;
    let y = (x ^ (x >> 4u)) * 668265261u;
    return f32((y ^ (y >> 15u)) >> 8u) / 16777216.0;
}

@compute @workgroup_size(64)
fn gather(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&birds) { return; }
    let angle = 6.2832 * hash(id.x + 5003u);
    birds[id.x] = Bird(view.resolution * vec2f(hash(id.x), hash(id.x + 1009u)), 1.5 * vec2f(cos(angle), sin(angle)));
}

@compute @workgroup_size(64)
fn fly(@builtin(global_invocation_id) id: vec3u) {
    let count = arrayLength(&birds);
    if id.x >= count { return; }
    var bird = birds[id.x];
    var near = 0.0;
    var middle = vec2f();
    var heading = vec2f();
    var apart = vec2f();
    for (var i = 0u; i < count; i++) {
        let way = birds[i].place - bird.place;
        let d2 = dot(way, way);
        if d2 < view.sight * view.sight && i != id.x {
            near += 1.0;
            middle += way;
            heading += birds[i].speed;
            if d2 < 60.0 { apart -= way / (d2 + 1.0); }
        }
    }
    if near > 0.0 {
        bird.speed += view.cohesion * 0.01 * middle / near + 0.05 * (heading / near - bird.speed) + 0.35 * apart;
    }
    // The walls turn them round.
    bird.speed += 0.12 * vec2f(bird.place < vec2f(24.0)) - 0.12 * vec2f(bird.place > view.resolution - 24.0);
    let flee = bird.place - view.mouse.xy;
    if view.mouse.z > 0.0 && dot(flee, flee) < 3600.0 { bird.speed += 0.6 * normalize(flee + 0.01); }
    bird.speed = normalize(bird.speed + 1e-5) * clamp(length(bird.speed), 1.0, 2.4);
    bird.place = clamp(bird.place + bird.speed, vec2f(1.0), view.resolution - 2.0);
    moved[id.x] = bird;
}

@compute @workgroup_size(16, 16)
fn fade(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let i = id.y * size.x + id.x;
    let light = sky[i] * 0.88;
    sky[i] = light;
    let dusk = mix(vec3f(0.05, 0.06, 0.13), vec3f(0.20, 0.12, 0.17), f32(id.y) / view.resolution.y);
    picture[i] = pack4x8unorm(vec4f(dusk + light, 1.0));
}

@compute @workgroup_size(64)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&birds) { return; }
    let bird = moved[id.x];
    birds[id.x] = bird;
    let angle = atan2(bird.speed.y, bird.speed.x);
    let color = 0.55 + 0.45 * cos(angle + vec3f(0.0, 2.1, 4.2));
    // A short stroke along the way it flies.
    for (var k = 0; k < 4; k++) {
        let p = vec2u(clamp(bird.place - bird.speed * f32(k) * 0.7, vec2f(0.0), view.resolution - 1.0));
        sky[p.y * u32(view.resolution.x) + p.x] = color * (1.0 - 0.2 * f32(k));
    }
}
