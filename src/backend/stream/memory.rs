//! Tensors' memory on the device: blocks from the pool.

use std::sync::Arc;

use super::driver::{Block, FaultKind};
use super::library::Address;
use super::shared::Shared;
use crate::backend::checks::{self, Facts};
use crate::backend::{Buffer, Contents, Pool, Taken};
use crate::error::{Error, Result};

/// A buffer in use. Dropping it gives the memory back to the pool.
pub(super) struct StreamBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) label: Arc<str>,
    /// Taken on drop.
    block: Option<Block>,
    bytes: u64,
    class: u64,
}

impl Buffer for StreamBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl StreamBuffer {
    pub(super) fn address(&self) -> Address {
        self.block.as_ref().map_or(0, |block| block.address)
    }

    /// Size that kernels may see: rounded up to a multiple of 4.
    pub(super) fn padded(&self) -> u64 {
        self.bytes.div_ceil(4).saturating_mul(4)
    }

    /// What the checks want to know.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { id: self.address(), bytes: self.padded(), label: &self.label }
    }
}

impl Drop for StreamBuffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // Work in flight may still use it. Whoever gets it next comes after that work in the stream.
            self.shared.pool.give(self.class, block);
        }
    }
}

impl Shared {
    pub(super) fn own_buffer<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a StreamBuffer> {
        let own = |buffer: &StreamBuffer| std::ptr::eq(Arc::as_ptr(&buffer.shared), self);
        checks::buffer(buffer, own, &self.info.name, what)
    }

    pub(super) fn allocate(self: &Arc<Self>, bytes: u64, contents: Contents, label: &str) -> Result<StreamBuffer> {
        self.health.check()?;
        if bytes == 0 {
            return Err(Error::InvalidSize { what: label.to_owned(), reason: "a buffer cannot be empty".to_owned() });
        }
        let class = Pool::<Block>::class(bytes);
        let (taken, given_up) = self.pool.take(class, label)?;
        drop(given_up);
        let block = match taken {
            Taken::Reused(block) => block,
            Taken::Fresh => match self.fresh(class, label, bytes) {
                Ok(block) => block,
                Err(error) => {
                    self.pool.fail(class);
                    return Err(error);
                }
            },
        };
        let buffer = StreamBuffer { shared: self.clone(), label: label.into(), block: Some(block), bytes, class };
        // The last bytes of a size that is no multiple of 4 are visible to kernels and written by nobody.
        let (from, to) = match contents {
            Contents::Zeroed => (0, buffer.padded()),
            Contents::Overwritten => (bytes / 4 * 4, buffer.padded()),
        };
        if from < to {
            let _order = self.lock();
            let size = usize::try_from(to - from).unwrap_or(0);
            // SAFETY: the class is a multiple of 256 and holds the padded size.
            let cleared =
                self.driver.make_current().and_then(|()| unsafe { self.driver.clear(buffer.address() + from, size) });
            cleared.map_err(|fault| self.error(fault, &format!("clearing {label}")))?;
        }
        Ok(buffer)
    }

    /// Memory from the driver; when there is none left, once more after the pool is emptied.
    fn fresh(&self, class: u64, label: &str, bytes: u64) -> Result<Block> {
        let mut outcome = self.driver.allocate(class);
        if outcome.as_ref().is_err_and(|fault| fault.kind == FaultKind::OutOfMemory) && self.pool.figures().pooled > 0 {
            self.trim();
            outcome = self.driver.allocate(class);
        }
        outcome.map_err(|fault| match fault.kind {
            FaultKind::OutOfMemory => {
                Error::OutOfMemory { device: self.info.name.clone(), what: label.to_owned(), bytes }
            }
            _ => self.error(fault, &format!("allocating {label}")),
        })
    }

    /// Gives pooled memory and staging back to the driver.
    pub(super) fn trim(&self) {
        let pooled = self.pool.drain();
        let mut state = self.lock();
        if let Err(fault) = self.driver.make_current().and_then(|()| state.staging.clear(&self.driver)) {
            self.error(fault, "giving memory back");
        }
        drop(pooled);
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
    pub(super) fn take_scratch(self: &Arc<Self>, bytes: u64, label: &str) -> Result<Scratch> {
        let class = Pool::<Block>::class(bytes);
        let (taken, given_up) = self.pool.take(class, label)?;
        drop(given_up);
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
