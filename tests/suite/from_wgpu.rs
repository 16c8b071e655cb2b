//! An app's own wgpu device, handed to an engine: the app uses the tensor's buffer with its own queue, without a copy to the host.

use cantus::{DType, Engine, Error, Kernel};
use wgpu::BufferUsages;

/// An adapter for the app, if the machine has one.
fn adapter() -> Option<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok();
    if adapter.is_none() {
        assert!(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(), "an adapter is required");
        kit::not_run("a device of the app's", "there is no adapter");
    }
    adapter
}

/// A device of the app's.
fn device(adapter: &wgpu::Adapter) -> (wgpu::Device, wgpu::Queue) {
    pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap()
}

/// A buffer of the app's.
fn buffer(device: &wgpu::Device, size: u64, usage: BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}

/// The words of a buffer, as the app reads them.
fn read((device, queue): &(wgpu::Device, wgpu::Queue), from: &wgpu::Buffer, words: u64) -> Vec<u32> {
    let staging = buffer(device, 4 * words, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, Some(4 * words));
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    bytemuck::cast_slice(&staging.get_mapped_range(..).unwrap()).to_vec()
}

#[test]
fn the_app_and_the_engine_share_buffers() {
    let Some(adapter) = adapter() else { return };
    let app = device(&adapter);
    let engine = Engine::from_wgpu(app.0.clone(), app.1.clone());
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> v: array<u32>;
         @compute @workgroup_size(64) fn squares(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&v) { v[id.x] = id.x * id.x; }
         }",
    );
    let values = engine.zeros::<u32>(&[100]).unwrap();
    engine.dispatch(&kernel.unwrap()).bind("v", &values).invocations(100).run().unwrap();
    engine.flush();

    let shared = values.buffer().unwrap();
    let raw = cantus::backend::wgpu::raw_buffer(&*shared).unwrap();
    let expected: Vec<u32> = (0..100).map(|i| i * i).collect();
    assert_eq!(read(&app, raw, 100), expected);
    assert!(raw.usage().contains(BufferUsages::VERTEX | BufferUsages::INDEX | BufferUsages::INDIRECT));
    assert_eq!(values.to_vec::<u32>().unwrap(), expected);
}

const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> v: array<u32>;
    @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&v) { v[id.x] *= 2; }
    }";
const TENSOR: BufferUsages = BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST);

#[test]
fn a_buffer_of_the_apps_is_a_tensor() {
    let Some(adapter) = adapter() else { return };
    let app = device(&adapter);
    let engine = Engine::from_wgpu(app.0.clone(), app.1.clone());
    let double = Kernel::from_wgsl(DOUBLE).unwrap();
    // Larger than the tensor: kernels see the tensor alone.
    let own = buffer(&app.0, 512, TENSOR);
    let numbers: Vec<u32> = (0..128).collect();
    app.1.write_buffer(&own, 0, bytemuck::cast_slice(&numbers));
    let tensor = engine.tensor_from_wgpu(&own, DType::U32, &[4, 25]).unwrap();
    let run = || engine.dispatch(&double).bind("v", &tensor).invocations(128).run().unwrap();
    run();
    engine.flush();
    let expected: Vec<u32> = (0..128).map(|i| if i < 100 { 2 * i } else { i }).collect();
    assert_eq!(read(&app, &own, 128), expected);
    assert_eq!(tensor.to_vec::<u32>().unwrap(), expected[..100]);
    // Operations read it, and what the host writes the app sees.
    assert_eq!(tensor.expr().sum(&[], false).eval().unwrap().to_vec::<u32>().unwrap(), [9900]);
    tensor.write(&vec![7_u32; 100]).unwrap();
    run();
    engine.flush();
    assert_eq!(read(&app, &own, 101)[98..], [14, 14, 100]);
    // The buffer outlives the tensor, and no other tensor gets it.
    drop(tensor);
    let others: Vec<_> = (0..8).map(|_| engine.tensor(&vec![1_u32; 100]).unwrap()).collect();
    assert_eq!(others[7].to_vec::<u32>().unwrap(), [1; 100]);
    assert_eq!(read(&app, &own, 3), [14; 3]);
    // A size that is no multiple of 4.
    let bytes = engine.tensor_from_wgpu(&own, DType::U8, &[5]).unwrap();
    assert_eq!(bytes.to_vec::<u8>().unwrap(), [14, 0, 0, 0, 14]);
}

#[test]
fn what_a_kernel_writes_counts_the_apps_indirect_calls() {
    let Some(adapter) = adapter() else { return };
    let app = device(&adapter);
    let engine = Engine::from_wgpu(app.0.clone(), app.1.clone());
    let counts = engine.tensor(&[3_u32, 1, 1]).unwrap();
    let counted = engine.zeros::<u32>(&[1]).unwrap();
    let count = "@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;
        @compute @workgroup_size(1) fn count() { atomicAdd(&n, 1); }";
    let module = app.0.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(count.into()),
    });
    let pipeline = app.0.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    engine.flush();
    let (counts, n) = (counts.buffer().unwrap(), counted.buffer().unwrap());
    let raw = |buffer| cantus::backend::wgpu::raw_buffer(buffer).unwrap();
    let group = app.0.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: raw(&*n).as_entire_binding() }],
    });
    let mut encoder = app.0.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups_indirect(raw(&*counts), 0);
    drop(pass);
    app.1.submit([encoder.finish()]);
    assert_eq!(counted.to_vec::<u32>().unwrap(), [3]);
}

#[test]
fn other_buffers_are_refused() {
    let Some(adapter) = adapter() else { return };
    let (app, other) = (device(&adapter), device(&adapter));
    let engine = Engine::from_wgpu(app.0.clone(), app.1.clone());
    let own = buffer(&app.0, 64, TENSOR);
    let tensor = |buffer: &wgpu::Buffer, shape: &[usize]| engine.tensor_from_wgpu(buffer, DType::F32, shape);
    let refused = |result: cantus::Result<cantus::Tensor>, says: &str| {
        let error = result.expect_err(says);
        assert!(matches!(error, Error::InvalidState { .. } | Error::Shape(_)), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    };
    refused(tensor(&own, &[17]), "64 bytes are less than the 68");
    refused(tensor(&own, &[0, 3]), "no elements");
    refused(tensor(&buffer(&app.0, 64, BufferUsages::STORAGE), &[16]), "COPY_DST");
    refused(tensor(&buffer(&other.0, 64, TENSOR), &[16]), "not of the device");
    let processor = Engine::builder().backend("cpu").build().unwrap();
    refused(processor.tensor_from_wgpu(&own, DType::F32, &[16]), "Engine::from_wgpu");
    // A uniform needs its usage.
    let kernel =
        "@group(0) @binding(0) var<uniform> u: vec4f; @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn first() { y[0] = u.x; }";
    let kernel = Kernel::from_wgsl(kernel).unwrap();
    let y = engine.zeros::<f32>(&[1]).unwrap();
    let run = |buffer: &wgpu::Buffer| {
        engine.dispatch(&kernel).bind("u", &tensor(buffer, &[4]).unwrap()).bind("y", &y).invocations(1).run()
    };
    let error = run(&own).expect_err("has no usage");
    assert!(
        matches!(&error, Error::Binding { binding, .. } if binding == "u") && error.to_string().contains("UNIFORM"),
        "{error}"
    );
    run(&buffer(&app.0, 64, TENSOR | BufferUsages::UNIFORM)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0]);
}
