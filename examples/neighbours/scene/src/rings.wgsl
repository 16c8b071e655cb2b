// Rings around two points that move, as the bytes of a texture or as a texture.
struct Params { width: u32, height: u32, seconds: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> pixels: array<u32>;
@group(0) @binding(2) var picture: texture_storage_2d<rgba8unorm, write>;

fn height(at: vec2f, center: vec2f) -> f32 {
    let distance = length(at - center);
    return cos(40.0 * distance - 6.0 * params.seconds) * exp(-2.0 * distance);
}

fn colour(pixel: vec2u) -> vec4f {
    let at = (vec2f(pixel) + 0.5) / f32(params.height);
    let swing = 0.3 * sin(params.seconds);
    let sum = height(at, vec2f(0.45, 0.5 + swing)) + height(at, vec2f(0.9, 0.5 - swing));
    let shade = clamp(0.5 + 0.5 * sum, 0.0, 1.0);
    return vec4f(shade, shade * shade, 1.0 - 0.7 * shade, 1.0);
}

@compute @workgroup_size(64) fn rings(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.width * params.height { return; }
    pixels[id.x] = pack4x8unorm(colour(vec2u(id.x % params.width, id.x / params.width)));
}

@compute @workgroup_size(8, 8) fn painted(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.width || id.y >= params.height { return; }
    textureStore(picture, id.xy, colour(id.xy));
}
