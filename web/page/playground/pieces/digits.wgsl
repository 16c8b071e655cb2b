// Draw a digit on the left. A small network, trained on strokes of our own making, says on the right what it takes it for.
struct View {
    resolution: vec2f,
    frame: u32,
    mouse: vec3f,
    thickness: f32,
    clear: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> ink: array<f32>;
@group(0) @binding(3) var<storage, read_write> box: array<atomic<u32>, 4>;
@group(0) @binding(4) var<storage, read_write> seen: array<f32>;
@group(0) @binding(5) var<storage, read_write> answer: array<f32>;
@group(0) @binding(6) var<storage, read_write> picture: array<u32>;

const PAD = 224u;
const SIDE = 14u;
const HIDDEN = 32u;

/// How far a place is from the 3 that is there at the start: two arcs.
fn from_three(p: vec2f) -> f32 {
    let upper = p - vec2f(112.0, 78.0);
    let lower = p - vec2f(112.0, 144.0);
    let high = select(abs(length(upper) - 32.0), 99.0, upper.x < -6.0 && upper.y > -18.0);
    let low = select(abs(length(lower) - 38.0), 99.0, lower.x < -6.0 && lower.y < 18.0);
    return min(high, low);
}

@compute @workgroup_size(16, 16)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(PAD)) { return; }
    let i = id.y * PAD + id.x;
    if view.frame == 0u { ink[i] = select(0.0, 1.0, from_three(vec2f(id.xy)) < view.thickness); }
    if view.mouse.z > 0.0 && distance(vec2f(id.xy), view.mouse.xy) < view.thickness { ink[i] = 1.0; }
    // A press on the right half, or the slider, wipes it.
    if view.clear > 0u || (view.mouse.z > 0.0 && view.mouse.x > f32(PAD)) { ink[i] = 0.0; }
    if i < 4u { atomicStore(&box[i], 0u); }
}

@compute @workgroup_size(16, 16)
fn measure(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= vec2u(PAD)) || ink[id.y * PAD + id.x] == 0.0 { return; }
    atomicMax(&box[0], PAD - id.x);
    atomicMax(&box[1], PAD - id.y);
    atomicMax(&box[2], id.x + 1u);
    atomicMax(&box[3], id.y + 1u);
}

@compute @workgroup_size(64)
fn sample(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= SIDE * SIDE { return; }
    let low = f32(PAD) - vec2f(f32(atomicLoad(&box[0])), f32(atomicLoad(&box[1])));
    let high = vec2f(f32(atomicLoad(&box[2])), f32(atomicLoad(&box[3])));
    let side = max(max(high.x - low.x, high.y - low.y), 8.0) * 1.1;
    var sum = 0.0;
    for (var k = 0u; k < 4u; k++) {
        let part = vec2f(f32(id.x % SIDE) + 0.25 + 0.5 * f32(k % 2u), f32(id.x / SIDE) + 0.25 + 0.5 * f32(k / 2u)) / f32(SIDE);
        let at = vec2i((low + high) * 0.5 + (part - 0.5) * side);
        if all(at >= vec2i(0)) && all(at < vec2i(i32(PAD))) { sum += ink[u32(at.y) * PAD + u32(at.x)]; }
    }
    seen[id.x] = sum * 0.25;
}

@compute @workgroup_size(32)
fn hidden(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= HIDDEN { return; }
    var sum = weights[HIDDEN * 196u + id.x];
    for (var i = 0u; i < 196u; i++) { sum += weights[id.x * 196u + i] * seen[i]; }
    seen[196u + id.x] = max(sum, 0.0);
}

@compute @workgroup_size(16)
fn output(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= 10u { return; }
    let first = HIDDEN * 197u;
    // Weights are whole numbers of 1/32, so the hidden layer is 32 times as large as meant.
    var sum = weights[first + HIDDEN * 10u + id.x];
    for (var h = 0u; h < HIDDEN; h++) { sum += weights[first + id.x * HIDDEN + h] * seen[196u + h] / 32.0; }
    answer[id.x] = sum / 32.0;
}

/// Whether a place of 3 x 5 squares belongs to the digit's sign.
fn sign(digit: u32, x: u32, y: u32) -> bool {
    var rows = array<u32, 10>(0x7b6fu, 0x2c97u, 0x73e7u, 0x73cfu, 0x5bc9u, 0x79cfu, 0x79efu, 0x7249u, 0x7befu, 0x7bcfu);
    return x < 3u && y < 5u && ((rows[digit] >> (14u - y * 3u - x)) & 1u) == 1u;
}

@compute @workgroup_size(16, 16)
fn show(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= 2u * PAD || id.y >= PAD { return; }
    var color = vec3f(0.97, 0.95, 0.91);
    if id.x < PAD {
        let edge = min(min(id.x, PAD - 1u - id.x), min(id.y, PAD - 1u - id.y));
        let line = select(0.0, 0.06, (id.x % 56u == 0u) || (id.y % 56u == 0u)) + select(0.0, 0.25, edge < 2u);
        color = mix(color - line, vec3f(0.13, 0.16, 0.27), ink[id.y * PAD + id.x]);
    } else {
        var most = answer[0];
        for (var k = 1u; k < 10u; k++) { most = max(most, answer[k]); }
        var total = 0.0;
        for (var k = 0u; k < 10u; k++) { total += exp(answer[k] - most); }
        let digit = min(id.y * 10u / PAD, 9u);
        let drawn = atomicLoad(&box[2]) > 0u;
        let share = select(0.0, exp(answer[digit] - most) / total, drawn);
        let x = id.x - PAD;
        let y = id.y - digit * PAD / 10u;
        color = vec3f(0.91, 0.89, 0.84);
        if sign(digit, (x - 10u) / 3u, (y - 4u) / 3u) && x >= 10u && y >= 4u { color = vec3f(0.25, 0.25, 0.30); }
        if x >= 32u && x < 214u && y >= 4u && y < 19u {
            color = select(vec3f(0.84, 0.81, 0.75), select(vec3f(0.60, 0.55, 0.48), vec3f(0.83, 0.42, 0.20), answer[digit] == most), f32(x - 32u) < share * 182.0);
        }
    }
    picture[id.y * 2u * PAD + id.x] = pack4x8unorm(vec4f(color, 1.0));
}
