//! The engine's log of events.

use cantus_base::listed::Listed;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use web_time::Instant;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A device was opened.
    Opened,
    /// A backend or device was passed over.
    Skipped,
    /// A tensor was placed on another device than the selected one.
    Placed,
    /// A tensor was moved to another device.
    Moved,
    /// Work went to another device because one failed, or to a copy of an app's texture because the device refused the texture.
    FellBack,
    /// A device reported a failure.
    Failed,
    /// A tensor's contents were lost.
    Lost,
    /// A device that was requested by name runs a kernel although its driver gave a wrong answer to what the kernel needs.
    WrongAnswer,
}

/// One entry of [`crate::Engine::events`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Time since the engine was made.
    pub at: Duration,
    /// The kind.
    pub kind: EventKind,
    /// The device or backend concerned.
    pub device: String,
    /// The event in words, with names.
    pub message: String,
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>9.3} s  {:?}  {}: {}", self.at.as_secs_f64(), self.kind, self.device, self.message)
    }
}

const KEPT: usize = 4096;

/// A bounded log.
pub(crate) struct Log {
    start: Instant,
    events: Mutex<VecDeque<Event>>,
    /// The number of events of each kind, including forgotten ones.
    #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
    totals: [std::sync::atomic::AtomicU64; EventKind::WrongAnswer as usize + 1],
}

impl Default for Log {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            events: Mutex::default(),
            #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
            totals: Default::default(),
        }
    }
}

impl Log {
    pub(crate) fn push(&self, kind: EventKind, device: &str, message: &str) {
        match kind {
            EventKind::Opened | EventKind::Placed | EventKind::Moved => tracing::info!(device, "{message}"),
            EventKind::Skipped => tracing::debug!(device, "{message}"),
            EventKind::FellBack | EventKind::Failed | EventKind::Lost | EventKind::WrongAnswer => {
                tracing::warn!(device, "{message}")
            }
        }
        #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
        if let Some(total) = self.totals.get(kind as usize) {
            total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        let event = Event { at: self.start.elapsed(), kind, device: device.to_owned(), message: message.to_owned() };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// Returns the events since then, with times counted from then.
    pub(super) fn since(&self, then: Instant) -> Vec<Event> {
        let passed = then.saturating_duration_since(self.start);
        let mut events = self.list();
        events.retain(|event| event.at >= passed);
        events.iter_mut().for_each(|event| event.at -= passed);
        events
    }

    /// Returns the number of events of that kind, including forgotten ones.
    #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
    pub(super) fn total(&self, kind: EventKind) -> u64 {
        self.totals.get(kind as usize).map_or(0, |total| total.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Time since the engine was made.
    #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
    pub(super) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn list(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().listed()
    }
}
