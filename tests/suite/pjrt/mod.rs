//! The PJRT backend on the simulator, by itself and behind a library that counts calls and fails on demand.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the double's functions have the types that its source gives them"
)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_char;
use std::ffi::{c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cantus::backend::cpu::CpuBackend;
use cantus::backend::pjrt::{PjrtBackend, simulator_table};
use cantus::backend::{Backend, Registry};
use cantus::engine::GraphInputs;
use cantus::ops::field::{FieldParams, field, phi_pattern};
use cantus::{Engine, Error, Fallback, Kernel, Tensor};
use kit::doubles::{assert_held, built, coherence_is_the_processors, cpu, fell_back, near};

const UNIMPLEMENTED: c_int = 12;
const RESOURCE_EXHAUSTED: c_int = 8;
const INTERNAL: c_int = 13;
const CLIENT_CREATE: usize = 10;
const CLIENT_DESTROY: usize = 11;
const COMPILE: usize = 20;
const UPLOAD: usize = 22;
const EXECUTE: usize = 55;
const COPY: usize = 69;
const TO_HOST: usize = 70;

fn registry(plugins: &str) -> Registry {
    let mut registry = Registry::empty();
    registry.register(Arc::new(PjrtBackend::with_plugins(plugins)));
    registry.register(Arc::new(CpuBackend::new()));
    registry
}

fn engine(plugins: &str) -> Engine {
    Engine::builder().registry(registry(plugins)).build().unwrap()
}

/// Waits until no client lives.
fn no_client(library: &libloading::Library) {
    let clients = unsafe { library.get::<unsafe extern "C" fn() -> c_long>(b"double_clients\0").unwrap() };
    for _ in 0..4000 {
        if unsafe { clients() } == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("a client is still alive");
}

/// The double, and the right to tell it what to do.
struct Double {
    _turn: MutexGuard<'static, ()>,
    library: libloading::Library,
    path: &'static Path,
}

impl Double {
    /// `None` without a C compiler, which is said.
    fn new(major: c_int, missing: c_int, shorter: usize) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        static BUILT: LazyLock<Option<PathBuf>> =
            LazyLock::new(|| built("double.c", include_str!("double.c"), &["-Wall", "-Werror"]));
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = BUILT.as_deref()?;
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        let setup = unsafe {
            library.get::<unsafe extern "C" fn(*const c_void, c_int, c_int, usize)>(b"double_setup\0").unwrap()
        };
        // What the last one made may still be let go of by a thread of the library's.
        no_client(&library);
        unsafe { setup(simulator_table(), major, missing, shorter) };
        Some(Self { _turn: turn, path, library })
    }

    fn sound() -> Option<Self> {
        Self::new(0, -1, 0)
    }

    fn name(&self) -> &'static str {
        self.path.to_str().unwrap()
    }

    /// The call of that number from now on fails.
    fn fail(&self, place: usize, number: c_long, code: c_int) {
        let fail = unsafe { self.library.get::<unsafe extern "C" fn(c_int, c_long, c_int)>(b"double_fail\0").unwrap() };
        unsafe { fail(place as c_int, number, code) };
    }

    /// No event passes until it may continue.
    fn hang(&self, on: bool) {
        unsafe { self.library.get::<unsafe extern "C" fn(c_int)>(b"double_hang\0").unwrap()(c_int::from(on)) };
    }

    fn calls(&self, place: usize) -> c_long {
        let calls = unsafe { self.library.get::<unsafe extern "C" fn(c_int) -> c_long>(b"double_calls\0").unwrap() };
        unsafe { calls(place as c_int) }
    }

    /// Executions that took an input's memory.
    fn donations(&self) -> c_long {
        unsafe { self.library.get::<unsafe extern "C" fn() -> c_long>(b"double_donations\0").unwrap()() }
    }

    fn reason(&self) -> String {
        let probe = pollster::block_on(PjrtBackend::with_plugins(self.name()).probe());
        assert!(probe.devices.is_empty());
        probe.reason.unwrap()
    }
}

/// The engine chooses it, and the operations of the issue run on it without a fallback.
#[test]
fn operations_run_on_the_simulator() {
    let (there, here) = (engine("simulate"), cpu());
    let chosen = there.selected();
    assert_eq!((chosen.device.backend.as_str(), chosen.device.priority), ("pjrt", 85));
    assert!(chosen.device.capabilities.operation_graphs);
    let run = |engine: &Engine| {
        let params = FieldParams::new(65, 33).time(0.5);
        let wave = field(engine, &params).unwrap();
        let spiral = phi_pattern(engine, 40, 30).unwrap();
        let x = cantus::ops::rand(engine, &[33, 48], 7).eval().unwrap();
        let y = cantus::ops::rand(engine, &[48, 20], 8).eval().unwrap();
        let product = x.matmul(&y).eval().unwrap();
        let soft = product.softmax(-1).eval().unwrap();
        let chain = ((x.transpose() * 2.0 - 1.0).gelu().sum(&[1], true) / 3.0).exp().eval().unwrap();
        let given = engine.tensor(&[1.5_f32, -2.0, 3.0]).unwrap();
        let squared = (&given * &given + 1.0).eval().unwrap();
        [wave, spiral, x, product, soft, chain, squared]
    };
    for (a, b) in run(&there).iter().zip(&run(&here)) {
        near(a, b, 2e-5);
    }
    coherence_is_the_processors(&there, &here);
    assert_eq!(fell_back(&there), Vec::<String>::new());
    assert!(there.metrics().iter().any(|row| row.operation.contains("native")));
}

#[test]
fn bf16_is_near_and_not_the_same() {
    let (full, half) = (engine("simulate"), engine("simulate-bf16"));
    let [a, b] = [&full, &half].map(|engine| {
        let x = cantus::ops::rand(engine, &[64, 64], 3).eval().unwrap();
        x.matmul(&x).eval().unwrap()
    });
    near(&a, &b, 0.5);
    assert_ne!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
}

/// Kernels that are no graphs go to the next device, with their inputs, and an event says so.
#[test]
fn kernels_go_to_the_next_device() {
    let engine = engine("simulate");
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn triple(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] = 3.0 * x[id.x]; }
         }",
    )
    .unwrap();
    let x = (cantus::ops::arange(&engine, 0.0, 5.0, 1.0, cantus::DType::F32) * 2.0).eval().unwrap();
    let y = engine.zeros::<f32>(&[5]).unwrap();
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).invocations(5).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 6.0, 12.0, 18.0, 24.0]);
    let told = fell_back(&engine);
    assert!(told.iter().any(|message| message.contains("runs operation graphs")), "{told:?}");
    // An operation without a form as a graph runs there too.
    let sorted = engine.tensor(&[3.0_f32, 1.0, 2.0]).unwrap().sort(-1, false).eval().unwrap();
    assert_eq!(sorted.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn parts_are_written_and_read() {
    let engine = engine("simulate");
    let x = engine.tensor(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let y = (&x + 1.0).eval().unwrap();
    y.write(&[9.0_f32, 8.0, 7.0, 6.0]).unwrap();
    assert_eq!((&y * 1.0).eval().unwrap().to_vec::<f32>().unwrap(), [9.0, 8.0, 7.0, 6.0]);
    // Another shape of the same memory.
    let z = engine.tensor_from(&[1_u8, 2, 3, 4, 5, 6], &[2, 3]).unwrap();
    let turned = (z.transpose() + z.transpose()).eval().unwrap();
    assert_eq!(turned.to_vec::<u8>().unwrap(), [2, 8, 4, 10, 6, 12]);
}

/// Programs are kept by shape; every buffer, event and executable is destroyed.
#[test]
fn programs_are_kept_and_objects_destroyed() {
    let Some(double) = Double::sound() else { return };
    {
        let engine = engine(double.name());
        let x = cantus::ops::rand(&engine, &[8, 8], 1).eval().unwrap();
        let compiled = double.calls(COMPILE);
        for _ in 0..5 {
            let y = (x.matmul(&x) + 1.0).eval().unwrap();
            assert_eq!(y.to_vec::<f32>().unwrap().len(), 64);
        }
        assert_eq!(double.calls(COMPILE), compiled + 1);
        // Nothing is uploaded again, and nothing comes back but what is read.
        assert_eq!((double.calls(UPLOAD), double.calls(TO_HOST)), (0, 5));
        assert_eq!(fell_back(&engine), Vec::<String>::new());
    }
    let made = double.calls(UPLOAD) + double.calls(EXECUTE);
    assert_eq!(double.calls(58), made, "buffers");
    assert_eq!(double.calls(50), double.calls(COMPILE), "executables");
    assert_eq!(double.calls(11), double.calls(CLIENT_CREATE), "clients");
    assert_eq!(double.calls(5), double.calls(UPLOAD) + double.calls(EXECUTE) + double.calls(TO_HOST), "events");
}

/// A large value that nothing reads any more gives its memory to the result; what is held elsewhere stays as it is.
#[test]
fn large_values_are_given_away_by_their_last_reader() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    let values: Vec<f32> = (0..1 << 18).map(|at| (at % 1000) as f32).collect();
    let step = |x: &Tensor| (x * 0.5 + 1.0).eval().unwrap();
    let check = |x: &Tensor, steps: i32| {
        let found = x.to_vec::<f32>().unwrap();
        let half = 0.5_f64.powi(steps);
        for (at, found) in found.iter().enumerate().step_by(1013) {
            let expected = f64::from(values[at]) * half + 2.0 * (1.0 - half);
            assert!((f64::from(*found) - expected).abs() < 1e-3, "{found} is not {expected}");
        }
    };
    let first = engine.tensor(&values).unwrap();
    // Each is read by the next alone.
    let mut x = step(&first);
    for _ in 0..3 {
        x = step(&x);
    }
    check(&x, 4);
    // The program as it is, and as one that takes its input's memory.
    assert_eq!(double.calls(COMPILE), 2);
    // Held, read twice, or read later: all numbers are still there.
    let y = step(&x);
    check(&x, 4);
    check(&y, 5);
    let (both, last) = ((&y + &x).eval().unwrap(), step(&y));
    drop((x, y));
    check(&last, 6);
    let found = both.to_vec::<f32>().unwrap()[7];
    assert!((found - (7.0 / 16.0 + 1.875 + 7.0 / 32.0 + 1.9375)).abs() < 1e-3, "{found}");
    check(&first, 0);
    assert_eq!(fell_back(&engine), Vec::<String>::new());
    drop((first, last, both, engine));
    let made = double.calls(UPLOAD) + double.calls(EXECUTE);
    assert_eq!(double.calls(58), made, "buffers");
    assert_eq!(double.calls(50), double.calls(COMPILE), "executables");
}

/// In a graph too: what its commands alone hold is given away by its last reader, at each replay, and what somebody may read is not.
#[test]
fn large_values_of_graphs_are_given_away() {
    let Some(double) = Double::sound() else { return };
    {
        let engine = engine(double.name());
        let x = engine.zeros::<f32>(&[1 << 18]).unwrap();
        let step = |x: &Tensor| (x * 0.5 + 1.0).eval();
        // Of eight results two are read outside, and one is read by two: each of the other five is its reader's.
        let graph = engine
            .capture(|| {
                let kept = step(&step(&x)?)?;
                let twice = step(&step(&kept)?)?;
                let last = (step(&step(&twice)?)? + &twice).eval()?;
                Ok((kept, step(&last)?))
            })
            .unwrap();
        let half = |x: f64, steps: i32| x * 0.5_f64.powi(steps) + 2.0 * (1.0 - 0.5_f64.powi(steps));
        let before = double.calls(COMPILE);
        for round in 0..4 {
            let values: Vec<f32> = (0..1 << 18).map(|at| (at % 1000 + round) as f32).collect();
            graph.replay(&GraphInputs::new().set(&x, &values)).unwrap();
            let found = [&graph.outputs().0, &graph.outputs().1].map(|tensor| tensor.to_vec::<f32>().unwrap());
            for (at, x) in values.iter().enumerate().step_by(1013) {
                let (kept, twice) = (half((*x).into(), 2), half((*x).into(), 4));
                let wanted = [kept, half(half(twice, 2) + twice, 1)];
                for (found, wanted) in found.iter().zip(wanted) {
                    assert!((f64::from(found[at]) - wanted).abs() < 1e-3, "{} is not {wanted}", found[at]);
                }
            }
        }
        // The programs that give away are compiled once.
        assert_eq!(double.calls(COMPILE) - before, 2);
        assert_eq!((double.calls(EXECUTE), double.donations()), (4 * 8, 4 * 5));
        assert_eq!(fell_back(&engine), Vec::<String>::new());
    }
    assert_eq!(double.calls(58), double.calls(UPLOAD) + double.calls(EXECUTE), "buffers");
    assert_eq!(double.calls(50), double.calls(COMPILE), "executables");
}

/// A run of a graph that fails loses what the graph gives, and no more: captured again it gives it.
#[test]
fn a_graph_that_fails_is_captured_again() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    let x = engine.tensor(&vec![4.0_f32; 1 << 18]).unwrap();
    let capture = || engine.capture(|| (x.sqrt().eval()?.sqrt().eval()? + 1.0).eval()).unwrap();
    let graph = capture();
    double.fail(EXECUTE, 2, INTERNAL);
    graph.replay(&GraphInputs::new()).unwrap();
    let error = graph.outputs().to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("told to fail"), "{error}");
    let graph = capture();
    graph.replay(&GraphInputs::new().set(&x, &vec![16.0_f32; 1 << 18])).unwrap();
    assert_eq!(graph.outputs().to_vec::<f32>().unwrap()[7], 3.0);
}

/// A plugin that refuses such programs gets the others.
#[test]
fn nothing_is_given_away_where_the_plugin_refuses() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    let x = engine.tensor(&vec![8.0_f32; 1 << 18]).unwrap();
    let mut y = (&x * 0.5).eval().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[7], 4.0);
    double.fail(COMPILE, 1, UNIMPLEMENTED);
    for _ in 0..3 {
        y = (&y * 0.5).eval().unwrap();
    }
    assert_eq!(y.to_vec::<f32>().unwrap()[7], 0.5);
    assert_eq!(double.calls(COMPILE), 2);
    assert_eq!(fell_back(&engine), Vec::<String>::new());
}

/// Looking for devices makes no client.
#[test]
fn probing_makes_no_client() {
    let Some(double) = Double::sound() else { return };
    let backend = PjrtBackend::with_plugins(double.name());
    let probe = pollster::block_on(backend.probe());
    assert_eq!((probe.devices.is_empty(), probe.devices[0].priority), (false, 75));
    assert_eq!(double.calls(CLIENT_CREATE), 0);
}

/// A client's devices are known when it is made, and share it; programs and values are each one's own.
#[test]
fn every_device_of_a_client_is_used() {
    let Some(double) = Double::sound() else { return };
    let registry = Arc::new(registry(double.name()));
    let devices = || {
        let probe = pollster::block_on(PjrtBackend::with_plugins(double.name()).probe());
        probe.devices.iter().map(|device| device.index).collect::<Vec<_>>()
    };
    {
        let on = |index: usize| {
            let builder = Engine::builder().registry((*registry).clone()).fallback(Fallback::Never).placement(false);
            builder.backend("pjrt").device(index).build().unwrap()
        };
        let mut engines = vec![on(0)];
        assert_eq!(devices(), [0, 1, 2]);
        engines.extend([on(1), on(2)]);
        assert_eq!(double.calls(CLIENT_CREATE), 1);
        let compiled = double.calls(COMPILE);
        let work = |(place, engine): (usize, &Engine)| {
            let x = engine.tensor(&[4.0_f32, 9.0 + place as f32]).unwrap();
            (&x * &x + 1.0).eval().unwrap()
        };
        let made: Vec<_> = engines.iter().enumerate().map(work).collect();
        for (place, y) in made.iter().enumerate() {
            assert_eq!(y.to_vec::<f32>().unwrap(), [17.0, (9.0 + place as f32).powi(2) + 1.0]);
        }
        assert_eq!(double.calls(COMPILE), compiled + 3, "a program for each device");
        assert!(engines.iter().all(|engine| fell_back(engine).is_empty()));
    }
    assert_eq!(double.calls(CLIENT_DESTROY), 1);
}

/// Values go from one device of a client to another without the host; where the plugin refuses, by it.
#[test]
fn devices_of_a_client_copy_to_each_other() {
    let Some(double) = Double::sound() else { return };
    {
        let devices = PjrtBackend::with_plugins(&format!("{}*3", double.name()));
        let mut registry = Registry::empty();
        registry.register(Arc::new(devices));
        let engine = Engine::builder().registry(registry).backend("pjrt").device(0).build().unwrap();
        let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
        // Bytes that wait on the host are taken as they are.
        let given = x.to_device("pjrt:1").unwrap();
        let made = (&x + 1.0).eval().unwrap();
        let (there, back) = (made.to_device("pjrt:2").unwrap(), || made.to_device("pjrt:1").unwrap());
        assert_eq!((double.calls(UPLOAD), double.calls(TO_HOST), double.calls(COPY)), (1, 0, 1));
        // It computes there, with what came there before.
        let sum = (&there * &there).eval().unwrap();
        assert_eq!(sum.device().index, 2);
        assert_eq!(sum.to_vec::<f32>().unwrap(), [25.0, 100.0]);
        assert_eq!((&back() + &given).eval().unwrap().to_vec::<f32>().unwrap(), [9.0, 19.0]);
        assert_eq!((double.calls(TO_HOST), double.calls(COPY)), (2, 2));
        double.fail(COPY, 1, UNIMPLEMENTED);
        assert_eq!(back().to_vec::<f32>().unwrap(), [5.0, 10.0]);
        assert_eq!((double.calls(TO_HOST), double.calls(COPY)), (3, 3));
        double.fail(COPY, 1, RESOURCE_EXHAUSTED);
        assert!(matches!(made.to_device("pjrt:1").unwrap_err(), Error::OutOfMemory { .. }));
        assert_eq!(made.to_vec::<f32>().unwrap(), [5.0, 10.0]);
        assert_eq!(fell_back(&engine), Vec::<String>::new());
    }
    let made = double.calls(UPLOAD) + double.calls(EXECUTE) + double.calls(COPY) - 2;
    assert_eq!(double.calls(58), made, "buffers");
}

/// The number of devices may be asked for before there is a client; it must be true.
#[test]
fn the_number_of_devices_may_be_asked_for() {
    let probe = pollster::block_on(PjrtBackend::with_plugins("simulate-bf16*2").probe());
    assert_eq!(probe.devices.iter().map(|device| device.index).collect::<Vec<_>>(), [0, 1]);
    let Some(double) = Double::sound() else { return };
    let backend = PjrtBackend::with_plugins(&format!("{}*5", double.name()));
    assert_eq!(pollster::block_on(backend.probe()).devices.len(), 5);
    let options = cantus::backend::OpenOptions::new();
    assert!(pollster::block_on(backend.open(2, &options)).is_ok());
    let error = pollster::block_on(backend.open(4, &options)).err().unwrap();
    assert!(error.to_string().contains("its client has 3 devices"), "{error}");
}

/// The double of that path, told to abort: in a function, for programs with a word.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn aborting(path: &Path, place: c_int, word: &std::ffi::CStr) -> libloading::Library {
    let library = unsafe { libloading::Library::new(path) }.unwrap();
    unsafe {
        type Setup = unsafe extern "C" fn(*const c_void, c_int, c_int, usize);
        library.get::<Setup>(b"double_setup\0").unwrap()(simulator_table(), 0, -1, 0);
        type Abort = unsafe extern "C" fn(c_int, *const c_char);
        library.get::<Abort>(b"double_abort\0").unwrap()(place, word.as_ptr());
    }
    library
}

/// A program that ends the process at its first use is tried in a copy by the next process, and refused with what it said; others run.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_program_that_aborts_is_left_alone() {
    use std::os::unix::process::ExitStatusExt as _;

    const ROOT: &std::ffi::CStr = c"stablehlo.sqrt";
    let work = |path: &Path, folder: &Path| {
        let builder = Engine::builder().registry(registry(path.to_str().unwrap())).cache_folder(folder);
        let engine = builder.build().unwrap();
        let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
        assert_eq!((&x + 1.0).eval().unwrap().to_vec::<f32>().unwrap(), [5.0, 10.0]);
        assert_eq!(x.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
        fell_back(&engine)
    };
    // The process that is ended.
    let variables = ["CANTUS_TEST_PLUGIN", "CANTUS_TEST_PLACE", "CANTUS_TEST_FOLDER"];
    if let [Some(path), Some(place), Some(folder)] = variables.map(std::env::var_os) {
        let _library = aborting(path.as_ref(), place.to_str().unwrap().parse().unwrap(), ROOT);
        work(path.as_ref(), folder.as_ref());
        return;
    }
    let Some(double) = Double::sound() else { return };
    for (place, is_sound_now) in [(COMPILE, false), (EXECUTE, false), (COMPILE, true), (EXECUTE, true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libaborts.so");
        std::fs::copy(double.path, &path).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "pjrt::a_program_that_aborts_is_left_alone"]);
        let values = [path.as_os_str(), place.to_string().as_ref(), folder.path().as_os_str()].map(ToOwned::to_owned);
        let done = child.envs(variables.into_iter().zip(values)).output().unwrap();
        assert_eq!(done.status.signal(), Some(6), "{}", String::from_utf8_lossy(&done.stderr));
        let notes = || {
            let notes = std::fs::read_dir(folder.path().join("pjrt")).unwrap();
            notes.map(|note| note.unwrap().path().extension().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(notes(), ["begun"]);
        let _library = aborting(&path, if is_sound_now { -2 } else { place as c_int }, ROOT);
        // Twice: what was tried once is known.
        for _ in 0..2 {
            let told = work(&path, folder.path());
            if is_sound_now {
                assert_eq!((told, notes()), (Vec::new(), Vec::new()));
                continue;
            }
            let wanted = ["ended it by signal 6", "the double was told to abort", "to have it tried again"];
            assert!(wanted.iter().all(|part| told.iter().any(|told| told.contains(part))), "{told:?}");
            assert_eq!(notes(), ["refused"]);
        }
    }
}

/// A plugin that ends the process is refused with what it said, in each of the calls before work; the engine takes another device.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_plugin_that_aborts_is_left_alone() {
    let Some(double) = Double::sound() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (place, what) in [(-1, "loading it"), (3, "making its client"), (CLIENT_CREATE as c_int, "making its client")] {
        // A library of its own, which nobody has tried.
        let path = folder.path().join(format!("libaborts{place}.so"));
        std::fs::copy(double.path, &path).unwrap();
        let _library = aborting(&path, place, c"");
        let name = path.to_str().unwrap();
        // Twice: what was seen once is not tried again.
        for _ in 0..2 {
            assert_eq!(engine(name).selected().device.backend, "cpu", "{what}");
            let builder = Engine::builder().registry(registry(name)).backend("pjrt").fallback(Fallback::Never);
            let error = builder.build().unwrap_err().to_string();
            let wanted = [what, "ended it by signal 6", "the double was told to abort", "CANTUS_PJRT_PLUGIN"];
            assert!(wanted.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}

/// A plugin that was opened once on this machine is not tried again, until the library changes.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_was_opened_once_is_believed() {
    let Some(double) = Double::sound() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kept = || walk(&folder.path().join("kernels"));
    let options = || cantus::backend::OpenOptions::new().cache_folder(folder.path());
    let backend = PjrtBackend::with_plugins(double.name());
    assert!(pollster::block_on(backend.open(0, &options())).is_ok());
    assert_eq!(kept(), 1);
    assert!(pollster::block_on(backend.open(0, &options())).is_ok());
    assert_eq!(kept(), 1);
    // One that cannot be opened is not noted.
    let path = folder.path().join("libother.so");
    std::fs::copy(double.path, &path).unwrap();
    let other = PjrtBackend::with_plugins(path.to_str().unwrap());
    assert!(pollster::block_on(other.open(0, &options())).is_err());
    assert_eq!(kept(), 1);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn walk(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { 1 }).sum()
}

#[test]
fn what_a_plugin_cannot_do_goes_to_the_next_device() {
    let Some(double) = Double::sound() else { return };
    let engine = engine(double.name());
    double.fail(COMPILE, 1, UNIMPLEMENTED);
    let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
    assert_eq!(x.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    let told = fell_back(&engine);
    assert!(told.iter().any(|message| message.contains("told to fail")), "{told:?}");
}

#[test]
fn failures_are_named() {
    let Some(double) = Double::sound() else { return };
    for (place, code) in
        [(EXECUTE, INTERNAL), (EXECUTE, RESOURCE_EXHAUSTED), (UPLOAD, RESOURCE_EXHAUSTED), (TO_HOST, INTERNAL)]
    {
        let engine = engine(double.name());
        let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
        double.fail(place, 1, code);
        let y = x.sqrt().eval().unwrap();
        let error = y.to_vec::<f32>().unwrap_err();
        let cause = match &error {
            Error::TensorLost { cause, .. } => &**cause,
            other => other,
        };
        match code {
            RESOURCE_EXHAUSTED => assert!(matches!(cause, Error::OutOfMemory { .. }), "{place}: {error}"),
            _ => assert!(cause.to_string().contains("told to fail"), "{place}: {error}"),
        }
        // The device goes on.
        assert_eq!(x.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0], "{place}");
    }
}

#[test]
fn a_client_that_cannot_be_made_is_passed_over() {
    let Some(double) = Double::sound() else { return };
    double.fail(CLIENT_CREATE, 1, INTERNAL);
    let chosen = engine(double.name());
    assert_eq!(chosen.selected().device.backend, "cpu");
    double.fail(CLIENT_CREATE, 1, INTERNAL);
    let builder = Engine::builder().registry(registry(double.name())).backend("pjrt").fallback(Fallback::Never);
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains("told to fail"), "{error}");
}

#[test]
fn the_memory_limit_holds() {
    let engine = Engine::builder().registry(registry("simulate")).memory_limit(4096).build().unwrap();
    assert!(matches!(engine.zeros::<f32>(&[5000]), Err(Error::MemoryLimit { .. })));
    assert_eq!(engine.zeros::<f32>(&[500]).unwrap().to_vec::<f32>().unwrap(), [0.0; 500]);
}

#[test]
fn libraries_that_are_no_plugins_are_reasons() {
    let missing = pollster::block_on(PjrtBackend::with_plugins("/nowhere/libnone.so").probe());
    assert!(missing.devices.is_empty() && missing.reason.unwrap().contains("libnone.so"));
    let unknown = pollster::block_on(PjrtBackend::with_plugins("tt").probe());
    assert!(unknown.reason.unwrap().contains("pjrt_plugin_tt.so"));
    if cfg!(target_os = "linux") {
        let other = pollster::block_on(PjrtBackend::with_plugins("libc.so.6").probe());
        assert!(other.reason.unwrap().contains("GetPjrtApi is missing"));
    }
}

#[test]
fn other_versions_and_short_tables_are_refused() {
    let Some(double) = Double::new(1, -1, 0) else { return };
    assert!(double.reason().contains("it is of PJRT 1."));
    drop(double);
    let Some(double) = Double::new(0, EXECUTE as c_int, 0) else { return };
    assert!(double.reason().contains("lacks the function Execute"));
    drop(double);
    let Some(double) = Double::new(0, -1, 64) else { return };
    assert!(double.reason().contains("too old"));
}

/// A client whose work hangs is destroyed when it has gone on, not before.
#[test]
fn a_client_that_hangs_is_held() {
    let Some(double) = Double::sound() else { return };
    let builder = Engine::builder().registry(registry(double.name())).fallback(Fallback::Never);
    let engine = builder.timeout(Duration::from_millis(300)).build().unwrap();
    let before = double.calls(CLIENT_DESTROY);
    assert_held(engine, 0, |on| {
        assert_eq!(double.calls(CLIENT_DESTROY), before);
        double.hang(on);
    });
    no_client(&double.library);
    assert_eq!(double.calls(CLIENT_DESTROY), before + 1);
}

/// XLA's plugin for CUDA loads without a GPU, and says so.
#[test]
fn the_cuda_plugin_ends_in_a_reason() {
    let Some(path) = std::env::var_os("CANTUS_PJRT_CUDA") else { return };
    let path = path.to_str().unwrap();
    let backend = PjrtBackend::with_plugins(path);
    let probe = pollster::block_on(backend.probe());
    assert_eq!(probe.devices.len(), 1, "{:?}", probe.reason);
    assert_eq!(probe.devices[0].priority, 65);
    println!("{}", probe.devices[0].driver);
    match pollster::block_on(backend.open(0, &cantus::backend::OpenOptions::new())) {
        Ok(_) => {
            // There is a GPU: it computes.
            let engine = Engine::builder().registry(registry(path)).backend("pjrt").build().unwrap();
            let x = engine.tensor(&[4.0_f32, 9.0]).unwrap();
            assert_eq!(x.sqrt().eval().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
        }
        Err(error) => {
            println!("{error}");
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
        }
    }
}
