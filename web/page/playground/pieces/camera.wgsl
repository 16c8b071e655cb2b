// What the camera sees, blurred or as edges. Choose "Camera" for the input `camera`; without one, a picture is drawn here.
struct View {
    resolution: vec2f,
    time: f32,
    blur: f32,
    edges: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> camera: array<u32>;
@group(0) @binding(2) var<storage, read_write> across: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> soft: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> picture: array<u32>;

fn index(p: vec2i) -> u32 {
    let size = vec2i(view.resolution);
    let q = clamp(p, vec2i(0), size - 1);
    return u32(q.y * size.x + q.x);
}

fn seen(p: vec2i) -> vec4f {
    let word = camera[index(p)];
    if word != 0u { return unpack4x8unorm(word); }
    // Nothing was given: hills and a sun that moves.
    let q = vec2f(p) / view.resolution;
    let sun = smoothstep(0.13, 0.12, distance(q * vec2f(1.33, 1.0), vec2f(0.66 + 0.4 * sin(view.time * 0.5), 0.34)));
    let hill = step(0.62 + 0.08 * sin(q.x * 9.0) + 0.03 * sin(q.x * 31.0), q.y) + step(0.8 + 0.06 * cos(q.x * 7.0), q.y);
    let air = mix(mix(vec3f(0.35, 0.60, 0.85), vec3f(0.95, 0.80, 0.62), q.y * 1.4), vec3f(1.0, 0.92, 0.55), sun);
    return vec4f(mix(air, vec3f(0.16, 0.30, 0.24) / max(hill, 1.0), min(hill, 1.0)), 1.0);
}

fn weight(k: i32) -> f32 {
    return exp(-f32(k * k) / (2.0 * view.blur * view.blur + 0.01));
}

@compute @workgroup_size(16, 16)
fn blur_rows(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    var sum = vec4f();
    for (var k = -6; k <= 6; k++) { sum += weight(k) * vec4f(seen(vec2i(id.xy) + vec2i(k, 0)).rgb, 1.0); }
    across[index(vec2i(id.xy))] = sum / sum.w;
}

@compute @workgroup_size(16, 16)
fn blur_columns(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    var sum = vec4f();
    for (var k = -6; k <= 6; k++) { sum += weight(k) * across[index(vec2i(id.xy) + vec2i(0, k))]; }
    soft[index(vec2i(id.xy))] = sum / sum.w;
}

fn light(p: vec2i) -> f32 {
    return dot(soft[index(p)].rgb, vec3f(0.3, 0.6, 0.1));
}

@compute @workgroup_size(16, 16)
fn edges(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(view.resolution)) { return; }
    let p = vec2i(id.xy);
    let dx = light(p + vec2i(1, -1)) + 2.0 * light(p + vec2i(1, 0)) + light(p + vec2i(1, 1)) - light(p + vec2i(-1, -1)) - 2.0 * light(p + vec2i(-1, 0)) - light(p + vec2i(-1, 1));
    let dy = light(p + vec2i(-1, 1)) + 2.0 * light(p + vec2i(0, 1)) + light(p + vec2i(1, 1)) - light(p + vec2i(-1, -1)) - 2.0 * light(p + vec2i(0, -1)) - light(p + vec2i(1, -1));
    let edge = smoothstep(0.05, 0.9, length(vec2f(dx, dy)) * 1.6);
    let ink = mix(vec3f(0.97, 0.95, 0.90), vec3f(0.10, 0.12, 0.20), edge);
    picture[index(p)] = pack4x8unorm(vec4f(mix(soft[index(p)].rgb, ink, view.edges), 1.0));
}
