@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var smp: sampler;
@group(0) @binding(2) var small: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(4, 4)
fn shrink(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(small);
    if all(id.xy < size) {
        textureStore(small, id.xy, textureSampleLevel(image, smp, (vec2f(id.xy) + 0.5) / vec2f(size), 0.0));
    }
}
