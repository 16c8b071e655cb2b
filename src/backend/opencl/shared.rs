//! What the parts of an opened device share: below memory, programs and the queue, which are made of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::memory::Buffer as ClBuffer;

use super::event::Marker;
use crate::backend::health::Health;
use crate::backend::native_cache::NativeCache;
use crate::backend::wait::{Ended, Waiter};
use crate::backend::{DeviceInfo, Pool};
use crate::error::{Error, Result};
use crate::translate::OpenClFeatures;

/// OpenCL's buffer and its identity.
pub(super) struct Block {
    pub(super) buffer: ClBuffer<u8>,
    pub(super) id: u64,
}

/// What the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) features: OpenClFeatures,
    pub(super) argument_bytes: usize,
    pub(super) profile: bool,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Marker>,
    pub(super) pool: Pool<Block>,
    pub(super) state: Mutex<State>,
    pub(super) health: Health,
    pub(super) ids: AtomicU64,
    /// In order: what is put in first is done first.
    pub(super) queue: CommandQueue,
    pub(super) context: Context,
}

/// What is changed under the device's lock. Whoever puts work into the queue holds it.
#[derive(Default)]
pub(super) struct State {
    /// Host memory that the queue still reads.
    pub(super) uploads: VecDeque<(Event, Vec<u8>)>,
    /// Kernels that may still run.
    pub(super) timing: Vec<(Arc<str>, Event)>,
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

    /// What the end of a wait means.
    pub(super) fn ended(&self, ended: Ended<i32>, what: &str) -> Result<()> {
        match ended {
            Ended::Passed => Ok(()),
            Ended::Failed(code) => {
                let reason = opencl3::error_codes::ClError(code).to_string();
                self.health.lose(&reason);
                Err(Error::DeviceLost { device: self.info.name.clone(), reason: format!("{reason} ({what})") })
            }
            Ended::Late => {
                self.health.overdue();
                Err(self.health.timeout_error(what))
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The queue may still read from host memory. Where it never ends, the memory stays.
        if self.health.is_lost() || self.queue.finish().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
        }
    }
}
