//! Bytes into the queue: zeros, copies, and uploads with the host memory that they read.

use opencl3::memory::{Buffer as ClBuffer, ClMem};

use super::shared::{InUse, Shared, State};

/// Uploads are cut into pieces of this size, so that little host memory waits.
pub(super) const UPLOAD_BYTES: usize = 16 << 20;
/// Host memory that may wait for the queue.
pub(super) const WAITING_BYTES: usize = 64 << 20;

impl Shared {
    /// Queues zeros. `from` and `bytes` are multiples of 4.
    pub(super) fn clear(&self, state: &mut State, buffer: &ClBuffer<u8>, from: u64, bytes: u64) -> Result<(), i32> {
        let mut alias = Alias::of(buffer)?;
        // SAFETY: the range lies within the buffer; the pattern is copied during the call.
        let filled = unsafe { self.queue.enqueue_fill_buffer(&mut alias.0, &[0_u8; 4], size(from), size(bytes), &[]) };
        state.mark(filled.map_err(|error| error.0)?);
        Ok(())
    }

    pub(super) fn copy(
        &self,
        source: &ClBuffer<u8>,
        from: usize,
        target: &ClBuffer<u8>,
        to: usize,
        bytes: usize,
    ) -> Result<(), i32> {
        let mut alias = Alias::of(target)?;
        // SAFETY: both ranges were checked; the command's buffers differ.
        let copied = unsafe { self.queue.enqueue_copy_buffer(source, &mut alias.0, from, to, bytes, &[]) };
        copied.map(|_| ()).map_err(|error| error.0)
    }

    /// Queues host bytes, at most [`UPLOAD_BYTES`] of them. They are copied first, and kept until the queue has read them.
    pub(super) fn upload(&self, state: &mut State, buffer: &ClBuffer<u8>, offset: u64, data: &[u8]) -> Result<(), i32> {
        let owned = data.to_vec();
        // A vector that moves stays where it points.
        let (start, length) = (owned.as_ptr(), owned.len());
        state.keep(InUse::Upload(owned));
        let mut alias = Alias::of(buffer)?;
        // SAFETY: the caller checked the range; the bytes are kept until the command is done, and nobody changes them.
        let event = unsafe {
            let source = std::slice::from_raw_parts(start, length);
            self.queue.enqueue_write_buffer(&mut alias.0, 0, size(offset), source, &[])
        };
        state.mark(event.map_err(|error| error.0)?);
        Ok(())
    }
}

/// A second handle of a buffer, for calls that want to change it: OpenCL counts references, Rust's borrow says nothing of the device's memory.
struct Alias(ClBuffer<u8>);

impl Alias {
    fn of(buffer: &ClBuffer<u8>) -> Result<Self, i32> {
        // SAFETY: the memory object lives; the reference is given back by the alias's drop.
        unsafe { opencl3::memory::retain_mem_object(buffer.get())? };
        Ok(Self(ClBuffer::new(buffer.get())))
    }
}

/// A checked size as the host's type: buffers are smaller than memory.
pub(super) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
