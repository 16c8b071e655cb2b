//! Batches that are kept to be run again.

use std::any::Any;

use super::{Bound, Command, DeviceInfo, MaybeSend, MaybeSync};
use crate::error::Error;

/// A batch that a device keeps, made by [`super::Device::record`]. Backends downcast it (`dyn Any`) to their own type.
pub trait Recording: Any + MaybeSend + MaybeSync {}

/// New contents for a uniform of a recorded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniformChange {
    /// The dispatch's place in the batch.
    pub command: usize,
    /// The binding's place in `Reflection::bindings`.
    pub binding: usize,
    /// The new contents, of the same length as the old ones.
    pub contents: Vec<u8>,
}

impl UniformChange {
    /// Changes a batch.
    #[doc(hidden)]
    pub fn apply(changes: Vec<Self>, batch: &mut [Command]) {
        for Self { command, binding, contents } in changes {
            if let Some(Command::Dispatch(dispatch)) = batch.get_mut(command)
                && let Some(Bound::Uniform(known)) = dispatch.bindings.get_mut(binding)
            {
                *known = contents;
                // It was said of the sizes that the uniform had.
                dispatch.stated = None;
            }
        }
    }
}

/// The recording of a device without its own form: the commands, which each replay submits again.
#[derive(Debug)]
pub struct CommandList(pub Vec<Command>);

impl Recording for CommandList {}

impl CommandList {
    /// Returns the list behind a recording, if it is one.
    #[must_use]
    pub fn of(recording: &dyn Recording) -> Option<&Self> {
        (recording as &dyn Any).downcast_ref()
    }
}

/// Returns the error for a recording of another device.
#[doc(hidden)]
pub fn foreign(device: &DeviceInfo) -> Error {
    Error::state("a replay", format!("the recording was made by another device than {}", device.name))
}
