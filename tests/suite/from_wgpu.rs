//! An app's own wgpu device, handed to an engine: the app uses the tensor's buffer with its own queue, without a copy to the host.

use cantus::{Engine, Kernel};

#[test]
fn the_app_and_the_engine_share_buffers() {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let Ok(adapter) = adapter else {
        assert!(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(), "an adapter is required");
        kit::not_run("a device of the app's", "there is no adapter");
        return;
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    let engine = Engine::from_wgpu(device.clone(), queue.clone());
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
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let staging =
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 400, usage, mapped_at_creation: false });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(raw, 0, &staging, 0, Some(400));
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let expected: Vec<u32> = (0..100).map(|i| i * i).collect();
    assert_eq!(bytemuck::cast_slice::<u8, u32>(&staging.get_mapped_range(..).unwrap()), expected);
    assert_eq!(values.to_vec::<u32>().unwrap(), expected);
}
