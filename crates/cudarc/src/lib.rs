//! Tensors of [`cantus`] and slices of [`cudarc`] in the same memory of an NVIDIA GPU: nothing is copied, the host waits for nothing, and the two libraries'
//! streams wait for each other.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = CudaContext::new(0)?;
//! let stream = context.default_stream();
//! let engine = cantus_cudarc::engine(&context)?;
//!
//! let x = cantus_cudarc::tensor(&engine, stream.clone_htod(&[1.0_f32, 2.0])?, &[2])?; // owns the slice
//! let y = cantus::ops::Expr::from(&x).exp().eval()?;
//! let lent = cantus_cudarc::lend::<f32>(&y, &stream)?; // a `CudaSlice<f32>`, to read, copy and launch kernels with
//! let values = stream.clone_dtoh(&*lent)?;
//! # Ok(()) }
//! ```
//!
//! Both libraries hold the device's primary context. cudarc's types are of its version 0.19, so they are in this crate and not in `cantus`. cudarc loads
//! the driver at run time, as Cantus does; this crate compiles without CUDA.

use std::any::type_name;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, RangeBounds};
use std::sync::Arc;

use cantus::backend::DriverMemory;
use cantus::engine::{Builder, DriverView};
use cantus::error::DtypeError;
use cantus::{Element, Engine, Error, Fallback, Result, Tensor};
pub use cudarc;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError};

/// Opens an engine on the device of an app's context, which never falls back to another device.
///
/// # Errors
/// As [`on`] and [`Builder::build`].
pub fn engine(context: &Arc<CudaContext>) -> Result<Engine> {
    on(context, Engine::builder().fallback(Fallback::Never))
}

/// Opens an engine with these settings on the device of an app's context.
///
/// # Errors
/// [`Error::InvalidState`] if the context is not the device's primary one; else as [`Builder::build`].
pub fn on(context: &Arc<CudaContext>, builder: Builder) -> Result<Engine> {
    if !context.is_primary() {
        return Err(fault("the CUDA context", "it is not the device's primary one, which CudaContext::new gives"));
    }
    let engine = builder.backend("cuda").device(context.ordinal()).build()?;
    own_stream(&engine, context).map(|_| engine)
}

/// Creates a tensor that owns a slice, in its memory. It waits for the slice's stream, and for what cudarc knows to write the slice. The slice is dropped
/// after the last work that uses the tensor.
///
/// # Errors
/// [`Error::InvalidState`] if the slice is on another device than the engine, [`Error::Shape`] if the shape takes another number of elements or none,
/// [`Error::Device`] if the driver fails.
pub fn tensor<T: Element>(engine: &Engine, mut slice: CudaSlice<T>, shape: &[usize]) -> Result<Tensor> {
    // A kernel may write: it waits for what reads the slice, too.
    let own = own_stream(engine, slice.context())?;
    drop(slice.device_ptr_mut(&own));
    part(engine, &Arc::new(slice), .., shape)
}

/// Creates a tensor of a range of a slice's elements, in its memory. Where the range does not begin at a multiple of 16 bytes, or holds no multiple of 4,
/// it is copied within the device. The tensor shares the slice with whoever has it: no work writes to the range while both use it.
///
/// # Errors
/// As [`tensor`], and [`Error::Index`] for a range beyond the slice.
pub fn part<T: Element>(
    engine: &Engine,
    slice: &Arc<CudaSlice<T>>,
    range: impl RangeBounds<usize>,
    shape: &[usize],
) -> Result<Tensor> {
    let what = format!("a CudaSlice<{}> of {} elements", type_name::<T>(), slice.len());
    let own = own_stream(engine, slice.context())?;
    let range = (range.start_bound().cloned(), range.end_bound().cloned());
    let view = slice.try_slice(range).ok_or_else(|| Error::index(what.clone(), "the range is beyond it"))?;
    own.join(slice.stream()).map_err(|error| failed(engine, &error))?;
    let bytes = (view.len() * size_of::<T>()) as u64;
    let (address, _accessed) = view.device_ptr(&own);
    let owner = Owned { slice: ManuallyDrop::new(slice.clone()) };
    // SAFETY: the memory is of the primary context of the engine's device, as was checked, and the owner keeps it. Only kernels write to it.
    let memory = unsafe { DriverMemory::new(address, bytes, owner) };
    pollster::block_on(engine.tensor_from_driver_memory_async(T::DTYPE, shape, memory))
}

/// A slice that may be dropped on any thread: freeing it needs its context.
struct Owned<T> {
    slice: ManuallyDrop<Arc<CudaSlice<T>>>,
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // Where this fails, the context is gone, and the memory with it.
        let _ = self.slice.context().bind_to_thread();
        // SAFETY: it is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.slice) };
    }
}

/// The memory of a tensor as cudarc's slice, lent to a stream. It derefs to a [`CudaSlice`], which is not freed at the end: the memory is the tensor's, and
/// the tensor's device then waits for the stream.
#[derive(Debug)]
pub struct Lent<T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    stream: Arc<CudaStream>,
    own: Arc<CudaStream>,
    _view: DriverView,
}

/// Lends a tensor to a stream of the same device, which waits for all work recorded so far. While it is lent, record no work that writes to the tensor; what
/// the app writes to the slice is in the tensor afterwards.
///
/// # Errors
/// [`Error::Dtype`] if the tensor has another dtype, [`Error::InvalidState`] if it has no elements or is on another device than the stream; [`Error::Device`] if the driver fails; else
/// as [`Tensor::to_bytes`].
pub fn lend<T: Element>(tensor: &Tensor, stream: &Arc<CudaStream>) -> Result<Lent<T>> {
    let (own, device) = before::<T>(tensor, stream)?;
    // SAFETY: `before` took it from this stream, which is of the tensor's device, and lives.
    let view = pollster::block_on(unsafe { tensor.driver_view_async(device) })?;
    lent(tensor, stream, own, view)
}

/// [`lend`], as a future.
///
/// # Errors
/// As [`lend`].
pub async fn lend_async<T: Element>(tensor: &Tensor, stream: &Arc<CudaStream>) -> Result<Lent<T>> {
    let (own, device) = before::<T>(tensor, stream)?;
    // SAFETY: as in `lend`.
    let view = unsafe { tensor.driver_view_async(device) }.await?;
    lent(tensor, stream, own, view)
}

/// The stream of the tensor's device, and its handle.
fn before<T: Element>(tensor: &Tensor, stream: &CudaStream) -> Result<(Arc<CudaStream>, usize)> {
    if tensor.dtype() != T::DTYPE {
        let (found, wanted) = (tensor.dtype().name(), T::DTYPE.name());
        return Err(DtypeError::Mismatch { what: format!("the tensor {}", tensor.label()), found, wanted }.into());
    }
    let own = own_stream(&tensor.engine(), stream.context())?;
    let handle = own.cu_stream() as usize;
    Ok((own, handle))
}

fn lent<T: Element>(
    tensor: &Tensor,
    stream: &Arc<CudaStream>,
    own: Arc<CudaStream>,
    view: Option<DriverView>,
) -> Result<Lent<T>> {
    let reason = "it has no elements, or is on another device than the engine's first one";
    let view = view.ok_or_else(|| fault(&format!("the tensor {}", tensor.label()), reason))?;
    let failed = |error: DriverError| failed(&tensor.engine(), &error);
    // What cudarc unwraps: two events of a slice.
    stream.context().new_event(None).map_err(failed)?;
    // SAFETY: so many elements are there, which the view keeps, and which are values: the tensor's dtype is that of `T`. It is never dropped as a slice.
    let slice = ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<T>(view.address(), tensor.len()) });
    let mut lent = Lent { slice, stream: stream.clone(), own, _view: view };
    // This stream waits, and any other one on which the app uses the slice.
    stream.join(&lent.own).map_err(failed)?;
    let own = lent.own.clone();
    drop(lent.slice.device_ptr_mut(&own));
    Ok(lent)
}

impl<T> Deref for Lent<T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut CudaSlice<T> {
        &mut self.slice
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: it is not used after this.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        // Its stream waits for the others that use it.
        slice.leak();
        // A device that failed has no use for the memory.
        let _ = self.own.join(&self.stream);
    }
}

/// The stream of the engine's device, if that is the context's.
fn own_stream(engine: &Engine, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
    let what = "the CUDA context";
    let own = engine.driver_stream().filter(|_| engine.selected().device.backend == "cuda");
    let own =
        own.ok_or_else(|| fault(what, "the engine is not on a device of CUDA (open it by cantus_cudarc::engine)"))?;
    if !context.is_primary() {
        return Err(fault(what, "it is not the device's primary one, which CudaContext::new gives"));
    }
    if usize::try_from(own.device) != Ok(context.ordinal()) {
        let reason = format!("it is of device {}, and the engine is on {}", context.ordinal(), own.device);
        return Err(fault(what, &reason));
    }
    // SAFETY: it is the stream of that device, and lives as long as the engine and its tensors. Each use below orders the two libraries' work.
    Ok(unsafe { context.wrap_borrowed_stream(own.stream as cudarc::driver::sys::CUstream) })
}

fn fault(what: &str, reason: &str) -> Error {
    Error::state(what, reason)
}

fn failed(engine: &Engine, error: &DriverError) -> Error {
    Error::Device {
        device: engine.selected().device.name.clone(),
        action: "ordering its stream and cudarc's".to_owned(),
        message: error.to_string(),
    }
}
