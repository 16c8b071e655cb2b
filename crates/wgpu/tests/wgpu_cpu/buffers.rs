//! Buffers: offsets, indirect dispatches, immediates, mapping, copies, clears, and queries.

use wgpu::{BufferUsages, Features};

use super::{Gpu, both};

#[test]
fn dynamic_offsets() {
    let text = "
        struct Step { factor: u32, shift: u32 }
        @group(0) @binding(2) var<uniform> step: Step;
        @group(0) @binding(5) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = x[id.x] * step.factor + step.shift; }";
    // Each part of x has another step, one part has two.
    let x: Vec<u32> = (0..192).collect();
    let mut expected = x.clone();
    (0..4).for_each(|i| expected[i] = expected[i] * 2 + 1);
    (64..68).for_each(|i| expected[i] = (expected[i] * 3 + 5) * 2 + 1);
    both("dynamic offsets", Features::empty(), &expected, |gpu| {
        let entry = |binding, ty, size| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: true,
                min_binding_size: wgpu::BufferSize::new(size),
            },
            count: None,
        };
        // In another order than that of their numbers.
        let entries = [
            entry(5, wgpu::BufferBindingType::Storage { read_only: false }, 16),
            entry(2, wgpu::BufferBindingType::Uniform, 8),
        ];
        let layout =
            gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &gpu.module(text),
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let mut steps = vec![0; 128];
        steps[..2].copy_from_slice(&[2, 1]);
        steps[64..66].copy_from_slice(&[3, 5]);
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 512, usage, mapped_at_creation: false };
        let uniform = gpu.device.create_buffer(&descriptor);
        gpu.queue.write_buffer(&uniform, 0, bytemuck::cast_slice(&steps));
        let buffer = gpu.buffer(&x);
        let part = |buffer, size| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(size) })
        };
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &[
                wgpu::BindGroupEntry { binding: 2, resource: part(&uniform, 8) },
                wgpu::BindGroupEntry { binding: 5, resource: part(&buffer, 16) },
            ],
        });
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        for offsets in [[0, 0], [256, 256], [0, 256]] {
            pass.set_bind_group(0, &group, &offsets);
            pass.dispatch_workgroups(1, 1, 1);
        }
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
        gpu.words(&buffer)
    });
}

/// Numbers of workgroups that a kernel computes. Too large ones run none.
#[test]
fn indirect_dispatches() {
    let plan = "
        @group(0) @binding(0) var<storage, read_write> plan: array<u32>;
        @compute @workgroup_size(1) fn main() {
            plan[0] = 7; plan[1] = 3; plan[2] = 2; plan[3] = 1; plan[4] = 65536; plan[5] = 1; plan[6] = 1;
        }";
    let count = "
        @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>, 2>;
        @compute @workgroup_size(2) fn main(@builtin(num_workgroups) count: vec3u) {
            atomicAdd(&y[0], 1u);
            atomicMax(&y[1], count.x * 100 + count.y * 10 + count.z);
        }";
    both("indirect dispatches", Features::empty(), &[12, 321], |gpu| {
        let (planned, y) = (gpu.buffer(&[0; 8]), gpu.buffer(&[0; 2]));
        gpu.run(&gpu.pipeline(plan, &[]), &[planned.as_entire_binding()], [1, 1, 1]);
        let pipeline = gpu.pipeline(count, &[]);
        let group = gpu.group(&pipeline, &[y.as_entire_binding()]);
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        for offset in [4, 16] {
            pass.dispatch_workgroups_indirect(&planned, offset);
        }
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
        gpu.words(&y)
    });
}

#[test]
fn immediates() {
    let text = "
        struct Step { at: u32, value: vec2u }
        var<immediate> step: Step;
        @group(0) @binding(0) var<storage, read_write> y: array<vec2u>;
        @compute @workgroup_size(1) fn main() { y[step.at] = step.value; }";
    both("immediates", Features::IMMEDIATES, &[7, 8, 0, 0, 9, 8], |gpu| {
        let entries = [wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: false },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        }];
        let layout =
            gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 16,
        });
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &gpu.module(text),
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let y = gpu.buffer(&[0; 6]);
        let group = gpu.group(&pipeline, &[y.as_entire_binding()]);
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(&[0_u32, 0, 7, 8]));
        pass.dispatch_workgroups(1, 1, 1);
        // The other words stay.
        pass.set_immediates(0, bytemuck::cast_slice(&[2_u32]));
        pass.set_immediates(8, bytemuck::cast_slice(&[9_u32]));
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
        gpu.words(&y)
    });
}

#[test]
fn mapping() {
    both("mapping", Features::empty(), &[1, 2, 30, 40, 50, 6, 0, 0], |gpu| {
        let make = |usage, mapped_at_creation| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 32, usage, mapped_at_creation })
        };
        let staged = make(BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC, true);
        staged.get_mapped_range_mut(..24).unwrap().copy_from_slice(bytemuck::cast_slice(&[1_u32, 2, 3, 4, 5, 6]));
        staged.unmap();
        staged.map_async(wgpu::MapMode::Write, 8..24, |outcome| outcome.unwrap());
        gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        staged.get_mapped_range_mut(8..20).unwrap().copy_from_slice(bytemuck::cast_slice(&[30_u32, 40, 50]));
        staged.unmap();
        let target = make(BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST, false);
        let mut encoder = gpu.encoder();
        encoder.copy_buffer_to_buffer(&staged, 0, &target, 0, 24);
        gpu.queue.submit([encoder.finish()]);
        gpu.words(&target)
    });
}

/// A buffer that a kernel writes and the host maps, without a copy between.
#[test]
fn mapped_primary_buffers() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += id.x; }";
    both("mapped primary buffers", Features::MAPPABLE_PRIMARY_BUFFERS, &[10, 21, 32, 43], |gpu| {
        let usage = BufferUsages::STORAGE | BufferUsages::MAP_READ;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: true };
        let y = gpu.device.create_buffer(&descriptor);
        y.get_mapped_range_mut(..).unwrap().copy_from_slice(bytemuck::cast_slice(&[10_u32, 20, 30, 40]));
        y.unmap();
        gpu.run(&gpu.pipeline(text, &[]), &[y.as_entire_binding()], [1, 1, 1]);
        y.map_async(wgpu::MapMode::Read, .., |outcome| outcome.unwrap());
        gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        bytemuck::pod_collect_to_vec(&y.get_mapped_range(..).unwrap())
    });
}

/// Bytes that were never written are zero, and clears and writes are in order with kernels.
#[test]
fn writes_clears_and_copies() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += 1; }";
    both("writes and clears", Features::empty(), &[1, 102, 1, 0, 1, 103, 2, 2], |gpu| {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 32, usage, mapped_at_creation: false };
        let (x, y) = (gpu.device.create_buffer(&descriptor), gpu.device.create_buffer(&descriptor));
        let pipeline = gpu.pipeline(text, &[]);
        gpu.queue.write_buffer(&x, 4, bytemuck::cast_slice(&[101_u32]));
        gpu.run(&pipeline, &[x.as_entire_binding()], [1, 1, 1]);
        let mut encoder = gpu.encoder();
        encoder.copy_buffer_to_buffer(&x, 0, &y, 16, 16);
        encoder.copy_buffer_to_buffer(&x, 0, &y, 0, 16);
        gpu.queue.submit([encoder.finish()]);
        gpu.run(&pipeline, &[y.as_entire_binding()], [1, 1, 1]);
        let mut encoder = gpu.encoder();
        encoder.copy_buffer_to_buffer(&x, 0, &y, 0, 12);
        encoder.clear_buffer(&y, 12, Some(4));
        encoder.copy_buffer_to_buffer(&x, 0, &y, 16, 4);
        gpu.queue.submit([encoder.finish()]);
        gpu.words(&y)
    });
}

/// Timestamps of a pass, of an encoder, and of one query that was not written.
#[test]
fn timestamps() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            for (var i = 0u; i < 10000; i++) { y[id.x] = y[id.x] * 1664525 + 1013904223; }
        }";
    let features = Features::TIMESTAMP_QUERY | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
    both("timestamps", features, &[1; 4], |gpu| {
        let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 4,
        });
        let (pipeline, y) = (gpu.pipeline(text, &[]), gpu.buffer(&[1; 64]));
        let group = gpu.group(&pipeline, &[y.as_entire_binding()]);
        let mut encoder = gpu.encoder();
        let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
            query_set: &set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(2),
        });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        encoder.write_timestamp(&set, 3);
        let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 32, usage, mapped_at_creation: false };
        let resolved = gpu.device.create_buffer(&descriptor);
        encoder.resolve_query_set(&set, 0..4, &resolved, 0);
        gpu.queue.submit([encoder.finish()]);
        let [begin, none, end, after]: [u64; 4] =
            bytemuck::pod_collect_to_vec::<u8, u64>(&gpu.bytes(&resolved)).try_into().unwrap();
        let nanoseconds = (end - begin) as f64 * f64::from(gpu.queue.get_timestamp_period());
        let lasts = (1e3..1e11).contains(&nanoseconds);
        vec![begin > 0, none == 0 || !gpu.is_ours, lasts, after >= end].into_iter().map(u32::from).collect()
    });
}

/// A binding of a part of a buffer sees that part alone.
#[test]
fn parts_of_buffers() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> size: u32;
        @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = 9; size = arrayLength(&x); }";
    let mut expected = vec![0; 128];
    expected[64..67].fill(9);
    expected.push(3);
    let program = |gpu: &Gpu| {
        let (x, size) = (gpu.buffer(&[0; 128]), gpu.buffer(&[0]));
        let part = wgpu::BufferBinding { buffer: &x, offset: 256, size: wgpu::BufferSize::new(12) };
        let resources = [wgpu::BindingResource::Buffer(part), size.as_entire_binding()];
        gpu.run(&gpu.pipeline(text, &[]), &resources, [1, 1, 1]);
        [gpu.words(&x), gpu.words(&size)].concat()
    };
    // Devices may clamp an index instead: the last word is 9 as well then.
    both("parts of buffers", Features::empty(), &expected, program);
}
