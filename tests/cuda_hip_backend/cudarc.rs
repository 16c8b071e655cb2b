//! Memory shared with cudarc, which finds the double by its own loader.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cantus::ops::Expr;
use cantus::{Engine, Error, Fallback, Kernel, Tensor};
use cantus_cudarc::cudarc::driver::{CudaContext, CudaStream, DevicePtr};
use cantus_cudarc::{lend, part, tensor};

use crate::Scenario;
use crate::double::Vendor;

/// Each copy within the device, and each freed too early, takes time to go wrong.
const SLOW: &[(&str, &str)] =
    &[("CANTUS_DOUBLE_NULL_STREAM", "1"), ("CANTUS_DOUBLE_PAGEABLE", "1"), ("CANTUS_DOUBLE_DELAY_US", "300")];

pub const ALL: &[Scenario] = &[
    ("slices of cudarc's are tensors", SLOW, owned),
    ("tensors are slices of cudarc's", SLOW, lent),
    ("parts of slices of cudarc's", SLOW, parts),
    ("cudarc on several threads", SLOW, threads),
    ("cudarc elsewhere", SLOW, refused),
];

const COUNT: usize = 4096;

/// A folder where the double has the driver's name.
pub fn loader(library: &Path) -> PathBuf {
    let folder = library.with_extension("loader");
    let link = folder.join("libcuda.so");
    let _ = std::fs::create_dir_all(&folder);
    #[cfg(unix)]
    let _ = std::os::unix::fs::symlink(library, &link);
    assert!(link.exists(), "{} is not there", link.display());
    folder
}

fn values() -> Vec<f32> {
    (0..COUNT).map(|at| at as f32).collect()
}

fn times(factor: f32) -> Vec<f32> {
    values().iter().map(|value| factor * value).collect()
}

/// An engine on the context's device. The compiler is the system's, and takes seconds for all known answers.
fn engine_on(vendor: &Vendor, context: &Arc<CudaContext>) -> Engine {
    cantus_cudarc::on(context, vendor.builder().fallback(Fallback::Never)).unwrap()
}

/// The address of a tensor's memory.
fn address(tensor: &Tensor) -> u64 {
    let own = tensor.engine().driver_stream().expect("shares memory").stream;
    // SAFETY: it is the device's own stream.
    pollster::block_on(unsafe { tensor.driver_view_async(own) }).unwrap().expect("is of the driver").address()
}

/// The streams that an app may have: the default one, with which cudarc orders nothing, and one of its own.
fn streams(context: &Arc<CudaContext>) -> [Arc<CudaStream>; 3] {
    [context.default_stream(), context.per_thread_stream(), context.new_stream().unwrap()]
}

fn owned(vendor: &Vendor) {
    let context = CudaContext::new(0).unwrap();
    let engine = engine_on(vendor, &context);
    assert_eq!(engine.selected().device.backend, "cuda");
    let first = context.default_stream();
    for stream in std::iter::once(first).chain(streams(&context)) {
        let copies = vendor.calls("copy_within");
        // Nobody waits between the copy into the slice and the engine's work.
        let slice = stream.clone_htod(&values()).unwrap();
        let at = slice.device_ptr(&stream).0;
        let x = tensor(&engine, slice, &[64, 64]).unwrap();
        assert_eq!((address(&x), x.shape()), (at, &[64, 64][..]));
        let y = (Expr::from(&x) * 2.0).eval().unwrap();
        engine.flush();
        vendor.hold(true);
        let z = (Expr::from(&x) * 3.0).eval().unwrap();
        engine.flush();
        let before = vendor.live("memory");
        drop(x);
        assert!(vendor.live("memory") >= before, "freed while the stream reads it");
        vendor.hold(false);
        assert_eq!(y.to_vec::<f32>().unwrap(), times(2.0));
        assert_eq!(z.to_vec::<f32>().unwrap(), times(3.0));
        assert_eq!(vendor.calls("copy_within"), copies, "nothing is copied");
    }
    // The slice outlives the engine where a tensor does, and the context too.
    let x = tensor(&engine, context.default_stream().clone_htod(&values()).unwrap(), &[COUNT]).unwrap();
    drop((engine, context));
    assert_eq!(x.to_vec::<f32>().unwrap(), values());
    drop(x);
    vendor.assert_clean();
}

fn lent(vendor: &Vendor) {
    let context = CudaContext::new(0).unwrap();
    let engine = engine_on(vendor, &context);
    let x = Expr::from(&engine.tensor(&values()).unwrap());
    let halve = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 0.5; }";
    let halve = Kernel::from_wgsl(halve).unwrap();
    let [first, second, third] = streams(&context);
    for (stream, other) in [(&first, &second), (&second, &third), (&third, &first)] {
        let y = (&x * 2.0).eval().unwrap();
        let mut slice = lend::<f32>(&y, stream).unwrap();
        assert_eq!((slice.len(), slice.device_ptr(stream).0), (COUNT, address(&y)));
        // Read by its stream, and by another one.
        assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(2.0));
        assert_eq!(other.clone_dtoh(&*slice).unwrap(), times(2.0));
        // What the app writes is there when it is given back, and nobody waits between.
        stream.memcpy_htod(&times(6.0), &mut *slice).unwrap();
        drop(slice);
        engine.dispatch(&halve).bind("y", &y).invocations(COUNT).run().unwrap();
        let z = (Expr::from(&y) + 0.0).eval().unwrap();
        assert_eq!(z.to_vec::<f32>().unwrap(), times(3.0));
        // The tensor is dropped first.
        let slice = lend::<f32>(&z, stream).unwrap();
        drop((y, z));
        let again = (&x * 5.0).eval().unwrap();
        assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(3.0));
        drop(slice);
        assert_eq!(again.to_vec::<f32>().unwrap(), times(5.0));
    }
    // The engine is dropped first.
    let y = (&x * 2.0).eval().unwrap();
    let slice = pollster::block_on(cantus_cudarc::lend_async::<f32>(&y, &third)).unwrap();
    drop((x, y, engine));
    assert_eq!(third.clone_dtoh(&*slice).unwrap(), times(2.0));
    drop((slice, first, second, third, context));
    vendor.assert_clean();
}

fn parts(vendor: &Vendor) {
    let context = CudaContext::new(0).unwrap();
    let engine = engine_on(vendor, &context);
    let stream = context.new_stream().unwrap();
    let slice = Arc::new(stream.clone_htod(&values()).unwrap());
    let at = slice.device_ptr(&stream).0;
    let x = part(&engine, &slice, 1024..2048, &[32, 32]).unwrap();
    assert_eq!(address(&x), at + 4096, "in place");
    assert_eq!(x.to_vec::<f32>().unwrap(), values()[1024..2048]);
    let copy = part(&engine, &slice, 1025..=1026, &[2]).unwrap();
    assert_ne!(address(&copy), at + 4100, "copied, for its alignment");
    assert_eq!(copy.to_vec::<f32>().unwrap(), [1025.0, 1026.0]);
    // The app reads on.
    assert_eq!(stream.clone_dtoh(&*slice).unwrap(), values());
    for (range, shape) in [(0..COUNT + 1, COUNT + 1), (0..8, 9), (8..8, 0)] {
        assert!(matches!(part(&engine, &slice, range, &[shape]).unwrap_err(), Error::Index(_) | Error::Shape(_)));
    }
    drop((x, copy));
    engine.finish().unwrap();
    let only = Arc::try_unwrap(slice).expect("the tensors gave it back");
    drop((only, stream, engine, context));
    vendor.assert_clean();
}

fn threads(vendor: &Vendor) {
    let context = CudaContext::new(0).unwrap();
    let engine = engine_on(vendor, &context);
    std::thread::scope(|scope| {
        for factor in 1..=4 {
            let (context, engine) = (&context, &engine);
            scope.spawn(move || {
                let stream = context.new_stream().unwrap();
                for _ in 0..4 {
                    let x = tensor(engine, stream.clone_htod(&times(factor as f32)).unwrap(), &[COUNT]).unwrap();
                    let y = (Expr::from(&x) * 2.0).eval().unwrap();
                    let slice = lend::<f32>(&y, &stream).unwrap();
                    assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(2.0 * factor as f32));
                    // Dropped on a thread where no context was current.
                    std::thread::spawn(move || drop((x, y, slice))).join().unwrap();
                }
            });
        }
    });
    drop((engine, context));
    vendor.assert_clean();
}

#[track_caller]
fn assert_error(error: Error, part: &str) {
    let text = error.to_string();
    assert!(text.contains(part) && !text.contains('\n'), "{text}");
}

fn refused(vendor: &Vendor) {
    let (context, second) = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
    let engine = engine_on(vendor, &context);
    let there = engine_on(vendor, &second);
    assert_eq!(there.driver_stream().map(|own| own.device), Some(1));
    let slice = || context.default_stream().clone_htod(&values()).unwrap();
    assert_error(tensor(&there, slice(), &[COUNT]).unwrap_err(), "it is of device 0, and the engine is on 1");
    let cpu = Engine::builder().backend("cpu").build().unwrap();
    assert_error(tensor(&cpu, slice(), &[COUNT]).unwrap_err(), "the engine is not on a device of CUDA");
    assert_error(tensor(&engine, slice(), &[3]).unwrap_err(), "it takes 12 bytes of f32, 16384 were given");
    let x = engine.tensor(&[1_u32, 2]).unwrap();
    let stream = context.default_stream();
    assert_error(lend::<f32>(&x, &stream).unwrap_err(), "its elements are u32, not f32");
    assert_error(lend::<u32>(&x, &second.default_stream()).unwrap_err(), "it is of device 1, and the engine is on 0");
    assert_error(lend::<u32>(&engine.zeros::<u32>(&[0]).unwrap(), &stream).unwrap_err(), "it has no elements");
    // A driver that fails where cudarc would panic.
    vendor.fail("event_create", 1, 719);
    assert_error(lend::<u32>(&x, &stream).unwrap_err(), "failed at ordering its stream and cudarc's");
    vendor.fail("event_create", 0, 0);
    assert_eq!(stream.clone_dtoh(&*lend::<u32>(&x, &stream).unwrap()).unwrap(), [1, 2]);
    drop((x, stream, engine, there, cpu, context, second));
    vendor.assert_clean();
}
