//! Memory shared with another library that uses the same driver.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cantus::backend::DriverMemory;
use cantus::ops::Expr;
use cantus::{DType, Error};

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("memory lent to a stream", &[("CANTUS_DOUBLE_DELAY_US", "300")], lent),
    ("memory of another library's", &[("CANTUS_DOUBLE_DELAY_US", "300")], imported),
    ("memory of another library's that is not aligned", &[], misaligned),
    (WITH_WGPU, &[("CANTUS_DOUBLE_DELAY_US", "300")], with_wgpu),
];

/// Runs where [`vulkan`] finds a device.
pub const WITH_WGPU: &str = "memory shared with wgpu";

type Stream = usize;
const COUNT: usize = 4096;

/// The other library: a device made current, memory, streams and copies.
struct Other<'a> {
    vendor: &'a Vendor,
}

impl<'a> Other<'a> {
    fn new(vendor: &'a Vendor) -> Self {
        if vendor.name == "cuda" {
            let mut context = 0_usize;
            // SAFETY: these are the functions' types.
            unsafe {
                vendor.call::<unsafe extern "C" fn(*mut usize, c_int) -> c_int>("cuDevicePrimaryCtxRetain")(
                    &raw mut context,
                    0,
                );
                vendor.call::<unsafe extern "C" fn(usize) -> c_int>("cuCtxSetCurrent")(context);
                vendor.call::<unsafe extern "C" fn(c_int) -> c_int>("cuDevicePrimaryCtxRelease_v2")(0);
            }
        }
        Self { vendor }
    }

    fn name(&self, cuda: &'static str, hip: &'static str) -> &'static str {
        if self.vendor.name == "hip" { hip } else { cuda }
    }

    fn default_stream(&self) -> Stream {
        usize::from(self.vendor.name == "cuda")
    }

    fn stream(&self) -> Stream {
        let mut stream = 0;
        let name = self.name("cuStreamCreate", "hipStreamCreateWithFlags");
        // SAFETY: this is the function's type.
        let code =
            unsafe { self.vendor.call::<unsafe extern "C" fn(*mut Stream, u32) -> c_int>(name)(&raw mut stream, 1) };
        assert_eq!(code, 0);
        stream
    }

    fn destroy(&self, stream: Stream) {
        let name = self.name("cuStreamDestroy_v2", "hipStreamDestroy");
        // SAFETY: this is the function's type.
        assert_eq!(unsafe { self.vendor.call::<unsafe extern "C" fn(Stream) -> c_int>(name)(stream) }, 0);
    }

    fn allocate(&self, bytes: usize) -> u64 {
        let mut address = 0;
        let name = self.name("cuMemAlloc_v2", "hipMalloc");
        // SAFETY: this is the function's type.
        let code = unsafe {
            self.vendor.call::<unsafe extern "C" fn(*mut u64, usize) -> c_int>(name)(&raw mut address, bytes)
        };
        assert_eq!(code, 0);
        address
    }

    fn free(&self, address: u64) {
        let name = self.name("cuMemFree_v2", "hipFree");
        // SAFETY: this is the function's type.
        assert_eq!(unsafe { self.vendor.call::<unsafe extern "C" fn(u64) -> c_int>(name)(address) }, 0);
    }

    /// Queues a copy out.
    fn copy_out(&self, into: &mut [f32], from: u64, stream: Stream) {
        type Copy = unsafe extern "C" fn(*mut c_void, u64, usize, Stream) -> c_int;
        let name = self.name("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync");
        // SAFETY: this is the function's type; whoever calls keeps `into` until `synchronize`.
        let code = unsafe { self.vendor.call::<Copy>(name)(into.as_mut_ptr().cast(), from, size_of_val(into), stream) };
        assert_eq!(code, 0);
    }

    /// Queues a copy in.
    fn copy_in(&self, to: u64, from: &[f32], stream: Stream) {
        type Copy = unsafe extern "C" fn(u64, *const c_void, usize, Stream) -> c_int;
        let name = self.name("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync");
        // SAFETY: this is the function's type; whoever calls keeps `from` until `synchronize`.
        let code = unsafe { self.vendor.call::<Copy>(name)(to, from.as_ptr().cast(), size_of_val(from), stream) };
        assert_eq!(code, 0);
    }

    fn synchronize(&self) {
        let name = self.name("cuCtxSynchronize", "hipDeviceSynchronize");
        // SAFETY: this is the function's type.
        assert_eq!(unsafe { self.vendor.call::<unsafe extern "C" fn() -> c_int>(name)() }, 0);
    }
}

fn lent(vendor: &Vendor) {
    let engine = vendor.engine();
    let other = Other::new(vendor);
    let own = engine.driver_stream().expect("shares memory");
    assert_eq!(own.device, 0);
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    let x = Expr::from(&engine.tensor(&values).unwrap());
    for stream in [other.default_stream(), other.stream()] {
        let y = (&x * 2.0).eval().unwrap();
        // SAFETY: a default stream, or one that is destroyed below.
        let view = pollster::block_on(unsafe { y.driver_view_async(stream) }).unwrap().expect("is of the driver");
        assert_eq!((view.bytes(), view.device()), (4 * COUNT as u64, 0));
        // The other library reads as soon as it has the view, and lets go of it as soon as its work is queued.
        let mut copies = vec![vec![0.0; COUNT]; 8];
        for copy in &mut copies {
            other.copy_out(copy, view.address(), stream);
        }
        drop((y, view));
        // The memory is used again.
        let z = (&x * 3.0).eval().unwrap();
        z.to_vec::<f32>().unwrap();
        other.synchronize();
        assert!(copies.iter().flatten().zip(values.iter().cycle()).all(|(found, value)| *found == 2.0 * value));
        if stream > 2 {
            other.destroy(stream);
        }
    }
    // A stream that is gone is not asked.
    let gone = other.stream();
    let y = (&x * 2.0).eval().unwrap();
    // SAFETY: it is gone only afterwards.
    let view = pollster::block_on(unsafe { y.driver_view_async(gone) }).unwrap();
    other.destroy(gone);
    drop((view, y, x, engine));
    vendor.assert_clean();
}

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn imported(vendor: &Vendor) {
    let engine = vendor.engine();
    let other = Other::new(vendor);
    let own = engine.driver_stream().expect("shares memory");
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    let address = other.allocate(4 * COUNT);
    // As a library does that was told the stream.
    other.copy_in(address, &values, own.stream);
    let is_free = Arc::new(AtomicBool::new(false));
    // SAFETY: the memory lives until the end.
    let memory = unsafe { DriverMemory::new(address, 4 * COUNT as u64, Flag(is_free.clone())) };
    let x = pollster::block_on(engine.tensor_from_driver_memory_async(DType::F32, &[COUNT], memory)).unwrap();
    // SAFETY: it is the device's own stream.
    let view = pollster::block_on(unsafe { x.driver_view_async(own.stream) }).unwrap().expect("is of the driver");
    assert_eq!(view.address(), address);
    drop(view);
    let y = (Expr::from(&x) * 2.0).eval().unwrap();
    engine.flush();
    vendor.hold(true);
    let z = (Expr::from(&x) + 1.0).eval().unwrap();
    engine.flush();
    drop(x);
    assert!(!is_free.load(Ordering::SeqCst), "given back while the stream reads it");
    vendor.hold(false);
    assert_eq!(y.to_vec::<f32>().unwrap(), values.iter().map(|value| 2.0 * value).collect::<Vec<_>>());
    assert_eq!(z.to_vec::<f32>().unwrap(), values.iter().map(|value| value + 1.0).collect::<Vec<_>>());
    engine.finish().unwrap();
    assert!(is_free.load(Ordering::SeqCst), "kept after its last use");
    let wrong = unsafe_memory(address, 12);
    let refused = pollster::block_on(engine.tensor_from_driver_memory_async(DType::F32, &[4], wrong));
    assert!(refused.unwrap_err().to_string().contains("16 bytes"));
    let cpu = cantus::Engine::builder().backend("cpu").build().unwrap();
    let refused = pollster::block_on(cpu.tensor_from_driver_memory_async(DType::F32, &[3], unsafe_memory(address, 12)));
    assert!(refused.unwrap_err().to_string().contains("driver"));
    assert_eq!(cpu.driver_stream(), None);
    drop((y, z));
    other.free(address);
    drop(engine);
    vendor.assert_clean();
}

/// Memory that is not used.
fn unsafe_memory(address: u64, bytes: u64) -> DriverMemory {
    // SAFETY: nobody reads it.
    unsafe { DriverMemory::new(address, bytes, ()) }
}

fn misaligned(vendor: &Vendor) {
    let engine = vendor.engine();
    let other = Other::new(vendor);
    let own = engine.driver_stream().expect("shares memory");
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let address = other.allocate(4 * 64);
    other.copy_in(address, &values, own.stream);
    let is_free = Arc::new(AtomicBool::new(false));
    // SAFETY: the memory lives until the end.
    let memory = unsafe { DriverMemory::new(address + 4, 4 * 63, Flag(is_free.clone())) };
    let x = pollster::block_on(engine.tensor_from_driver_memory_async(DType::F32, &[63], memory)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), values[1..]);
    assert!(is_free.load(Ordering::SeqCst), "kept after it was copied");
    other.free(address);
    drop((x, engine));
    vendor.assert_clean();
}

/// llvmpipe by Vulkan, through wgpu: what it exports the double can map.
pub fn vulkan() -> Option<(wgpu::Device, wgpu::Queue)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name.contains("llvmpipe"))?;
    pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).ok()
}

/// Waits for the app's work.
fn settle(device: &wgpu::Device) {
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device works");
}

fn contents(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer) -> Vec<f32> {
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let descriptor = wgpu::BufferDescriptor { label: None, size: buffer.size(), usage, mapped_at_creation: false };
    let staging = device.create_buffer(&descriptor);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("maps"));
    settle(device);
    bytemuck::cast_slice(&staging.get_mapped_range(..).expect("is mapped")).to_vec()
}

fn with_wgpu(vendor: &Vendor) {
    let (device, queue) = vulkan().expect("was there");
    let shared = |engine: &cantus::Engine, shape: &[usize]| {
        pollster::block_on(engine.tensor_shared_with_wgpu_async(DType::F32, shape, &device))
    };
    let refused = |engine: &cantus::Engine, shape: &[usize]| shared(engine, shape).expect_err("is refused");
    let engine = vendor.engine();
    let error = refused(&engine, &[COUNT]);
    assert!(matches!(error, Error::InvalidState { .. }) && error.to_string().contains("another card"), "{error}");
    let text = error.to_string();
    let uuid = text.split("(UUID ").nth(1).and_then(|rest| rest.get(..32)).expect("names the UUID");
    vendor.set_uuid(u128::from_str_radix(uuid, 16).expect("is hexadecimal").to_be_bytes());
    drop(engine);

    let engine = vendor.engine();
    let (x, buffer) = shared(&engine, &[COUNT]).expect("is shared");
    engine.finish().unwrap();
    assert_eq!(contents(&device, &queue, &buffer), vec![0.0; COUNT]);
    // The app writes, a kernel reads and writes, the app reads.
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&values));
    queue.submit([]);
    settle(&device);
    let kernel = cantus::Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) { x[id.x] = 2.0 * x[id.x]; }",
    );
    engine.dispatch(&kernel.unwrap()).bind("x", &x).invocations(COUNT as u32).run().unwrap();
    engine.finish().unwrap();
    let doubled: Vec<f32> = values.iter().map(|value| 2.0 * value).collect();
    assert_eq!(contents(&device, &queue, &buffer), doubled);
    // Each outlives the other.
    drop(buffer);
    settle(&device);
    assert_eq!(x.to_vec::<f32>().unwrap(), doubled);
    let (y, buffer) = shared(&engine, &[2, 3]).expect("is shared");
    engine.finish().unwrap();
    drop(y);
    engine.finish().unwrap();
    assert_eq!(vendor.live("external memory"), 1, "kept after its last use");
    assert_eq!(contents(&device, &queue, &buffer), [0.0; 6]);

    for (shape, dtype) in [(&[0, 4][..], DType::F32), (&[3][..], DType::F16)] {
        let error = pollster::block_on(engine.tensor_shared_with_wgpu_async(dtype, shape, &device));
        assert!(matches!(error, Err(Error::Shape(_))), "{dtype}{shape:?}");
    }
    let cpu = cantus::Engine::builder().backend("cpu").build().unwrap();
    assert!(matches!(refused(&cpu, &[COUNT]), Error::InvalidState { .. }));
    for call in ["external_import", "external_map"] {
        vendor.fail(call, 1, 1);
        assert!(matches!(refused(&engine, &[COUNT]), Error::Device { .. }), "{call}");
        vendor.fail(call, 0, 0);
    }
    shared(&engine, &[COUNT]).expect("works again");
    drop((x, engine));
    vendor.assert_clean();
    // A device that is lost.
    let engine = vendor.engine();
    let x = (Expr::from(&engine.tensor(&values).unwrap()) * 2.0).eval().unwrap();
    engine.flush();
    vendor.stick(719);
    x.to_vec::<f32>().expect_err("is lost");
    assert!(matches!(refused(&engine, &[COUNT]), Error::DeviceLost { .. }));
}
