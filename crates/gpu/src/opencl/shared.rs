//! The state that the parts of an opened device share: below memory, programs and the queue, which are made of it. Buffers and programs hold `Shared`.
//! OpenCL keeps device memory alive by itself; what has to be kept by number here is the host memory that commands still read or write. A finished command
//! and a failed one are both past, but the failure is the device's end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::memory::Buffer as ClBuffer;

use super::event::{Landing, Marker};
use crate::backend::detached::AtWork;
use crate::backend::{DeviceInfo, Pool};
use crate::error::{Error, Result};
use crate::health::Health;
use crate::in_flight::{InFlight, Marks};
use crate::native_cache::NativeCache;
use crate::translate::OpenClFeatures;
use crate::wait::{Awaited as _, Waiter};

/// OpenCL's buffer and its identity.
pub(super) struct Block {
    pub(super) buffer: ClBuffer<u8>,
    pub(super) id: u64,
}

/// The state that the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) features: OpenClFeatures,
    pub(super) argument_bytes: usize,
    /// See `UNOPTIMISED`.
    pub(super) is_intels_processor: bool,
    pub(super) profile: bool,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Marker>,
    pub(super) pool: Pool<Block>,
    pub(super) state: Mutex<State>,
    pub(super) health: Arc<Health>,
    pub(super) ids: AtomicU64,
    /// An in-order queue.
    pub(super) queue: CommandQueue,
    pub(super) context: Context,
}

/// The state under the device's lock. Whoever puts work into the queue holds it.
#[derive(Default)]
pub(super) struct State {
    /// The numbers of the commands, and the host memory that they may still touch.
    flight: InFlight<InUse>,
    /// The events behind the numbers.
    marks: Marks<Marker>,
    /// Bytes that the queue still reads.
    pub(super) waiting: usize,
    /// Kernels that may still run.
    pub(super) timing: Vec<(Arc<str>, Event)>,
}

/// Host memory that commands may touch.
pub(super) enum InUse {
    /// The queue reads it.
    Upload(Vec<u8>),
    /// The queue fills it; its reader holds it too.
    Landing(#[expect(dead_code, reason = "held, and dropped")] Arc<Landing>),
}

impl State {
    /// Keeps host memory until the command that is put in next is done.
    pub(super) fn keep(&mut self, memory: InUse) {
        if let InUse::Upload(bytes) = &memory {
            self.waiting += bytes.len();
        }
        let number = self.flight.next();
        self.flight.keep(number, memory);
    }

    /// Notes the event of a command that was put in, and returns its number.
    pub(super) fn mark(&mut self, event: Event) -> u64 {
        let number = self.flight.submitted();
        self.marks.push(number, Marker(event));
        number
    }

    /// The event behind that number; `None` when it has passed.
    pub(super) fn find(&self, number: u64) -> Option<Arc<Marker>> {
        self.marks.find(number)
    }

    /// The number of the oldest memory that the queue still reads.
    pub(super) fn oldest(&self) -> u64 {
        self.flight.oldest().unwrap_or(self.flight.last())
    }

    /// Releases what finished commands touched. One that failed is done too: its failure is the device's end.
    pub(super) fn take_up(&mut self) -> std::result::Result<(), i32> {
        let Some(number) = self.marks.look(Marker::passed)? else { return Ok(()) };
        for memory in self.flight.pass(number) {
            if let InUse::Upload(bytes) = memory {
                self.waiting -= bytes.len();
            }
        }
        Ok(())
    }
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other buffer of this device has.
    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The error for a code of OpenCL's.
    pub(super) fn error(&self, code: i32, action: &str) -> Error {
        let (device, action) = (self.info.name.clone(), action.to_owned());
        let message = opencl3::error_codes::ClError(code).to_string();
        match code {
            // CL_DEVICE_NOT_AVAILABLE, and the status of a command that failed.
            -2 | -14 => {
                self.health.lose(&message);
                Error::DeviceLost { device, reason: format!("{message} ({action})") }
            }
            // CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY
            -6..=-4 => Error::OutOfMemory { device, what: action, bytes: 0 },
            _ => Error::Device { device, action, message },
        }
    }

    /// Waits until the command of that number is done.
    pub(super) async fn pass(&self, number: u64, deadline: Option<Instant>, what: &str) -> Result<()> {
        let found = self.lock().find(number);
        if let Some(event) = found {
            let ended = self.waiter.wait(number, event, deadline).await;
            ended.result(&self.health, what, |code| self.lost_to(code, what))?;
        }
        self.lock().take_up().map_err(|code| self.error(code, what))
    }

    /// The error of a command that failed after it was accepted.
    fn lost_to(&self, code: i32, what: &str) -> Error {
        let reason = opencl3::error_codes::ClError(code).to_string();
        self.health.lose(&reason);
        Error::DeviceLost { device: self.info.name.clone(), reason: format!("{reason} ({what})") }
    }
}

impl AtWork for Shared {
    fn has_ended(&self) -> bool {
        // The lock may be held by a thread that hangs in the driver.
        let Ok(mut state) = self.state.try_lock() else { return false };
        // A command that failed is at work no more.
        state.take_up().is_err() || state.flight.has_passed(state.flight.last())
    }

    fn held_bytes(&self) -> u64 {
        let figures = self.pool.figures();
        figures.in_use + figures.pooled
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The queue may still touch host memory. A device that missed its time limit is held until its work has ended; where the device is
        // gone, nobody can tell.
        if self.queue.finish().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
        }
    }
}
