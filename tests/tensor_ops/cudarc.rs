//! Memory shared with cudarc on an NVIDIA GPU. Without one, the driver's double runs the same in `cuda_hip_backend`.

use std::sync::Arc;

use cantus::ops::Expr;
use cantus::{Engine, Kernel, Tensor};
use cantus_cudarc::cudarc::driver::{CudaContext, CudaStream, DevicePtr, sys};
use cantus_cudarc::{lend, part, tensor};

const COUNT: usize = 1 << 20;

fn context() -> Option<Arc<CudaContext>> {
    // SAFETY: it only looks for the library.
    let context = unsafe { sys::is_culib_present() }.then(|| CudaContext::new(0).ok()).flatten();
    if context.is_none() {
        cantus_skips::not_run("memory shared with cudarc", "there is no NVIDIA GPU");
    }
    context
}

fn times(factor: f32) -> Vec<f32> {
    (0..COUNT).map(|at| factor * (at % 4096) as f32).collect()
}

fn address(tensor: &Tensor) -> u64 {
    let own = tensor.engine().driver_stream().expect("shares memory").stream;
    // SAFETY: it is the device's own stream.
    pollster::block_on(unsafe { tensor.driver_view_async(own) }).unwrap().expect("is of the driver").address()
}

fn streams(context: &Arc<CudaContext>) -> [Arc<CudaStream>; 3] {
    [context.default_stream(), context.per_thread_stream(), context.new_stream().unwrap()]
}

#[test]
fn slices_of_cudarc_are_tensors() {
    let Some(context) = context() else { return };
    let engine = cantus_cudarc::engine(&context).unwrap();
    for stream in streams(&context) {
        // Nobody waits between the copy into the slice and the engine's work, on a stream of its own.
        let slice = stream.clone_htod(&times(1.0)).unwrap();
        let at = slice.device_ptr(&stream).0;
        let x = tensor(&engine, slice, &[1024, COUNT / 1024]).unwrap();
        assert_eq!(address(&x), at, "in place");
        let y = (Expr::from(&x) * 2.0).eval().unwrap();
        drop(x);
        assert_eq!(y.to_vec::<f32>().unwrap(), times(2.0));
    }
    let slice = Arc::new(context.default_stream().clone_htod(&times(1.0)).unwrap());
    let at = slice.device_ptr(slice.stream()).0;
    let x = part(&engine, &slice, 1024..2048, &[32, 32]).unwrap();
    assert_eq!((address(&x), x.to_vec::<f32>().unwrap()), (at + 4096, times(1.0)[1024..2048].to_vec()));
    // A tensor outlives the engine and the context.
    drop((engine, context, slice));
    assert_eq!(x.to_vec::<f32>().unwrap(), times(1.0)[1024..2048]);
}

#[test]
fn tensors_are_slices_of_cudarc() {
    let Some(context) = context() else { return };
    let engine = cantus_cudarc::engine(&context).unwrap();
    let x = Expr::from(&engine.tensor(&times(1.0)).unwrap());
    let halve = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 0.5; }";
    let halve = Kernel::from_wgsl(halve).unwrap();
    let [first, second, third] = streams(&context);
    for (stream, other) in [(&first, &second), (&second, &third), (&third, &first)] {
        let y = (&x * 2.0).eval().unwrap();
        let mut slice = lend::<f32>(&y, stream).unwrap();
        assert_eq!((slice.len(), slice.device_ptr(stream).0), (COUNT, address(&y)), "in place");
        assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(2.0));
        assert_eq!(other.clone_dtoh(&*slice).unwrap(), times(2.0));
        // What the app writes is there when it is given back, and nobody waits between.
        stream.memcpy_htod(&times(6.0), &mut *slice).unwrap();
        drop(slice);
        engine.dispatch(&halve).bind("y", &y).invocations(COUNT).run().unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), times(3.0));
        // The tensor is dropped first.
        let slice = lend::<f32>(&y, stream).unwrap();
        drop(y);
        let again = (&x * 5.0).eval().unwrap();
        assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(3.0));
        drop(slice);
        assert_eq!(again.to_vec::<f32>().unwrap(), times(5.0));
    }
}

#[test]
fn threads_share_with_cudarc() {
    let Some(context) = context() else { return };
    let engine: Engine = cantus_cudarc::engine(&context).unwrap();
    std::thread::scope(|scope| {
        for factor in 1..=4_u8 {
            let (context, engine) = (&context, &engine);
            scope.spawn(move || {
                let stream = context.new_stream().unwrap();
                let factor = f32::from(factor);
                for _ in 0..8 {
                    let x = tensor(engine, stream.clone_htod(&times(factor)).unwrap(), &[COUNT]).unwrap();
                    let y = (Expr::from(&x) * 2.0).eval().unwrap();
                    let slice = lend::<f32>(&y, &stream).unwrap();
                    assert_eq!(stream.clone_dtoh(&*slice).unwrap(), times(2.0 * factor));
                    // Dropped on a thread where no context was current.
                    std::thread::spawn(move || drop((x, y, slice))).join().unwrap();
                }
            });
        }
    });
}
