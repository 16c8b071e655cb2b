//! Times of the CPU device beside those of wgpu's own adapter: fifteen kernels, turn by turn, and the time from the start of a process to its first result.
//!
//!     cargo run --release --locked -p cantus-wgpu --example beside [KERNEL]
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "an example")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const COUNT: u32 = 1 << 20;

/// A name, a kernel on `x` and `y` of `COUNT` floats and `n` of `COUNT` integers, and its workgroups of 64.
const KERNELS: [(&str, &str, u32); 15] = [
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
        "prefix sums in workgroups",
        "part[l] = x[i]; for (var step = 1u; step < 64; step *= 2) { workgroupBarrier(); var sum = part[l];
        if l >= step { sum += part[l - step]; } workgroupBarrier(); part[l] = sum; } y[i] = part[l];",
        COUNT / 64,
    ),
    (
        "points that escape",
        "var z = vec2f(); var n = 0.0; let c = vec2f(f32(i % 1024) / 400.0 - 2.0, f32(i / 1024) / 400.0 - 1.3);
        for (var k = 0; k < 100; k++) { z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c; if dot(z, z) > 4.0 { break; } n += 1.0; } y[i] = n;",
        COUNT / 64,
    ),
    (
        "heat on a grid",
        "let c = i % 1024; let r = i / 1024; let left = x[r * 1024 + max(c, 1u) - 1]; let right = x[r * 1024 + min(c + 1, 1023u)];
        let up = x[(max(r, 1u) - 1) * 1024 + c]; let down = x[min(r + 1, 1023u) * 1024 + c];
        y[i] = x[i] + 0.2 * (left + right + up + down - 4.0 * x[i]);",
        COUNT / 64,
    ),
    (
        "a filter of 15 taps",
        "var sum = 0.0; for (var k = 0u; k < 15; k++) { sum += x[min(i + k, 1048575u)] * (1.0 / f32(k + 1)); } y[i] = sum;",
        COUNT / 64,
    ),
    (
        "random numbers",
        "var s = i; var sum = 0.0; for (var k = 0; k < 8; k++) { s = s * 747796405u + 2891336453u;
        let w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u; sum += f32((w >> 22u) ^ w) * 2.3283064e-10; } y[i] = sum;",
        COUNT / 64,
    ),
    ("gathers", "y[i] = x[(i * 7919u + n[i]) % 1048576u];", COUNT / 64),
    ("a transposition", "y[(i % 1024) * 1024 + i / 1024] = x[i];", COUNT / 64),
    ("counts by atomics", "atomicAdd(&bins[u32(x[i] * 255.0) % 256u], 1u);", COUNT / 64),
    (
        "forces between 2048 bodies",
        "let p = vec3f(x[i], x[i + 2048], x[i + 4096]); var force = vec3f();
        for (var k = 0u; k < 2048; k++) { let d = vec3f(x[k], x[k + 2048], x[k + 4096]) - p; let r = dot(d, d) + 0.01; force += d * (inverseSqrt(r) / r); }
        y[i] = force.x + force.y + force.z;",
        2048 / 64,
    ),
    (
        "prices of options",
        "let s = 50.0 + 50.0 * x[i]; let d = (log(s / 70.0) + 0.045 * 0.5) / (0.3 * sqrt(0.5)); let k = 1.0 / (1.0 + 0.2316419 * abs(d));
        let w = 1.0 - 0.39894228 * exp(-0.5 * d * d) * k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
        y[i] = s * select(1.0 - w, w, d > 0.0);",
        COUNT / 64,
    ),
    (
        "sorting in workgroups",
        "part[l] = x[i]; for (var size = 2u; size <= 64; size *= 2) { for (var step = size / 2; step > 0; step /= 2) { workgroupBarrier();
        let other = l ^ step; if other > l { let a = part[l]; let b = part[other]; if (a > b) == ((l & size) == 0) { part[l] = b; part[other] = a; } } } }
        workgroupBarrier(); y[i] = part[l];",
        COUNT / 64,
    ),
];

struct Side {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    layout: wgpu::PipelineLayout,
    group: wgpu::BindGroup,
}

impl Side {
    /// Opens the first adapter, for arrays of `count` elements.
    fn new(instance: &wgpu::Instance, count: u32) -> Option<Self> {
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok()?;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffers = [count, count, count, 256].map(|count| {
            let size = u64::from(count) * 4;
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        });
        let floats: Vec<f32> = (0..count).map(|i| (i % 1000) as f32 / 1000.0).collect();
        queue.write_buffer(&buffers[0], 0, bytemuck::cast_slice(&floats));
        let numbers: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761) >> 12).collect();
        queue.write_buffer(&buffers[2], 0, bytemuck::cast_slice(&numbers));
        let entry = |binding: u32, read_only| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries = [entry(0, true), entry(1, false), entry(2, true), entry(3, false)];
        let layout =
            &device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(layout)],
            immediate_size: 0,
        });
        Some(Self { name: adapter.get_info().name, device, queue, layout, group })
    }

    fn pipeline(&self, body: &str) -> wgpu::ComputePipeline {
        let text = format!(
            "@group(0) @binding(0) var<storage> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            @group(0) @binding(2) var<storage> n: array<u32>;
            @group(0) @binding(3) var<storage, read_write> bins: array<atomic<u32>, 256>;
            var<workgroup> part: array<f32, 64>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) {{
                let i = id.x; {body}
            }}"
        );
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = &self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&self.layout),
            module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }

    /// The time of one dispatch, from the submission to its end.
    fn run(&self, pipeline: &wgpu::ComputePipeline, workgroups: u32) -> Duration {
        let begin = Instant::now();
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(workgroups, 1, 1);
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        begin.elapsed()
    }
}

fn own() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The time of a process that runs one kernel on that many elements, with Mesa's cache of shaders in a folder.
fn start(side: &str, count: u32, cache: &Path) -> Duration {
    // Mesa makes no folder within one that is missing.
    std::fs::create_dir_all(cache).unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap());
    let begin = Instant::now();
    assert!(process.args([side, &count.to_string()]).env("MESA_SHADER_CACHE_DIR", cache).status().unwrap().success());
    begin.elapsed()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [side, count] = &arguments[..] {
        let count = count.parse().unwrap();
        let side = Side::new(&if side == "ours" { cantus_wgpu::instance() } else { own() }, count).unwrap();
        side.run(&side.pipeline(KERNELS[1].1), count / 64);
        return;
    }
    let chosen = arguments.first();
    let ours = Side::new(&cantus_wgpu::instance(), COUNT).unwrap();
    let Some(other) = Side::new(&own(), COUNT) else {
        println!("wgpu has no adapter of its own here");
        return;
    };
    println!("| milliseconds | {} | {} | ratio |\n| --- | --- | --- | --- |", ours.name, other.name);
    let row = |name: &str, ours: Duration, other: Duration| {
        let ratio = ours.as_secs_f64() / other.as_secs_f64();
        println!("| {name} | {:.2} | {:.2} | {ratio:.2} |", milliseconds(ours), milliseconds(other));
        ratio
    };
    let mut ratios = Vec::new();
    for (name, body, workgroups) in KERNELS {
        if chosen.is_some_and(|chosen| chosen != name) {
            continue;
        }
        let mut both = [&ours, &other].map(|side| (side, side.pipeline(body), Vec::new()));
        for _ in 0..9 {
            for (side, pipeline, times) in &mut both {
                times.push(side.run(pipeline, workgroups));
            }
        }
        let [ours, other] = both.map(|(_, _, times)| median(times));
        ratios.push(row(name, ours, other));
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    if chosen.is_some() {
        return;
    }
    println!("| geometric mean | | | {mean:.2} |");

    let folder = std::env::temp_dir().join(format!("cantus-beside-{}", std::process::id()));
    let fresh = |round: u32| folder.join(round.to_string());
    for (what, count) in [("12 MiB", COUNT), ("12 KiB", 1024)] {
        let times = |side: &str| median((0..5).map(|round| start(side, count, &fresh(count + round))).collect());
        let ours = times("ours");
        row(&format!("start to the first result on {what}, caches empty"), ours, times("other"));
        row(&format!("start to the first result on {what}, caches warm"), ours, times("other"));
    }
    // What is left there is Mesa's.
    let _ = std::fs::remove_dir_all(folder);
}
