//! Times of work: spans on the host and on devices, as figures per kernel and as a trace for Chrome's and Perfetto's viewers. Dispatches and slots report
//! to it; `trace` writes it as JSON. A device's kernel times come after the work and are matched with dispatches by label and order. Without a device clock
//! they are put behind one another on the host's clock, so gaps between kernels are not to be trusted.

#![cfg_attr(not(feature = "trace"), allow(dead_code, reason = "what traces are written from"))]

#[cfg(feature = "trace")]
pub(super) mod trace;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use web_time::Instant;

use super::{Engine, Event, Shared, Slot};
use crate::backend::KernelTime;
use cantus_base::listed::{Listed, Ordered};

/// Spans kept, at most; a million take about 100 MB.
const KEPT: usize = 1 << 20;

/// Collects spans while a profile is taken. Costs one load where none is.
#[derive(Default)]
pub(crate) struct Profiler {
    active: AtomicBool,
    state: Mutex<Option<State>>,
}

struct State {
    start: Instant,
    host: Vec<HostSpan>,
    /// The thread that began the profile, and the others that had spans, with their names.
    threads: Vec<(ThreadId, String)>,
    kernels: Vec<KernelSpan>,
    devices: Vec<DeviceState>,
    dropped: u64,
}

struct DeviceState {
    name: Arc<str>,
    /// Recorded, and not yet timed.
    waiting: VecDeque<Recorded>,
    /// The end of the last kernel.
    end: Instant,
}

struct Recorded {
    label: Arc<str>,
    at: Instant,
    bytes: u64,
    flops: u64,
}

struct HostSpan {
    name: String,
    start: Instant,
    time: Duration,
    bytes: u64,
    /// Its place among the threads that had spans.
    thread: usize,
}

struct KernelSpan {
    label: Arc<str>,
    device: usize,
    start: Instant,
    time: Duration,
    /// Bytes bound and floating-point operations; 0 where they are not known, as in a replayed graph.
    bytes: u64,
    flops: u64,
    /// The start is the device's own, not put together from the host's.
    exact: bool,
}

/// The beginning of a span; nothing while no profile is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun(Option<Instant>);

/// Work on the host that profiles show as a span of its thread, begun by [`Engine::span`]. Dropped, it leaves none.
#[must_use = "a span that is not ended is not shown"]
pub struct Span<'a> {
    profiler: &'a Profiler,
    begun: Begun,
}

impl fmt::Debug for Span<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Span<'_> {
    /// Ends the span, under a name and with the number of bytes that the work moved, 0 if none.
    pub fn end(self, name: &str, bytes: u64) {
        self.profiler.end(self.begun, || name.to_owned(), bytes);
    }
}

impl Profiler {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> bool {
        let mut state = self.lock();
        if state.is_some() {
            return false;
        }
        let start = Instant::now();
        *state = Some(State {
            start,
            host: Vec::new(),
            threads: vec![this_thread()],
            kernels: Vec::new(),
            devices: Vec::new(),
            dropped: 0,
        });
        self.active.store(true, Ordering::Relaxed);
        true
    }

    fn stop(&self) -> Option<State> {
        self.active.store(false, Ordering::Relaxed);
        self.lock().take()
    }

    /// Returns whether a profile is taken.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self) -> Begun {
        Begun(self.is_active().then(Instant::now))
    }

    /// Ends a span of the host.
    pub(crate) fn end(&self, span: Begun, name: impl FnOnce() -> String, bytes: u64) {
        let Some(start) = span.0 else { return };
        if let Some(state) = &mut *self.lock() {
            state.host(name(), start, start.elapsed(), bytes);
        }
    }

    /// Ends the recording of a dispatch, whose time on the device will come.
    pub(super) fn dispatch(&self, span: Begun, label: &Arc<str>, slot: &Slot, bytes: u64, flops: u64) {
        let Some(start) = span.0 else { return };
        if let Some(state) = &mut *self.lock() {
            let time = start.elapsed();
            state.host(format!("record {label}"), start, time, 0);
            let recorded = Recorded { label: label.clone(), at: start + time, bytes, flops };
            let device = state.device(slot.name());
            let waiting = &mut state.devices[device].waiting;
            if waiting.len() < KEPT {
                waiting.push_back(recorded);
            }
        }
    }

    /// The time that a device measured.
    pub(super) fn time(&self, slot: &Slot, time: &KernelTime) {
        if !self.is_active() {
            return;
        }
        if let Some(state) = &mut *self.lock() {
            state.kernel(slot.name(), time);
        }
    }
}

fn this_thread() -> (ThreadId, String) {
    let thread = std::thread::current();
    (thread.id(), thread.name().unwrap_or("a thread").to_owned())
}

impl State {
    fn full(&mut self) -> bool {
        let full = self.host.len() + self.kernels.len() >= KEPT;
        self.dropped += u64::from(full);
        full
    }

    /// A span of this thread's.
    fn host(&mut self, name: String, start: Instant, time: Duration, bytes: u64) {
        if self.full() {
            return;
        }
        let (id, called) = this_thread();
        let thread = self.threads.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            self.threads.push((id, called));
            self.threads.len() - 1
        });
        self.host.push(HostSpan { name, start, time, bytes, thread });
    }

    fn device(&mut self, name: &Arc<str>) -> usize {
        if let Some(place) = self.devices.iter().position(|device| device.name == *name) {
            return place;
        }
        self.devices.push(DeviceState { name: name.clone(), waiting: VecDeque::new(), end: self.start });
        self.devices.len() - 1
    }

    fn kernel(&mut self, name: &Arc<str>, time: &KernelTime) {
        // What ran before the profile began is no part of it.
        if time.start.is_some_and(|start| start < self.start) || self.full() {
            return;
        }
        let place = self.device(name);
        let device = &mut self.devices[place];
        let recorded = device
            .waiting
            .iter()
            .position(|recorded| is_of(&time.label, &recorded.label))
            .and_then(|at| device.waiting.remove(at));
        // On a device with a clock of its own: after what was before it, and after it was asked for.
        let earliest = recorded.as_ref().map_or(device.end, |recorded| recorded.at.max(device.end));
        let start = time.start.unwrap_or(earliest);
        device.end = start + time.time;
        self.kernels.push(KernelSpan {
            label: time.label.clone(),
            device: place,
            start,
            time: time.time,
            bytes: recorded.as_ref().map_or(0, |recorded| recorded.bytes),
            flops: recorded.as_ref().map_or(0, |recorded| recorded.flops),
            exact: time.start.is_some(),
        });
    }
}

/// Returns whether a kernel's time is that of a dispatch: the native kernel's name follows its label, in brackets.
fn is_of(timed: &str, recorded: &str) -> bool {
    timed.strip_prefix(recorded).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

/// The work of an engine between two points in time, made by [`Engine::profile`].
pub struct Profile {
    state: State,
    time: Duration,
    events: Vec<Event>,
}

/// A kernel's figures on one device.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProfileRow {
    /// The kernel's name or the dispatch's label.
    pub operation: String,
    /// The device.
    pub device: String,
    /// The number of timed runs.
    pub count: u64,
    /// The sum of its times on the device.
    pub total: Duration,
    /// Bytes bound per second, in GB/s: what one pass over every binding moves. `None` where the bytes are not known.
    pub gb_per_s: Option<f64>,
    /// Floating-point operations per second, in GFLOP/s, for kernels whose operations are counted.
    pub gflop_per_s: Option<f64>,
}

/// Billions per second.
fn rate(amount: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (amount > 0 && seconds > 0.0).then(|| amount as f64 / seconds / 1e9)
}

impl Profile {
    /// Figures per kernel and device, the longest sum of times first.
    #[must_use]
    pub fn rows(&self) -> Vec<ProfileRow> {
        let mut sums: BTreeMap<(&str, usize), (u64, Duration, u64, u64)> = BTreeMap::new();
        for kernel in &self.state.kernels {
            let sum = sums.entry((&*kernel.label, kernel.device)).or_default();
            *sum = (sum.0 + 1, sum.1 + kernel.time, sum.2 + kernel.bytes, sum.3 + kernel.flops);
        }
        let row = |((operation, device), (count, total, bytes, flops)): ((&str, usize), (u64, Duration, u64, u64))| {
            ProfileRow {
                operation: operation.to_owned(),
                device: self.state.devices.get(device).map_or_else(String::new, |device| device.name.to_string()),
                count,
                total,
                gb_per_s: rate(bytes, total),
                gflop_per_s: rate(flops, total),
            }
        };
        let mut rows: Vec<ProfileRow> = sums.into_iter().map(row).listed();
        rows.order_by_key(|row| std::cmp::Reverse(row.total));
        rows
    }

    /// Returns how long was profiled.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("time", &self.time).field("rows", &self.rows()).finish_non_exhaustive()
    }
}

impl fmt::Display for Profile {
    /// A table of [`Profile::rows`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12} {:>7} {:>9} {:>9}  kernel, device", "total ms", "count", "GB/s", "GFLOP/s")?;
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        for row in self.rows() {
            let total = row.total.as_secs_f64() * 1e3;
            let (gb, gflop) = (rate(row.gb_per_s), rate(row.gflop_per_s));
            writeln!(f, "{total:>12.3} {:>7} {gb:>9} {gflop:>9}  {}, {}", row.count, row.operation, row.device)?;
        }
        Ok(())
    }
}

impl Engine {
    /// Runs work and says what took how long: on the host, and each kernel on its device. Waits until the devices have finished. The
    /// devices' own times need an engine that was opened with [`super::Builder::profile`], except for the CPU's, which are always there.
    ///
    /// With [`Engine::from_env`], `CANTUS_PROFILE=trace.json` profiles a whole program: the trace is written when its engine ends.
    ///
    /// One profile is taken at a time: a profile within another one is empty.
    pub async fn profile_async<T>(&self, work: impl Future<Output = T>) -> (T, Profile) {
        // Earlier work is no part of it.
        let shared = self.shared();
        for slot in shared.open_slots() {
            shared.finish_slot(&slot).await;
        }
        let started = shared.profiler.start().then(|| Started(shared));
        let begun = Instant::now();
        let result = work.await;
        let time = begun.elapsed();
        let state = match &started {
            Some(_) => shared.stop_profile().await,
            None => None,
        };
        drop(started);
        let state = state.unwrap_or_else(|| State {
            start: begun,
            host: Vec::new(),
            threads: Vec::new(),
            kernels: Vec::new(),
            devices: Vec::new(),
            dropped: 0,
        });
        let events = shared.events.since(begun);
        (result, Profile { state, time, events })
    }

    /// Begins a span of the host's work, which shows in profiles once it is ended ([`Profile::to_json`] with the feature `trace`). It costs one
    /// load where no profile is taken.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (bytes, profile) = engine.profile(|| {
    ///     let span = engine.span();
    ///     let bytes = vec![0_u8; 1000]; // what is read from somewhere
    ///     span.end("read a block", bytes.len() as u64);
    ///     bytes
    /// });
    /// # drop((bytes, profile));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn span(&self) -> Span<'_> {
        let profiler = self.shared().profiler();
        Span { profiler, begun: profiler.begin() }
    }

    /// [`Engine::profile_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32; 1000])?;
    /// let (sum, profile) = engine.profile(|| x.sum(&[], false).eval()?.item::<f32>());
    /// assert_eq!(sum?, 1000.0);
    /// assert!(!profile.rows().is_empty());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[cfg(not(target_arch = "wasm32"))]
    pub fn profile<T>(&self, work: impl FnOnce() -> T) -> (T, Profile) {
        crate::engine::blocking::block_on(self.profile_async(async { work() }))
    }
}

/// Ends a profile whose future is dropped, so that another can be taken.
struct Started<'a>(&'a Shared);

impl Drop for Started<'_> {
    fn drop(&mut self) {
        self.0.profiler.stop();
    }
}

impl Shared {
    pub(crate) fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    async fn stop_profile(self: &Arc<Self>) -> Option<State> {
        for slot in self.open_slots() {
            self.finish_slot(&slot).await;
        }
        self.profiler.stop()
    }
}
