//! The choices made before an engine opens. `build` turns them into a `Policy` and asks `rank` for a device. Nothing is read from files or the environment
//! here: `Engine::from_env` passes what `Config::load` read. A requested backend or device changes more than the choice: placement is off, and a construct
//! that the device gets wrong only warns.

use crate::backend::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

use super::event::EventKind;
use super::{Engine, Policy, rank};
use crate::backend::{Backend, Registry};
use crate::config::{Config, Fallback};
use crate::error::Result;

/// Builds an [`Engine`]. It reads no files and no variables: settings that are not made here have their defaults. [`Config::load`] reads both, for
/// [`Builder::config`].
///
/// ```
/// use std::time::Duration;
/// let engine = cantus::Engine::builder().backend("cpu").timeout(Duration::from_secs(10)).without_cache().build()?;
/// assert_eq!(engine.selected().device.backend, "cpu");
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing opens before .build()"]
pub struct Builder {
    registry: Option<Registry>,
    base: Config,
    own: Config,
    cache: Cache,
    /// Devices are not tested with known answers.
    unproven: bool,
    /// True if a construct that a requested device gets wrong is refused there too.
    refuse_wrong: bool,
    trusts_places: bool,
}

/// The place of what is remembered between runs.
#[derive(Debug, Clone, Default)]
enum Cache {
    /// The user's cache folder.
    #[default]
    Default,
    Folder(std::path::PathBuf),
    Off,
}

impl Cache {
    fn folder(self) -> Option<std::path::PathBuf> {
        match self {
            Self::Default => default_cache_folder(),
            Self::Folder(folder) => Some(folder),
            Self::Off => None,
        }
    }
}

impl Builder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets the backends to consider, instead of the built-in ones.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Adds a backend to the built-in ones. One of the same name is replaced.
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.registry.get_or_insert_with(Registry::with_defaults).register(backend);
        self
    }

    /// Sets the settings to start from. The other methods override them.
    ///
    /// ```
    /// let mut config = cantus::Config::default();
    /// config.set("backend", "cpu")?;
    /// assert_eq!(cantus::Engine::builder().config(config).build()?.selected().device.backend, "cpu");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn config(mut self, config: Config) -> Self {
        self.base = config;
        self
    }

    /// Restricts the engine to this backend.
    pub fn backend(mut self, name: &str) -> Self {
        self.own.backend = Some(name.to_owned());
        self
    }

    /// Restricts the engine to this device of the backend.
    pub fn device(mut self, index: usize) -> Self {
        self.own.device = Some(index);
        self
    }

    /// Sets the reaction when a device fails before anything was submitted.
    ///
    /// ```
    /// use cantus::{Engine, Fallback};
    ///
    /// let strict = Engine::builder().backend("cpu").fallback(Fallback::Never).build()?;
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.own.fallback = Some(fallback);
        self
    }

    /// Limits the memory on each device, in bytes.
    ///
    /// ```
    /// let small = cantus::Engine::builder().backend("cpu").memory_limit(1 << 20).build()?;
    /// let error = small.zeros::<f32>(&[1 << 20]).unwrap_err();
    /// assert!(matches!(error, cantus::Error::MemoryLimit { .. }));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.own.memory_limit = Some(bytes);
        self
    }

    /// Limits the time of each batch and each transfer.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let engine = cantus::Engine::builder().backend("cpu").timeout(Duration::from_secs(10)).build()?;
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.own.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1));
        self
    }

    /// Limits the time without progress. On the CPU a kernel whose workgroups run longer than that at a time is stopped, and its outputs are lost
    /// ([`crate::Error::Stalled`]). A driver's compiler that takes as much processor time for a kernel is abandoned; the device refuses that kernel
    /// ([`crate::Error::Unsupported`]), and the next device takes it. Off by default and for [`Duration::ZERO`]; the program and the page use 10 seconds.
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.own.stall_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets whether each kernel's time is measured, on devices with timestamps.
    pub fn profile(mut self, profile: bool) -> Self {
        self.own.profile = Some(profile);
        self
    }

    /// Sets whether operations that create data may use the CPU if that is estimated to be faster than the selected GPU (the default). They never do
    /// if a backend or device is requested.
    pub fn placement(mut self, placement: bool) -> Self {
        self.own.placement = Some(placement);
        self
    }

    /// Sets whether to prefer devices that draw less power: GPUs that share the system's memory then rank before discrete ones.
    pub fn low_power(mut self, low_power: bool) -> Self {
        self.own.low_power = Some(low_power);
        self
    }

    /// Sets whether native kernels and vendors' libraries replace portable kernels if they rank higher (the default). [`Engine::takeovers`] lists those
    /// that did. The CPU backend's own products, convolutions, sorts and running sums are native, too.
    pub fn native(mut self, native: bool) -> Self {
        self.own.native = Some(native);
        self
    }

    /// Sets whether kernels run on the CPU by an executor that looks at each store: one beyond the end of an array is
    /// [`crate::Error::StoreOutOfRange`], where WebGPU does nothing. Kernels compiled ahead are not used, and textures are not looked at. Off by
    /// default.
    ///
    /// ```
    /// let engine = cantus::Engine::builder().check_stores(true).build()?;
    /// let kernel = cantus::Kernel::from_wgsl(
    ///     "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n\
    ///      @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 1; }",
    /// )?;
    /// let y = engine.zeros::<u32>(&[60])?;
    /// let error = engine.dispatch(&kernel).bind("y", &y).workgroups([1, 1, 1]).run().and_then(|()| y.to_vec::<u32>()).unwrap_err();
    /// assert!(error.to_string().contains("the kernel main stores out of range, 4 times"), "{error}");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn check_stores(mut self, check: bool) -> Self {
        self.own.check_stores = Some(check);
        self
    }

    /// Sets whether every device computes the same bits: kernels run in their reproducible form ([`crate::Kernel::reproducible`]), operations choose
    /// the same kernels on every device, and neither vendors' libraries nor code compiled ahead run. A device that does not give the expected bits is
    /// refused. This takes several times as long; the guide says how long, and what the mode cannot do.
    ///
    /// ```
    /// use cantus::ops;
    /// let engine = cantus::Engine::builder().backend("cpu").reproducible(true).build()?;
    /// let wave = ops::field::phi_pattern(&engine, 64, 64)?;
    /// # let _ = wave;
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn reproducible(mut self, reproducible: bool) -> Self {
        self.own.reproducible = Some(reproducible);
        self
    }

    /// Sets whether the engine publishes its figures for `cantus top` and [`crate::engine::published`]. A thread writes them twice a second to a file
    /// that only this user can read, and removes the file when the engine ends. If others may write to the folder, nothing is written and a warning
    /// says so. [`Builder::build`] fails without the feature `monitor`, and on the web, which has no files.
    pub fn publish(mut self, publish: bool) -> Self {
        self.own.publish = Some(publish);
        self
    }

    /// Sets whether a device must have given known answers for the constructs in a kernel before it runs the kernel (the default). Without this, a
    /// driver's mistakes are silent. See `docs/drivers.md`.
    pub fn known_answers(mut self, ask: bool) -> Self {
        self.unproven = !ask;
        self
    }

    /// Sets whether a device refuses a kernel with a construct that it is known to get wrong, even if the device was requested by name. The kernel then
    /// runs on the next device, or fails without fallback. By default it runs, with a warning ([`EventKind::WrongAnswer`]). Use this in programs that
    /// compute for others, who do not see warnings.
    pub fn refuse_wrong(mut self, refuse: bool) -> Self {
        self.refuse_wrong = refuse;
        self
    }

    /// Skips the checks of indices on the device, for a front end that checks them itself.
    #[doc(hidden)]
    pub fn trust_places(mut self) -> Self {
        self.trusts_places = true;
        self
    }

    /// Sets the folder for measured times, chosen variants and compiled kernels (default: `cantus` in the user's cache folder). A missing or damaged
    /// file there counts as empty and is rewritten.
    ///
    /// The folder also holds code that drivers compiled, which runs when it is loaded. On systems with Unix permissions it is loaded only if nobody
    /// but this user and root may write there. On other systems, give a folder that only this user may write to.
    pub fn cache_folder(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
        self.cache = Cache::Folder(folder.into());
        self
    }

    /// Keeps nothing between runs, and reads nothing from earlier runs.
    pub fn without_cache(mut self) -> Self {
        self.cache = Cache::Off;
        self
    }

    /// Opens the engine.
    ///
    /// # Errors
    /// Returns [`crate::Error::NoDevice`] with every candidate's reason, or [`crate::Error::Config`].
    pub fn build_async(self) -> BoxFuture<'static, Result<Engine>> {
        Box::pin(async move {
            let mut config = self.own.over(self.base);
            if config.check_stores.unwrap_or(false) && config.backend.get_or_insert_with(|| "cpu".to_owned()) != "cpu" {
                return Err(crate::Error::Config {
                    place: "check_stores".to_owned(),
                    reason: "only the backend cpu looks for stores out of range (name it, or none)".to_owned(),
                });
            }
            let reproducible = config.reproducible.unwrap_or(false);
            if reproducible && !cfg!(feature = "wgsl") {
                return Err(crate::Error::Config {
                    place: "reproducible".to_owned(),
                    reason: "this build has no WGSL front end (feature `wgsl`), which rewrites the kernels".to_owned(),
                });
            }
            let publish = config.publish.unwrap_or(false);
            if publish && cfg!(any(not(feature = "monitor"), target_arch = "wasm32")) {
                return Err(crate::Error::Config {
                    place: "publish".to_owned(),
                    reason: "this build publishes no figures (enable cantus' feature `monitor`; the web has no files)"
                        .to_owned(),
                });
            }
            let registry = self.registry.unwrap_or_else(Registry::with_defaults);
            let mut options = rank::open_options(&config);
            options.cache_folder = self.cache.folder();
            let choice = rank::choose(&registry, &config, &options).await?;
            // A device that was asked for by name gets all the work.
            let asked = config.backend.is_some() || config.device.is_some();
            let placement = !asked && config.placement.unwrap_or(true);
            let fallback = config.fallback.unwrap_or_default();
            let Self { unproven, refuse_wrong, trusts_places, .. } = self;
            let policy =
                Policy { fallback, placement, requested: asked, unproven, refuse_wrong, trusts_places, reproducible };
            #[cfg(all(feature = "trace", not(target_arch = "wasm32")))]
            let trace = config.trace.as_deref().map(super::profile::trace::reserve).transpose()?;
            #[cfg(not(feature = "trace"))]
            if config.trace.is_some() {
                return Err(crate::Error::Config {
                    place: "trace".to_owned(),
                    reason: "this build writes no traces (enable cantus' feature `trace`)".to_owned(),
                });
            }
            let engine = Engine::assemble(options, policy, choice.device, choice.why, choice.rest);
            let shared = engine.shared();
            for (name, reason) in choice.skipped {
                shared.events.push(EventKind::Skipped, &name, &reason);
            }
            let selection = engine.selected();
            shared.events.push(EventKind::Opened, &selection.device.name, &selection.why);
            #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
            shared.ask_beside(&shared.primary());
            #[cfg(all(feature = "trace", not(target_arch = "wasm32")))]
            if let Some(path) = trace {
                shared.begin_trace(path);
            }
            #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
            if publish {
                shared.publish();
            }
            Ok(engine)
        })
    }

    /// Opens the engine, blocking.
    ///
    /// ```
    /// let engine = cantus::Engine::builder().low_power(true).build()?;
    /// # drop(engine);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::build_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build(self) -> Result<Engine> {
        crate::engine::blocking::block_on(self.build_async())
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) fn default_cache_folder() -> Option<std::path::PathBuf> {
    crate::folders::cache().map(|folder| folder.join("cantus"))
}

#[cfg(target_arch = "wasm32")]
pub(super) fn default_cache_folder() -> Option<std::path::PathBuf> {
    None
}
