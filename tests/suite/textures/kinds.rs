//! Kernels of the kinds that apps have: filters, pyramids, lookups, shadows, simulations. Each on every device against the CPU, and with textures and
//! samplers of the device's own against the library's.

use cantus::{AddressMode, CompareFunction, DType, Engine, Kernel, Sampler, Texture, TextureDescriptor, TextureFormat};
use kit::engine::{by_turns, name};
use kit::inputs::Random;

use super::own::{App, IN, OUT, READ, STORE};
use super::{decode, random};

/// The variables of all kernels; each is bound to those that it uses.
const VARIABLES: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var mips: texture_2d<f32>;
@group(0) @binding(2) var layers: texture_2d_array<f32>;
@group(0) @binding(3) var cube: texture_cube<f32>;
@group(0) @binding(4) var block: texture_3d<f32>;
@group(0) @binding(5) var depth: texture_depth_2d;
@group(0) @binding(6) var smp: sampler;
@group(0) @binding(7) var closer: sampler_comparison;
@group(0) @binding(8) var made: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(9) var wide: texture_storage_2d<rgba16float, write>;
@group(0) @binding(10) var state: texture_storage_2d<r32float, read_write>;
@group(0) @binding(11) var cells: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(12) var<storage, read_write> counts: array<atomic<u32>, 64>;

const SIZE = vec2u(40, 30);
fn light(color: vec3f) -> f32 { return dot(color, vec3f(0.2126, 0.7152, 0.0722)); }
fn near(at: vec2i) -> vec4f { return textureLoad(image, clamp(at, vec2i(), vec2i(textureDimensions(image)) - 1), 0); }
fn uv(id: vec3u) -> vec2f { return (vec2f(id.xy) + 0.5) / vec2f(SIZE); }
fn put(id: vec3u, color: vec4f) { if all(id.xy < SIZE) { textureStore(made, id.xy, color); } }
";

/// A name, the code, and by how many steps of 1/255 results may differ where the device samples.
const KINDS: &[(&str, &str, f64)] = &[
    ("grey by luminance", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            put(id, vec4f(vec3f(light(near(vec2i(id.xy)).rgb)), 1.0));
        }", 1.0),
    ("edges by Sobel", "
        @compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
            var slope = vec2f();
            for (var y = -1; y <= 1; y++) {
                for (var x = -1; x <= 1; x++) {
                    let weight = vec2f(f32(x) * f32(2 - abs(y)), f32(y) * f32(2 - abs(x)));
                    slope += weight * light(near(vec2i(id.xy) + vec2i(x, y)).rgb);
                }
            }
            put(id, vec4f(vec3f(length(slope)), 1.0));
        }", 1.0),
    ("a blur by tiles in workgroup memory", "
        var<workgroup> tile: array<array<vec4f, 12>, 12>;
        @compute @workgroup_size(8, 8) fn main(
            @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u,
        ) {
            for (var y = local.y; y < 12u; y += 8u) {
                for (var x = local.x; x < 12u; x += 8u) {
                    tile[y][x] = near(vec2i(8u * group.xy + vec2u(x, y)) - 2);
                }
            }
            workgroupBarrier();
            var sum = vec4f();
            for (var y = 0u; y < 5u; y++) {
                for (var x = 0u; x < 5u; x++) { sum += tile[local.y + y][local.x + x]; }
            }
            put(id, sum / 25.0);
        }", 1.0),
    ("a Gaussian of rows, then of columns, in one tile", "
        const WEIGHTS = array(0.227027, 0.1945946, 0.1216216, 0.054054);
        var<workgroup> rows: array<array<vec3f, 8>, 14>;
        @compute @workgroup_size(8, 8) fn main(
            @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u,
        ) {
            for (var y = local.y; y < 14u; y += 8u) {
                let at = vec2i(vec2u(id.x, 8u * group.y + y)) - vec2i(0, 3);
                var sum = WEIGHTS[0] * near(at).rgb;
                for (var i = 1; i < 4; i++) { sum += WEIGHTS[i] * (near(at + vec2i(i, 0)).rgb + near(at - vec2i(i, 0)).rgb); }
                rows[y][local.x] = sum;
            }
            workgroupBarrier();
            var sum = WEIGHTS[0] * rows[local.y + 3u][local.x];
            for (var i = 1u; i < 4u; i++) {
                sum += WEIGHTS[i] * (rows[local.y + 3u + i][local.x] + rows[local.y + 3u - i][local.x]);
            }
            put(id, vec4f(sum, 1.0));
        }", 1.0),
    ("a bilinear resize", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            put(id, textureSampleLevel(image, smp, uv(id), 0.0));
        }", 2.0),
    ("a bicubic resize of four samples", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let size = vec2f(textureDimensions(image));
            let at = uv(id) * size - 0.5;
            let f = fract(at);
            let w0 = (1.0 - f) * (1.0 - f) * (1.0 - f) / 6.0;
            let w1 = (4.0 + 3.0 * f * f * f - 6.0 * f * f) / 6.0;
            let w3 = f * f * f / 6.0;
            let w2 = 1.0 - w0 - w1 - w3;
            let low = floor(at) - 0.5 + w1 / (w0 + w1);
            let high = floor(at) + 1.5 + w3 / (w2 + w3);
            let a = mix(textureSampleLevel(image, smp, vec2f(high.x, low.y) / size, 0.0), textureSampleLevel(image, smp, low / size, 0.0), w0.x + w1.x);
            let b = mix(textureSampleLevel(image, smp, high / size, 0.0), textureSampleLevel(image, smp, vec2f(low.x, high.y) / size, 0.0), w0.x + w1.x);
            put(id, mix(b, a, w0.y + w1.y));
        }", 3.0),
    ("an unsharp mask", "
        @compute @workgroup_size(16, 4) fn main(@builtin(global_invocation_id) id: vec3u) {
            let step = 0.7 / vec2f(textureDimensions(image));
            var blurred = vec4f();
            for (var i = 0; i < 4; i++) {
                let corner = vec2f(f32(i & 1), f32(i >> 1)) * 2.0 - 1.0;
                blurred += 0.25 * textureSampleLevel(image, smp, uv(id) + corner * step, 0.0);
            }
            let sharp = textureSampleLevel(image, smp, uv(id), 0.0);
            put(id, vec4f((sharp + 0.5 * (sharp - blurred)).rgb, 1.0));
        }", 4.0),
    ("a step down of a bloom, and one up", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let step = 1.0 / vec2f(textureDimensions(mips, 2));
            var sum = 4.0 * textureSampleLevel(mips, smp, uv(id), 1.0);
            for (var i = 0; i < 4; i++) {
                let corner = vec2f(f32(i & 1), f32(i >> 1)) - 0.5;
                sum += textureSampleLevel(mips, smp, uv(id) + corner * step, 2.0);
            }
            put(id, sum / 8.0);
        }", 3.0),
    ("trilinear levels by gradients", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let reach = 1.0 + 6.0 * f32(id.x) / 40.0;
            let size = vec2f(textureDimensions(mips));
            put(id, textureSampleGrad(mips, smp, uv(id), vec2f(reach / size.x, 0.0), vec2f(0.0, 1.0 / size.y)));
        }", 12.0),
    ("a tone curve of wide colours", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = textureLoad(block, vec3u(id.x % 16u, id.y % 16u, (id.x + id.y) % 16u), 0).rgb * 0.01 + 0.2;
            let mapped = saturate(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14));
            put(id, vec4f(mapped, 1.0));
        }", 1.0),
    ("a lookup of colours in a block", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let color = near(vec2i(id.xy)).rgb;
            let found = textureSampleLevel(block, smp, color * (15.0 / 16.0) + 0.5 / 16.0, 0.0).rgb;
            if all(id.xy < SIZE) { textureStore(wide, id.xy, vec4f(found, 1.0)); }
        }", 4.0),
    ("two levels of a pyramid in one dispatch", "
        var<workgroup> level: array<array<vec4f, 8>, 8>;
        @compute @workgroup_size(8, 8) fn main(
            @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u,
        ) {
            let at = vec2i(2u * id.xy);
            level[local.y][local.x] = (near(at) + near(at + vec2i(1, 0)) + near(at + vec2i(0, 1)) + near(at + vec2i(1, 1))) / 4.0;
            workgroupBarrier();
            if all(local.xy < vec2u(4)) {
                let x = 2u * local.x;
                let y = 2u * local.y;
                put(vec3u(4u * group.xy + local.xy, 0u), (level[y][x] + level[y][x + 1u] + level[y + 1u][x] + level[y + 1u][x + 1u]) / 4.0);
            }
        }", 1.0),
    ("a histogram, by workgroups", "
        var<workgroup> own: array<atomic<u32>, 64>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3u) {
            let size = textureDimensions(image);
            for (var x = local; x < size.x; x += 64u) {
                if group.y < size.y { atomicAdd(&own[u32(near(vec2i(vec2u(x, group.y))).g * 255.0 + 0.5) / 4u], 1u); }
            }
            workgroupBarrier();
            atomicAdd(&counts[local], atomicLoad(&own[local]));
        }", 0.0),
    ("light from all around, by a cube", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let p = 2.0 * uv(id) - 1.0;
            let normal = normalize(vec3f(p, 1.1 - dot(p, p)));
            var sum = vec4f();
            for (var i = 0; i < 6; i++) {
                let turn = f32(i) * 1.0471976;
                sum += textureSampleLevel(cube, smp, normal + 0.4 * vec3f(cos(turn), sin(turn), 0.3), 0.0);
            }
            put(id, sum / 6.0);
        }", 4.0),
    ("a soft shadow of four comparisons", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let step = 1.0 / vec2f(textureDimensions(depth));
            var lit = 0.0;
            for (var i = 0; i < 4; i++) {
                let corner = vec2f(f32(i & 1), f32(i >> 1)) - 0.5;
                lit += textureSampleCompareLevel(depth, closer, uv(id) + corner * step, 0.5);
            }
            put(id, vec4f(vec3f(lit / 4.0), 1.0));
        }", 4.0),
    ("the middle of five exposures", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            var values: array<f32, 5>;
            for (var i = 0u; i < textureNumLayers(layers); i++) { values[i] = textureLoad(layers, id.xy % textureDimensions(layers), i, 0).g; }
            for (var i = 0; i < 4; i++) {
                for (var j = 0; j < 4 - i; j++) {
                    let pair = vec2f(values[j], values[j + 1]);
                    values[j] = min(pair.x, pair.y);
                    values[j + 1] = max(pair.x, pair.y);
                }
            }
            put(id, vec4f(vec3f(values[2]), 1.0));
        }", 1.0),
    ("layers blended by a sampled place", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let place = uv(id).x * 4.0;
            let low = textureSampleLevel(layers, smp, uv(id) * 1.7, i32(place), 0.0);
            let high = textureSampleLevel(layers, smp, uv(id) * 1.7, i32(place) + 1, 0.0);
            put(id, mix(low, high, fract(place)));
        }", 3.0),
    ("a swirl with mirrored edges", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let p = uv(id) - 0.5;
            let turn = 1.5 * (0.7 - length(p));
            let q = vec2f(p.x * cos(turn) - p.y * sin(turn), p.x * sin(turn) + p.y * cos(turn));
            put(id, textureSampleLevel(image, smp, 1.5 * q + 0.5, 0.0));
        }", 3.0),
    ("edges smoothed where neighbours differ", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let size = vec2f(textureDimensions(image));
            let corner = (vec2f(id.xy) + 1.0) / size;
            let green = textureGather(1, image, smp, corner);
            let spread = max(max(green.x, green.y), max(green.z, green.w)) - min(min(green.x, green.y), min(green.z, green.w));
            put(id, vec4f(spread, green.x, green.z, 1.0));
        }", 1.0),
    ("a bilateral filter", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let middle = near(vec2i(id.xy)).rgb;
            var sum = vec4f();
            for (var y = -2; y <= 2; y++) {
                for (var x = -2; x <= 2; x++) {
                    let other = near(vec2i(id.xy) + vec2i(x, y)).rgb;
                    let apart = other - middle;
                    let weight = exp(-0.1 * f32(x * x + y * y) - 4.0 * dot(apart, apart));
                    sum += weight * vec4f(other, 1.0);
                }
            }
            put(id, vec4f(sum.rgb / sum.w, 1.0));
        }", 1.0),
    ("light that adds up over frames", "
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            if all(id.xy < SIZE) {
                let before = textureLoad(state, id.xy).x;
                textureStore(state, id.xy, vec4f(mix(before, light(near(vec2i(id.xy)).rgb), 0.25)));
            }
        }", 1.0),
    ("a front that spreads through a wave's texture", "
        var<workgroup> tile: array<array<f32, 8>, 8>;
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u) {
            tile[local.y][local.x] = textureLoad(state, id.xy).x;
            workgroupBarrier();
            let here = tile[local.y][local.x];
            let around = tile[local.y][(local.x + 7u) % 8u] + tile[local.y][(local.x + 1u) % 8u] + tile[(local.y + 7u) % 8u][local.x] + tile[(local.y + 1u) % 8u][local.x];
            if all(id.xy < SIZE) { textureStore(state, id.xy, vec4f(here + 0.2 * (around - 4.0 * here))); }
        }", 1.0),
    ("a round of a game of cells", "
        var<workgroup> tile: array<array<u32, 8>, 8>;
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u) {
            tile[local.y][local.x] = textureLoad(cells, id.xy).x & 1u;
            workgroupBarrier();
            var around = 0u;
            for (var y = 7u; y <= 9u; y++) {
                for (var x = 7u; x <= 9u; x++) { around += tile[(local.y + y) % 8u][(local.x + x) % 8u]; }
            }
            let lives = around == 3u || (around == 4u && tile[local.y][local.x] == 1u);
            if all(id.xy < SIZE) { textureStore(cells, id.xy, vec4u(select(0u, 1u, lives))); }
        }", 0.0),
];

/// The textures' descriptions and bytes, by name.
fn inputs() -> Vec<(&'static str, TextureDescriptor, Vec<u8>)> {
    use TextureFormat::{Depth16Unorm, R32Float, R32Uint, Rgba8Unorm, Rgba16Float};
    let mut numbers = Random::new(36);
    let mut make = |name, descriptor: TextureDescriptor| {
        let (bytes, _) = random(&descriptor, &mut numbers);
        (name, descriptor, bytes)
    };
    let mut all = vec![
        make("image", TextureDescriptor::new_2d(Rgba8Unorm, 61, 47)),
        make("mips", TextureDescriptor::new_2d(Rgba8Unorm, 64, 64).with_all_levels()),
        make("layers", TextureDescriptor::new_2d(Rgba8Unorm, 32, 32).with_layers(5)),
        make("cube", TextureDescriptor::new_2d(Rgba8Unorm, 16, 16).with_layers(6)),
        make("depth", TextureDescriptor::new_2d(Depth16Unorm, 64, 48)),
        make("made", TextureDescriptor::new_2d(Rgba8Unorm, 40, 30)),
        make("wide", TextureDescriptor::new_2d(Rgba16Float, 40, 30)),
        make("state", TextureDescriptor::new_2d(R32Float, 40, 32)),
        make("cells", TextureDescriptor::new_2d(R32Uint, 40, 32)),
    ];
    // Colours from 0 to 1 in halves.
    let halves: Vec<u8> = (0..16_u32.pow(3) * 4)
        .flat_map(|_| half::f16::from_f32((numbers.u64() >> 40) as f32 / (1 << 24) as f32).to_le_bytes())
        .collect();
    all.push(("block", TextureDescriptor::new_3d(Rgba16Float, 16, 16, 16), halves));
    all
}

/// The results of a kernel: of each texture that it writes the numbers of its texels, and the counts.
fn results(engine: &Engine, kernel: &Kernel, texture: impl Fn(&str, bool) -> Texture) -> Vec<f64> {
    let reflection = kernel.reflection().unwrap();
    let counts = engine.zeros_of(DType::U32, &[64]).unwrap();
    let mut dispatch = engine.dispatch(kernel);
    let mut bound = Vec::new();
    for known in &reflection.textures {
        bound.push((known.name.as_str(), texture(&known.name, known.storage.is_some()), known.storage.is_some()));
    }
    for (name, texture, _) in &bound {
        dispatch = dispatch.bind(name, texture);
    }
    for sampler in &reflection.samplers {
        let usual = Sampler::linear().address(AddressMode::MirrorRepeat);
        let sampler_state =
            if sampler.comparison { Sampler::linear().compare(CompareFunction::LessEqual) } else { usual };
        dispatch = dispatch.bind(&sampler.name, sampler_state);
    }
    if !reflection.bindings.is_empty() {
        dispatch = dispatch.bind("counts", &counts);
    }
    let [width, height, _] = reflection.workgroup_size;
    let height = if reflection.bindings.is_empty() { 32_u32.div_ceil(height) } else { 47 };
    dispatch.workgroups((if height == 47 { 1 } else { 40_u32.div_ceil(width) }, height)).run().unwrap();
    let mut all: Vec<f64> = counts.to_vec::<u32>().unwrap().into_iter().map(f64::from).collect();
    for (_, texture, _) in bound.iter().filter(|(.., stores)| *stores) {
        let format = texture.format();
        let scale = if format == TextureFormat::R32Float { 1.0 / 1024.0 } else { 1.0 };
        for texel in texture.to_bytes().unwrap().chunks_exact(format.bytes() as usize) {
            all.extend(decode(format, texel).map(|value| value * scale));
        }
    }
    all
}

#[test]
fn kernels_of_many_kinds_agree() {
    let inputs = inputs();
    let find = |name: &str| inputs.iter().find(|(known, ..)| *known == name).unwrap();
    let processor = Engine::builder().backend("cpu").build().unwrap();
    let apps = App::all(wgpu::Features::all() & !wgpu::Features::all_experimental_mask());
    for (kind, code, steps) in KINDS {
        let kernel = Kernel::from_wgsl(&format!("{VARIABLES}{code}")).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let on = |engine: &Engine| {
            let make = |name: &str, _| {
                let (_, descriptor, bytes) = find(name);
                engine.texture_from_bytes(descriptor, bytes).unwrap()
            };
            results(engine, &kernel, make)
        };
        let expected = on(&processor);
        assert!(expected.iter().any(|value| *value != 0.0), "{kind}");
        let close = |context: &str, found: &[f64], steps: f64| {
            assert_eq!(found.len(), expected.len());
            let worst = found.iter().zip(&expected).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
            assert!(worst * 255.0 <= steps + 0.01, "{kind} {context}: {worst} apart");
        };
        for engine in by_turns() {
            // The same functions, but for how a compiler orders sums.
            close(&name(engine), &on(engine), if *steps == 0.0 { 0.0 } else { 1.0 });
        }
        for app in apps.iter().filter(|app| !app.is_gl()) {
            let make = |name: &str, stores| {
                let (_, descriptor, bytes) = find(name);
                let usage = if stores { STORE | IN | OUT } else { READ | IN };
                let texture = app.texture(descriptor, usage);
                app.write(&texture, descriptor, bytes);
                app.engine.texture_from_wgpu(&texture).unwrap()
            };
            close(&format!("with textures of {}", app.name), &results(&app.engine, &kernel, make), *steps);
        }
    }
}
