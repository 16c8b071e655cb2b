// y = a^exponent, the exponent's least significant word first.
struct Sizes { count: u32, bits: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> a: array<Fe>;
@group(0) @binding(2) var<storage> exponent: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

@compute @workgroup_size(64)
fn field_pow(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    let base = a[id.x];
    var result = fe_one();
    for (var bit = sizes.bits; bit > 0u; bit--) {
        result = fe_mul(result, result);
        let at = bit - 1u;
        if ((exponent[at / 32u] >> (at % 32u)) & 1u) == 1u { result = fe_mul(result, base); }
    }
    y[id.x] = result;
}
