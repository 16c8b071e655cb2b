//! Tensors on their way from one device to another.
//!
//! Work is recorded, and host contents are written, while [`Moves`] is shared; a tensor changes its place while it is not. A move that finds
//! that the tensor was written meanwhile begins again, so no write is lost; one that finds it lost ends.

use crate::backend::BoxFuture;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::event::EventKind;
use super::memory_state::MemoryState;
use super::slot::upload;
use super::tensor::Tensor;
use super::tracker::Place;
use super::{Shared, Slot};
use crate::backend::{Buffer, Contents};
use crate::error::{Error, Result};

/// The number of attempts after which a move or a dispatch gives up, because other threads keep moving or writing its tensors.
pub(super) const ATTEMPTS: usize = 64;

/// Keeps tensors where they are while commands that name their places are recorded.
#[derive(Default)]
pub(super) struct Moves(RwLock<()>);

impl Moves {
    /// Keeps all tensors from moving while the guard lives.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn contended(tensor: &str) -> Error {
    Error::state(
        format!("the tensor {tensor}"),
        "other threads keep writing it or moving it between devices (let one device do the work, or one thread at a time)",
    )
}

/// Brings a tensor to a device, contents and all. The original stays where it is until the copy is complete.
pub(super) async fn relocate(shared: &Arc<Shared>, tensor: &Tensor, target: &Arc<Slot>) -> Result<()> {
    for _ in 0..ATTEMPTS {
        // Earlier writes are recorded, and the copy waits for them. Later writes change the version.
        let (place, version) = {
            let _still = shared.moves.begin();
            (tensor.live_place()?, tensor.version())
        };
        if Arc::ptr_eq(&place.slot, target) {
            return Ok(());
        }
        shared.check_computed(tensor)?;
        let buffer = copied(shared, tensor, &place, target).await?;
        let _still = shared.moves.begin();
        let now = tensor.live_place()?;
        if tensor.version() != version || !Arc::ptr_eq(&now.state, &place.state) {
            continue;
        }
        let message =
            format!("the tensor {} was moved from {} to {}", tensor.label(), place.slot.name(), target.name());
        tensor.set_place(Place {
            slot: target.clone(),
            buffer,
            state: MemoryState::copied(tensor.shared_label(), &place.state),
            released: None,
        });
        shared.events.push(EventKind::Moved, target.name(), &message);
        return Ok(());
    }
    Err(contended(tensor.label()))
}

/// The contents, in new memory of another device, after all work recorded so far.
pub(super) async fn copied(
    shared: &Arc<Shared>,
    tensor: &Tensor,
    place: &Place,
    target: &Arc<Slot>,
) -> Result<Option<Arc<dyn Buffer>>> {
    shared.spoil_trace();
    shared.settle(&place.slot).await;
    if let Some(cause) = place.slot.failure() {
        place.state.lose(&Arc::new(cause));
    }
    // Work in flight may have failed.
    place.check(tensor.label())?;
    let Some(source) = &place.buffer else { return Ok(None) };
    let padded = tensor.byte_len().next_multiple_of(4);
    let buffer = target.device().allocate(padded, Contents::Overwritten, tensor.label()).await?;
    match target.device().copy_from(&buffer, &**place.slot.device(), source, padded) {
        Some(copy) => copy.await?,
        None => {
            let mut bytes = tensor.host_room()?;
            let read = place.slot.device().read(source, 0, &mut bytes).await;
            shared.note_outcome(&place.slot, &read);
            read?;
            upload(target, &buffer, &bytes).await?;
        }
    }
    Ok(Some(buffer))
}

impl Tensor {
    /// Returns a copy on another device of the engine, opened if needed. `device` is a backend's name (`"cpu"`), a backend's name and an index
    /// (`"vulkan:1"`), or a device's whole name. The tensor itself stays where it is.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0])?;
    /// let copy = x.to_device("cpu")?;
    /// x.write(&[0.0_f32, 0.0])?;
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the engine has no such device, [`Error::TensorLost`], [`Error::OutOfMemory`], and what the devices report.
    pub fn to_device_async<'a>(&'a self, device: &'a str) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let shared = &self.inner.engine;
            shared.check_computed(self)?;
            let target = shared.find(device).await?;
            let place = self.live_place()?;
            if shared.current_capture().is_some() {
                return Err(Error::state(
                    format!("a copy of the tensor {}", self.label()),
                    "a graph runs on one device and does not copy between them (copy before the capture)",
                ));
            }
            let buffer = copied(shared, self, &place, &target).await?;
            let label = self.shared_label().clone();
            let place =
                Place { slot: target, buffer, state: MemoryState::copied(&label, &place.state), released: None };
            let tensor = Self::assemble(shared.clone(), label, self.shape(), self.dtype(), place);
            shared.note_made(&tensor);
            Ok(tensor)
        })
    }

    /// [`Tensor::to_device_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn to_device(&self, device: &str) -> Result<Self> {
        crate::engine::blocking::block_on(self.to_device_async(device))
    }
}
