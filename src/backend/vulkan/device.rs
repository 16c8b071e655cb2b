//! An opened device: what its parts share, and the [`Device`] trait over them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ash::vk;
use rustc_hash::FxHashMap;
use web_time::Instant;

use super::adapter::Adapter;
use super::cache::PipelineCache;
use super::errors::Health;
use super::features::{self, Chain, Support};
use super::instance::Instance;
use super::memory::{Memory, RawBuffer};
use super::objects::Raw;
use super::program::VulkanProgram;
use super::recording::VulkanRecording;
use super::ring::{HostRing, Ring};
use super::sets::{Layout, SetCache, SlotKind};
use super::timeline::Timeline;
use super::transfer::Pending;
use super::uniforms::Uniforms;
use super::waiter::Waiter;
use crate::backend::signal::Failure;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Recording, ready,
};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;
/// Short work ends before a thread could be woken: a wait looks for so long itself.
const PATIENCE: Duration = Duration::from_micros(30);

/// What the parts of a device share. Buffers, programs and recordings keep it alive.
pub(super) struct Shared {
    /// Its threads end first.
    waiter: Waiter,
    pub(super) info: DeviceInfo,
    pub(super) support: Support,
    pub(super) limits: vk::PhysicalDeviceLimits,
    /// Alignment of a uniform's offset.
    pub(super) uniform_alignment: u64,
    pub(super) timestamp_bits: u32,
    pub(super) family: u32,
    pub(super) spirv: naga::back::spv::Options<'static>,
    pub(super) profile: bool,
    pub(super) health: Arc<Health>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) cache: PipelineCache,
    layouts: Mutex<FxHashMap<Vec<SlotKind>, Arc<Layout>>>,
    times: Mutex<Vec<KernelTime>>,
    timeout: Option<Duration>,
    state: Mutex<State>,
    pub(super) pool: Pool<Arc<RawBuffer>>,
    pub(super) memory: Arc<Memory>,
    pub(super) raw: Arc<Raw>,
}

/// What is changed under the device's lock.
pub(super) struct State {
    /// The number of the next submission.
    pub(super) next: u64,
    /// The last submission that is known to have ended.
    pub(super) completed: u64,
    pub(super) ring: Ring,
    pub(super) sets: SetCache,
    /// The uniforms of the submission being made.
    pub(super) contents: Uniforms,
    pub(super) uniforms: HostRing,
    pub(super) uploads: HostRing,
    /// Staging buffers for reads, not in use.
    pub(super) staging: Vec<Arc<RawBuffer>>,
    pub(super) pending: Vec<Pending>,
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layout with these slots.
    pub(super) fn layout(&self, slots: &[SlotKind]) -> Result<Arc<Layout>> {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = layouts.get(slots) {
            return Ok(known.clone());
        }
        let layout = Layout::new(&self.raw, layouts.len() as u64, slots);
        let layout = Arc::new(layout.map_err(|error| self.health.refused(error, "making a layout"))?);
        layouts.insert(slots.to_vec(), layout.clone());
        Ok(layout)
    }

    /// When what begins now must be finished.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// Fails when a driver whose submissions block (software drivers' do) has used up the time. The device is lost then.
    pub(super) fn check_deadline(&self, deadline: Option<Instant>, what: impl Fn() -> String) -> Result<()> {
        if deadline.is_none_or(|deadline| deadline > Instant::now()) {
            return Ok(());
        }
        self.health.lose(super::errors::OVERDUE);
        Err(self.timeout_error(&what()))
    }

    fn timeout_error(&self, what: &str) -> Error {
        let limit = self.timeout.unwrap_or_default().as_millis();
        let milliseconds = u64::try_from(limit).unwrap_or(u64::MAX);
        Error::Timeout { what: what.to_owned(), device: self.info.name.clone(), milliseconds }
    }

    /// Waits until that submission has ended.
    pub(super) async fn wait(self: &Arc<Self>, serial: u64, what: impl Fn() -> String) -> Result<()> {
        let deadline = self.deadline();
        let start = Instant::now();
        loop {
            self.health.check()?;
            let completed = self.timeline.completed().map_err(|error| self.health.refused(error, &what()))?;
            if completed >= serial {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                break;
            }
            std::hint::spin_loop();
        }
        match self.waiter.watch(serial, deadline).await {
            Ok(()) => self.health.check(),
            Err(Failure::Timeout) => Err(self.timeout_error(&what())),
            Err(Failure::Lost | Failure::Silent) => {
                self.health.lose("it gave no answer");
                Err(self.health.lost_error())
            }
        }
    }

    async fn finish(self: Arc<Self>) -> Result<()> {
        self.health.check()?;
        let last = {
            let mut state = self.lock();
            self.flush(&mut state)?;
            state.next - 1
        };
        self.wait(last, || "the work in flight".to_owned()).await
    }

    pub(super) fn note_times(&self, measured: Vec<KernelTime>) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT_TIMES.saturating_sub(times.len());
        times.extend(measured.into_iter().take(room));
    }

    /// Writes the pipeline cache to its file where that is worth it.
    pub(super) fn save_cache(&self) {
        if !self.health.is_lost() {
            self.cache.save();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.health.is_stuck() {
            // Its work may never end: nothing that it may use is destroyed.
            self.raw.abandon();
            return;
        }
        // SAFETY: the last reference is going, so that nobody uses the queue.
        let idle = unsafe { self.raw.device.device_wait_idle() };
        if idle.is_ok() {
            self.cache.save();
        }
    }
}

/// A device of the Vulkan backend.
pub(super) struct VulkanDevice {
    pub(super) shared: Arc<Shared>,
}

impl VulkanDevice {
    /// Opens it. `fences`: as if it had no timeline semaphore.
    pub(super) fn open(
        instance: &Arc<Instance>,
        adapter: &Adapter,
        options: &OpenOptions,
        fences: bool,
    ) -> Result<Self> {
        let health = Arc::new(Health::new(adapter.info.name.clone()));
        let refused = |error| health.refused(error, "opening the device");
        let mut support = adapter.support;
        support.timeline &= !fences;
        let raw = Arc::new(logical_device(instance, adapter, &support).map_err(refused)?);
        let timeline = if support.timeline {
            Timeline::with_semaphore(&raw, adapter.available.api >= vk::API_VERSION_1_2).map_err(refused)?
        } else {
            Timeline::with_fences(&raw)
        };
        let timeline = Arc::new(timeline);
        let unified = adapter.info.capabilities.unified_memory;
        let memory = Arc::new(Memory::new(raw.clone(), adapter.memory, unified, &adapter.limits));
        let cache = PipelineCache::open(&raw, adapter.identity, options.cache_folder.as_deref()).map_err(refused)?;
        let state = State {
            next: 1,
            completed: 0,
            ring: Ring::default(),
            sets: SetCache::new(&raw),
            contents: Uniforms::default(),
            uniforms: HostRing::new(vk::BufferUsageFlags::UNIFORM_BUFFER),
            uploads: HostRing::new(vk::BufferUsageFlags::TRANSFER_SRC),
            staging: Vec::new(),
            pending: Vec::new(),
        };
        let shared = Shared {
            waiter: Waiter::new(timeline.clone(), health.clone()),
            info: adapter.info.clone(),
            support,
            limits: adapter.limits,
            uniform_alignment: adapter.limits.min_uniform_buffer_offset_alignment.max(16),
            timestamp_bits: adapter.timestamp_bits,
            family: adapter.family,
            spirv: super::program::spirv_options(&support, adapter.available.api),
            profile: options.profile,
            health: health.clone(),
            timeline,
            cache,
            layouts: Mutex::default(),
            times: Mutex::default(),
            timeout: options.timeout,
            state: Mutex::new(state),
            pool: Pool::new(options.memory_limit),
            memory,
            raw,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

fn logical_device(instance: &Arc<Instance>, adapter: &Adapter, support: &Support) -> Result<Raw, vk::Result> {
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(adapter.family).queue_priorities(&priorities)];
    let names = features::extensions(support, &adapter.available);
    let names: Vec<_> = names.into_iter().map(std::ffi::CStr::as_ptr).collect();
    let mut chain = Chain::wanted(support);
    let mut wanted = chain.linked(&adapter.available);
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .push_next(&mut wanted);
    // SAFETY: extensions and features are among those that the device has; what `info` points to lives until the call is over.
    let device = unsafe { instance.raw.create_device(adapter.physical, &info, None) }?;
    // SAFETY: the device was made with one queue of this family.
    let queue = unsafe { device.get_device_queue(adapter.family, 0) };
    Ok(Raw::new(device, queue, instance.clone()))
}

impl Device for VulkanDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let program = VulkanProgram::new(&self.shared, kernel);
        ready(program.map(|program| Arc::new(program) as Arc<dyn Program>))
    }

    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        super::checks::ids(program, label, workgroups)?;
        if workgroups.contains(&0) || super::checks::fits(&self.shared, workgroups) {
            return Ok(());
        }
        super::checks::folded(&self.shared, program, label, workgroups).map(|_| ())
    }

    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        super::checks::bindings(&self.shared, program, label, bindings)
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        let buffer = self.shared.allocate(bytes, contents, label);
        ready(buffer.map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a write")?;
            self.shared.write(buffer, offset, data).await
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a read")?;
            self.shared.read(buffer, offset, into).await
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<()>> {
        ready(self.shared.submit(&batch))
    }

    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        let recording = VulkanRecording::new(&self.shared, batch);
        ready(recording.map(|recording| Arc::new(recording) as Arc<dyn Recording>))
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<()>> {
        let own = (&**recording as &dyn Any).downcast_ref::<VulkanRecording>();
        ready(match own.filter(|recording| recording.belongs_to(&self.shared)) {
            Some(own) => own.replay(),
            None => Err(crate::backend::recording::foreign(&self.shared.info)),
        })
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.clone().finish())
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        self.shared.trim();
    }

    fn must_prove(&self) -> bool {
        true
    }

    fn take_times(&self) -> Vec<KernelTime> {
        // What has ended is taken up first; an error there is known as the device's loss.
        let _ = self.shared.reclaim(&mut self.shared.lock());
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
