//! Errors: each names what is wrong and the object, by its label, and leaves the device alive.

use wgpu::Features;

use super::Gpu;

const GOOD: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += 1; }";

/// The device still computes.
fn assert_alive(gpu: &Gpu) {
    let x = gpu.buffer(&[1; 4]);
    gpu.run(&gpu.pipeline(GOOD, &[]), &[x.as_entire_binding()], [1, 1, 1]);
    assert_eq!(gpu.words(&x), [2; 4]);
}

#[test]
fn wgpus_validation_holds() {
    let gpu = Gpu::ours(Features::empty());
    let text = gpu.error(|| {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE;
        let descriptor = wgpu::BufferDescriptor { label: Some("both"), size: 4, usage, mapped_at_creation: false };
        drop(gpu.device.create_buffer(&descriptor));
    });
    assert!(text.as_ref().is_some_and(|text| text.contains("both") && text.contains("MAP_READ")), "{text:?}");
    let text = gpu.error(|| drop(gpu.module("fn broken( {")));
    assert!(text.as_ref().is_some_and(|text| text.contains("expected")), "{text:?}");
    let pipeline = gpu.pipeline(GOOD, &[]);
    let x = gpu.buffer(&[0; 4]);
    let group = gpu.group(&pipeline, &[x.as_entire_binding()]);
    let text = gpu.error(|| {
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(70000, 1, 1);
        drop(pass);
        drop(encoder.finish());
    });
    assert!(text.as_ref().is_some_and(|text| text.contains("70000")), "{text:?}");
    // A binding whose buffer is gone.
    let mut encoder = gpu.encoder();
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(1, 1, 1);
    drop(pass);
    let commands = encoder.finish();
    x.destroy();
    let text = gpu.error(|| {
        gpu.queue.submit([commands]);
    });
    assert!(text.as_ref().is_some_and(|text| text.contains("destroyed")), "{text:?}");
    assert_alive(&gpu);
}

#[test]
fn overrides_without_a_value_are_refused() {
    let gpu = Gpu::ours(Features::empty());
    let text = "override size: u32; @compute @workgroup_size(size) fn main() {}";
    let text = gpu.error(|| drop(gpu.pipeline(text, &[])));
    assert!(text.as_ref().is_some_and(|text| text.contains("size") && text.contains("kernel")), "{text:?}");
    // A value that the kernel cannot have is the program's fault, not the device's.
    let text = "override n = 3; @compute @workgroup_size(n - 2) fn main() {}";
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    drop(gpu.pipeline(text, &[("n", 1.0)]));
    let error = pollster::block_on(scope.pop());
    assert!(matches!(error, Some(wgpu::Error::Validation { .. })), "{error:?}");
    assert_alive(&gpu);
}

#[test]
fn render_pipelines_are_refused_with_a_sentence() {
    let gpu = Gpu::ours(Features::empty());
    let module = gpu.module(
        "
        @vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f { return vec4f(f32(i)); }
        @fragment fn shade() -> @location(0) vec4f { return vec4f(1); }",
    );
    let text = gpu.error(|| {
        let _ = gpu.device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("triangle"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(wgpu::TextureFormat::Rgba8Unorm.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
    });
    let text = text.expect("it is refused");
    assert!(text.contains("triangle") && text.contains("runs compute pipelines only"), "{text}");
    assert_alive(&gpu);
}

/// The executor's refusals come when the pipeline is created, with the place in debug builds.
#[test]
fn what_is_too_large_is_refused() {
    let gpu = Gpu::ours(Features::empty());
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
            var table: array<u32, 100000>;
            table[id.x] = 1;
            x[0] = table[id.y];
        }";
    let text = gpu.error(|| drop(gpu.pipeline(text, &[]))).expect("it is refused");
    assert!(text.contains("table") && text.contains("use a storage buffer"), "{text}");
    assert_alive(&gpu);
}

/// Textures are lowered at the dispatch. A kernel that has one and cannot run is refused before, by the layout of the pipeline.
#[test]
fn kernels_with_textures_are_refused_as_early() {
    let gpu = Gpu::ours(Features::empty());
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<vec4f>;
        @group(0) @binding(1) var image: texture_2d<f32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
            var table: array<vec4f, 100000>;
            table[id.x] = textureLoad(image, id.xy, 0);
            x[0] = table[id.y];
        }";
    let text = gpu.error(|| drop(gpu.pipeline(text, &[]))).expect("it is refused");
    assert!(text.contains("table") && text.contains("use a storage buffer"), "{text}");
    assert_alive(&gpu);
}

#[test]
fn what_no_memory_holds_is_an_error() {
    let gpu = Gpu::ours(Features::empty());
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let usage = wgpu::BufferUsages::STORAGE;
    let size = 1 << 50;
    let descriptor = wgpu::BufferDescriptor { label: Some("huge"), size, usage, mapped_at_creation: false };
    drop(gpu.device.create_buffer(&descriptor));
    let text = pollster::block_on(scope.pop()).map(|error| error.to_string());
    assert!(text.as_ref().is_some_and(|text| text.contains("huge")), "{text:?}");
    assert_alive(&gpu);
}

/// The features and formats that the README of cantus-hal lists as missing.
#[test]
fn what_is_missing_is_not_offered() {
    let instance = cantus_wgpu::instance();
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    let missing = Features::PIPELINE_STATISTICS_QUERY
        | Features::PIPELINE_CACHE
        | Features::TEXTURE_COMPRESSION_BC
        | Features::TEXTURE_COMPRESSION_ETC2
        | Features::TEXTURE_COMPRESSION_ASTC
        | Features::TEXTURE_BINDING_ARRAY
        | Features::BUFFER_BINDING_ARRAY
        | Features::STORAGE_RESOURCE_BINDING_ARRAY
        | Features::EXTERNAL_TEXTURE
        | Features::TEXTURE_ATOMIC
        | Features::ADDRESS_MODE_CLAMP_TO_BORDER
        | Features::EXPERIMENTAL_COOPERATIVE_MATRIX
        | Features::EXPERIMENTAL_MESH_SHADER
        | Features::EXPERIMENTAL_RAY_QUERY;
    assert_eq!(adapter.features() & missing, Features::empty());
    assert!(adapter.cooperative_matrix_properties().is_empty());
    let gpu = Gpu::ours(Features::empty());
    for format in [wgpu::TextureFormat::Stencil8, wgpu::TextureFormat::Depth24PlusStencil8] {
        let text = gpu.error(|| {
            drop(gpu.device.create_texture(&wgpu::TextureDescriptor {
                label: Some("masks"),
                size: wgpu::Extent3d { width: 4, height: 4, depth_or_array_layers: 1 },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format,
                usage: wgpu::TextureUsages::TEXTURE_BINDING,
                view_formats: &[],
            }));
        });
        assert!(text.as_ref().is_some_and(|text| text.contains("masks")), "{format:?}: {text:?}");
    }
    assert_alive(&gpu);
}

#[test]
fn a_destroyed_device_says_so() {
    let gpu = Gpu::ours(Features::empty());
    let (sender, receiver) = std::sync::mpsc::channel();
    gpu.device.set_device_lost_callback(move |reason, _| {
        let _ = sender.send(reason);
    });
    gpu.device.destroy();
    let _ = gpu.device.poll(wgpu::PollType::wait_indefinitely());
    let reason = receiver.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    assert!(matches!(reason, wgpu::DeviceLostReason::Destroyed), "{reason:?}");
}
