//! An opened device: how it is opened, and the [`Device`] trait over what its parts do. The engine sees only this trait. It is the one backend beside CUDA
//! that keeps encoded recordings (`record`, `replay`). Each method hands over to `buffer`, `transfer`, `program` or `queue`, where the device's lock is
//! taken.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;

use super::adapter::Adapter;
use super::cache::PipelineCache;
use super::checks;
use super::emulation::Emulation;
use super::errors::Errors as _;
use super::features::{self, Chain, Support};
use super::instance::Instance;
use super::memory::{Memory, Sharing};
use super::objects::Raw;
use super::program::VulkanProgram;
use super::recording::VulkanRecording;
use super::ring::HostRing;
use super::sets::SetCache;
use super::shared::{Shared, State};
use super::timeline::Timeline;
use super::uniforms::Uniforms;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Recording, Refusal, ready,
};
use crate::checks::Owner as _;
use crate::error::Result;
use crate::health::Health;
use crate::in_flight::InFlight;
use crate::kernel::Kernel;
use crate::wait::{self, Waiter};
use cantus_base::listed::Listed;

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
        (fences, emulation): (bool, &Emulation),
    ) -> Result<Self> {
        let health = Arc::new(Health::new(adapter.info.name.clone(), options.timeout));
        let refused = |error| health.refused(error, "opening the device");
        let mut support = adapter.support;
        support.timeline &= !fences;
        let raw = Arc::new(logical_device(instance, adapter, &support).map_err(refused)?);
        let timeline = if support.timeline {
            let core = adapter.available.api >= vk::API_VERSION_1_2;
            Timeline::with_semaphore(&raw, core, emulation).map_err(refused)?
        } else {
            Timeline::with_fences(&raw, emulation)
        };
        let timeline = Arc::new(timeline);
        let sharing = match adapter.info.capabilities.unified_memory {
            _ if adapter.discrete => Sharing::Emulated,
            true => Sharing::Unified,
            false => Sharing::Apart,
        };
        let memory = Arc::new(Memory::new(raw.clone(), &adapter.memory, sharing, &adapter.limits, emulation));
        let cache = PipelineCache::open(&raw, adapter.identity, options.cache_folder.as_deref()).map_err(refused)?;
        let state = State {
            flight: InFlight::default(),
            slots: Vec::new(),
            sets: SetCache::new(&raw),
            contents: Uniforms::default(),
            uniforms: HostRing::new(vk::BufferUsageFlags::UNIFORM_BUFFER),
            uploads: HostRing::new(vk::BufferUsageFlags::TRANSFER_SRC),
            staging: Vec::new(),
            pending: Vec::new(),
        };
        let shared = Shared {
            waiter: Waiter::new("vulkan", health.clone(), wait::look(adapter.info.kind)),
            info: adapter.info.clone(),
            support,
            matrices: adapter.matrices.clone(),
            limits: adapter.limits,
            uniform_alignment: adapter.limits.min_uniform_buffer_offset_alignment.max(16),
            timestamp_bits: adapter.timestamp_bits,
            family: adapter.family,
            spirv: features::spirv_options(&support, adapter.available.api),
            profile: options.profile,
            health: health.clone(),
            timeline,
            cache,
            layouts: Mutex::default(),
            times: Mutex::default(),
            state: Mutex::new(state),
            pool: Pool::new(options.memory_limit),
            memory,
            raw,
        };
        let shared = Arc::new(shared);
        let at_work = Arc::downgrade(&shared);
        health.watch_over(at_work);
        Ok(Self { shared })
    }
}

fn logical_device(instance: &Arc<Instance>, adapter: &Adapter, support: &Support) -> Result<Raw, vk::Result> {
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(adapter.family).queue_priorities(&priorities)];
    let names = features::extensions(support, &adapter.available);
    let names: Vec<_> = names.into_iter().map(std::ffi::CStr::as_ptr).listed();
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
        self.shared.check_ids(program, label, workgroups)?;
        if workgroups.contains(&0) || checks::fits(&self.shared, workgroups) {
            return Ok(());
        }
        checks::folded(&self.shared, program, label, workgroups).map(|_| ())
    }

    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        self.shared.check_bound(program, label, bindings)
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(async move {
            let buffer = self.shared.allocate(bytes, contents, label).await?;
            Ok(Arc::new(buffer) as Arc<dyn Buffer>)
        })
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

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.submit(batch))
    }

    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        let recording = VulkanRecording::new(&self.shared, batch);
        ready(recording.map(|recording| Arc::new(recording) as Arc<dyn Recording>))
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
        let own = (&**recording as &dyn Any).downcast_ref::<VulkanRecording>();
        ready(match own.filter(|recording| recording.belongs_to(&self.shared)) {
            Some(own) => own.replay().map_err(Refusal::from),
            None => Err(crate::backend::recording::foreign(&self.shared.info).into()),
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

    fn longest(&self) -> Option<u64> {
        crate::checks::longest(self.info().kind)
    }

    fn take_times(&self) -> Vec<KernelTime> {
        // What has ended is taken up first; an error there is known as the device's loss.
        let _ = self.shared.reclaim(&mut self.shared.lock());
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
