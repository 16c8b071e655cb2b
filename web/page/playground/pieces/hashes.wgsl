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

const K = array<u32, 64>(
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
);

fn turn(x: u32, by: u32) -> u32 {
    return (x >> by) | (x << (32u - by));
}

/// The first word of the hash of eight bytes.
fn sha256(high: u32, low: u32) -> u32 {
    var w: array<u32, 16>;
    w[0] = high;
    w[1] = low;
    w[2] = 0x80000000u;
    w[15] = 64u;
    var a = 0x6a09e667u;
    var b = 0xbb67ae85u;
    var c = 0x3c6ef372u;
    var d = 0xa54ff53au;
    var e = 0x510e527fu;
    var f = 0x9b05688cu;
    var g = 0x1f83d9abu;
    var h = 0x5be0cd19u;
    for (var i = 0u; i < 64u; i++) {
        if i >= 16u {
            let x = w[(i + 1u) % 16u];
            let y = w[(i + 14u) % 16u];
            w[i % 16u] += w[(i + 9u) % 16u] + (turn(x, 7u) ^ turn(x, 18u) ^ (x >> 3u)) + (turn(y, 17u) ^ turn(y, 19u) ^ (y >> 10u));
        }
        let one = h + (turn(e, 6u) ^ turn(e, 11u) ^ turn(e, 25u)) + ((e & f) ^ (~e & g)) + K[i] + w[i % 16u];
        let two = (turn(a, 2u) ^ turn(a, 13u) ^ turn(a, 22u)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    return a + 0x6a09e667u;
}

@compute @workgroup_size(64)
fn search(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&heat) { return; }
    let zeros = countLeadingZeros(sha256(view.seed, view.frame * arrayLength(&heat) + id.x));
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
