//! Memory shared with other libraries that use the same driver.

use std::any::Any;
use std::sync::Arc;

use super::device::StreamDevice;
use super::driver::Stream;
use super::library::Handle;
use super::memory::StreamBuffer;
use super::shared::Shared;
use crate::backend::{BoxFuture, Buffer, DriverMemory, Sharing};
use crate::checks::Owner as _;
use crate::error::Result;

/// Streams up to this number are the driver's own, and always live.
const LAST_DEFAULT: usize = 2;

impl Sharing for StreamDevice {
    fn ordinal(&self) -> i32 {
        self.shared.driver.ordinal()
    }

    fn stream(&self) -> usize {
        self.shared.driver.stream().0 as usize
    }

    fn address(&self, buffer: &Arc<dyn Buffer>) -> Option<u64> {
        let own = (&**buffer as &dyn Any).downcast_ref::<StreamBuffer>().filter(|buffer| self.shared.holds(buffer))?;
        Some(own.address())
    }

    unsafe fn lend(&self, stream: usize) -> Result<()> {
        self.shared.health.check()?;
        // What is put into the stream meanwhile is waited for too.
        let waits =
            self.shared.driver.enter().and_then(|_current| {
                self.shared.driver.wait_across(Stream(stream as Handle), self.shared.driver.stream())
            });
        waits.map_err(|fault| self.shared.error(fault, "lending memory to a stream"))
    }

    fn take_back(&self, stream: usize) -> Result<()> {
        let action = "taking memory back from a stream";
        let fault = |fault| self.shared.error(fault, action);
        let _current = self.shared.driver.enter().map_err(fault)?;
        if stream > LAST_DEFAULT {
            return self.shared.driver.synchronize().map_err(fault);
        }
        let mut state = self.shared.lock();
        state.enqueue();
        self.shared.driver.wait_across(self.shared.driver.stream(), Stream(stream as Handle)).map_err(fault)
    }

    unsafe fn import_exported(&self, fd: i32, allocated: u64, bytes: u64, label: &str) -> Result<Arc<dyn Buffer>> {
        let fault = |fault| self.shared.error(fault, &format!("importing {label}"));
        // SAFETY: the descriptor is nobody else's, of a dedicated allocation of `allocated` bytes (this function's contract).
        let memory = unsafe { self.shared.driver.import(fd, allocated) }.map_err(fault)?;
        self.shared.health.check()?;
        // SAFETY: mapped as long as `memory` is there; `bytes` is at most `allocated`, and nobody else writes (this function's contract).
        let memory = unsafe { DriverMemory::new(memory.address, bytes, memory) };
        let buffer = self.shared.imported(memory, label);
        let size = usize::try_from(bytes).unwrap_or(0);
        let mut state = self.shared.lock();
        let cleared = self.shared.driver.enter().and_then(|_current| {
            state.enqueue();
            // SAFETY: so many bytes are mapped, and stay so until the stream has passed.
            unsafe { self.shared.driver.clear(self.shared.driver.stream(), buffer.address(), size) }
        });
        drop(state);
        cleared.map_err(fault)?;
        Ok(Arc::new(buffer))
    }

    fn import<'a>(&'a self, memory: DriverMemory, label: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(async move {
            let buffer = Shared::import(&self.shared, memory, label).await?;
            Ok(Arc::new(buffer) as Arc<dyn Buffer>)
        })
    }
}
