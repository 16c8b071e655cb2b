//! An egui panel with a picture that Cantus computes for each frame, on the device that egui draws with.
//!
//! ```sh
//! cargo run -p cantus-egui -- panel.png
//! ```
//!
//! egui 0.37 and Cantus use wgpu 30, so both hold the same device: `Engine::from_wgpu`. The kernel stores into the texture that egui draws from:
//! nothing is copied, and nothing waits for the host until the last frame is read. There is no window: the panel is drawn into a texture. eframe gives
//! an app the same device and queue in `CreationContext::wgpu_render_state`.

use std::error::Error;
use std::path::PathBuf;

use cantus::Engine;
use egui_wgpu::{Renderer, RendererOptions, ScreenDescriptor};
use scene::{HEIGHT, Picture, Scene, WIDTH};

const SIZE: [u32; 2] = [320, 256];
const FRAMES: u8 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    // The app's own device.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;

    // Cantus on it.
    let engine = Engine::from_wgpu(device.clone(), queue.clone());
    let scene = Scene::new(&engine)?;

    let mut panel = Panel::new(device.clone(), queue.clone());
    let shown = engine.texture_from_wgpu(&panel.shown)?;
    let mut seconds = 0.0;
    for _ in 0..FRAMES {
        scene.paint(&shown, seconds)?;
        scene.draw(seconds)?;
        engine.flush(); // The app's commands come after it, in the order of the queue.
        panel.frame(&mut seconds);
        seconds += 1.0 / 30.0;
    }

    let picture = Picture { width: SIZE[0], bytes: panel.read()? };
    // By another way than the one drawn by: a buffer, read by the host.
    let difference = picture.difference(&scene.pixels.to_vec::<u32>()?, panel.corner);
    if let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) {
        picture.save(&path)?;
    }
    println!("{FRAMES} frames of egui on {}: bytes differ by at most {difference}", adapter.get_info().name);
    std::process::exit(i32::from(difference > 1));
}

struct Panel {
    device: wgpu::Device,
    queue: wgpu::Queue,
    context: egui::Context,
    renderer: Renderer,
    /// The texture that the kernel stores into.
    shown: wgpu::Texture,
    id: egui::TextureId,
    /// In place of a window.
    target: wgpu::Texture,
    /// Where the picture lies in the panel.
    corner: (u32, u32),
}

impl Panel {
    fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let texture = |[width, height]: [u32; 2], usage| {
            device.create_texture(&wgpu::TextureDescriptor {
                label: None,
                size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format: wgpu::TextureFormat::Rgba8Unorm,
                usage,
                view_formats: &[],
            })
        };
        let shown =
            texture([WIDTH, HEIGHT], wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::STORAGE_BINDING);
        let target = texture(SIZE, wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC);
        let mut renderer = Renderer::new(&device, target.format(), RendererOptions::PREDICTABLE);
        let view = shown.create_view(&wgpu::TextureViewDescriptor::default());
        let id = renderer.register_native_texture(&device, &view, wgpu::FilterMode::Nearest);
        Self { device, queue, context: egui::Context::default(), renderer, shown, id, target, corner: (0, 0) }
    }

    /// Draws a frame around the picture. The slider shows its moment.
    fn frame(&mut self, seconds: &mut f32) {
        let screen = egui::vec2(SIZE[0] as f32, SIZE[1] as f32);
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, screen)),
            ..egui::RawInput::default()
        };
        let (id, mut place) = (self.id, egui::Rect::ZERO);
        let mut output = self.context.run_ui(input, |ui| {
            egui::CentralPanel::default().show(ui, |ui| {
                ui.label("Computed by Cantus, drawn by egui");
                place = ui.image((id, egui::vec2(WIDTH as f32, HEIGHT as f32))).rect;
                ui.add(egui::Slider::new(seconds, 0.0..=5.0).text("seconds"));
            });
        });
        self.corner = (place.min.x.round() as u32, place.min.y.round() as u32);

        let Self { device, queue, renderer, .. } = self;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (id, changes) in &output.textures_delta.set {
            changes.iter().for_each(|change| renderer.update_texture(device, queue, *id, change));
        }
        let triangles = self.context.tessellate(output.shapes, 1.0);
        let screen = ScreenDescriptor { size_in_pixels: SIZE, pixels_per_point: 1.0 };
        renderer.update_buffers(device, queue, &mut encoder, &triangles, &screen);
        let view = self.target.create_view(&wgpu::TextureViewDescriptor::default());
        let pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations { load: wgpu::LoadOp::Clear(wgpu::Color::BLACK), store: wgpu::StoreOp::Store },
            })],
            ..wgpu::RenderPassDescriptor::default()
        });
        let mut pass = pass.forget_lifetime();
        renderer.render(&mut pass, &triangles, &screen);
        drop(pass);
        queue.submit([encoder.finish()]);
        for id in &output.textures_delta.free {
            renderer.free_texture(id);
        }
        output.textures_delta.clear();
    }

    fn read(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let row = 4 * SIZE[0];
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(row * SIZE[1]),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(row), rows_per_image: None };
        encoder.copy_texture_to_buffer(
            self.target.as_image_copy(),
            wgpu::TexelCopyBufferInfo { buffer: &staging, layout },
            self.target.size(),
        );
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(staging.get_mapped_range(..)?.to_vec())
    }
}
