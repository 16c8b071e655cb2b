//! Bytes between host and device: writes through wgpu's queue, reads through mapped staging buffers, in chunks. `device` reads and writes through it. Whole
//! words only: the ends of an odd range are read first and written back. Chunks bound the staging memory. A read waits for the map without the lock, and
//! gives its staging buffer back even if its future is dropped.

use std::sync::Arc;

use web_time::Instant;

use super::errors::{Caught, Errors as _, Scopes};
use super::memory::WgpuBuffer;
use super::shared::Shared;
use super::work::Work;
use crate::backend::{Buffer, padded};
use crate::checks;
use crate::error::{Error, Result};

/// The most bytes that one write or read moves at a time, which bounds staging memory.
const CHUNK: u64 = 64 << 20;
/// Staging buffers kept for the next read, at most.
const KEPT: usize = 4;
const SMALLEST_STAGING: u64 = 64 << 10;

/// A read that was submitted.
struct Reading {
    staging: wgpu::Buffer,
    work: Work,
    deadline: Option<Instant>,
    caught: Caught,
}

impl Shared {
    pub(super) async fn write(self: &Arc<Self>, buffer: &WgpuBuffer, offset: u64, data: &[u8]) -> Result<()> {
        use crate::backend::Buffer;
        self.health.check()?;
        checks::range(&buffer.label, buffer.bytes(), offset, data.len() as u64, "writing")?;
        if data.is_empty() {
            return Ok(());
        }
        let end = offset + data.len() as u64;
        // wgpu writes whole words. At the buffer's end the rest of the word is zeros; elsewhere it is what it was.
        let head = offset % 4;
        let tail_is_ours = end.is_multiple_of(4) || end == buffer.bytes();
        let caught = if head == 0 && tail_is_ours {
            self.queue_write(buffer, offset, data)?
        } else {
            let start = offset - head;
            let mut words = vec![0_u8; to_usize(padded(end) - start)?];
            self.read_padded(buffer, start, &mut words).await?;
            let at = to_usize(head)?;
            words[at..at + data.len()].copy_from_slice(data);
            self.queue_write(buffer, start, &words)?
        };
        match caught.first().await {
            None if self.health.is_lost() => Err(self.health.lost_error()),
            None => Ok(()),
            Some(error) => {
                let action = format!("writing {}", buffer.label);
                Err(self.health.wgpu_error(&error, &action, &buffer.label, data.len() as u64))
            }
        }
    }

    /// Queues a write of whole words (the last one may be cut short at the buffer's end).
    fn queue_write(&self, buffer: &WgpuBuffer, offset: u64, data: &[u8]) -> Result<Caught> {
        let raw = buffer.plain("a write")?;
        self.contained("writing", || {
            let _turn = self.turn();
            let mut state = self.lock();
            let scopes = Scopes::open(&self.device);
            let whole = offset == 0 && padded(data.len() as u64) >= buffer.padded();
            if state.clears.contains_key(&raw.id) {
                if whole {
                    state.clears.remove(&raw.id);
                } else {
                    // A write goes ahead of the next submission, and the clear must go ahead of the write.
                    let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                    state.encode_clears(&mut encoder);
                    self.queue.submit([encoder.finish()]);
                }
            }
            let (words, rest) = data.split_at(data.len() & !3);
            let mut at = offset;
            for chunk in words.chunks(CHUNK as usize) {
                self.queue.write_buffer(&raw.buffer, at, chunk);
                at += chunk.len() as u64;
                state.unsubmitted += chunk.len() as u64;
                if state.unsubmitted >= CHUNK {
                    // Frees wgpu's staging copy as soon as the device has taken it.
                    self.queue.submit([]);
                    state.unsubmitted = 0;
                }
            }
            if !rest.is_empty() {
                let mut word = [0_u8; 4];
                word[..rest.len()].copy_from_slice(rest);
                self.queue.write_buffer(&raw.buffer, at, &word);
            }
            scopes.close()
        })
    }

    pub(super) async fn read(self: &Arc<Self>, buffer: &WgpuBuffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        checks::range(&buffer.label, buffer.bytes(), offset, into.len() as u64, "reading")?;
        self.read_padded(buffer, offset, into).await
    }

    /// Reads a range of the padded buffer, chunk by chunk.
    async fn read_padded(self: &Arc<Self>, buffer: &WgpuBuffer, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut at = offset;
        for part in into.chunks_mut(CHUNK as usize) {
            let start = at - at % 4;
            let bytes = padded(at + part.len() as u64) - start;
            let reading = self.start_read(buffer, start, bytes)?;
            let staging = self.mapped(reading, &buffer.label, bytes).await?;
            let copied = self.contained("reading", || {
                let _turn = self.turn();
                let copied = copy_out(&staging, (at - start) as usize, part);
                staging.unmap();
                if copied {
                    self.keep_staging(staging);
                }
                copied
            })?;
            if !copied {
                return Err(self.unmapped(&buffer.label));
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    fn start_read(&self, buffer: &WgpuBuffer, offset: u64, bytes: u64) -> Result<Reading> {
        let deadline = self.health.deadline();
        let raw = buffer.plain("a read")?;
        self.contained("reading", || {
            let _turn = self.turn();
            let mut state = self.lock();
            let scopes = Scopes::open(&self.device);
            let staging = self.staging(&mut state.staging, bytes);
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            state.encode_clears(&mut encoder);
            encoder.copy_buffer_to_buffer(&raw.buffer, offset, &staging, 0, Some(bytes));
            let submission = self.queue.submit([encoder.finish()]);
            state.unsubmitted = 0;
            let (work, answer) = Work::new(&self.device, self.turn.as_ref(), submission);
            staging.map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // Nobody may ask any more.
                let _ = answer.send(result.is_ok());
            });
            Reading { staging, work, deadline, caught: scopes.close() }
        })
    }

    /// Waits until the staging buffer is mapped.
    async fn mapped(&self, reading: Reading, label: &str, bytes: u64) -> Result<wgpu::Buffer> {
        let Reading { staging, work, deadline, caught } = reading;
        if let Some(error) = caught.first().await {
            return Err(self.health.wgpu_error(&error, &format!("reading {label}"), label, bytes));
        }
        self.answered(work, deadline, || format!("reading {label}")).await?;
        Ok(staging)
    }

    fn unmapped(&self, label: &str) -> Error {
        if self.health.is_lost() {
            return self.health.lost_error();
        }
        Error::Device {
            device: self.info.name.clone(),
            action: format!("reading {label}"),
            message: "the staging memory could not be mapped".to_owned(),
        }
    }

    /// A staging buffer of at least this many bytes: kept, or new.
    fn staging(&self, kept: &mut Vec<wgpu::Buffer>, bytes: u64) -> wgpu::Buffer {
        let fits = kept.iter().enumerate().filter(|(_, buffer)| buffer.size() >= bytes);
        if let Some((index, _)) = fits.min_by_key(|(_, buffer)| buffer.size()) {
            return kept.swap_remove(index);
        }
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("cantus staging"),
            size: bytes.next_power_of_two().max(SMALLEST_STAGING).min(self.limits.max_buffer_size & !3),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn keep_staging(&self, buffer: wgpu::Buffer) {
        let kept = &mut self.lock().staging;
        kept.push(buffer);
        if kept.len() > KEPT {
            // The smallest is the cheapest to make again.
            let smallest = kept.iter().enumerate().min_by_key(|(_, buffer)| buffer.size()).map(|(index, _)| index);
            if let Some(index) = smallest {
                kept.swap_remove(index);
            }
        }
    }
}

/// Copies mapped bytes from `skip` on; false when the buffer is not mapped after all.
fn copy_out(staging: &wgpu::Buffer, skip: usize, into: &mut [u8]) -> bool {
    let bytes = padded((skip + into.len()) as u64);
    let Ok(view) = staging.get_mapped_range(0..bytes) else { return false };
    match view.get(skip..skip + into.len()) {
        Some(source) => {
            into.copy_from_slice(source);
            true
        }
        None => false,
    }
}

fn to_usize(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .map_err(|_| Error::limit("a transfer", format!("{bytes} bytes do not fit into this machine's address space")))
}
