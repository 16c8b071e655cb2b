// Draws a grid of numbers through a colour map, or of colours, straight from the buffer that a kernel wrote. One triangle covers the picture.

struct Picture {
    // The picture's corner in the window, in pixels, and its values per pixel.
    origin: vec2f,
    scale: vec2f,
    // Columns and rows.
    size: vec2u,
    // The value of the first colour, and colours per unit.
    low: f32,
    gain: f32,
    // 1: mixes the four values around a pixel; 0: takes the nearest.
    smoothly: u32,
    // 1: the window's format turns linear colours into sRGB by itself.
    linear: u32,
    // What a pixel is: 0 f32, 1 u32, 2 i32; red, green, blue and opacity: 3 as f32, 4 as f16, 5 as bytes, 6 as bytes with blue first.
    pixels: u32,
    padding: u32,
}

const COLORS = 256u;

@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read> colors: array<u32, COLORS>;
@group(0) @binding(2) var<storage, read> values: array<u32>;

@vertex
fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4f {
    return vec4f(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

// The place of a pixel.
fn pixel_at(column: u32, row: u32) -> u32 {
    let last = picture.size - vec2u(1u);
    return min(row, last.y) * picture.size.x + min(column, last.x);
}

fn value(column: u32, row: u32) -> f32 {
    let word = values[pixel_at(column, row)];
    switch picture.pixels {
        case 1u: { return f32(word); }
        case 2u: { return f32(bitcast<i32>(word)); }
        default: { return bitcast<f32>(word); }
    }
}

// Two halves of a word as floats, by their bits: some drivers of GL have no unpack2x16float. Infinity is 65536.
fn halves(word: u32) -> vec2f {
    let both = vec2u(word & 0xffffu, word >> 16u);
    let magnitude = bitcast<vec2f>((both & vec2u(0x7fffu)) << vec2u(13u)) * bitcast<f32>(0x77800000u);
    return select(magnitude, -magnitude, (both & vec2u(0x8000u)) != vec2u());
}

fn rgba_at(pixel: u32) -> vec4f {
    switch picture.pixels {
        case 4u: { return vec4f(halves(values[pixel * 2u]), halves(values[pixel * 2u + 1u])); }
        case 5u: { return unpack4x8unorm(values[pixel]); }
        case 6u: { return unpack4x8unorm(values[pixel]).bgra; }
        default: {
            let at = pixel * 4u;
            return vec4f(bitcast<f32>(values[at]), bitcast<f32>(values[at + 1u]), bitcast<f32>(values[at + 2u]), bitcast<f32>(values[at + 3u]));
        }
    }
}

// Over black where it is transparent.
fn colour(column: u32, row: u32) -> vec3f {
    let rgba = rgba_at(pixel_at(column, row));
    return clamp(rgba.rgb, vec3f(0.0), vec3f(1.0)) * clamp(rgba.a, 0.0, 1.0);
}

@fragment
fn pixel(@builtin(position) place: vec4f) -> @location(0) vec4f {
    let at = max((place.xy - picture.origin) * picture.scale, vec2f(0.0));
    let base = max(at - 0.5, vec2f(0.0));
    let smooth_cell = vec2u(base);
    let part = fract(base);
    var shown: vec3f;
    if picture.pixels >= 3u {
        if picture.smoothly == 1u {
            let above = mix(colour(smooth_cell.x, smooth_cell.y), colour(smooth_cell.x + 1u, smooth_cell.y), part.x);
            let below =
                mix(colour(smooth_cell.x, smooth_cell.y + 1u), colour(smooth_cell.x + 1u, smooth_cell.y + 1u), part.x);
            shown = mix(above, below, part.y);
        } else {
            let cell = vec2u(at);
            shown = colour(cell.x, cell.y);
        }
    } else {
        var number: f32;
        if picture.smoothly == 1u {
            let above = mix(value(smooth_cell.x, smooth_cell.y), value(smooth_cell.x + 1u, smooth_cell.y), part.x);
            let below = mix(value(smooth_cell.x, smooth_cell.y + 1u), value(smooth_cell.x + 1u, smooth_cell.y + 1u), part.x);
            number = mix(above, below, part.y);
        } else {
            let cell = vec2u(at);
            number = value(cell.x, cell.y);
        }
        let index = u32(clamp((number - picture.low) * picture.gain, 0.0, f32(COLORS - 1u)));
        shown = unpack4x8unorm(colors[index]).rgb;
    }
    if picture.linear == 1u {
        let low = shown / 12.92;
        let high = pow((shown + 0.055) / 1.055, vec3f(2.4));
        return vec4f(select(high, low, shown <= vec3f(0.04045)), 1.0);
    }
    return vec4f(shown, 1.0);
}
