// SHA-256 of one number a pixel, new numbers in every frame. The more zeros a hash begins with, the brighter; the best of all stays on top.
struct View {
    resolution: vec2f,
    frame: u32,
    seed: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> best: array<atomic<u32>, 1>;
@group(0) @binding(2) var<storage, read_write> heat: array<f32>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

/// The first word of the hash of eight bytes: one block, whose words lie in memory's order. The hash itself is the library's, below.
fn first_word(high: u32, low: u32) -> u32 {
    var block: array<u32, 16>;
    block[0] = swapped(high);
    block[1] = swapped(low);
    block[2] = swapped(0x80000000u);
    block[15] = swapped(64u);
    return hash_block(hash_start(), block)[0];
}

@compute @workgroup_size(64)
fn search(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&heat) { return; }
    let zeros = countLeadingZeros(first_word(view.seed, view.frame * arrayLength(&heat) + id.x));
    atomicMax(&best[0], zeros);
    heat[id.x] = max(heat[id.x] * 0.94, f32(zeros));
}

@compute @workgroup_size(64)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&heat) { return; }
    let t = heat[id.x] / 14.0;
    var color = mix(vec3f(0.04, 0.06, 0.09), vec3f(0.10, 0.62, 0.52), smoothstep(0.05, 0.55, t));
    color = mix(color, vec3f(1.0, 0.95, 0.72), smoothstep(0.5, 1.0, t));
    // The best so far as a row of squares: one for each zero.
    let width = u32(view.resolution.x);
    let x = id.x % width;
    let y = id.x / width;
    let cell = width / 32u;
    if y < cell { color = select(vec3f(0.13, 0.15, 0.20), vec3f(0.95, 0.62, 0.20), x / cell < atomicLoad(&best[0])) * select(1.0, 0.35, x % cell == cell - 1u || y == cell - 1u); }
    picture[id.x] = pack4x8unorm(vec4f(color, 1.0));
}
