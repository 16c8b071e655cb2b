//! Tensors' memory on the device: blocks from the pool, or another library's. `device` allocates through it. A buffer that is dropped goes to the pool at
//! once, since whoever gets it next comes after its uses in the stream; memory of other libraries instead waits until the stream has passed. Blocks given
//! back to the driver are freed in the stream's order.

use std::sync::{Arc, PoisonError};

use super::driver::Block;
use super::library::Address;
use super::platform::{Fault, FaultKind};
use super::shared::{Held, Shared, State};
use crate::backend::{Buffer, Contents, DriverMemory, Pool, Taken, padded};
use crate::checks::Facts;
use crate::error::{Error, Result};

/// Alignment that lets kernels read by vectors.
const IMPORTED_ALIGNMENT: u64 = 16;

/// A buffer in use. Dropping it gives the memory back to the pool.
pub(super) struct StreamBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) label: Arc<str>,
    memory: Memory,
    bytes: u64,
}

/// The owner of the memory.
enum Memory {
    /// Memory of the pool, with its class.
    Pooled(Block, u64),
    Imported(DriverMemory),
    /// On drop.
    Gone,
}

impl Buffer for StreamBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl StreamBuffer {
    pub(super) fn address(&self) -> Address {
        match &self.memory {
            Memory::Pooled(block, _) => block.address,
            Memory::Imported(memory) => memory.address(),
            Memory::Gone => 0,
        }
    }

    /// Size that kernels may see: rounded up to a multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        padded(self.bytes)
    }

    /// Returns the facts for the checks.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { id: self.address(), bytes: self.padded(), label: &self.label }
    }
}

impl Drop for StreamBuffer {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.memory, Memory::Gone) {
            // Work in flight may still use it. Whoever gets it next comes after that work in the stream.
            Memory::Pooled(block, class) => self.shared.pool.give(class, block),
            Memory::Imported(memory) => self.shared.return_imported(memory),
            Memory::Gone => {}
        }
    }
}

impl Shared {
    /// Another library's memory as a buffer; a copy where kernels can't take it as it is.
    pub(super) async fn import(self: &Arc<Self>, memory: DriverMemory, label: &str) -> Result<StreamBuffer> {
        self.health.check()?;
        let bytes = memory.bytes();
        if memory.address().is_multiple_of(IMPORTED_ALIGNMENT) && padded(bytes) == bytes {
            return Ok(self.imported(memory, label));
        }
        let buffer = self.allocate(bytes, Contents::Overwritten, label).await?;
        let size = usize::try_from(bytes).unwrap_or(0);
        let mut state = self.lock();
        let copied = self.driver.enter().and_then(|_current| {
            state.enqueue();
            // SAFETY: whoever made it promised that the memory is this device's; it is held until the stream has passed.
            unsafe { self.driver.copy_within(self.driver.stream(), buffer.address(), memory.address(), size)? };
            state.keep(Held::Imported(memory));
            state.mark(&self.driver)
        });
        drop(state);
        copied.map_err(|fault| self.error(fault, &format!("importing {label}")))?;
        Ok(buffer)
    }

    /// Another library's memory, which kernels can take as it is.
    pub(super) fn imported(self: &Arc<Self>, memory: DriverMemory, label: &str) -> StreamBuffer {
        let bytes = memory.bytes();
        StreamBuffer { shared: self.clone(), label: label.into(), memory: Memory::Imported(memory), bytes }
    }

    /// Gives another library's memory back once the stream has passed its uses: with this call where it has, or with the next.
    fn return_imported(&self, memory: DriverMemory) {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        // Whoever holds the lock may be this thread; the next one takes it up.
        let Some(mut state) = self.try_lock() else { return };
        // What cannot be asked for is known as lost.
        let _ = self.driver.enter().and_then(|_current| {
            state.mark(&self.driver)?;
            state.take_up(&self.driver)
        });
    }
    pub(super) async fn allocate(
        self: &Arc<Self>,
        bytes: u64,
        contents: Contents,
        label: &str,
    ) -> Result<StreamBuffer> {
        self.health.check()?;
        // The driver says itself what is too large.
        let mut request = self.pool.request(&self.info.name, bytes, u64::MAX, label)?;
        self.let_go(std::mem::take(&mut request.given_up));
        let class = request.class;
        let lacks_memory = |fault: &Fault| fault.kind == FaultKind::OutOfMemory;
        let block = request.buffer(&self.pool, |_| self.driver.allocate(class), lacks_memory, self.make_room()).await;
        let block = block.map_err(|fault| match fault.kind {
            FaultKind::OutOfMemory => {
                Error::OutOfMemory { device: self.info.name.clone(), what: label.to_owned(), bytes }
            }
            _ => self.error(fault, &format!("allocating {label}")),
        })?;
        let memory = Memory::Pooled(block, class);
        let buffer = StreamBuffer { shared: self.clone(), label: label.into(), memory, bytes };
        let stale = contents.stale(bytes);
        if !stale.is_empty() {
            let mut state = self.lock();
            let size = usize::try_from(stale.end - stale.start).unwrap_or(0);
            let cleared = self.driver.enter().and_then(|_current| {
                state.enqueue();
                // SAFETY: the class is a multiple of 256 and holds the padded size.
                unsafe { self.driver.clear(self.driver.stream(), buffer.address() + stale.start, size) }
            });
            cleared.map_err(|fault| self.error(fault, &format!("clearing {label}")))?;
        }
        Ok(buffer)
    }

    /// Lets queued work finish, and frees pooled memory.
    async fn make_room(self: &Arc<Self>) {
        // What fails here fails again where there is somebody to tell.
        let _ = self.finish().await;
        self.trim();
    }

    /// Gives pooled memory and staging back to the driver: what the stream still uses follows when it has passed, with the next call.
    pub(super) fn trim(&self) {
        let pooled = self.pool.drain();
        let mut state = self.lock();
        let idle = state.staging.take_idle();
        if let Err(fault) = self.driver.enter().and_then(|_current| state.take_up(&self.driver)) {
            self.error(fault, "giving memory back");
        }
        drop(state);
        drop(idle);
        self.let_go(pooled);
    }

    /// Gives blocks back to the driver that are in no pool any more: in the stream's order, or when it has passed their uses.
    fn let_go(&self, blocks: Vec<Block>) {
        if self.driver.has_pools() || blocks.is_empty() {
            return;
        }
        let mut state = self.lock();
        for block in blocks {
            state.keep(Held::Memory(block));
        }
        // What cannot be asked for is known as lost.
        let _ = self.driver.enter().and_then(|_current| {
            state.mark(&self.driver)?;
            state.take_up(&self.driver)
        });
    }
}

/// Memory for one launch. Dropping it gives it back in the stream's order.
pub(super) struct Scratch {
    shared: Arc<Shared>,
    block: Option<Block>,
    class: u64,
}

impl Scratch {
    pub(super) fn address(&self) -> Address {
        self.block.as_ref().map_or(0, |block| block.address)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.shared.pool.give(self.class, block);
        }
    }
}

impl Shared {
    /// Memory for one launch. The device's lock is held: the pool is not emptied for it.
    pub(super) fn take_scratch(self: &Arc<Self>, state: &mut State, bytes: u64, label: &str) -> Result<Scratch> {
        let class = Pool::<Block>::class(bytes);
        let (taken, given_up) = self.pool.take(class, label)?;
        given_up.into_iter().for_each(|block| state.keep(Held::Memory(block)));
        let block = match taken {
            Taken::Reused(block) => block,
            Taken::Fresh => self.driver.allocate(class).map_err(|fault| {
                self.pool.fail(class);
                self.error(fault, &format!("running {label}"))
            })?,
        };
        Ok(Scratch { shared: self.clone(), block: Some(block), class })
    }
}
