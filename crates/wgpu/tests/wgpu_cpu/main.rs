//! Programs on plain wgpu. Each runs on the CPU device, and on wgpu's own adapter where this machine has one; both results are compared with what plain
//! Rust says.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod buffers;
mod choices;
mod errors;
mod kernels;
mod order;
mod textures;

use wgpu::util::DeviceExt;

/// A device of wgpu's.
struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    is_ours: bool,
}

impl Gpu {
    fn open(adapter: &wgpu::Adapter, features: wgpu::Features, is_ours: bool) -> Self {
        let required_limits = wgpu::Limits {
            max_immediate_size: if features.contains(wgpu::Features::IMMEDIATES) { 16 } else { 0 },
            ..wgpu::Limits::default()
        };
        let descriptor = wgpu::DeviceDescriptor {
            required_features: features,
            required_limits,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
        Self { device, queue, is_ours }
    }

    /// The CPU device, with the features.
    fn ours(features: wgpu::Features) -> Self {
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = pollster::block_on(cantus_wgpu::instance().request_adapter(&options)).unwrap();
        Self::open(&adapter, features, true)
    }

    /// The first adapter of wgpu's own with the features.
    fn other(features: wgpu::Features) -> Option<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let adapter = adapters.iter().find(|adapter| adapter.features().contains(features))?;
        Some(Self::open(adapter, features, false))
    }

    fn module(&self, text: &str) -> wgpu::ShaderModule {
        let source = wgpu::ShaderSource::Wgsl(text.into());
        self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source })
    }

    /// A pipeline of the only entry point, with a layout of its own.
    fn pipeline(&self, text: &str, constants: &[(&str, f64)]) -> wgpu::ComputePipeline {
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("kernel"),
            layout: None,
            module: &self.module(text),
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions { constants, ..Default::default() },
            cache: None,
        })
    }

    /// A storage buffer with contents.
    fn buffer(&self, words: &[u32]) -> wgpu::Buffer {
        self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: None,
            contents: bytemuck::cast_slice(words),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST
                | wgpu::BufferUsages::INDIRECT,
        })
    }

    /// A bind group of group 0: the resources from number 0 on.
    fn group(&self, pipeline: &wgpu::ComputePipeline, resources: &[wgpu::BindingResource<'_>]) -> wgpu::BindGroup {
        let numbered = (0..).zip(resources.iter().cloned());
        let entries: Vec<_> = numbered.map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
        let layout = pipeline.get_bind_group_layout(0);
        self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries })
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Runs a pipeline on the resources of group 0.
    fn run(&self, pipeline: &wgpu::ComputePipeline, resources: &[wgpu::BindingResource<'_>], workgroups: [u32; 3]) {
        let group = self.group(pipeline, resources);
        let mut encoder = self.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = workgroups;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }

    /// The bytes of a buffer after all that was submitted.
    fn bytes(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        let size = buffer.size();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let target = self.device.create_buffer(&descriptor);
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, size);
        self.queue.submit([encoder.finish()]);
        target.map_async(wgpu::MapMode::Read, .., |outcome| outcome.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        target.get_mapped_range(..).unwrap().to_vec()
    }

    fn words(&self, buffer: &wgpu::Buffer) -> Vec<u32> {
        bytemuck::pod_collect_to_vec(&self.bytes(buffer))
    }

    /// Runs work and returns the error that it has left in a scope of validation.
    fn error(&self, work: impl FnOnce()) -> Option<String> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        work();
        let internal = pollster::block_on(internal.pop());
        internal.or(pollster::block_on(scope.pop())).map(|error| error.to_string())
    }
}

/// Runs a program on both devices; both give what is expected.
fn both(name: &str, features: wgpu::Features, expected: &[u32], program: impl Fn(&Gpu) -> Vec<u32>) {
    assert_eq!(program(&Gpu::ours(features)), expected, "{name} on the CPU device");
    match Gpu::other(features) {
        Some(other) => assert_eq!(program(&other), expected, "{name} on wgpu's own adapter"),
        None => cantus_skips::not_run(name, "wgpu has no adapter of its own with the features, for comparison"),
    }
}

#[test]
fn the_adapter_says_what_it_is() {
    let instance = cantus_wgpu::instance();
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    let info = adapter.get_info();
    assert_eq!((info.device_type, info.backend), (wgpu::DeviceType::Cpu, wgpu::Backend::Noop));
    assert_eq!(info.name, "Cantus on the CPU");
    assert_eq!(pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all())).len(), 1);
    // SAFETY: nothing is done with it.
    let hal = unsafe { instance.as_hal::<cantus_hal::Api>() };
    assert!(hal.is_some());
    // It is no other backend's: who asks for Vulkan's objects gets none, wherever it asks.
    // SAFETY: there is nothing to do anything with.
    unsafe {
        assert!(instance.as_hal::<wgpu::hal::api::Vulkan>().is_none());
        assert!(adapter.as_hal::<wgpu::hal::api::Vulkan>().is_none());
        assert!(adapter.as_hal::<cantus_hal::Api>().is_some());
    }
    // It is its own fallback.
    let fallback = wgpu::RequestAdapterOptions { force_fallback_adapter: true, ..Default::default() };
    assert!(pollster::block_on(instance.request_adapter(&fallback)).is_ok());
    // All that is offered can be had at once.
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features(),
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    };
    assert!(pollster::block_on(adapter.request_device(&descriptor)).is_ok());
    assert!(wgpu::Limits::default().check_limits(&adapter.limits()));
}

/// Objects of the device are not those of Vulkan either, and no call panics.
#[test]
fn objects_are_of_no_other_backend() {
    type Other = wgpu::hal::api::Vulkan;
    let gpu = Gpu::ours(wgpu::Features::empty());
    let buffer = gpu.buffer(&[0; 4]);
    let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: 4, height: 4, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::R32Uint,
        usage: wgpu::TextureUsages::TEXTURE_BINDING,
        view_formats: &[],
    });
    let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
    // SAFETY: nothing is done with what our device has, and there is nothing of Vulkan's.
    unsafe {
        assert!(gpu.device.as_hal::<cantus_hal::Api>().is_some() && gpu.device.as_hal::<Other>().is_none());
        assert!(gpu.queue.as_hal::<cantus_hal::Api>().is_some() && gpu.queue.as_hal::<Other>().is_none());
        assert!(buffer.as_hal::<cantus_hal::Api>().is_some() && buffer.as_hal::<Other>().is_none());
        assert!(texture.as_hal::<cantus_hal::Api>().is_some() && texture.as_hal::<Other>().is_none());
        assert!(view.as_hal::<cantus_hal::Api>().is_some() && view.as_hal::<Other>().is_none());
        let mut encoder = gpu.encoder();
        assert!(encoder.as_hal_mut::<cantus_hal::Api, _, _>(|own| own.is_some()));
        assert!(encoder.as_hal_mut::<Other, _, _>(|other| other.is_none()));
    }
}

/// wgpu-hal's error for surfaces cannot be made outside of it: they exist, and no adapter is compatible with one.
#[test]
fn surfaces_show_nothing() {
    use wgpu::rwh::{RawDisplayHandle, RawWindowHandle, XlibDisplayHandle, XlibWindowHandle};
    let instance = cantus_wgpu::instance();
    let target = wgpu::SurfaceTargetUnsafe::RawHandle {
        raw_display_handle: Some(RawDisplayHandle::Xlib(XlibDisplayHandle::new(None, 0))),
        raw_window_handle: RawWindowHandle::Xlib(XlibWindowHandle::new(1)),
    };
    // SAFETY: the device looks at no handle.
    let surface = unsafe { instance.create_surface_unsafe(target) }.unwrap();
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    assert!(!adapter.is_surface_supported(&surface));
    assert!(surface.get_capabilities(&adapter).formats.is_empty());
    let options = wgpu::RequestAdapterOptions { compatible_surface: Some(&surface), ..Default::default() };
    assert!(pollster::block_on(instance.request_adapter(&options)).is_err());
}
