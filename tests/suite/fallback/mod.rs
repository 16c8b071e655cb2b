//! Ranking and fallback (docs/internals/engine.md), by a backend that fails on demand at each place where a device can fail.

pub mod faulty;
mod loss;
mod power;
mod proofs;
mod table;
mod trust;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use cantus::backend::{CancelFlag, Registry};
use cantus::engine::EventKind;
use cantus::{Config, Engine, Error, Fallback, Kernel};
use faulty::{Counts, Fault, FaultyBackend};

const SAXPY: &str = "
    struct Params { a: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    }";

fn engine(fault: Fault, fallback: Fallback) -> (Engine, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let mut registry = Registry::empty();
    registry.register(Arc::new(FaultyBackend { fault, counts: counts.clone() }));
    registry.register(Arc::new(cantus::backend::cpu::CpuBackend::new()));
    let engine = Engine::builder().registry(registry).config(Config::default()).fallback(fallback).build().unwrap();
    (engine, counts)
}

fn saxpy(engine: &Engine, kernel: &Kernel, x: &cantus::Tensor, y: &cantus::Tensor) -> cantus::Result<()> {
    engine.dispatch(kernel).set("params.a", 2.0_f32).bind("x", x).bind("y", y).invocations(x.len()).run()
}

fn happened(engine: &Engine, kind: EventKind) -> Vec<String> {
    engine.events().into_iter().filter(|event| event.kind == kind).map(|event| event.message).collect()
}

/// Runs a test body that must come to an end: a wait without an answer is a failure, not a hang.
fn within(limit: Duration, body: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    match finished.recv_timeout(limit) {
        Ok(()) => thread.join().unwrap(),
        // The body panicked (the sender is gone): pass its message on; else it hangs.
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("no answer within {limit:?}"),
    }
}

#[test]
fn a_device_that_does_not_open_is_skipped() {
    let (engine, _) = engine(Fault::Open, Fallback::Always);
    assert_eq!(engine.selected().device.backend, "cpu");
    assert!(happened(&engine, EventKind::Skipped).iter().any(|text| text.contains("made to fail")));
    assert!(engine.selected().why.contains("1 passed over"), "{}", engine.selected().why);
}

#[test]
fn a_forced_device_that_does_not_open_is_an_error_with_its_reason() {
    let mut registry = Registry::with_defaults();
    registry.register(Arc::new(FaultyBackend { fault: Fault::Open, counts: Arc::default() }));
    let error = Engine::builder().registry(registry).config(Config::default()).backend("faulty").build().unwrap_err();
    assert!(matches!(&error, Error::NoDevice { .. }), "{error}");
    assert!(error.to_string().contains("made to fail"), "{error}");
}

#[test]
fn a_failed_compilation_moves_the_inputs_and_runs_elsewhere() {
    let (engine, _) = engine(Fault::Compile, Fallback::Always);
    assert_eq!(engine.selected().device.backend, "faulty");
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap(), engine.tensor(&[10.0_f32, 20.0, 30.0]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0, 36.0]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0], "the input is unharmed");
    assert_ne!(y.device_name(), "faulty");
    assert_eq!(happened(&engine, EventKind::Moved).len(), 2);
    let fell_back = happened(&engine, EventKind::FellBack);
    assert!(fell_back.iter().any(|text| text.contains("saxpy") && text.contains("made to fail")), "{fell_back:?}");
    assert_eq!(engine.metrics().iter().map(|row| row.fallbacks).sum::<u64>(), 1);
}

#[test]
fn without_fallback_a_failed_compilation_is_the_error() {
    let (engine, counts) = engine(Fault::Compile, Fallback::Never);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[10.0_f32]).unwrap());
    let error = saxpy(&engine, &kernel, &x, &y).unwrap_err();
    assert!(error.to_string().contains("faulty failed at compiling the kernel saxpy: made to fail"), "{error}");
    assert_eq!((x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap()), (vec![1.0], vec![10.0]));
    assert_eq!(counts.submissions.load(Ordering::SeqCst), 0);
}

#[test]
fn a_failed_allocation_takes_memory_elsewhere() {
    let (engine, _) = engine(Fault::Allocate(1), Fallback::Always);
    let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
    let y = engine.tensor(&[5.0_f32, 6.0]).unwrap();
    assert_eq!(x.device_name(), "faulty");
    assert_ne!(y.device_name(), "faulty");
    // Operands on two devices are brought together; there is no memory left on the first.
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [7.0, 10.0]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert!(!happened(&engine, EventKind::Moved).is_empty());
}

#[test]
fn without_fallback_a_failed_allocation_names_the_size() {
    let (engine, _) = engine(Fault::Allocate(0), Fallback::Never);
    let error = engine.zeros::<f32>(&[1024]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { bytes: 4096, .. }), "{error}");
}

#[test]
fn a_failed_submission_loses_its_outputs_and_nothing_else() {
    for fallback in [Fallback::Always, Fallback::Never] {
        let (engine, _) = engine(Fault::Submit(0), fallback);
        let kernel = Kernel::from_wgsl(SAXPY).unwrap();
        let (x, y) = (engine.tensor(&[1.0_f32, 2.0]).unwrap(), engine.tensor(&[3.0_f32, 4.0]).unwrap());
        let z = engine.tensor(&[5.0_f32, 6.0]).unwrap();
        saxpy(&engine, &kernel, &x, &y).unwrap();
        let error = y.to_vec::<f32>().unwrap_err();
        assert!(matches!(&error, Error::TensorLost { tensor, .. } if tensor == y.label()), "{error}");
        assert!(error.to_string().contains("made to fail"), "{error}");
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0], "only read: unharmed");
        // The next batch goes through; what reads the lost tensor is refused by name.
        saxpy(&engine, &kernel, &x, &z).unwrap();
        assert_eq!(z.to_vec::<f32>().unwrap(), [7.0, 10.0]);
        let refused = saxpy(&engine, &kernel, &y, &z).unwrap_err();
        assert!(matches!(&refused, Error::TensorLost { .. }), "{refused}");
        assert_eq!(happened(&engine, EventKind::Lost).len(), 1);
    }
}

#[test]
fn what_was_computed_from_a_lost_tensor_is_lost_too() {
    let (engine, _) = engine(Fault::Submit(0), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let x = engine.tensor(&[1.0_f32]).unwrap();
    let (y, z, other) =
        (engine.tensor(&[2.0_f32]).unwrap(), engine.tensor(&[3.0_f32]).unwrap(), engine.tensor(&[4.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    engine.flush();
    // Recorded before the failure of the first batch is known: it may only come out on reading.
    let recorded = saxpy(&engine, &kernel, &y, &z);
    saxpy(&engine, &kernel, &x, &other).unwrap();
    let error = recorded.err().or_else(|| z.to_vec::<f32>().err()).expect("z is computed from lost data");
    assert!(matches!(&error, Error::TensorLost { .. }), "{error}");
    assert_eq!(other.to_vec::<f32>().unwrap(), [6.0], "independent work of the same batch is fine");
}

#[test]
fn a_lost_device_takes_its_tensors_and_new_work_goes_on() {
    let (engine, _) = engine(Fault::Lose(0), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert!(matches!(y.to_vec::<f32>().unwrap_err(), Error::TensorLost { .. }));
    assert!(matches!(x.to_vec::<f32>().unwrap_err(), Error::DeviceLost { .. } | Error::TensorLost { .. }));
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0]);
    assert_ne!(y.device_name(), "faulty");
}

#[test]
fn a_lost_device_without_fallback_refuses_new_work() {
    let (engine, _) = engine(Fault::Lose(0), Fallback::Never);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert!(matches!(y.to_vec::<f32>().unwrap_err(), Error::TensorLost { .. }));
    let error = engine.tensor(&[1.0_f32]).unwrap_err();
    assert!(matches!(&error, Error::DeviceLost { .. }), "{error}");
}

#[test]
fn tensors_of_two_engines_do_not_meet() {
    let (one, _) = engine(Fault::Open, Fallback::Always);
    let (two, _) = engine(Fault::Open, Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (one.tensor(&[1.0_f32]).unwrap(), two.tensor(&[2.0_f32]).unwrap());
    let error = saxpy(&two, &kernel, &x, &y).unwrap_err();
    assert!(matches!(error, Error::AnotherEngine { .. }));
    assert!(error.to_string().starts_with("the tensor f32["), "{error}");
}

const ENDLESS: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn endless(@builtin(global_invocation_id) id: vec3u) {
        loop { y[id.x] += 1u; if y[id.x] == 0xffffffffu { break; } y[id.x] &= 0xffu; }
    }";

fn cpu() -> cantus::engine::Builder {
    Engine::builder().config(Config::default()).backend("cpu")
}

#[test]
fn a_kernel_without_end_meets_the_time_limit() {
    within(Duration::from_secs(30), || {
        let engine = cpu().timeout(Duration::from_millis(100)).build().unwrap();
        let kernel = Kernel::from_wgsl(ENDLESS).unwrap();
        let y = engine.zeros::<u32>(&[4096]).unwrap();
        engine.dispatch(&kernel).bind("y", &y).invocations(4096).run().unwrap();
        let error = y.to_vec::<u32>().unwrap_err();
        let Error::TensorLost { cause, .. } = &error else { panic!("{error}") };
        assert!(matches!(&**cause, Error::Timeout { what, milliseconds: 100, .. } if what == "endless"), "{error}");
        // The device is alive.
        assert_eq!(engine.tensor(&[7_u32]).unwrap().to_vec::<u32>().unwrap(), [7]);
    });
}

#[test]
fn a_kernel_without_end_can_be_cancelled() {
    within(Duration::from_secs(30), || {
        let engine = cpu().build().unwrap();
        let kernel = Kernel::from_wgsl(ENDLESS).unwrap();
        let y = engine.zeros::<u32>(&[4096]).unwrap();
        let flag = CancelFlag::new();
        engine.dispatch(&kernel).bind("y", &y).invocations(4096).cancel(&flag).run().unwrap();
        engine.flush();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            flag.cancel();
        });
        let error = y.to_vec::<u32>().unwrap_err();
        canceller.join().unwrap();
        let Error::TensorLost { cause, .. } = &error else { panic!("{error}") };
        assert!(matches!(&**cause, Error::Cancelled { what } if what == "endless"), "{error}");
    });
}

#[test]
fn small_fields_are_placed_where_they_are_quicker() {
    let folder = tempfile::tempdir().unwrap();
    let engine = |placement: bool| {
        let mut registry = Registry::empty();
        let fault = Fault::Slow(Duration::from_millis(30));
        registry.register(Arc::new(FaultyBackend { fault, counts: Arc::default() }));
        registry.register(Arc::new(cantus::backend::cpu::CpuBackend::new()));
        let builder = Engine::builder().registry(registry).config(Config::default()).cache_folder(folder.path());
        builder.placement(placement).build().unwrap()
    };
    let params = cantus::ops::field::FieldParams::new(16, 16);
    let first = engine(true);
    let field = cantus::ops::field::field(&first, &params).unwrap();
    assert_ne!(field.device_name(), "faulty", "30 ms for a launch against the CPU's own");
    assert_eq!(happened(&first, EventKind::Placed).len(), 1);
    let kept = std::fs::read_to_string(folder.path().join("placement.toml")).unwrap();
    assert!(kept.contains("faulty"), "{kept}");
    // A damaged file is measured again, not trusted; and without placement the rank alone decides.
    std::fs::write(folder.path().join("placement.toml"), "faulty = [").unwrap();
    assert_ne!(cantus::ops::field::field(&engine(true), &params).unwrap().device_name(), "faulty");
    assert_eq!(cantus::ops::field::field(&engine(false), &params).unwrap().device_name(), "faulty");
    // Operands on two devices are brought together.
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let x = first.tensor(&[1.0_f32; 4]).unwrap();
    let y = first.zeros::<f32>(&[4]).unwrap();
    assert_ne!(x.device_name(), y.device_name());
    saxpy(&first, &kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 4]);
}

/// Three loops whose bounds only the device knows may take long: systems reset GPUs that do.
#[test]
fn a_batch_is_bounded_by_the_time_that_it_may_take() {
    let counts = Arc::new(Counts::default());
    let mut registry = Registry::empty();
    registry.register(Arc::new(FaultyBackend { fault: Fault::Unproven(Duration::ZERO), counts: counts.clone() }));
    let engine = Engine::builder().registry(registry).known_answers(false).without_cache().build().unwrap();
    let submitted = |body: &str| {
        let kernel = Kernel::from_wgsl(&format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(64) fn work(@builtin(global_invocation_id) id: vec3u) {{ {body} }}"
        ))
        .unwrap();
        let y = engine.zeros::<u32>(&[1024]).unwrap();
        engine.finish().unwrap();
        let before = counts.submissions.load(Ordering::SeqCst);
        for _ in 0..20 {
            engine.dispatch(&kernel).bind("y", &y).invocations(1024).run().unwrap();
        }
        let early = counts.submissions.load(Ordering::SeqCst) - before;
        engine.finish().unwrap();
        early
    };
    assert_eq!(submitted("y[id.x] += 1u;"), 0);
    assert_eq!(submitted("for (var i = 0u; i < 1000u; i++) { y[id.x] += i; }"), 0);
    let nested = "for (var i = 0u; i < y[0]; i++) { for (var j = 0u; j < y[0]; j++) { for (var k = 0u; k < y[0]; k++) { y[id.x] += k; } } }";
    assert_eq!(submitted(nested), 20);
}
