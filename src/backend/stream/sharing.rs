//! Memory shared with other libraries that use the same driver.

use std::any::Any;
use std::sync::Arc;

use super::driver::Stream;
use super::library::Handle;
use super::memory::StreamBuffer;
use super::shared::Shared;
use crate::backend::checks::Owner as _;
use crate::backend::{BoxFuture, Buffer, DriverMemory, Sharing};
use crate::error::Result;

/// Streams up to this number are the driver's own, and always live.
const LAST_DEFAULT: usize = 2;

impl Sharing for Arc<Shared> {
    fn ordinal(&self) -> i32 {
        self.driver.ordinal()
    }

    fn stream(&self) -> usize {
        self.driver.stream().0 as usize
    }

    fn address(&self, buffer: &Arc<dyn Buffer>) -> Option<u64> {
        let own = (&**buffer as &dyn Any).downcast_ref::<StreamBuffer>().filter(|buffer| self.holds(buffer))?;
        Some(own.address())
    }

    fn lend(&self, stream: usize) -> Result<()> {
        self.health.check()?;
        // What is put into the stream meanwhile is waited for too.
        let waits = self
            .driver
            .enter()
            .and_then(|_current| self.driver.wait_across(Stream(stream as Handle), self.driver.stream()));
        waits.map_err(|fault| self.error(fault, "lending memory to a stream"))
    }

    fn take_back(&self, stream: usize) -> Result<()> {
        let action = "taking memory back from a stream";
        let fault = |fault| self.error(fault, action);
        let _current = self.driver.enter().map_err(fault)?;
        if stream > LAST_DEFAULT {
            return self.driver.synchronize().map_err(fault);
        }
        let mut state = self.lock();
        state.enqueue();
        self.driver.wait_across(self.driver.stream(), Stream(stream as Handle)).map_err(fault)
    }

    unsafe fn import_exported(&self, fd: i32, allocated: u64, bytes: u64, label: &str) -> Result<Arc<dyn Buffer>> {
        let fault = |fault| self.error(fault, &format!("importing {label}"));
        // SAFETY: the caller's promise.
        let memory = unsafe { self.driver.import(fd, allocated) }.map_err(fault)?;
        self.health.check()?;
        // SAFETY: mapped from there on as long as `memory` is there; the caller's promise.
        let memory = unsafe { DriverMemory::new(memory.address, bytes, memory) };
        let buffer = self.imported(memory, label);
        let size = usize::try_from(bytes).unwrap_or(0);
        let mut state = self.lock();
        let cleared = self.driver.enter().and_then(|_current| {
            state.enqueue();
            // SAFETY: so many bytes are mapped, and stay so until the stream has passed.
            unsafe { self.driver.clear(self.driver.stream(), buffer.address(), size) }
        });
        drop(state);
        cleared.map_err(fault)?;
        Ok(Arc::new(buffer))
    }

    fn import<'a>(&'a self, memory: DriverMemory, label: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(async move {
            let buffer = Shared::import(self, memory, label).await?;
            Ok(Arc::new(buffer) as Arc<dyn Buffer>)
        })
    }
}
