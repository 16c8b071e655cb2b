// An invocation reads a pixel of an image wherever a grid says: words[0] = (height and width of the images, height and width of the grid),
// words[1] = (channels, bits of what lies outside). Given: KERNEL, 0 for the nearest pixel, 1 for straight lines, 2 for cubic curves;
// weight(distance) -> f32; ALIGNED, whether -1 and 1 are the middles of the outermost pixels, else their outer edges; OUTSIDE, 0 for a number,
// 1 for the nearest pixel, 2 for a mirror, 3 for a repetition; image(image, channel, y, x) -> f32; grid(image, y, x, axis) -> f32, x first;
// store(image, channel, y, x, value).

// A place from -1 to 1 in pixels. What is far outside stays there, and can be counted.
fn pixels(place: f32, length: u32) -> f32 {
    let side = f32(length);
    let at = select(((place + 1.0) * side - 1.0) * 0.5, (place + 1.0) * 0.5 * (side - 1.0), ALIGNED);
    return clamp(at, -1e6, 1e6);
}

// The pixel that is read at a place on an axis; -1 for none.
fn inside(at: i32, length: i32) -> i32 {
    if OUTSIDE == 0u { return select(-1, at, at >= 0 && at < length); }
    if OUTSIDE == 1u { return clamp(at, 0, length - 1); }
    if OUTSIDE == 3u { return turned(at, length); }
    // The mirror stands on the outermost pixels, or on their edges.
    if ALIGNED {
        let there = turned(at, max(2 * (length - 1), 1));
        return min(there, 2 * (length - 1) - there);
    }
    let there = turned(at, 2 * length);
    return min(there, 2 * length - 1 - there);
}

// What is left by a length, 0 at least.
fn turned(at: i32, length: i32) -> i32 {
    let rounds = i32(floor(f32(at) / f32(length)));
    let rest = at - rounds * length;
    return rest + select(0, length, rest < 0) - select(0, length, rest >= length);
}

fn pixel(image_at: u32, channel: u32, y: i32, x: i32) -> f32 {
    let row = inside(y, i32(words[0].x));
    let column = inside(x, i32(words[0].y));
    if row < 0 || column < 0 { return bitcast<f32>(words[1].y); }
    return image(image_at, channel, u32(row), u32(column));
}

@compute @workgroup_size(64)
fn grid_sample(@builtin(global_invocation_id) id: vec3u) {
    let width = words[0].w;
    if id.x >= words[0].z * width { return; }
    let y = id.x / width;
    let x = id.x % width;
    let image_at = id.z;
    let across = pixels(grid(image_at, y, x, 0u), words[0].y);
    let down = pixels(grid(image_at, y, x, 1u), words[0].x);
    if KERNEL == 0u {
        store(image_at, id.y, y, x, pixel(image_at, id.y, i32(round(down)), i32(round(across))));
        return;
    }
    let first_x = floor(across);
    let first_y = floor(down);
    var sum = 0.0;
    for (var i = 1 - i32(KERNEL); i <= i32(KERNEL); i++) {
        var row = 0.0;
        for (var j = 1 - i32(KERNEL); j <= i32(KERNEL); j++) {
            let value = pixel(image_at, id.y, i32(first_y) + i, i32(first_x) + j);
            row += weight(first_x + f32(j) - across) * value;
        }
        sum += weight(first_y + f32(i) - down) * row;
    }
    store(image_at, id.y, y, x, sum);
}
