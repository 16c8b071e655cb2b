//! Devices ranked for low power. They differ in kind and priority only; the processor's device computes for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{Backend, BoxFuture, Device, DeviceKind, OpenOptions, Probe, Registry};
use cantus::{Config, Engine, Error, Result};

struct Kind {
    name: &'static str,
    kind: DeviceKind,
    priority: i32,
    opens: bool,
    opened: AtomicUsize,
}

impl Kind {
    fn new(name: &'static str, kind: DeviceKind, priority: i32, opens: bool) -> Arc<Self> {
        Arc::new(Self { name, kind, priority, opens, opened: AtomicUsize::new(0) })
    }
}

impl Backend for Kind {
    fn name(&self) -> &str {
        self.name
    }
    fn priority(&self) -> i32 {
        self.priority
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async {
            let mut probe = CpuBackend::new().probe().await;
            for device in &mut probe.devices {
                (device.backend, device.name) = (self.name.to_owned(), self.name.to_owned());
                (device.kind, device.priority) = (self.kind, self.priority);
            }
            probe
        })
    }
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            if !self.opens {
                let (device, action) = (self.name.to_owned(), "opening".to_owned());
                return Err(Error::Device { device, action, message: "made to fail".to_owned() });
            }
            self.opened.fetch_add(1, Ordering::Relaxed);
            CpuBackend::new().open(index, options).await
        })
    }
}

/// The device that an engine takes of a discrete GPU, an integrated one and the processor, and why.
fn taken(low_power: bool, integrated: bool) -> (&'static str, String) {
    let kinds = [
        Kind::new("discrete", DeviceKind::DiscreteGpu, 80, true),
        Kind::new("integrated", DeviceKind::IntegratedGpu, 40, integrated),
        Kind::new("processor", DeviceKind::Cpu, 20, true),
    ];
    let mut registry = Registry::empty();
    kinds.iter().for_each(|kind| registry.register(kind.clone()));
    let mut config = Config::default();
    config.low_power = Some(low_power);
    let engine = Engine::builder().registry(registry).config(config).build().unwrap();
    let opened: Vec<_> = kinds.iter().filter(|kind| kind.opened.load(Ordering::Relaxed) > 0).collect();
    assert_eq!(opened.len(), 1);
    (opened[0].name, engine.selected().why.clone())
}

#[test]
fn low_power_takes_the_gpu_that_shares_memory() {
    assert_eq!(taken(false, true).0, "discrete");
    let (name, why) = taken(true, true);
    assert_eq!(name, "integrated");
    assert!(why.starts_with("low power: "), "{why}");
    // A discrete GPU is still better than none, and what the builder says wins over the configuration.
    assert_eq!(taken(true, false).0, "discrete");
    let mut registry = Registry::empty();
    let discrete = Kind::new("discrete", DeviceKind::DiscreteGpu, 80, true);
    let integrated = Kind::new("integrated", DeviceKind::IntegratedGpu, 40, true);
    registry.register(discrete.clone());
    registry.register(integrated.clone());
    let mut config = Config::default();
    config.low_power = Some(true);
    Engine::builder().registry(registry).config(config).low_power(false).build().unwrap();
    assert_eq!((discrete.opened.load(Ordering::Relaxed), integrated.opened.load(Ordering::Relaxed)), (1, 0));
}

#[test]
fn low_power_is_a_setting() {
    let mut config = Config::default();
    config.set("low_power", "on").unwrap();
    assert_eq!((config.low_power, config.get("low_power").as_deref()), (Some(true), Some("true")));
    assert!(config.to_toml().contains("low_power = true"));
    let error = config.set("low_power", "perhaps").unwrap_err().to_string();
    assert!(error.contains("true or false"), "{error}");
}
