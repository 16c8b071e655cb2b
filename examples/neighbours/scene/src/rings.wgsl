// Rings around two points that move, as the bytes of a texture.
struct Params { width: u32, height: u32, seconds: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> pixels: array<u32>;

fn height(at: vec2f, center: vec2f) -> f32 {
    let distance = length(at - center);
    return cos(40.0 * distance - 6.0 * params.seconds) * exp(-2.0 * distance);
}

@compute @workgroup_size(64) fn rings(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.width * params.height { return; }
    let at = (vec2f(vec2u(id.x % params.width, id.x / params.width)) + 0.5) / f32(params.height);
    let swing = 0.3 * sin(params.seconds);
    let sum = height(at, vec2f(0.45, 0.5 + swing)) + height(at, vec2f(0.9, 0.5 - swing));
    let shade = clamp(0.5 + 0.5 * sum, 0.0, 1.0);
    pixels[id.x] = pack4x8unorm(vec4f(shade, shade * shade, 1.0 - 0.7 * shade, 1.0));
}
