// Gray and Scott's reaction and diffusion of two substances on a torus, by Euler's method (J. E. Pearson, "Complex patterns in a simple
// system", Science 261, 1993). `u` feeds `v`; x and y of an element are their amounts.
override SIZE = 256u;

struct Rates {
    feed: f32,
    kill: f32,
    step: f32,
}

@group(0) @binding(0) var<storage, read> now: array<vec2f>;
@group(0) @binding(1) var<storage, read_write> next: array<vec2f>;
@group(0) @binding(2) var<uniform> rates: Rates;
@group(0) @binding(3) var<storage, read_write> picture: array<f32>;

fn at(x: u32, y: u32) -> vec2f {
    return now[(y % SIZE) * SIZE + x % SIZE];
}

@compute @workgroup_size(16, 16)
fn begin(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= SIZE || id.y >= SIZE { return; }
    // A few squares of `v` in a sea of `u`.
    let cell = vec2f(id.xy) / f32(SIZE);
    let near = abs(fract(cell * vec2f(3.0, 2.0)) - vec2f(0.5, 0.4 + 0.1 * cell.x)) < vec2f(0.12, 0.1);
    next[id.y * SIZE + id.x] = select(vec2f(1.0, 0.0), vec2f(0.5, 0.25), all(near));
}

@compute @workgroup_size(16, 16)
fn react(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= SIZE || id.y >= SIZE { return; }
    let x = id.x + SIZE;
    let y = id.y + SIZE;
    let here = at(x, y);
    let sides = at(x - 1u, y) + at(x + 1u, y) + at(x, y - 1u) + at(x, y + 1u);
    let corners = at(x - 1u, y - 1u) + at(x + 1u, y - 1u) + at(x - 1u, y + 1u) + at(x + 1u, y + 1u);
    let spread = 0.2 * sides + 0.05 * corners - here;
    let reaction = here.x * here.y * here.y;
    let change = vec2f(
        spread.x - reaction + rates.feed * (1.0 - here.x),
        0.5 * spread.y + reaction - (rates.feed + rates.kill) * here.y,
    );
    let after = here + rates.step * change;
    next[id.y * SIZE + id.x] = after;
    picture[id.y * SIZE + id.x] = after.x - after.y;
}
