//! The devices of this machine, and how much of the work a run takes.

use cantus::backend::Registry;
use cantus::{Config, Engine, Fallback};

/// An engine of each device, and one of the CPU's kernels. The first one runs the processor's own code.
pub fn all() -> Vec<(String, Engine)> {
    let survey = cantus::engine::survey(&Registry::with_defaults(), &Config::default());
    let own = Engine::builder().backend("cpu").build().expect("the processor");
    let kernels = Engine::builder().backend("cpu").native(false).build().expect("the processor");
    let mut engines = vec![("cpu".to_owned(), own), ("cpu, kernels".to_owned(), kernels)];
    for device in survey.backends.iter().flat_map(|backend| &backend.devices).filter(|device| device.backend != "cpu") {
        let name = format!("{} {}", device.backend, device.name);
        let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
        match builder.placement(false).build() {
            Ok(engine) => engines.push((name, engine)),
            Err(error) => println!("left out: {name}: {error}"),
        }
    }
    println!(
        "{} engines: {}",
        engines.len(),
        engines.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("; ")
    );
    engines
}

/// True if an engine has amplitudes in complex128.
pub fn has_double(engine: &Engine) -> bool {
    engine.selected().device.capabilities.features.float64
}

/// True if a case is one of this run's: all with `CANTUS_TESTS=all`, else one in `parts`, another one with each `CANTUS_TURN`.
pub fn is_mine(case: usize, parts: usize) -> bool {
    let turn: usize = std::env::var("CANTUS_TURN").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    std::env::var("CANTUS_TESTS").as_deref() == Ok("all") || case % parts == turn % parts
}
