//! Commands that are waited for, and the host memory that they read or fill.

use opencl3::event::{CL_COMPLETE, Event};

use crate::wait::Awaited;

/// Has a command been done? A negative status is the code of its failure.
pub(super) fn status(event: &Event) -> Result<bool, i32> {
    let status = event.command_execution_status().map_err(|error| error.0)?;
    if status.0 < 0 { Err(status.0) } else { Ok(status.0 == CL_COMPLETE) }
}

/// A command that is waited for.
pub(super) struct Marker(pub(super) Event);

impl Awaited for Marker {
    type Fault = i32;

    // OpenCL takes no limit.
    const ENDS: bool = false;

    fn passed(&self) -> Result<bool, i32> {
        status(&self.0)
    }

    fn block(&self) -> Result<(), i32> {
        let waited = self.0.wait().map_err(|error| error.0);
        // A wait for a failed command says only that some command failed.
        match status(&self.0) {
            Err(code) => Err(code),
            Ok(_) => waited,
        }
    }
}

/// Host memory that a read fills. Reader and queue hold it: it lives until the command is done, whatever becomes of the reader.
pub(super) struct Landing {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
}

// SAFETY: plain memory, written by the queue alone until the event has passed, and read by one reader after that.
unsafe impl Send for Landing {}
// SAFETY: `&Landing` gives out only the pointer; who reads behind it waits for the event first.
unsafe impl Sync for Landing {}

impl Landing {
    pub(super) fn new(bytes: usize) -> Self {
        let memory = vec![0_u8; bytes].into_boxed_slice();
        Self { start: Box::into_raw(memory).cast(), bytes }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // SAFETY: made from a boxed slice of this length in `new`, and taken back once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.bytes)) });
    }
}
