// Sums of conj(a[i ^ flip]) b[i], with the sign of the bits of i that `signs` has: one sum for each workgroup.

// `f64` in their place where amplitudes are complex128.
alias Real = f32;
alias Number = vec2<Real>;

struct Inner {
    flip: u32,
    signs: u32,
    // A state has 2^qubits amplitudes; a workgroup sums 2^part of them.
    qubits: u32,
    part: u32,
}

@group(0) @binding(0) var<uniform> inner: Inner;
@group(0) @binding(1) var<storage> a: array<Number>;
@group(0) @binding(2) var<storage> b: array<Number>;
@group(0) @binding(3) var<storage, read_write> sums: array<Number>;

var<workgroup> parts: array<Number, 64>;

@compute @workgroup_size(64)
fn inner_product(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = Number();
    let count = 1u << inner.part;
    for (var k = lane; k < count; k += 64u) {
        let at = (group.x << inner.part) + k;
        let left = a[at ^ inner.flip];
        let right = b[at];
        let product = Number(left.x * right.x + left.y * right.y, left.x * right.y - left.y * right.x);
        sum += select(product, -product, (countOneBits(at & inner.signs) & 1u) == 1u);
    }
    parts[lane] = sum;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half /= 2u) {
        if lane < half {
            parts[lane] += parts[lane + half];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        sums[group.x] = parts[0];
    }
}
