//! Page-locked memory that transfers pass through: the device copies from and to it while the caller goes on.

use std::sync::Arc;

use super::driver::{Driver, Event, Fault, Pinned};

/// Bytes of one block. Larger transfers go through several.
pub(super) const BLOCK_BYTES: usize = 4 << 20;
/// Blocks for writes: one fills while the others travel.
const BLOCKS: usize = 3;
/// Places in a block start at multiples of this.
const ALIGNMENT: usize = 64;

/// A block, and the event behind its last use.
struct Slot {
    pinned: Pinned,
    used: usize,
    busy: Option<Event>,
}

/// A ring of blocks for writes.
#[derive(Default)]
pub(super) struct Staging {
    slots: Vec<Slot>,
    current: usize,
}

impl Staging {
    /// Room for `data` (at most one block), filled with it. The caller queues the copy from there before it asks for more room.
    pub(super) fn fill(&mut self, driver: &Arc<Driver>, data: &[u8]) -> Result<*const u8, Fault> {
        let fits = self.slots.get(self.current).is_some_and(|slot| slot.pinned.bytes() - slot.used >= data.len());
        if !fits {
            self.turn(driver)?;
        }
        let Some(slot) = self.slots.get_mut(self.current) else { return Ok(std::ptr::null()) };
        let size = data.len().min(slot.pinned.bytes() - slot.used);
        // SAFETY: the place lies within the block; nothing in the stream reads behind `used`.
        let place = unsafe { slot.pinned.start().add(slot.used) };
        // SAFETY: as above; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, size) };
        slot.used = (slot.used + size).next_multiple_of(ALIGNMENT).min(slot.pinned.bytes());
        Ok(place)
    }

    /// Goes on to the next block, when the stream has left it.
    fn turn(&mut self, driver: &Arc<Driver>) -> Result<(), Fault> {
        if let Some(slot) = self.slots.get_mut(self.current) {
            let event = driver.event(false)?;
            driver.record(&event)?;
            slot.busy = Some(event);
        }
        if self.slots.len() < BLOCKS {
            self.slots.push(Slot { pinned: driver.pinned(BLOCK_BYTES)?, used: 0, busy: None });
            self.current = self.slots.len() - 1;
            return Ok(());
        }
        self.current = (self.current + 1) % BLOCKS;
        if let Some(slot) = self.slots.get_mut(self.current) {
            if let Some(event) = slot.busy.take() {
                driver.wait(&event)?;
            }
            slot.used = 0;
        }
        Ok(())
    }

    /// Gives the memory back when the stream has left it.
    pub(super) fn clear(&mut self, driver: &Arc<Driver>) -> Result<(), Fault> {
        driver.settle()?;
        self.slots.clear();
        self.current = 0;
        Ok(())
    }
}
