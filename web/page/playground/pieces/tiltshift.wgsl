// A blur that leaves a strip sharp, as if the scene were a small model. A workgroup loads its 32 x 32 texels once and shares them.
struct View { blur: f32, focus: f32, strip: f32 }
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var image: texture_2d<f32>;
@group(0) @binding(2) var model: texture_storage_2d<rgba8unorm, write>;

// 16 texels of the workgroup's own and 8 around them, four bytes each; then their means along the rows.
var<workgroup> tile: array<u32, 1024>;
var<workgroup> across: array<vec4f, 512>;
var<workgroup> weights: array<f32, 17>;

@compute @workgroup_size(16, 16)
fn tiltshift(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) index: u32,
) {
    let size = textureDimensions(image);
    for (var i = index; i < 1024; i += 256) {
        let at = vec2i(16 * group.xy + vec2u(i % 32, i / 32)) - 8;
        tile[i] = pack4x8unorm(textureLoad(image, clamp(at, vec2i(), vec2i(size) - 1), 0));
    }
    if index < 17 {
        let far = f32(index) - 8.0;
        weights[index] = exp(-far * far / (2.0 * view.blur * view.blur + 0.01));
    }
    workgroupBarrier();
    var whole = 0.0;
    for (var k = 0; k < 17; k++) { whole += weights[k]; }
    for (var i = index; i < 512; i += 256) {
        var sum = vec4f();
        for (var k = 0u; k < 17; k++) { sum += weights[k] * unpack4x8unorm(tile[32 * (i / 16) + i % 16 + k]); }
        across[i] = sum / whole;
    }
    workgroupBarrier();
    let p = 16 * group.xy + local.xy;
    if any(p >= textureDimensions(model)) { return; }
    var sum = vec4f();
    for (var k = 0u; k < 17; k++) { sum += weights[k] * across[16 * (local.y + k) + local.x]; }
    let sharp = unpack4x8unorm(tile[32 * (local.y + 8) + local.x + 8]);
    let far = abs((f32(p.y) + 0.5) / f32(size.y) - view.focus);
    let color = mix(sharp, sum / whole, smoothstep(view.strip, view.strip + 0.15, far)).rgb;
    // Models are painted in strong colours.
    let grey = dot(color, vec3f(0.2126, 0.7152, 0.0722));
    textureStore(model, p, vec4f(mix(vec3f(grey), color, 1.35), 1.0));
}
