//! Kernels with textures on every device, against float64.

mod kinds;
mod misuse;
mod oracle;
mod own;

use cantus::{
    AddressMode, CompareFunction, DType, Engine, FilterMode, Kernel, Sampler, Texture, TextureDescriptor, TextureFormat,
};
use kit::engine::{by_turns, name};
use kit::inputs::Random;
use oracle::{Image, Level, Texel, decode, sample, sample_cube};

/// Returns a kernel's results for each of the places `at`: `value` is WGSL that computes a vector of four from `p`.
fn run(
    engine: &Engine,
    variables: &str,
    value: &str,
    at: &[[f32; 4]],
    bound: &[(&str, &Texture)],
    sampler: Option<&Sampler>,
) -> Vec<[f32; 4]> {
    let text = format!(
        "{variables}
        @group(1) @binding(0) var<storage> at: array<vec4f>;
        @group(1) @binding(1) var<storage, read_write> result: array<vec4f>;
        @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {{
            if id.x < arrayLength(&at) {{
                let p = at[id.x];
                result[id.x] = {value};
            }}
        }}"
    );
    let kernel = Kernel::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let places = engine.tensor_from(at.as_flattened(), &[at.len(), 4]).unwrap();
    let result = engine.zeros::<f32>(&[at.len(), 4]).unwrap();
    let mut dispatch = engine.dispatch(&kernel).bind("at", &places).bind("result", &result);
    for (name, texture) in bound {
        dispatch = dispatch.bind(name, *texture);
    }
    if let Some(sampler) = sampler {
        dispatch = dispatch.bind("smp", sampler);
    }
    dispatch.invocations(at.len()).run().unwrap_or_else(|error| panic!("{}: {error}\n{text}", name(engine)));
    result.to_vec::<f32>().unwrap().chunks_exact(4).map(|four| four.try_into().unwrap()).collect()
}

/// Random bytes of a texture that hold no NaN and no infinity, and what they mean.
fn random(descriptor: &TextureDescriptor, random: &mut Random) -> (Vec<u8>, Image) {
    let size = descriptor.format.bytes() as usize;
    let mut bytes = Vec::new();
    let mut levels = Vec::new();
    for level in 0..descriptor.levels {
        let side = descriptor.level_size(level).map(|side| side as usize);
        let mut texels = Vec::new();
        for _ in 0..side.iter().product::<usize>() * descriptor.samples as usize {
            let texel = loop {
                let texel: Vec<u8> = if descriptor.format.name().ends_with("32float") {
                    (0..size / 4).flat_map(|_| ((random.u64() >> 40) as f32 / 8192.0).to_le_bytes()).collect()
                } else {
                    (0..size).map(|_| (random.u64() >> 33) as u8).collect()
                };
                if decode(descriptor.format, &texel).iter().all(|value| value.is_finite()) {
                    break texel;
                }
            };
            texels.push(decode(descriptor.format, &texel));
            bytes.extend(texel);
        }
        levels.push(Level { size: side, texels });
    }
    let is_block = descriptor.dimension == cantus::TextureDimension::D3;
    (bytes, Image { levels, is_block })
}

fn largest(image: &Image) -> f64 {
    let texels = image.levels.iter().flat_map(|level| level.texels.iter().flatten());
    texels.fold(0.0, |most, value| value.abs().max(most))
}

#[track_caller]
fn close(context: &str, found: [f32; 4], expected: Texel, bound: f64) {
    let is_close = found.iter().zip(expected).all(|(&found, expected)| (f64::from(found) - expected).abs() <= bound);
    assert!(is_close, "{context}: {found:?} is not {expected:?} within {bound:e}");
}

fn scalar(format: TextureFormat) -> &'static str {
    match format.name() {
        name if name.ends_with("uint") => "u32",
        name if name.ends_with("sint") => "i32",
        _ => "f32",
    }
}

const ULP: f64 = f32::EPSILON as f64;

#[test]
fn texels_of_every_format_are_loaded() {
    for engine in by_turns() {
        for &format in TextureFormat::ALL {
            let mut numbers = Random::new(format as u64 + 1);
            let descriptor = TextureDescriptor::new_2d(format, 5, 3).with_levels(2);
            let (bytes, image) = random(&descriptor, &mut numbers);
            let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let at: Vec<[f32; 4]> =
                (0..2 * 7 * 5).map(|i| [(i % 7 - 1) as f32, (i / 7 % 5 - 1) as f32, (i / 35) as f32, 0.0]).collect();
            let (ty, load) = if format.is_depth() {
                ("texture_depth_2d".to_owned(), "vec4f(textureLoad(t, vec2i(p.xy), i32(p.z)), 0.0, 0.0, 1.0)")
            } else {
                (format!("texture_2d<{}>", scalar(format)), "vec4f(textureLoad(t, vec2i(p.xy), i32(p.z)))")
            };
            let found =
                run(engine, &format!("@group(0) @binding(0) var t: {ty};"), load, &at, &[("t", &texture)], None);
            for (place, found) in at.iter().zip(found) {
                let level = &image.levels[place[2] as usize];
                let [x, y] = [place[0], place[1]].map(|side| side as i64);
                let is_in = x >= 0 && y >= 0 && x < level.size[0] as i64 && y < level.size[1] as i64;
                // Outside lie texels of zeros: an alpha that the format lacks is 1.
                let outside = decode(format, &vec![0; format.bytes() as usize]);
                let mut expected = if is_in { level.texels[y as usize * level.size[0] + x as usize] } else { outside };
                if format.is_depth() {
                    expected = [expected[0], 0.0, 0.0, 1.0];
                }
                // sRGB's power is within 16 units of 1; all else is exact where no driver's compiler reorders sums and products.
                if !format.is_srgb() {
                    expected = expected.map(|value| f64::from(value as f32));
                }
                let is_processor = engine.selected().device.backend == "cpu";
                let exact = if is_processor { 0.0 } else { ULP * largest(&image) };
                let bound = if format.is_srgb() { 32.0 * ULP } else { exact };
                close(&format!("{} {format} {place:?}", name(engine)), found, expected, bound);
            }
        }
    }
}

#[test]
fn texels_around_each_invocation_are_loaded() {
    // The CPU loads rows at once: workgroups that are rows, squares as wide as its vectors and narrower, and images that end within them.
    for engine in by_turns() {
        for (seed, (format, size)) in [
            (TextureFormat::Rgba8Unorm, "64"),
            (TextureFormat::Rgba8Unorm, "16, 16"),
            (TextureFormat::Rgba8Unorm, "8, 8"),
            (TextureFormat::R8Unorm, "4, 4"),
            (TextureFormat::Bgra8Unorm, "32, 2"),
            (TextureFormat::R32Float, "16, 16"),
            (TextureFormat::Rgba16Float, "8, 8"),
            (TextureFormat::Rgba32Float, "64"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut numbers = Random::new(seed as u64 + 300);
            let (width, height) = (150_usize, 21_usize);
            let descriptor = TextureDescriptor::new_2d(format, width as u32, height as u32);
            let (bytes, image) = random(&descriptor, &mut numbers);
            let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let text = format!(
                "@group(0) @binding(0) var t: texture_2d<f32>;
                @group(0) @binding(1) var<storage, read_write> result: array<vec4f>;
                @compute @workgroup_size({size}) fn main(@builtin(global_invocation_id) id: vec3u) {{
                    if any(id.xy >= vec2u({width}, {height})) {{ return; }}
                    var sum = vec4f();
                    for (var y = -1; y <= 1; y++) {{
                        sum += textureLoad(t, vec2i(id.xy) + vec2i(-2, y), 0);
                        sum += textureLoad(t, vec2i(id.xy) + vec2i(3, y), 0);
                    }}
                    result[id.y * {width} + id.x] = sum;
                }}"
            );
            let kernel = Kernel::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let result = engine.zeros::<f32>(&[height * width, 4]).unwrap();
            let dispatch = engine.dispatch(&kernel).bind("t", &texture).bind("result", &result);
            dispatch.invocations((width, height)).run().unwrap();
            let found = result.to_vec::<f32>().unwrap();
            let outside = decode(format, &vec![0; format.bytes() as usize]);
            for (place, found) in found.chunks_exact(4).enumerate() {
                let (x, y) = ((place % width) as i64, (place / width) as i64);
                let mut expected = [0.0; 4];
                for (dy, dx) in [(-1, -2), (-1, 3), (0, -2), (0, 3), (1, -2), (1, 3)] {
                    let (x, y) = (x + dx, y + dy);
                    let is_in = x >= 0 && y >= 0 && x < width as i64 && y < height as i64;
                    let texel = if is_in { image.levels[0].texels[y as usize * width + x as usize] } else { outside };
                    expected.iter_mut().zip(texel).for_each(|(sum, channel)| *sum += channel);
                }
                let bound = 16.0 * ULP * largest(&image);
                let context = format!("{} {format} ({size}) at {x}, {y}", name(engine));
                close(&context, found.try_into().unwrap(), expected, bound);
            }
        }
    }
}

/// Formats of storage textures.
fn storable() -> impl Iterator<Item = TextureFormat> {
    let all = TextureFormat::ALL.iter().copied();
    all.filter(|format| !format.is_depth() && !format.is_srgb() && *format != TextureFormat::Rgb9e5Ufloat)
}

#[test]
fn texels_of_every_format_are_stored() {
    for engine in by_turns() {
        for format in storable() {
            let mut numbers = Random::new(format as u64 + 100);
            let descriptor = TextureDescriptor::new_2d(format, 9, 7);
            let texture = engine.texture(&descriptor).unwrap();
            // What a format holds is stored exactly: the texels of another texture, read and written.
            let (bytes, image) = random(&descriptor, &mut numbers);
            let source = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let scalar = scalar(format);
            let text = format!(
                "@group(0) @binding(0) var source: texture_2d<{scalar}>;
                @group(0) @binding(1) var t: texture_storage_2d<{format}, write>;
                @compute @workgroup_size(4, 4) fn main(@builtin(global_invocation_id) id: vec3u) {{
                    textureStore(t, id.xy, textureLoad(source, id.xy, 0));
                }}"
            );
            let kernel = Kernel::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let dispatch = engine.dispatch(&kernel).bind("source", &source).bind("t", &texture);
            dispatch.invocations((9, 7)).run().unwrap_or_else(|error| panic!("{} {format}: {error}", name(engine)));
            let stored = texture.to_bytes().unwrap();
            let size = format.bytes() as usize;
            for (texel, expected) in stored.chunks_exact(size).zip(&image.levels[0].texels) {
                let found = decode(format, texel);
                let exact = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs());
                assert!(exact, "{} {format}: {found:?} is not {expected:?}", name(engine));
            }
        }
    }
}

#[test]
fn stored_numbers_are_rounded_and_clamped() {
    let values = [-3.0_f32, -0.7, -0.25, 0.0, 0.1, 0.3, 0.50001, 0.75, 1.0, 1.6, 70000.0, 1e-6];
    let at: Vec<[f32; 4]> = values.iter().map(|&value| [value, 0.0, 0.0, 0.0]).collect();
    for engine in by_turns() {
        for (format, least, steps) in [
            (TextureFormat::R8Unorm, 0.0, 255.0),
            (TextureFormat::Rgba8Snorm, -1.0, 127.0),
            (TextureFormat::Rg16Unorm, 0.0, 65535.0),
            (TextureFormat::Rgba16Snorm, -1.0, 32767.0),
            (TextureFormat::Rgb10a2Unorm, 0.0, 1023.0),
        ] {
            let texture = engine.texture(&TextureDescriptor::new_1d(format, values.len() as u32)).unwrap();
            let text = format!(
                "@group(0) @binding(0) var t: texture_storage_1d<{format}, write>;
                @group(0) @binding(1) var<storage> at: array<vec4f>;
                @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {{ textureStore(t, id.x, at[id.x]); }}"
            );
            let kernel = Kernel::from_wgsl(&text).unwrap();
            let places = engine.tensor_from(at.as_flattened(), &[at.len(), 4]).unwrap();
            engine.dispatch(&kernel).bind("t", &texture).bind("at", &places).invocations(values.len()).run().unwrap();
            let stored = texture.to_bytes().unwrap();
            for (texel, &value) in stored.chunks_exact(format.bytes() as usize).zip(&values) {
                let expected = (f64::from(value).clamp(least, 1.0) * steps).round() / steps;
                let found = decode(format, texel)[0];
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{} {format} of {value}: {found}, not {expected}",
                    name(engine)
                );
            }
        }
    }
}

#[test]
fn a_buffer_that_is_only_named_is_bound_beside_a_texture() {
    let text = "
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var<storage> unread: array<u32>;
        @group(0) @binding(2) var<storage, read_write> result: array<f32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
            _ = &unread;
            result[id.x] = textureLoad(image, id.xy, 0).x;
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for engine in by_turns() {
        let image = TextureDescriptor::new_2d(TextureFormat::R32Float, 2, 1);
        let image = engine.texture_from_bytes(&image, bytemuck::cast_slice(&[3.0_f32, 4.0])).unwrap();
        let (unread, result) = (engine.zeros::<u32>(&[4]).unwrap(), engine.zeros::<f32>(&[2]).unwrap());
        let dispatch = engine.dispatch(&kernel).bind("image", &image).bind("unread", &unread).bind("result", &result);
        dispatch.workgroups(2).run().unwrap();
        assert_eq!(result.to_vec::<f32>().unwrap(), [3.0, 4.0], "{}", name(engine));
    }
}

#[test]
fn small_texels_of_neighbours_do_not_meet() {
    let text = "
        @group(0) @binding(0) var t: texture_storage_2d<r8uint, write>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
            textureStore(t, id.xy, vec4u((id.x * 7u + id.y * 13u) & 255u));
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for engine in by_turns() {
        let texture = engine.texture(&TextureDescriptor::new_2d(TextureFormat::R8Uint, 257, 129)).unwrap();
        engine.dispatch(&kernel).bind("t", &texture).workgroups((257, 129)).run().unwrap();
        let bytes = texture.to_bytes().unwrap();
        let expected: Vec<u8> = (0..257 * 129).map(|i| ((i % 257) * 7 + (i / 257) * 13) as u8).collect();
        assert!(bytes == expected, "{}", name(engine));
    }
}

const MODES: [AddressMode; 3] = [AddressMode::ClampToEdge, AddressMode::Repeat, AddressMode::MirrorRepeat];

fn sampler(numbers: &mut Random) -> Sampler {
    let mut below = |limit: u64| ((numbers.u64() >> 33) % limit) as usize;
    let filters = [FilterMode::Nearest, FilterMode::Linear];
    Sampler {
        address_mode: [0; 3].map(|_: usize| MODES[below(3)]),
        mag_filter: filters[below(2)],
        min_filter: filters[below(2)],
        mipmap_filter: filters[below(2)],
        lod_min_clamp: [0.0, 0.0, 0.75][below(3)],
        lod_max_clamp: [32.0, 32.0, 1.5][below(3)],
        compare: None,
    }
}

/// Places with coordinates in eighths of a texel of sides that are powers of two, so that they are exact; edges and middles among them.
fn places(numbers: &mut Random, sides: [f32; 3], last: f32, count: usize) -> Vec<[f32; 4]> {
    let mut coordinate = |side: f32| ((numbers.u64() >> 33) % (64 * side as u64)) as f32 / (8.0 * side) - 3.5;
    let mut at: Vec<[f32; 4]> =
        (0..count).map(|_| [coordinate(sides[0]), coordinate(sides[1]), coordinate(sides[2]), 0.0]).collect();
    for (place, at) in at.iter_mut().enumerate() {
        at[3] = (place % 17) as f32 / 16.0 * (last + 2.0) - 1.0;
    }
    at
}

#[test]
fn images_are_filtered() {
    for engine in by_turns() {
        for seed in kit::turn::seeds(engine, 0..12) {
            let mut numbers = Random::new(seed + 7);
            let format =
                [TextureFormat::Rgba8Unorm, TextureFormat::R32Float, TextureFormat::Rgba16Float][seed as usize % 3];
            let levels = if seed % 4 == 0 { 1 } else { 4 };
            let descriptor = TextureDescriptor::new_2d(format, 16, 8).with_levels(levels);
            let (bytes, image) = random(&descriptor, &mut numbers);
            let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let sampler = sampler(&mut numbers);
            let at = places(&mut numbers, [16.0, 8.0, 1.0], levels as f32, 200);
            let offset = if seed % 3 == 1 { [3, -5, 0] } else { [0; 3] };
            let value = match offset[0] {
                0 => "textureSampleLevel(t, smp, p.xy, p.w)",
                _ => "textureSampleLevel(t, smp, p.xy, p.w, vec2i(3, -5))",
            };
            let variables = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var smp: sampler;";
            let found = run(engine, variables, value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let [x, y, _, lod] = place.map(f64::from);
                let expected = sample(&image, &sampler, [x, y, 0.0], 0, offset, lod, None);
                let context = format!("{} seed {seed} {format} {sampler:?} {place:?}", name(engine));
                close(&context, found, expected, 4.0 * ULP * largest(&image));
            }
        }
    }
}

#[test]
fn layers_rows_and_blocks_are_filtered() {
    for engine in by_turns() {
        for seed in kit::turn::seeds(engine, 0..4) {
            let mut numbers = Random::new(seed + 70);
            let sampler = sampler(&mut numbers);
            let format = TextureFormat::Rgba32Float;
            let cases = [
                (TextureDescriptor::new_1d(format, 32), "1d", "textureSampleLevel(t, smp, p.x, p.w)"),
                (
                    TextureDescriptor::new_2d(format, 8, 4).with_layers(3).with_levels(3),
                    "2d_array",
                    "textureSampleLevel(t, smp, p.xy, i32(floor(p.z * 4.0)), p.w)",
                ),
                (
                    TextureDescriptor::new_3d(format, 8, 4, 4).with_levels(3),
                    "3d",
                    "textureSampleLevel(t, smp, p.xyz, p.w)",
                ),
            ];
            for (descriptor, dimension, value) in cases {
                let (bytes, image) = random(&descriptor, &mut numbers);
                let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
                let at = places(
                    &mut numbers,
                    descriptor.size.map(|side| if side == 3 { 4.0 } else { side as f32 }),
                    descriptor.levels as f32,
                    150,
                );
                let variables = format!(
                    "@group(0) @binding(0) var t: texture_{dimension}<f32>; @group(0) @binding(1) var smp: sampler;"
                );
                let found = run(engine, &variables, value, &at, &[("t", &texture)], Some(&sampler));
                for (place, found) in at.iter().zip(found) {
                    let [x, mut y, z, lod] = place.map(f64::from);
                    let layer = if dimension == "2d_array" { (z * 4.0).floor().clamp(0.0, 2.0) as usize } else { 0 };
                    if dimension == "1d" {
                        y = 0.5;
                    }
                    let expected = sample(&image, &sampler, [x, y, z], layer, [0; 3], lod, None);
                    close(
                        &format!("{} {dimension} seed {seed} {sampler:?} {place:?}", name(engine)),
                        found,
                        expected,
                        4.0 * ULP * largest(&image),
                    );
                }
            }
        }
    }
}

#[test]
fn cubes_are_filtered_over_edges_and_corners() {
    for engine in by_turns() {
        for (filter, count) in [(FilterMode::Nearest, 6), (FilterMode::Linear, 6), (FilterMode::Linear, 12)] {
            let mut numbers = Random::new(count + 11);
            let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba32Float, 4, 4).with_layers(count as u32);
            let (bytes, image) = random(&descriptor, &mut numbers);
            let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let sampler = if filter == FilterMode::Linear { Sampler::linear() } else { Sampler::nearest() };
            // On the faces: the middles and edges of texels, and beyond the last middle, where other faces come in.
            let mut at = Vec::new();
            for axis in 0..3 {
                for sign in [-1.0, 1.0] {
                    for s in 0..16 {
                        for t in 0..16 {
                            let mut direction = [0.0; 3];
                            direction[axis] = sign;
                            direction[(axis + 1) % 3] = (2 * s + 1) as f32 / 16.0 - 1.0;
                            direction[(axis + 2) % 3] = (2 * t + 1) as f32 / 16.0 - 1.0;
                            at.push([direction[0], direction[1], direction[2], ((s + t) % 3) as f32 - 0.5]);
                        }
                    }
                }
            }
            let (ty, value) = if count == 6 {
                ("texture_cube<f32>", "textureSampleLevel(t, smp, p.xyz, 0.0)")
            } else {
                ("texture_cube_array<f32>", "textureSampleLevel(t, smp, p.xyz, i32(ceil(p.w)), 0.0)")
            };
            let variables = format!("@group(0) @binding(0) var t: {ty}; @group(0) @binding(1) var smp: sampler;");
            let found = run(engine, &variables, value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let [x, y, z, w] = place.map(f64::from);
                let cube = if count == 6 { 0 } else { w.ceil().clamp(0.0, 1.0) as usize };
                let expected = sample_cube(&image.levels[0], filter, [x, y, z], cube);
                close(&format!("{} {filter:?} {place:?}", name(engine)), found, expected, 4.0 * ULP * largest(&image));
            }
        }
    }
}

#[test]
fn depths_are_compared_and_filtered() {
    use CompareFunction as Compare;
    type Compares = fn(f64, f64) -> bool;
    let functions: [(Compare, Compares); 8] = [
        (Compare::Never, |_, _| false),
        (Compare::Less, |a, b| a < b),
        (Compare::Equal, |a, b| a == b),
        (Compare::LessEqual, |a, b| a <= b),
        (Compare::Greater, |a, b| a > b),
        (Compare::NotEqual, |a, b| a != b),
        (Compare::GreaterEqual, |a, b| a >= b),
        (Compare::Always, |_, _| true),
    ];
    for engine in by_turns() {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Depth32Float, 8, 8);
        let depths: Vec<f32> = (0..64).map(|i| (i * 37 % 11) as f32 / 10.0).collect();
        let texture = engine.texture_from_bytes(&descriptor, bytemuck::cast_slice(&depths)).unwrap();
        let texels = depths.iter().map(|&depth| [f64::from(depth), 0.0, 0.0, 1.0]).collect();
        let image = Image { levels: vec![Level { size: [8, 8, 1], texels }], is_block: false };
        for (function, compare) in functions {
            let sampler = Sampler::linear().compare(function).address(AddressMode::Repeat);
            let mut numbers = Random::new(function as u64);
            let mut at = places(&mut numbers, [8.0, 8.0, 1.0], 0.0, 100);
            at.iter_mut().enumerate().for_each(|(i, at)| at[2] = (i % 11) as f32 / 10.0);
            let variables =
                "@group(0) @binding(0) var t: texture_depth_2d; @group(0) @binding(1) var smp: sampler_comparison;";
            let value =
                "vec4f(textureSampleCompareLevel(t, smp, p.xy, p.z), textureGatherCompare(t, smp, p.xy, p.z).xyz)";
            let found = run(engine, variables, value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let reference = f64::from(place[2]);
                let one = |depth: f64| f64::from(u8::from(compare(reference, depth)));
                let expected =
                    sample(&image, &sampler, [place[0].into(), place[1].into(), 0.0], 0, [0; 3], 0.0, Some(&one))[0];
                let corner = |x: f64, y: f64| {
                    let near = Sampler { mag_filter: FilterMode::Nearest, ..sampler };
                    // The middle of a texel beside the place.
                    let x = ((f64::from(place[0]) * 8.0 - 0.5).floor() + x + 0.5) / 8.0;
                    let y = ((f64::from(place[1]) * 8.0 - 0.5).floor() + y + 0.5) / 8.0;
                    sample(&image, &near, [x, y, 0.0], 0, [0; 3], 0.0, Some(&one))[0]
                };
                let expected = [expected, corner(0.0, 1.0), corner(1.0, 1.0), corner(1.0, 0.0)];
                close(&format!("{} {function:?} {place:?}", name(engine)), found, expected, 4.0 * ULP);
            }
        }
    }
}

#[test]
fn texels_are_gathered() {
    for engine in by_turns() {
        for (format, component) in
            [(TextureFormat::Rgba8Unorm, 2), (TextureFormat::Rgba16Uint, 1), (TextureFormat::Rgba8Sint, 3)]
        {
            let mut numbers = Random::new(format as u64);
            let descriptor = TextureDescriptor::new_2d(format, 8, 4).with_layers(2);
            let (bytes, image) = random(&descriptor, &mut numbers);
            let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
            let sampler = Sampler::nearest().address(AddressMode::MirrorRepeat);
            let at = places(&mut numbers, [8.0, 4.0, 2.0], 0.0, 100);
            let variables = format!(
                "@group(0) @binding(0) var t: texture_2d_array<{}>; @group(0) @binding(1) var smp: sampler;",
                scalar(format)
            );
            let value = format!("vec4f(textureGather({component}, t, smp, p.xy, u32(p.z + 4.0)))");
            let found = run(engine, &variables, &value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let [x, y, z, _] = place.map(f64::from);
                let layer = ((z + 4.0) as usize).min(1);
                let corner = |dx: f64, dy: f64| {
                    let x = ((x * 8.0 - 0.5).floor() + dx + 0.5) / 8.0;
                    let y = ((y * 4.0 - 0.5).floor() + dy + 0.5) / 4.0;
                    sample(&image, &sampler, [x, y, 0.0], layer, [0; 3], 0.0, None)[component]
                };
                let expected = [corner(0.0, 1.0), corner(1.0, 1.0), corner(1.0, 0.0), corner(0.0, 0.0)];
                close(&format!("{} {format} {place:?}", name(engine)), found, expected, 2.0 * ULP * largest(&image));
            }
        }
    }
}

#[test]
fn frames_of_videos_are_images() {
    let variables = "@group(0) @binding(0) var t: texture_external; @group(0) @binding(1) var smp: sampler;";
    let value = "textureSampleBaseClampToEdge(t, smp, p.xy) + textureLoad(t, vec2u(textureDimensions(t).x - 1u, 0u))";
    for engine in by_turns() {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 8, 4);
        let (bytes, image) = random(&descriptor, &mut Random::new(3));
        let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
        let sampler = Sampler::linear().address(AddressMode::Repeat);
        let at = places(&mut Random::new(4), [8.0, 4.0, 1.0], 0.0, 60);
        let found = run(engine, variables, value, &at, &[("t", &texture)], Some(&sampler));
        for (place, found) in at.iter().zip(found) {
            let clamped = |side: f32, texels: f64| f64::from(side).clamp(0.5 / texels, 1.0 - 0.5 / texels);
            let inside = [clamped(place[0], 8.0), clamped(place[1], 4.0), 0.0];
            let mut expected = sample(&image, &Sampler::linear(), inside, 0, [0; 3], 0.0, None);
            expected.iter_mut().zip(image.levels[0].texels[7]).for_each(|(sum, texel)| *sum += texel);
            close(&format!("{} {place:?}", name(engine)), found, expected, 8.0 * ULP);
        }
    }
}

#[test]
fn gradients_choose_the_level() {
    for engine in by_turns() {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba32Float, 64, 32).with_all_levels();
        // Each level is its own number.
        let mut values = Vec::new();
        for level in 0..descriptor.levels {
            let [width, height, _] = descriptor.level_size(level);
            values.extend(std::iter::repeat_n([level as f32; 4], (width * height) as usize));
        }
        let texture = engine.texture_from_bytes(&descriptor, bytemuck::cast_slice(&values)).unwrap();
        let at: Vec<[f32; 4]> = (0..40).map(|i| [(i + 1) as f32 / 100.0, 0.01, 0.02, (i % 7) as f32 / 30.0]).collect();
        let variables = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var smp: sampler;";
        let found = run(
            engine,
            variables,
            "textureSampleGrad(t, smp, vec2f(0.3), p.xy, p.zw)",
            &at,
            &[("t", &texture)],
            Some(&Sampler::linear()),
        );
        for (place, found) in at.iter().zip(found) {
            let [ax, ay, bx, by] = place.map(f64::from);
            let length = |x: f64, y: f64| (x * 64.0).hypot(y * 32.0);
            let lod = length(ax, ay).max(length(bx, by)).log2().clamp(0.0, 6.0);
            close(&format!("{} {place:?}", name(engine)), found, [lod; 4], 1e-4);
        }
    }
}

#[test]
fn sizes_and_samples_are_told() {
    let text = "
        @group(0) @binding(0) var layers: texture_2d_array<f32>;
        @group(0) @binding(1) var cube: texture_cube_array<f32>;
        @group(0) @binding(2) var block: texture_3d<u32>;
        @group(0) @binding(3) var row: texture_1d<i32>;
        @group(0) @binding(4) var several: texture_multisampled_2d<f32>;
        @group(0) @binding(5) var stored: texture_storage_2d<r32uint, read_write>;
        @group(0) @binding(6) var<storage, read_write> result: array<u32>;
        @compute @workgroup_size(1) fn main() {
            let size = textureDimensions(layers, 2);
            result[0] = size.x; result[1] = size.y;
            result[2] = textureNumLayers(layers);
            result[3] = textureNumLevels(layers);
            result[4] = textureNumLayers(cube);
            result[5] = textureDimensions(cube).x;
            let sides = textureDimensions(block, 1);
            result[6] = sides.x; result[7] = sides.y; result[8] = sides.z;
            result[9] = textureDimensions(row);
            result[10] = textureNumSamples(several);
            result[11] = u32(textureLoad(several, vec2u(1, 0), 2).x * 255.0 + 0.5);
            textureStore(stored, vec2u(1, 1), textureLoad(stored, vec2u(0, 1)) + 1u);
            result[12] = textureLoad(stored, vec2u(1, 1)).x;
            result[13] = textureDimensions(stored).y;
            result[14] = textureDimensions(layers, 9).x;
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for engine in by_turns() {
        let f32s = TextureFormat::R32Float;
        let layers = engine.texture(&TextureDescriptor::new_2d(f32s, 20, 9).with_layers(3).with_levels(4)).unwrap();
        let cube = engine.texture(&TextureDescriptor::new_2d(f32s, 5, 5).with_layers(12)).unwrap();
        let block = engine.texture(&TextureDescriptor::new_3d(TextureFormat::R32Uint, 9, 4, 6).with_levels(2)).unwrap();
        let row = engine.texture(&TextureDescriptor::new_1d(TextureFormat::R32Sint, 77)).unwrap();
        let several = TextureDescriptor::new_2d(TextureFormat::R8Unorm, 2, 1).with_samples(4);
        let several = engine.texture_from_bytes(&several, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let stored = TextureDescriptor::new_2d(TextureFormat::R32Uint, 2, 2);
        let stored = engine.texture_from_bytes(&stored, bytemuck::cast_slice(&[1_u32, 2, 30, 4])).unwrap();
        let result = engine.zeros::<u32>(&[15]).unwrap();
        let dispatch = engine.dispatch(&kernel).bind("layers", &layers).bind("cube", &cube).bind("block", &block);
        let dispatch =
            dispatch.bind("row", &row).bind("several", &several).bind("stored", &stored).bind("result", &result);
        dispatch.workgroups(1).run().unwrap();
        assert_eq!(
            result.to_vec::<u32>().unwrap(),
            [5, 2, 3, 4, 2, 5, 4, 2, 3, 77, 4, 7, 31, 2, 0],
            "{}",
            name(engine)
        );
    }
}

#[test]
fn a_level_is_made_from_the_one_before() {
    // Textures and samplers as arguments, and two views of one texture.
    let text = "
        @group(0) @binding(0) var fine: texture_2d<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var coarse: texture_storage_2d<rgba8unorm, write>;
        fn mean(image: texture_2d<f32>, smp: sampler, texel: vec2u, size: vec2u) -> vec4f {
            return textureSampleLevel(image, smp, (vec2f(texel) + 0.5) / vec2f(size), 0.0);
        }
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let size = textureDimensions(coarse);
            if all(id.xy < size) { textureStore(coarse, id.xy, mean(fine, smp, id.xy, size)); }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for engine in by_turns() {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 16, 16).with_all_levels();
        let texture = engine.texture(&descriptor).unwrap();
        let bytes: Vec<u8> = (0..16 * 16 * 4).map(|i| (i * 7 % 251) as u8).collect();
        texture.level(0).unwrap().write(&bytes).unwrap();
        for level in 1..descriptor.levels {
            let side = descriptor.level_size(level)[0];
            let (fine, coarse) = (texture.level(level - 1).unwrap(), texture.level(level).unwrap());
            let dispatch =
                engine.dispatch(&kernel).bind("fine", fine).bind("smp", Sampler::linear()).bind("coarse", coarse);
            dispatch.invocations((side, side)).run().unwrap();
        }
        let mut above = bytes;
        for level in 1..descriptor.levels {
            let side = descriptor.level_size(level)[0] as usize;
            let found = texture.level(level).unwrap().to_bytes().unwrap();
            for (i, &found) in found.iter().enumerate() {
                let (x, y, channel) = (i / 4 % side, i / 4 / side, i % 4);
                let at = |dx: usize, dy: usize| f64::from(above[((2 * y + dy) * 2 * side + 2 * x + dx) * 4 + channel]);
                let mean = (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4.0;
                // Halves may go either way.
                assert!(
                    (f64::from(found) - mean).abs() <= 0.5001,
                    "{} level {level}: {found} is not {mean}",
                    name(engine)
                );
            }
            above = found;
        }
    }
}

#[test]
fn reproducible_engines_sample_textures() {
    let variables = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var smp: sampler;";
    let mut numbers = Random::new(5);
    let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 7, 5).with_levels(3);
    let (bytes, _) = random(&descriptor, &mut numbers);
    let at = places(&mut numbers, [8.0, 8.0, 1.0], 3.0, 300);
    let mut first: Option<Vec<[f32; 4]>> = None;
    for engine in by_turns() {
        let device = &engine.selected().device;
        let engine =
            Engine::builder().backend(&device.backend).device(device.index).reproducible(true).build().unwrap();
        let texture = engine.texture_from_bytes(&descriptor, &bytes).unwrap();
        let sampler = Sampler::linear().address(AddressMode::Repeat);
        let found =
            run(&engine, variables, "textureSampleLevel(t, smp, p.xy, p.w)", &at, &[("t", &texture)], Some(&sampler));
        let first = first.get_or_insert_with(|| found.clone());
        let bits = |values: &[[f32; 4]]| values.iter().flatten().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert!(bits(first) == bits(&found), "{}", name(&engine));
    }
}

#[test]
fn arrays_become_images_and_back() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let colours = ndarray::Array3::from_shape_fn((3, 2, 3), |(y, x, c)| (y * 20 + x * 7 + c) as u8);
    for format in [TextureFormat::Rgba8Unorm, TextureFormat::Bgra8Unorm] {
        let texture = engine.texture_from_array(&colours, format).unwrap();
        let back = texture.to_array::<u8>().unwrap();
        assert_eq!(back.shape(), [3, 2, 4]);
        for ((y, x, c), &value) in colours.indexed_iter() {
            assert_eq!((back[[y, x, c]], back[[y, x, 3]]), (value, 255));
        }
    }
    let heights = ndarray::Array2::from_shape_fn((4, 5), |(y, x)| y as f32 - 0.25 * x as f32);
    let texture = engine.texture_from_array(&heights, TextureFormat::R32Float).unwrap();
    assert_eq!(texture.size(), [5, 4, 1]);
    assert_eq!(texture.to_array::<f32>().unwrap().into_shape_with_order((4, 5)).unwrap(), heights);
    let _ = DType::F32;
}
