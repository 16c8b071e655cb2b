//! Bytes between host and device: directly where the host reaches the memory and the device is done with it, through mapped
//! staging memory elsewhere.

use std::sync::Arc;

use ash::vk;

use super::buffer::VulkanBuffer;
use super::errors::Errors as _;
use super::memory::{Choice, Place, RawBuffer};
use super::shared::{Pending, Shared, State};
use crate::backend::Buffer;
use crate::checks;
use crate::error::{Error, Result};

/// The most bytes that one write moves at a time through the ring.
const WRITE_CHUNK: u64 = 4 << 20;
/// The ring for writes, at first and at most.
const FIRST_RING: u64 = 1 << 20;
const LARGEST_RING: u64 = 32 << 20;
/// The most bytes that one read moves at a time through a staging buffer.
const READ_CHUNK: u64 = 64 << 20;
const SMALLEST_STAGING: u64 = 64 << 10;
/// Staging buffers kept for the next read, at most.
const KEPT: usize = 4;

/// The most bytes of a tensor that the host accesses at a time: the device's lock is held meanwhile.
const DIRECT_CHUNK: u64 = 16 << 20;

/// The next step of a transfer.
enum Moved {
    /// The bytes that are done, or on their way.
    Some(u64),
    /// Continues when that submission has ended.
    After(u64),
}

impl Shared {
    fn unmapped(&self, action: &str, label: &str) -> Error {
        Error::Device {
            device: self.info.name.clone(),
            action: format!("{action} {label}"),
            message: "the memory could not be mapped".to_owned(),
        }
    }

    pub(super) async fn write(self: &Arc<Self>, buffer: &VulkanBuffer, offset: u64, data: &[u8]) -> Result<()> {
        self.health.check()?;
        checks::range(&buffer.label, buffer.bytes(), offset, data.len() as u64, "writing")?;
        let (mut offset, mut data) = (offset, data);
        while !data.is_empty() {
            match self.write_some(buffer, offset, data)? {
                Moved::Some(bytes) => {
                    offset += bytes;
                    data = data.get(usize::try_from(bytes).unwrap_or(usize::MAX)..).unwrap_or_default();
                }
                Moved::After(serial) => self.wait(serial, || format!("writing {}", buffer.label)).await?,
            }
        }
        Ok(())
    }

    fn write_some(self: &Arc<Self>, buffer: &VulkanBuffer, offset: u64, data: &[u8]) -> Result<Moved> {
        let mut state = self.lock();
        self.reclaim(&mut state)?;
        // Decided and done under the lock: nothing that uses the buffer is submitted meanwhile.
        if buffer.raw.is_mapped() && state.is_done_with(&buffer.raw) {
            let part = data.get(..DIRECT_CHUNK as usize).unwrap_or(data);
            let written = buffer.raw.write(offset, part);
            return if written {
                Ok(Moved::Some(part.len() as u64))
            } else {
                Err(self.unmapped("writing", &buffer.label))
            };
        }
        let bytes = (data.len() as u64).min(WRITE_CHUNK);
        let next = state.flight.next();
        let Some((source, from)) = state.uploads.take(next, bytes, 16) else {
            return self.more_room(&mut state, bytes);
        };
        let chunk = data.get(..usize::try_from(bytes).unwrap_or(0)).unwrap_or_default();
        if !source.write(from, chunk) {
            return Err(self.unmapped("writing", &buffer.label));
        }
        state.pend(Pending::Copy { source, from, target: buffer.raw.clone(), to: offset, bytes });
        Ok(Moved::Some(bytes))
    }

    /// Makes the ring for writes larger, or lets what is in it go.
    fn more_room(self: &Arc<Self>, state: &mut State, bytes: u64) -> Result<Moved> {
        let size = state.uploads.bytes();
        if size < LARGEST_RING {
            let wanted = (bytes * 2).next_power_of_two().max(size * 4).clamp(FIRST_RING, LARGEST_RING);
            let refused = |error| self.health.vulkan_error(error, "making staging memory", "staging memory", wanted);
            state.uploads.replace(&self.memory, wanted).map_err(refused)?;
            return Ok(Moved::Some(0));
        }
        self.flush(state)?;
        Ok(Moved::After(state.uploads.oldest().unwrap_or(state.flight.last())))
    }

    pub(super) async fn read(self: &Arc<Self>, buffer: &VulkanBuffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        checks::range(&buffer.label, buffer.bytes(), offset, into.len() as u64, "reading")?;
        if into.is_empty() {
            return Ok(());
        }
        let what = || format!("reading {}", buffer.label);
        let mut rest = (offset, into);
        if buffer.raw.is_readable() {
            // What others go on using is not waited for a second time.
            let mut waited = false;
            while !rest.1.is_empty() {
                match self.read_some(buffer, rest.0, rest.1)? {
                    Moved::Some(bytes) => {
                        let done = usize::try_from(bytes).unwrap_or(usize::MAX).min(rest.1.len());
                        rest = (rest.0 + bytes, rest.1.split_at_mut(done).1);
                    }
                    Moved::After(_) if waited => break,
                    Moved::After(serial) => {
                        self.wait(serial, what).await?;
                        waited = true;
                    }
                }
            }
        }
        let (mut at, into) = rest;
        for part in into.chunks_mut(READ_CHUNK as usize) {
            let (staging, serial) = self.start_read(buffer, at, part.len() as u64)?;
            self.wait(serial, what).await?;
            if !staging.read(0, part) {
                return Err(self.unmapped("reading", &buffer.label));
            }
            self.keep_staging(staging);
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Reads directly, when the device is done with the buffer: under the lock, so that nothing that uses it is submitted meanwhile.
    fn read_some(self: &Arc<Self>, buffer: &VulkanBuffer, offset: u64, into: &mut [u8]) -> Result<Moved> {
        let mut state = self.lock();
        self.flush(&mut state)?;
        if !state.is_done_with(&buffer.raw) {
            return Ok(Moved::After(buffer.raw.last_use()));
        }
        let bytes = into.len().min(DIRECT_CHUNK as usize);
        let read = into.get_mut(..bytes).is_some_and(|part| buffer.raw.read(offset, part));
        if read { Ok(Moved::Some(bytes as u64)) } else { Err(self.unmapped("reading", &buffer.label)) }
    }

    /// Submits a copy into a staging buffer. Until that has ended the submission keeps it, also when nobody waits any more.
    fn start_read(self: &Arc<Self>, buffer: &VulkanBuffer, offset: u64, bytes: u64) -> Result<(Arc<RawBuffer>, u64)> {
        let mut state = self.lock();
        self.reclaim(&mut state)?;
        let fits = state.staging.iter().enumerate().filter(|(_, buffer)| buffer.bytes >= bytes);
        let kept = fits.min_by_key(|(_, buffer)| buffer.bytes).map(|(index, _)| index);
        let staging = match kept {
            Some(index) => state.staging.swap_remove(index),
            None => {
                let size = bytes.next_power_of_two().max(SMALLEST_STAGING);
                let made = self.memory.buffer(size, vk::BufferUsageFlags::TRANSFER_DST, Place::ToHost, Choice::Best);
                made.map_err(|error| self.health.vulkan_error(error, "making staging memory", "staging memory", size))?
            }
        };
        let (source, target) = (buffer.raw.clone(), staging.clone());
        state.pend(Pending::Copy { source, from: offset, target, to: 0, bytes });
        self.flush(&mut state)?;
        Ok((staging, state.flight.last()))
    }

    fn keep_staging(&self, buffer: Arc<RawBuffer>) {
        let kept = &mut self.lock().staging;
        kept.push(buffer);
        if kept.len() > KEPT {
            // The smallest is the cheapest to make again. The device has finished with all that are kept.
            let smallest = kept.iter().enumerate().min_by_key(|(_, buffer)| buffer.bytes).map(|(index, _)| index);
            if let Some(index) = smallest {
                kept.swap_remove(index);
            }
        }
    }
}
