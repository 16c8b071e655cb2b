//! Tensors' buffers: out of the pool, cleared where they must be.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use web_time::Instant;

use super::errors::Errors as _;
use super::memory::{Choice, Place, RawBuffer, lacks_memory};
use super::shared::{Pending, Shared, State};
use crate::backend::{Buffer, Contents, DeviceKind, padded};
use crate::checks::Facts;
use crate::error::Result;

const USAGES: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);
/// Up to this many bytes the host clears mapped memory itself; more is quicker on the device, unless the device is the host.
const CLEARED_BY_HOST: u64 = 64 << 10;
/// The time that freeing memory waits for work in flight.
const TRIMMING: Duration = Duration::from_millis(200);

/// A buffer in use. Dropping it gives the memory back to the pool.
pub(super) struct VulkanBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) raw: Arc<RawBuffer>,
    pub(super) label: Arc<str>,
    /// Bytes requested.
    bytes: u64,
    /// Bytes allocated.
    class: u64,
}

impl Buffer for VulkanBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for VulkanBuffer {
    fn drop(&mut self) {
        // Work in flight may still use it, and keeps it. Whoever gets it next comes after that work.
        self.shared.pool.give(self.class, self.raw.clone());
    }
}

impl VulkanBuffer {
    /// Size that kernels may see: rounded up to WebGPU's multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        padded(self.bytes)
    }

    /// Returns the facts for the checks.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { id: self.raw.id, bytes: self.padded(), label: &self.label }
    }
}

impl Shared {
    pub(super) async fn allocate(
        self: &Arc<Self>,
        bytes: u64,
        contents: Contents,
        label: &str,
    ) -> Result<VulkanBuffer> {
        self.health.check()?;
        let largest = self.info.capabilities.limits.buffer_bytes;
        let request = self.pool.request(&self.info.name, bytes, largest, label)?;
        let class = request.class;
        let make = |last_resort| {
            let choice = if last_resort { Choice::Any } else { Choice::Best };
            self.memory.buffer(class, USAGES, Place::Tensor, choice)
        };
        let raw = request.buffer(&self.pool, make, |error| lacks_memory(*error), self.make_room()).await;
        let raw = raw.map_err(|error| self.health.vulkan_error(error, &format!("allocating {label}"), label, class))?;
        let buffer = VulkanBuffer { shared: self.clone(), raw, label: label.into(), bytes, class };
        let stale = contents.stale(bytes);
        if !stale.is_empty() {
            self.clear(&buffer.raw, stale.start, stale.end - stale.start)?;
        }
        Ok(buffer)
    }

    /// Lets queued work finish, and frees pooled memory.
    async fn make_room(self: &Arc<Self>) {
        // What fails here fails again where there is somebody to tell.
        let _ = self.clone().finish().await;
        self.trim();
    }

    /// Clears a range of a buffer before anything else can see it: now, or ahead of the next submission.
    fn clear(&self, raw: &Arc<RawBuffer>, offset: u64, bytes: u64) -> Result<()> {
        let by_host = self.info.kind == DeviceKind::Software || bytes <= CLEARED_BY_HOST;
        {
            let mut state = self.lock();
            self.reclaim(&mut state)?;
            if !(by_host && raw.is_mapped() && state.is_done_with(raw)) {
                state.pend(Pending::Clear { buffer: raw.clone(), offset, bytes });
                return Ok(());
            }
        }
        // Not under the lock: nobody else knows the buffer yet.
        if raw.clear(offset, bytes) {
            return Ok(());
        }
        self.lock().pend(Pending::Clear { buffer: raw.clone(), offset, bytes });
        Ok(())
    }

    /// Gives pooled memory back: what is in use by the device follows when that ends, with the next call.
    pub(super) fn trim(&self) {
        drop(self.pool.drain());
        self.save_cache();
        let last = {
            let mut state = self.lock();
            let State { uploads, uniforms, staging, flight, .. } = &mut *state;
            uploads.release();
            uniforms.release();
            staging.clear();
            flight.last()
        };
        // Bounded: it is to free memory, not to wait for a kernel that runs long. Drivers may ignore the limit of a wait of their own.
        let start = Instant::now();
        while start.elapsed() < TRIMMING && self.timeline.completed().is_ok_and(|completed| completed < last) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What cannot be asked for is known as lost.
        let _ = self.reclaim(&mut self.lock());
        self.memory.trim();
    }
}
