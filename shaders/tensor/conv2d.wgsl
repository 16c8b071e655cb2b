// A convolution of images (NCHW): a workgroup computes a tile of pixels for a block of channels, an invocation several pixels for 4 PARTS channels, in
// registers. The input that the tile needs lies in workgroup memory beside the weights, as many planes as fit at a time. A plane is a channel of the input
// for all taps along an axis, or for one of them where that reads less.
// words[0] = (height and width of the output, channels of the output, channels of the input), words[1] = (height and width of the input, paddings),
// words[2] = (channels of a group's output, of its input, blocks of a group's channels, tiles across), words[3] = (strides, dilations),
// words[4] = (height and width of a tile, invocations across, rows from one invocation to the next), words[5] = (taps of a plane down and across, its rows
// and columns), words[6] = (steps from one row and one column of a plane to the next in the image, planes of a channel down and across), words[7] = (words
// of a plane from one pixel of the tile to the next, down and across, and from one tap to the next), words[8] = (planes at a time, words from one pixel of
// an invocation to the next, rows and columns between them).
// Given: CELLS, WEIGHTS; load_x(image, channel, y, x) -> f32, load_w(channel, input channel of the group, y, x) -> f32, store(image, channel, y, x, value); and,
// written out for each pixel and part of an invocation: the sums, the taps of a column of the weights, and the storing.

// Vectors of four channels of an invocation.
const PARTS = 1u;
// Invocations of a workgroup that have the same pixels.
const SHARES = 1u;
// Invocations that have the same channels.
const BESIDE = 64u;

const LANES = BESIDE * SHARES;
const VECTORS = PARTS * SHARES;
// An odd number of vectors from one tap to the next: neighbours store to different banks.
const PITCH = VECTORS | 1u;

var<workgroup> tile: array<f32, CELLS>;
var<workgroup> weights: array<vec4f, WEIGHTS>;

// A pixel of the padded input.
fn input(image: u32, channel: u32, y: u32, x: u32) -> f32 {
    // What lies before the image is beyond its end, as differences wrap.
    let row = y - words[1].z;
    let column = x - words[1].w;
    if row >= words[1].x || column >= words[1].y { return 0.0; }
    return load_x(image, channel, row, column);
}

// The channel of a plane among a group's, and the plane's first tap down and across.
fn plane_source(plane: u32) -> vec3u {
    let of_channel = words[6].z * words[6].w;
    if of_channel == 1u { return vec3u(plane, 0u, 0u); }
    let tap = plane % of_channel;
    return vec3u(plane / of_channel, tap / words[6].w, tap % words[6].w);
}

fn channel_weights(first: u32, last: u32, c: u32, i: u32, j: u32) -> vec4f {
    // The last channel stands in for those that a group does not have; what comes of them is not stored.
    return vec4f(
        load_w(min(first, last), c, i, j),
        load_w(min(first + 1u, last), c, i, j),
        load_w(min(first + 2u, last), c, i, j),
        load_w(min(first + 3u, last), c, i, j),
    );
}

fn store_four(image: u32, channel: u32, last: u32, y: u32, x: u32, values: vec4f) {
    if y >= words[0].x || x >= words[0].y || channel > last { return; }
    store(image, channel, y, x, values.x);
    if channel + 1u <= last { store(image, channel + 1u, y, x, values.y); }
    if channel + 2u <= last { store(image, channel + 2u, y, x, values.z); }
    if channel + 3u <= last { store(image, channel + 3u, y, x, values.w); }
}

@compute @workgroup_size(LANES)
fn conv2d(@builtin(workgroup_id) workgroup: vec3u, @builtin(local_invocation_index) lane: u32) {
    let image = workgroup.z;
    let group = workgroup.y / words[2].z;
    let block = group * words[2].x + workgroup.y % words[2].z * 4u * VECTORS;
    let last = group * words[2].x + words[2].x - 1u;
    let top = workgroup.x / words[2].w * words[4].x;
    let left = workgroup.x % words[2].w * words[4].y;
    // The invocation's first pixel in the tile, its word in a plane, and its first vector of channels.
    let row = lane % BESIDE / words[4].z * words[4].w;
    let column = lane % BESIDE % words[4].z;
    let pixel = row * words[7].x + column * words[7].y;
    let own = lane / BESIDE * PARTS;
    let taps = words[5].x * words[5].y;
    let width = words[5].w;
    let plane = words[5].z * width;
    let steps = words[2].y * words[6].z * words[6].w;
    // Plane, row and column of the first word that the invocation loads, and from there to its next one.
    let begin = vec3u(lane / plane, lane % plane / width, lane % width);
    let next = vec3u(LANES / plane, LANES % plane / width, LANES % width);
    // SUMS
    for (var first = 0u; first < steps; first += words[8].x) {
        let planes = min(words[8].x, steps - first);
        var at = begin;
        for (var i = lane; i < planes * plane; i += LANES) {
            let source = plane_source(first + at.x);
            let y = top * words[3].x + source.y * words[3].z + at.y * words[6].x;
            let x = left * words[3].y + source.z * words[3].w + at.z * words[6].y;
            tile[i] = input(image, group * words[2].y + source.x, y, x);
            at += next;
            if at.z >= width {
                at.z -= width;
                at.y++;
            }
            if at.y >= words[5].z {
                at.y -= words[5].z;
                at.x++;
            }
        }
        for (var i = lane; i < planes * taps * VECTORS; i += LANES) {
            let t = i % (planes * taps);
            let vector = i / (planes * taps);
            let source = plane_source(first + t / taps);
            let down = source.y + t % words[5].x;
            let across = source.z + t % taps / words[5].x;
            weights[t * PITCH + vector] = channel_weights(block + 4u * vector, last, source.x, down, across);
        }
        workgroupBarrier();
        for (var p = 0u; p < planes; p++) {
            for (var j = 0u; j < words[5].y; j++) {
                let origin = pixel + p * plane + j * words[7].w;
                let weight = (p * taps + j * words[5].x) * PITCH + own;
                // TAPS
            }
        }
        workgroupBarrier();
    }
    // STORE
}
