//! Bare wgpu: one target per adapter, with nothing of Cantus between. It answers "is it us, or the driver?".

use std::time::Duration;

use crate::case::{Case, Needs, Space};
use crate::device::{Failure, Target};

pub struct BareWgpu {
    info: wgpu::AdapterInfo,
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// Every adapter that opens.
pub fn targets() -> Vec<Box<dyn Target>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    adapters.iter().filter_map(BareWgpu::open).map(|t| Box::new(t) as Box<dyn Target>).collect()
}

impl BareWgpu {
    pub fn open(adapter: &wgpu::Adapter) -> Option<Self> {
        let wanted = wgpu::Features::SHADER_F16
            | wgpu::Features::SHADER_I16
            | wgpu::Features::SHADER_INT64
            | wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS
            | wgpu::Features::SHADER_INT64_ATOMIC_MIN_MAX
            | wgpu::Features::SHADER_FLOAT32_ATOMIC
            | wgpu::Features::SHADER_F64
            | wgpu::Features::SUBGROUP
            | wgpu::Features::SUBGROUP_BARRIER;
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("conformance"),
            required_features: adapter.features() & wanted,
            required_limits: adapter.limits(),
            ..Default::default()
        });
        let (device, queue) = pollster::block_on(request).ok()?;
        Some(Self { info: adapter.get_info(), device, queue })
    }
}

impl Target for BareWgpu {
    fn name(&self) -> String {
        format!("bare {} ({})", self.info.name, self.info.backend)
    }

    fn missing(&self, needs: &Needs) -> Option<String> {
        let features = self.device.features();
        let limits = self.device.limits();
        let wanted = [
            (needs.f16, wgpu::Features::SHADER_F16, "f16"),
            (needs.int16, wgpu::Features::SHADER_I16, "16-bit integers"),
            (needs.int64, wgpu::Features::SHADER_INT64, "64-bit integers"),
            (needs.int64_atomics, wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS, "64-bit atomics"),
            (needs.float_atomics, wgpu::Features::SHADER_FLOAT32_ATOMIC, "float32 atomics"),
            (needs.f64, wgpu::Features::SHADER_F64, "f64"),
            (needs.cooperative_matrix, wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, "cooperative matrices"),
            (needs.subgroups, wgpu::Features::SUBGROUP, "subgroup operations"),
            (needs.subgroup_barrier, wgpu::Features::SUBGROUP_BARRIER, "subgroupBarrier"),
        ];
        let lacking = wanted.iter().find(|(needed, feature, _)| *needed && !features.contains(*feature));
        if let Some((_, _, what)) = lacking {
            return Some(format!("the device has no {what}"));
        }
        let most = limits.max_compute_invocations_per_workgroup;
        (needs.invocations > most).then(|| format!("the device has at most {most} invocations in a workgroup"))
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failure> {
        let device = &self.device;
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let finals = self.record(case);
        if let Some(error) = pollster::block_on(scope.pop()) {
            return Err(error.into());
        }
        finals.into_iter().map(|buffer| self.read(&buffer)).collect()
    }
}

impl BareWgpu {
    /// Submits the case; the buffers that come back can be mapped once it is done.
    fn record(&self, case: &Case) -> Vec<wgpu::Buffer> {
        let device = &self.device;
        let (pipeline, group_layout) = self.pipeline(case);
        let buffer = |size: usize, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: size as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        let mut buffers = Vec::new();
        let mut reads = Vec::new();
        for binding in &case.bindings {
            let bytes = binding.initial.bytes();
            let usage = match binding.space {
                Space::Uniform => wgpu::BufferUsages::UNIFORM,
                Space::Read | Space::ReadWrite => wgpu::BufferUsages::STORAGE,
            };
            let inside = buffer(bytes.len(), usage | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST);
            self.queue.write_buffer(&inside, 0, &bytes);
            buffers.push(inside);
            reads.push(buffer(bytes.len(), wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST));
        }
        let entries: Vec<_> = (0_u32..)
            .zip(&buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: b.as_entire_binding() })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &group_layout,
            entries: &entries,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [x, y, z] = case.workgroups;
            pass.dispatch_workgroups(x, y, z);
        }
        for (inside, read) in buffers.iter().zip(&reads) {
            encoder.copy_buffer_to_buffer(inside, 0, read, 0, inside.size());
        }
        self.queue.submit([encoder.finish()]);
        for read in &reads {
            read.map_async(wgpu::MapMode::Read, .., |_| {});
        }
        reads
    }

    fn pipeline(&self, case: &Case) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout) {
        let device = &self.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&case.name),
            source: wgpu::ShaderSource::Wgsl(case.wgsl.as_str().into()),
        });
        let layout_entries: Vec<_> = (0_u32..)
            .zip(&case.bindings)
            .map(|(binding, b)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: match b.space {
                        Space::Uniform => wgpu::BufferBindingType::Uniform,
                        Space::Read => wgpu::BufferBindingType::Storage { read_only: true },
                        Space::ReadWrite => wgpu::BufferBindingType::Storage { read_only: false },
                    },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let group_layout =
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &layout_entries });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group_layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&case.name),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions { constants: &case.overrides, ..Default::default() },
            cache: None,
        });
        (pipeline, group_layout)
    }

    fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<u8>, Failure> {
        let patience = wgpu::PollType::Wait { submission_index: None, timeout: Some(Duration::from_secs(60)) };
        self.device.poll(patience)?;
        Ok(buffer.get_mapped_range(..)?.to_vec())
    }
}
