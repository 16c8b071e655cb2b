// Between the transform of real numbers and that of half as many complex ones, which are the real ones two by two. words[0] = (rows, half the
// length, numbers of a row to make). Given: unit_root; INVERSE; element(row, place, part) -> f32; y.

fn load(row: u32, place: u32) -> vec2f {
    let half = words[0].y;
    if INVERSE {
        // What has no imaginary part in the transform of real numbers.
        let imaginary = element(row, place, 1u);
        return vec2f(element(row, place, 0u), select(imaginary, 0.0, place == 0u || place == half));
    }
    let within = select(place, 0u, place == half);
    return vec2f(element(row, within, 0u), element(row, within, 1u));
}

@compute @workgroup_size(64)
fn fft_real(@builtin(global_invocation_id) id: vec3u) {
    let half = words[0].y;
    let count = words[0].z;
    if id.x >= words[0].x * count { return; }
    let row = id.x / count;
    let k = id.x % count;
    let a = load(row, k);
    let other = load(row, half - k);
    let b = vec2f(other.x, -other.y);
    let even = 0.5 * (a + b);
    let odd = 0.5 * (a - b);
    let root = unit_root(k, 2u * half);
    if INVERSE {
        // even + i odd / root
        let turned = vec2f(odd.x * root.x + odd.y * root.y, odd.y * root.x - odd.x * root.y);
        y[id.x] = vec2f(even.x - turned.y, even.y + turned.x);
    } else {
        // even - i root odd
        let turned = vec2f(odd.x * root.x - odd.y * root.y, odd.x * root.y + odd.y * root.x);
        y[id.x] = vec2f(even.x + turned.y, even.y - turned.x);
    }
}
