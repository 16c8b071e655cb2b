//! Paints three scenes by Vello, on whichever wgpu device there is: `strangers-vello FOLDER`. FOLDER gets a picture of each.
//!
//! `render_to_texture` computes only: no pass draws. `strokes` has joins, caps, dashes and winding rules, `layers` gradients, blends and clips, and `crowd`
//! some thousands of curves, an image and blurred rectangles.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use vello::kurbo::{Affine, BezPath, Cap, Circle, Join, Point, Rect, RoundedRect, Stroke, Vec2};
use vello::peniko::{
    BlendMode, Blob, Color, Compose, Extend, Fill, Gradient, ImageAlphaType, ImageBrush, ImageData, ImageFormat, Mix,
    color::palette::css,
};
use vello::{AaConfig, AaSupport, RenderParams, Renderer, RendererOptions, Scene};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SIDE: u32 = 512;

/// A star of five points, which a pen draws without lifting.
fn star(center: Point, radius: f64) -> BezPath {
    let mut path = BezPath::new();
    for point in 0..5 {
        let at = center + radius * Vec2::from_angle(f64::from(point) * 0.8 * std::f64::consts::PI - 1.57);
        if point == 0 { path.move_to(at) } else { path.line_to(at) }
    }
    path.close_path();
    path
}

fn strokes() -> Scene {
    let mut scene = Scene::new();
    let mut path = BezPath::new();
    path.move_to((10.0, 50.0));
    path.line_to((60.0, 10.0));
    path.curve_to((70.0, 90.0), (120.0, 90.0), (120.0, 20.0));
    path.quad_to((150.0, 120.0), (90.0, 90.0));
    let (joins, caps) = ([Join::Bevel, Join::Miter, Join::Round], [Cap::Butt, Cap::Square, Cap::Round]);
    for (row, join) in joins.into_iter().enumerate() {
        for (column, cap) in caps.into_iter().enumerate() {
            let place = Affine::translate((170.0 * column as f64, 110.0 * row as f64));
            let stroke = Stroke::new(14.0).with_join(join).with_caps(cap);
            scene.stroke(&stroke, place, css::STEEL_BLUE, None, &path);
            let dashes = Stroke::new(2.0).with_dashes(3.0, [9.0, 4.0]);
            scene.stroke(&dashes, place, css::WHITE, None, &path);
        }
    }
    for (place, fill) in [Fill::NonZero, Fill::EvenOdd].into_iter().enumerate() {
        let center = Point::new(110.0 + 150.0 * place as f64, 425.0);
        scene.fill(fill, Affine::IDENTITY, css::GOLD, None, &star(center, 70.0));
    }
    scene.stroke(&Stroke::new(0.5), Affine::skew(0.3, 0.1), css::TOMATO, None, &Circle::new((290.0, 380.0), 45.0));
    scene
}

fn layers() -> Scene {
    let mut scene = Scene::new();
    let all = Rect::new(0.0, 0.0, f64::from(SIDE), f64::from(SIDE));
    let colors = [css::MIDNIGHT_BLUE, css::MEDIUM_ORCHID, css::PEACH_PUFF];
    scene.fill(
        Fill::NonZero,
        Affine::IDENTITY,
        &Gradient::new_linear((0.0, 0.0), (512.0, 512.0)).with_stops(colors),
        None,
        &all,
    );
    let mixes = [
        Mix::Normal,
        Mix::Multiply,
        Mix::Screen,
        Mix::Overlay,
        Mix::Darken,
        Mix::Lighten,
        Mix::ColorDodge,
        Mix::ColorBurn,
        Mix::HardLight,
        Mix::SoftLight,
        Mix::Difference,
        Mix::Exclusion,
        Mix::Hue,
        Mix::Saturation,
        Mix::Color,
        Mix::Luminosity,
    ];
    for (place, mix) in mixes.into_iter().enumerate() {
        let corner = Vec2::new((place % 4) as f64, (place / 4) as f64) * 126.0 + Vec2::new(10.0, 10.0);
        let tile = RoundedRect::new(0.0, 0.0, 114.0, 114.0, 20.0);
        let place = Affine::translate(corner);
        scene.push_layer(Fill::NonZero, BlendMode::new(mix, Compose::SrcOver), 0.9, place, &tile);
        let radial = Gradient::new_radial((40.0, 40.0), 30.0).with_extend(Extend::Reflect);
        scene.fill(Fill::NonZero, place, &radial.with_stops([css::CRIMSON, css::LIME]), None, &tile);
        let sweep = Gradient::new_sweep((75.0, 75.0), 0.5, 5.0).with_extend(Extend::Repeat);
        let sweep = sweep.with_stops([css::AQUA, css::BLACK, css::YELLOW]);
        scene.fill(Fill::NonZero, place, &sweep, None, &Circle::new((75.0, 75.0), 35.0));
        scene.pop_layer();
    }
    scene.push_clip_layer(Fill::EvenOdd, Affine::IDENTITY, &star(Point::new(256.0, 256.0), 200.0));
    scene.fill(Fill::NonZero, Affine::IDENTITY, Color::new([1.0, 1.0, 1.0, 0.5]), None, &all);
    scene.pop_layer();
    scene
}

fn crowd() -> Scene {
    let mut scene = Scene::new();
    let pixels = (0..64 * 64_u32).flat_map(|i| [(i % 64 * 4) as u8, (i / 64 * 4) as u8, (i % 13 * 19) as u8, 255]);
    let image = ImageData {
        data: Blob::new(Arc::new(pixels.collect::<Vec<u8>>())),
        format: ImageFormat::Rgba8,
        alpha_type: ImageAlphaType::Alpha,
        width: 64,
        height: 64,
    };
    scene.draw_image(&ImageBrush::new(image), Affine::rotate(0.3) * Affine::scale(6.0));
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    for place in 0..3000 {
        let mut point = || Point::new(512.0 * random(), 512.0 * random());
        let (a, b) = (point(), point());
        let near = |to: Point, from: Point| from + 0.15 * (to - from);
        let mut path = BezPath::new();
        path.move_to(a);
        path.curve_to(near(b, a), near(point(), a), near(point(), a));
        let color = Color::from_rgba8((random() * 255.0) as u8, (random() * 255.0) as u8, 160, 120);
        if place % 3 == 0 {
            scene.fill(Fill::NonZero, Affine::IDENTITY, color, None, &path);
        } else {
            scene.stroke(&Stroke::new(3.0 * random()), Affine::IDENTITY, color, None, &path);
        }
    }
    for place in 0..4 {
        let rect = Rect::new(0.0, 0.0, 90.0, 60.0);
        let at = Affine::translate((30.0 + 120.0 * f64::from(place), 400.0));
        scene.draw_blurred_rounded_rect(at, rect, css::BLACK, 12.0, 2.0 + 4.0 * f64::from(place));
    }
    scene
}

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).ok_or("the argument is a folder")?;
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends: wgpu::Backends::VULKAN, ..descriptor });
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;
    let begin = Instant::now();
    let options = RendererOptions { antialiasing_support: AaSupport::all(), ..RendererOptions::default() };
    let mut renderer = Renderer::new(&device, options)?;
    println!("{}: {:.1} s until the renderer is there", adapter.get_info().name, begin.elapsed().as_secs_f64());
    let size = wgpu::Extent3d { width: SIDE, height: SIDE, depth_or_array_layers: 1 };
    let target = device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    let view = target.create_view(&wgpu::TextureViewDescriptor::default());
    let scenes = [
        ("strokes", strokes(), AaConfig::Area),
        ("layers", layers(), AaConfig::Msaa16),
        ("crowd", crowd(), AaConfig::Msaa8),
    ];
    for (name, scene, antialiasing_method) in scenes {
        let params = RenderParams { base_color: css::DARK_SLATE_GRAY, width: SIDE, height: SIDE, antialiasing_method };
        let mut times = Vec::new();
        let mut pixels = Vec::new();
        for _ in 0..5 {
            let begin = Instant::now();
            renderer.render_to_texture(&device, &queue, &scene, &view, &params)?;
            pixels = read(&device, &queue, &target)?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        println!("{name}: {:.1} ms", times[times.len() / 2].as_secs_f64() * 1e3);
        save(&Path::new(&folder).join(format!("{name}.png")), &pixels)?;
    }
    Ok(())
}

/// The texture's pixels; a row has `4 * SIDE` bytes, a multiple of 256.
fn read(device: &wgpu::Device, queue: &wgpu::Queue, texture: &wgpu::Texture) -> Outcome<Vec<u8>> {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::from(4 * SIDE * SIDE),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * SIDE), rows_per_image: None };
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        wgpu::TexelCopyBufferInfo { buffer: &buffer, layout },
        texture.size(),
    );
    queue.submit([encoder.finish()]);
    buffer.slice(..).map_async(wgpu::MapMode::Read, |_| {});
    device.poll(wgpu::PollType::wait_indefinitely())?;
    Ok(buffer.slice(..).get_mapped_range()?.to_vec())
}

fn save(path: &Path, pixels: &[u8]) -> Outcome<()> {
    let mut encoder = png::Encoder::new(std::fs::File::create(path)?, SIDE, SIDE);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    Ok(encoder.write_header()?.write_image_data(pixels)?)
}
