//! Memory that a device shares with other libraries of the process that use its driver (CUDA's, HIP's). Nothing is copied and the host waits for
//! nothing: the streams wait for each other.

use std::any::Any;
use std::sync::Arc;

use super::{BoxFuture, Buffer, MaybeSend, MaybeSync};
use crate::error::Result;

/// A device's handles, for libraries that use the same driver. Streams are the driver's handles, with its own numbers for those that always
/// live: 0 (HIP) and 1 (CUDA) the default stream, 2 the default stream of a thread.
pub trait Sharing: MaybeSend + MaybeSync {
    /// The driver's number of the device.
    fn ordinal(&self) -> i32;

    /// The stream that all of the device's work goes into.
    fn stream(&self) -> usize;

    /// Returns the address of a buffer of this device; `None` for a buffer of another device.
    fn address(&self, buffer: &Arc<dyn Buffer>) -> Option<u64>;

    /// Lets a stream of the same device wait for everything submitted so far.
    ///
    /// # Safety
    /// The stream is one of this device's, and lives until this returns; or it is the number of one that always lives.
    ///
    /// # Errors
    /// When the device failed.
    unsafe fn lend(&self, stream: usize) -> Result<()>;

    /// Makes later submissions wait for everything in that stream. A stream that the app may have destroyed is not touched: this waits for the whole
    /// device instead.
    ///
    /// # Errors
    /// When the device failed.
    fn take_back(&self, stream: usize) -> Result<()>;

    /// A buffer over the beginning of memory that Vulkan exported as an opaque file descriptor. Its contents become zeros in the stream's order. The
    /// descriptor is taken, also where this fails.
    ///
    /// # Safety
    /// The descriptor is that of a dedicated allocation of `allocated` bytes on the same card, and nobody else's; `bytes` are no more, and a multiple
    /// of 4. Nobody else writes to the memory while this device works on it.
    ///
    /// # Errors
    /// When the driver imports no such memory, or the device failed.
    unsafe fn import_exported(&self, fd: i32, allocated: u64, bytes: u64, label: &str) -> Result<Arc<dyn Buffer>>;

    /// Somebody else's memory as a buffer. Whatever fills it is in [`Sharing::stream`] already, or done. It is copied within the device where it
    /// does not begin at a multiple of 16 bytes or does not hold a multiple of 4.
    ///
    /// # Errors
    /// As [`super::Device::allocate`].
    fn import<'a>(&'a self, memory: DriverMemory, label: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>>;
}

/// Memory of a device's driver that belongs to somebody else, who is asked to keep it until this is dropped.
pub struct DriverMemory {
    address: u64,
    bytes: u64,
    _owner: Box<dyn Any + Send + Sync>,
}

impl DriverMemory {
    /// Describes `bytes` bytes from `address` on, which `owner` keeps alive.
    ///
    /// # Safety
    /// The memory is the device's that is asked to import it, and valid until `owner` is dropped. Until then nobody writes to it, except kernels
    /// that bind it for writing.
    #[must_use]
    pub unsafe fn new(address: u64, bytes: u64, owner: impl Any + Send + Sync) -> Self {
        Self { address, bytes, _owner: Box::new(owner) }
    }

    /// Returns the first byte, by the driver's address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl std::fmt::Debug for DriverMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DriverMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
