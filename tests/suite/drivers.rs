//! Kernels with known answers: every device of the machine is asked, and the drivers that are known to be wrong are found by the answers alone.

use cantus::backend::Registry;
use cantus::engine::{EventKind, survey};
use cantus::{Config, Engine, Fallback, Kernel};

fn engine(backend: &str, index: usize, folder: &std::path::Path) -> Engine {
    Engine::builder()
        .config(Config::default())
        .backend(backend)
        .device(index)
        .fallback(Fallback::Never)
        .cache_folder(folder)
        .build()
        .unwrap()
}

/// What is known of the drivers here: the constructs that a device gets wrong. Anything else must be right.
fn known_wrong(name: &str) -> &'static [&'static str] {
    let name = name.to_lowercase();
    if name.contains("(gl)") {
        // wgpu runs GL without integer guards, and a return out of nested loops is lost on the way through GLSL.
        return &["loops", "long_loops", "integer_division", "float_to_int"];
    }
    // naga 30's SPIR-V widens an integer by the sign of the result's type, not of the operand's.
    if name.contains("llvmpipe") { &["long_loops", "wide_integers"] } else { &[] }
}

#[test]
fn the_answers_find_what_is_known_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let survey = survey(&Registry::with_defaults(), &Config::default());
    let mut asked = Vec::new();
    for device in survey.backends.iter().flat_map(|backend| &backend.devices) {
        let verdicts = engine(&device.backend, device.index, folder.path()).check_device().unwrap();
        assert!(verdicts.len() >= 28, "{} answers", verdicts.len());
        let wrong: Vec<&str> = verdicts
            .iter()
            .filter(|verdict| verdict.wrong.as_ref().is_some_and(|wrong| !wrong.starts_with("it refuses")))
            .map(|verdict| verdict.need.name())
            .collect();
        for verdict in &verdicts {
            if let Some(wrong) = &verdict.wrong {
                println!("{} {}: {}: {wrong}", device.backend, device.name, verdict.need);
            }
        }
        assert_eq!(wrong, known_wrong(&device.name), "{} {}", device.backend, device.name);
        asked.push(device.backend.clone());
    }
    assert!(asked.iter().any(|backend| backend == "cpu"), "{asked:?}");
}

/// A loop of this many rounds in all; llvmpipe ends it early.
const LONG: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
    @group(0) @binding(1) var<uniform> rounds: u32;
    @compute @workgroup_size(1) fn long_sum() {
        var x = 1u;
        for (var i = 0u; i < rounds; i++) { x = x * 1664525u + 1013904223u; }
        sums[0] = x;
    }";

fn long_sum(engine: &Engine) -> (u32, Vec<EventKind>) {
    let sums = engine.zeros::<u32>(&[1]).unwrap();
    let kernel = Kernel::from_wgsl(LONG).unwrap();
    engine.dispatch(&kernel).bind("sums", &sums).set("rounds", 100_000_u32).workgroups(1).run().unwrap();
    let sum = sums.to_vec::<u32>().unwrap()[0];
    (sum, engine.events().into_iter().map(|event| event.kind).collect())
}

#[test]
fn a_kernel_that_needs_a_wrong_answer_goes_elsewhere_or_is_warned_of() {
    let survey = survey(&Registry::with_defaults(), &Config::default());
    let devices = survey.backends.iter().flat_map(|backend| &backend.devices);
    let Some(device) = devices
        .into_iter()
        .find(|device| known_wrong(&device.name).first() == Some(&"long_loops") && device.backend == "vulkan")
    else {
        println!("not run: no driver here is known to end long loops");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let right = (0..100_000).fold(1_u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    // Requested by name: it runs there, with an event.
    let (_, events) = long_sum(&engine(&device.backend, device.index, folder.path()));
    assert!(events.contains(&EventKind::WrongAnswer), "{events:?}");
    // Not requested: the driver alone in the ranking with the CPU below it.
    let mut registry = Registry::with_defaults();
    let backends: Vec<_> = registry.backends().to_vec();
    registry = Registry::empty();
    for backend in backends {
        if backend.name() == device.backend {
            registry.register(std::sync::Arc::new(Preferred(backend)));
        } else if backend.name() == "cpu" {
            registry.register(backend);
        }
    }
    let engine =
        Engine::builder().config(Config::default()).registry(registry).cache_folder(folder.path()).build().unwrap();
    assert_ne!(engine.selected().device.backend, "cpu");
    let (sum, events) = long_sum(&engine);
    assert_eq!(sum, right);
    assert!(events.contains(&EventKind::FellBack), "{events:?}");
    assert!(std::fs::read_to_string(folder.path().join("answers.toml")).unwrap().contains("long_loops"));
}

/// A backend whose devices rank above all others.
struct Preferred(std::sync::Arc<dyn cantus::backend::Backend>);

impl cantus::backend::Backend for Preferred {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn priority(&self) -> i32 {
        100
    }
    fn probe(&self) -> cantus::backend::BoxFuture<'_, cantus::backend::Probe> {
        Box::pin(async {
            let mut probe = self.0.probe().await;
            probe.devices.iter_mut().for_each(|device| device.priority = 100);
            probe
        })
    }
    fn open<'a>(
        &'a self,
        index: usize,
        options: &'a cantus::backend::OpenOptions,
    ) -> cantus::backend::BoxFuture<'a, cantus::Result<std::sync::Arc<dyn cantus::backend::Device>>> {
        self.0.open(index, options)
    }
}
