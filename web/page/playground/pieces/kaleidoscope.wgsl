// A picture in a ring of mirrors that turns. The sampler weights the four texels around each position.
struct View { time: f32, mouse: vec2f, mirrors: u32, zoom: f32 }
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var image: texture_2d<f32>;
@group(0) @binding(2) var smooth_: sampler;
@group(0) @binding(3) var picture: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(16, 16)
fn kaleidoscope(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2f(textureDimensions(picture));
    if any(vec2f(id.xy) >= size) { return; }
    let p = (vec2f(id.xy) + 0.5 - 0.5 * size) / size.y;
    // Every wedge is the first one or its mirror image.
    let wedge = 3.14159265 / f32(max(view.mirrors, 1u));
    let turned = atan2(p.y, p.x) + 0.15 * view.time;
    let angle = abs(turned - 2.0 * wedge * round(turned / (2.0 * wedge)));
    let middle = vec2f(0.5) + 0.2 * sin(view.time * vec2f(0.21, 0.17)) + 0.4 * view.mouse / size;
    let at = middle + length(p) / view.zoom * vec2f(cos(angle), sin(angle));
    // Beyond its edges the picture is mirrored too.
    let uv = abs(at - 2.0 * round(0.5 * at));
    let color = textureSampleLevel(image, smooth_, uv, 0.0).rgb;
    let glass = 1.0 - 0.25 * smoothstep(0.3, 0.75, length(p));
    textureStore(picture, id.xy, vec4f(color * glass, 1.0));
}
