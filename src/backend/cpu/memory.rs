//! Host memory for tensors: aligned blocks from a pool.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::{Buffer, Contents, MemoryFigures, Pool, pool::Taken};
use crate::error::{Error, Result};

/// A cache line, and the widest vector there is.
const ALIGNMENT: usize = 64;

/// A block of memory from the system.
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is plain memory that it owns alone; who may touch it when is the queue's business (see `queue`).
unsafe impl Send for Block {}
// SAFETY: as above; `&Block` gives out only a raw pointer.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory, or `None` when the system has none. Large blocks are mapped, not touched: the first kernel to write a page
    /// brings it in, on its own thread.
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A buffer of the CPU device.
pub(super) struct CpuBuffer {
    /// Taken on drop, to go back to the pool.
    block: Option<Block>,
    bytes: u64,
    class: u64,
    pool: Arc<Pool<Block>>,
}

impl CpuBuffer {
    /// The first byte. Valid for `bytes()` bytes while the buffer lives.
    pub(super) fn start(&self) -> *mut u8 {
        self.block.as_ref().map_or(std::ptr::null_mut(), |block| block.start.as_ptr())
    }
}

impl Buffer for CpuBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give(self.class, block);
        }
    }
}

/// The device's memory.
pub(super) struct Memory {
    pool: Arc<Pool<Block>>,
    device: String,
}

impl Memory {
    pub(super) fn new(device: String, limit: Option<u64>) -> Self {
        Self { pool: Arc::new(Pool::new(limit)), device }
    }

    pub(super) fn allocate(&self, bytes: u64, contents: Contents, label: &str) -> Result<CpuBuffer> {
        let class = Pool::<Block>::class(bytes);
        let (taken, given_up) = self.pool.take(class, label)?;
        drop(given_up);
        let block = match taken {
            Taken::Reused(block) => {
                if contents == Contents::Zeroed {
                    // SAFETY: the block has at least `bytes` bytes, and nothing else refers to a pooled block.
                    unsafe { block.start.as_ptr().write_bytes(0, usize::try_from(bytes).unwrap_or(0)) };
                }
                block
            }
            Taken::Fresh => {
                let block = usize::try_from(class).ok().and_then(Block::new);
                block.ok_or_else(|| {
                    self.pool.fail(class);
                    Error::OutOfMemory { device: self.device.clone(), what: label.to_owned(), bytes }
                })?
            }
        };
        Ok(CpuBuffer { block: Some(block), bytes, class, pool: self.pool.clone() })
    }

    pub(super) fn figures(&self) -> MemoryFigures {
        self.pool.figures()
    }

    pub(super) fn trim(&self) {
        drop(self.pool.drain());
    }
}
