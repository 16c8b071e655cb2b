// Adds a multiple of a Pauli string times a state to another state, or sets it to that.

// `f64` in their place where amplitudes are complex128.
alias Real = f32;
alias Number = vec2<Real>;

struct Term {
    flip: u32,
    signs: u32,
    total: u32,
    // 0 for the first term.
    keep: u32,
    factor: Number,
}

@group(0) @binding(0) var<uniform> term: Term;
@group(0) @binding(1) var<storage> before: array<Number>;
@group(0) @binding(2) var<storage, read_write> after: array<Number>;

@compute @workgroup_size(64)
fn accumulate(@builtin(global_invocation_id) id: vec3u) {
    if id.x < term.total {
        let source = id.x ^ term.flip;
        let a = before[source];
        let product = Number(a.x * term.factor.x - a.y * term.factor.y, a.x * term.factor.y + a.y * term.factor.x);
        let turned = select(product, -product, (countOneBits(source & term.signs) & 1u) == 1u);
        if term.keep == 0u {
            after[id.x] = turned;
        } else {
            after[id.x] += turned;
        }
    }
}
