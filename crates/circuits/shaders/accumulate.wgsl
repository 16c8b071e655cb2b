// Adds a multiple of a Pauli string times a part of a state to a part of another one, or sets it to that.

// `f64` in their place where amplitudes are complex128.
alias Real = f32;
alias Number = vec2<Real>;

struct Term {
    flip: u32,
    signs: u32,
    total: u32,
    // 0 for the first term.
    keep: u32,
    // The first amplitudes of both.
    read_at: u32,
    write_at: u32,
    // The factor lies at the same place in both precisions.
    unused0: u32,
    unused1: u32,
    factor: Number,
}

@group(0) @binding(0) var<uniform> term: Term;
@group(0) @binding(1) var<storage> before: array<Number>;
@group(0) @binding(2) var<storage, read_write> after: array<Number>;

@compute @workgroup_size(64)
fn accumulate(@builtin(global_invocation_id) id: vec3u) {
    if id.x < term.total {
        let source = id.x ^ term.flip;
        let a = before[term.read_at + source];
        let product = Number(a.x * term.factor.x - a.y * term.factor.y, a.x * term.factor.y + a.y * term.factor.x);
        let turned = select(product, -product, (countOneBits(source & term.signs) & 1u) == 1u);
        let at = term.write_at + id.x;
        if term.keep == 0u {
            after[at] = turned;
        } else {
            after[at] += turned;
        }
    }
}
