//! Textures: copies, samples, stores and clears.

use wgpu::{Extent3d, Features, TextureDimension, TextureFormat, TextureUsages};

use super::{Gpu, both};

fn texture(gpu: &Gpu, format: TextureFormat, size: [u32; 3], levels: u32, usage: TextureUsages) -> wgpu::Texture {
    let [width, height, depth_or_array_layers] = size;
    gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: Extent3d { width, height, depth_or_array_layers },
        mip_level_count: levels,
        sample_count: 1,
        dimension: TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    })
}

const ALL: TextureUsages = TextureUsages::COPY_SRC.union(TextureUsages::COPY_DST).union(TextureUsages::TEXTURE_BINDING);

/// Writes texels without padding to a level.
fn write(gpu: &Gpu, texture: &wgpu::Texture, level: u32, layer: u32, bytes: &[u8]) {
    let size = texture.size().mip_level_size(level, TextureDimension::D2);
    let texel = texture.format().block_copy_size(None).unwrap();
    gpu.queue.write_texture(
        wgpu::TexelCopyTextureInfo {
            texture,
            mip_level: level,
            origin: wgpu::Origin3d { x: 0, y: 0, z: layer },
            aspect: wgpu::TextureAspect::All,
        },
        bytes,
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(size.width * texel), rows_per_image: None },
        Extent3d { depth_or_array_layers: 1, ..size },
    );
}

/// Reads a level of a layer, without padding.
fn read(gpu: &Gpu, texture: &wgpu::Texture, level: u32, layer: u32) -> Vec<u8> {
    let size = texture.size().mip_level_size(level, TextureDimension::D2);
    let row = size.width * texture.format().block_copy_size(None).unwrap();
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let bytes = u64::from(size.height) * 256;
    let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.encoder();
    encoder.copy_texture_to_buffer(
        wgpu::TexelCopyTextureInfo {
            texture,
            mip_level: level,
            origin: wgpu::Origin3d { x: 0, y: 0, z: layer },
            aspect: wgpu::TextureAspect::All,
        },
        wgpu::TexelCopyBufferInfo {
            buffer: &buffer,
            layout: wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(256), rows_per_image: None },
        },
        Extent3d { depth_or_array_layers: 1, ..size },
    );
    gpu.queue.submit([encoder.finish()]);
    gpu.bytes(&buffer).chunks(256).flat_map(|padded| padded[..row as usize].to_vec()).collect()
}

fn numbers(bytes: Vec<u8>) -> Vec<u32> {
    bytes.into_iter().map(u32::from).collect()
}

/// Texels of one byte to sixteen, in levels and layers, by buffers and from texture to texture.
#[test]
fn copies() {
    for format in [TextureFormat::R8Uint, TextureFormat::Rg8Unorm, TextureFormat::R32Float, TextureFormat::Rgba32Uint] {
        let texel = format.block_copy_size(None).unwrap() as usize;
        // Floats that are no numbers may change.
        let bytes = |count: usize, seed: usize| -> Vec<u8> {
            (0..count * texel).map(|i| (i * 7 + seed) as u8 & 0x3f).collect()
        };
        let (fine, coarse) = (bytes(8 * 6, 1), bytes(4 * 3, 2));
        let expected = numbers([fine.clone(), coarse.clone(), vec![0; 8 * 6 * texel]].concat());
        both(&format!("copies of {format:?}"), Features::empty(), &expected, |gpu| {
            let [source, target] = [(); 2].map(|()| texture(gpu, format, [8, 6, 3], 2, ALL));
            write(gpu, &source, 0, 2, &fine);
            write(gpu, &source, 1, 0, &coarse);
            let mut encoder = gpu.encoder();
            for level in 0..2 {
                let size = source.size().mip_level_size(level, TextureDimension::D2);
                encoder.copy_texture_to_texture(
                    wgpu::TexelCopyTextureInfo { mip_level: level, ..source.as_image_copy() },
                    wgpu::TexelCopyTextureInfo { mip_level: level, ..target.as_image_copy() },
                    size,
                );
            }
            gpu.queue.submit([encoder.finish()]);
            [read(gpu, &target, 0, 2), read(gpu, &target, 1, 0), read(gpu, &target, 0, 1)]
                .concat()
                .into_iter()
                .map(u32::from)
                .collect()
        });
    }
}

/// A region with an origin, between rows with padding.
#[test]
fn parts_of_textures() {
    let mut expected = vec![0; 64];
    for (y, x) in [(2, 3), (2, 4), (3, 3), (3, 4)] {
        expected[y * 8 + x] = ((y - 2) * 300 + x - 3) as u32 % 251;
    }
    both("parts of textures", Features::empty(), &expected, |gpu| {
        let image = texture(gpu, TextureFormat::R8Uint, [8, 8, 1], 1, ALL);
        let bytes: Vec<u8> = (0..600_u32).map(|i| (i % 251) as u8).collect();
        gpu.queue.write_texture(
            wgpu::TexelCopyTextureInfo { origin: wgpu::Origin3d { x: 3, y: 2, z: 0 }, ..image.as_image_copy() },
            &bytes,
            wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(300), rows_per_image: None },
            Extent3d { width: 2, height: 2, depth_or_array_layers: 1 },
        );
        numbers(read(gpu, &image, 0, 0))
    });
}

/// Samples between texels and levels of the second layer, and stores.
#[test]
fn samples_and_stores() {
    let text = "
        @group(0) @binding(0) var image: texture_2d_array<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var result: texture_storage_2d<rgba8unorm, write>;
        @group(0) @binding(3) var<storage, read_write> sizes: array<u32, 4>;
        @compute @workgroup_size(4, 1) fn main(@builtin(global_invocation_id) id: vec3u) {
            let uv = vec2f((f32(id.x) + 0.5) / 4, 0.5);
            textureStore(result, id.xy, textureSampleLevel(image, smp, uv, 1, f32(id.y)) + textureLoad(image, id.xy, 0, 0));
            sizes = array(textureDimensions(image, 1).x, textureNumLevels(image), textureNumLayers(image), textureDimensions(result).y);
        }";
    // The fine level is 0, 0, 200, 200 along x; the coarse one 100 throughout.
    let texels = |row: [u8; 4]| -> Vec<u8> { row.iter().flat_map(|&red| [red, 0, 0, 255]).collect() };
    let expected = [0, 0, 200, 200, 100, 100, 100, 100, 2, 2, 2, 2];
    both("samples and stores", Features::empty(), &expected, |gpu| {
        let image = texture(gpu, TextureFormat::Rgba8Unorm, [4, 2, 2], 2, ALL);
        write(gpu, &image, 0, 1, &texels([0, 0, 200, 200]).repeat(2));
        write(gpu, &image, 1, 1, &texels([100; 4])[..8]);
        let result = texture(gpu, TextureFormat::Rgba8Unorm, [4, 2, 1], 1, TextureUsages::STORAGE_BINDING | ALL);
        let sampler = gpu.device.create_sampler(&wgpu::SamplerDescriptor {
            mag_filter: wgpu::FilterMode::Nearest,
            min_filter: wgpu::FilterMode::Linear,
            mipmap_filter: wgpu::MipmapFilterMode::Linear,
            ..wgpu::SamplerDescriptor::default()
        });
        let view = |texture: &wgpu::Texture, dimension| {
            texture.create_view(&wgpu::TextureViewDescriptor { dimension: Some(dimension), ..Default::default() })
        };
        let sizes = gpu.buffer(&[0; 4]);
        let resources = [
            wgpu::BindingResource::TextureView(&view(&image, wgpu::TextureViewDimension::D2Array)),
            wgpu::BindingResource::Sampler(&sampler),
            wgpu::BindingResource::TextureView(&view(&result, wgpu::TextureViewDimension::D2)),
            sizes.as_entire_binding(),
        ];
        gpu.run(&gpu.pipeline(text, &[]), &resources, [1, 2, 1]);
        let reds = read(gpu, &result, 0, 0).into_iter().step_by(4).map(u32::from);
        reds.chain(gpu.words(&sizes)).collect()
    });
}

/// A view of one level and one layer, of another format, with two kinds of textures for one pipeline.
#[test]
fn views() {
    let text = "
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32, 4>;
        @compute @workgroup_size(1) fn main() {
            let size = textureDimensions(image);
            y = array(textureLoad(image, size - 1, 0).r * 255, f32(size.x), f32(textureNumLevels(image)), textureLoad(image, vec2u(), 0).g * 255);
        }";
    let expected = [7.0_f32, 2.0, 1.0, 6.0, 0.0, 4.0, 2.0, 0.0, 3.0, 4.0, 1.0, 0.0];
    both("views", Features::empty(), &expected.map(|value| value.round() as u32), |gpu| {
        let image = texture(gpu, TextureFormat::Rgba8Unorm, [4, 4, 3], 2, ALL);
        write(gpu, &image, 1, 2, &[1, 6, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0]);
        let single = texture(gpu, TextureFormat::R8Unorm, [4, 4, 1], 1, ALL);
        write(gpu, &single, 0, 0, &[&[9; 15][..], &[3]].concat());
        let pipeline = gpu.pipeline(text, &[]);
        let part = wgpu::TextureViewDescriptor {
            base_mip_level: 1,
            mip_level_count: Some(1),
            base_array_layer: 2,
            array_layer_count: Some(1),
            dimension: Some(wgpu::TextureViewDimension::D2),
            ..Default::default()
        };
        let first = wgpu::TextureViewDescriptor {
            array_layer_count: Some(1),
            dimension: Some(wgpu::TextureViewDimension::D2),
            ..Default::default()
        };
        let views = [image.create_view(&part), image.create_view(&first), single.create_view(&first)];
        let mut results = Vec::new();
        for view in &views {
            let y = gpu.buffer(&[0; 4]);
            let resources = [wgpu::BindingResource::TextureView(view), y.as_entire_binding()];
            gpu.run(&pipeline, &resources, [1, 1, 1]);
            results.extend(gpu.words(&y).into_iter().map(|word| f32::from_bits(word).round() as u32));
        }
        results
    });
}

/// Render passes without draws clear, and `clear_texture` does.
#[test]
fn clears() {
    let usage = ALL | TextureUsages::RENDER_ATTACHMENT;
    let expected = [[255, 128, 0, 64].repeat(4), [0; 16].to_vec()].concat();
    both("clears", Features::CLEAR_TEXTURE, &expected, |gpu| {
        let [image, cleared] = [(); 2].map(|()| texture(gpu, TextureFormat::Rgba8Unorm, [2, 2, 1], 1, usage));
        write(gpu, &cleared, 0, 0, &[9; 16]);
        let view = image.create_view(&wgpu::TextureViewDescriptor::default());
        let mut encoder = gpu.encoder();
        drop(encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color { r: 1.0, g: 0.502, b: -1.0, a: 0.25 }),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        }));
        encoder.clear_texture(&cleared, &wgpu::ImageSubresourceRange::default());
        gpu.queue.submit([encoder.finish()]);
        numbers([read(gpu, &image, 0, 0), read(gpu, &cleared, 0, 0)].concat())
    });
}

/// Zeros are read where a pass discards: wgpu-core clears by a pass of its own, without draws.
#[test]
fn discards() {
    let usage = TextureUsages::RENDER_ATTACHMENT | TextureUsages::COPY_SRC;
    both("discards", Features::empty(), &[[7; 16], [0; 16]].concat(), |gpu| {
        let pictures = [(); 2].map(|()| texture(gpu, TextureFormat::R8Uint, [4, 4, 1], 1, usage));
        let mut encoder = gpu.encoder();
        for (picture, store) in pictures.iter().zip([wgpu::StoreOp::Store, wgpu::StoreOp::Discard]) {
            let view = picture.create_view(&wgpu::TextureViewDescriptor::default());
            let load = wgpu::LoadOp::Clear(wgpu::Color { r: 7.0, g: 0.0, b: 0.0, a: 0.0 });
            drop(encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations { load, store },
                })],
                ..Default::default()
            }));
        }
        gpu.queue.submit([encoder.finish()]);
        numbers(pictures.iter().flat_map(|picture| read(gpu, picture, 0, 0)).collect())
    });
}

/// Depths, cleared by a pass and compared by a sampler.
#[test]
fn depths() {
    let text = "
        @group(0) @binding(0) var image: texture_depth_2d;
        @group(0) @binding(1) var smp: sampler_comparison;
        @group(0) @binding(2) var<storage, read_write> y: array<f32, 3>;
        @compute @workgroup_size(1) fn main() {
            y[0] = textureSampleCompareLevel(image, smp, vec2f(0.5), 0.25);
            y[1] = textureSampleCompareLevel(image, smp, vec2f(0.5), 0.75);
            y[2] = textureLoad(image, vec2u(1, 1), 0);
        }";
    let expected = [1.0_f32, 0.0, 0.5].map(f32::to_bits);
    both("depths", Features::empty(), &expected, |gpu| {
        let usage = TextureUsages::TEXTURE_BINDING | TextureUsages::RENDER_ATTACHMENT;
        let image = texture(gpu, TextureFormat::Depth32Float, [4, 4, 1], 1, usage);
        let view = image.create_view(&wgpu::TextureViewDescriptor::default());
        let sampler = gpu.device.create_sampler(&wgpu::SamplerDescriptor {
            compare: Some(wgpu::CompareFunction::LessEqual),
            ..wgpu::SamplerDescriptor::default()
        });
        let mut encoder = gpu.encoder();
        drop(encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                view: &view,
                depth_ops: Some(wgpu::Operations { load: wgpu::LoadOp::Clear(0.5), store: wgpu::StoreOp::Store }),
                stencil_ops: None,
            }),
            ..Default::default()
        }));
        gpu.queue.submit([encoder.finish()]);
        let y = gpu.buffer(&[0; 3]);
        let resources = [
            wgpu::BindingResource::TextureView(&view),
            wgpu::BindingResource::Sampler(&sampler),
            y.as_entire_binding(),
        ];
        gpu.run(&gpu.pipeline(text, &[]), &resources, [1, 1, 1]);
        gpu.words(&y)
    });
}
