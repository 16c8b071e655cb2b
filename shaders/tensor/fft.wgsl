// A pass of Stockham's Fourier transform of rows of complex numbers; an invocation makes RADIX numbers of as many. words[0] = (rows, length of a
// row, product of the radices of the passes before, bit 0: the parts of what is read change places, bit 1: those of what is stored),
// words[1] = (bits of a factor). Given: unit_root; RADIX; element(row, place, part) -> f32; y; in place of LOAD, BUTTERFLY and STORE the
// statements for this radix.

fn times(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i a
fn turned_back(a: vec2f) -> vec2f {
    return vec2f(a.y, -a.x);
}

fn load(row: u32, place: u32) -> vec2f {
    let real = words[0].w & 1u;
    return vec2f(element(row, place, real), element(row, place, 1u - real));
}

fn store(at: u32, value: vec2f) {
    y[at] = select(value, value.yx, (words[0].w & 2u) != 0u) * bitcast<f32>(words[1].x);
}

@compute @workgroup_size(64)
fn fft(@builtin(global_invocation_id) id: vec3u) {
    let length = words[0].y;
    let span = words[0].z;
    let stride = length / RADIX;
    if id.x >= words[0].x * stride { return; }
    let row = id.x / stride;
    let place = id.x % stride;
    let k = place % span;
    // LOAD
    // BUTTERFLY
    let to = row * length + (place - k) * RADIX + k;
    // STORE
}
