//! Bare wgpu: runs one compute kernel over plain bytes, with nothing of Cantus between.

use std::sync::OnceLock;
use std::time::Duration;

pub enum Binding<'a> {
    Uniform(&'a [u8]),
    Input(&'a [u8]),
    /// A zeroed buffer of this many bytes, which comes back.
    Output(u64),
}

pub struct Gpu {
    pub name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// Every adapter that opens. None is said, and is a failure where `CANTUS_REQUIRE_ADAPTER` is set.
pub fn all() -> &'static [Gpu] {
    static ALL: OnceLock<Vec<Gpu>> = OnceLock::new();
    ALL.get_or_init(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let gpus: Vec<Gpu> = adapters.iter().filter_map(Gpu::open).collect();
        if gpus.is_empty() {
            assert!(
                std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(),
                "an adapter is required, and wgpu finds none"
            );
            // Past the harness, which keeps what passing tests print.
            kit::not_run("shaders on adapters", "wgpu finds none on this machine");
        }
        gpus
    })
}

impl Gpu {
    fn open(adapter: &wgpu::Adapter) -> Option<Self> {
        let info = adapter.get_info();
        let request =
            adapter.request_device(&wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() });
        let (device, queue) = pollster::block_on(request).ok()?;
        Some(Self { name: format!("{} ({})", info.name, info.backend), device, queue })
    }

    /// Runs `entry_point` of `wgsl` with the bindings 0, 1, .. of group 0; the outputs come back in order.
    pub fn run(&self, wgsl: &str, entry_point: &str, bindings: &[Binding], workgroups: [u32; 3]) -> Vec<Vec<u8>> {
        let device = &self.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(entry_point),
            source: wgpu::ShaderSource::Wgsl(wgsl.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry_point),
            layout: None,
            module: &module,
            entry_point: Some(entry_point),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let buffer = |size: u64, usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let filled = |bytes: &[u8], usage| {
            let buffer = buffer(bytes.len() as u64, usage | wgpu::BufferUsages::COPY_DST);
            self.queue.write_buffer(&buffer, 0, bytes);
            buffer
        };
        let buffers: Vec<wgpu::Buffer> = bindings
            .iter()
            .map(|binding| match binding {
                Binding::Uniform(bytes) => filled(bytes, wgpu::BufferUsages::UNIFORM),
                Binding::Input(bytes) => filled(bytes, wgpu::BufferUsages::STORAGE),
                Binding::Output(size) => buffer(*size, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC),
            })
            .collect();
        let entries: Vec<_> = (0_u32..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [x, y, z] = workgroups;
            pass.dispatch_workgroups(x, y, z);
        }
        let outputs = buffers.iter().zip(bindings).filter(|(_, binding)| matches!(binding, Binding::Output(_)));
        let reads: Vec<wgpu::Buffer> = outputs
            .map(|(inside, _)| {
                let read = buffer(inside.size(), wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
                encoder.copy_buffer_to_buffer(inside, 0, &read, 0, inside.size());
                read
            })
            .collect();
        let submission = self.queue.submit([encoder.finish()]);
        for read in &reads {
            read.map_async(wgpu::MapMode::Read, .., |_| {});
        }
        let patience =
            wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(Duration::from_secs(300)) };
        device.poll(patience).expect("the device finishes within five minutes");
        reads.iter().map(|read| read.get_mapped_range(..).expect("mapped").to_vec()).collect()
    }
}
