//! The Ascend backend on a double of its libraries, which computes, finishes late, counts lives and fails on demand.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the double's functions have the types that its source gives them"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cantus::backend::ascend::AscendBackend;
use cantus::backend::cpu::CpuBackend;
use cantus::backend::{Backend, Registry};
use cantus::engine::GraphInputs;
use cantus::ops::field::{FieldParams, field, phi_pattern};
use cantus::{Engine, Error, Fallback, Kernel, Result, Tensor};
use kit::doubles::{alone, assert_held, built, coherence_is_the_processors, cpu, fell_back, near};

const FAILED: c_int = 500_002;
const NO_MEMORY: c_int = 207_001;
const LOST: c_int = 507_010;

fn registry(library: &str) -> Registry {
    let mut registry = Registry::empty();
    registry.register(Arc::new(AscendBackend::with_library(library)));
    registry.register(Arc::new(CpuBackend::new()));
    registry
}

fn engine(library: &str) -> Engine {
    Engine::builder().registry(registry(library)).placement(false).build().unwrap()
}

/// The double, and the right to tell it what to do.
struct Double {
    _turn: MutexGuard<'static, ()>,
    library: libloading::Library,
    path: &'static Path,
}

impl Double {
    /// `None` without a compiler, which is said.
    fn new(major: c_int) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        static BUILT: LazyLock<Option<PathBuf>> = LazyLock::new(|| build(&[]));
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = BUILT.as_deref()?;
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        unsafe { library.get::<unsafe extern "C" fn(c_int)>(b"double_setup\0").unwrap()(major) };
        Some(Self { _turn: turn, path, library })
    }

    fn sound() -> Option<Self> {
        Self::new(1)
    }

    fn name(&self) -> &'static str {
        self.path.to_str().unwrap()
    }

    /// The call of that number from now on fails; all of them for -1.
    fn fail(&self, name: &str, number: c_long, code: c_int) {
        let name = CString::new(name).unwrap();
        type Fail = unsafe extern "C" fn(*const c_char, c_long, c_int);
        unsafe { self.library.get::<Fail>(b"double_fail\0").unwrap()(name.as_ptr(), number, code) };
    }

    /// Work no longer ends until it is allowed to.
    fn hang(&self, on: bool) {
        unsafe { self.library.get::<unsafe extern "C" fn(c_int)>(b"double_hang\0").unwrap()(c_int::from(on)) };
    }

    fn count(&self, function: &[u8], name: &str) -> c_long {
        let name = CString::new(name).unwrap();
        unsafe { self.library.get::<unsafe extern "C" fn(*const c_char) -> c_long>(function).unwrap()(name.as_ptr()) }
    }

    fn calls(&self, name: &str) -> c_long {
        self.count(b"double_calls\0", name)
    }

    fn names(&self) -> Vec<String> {
        let names =
            unsafe { self.library.get::<unsafe extern "C" fn() -> *const c_char>(b"double_names\0").unwrap()() };
        unsafe { CStr::from_ptr(names) }.to_str().unwrap().lines().map(str::to_owned).collect()
    }

    fn assert_nothing_lives(&self, when: &str) {
        for kind in ["context", "stream", "event", "memory", "host", "tensor", "scalar", "ints", "executor", "model"] {
            assert_eq!(self.count(b"double_lives\0", kind), 0, "{kind} alive {when}");
        }
    }
}

fn build(options: &[&str]) -> Option<PathBuf> {
    built("double.cpp", include_str!("double.cpp"), &[&["-std=c++17"], options].concat())
}

/// Libraries of before.
static OLDER: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| build(&["-DWITHOUT_ADDRESSES", "-DWITHOUT_CAPTURES", "-DWITHOUT_CONVOLUTION"]));

fn waves(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 37 % 101) as f32).mul_add(0.03, -1.5)).collect()
}

/// The engine chooses it, and the operations of the issue run on it without a fallback.
#[test]
fn operations_run_on_the_double() {
    let Some(double) = Double::sound() else { return };
    {
        let (there, here) = (engine(double.name()), cpu());
        let chosen = there.selected();
        assert_eq!((chosen.device.backend.as_str(), chosen.device.priority), ("ascend", 75));
        assert!(chosen.device.name.contains("Ascend910B4") && chosen.device.capabilities.operation_graphs);
        assert_eq!(chosen.device.memory_bytes, Some(1 << 35));
        let run = |engine: &Engine| {
            let params = FieldParams::new(65, 33).time(0.5);
            let wave = field(engine, &params).unwrap();
            let spiral = phi_pattern(engine, 40, 30).unwrap();
            let x = engine.tensor_from(&waves(33 * 48), &[33, 48]).unwrap();
            let y = engine.tensor_from(&waves(48 * 20), &[48, 20]).unwrap();
            let product = x.matmul(&y).eval().unwrap();
            let soft = product.softmax(-1).eval().unwrap();
            let chain = ((x.transpose() * 2.0 - 1.0).gelu().sum(&[1], true) / 48.0).exp().eval().unwrap();
            [wave, spiral, product, soft, chain]
        };
        for (a, b) in run(&there).iter().zip(&run(&here)) {
            near(a, b, 1e-4);
        }
        coherence_is_the_processors(&there, &here);
        assert_eq!(fell_back(&there), Vec::<String>::new());
        for name in ["aclnnMatmul", "aclnnReduceSum", "aclnnAmax", "aclnnPermute", "aclnnArange"] {
            assert!(double.calls(name) > 0, "{name}");
        }
    }
    double.assert_nothing_lives("at the end");
}

/// Random chains over float32 against float64.
#[test]
fn random_expressions_agree_with_float64() {
    let Some(double) = Double::sound() else { return };
    let seed = std::env::var("CANTUS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("seed {seed} (CANTUS_SEED repeats it)");
    let mut state = seed | 1;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let engine = engine(double.name());
    for _ in 0..40 {
        let count = 1 + next(50) as usize;
        let values: Vec<f32> = (0..count).map(|_| next(4000) as f32 / 1000.0 - 2.0).collect();
        let start = engine.tensor(&values).unwrap();
        let (mut x, mut oracle) = (&start * 1.0, values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        let mut told = Vec::new();
        for _ in 0..1 + next(8) {
            let op = next(9);
            told.push(op);
            let (made, f): (_, fn(f64, f64) -> f64) = match op {
                0 => (x + &start, |x, y| x + y),
                1 => (x.tanh() * &start, |x, y| x.tanh() * y),
                2 => (x.sin(), |x, _| x.sin()),
                3 => (x.cos() - &start, |x, y| x.cos() - y),
                4 => ((x.abs() + 1.0).sqrt(), |x, _| (x.abs() + 1.0).sqrt()),
                5 => ((-x.abs()).exp(), |x, _| (-x.abs()).exp()),
                6 => (x.maximum(&start), f64::max),
                7 => (x.minimum(&start), f64::min),
                _ => ((x.abs() + 1.0).log() / 1.5, |x, _| (x.abs() + 1.0).ln() / 1.5),
            };
            x = made;
            oracle = oracle.iter().zip(&values).map(|(x, y)| f(*x, f64::from(*y))).collect();
        }
        let found = x.eval().unwrap().to_vec::<f32>().unwrap();
        for (found, expected) in found.iter().zip(&oracle) {
            let error = (f64::from(*found) - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-5, "seed {seed}, operations {told:?}: {found} is not {expected}");
        }
    }
    assert_eq!(fell_back(&engine), Vec::<String>::new());
}

/// u32 is i32 there: where the sign counts, numbers beyond 2^31 must not become negative.
#[test]
fn large_unsigned_numbers_stay_unsigned() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    let numbers = [3_000_000_000_u32, 7, u32::MAX, 1 << 31];
    let divisors = [7_u32, 3_000_000_000, 16, 3];
    let (x, y) = (engine.tensor(&numbers).unwrap(), engine.tensor(&divisors).unwrap());
    let each = |f: fn(u32, u32) -> u32| numbers.iter().zip(&divisors).map(|(x, y)| f(*x, *y)).collect::<Vec<_>>();
    assert_eq!((&x / &y).eval().unwrap().to_vec::<u32>().unwrap(), each(|x, y| x / y));
    assert_eq!((&x * &y).eval().unwrap().to_vec::<u32>().unwrap(), each(u32::wrapping_mul));
    assert_eq!((&x + &y).eval().unwrap().to_vec::<u32>().unwrap(), each(u32::wrapping_add));
    assert_eq!(x.maximum(&y).eval().unwrap().to_vec::<u32>().unwrap(), each(u32::max));
    let floats = x.cast(cantus::DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(floats, numbers.map(|x| x as f32));
    assert_eq!(fell_back(&engine), Vec::<String>::new());
}

/// Kernels that are no graphs go to the next device, with their inputs, and an event says so.
#[test]
fn kernels_go_to_the_next_device() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn triple(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] = 3.0 * x[id.x]; }
         }",
    )
    .unwrap();
    let x = (engine.tensor(&[0.0_f32, 1.0, 2.0]).unwrap() * 2.0).eval().unwrap();
    let y = engine.zeros::<f32>(&[3]).unwrap();
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).invocations(3).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 6.0, 12.0]);
    let told = fell_back(&engine);
    assert!(told.iter().any(|message| message.contains("an Ascend device runs operation graphs")), "{told:?}");
    // Philox shifts by what no operator of aclnn takes.
    let (there, here) = (cantus::ops::rand(&engine, &[9], 7), cpu());
    near(&there.eval().unwrap(), &cantus::ops::rand(&here, &[9], 7).eval().unwrap(), 0.0);
}

/// Looking for devices makes no context.
#[test]
fn probing_makes_no_context() {
    let Some(double) = Double::sound() else { return };
    let probe = pollster::block_on(AscendBackend::with_library(double.name()).probe());
    assert_eq!((probe.devices.len(), probe.devices[0].priority), (1, 75));
    assert!(probe.devices[0].driver.contains("AscendCL 1.15"));
    assert_eq!((double.calls("aclInit"), double.calls("aclrtCreateContext")), (1, 0));
}

fn scenario(library: &str) -> Result<Vec<f32>> {
    let engine = Engine::builder().registry(registry(library)).placement(false).build()?;
    let x = engine.tensor_from(&waves(6 * 6), &[6, 6])?;
    let soft = (x.matmul(&x) + 1.0).softmax(-1).eval()?;
    let chain = ((x.transpose() * 0.5).exp().sum(&[1], true) / 6.0).eval()?;
    let mut all = soft.to_vec::<f32>()?;
    all.extend(chain.to_vec::<f32>()?);
    let y = engine.tensor_from(&waves(36), &[6, 6])?;
    let step = engine.capture(|| (y.matmul(&y) - 1.0).tanh().eval())?;
    for _ in 0..2 {
        step.replay(&GraphInputs::new().set(&y, &waves(36)))?;
        all.extend(step.outputs().to_vec::<f32>()?);
    }
    Ok(all)
}

/// An executor is asked for once, and runs again over other memory.
#[test]
fn executors_are_kept() {
    let Some(double) = Double::sound() else { return };
    {
        let engine = engine(double.name());
        for round in 0..5 {
            let values: Vec<f32> = waves(12).iter().map(|x| x + round as f32).collect();
            let x = engine.tensor_from(&values, &[3, 4]).unwrap();
            let y = (x.transpose().exp() - &x.transpose()).maximum(x.transpose()).eval().unwrap();
            let found = y.to_vec::<f32>().unwrap();
            for (at, found) in found.iter().enumerate() {
                let x = f64::from(values[at % 3 * 4 + at / 3]);
                let expected = (x.exp() - x).max(x);
                assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{found} {expected}");
            }
        }
        assert_eq!((double.calls("aclnnExpGetWorkspaceSize"), double.calls("aclnnExp")), (1, 5));
        assert_eq!((double.calls("aclnnMaximumGetWorkspaceSize"), double.calls("aclnnMaximum")), (1, 5));
        assert!(double.calls("aclSetOutputTensorAddr") > 0);
        assert_eq!(fell_back(&engine), Vec::<String>::new());
    }
    double.assert_nothing_lives("at the end");
}

/// Executors are created anew if they cannot be kept: aclnn refuses, an address cannot be changed, or the library is older.
#[test]
fn executors_that_cannot_be_kept_are_made_anew() {
    let rounds = |library: &str| {
        let engine = engine(library);
        for _ in 0..3 {
            let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
            assert_eq!((x.sqrt() + &x).eval().unwrap().to_vec::<f32>().unwrap(), [6.0, 12.0]);
        }
        assert_eq!(fell_back(&engine), Vec::<String>::new());
    };
    for (name, asked) in [("aclSetAclOpExecutorRepeatable", 4), ("aclSetInputTensorAddr", 4)] {
        let Some(double) = Double::sound() else { return };
        double.fail(name, -1, FAILED);
        rounds(double.name());
        assert_eq!((double.calls("aclnnSqrtGetWorkspaceSize"), double.calls("aclnnSqrt")), (asked, 3), "{name}");
    }
    let Some(library) = &*OLDER else { return };
    rounds(library.to_str().unwrap());
}

/// Computes in float64 what graphs compute from these inputs and from each other's results.
fn replays(engine: &Engine) -> usize {
    let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let same = |found: &Tensor, expected: &[f64], what: &str| {
        let found = wide(&found.to_vec::<f32>().unwrap());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4), "{what}: {found:?} is not {expected:?}");
    };
    let (x, w) = (engine.tensor(&[0.0_f32; 4]).unwrap(), engine.tensor(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap());
    let row = engine.tensor_from(&[1.0_f32 / 256.0; 256], &[1, 256]).unwrap();
    // A chain whose results are read inside and outside, by way of values that nothing outside reads.
    let first = engine
        .capture(|| {
            let y = (&x * &w).eval()?;
            let z = ((y.exp() + 1.0).reshape(&[4, 1]) * &row).sum(&[1], true).eval()?;
            Ok((z.reshape(&[2, 2]).transpose().eval()?, y))
        })
        .unwrap();
    // What the first one gives, and a tensor that it reads.
    let second = engine.capture(|| (first.outputs().0.reshape(&[4]) - &x).eval()).unwrap();
    // Both of them, once more.
    let third = engine.capture(|| (second.outputs() + &first.outputs().1).eval()).unwrap();
    let mut kept = Vec::new();
    for round in 0..4_u8 {
        let given: Vec<f32> = (0..4).map(|at| (f32::from(round) - at as f32) * 0.25).collect();
        let (x64, w64) = (wide(&given), [1.0, 2.0, 3.0, 4.0]);
        first.replay(&GraphInputs::new().set(&x, &given)).unwrap();
        second.replay(&GraphInputs::new()).unwrap();
        third.replay(&GraphInputs::new()).unwrap();
        let y: Vec<f64> = x64.iter().zip(w64).map(|(x, w)| x * w).collect();
        let z: Vec<f64> = [0, 2, 1, 3].map(|at: usize| y[at].exp() + 1.0).to_vec();
        let last: Vec<f64> = z.iter().zip(&x64).map(|(z, x)| z - x).collect();
        // Other work reads them meanwhile, and keeps what it made of them.
        let (now, other) =
            (first.outputs().1.reshape(&[2, 2]).eval().unwrap(), (second.outputs() * 2.0).eval().unwrap());
        kept.push((now, y.clone()));
        kept.push((other, last.iter().map(|x| 2.0 * x).collect()));
        for _ in 0..4 {
            let made = (&x.reshape(&[4, 1]) * &row).eval().unwrap();
            kept.push((made, (0..1024).map(|at| x64[at / 256] / 256.0).collect()));
        }
        same(&first.outputs().0, &z, "first");
        same(&first.outputs().1, &y, "inside");
        same(second.outputs(), &last, "second");
        same(third.outputs(), &last.iter().zip(&y).map(|(x, y)| x + y).collect::<Vec<_>>(), "third");
    }
    for (tensor, expected) in &kept {
        same(tensor, expected, "kept");
    }
    assert_eq!(fell_back(engine), Vec::<String>::new());
    12
}

/// A captured graph is a model of the library's: its operators are called once, whatever its inputs are and wherever they lie.
#[test]
fn graphs_are_recorded() {
    let Some(double) = Double::sound() else { return };
    {
        let engine = engine(double.name());
        let times = replays(&engine);
        assert_eq!(double.calls("aclmdlRICaptureEnd"), 3);
        assert_eq!(double.calls("aclmdlRIExecuteAsync") as usize, times);
        assert_eq!(double.calls("aclnnExp"), 1);
    }
    assert_eq!(double.calls("aclmdlRIDestroy"), 3);
    double.assert_nothing_lives("at the end");
}

/// If nothing can be recorded, the commands are kept, with the same numbers.
#[test]
fn what_cannot_be_recorded_is_run() {
    for name in ["aclmdlRICaptureBegin", "aclmdlRICaptureEnd"] {
        let Some(double) = Double::sound() else { return };
        double.fail(name, -1, FAILED);
        replays(&engine(double.name()));
        assert_eq!((double.calls("aclmdlRIExecuteAsync"), double.calls("aclnnExp") > 1), (0, true), "{name}");
        double.fail(name, 0, 0);
        double.assert_nothing_lives(name);
    }
    let Some(library) = &*OLDER else { return };
    replays(&engine(library.to_str().unwrap()));
}

/// Each call fails once: the numbers are still right, or there is an error; and nothing is left alive.
#[test]
fn each_call_may_fail() {
    let Some(double) = Double::sound() else { return };
    let expected = scenario(double.name()).unwrap();
    let counts: Vec<_> = double.names().into_iter().map(|name| (double.calls(&name), name)).collect();
    assert!(counts.len() > 35, "{counts:?}");
    drop(double);
    let (mut right, mut errors) = (0, 0);
    for (count, name) in counts {
        for (number, code) in [(1, FAILED), (count / 2 + 1, FAILED), (count, FAILED), (1, NO_MEMORY), (1, LOST)] {
            let Some(double) = Double::sound() else { return };
            double.fail(&name, number, code);
            match scenario(double.name()) {
                Ok(found) => {
                    right += 1;
                    let same = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5);
                    assert!(same && found.len() == expected.len(), "{name}, call {number}, code {code}: {found:?}");
                }
                Err(error) => {
                    errors += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
            // What was told not to go stays, and so does an executor of a trial that cannot be made repeatable: aclnn destroys no other.
            if !["Destroy", "Free", "Repeatable"].iter().any(|word| name.contains(word)) {
                double.assert_nothing_lives(&format!("after {name}, call {number}, code {code}"));
            }
        }
    }
    println!("{right} right, {errors} errors");
    assert!(right > 20 && errors > 20, "{right} right, {errors} errors");
}

#[test]
fn no_memory_and_a_lost_device_are_named() {
    let Some(double) = Double::sound() else { return };
    for (name, code) in [("aclrtMalloc", NO_MEMORY), ("aclnnSqrt", LOST), ("aclnnSqrt", FAILED)] {
        let engine = engine(double.name());
        let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
        double.fail(name, -1, code);
        let error = x.sqrt().eval().and_then(|y| y.to_vec::<f32>()).unwrap_err();
        double.fail(name, 0, 0);
        let cause = match &error {
            Error::TensorLost { cause, .. } => &**cause,
            other => other,
        };
        match code {
            NO_MEMORY => assert!(matches!(cause, Error::OutOfMemory { .. }), "{error}"),
            _ => assert!(cause.to_string().contains("told to fail"), "{error}"),
        }
        // New work goes on: here, or on the next device where this one is lost.
        let y = engine.tensor(&[16.0_f32, 25.0]).unwrap();
        assert_eq!(y.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [4.0, 5.0], "{name} {code}");
        drop((x, y, engine));
        double.assert_nothing_lives(name);
    }
}

/// An operator that refuses a dtype or shape is asked before anything runs.
#[test]
fn what_an_operator_refuses_goes_to_the_next_device() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    double.fail("aclnnSqrtGetWorkspaceSize", 1, 161_002);
    let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
    assert_eq!(x.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(double.calls("aclnnSqrt"), 0);
    let told = fell_back(&engine);
    assert!(told.iter().any(|message| message.contains("told to fail")), "{told:?}");
    drop((x, engine));
    double.assert_nothing_lives("at the end");
}

#[test]
fn libraries_that_do_not_serve_are_reasons() {
    let reason = |library: &str| {
        let probe = pollster::block_on(AscendBackend::with_library(library).probe());
        assert!(probe.devices.is_empty());
        probe.reason.unwrap()
    };
    assert!(reason("/nowhere/libascend.so").contains("/nowhere/libascend.so"));
    if cfg!(target_os = "linux") {
        assert!(reason("libc.so.6").contains("it lacks the function aclInit"));
    }
    let Some(double) = Double::new(2) else { return };
    assert!(reason(double.name()).contains("AscendCL 2.15"));
    drop(double);
    let Some(double) = Double::sound() else { return };
    double.fail("aclrtGetDeviceCount", 1, FAILED);
    assert!(reason(double.name()).contains("told to fail"));
    double.fail("aclrtCreateContext", 1, FAILED);
    let builder = Engine::builder().registry(registry(double.name())).backend("ascend").fallback(Fallback::Never);
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains("told to fail"), "{error}");
    let Some(nameless) = build(&["-DWITHOUT_NAME"]) else { return };
    assert!(reason(nameless.to_str().unwrap()).contains("it lacks the function aclrtGetSocName"));
}

/// An older library lacks operators: what needs them goes to the next device, the rest stays.
#[test]
fn an_operator_may_be_missing() {
    let Some(library) = &*OLDER else { return };
    let engine = engine(library.to_str().unwrap());
    let x = engine.tensor_from(&waves(16), &[1, 1, 4, 4]).unwrap();
    let w = engine.tensor_from(&[1.0_f32, 0.0, 0.0, 1.0], &[1, 1, 2, 2]).unwrap();
    let (here, values) = (x.conv2d(&w, cantus::ops::Window::default(), 1).eval().unwrap(), waves(16));
    let expected: Vec<f32> =
        (0..9).map(|at| at / 3 * 4 + at % 3).map(|at: usize| values[at] + values[at + 5]).collect();
    assert_eq!(here.to_vec::<f32>().unwrap(), expected);
    let told = fell_back(&engine);
    assert!(told.iter().any(|message| message.contains("lack aclnnConvolution")), "{told:?}");
}

fn hasty(library: &str) -> Engine {
    let builder = Engine::builder().registry(registry(library)).placement(false);
    builder.fallback(Fallback::Never).timeout(Duration::from_millis(300)).build().unwrap()
}

/// A stream that hangs is left alone, with all that it may touch, until it goes on.
#[test]
fn a_stream_that_hangs_is_held() {
    let Some(double) = Double::sound() else { return };
    assert_held(hasty(double.name()), 256, |on| double.hang(on));
    double.assert_nothing_lives("after it went on");
}

/// Waits on the caller's own thread keep the time limit too: giving back memory, and values in another shape.
#[test]
fn every_wait_for_a_stream_has_a_limit() {
    type Work = fn(&Engine, &Tensor);
    let trimmed: Work = |engine, _| engine.trim();
    let reshaped: Work = |_, y| {
        let z = (y.reshape(&[8, 8]).eval().unwrap() + 1.0).eval().and_then(|z| z.to_vec::<f32>());
        assert!(z.is_err(), "never ends");
    };
    let written: Work = |_, y| assert!(y.write_at(3, &[1.0_f32]).is_err(), "never ends");
    for (name, work) in [("trim", trimmed), ("reshape", reshaped), ("write", written)] {
        let Some(double) = Double::sound() else { return };
        let _turn = alone();
        let engine = hasty(double.name());
        let x = engine.tensor_from(&waves(64), &[64]).unwrap();
        double.hang(true);
        let y = (&x * 3.0).eval().unwrap();
        let start = Instant::now();
        work(&engine, &y);
        drop((engine, x, y));
        assert!(start.elapsed() < Duration::from_secs(3), "{name}: {:?}", start.elapsed());
        double.hang(false);
        let start = Instant::now();
        while double.count(b"double_lives\0", "context") > 0 {
            assert!(start.elapsed() < Duration::from_secs(20), "{name}: it is still held");
            std::thread::sleep(Duration::from_millis(10));
        }
        double.assert_nothing_lives(name);
    }
}
