//! Losses: when work is refused, when tensors move while others write them, when calls are dropped half-way.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cantus::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, Registry, cpu::CpuBackend};
use cantus::engine::GraphInputs;
use cantus::{Engine, Error, Fallback, Kernel, Result};

use super::faulty::{Counts, Fault, FaultyBackend};
use super::{SAXPY, engine, saxpy};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn finish_reports_the_first_cause_once() {
    let (engine, _) = engine(Fault::Submit(0), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &y).unwrap();
    engine.flush();
    saxpy(&engine, &kernel, &x, &x.to_device("faulty").unwrap()).unwrap();
    let error = engine.finish().unwrap_err();
    assert!(error.to_string().contains("made to fail"), "{error}");
    engine.finish().unwrap();
}

#[test]
fn what_was_computed_from_a_dropped_lost_tensor_is_lost() {
    let (engine, _) = engine(Fault::Submit(0), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let x = engine.tensor(&[1.0_f32]).unwrap();
    let (a, b) = (engine.tensor(&[2.0_f32]).unwrap(), engine.tensor(&[3.0_f32]).unwrap());
    saxpy(&engine, &kernel, &x, &a).unwrap();
    engine.flush();
    saxpy(&engine, &kernel, &a, &b).unwrap();
    drop(a);
    let error = b.to_vec::<f32>().unwrap_err();
    assert!(matches!(&error, Error::TensorLost { .. }), "{error}");
}

#[test]
fn what_was_computed_from_a_lost_temporary_of_a_scope_is_lost() {
    let (engine, _) = engine(Fault::Submit(0), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let b = engine.tensor(&[3.0_f32]).unwrap();
    let x = engine.tensor(&[1.0_f32]).unwrap();
    engine.memory_scope(|| {
        let a = engine.tensor(&[2.0_f32]).unwrap();
        saxpy(&engine, &kernel, &x, &a).unwrap();
        engine.flush();
        saxpy(&engine, &kernel, &a, &b).unwrap();
    });
    let error = b.to_vec::<f32>().unwrap_err();
    assert!(matches!(&error, Error::TensorLost { .. }), "{error}");
}

/// Begins to move `x` to the processor, and stops where it reads it on the first device.
fn moving(refused: usize, meanwhile: impl FnOnce(&Engine, &Kernel, &cantus::Tensor)) -> (Engine, cantus::Tensor) {
    let (engine, counts) = engine(Fault::Gate(refused), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
    counts.open.store(true, Ordering::SeqCst);
    let large = engine.zeros::<f32>(&[64]).unwrap().to_device("cpu").unwrap();
    counts.open.store(false, Ordering::SeqCst);
    {
        let dispatch = engine.dispatch(&kernel).set("params.a", 1).bind("x", &x).bind("y", &large).invocations(64);
        let mut moving = pin!(dispatch.run_async());
        assert!(poll(moving.as_mut()).is_pending(), "the move waits for its read");
        meanwhile(&engine, &kernel, &x);
        counts.open.store(true, Ordering::SeqCst);
        let _ = pollster::block_on(moving);
    }
    (engine, x)
}

#[test]
fn a_write_during_a_move_is_not_lost() {
    let (_, x) = moving(usize::MAX, |engine, kernel, x| {
        let ones = engine.tensor(&[1.0_f32, 1.0]).unwrap();
        saxpy(engine, kernel, &ones, x).unwrap();
    });
    assert_eq!((x.to_vec::<f32>().unwrap(), x.device_name() == "faulty"), (vec![3.0, 4.0], false));
    let (_, x) = moving(usize::MAX, |_, _, x| x.write(&[7.0_f32, 8.0]).unwrap());
    assert_eq!(x.to_vec::<f32>().unwrap(), [7.0, 8.0]);
}

#[test]
fn a_move_does_not_revive_what_is_lost_meanwhile() {
    let (_, x) = moving(0, |engine, kernel, x| {
        let ones = engine.tensor(&[1.0_f32, 1.0]).unwrap();
        saxpy(engine, kernel, &ones, x).unwrap();
        engine.flush();
    });
    let error = x.to_vec::<f32>().unwrap_err();
    assert!(matches!(&error, Error::TensorLost { .. }), "{error}");
}

#[test]
fn a_graph_refuses_a_tensor_that_has_moved() {
    let (engine, counts) = engine(Fault::Gate(usize::MAX), Fallback::Always);
    counts.open.store(true, Ordering::SeqCst);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    let graph = engine.capture(|| saxpy(&engine, &kernel, &x, &y)).unwrap();
    graph.replay(&GraphInputs::new()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0]);
    let large = engine.zeros::<f32>(&[64]).unwrap().to_device("cpu").unwrap();
    saxpy(&engine, &kernel, &large, &y).err();
    engine.dispatch(&kernel).set("params.a", 1).bind("x", &x).bind("y", &large).invocations(64).run().unwrap();
    assert_ne!(x.device_name(), "faulty");
    let error = graph.replay(&GraphInputs::new()).unwrap_err();
    assert!(error.to_string().contains("moved to another device"), "{error}");
}

/// The processor, which takes a while to open.
struct Hesitant;

impl Backend for Hesitant {
    fn name(&self) -> &str {
        "hesitant"
    }
    fn priority(&self) -> i32 {
        10
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async {
            pause().await;
            let mut probe = CpuBackend::new().probe().await;
            probe.devices.iter_mut().for_each(|device| device.backend = "hesitant".into());
            probe
        })
    }
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            pause().await;
            CpuBackend::new().open(index, options).await
        })
    }
}

async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_dropped_call_leaves_the_devices_to_fall_back_to() {
    for polls in 0..6 {
        for backend in [None, Some("faulty")] {
            let mut registry = Registry::empty();
            registry.register(Arc::new(FaultyBackend { fault: Fault::Compile, counts: Arc::new(Counts::default()) }));
            registry.register(Arc::new(Hesitant));
            let mut builder = Engine::builder().registry(registry).config(cantus::Config::default());
            if let Some(name) = backend {
                builder = builder.backend(name);
            }
            let engine = builder.build().unwrap();
            let kernel = Kernel::from_wgsl(SAXPY).unwrap();
            let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
            let other = engine.tensor(&[9.0_f32]).unwrap();
            {
                let dispatch =
                    engine.dispatch(&kernel).set("params.a", 2).bind("x", &x).bind("y", &other).invocations(1);
                let mut call = pin!(dispatch.run_async());
                for _ in 0..polls {
                    if poll(call.as_mut()).is_ready() {
                        break;
                    }
                }
            }
            saxpy(&engine, &kernel, &x, &y).unwrap();
            assert_eq!(y.to_vec::<f32>().unwrap(), [4.0], "after {polls} polls");
        }
    }
}

#[test]
fn a_dropped_capture_ends() {
    let (engine, _) = engine(Fault::Submit(usize::MAX), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    {
        let mut capture = pin!(engine.capture_async(async {
            saxpy(&engine, &kernel, &x, &y)?;
            std::future::pending::<Result<()>>().await
        }));
        assert!(poll(capture.as_mut()).is_pending());
        // Between two polls nothing is captured.
        saxpy(&engine, &kernel, &x, &y).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [4.0]);
    }
    saxpy(&engine, &kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [6.0]);
    let graph = engine.capture(|| saxpy(&engine, &kernel, &x, &y)).unwrap();
    graph.replay(&GraphInputs::new()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [8.0]);
}

#[test]
fn captures_and_scopes_follow_their_future_from_thread_to_thread() {
    let (engine, _) = engine(Fault::Submit(usize::MAX), Fallback::Always);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    let held = std::sync::Mutex::new(None);
    {
        let mut capture = pin!(engine.capture_async(async {
            saxpy(&engine, &kernel, &x, &y)?;
            pause().await;
            saxpy(&engine, &kernel, &x, &y)
        }));
        let mut scope = pin!(engine.memory_scope_async(async {
            pause().await;
            *held.lock().unwrap() = Some(engine.tensor_async(&[5.0_f32]).await.unwrap());
        }));
        assert!(elsewhere(|| poll(capture.as_mut()).is_pending()));
        assert!(elsewhere(|| poll(scope.as_mut()).is_pending()));
        let Poll::Ready(Ok(graph)) = elsewhere(|| poll(capture.as_mut())) else { panic!("the capture is not ready") };
        assert_eq!(graph.len(), 2);
        // The upload may take its time.
        let late = Instant::now() + Duration::from_secs(30);
        while elsewhere(|| poll(scope.as_mut()).is_pending()) {
            assert!(Instant::now() < late, "the scope does not end");
        }
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0], "nothing ran");
    let error = held.lock().unwrap().take().unwrap().to_vec::<f32>().unwrap_err();
    assert!(error.to_string().contains("memory scope"), "{error}");
}

/// On a thread of its own.
fn elsewhere<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| threads.spawn(body).join().unwrap())
}
