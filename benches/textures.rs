//! Kernels on images on the processor, beside bare wgpu with the device's own textures on a software adapter; or on the device of another backend, beside
//! bare wgpu on the same one.
//!
//! An image of 4096 x 4096 in `rgba8unorm`. The two take turns, a pause before each; results are compared first, and each figure is the
//! median of the rounds. A time runs from the dispatch to the end of the work.
//!
//! `cargo bench -p cantus-benches --bench textures [-- [--backend=NAME] ROUNDS [NAME]]`

#![allow(clippy::expect_used, clippy::panic, reason = "a bench that cannot run stops")]

use cantus::{Config, Engine, Fallback, Kernel, Sampler, TextureDescriptor, TextureFormat};
use peers::bare::{Bare, Resource};
use peers::turns::{PAUSE, figures};

const SIDE: u32 = 4096;

/// The luminance of eight neighbours, loaded texel by texel.
const SOBEL: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
fn at(p: vec2i) -> f32 { return dot(textureLoad(image, p, 0).rgb, vec3f(0.299, 0.587, 0.114)); }
@compute @workgroup_size(GROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(image);
    if any(id.xy >= size) { return; }
    let p = vec2i(id.xy);
    let a = at(p + vec2i(-1, -1)); let b = at(p + vec2i(0, -1)); let c = at(p + vec2i(1, -1));
    let d = at(p + vec2i(-1, 0)); let f = at(p + vec2i(1, 0));
    let g = at(p + vec2i(-1, 1)); let h = at(p + vec2i(0, 1)); let i = at(p + vec2i(1, 1));
    let v = length(vec2f(c + 2.0 * f + i - a - 2.0 * d - g, g + 2.0 * h + i - a - 2.0 * b - c));
    textureStore(result, p, vec4f(v, v, v, 1.0));
}";

/// One of the two passes of a blur of 9 x 9: `STEP` is the direction.
const BLUR: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
const weights = array<f32, 9>(0.0276, 0.0663, 0.1238, 0.1802, 0.2042, 0.1802, 0.1238, 0.0663, 0.0276);
@compute @workgroup_size(GROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(image);
    if any(id.xy >= size) { return; }
    var sum = vec4f();
    for (var k = 0; k < 9; k++) { sum += weights[k] * textureLoad(image, vec2i(id.xy) + (k - 4) * STEP, 0); }
    textureStore(result, id.xy, sum);
}";

const RESIZE: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(2) var smp: sampler;
@compute @workgroup_size(GROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(result);
    if any(id.xy >= size) { return; }
    textureStore(result, id.xy, textureSampleLevel(image, smp, (vec2f(id.xy) + 0.5) / vec2f(size), 0.0));
}";

struct Case {
    name: &'static str,
    wgsl: String,
    group: [u32; 2],
    /// The result's width and height.
    side: u32,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (group, text) in [([16, 16], "16, 16"), ([8, 8], "8, 8"), ([64, 1], "64, 1")] {
        let of = |wgsl: &str| wgsl.replace("GROUP", text);
        let mut add = |name, wgsl: &str, side| cases.push(Case { name, wgsl: of(wgsl), group, side });
        add("Sobel", SOBEL, SIDE);
        add("blur of 9, rows", &BLUR.replace("STEP", "vec2i(1, 0)"), SIDE);
        add("blur of 9, columns", &BLUR.replace("STEP", "vec2i(0, 1)"), SIDE);
        add("bilinear resize by half", RESIZE, SIDE / 2);
    }
    cases
}

/// A photograph's smoothness and its noise, the same in each run.
fn texels() -> Vec<u8> {
    let mut state = 1_u32;
    let mut texels = Vec::with_capacity((SIDE * SIDE * 4) as usize);
    for y in 0..SIDE {
        for x in 0..SIDE {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 24) as u8 / 4;
            texels.extend([(x >> 4) as u8 / 2 + noise, (y >> 4) as u8 / 2 + noise, ((x ^ y) >> 5) as u8 / 2, 255]);
        }
    }
    texels
}

fn main() {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).map_or("", String::as_str);
    let backend = options.iter().find_map(|option| option.strip_prefix("--backend=")).unwrap_or("cpu");
    let engine = Engine::builder().config(Config::default()).backend(backend).fallback(Fallback::Never).build();
    let engine = engine.expect("a device of the backend");
    let device = engine.selected().device.name.clone();
    // wgpu's names end with the API.
    let peer = if backend == "cpu" { "llvmpipe" } else { device.split(" (").next().unwrap_or(&device) };
    let bare = Bare::open(peer).expect("the peer's adapter");
    println!("{device} beside {}; {rounds} rounds", bare.name);
    println!("| kernel | workgroups | Cantus | wgpu | ratio |\n| --- | --- | --- | --- | --- |");
    let texels = texels();
    let descriptor = |side| TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, side, side);
    let image = engine.texture_from_bytes(&descriptor(SIDE), &texels).expect("uploads");
    for case in cases().iter().filter(|case| case.name.contains(filter)) {
        let [x, y] = case.group;
        let kernel = Kernel::from_wgsl(&case.wgsl).expect("valid");
        let result = engine.texture(&descriptor(case.side)).expect("there is memory");
        let ours = || {
            let mut dispatch = engine.dispatch(&kernel).bind("image", &image).bind("result", &result);
            if case.wgsl.contains("sampler") {
                dispatch = dispatch.bind("smp", Sampler::linear());
            }
            dispatch.invocations((case.side, case.side)).run().expect("runs");
            engine.finish().expect("ends");
        };
        let mut resources = vec![Resource::Image([SIDE; 2], &texels), Resource::Target([case.side; 2])];
        if case.wgsl.contains("sampler") {
            resources.push(Resource::Linear);
        }
        let peer = bare.kernel(&case.wgsl, "main", &resources, 1);
        let workgroups = [case.side.div_ceil(x), case.side.div_ceil(y), 1];
        let mut theirs = vec![0; (case.side * case.side * 4) as usize];
        peer.run_and_read(workgroups, 1, &mut theirs);
        ours();
        let mine = result.to_bytes().expect("downloads");
        let apart = mine.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).max();
        // llvmpipe filters images of 8 bits by weights of 8 bits.
        assert!(apart <= Some(1), "{}: {apart:?} steps of 1/255 apart", case.name);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            std::thread::sleep(PAUSE);
            let start = std::time::Instant::now();
            ours();
            times[0].push(start.elapsed().as_secs_f64());
            std::thread::sleep(PAUSE);
            times[1].push(peer.run(workgroups, 1).as_secs_f64());
        }
        let [[mine, _], [theirs, _]] = times.map(figures);
        let ratio = mine / theirs;
        println!("| {} | {x} x {y} | {:.1} ms | {:.1} ms | {ratio:.2} |", case.name, mine / 1e3, theirs / 1e3);
    }
}
