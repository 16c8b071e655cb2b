//! Sums on a device of wgpu's. Nothing here knows which.

use wgpu::util::DeviceExt;

/// A kernel, ready to run on a device.
pub struct Sums {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
}

impl Sums {
    pub fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let module = device.create_shader_module(wgpu::include_wgsl!("sums.wgsl"));
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("sums"),
            layout: None,
            module: &module,
            entry_point: Some("sum"),
            compilation_options: Default::default(),
            cache: None,
        });
        Self { device, queue, pipeline }
    }

    /// Returns the sum of each block of 64 numbers. The last block may be shorter.
    pub fn of(&self, numbers: &[u32]) -> Vec<u32> {
        let blocks = numbers.len().div_ceil(64) as u32;
        if blocks == 0 {
            return Vec::new();
        }
        let input = self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("numbers"),
            contents: bytemuck::cast_slice(numbers),
            usage: wgpu::BufferUsages::STORAGE,
        });
        let buffer = |label, usage| {
            let size = u64::from(blocks) * 4;
            self.device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
        };
        let output = buffer("sums", wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let read = buffer("read", wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
            ],
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(blocks, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&output, 0, &read, 0, output.size());
        self.queue.submit([encoder.finish()]);
        read.map_async(wgpu::MapMode::Read, .., |outcome| outcome.expect("the buffer is mapped"));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device answers");
        bytemuck::pod_collect_to_vec(&read.get_mapped_range(..).expect("it was mapped"))
    }
}
