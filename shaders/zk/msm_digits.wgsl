// The signed digit of each scalar in each window: counted for each bucket, or put in its place among the entries of its bucket. `note` does one
// of the two. WORDS is that of a scalar. Digits of 0 have no entry.
struct Sizes { count: u32, first: u32, window: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> cursors: array<atomic<u32>>;

@compute @workgroup_size(64)
fn msm_digits(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    let bit = id.y * sizes.window;
    let word = bit / 32u;
    let shift = bit % 32u;
    var bits = 0u;
    if word <= WORDS { bits = values[word * sizes.count + id.x] >> shift; }
    if shift + sizes.window > 32u && word < WORDS {
        bits |= values[(word + 1u) * sizes.count + id.x] << (32u - shift);
    }
    let half = 1u << (sizes.window - 1u);
    let digit = i32(bits & (2u * half - 1u)) - i32(half);
    if digit == 0 { return; }
    let bucket = id.y * half + u32(abs(digit)) - 1u;
    let place = atomicAdd(&cursors[bucket], 1u);
    note(place, ((sizes.first + id.x) << 1u) | u32(digit < 0));
}
