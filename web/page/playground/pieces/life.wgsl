// Conway's game of life on a torus. `evolve` reads one buffer and writes the other, `show` copies back and draws.
struct View {
    resolution: vec2f,
    frame: u32,
    mouse: vec3f,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> cells: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;
@group(0) @binding(3) var<storage, read_write> heat: array<f32>;
@group(0) @binding(4) var<storage, read_write> picture: array<u32>;

fn alive(x: u32, y: u32) -> u32 {
    let size = vec2u(view.resolution);
    return cells[(y % size.y) * size.x + x % size.x];
}

@compute @workgroup_size(16, 16)
fn evolve(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.x >= size.x || id.y >= size.y { return; }
    let x = id.x + size.x;
    let y = id.y + size.y;
    let around = alive(x - 1u, y - 1u) + alive(x, y - 1u) + alive(x + 1u, y - 1u)
        + alive(x - 1u, y) + alive(x + 1u, y)
        + alive(x - 1u, y + 1u) + alive(x, y + 1u) + alive(x + 1u, y + 1u);
    var now = select(0u, 1u, around == 3u || (around == 2u && alive(x, y) == 1u));
    // The pointer sows.
    let near = distance(vec2f(id.xy), view.mouse.xy) < 5.0;
    if view.mouse.z > 0.0 && near && ((id.x * 7u + id.y * 13u + view.frame) % 3u == 0u) { now = 1u; }
    next[id.y * size.x + id.x] = now;
}

@compute @workgroup_size(16, 16)
fn show(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.x >= size.x || id.y >= size.y { return; }
    let i = id.y * size.x + id.x;
    let now = next[i];
    cells[i] = now;
    heat[i] = max(heat[i] * 0.965, f32(now));
    let trail = mix(vec3f(0.05, 0.03, 0.10), vec3f(0.55, 0.16, 0.42), heat[i]);
    let color = select(trail, vec3f(1.0, 0.87, 0.62), now == 1u);
    picture[i] = pack4x8unorm(vec4f(color, 1.0));
}
