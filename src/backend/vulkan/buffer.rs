//! Tensors' buffers: out of the pool, cleared where they must be.

use std::sync::Arc;

use ash::vk;

use super::memory::{Place, RawBuffer};
use super::shared::{Pending, Shared, State};
use crate::backend::checks::{self, Facts};
use crate::backend::pool::Taken;
use crate::backend::{Buffer, Contents, DeviceKind, Pool};
use crate::error::{Bytes, Error, Result};

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

/// Rounded up to a multiple of 4.
pub(super) fn padded(bytes: u64) -> u64 {
    bytes.div_ceil(4).saturating_mul(4)
}

impl Shared {
    pub(super) fn own_buffer<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a VulkanBuffer> {
        let own = |buffer: &VulkanBuffer| std::ptr::eq(Arc::as_ptr(&buffer.shared), self);
        checks::buffer(buffer, own, &self.info.name, what)
    }

    pub(super) fn allocate(self: &Arc<Self>, bytes: u64, contents: Contents, label: &str) -> Result<VulkanBuffer> {
        self.health.check()?;
        if bytes == 0 {
            return Err(Error::InvalidSize { what: label.to_owned(), reason: "a buffer cannot be empty".to_owned() });
        }
        let largest = self.info.capabilities.limits.buffer_bytes;
        if bytes > largest {
            let what = format!("{label} (one buffer there holds at most {})", Bytes(largest));
            return Err(Error::OutOfMemory { device: self.info.name.clone(), what, bytes });
        }
        let class = Pool::<Arc<RawBuffer>>::class(bytes).min(largest);
        let (taken, given_up) = self.pool.take(class, label)?;
        self.let_go(given_up);
        let raw = match taken {
            Taken::Reused(raw) => raw,
            Taken::Fresh => self.make(class, label).inspect_err(|_| self.pool.fail(class))?,
        };
        let buffer = VulkanBuffer { shared: self.clone(), raw, label: label.into(), bytes, class };
        match contents {
            Contents::Zeroed => self.clear(&buffer.raw, 0, class)?,
            // The last bytes of a size that is no multiple of 4 are visible to kernels and written by nobody.
            Contents::Overwritten if !bytes.is_multiple_of(4) => self.clear(&buffer.raw, bytes & !3, 4)?,
            Contents::Overwritten => {}
        }
        Ok(buffer)
    }

    /// Makes a buffer; when there is no memory left, once more after the pool is emptied and what is in flight has ended.
    fn make(&self, class: u64, label: &str) -> Result<Arc<RawBuffer>> {
        let translate = |error| self.health.vulkan_error(error, &format!("allocating {label}"), label, class);
        match self.memory.buffer(class, USAGES, Place::Tensor) {
            Ok(raw) => Ok(raw),
            Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY) => {
                self.trim();
                self.memory.buffer(class, USAGES, Place::Tensor).map_err(translate)
            }
            Err(error) => Err(translate(error)),
        }
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
