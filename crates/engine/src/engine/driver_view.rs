//! Memory that a tensor shares with other libraries that use its device's driver (CUDA's, HIP's): seen by them, or brought in. `cantus-cudarc`, DLPack in
//! Python and apps with their own wgpu device call it. A tensor that was ever lent or brought in counts as shared for good (`Tracker::note_shared`): its
//! checks of indices are made anew each time. Order between two streams is the caller's, except where an item says who waits.

use crate::backend::BoxFuture;
use std::sync::Arc;

use super::memory_state::MemoryState;
use super::tensor::Tensor;
use super::tracker::Place;
use super::{Engine, Slot};
use crate::backend::{Buffer, DriverMemory};
use crate::error::{Error, Result};
#[cfg(feature = "wgpu")]
use crate::tensor::byte_count;
use crate::tensor::{DType, check_bytes};

/// A device by its driver's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverStream {
    /// The driver's number of the device.
    pub device: i32,
    /// The handle of the stream that all of the device's work goes into.
    pub stream: usize,
}

/// The memory of a tensor on a device of CUDA or HIP, contiguous and row-major, lent to a stream. It is kept as long as this is; then the device
/// waits for the stream before it uses the memory for something else.
pub struct DriverView {
    address: u64,
    bytes: u64,
    own: DriverStream,
    stream: usize,
    slot: Arc<Slot>,
    _buffer: Arc<dyn Buffer>,
}

impl DriverView {
    /// Returns the first byte, by the driver's address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size of the contents.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the driver's number of the device.
    #[must_use]
    pub fn device(&self) -> i32 {
        self.own.device
    }
}

impl std::fmt::Debug for DriverView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DriverView")
            .field("bytes", &self.bytes)
            .field("device", &self.own.device)
            .finish_non_exhaustive()
    }
}

impl Drop for DriverView {
    fn drop(&mut self) {
        if self.stream != self.own.stream
            && let Some(sharing) = self.slot.device().sharing()
        {
            // A device that failed has no use for the memory.
            let _ = sharing.take_back(self.stream);
        }
    }
}

impl Tensor {
    /// Returns its memory for another library that uses the same driver, on a device of CUDA or HIP; `None` on other devices, and without elements.
    /// `stream` waits for all work recorded so far: a handle of the driver's, or its number for a default stream (CUDA: 1 and 2; HIP: 0 and 2).
    /// Nothing waits for the device's own stream.
    ///
    /// # Safety
    /// The stream is one of the tensor's device, and lives until this ends; or it is the number of a default stream. The handle is given to the driver
    /// as it is.
    ///
    /// # Errors
    /// As [`Tensor::to_bytes_async`].
    pub async unsafe fn driver_view_async(&self, stream: usize) -> Result<Option<DriverView>> {
        let shared = &self.inner.engine;
        shared.check_computed(self)?;
        let Place { slot, buffer: Some(buffer), state, .. } = self.settled(shared).await? else { return Ok(None) };
        shared.verify(&state).await?;
        let device = slot.device().clone();
        let Some(sharing) = device.sharing() else { return Ok(None) };
        let Some(address) = sharing.address(&buffer) else { return Ok(None) };
        let own = DriverStream { device: sharing.ordinal(), stream: sharing.stream() };
        if stream != own.stream {
            // SAFETY: the stream lives, and is the device's (this function's contract).
            unsafe { sharing.lend(stream)? };
        }
        self.inner.tracker.note_shared();
        let view = DriverView { address, bytes: self.byte_len(), own, stream, slot, _buffer: buffer };
        self.live_place()?;
        Ok(Some(view))
    }
}

impl Engine {
    /// Returns the selected device by its driver's words, where that is CUDA's or HIP's. Whoever gives it memory to import lets this stream wait for
    /// what fills the memory.
    #[must_use]
    pub fn driver_stream(&self) -> Option<DriverStream> {
        let slot = self.shared.primary();
        let sharing = slot.device().sharing()?;
        Some(DriverStream { device: sharing.ordinal(), stream: sharing.stream() })
    }

    /// Creates a tensor in memory of another library's on the same device of CUDA or HIP, contiguous and row-major. Nothing is copied where it begins
    /// at a multiple of 16 bytes and holds a multiple of 4. What fills it is done, or in the stream of [`Engine::driver_stream`]. Nobody may write to
    /// it while the tensor lives; a kernel that binds the tensor for writing writes there.
    ///
    /// # Errors
    /// [`Error::Shape`] when the memory has another size than the shape takes, [`Error::InvalidState`] on other devices, else as
    /// [`Engine::tensor_async`].
    pub fn tensor_from_driver_memory_async<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        memory: DriverMemory,
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            check_bytes(shape, dtype, memory.bytes())?;
            let label = super::create::unnamed(dtype, shape);
            if memory.bytes() == 0 {
                return Err(Error::shape(format!("the shape {shape:?}"), "it has no elements"));
            }
            self.shared.spoil_trace();
            let slot = self.shared.primary();
            let device = slot.device().clone();
            let Some(sharing) = device.sharing() else {
                return Err(Error::state(
                    label.to_string(),
                    format!("{} cannot import a driver's memory: copy it to the host", device.info().name),
                ));
            };
            let buffer = sharing.import(memory, &label).await?;
            Ok(self.tensor_over(slot, buffer, (label, dtype, shape)))
        })
    }

    /// Creates a tensor in an app's own buffer, from its first byte, on an engine that shares the app's wgpu device ([`Engine::from_wgpu`]). Nothing is
    /// copied: kernels that bind the tensor for writing write there, and the app draws from it. The buffer needs the usages `STORAGE`, `COPY_SRC` and
    /// `COPY_DST`, and `UNIFORM` to be bound as a uniform. It may be larger than the tensor.
    ///
    /// Work runs in the order of submissions to the queue: submit what fills the buffer before, and call [`Engine::flush`] before what reads it. It must
    /// not be mapped meanwhile.
    ///
    /// ```no_run
    /// # fn example(device: wgpu::Device, queue: wgpu::Queue, vertices: &wgpu::Buffer, kernel: &cantus::Kernel) -> cantus::Result<()> {
    /// let engine = cantus::Engine::from_wgpu(device, queue);
    /// let points = engine.tensor_from_wgpu(vertices, cantus::DType::F32, &[10_000, 4])?;
    /// engine.dispatch(kernel).bind("points", &points).invocations(10_000).run()?;
    /// engine.flush(); // the app's next pass draws what was written
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a shape without elements and a buffer that is too small; [`Error::InvalidState`] when the engine shares no wgpu device,
    /// the buffer is another device's, or it lacks a usage; [`Error::DeviceLost`]. A buffer of another `wgpu::Instance` cannot be told from the engine's,
    /// and must not be given.
    #[cfg(feature = "wgpu")]
    pub fn tensor_from_wgpu_async<'a>(
        &'a self,
        buffer: &'a wgpu::Buffer,
        dtype: DType,
        shape: &'a [usize],
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let bytes = byte_count(shape, dtype)?;
            let label = super::create::unnamed(dtype, shape);
            if bytes == 0 {
                let reason = "it has no elements: a tensor in a buffer has at least one".to_owned();
                return Err(Error::shape(format!("the shape {shape:?}"), reason));
            }
            self.shared.spoil_trace();
            let slot = self.shared.primary();
            let device = slot.device().clone();
            let own = crate::backend::wgpu::import_buffer(&*device, buffer.clone(), bytes, &label).await?;
            Ok(self.tensor_over(slot, own, (label, dtype, shape)))
        })
    }

    /// [`Engine::tensor_from_wgpu_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
    pub fn tensor_from_wgpu(&self, buffer: &wgpu::Buffer, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_from_wgpu_async(buffer, dtype, shape))
    }

    fn tensor_over(
        &self,
        slot: Arc<Slot>,
        buffer: Arc<dyn Buffer>,
        (label, dtype, shape): (Arc<str>, DType, &[usize]),
    ) -> Tensor {
        let place = Place { slot, buffer: Some(buffer), state: MemoryState::new(&label), released: None };
        let tensor = Tensor::assemble(self.shared.clone(), label, shape, dtype, place);
        tensor.inner.tracker.note_shared();
        self.shared.note_made(&tensor);
        tensor
    }

    /// Creates a tensor of zeros on a device of CUDA or HIP, and a wgpu buffer over the same memory, for an app that has a wgpu device of its own on
    /// that card, by Vulkan on Linux: what one writes the other reads, and nothing is copied. Either may be dropped first. The buffer's usages are
    /// those of [`raw_buffer`](crate::backend::wgpu::raw_buffer). Buffers that wgpu allocated itself cannot be shared.
    ///
    /// Nothing orders the two. Call [`Engine::finish`] before the buffer is used, the first time too, and wait for the app's own work on the buffer
    /// before the tensor is used:
    ///
    /// ```no_run
    /// # async fn example(device: &wgpu::Device, queue: &wgpu::Queue, draw: wgpu::CommandBuffer) -> cantus::Result<()> {
    /// let engine = cantus::Engine::builder().backend("cuda").build()?;
    /// let (tensor, buffer) = engine.tensor_shared_with_wgpu_async(cantus::DType::F32, &[1024, 1024], device).await?;
    /// // Dispatches that bind `tensor` for writing.
    /// engine.finish()?;
    /// // `draw` reads `buffer`.
    /// let drawn = queue.submit([draw]);
    /// device.poll(wgpu::PollType::Wait { submission_index: Some(drawn), timeout: None }).expect("the app's device works");
    /// # drop((tensor, buffer));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A tensor that moves to another device of the engine leaves the memory.
    ///
    /// # Errors
    /// [`Error::Shape`] for a shape without elements or one whose bytes are no multiple of 4, [`Error::InvalidState`] when the selected device
    /// is not CUDA's or HIP's, or when the wgpu device is not Vulkan's, is another card (by its UUID), or exports no memory; else as
    /// [`Engine::tensor_async`].
    #[cfg(all(feature = "wgpu", feature = "vulkan", target_os = "linux"))]
    pub fn tensor_shared_with_wgpu_async<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        device: &'a wgpu::Device,
    ) -> BoxFuture<'a, Result<(Tensor, wgpu::Buffer)>> {
        Box::pin(async move {
            let bytes = byte_count(shape, dtype)?;
            if bytes == 0 || !bytes.is_multiple_of(4) {
                let reason =
                    format!("it has {bytes} bytes of {dtype}; shared memory takes a multiple of 4, at least 4");
                return Err(Error::shape(format!("the shape {shape:?}"), reason));
            }
            self.shared.spoil_trace();
            let slot = self.shared.primary();
            let own = slot.device().clone();
            let Some(sharing) = own.sharing() else {
                return Err(Error::state(
                    "the engine's device",
                    format!("{} is not a device of CUDA or HIP, which share memory with Vulkan", own.info().name),
                ));
            };
            let label = super::create::unnamed(dtype, shape);
            let Some(card) = own.info().identity.uuid else {
                let reason = format!(
                    "{} does not tell its UUID, by which the wgpu device is compared: copy tensors",
                    own.info().name
                );
                return Err(Error::state("the engine's device", reason));
            };
            let exported = crate::backend::wgpu::export(device, bytes, &label, card).await?;
            let fd = std::os::fd::IntoRawFd::into_raw_fd(exported.fd);
            // SAFETY: it was just exported on the card with this UUID. The contract above orders the accesses.
            let buffer = unsafe { sharing.import_exported(fd, exported.allocated, bytes, &label)? };
            Ok((self.tensor_over(slot, buffer, (label, dtype, shape)), exported.buffer))
        })
    }
}
