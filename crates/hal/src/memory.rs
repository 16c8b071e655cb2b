//! Memory of buffers and textures: addresses that the host maps and kernels read and write.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cantus_base::memory::{Pages, Zeroed};
use cantus_spmd::Memory as Lent;
use wgpu_hal::DeviceError;

/// The alignment that the system's allocator gives without writing zeros itself; vectors' own loads take it.
const ALIGN: usize = 16;

/// The bytes of all buffers and textures of this process.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Takes bytes from those that this process may have: as many as the machine has. Pages come in when they are first written, so what is free now
/// says nothing about buffers that nobody has touched, and programs that allocate until an error comes would never see one.
fn take(bytes: u64) -> Result<(), DeviceError> {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    let total = *TOTAL.get_or_init(|| cantus_base::memory::total().unwrap_or(u64::MAX));
    let sum = |given: u64| given.checked_add(bytes).filter(|sum| *sum <= total);
    GIVEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).map(drop).map_err(|_| DeviceError::OutOfMemory)
}

/// Zeroed bytes of a fixed size, touched through raw addresses only. wgpu-core keeps the host and the queue from touching the same bytes at once; within a
/// dispatch the executor accesses them by relaxed atomics.
#[derive(Debug)]
pub(crate) struct Memory {
    memory: Zeroed,
    bytes: usize,
}

impl Memory {
    /// Allocates that many bytes; none are one word.
    pub(crate) fn new(bytes: u64) -> Result<Self, DeviceError> {
        cantus_base::memory::fits("a buffer", bytes).map_err(|_| DeviceError::OutOfMemory)?;
        let size = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory)?;
        take(bytes)?;
        let whole = size.checked_next_multiple_of(ALIGN);
        let Some(memory) = whole.and_then(|whole| Zeroed::new(whole, ALIGN, Pages::HugeIfFree)) else {
            GIVEN.fetch_sub(bytes, Ordering::Relaxed);
            return Err(DeviceError::OutOfMemory);
        };
        Ok(Self { memory, bytes: size })
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns the address of a range; nothing if it is not inside.
    pub(crate) fn range(&self, range: Range<u64>) -> Option<(NonNull<u8>, usize)> {
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= self.bytes as u64)?;
        let (offset, length) = (usize::try_from(range.start).ok()?, usize::try_from(length).ok()?);
        // SAFETY: the range lies within the memory.
        Some((unsafe { self.memory.start().add(offset) }, length))
    }

    /// Lends a range to a kernel.
    pub(crate) fn lend(&self, range: Range<u64>) -> Option<Lent<'_>> {
        let (start, bytes) = self.range(range)?;
        // SAFETY: the range is valid while `self` is borrowed, and no reference to it exists (see the type's description).
        Some(unsafe { Lent::from_raw(start.as_ptr(), bytes) })
    }

    /// Fills a range with zeros.
    pub(crate) fn clear(&self, range: Range<u64>) -> Option<()> {
        let (start, bytes) = self.range(range)?;
        // SAFETY: the range was checked; the queue's thread alone touches it now.
        unsafe { start.as_ptr().write_bytes(0, bytes) };
        Some(())
    }

    /// Copies bytes from another memory, or from this one where the ranges do not overlap.
    pub(crate) fn copy(&self, to: u64, source: &Self, from: u64, bytes: u64) -> Option<()> {
        let (source, length) = source.range(from..from.checked_add(bytes)?)?;
        let (target, _) = self.range(to..to.checked_add(bytes)?)?;
        // SAFETY: both ranges were checked, and `copy` allows them to overlap.
        unsafe { target.as_ptr().copy_from(source.as_ptr(), length) };
        Some(())
    }

    /// Reads bytes.
    pub(crate) fn read<const N: usize>(&self, from: u64) -> Option<[u8; N]> {
        let (start, _) = self.range(from..from.checked_add(N as u64)?)?;
        // SAFETY: the range was checked, and bytes have no alignment.
        Some(unsafe { start.as_ptr().cast::<[u8; N]>().read_unaligned() })
    }

    /// Writes bytes.
    pub(crate) fn write(&self, to: u64, bytes: &[u8]) -> Option<()> {
        let (start, length) = self.range(to..to.checked_add(bytes.len() as u64)?)?;
        // SAFETY: the range was checked; `bytes` are the caller's own.
        unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), length) };
        Some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        GIVEN.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    /// Nothing of it is touched, so the system alone would give much more.
    #[test]
    fn all_together_have_no_more_than_the_machine() {
        let Some(total) = cantus_base::memory::total() else { return };
        // What is left at the end does for other tests.
        let part = total / 64 + 4096;
        let all: Vec<Memory> = std::iter::from_fn(|| Memory::new(part).ok()).take(1000).collect();
        assert!((1..64).contains(&all.len()), "{} parts of {part} bytes", all.len());
        drop(all);
        assert!(Memory::new(part).is_ok());
    }

    #[test]
    fn no_range_reaches_outside() {
        let memory = Memory::new(10).unwrap();
        assert_eq!((memory.bytes(), memory.read::<4>(6)), (10, Some([0; 4])));
        memory.write(2, &[1, 2, 3]).unwrap();
        memory.copy(7, &memory, 2, 3).unwrap();
        memory.clear(2..4).unwrap();
        assert_eq!(memory.read::<10>(0), Some([0, 0, 0, 0, 3, 0, 0, 1, 2, 3]));
        assert!(memory.read::<4>(7).is_none() && memory.write(u64::MAX, &[0]).is_none());
        assert!(memory.copy(8, &memory, 0, 3).is_none() && memory.copy(0, &memory, 8, 3).is_none());
        for (start, end) in [(3, 2), (0, 11), (10, 11), (u64::MAX, 0)] {
            assert!(memory.lend(start..end).is_none() && memory.clear(start..end).is_none(), "{start} to {end}");
        }
        assert!(Memory::new(u64::MAX).is_err() && Memory::new(1 << 60).is_err());
    }
}
