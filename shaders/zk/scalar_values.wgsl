// The scalars' values plus an offset, by words: word w of scalar i is at w * count + i. `plain` leaves Montgomery's form, and a scalar
// that `counts` leaves out is 0.
struct Sizes { count: u32, first: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> scalars: array<Fe>;
@group(0) @binding(2) var<storage> offset: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn scalar_values(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    var value = plain(scalars[sizes.first + id.x]);
    if !counts(id.x) { value = fe_zero(); }
    var carry = 0u;
    for (var word = 0u; word < WORDS; word++) {
        let sum = value[word] + offset[word];
        let total = sum + carry;
        carry = u32(sum < offset[word]) | u32(total < sum);
        y[word * sizes.count + id.x] = total;
    }
    y[WORDS * sizes.count + id.x] = offset[WORDS] + carry;
}
