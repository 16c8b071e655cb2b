//! Memory shared with another library that uses the same driver.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cantus::DType;
use cantus::backend::DriverMemory;
use cantus::ops::Expr;

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("memory lent to a stream", &[("CANTUS_DOUBLE_DELAY_US", "300")], lent),
    ("memory of another library's", &[("CANTUS_DOUBLE_DELAY_US", "300")], imported),
    ("memory of another library's that is not aligned", &[], misaligned),
];

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
        // SAFETY: as above.
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
        let view = pollster::block_on(y.driver_view_async(stream)).unwrap().expect("is of the driver");
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
    let view = pollster::block_on(y.driver_view_async(gone)).unwrap();
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
    let view = pollster::block_on(x.driver_view_async(own.stream)).unwrap().expect("is of the driver");
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
