//! The parts of submissions: command buffers with what they use, and a ring of mapped memory. Both are taken up again as submissions
//! end.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use ash::prelude::VkResult;
use ash::vk;

use super::memory::{Choice, Memory, Place, RawBuffer};
use super::objects::{Owned, Raw};
use super::timestamps::Timer;

/// Something that the device may still use.
pub(super) type Kept = Arc<dyn Any + Send + Sync>;

/// Buffers as something to keep.
pub(super) fn keep<T: Send + Sync + 'static>(what: T) -> Kept {
    Arc::new(what)
}

/// A command buffer with what its commands need.
pub(super) struct Slot {
    pool: Owned<vk::CommandPool>,
    pub(super) commands: vk::CommandBuffer,
    pub(super) timer: Option<Timer>,
    /// The buffers that its commands use: they live until the submission has ended, whoever else lets them go.
    pub(super) used: Vec<Arc<RawBuffer>>,
    pub(super) kept: Vec<Kept>,
}

impl Slot {
    pub(super) fn new(raw: &Arc<Raw>, family: u32) -> VkResult<Self> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the family is the one that the device was made with.
        let pool = Owned::new(raw, unsafe { raw.device.create_command_pool(&info, None) }?);
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool.handle).command_buffer_count(1);
        // SAFETY: the pool was just made.
        let buffers = unsafe { raw.device.allocate_command_buffers(&info) }?;
        let commands = buffers.first().copied().ok_or(vk::Result::ERROR_UNKNOWN)?;
        Ok(Self { pool, commands, timer: None, used: Vec::new(), kept: Vec::new() })
    }

    /// Releases what its commands used: they have ended, or were never submitted.
    pub(super) fn clear(&mut self) {
        self.timer = None;
        self.used.clear();
        self.kept.clear();
    }

    fn begin(&mut self, raw: &Raw, usage: vk::CommandBufferUsageFlags) -> VkResult<()> {
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: the device has finished with the command buffer; the slot is used under the device's lock.
        unsafe {
            raw.device.reset_command_pool(self.pool.handle, vk::CommandPoolResetFlags::empty())?;
            raw.device.begin_command_buffer(self.commands, &info)
        }
    }

    /// Begins a command buffer that is submitted once.
    pub(super) fn begin_once(&mut self, raw: &Raw) -> VkResult<()> {
        self.begin(raw, vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)
    }

    /// Begins a command buffer that may be in flight several times over.
    pub(super) fn begin_reusable(&mut self, raw: &Raw) -> VkResult<()> {
        self.begin(raw, vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
    }
}

/// Objects that a submission may touch, by their treatment after it has ended.
pub(super) enum InUse {
    /// Used again.
    Slot(Slot),
    /// Dropped.
    Kept(#[expect(dead_code, reason = "held, and dropped")] Kept),
}

/// A mapped buffer, handed out in turn.
pub(super) struct HostRing {
    usage: vk::BufferUsageFlags,
    buffer: Option<Arc<RawBuffer>>,
    /// Bytes handed out and taken back since the buffer was made; their difference is in use.
    head: u64,
    tail: u64,
    /// Up to where each submission uses it.
    in_flight: VecDeque<(u64, u64)>,
}

impl HostRing {
    pub(super) fn new(usage: vk::BufferUsageFlags) -> Self {
        Self { usage, buffer: None, head: 0, tail: 0, in_flight: VecDeque::new() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.bytes)
    }

    /// A range for the submission `serial`, if there is room: the buffer and where it starts.
    pub(super) fn take(&mut self, serial: u64, bytes: u64, alignment: u64) -> Option<(Arc<RawBuffer>, u64)> {
        let buffer = self.buffer.as_ref()?;
        let size = buffer.bytes;
        let mut start = self.head.next_multiple_of(alignment.max(1));
        if start % size + bytes > size {
            start = start.next_multiple_of(size);
        }
        let end = start.checked_add(bytes)?;
        if bytes > size || end - self.tail > size {
            return None;
        }
        self.head = end;
        match self.in_flight.back_mut() {
            Some((last, until)) if *last == serial => *until = end,
            _ => self.in_flight.push_back((serial, end)),
        }
        Some((buffer.clone(), start % size))
    }

    /// Replaces the buffer by one of this many bytes (a power of two).
    pub(super) fn replace(&mut self, memory: &Arc<Memory>, bytes: u64) -> VkResult<()> {
        let buffer = memory.buffer(bytes, self.usage, Place::ToDevice, Choice::Best)?;
        self.release();
        (self.head, self.tail) = (0, 0);
        self.buffer = Some(buffer);
        Ok(())
    }

    /// The oldest submission that holds a part of it.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.in_flight.front().map(|(serial, _)| *serial)
    }

    pub(super) fn reclaim(&mut self, completed: u64) {
        while let Some((serial, until)) = self.in_flight.front()
            && *serial <= completed
        {
            self.tail = *until;
            self.in_flight.pop_front();
        }
    }

    /// Releases the buffer. Submissions that use it keep it.
    pub(super) fn release(&mut self) {
        self.in_flight.clear();
        self.buffer = None;
    }
}
