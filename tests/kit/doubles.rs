//! The shared parts of the doubles of vendors' libraries: building them, comparing with the processor, what is left
//! after a hang.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cantus::backend::detached;
use cantus::engine::EventKind;
use cantus::ops::coherence;
use cantus::ops::field::{FieldParams, field};
use cantus::{Engine, Error, Tensor};

pub fn cpu() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

/// Returns the engine's events about work that another device took over.
pub fn fell_back(engine: &Engine) -> Vec<String> {
    let events = engine.events();
    events.iter().filter(|event| event.kind == EventKind::FellBack).map(|event| event.message.clone()).collect()
}

/// Coherence on a device of operations is the processor's: of a field, and of one far from zero; and an undefined one is an error.
pub fn coherence_is_the_processors(there: &Engine, here: &Engine) {
    let coherences = |engine: &Engine| {
        let wave = field(engine, &FieldParams::new(65, 33).time(0.5)).unwrap();
        let far = (&wave * 0.01 + 40.0).eval().unwrap();
        let none = coherence(engine, &(&wave / 0.0).eval().unwrap()).unwrap_err();
        assert!(none.to_string().contains("NaN or infinity"), "{none}");
        [wave, far].map(|field| coherence(engine, &field).unwrap())
    };
    for (a, b) in coherences(there).into_iter().zip(coherences(here)) {
        assert!((a - b).abs() < 1e-4, "{a} is not {b}");
    }
}

/// The worst difference is at most the tolerance.
pub fn near(a: &Tensor, b: &Tensor, tolerance: f32) {
    assert_eq!(a.shape(), b.shape());
    let pairs = a.to_vec::<f32>().unwrap().into_iter().zip(b.to_vec::<f32>().unwrap());
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= tolerance, "{worst}");
}

/// The library of a source; `None` without a compiler, which is said. The name ends in `.c` or `.cpp`.
pub fn built(name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let folder = tempfile::tempdir().ok()?.keep();
    let (file, library) = (folder.join(name), folder.join("libdouble.so"));
    std::fs::write(&file, source).ok()?;
    let (variable, usual) = if name.ends_with(".cpp") { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = std::env::var_os(variable).unwrap_or_else(|| usual.into());
    let mut command = Command::new(compiler);
    let built = command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&file).args(options).status();
    if built.as_ref().is_ok_and(|status| status.success()) {
        return Some(library);
    }
    assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "no compiler: {built:?}");
    crate::not_run(name, "there is no compiler for it");
    None
}

/// The right to let devices hang: what is held is counted once for the process.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work on a device that begins to hang under it is late, whoever used the device goes on at once, and what the device still touches is held
/// until it goes on, at least that many bytes. The engine's time limit is short; `hang` makes the device hang, or go on.
pub fn assert_held(engine: Engine, bytes: u64, hang: impl Fn(bool)) {
    let _turn = alone();
    let x = engine.tensor_from(&[1.0_f32; 64], &[64]).unwrap();
    assert_eq!((&x + 1.0).eval().unwrap().to_vec::<f32>().unwrap(), [2.0; 64]);
    let before = detached().devices;
    hang(true);
    let y = (&x * 3.0).eval().unwrap();
    let error = y.to_vec::<f32>().expect_err("never ends");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    let start = Instant::now();
    engine.trim();
    drop((engine, x, y));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(detached().devices, before + 1);
    assert!(detached().bytes >= bytes);
    hang(false);
    let start = Instant::now();
    while detached().devices > before {
        assert!(start.elapsed() < Duration::from_secs(20), "it is still held");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The thread that held it is at its last drop.
    std::thread::sleep(Duration::from_millis(200));
}
