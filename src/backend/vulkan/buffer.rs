//! Tensors' buffers: out of the pool, cleared where they must be.

use std::sync::Arc;

use ash::vk;

use super::memory::{Place, RawBuffer};
use super::shared::{Pending, Shared, State};
use crate::backend::checks::Facts;
use crate::backend::{Buffer, Contents, DeviceKind, padded};
use crate::error::Result;

const USAGES: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);
/// Up to so many bytes the host clears mapped memory itself; more is quicker on the device, unless the device is the host.
const CLEARED_BY_HOST: u64 = 64 << 10;

/// A buffer in use. Dropping it gives the memory back to the pool.
pub(super) struct VulkanBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) raw: Arc<RawBuffer>,
    pub(super) label: Arc<str>,
    /// As asked for.
    bytes: u64,
    /// As allocated.
    class: u64,
}

impl Buffer for VulkanBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for VulkanBuffer {
    fn drop(&mut self) {
        // Work in flight may still use it. Whoever gets it next comes after that work.
        self.shared.pool.give(self.class, self.raw.clone());
    }
}

impl VulkanBuffer {
    /// Size that kernels may see: rounded up to WebGPU's multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        padded(self.bytes)
    }

    /// What the checks want to know.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { id: self.raw.id, bytes: self.padded(), label: &self.label }
    }
}

impl Shared {
    pub(super) fn allocate(self: &Arc<Self>, bytes: u64, contents: Contents, label: &str) -> Result<VulkanBuffer> {
        self.health.check()?;
        let largest = self.info.capabilities.limits.buffer_bytes;
        let mut request = self.pool.request(&self.info.name, bytes, largest, label)?;
        self.let_go(std::mem::take(&mut request.given_up));
        let class = request.class;
        let make = || self.memory.buffer(class, USAGES, Place::Tensor);
        let lacks_memory = |error: &vk::Result| {
            matches!(*error, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY)
        };
        let raw = request.buffer(&self.pool, make, lacks_memory, || self.trim());
        let raw = raw.map_err(|error| self.health.vulkan_error(error, &format!("allocating {label}"), label, class))?;
        let buffer = VulkanBuffer { shared: self.clone(), raw, label: label.into(), bytes, class };
        let stale = contents.stale(bytes);
        if !stale.is_empty() {
            self.clear(&buffer.raw, stale.start, stale.end - stale.start)?;
        }
        Ok(buffer)
    }

    /// Clears a range of a buffer before anything else can see it: now, or ahead of the next submission.
    fn clear(&self, raw: &Arc<RawBuffer>, offset: u64, bytes: u64) -> Result<()> {
        let by_host = self.info.kind == DeviceKind::Software || bytes <= CLEARED_BY_HOST;
        {
            let mut state = self.lock();
            self.reclaim(&mut state)?;
            if !(by_host && raw.is_mapped() && raw.last_use() <= state.completed) {
                state.pend(Pending::Clear { buffer: raw.clone(), offset, bytes });
                return Ok(());
            }
        }
        if raw.clear(offset, bytes) {
            return Ok(());
        }
        self.lock().pend(Pending::Clear { buffer: raw.clone(), offset, bytes });
        Ok(())
    }

    /// Lets go of buffers that the pool gave up, once the device has finished with them.
    pub(super) fn let_go(&self, buffers: Vec<Arc<RawBuffer>>) {
        if buffers.is_empty() {
            return;
        }
        let mut state = self.lock();
        for buffer in buffers {
            state.ring.leave(buffer.last_use(), buffer);
        }
        // What cannot be asked for is known as lost.
        let _ = self.reclaim(&mut state);
    }

    /// Gives pooled memory back: what is in use by the device follows when that ends, with the next call.
    pub(super) fn trim(&self) {
        self.let_go(self.pool.drain());
        self.save_cache();
        {
            let mut state = self.lock();
            let State { ring, uploads, uniforms, staging, next, .. } = &mut *state;
            let kept = [uploads.release(), uniforms.release()].into_iter().flatten().chain(staging.drain(..));
            for buffer in kept {
                ring.leave(*next - 1, buffer);
            }
            let newest = state.next - 1;
            // Bounded: it is to free memory, not to wait for a kernel that runs long.
            let _ = self.timeline.wait(newest, std::time::Duration::from_millis(200));
            let _ = self.reclaim(&mut state);
        }
        self.memory.trim();
    }
}
