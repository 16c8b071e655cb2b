// y = 1 / a, 0 where a is 0: a run of elements for each invocation, by one power and products before and behind (Montgomery's trick).
struct Sizes { count: u32, run: u32, bits: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> a: array<Fe>;
@group(0) @binding(2) var<storage> exponent: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

@compute @workgroup_size(64)
fn field_inverse(@builtin(global_invocation_id) id: vec3u) {
    // Neighbours take neighbouring elements: an invocation's own lie a stride apart.
    let stride = (sizes.count + sizes.run - 1u) / sizes.run;
    if id.x >= stride { return; }
    var product = fe_one();
    for (var at = id.x; at < sizes.count; at += stride) {
        y[at] = product;
        if !fe_is_zero(a[at]) { product = fe_mul(product, a[at]); }
    }
    var inverse = fe_one();
    for (var bit = sizes.bits; bit > 0u; bit--) {
        inverse = fe_mul(inverse, inverse);
        let place = bit - 1u;
        if ((exponent[place / 32u] >> (place % 32u)) & 1u) == 1u { inverse = fe_mul(inverse, product); }
    }
    let own = (sizes.count - id.x + stride - 1u) / stride;
    for (var step = own; step > 0u; step--) {
        let at = id.x + (step - 1u) * stride;
        let value = a[at];
        if fe_is_zero(value) {
            y[at] = value;
        } else {
            y[at] = fe_mul(y[at], inverse);
            inverse = fe_mul(inverse, value);
        }
    }
}
