// The edges of a picture, by Sobel's two slopes. Drop a picture of yours on the page, paste one, or choose the camera.
struct View { ink: f32, gain: f32 }
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var image: texture_2d<f32>;
@group(0) @binding(2) var edges: texture_storage_2d<rgba8unorm, write>;

fn light(at: vec2i) -> f32 {
    let last = vec2i(textureDimensions(image)) - 1;
    return dot(textureLoad(image, clamp(at, vec2i(), last), 0).rgb, vec3f(0.2126, 0.7152, 0.0722));
}

@compute @workgroup_size(16, 16)
fn sobel(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= textureDimensions(edges)) { return; }
    let p = vec2i(id.xy);
    let right = light(p + vec2i(1, -1)) + 2.0 * light(p + vec2i(1, 0)) + light(p + vec2i(1, 1));
    let left = light(p + vec2i(-1, -1)) + 2.0 * light(p + vec2i(-1, 0)) + light(p + vec2i(-1, 1));
    let below = light(p + vec2i(-1, 1)) + 2.0 * light(p + vec2i(0, 1)) + light(p + vec2i(1, 1));
    let above = light(p + vec2i(-1, -1)) + 2.0 * light(p + vec2i(0, -1)) + light(p + vec2i(1, -1));
    let slope = vec2f(right - left, below - above);
    // The hue is the edge's direction, its brightness the height of the step.
    let angle = atan2(slope.y, slope.x);
    let hue = 0.5 + 0.5 * cos(angle + vec3f(0.0, 2.1, 4.2));
    let strength = clamp(view.gain * length(slope), 0.0, 1.0);
    let paper = mix(vec3f(0.04, 0.05, 0.09), vec3f(0.97, 0.95, 0.90), view.ink);
    let line = mix(hue, vec3f(0.10, 0.12, 0.20), view.ink);
    textureStore(edges, id.xy, vec4f(mix(paper, line, strength), 1.0));
}
