//! Submissions and their ends: each has a number, and the numbers end in order.
//!
//! One timeline semaphore counts them. Where Vulkan has none (before 1.2 without the extension), each submission has a fence.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ash::prelude::VkResult;
use ash::{khr, vk};

use super::emulation::{Emulation, Gate};
use super::objects::{Owned, Raw};
use crate::wait::{Awaited, SLICE};

pub(super) struct Timeline {
    raw: Arc<Raw>,
    kind: Kind,
    emulation: Emulation,
    /// Delays the start of submissions, if set.
    gate: Option<Gate>,
}

enum Kind {
    Semaphore { semaphore: Owned<vk::Semaphore>, extension: Option<khr::timeline_semaphore::Device> },
    Fences(Mutex<Fences>),
}

#[derive(Default)]
struct Fences {
    /// The last submission that is known to have ended.
    completed: u64,
    /// Fences in flight, in order. A waiting thread holds a clone, so that the fence is not used for another submission meanwhile.
    in_flight: VecDeque<(u64, Arc<Owned<vk::Fence>>)>,
    free: Vec<Arc<Owned<vk::Fence>>>,
}

fn lock(fences: &Mutex<Fences>) -> MutexGuard<'_, Fences> {
    fences.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Timeline {
    /// Creates a timeline with a semaphore: of the core if `core`, else of the extension.
    pub(super) fn with_semaphore(raw: &Arc<Raw>, core: bool, emulation: &Emulation) -> VkResult<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the feature was switched on.
        let semaphore = Owned::new(raw, unsafe { raw.device.create_semaphore(&info, None) }?);
        let extension = (!core).then(|| khr::timeline_semaphore::Device::new(&raw.instance.raw, &raw.device));
        let kind = Kind::Semaphore { semaphore, extension };
        let gate = emulation.delay.map(Gate::new).transpose()?;
        Ok(Self { raw: raw.clone(), kind, emulation: emulation.clone(), gate })
    }

    /// Creates a timeline with a fence for each submission. Nothing is held back: nobody may look at a fence while it is submitted.
    pub(super) fn with_fences(raw: &Arc<Raw>, emulation: &Emulation) -> Self {
        Self { raw: raw.clone(), kind: Kind::Fences(Mutex::default()), emulation: emulation.clone(), gate: None }
    }

    /// Submits command buffers as number `serial`, one more than the last. The caller holds the device's lock.
    pub(super) fn submit(&self, buffers: &[vk::CommandBuffer], serial: u64) -> VkResult<()> {
        self.emulation.refuse()?;
        match &self.kind {
            Kind::Semaphore { semaphore, .. } => self.put(buffers, Signal::Semaphore(semaphore.handle, serial)),
            Kind::Fences(fences) => {
                let fence = self.free_fence(&mut lock(fences))?;
                let result = self.put(buffers, Signal::Fence(fence.handle));
                match result {
                    Ok(()) => lock(fences).in_flight.push_back((serial, fence)),
                    Err(_) => lock(fences).free.push(fence),
                }
                result
            }
        }
    }

    /// Puts command buffers into the queue: now, or later where they are held back.
    fn put(&self, buffers: &[vk::CommandBuffer], signal: Signal) -> VkResult<()> {
        let Some(gate) = &self.gate else { return signal.after(&self.raw, buffers) };
        let (raw, buffers) = (self.raw.clone(), buffers.to_vec());
        gate.later(move || {
            if let Err(error) = signal.after(&raw, &buffers) {
                tracing::error!(%error, "a submission that was held back is refused");
            }
        });
        Ok(())
    }

    /// Waits until nothing is held back.
    pub(super) fn drain(&self) {
        if let Some(gate) = &self.gate {
            gate.drain();
        }
    }

    /// A fence that is not signalled and that nobody else holds.
    fn free_fence(&self, fences: &mut Fences) -> VkResult<Arc<Owned<vk::Fence>>> {
        let device = &self.raw.device;
        if let Some(place) = fences.free.iter().position(|fence| Arc::strong_count(fence) == 1) {
            let fence = fences.free.swap_remove(place);
            // SAFETY: its submission has ended, and nobody else holds it.
            unsafe { device.reset_fences(&[fence.handle]) }?;
            return Ok(fence);
        }
        // SAFETY: the device lives, and a plain fence needs nothing else.
        let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        Ok(Arc::new(Owned::new(&self.raw, fence)))
    }

    /// The last submission that has ended; 0 before the first.
    pub(super) fn completed(&self) -> VkResult<u64> {
        match &self.kind {
            Kind::Semaphore { semaphore, extension } => {
                // SAFETY: the semaphore is a timeline.
                unsafe {
                    match extension {
                        None => self.raw.device.get_semaphore_counter_value(semaphore.handle),
                        Some(extension) => extension.get_semaphore_counter_value(semaphore.handle),
                    }
                }
            }
            Kind::Fences(fences) => {
                let mut fences = lock(fences);
                while let Some((serial, fence)) = fences.in_flight.front() {
                    // SAFETY: the fence is the device's own.
                    if !unsafe { self.raw.device.get_fence_status(fence.handle) }? {
                        break;
                    }
                    fences.completed = *serial;
                    if let Some((_, fence)) = fences.in_flight.pop_front() {
                        fences.free.push(fence);
                    }
                }
                Ok(fences.completed)
            }
        }
    }

    /// Waits until that submission has ended, no longer than `limit`; drivers may wait longer.
    fn wait(&self, serial: u64, limit: Duration) -> VkResult<()> {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let waited = match &self.kind {
            Kind::Semaphore { semaphore, extension } => {
                let (semaphores, values) = ([semaphore.handle], [serial]);
                let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
                // SAFETY: the semaphore is a timeline; the arrays live until the call is over.
                unsafe {
                    match extension {
                        None => self.raw.device.wait_semaphores(&info, nanoseconds),
                        Some(extension) => extension.wait_semaphores(&info, nanoseconds),
                    }
                }
            }
            Kind::Fences(fences) => {
                let fence = {
                    let fences = lock(fences);
                    if fences.completed >= serial {
                        return Ok(());
                    }
                    fences.in_flight.iter().find(|(number, _)| *number >= serial).map(|(_, fence)| fence.clone())
                };
                match fence {
                    // SAFETY: the clone keeps the fence from being reset meanwhile.
                    Some(fence) => unsafe { self.raw.device.wait_for_fences(&[fence.handle], true, nanoseconds) },
                    None => Ok(()),
                }
            }
        };
        match waited {
            Err(vk::Result::TIMEOUT) => Ok(()),
            waited => waited,
        }
    }
}

/// A submission that is waited for.
pub(super) struct Submission {
    pub(super) timeline: Arc<Timeline>,
    pub(super) serial: u64,
}

impl Awaited for Submission {
    type Fault = vk::Result;

    const ENDS: bool = true;

    fn passed(&self) -> VkResult<bool> {
        Ok(self.timeline.completed()? >= self.serial)
    }

    fn block(&self) -> VkResult<()> {
        self.timeline.wait(self.serial, SLICE)
    }
}

/// The signal at the end of a submission.
#[derive(Clone, Copy)]
enum Signal {
    /// A timeline semaphore, by reaching this number.
    Semaphore(vk::Semaphore, u64),
    Fence(vk::Fence),
}

impl Signal {
    /// Submits, and gives the signal after that.
    fn after(self, raw: &Raw, buffers: &[vk::CommandBuffer]) -> VkResult<()> {
        let info = vk::SubmitInfo::default().command_buffers(buffers);
        match self {
            Self::Semaphore(semaphore, serial) => {
                let (semaphores, values) = ([semaphore], [serial]);
                let mut numbers = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
                let info = info.signal_semaphores(&semaphores).push_next(&mut numbers);
                // SAFETY: the buffers are recorded; the queue is used under the device's lock, or by the gate alone; numbers rise.
                unsafe { raw.device.queue_submit(raw.queue, &[info], vk::Fence::null()) }
            }
            // SAFETY: the buffers are recorded; the queue is used under the device's lock; the fence is not signalled, and no other
            // submission has it.
            Self::Fence(fence) => unsafe { raw.device.queue_submit(raw.queue, &[info], fence) },
        }
    }
}
