// A cloth of points that keep their distances: gravity and wind pull, neighbours pull back. Press to push it with the pointer.
struct View {
    resolution: vec2f,
    time: f32,
    mouse: vec3f,
    wind: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> points: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> moved: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> before: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> canvas: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> picture: array<u32>;

const SIDE = 48i;
const REST = 0.0305;

@compute @workgroup_size(8, 8)
fn hang(@builtin(global_invocation_id) id: vec3u) {
    if any(vec2i(id.xy) >= vec2i(SIDE)) { return; }
    let i = id.y * u32(SIDE) + id.x;
    points[i] = vec4f((f32(id.x) - 23.5) * REST * 0.94, 0.80 - f32(id.y) * REST, 0.02 * sin(f32(id.x) * 0.7), 0.0);
    before[i] = points[i];
}

@compute @workgroup_size(8, 8)
fn fall(@builtin(global_invocation_id) id: vec3u) {
    if any(vec2i(id.xy) >= vec2i(SIDE)) { return; }
    let i = id.y * u32(SIDE) + id.x;
    let now = points[i];
    let gust = view.wind * (0.6 + 0.4 * sin(view.time * 1.7 + now.x * 3.0)) * (0.5 + 0.5 * sin(view.time * 0.9 + now.y * 4.0 + now.x * 2.0));
    var next = now + (now - before[i]) * 0.992 + vec4f(0.25 * gust, -0.9, gust, 0.0) * 0.00028;
    if view.mouse.z > 0.0 {
        let finger = (view.mouse.xy * 2.0 - view.resolution) / view.resolution.y * vec2f(1.0, -1.0);
        let way = next.xy - finger;
        next.z -= 0.02 * exp(-dot(way, way) * 30.0);
    }
    before[i] = now;
    if (id.y == 0u && id.x % 8u == 0u) || (id.y == 0u && id.x == 47u) { next = now; }
    points[i] = next;
}

/// Where its neighbours want a point to be.
fn pulled(own: vec4f, other: vec4f, rest: f32) -> vec4f {
    let way = other - own;
    let far = max(length(way.xyz), 1e-5);
    return vec4f(way.xyz * (far - rest) / far, 1.0);
}

fn settled(id: vec3u, forth: bool) -> vec4f {
    let p = vec2i(id.xy);
    let i = id.y * u32(SIDE) + id.x;
    let own = select(moved[i], points[i], forth);
    if id.y == 0u && (id.x % 8u == 0u || id.x == 47u) { return own; }
    var sum = vec4f();
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            let q = p + vec2i(dx, dy);
            if (dx == 0 && dy == 0) || any(q < vec2i(0)) || any(q >= vec2i(SIDE)) { continue; }
            let k = u32(q.y * SIDE + q.x);
            sum += pulled(own, select(moved[k], points[k], forth), REST * sqrt(f32(dx * dx + dy * dy)));
        }
    }
    return own + vec4f(sum.xyz / sum.w * 0.9, 0.0);
}

@compute @workgroup_size(8, 8)
fn settle(@builtin(global_invocation_id) id: vec3u) {
    if all(vec2i(id.xy) < vec2i(SIDE)) { moved[id.y * u32(SIDE) + id.x] = settled(id, true); }
}

@compute @workgroup_size(8, 8)
fn settle_back(@builtin(global_invocation_id) id: vec3u) {
    if all(vec2i(id.xy) < vec2i(SIDE)) { points[id.y * u32(SIDE) + id.x] = settled(id, false); }
}

@compute @workgroup_size(8, 8)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if any(vec2i(id.xy) >= vec2i(SIDE - 1)) { return; }
    let i = id.y * u32(SIDE) + id.x;
    let a = points[i].xyz;
    let b = points[i + 1u].xyz;
    let c = points[i + u32(SIDE)].xyz;
    let d = points[i + u32(SIDE) + 1u].xyz;
    let normal = normalize(cross(b - a, c - a) + 1e-9);
    let light = 0.30 + 0.70 * abs(dot(normal, normalize(vec3f(0.45, 0.55, 0.8))));
    let gleam = pow(abs(dot(normal, normalize(vec3f(0.2, 0.3, 1.0)))), 20.0);
    let stripe = select(0u, 1u, (id.x / 6u + id.y / 6u) % 2u == 0u);
    let shade = u32(clamp(light * 0.85 + gleam * 0.15, 0.0, 1.0) * 127.0) * 2u + stripe;
    let size = vec2i(view.resolution);
    // Ten by ten places of the square between four points; the nearest to the eye wins.
    for (var v = 0; v < 10; v++) {
        for (var u = 0; u < 10; u++) {
            let s = vec2f(f32(u), f32(v)) / 10.0;
            let at = mix(mix(a, b, s.x), mix(c, d, s.x), s.y);
            let near = 1.0 / (2.4 - at.z);
            let p = vec2i((at.xy * vec2f(1.0, -1.0) * 2.4 * near * view.resolution.y * 0.98 + view.resolution) * 0.5);
            if all(p >= vec2i(0)) && all(p < size) {
                atomicMax(&canvas[p.y * size.x + p.x], (u32(clamp(near, 0.0, 4.0) * 1000000.0) << 8u) | shade);
            }
        }
    }
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let i = id.y * size.x + id.x;
    let word = atomicExchange(&canvas[i], 0u);
    let light = f32((word & 255u) / 2u) / 127.0;
    let cloth = select(vec3f(0.90, 0.86, 0.78), vec3f(0.70, 0.16, 0.16), (word & 1u) == 1u) * (0.25 + 0.85 * light);
    let wall = mix(vec3f(0.24, 0.29, 0.35), vec3f(0.12, 0.14, 0.18), f32(id.y) / view.resolution.y);
    picture[i] = pack4x8unorm(vec4f(select(wall, cloth, word != 0u), 1.0));
}
