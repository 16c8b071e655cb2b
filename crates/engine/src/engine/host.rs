//! Memory that a tensor shares with the rest of the process: seen from outside, or brought in.

use crate::backend::BoxFuture;
use std::ptr::NonNull;
use std::sync::Arc;

use super::memory_state::MemoryState;
use super::tensor::Tensor;
use super::tracker::Place;
use super::{Engine, Slot};
use crate::backend::{Buffer, HostMemory};
use crate::error::Result;
use crate::tensor::{DType, check_bytes};

/// The memory of a tensor that lies on the host, contiguous and row-major. It is kept as long as this is.
#[derive(Debug, Clone)]
pub struct HostView {
    start: NonNull<u8>,
    bytes: usize,
    _buffer: Arc<dyn Buffer>,
}

// SAFETY: the buffer is `Send` and `Sync`, and the address is one within it.
unsafe impl Send for HostView {}
// SAFETY: `&HostView` gives out only the address, which only `unsafe` code follows.
unsafe impl Sync for HostView {}

impl HostView {
    /// Returns the first byte. What the tensor's contents are now can be read there, until work that writes the tensor is recorded.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Returns the size of the contents.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Tensor {
    /// Returns its memory, where it is on a device that computes in the host's (the CPU), after all work recorded so far; `None` on other devices,
    /// and without elements. Nothing is copied: other libraries can read the tensor in place.
    ///
    /// # Errors
    /// As [`Tensor::to_bytes_async`].
    pub fn host_view_async(&self) -> BoxFuture<'_, Result<Option<HostView>>> {
        Box::pin(async move {
            let shared = &self.inner.engine;
            shared.check_computed(self)?;
            let place = self.settled(shared).await?;
            shared.verify(&place.state).await?;
            let Some(buffer) = place.buffer else { return Ok(None) };
            let device = place.slot.device();
            let bytes = usize::try_from(self.byte_len()).unwrap_or(0);
            let Some(start) = device.host_address(&buffer) else { return Ok(None) };
            self.inner.tracker.note_shared();
            let view = HostView { start, bytes, _buffer: buffer };
            device.finish().await?;
            self.live_place()?;
            Ok(Some(view))
        })
    }

    /// [`Tensor::host_view_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let view = engine.tensor(&[1.0_f32, 2.0])?.host_view()?;
    /// assert_eq!(view.map(|view| view.bytes()), Some(8)); // the CPU computes in the host's memory
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn host_view(&self) -> Result<Option<HostView>> {
        crate::engine::blocking::block_on(self.host_view_async())
    }
}

impl Engine {
    /// Creates a tensor in memory of the host's, contiguous and row-major. On the CPU nothing is copied where the memory begins at a multiple of 16
    /// bytes and holds a multiple of 4; else its contents are copied and the memory is given back at once. Nobody may write to the memory while
    /// the tensor lives; a kernel that binds the tensor for writing writes there.
    ///
    /// # Errors
    /// [`Error::Shape`] when the memory has another size than the shape takes, else as [`Engine::tensor_async`].
    pub fn tensor_from_host_memory_async<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        memory: HostMemory,
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            check_bytes(shape, dtype, memory.bytes())?;
            self.shared.spoil_trace();
            let slot: Arc<Slot> = self.shared.primary();
            match slot.device().adopt(memory) {
                Ok(buffer) => {
                    let label = super::create::unnamed(dtype, shape);
                    let place = Place { slot, buffer: Some(buffer), state: MemoryState::new(&label), released: None };
                    let tensor = Tensor::assemble(self.shared.clone(), label, shape, dtype, place);
                    tensor.inner.tracker.note_shared();
                    self.shared.note_made(&tensor);
                    Ok(tensor)
                }
                Err(memory) => {
                    let bytes = usize::try_from(memory.bytes()).unwrap_or(0);
                    // SAFETY: whoever made it promised that its bytes can be read while it lives.
                    let contents = unsafe { std::slice::from_raw_parts(memory.start().as_ptr(), bytes) };
                    self.tensor_from_bytes_async(dtype, shape, contents).await
                }
            }
        })
    }

    /// [`Engine::tensor_from_host_memory_async`], blocking.
    ///
    /// ```
    /// use std::ptr::NonNull;
    /// use cantus::backend::HostMemory;
    ///
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let values = vec![1.0_f32; 1000];
    /// let start = NonNull::from(values.as_slice()).cast();
    /// // SAFETY: the vector is kept with the tensor, and nobody writes to it.
    /// let memory = unsafe { HostMemory::new(start, 4000, values) };
    /// let x = engine.tensor_from_host_memory(cantus::DType::F32, &[1000], memory)?;
    /// assert_eq!(x.sum(&[], false).eval()?.item::<f32>()?, 1000.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tensor_from_host_memory(&self, dtype: DType, shape: &[usize], memory: HostMemory) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_from_host_memory_async(dtype, shape, memory))
    }
}
