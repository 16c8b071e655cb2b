//! An engine for each device of the machine.

use std::sync::OnceLock;

use cantus::backend::Registry;
use cantus::engine::survey;
use cantus::{Config, Engine, Fallback};
pub use cantus_verify::engine::{EngineDevice, targets};

/// An engine on each device of the machine, opened once.
pub fn engines() -> &'static [Engine] {
    static ENGINES: OnceLock<Vec<Engine>> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let found = survey(&Registry::with_defaults(), &Config::default()).backends;
        let devices = found.into_iter().flat_map(|backend| backend.devices);
        let opened = devices.map(|info| {
            let builder = Engine::builder().backend(&info.backend).device(info.index).fallback(Fallback::Never);
            builder.build().unwrap_or_else(|error| panic!("{}: {error}", info.name))
        });
        let engines: Vec<Engine> = opened.collect();
        // Every second turn meets each plan of an evaluation that is kept.
        if crate::turn::turn().is_multiple_of(2) || crate::turn::everything() {
            engines.iter().for_each(cantus::testing::evaluate_twice);
        }
        // One device, another one with each turn, computes what a discrete GPU would: fewer and larger kernels, which drivers compile for longer.
        let others = engines.iter().filter(|engine| engine.selected().device.backend != "cpu");
        let turn = usize::try_from(crate::turn::turn()).unwrap_or_default();
        if let Some(one) = others.clone().nth(turn % others.count().max(1)).filter(|_| !crate::turn::quick()) {
            cantus::testing::plan_as_gpu(one);
        }
        let required = std::env::var("CANTUS_REQUIRE_ADAPTER").is_ok();
        assert!(
            !required || engines.len() > 1,
            "CANTUS_REQUIRE_ADAPTER is set, and there is no device but the processor"
        );
        engines
    })
}

/// The processor's engine and one more, another one for each test and with each turn; all of them where everything is asked for.
pub fn by_turns() -> Vec<&'static Engine> {
    let (mut taken, others): (Vec<_>, Vec<_>) =
        engines().iter().partition(|engine| engine.selected().device.backend == "cpu");
    // The harness names a test's thread after it.
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default().bytes();
    let number = name.fold(0, |sum: u64, byte| (31 * sum + u64::from(byte)) % 1_000_003);
    let places = others.len();
    let chosen = others.into_iter().enumerate().filter(|&(place, _)| crate::turn::takes(number, place, places));
    taken.extend(chosen.map(|(_, engine)| engine));
    taken
}

/// The backend and the device of an engine.
pub fn name(engine: &Engine) -> String {
    format!("{}: {}", engine.selected().device.backend, engine.selected().device.name)
}
