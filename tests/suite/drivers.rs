//! Kernels with known answers: every device of the machine is asked, and the drivers that are known to be wrong are found by the answers alone.

use cantus::backend::{DeviceInfo, Registry};
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

const DOCS: &str = include_str!("../../docs/drivers.md");

/// The rows of the table in the documentation: the construct, and the devices that get it wrong.
fn rows() -> Vec<(&'static str, Vec<&'static str>)> {
    let table = DOCS.lines().skip_while(|line| !line.starts_with("| construct |")).skip(2);
    let rows = table.take_while(|line| line.starts_with("| `"));
    rows.map(|row| {
        let (_, wrong) = row.trim_end().trim_end_matches('|').rsplit_once('|').unwrap();
        let construct = row.split('`').nth(1).unwrap();
        (construct, wrong.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
    })
    .collect()
}

/// A device's name in that table.
fn in_docs(device: &DeviceInfo) -> &'static str {
    let name = device.name.to_lowercase();
    match (name.contains("llvmpipe"), name.contains("(gl)")) {
        (true, true) => "llvmpipe on GL",
        (true, false) => "llvmpipe",
        // Later versions name the processor otherwise.
        _ if name.starts_with("pthread") => "PoCL 3.1",
        _ => "",
    }
}

/// Returns the known defects of a driver: the constructs that it gets wrong. Anything else must be right.
fn known_wrong(device: &DeviceInfo) -> Vec<&'static str> {
    let device = in_docs(device);
    rows().into_iter().filter(|(_, wrong)| wrong.contains(&device)).map(|(construct, _)| construct).collect()
}

/// The constructs that a device lacks, and may refuse for that.
fn lacking(device: &DeviceInfo) -> Vec<&'static str> {
    let has = device.capabilities.features;
    let optional = [
        ("halves", has.f16),
        ("wide_integers", has.int64),
        ("doubles", has.float64),
        ("subgroups", has.subgroups),
        ("cooperative_matrices", has.cooperative_matrix),
        ("small_cooperative_matrices", has.cooperative_matrix),
    ];
    let mut lacking: Vec<&str> = optional.into_iter().filter(|(_, has)| !has).map(|(construct, _)| construct).collect();
    // naga's GLSL cannot lay out what it asks for, and Cantus refuses such kernels.
    if in_docs(device).ends_with("on GL") {
        lacking.push("uniform_layout");
    }
    lacking.sort_unstable();
    lacking
}

#[test]
fn the_documentation_has_every_construct() {
    let documented: Vec<&str> = rows().into_iter().map(|(construct, _)| construct).collect();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shaders/answers");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut kernels: Vec<String> = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    kernels.sort_unstable();
    let mut sorted = documented.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, kernels);
    for (construct, wrong) in rows() {
        assert!(
            wrong.iter().all(|device| ["llvmpipe", "llvmpipe on GL", "PoCL 3.1"].contains(device)),
            "{construct}: {wrong:?}"
        );
    }
}

#[test]
fn the_answers_find_what_is_known_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let survey = survey(&Registry::with_defaults(), &Config::default());
    let mut asked = Vec::new();
    for device in survey.backends.iter().flat_map(|backend| &backend.devices) {
        let verdicts = engine(&device.backend, device.index, folder.path()).check_device().unwrap();
        assert_eq!(verdicts.len(), rows().len());
        for verdict in &verdicts {
            if let Some(wrong) = &verdict.wrong {
                println!("{} {}: {}: {wrong}", device.backend, device.name, verdict.need);
            }
        }
        let is_refused = |wrong: &str| wrong.starts_with("it refuses");
        let found = |is_refusal: bool| -> Vec<&str> {
            let verdicts = verdicts.iter();
            let found = verdicts
                .filter(|verdict| verdict.wrong.as_deref().is_some_and(|wrong| is_refused(wrong) == is_refusal));
            found.map(|verdict| verdict.need.name()).collect()
        };
        let name = format!("{} {}", device.backend, device.name);
        let mut known = known_wrong(device);
        known.retain(|construct| !lacking(device).contains(construct));
        assert_eq!(found(false), known, "{name}");
        let mut refused = found(true);
        refused.sort_unstable();
        assert_eq!(refused, lacking(device), "{name}: refusals");
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

/// A million calls and more, written out: the driver's compiler is not asked. Half as many functions are right everywhere.
#[test]
fn calls_that_double_are_refused_before_a_driver_writes_them_out() {
    let kernel = |depth: u32| {
        let doubled = |of: u32| format!("fn f{of}(x: u32) -> u32 {{ return f{0}(f{0}(x)); }}\n", of - 1);
        let functions: String = (1..=depth).map(doubled).collect();
        let wgsl = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
            fn f0(x: u32) -> u32 {{ return x * 3u + 1u; }}
            {functions}@compute @workgroup_size(1) fn main() {{ y[0] = f{depth}(1u); }}"
        );
        Kernel::from_wgsl(&wgsl).unwrap()
    };
    let computed = |engine: &Engine, depth: u32| {
        let y = engine.zeros::<u32>(&[1])?;
        engine.dispatch(&kernel(depth)).bind("y", &y).workgroups(1).run()?;
        y.to_vec::<u32>()
    };
    let right = (0..1 << 6).fold(1_u32, |x, _| x.wrapping_mul(3).wrapping_add(1));
    for engine in kit::engine::engines() {
        assert_eq!(computed(engine, 6).unwrap(), [right], "{}", kit::engine::name(engine));
        if engine.selected().device.backend != "cpu" {
            let refused = computed(engine, 25);
            assert!(
                matches!(&refused, Err(cantus::Error::Unsupported { construct, .. }) if construct.contains("written out")),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn a_kernel_that_needs_a_wrong_answer_goes_elsewhere_or_is_warned_of() {
    let survey = survey(&Registry::with_defaults(), &Config::default());
    let devices = survey.backends.iter().flat_map(|backend| &backend.devices);
    let Some(device) =
        devices.into_iter().find(|device| known_wrong(device).contains(&"long_loops") && device.backend == "vulkan")
    else {
        assert!(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(), "no driver here is known to end long loops");
        kit::not_run("long loops", "no driver here is known to end them");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let right = (0..100_000).fold(1_u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    // Requested by name: it runs there, with an event.
    let (_, events) = long_sum(&engine(&device.backend, device.index, folder.path()));
    assert!(events.contains(&EventKind::WrongAnswer), "{events:?}");
    // Requested, for others who see no events: it goes to the next device, or nowhere.
    let strict = |fallback| {
        let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(fallback);
        builder.refuse_wrong(true).cache_folder(folder.path()).build().unwrap()
    };
    let engine = strict(Fallback::Always);
    let (sum, events) = long_sum(&engine);
    assert_eq!(sum, right);
    assert!(!events.contains(&EventKind::WrongAnswer), "{events:?}");
    let engine = strict(Fallback::Never);
    let sums = engine.zeros::<u32>(&[1]).unwrap();
    let kernel = Kernel::from_wgsl(LONG).unwrap();
    let refused = engine.dispatch(&kernel).bind("sums", &sums).set("rounds", 100_000_u32).workgroups(1).run();
    assert!(matches!(refused, Err(cantus::Error::Unsupported { .. })), "{refused:?}");
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
    // What this process knew already was not asked again, and not written to this folder.
    engine.check_device().unwrap();
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

/// Tables and long `switch`es: right, or refused where a driver's compiler would take minutes.
#[test]
fn tables_are_right_or_refused() {
    let count = 1024_u32;
    let value = |i: u32| i * i * 37 % 101;
    let list = (0..count).map(|i| value(i).to_string()).collect::<Vec<_>>().join(", ");
    let cases: String = (0..count).map(|i| format!("case {i}: {{ x = {}u; }}\n", value(i))).collect();
    let tables = [
        ("module", format!("const T = array<u32, {count}>({list});"), "let x = T[id.x];".to_owned()),
        ("function", String::new(), format!("let t = array<u32, {count}>({list}); let x = t[id.x];")),
        (
            "private",
            format!("var<private> t: array<u32, {count}> = array<u32, {count}>({list});"),
            "let x = t[id.x];".to_owned(),
        ),
        (
            "nested",
            format!("const T = array<array<u32, {count}>, 1>(array<u32, {count}>({list}));"),
            "let x = T[0][id.x];".to_owned(),
        ),
        ("switch", String::new(), format!("var x = 0u; switch id.x {{ {cases} default: {{}} }}")),
    ];
    let right: Vec<u32> = (0..count).map(value).collect();
    for (name, outside, inside) in tables {
        let wgsl = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
            {outside}
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ {inside} y[id.x] = x; }}"
        );
        let kernel = Kernel::from_wgsl(&wgsl).unwrap();
        for engine in kit::engine::engines() {
            let y = engine.zeros::<u32>(&[count as usize]).unwrap();
            let ran = engine.dispatch(&kernel).bind("y", &y).invocations(count as usize).run();
            let on = format!("{name} on {}", kit::engine::name(engine));
            match ran.and_then(|()| y.to_vec::<u32>()) {
                Ok(values) => assert_eq!(values, right, "{on}"),
                Err(cantus::Error::Unsupported { construct, .. }) => {
                    assert!(
                        construct.contains("storage buffer") || construct.contains("many_cases"),
                        "{on}: {construct}"
                    );
                    assert_ne!(engine.selected().device.backend, "cpu", "{on}");
                }
                Err(error) => panic!("{on}: {error}"),
            }
        }
    }
}
