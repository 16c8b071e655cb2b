//! Times of the CPU device beside those of wgpu's own adapter: the start to the first result, and a few kernels, turn by turn.
#![expect(clippy::unwrap_used, reason = "an example")]

use std::time::{Duration, Instant};

const COUNT: u32 = 1 << 20;

/// A name, a kernel on `x` and `y` of `COUNT` floats, and its workgroups of 64.
const KERNELS: [(&str, &str, u32); 5] = [
    ("a line", "y[i] = 2.0 * x[i] + y[i];", COUNT / 64),
    ("waves", "y[i] = sin(x[i]) * cos(x[i] * 3.0) + exp(-x[i]);", COUNT / 64),
    (
        "a product of matrices, 512",
        "let row = i / 512; let column = i % 512; var sum = 0.0;
        for (var k = 0u; k < 512; k++) { sum += x[row * 512 + k] * x[k * 512 + column]; } y[i] = sum;",
        512 * 512 / 64,
    ),
    (
        "sums in workgroups",
        "part[l] = x[i]; for (var step = 32u; step > 0; step /= 2) { workgroupBarrier(); if l < step { part[l] += part[l + step]; } }
        if l == 0 { y[i / 64] = part[0]; }",
        COUNT / 64,
    ),
    (
        "points that escape",
        "var z = vec2f(); var n = 0.0; let c = vec2f(f32(i % 1024) / 400.0 - 2.0, f32(i / 1024) / 400.0 - 1.3);
        for (var k = 0; k < 100; k++) { z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c; if dot(z, z) > 4.0 { break; } n += 1.0; } y[i] = n;",
        COUNT / 64,
    ),
];

struct Side {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    x: wgpu::Buffer,
    y: wgpu::Buffer,
    start: Duration,
}

impl Side {
    /// Opens the first adapter, and runs a first kernel.
    fn new(instance: impl FnOnce() -> wgpu::Instance) -> Option<Self> {
        let begin = Instant::now();
        let instance = instance();
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok()?;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = u64::from(COUNT) * 4;
        let make =
            || device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let (x, y) = (make(), make());
        let mut side = Self { name: adapter.get_info().name, device, queue, x, y, start: Duration::ZERO };
        let floats: Vec<f32> = (0..COUNT).map(|i| (i % 1000) as f32 / 1000.0).collect();
        side.queue.write_buffer(&side.x, 0, bytemuck::cast_slice(&floats));
        side.run(&side.pipeline(KERNELS[0].1), KERNELS[0].2);
        side.start = begin.elapsed();
        Some(side)
    }

    fn pipeline(&self, body: &str) -> wgpu::ComputePipeline {
        let text = format!(
            "@group(0) @binding(0) var<storage> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            var<workgroup> part: array<f32, 64>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) {{
                let i = id.x; _ = x[i] + f32(l); {body}
            }}"
        );
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = &self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }

    /// The time of one dispatch, from the submission to its end.
    fn run(&self, pipeline: &wgpu::ComputePipeline, workgroups: u32) -> Duration {
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: self.x.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: self.y.as_entire_binding() },
            ],
        });
        let begin = Instant::now();
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(workgroups, 1, 1);
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        begin.elapsed()
    }
}

fn main() {
    let own = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Some(ours) = Side::new(cantus_wgpu::instance) else { return };
    let Some(other) = Side::new(own) else {
        println!("wgpu has no adapter of its own here");
        return;
    };
    println!("milliseconds: {} | {} | their ratio", ours.name, other.name);
    let row = |name: &str, ours: Duration, other: Duration| {
        let of = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{name}: {:.2} | {:.2} | {:.2}", of(ours), of(other), of(ours) / of(other));
    };
    row("start to the first result", ours.start, other.start);
    for (name, body, workgroups) in KERNELS {
        let mut both = [&ours, &other].map(|side| (side, side.pipeline(body), Vec::new()));
        for _ in 0..7 {
            for (side, pipeline, times) in &mut both {
                times.push(side.run(pipeline, workgroups));
            }
        }
        let [ours, other] = both.map(|(_, _, mut times)| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        row(name, ours, other);
    }
}
