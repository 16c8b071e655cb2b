//! One sentence for each mistake.

use cantus::{CompareFunction, Engine, Kernel, Sampler, TextureDescriptor, TextureFormat};

pub const TEXT: &str = "
    @group(0) @binding(0) var image: texture_2d<f32>;
    @group(0) @binding(1) var smp: sampler;
    @group(0) @binding(2) var made: texture_storage_2d<rgba8unorm, write>;
    @compute @workgroup_size(1) fn main() {
        textureStore(made, vec2u(), textureSampleLevel(image, smp, vec2f(0.5), 0.0));
    }";

#[track_caller]
pub fn says<T: std::fmt::Debug>(result: cantus::Result<T>, words: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(words), "{error:?} does not say {words:?}");
}

#[test]
fn each_mistake_has_one_sentence() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let kernel = Kernel::from_wgsl(TEXT).unwrap();
    let new = |format, width| engine.texture(&TextureDescriptor::new_2d(format, width, 4)).unwrap();
    let (image, made) = (new(TextureFormat::Rgba8Unorm, 4), new(TextureFormat::Rgba8Unorm, 2));
    let linear = Sampler::linear();
    let dispatch = || engine.dispatch(&kernel).workgroups(1);
    let plain = || dispatch().bind("image", &image).bind("smp", linear);
    plain().bind("made", &made).run().unwrap();
    says(plain().run(), "nothing was bound; it is a texture_storage_2d<rgba8unorm, write>");
    says(dispatch().bind("image", &image).bind("made", &made).run(), "it is a sampler");
    says(
        plain().bind("made", new(TextureFormat::R32Float, 2)).run(),
        "declares rgba8unorm, the texture's texels are r32float",
    );
    says(plain().bind("made", &image).run(), "the same texels are bound to \"image\", and one of the two is written");
    says(plain().bind("maid", &made).run(), "no such binding (it uses: image, made, smp)");
    let tensor = engine.zeros::<u32>(&[16]).unwrap();
    says(plain().bind("made", &tensor).run(), "bind a texture to it");
    says(
        dispatch().bind("image", new(TextureFormat::R32Uint, 4)).bind("smp", linear).bind("made", &made).run(),
        "reads f32, the texture's r32uint holds u32",
    );
    says(
        dispatch().bind("image", &image).bind("smp", linear.compare(CompareFunction::Less)).bind("made", &made).run(),
        "without a comparison",
    );
    let strange = Sampler { lod_min_clamp: 3.0, lod_max_clamp: 1.0, ..linear };
    says(dispatch().bind("image", &image).bind("smp", strange).bind("made", &made).run(), "clamped to 3 to 1");
    let layers = engine.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4).with_layers(2)).unwrap();
    says(dispatch().bind("image", &layers).bind("smp", linear).bind("made", &made).run(), "one layer, and this has 2");
    dispatch().bind("image", layers.layers(1, 1).unwrap()).bind("smp", linear).bind("made", &made).run().unwrap();
    let levels = engine.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4).with_all_levels()).unwrap();
    says(plain().bind("made", &levels).run(), "takes one level, and this has 3");
    says(levels.level(3), "the texture has 3 levels");
    let size = |width, height| engine.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, width, height));
    says(size(0, 5), "every side must be at least 1");
    says(size(100_000, 100_000), "at most 32768 texels");
    says(engine.texture(&TextureDescriptor::new_2d(TextureFormat::R8Unorm, 4, 4).with_levels(9)), "1 to 3");
    says(
        engine.texture_from_bytes(&TextureDescriptor::new_2d(TextureFormat::R8Unorm, 4, 4), &[0; 3]),
        "takes 16 bytes, 3 were given",
    );
    let picture = ndarray::Array3::<u8>::zeros((2, 2, 2));
    says(engine.texture_from_array(&picture, TextureFormat::Rgba8Unorm), "rgba8unorm has 4 channels");
    says(engine.texture_from_array(&picture.mapv(f32::from), TextureFormat::Rgba8Unorm), "takes elements of u8");
}

#[test]
fn kernels_with_textures_are_not_prepared() {
    let kernel = Kernel::from_wgsl(TEXT).unwrap();
    says(kernel.prepare(), "keep its WGSL");
    says(kernel.without_textures().unwrap().prepare(), "keep its WGSL");
}

#[test]
fn what_is_no_texture_of_wgsl_is_refused_with_its_place() {
    let text =
        "@group(0) @binding(0) var t: binding_array<texture_2d<f32>, 2>;\n@compute @workgroup_size(1) fn main() {}";
    let error = Kernel::from_wgsl(text).unwrap_err().to_string();
    assert!(error.contains("binding_array") && error.contains("wgsl:1"), "{error}");
    let text = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var s: sampler;
        @group(0) @binding(2) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn main() { x[0] = textureSample(t, s, vec2f(0.5)).x; }";
    let error = Kernel::from_wgsl(text).unwrap_err().to_string();
    assert!(error.contains("wgsl:3"), "{error}");
}
