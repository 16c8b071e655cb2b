//! Circumstances of other machines, brought about on this one for tests: memory that the host does not reach, devices that end late,
//! drivers that refuse work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ash::prelude::VkResult;
use ash::vk;

/// The settings of [`super::VulkanBackend::emulate`].
#[derive(Debug, Clone, Default)]
pub struct Emulation {
    /// The device counts as one with memory of its own, whatever it has: tensors are not mapped, every transfer is staged, what is mapped is
    /// not coherent (and wrong where a flush or an invalidation is missing), and limits are the smallest that WebGPU and Vulkan allow;
    /// the driver does not set workgroup memory to zero.
    pub discrete: bool,
    /// The most bytes of a storage binding.
    pub binding: Option<u32>,
    /// The delay of each submission. Needs timeline semaphores.
    pub delay: Option<Duration>,
    /// The driver refuses this many of the next submissions, for lack of memory. Each one that it refuses is counted down.
    pub refusals: Arc<AtomicU32>,
    /// With `discrete`: while this is set, memory that only the device can access is exhausted.
    pub full: Arc<AtomicBool>,
}

impl Emulation {
    /// Reads the environment: `CANTUS_VULKAN_DISCRETE=1` sets `discrete`, `CANTUS_VULKAN_DELAY=MICROSECONDS` sets `delay`.
    pub(super) fn of_environment() -> Self {
        let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty() && value != "0");
        let delay = value("CANTUS_VULKAN_DELAY").and_then(|value| value.parse().ok()).map(Duration::from_micros);
        Self {
            discrete: value("CANTUS_VULKAN_DISCRETE").is_some(),
            binding: None,
            delay,
            refusals: Arc::default(),
            full: Arc::default(),
        }
    }

    /// The refusal of this submission, if it is to be refused.
    pub(super) fn refuse(&self) -> VkResult<()> {
        let one_less = |left: u32| left.checked_sub(1);
        match self.refusals.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less) {
            Ok(_) => Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY),
            Err(_) => Ok(()),
        }
    }
}

/// Limits as small as they may be: what WebGPU promises every kernel, and what Vulkan promises beyond.
pub(super) fn smallest(limits: &mut vk::PhysicalDeviceLimits) {
    const INVOCATIONS: u32 = 256;
    limits.non_coherent_atom_size = 256;
    limits.min_storage_buffer_offset_alignment = 256;
    limits.min_uniform_buffer_offset_alignment = 256;
    let at_most = |value: &mut u32, most: u32| *value = (*value).min(most);
    at_most(&mut limits.max_storage_buffer_range, 128 << 20);
    at_most(&mut limits.max_uniform_buffer_range, 64 << 10);
    at_most(&mut limits.max_per_stage_descriptor_storage_buffers, 8);
    at_most(&mut limits.max_per_stage_descriptor_uniform_buffers, 12);
    at_most(&mut limits.max_descriptor_set_uniform_buffers_dynamic, 8);
    at_most(&mut limits.max_compute_shared_memory_size, 16 << 10);
    at_most(&mut limits.max_compute_work_group_invocations, INVOCATIONS);
    limits.max_compute_work_group_count.iter_mut().for_each(|count| at_most(count, 65_535));
    let sides = limits.max_compute_work_group_size.iter_mut().zip([INVOCATIONS, INVOCATIONS, 64]);
    sides.for_each(|(side, most)| at_most(side, most));
}

/// The memory types of a device with memory of its own: a first one that only the device reaches, in place of the best that is there, and
/// behind it those that are there, as the host's.
pub(super) fn apart(memory: &vk::PhysicalDeviceMemoryProperties) -> vk::PhysicalDeviceMemoryProperties {
    let mut all = *memory;
    let kinds = memory.memory_types_as_slice();
    let (Some(first), Some(count)) =
        (kinds.first(), kinds.len().checked_add(1).filter(|count| *count <= vk::MAX_MEMORY_TYPES))
    else {
        return all;
    };
    all.memory_types[0] = vk::MemoryType { property_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL, ..*first };
    for (to, from) in all.memory_types[1..count].iter_mut().zip(kinds) {
        *to = vk::MemoryType { property_flags: from.property_flags & !vk::MemoryPropertyFlags::DEVICE_LOCAL, ..*from };
    }
    all.memory_type_count += 1;
    all
}

/// The type that is really there for one of [`apart`].
pub(super) fn really(kind: u32) -> u32 {
    kind.saturating_sub(1)
}

/// Holds each submission back for a time: a thread puts it in later.
pub(super) struct Gate {
    delay: Duration,
    /// Taken when the gate goes.
    later: Option<Sender<(Instant, Job)>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Gate {
    pub(super) fn new(delay: Duration) -> VkResult<Self> {
        let (later, due) = channel::<(Instant, Job)>();
        let work = move || {
            for (when, job) in due {
                std::thread::sleep(when.saturating_duration_since(Instant::now()));
                job();
            }
        };
        let thread = cantus_base::threads::spawn("cantus-vk-gate".to_owned(), Box::new(work));
        let thread = thread.map_err(|_| vk::Result::ERROR_OUT_OF_HOST_MEMORY)?;
        Ok(Self { delay, later: Some(later), thread: Some(thread) })
    }

    /// Does something when the delay has passed, after everything before it.
    pub(super) fn later(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(later) = &self.later {
            // The thread ends only with the gate.
            let _ = later.send((Instant::now() + self.delay, Box::new(job)));
        }
    }

    /// Waits until everything before is done.
    pub(super) fn drain(&self) {
        let (done, all_done) = channel();
        self.later(move || {
            // Whoever waits is there.
            let _ = done.send(());
        });
        let _ = all_done.recv();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.later = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
