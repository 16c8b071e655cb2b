//! Page-locked memory that transfers pass through: the device copies from and to it while the caller goes on.

use std::sync::Arc;

use super::driver::{Driver, Pinned};
use super::platform::Fault;
use crate::in_flight::InFlight;

/// Bytes of one block. Larger transfers go through several.
pub(super) const BLOCK_BYTES: usize = 4 << 20;
/// Blocks of writes on their way: one more fills meanwhile.
const TRAVELLING: usize = 2;
/// Blocks kept for the next transfer, at most.
const KEPT: usize = 4;
/// Places in a block start at multiples of this.
const ALIGNMENT: usize = 64;

/// A block of writes, as far as it is filled.
struct Filling {
    pinned: Pinned,
    used: usize,
}

/// The blocks of a device.
#[derive(Default)]
pub(super) struct Staging {
    filling: Option<Filling>,
    /// The number of what travels last from each full block of writes.
    travelling: Vec<u64>,
    idle: Vec<Pinned>,
}

/// The way in which a write that finds no room proceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It waits for a block when many are on their way.
    Bounded,
    /// It is part of a submission, which does not wait.
    Unbounded,
}

/// The place of a write's bytes.
pub(super) enum Filled {
    /// Here, until the stream has passed what is put in next.
    Here(*const u8),
    /// Nowhere yet: there is room when that number has passed.
    After(u64),
}

impl Staging {
    /// Room for `data` (at most one block), filled with it. The caller queues the copy from there before it asks for more room. `number` is
    /// that of what was put in last; what a block holds is kept as a `T` until it has passed.
    pub(super) fn fill<T: From<Pinned>>(
        &mut self,
        driver: &Arc<Driver>,
        (flight, number): (&mut InFlight<T>, u64),
        data: &[u8],
        room: Room,
    ) -> Result<Filled, Fault> {
        if let Some(full) = self.filling.take_if(|block| block.pinned.bytes() - block.used < data.len()) {
            self.travelling.push(number);
            flight.keep(number, full.pinned.into());
        }
        if self.filling.is_none() {
            self.travelling.retain(|number| !flight.has_passed(*number));
            if let (Room::Bounded, Some(oldest)) = (room, self.travelling.first())
                && self.travelling.len() >= TRAVELLING
            {
                return Ok(Filled::After(*oldest));
            }
            self.filling = Some(Filling { pinned: self.block(driver)?, used: 0 });
        }
        let Some(block) = &mut self.filling else { return Ok(Filled::After(0)) };
        let size = data.len().min(block.pinned.bytes() - block.used);
        // SAFETY: `used + size` bytes lie within the block, which `data` is no part of; nothing in the stream reads behind `used`.
        let place = unsafe {
            let place = block.pinned.start().add(block.used);
            std::ptr::copy_nonoverlapping(data.as_ptr(), place, size);
            place
        };
        block.used = (block.used + size).next_multiple_of(ALIGNMENT).min(block.pinned.bytes());
        Ok(Filled::Here(place))
    }

    /// A block that is not in use.
    pub(super) fn block(&mut self, driver: &Arc<Driver>) -> Result<Pinned, Fault> {
        match self.idle.pop() {
            Some(pinned) => Ok(pinned),
            None => driver.pinned(BLOCK_BYTES),
        }
    }

    /// Takes a block back that the stream has left; what is too much is returned.
    pub(super) fn give(&mut self, pinned: Pinned) -> Option<Pinned> {
        if self.idle.len() < KEPT {
            self.idle.push(pinned);
            return None;
        }
        Some(pinned)
    }

    /// The blocks that are not in use, for the driver.
    pub(super) fn take_idle(&mut self) -> Vec<Pinned> {
        std::mem::take(&mut self.idle)
    }
}
