//! Every public asynchronous operation, dropped after its k-th poll, for every k: nothing else may suffer. Each poll is on another thread.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use cantus::backend::{BoxFuture, Registry};
use cantus::engine::{Builder, EventKind, GraphInputs, TuneOptions, survey_async};
use cantus::ops::{coherence_async, field};
use cantus::{Config, Engine, Fallback, Kernel, Result, Tensor};

use crate::hesitant::Hesitant;

/// An answer that never comes is found by this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Each poll up to this one is tried; of longer operations, then only each `STRIDE`th.
const ALL_UP_TO: usize = 100;
const STRIDE: usize = 16;

const ADD: &str = "
    @group(0) @binding(0) var<storage> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += x[id.x]; }
    }";

const X: [f32; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
const NEW: [f32; 5] = [10.0, 20.0, 30.0, 40.0, 50.0];
const ZEROS: [f32; 5] = [0.0; 5];

/// The tensors of an operation: `x` holds [`X`], `y` zeros.
struct World<'a> {
    engine: &'a Engine,
    registry: &'a (dyn Fn() -> Registry + Sync),
    kernel: &'a Kernel,
    x: Tensor,
    y: Tensor,
    folder: &'a Path,
}

impl World<'_> {
    async fn add(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        self.engine.dispatch(self.kernel).bind("x", x).bind("y", y).invocations(5).run_async().await
    }
}

/// An operation, and what `x` and `y` may hold once it was dropped or has ended.
struct Operation {
    name: &'static str,
    run: for<'a> fn(&'a World<'a>) -> BoxFuture<'a, Result<()>>,
    allowed: fn(&[f32], &[f32]) -> bool,
}

fn untouched(x: &[f32], y: &[f32]) -> bool {
    x == X && y == ZEROS
}

/// Old, new, or in part.
fn mixed(values: &[f32], old: &[f32], new: &[f32]) -> bool {
    values.iter().zip(old.iter().zip(new)).all(|(value, (old, new))| value == old || value == new)
}

fn added(x: &[f32], y: &[f32]) -> bool {
    x == X && (y == ZEROS || y == X)
}

macro_rules! operation {
    ($name:literal, $allowed:expr, |$world:ident| $body:block) => {
        Operation { name: $name, run: |$world| Box::pin(async move { $body }), allowed: $allowed }
    };
}

const OPERATIONS: &[Operation] = &[
    operation!("Engine::tensor", untouched, |w| {
        same(&w.engine.tensor_async(&X).await?.to_vec_async::<f32>().await?, &X)
    }),
    operation!("Engine::tensor_from", untouched, |w| {
        // Seven halves: the last word is written by itself.
        let halves = [half::f16::ONE; 7];
        let tensor = w.engine.tensor_from_async(&halves, &[7]).await?;
        assert_eq!(tensor.to_vec_async::<half::f16>().await?, halves);
        Ok(())
    }),
    operation!("Engine::tensor_from_array", untouched, |w| {
        let array = ndarray::arr2(&[[1.0_f32, 2.0], [3.0, 4.0]]);
        let tensor = w.engine.tensor_from_array_async(&array.t()).await?;
        assert_eq!(tensor.to_array_async::<f32>().await?, array.t().to_owned().into_dyn());
        Ok(())
    }),
    operation!("Engine::tensor_from_iter", untouched, |w| {
        same(&w.engine.tensor_from_iter_async(X).await?.to_vec_async::<f32>().await?, &X)
    }),
    operation!("Engine::zeros", untouched, |w| {
        same(&w.engine.zeros_async::<f32>(&[5]).await?.to_vec_async::<f32>().await?, &ZEROS)
    }),
    operation!("Engine::finish", added, |w| {
        w.add(&w.x, &w.y).await?;
        w.engine.finish_async().await
    }),
    operation!("Engine::to_vecs", untouched, |w| {
        let all = w.engine.to_vecs_async::<f32>(&[&w.x, &w.y, &w.x]).await?;
        assert_eq!(all, [X, ZEROS, X]);
        Ok(())
    }),
    operation!("Engine::memory_scope", added, |w| {
        let work = async {
            let square = (&w.x * &w.x).eval_async().await?;
            w.add(&w.x, &w.y).await?;
            square.sum(&[], false).eval_async().await
        };
        let sum = w.engine.memory_scope_async(work).await?;
        same(&sum.to_vec_async::<f32>().await?, &[55.0])
    }),
    operation!("Engine::cancel_scope", added, |w| {
        let flag = cantus::backend::CancelFlag::new();
        w.engine.cancel_scope_async(&flag, w.add(&w.x, &w.y)).await
    }),
    operation!("Engine::capture", |x, y| mixed(x, &X, &NEW) && (y == ZEROS || y == NEW), |w| {
        let graph = w.engine.capture_async(w.add(&w.x, &w.y)).await?;
        graph.replay_async(&GraphInputs::new().set(&w.x, &NEW)).await
    }),
    operation!("Engine::profile", added, |w| {
        let (outcome, profile) = w.engine.profile_async(w.add(&w.x, &w.y)).await;
        assert!(!profile.rows().is_empty() || w.engine.selected().device.backend != "cpu");
        outcome
    }),
    operation!("DispatchBuilder::run", added, |w| { w.add(&w.x, &w.y).await }),
    operation!("DispatchBuilder::run with operands on two devices", added, |w| {
        let far = w.x.to_device_async("cpu").await?;
        w.add(&far, &w.y).await
    }),
    operation!("Tensor::to_device", untouched, |w| {
        same(&w.x.to_device_async("cpu").await?.to_vec_async::<f32>().await?, &X)
    }),
    operation!("Tensor::read_into", untouched, |w| {
        let mut values = [0.0; 5];
        w.x.read_into_async(&mut values).await?;
        same(&values, &X)
    }),
    operation!("Tensor::read_at", untouched, |w| {
        let mut values = [0.0; 2];
        w.x.read_at_async(3, &mut values).await?;
        same(&values, &X[3..])
    }),
    operation!("Tensor::item", untouched, |w| {
        let sum = w.x.sum(&[], false).eval_async().await?;
        same(&[sum.item_async::<f32>().await?], &[15.0])
    }),
    operation!("Tensor::write", |x, y| x == X && mixed(y, &ZEROS, &NEW), |w| {
        w.y.write_async(&NEW).await?;
        same(&w.y.to_vec_async::<f32>().await?, &NEW)
    }),
    operation!("Tensor::write_at", |x, y| x == X && mixed(y, &ZEROS, &[0.0, 20.0, 30.0, 0.0, 0.0]), |w| {
        w.y.write_at_async(1, &NEW[1..3]).await
    }),
    operation!(
        "Tensor::write after work",
        |x, y| x == X
            && (mixed(y, &ZEROS, &X) || mixed(y, &X, &NEW) || mixed(y, &NEW, &[11.0, 22.0, 33.0, 44.0, 55.0])),
        |w| {
            w.add(&w.x, &w.y).await?;
            w.y.write_async(&NEW).await?;
            w.add(&w.x, &w.y).await
        }
    ),
    operation!("Tensor::read_into_array", untouched, |w| {
        let mut array = ndarray::Array1::<f32>::zeros(10);
        w.x.read_into_array_async(&mut array.slice_mut(ndarray::s![..;2])).await?;
        same(&[array[8]], &X[4..])
    }),
    operation!("Tensor::from_npy and to_npy", untouched, |w| {
        let path = w.folder.join("x.npy");
        w.x.to_npy_async(&path).await?;
        same(&Tensor::from_npy_async(w.engine, &path).await?.to_vec_async::<f32>().await?, &X)
    }),
    operation!("Expr::eval, a chain", untouched, |w| {
        let tensor = ((&w.x + 1.0_f32) * &w.x).relu().eval_async().await?;
        same(&tensor.to_vec_async::<f32>().await?, &[2.0, 6.0, 12.0, 20.0, 30.0])
    }),
    operation!("Expr::eval, operations in operations", untouched, |w| {
        let square = (&w.x.reshape(&[5, 1]) * &w.x.reshape(&[1, 5])).sum(&[0], true);
        let twice = &square + &square.softmax(1).sum(&[1], true);
        let values = twice.eval_async().await?.to_vec_async::<f32>().await?;
        assert!(values.iter().zip(X).all(|(value, x)| (value - 15.0 * x - 1.0).abs() < 1e-3), "{values:?}");
        Ok(())
    }),
    operation!("Expr::eval, a product", untouched, |w| {
        let a = w.engine.tensor_from_async(&[1.0_f32; 64 * 64], &[64, 64]).await?;
        let product = a.matmul(&a).eval_async().await?;
        assert!(product.to_vec_async::<f32>().await?.iter().all(|&value| value == 64.0));
        Ok(())
    }),
    operation!("field and coherence", untouched, |w| {
        let values = field::field_async(w.engine, &field::FieldParams::new(24, 16)).await?;
        let strength = coherence_async(w.engine, &values).await?;
        assert!((0.0..=1.0).contains(&strength), "{strength}");
        Ok(())
    }),
    operation!("field and pattern by tiles", untouched, |w| {
        let mut rows = 0;
        field::field_tiles_async(w.engine, &field::FieldParams::new(8, 8), Some(3), |tile| {
            rows += tile.rows;
            Ok(())
        })
        .await?;
        field::phi_pattern_tiles_async(w.engine, 8, 8, Some(5), |_| Ok(())).await?;
        assert_eq!(rows, 8);
        field::phi_pattern_async(w.engine, 9, 7).await.map(drop)
    }),
    operation!("Builder::build", untouched, |w| {
        let engine = builder((w.registry)(), &w.engine.selected().device.backend, w.folder).build_async().await?;
        same(&engine.tensor_async(&X).await?.to_vec_async::<f32>().await?, &X)
    }),
    operation!("survey", untouched, |w| {
        let survey = survey_async(&(w.registry)(), &Config::default()).await;
        survey.selected.map(drop).ok_or_else(|| survey.refusal.expect("is one of the two"))
    }),
    operation!("Engine::check_device", untouched, |w| { w.engine.check_device_async().await.map(drop) }),
    operation!("Engine::tune", untouched, |w| {
        w.x.sum(&[], false).eval_async().await?;
        w.engine.tune_async(&TuneOptions::new().limit(Duration::from_millis(1)), |_| ()).await;
        Ok(())
    }),
];

fn same(values: &[f32], expected: &[f32]) -> Result<()> {
    assert_eq!(values, expected);
    Ok(())
}

/// Wakes whoever waits for it.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.heard.notify_one();
    }
}

impl Bell {
    fn listen(&self, name: &str) {
        let rung = self.rung.lock().unwrap();
        let (mut rung, late) = self.heard.wait_timeout_while(rung, PATIENCE, |rung| !*rung).unwrap();
        assert!(!late.timed_out(), "{name} was never woken");
        *rung = false;
    }
}

/// Polls this many times at most, each time on a thread of its own: how often, and the answer, if it came.
fn poll_times<T: Send>(
    name: &str,
    mut future: Pin<&mut (dyn Future<Output = T> + Send + '_)>,
    polls: usize,
) -> (usize, Option<T>) {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    for poll in 0..polls {
        if poll > 0 {
            bell.listen(name);
        }
        let polled = std::thread::scope(|threads| {
            let elsewhere = threads.spawn(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
            elsewhere.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Poll::Ready(answer) = polled {
            return (poll + 1, Some(answer));
        }
    }
    (polls, None)
}

fn builder(registry: Registry, backend: &str, folder: &Path) -> Builder {
    Engine::builder().registry(registry).backend(backend).fallback(Fallback::Never).cache_folder(folder)
}

/// The figures of a run.
#[derive(Debug, Default)]
pub struct Figures {
    pub operations: usize,
    pub drops: usize,
}

/// Drops each operation at each of its polls on a device of a backend. `operations` says which operations have their turn, by number, and
/// `share` which of their polls.
pub fn drops(
    backends: &(dyn Fn() -> Registry + Sync),
    backend: &str,
    operations: &dyn Fn(u64) -> bool,
    share: &dyn Fn(u64) -> bool,
) -> Figures {
    let registry = || {
        let mut registry = Registry::empty();
        for inner in backends().backends() {
            registry.register(Arc::new(Hesitant(inner.clone())));
        }
        registry
    };
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::from_wgsl(ADD).unwrap();
    let engine = builder(registry(), backend, folder.path()).build().unwrap();
    let mut figures = Figures::default();
    for (_, operation) in (0..).zip(OPERATIONS).filter(|(number, _)| operations(*number)) {
        let attempt = |polls| attempt(&engine, &registry, &kernel, folder.path(), operation, polls);
        // Once to its end, which says how often it is polled; and what is compiled and kept for good is not counted as lost memory.
        let last = attempt(usize::MAX);
        let before = engine.memory().in_use;
        figures.operations += 1;
        let places = (0..last).filter(|&polls| polls < ALL_UP_TO || polls % STRIDE == 0);
        for polls in places.filter(|&polls| share((figures.operations * 31 + polls) as u64)) {
            attempt(polls);
            figures.drops += 1;
            let deadline = Instant::now() + Duration::from_secs(5);
            // A device may take a while to see that it is done.
            while engine.memory().in_use > before {
                let (name, now) = (operation.name, engine.memory().in_use);
                assert!(
                    Instant::now() < deadline,
                    "{name} dropped after {polls} polls: {now} bytes in use, {before} before"
                );
                engine.finish().unwrap();
            }
        }
    }
    figures
}

/// Starts an operation in a world of its own, drops it after this many polls, and looks for damage. How often it was polled.
fn attempt(
    engine: &Engine,
    registry: &(dyn Fn() -> Registry + Sync),
    kernel: &Kernel,
    folder: &Path,
    operation: &Operation,
    polls: usize,
) -> usize {
    let events = engine.events().len();
    let (x, y) = (engine.tensor(&X).unwrap(), engine.zeros::<f32>(&[5]).unwrap());
    let world = World { engine, registry, kernel, x, y, folder };
    let polled = {
        let mut future = (operation.run)(&world);
        let (polled, outcome) = poll_times(operation.name, future.as_mut(), polls);
        if let Some(Err(error)) = outcome {
            panic!("{}: {error}", operation.name);
        }
        polled
    };
    let what = format!("{} dropped after {polls} polls", operation.name);
    // Nothing was refused, and nothing that failed is told twice.
    engine.finish().unwrap_or_else(|error| panic!("{what}: {error}"));
    let (x, y) = (world.x.to_vec::<f32>().unwrap(), world.y.to_vec::<f32>().unwrap());
    assert!((operation.allowed)(&x, &y), "{what}: x is {x:?}, y is {y:?}");
    // The engine goes on: what is dispatched runs now, graphs and profiles start over.
    let (one, sum) = (engine.tensor(&X).unwrap(), engine.tensor(&NEW).unwrap());
    pollster::block_on(world.add(&one, &sum)).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [11.0, 22.0, 33.0, 44.0, 55.0], "{what}");
    let graph = engine.capture(|| pollster::block_on(world.add(&one, &sum))).unwrap();
    graph.replay(&GraphInputs::new().set(&sum, &ZEROS)).unwrap();
    let (product, profile) = engine.profile(|| (&one * &sum).eval().unwrap().to_vec::<f32>().unwrap());
    assert_eq!(product, [1.0, 4.0, 9.0, 16.0, 25.0], "{what}");
    // Other devices measure only where the engine was opened for it.
    let measures = engine.selected().device.backend == "cpu";
    assert!(!measures || !profile.rows().is_empty(), "{what}: the profile is empty");
    for event in &engine.events()[events.min(engine.events().len())..] {
        let bad = matches!(event.kind, EventKind::Failed | EventKind::Lost | EventKind::FellBack | EventKind::Skipped);
        assert!(!bad, "{what}: {event}");
    }
    polled
}
