// Gray and Scott's reaction: u feeds v, v dies off, both spread. Spots, worms and corals grow from a few seeds.
struct View {
    resolution: vec2f,
    mouse: vec3f,
    feed: f32,
    kill: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> now: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> later: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

fn index(x: u32, y: u32) -> u32 {
    let size = vec2u(view.resolution);
    return (y % size.y) * size.x + x % size.x;
}

@compute @workgroup_size(16, 16)
fn seed(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    // Squares scattered by a hash of where they lie.
    let cell = id.xy / 6u;
    var hash = cell.x * 747796405u + cell.y * 2891336453u + 1u;
    hash = ((hash >> ((hash >> 28u) + 4u)) ^ hash) * 277803737u;
    hash = (hash >> 22u) ^ hash;
    now[index(id.x, id.y)] = select(vec2f(1.0, 0.0), vec2f(0.5, 0.5), hash % 23u == 0u);
}

fn reacted(self_: vec2f, around: vec2f, p: vec2f) -> vec2f {
    let spread = (around - self_) * vec2f(1.0, 0.5);
    let both = self_.x * self_.y * self_.y;
    var next = self_ + spread + vec2f(view.feed * (1.0 - self_.x) - both, both - (view.feed + view.kill) * self_.y);
    if view.mouse.z > 0.0 && distance(p, view.mouse.xy) < 4.0 { next.y = 0.9; }
    return clamp(next, vec2f(0.0), vec2f(1.0));
}

@compute @workgroup_size(16, 16)
fn react(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let x = id.x + size.x;
    let y = id.y + size.y;
    let sides = now[index(x - 1u, y)] + now[index(x + 1u, y)] + now[index(x, y - 1u)] + now[index(x, y + 1u)];
    let corners = now[index(x - 1u, y - 1u)] + now[index(x + 1u, y - 1u)] + now[index(x - 1u, y + 1u)] + now[index(x + 1u, y + 1u)];
    later[index(x, y)] = reacted(now[index(x, y)], sides * 0.2 + corners * 0.05, vec2f(id.xy));
}

@compute @workgroup_size(16, 16)
fn back(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let x = id.x + size.x;
    let y = id.y + size.y;
    let sides = later[index(x - 1u, y)] + later[index(x + 1u, y)] + later[index(x, y - 1u)] + later[index(x, y + 1u)];
    let corners = later[index(x - 1u, y - 1u)] + later[index(x + 1u, y - 1u)] + later[index(x - 1u, y + 1u)] + later[index(x + 1u, y + 1u)];
    now[index(x, y)] = reacted(later[index(x, y)], sides * 0.2 + corners * 0.05, vec2f(id.xy));
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let v = now[index(id.x, id.y)].y;
    let right = now[index(id.x + 1u, id.y)].y;
    let light = clamp(0.5 + (v - right) * 6.0, 0.0, 1.0);
    let depth = smoothstep(0.05, 0.38, v);
    let color = mix(vec3f(0.93, 0.91, 0.84), mix(vec3f(0.10, 0.32, 0.38), vec3f(0.85, 0.38, 0.20), smoothstep(0.25, 0.42, v)), depth);
    picture[index(id.x, id.y)] = pack4x8unorm(vec4f(color * (0.65 + 0.5 * light), 1.0));
}
