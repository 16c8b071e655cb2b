// A workgroup computes a tile of an image in another size: rows that are scaled along themselves, in workgroup memory, and of these the tile's.
// words[0] = (height and width of the images, height and width of the results), words[1] = (bits of the steps from one pixel of the result to the next,
// down and across, bits of the places of the first ones, in pixels of the image).
// Given: HEIGHT, rows of a tile; KERNEL, 0 for the nearest pixel, 1 for straight lines, 2 for cubic curves; WIDE, whether kernels are as wide as the step;
// weight(distance) -> f32, element(image, y, x) -> f32, store(image, y, x, value).

const LANES = 256u;
const WIDTH = 64u;
const TURN = LANES / WIDTH;
const ROWS = 64u;

var<workgroup> rows: array<f32, ROWS * WIDTH>;

// The pixels along an axis that count for one of the result, some of them beyond the ends, and its own place.
struct Taps { first: i32, last: i32, place: f32 }

fn taps(at: u32, length: u32, step: f32, begin: f32) -> Taps {
    let place = f32(at) * step + begin;
    if KERNEL == 0u { return Taps(i32(floor(place)), i32(floor(place)), place); }
    if WIDE {
        // What lies beyond the ends does not count.
        let reach = f32(KERNEL) * max(step, 1.0);
        return Taps(max(i32(floor(place - reach + 1.0)), 0), min(i32(floor(place + reach)), i32(length) - 1), place);
    }
    // The ends go on as they are; lines begin there.
    let inner = select(place, clamp(place, 0.0, f32(length - 1u)), KERNEL == 1u);
    let base = i32(floor(inner));
    return Taps(base + 1 - i32(KERNEL), base + i32(KERNEL), inner);
}

// How much a pixel counts.
fn share(at: i32, to: Taps, step: f32) -> f32 {
    if WIDE { return weight((f32(at) - to.place) / max(step, 1.0)); }
    return weight(f32(at) - to.place);
}

fn inside(at: i32, length: u32) -> u32 {
    return u32(clamp(at, 0, i32(length) - 1));
}

fn keep(row: u32, count: u32, column: u32, value: f32) {
    if row < count { rows[row * WIDTH + column] = value; }
}

@compute @workgroup_size(LANES)
fn interpolate_tile(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let image = group.z;
    let column = lane % WIDTH;
    let x = group.x * WIDTH + column;
    let top = group.y * HEIGHT;
    let bottom = min(top + HEIGHT, words[0].z) - 1u;
    let down = bitcast<f32>(words[1].x);
    let across = bitcast<f32>(words[1].y);
    let begin = vec2f(bitcast<f32>(words[1].z), bitcast<f32>(words[1].w));
    let first = inside(taps(top, words[0].x, down, begin.x).first, words[0].x);
    let last = inside(taps(bottom, words[0].x, down, begin.x).last, words[0].x);
    let count = last - first + 1u;
    // Beyond the result, its last column.
    let along = taps(min(x, words[0].w - 1u), words[0].y, across, begin.y);
    for (var row = lane / WIDTH; row < count; row += 4u * TURN) {
        // Four rows share the weights.
        let from_row = min(vec4u(first + row) + vec4u(0u, TURN, 2u * TURN, 3u * TURN), vec4u(last));
        var sums = vec4f();
        var weights = 0.0;
        for (var at = along.first; at <= along.last; at++) {
            let w = share(at, along, across);
            let place = inside(at, words[0].y);
            let upper = vec2f(element(image, from_row.x, place), element(image, from_row.y, place));
            let pixels = vec4f(upper, element(image, from_row.z, place), element(image, from_row.w, place));
            if KERNEL == 0u { sums = pixels; } else { sums += w * pixels; }
            weights += w;
        }
        if WIDE { sums /= weights; }
        keep(row, count, column, sums.x);
        keep(row + TURN, count, column, sums.y);
        keep(row + 2u * TURN, count, column, sums.z);
        keep(row + 3u * TURN, count, column, sums.w);
    }
    workgroupBarrier();
    for (var y = top + lane / WIDTH; y <= bottom && x < words[0].w; y += TURN) {
        let to = taps(y, words[0].x, down, begin.x);
        var sum = 0.0;
        var weights = 0.0;
        for (var at = to.first; at <= to.last; at++) {
            let w = share(at, to, down);
            let pixel = rows[u32(clamp(at, i32(first), i32(last)) - i32(first)) * WIDTH + column];
            if KERNEL == 0u { sum = pixel; } else { sum += w * pixel; }
            weights += w;
        }
        if WIDE { sum /= weights; }
        store(image, y, x, sum);
    }
}
