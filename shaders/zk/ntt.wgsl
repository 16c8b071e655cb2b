// One pass of Stockham's transform over rows of 2^log values: pairs half a row apart become neighbours' heads, so that the result is in order.
// `shift` multiplies the first pass's values by powers of a coset's shift; `scale` the last one's.
struct Sizes { half: u32, pairs: u32, span: u32, first: u32, last: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> x: array<Fe>;
@group(0) @binding(2) var<storage> roots: array<Fe>;
@group(0) @binding(3) var<storage> shifts: array<Fe>;
@group(0) @binding(4) var<storage, read_write> y: array<Fe>;

@compute @workgroup_size(64)
fn ntt(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.pairs { return; }
    let row = id.x / sizes.half * (2u * sizes.half);
    let at = id.x % sizes.half;
    var a = x[row + at];
    var b = x[row + at + sizes.half];
    if sizes.first == 1u {
        a = fe_mul(a, shifts[at]);
        b = fe_mul(b, shifts[at + sizes.half]);
    }
    // `span` values are done: place `at` is block * span + inner, and its root's exponent is block * span.
    let inner = at % sizes.span;
    let block = at - inner;
    let to = 2u * block + inner;
    var sum = fe_add(a, b);
    var difference = fe_mul(fe_sub(a, b), roots[block]);
    if sizes.last == 1u {
        sum = fe_mul(sum, shifts[to]);
        difference = fe_mul(difference, shifts[to + sizes.span]);
    }
    y[row + to] = sum;
    y[row + to + sizes.span] = difference;
}
