//! The devices to choose from, the window's own among them, and how an engine opens on one.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cantus::backend::{
    Backend, BoxFuture, Device, DeviceInfo, DeviceKind, OpenOptions, Probe, Registry, wgpu as wgpu_backend,
};
use cantus::engine::survey;
use cantus::{Config, Engine, Error, Result};
use eframe::wgpu;

/// The backend's name, under which the window's device takes the place of all others of wgpu.
const WGPU: &str = "wgpu";

/// The device that draws the window.
#[derive(Clone)]
pub struct WindowDevice {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    info: DeviceInfo,
}

impl WindowDevice {
    /// Creates it from egui's own device and queue.
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let shared = wgpu_backend::from_device(device.clone(), queue.clone(), &OpenOptions::default());
        Self { device: device.clone(), queue: queue.clone(), info: shared.info().clone() }
    }

    /// Its name and API.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    fn is_gpu(&self) -> bool {
        matches!(self.info.kind, DeviceKind::DiscreteGpu | DeviceKind::IntegratedGpu | DeviceKind::VirtualGpu)
    }
}

/// Hands the window's device to an engine.
struct WindowBackend(WindowDevice);

impl Backend for WindowBackend {
    fn name(&self) -> &str {
        WGPU
    }

    fn priority(&self) -> i32 {
        self.0.info.priority
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async { Probe::found(vec![self.0.info.clone()]) })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            if index > 0 {
                return Err(Error::NoDevice {
                    wanted: format!("device {index} of the window"),
                    reasons: vec![(WGPU.to_owned(), "a window has one device, number 0".to_owned())],
                });
            }
            let WindowDevice { device, queue, .. } = &self.0;
            Ok(wgpu_backend::from_device(device.clone(), queue.clone(), options))
        })
    }
}

/// A choice of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The window's device if it is a GPU, else the best by rank.
    Automatic,
    /// The window's device.
    Window { name: String },
    /// Any other: values are copied to the window's.
    Other { backend: String, index: Option<usize>, name: String },
}

impl Choice {
    /// Returns the text for the list.
    pub fn label(&self) -> String {
        match self {
            Self::Automatic => "Automatic".to_owned(),
            Self::Window { name } => format!("{name}, the window’s own"),
            Self::Other { backend, name, .. } if name.is_empty() => backend.clone(),
            Self::Other { backend, name, .. } => format!("{backend}: {name}"),
        }
    }

    /// The processor, which is always there.
    pub fn cpu() -> Self {
        Self::Other { backend: "cpu".to_owned(), index: None, name: String::new() }
    }

    /// Returns whether two choices open the same device.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Other { backend, index, .. }, Self::Other { backend: other, index: other_index, .. }) => {
                backend == other && index.unwrap_or(0) == other_index.unwrap_or(0)
            }
            (Self::Window { .. }, Self::Window { .. }) => true,
            _ => self == other,
        }
    }
}

/// Opens engines. Backends are probed once for the life of the program.
#[derive(Clone)]
pub struct Devices {
    config: Config,
    /// All backends, with wgpu's own devices.
    plain: Registry,
    /// The registry with the window's device in place of wgpu's.
    shared: Registry,
    window: WindowDevice,
    found: Arc<OnceLock<Vec<Choice>>>,
    /// Engines that were opened: going back to a device takes no second opening, which is slow, and which not every driver takes back whole.
    opened: Arc<Mutex<Vec<(Choice, Opened)>>>,
}

/// An engine on a chosen device.
#[derive(Clone)]
pub struct Opened {
    pub engine: Engine,
    /// Its wgpu tensors, if it makes any, are on the window's device.
    pub shares: bool,
    /// It was open before.
    pub again: bool,
}

impl Devices {
    /// Creates the devices with the machine's configuration and the flags in `config`.
    pub fn new(config: Config, plain: Registry, window: WindowDevice) -> Self {
        let mut shared = plain.clone();
        shared.register(Arc::new(WindowBackend(window.clone())));
        Self { config, plain, shared, window, found: Arc::default(), opened: Arc::default() }
    }

    /// The window's device.
    pub fn window(&self) -> &WindowDevice {
        &self.window
    }

    /// Returns the choice of the flags, or of the file and the variables.
    pub fn asked(&self) -> Choice {
        match (&self.config.backend, self.config.device) {
            (Some(backend), None) if backend == WGPU => self.own(),
            (Some(backend), index) => Choice::Other { backend: backend.clone(), index, name: String::new() },
            (None, _) => Choice::Automatic,
        }
    }

    fn own(&self) -> Choice {
        Choice::Window { name: self.window.name().to_owned() }
    }

    /// Returns the choices: at first little, and everything when [`Devices::look`] is done.
    pub fn list(&self) -> Vec<Choice> {
        self.found.get().cloned().unwrap_or_else(|| vec![Choice::Automatic, self.own(), Choice::cpu()])
    }

    /// Looks for all devices, which takes a moment, and calls `done`. Ends by itself.
    pub fn look(&self, done: impl FnOnce() + Send + 'static) {
        let devices = self.clone();
        let thread = std::thread::Builder::new().name("cantus-survey".to_owned());
        let spawned = thread.spawn(move || {
            let mut config = devices.config.clone();
            (config.backend, config.device) = (None, None);
            let mut own = false;
            let backends = survey(&devices.plain, &config).backends;
            let others = backends.into_iter().flat_map(|backend| backend.devices).filter(|device| {
                let same = !own && device.backend == WGPU && device.name == devices.window.name();
                own |= same;
                !same
            });
            let others = others.map(|device| Choice::Other {
                backend: device.backend,
                index: Some(device.index),
                name: device.name,
            });
            let list = [Choice::Automatic, devices.own()].into_iter().chain(others).collect();
            let _ = devices.found.set(list);
            done();
        });
        if let Err(error) = spawned {
            tracing::warn!("no thread to look for devices: {error}");
        }
    }

    /// The engine on a device, opened if it is not yet.
    ///
    /// # Errors
    /// When no such device opens.
    pub fn open(&self, choice: &Choice) -> Result<Opened> {
        let known = self.opened().iter().find(|(known, _)| known.is(choice)).map(|(_, opened)| opened.clone());
        if let Some(known) = known {
            return Ok(Opened { again: true, ..known });
        }
        let (engine, shares) = self.build(choice)?;
        let opened = Opened { engine, shares, again: false };
        self.opened().push((choice.clone(), opened.clone()));
        Ok(opened)
    }

    /// Does not use the engine on that device again: it failed.
    pub fn forget(&self, choice: &Choice) {
        self.opened().retain(|(known, _)| !known.is(choice));
    }

    /// Releases all engines. May wait for devices.
    pub fn close(&self) {
        let opened = std::mem::take(&mut *self.opened());
        drop(opened);
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Vec<(Choice, Opened)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, choice: &Choice) -> Result<(Engine, bool)> {
        let (backend, device, shares) = match choice {
            Choice::Window { .. } => (Some(WGPU.to_owned()), None, true),
            Choice::Automatic if self.window.is_gpu() => (Some(WGPU.to_owned()), None, true),
            Choice::Automatic => (None, None, true),
            Choice::Other { backend, index, .. } if self.is_own(backend, *index) => (Some(backend.clone()), None, true),
            Choice::Other { backend, index, .. } => (Some(backend.clone()), *index, backend != WGPU),
        };
        let mut config = self.config.clone();
        (config.backend, config.device, config.placement) = (backend, device, Some(false));
        let registry = if shares { &self.shared } else { &self.plain };
        let engine = Engine::builder().registry(registry.clone()).config(config).build()?;
        Ok((engine, shares))
    }

    /// Returns whether a device of wgpu is the window's, opened a second time.
    fn is_own(&self, backend: &str, index: Option<usize>) -> bool {
        let Some(plain) = self.plain.get(WGPU).filter(|_| backend == WGPU) else { return false };
        let found = pollster::block_on(plain.probe());
        let first = found.devices.iter().position(|device| device.name == self.window.name());
        first.is_some() && first == index
    }
}
