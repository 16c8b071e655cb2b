// A picture and its spectrum, side by side: rows and columns are transformed in workgroup memory, eight steps of butterflies each.
struct View {
    resolution: vec2f,
    time: f32,
    mouse: vec3f,
    shape: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> image: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> picture: array<u32>;

const SIDE = 256u;

var<workgroup> line: array<vec2f, 256>;

fn drawn(p: vec2f) -> f32 {
    let turn = view.time * 0.4;
    let q = vec2f(cos(turn) * p.x - sin(turn) * p.y, sin(turn) * p.x + cos(turn) * p.y);
    switch view.shape {
        case 0u: { return 1.0 - smoothstep(-0.01, 0.01, max(abs(q.x) - 0.10, abs(q.y) - 0.26)); }
        case 1u: { return 1.0 - smoothstep(-0.01, 0.01, abs(length(q) - 0.22 - 0.05 * sin(view.time)) - 0.03); }
        default: { return (0.5 + 0.5 * cos(q.x * (60.0 + 30.0 * sin(view.time * 0.7)))) * exp(-8.0 * dot(q, q)); }
    }
}

@compute @workgroup_size(16, 16)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(SIDE)) { return; }
    let middle = select(vec2f(128.0), view.mouse.xy % 256.0, view.mouse.z > 0.0);
    let v = drawn((vec2f(id.xy) - middle) / f32(SIDE));
    // Signs in turn put the frequency 0 into the middle.
    image[id.y * SIDE + id.x] = vec2f(select(v, -v, (id.x + id.y) % 2u == 1u), 0.0);
    picture[id.y * 512u + id.x] = pack4x8unorm(vec4f(vec3f(0.06, 0.07, 0.10) + v * vec3f(0.90, 0.86, 0.78), 1.0));
}

fn transform(lane: u32) {
    for (var length = 2u; length <= SIDE; length *= 2u) {
        workgroupBarrier();
        let half = length / 2u;
        let at = (lane / half) * length + lane % half;
        let angle = -6.2831853 * f32(lane % half) / f32(length);
        let a = line[at];
        let b = line[at + half];
        let turned = vec2f(b.x * cos(angle) - b.y * sin(angle), b.x * sin(angle) + b.y * cos(angle));
        line[at] = a + turned;
        line[at + half] = a - turned;
    }
    workgroupBarrier();
}

@compute @workgroup_size(128)
fn rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * SIDE;
    line[reverseBits(lane) >> 24u] = image[first + lane];
    line[reverseBits(lane + 128u) >> 24u] = image[first + lane + 128u];
    transform(lane);
    image[first + lane] = line[lane];
    image[first + lane + 128u] = line[lane + 128u];
}

@compute @workgroup_size(128)
fn columns(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    line[reverseBits(lane) >> 24u] = image[lane * SIDE + group.x];
    line[reverseBits(lane + 128u) >> 24u] = image[(lane + 128u) * SIDE + group.x];
    transform(lane);
    image[lane * SIDE + group.x] = line[lane];
    image[(lane + 128u) * SIDE + group.x] = line[lane + 128u];
}

@compute @workgroup_size(16, 16)
fn spectrum(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(SIDE)) { return; }
    let t = clamp(log(1.0 + length(image[id.y * SIDE + id.x])) * 0.125, 0.0, 1.0);
    let color = mix(mix(vec3f(0.02, 0.02, 0.07), vec3f(0.45, 0.10, 0.42), smoothstep(0.0, 0.45, t)), vec3f(1.0, 0.83, 0.45), smoothstep(0.35, 0.95, t));
    picture[id.y * 512u + SIDE + id.x] = pack4x8unorm(vec4f(color, 1.0));
}
