//! Bytes into the queue: zeros, copies, and uploads with the host memory that they read.

use opencl3::memory::{Buffer as ClBuffer, ClMem};

use super::event::status;
use super::shared::{Shared, State};

/// Uploads are cut into pieces of this size, so that little host memory waits.
const UPLOAD_BYTES: usize = 16 << 20;
/// Host memory that may wait for the queue.
const WAITING_BYTES: usize = 64 << 20;

impl Shared {
    /// Queues zeros. `from` and `bytes` are multiples of 4.
    pub(super) fn clear(&self, _state: &mut State, buffer: &ClBuffer<u8>, from: u64, bytes: u64) -> Result<(), i32> {
        let mut alias = Alias::of(buffer)?;
        // SAFETY: the range lies within the buffer; the pattern is copied during the call.
        let filled = unsafe { self.queue.enqueue_fill_buffer(&mut alias.0, &[0_u8; 4], size(from), size(bytes), &[]) };
        filled.map(|_| ()).map_err(|error| error.0)
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

    /// Queues host bytes. They are copied first, and kept until the queue has read them.
    pub(super) fn upload(&self, state: &mut State, buffer: &ClBuffer<u8>, offset: u64, data: &[u8]) -> Result<(), i32> {
        let mut place = size(offset);
        for chunk in data.chunks(UPLOAD_BYTES) {
            self.collect(state)?;
            let owned = chunk.to_vec();
            let mut alias = Alias::of(buffer)?;
            // SAFETY: the caller checked the range; `owned` stays in the list until the command is done.
            let event = unsafe { self.queue.enqueue_write_buffer(&mut alias.0, 0, place, &owned, &[]) };
            state.uploads.push_back((event.map_err(|error| error.0)?, owned));
            place += chunk.len();
        }
        Ok(())
    }

    /// Lets go of what the queue has read, and waits when much is waiting.
    fn collect(&self, state: &mut State) -> Result<(), i32> {
        let mut waiting: usize = state.uploads.iter().map(|(_, data)| data.len()).sum();
        while let Some((event, data)) = state.uploads.front() {
            if !status(event)? {
                if waiting <= WAITING_BYTES {
                    break;
                }
                event.wait().map_err(|error| error.0)?;
            }
            waiting -= data.len();
            state.uploads.pop_front();
        }
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
