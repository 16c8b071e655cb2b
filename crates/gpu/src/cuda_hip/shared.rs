//! The state that the parts of an opened device share: below memory, programs and the queue, which are made of it. Buffers, programs and recordings hold
//! `Shared`, so the device outlives its handle. What the stream may touch is kept by number (`State::keep`) and dropped after the lock is released, since
//! dropping may take it again. Fields are dropped in their order: the driver comes last.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::arguments::Arguments;
use super::collective::Rings;
use super::compiler::Ways;
use super::driver::{Block, Driver, Event, Graph, Module, Pinned};
use super::platform::{Fault, FaultKind};
use super::product::Products;
use super::staging::Staging;
use super::takeover::{ClusterFacts, Takeovers};
use super::vendor::Architecture;
use crate::backend::detached::AtWork;
use crate::backend::{Buffer, DeviceInfo, DriverMemory, Pool};
use crate::error::{Error, Result};
use crate::health::Health;
use crate::in_flight::{InFlight, Marks};
use crate::native_cache::NativeCache;
use crate::wait::Waiter;

/// The state that the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) architecture: Architecture,
    /// Most blocks in each dimension of a launch.
    pub(super) grid: [u32; 3],
    pub(super) profile: bool,
    /// True if takeovers are off.
    pub(super) without_native: bool,
    /// Bytes of shared memory that a block of a cluster may ask for; 0 without clusters.
    pub(super) cluster_bytes: u32,
    pub(super) takeovers: Takeovers,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Event>,
    // Dropped in this order: what refers to the driver's objects before the driver.
    pub(super) state: Mutex<State>,
    /// Other libraries' memory of buffers that were dropped, until the lock is held next.
    pub(super) returned: Mutex<Vec<DriverMemory>>,
    pub(super) pool: Pool<Block>,
    pub(super) health: Arc<Health>,
    pub(super) ways: OnceLock<std::result::Result<Ways, String>>,
    /// `None` where the vendor's library is not there.
    pub(super) products: OnceLock<Option<Arc<Products>>>,
    pub(super) rings: Rings,
    pub(super) driver: Arc<Driver>,
}

/// The state under the device's lock. Whoever puts work into the stream holds it.
#[derive(Default)]
pub(super) struct State {
    /// The numbers of what is in the stream, and what that may still touch.
    pub(super) flight: InFlight<InUse>,
    /// The events behind the numbers.
    marks: Marks<Event>,
    /// Something is in the stream behind the last event.
    unmarked: bool,
    pub(super) staging: Staging,
    pub(super) arguments: Arguments,
    /// Kernels that may still run, with the events around them.
    pub(super) timing: Vec<(Arc<str>, Event, Event)>,
}

/// Objects that the stream may touch, by their treatment after it has passed.
pub(super) enum InUse {
    /// A block of writes: used again.
    Upload(Pinned),
    /// A block that a read fills: used again when its reader is done with it, or gone.
    Landing(Arc<Pinned>),
    /// Dropped, outside of the lock.
    Dropped(#[expect(dead_code, reason = "held, and dropped")] Held),
}

impl From<Pinned> for InUse {
    fn from(pinned: Pinned) -> Self {
        Self::Upload(pinned)
    }
}

/// Objects that only have to live until the stream has passed them.
pub(super) enum Held {
    Code(#[expect(dead_code, reason = "held, and dropped")] Module),
    Graph(#[expect(dead_code, reason = "held, and dropped")] Graph),
    Memory(#[expect(dead_code, reason = "held, and dropped")] Block),
    /// A buffer of another device.
    Foreign(#[expect(dead_code, reason = "held, and dropped")] Arc<dyn Buffer>),
    /// Another library's.
    Imported(#[expect(dead_code, reason = "held, and dropped")] DriverMemory),
    Pinned(#[expect(dead_code, reason = "held, and dropped")] Pinned),
}

impl State {
    /// The number of what was put into the stream last.
    pub(super) fn latest(&self) -> u64 {
        if self.unmarked { self.flight.next() } else { self.flight.last() }
    }

    /// Notes that something is put into the stream, and returns its number.
    pub(super) fn enqueue(&mut self) -> u64 {
        self.unmarked = true;
        self.flight.next()
    }

    /// Keeps something until the stream has passed all that is in it.
    pub(super) fn keep(&mut self, what: Held) {
        let number = self.latest();
        self.flight.keep(number, InUse::Dropped(what));
    }
}

/// The device's lock. What the stream turns out to have left is dropped after it is released.
pub(super) struct Locked<'a> {
    state: MutexGuard<'a, State>,
    gone: Vec<InUse>,
}

impl std::ops::Deref for Locked<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Locked<'_> {
    /// Takes up what the stream has left. The device is current.
    pub(super) fn take_up(&mut self, driver: &Driver) -> std::result::Result<(), Fault> {
        let Some(number) = self.state.marks.look(|event| driver.passed(event))? else { return Ok(()) };
        for what in self.state.flight.pass(number) {
            let pinned = match what {
                InUse::Upload(pinned) => pinned,
                InUse::Landing(pinned) => match Arc::try_unwrap(pinned) {
                    Ok(pinned) => pinned,
                    // Its reader has it.
                    Err(_) => continue,
                },
                InUse::Dropped(_) => {
                    self.gone.push(what);
                    continue;
                }
            };
            self.give_block(pinned);
        }
        Ok(())
    }

    /// Takes a block back that nothing in the stream uses.
    pub(super) fn give_block(&mut self, pinned: Pinned) {
        let over = self.state.staging.give(pinned);
        self.gone.extend(over.map(|pinned| InUse::Dropped(Held::Pinned(pinned))));
    }

    /// Puts an event behind what is in the stream, and returns the number of all that. The device is current.
    pub(super) fn mark(&mut self, driver: &Arc<Driver>) -> std::result::Result<u64, Fault> {
        if self.state.unmarked {
            let event = driver.event(false)?;
            driver.record(&event)?;
            let number = self.state.flight.submitted();
            self.state.marks.push(number, event);
            self.state.unmarked = false;
        }
        Ok(self.state.flight.last())
    }
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> Locked<'_> {
        self.locked(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The device's lock, where nobody has it.
    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        self.state.try_lock().ok().map(|state| self.locked(state))
    }

    fn locked<'a>(&self, mut state: MutexGuard<'a, State>) -> Locked<'a> {
        let mut gone = Vec::new();
        for memory in self.returned.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let latest = state.latest();
            if state.flight.has_passed(latest) {
                gone.push(InUse::Dropped(Held::Imported(memory)));
            } else {
                state.keep(Held::Imported(memory));
            }
        }
        Locked { state, gone }
    }

    /// Returns the device's limits for clusters.
    pub(super) fn cluster_facts(&self) -> ClusterFacts {
        ClusterFacts { shared_bytes: self.cluster_bytes, grid: self.grid[0] }
    }

    /// Waits until the stream has passed that number.
    pub(super) async fn pass(&self, number: u64, deadline: Option<Instant>, what: &str) -> Result<()> {
        let event = {
            let mut state = self.lock();
            let fault = |fault| self.error(fault, what);
            let _current = self.driver.enter().map_err(fault)?;
            if number >= state.flight.next() {
                state.mark(&self.driver).map_err(fault)?;
            }
            state.marks.find(number)
        };
        if let Some(event) = event {
            let ended = self.waiter.wait(number, event, deadline).await;
            ended.result(&self.health, what, |fault| self.error(fault, what))?;
        }
        let mut state = self.lock();
        let taken_up = self.driver.enter().and_then(|_current| state.take_up(&self.driver));
        taken_up.map_err(|fault| self.error(fault, what))
    }

    /// The ways to code for this device; the compiler is loaded when first asked for.
    pub(super) fn ways(&self) -> std::result::Result<&Ways, &str> {
        let (vendor, version) = (self.driver.platform.vendor, self.driver.platform.version);
        self.ways.get_or_init(|| Ways::new(vendor, version, &self.architecture)).as_ref().map_err(String::as_str)
    }

    /// The error for a fault of the driver's. One that ends the context ends the device.
    pub(super) fn error(&self, fault: Fault, action: &str) -> Error {
        let device = self.info.name.clone();
        match fault.kind {
            FaultKind::Call => Error::Device { device, action: action.to_owned(), message: fault.message },
            FaultKind::OutOfMemory => Error::OutOfMemory { device, what: action.to_owned(), bytes: 0 },
            FaultKind::Lost => {
                self.health.lose(&fault.message);
                Error::DeviceLost { device, reason: format!("{} ({action})", fault.message) }
            }
        }
    }
}

impl AtWork for Shared {
    fn has_ended(&self) -> bool {
        // The lock may be held by a thread that hangs in the driver.
        let Some(mut state) = self.try_lock() else { return false };
        let passed = self.driver.enter().and_then(|_current| {
            state.mark(&self.driver)?;
            state.take_up(&self.driver)
        });
        // A context that is gone does not work any more.
        passed.is_err() || state.flight.has_passed(state.flight.last())
    }

    fn held_bytes(&self) -> u64 {
        let figures = self.pool.figures();
        figures.in_use + figures.pooled
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What the stream may still touch stays until it has passed: a device that missed its time limit is held until then. Where the
        // context is gone, nobody can tell.
        if self.driver.settle().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
            std::mem::forget(self.pool.drain());
            std::mem::forget(self.products.take());
            std::mem::forget(std::mem::take(&mut self.rings));
        }
    }
}
