//! The peer of the benches: bare wgpu, as a careful person would write it by hand for one kernel.
//!
//! One pipeline with its own layout, one bind group made once, one encoder and one pass per run, and a wait for its end.

use std::time::{Duration, Instant};

use pollster::block_on;
use wgpu::util::DeviceExt;

/// An opened adapter.
pub struct Bare {
    pub name: String,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
}

/// The resource for `@group(0) @binding(n)`, in the order of n.
pub enum Resource<'a> {
    /// A uniform's contents.
    Uniform(&'a [u8]),
    /// A storage buffer's first contents.
    Storage(&'a [u8]),
    /// A storage buffer of this many zeros.
    Zeros(u64),
    /// A sampled texture in `rgba8unorm`: width, height and texels.
    Image([u32; 2], &'a [u8]),
    /// A storage texture in `rgba8unorm`, of a width that is a multiple of 64.
    Target([u32; 2]),
    /// A sampler that filters and clamps.
    Linear,
}

enum Made {
    Buffer(wgpu::Buffer),
    Texture(wgpu::Texture, wgpu::TextureView),
    Sampler(wgpu::Sampler),
}

impl Made {
    fn binding(&self) -> wgpu::BindingResource<'_> {
        match self {
            Made::Buffer(buffer) => buffer.as_entire_binding(),
            Made::Texture(_, view) => wgpu::BindingResource::TextureView(view),
            Made::Sampler(sampler) => wgpu::BindingResource::Sampler(sampler),
        }
    }

    /// The size of what is read back, in bytes.
    fn bytes(&self) -> u64 {
        match self {
            Made::Buffer(buffer) => buffer.size(),
            Made::Texture(texture, _) => u64::from(texture.width()) * u64::from(texture.height()) * 4,
            Made::Sampler(_) => 0,
        }
    }
}

/// A kernel with its buffers.
pub struct BareKernel<'a> {
    bare: &'a Bare,
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    result: Made,
    staging: wgpu::Buffer,
}

impl Bare {
    /// Opens the first adapter whose name and API (as in `llvmpipe (LLVM 15.0.6, 256 bits) (Vulkan)`) contain `filter`, with all the
    /// features and limits it has.
    pub fn open(filter: &str) -> Option<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(descriptor);
        for api in [wgpu::Backends::VULKAN, wgpu::Backends::METAL, wgpu::Backends::DX12, wgpu::Backends::GL] {
            for adapter in block_on(instance.enumerate_adapters(api)) {
                let info = adapter.get_info();
                let api = match info.backend {
                    wgpu::Backend::Gl => "GL".to_owned(),
                    wgpu::Backend::Dx12 => "DX12".to_owned(),
                    other => format!("{other:?}"),
                };
                let name = format!("{} ({api})", info.name);
                if name.contains(filter) {
                    let descriptor = wgpu::DeviceDescriptor {
                        required_features: adapter.features() & !wgpu::Features::all_experimental_mask(),
                        required_limits: adapter.limits(),
                        ..wgpu::DeviceDescriptor::default()
                    };
                    let (device, queue) = block_on(adapter.request_device(&descriptor)).ok()?;
                    return Some(Self { name, device, queue });
                }
            }
        }
        None
    }

    /// Compiles a kernel and makes its buffers. `result` is the binding that [`BareKernel::read`] reads.
    pub fn kernel(&self, wgsl: &str, entry: &str, resources: &[Resource<'_>], result: usize) -> BareKernel<'_> {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(wgsl.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let mut made: Vec<Made> = resources.iter().map(|resource| self.make(resource)).collect();
        let entries: Vec<_> = (0..)
            .zip(&made)
            .map(|(binding, made)| wgpu::BindGroupEntry { binding, resource: made.binding() })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: made[result].bytes(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        BareKernel { bare: self, pipeline, group, result: made.swap_remove(result), staging }
    }

    fn make(&self, resource: &Resource<'_>) -> Made {
        let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let filled = |contents, usage| {
            let descriptor = wgpu::util::BufferInitDescriptor { label: None, contents, usage };
            Made::Buffer(self.device.create_buffer_init(&descriptor))
        };
        match resource {
            Resource::Uniform(contents) => filled(contents, wgpu::BufferUsages::UNIFORM),
            Resource::Storage(contents) => filled(contents, storage),
            Resource::Zeros(size) => {
                let (size, mapped_at_creation) = (*size, false);
                let descriptor = wgpu::BufferDescriptor { label: None, size, usage: storage, mapped_at_creation };
                Made::Buffer(self.device.create_buffer(&descriptor))
            }
            Resource::Image(size, texels) => {
                let descriptor = image(*size, wgpu::TextureUsages::TEXTURE_BINDING);
                viewed(self.device.create_texture_with_data(
                    &self.queue,
                    &descriptor,
                    wgpu::util::TextureDataOrder::LayerMajor,
                    texels,
                ))
            }
            Resource::Target(size) => {
                let usage = wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_SRC;
                viewed(self.device.create_texture(&image(*size, usage)))
            }
            Resource::Linear => Made::Sampler(self.device.create_sampler(&wgpu::SamplerDescriptor {
                mag_filter: wgpu::FilterMode::Linear,
                min_filter: wgpu::FilterMode::Linear,
                ..wgpu::SamplerDescriptor::default()
            })),
        }
    }
}

fn image([width, height]: [u32; 2], usage: wgpu::TextureUsages) -> wgpu::TextureDescriptor<'static> {
    wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage,
        view_formats: &[],
    }
}

fn viewed(texture: wgpu::Texture) -> Made {
    let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
    Made::Texture(texture, view)
}

impl BareKernel<'_> {
    /// Dispatches `times` times in one pass and submits, without waiting.
    fn submit(&self, workgroups: [u32; 3], times: u32, copy: bool) {
        let mut encoder = self.bare.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        for _ in 0..times {
            pass.dispatch_workgroups(workgroups[0], workgroups[1], workgroups[2]);
        }
        drop(pass);
        if copy {
            match &self.result {
                Made::Buffer(buffer) => encoder.copy_buffer_to_buffer(buffer, 0, &self.staging, 0, None),
                Made::Texture(texture, _) => encoder.copy_texture_to_buffer(
                    texture.as_image_copy(),
                    wgpu::TexelCopyBufferInfo {
                        buffer: &self.staging,
                        layout: wgpu::TexelCopyBufferLayout {
                            offset: 0,
                            bytes_per_row: Some(texture.width() * 4),
                            rows_per_image: None,
                        },
                    },
                    texture.size(),
                ),
                Made::Sampler(_) => {}
            }
        }
        self.bare.queue.submit([encoder.finish()]);
    }

    fn wait(&self) {
        self.bare.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device answers");
    }

    /// The time of `times` dispatches in one pass, from the first call to the end of the work.
    pub fn run(&self, workgroups: [u32; 3], times: u32) -> Duration {
        let start = Instant::now();
        self.submit(workgroups, times, false);
        self.wait();
        start.elapsed()
    }

    /// As [`BareKernel::run`], with the result read into `into`: the time until the submission returns, and until the end.
    pub fn run_and_read(&self, workgroups: [u32; 3], times: u32, into: &mut [u8]) -> (Duration, Duration) {
        let start = Instant::now();
        self.submit(workgroups, times, true);
        let submitted = start.elapsed();
        self.staging.map_async(wgpu::MapMode::Read, .., |result| result.expect("maps"));
        self.wait();
        into.copy_from_slice(&self.staging.get_mapped_range(..).expect("is mapped"));
        self.staging.unmap();
        (submitted, start.elapsed())
    }
}
