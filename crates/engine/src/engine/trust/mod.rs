//! A driver is believed after it has shown it. Before a kernel's first use on a device, the constructs in it that drivers are known to get wrong
//! must have given known answers there. Answers are remembered by device, driver and version.
//!
//! A device without remembered answers is asked on threads beside the app's work, from its opening on. An answer that is missing when a kernel
//! needs it counts as wrong. On a device that was requested by name, without fallback, and on the web, the kernel waits for the answer instead. What a
//! device is asked at once is compiled side by side, as drivers' compilers take most of the time.
//!
//! A wrong answer takes the kernels that need it to the next device. On a device that was requested by name they run, with a warning: the
//! caller insisted, and wrong numbers always come with a warning. With `Builder::refuse_wrong` they do not run there either, and the library's own
//! operations never run where their loops are known to end early.

mod answers;

use crate::backend::BoxFuture;
use std::collections::BTreeMap;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use answers::{ANSWERS, Answer};

use super::builder::default_cache_folder;
use super::event::EventKind;
use super::remembered::{Kept, key, recall, remember};
use super::{Engine, Shared, Slot};
use crate::backend::{Bound, Command, Contents, DeviceInfo, Dispatch};
use crate::config::Fallback;
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel, Need, Needs};
use cantus_base::listed::Listed;
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::listed::Ordered as _;

/// The file in the cache folder: by device, the constructs it was asked for, each with what was wrong or nothing.
const FILE: &str = "answers.toml";

/// The number of rounds that a driver gets right that ends longer loops: llvmpipe stops at 65,535 rounds, and no other
/// limit is known.
pub(super) const FEW_ROUNDS: u64 = 65_000;

/// Compilers of drivers write out calls: each of some nested functions that call another twice doubles the text. A million statements keep them
/// busy for minutes.
const MOST_STATEMENTS: u64 = 1 << 20;

/// The label of the dispatches that ask; profiles leave them out.
pub(super) const LABEL: &str = "a kernel with known answers";

/// The answers that this process has so far, from any engine.
static ASKED: Mutex<Kept> = Mutex::new(BTreeMap::new());

fn asked() -> MutexGuard<'static, Kept> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time that opening a device waits for its answers, which may then all be known.
#[cfg(not(target_arch = "wasm32"))]
const AT_OPENING: std::time::Duration = std::time::Duration::from_millis(150);

/// Threads that ask a device at a time, at most.
#[cfg(not(target_arch = "wasm32"))]
const MOST_THREADS: usize = 8;

/// A thread that asks a device for answers that are not remembered. When this is dropped it ends, after the kernels that it runs.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct Asking {
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A device's answer to one kernel with known answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The construct.
    pub need: Need,
    /// The wrong answer; `None` where the answer was right.
    pub wrong: Option<String>,
}

impl Engine {
    /// Runs every kernel with known answers on the selected device, ignoring cached verdicts. Returns the verdicts and caches them.
    ///
    /// # Errors
    /// When the device fails otherwise than by a wrong answer: it is lost, or out of memory.
    pub fn check_device_async(&self) -> BoxFuture<'_, Result<Vec<Verdict>>> {
        Box::pin(async move {
            let slot = self.shared().primary();
            let entries = ask_all(&slot, &ANSWERS.iter().listed()).await?;
            remember_answers(self.shared().options.cache_folder.as_deref(), &slot, &entries);
            Ok(entries.into_iter().map(|(need, wrong)| Verdict { need, wrong }).listed())
        })
    }

    /// [`Engine::check_device_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn check_device(&self) -> Result<Vec<Verdict>> {
        pollster::block_on(self.check_device_async())
    }
}

/// Copies the answers that are remembered in the user's cache folder into another one, for a process that has its own: it need not ask drivers again.
/// Does nothing if none are remembered.
///
/// # Errors
/// The folder cannot be written.
#[doc(hidden)]
#[cfg(not(target_arch = "wasm32"))]
pub fn hand_on(cache: &std::path::Path) -> std::io::Result<()> {
    let Some(known) = default_cache_folder().map(|folder| folder.join(FILE)).filter(|file| file.is_file()) else {
        return Ok(());
    };
    let folder = cache.join("cantus");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(known, folder.join(FILE)).map(drop)
}

/// Returns the wrong answers of a device that are remembered in the user's cache folder: each construct, and what was wrong.
#[must_use]
pub fn wrong_answers(device: &DeviceInfo) -> Vec<(String, String)> {
    let device = key(device);
    let mut verdicts = asked().get(&device).cloned().unwrap_or_default();
    if let Some(folder) = default_cache_folder() {
        verdicts.extend(recall(&folder, FILE).remove(&device).unwrap_or_default());
    }
    verdicts.into_iter().filter(|(_, wrong)| !wrong.is_empty()).listed()
}

/// The beginning of the answer of a device that refuses such kernels: it lacks a feature.
const REFUSES: &str = "it refuses the kernel of the check";

/// Returns whether an answer that counts as wrong is a refusal: the device does not take such kernels.
#[doc(hidden)]
#[must_use]
pub fn is_refusal(answer: &str) -> bool {
    answer.starts_with(REFUSES)
}

/// Returns the construct of a kernel that is too large for the device's compiler, if there is one.
fn too_large(slot: &Slot, kernel: &Kernel) -> Result<Option<String>> {
    let (statements, longest) = kernel.extent()?;
    if statements > MOST_STATEMENTS {
        return Ok(Some(format!(
            "{statements} statements once its calls are written out, which a driver's compiler does ({MOST_STATEMENTS} at most): call \
             fewer functions from functions, or put the calls into a loop"
        )));
    }
    Ok(slot.device().longest().filter(|&most| longest > most).map(|most| {
        format!(
            "an array of its own of {longest} numbers with a computed index, or a `switch` of so many cases ({most} at most: its \
             compiler takes minutes for more): put the table into a storage buffer"
        )
    }))
}

impl Shared {
    /// Returns whether the device may run the kernel: it has given the right answers to what the kernel needs. `rounds` are those that an
    /// invocation's loops make together, where an operation says it (0: as the text shows).
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the construct and the wrong answer, unless the device was requested by name.
    pub(super) async fn check_answers(
        &self,
        slot: &Arc<Slot>,
        kernel: &Kernel,
        label: &str,
        workgroups: [u32; 3],
        rounds: u64,
    ) -> Result<()> {
        if (self.unproven && !self.reproducible) || !slot.device().must_prove() {
            return Ok(());
        }
        let unsupported = |construct: String| Error::Unsupported {
            kernel: label.to_owned(),
            device: slot.name().to_string(),
            construct,
            report: String::new(),
        };
        if let Some(construct) = too_large(slot, kernel)? {
            return Err(unsupported(construct));
        }
        let needs = self.needs_of(kernel, workgroups, rounds)?;
        // Operations know that their sums would end early: nobody who asks for a sum on a device by name insists on that.
        let is_certain = |need| need == Need::SameBits || need == Need::LongLoops && rounds > FEW_ROUNDS;
        let mut known = self.known_answers(slot);
        let is_missing = |answer: &&Answer| needs.contains(answer.need) && !known.contains_key(answer.need.name());
        let missing: Vec<&Answer> = ANSWERS.iter().filter(is_missing).listed();
        if let Some(answer) = missing.first()
            && cfg!(not(target_arch = "wasm32"))
            && !self.waits_for_answers()
        {
            let need = answer.need;
            return Err(unsupported(format!(
                "its driver has not shown yet that it is right about \"{need}\", which the kernel needs; it is being asked"
            )));
        }
        let fresh = ask_all(slot, &missing).await?;
        known.extend(fresh.iter().map(|(need, wrong)| (need.name().to_owned(), wrong.clone().unwrap_or_default())));
        let mut first_wrong = None;
        for need in needs.iter() {
            let wrong = known.get(need.name()).filter(|wrong| !wrong.is_empty()).cloned();
            if let Some(wrong) = wrong {
                if is_refusal(&wrong) && self.requested && !self.refuse_wrong {
                    // It refuses this one too, and says what of it.
                } else if is_certain(need) {
                    first_wrong = Some((need, wrong));
                } else {
                    first_wrong.get_or_insert((need, wrong));
                }
            }
        }
        remember_answers(self.options.cache_folder.as_deref(), slot, &fresh);
        let Some((need, wrong)) = first_wrong else { return Ok(()) };
        let construct = match is_refusal(&wrong) {
            true => format!("of \"{need}\", which the kernel needs, {wrong}"),
            false => format!("its driver computes wrong results for \"{need}\", which the kernel needs: {wrong}"),
        };
        // Numbers that differ are what this mode is to rule out, whoever asked for the device.
        if self.requested && !self.refuse_wrong && !is_certain(need) {
            if slot.tell_once(need) {
                let message = format!("{label} runs on {} as requested, despite: {construct}", slot.name());
                self.events.push(EventKind::WrongAnswer, slot.name(), &message);
            }
            return Ok(());
        }
        Err(unsupported(construct))
    }

    /// Returns the needs of a dispatch of a kernel; `rounds` as in [`Shared::check_answers`].
    fn needs_of(&self, kernel: &Kernel, workgroups: [u32; 3], rounds: u64) -> Result<Needs> {
        let mut needs = if self.unproven { Needs::default() } else { kernel.needs()? };
        if self.reproducible {
            needs.insert(Need::SameBits);
        }
        if !self.unproven && workgroups.iter().any(|&count| count > 65_535) {
            needs.insert(Need::LargeDispatch);
        }
        if (1..=FEW_ROUNDS).contains(&rounds) {
            needs.remove(Need::LongLoops);
        }
        Ok(needs)
    }

    /// Returns whether a kernel waits for an answer that it needs: there is no other device that it should run on meanwhile. What is captured stays
    /// on one device.
    fn waits_for_answers(&self) -> bool {
        self.requested || self.fallback == Fallback::Never || self.current_capture().is_some()
    }

    /// Returns the known answers of a device: from this process, or from the file of earlier ones.
    fn known_answers(&self, slot: &Slot) -> BTreeMap<String, String> {
        let device = key(slot.device().info());
        let known = asked().get(&device).cloned();
        let recalled = || {
            let folder = self.options.cache_folder.as_deref()?;
            let known = recall(folder, FILE).remove(&device)?;
            Some(asked().entry(device.clone()).or_insert(known).clone())
        };
        known.or_else(recalled).unwrap_or_default()
    }

    /// Asks a device that was just opened, on a thread, for the answers that are not remembered, and waits a moment for them.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn ask_beside(&self, slot: &Arc<Slot>) {
        if (self.unproven && !self.reproducible) || self.waits_for_answers() || !slot.device().must_prove() {
            return;
        }
        let known = self.known_answers(slot);
        let is_open = |answer: &&Answer| {
            !known.contains_key(answer.need.name()) && (self.reproducible || answer.need != Need::SameBits)
        };
        let open: Vec<&'static Answer> = ANSWERS.iter().filter(is_open).listed();
        if open.is_empty() {
            return;
        }
        let stop = Arc::<std::sync::atomic::AtomicBool>::default();
        let (slot, folder, stopped) = (slot.clone(), self.options.cache_folder.clone(), stop.clone());
        let (done, all) = std::sync::mpsc::channel::<()>();
        let ask = move || {
            // The app has the other half of the processor.
            let asked = side_by_side(&slot, &open, cores().div_ceil(2), &stopped);
            // Where the device failed otherwise, what it was not asked counts as wrong.
            let fresh = asked.into_iter().filter_map(|(_, need, wrong)| Some((need, wrong.ok()?))).listed();
            remember_answers(folder.as_deref(), &slot, &fresh);
            drop(done);
        };
        // Without a thread nothing is shown, and the next device takes the kernels.
        let Ok(thread) = cantus_base::threads::spawn("cantus-answers".to_owned(), Box::new(ask)) else { return };
        let _ = all.recv_timeout(AT_OPENING);
        let asking = Asking { stop, thread: Some(thread) };
        self.asking.lock().unwrap_or_else(PoisonError::into_inner).push(asking);
    }
}

/// Asks a device, and waits. Returns the answers in their order.
async fn ask_all(slot: &Slot, answers: &[&'static Answer]) -> Result<Vec<(Need, Option<String>)>> {
    #[cfg(not(target_arch = "wasm32"))]
    if answers.len() > 1 {
        let mut asked = side_by_side(slot, answers, cores(), &std::sync::atomic::AtomicBool::new(false));
        asked.order_by_key(|(place, ..)| *place);
        return asked.into_iter().map(|(_, need, wrong)| Ok((need, wrong?))).collect();
    }
    let mut asked = Vec::with_capacity(answers.len());
    for answer in answers {
        asked.push((answer.need, answer.ask(slot).await?));
    }
    Ok(asked)
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Asks a device from several threads, until all is asked, the device fails, or `stop` is true. Answers are remembered for this process as they come.
/// Returns each with its place among those asked.
#[cfg(not(target_arch = "wasm32"))]
fn side_by_side(
    slot: &Slot,
    answers: &[&'static Answer],
    threads: usize,
    stop: &std::sync::atomic::AtomicBool,
) -> Vec<(usize, Need, Result<Option<String>>)> {
    let (next, asked) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(answers.len())));
    let ask = || {
        while !stop.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(answer) = answers.get(place) else { break };
            let wrong = pollster::block_on(answer.ask(slot));
            match &wrong {
                Ok(wrong) => remember_answers(None, slot, &[(answer.need, wrong.clone())]),
                // The others are not asked.
                Err(_) => next.store(answers.len(), Ordering::Relaxed),
            }
            asked.lock().unwrap_or_else(PoisonError::into_inner).push((place, answer.need, wrong));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(MOST_THREADS).min(answers.len()) {
            // What no thread could be started for is asked by this one.
            let _ = std::thread::Builder::new().name("cantus-answers".to_owned()).spawn_scoped(scope, ask);
        }
        ask();
    });
    asked.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers answers for this process, and in the file for later ones.
fn remember_answers(folder: Option<&std::path::Path>, slot: &Slot, fresh: &[(Need, Option<String>)]) {
    if fresh.is_empty() {
        return;
    }
    let device = key(slot.device().info());
    let entries = fresh.iter().map(|(need, wrong)| (need.name().to_owned(), wrong.clone().unwrap_or_default()));
    asked().entry(device.clone()).or_default().extend(entries.clone());
    if let Some(folder) = folder {
        // Read again: another process may have asked other things meanwhile.
        let mut all = recall(folder, FILE);
        all.entry(device).or_default().extend(entries);
        remember(folder, FILE, &all);
    }
}

impl Answer {
    /// Runs the kernel on a device: what is wrong with its answer, if anything is. A device that refuses the kernel has no right answer.
    async fn ask(&self, slot: &Slot) -> Result<Option<String>> {
        match self.run(slot).await {
            Ok(words) => Ok(self.compare(&words)),
            Err(error @ (Error::Unsupported { .. } | Error::Limit(_))) => {
                // On one line without quotes, as the file of what is remembered has it.
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default().replace(['"', '\\'], "'");
                Ok(Some(format!("{REFUSES}: {reason}")))
            }
            Err(error) => Err(error),
        }
    }

    async fn run(&self, slot: &Slot) -> Result<Vec<u32>> {
        let device = slot.device();
        let mut kernel = Kernel::from_named_wgsl(self.need.name(), self.wgsl)?;
        if self.need == Need::SameBits {
            kernel = kernel.reproducible()?;
        }
        let program = device.compile(&kernel).await?;
        device.check_workgroups(&*program, self.need.name(), self.workgroups)?;
        let count = (self.expected)(self).len();
        let bytes = count as u64 * 4;
        let answer = device.allocate(bytes, Contents::Zeroed, self.need.name()).await?;
        let mut bindings = Vec::with_capacity(2);
        for binding in &kernel.reflection()?.bindings {
            let given = bytemuck::cast_slice::<u32, u8>(self.given);
            bindings.push(match (binding.name.as_str(), binding.space) {
                (Kernel::ZERO, _) => Bound::Uniform(vec![0; 4]),
                ("answer", _) => Bound::Buffer { buffer: answer.clone(), offset: 0, bytes },
                (_, AddressSpace::Uniform) => Bound::Uniform(given.to_vec()),
                (_, AddressSpace::Storage) => {
                    let buffer = device.allocate(given.len() as u64, Contents::Overwritten, self.need.name()).await?;
                    device.write(&buffer, 0, given).await?;
                    Bound::Buffer { buffer, offset: 0, bytes: given.len() as u64 }
                }
            });
        }
        let label = LABEL.into();
        let dispatch =
            Dispatch { program, label, bindings, workgroups: self.workgroups, cancel: Vec::new(), stated: None };
        device.submit(vec![Command::Dispatch(dispatch)]).await?;
        let mut words = vec![0_u32; count];
        device.read(&answer, 0, bytemuck::cast_slice_mut(&mut words)).await?;
        Ok(words)
    }

    fn compare(&self, words: &[u32]) -> Option<String> {
        let expected = (self.expected)(self);
        let wrong = expected.iter().zip(words).filter(|(expected, word)| expected != word).count();
        let place = expected.iter().zip(words).position(|(expected, word)| expected != word)?;
        let (word, right) = (words.get(place)?, expected.get(place)?);
        Some(format!(
            "{wrong} of {} words differ, the first at {place}: {word:#x} instead of {right:#x}",
            expected.len()
        ))
    }
}
