//! Engines for the devices that are served.

use std::time::Duration;

use cantus::config::Fallback;
use cantus::{Config, Engine, Error};

/// The longest time that a kernel may make no progress, and the most processor time of a driver's compiler for one kernel.
const STALL: Duration = Duration::from_secs(10);

/// Opens a device, as `cpu` or `vulkan:1`; the best one for an empty name. Where it fails later its work ends on the next one.
///
/// # Errors
/// As [`cantus::engine::Builder::build`].
pub fn open(device: &str, memory: u64, time: Option<Duration>) -> cantus::Result<Engine> {
    // Callers see no warnings: what a device is known to get wrong does not run on it, whoever chose it.
    let mut builder = Engine::builder().memory_limit(memory).placement(false).refuse_wrong(true);
    let mut watched = Config::default();
    watched.apply_environment(|name| (name == "CANTUS_PUBLISH").then(|| std::env::var(name).ok()).flatten())?;
    match device.split_once(':') {
        Some((backend, index)) => {
            let index = index.parse().map_err(|_| Error::Config {
                place: format!("--on {device}"),
                reason: "write it as cpu, or as vulkan:0".to_owned(),
            })?;
            builder = builder.backend(backend).device(index).stall_limit(STALL);
        }
        None if device.is_empty() => {
            let mut config = Config::default();
            config.apply_environment(|name| std::env::var(name).ok())?;
            config.memory_limit = None;
            config.stall_ms.get_or_insert(STALL.as_millis() as u64);
            builder = builder.config(config);
        }
        None => builder = builder.backend(device).stall_limit(STALL),
    }
    if let Some(time) = time {
        // A caller's kernel: nothing is kept between runs, the stop comes from the device itself too, and it runs on this device or not at all.
        builder = builder.without_cache().timeout(time).stall_limit(time).fallback(Fallback::Never);
    }
    // A service is there to be watched; a caller's kernel is not.
    builder.publish(time.is_none() && watched.publish.unwrap_or(true)).build()
}
