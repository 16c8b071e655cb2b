//! Clients: one for all devices of a plugin, and what is known of plugins in this process. A plugin that was never opened on this machine is
//! tried in a copy of the process first.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::UNIX_EPOCH;

use super::abi::{self, Call, ClientCreate, Fault, NamedValue};
use super::attempts::Attempts;
use super::plugin::{self, Candidate, Owned, Plugin, Source};
use super::shared::{self, Pjrt};
use super::trial::{COPIES, LIMIT, survives};
use crate::native_cache::NativeCache;
use cantus_base::listed::Listed;

/// The progress of trying a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trial {
    Loaded,
    Opened,
}

#[derive(Default)]
struct Known {
    /// The results of trials, the latest last.
    trials: Vec<(PathBuf, Trial, Result<(), String>)>,
    /// A library is initialised once in a process.
    initialised: Vec<(Plugin, Result<(), Fault>)>,
    /// A client is shared by all that use its devices; of those that are gone the number of devices is kept.
    clients: Vec<(Plugin, Weak<Owned>, usize)>,
}

fn known() -> MutexGuard<'static, Known> {
    static KNOWN: Mutex<Known> = Mutex::new(Known { trials: Vec::new(), initialised: Vec::new(), clients: Vec::new() });
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    /// Tries a library as far as that, if it was not yet.
    fn tried(&mut self, candidate: &Candidate, upto: Trial) -> Result<(), String> {
        let Source::Library(path) = &candidate.source else { return Ok(()) };
        let of_path = self.trials.iter().rev().filter(|(known, ..)| known == path);
        let mut of_path = of_path.filter(|(_, trial, result)| result.is_err() || *trial >= upto);
        if let Some((_, _, result)) = of_path.next() {
            return result.clone();
        }
        let work = || {
            let Ok(plugin) = Plugin::load(&candidate.source) else { return };
            if upto == Trial::Opened
                && plugin::initialise(plugin).is_ok()
                && let Ok(client) = create(candidate, plugin)
            {
                let _ = shared::devices(&client);
            }
        };
        let place = if upto == Trial::Loaded { "loading it" } else { "making its client" };
        let result = survives(LIMIT, work).map_err(|how| {
            format!("{place} was tried in another process, and {how}: it is left alone (name another one in CANTUS_PJRT_PLUGIN)")
        });
        self.trials.push((path.clone(), upto, result.clone()));
        result
    }
}

/// Loads a candidate's plugin.
pub(super) fn loaded(candidate: &Candidate) -> Result<Plugin, String> {
    known().tried(candidate, Trial::Loaded)?;
    Plugin::load(&candidate.source)
}

/// Returns the number of devices that a plugin's client had.
pub(super) fn devices(plugin: Plugin) -> Option<usize> {
    known().clients.iter().find(|(known, ..)| *known == plugin).map(|(.., count)| *count)
}

/// Returns the client of a candidate: the existing one, or a new one.
pub(super) fn opened(candidate: &Candidate, cache: &NativeCache, attempts: &Attempts) -> Result<Arc<Owned>, String> {
    let mut known = known();
    known.tried(candidate, Trial::Loaded)?;
    let key = facts(candidate).map(|facts| cache.key(&[&facts]));
    if key.as_ref().is_none_or(|key| cache.get(key).is_none()) {
        known.tried(candidate, Trial::Opened)?;
    }
    let plugin = Plugin::load(&candidate.source)?;
    let there = known.clients.iter().find(|(known, ..)| *known == plugin).and_then(|(_, client, _)| client.upgrade());
    if let Some(client) = there {
        return Ok(client);
    }
    attempts.settle(|program| {
        let use_it = || {
            let _ = used_once(candidate, program);
        };
        if COPIES { survives(LIMIT, use_it) } else { Err("ended that".to_owned()) }
    });
    let result = match known.initialised.iter().find(|(known, _)| *known == plugin) {
        Some((_, result)) => result.clone(),
        None => {
            let result = plugin::initialise(plugin);
            known.initialised.push((plugin, result.clone()));
            result
        }
    };
    let made = result.and_then(|()| create(candidate, plugin));
    let client = made.map_err(|fault| fault.to_string())?;
    let count = shared::devices(&client).map_err(|fault| fault.to_string())?.len();
    known.clients.retain(|(known, ..)| *known != plugin);
    known.clients.push((plugin, Arc::downgrade(&client), count));
    if let Some(key) = key {
        cache.put(&key, b"opened");
    }
    Ok(client)
}

/// Compiles a program and runs it over zeros.
fn used_once(candidate: &Candidate, program: &str) -> Option<()> {
    let plugin = Plugin::load(&candidate.source).ok()?;
    plugin::initialise(plugin).ok()?;
    let client = create(candidate, plugin).ok()?;
    let device = *shared::devices(&client).ok()?.first()?;
    Pjrt::new(client, device, Attempts::none()).use_once(program)
}

/// The file as it is now.
pub(super) fn facts(candidate: &Candidate) -> Option<String> {
    let Source::Library(path) = &candidate.source else { return None };
    let facts = std::fs::metadata(path).ok()?;
    let changed = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    Some(format!("{} {} {changed}", path.display(), facts.len()))
}

fn create(candidate: &Candidate, plugin: Plugin) -> Result<Arc<Owned>, Fault> {
    let setting = |name: &std::ffi::CStr, kind, value, value_size| NamedValue {
        struct_size: size_of::<NamedValue>(),
        extension: std::ptr::null_mut(),
        name: name.as_ptr(),
        name_length: name.count_bytes(),
        kind,
        value,
        value_size,
    };
    let options = candidate.kind.options.iter();
    let mut settings: Vec<_> = options.map(|(name, value)| setting(name, abi::BOOL, u64::from(*value), 1)).listed();
    if matches!(candidate.source, Source::Simulator(_)) {
        settings.push(setting(abi::DEVICES, abi::INTEGER, candidate.devices as u64, 1));
    }
    let made = plugin.call(
        Call::ClientCreate,
        ClientCreate {
            options: settings.as_ptr(),
            option_count: settings.len(),
            callbacks: [std::ptr::null_mut(); 4],
            client: std::ptr::null_mut(),
        },
    )?;
    Ok(Owned::new(plugin, made.client, Call::ClientDestroy, None))
}
