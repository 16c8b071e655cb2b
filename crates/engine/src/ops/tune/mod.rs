//! Chooses the variant of an operation's kernel for a device: the one measured there, now or in an earlier run, and a shipped default until
//! then. Nothing here can fail an operation.

mod job;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use web_time::Instant;

pub(super) use job::{Job, Machine, Variant};

use crate::engine::remembered::{Kept, key, recall, remember};
use crate::engine::{Engine, EventKind, Shared, Slot, Tensor, TuneOptions, Tuned};
use crate::error::Result;
use cantus_base::listed::{Listed, Ordered};

const FILE: &str = "tuning.toml";

/// A gain smaller than this is taken for noise.
const GAIN: f64 = 0.97;

/// A time this many times the best is not noise.
const FAR: u32 = 2;

/// Timed runs of each variant, of which the least counts.
const ROUNDS: usize = 5;

/// The choices for one device, kept beside it.
#[derive(Default)]
struct Choices {
    state: Mutex<State>,
    /// Changes whenever a different variant may run.
    version: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The measurements, once they were read from the cache folder.
    measured: Option<BTreeMap<String, String>>,
    /// The chosen variants of the jobs so far.
    chosen: FxHashMap<Job, Variant>,
    /// The variant that is being measured.
    forced: Option<(Job, Variant)>,
}

impl Choices {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The variant to run for a job on the device where a tensor is.
    pub(crate) fn variant(&self, near: Option<&Tensor>, job: Job) -> Variant {
        if self.reproducible {
            return job.shipped(Machine::Gpu);
        }
        let slot = near.map_or_else(|| self.primary(), |tensor| tensor.place().slot);
        let choices = slot.beside::<Choices>();
        let mut state = choices.lock();
        if let Some((forced, variant)) = state.forced
            && forced == job
        {
            return variant;
        }
        if let Some(&variant) = state.chosen.get(&job) {
            return variant;
        }
        let machine = Machine::of(slot.device().info());
        let measured = state.measured.get_or_insert_with(|| self.recalled(&slot));
        let name = measured.get(&job.to_string());
        // A name that this version does not know is ignored.
        let found = name.and_then(|name| job.variants(machine).into_iter().find(|known| known.to_string() == *name));
        let variant = found.unwrap_or_else(|| job.shipped(machine));
        state.chosen.insert(job, variant);
        variant
    }

    /// Returns a number that changes whenever a different variant may run on a device.
    pub(in crate::ops) fn variants_version(&self, slot: &Slot) -> u64 {
        slot.beside::<Choices>().version.load(Ordering::Relaxed)
    }

    /// The kind of the device where a tensor is.
    pub(crate) fn machine(&self, near: Option<&Tensor>) -> Machine {
        if self.reproducible {
            return Machine::Gpu;
        }
        let slot = near.map_or_else(|| self.primary(), |tensor| tensor.place().slot);
        Machine::of(slot.device().info())
    }

    fn recalled(&self, slot: &Slot) -> BTreeMap<String, String> {
        let Some(folder) = &self.options().cache_folder else { return BTreeMap::new() };
        recall(folder, FILE).remove(&key(slot.device().info())).unwrap_or_default()
    }

    /// Keeps a choice: for this engine, and in the cache folder for later ones. Other processes may write too, so the file is read again.
    fn keep(&self, slot: &Slot, job: Job, variant: Variant) {
        let choices = slot.beside::<Choices>();
        choices.version.fetch_add(1, Ordering::Relaxed);
        let mut state = choices.lock();
        state.chosen.insert(job, variant);
        state.measured.get_or_insert_default().insert(job.to_string(), variant.to_string());
        if let Some(folder) = &self.options().cache_folder {
            let mut known: Kept = recall(folder, FILE);
            known.entry(key(slot.device().info())).or_default().insert(job.to_string(), variant.to_string());
            remember(folder, FILE, &known);
        }
    }
}

/// The time after which no measurement starts; never, if the clock does not reach that far.
#[derive(Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The least time of a variant, on an engine whose only device is the one in question. A variant that is far from the `best` time is
/// not run again.
async fn measure(engine: &Engine, job: Job, variant: Variant, best: Duration, deadline: Deadline) -> Result<Duration> {
    let slot = engine.shared().primary();
    let choices = slot.beside::<Choices>();
    choices.version.fetch_add(1, Ordering::Relaxed);
    choices.lock().forced = Some((job, variant));
    let prepared = job.prepare(engine).await?;
    // The first run compiles.
    prepared.run(engine).await?;
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        prepared.run(engine).await?;
        least = least.min(start.elapsed());
        if least > FAR * best || deadline.is_over() {
            break;
        }
    }
    Ok(least)
}

impl Engine {
    /// Measures the variants of the operations on each open device, and runs the quickest from then on, in this engine and in later ones
    /// (a file in the cache folder remembers, by device and driver). A variant that fails is passed over; what was not reached within the
    /// limit stays as it was. Runs beside other work on the device, so it is best called when there is little, or on a thread of its
    /// own with a clone of the engine.
    ///
    /// `each` is called with every operation that was measured; all of them are returned.
    pub async fn tune_async(&self, options: &TuneOptions, mut each: impl FnMut(&Tuned)) -> Vec<Tuned> {
        let deadline = Deadline(Instant::now().checked_add(options.limit));
        let mut all = Vec::new();
        for slot in self.shared().open_slots() {
            if slot.failure().is_some() {
                continue;
            }
            for job in self.jobs(&slot, options) {
                if deadline.is_over() {
                    return all;
                }
                if let Some(tuned) = self.tune_job(&slot, job, deadline).await {
                    each(&tuned);
                    all.push(tuned);
                }
            }
        }
        all
    }

    /// [`Engine::tune_async`], blocking.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tune(&self, options: &TuneOptions) -> Vec<Tuned> {
        crate::engine::blocking::block_on(self.tune_async(options, |_| ()))
    }

    /// Returns the jobs to measure on a device: what ran first, in a stable order.
    fn jobs(&self, slot: &Arc<Slot>, options: &TuneOptions) -> Vec<Job> {
        let choices = slot.beside::<Choices>();
        let mut jobs: Vec<Job> = choices.lock().chosen.keys().copied().listed();
        jobs.order_by_key(ToString::to_string);
        if options.usual {
            jobs.extend(Job::usual());
        }
        let mut state = choices.lock();
        let measured = state.measured.get_or_insert_with(|| self.shared().recalled(slot));
        let mut seen = Vec::new();
        jobs.retain(|job| {
            let wanted = (options.again || !measured.contains_key(&job.to_string())) && !seen.contains(job);
            seen.push(*job);
            wanted
        });
        jobs
    }

    async fn tune_job(&self, slot: &Arc<Slot>, job: Job, deadline: Deadline) -> Option<Tuned> {
        let machine = Machine::of(slot.device().info());
        let mut options = self.shared().options().clone();
        // Kernels are measured, and not a library in their place.
        options.without_native |= machine != Machine::Cpu;
        let engine = Self::on_device(slot.device().clone(), options);
        let variants = job.variants(machine);
        let shipped = job.shipped(machine);
        let mut times: Vec<(Variant, Duration)> = Vec::new();
        for &variant in &variants {
            // The shipped one, which comes first, is needed to compare with.
            if !times.is_empty() && deadline.is_over() {
                break;
            }
            let best = times.iter().map(|(_, time)| *time).min().unwrap_or(Duration::from_secs(3600));
            match measure(&engine, job, variant, best, deadline).await {
                Ok(time) => times.push((variant, time)),
                Err(error) => {
                    let message = format!("{job} by {variant} could not be measured: {error}");
                    self.shared().note(EventKind::Failed, slot.name(), &message);
                    if variant == shipped {
                        break;
                    }
                }
            }
        }
        let &(_, shipped_time) = times.iter().find(|(variant, _)| *variant == shipped)?;
        let &(best, time) = times.iter().min_by_key(|(_, time)| *time)?;
        let (variant, time) =
            if time.as_secs_f64() < GAIN * shipped_time.as_secs_f64() { (best, time) } else { (shipped, shipped_time) };
        self.shared().keep(slot, job, variant);
        Some(Tuned {
            device: slot.name().to_string(),
            operation: job.to_string(),
            variant: variant.to_string(),
            time,
            shipped: shipped.to_string(),
            shipped_time,
            measured: (times.len(), variants.len()),
        })
    }
}
