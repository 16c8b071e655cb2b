// An electron on fourteen qubits: seven for its column, seven for its row. A step in time is a circuit: the quantum Fourier transform gate by gate, phases for
// the motion, the transform back, and phases for a wall with two slits. Hue is an amplitude's phase. Press to set the electron down.
struct View {
    resolution: vec2f,
    mouse: vec3f,
    momentum: f32,
    distance: f32,
    speed: f32,
}
struct Job {
    // The pass of the circuit that is next, and the circuits so far.
    pass_: u32,
    circuits: u32,
    // Where the electron begins: column and row, or 0 for the usual place.
    column: u32,
    row: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> amplitudes: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> job: Job;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

const QUBITS = 7u;
const SIDE = 128u;
const CELL = 3u;
const LONGEST = 420u;

fn turned(a: vec2f, angle: f32) -> vec2f {
    let c = cos(angle);
    let s = sin(angle);
    return vec2f(a.x * c - a.y * s, a.x * s + a.y * c);
}

fn is_wall(place: vec2u) -> bool {
    let off = abs(abs(f32(place.y) - 63.5) - view.distance);
    return place.x >= 62u && place.x < 65u && off > 3.0;
}

@compute @workgroup_size(64)
fn press(@builtin(global_invocation_id) id: vec3u) {
    if id.x > 0u { return; }
    let place = vec2u(max(view.mouse.xy, vec2f(0.0))) / CELL;
    if view.mouse.z > 0.0 && all(place < vec2u(SIDE)) {
        job.column = place.x;
        job.row = place.y;
        job.circuits = 0u;
    }
    if job.circuits > LONGEST { job.circuits = 0u; }
}

@compute @workgroup_size(64)
fn begin(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= SIDE * SIDE || job.circuits > 0u { return; }
    let place = vec2f(f32(id.x % SIDE), f32(id.x / SIDE));
    let middle = select(vec2f(30.0, 63.5), vec2f(f32(job.column), f32(job.row)), job.column + job.row > 0u);
    let way = place - middle;
    // A packet that moves to the right; its probabilities add up to 1.
    amplitudes[id.x] = turned(vec2f(exp(-dot(way, way) / 200.0) / 17.725, 0.0), view.momentum * way.x);
}

/// The frequency that a register's bits mean after the transform, which leaves them reversed.
fn frequency(bits: u32) -> f32 {
    let number = i32(reverseBits(bits) >> (32u - QUBITS));
    return 6.2831853 / f32(SIDE) * f32(select(number, number - i32(SIDE), number >= i32(SIDE / 2u)));
}

/// Phases of a step in time that depend on the amplitude alone.
fn phase(at: u32, moves: bool) -> f32 {
    let place = vec2u(at % SIDE, at / SIDE);
    if moves {
        let k = vec2f(frequency(place.x), frequency(place.y));
        return -0.5 * view.speed * dot(k, k);
    }
    return select(0.0, -2.4 * view.speed, is_wall(place));
}

@compute @workgroup_size(64)
fn apply(@builtin(global_invocation_id) id: vec3u) {
    let pair = id.x;
    if pair >= SIDE * SIDE / 2u { return; }
    let count = 2u * QUBITS;
    let moves = job.pass_ == count;
    if moves || job.pass_ == 2u * count + 1u {
        amplitudes[2u * pair] = turned(amplitudes[2u * pair], phase(2u * pair, moves));
        amplitudes[2u * pair + 1u] = turned(amplitudes[2u * pair + 1u], phase(2u * pair + 1u, moves));
        return;
    }
    // A Hadamard gate and the controlled phases beside it, in one pass. The transform goes down through the qubits, and back up.
    let back = job.pass_ > count;
    let step = select(job.pass_, job.pass_ - count - 1u, back);
    let first = step / QUBITS * QUBITS;
    let bit = select(QUBITS - 1u - step % QUBITS, step % QUBITS, back);
    let qubit = first + bit;
    let low = pair & ((1u << qubit) - 1u);
    let zero = ((pair - low) << 1u) | low;
    let one = zero | (1u << qubit);
    let angle = -3.1415927 * f32(low >> first) / f32(1u << bit);
    let a = amplitudes[zero];
    var b = amplitudes[one];
    if back { b = turned(b, -angle); }
    let difference = (a - b) * 0.70710678;
    amplitudes[zero] = (a + b) * 0.70710678;
    amplitudes[one] = select(turned(difference, angle), difference, back);
}

@compute @workgroup_size(64)
fn advance(@builtin(global_invocation_id) id: vec3u) {
    if id.x > 0u { return; }
    job.pass_ = (job.pass_ + 1u) % (4u * QUBITS + 2u);
    job.circuits += u32(job.pass_ == 0u);
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    let place = id.xy / CELL;
    if any(id.xy >= size) || any(place >= vec2u(SIDE)) { return; }
    let a = amplitudes[place.y * SIDE + place.x];
    let hue = 0.55 + 0.45 * cos(atan2(a.y, a.x) + vec3f(0.0, 2.1, 4.2));
    let wall = select(vec3f(0.04, 0.04, 0.08), vec3f(0.55, 0.53, 0.50), is_wall(place));
    picture[id.y * size.x + id.x] = pack4x8unorm(vec4f(mix(wall, hue, 1.0 - exp(-85.0 * length(a))), 1.0));
}
