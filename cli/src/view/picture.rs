//! Draws the picture: a render pipeline of its own inside of egui's pass, whose fragment shader reads the values from the buffer where
//! they are. Computes nothing.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cantus::Tensor;
use eframe::egui_wgpu::{CallbackResources, CallbackTrait, RenderState, ScreenDescriptor};
use eframe::{egui, wgpu};

use crate::colormap::{COLORS, Colormap};
use crate::parse::Size;
use crate::view::source::Pixels;

/// Values on the device that draws.
#[derive(Debug, Clone)]
pub struct Drawable {
    /// Holds the pixels of all rows from its first byte on; may be longer.
    pub buffer: wgpu::Buffer,
    /// Columns and rows.
    pub size: Size,
    pub pixels: Pixels,
    /// Keeps the buffer from being written again while it is drawn.
    pub _held: Held,
}

/// The owner of the buffer.
#[derive(Debug, Clone)]
pub enum Held {
    /// A tensor's own: drawn without a copy.
    Tensor(#[expect(dead_code, reason = "held, not read")] Tensor),
    /// A copy's, free again when nobody holds the token.
    Copy(#[expect(dead_code, reason = "held, not read")] Arc<()>),
}

/// One drawing of a picture into a rectangle of the window.
pub struct Drawing {
    pub values: Drawable,
    pub map: Colormap,
    /// The values of the first and the last colour.
    pub range: (f32, f32),
    /// Mix neighbouring values instead of taking the nearest.
    pub smooth: bool,
    /// The place of the picture, in points.
    pub place: egui::Rect,
}

/// The uniform of `picture.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Parameters {
    origin: [f32; 2],
    scale: [f32; 2],
    size: [u32; 2],
    low: f32,
    gain: f32,
    smoothly: u32,
    linear: u32,
    pixels: u32,
    padding: u32,
}

/// The pipeline with what it reads, kept among egui's resources.
struct Painter {
    pipeline: wgpu::RenderPipeline,
    parameters: wgpu::Buffer,
    colors: wgpu::Buffer,
    linear: bool,
    map: Option<Colormap>,
    group: Option<(wgpu::Buffer, u64, wgpu::BindGroup)>,
}

/// Makes the pipeline for a window.
pub fn install(state: &RenderState) {
    let painter = Painter::new(&state.device, state.target_format);
    state.renderer.write().callback_resources.insert(painter);
}

impl Painter {
    fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Self {
        let module = device.create_shader_module(wgpu::include_wgsl!("picture.wgsl"));
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("picture"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("pixel"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(format.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        let buffer = |label, size: usize, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: size as u64,
                usage: usage | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        Self {
            pipeline,
            parameters: buffer("picture", size_of::<Parameters>(), wgpu::BufferUsages::UNIFORM),
            colors: buffer("colours", COLORS * 4, wgpu::BufferUsages::STORAGE),
            linear: format.is_srgb(),
            map: None,
            group: None,
        }
    }

    fn prepare(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, drawing: &Drawing, pixels_per_point: f32) {
        let Drawable { buffer, size, pixels: kind, .. } = &drawing.values;
        let (low, high) = drawing.range;
        let pixels = drawing.place * pixels_per_point;
        let sides = [size.width as u32, size.height as u32];
        let parameters = Parameters {
            origin: pixels.min.into(),
            scale: [sides[0] as f32 / pixels.width(), sides[1] as f32 / pixels.height()],
            size: sides,
            low,
            // In float64: `high - low` may overflow float32.
            gain: (COLORS as f64 / (f64::from(high) - f64::from(low))) as f32,
            smoothly: drawing.smooth.into(),
            linear: self.linear.into(),
            // As `picture.wgsl` counts them.
            pixels: match kind {
                Pixels::F32 => 0,
                Pixels::U32 => 1,
                Pixels::I32 => 2,
                Pixels::Rgba => 3,
                Pixels::Halves => 4,
                Pixels::Bytes => 5,
                Pixels::Bgra => 6,
            },
            padding: 0,
        };
        queue.write_buffer(&self.parameters, 0, bytemuck::bytes_of(&parameters));
        if self.map != Some(drawing.map) {
            self.map = Some(drawing.map);
            let colors: Vec<[u8; 4]> = drawing.map.palette().iter().map(|&[r, g, b]| [r, g, b, 255]).collect();
            queue.write_buffer(&self.colors, 0, bytemuck::cast_slice(&colors));
        }
        let bytes = size.width as u64 * size.height as u64 * kind.bytes() as u64;
        if self.group.as_ref().is_none_or(|(bound, bound_bytes, _)| bound != buffer || *bound_bytes != bytes) {
            let values = wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(bytes) };
            let resources = [
                self.parameters.as_entire_binding(),
                self.colors.as_entire_binding(),
                wgpu::BindingResource::Buffer(values),
            ];
            let entries: Vec<wgpu::BindGroupEntry<'_>> =
                (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
            let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("picture"),
                layout: &self.pipeline.get_bind_group_layout(0),
                entries: &entries,
            });
            self.group = Some((buffer.clone(), bytes, group));
        }
    }
}

impl CallbackTrait for Drawing {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        screen: &ScreenDescriptor,
        _encoder: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(painter) = resources.get_mut::<Painter>() {
            painter.prepare(device, queue, self, screen.pixels_per_point);
        }
        Vec::new()
    }

    fn paint(
        &self,
        _info: egui::PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        if let Some(painter) = resources.get::<Painter>()
            && let Some((_, _, group)) = &painter.group
        {
            pass.set_pipeline(&painter.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}
