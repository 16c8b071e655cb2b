// Poseidon2 over rows: `rate` elements at a time take the places of the state's first, and its first `out` are the result. WIDTH, PARTIAL and
// `power` precede it; `constants` are those of full rounds, those of partial rounds, and the diagonal.
struct Sizes { rows: u32, length: u32, rate: u32, out: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> x: array<Fe>;
@group(0) @binding(2) var<storage> constants: array<Fe>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

var<private> state: array<Fe, WIDTH>;

fn mix() {
    if WIDTH < 4u {
        var sum = fe_zero();
        for (var i = 0u; i < WIDTH; i++) { sum = fe_add(sum, state[i]); }
        for (var i = 0u; i < WIDTH; i++) { state[i] = fe_add(state[i], sum); }
        return;
    }
    // The circulant matrix of 2, 3, 1, 1 for each four, then each with the sum of those at its place.
    var sums: array<Fe, 4>;
    for (var i = 0u; i < WIDTH; i += 4u) {
        let a = state[i];
        let b = state[i + 1u];
        let c = state[i + 2u];
        let d = state[i + 3u];
        let all = fe_add(fe_add(a, b), fe_add(c, d));
        state[i] = fe_add(fe_add(all, a), fe_add(b, b));
        state[i + 1u] = fe_add(fe_add(all, b), fe_add(c, c));
        state[i + 2u] = fe_add(fe_add(all, c), fe_add(d, d));
        state[i + 3u] = fe_add(fe_add(all, d), fe_add(a, a));
        for (var j = 0u; j < 4u; j++) {
            if i == 0u { sums[j] = state[j]; } else { sums[j] = fe_add(sums[j], state[i + j]); }
        }
    }
    for (var i = 0u; i < WIDTH; i++) { state[i] = fe_add(state[i], sums[i % 4u]); }
}

fn full_rounds(first: u32) {
    for (var round = first; round < first + 4u; round++) {
        for (var i = 0u; i < WIDTH; i++) { state[i] = power(fe_add(state[i], constants[round * WIDTH + i])); }
        mix();
    }
}

@compute @workgroup_size(64)
fn poseidon2(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.rows { return; }
    for (var i = 0u; i < WIDTH; i++) { state[i] = fe_zero(); }
    for (var first = 0u; first < sizes.length; first += sizes.rate) {
        for (var i = 0u; i < min(sizes.rate, sizes.length - first); i++) { state[i] = x[id.x * sizes.length + first + i]; }
        mix();
        full_rounds(0u);
        for (var round = 0u; round < PARTIAL; round++) {
            state[0] = power(fe_add(state[0], constants[8u * WIDTH + round]));
            var sum = state[0];
            for (var i = 1u; i < WIDTH; i++) { sum = fe_add(sum, state[i]); }
            for (var i = 0u; i < WIDTH; i++) {
                state[i] = fe_add(sum, fe_mul(state[i], constants[8u * WIDTH + PARTIAL + i]));
            }
        }
        full_rounds(4u);
    }
    for (var i = 0u; i < sizes.out; i++) { y[id.x * sizes.out + i] = state[i]; }
}
