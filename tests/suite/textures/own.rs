//! Textures that an app made on its wgpu device, bound as they are: on Vulkan and on GL, against float64 and against what the app itself reads.

use cantus::backend::cpu::CpuBackend;
use cantus::backend::wgpu::from_device;
use cantus::backend::{Backend, BoxFuture, Device, DeviceInfo, OpenOptions, Probe, Registry};
use cantus::engine::EventKind;
use cantus::{
    AddressMode, CompareFunction, Engine, Error, FilterMode, Kernel, Sampler, Texture, TextureDescriptor, TextureFormat,
};
use kit::inputs::Random;

use super::oracle::{Image, Level, sample, sample_cube};
use super::{ULP, close, largest, places, random, run, scalar};

/// An app: its device, and an engine on it.
pub(super) struct App {
    pub(super) name: String,
    adapter: wgpu::Adapter,
    device: wgpu::Device,
    queue: wgpu::Queue,
    pub(super) engine: Engine,
}

pub(super) const READ: wgpu::TextureUsages = wgpu::TextureUsages::TEXTURE_BINDING;
pub(super) const STORE: wgpu::TextureUsages = wgpu::TextureUsages::STORAGE_BINDING;
pub(super) const OUT: wgpu::TextureUsages = wgpu::TextureUsages::COPY_SRC;
pub(super) const IN: wgpu::TextureUsages = wgpu::TextureUsages::COPY_DST;
const DRAW: wgpu::TextureUsages = wgpu::TextureUsages::RENDER_ATTACHMENT;

impl App {
    fn on(adapter: wgpu::Adapter, features: wgpu::Features) -> Self {
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & features,
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
        let engine = Engine::from_wgpu(device.clone(), queue.clone());
        let info = adapter.get_info();
        Self { name: format!("{} ({:?})", info.name, info.backend), adapter, device, queue, engine }
    }

    /// An app on the first adapter of each API.
    pub(super) fn all(features: wgpu::Features) -> Vec<Self> {
        let of = |backends| {
            let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
            descriptor.backends = backends;
            let instance = wgpu::Instance::new(descriptor);
            let adapters = pollster::block_on(instance.enumerate_adapters(backends));
            let compute = |adapter: &wgpu::Adapter| {
                let flags = adapter.get_downlevel_capabilities().flags;
                flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
            };
            adapters.into_iter().find(compute)
        };
        let mut found = Vec::new();
        for backends in [wgpu::Backends::VULKAN, wgpu::Backends::GL, wgpu::Backends::METAL | wgpu::Backends::DX12] {
            match of(backends) {
                Some(adapter) => found.push(Self::on(adapter, features)),
                None => kit::not_run(&format!("an app's textures by {backends:?}"), "there is no adapter"),
            }
        }
        if found.is_empty() {
            assert!(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(), "an adapter is required");
        }
        found
    }

    pub(super) fn is_gl(&self) -> bool {
        self.adapter.get_info().backend == wgpu::Backend::Gl
    }

    /// A texture of the app's for a description.
    pub(super) fn texture(&self, descriptor: &TextureDescriptor, usage: wgpu::TextureUsages) -> wgpu::Texture {
        let format = FORMATS.iter().find(|format| name(**format) == descriptor.format.name()).unwrap();
        self.texture_of(descriptor, *format, usage)
    }

    fn texture_of(
        &self,
        descriptor: &TextureDescriptor,
        format: wgpu::TextureFormat,
        usage: wgpu::TextureUsages,
    ) -> wgpu::Texture {
        let [width, height, depth_or_array_layers] = descriptor.size;
        self.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d { width, height, depth_or_array_layers },
            mip_level_count: descriptor.levels,
            sample_count: descriptor.samples,
            dimension: match descriptor.dimension {
                cantus::TextureDimension::D1 => wgpu::TextureDimension::D1,
                cantus::TextureDimension::D2 => wgpu::TextureDimension::D2,
                cantus::TextureDimension::D3 => wgpu::TextureDimension::D3,
            },
            format,
            usage,
            view_formats: &[],
        })
    }

    /// The app writes all levels by its own queue.
    pub(super) fn write(&self, texture: &wgpu::Texture, descriptor: &TextureDescriptor, bytes: &[u8]) {
        let mut start = 0;
        for mip_level in 0..descriptor.levels {
            let [width, height, depth_or_array_layers] = descriptor.level_size(mip_level);
            let row = width * descriptor.format.bytes();
            let end = start + (row * height * depth_or_array_layers) as usize;
            self.queue.write_texture(
                wgpu::TexelCopyTextureInfo { mip_level, ..texture.as_image_copy() },
                &bytes[start..end],
                wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(row), rows_per_image: Some(height) },
                wgpu::Extent3d { width, height, depth_or_array_layers },
            );
            start = end;
        }
    }

    /// The bytes of the first level, read by the app.
    fn read(&self, texture: &wgpu::Texture) -> Vec<u8> {
        let size = texture.size();
        let texel = texture.format().block_copy_size(None).unwrap();
        let (row, padded) = (size.width * texel, (size.width * texel).next_multiple_of(256));
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(padded * size.height),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(padded), rows_per_image: None };
        let size = wgpu::Extent3d { depth_or_array_layers: 1, ..size };
        encoder.copy_texture_to_buffer(
            texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo { buffer: &staging, layout },
            size,
        );
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let bytes = staging.get_mapped_range(..).unwrap();
        bytes.chunks_exact(padded as usize).flat_map(|padded| &padded[..row as usize]).copied().collect()
    }

    /// Draws one triangle over a texture with a fragment shader; `texture` is its `@group(0) @binding(0)`.
    fn draw(&self, fragment: &str, texture: Option<&wgpu::Texture>, target: &wgpu::Texture) {
        let text = format!(
            "{fragment}
            @vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {{
                return vec4f(f32(i / 2u) * 4.0 - 1.0, f32(i % 2u) * 4.0 - 1.0, 0.0, 1.0);
            }}"
        );
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: None,
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState { count: target.sample_count(), ..wgpu::MultisampleState::default() },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("colour"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(target.format().into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let view = target.create_view(&wgpu::TextureViewDescriptor::default());
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations { load: wgpu::LoadOp::Clear(wgpu::Color::BLACK), store: wgpu::StoreOp::Store },
            })],
            ..wgpu::RenderPassDescriptor::default()
        });
        pass.set_pipeline(&pipeline);
        if let Some(texture) = texture {
            let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
            let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::TextureView(&view) }],
            });
            pass.set_bind_group(0, &group, &[]);
        }
        pass.draw(0..3, 0..1);
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }

    /// A random texture that the app has written, its handle here, and what its texels mean.
    fn given(&self, descriptor: &TextureDescriptor, usage: wgpu::TextureUsages, seed: u64) -> (Texture, Image) {
        let raw = self.texture(descriptor, usage | IN);
        let (bytes, image) = random(descriptor, &mut Random::new(seed));
        self.write(&raw, descriptor, &bytes);
        (self.engine.texture_from_wgpu(&raw).unwrap(), image)
    }

    fn copies(&self) -> usize {
        self.engine.events().iter().filter(|event| event.kind == EventKind::FellBack).count()
    }
}

/// wgpu's formats that are formats here.
const FORMATS: &[wgpu::TextureFormat] = {
    use wgpu::TextureFormat::*;
    &[
        R8Unorm,
        R8Snorm,
        R8Uint,
        R8Sint,
        R16Unorm,
        R16Snorm,
        R16Uint,
        R16Sint,
        R16Float,
        Rg8Unorm,
        Rg8Snorm,
        Rg8Uint,
        Rg8Sint,
        R32Uint,
        R32Sint,
        R32Float,
        Rg16Unorm,
        Rg16Snorm,
        Rg16Uint,
        Rg16Sint,
        Rg16Float,
        Rgba8Unorm,
        Rgba8UnormSrgb,
        Rgba8Snorm,
        Rgba8Uint,
        Rgba8Sint,
        Bgra8Unorm,
        Bgra8UnormSrgb,
        Rgb9e5Ufloat,
        Rgb10a2Uint,
        Rgb10a2Unorm,
        Rg11b10Ufloat,
        Rg32Uint,
        Rg32Sint,
        Rg32Float,
        Rgba16Unorm,
        Rgba16Snorm,
        Rgba16Uint,
        Rgba16Sint,
        Rgba16Float,
        Rgba32Uint,
        Rgba32Sint,
        Rgba32Float,
        Depth16Unorm,
        Depth32Float,
    ]
};

fn name(format: wgpu::TextureFormat) -> String {
    let name = format!("{format:?}").to_lowercase();
    name.strip_suffix("srgb").map_or(name.clone(), |colours| format!("{colours}-srgb"))
}

const SAMPLED: &str = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var smp: sampler;";

/// The greatest difference of a filter of hardware: weights of 8 bits along each axis and between levels, and texels of 8 bits in between.
fn precision(format: TextureFormat, image: &Image) -> f64 {
    let steps = if format == TextureFormat::Rgba8Unorm { 1.5 / 255.0 } else { 0.0 };
    3.0 * largest(image) / 256.0 + steps
}

#[test]
fn what_an_app_draws_is_sampled_where_it_lies() {
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 16, 8);
        let raw = app.texture(&descriptor, READ | DRAW);
        let pattern = |x: usize, y: usize| [(x * 13 % 64) as f64, (y * 29 % 32) as f64, (x * y % 50) as f64, 200.0];
        app.draw(
            "@fragment fn colour(@builtin(position) at: vec4f) -> @location(0) vec4f {
                let x = u32(at.x); let y = u32(at.y);
                return vec4f(f32(x * 13u % 64u), f32(y * 29u % 32u), f32(x * y % 50u), 200.0) / 255.0;
            }",
            None,
            &raw,
        );
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        assert_eq!((texture.descriptor(), texture.size()), (&descriptor, [16, 8, 1]));
        let texels = (0..16 * 8).map(|i| pattern(i % 16, i / 16).map(|value| value / 255.0)).collect();
        let image = Image { levels: vec![Level { size: [16, 8, 1], texels }], is_block: false };
        let before = app.engine.memory().in_use;
        for seed in 0..6 {
            let mut numbers = Random::new(seed);
            let sampler = super::sampler(&mut numbers);
            // Between eighths, so that no place is on an edge.
            let mut at = places(&mut numbers, [16.0, 8.0, 1.0], 0.0, 200);
            at.iter_mut().for_each(|at| (at[0], at[1]) = (at[0] + 1.0 / 256.0, at[1] + 1.0 / 128.0));
            let found = run(
                &app.engine,
                SAMPLED,
                "textureSampleLevel(t, smp, p.xy, 0.0)",
                &at,
                &[("t", &texture)],
                Some(&sampler),
            );
            for (place, found) in at.iter().zip(found) {
                let [x, y, ..] = place.map(f64::from);
                let expected = sample(&image, &sampler, [x, y, 0.0], 0, [0; 3], 0.0, None);
                let filter = if sampler.lod_min_clamp <= 0.0 { sampler.mag_filter } else { sampler.min_filter };
                let exact = filter == FilterMode::Nearest;
                let bound = if exact { ULP } else { precision(TextureFormat::Rgba8Unorm, &image) };
                close(&format!("{} {sampler:?} {place:?}", app.name), found, expected, bound);
            }
        }
        // Nothing was copied: no memory, no other kernel, no event.
        app.engine.trim();
        assert!(app.engine.memory().in_use <= before, "{}", app.name);
        let rows = app.engine.metrics();
        assert!(rows.iter().all(|row| row.operation == "main"), "{}: {rows:?}", app.name);
        assert_eq!(app.copies(), 0, "{}", app.name);
    }
}

#[test]
fn floats_and_levels_are_filtered_by_the_device() {
    for app in App::all(wgpu::Features::FLOAT32_FILTERABLE) {
        for seed in 0..12 {
            let format =
                [TextureFormat::Rgba8Unorm, TextureFormat::Rgba16Float, TextureFormat::R32Float][seed as usize % 3];
            let descriptor = TextureDescriptor::new_2d(format, 16, 8).with_levels(if seed % 4 == 0 { 1 } else { 4 });
            let (texture, image) = app.given(&descriptor, READ | OUT, seed + 1);
            let mut numbers = Random::new(seed + 70);
            let sampler = super::sampler(&mut numbers);
            let mut at = places(&mut numbers, [16.0, 8.0, 1.0], descriptor.levels as f32, 200);
            at.iter_mut().for_each(|at| {
                (at[0], at[1]) = (at[0] + 1.0 / 256.0, at[1] + 1.0 / 128.0);
                // Not where the nearest level changes.
                at[3] += 0.03;
            });
            let value = match seed % 2 {
                0 => "textureSampleLevel(t, smp, p.xy, p.w)",
                _ => "textureSampleLevel(t, smp, p.xy, p.w, vec2i(3, -5))",
            };
            let offset = if seed % 2 == 0 { [0; 3] } else { [3, -5, 0] };
            let found = run(&app.engine, SAMPLED, value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let [x, y, _, lod] = place.map(f64::from);
                let clamped = lod.clamp(f64::from(sampler.lod_min_clamp), f64::from(sampler.lod_max_clamp));
                if sampler.mipmap_filter == FilterMode::Nearest && clamped.fract() == 0.5 {
                    continue;
                }
                let expected = sample(&image, &sampler, [x, y, 0.0], 0, offset, lod, None);
                let context = format!("{} seed {seed} {format} {sampler:?} {place:?}", app.name);
                close(&context, found, expected, precision(format, &image));
            }
        }
    }
}

#[test]
fn an_app_draws_from_what_a_kernel_stored() {
    let text = "
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var made: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(4, 4) fn turn(@builtin(global_invocation_id) id: vec3u) {
            let size = textureDimensions(made);
            if all(id.xy < size) { textureStore(made, id.xy, textureLoad(image, size - 1u - id.xy, 0).bgra); }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 19, 11);
        let image = app.texture(&descriptor, READ | IN);
        let raw = app.texture(&descriptor, READ | STORE | OUT);
        let target = app.texture(&descriptor, DRAW | OUT);
        let given = app.engine.texture_from_wgpu(&image).unwrap();
        let made = app.engine.texture_from_wgpu(&raw).unwrap();
        // Each frame in the order of the queue, and nothing is waited for in between.
        for frame in 0..3_u8 {
            let bytes: Vec<u8> = (0..19 * 11 * 4).map(|i| ((i * 7 % 251) as u8).wrapping_add(frame * 40)).collect();
            app.write(&image, &descriptor, &bytes);
            let dispatch = app.engine.dispatch(&kernel).bind("image", &given).bind("made", &made);
            dispatch.invocations((19, 11)).run().unwrap();
            app.engine.flush();
            app.draw(
                "@group(0) @binding(0) var made: texture_2d<f32>;
                @fragment fn colour(@builtin(position) at: vec4f) -> @location(0) vec4f {
                    return 1.0 - textureLoad(made, vec2u(at.xy), 0);
                }",
                Some(&raw),
                &target,
            );
            let turned: Vec<u8> =
                bytes.chunks_exact(4).rev().flat_map(|texel| [texel[2], texel[1], texel[0], texel[3]]).collect();
            let drawn: Vec<u8> = turned.iter().map(|byte| 255 - byte).collect();
            assert!(app.read(&target) == drawn, "{}", app.name);
            assert!(app.read(&raw) == turned && made.to_bytes().unwrap() == turned, "{}", app.name);
        }
        assert_eq!(app.copies(), 0);
    }
}

#[test]
fn every_format_of_the_device_is_loaded_and_copied() {
    for app in App::all(wgpu::Features::TEXTURE_FORMAT_16BIT_NORM) {
        let mut tried = 0;
        for &raw_format in FORMATS {
            let format = TextureFormat::from_name(&name(raw_format)).unwrap();
            let features = raw_format.guaranteed_format_features(app.device.features());
            let is_offered = app.device.features().contains(raw_format.required_features());
            let usage = READ | OUT | IN;
            // Nobody writes to depth32float, and GL copies no depth.
            if !is_offered || !features.allowed_usages.contains(usage) || format.is_depth() {
                continue;
            }
            tried += 1;
            let descriptor = TextureDescriptor::new_2d(format, 5, 3).with_levels(2);
            let raw = app.texture_of(&descriptor, raw_format, usage);
            let (bytes, image) = random(&descriptor, &mut Random::new(tried));
            app.write(&raw, &descriptor, &bytes);
            let texture = app.engine.texture_from_wgpu(&raw).unwrap();
            let at: Vec<[f32; 4]> = (0..15).map(|i| [(i % 5) as f32, (i / 5) as f32, 0.0, 0.0]).collect();
            let variables = format!("@group(0) @binding(0) var t: texture_2d<{}>;", scalar(format));
            let found =
                run(&app.engine, &variables, "vec4f(textureLoad(t, vec2i(p.xy), 0))", &at, &[("t", &texture)], None);
            for (place, found) in at.iter().zip(found) {
                let expected = image.levels[0].texels[place[1] as usize * 5 + place[0] as usize];
                let bound = if format.is_srgb() { 1.0 / 255.0 } else { 2.0 * ULP * largest(&image).max(1.0) };
                close(&format!("{} {format} {place:?}", app.name), found, expected, bound);
            }
            if app.is_gl() && !features.allowed_usages.contains(DRAW) {
                super::misuse::says(texture.to_bytes(), "GL copies no cubes, no depths, and no formats");
                continue;
            }
            // The copies have the bytes themselves.
            let first = 15 * format.bytes() as usize;
            assert!(texture.to_bytes().unwrap() == bytes[..first], "{} {format}", app.name);
            assert!(texture.level(1).unwrap().to_bytes().unwrap() == bytes[first..], "{} {format}", app.name);
            let other: Vec<u8> = bytes[..first].iter().rev().copied().collect();
            texture.write(&other).unwrap();
            assert!(app.read(&raw) == other, "{} {format}", app.name);
            assert!(texture.level(1).unwrap().to_bytes().unwrap() == bytes[first..], "{} {format}", app.name);
        }
        assert!(tried >= 25, "{}: {tried} formats", app.name);
        assert_eq!(app.copies(), 0);
    }
}

#[test]
fn one_sampler_serves_a_texture_of_the_apps_and_one_of_the_engines() {
    let text = "
        @group(0) @binding(0) var<storage> at: array<vec4f>;
        @group(0) @binding(1) var app: texture_2d<f32>;
        @group(0) @binding(2) var own: texture_2d<f32>;
        @group(1) @binding(0) var smp: sampler;
        @group(1) @binding(1) var<storage, read_write> result: array<array<vec4f, 2>>;
        fn sampled(image: texture_2d<f32>, smp: sampler, at: vec2f) -> vec4f {
            return textureSampleLevel(image, smp, at, 0.0);
        }
        @compute @workgroup_size(32) fn both(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&at) {
                result[id.x] = array(sampled(app, smp, at[id.x].xy), sampled(own, smp, at[id.x].xy));
            }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 16, 8);
        let (given, image) = app.given(&descriptor, READ, 5);
        let (bytes, second) = random(&descriptor, &mut Random::new(6));
        let own = app.engine.texture_from_bytes(&descriptor, &bytes).unwrap();
        for sampler in
            [Sampler::linear().address(AddressMode::Repeat), Sampler::linear().address(AddressMode::MirrorRepeat)]
        {
            let mut at = places(&mut Random::new(9), [16.0, 8.0, 1.0], 0.0, 100);
            at.iter_mut().for_each(|at| (at[0], at[1]) = (at[0] + 1.0 / 256.0, at[1] + 1.0 / 128.0));
            let places = app.engine.tensor_from(at.as_flattened(), &[at.len(), 4]).unwrap();
            let result = app.engine.zeros::<f32>(&[at.len(), 8]).unwrap();
            let dispatch = app.engine.dispatch(&kernel).bind("at", &places).bind("result", &result);
            let dispatch = dispatch.bind("app", &given).bind("own", &own).bind("smp", sampler);
            dispatch.invocations(at.len()).run().unwrap();
            for (place, found) in at.iter().zip(result.to_vec::<f32>().unwrap().chunks_exact(8)) {
                let [x, y, ..] = place.map(f64::from);
                let expected = |image| sample(image, &sampler, [x, y, 0.0], 0, [0; 3], 0.0, None);
                let context = format!("{} {sampler:?} {place:?}", app.name);
                let bound = precision(TextureFormat::Rgba8Unorm, &image);
                close(&context, found[..4].try_into().unwrap(), expected(&image), bound);
                close(&context, found[4..].try_into().unwrap(), expected(&second), 4.0 * ULP);
            }
        }
        assert_eq!(app.copies(), 0, "{}: {:?}", app.name, app.engine.events());
    }
}

#[test]
fn views_of_levels_and_layers() {
    let text = "
        @group(0) @binding(0) var fine: texture_2d<f32>;
        @group(0) @binding(1) var coarse: texture_storage_2d<r32float, write>;
        @compute @workgroup_size(8, 8) fn halve(@builtin(global_invocation_id) id: vec3u) {
            if all(id.xy < textureDimensions(coarse)) {
                var sum = 0.0;
                for (var i = 0u; i < 4u; i++) { sum += textureLoad(fine, 2u * id.xy + vec2u(i % 2u, i / 2u), 0).x; }
                textureStore(coarse, id.xy, vec4f(sum));
            }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::R32Float, 16, 16).with_layers(3).with_all_levels();
        let raw = app.texture(&descriptor, READ | STORE | IN | OUT);
        let (bytes, image) = random(&descriptor, &mut Random::new(2));
        app.write(&raw, &descriptor, &bytes);
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        // Level n is read while n + 1 is written, in the second layer alone.
        let layer = texture.layers(1, 1).unwrap();
        for level in 1..descriptor.levels {
            let (fine, coarse) = (layer.level(level - 1).unwrap(), layer.level(level).unwrap());
            let [side, ..] = coarse.size();
            app.engine
                .dispatch(&kernel)
                .bind("fine", &fine)
                .bind("coarse", &coarse)
                .invocations((side, side))
                .run()
                .unwrap();
        }
        let mut above: Vec<f32> = image.levels[0].texels[256..512].iter().map(|texel| texel[0] as f32).collect();
        for level in 1..descriptor.levels {
            let side = descriptor.level_size(level)[0] as usize;
            let at = |x: usize, y: usize| above[y * 2 * side + x];
            let sum = |x: usize, y: usize| {
                at(2 * x, 2 * y) + at(2 * x + 1, 2 * y) + at(2 * x, 2 * y + 1) + at(2 * x + 1, 2 * y + 1)
            };
            let expected: Vec<f32> = (0..side * side).map(|i| sum(i % side, i / side)).collect();
            let found = layer.level(level).unwrap().to_array::<f32>().unwrap();
            assert!(found.iter().eq(&expected), "{} level {level}", app.name);
            let others = texture.level(level).unwrap().to_array::<f32>().unwrap();
            let first = others.iter().take(side * side);
            let given = image.levels[level as usize].texels[..side * side].iter().map(|texel| texel[0] as f32);
            assert!(first.copied().eq(given), "{} level {level}", app.name);
            above = expected;
        }
        // GL binds no layer of several to be read.
        assert_eq!(app.copies() > 0, app.is_gl(), "{}: {:?}", app.name, app.engine.events());
        let refused = app.engine.dispatch(&kernel).bind("fine", &layer).bind("coarse", layer.level(0).unwrap());
        super::misuse::says(
            refused.invocations(1).run(),
            "the same texels are bound to \"fine\", and one of the two is written",
        );
        if app.is_gl() {
            continue;
        }
        // The same by another handle.
        let again = app.engine.texture_from_wgpu(&raw).unwrap().layers(1, 1).unwrap();
        let refused = app.engine.dispatch(&kernel).bind("fine", &layer).bind("coarse", again.level(0).unwrap());
        super::misuse::says(
            refused.invocations(1).run(),
            "the same texels are bound to \"fine\", and one of the two is written",
        );
    }
}

#[test]
fn cubes_arrays_and_blocks_of_the_apps() {
    for app in App::all(wgpu::Features::empty()) {
        let format = TextureFormat::Rgba16Float;
        let cube = TextureDescriptor::new_2d(format, 8, 8).with_layers(6);
        let (texture, image) = app.given(&cube, READ, 3);
        let mut numbers = Random::new(4);
        let at: Vec<[f32; 4]> = (0..200)
            .map(|_| [0; 4].map(|_: i32| ((numbers.u64() >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.93 + 0.013))
            .collect();
        let variables = "@group(0) @binding(0) var t: texture_cube<f32>; @group(0) @binding(1) var smp: sampler;";
        let sampler = Sampler::linear();
        let found = run(
            &app.engine,
            variables,
            "textureSampleLevel(t, smp, p.xyz, 0.0)",
            &at,
            &[("t", &texture)],
            Some(&sampler),
        );
        for (place, found) in at.iter().zip(found) {
            let expected =
                sample_cube(&image.levels[0], FilterMode::Linear, [place[0], place[1], place[2]].map(f64::from), 0);
            // Corners are the device's own.
            let sides = [place[0], place[1], place[2]].map(f32::abs);
            let most = sides.iter().fold(0.0, |most: f32, side| most.max(*side));
            if sides.iter().filter(|side| **side > 0.87 * most).count() == 1 {
                close(&format!("{} {place:?}", app.name), found, expected, precision(format, &image));
            }
        }
        for (descriptor, dimension, value) in [
            (
                TextureDescriptor::new_2d(format, 8, 4).with_layers(3),
                "2d_array",
                "textureSampleLevel(t, smp, p.xy, i32(floor(p.z * 4.0)), 0.0)",
            ),
            (TextureDescriptor::new_3d(format, 8, 4, 4), "3d", "textureSampleLevel(t, smp, p.xyz, 0.0)"),
        ] {
            let (texture, image) = app.given(&descriptor, READ, 8);
            let mut at = places(&mut Random::new(7), [8.0, 4.0, 4.0], 0.0, 200);
            at.iter_mut().for_each(|at| at.iter_mut().for_each(|side| *side += 1.0 / 128.0));
            let variables = format!(
                "@group(0) @binding(0) var t: texture_{dimension}<f32>; @group(0) @binding(1) var smp: sampler;"
            );
            let found = run(&app.engine, &variables, value, &at, &[("t", &texture)], Some(&sampler));
            for (place, found) in at.iter().zip(found) {
                let [x, y, z, _] = place.map(f64::from);
                let layer = (z * 4.0).floor().clamp(0.0, 2.0) as usize;
                let z = if image.is_block { z } else { 0.0 };
                let expected = sample(&image, &sampler, [x, y, z], layer, [0; 3], 0.0, None);
                close(&format!("{} {dimension} {place:?}", app.name), found, expected, precision(format, &image));
            }
        }
        assert_eq!(app.copies(), 0, "{}: {:?}", app.name, app.engine.events());
    }
}

#[test]
fn depths_that_an_app_has_drawn() {
    let text = "
        @group(0) @binding(0) var depths: texture_depth_2d;
        @group(0) @binding(1) var nearer: sampler_comparison;
        @group(0) @binding(2) var<storage, read_write> result: array<vec2f>;
        @compute @workgroup_size(1) fn compare(@builtin(global_invocation_id) id: vec3u) {
            let at = (vec2f(id.xy) + 0.5) / vec2f(textureDimensions(depths));
            result[id.y * 4u + id.x] = vec2f(textureLoad(depths, id.xy, 0), textureSampleCompareLevel(depths, nearer, at, 0.5));
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Depth32Float, 4, 4);
        let raw = app.texture(&descriptor, READ | DRAW | OUT);
        for depth in [0.25_f32, 0.75] {
            let mut encoder = app.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let view = raw.create_view(&wgpu::TextureViewDescriptor::default());
            drop(encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                    view: &view,
                    depth_ops: Some(wgpu::Operations { load: wgpu::LoadOp::Clear(depth), store: wgpu::StoreOp::Store }),
                    stencil_ops: None,
                }),
                ..wgpu::RenderPassDescriptor::default()
            }));
            app.queue.submit([encoder.finish()]);
            let texture = app.engine.texture_from_wgpu(&raw).unwrap();
            let result = app.engine.zeros::<f32>(&[16, 2]).unwrap();
            let dispatch = app.engine.dispatch(&kernel).bind("depths", &texture).bind("result", &result);
            let ran =
                dispatch.bind("nearer", Sampler::nearest().compare(CompareFunction::Less)).workgroups((4, 4)).run();
            if app.is_gl() {
                // GLSL has no load of depths.
                super::misuse::says(ran, "GL copies no cubes, no depths, and no formats that it doesn't render to");
                continue;
            }
            ran.unwrap();
            let expected = [depth, if 0.5 < depth { 1.0 } else { 0.0 }].repeat(16);
            assert_eq!(result.to_vec::<f32>().unwrap(), expected, "{}", app.name);
        }
        assert_eq!(app.copies(), 0, "{}: {:?}", app.name, app.engine.events());
    }
}

#[test]
fn samples_that_an_app_has_drawn() {
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4).with_samples(4);
        let raw = app.texture(&descriptor, READ | DRAW);
        app.draw("@fragment fn colour() -> @location(0) vec4f { return vec4f(0.2, 0.4, 0.6, 1.0); }", None, &raw);
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        let at: Vec<[f32; 4]> = (0..64).map(|i| [(i % 4) as f32, (i / 4 % 4) as f32, (i / 16) as f32, 0.0]).collect();
        let variables = "@group(0) @binding(0) var t: texture_multisampled_2d<f32>;";
        super::misuse::says(
            texture.to_bytes(),
            "wgpu copies no texture of several samples (resolve it in a render pass)",
        );
        if app.is_gl() {
            let kernel =
                format!("{variables} @compute @workgroup_size(1) fn first() {{ _ = textureLoad(t, vec2u(), 0); }}");
            let kernel = Kernel::from_wgsl(&kernel).unwrap();
            let refused = app.engine.dispatch(&kernel).bind("t", &texture).workgroups(1).run();
            super::misuse::says(
                refused,
                "wgpu's GL binds no such part of it as a texture_multisampled_2d<f32>; a copy in its place: wgpu copies no",
            );
            continue;
        }
        let found = run(&app.engine, variables, "textureLoad(t, vec2u(p.xy), u32(p.z))", &at, &[("t", &texture)], None);
        for found in found {
            close(&app.name, found, [0.2, 0.4, 0.6, 1.0], ULP);
        }
    }
}

#[test]
fn what_the_device_lacks_runs_on_a_copy() {
    let text = "
        @group(0) @binding(0) var made: texture_storage_2d<rgba8unorm, read_write>;
        @compute @workgroup_size(4, 4) fn negative(@builtin(global_invocation_id) id: vec3u) {
            if all(id.xy < textureDimensions(made)) { textureStore(made, id.xy, 1.0 - textureLoad(made, id.xy)); }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 9, 7);
        let raw = app.texture(&descriptor, STORE | OUT | IN);
        let bytes: Vec<u8> = (0..9 * 7 * 4).map(|i| (i * 11 % 256) as u8).collect();
        app.write(&raw, &descriptor, &bytes);
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        app.engine.dispatch(&kernel).bind("made", &texture).invocations((9, 7)).run().unwrap();
        app.engine.flush();
        let expected: Vec<u8> = bytes.iter().map(|byte| 255 - byte).collect();
        assert!(app.read(&raw) == expected, "{}", app.name);
        let events = app.engine.events();
        let told = "negative runs on a copy of the app's texture 9 x 7 rgba8unorm: the app's device has no storage textures of rgba8unorm with read_write";
        assert!(events.iter().any(|event| event.message == told), "{}: {events:?}", app.name);

        // A filter of floats, exact in the engine's arithmetic.
        let descriptor = TextureDescriptor::new_2d(TextureFormat::R32Float, 16, 8);
        let (texture, image) = app.given(&descriptor, READ | OUT, 12);
        let before = app.copies();
        let sampler = Sampler::linear().address(AddressMode::Repeat);
        let at = places(&mut Random::new(3), [16.0, 8.0, 1.0], 0.0, 100);
        let found =
            run(&app.engine, SAMPLED, "textureSampleLevel(t, smp, p.xy, 0.0)", &at, &[("t", &texture)], Some(&sampler));
        for (place, found) in at.iter().zip(found) {
            let [x, y, ..] = place.map(f64::from);
            let expected = sample(&image, &sampler, [x, y, 0.0], 0, [0; 3], 0.0, None);
            close(&format!("{} {place:?}", app.name), found, expected, 4.0 * ULP * largest(&image));
        }
        assert_eq!(app.copies(), before + 1);
        // Nearest texels need no filter.
        run(
            &app.engine,
            SAMPLED,
            "textureSampleLevel(t, smp, p.xy, 0.0)",
            &at,
            &[("t", &texture)],
            Some(&Sampler::nearest()),
        );
        assert_eq!(app.copies(), before + 1);

        // Two samplers for one texture, which GL's shaders do not have.
        let (texture, image) = app.given(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 16, 8), READ | OUT, 13);
        let text = "
            @group(0) @binding(0) var t: texture_2d<f32>;
            @group(0) @binding(1) var one: sampler;
            @group(0) @binding(2) var other: sampler;
            @group(0) @binding(3) var<storage, read_write> result: array<vec4f, 2>;
            @compute @workgroup_size(1) fn twice() {
                result[0] = textureSampleLevel(t, one, vec2f(0.31, 0.3), 0.0);
                result[1] = textureSampleLevel(t, other, vec2f(0.31, 0.3), 0.0);
            }";
        let two = Kernel::from_wgsl(text).unwrap();
        for _ in 0..2 {
            let result = app.engine.zeros::<f32>(&[8]).unwrap();
            let dispatch = app.engine.dispatch(&two).bind("t", &texture).bind("result", &result);
            dispatch.bind("one", Sampler::linear()).bind("other", Sampler::nearest()).workgroups(1).run().unwrap();
            let result = result.to_vec::<f32>().unwrap();
            for (found, sampler) in result.chunks_exact(4).zip([Sampler::linear(), Sampler::nearest()]) {
                let expected =
                    sample(&image, &sampler, [f64::from(0.31_f32), f64::from(0.3_f32), 0.0], 0, [0; 3], 0.0, None);
                close(&app.name, found.try_into().unwrap(), expected, precision(TextureFormat::Rgba8Unorm, &image));
            }
        }
        assert_eq!(app.copies() > before + 1, app.is_gl(), "{}: {:?}", app.name, app.engine.events());
    }
}

#[test]
fn texels_of_an_apps_texture_are_a_tensor() {
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rg8Uint, 7, 5).with_layers(2).with_levels(3);
        let raw = app.texture(&descriptor, READ | IN | OUT);
        let (bytes, _) = random(&descriptor, &mut Random::new(21));
        app.write(&raw, &descriptor, &bytes);
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        let words: Vec<u32> =
            bytes.chunks_exact(2).map(|texel| u32::from(texel[0]) | u32::from(texel[1]) << 8).collect();
        let texels = texture.copied_texels().unwrap();
        assert_eq!(texels.to_vec::<u32>().unwrap(), words, "{}", app.name);
        // A copy: what the app writes later is not in it.
        app.write(&raw, &descriptor, &bytes.iter().map(|byte| !byte).collect::<Vec<u8>>());
        assert_eq!(texels.to_vec::<u32>().unwrap(), words, "{}", app.name);
        let array = texture.level(1).unwrap().layers(1, 1).unwrap().to_array::<u8>().unwrap();
        let start = 2 * 7 * 5 * 2 + 3 * 2 * 2;
        assert!(
            array.iter().eq(bytes[start..start + 12].iter().map(|byte| !byte).collect::<Vec<u8>>().iter()),
            "{}",
            app.name
        );
    }
}

#[test]
fn a_graph_reads_what_the_app_has_written_since() {
    let text = "
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var<storage, read_write> sum: array<f32, 1>;
        @compute @workgroup_size(1) fn total() {
            sum[0] = 0.0;
            for (var i = 0u; i < 16u; i++) { sum[0] += textureLoad(image, vec2u(i % 4u, i / 4u), 0).x; }
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let descriptor = TextureDescriptor::new_2d(TextureFormat::R32Float, 4, 4);
        let raw = app.texture(&descriptor, READ | IN);
        let texture = app.engine.texture_from_wgpu(&raw).unwrap();
        let sum = app.engine.zeros::<f32>(&[1]).unwrap();
        let record = || app.engine.dispatch(&kernel).bind("image", &texture).bind("sum", &sum).workgroups(1).run();
        let graph = app.engine.capture(|| record().map(|()| sum.clone())).unwrap();
        for number in [1.0_f32, 2.5] {
            app.write(&raw, &descriptor, bytemuck::cast_slice(&[number; 16]));
            graph.replay(&cantus::engine::GraphInputs::new()).unwrap();
            assert_eq!(sum.to_vec::<f32>().unwrap(), [16.0 * number], "{}", app.name);
        }
    }
}

#[test]
fn only_an_engine_on_the_apps_device_takes_its_textures() {
    let cpu = Engine::builder().backend("cpu").build().unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let raw = app.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4), READ);
        super::misuse::says(
            cpu.texture_from_wgpu(&raw),
            "is not the app's wgpu device (make the engine by Engine::from_wgpu)",
        );
    }
}

#[test]
fn mistakes_with_an_apps_texture_have_one_sentence() {
    use super::misuse::says;
    let kernel = Kernel::from_wgsl(super::misuse::TEXT).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let small = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4);
        let own = |usage| app.engine.texture_from_wgpu(&app.texture(&small, usage)).unwrap();
        let (image, made) = (own(READ), own(STORE));
        let dispatch = |image: &Texture, made: &Texture| {
            app.engine
                .dispatch(&kernel)
                .bind("image", image)
                .bind("smp", Sampler::linear())
                .bind("made", made)
                .workgroups(1)
                .run()
        };
        dispatch(&image, &made).unwrap();
        says(
            dispatch(&made, &own(STORE)),
            "binding \"image\": the app's texture has no usage TEXTURE_BINDING (name it in the descriptor",
        );
        says(dispatch(&image, &own(READ)), "binding \"made\": the app's texture has no usage STORAGE_BINDING (name it");
        says(image.to_bytes(), "the app's texture has no usage COPY_SRC (name it");
        says(own(READ | OUT).write(&[0; 64]), "the app's texture has no usage COPY_DST (name it");
        let floats = app.texture(&TextureDescriptor::new_2d(TextureFormat::R32Float, 4, 4), READ);
        let floats = app.engine.texture_from_wgpu(&floats).unwrap();
        says(
            dispatch(&floats, &made),
            "the app's device filters r32float only with the feature FLOAT32_FILTERABLE; a copy in its place: the app's texture has no usage COPY_SRC",
        );
        says(dispatch(&image, &floats), "declares rgba8unorm, the texture's texels are r32float");
        // A format without texels, another device of the same instance, and another engine.
        let strange = app.texture_of(&small, wgpu::TextureFormat::Depth24PlusStencil8, READ);
        says(app.engine.texture_from_wgpu(&strange), "its format depth24plusstencil8 has no texels that kernels read");
        let other = App::on(app.adapter.clone(), wgpu::Features::empty());
        let foreign = other.texture(&small, READ);
        says(app.engine.texture_from_wgpu(&foreign), "it is not of the device that the engine shares");
        let foreign = other.engine.texture_from_wgpu(&foreign).unwrap();
        assert!(dispatch(&foreign, &made).is_err());
        // Nothing of it reached the app's own handler, which would have panicked.
        dispatch(&image, &made).unwrap();
        app.engine.finish().unwrap();
    }
}

#[test]
fn a_lost_device_loses_what_it_would_have_written() {
    let kernel = Kernel::from_wgsl(super::misuse::TEXT).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let small = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 4, 4);
        let image = app.engine.texture_from_wgpu(&app.texture(&small, READ)).unwrap();
        let raw = app.texture(&small, STORE | OUT);
        let made = app.engine.texture_from_wgpu(&raw).unwrap();
        let dispatch = app.engine.dispatch(&kernel).bind("image", &image).bind("smp", Sampler::linear());
        dispatch.bind("made", &made).workgroups(1).run().unwrap();
        app.device.destroy();
        let lost = made.to_bytes().unwrap_err();
        assert!(matches!(lost, Error::TensorLost { .. } | Error::DeviceLost { .. }), "{}: {lost}", app.name);
        let lost = app.engine.texture_from_wgpu(&raw).unwrap_err();
        assert!(matches!(lost, Error::DeviceLost { .. }), "{}: {lost}", app.name);
    }
}

/// A backend whose one device is the app's.
struct Lent(wgpu::Device, wgpu::Queue);

impl Backend for Lent {
    fn name(&self) -> &str {
        "lent"
    }

    fn priority(&self) -> i32 {
        90
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        let device = from_device(self.0.clone(), self.1.clone(), &OpenOptions::new());
        Box::pin(async move { Probe::found(vec![DeviceInfo { priority: 90, ..device.info().clone() }]) })
    }

    fn open<'a>(
        &'a self,
        _: usize,
        options: &'a OpenOptions,
    ) -> BoxFuture<'a, cantus::Result<std::sync::Arc<dyn Device>>> {
        Box::pin(async move { Ok(from_device(self.0.clone(), self.1.clone(), options)) })
    }
}

#[test]
fn a_kernel_that_the_apps_device_refuses_runs_on_the_next_one() {
    let text = "
        enable f16;
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var made: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(1) fn half_of(@builtin(global_invocation_id) id: vec3u) {
            textureStore(made, id.xy, vec4f(vec4h(textureLoad(image, id.xy, 0)) * 0.5h));
        }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    for app in App::all(wgpu::Features::empty()) {
        let mut registry = Registry::empty();
        registry.register(std::sync::Arc::new(Lent(app.device.clone(), app.queue.clone())));
        registry.register(std::sync::Arc::new(CpuBackend::new()));
        let engine = Engine::builder().registry(registry).placement(false).without_cache().build().unwrap();
        assert!(engine.selected().device.name.contains("llvmpipe") || !app.name.contains("llvmpipe"));
        let descriptor = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 8, 4);
        let (raw, shown) = (app.texture(&descriptor, READ | IN | OUT), app.texture(&descriptor, STORE | OUT | IN));
        let bytes: Vec<u8> = (0..8 * 4 * 4).map(|i| (i * 2 % 256) as u8).collect();
        app.write(&raw, &descriptor, &bytes);
        let (image, made) = (engine.texture_from_wgpu(&raw).unwrap(), engine.texture_from_wgpu(&shown).unwrap());
        engine.dispatch(&kernel).bind("image", &image).bind("made", &made).workgroups((8, 4)).run().unwrap();
        engine.flush();
        for (found, byte) in app.read(&shown).into_iter().zip(&bytes) {
            // Halves have 11 bits.
            assert!((f64::from(found) - f64::from(*byte) / 2.0).abs() <= 0.57, "{}: {found} of {byte}", app.name);
        }
        let events = engine.events();
        let moved =
            events.iter().any(|event| event.kind == EventKind::FellBack && event.message.contains("copy of the app's"));
        assert!(moved && events.iter().any(|event| event.kind == EventKind::Moved), "{}: {events:?}", app.name);
        assert_eq!(made.device().backend, "wgpu");
    }
}
