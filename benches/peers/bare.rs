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
}

/// A kernel with its buffers.
pub struct BareKernel<'a> {
    bare: &'a Bare,
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    buffers: Vec<wgpu::Buffer>,
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
        let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffers: Vec<wgpu::Buffer> = resources
            .iter()
            .map(|resource| {
                let (contents, usage) = match resource {
                    Resource::Uniform(contents) => (contents, wgpu::BufferUsages::UNIFORM),
                    Resource::Storage(contents) => (contents, storage),
                    Resource::Zeros(size) => {
                        let (size, mapped_at_creation) = (*size, false);
                        let descriptor =
                            wgpu::BufferDescriptor { label: None, size, usage: storage, mapped_at_creation };
                        return self.device.create_buffer(&descriptor);
                    }
                };
                let descriptor = wgpu::util::BufferInitDescriptor { label: None, contents, usage };
                self.device.create_buffer_init(&descriptor)
            })
            .collect();
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffers[result].size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut kernel = BareKernel { bare: self, pipeline, group, buffers, staging };
        kernel.buffers.swap(0, result);
        kernel
    }
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
            encoder.copy_buffer_to_buffer(&self.buffers[0], 0, &self.staging, 0, None);
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
