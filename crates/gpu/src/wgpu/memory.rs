//! Memory on the device: buffers out of the pool, cleared when they were used before. `device` allocates through it. A reused buffer that must be zero is
//! cleared in the next submission, ahead of whatever sees it first, reads and writes included. Sizes are rounded up to 4 bytes, as WebGPU demands, and the
//! padding is zero.

use std::sync::Arc;

use super::errors::{Caught, Errors as _, Scopes};
use super::image::Image;
use super::shared::{RawBuffer, Shared, State};
use crate::backend::pool::{Request, Taken};
use crate::backend::{Buffer, Contents, Pool, padded};
use crate::checks::Facts;
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

/// The usages that a tensor needs of its buffer.
pub(super) const NEEDED: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// The usages of a tensor's buffer. An app that shares the device may draw from it, and by it: every device with compute shaders has indices and indirect
/// calls in buffers of other usages.
pub(super) const USAGES: wgpu::BufferUsages = NEEDED
    .union(wgpu::BufferUsages::UNIFORM)
    .union(wgpu::BufferUsages::VERTEX)
    .union(wgpu::BufferUsages::INDEX)
    .union(wgpu::BufferUsages::INDIRECT);

/// A buffer in use. Dropping it gives the memory back to the pool, if it is the pool's.
pub(super) struct WgpuBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) memory: Memory,
    pub(super) label: Arc<str>,
    /// Bytes requested.
    pub(super) bytes: u64,
}

/// The memory of a buffer.
pub(super) enum Memory {
    /// A buffer, and the bytes that the pool allocated; `None` for a buffer of the app's.
    Buffer(RawBuffer, Option<u64>),
    /// A texture of the app's.
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "prepared kernels have no textures"))]
    Image(Image),
}

impl Buffer for WgpuBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for WgpuBuffer {
    fn drop(&mut self) {
        match &self.memory {
            // Work in flight may still use it. Whoever gets it next comes after that work in the queue.
            Memory::Buffer(raw, Some(class)) => self.shared.pool.give(*class, raw.clone()),
            // Bind groups over it would keep it.
            Memory::Buffer(raw, None) => self.shared.forget(vec![raw.clone()]),
            Memory::Image(_) => {}
        }
    }
}

impl WgpuBuffer {
    /// Size that kernels may see: rounded up to WebGPU's multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        padded(self.bytes)
    }

    /// Returns the facts for the checks.
    pub(super) fn facts(&self) -> Facts<'_> {
        let id = match &self.memory {
            Memory::Buffer(raw, _) => raw.id,
            Memory::Image(image) => image.id,
        };
        Facts { id, bytes: self.padded(), label: &self.label }
    }

    /// Returns wgpu's buffer; `None` for a texture.
    pub(super) fn raw(&self) -> Option<&RawBuffer> {
        match &self.memory {
            Memory::Buffer(raw, _) => Some(raw),
            Memory::Image(_) => None,
        }
    }

    /// Returns wgpu's buffer.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a texture, which is copied whole.
    pub(super) fn plain(&self, what: &str) -> Result<&RawBuffer> {
        self.raw().ok_or_else(|| {
            Error::state(
                what,
                format!(
                    "{} is a texture of the app's, not a buffer (copy its texels: Texture::copied_texels)",
                    self.label
                ),
            )
        })
    }
}

/// A buffer being made.
struct Making {
    raw: RawBuffer,
    caught: Caught,
}

/// Memory that is counted and not made yet: given back when that fails, or when the call is dropped meanwhile.
struct Reserved<'a> {
    pool: &'a Pool<RawBuffer>,
    class: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.pool.fail(self.class);
    }
}

impl Shared {
    pub(super) async fn allocate(
        self: Arc<Self>,
        bytes: u64,
        contents: Contents,
        label: Arc<str>,
    ) -> Result<Arc<dyn Buffer>> {
        self.health.check()?;
        let largest = self.limits.max_buffer_size & !3;
        let Request { class, taken, given_up } = self.pool.request(&self.info.name, bytes, largest, &label)?;
        self.forget(given_up);
        let raw = match taken {
            Taken::Reused(raw) => {
                // The last bytes of a size that is no multiple of 4 are visible to kernels and written by nobody.
                if !contents.stale(bytes).is_empty() {
                    self.lock().clears.insert(raw.id, raw.buffer.clone());
                }
                raw
            }
            Taken::Fresh => {
                let reserved = Reserved { pool: &self.pool, class };
                let raw = self.make_or_trim(class, &label).await?;
                std::mem::forget(reserved);
                raw
            }
        };
        Ok(Arc::new(WgpuBuffer { shared: self, memory: Memory::Buffer(raw, Some(class)), label, bytes }))
    }

    /// Makes a buffer; when the device has no memory left, once more after the pool is emptied.
    async fn make_or_trim(self: &Arc<Self>, class: u64, label: &str) -> Result<RawBuffer> {
        let mut error = match self.make(class, label).await {
            Ok(raw) => return Ok(raw),
            Err(error) => error,
        };
        if matches!(error, Error::OutOfMemory { .. }) && self.pool.figures().pooled > 0 {
            self.trim();
            match self.make(class, label).await {
                Ok(raw) => return Ok(raw),
                Err(again) => error = again,
            }
        }
        Err(error)
    }

    async fn make(&self, class: u64, label: &str) -> Result<RawBuffer> {
        let Making { raw, caught } = self.contained("allocating", || {
            let _turn = self.turn();
            let scopes = Scopes::open(&self.device);
            let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: class,
                usage: USAGES,
                mapped_at_creation: false,
            });
            Making { raw: RawBuffer { buffer, id: self.new_id() }, caught: scopes.close() }
        })?;
        match caught.first().await {
            None if self.health.is_lost() => Err(self.health.lost_error()),
            None => Ok(raw),
            Some(error) => Err(self.health.wgpu_error(&error, &format!("allocating {label}"), label, class)),
        }
    }

    /// Releases buffers that the pool gave up.
    pub(super) fn forget(&self, buffers: Vec<RawBuffer>) {
        if buffers.is_empty() {
            return;
        }
        let ids: Vec<u64> = buffers.iter().map(|raw| raw.id).listed();
        // The last of their handles goes here.
        let _turn = self.turn();
        let mut state = self.lock();
        state.groups.forget(&ids);
        state.clears.retain(|id, _| !ids.contains(id));
        drop(state);
        drop(buffers);
    }

    pub(super) fn trim(&self) {
        let buffers = self.pool.drain();
        self.forget(buffers);
        let _turn = self.turn();
        self.lock().staging.clear();
    }
}

impl State {
    /// Returns whether there are reused buffers that wait to be cleared.
    pub(super) fn has_clears(&self) -> bool {
        !self.clears.is_empty()
    }

    /// Encodes the clears of reused buffers: before anything else can see them.
    pub(super) fn encode_clears(&mut self, encoder: &mut wgpu::CommandEncoder) {
        for (_, buffer) in self.clears.drain() {
            encoder.clear_buffer(&buffer, 0, None);
        }
    }
}
