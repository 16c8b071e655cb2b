//! Host memory for tensors: aligned blocks from a pool.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::{Buffer, Contents, HostMemory, MemoryFigures, Pool, Request, Taken};
use crate::error::{Error, Result};

/// A cache line, and the widest vector there is.
const ALIGNMENT: usize = 64;
/// A huge page of x86-64, and of Arm with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// A block of memory from the system.
pub(super) struct Block {
    start: NonNull<u8>,
    source: Source,
}

/// Where a block is from.
enum Source {
    Heap(Layout),
    /// A mapping, whose start and length this is.
    #[cfg(target_os = "linux")]
    Mapped(NonNull<u8>, usize),
    /// Somebody else's: never pooled.
    Adopted(#[expect(dead_code, reason = "kept for its owner")] HostMemory),
}

// SAFETY: a block is plain memory that it owns alone; who may touch it when is the queue's business (see `queue`).
unsafe impl Send for Block {}
// SAFETY: as above; `&Block` gives out only a raw pointer.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory, or `None` when the system has none. Large blocks are mapped, not touched: the first kernel to write a page
    /// brings it in, on its own thread.
    fn new(bytes: usize) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if bytes >= 2 * HUGE_PAGE {
            return Self::mapped(bytes);
        }
        let layout = Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, source: Source::Heap(layout) })
    }

    /// Memory in huge pages, where the system gives them to those who ask: a pass over 64 MiB then needs 32 of the processor's address
    /// translations instead of 16,384 (a sum takes half of the time on a virtual machine).
    #[cfg(target_os = "linux")]
    fn mapped(bytes: usize) -> Option<Self> {
        let length = bytes.checked_next_multiple_of(HUGE_PAGE)?.checked_add(HUGE_PAGE)?;
        // SAFETY: a new private mapping at an address of the system's choice.
        let mapping = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return None;
        }
        let mapping = NonNull::new(mapping.cast::<u8>())?;
        let shift = mapping.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: the shift is less than a huge page, by which the mapping is longer than the block.
        let start = unsafe { mapping.add(shift) };
        // SAFETY: the range lies within the mapping. A system that refuses gives small pages, which do as well.
        let _ = unsafe { libc::madvise(start.as_ptr().cast(), length - HUGE_PAGE, libc::MADV_HUGEPAGE) };
        Some(Self { start, source: Source::Mapped(mapping, length) })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.source {
            // SAFETY: allocated in `new` with this layout, freed once.
            Source::Heap(layout) => unsafe { dealloc(self.start.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            // SAFETY: mapped in `mapped` with this length, unmapped once.
            Source::Mapped(mapping, length) => unsafe {
                libc::munmap(mapping.as_ptr().cast(), length);
            },
            Source::Adopted(_) => {}
        }
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
        // What is somebody else's is dropped.
        if let Some(block) = self.block.take().filter(|block| !matches!(block.source, Source::Adopted(_))) {
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
        let Request { class, taken, given_up } = self.pool.request(&self.device, bytes, u64::MAX, label)?;
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

    /// A buffer in memory of somebody else's.
    pub(super) fn adopt(&self, memory: HostMemory) -> CpuBuffer {
        let bytes = memory.bytes();
        let block = Block { start: memory.start(), source: Source::Adopted(memory) };
        CpuBuffer { block: Some(block), bytes, class: 0, pool: self.pool.clone() }
    }

    pub(super) fn figures(&self) -> MemoryFigures {
        self.pool.figures()
    }

    pub(super) fn trim(&self) {
        drop(self.pool.drain());
    }
}
