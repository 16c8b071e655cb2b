// A pass of Stockham's Fourier transform of rows of complex numbers whose radix is a power of two: a workgroup makes COLUMNS transforms of POINTS
// numbers, an invocation as many as sixteen at a time. Between the steps of a pass the numbers change hands in workgroup memory, part by part.
// words[0] = (rows, length of a row, product of the radices of the passes before, bit 0: the parts of what is read change places, bit 1: those of
// what is stored), words[1] = (bits of a factor). Given: unit_root; POINTS, COLUMNS, LANES; element(row, place, part) -> f32; y; in place of STEPS
// the statements for these radices.

var<workgroup> tile: array<f32, POINTS * COLUMNS>;

// A column of the pass: numbers that lie `stride` apart.
struct Column {
    row: u32,
    place: u32,
    // Of the pass's roots.
    k: u32,
    exists: bool,
}

fn times(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i a
fn turned_back(a: vec2f) -> vec2f {
    return vec2f(a.y, -a.x);
}

fn column(number: u32) -> Column {
    let stride = words[0].y / POINTS;
    let place = number % stride;
    return Column(number / stride, place, place % words[0].z, number < words[0].x * stride);
}

fn load(source: Column, point: u32) -> vec2f {
    if !source.exists { return vec2f(); }
    let place = source.place + point * (words[0].y / POINTS);
    let real = words[0].w & 1u;
    return vec2f(element(source.row, place, real), element(source.row, place, 1u - real));
}

fn store(to: Column, point: u32, value: vec2f) {
    if !to.exists { return; }
    let at = to.row * words[0].y + (to.place - to.k) * POINTS + to.k + point * words[0].z;
    y[at] = select(value, value.yx, (words[0].w & 2u) != 0u) * bitcast<f32>(words[1].x);
}

// The word of a number of a column, which keeps neighbours in the next step on different banks.
fn spot(column: u32, point: u32) -> u32 {
    let word = point * COLUMNS + column;
    return word ^ ((word >> 5u) & 31u);
}

@compute @workgroup_size(LANES)
fn fft_tile(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // STEPS
}
