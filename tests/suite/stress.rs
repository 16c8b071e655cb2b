//! Eight threads on one engine, on each device: they dispatch, read, move tensors between devices, capture, cancel, drop futures half-way and
//! give memory back. Every number is right, and memory is what it was. `./test --soak MINUTES` lets it run, and watches the process's memory
//! (`CANTUS_SOAK_DEVICE` is the beginning of the one device's name, with its backend).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use cantus::backend::{CancelFlag, DeviceInfo, Registry, cpu::CpuBackend};
use cantus::engine::{GraphInputs, survey};
use cantus::{Config, Engine, Error, Fallback, Kernel, Result, Tensor};

use super::fallback::faulty::{Counts, Fault, FaultyBackend};

const THREADS: usize = 8;
const LENGTH: usize = 300;

const ADD: &str = "
    struct Params { a: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    }";

/// A generator of Marsaglia's, for choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// The state that all threads share.
struct Stage {
    engine: Engine,
    kernel: Kernel,
    ones: Tensor,
    /// Every thread adds ones to it; so often it was recorded.
    sum: Tensor,
    added: AtomicU64,
    /// On the processor, where it draws other tensors to.
    far: Tensor,
    /// The device fails now and then.
    faulty: bool,
    running: AtomicBool,
}

impl Stage {
    fn add(&self, a: f32, x: &Tensor, y: &Tensor) -> Result<()> {
        self.engine.dispatch(&self.kernel).set("params.a", a).bind("x", x).bind("y", y).invocations(LENGTH).run()
    }

    /// One step of one thread: right numbers, or an error that belongs there.
    fn step(&self, dice: &mut Dice) {
        let kind = dice.below(12);
        match self.act(kind, dice) {
            Ok(()) => {}
            // Work of its own that it cancelled.
            Err(Error::Cancelled { .. }) => {}
            Err(Error::TensorLost { cause, .. }) if matches!(&*cause, Error::Cancelled { .. }) => {}
            Err(Error::TensorLost { .. } | Error::Device { .. } | Error::OutOfMemory { .. }) if self.faulty => {}
            // Others moved or wrote what is shared all the time.
            Err(Error::InvalidState { .. }) => {}
            Err(error) => panic!("step {kind}: {error}"),
        }
    }

    fn act(&self, kind: u64, dice: &mut Dice) -> Result<()> {
        let value = dice.below(1000) as f32;
        let fill = |value: f32| vec![value; LENGTH];
        match kind {
            0..=1 => {
                let y = self.engine.tensor(&fill(value))?;
                for _ in 0..dice.below(20) {
                    self.add(0.0, &self.ones, &y)?;
                }
                self.add(2.0, &self.ones, &y)?;
                assert_eq!(y.to_vec::<f32>()?, fill(value + 2.0));
            }
            2..=3 => {
                self.add(1.0, &self.ones, &self.sum)?;
                self.added.fetch_add(1, Ordering::SeqCst);
            }
            4 => {
                // Draws the sum to the processor, or the ones.
                let y = self.engine.tensor(&fill(value))?;
                self.add(3.0, &self.far, &y)?;
                assert_eq!(y.to_vec::<f32>()?, fill(value + 3.0));
                let shared = if dice.below(2) == 0 { &self.sum } else { &self.ones };
                let copy = shared.to_device("cpu")?;
                let values = copy.to_vec::<f32>()?;
                let first = values[0];
                let torn = values.iter().position(|value| *value != first);
                assert_eq!(
                    torn,
                    None,
                    "a copy of a tensor between two states: {first} and {:?}",
                    torn.map(|at| values[at])
                );
            }
            5 => {
                let (x, y) = (self.engine.tensor(&fill(1.0))?, self.engine.tensor(&fill(0.0))?);
                let graph = self.engine.capture(|| self.add(1.0, &x, &y).and_then(|()| self.add(1.0, &x, &y)))?;
                for round in 0..3 {
                    let input = fill(value + round as f32);
                    graph.replay(&GraphInputs::new().set(&x, &input).set(&y, &fill(0.0)))?;
                    assert_eq!(y.to_vec::<f32>()?, fill(2.0 * (value + round as f32)));
                }
            }
            6 => {
                let flag = CancelFlag::new();
                let y = self.engine.tensor(&fill(value))?;
                let outcome = self.engine.cancel_scope(&flag, || {
                    self.add(1.0, &self.ones, &y)?;
                    (&y * 2.0_f32).sum(&[], false).eval()
                });
                if dice.below(2) == 0 {
                    flag.cancel();
                }
                let sum = outcome?.item::<f32>()?;
                assert_eq!(sum, 2.0 * (value + 1.0) * LENGTH as f32);
            }
            7 => {
                let sum = self.engine.memory_scope(|| {
                    let x = self.engine.tensor(&fill(value))?;
                    let (twice, thrice) = ((&x * 2.0_f32).eval()?, (&x * 3.0_f32).eval()?);
                    (&twice + &thrice).sum(&[], false).eval()
                });
                assert_eq!(sum?.item::<f32>()?, 5.0 * value * LENGTH as f32);
            }
            8 => {
                // Dropped after some polls.
                let y = self.engine.tensor(&fill(value))?;
                self.add(1.0, &self.ones, &y)?;
                {
                    let mut read = std::pin::pin!(y.to_vec_async::<f32>());
                    for _ in 0..dice.below(3) {
                        if read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                            break;
                        }
                    }
                }
                assert_eq!(y.to_vec::<f32>()?, fill(value + 1.0));
            }
            9 => {
                self.engine.trim();
                let _ = (self.engine.metrics(), self.engine.memory(), self.engine.events().len());
                self.engine.flush();
            }
            10 => {
                let y = self.engine.zeros::<f32>(&[LENGTH])?;
                y.write(&fill(value))?;
                self.add(1.0, &self.ones, &y)?;
                y.write_at(1, &[0.0_f32, 0.0])?;
                let values = y.to_vec::<f32>()?;
                assert_eq!((values[0], values[1], values[2], values[3]), (value + 1.0, 0.0, 0.0, value + 1.0));
            }
            _ => {
                let a = self.engine.tensor_from(&vec![value; 64], &[8, 8])?;
                let product = a.matmul(&a).eval()?;
                let vectors = self.engine.to_vecs::<f32>(&[&product, &a])?;
                assert_eq!(vectors, [vec![8.0 * value * value; 64], vec![value; 64]]);
            }
        }
        Ok(())
    }
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * 4096
}

fn soak_minutes() -> Option<f64> {
    std::env::var("CANTUS_SOAK").ok().and_then(|minutes| minutes.parse().ok())
}

fn stress(name: &str, engine: Engine, faulty: bool, time: Duration) {
    let kernel = Kernel::from_wgsl(ADD).unwrap();
    let (ones, sum, far) = loop {
        let made = || {
            let ones = engine.tensor(&[1.0_f32; LENGTH])?;
            let far = ones.to_device("cpu")?;
            Ok::<_, Error>((ones, engine.zeros::<f32>(&[LENGTH])?, far))
        };
        match made() {
            Ok(made) => break made,
            Err(error) => assert!(faulty, "{error}"),
        }
    };
    let stage =
        Stage { engine, kernel, ones, sum, added: AtomicU64::new(0), far, faulty, running: AtomicBool::new(true) };
    let steps = AtomicU64::new(0);
    let started = Instant::now();
    let (mut warm, mut most) = (0, 0);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (stage, steps) = (&stage, &steps);
            threads.spawn(move || {
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (thread as u64 + 1) << 32);
                // Whoever panics ends it for all.
                let ending = Ending(&stage.running);
                while stage.running.load(Ordering::Relaxed) {
                    stage.step(&mut dice);
                    steps.fetch_add(1, Ordering::Relaxed);
                }
                std::mem::forget(ending);
            });
        }
        while started.elapsed() < time && stage.running.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20).min(time));
            let now = resident();
            if started.elapsed() < time / 4 {
                warm = now.max(warm);
            }
            most = now.max(most);
        }
        stage.running.store(false, Ordering::Relaxed);
    });
    let steps = steps.load(Ordering::Relaxed);
    println!(
        "{name}: {steps} steps in {:.1?}, memory {} MiB warm, {} MiB at most",
        started.elapsed(),
        warm >> 20,
        most >> 20
    );
    assert!(steps > THREADS as u64, "{name}: {steps} steps");
    // Cancelled work may have been told of already; nothing else failed.
    match stage.engine.finish() {
        Ok(()) | Err(Error::Cancelled { .. }) => {}
        Err(error) => assert!(faulty, "{name}: {error}"),
    }
    match stage.sum.to_vec::<f32>() {
        Ok(sum) => assert_eq!(sum, [stage.added.load(Ordering::SeqCst) as f32; LENGTH], "{name}: additions were lost"),
        Err(error) => assert!(faulty, "{name}: {error}"),
    }
    if soak_minutes().is_some() {
        assert!(most as f64 <= warm as f64 * 1.02 + f64::from(4 << 20), "{name}: {warm} bytes warm, then {most}");
    }
    let Stage { engine, ones, sum, far, .. } = stage;
    drop((ones, sum, far));
    let _ = engine.finish();
    engine.trim();
    let figures = engine.memory();
    assert_eq!((figures.in_use, figures.pooled), (0, 0), "{name}: a handle was lost");
}

/// Ends the work of all when its thread unwinds.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn eight_threads_on_one_engine() {
    on_each_device();
}

pub fn on_each_device() {
    let backends = survey(&Registry::with_defaults(), &Config::default()).backends;
    let wanted = std::env::var("CANTUS_SOAK_DEVICE").unwrap_or_default();
    let title = |info: &DeviceInfo| format!("{}: {}", info.backend, info.name);
    let mut devices: Vec<_> = backends.into_iter().flat_map(|backend| backend.devices).collect();
    devices.retain(|info| title(info).starts_with(&wanted));
    let faulty = "faulty: ".starts_with(&wanted);
    let share =
        |minutes: f64| Duration::from_secs_f64(minutes * 60.0 / (devices.len() + usize::from(faulty)).max(1) as f64);
    let time = soak_minutes().map_or(Duration::from_secs(2), share);
    for info in &devices {
        let builder =
            Engine::builder().backend(&info.backend).device(info.index).memory_limit(256 << 20).without_cache();
        let engine = builder.fallback(Fallback::Never).build().unwrap();
        stress(&title(info), engine, false, time);
    }
    if !faulty {
        return;
    }
    let mut registry = Registry::empty();
    registry.register(Arc::new(FaultyBackend { fault: Fault::Sometimes, counts: Arc::new(Counts::default()) }));
    registry.register(Arc::new(CpuBackend::new()));
    let engine = Engine::builder().registry(registry).memory_limit(256 << 20).without_cache().build().unwrap();
    stress("faulty: a device that fails now and then", engine, true, time);
}
