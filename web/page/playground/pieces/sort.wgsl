// Each row sorts itself: neighbours compare and change places, even pairs and odd pairs in turn. Shuffled again when all is in order.
struct View {
    resolution: vec2f,
    frame: u32,
    pause: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> picture: array<u32>;

fn hash(n: u32) -> f32 {
    let x = (n ^ (n >> 16u)) * 2146121005u;
    let y = (x ^ (x >> 15u)) * 2221713035u;
    return f32((y ^ (y >> 16u)) >> 8u) / 16777216.0;
}

@compute @workgroup_size(16, 16)
fn shuffle(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let round = view.frame % (size.x + view.pause);
    if round == 0u { values[id.y * size.x + id.x] = hash(id.y * size.x + id.x + view.frame * 7919u); }
}

fn in_order(a: u32, b: u32) {
    let left = values[a];
    let right = values[b];
    if left > right {
        values[a] = right;
        values[b] = left;
    }
}

@compute @workgroup_size(16, 16)
fn even(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.y < size.y && 2u * id.x + 1u < size.x { in_order(id.y * size.x + 2u * id.x, id.y * size.x + 2u * id.x + 1u); }
}

@compute @workgroup_size(16, 16)
fn odd(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if id.y < size.y && 2u * id.x + 2u < size.x { in_order(id.y * size.x + 2u * id.x + 1u, id.y * size.x + 2u * id.x + 2u); }
}

@compute @workgroup_size(16, 16)
fn paint(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let v = values[id.y * size.x + id.x];
    let color = 0.55 + 0.45 * cos(6.2832 * (v * 0.75 + vec3f(0.02, 0.30, 0.58)));
    picture[id.y * size.x + id.x] = pack4x8unorm(vec4f(color, 1.0));
}
