// Light in a small room, found by chance: each frame follows one more path through every pixel, and their mean grows clear.
//
//     cantus view examples/path_tracer.wgsl --in sum=zeros[240,320,4] --keep --show picture --size 320x240
struct Window {
    width: u32,
    height: u32,
    time: f32,
    pressed: u32,
}
@group(0) @binding(0) var<uniform> window: Window;
// The light of all paths so far, and how many they are.
@group(0) @binding(1) var<storage, read_write> sum: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> picture: array<vec4f>;

struct Ball {
    middle: vec3f,
    radius: f32,
    color: vec3f,
    glow: f32,
    is_mirror: bool,
}

// Walls are balls so large that they look flat. The last is the lamp.
fn ball(i: u32) -> Ball {
    switch i {
        case 0u: { return Ball(vec3f(0.0, -1001.0, 0.0), 1000.0, vec3f(0.8, 0.78, 0.74), 0.0, false); }
        case 1u: { return Ball(vec3f(0.0, 1001.0, 0.0), 1000.0, vec3f(0.8, 0.78, 0.74), 0.0, false); }
        case 2u: { return Ball(vec3f(0.0, 0.0, -1001.2), 1000.0, vec3f(0.8, 0.78, 0.74), 0.0, false); }
        case 3u: { return Ball(vec3f(-1001.3, 0.0, 0.0), 1000.0, vec3f(0.72, 0.16, 0.12), 0.0, false); }
        case 4u: { return Ball(vec3f(1001.3, 0.0, 0.0), 1000.0, vec3f(0.16, 0.42, 0.62), 0.0, false); }
        case 5u: { return Ball(vec3f(-0.55, -0.6, -0.4), 0.4, vec3f(0.95), 0.0, true); }
        case 6u: { return Ball(vec3f(0.55, -0.65, 0.1), 0.35, vec3f(0.9, 0.66, 0.25), 0.0, false); }
        default: { return Ball(vec3f(0.0, 1.75, -0.2), 0.9, vec3f(1.0, 0.9, 0.75), 7.0, false); }
    }
}

var<private> state: u32;

// A number from 0 to 1, by PCG.
fn chance() -> f32 {
    state = state * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return f32(((word >> 22u) ^ word) >> 8u) / 16777216.0;
}

// A direction on one side of a surface, likelier the steeper it leaves.
fn scattered(normal: vec3f) -> vec3f {
    let height = 2.0 * chance() - 1.0;
    let angle = 6.2832 * chance();
    return normalize(normal + 0.999 * vec3f(sqrt(1.0 - height * height) * vec2f(cos(angle), sin(angle)), height));
}

@compute @workgroup_size(8, 8)
fn trace(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= window.width || id.y >= window.height { return; }
    let i = id.y * window.width + id.x;
    let old = select(sum[i], vec4f(), window.pressed == 1);
    state = (i + 1) * 9781u + u32(old.w) * 26699u;
    state = u32(chance() * 16777216.0) * 7919u + u32(old.w);
    let size = vec2f(f32(window.width), f32(window.height));
    let at = (2.0 * (vec2f(id.xy) + vec2f(chance(), chance())) - size) / size.y;
    var eye = vec3f(0.0, 0.0, 3.6);
    var ray = normalize(vec3f(at.x, -at.y, -2.8));
    var weight = vec3f(1.0);
    var light = vec3f();
    for (var bounce = 0; bounce < 6; bounce++) {
        var near = 1e9;
        var hit: Ball;
        for (var b = 0u; b < 8; b++) {
            let other = ball(b);
            // The nearer root, by Vieta's other one: the difference of two large numbers would lose the walls.
            let to = other.middle - eye;
            let along = dot(to, ray);
            let aside = to - along * ray;
            let inside = other.radius * other.radius - dot(aside, aside);
            if inside <= 0.0 { continue; }
            let t = along - sqrt(inside);
            if t > 2e-3 && t < near {
                near = t;
                hit = other;
            }
        }
        if near > 1e8 { break; }
        light += weight * hit.color * hit.glow;
        if hit.glow > 0.0 { break; }
        weight *= hit.color;
        eye += near * ray;
        let normal = normalize(eye - hit.middle);
        ray = select(scattered(normal), reflect(ray, normal), hit.is_mirror);
    }
    let total = old + vec4f(min(light, vec3f(12.0)), 1.0);
    sum[i] = total;
    let mean = total.rgb / total.w;
    picture[i] = vec4f(pow(mean / (mean + 0.6) * 1.35, vec3f(0.62)), 1.0);
}
