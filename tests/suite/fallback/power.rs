//! Devices ranked for low power. They differ in kind and priority only; the processor's device computes for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, DeviceKind, Identity, MemoryFigures,
    OpenOptions, PciAddress, Probe, Program, Refusal, Registry, ready,
};
use cantus::{Config, Engine, Error, Kernel, Result};

struct Kind {
    name: &'static str,
    kind: DeviceKind,
    priority: i32,
    opens: bool,
    opened: AtomicUsize,
    /// Of those, how many were asked to save power.
    saving: AtomicUsize,
    /// The device is lost from now on; the next one that is opened is sound.
    lost: Arc<AtomicBool>,
    /// It has no memory.
    full: bool,
    identity: Identity,
}

impl Kind {
    fn new(name: &'static str, kind: DeviceKind, priority: i32, opens: bool) -> Arc<Self> {
        Arc::new(Self::plain(name, kind, priority, opens))
    }

    fn plain(name: &'static str, kind: DeviceKind, priority: i32, opens: bool) -> Self {
        let pci = PciAddress::parse(&format!("0000:{priority:02x}:00.0"));
        let identity = Identity { pci, ..Identity::default() };
        let (opened, saving, lost) = Default::default();
        Self { name, kind, priority, opens, opened, saving, lost, full: false, identity }
    }

    fn opened(&self) -> [usize; 2] {
        [self.opened.load(Ordering::Relaxed), self.saving.load(Ordering::Relaxed)]
    }

    fn describe(&self, device: &mut DeviceInfo) {
        (device.backend, device.name) = (self.name.to_owned(), self.name.to_owned());
        (device.kind, device.priority) = (self.kind, self.priority);
        device.identity = self.identity.clone();
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
                self.describe(device);
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
            self.saving.fetch_add(usize::from(options.low_power), Ordering::Relaxed);
            self.lost.store(false, Ordering::Relaxed);
            let inner = CpuBackend::new().open(index, options).await?;
            let mut info = inner.info().clone();
            self.describe(&mut info);
            Ok(Arc::new(Opened { inner, info, lost: self.lost.clone(), full: self.full }) as Arc<dyn Device>)
        })
    }
}

/// The processor's device under another name.
struct Opened {
    inner: Arc<dyn Device>,
    info: DeviceInfo,
    lost: Arc<AtomicBool>,
    full: bool,
}

impl Device for Opened {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        self.inner.compile(kernel)
    }
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        self.inner.check_workgroups(program, label, workgroups)
    }
    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        let device = self.info.name.clone();
        if self.lost.load(Ordering::Relaxed) {
            return ready(Err(Error::DeviceLost { device, reason: "made to be lost".to_owned() }));
        }
        if self.full {
            return ready(Err(Error::OutOfMemory { device, what: label.to_owned(), bytes }));
        }
        self.inner.allocate(bytes, contents, label)
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        self.inner.write(buffer, offset, data)
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        self.inner.read(buffer, offset, into)
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.inner.submit(batch)
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.finish()
    }
    fn memory(&self) -> MemoryFigures {
        self.inner.memory()
    }
    fn trim(&self) {
        self.inner.trim();
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

/// A GPU that was lost and works again: whoever opens an engine over the same registry saves power as before, and finds the same silicon.
#[test]
fn low_power_and_identity_outlive_a_lost_device() {
    let kinds = [
        Kind::new("discrete", DeviceKind::DiscreteGpu, 80, true),
        Kind::new("integrated", DeviceKind::IntegratedGpu, 40, true),
        Kind::new("processor", DeviceKind::Cpu, 20, true),
    ];
    let [discrete, integrated, processor] = &kinds;
    let mut registry = Registry::empty();
    kinds.iter().for_each(|kind| registry.register(kind.clone()));
    let open = || Engine::builder().registry(registry.clone()).placement(false).low_power(true).build().unwrap();
    let engine = open();
    let before = engine.selected().device.clone();
    assert_eq!(engine.tensor(&[1.0_f32]).unwrap().device_name(), "integrated");
    integrated.lost.store(true, Ordering::Relaxed);
    // The same engine goes on with the next one, which is asked to save power too.
    assert_eq!(engine.tensor(&[1.0_f32]).unwrap().device_name(), "discrete");
    assert_eq!((discrete.opened(), processor.opened()), ([1, 1], [0, 0]));
    drop(engine);
    let again = open();
    assert_eq!(integrated.opened(), [2, 2]);
    let after = &again.selected().device;
    assert!(after.identity.is_same(&before.identity) && after.name == before.name, "{after:?}");
    assert_eq!(again.tensor(&[1.0_f32]).unwrap().device_name(), "integrated");
}

/// If one way to a GPU has no memory left, another way to the same GPU has none either.
#[test]
fn without_memory_the_next_device_is_of_other_silicon() {
    let full = Kind { full: true, ..Kind::plain("cuda", DeviceKind::DiscreteGpu, 70, true) };
    let same = Kind { identity: full.identity.clone(), ..Kind::plain("vulkan", DeviceKind::DiscreteGpu, 60, true) };
    let kinds = [
        full,
        same,
        Kind::plain("second", DeviceKind::DiscreteGpu, 50, true),
        Kind::plain("processor", DeviceKind::Cpu, 20, true),
    ];
    let kinds = kinds.map(Arc::new);
    let mut registry = Registry::empty();
    kinds.iter().for_each(|kind| registry.register(kind.clone()));
    let engine = Engine::builder().registry(registry).placement(false).build().unwrap();
    assert_eq!(engine.selected().device.name, "cuda");
    let tensor = engine.tensor(&[1.0_f32; 64]).unwrap();
    assert_eq!(tensor.device_name(), "second");
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0; 64]);
    assert_eq!(kinds.each_ref().map(|kind| kind.opened()[0]), [1, 0, 1, 0]);
}
