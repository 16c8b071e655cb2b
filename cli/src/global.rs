//! The flags that every subcommand takes: which device, which limits, how much to say. They win over variables and the file.

use super::parse;
use cantus::backend::Registry;
use cantus::config::Fallback;
use cantus::group::{Group, device_name};
use cantus::{Config, Engine, Error, Result};
use clap::{ArgAction, Args};

/// The default limit on the time that workgroups may take on the CPU.
const STALL_MS: u64 = 10_000;

/// Flags before or after the subcommand.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device and diagnostics")]
pub struct Global {
    /// Use only this backend (see: cantus devices), unless fallback = "always" is set [default: the best device, and the next one if
    /// it fails]
    #[arg(long, global = true, value_name = "NAME")]
    backend: Option<String>,
    /// Use the backend's device with this index
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    device: Option<usize>,
    /// Fail when the device fails, instead of trying the next one; the default if a backend is named
    #[arg(long, global = true)]
    no_fallback: bool,
    /// Limit device memory: bytes, or with a unit as in 512MB, 16GiB
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse::bytes, allow_negative_numbers = true)]
    memory_limit: Option<u64>,
    /// Limit the time of each batch of kernels and each transfer: milliseconds, or with a unit as in 500ms, 30s, 2m
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::milliseconds, allow_negative_numbers = true)]
    timeout: Option<u64>,
    /// Run portable kernels only: no native kernels, no vendors' libraries
    #[arg(long, global = true)]
    no_native: bool,
    /// Run kernels on the CPU and fail where one stores beyond the end of an array; otherwise such a store does nothing
    #[arg(long, global = true)]
    check_stores: bool,
    /// Compute the same bits on every device, which takes several times as long
    #[arg(long, global = true)]
    reproducible: bool,
    /// Print what the engine does to stderr; twice for details, three times for drivers' messages
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print only errors and warnings to stderr: neither what was done nor how far it is
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

impl Global {
    /// The machine's configuration with the flags on top, and what this program decides where neither says anything.
    ///
    /// # Errors
    /// What [`Config::load`] says of the file and the variables.
    pub fn config(&self) -> Result<Config> {
        let mut config = self.told()?;
        if config.backend.is_some() {
            // Whoever names a backend wants to know what it computes, or that it can't.
            config.fallback.get_or_insert(Fallback::Never);
        }
        // Whoever runs a kernel of a stranger's should not need a second window to end it.
        config.stall_ms.get_or_insert(STALL_MS);
        Ok(config)
    }

    /// Returns the settings from the file, the variables and the flags.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn told(&self) -> Result<Config> {
        let mut loaded = Config::load()?;
        loaded.backend = loaded.backend.map(|name| canonical(&name));
        let mut flags = Config::default();
        flags.backend = self.backend.as_deref().map(canonical);
        flags.device = self.device;
        flags.memory_limit = self.memory_limit;
        flags.timeout_ms = self.timeout;
        flags.native = self.no_native.then_some(false);
        flags.check_stores = self.check_stores.then_some(true);
        flags.reproducible = self.reproducible.then_some(true);
        flags.fallback = self.no_fallback.then_some(Fallback::Never);
        Ok(flags.over(loaded))
    }

    /// Takes the CPU in place of the device that was named.
    pub fn use_the_cpu(&mut self) {
        self.backend = Some("cpu".to_owned());
        self.device = None;
    }

    /// Refuses a `--backend` that this program does not have, also where a subcommand needs no device: the word would be dropped.
    ///
    /// # Errors
    /// [`Error::Config`] with the backends that there are.
    pub fn check(&self) -> Result<()> {
        self.backend.as_deref().map_or(Ok(()), |name| known_backend(&canonical(name)))
    }

    /// The same as [`Self::config`], where its backend is one of this program's.
    ///
    /// # Errors
    /// As [`Self::config`], and for an unknown backend, with the known ones.
    pub fn usable_config(&self) -> Result<Config> {
        let config = self.config()?;
        if let Some(name) = &config.backend {
            known_backend(name)?;
        }
        Ok(config)
    }

    /// An engine as the flags want it.
    ///
    /// # Errors
    /// When no such device opens.
    pub fn engine(&self) -> Result<Engine> {
        let config = self.usable_config()?;
        #[cfg(all(sanitized, target_os = "linux"))]
        if super::forks::stops_here() {
            return Err(Error::Config {
                place: "the engine".to_owned(),
                reason: "arguments are only checked".to_owned(),
            });
        }
        let engine = Engine::builder().registry(Registry::with_defaults()).config(config).build()?;
        let device = &engine.selected().device;
        super::crash::on(&format!("{}: {}", device.backend, device.name));
        Ok(engine)
    }

    /// The devices named, as members of a group: each a backend, or a backend and the index of a device as in `cuda:1`. What one of them
    /// cannot do goes to the others.
    ///
    /// # Errors
    /// When one of them does not open.
    pub fn group(&self, devices: &[String]) -> Result<Group> {
        let config = self.usable_config()?;
        let open = |name: &String| {
            let (backend, index) = device_name(name)?;
            let backend = &canonical(backend);
            known_backend(backend)?;
            let builder = Engine::builder().registry(Registry::with_defaults()).config(config.clone());
            let builder = builder.backend(backend).fallback(Fallback::Never);
            index.into_iter().fold(builder, |builder, index| builder.device(index)).build()
        };
        Group::new(devices.iter().map(open).collect::<Result<Vec<_>>>()?)
    }
}

/// The name of a backend in the case that backends have it.
pub fn canonical(name: &str) -> String {
    let registry = Registry::with_defaults();
    let known = registry.backends().iter().find(|backend| backend.name().eq_ignore_ascii_case(name));
    known.map_or_else(|| name.to_owned(), |backend| backend.name().to_owned())
}

/// A backend of this program. One that only an app brings is for that app's own settings.
pub fn known_backend(name: &str) -> Result<()> {
    let registry = Registry::with_defaults();
    let names: Vec<&str> = registry.backends().iter().map(|backend| backend.name()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(Error::Config {
        place: "backend".to_owned(),
        reason: format!(
            "\"{name}\" is no backend of this program{}: {}",
            parse::closest(name, &names),
            names.join(", ")
        ),
    })
}
