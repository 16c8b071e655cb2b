// A fluid on a grid: what flows is carried along, then the pressure takes out what would pile up. The pointer stirs.
struct View {
    resolution: vec2f,
    time: f32,
    mouse: vec3f,
    swirl: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> flow: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> carried: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> pressure: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> dye: array<vec3f>;
@group(0) @binding(5) var<storage, read_write> spread: array<vec3f>;
@group(0) @binding(6) var<storage, read_write> picture: array<u32>;

fn index(p: vec2i) -> u32 {
    let size = vec2i(view.resolution);
    let q = clamp(p, vec2i(0), size - 1);
    return u32(q.y * size.x + q.x);
}

@compute @workgroup_size(16, 16)
fn advect(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let here = vec2i(id.xy);
    let i = index(here);
    // Where it came from, between four cells.
    let from_ = clamp(vec2f(here) - flow[i], vec2f(0.0), view.resolution - 1.001);
    let corner = vec2i(floor(from_));
    let part = from_ - floor(from_);
    let a = index(corner);
    let b = index(corner + vec2i(1, 0));
    let c = index(corner + vec2i(0, 1));
    let d = index(corner + vec2i(1, 1));
    var v = mix(mix(flow[a], flow[b], part.x), mix(flow[c], flow[d], part.x), part.y) * 0.999;
    var ink = mix(mix(dye[a], dye[b], part.x), mix(dye[c], dye[d], part.x), part.y) * 0.9965;
    let p = vec2f(here) / view.resolution;
    for (var k = 0u; k < 3u; k++) {
        let turn = view.time * (0.5 + 0.13 * f32(k)) + 2.0944 * f32(k);
        let source = 0.5 + 0.27 * vec2f(cos(turn), sin(turn * 1.3));
        let near = exp(-dot(p - source, p - source) * 900.0);
        v += near * view.swirl * vec2f(-sin(turn), 1.3 * cos(turn * 1.3));
        ink += near * 0.12 * (0.5 + 0.5 * cos(6.2832 * (f32(k) / 3.0 + vec3f(0.02, 0.36, 0.66))));
    }
    if view.mouse.z > 0.0 {
        let way = p - view.mouse.xy / view.resolution;
        let near = exp(-dot(way, way) * 700.0);
        v += near * vec2f(-way.y, way.x) * 90.0;
        ink += near * vec3f(0.16, 0.15, 0.12);
    }
    if any(here <= vec2i(0)) || any(here >= vec2i(view.resolution) - 1) { v = vec2f(); }
    carried[i] = v;
    spread[i] = ink;
}

@compute @workgroup_size(16, 16)
fn diverge(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let out = 0.5 * (carried[index(p + vec2i(1, 0))].x - carried[index(p - vec2i(1, 0))].x
        + carried[index(p + vec2i(0, 1))].y - carried[index(p - vec2i(0, 1))].y);
    // x is the pressure of the frame before, y what it has to balance.
    pressure[index(p)] = vec2f(pressure[index(p)].x, out);
}

@compute @workgroup_size(16, 16)
fn relax(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let around = pressure[index(p + vec2i(1, 0))].x + pressure[index(p - vec2i(1, 0))].x
        + pressure[index(p + vec2i(0, 1))].x + pressure[index(p - vec2i(0, 1))].x;
    flow[index(p)] = vec2f((around - pressure[index(p)].y) * 0.25, pressure[index(p)].y);
}

@compute @workgroup_size(16, 16)
fn relax_back(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let around = flow[index(p + vec2i(1, 0))].x + flow[index(p - vec2i(1, 0))].x
        + flow[index(p + vec2i(0, 1))].x + flow[index(p - vec2i(0, 1))].x;
    pressure[index(p)] = vec2f((around - flow[index(p)].y) * 0.25, flow[index(p)].y);
}

@compute @workgroup_size(16, 16)
fn project(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let i = index(p);
    let slope = 0.5 * vec2f(pressure[index(p + vec2i(1, 0))].x - pressure[index(p - vec2i(1, 0))].x,
        pressure[index(p + vec2i(0, 1))].x - pressure[index(p - vec2i(0, 1))].x);
    flow[i] = clamp(carried[i] - slope, vec2f(-8.0), vec2f(8.0));
    dye[i] = spread[i];
    let color = 1.0 - exp(-1.6 * spread[i]);
    picture[i] = pack4x8unorm(vec4f(color + vec3f(0.015, 0.015, 0.03), 1.0));
}
