// Draws a grid of float32 values through a colour map, straight from the buffer that a kernel wrote. One triangle covers the picture.

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
}

const COLORS = 256u;

@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read> colors: array<u32, COLORS>;
@group(0) @binding(2) var<storage, read> values: array<f32>;

@vertex
fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4f {
    return vec4f(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn value(column: u32, row: u32) -> f32 {
    let last = picture.size - vec2u(1u);
    return values[min(row, last.y) * picture.size.x + min(column, last.x)];
}

@fragment
fn pixel(@builtin(position) place: vec4f) -> @location(0) vec4f {
    let at = max((place.xy - picture.origin) * picture.scale, vec2f(0.0));
    var shown: f32;
    if picture.smoothly == 1u {
        let corner_of = max(at - 0.5, vec2f(0.0));
        let cell = vec2u(corner_of);
        let part = fract(corner_of);
        let above = mix(value(cell.x, cell.y), value(cell.x + 1u, cell.y), part.x);
        let below = mix(value(cell.x, cell.y + 1u), value(cell.x + 1u, cell.y + 1u), part.x);
        shown = mix(above, below, part.y);
    } else {
        let cell = vec2u(at);
        shown = value(cell.x, cell.y);
    }
    let index = u32(clamp((shown - picture.low) * picture.gain, 0.0, f32(COLORS - 1u)));
    let color = unpack4x8unorm(colors[index]);
    if picture.linear == 1u {
        let low = color.rgb / 12.92;
        let high = pow((color.rgb + 0.055) / 1.055, vec3f(2.4));
        return vec4f(select(high, low, color.rgb <= vec3f(0.04045)), 1.0);
    }
    return color;
}
