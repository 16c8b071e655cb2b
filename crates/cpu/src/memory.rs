//! Host memory for tensors: aligned blocks from a pool. A buffer may keep what operations made of its contents until they change. The device allocates here
//! (`Memory::allocate`), and products keep packed operands here (`Keeper`). Whatever writes to a buffer calls `CpuBuffer::changes` first; a buffer whose
//! address others know (`lend`) keeps nothing. Kept forms take at most a part of the memory limit, and are the first to go.

#![cfg_attr(
    all(target_arch = "wasm32", not(feature = "wgsl")),
    allow(dead_code, reason = "only the processor's own operations keep what they make")
)]

use std::any::TypeId;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::backend::{Buffer, Contents, HostMemory, MemoryFigures, Pool, Request, Taken};
use crate::error::{Error, Result};
use cantus_base::memory::{Pages, Zeroed};

/// A cache line, and the widest vector there is.
const ALIGNMENT: usize = 64;

/// A block of memory from the system.
pub(super) struct Block {
    start: NonNull<u8>,
    source: Source,
}

/// The origin of a block.
enum Source {
    Own(#[expect(dead_code, reason = "freed with the block")] Zeroed),
    /// Somebody else's: never pooled.
    Adopted(#[expect(dead_code, reason = "kept for its owner")] HostMemory),
}

// SAFETY: a block is plain memory that it owns alone; who may touch it when is the queue's business (see `queue`).
unsafe impl Send for Block {}
// SAFETY: `&Block` gives out only a raw pointer.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory, or `None` when the system has none.
    fn new(bytes: usize) -> Option<Self> {
        let memory = Zeroed::new(bytes, ALIGNMENT, Pages::Huge)?;
        Some(Self { start: memory.start(), source: Source::Own(memory) })
    }
}

/// The memory of buffers, and the results that are kept with them.
struct Store {
    pool: Pool<Block>,
    keepers: Mutex<Vec<Weak<Keeper>>>,
}

/// The divisor of the memory limit that gives the bytes that may be kept.
const KEPT_PART: u64 = 8;

impl Store {
    fn keepers(&self) -> MutexGuard<'_, Vec<Weak<Keeper>>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this number of bytes may be kept in addition to those that are.
    fn has_room(&self, bytes: u64) -> bool {
        // The list's lock is not held while a keeper's is taken.
        let keepers: Vec<_> = {
            let mut known = self.keepers();
            known.sort_by_key(Weak::as_ptr);
            known.dedup_by(|one, other| one.ptr_eq(other));
            known.retain(|keeper| keeper.strong_count() > 0);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        let kept: u64 = keepers.iter().map(|keeper| keeper.bytes()).sum();
        self.pool.figures().limit.is_some_and(|limit| kept + bytes <= limit / KEPT_PART)
    }

    /// Frees all kept results. Returns false if there were none.
    fn give_up(&self) -> bool {
        let keepers: Vec<_> = self.keepers().iter().filter_map(Weak::upgrade).collect();
        keepers.into_iter().filter(|keeper| keeper.forget()).count() > 0
    }
}

/// A buffer of the CPU device.
pub(super) struct CpuBuffer {
    /// Taken on drop, to go back to the pool.
    block: Option<Block>,
    bytes: u64,
    class: u64,
    store: Arc<Store>,
    keeper: OnceLock<Arc<Keeper>>,
}

/// Identifies a result that is kept with a buffer: the code that made it, its type and sizes, the start and steps of the part that it was made from.
pub(super) type Form = (&'static str, TypeId, [usize; 3], [usize; 3]);

/// Keeps results that operations made from a buffer's contents, from the second request for the same one until something may have written there.
pub(super) struct Keeper {
    store: Weak<Store>,
    state: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    made: Vec<(Form, Option<Arc<CpuBuffer>>)>,
    /// Others may write to the buffer unseen.
    lent: bool,
}

/// The number of forms that a buffer keeps.
const FORMS: usize = 4;

impl Keeper {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> u64 {
        self.lock().made.iter().filter_map(|(_, made)| made.as_ref()).map(|made| made.class).sum()
    }

    /// Frees all kept results. Returns false if there were none.
    fn forget(&self) -> bool {
        !std::mem::take(&mut self.lock().made).is_empty()
    }

    /// Returns the bytes that `make` wrote for this form, now or before. `None` on the first request, if there is no room, and if
    /// others may write to the buffer.
    pub(super) fn keep(
        self: &Arc<Self>,
        form: Form,
        bytes: usize,
        make: impl FnOnce(*mut u8),
    ) -> Option<Arc<CpuBuffer>> {
        let mut make = Some(make);
        self.keep_by(form, bytes, &mut |to| {
            if let Some(make) = make.take() {
                make(to);
            }
        })
    }

    /// [`Keeper::keep`] of any form.
    fn keep_by(self: &Arc<Self>, form: Form, bytes: usize, make: &mut dyn FnMut(*mut u8)) -> Option<Arc<CpuBuffer>> {
        let mut kept = self.lock();
        if kept.lent {
            return None;
        }
        let Some(place) = kept.made.iter().position(|(known, _)| *known == form) else {
            if kept.made.len() == FORMS {
                kept.made.remove(0);
            }
            kept.made.push((form, None));
            return None;
        };
        if let Some(made) = &kept.made[place].1 {
            return Some(made.clone());
        }
        drop(kept);
        let (store, bytes) = (self.store.upgrade()?, u64::try_from(bytes).ok()?);
        let made = store.has_room(bytes).then(|| store.buffer("", bytes, false, "cached operands").ok()).flatten()?;
        make(made.start());
        let made = Arc::new(made);
        let mut kept = self.lock();
        if let Some((_, to)) = kept.made.iter_mut().find(|(known, _)| *known == form) {
            *to = Some(made.clone());
            drop(kept);
            store.keepers().push(Arc::downgrade(self));
        }
        Some(made)
    }
}

impl CpuBuffer {
    /// The first byte. Valid for `bytes()` bytes while the buffer lives.
    pub(super) fn start(&self) -> *mut u8 {
        self.block.as_ref().map_or(std::ptr::null_mut(), |block| block.start.as_ptr())
    }

    /// Returns the keeper of forms that are made from the contents.
    pub(super) fn keeper(&self) -> &Arc<Keeper> {
        self.keeper.get_or_init(|| Arc::new(Keeper { store: Arc::downgrade(&self.store), state: Mutex::default() }))
    }

    /// Something is about to write to it.
    pub(super) fn changes(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.forget();
        }
    }

    /// Others may write to it from now on.
    pub(super) fn lend(&self) {
        let mut kept = self.keeper().lock();
        kept.lent = true;
        kept.made.clear();
    }
}

impl Buffer for CpuBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        // Adopted memory is not ours to pool: dropping it gives it back.
        if let Some(block) = self.block.take().filter(|block| !matches!(block.source, Source::Adopted(_))) {
            self.store.pool.give(self.class, block);
        }
    }
}

impl Store {
    /// A buffer, whose contents are zeros where it is `true`.
    fn buffer(self: &Arc<Self>, device: &str, bytes: u64, zeroed: bool, label: &str) -> Result<CpuBuffer> {
        let Request { class, taken, given_up } = self.pool.request(device, bytes, u64::MAX, label)?;
        drop(given_up);
        let block = match taken {
            Taken::Reused(block) => {
                if zeroed {
                    // SAFETY: the block has at least `bytes` bytes, and nothing else refers to a pooled block.
                    unsafe { block.start.as_ptr().write_bytes(0, usize::try_from(bytes).unwrap_or(0)) };
                }
                block
            }
            Taken::Fresh => {
                let block = usize::try_from(class).ok().and_then(Block::new);
                block.ok_or_else(|| {
                    self.pool.fail(class);
                    Error::OutOfMemory { device: device.to_owned(), what: label.to_owned(), bytes }
                })?
            }
        };
        Ok(CpuBuffer { block: Some(block), bytes, class, store: self.clone(), keeper: OnceLock::new() })
    }
}

/// The device's memory.
pub(super) struct Memory {
    store: Arc<Store>,
    device: String,
}

impl Memory {
    pub(super) fn new(device: String, limit: Option<u64>) -> Self {
        Self { store: Arc::new(Store { pool: Pool::new(limit), keepers: Mutex::default() }), device }
    }

    pub(super) fn allocate(&self, bytes: u64, contents: Contents, label: &str) -> Result<CpuBuffer> {
        let made = || self.store.buffer(&self.device, bytes, contents == Contents::Zeroed, label);
        made().or_else(|error| if self.store.give_up() { made() } else { Err(error) })
    }

    /// A buffer in memory of somebody else's.
    pub(super) fn adopt(&self, memory: HostMemory) -> CpuBuffer {
        let bytes = memory.bytes();
        let block = Block { start: memory.start(), source: Source::Adopted(memory) };
        CpuBuffer { block: Some(block), bytes, class: 0, store: self.store.clone(), keeper: OnceLock::new() }
    }

    pub(super) fn figures(&self) -> MemoryFigures {
        self.store.pool.figures()
    }

    pub(super) fn trim(&self) {
        self.store.give_up();
        drop(self.store.pool.drain());
    }
}
