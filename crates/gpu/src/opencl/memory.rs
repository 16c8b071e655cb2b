//! Tensors' memory: OpenCL buffers from the pool.

use std::sync::Arc;

use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE};

use super::shared::{Block, Shared, State};
use crate::backend::{Buffer, Contents, Pool, Taken, padded};
use crate::checks::Facts;
use crate::error::{Error, Result};

/// A buffer in use. Dropping it gives the memory back to the pool.
pub(super) struct OpenClBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) label: Arc<str>,
    /// Taken on drop.
    block: Option<Block>,
    bytes: u64,
    class: u64,
}

impl Buffer for OpenClBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl OpenClBuffer {
    pub(super) fn block(&self) -> Result<&Block> {
        self.block.as_ref().ok_or_else(|| Error::state(self.label.to_string(), "its buffer was released"))
    }

    pub(super) fn id(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.id)
    }

    /// Size that kernels may see: rounded up to a multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        padded(self.bytes)
    }

    /// Returns the facts for the checks.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { id: self.id(), bytes: self.padded(), label: &self.label }
    }
}

impl Drop for OpenClBuffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // Work in flight may still use it. Whoever gets it next comes after that work in the queue.
            self.shared.pool.give(self.class, block);
        }
    }
}

impl Shared {
    pub(super) async fn allocate(
        self: &Arc<Self>,
        bytes: u64,
        contents: Contents,
        label: &str,
    ) -> Result<OpenClBuffer> {
        self.health.check()?;
        let largest = self.info.capabilities.limits.buffer_bytes & !3;
        let request = self.pool.request(&self.info.name, bytes, largest, label)?;
        let class = request.class;
        // OpenCL has several codes for a lack of memory.
        let lacks_memory = |code: &i32| matches!(code, -4 | -5 | -6 | -61);
        let block = request.buffer(&self.pool, |_| self.fresh(class), lacks_memory, self.make_room()).await;
        let block = block.map_err(|fault| self.memory_error(fault, label, bytes))?;
        let buffer = OpenClBuffer { shared: self.clone(), label: label.into(), block: Some(block), bytes, class };
        let stale = contents.stale(bytes);
        if !stale.is_empty() {
            let mut state = self.lock();
            self.clear(&mut state, &buffer.block()?.buffer, stale.start, stale.end - stale.start)
                .map_err(|fault| self.error(fault, &format!("clearing {label}")))?;
        }
        Ok(buffer)
    }

    /// Lets queued work finish, and frees pooled memory.
    async fn make_room(self: &Arc<Self>) {
        // What fails here fails again where there is somebody to tell.
        let _ = self.finish().await;
        drop(self.pool.drain());
    }

    fn fresh(&self, class: u64) -> std::result::Result<Block, i32> {
        let size = usize::try_from(class).unwrap_or(usize::MAX);
        // SAFETY: no host pointer is given.
        let buffer = unsafe { ClBuffer::create(&self.context, CL_MEM_READ_WRITE, size, std::ptr::null_mut()) };
        buffer.map(|buffer| Block { buffer, id: self.new_id() }).map_err(|error| error.0)
    }

    fn memory_error(&self, code: i32, label: &str, bytes: u64) -> Error {
        // CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_BUFFER_SIZE
        if matches!(code, -4 | -5 | -6 | -61) {
            return Error::OutOfMemory { device: self.info.name.clone(), what: label.to_owned(), bytes };
        }
        self.error(code, &format!("allocating {label}"))
    }

    /// Memory for one launch, with its contents.
    pub(super) fn scratch(self: &Arc<Self>, state: &mut State, contents: &[u8], label: &str) -> Result<Scratch> {
        let class = Pool::<Block>::class(contents.len() as u64);
        let (taken, given_up) = self.pool.take(class, label)?;
        drop(given_up);
        let block = match taken {
            Taken::Reused(block) => block,
            Taken::Fresh => self.fresh(class).map_err(|fault| {
                self.pool.fail(class);
                self.memory_error(fault, label, class)
            })?,
        };
        let scratch = Scratch { shared: self.clone(), block: Some(block), class };
        if let Some(block) = &scratch.block {
            self.upload(state, &block.buffer, 0, contents)
                .map_err(|fault| self.error(fault, &format!("running {label}")))?;
        }
        Ok(scratch)
    }
}

/// Memory for one launch. Dropping it gives it back in the queue's order.
pub(super) struct Scratch {
    shared: Arc<Shared>,
    pub(super) block: Option<Block>,
    class: u64,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.shared.pool.give(self.class, block);
        }
    }
}
