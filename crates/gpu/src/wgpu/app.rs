//! Resources of the app's wgpu device, on a device that shares it.

use std::any::Any;
use std::sync::Arc;

use super::device::WgpuDevice;
use super::errors::{Scopes, one_line};
use super::memory::{Memory, NEEDED, WgpuBuffer};
use super::shared::{RawBuffer, Shared};
use crate::backend::{Buffer, Device, padded};
use crate::error::{Error, Result};

/// Makes a buffer of the app's known to a device that shares the app's. Its [`Buffer::bytes`] are those given, from its beginning.
///
/// # Errors
/// [`Error::InvalidState`] for a device that is not the app's, a buffer of another device, and a buffer without the usages that a tensor needs;
/// [`Error::Shape`] for a buffer that is smaller.
pub async fn import_buffer(
    device: &dyn Device,
    buffer: wgpu::Buffer,
    bytes: u64,
    label: &str,
) -> Result<Arc<dyn Buffer>> {
    let refused = |reason: String| Error::state("the wgpu buffer", reason);
    let shared = of_the_app(device).map_err(refused)?;
    if !buffer.usage().contains(NEEDED) {
        let reason = format!(
            "it has the usages {:?}, and a tensor needs {NEEDED:?} (name them when you create it)",
            buffer.usage()
        );
        return Err(refused(reason));
    }
    // Kernels see whole words.
    if padded(bytes) > buffer.size() {
        let reason = format!("its {} bytes are less than the {} of {label}", buffer.size(), padded(bytes));
        return Err(Error::shape("the wgpu buffer", reason));
    }
    let barrier = wgpu::wgt::BufferTransition { buffer: &buffer, state: wgpu::BufferUses::COPY_SRC };
    let other = recorded(shared, |encoder| encoder.transition_resources(std::iter::once(barrier), std::iter::empty()));
    if let Some(reason) = other.await? {
        return Err(refused(reason));
    }
    let memory = Memory::Buffer(RawBuffer { buffer, id: shared.new_id() }, None);
    Ok(Arc::new(WgpuBuffer { shared: shared.clone(), memory, label: label.into(), bytes }))
}

/// Returns what a device that shares the app's is made of.
///
/// # Errors
/// In words, for another device.
pub(super) fn of_the_app(device: &dyn Device) -> Result<&Arc<Shared>, String> {
    let own = (device as &dyn Any).downcast_ref::<WgpuDevice>().filter(|own| !own.shared.owned);
    own.map(|own| &own.shared).ok_or_else(|| {
        format!("{} is not the app's wgpu device (make the engine by Engine::from_wgpu)", device.info().name)
    })
}

/// Records a barrier that is not submitted: wgpu checks whose resource it is. Returns a reason if it is another device's.
pub(super) async fn recorded(
    shared: &Shared,
    record: impl FnOnce(&mut wgpu::CommandEncoder),
) -> Result<Option<String>> {
    shared.check_alive()?;
    shared.health.check()?;
    let caught = shared.contained("importing", || {
        let _turn = shared.turn();
        let scopes = Scopes::open(&shared.device);
        let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        record(&mut encoder);
        drop(encoder.finish());
        scopes.close()
    })?;
    let told = |error: &wgpu::Error| format!("it is not of the device that the engine shares ({})", one_line(error));
    Ok(caught.first().await.map(|error| told(&error)))
}
