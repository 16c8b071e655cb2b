//! Batches that are kept to be run again.

use std::any::Any;

use super::{Command, DeviceInfo, MaybeSend, MaybeSync};
use crate::error::Error;

/// A batch that a device keeps, made by [`super::Device::record`]. Backends downcast it (`dyn Any`) to their own type.
pub trait Recording: Any + MaybeSend + MaybeSync {}

/// The recording of a device without a way of its own: the commands, submitted again at each replay.
#[derive(Debug)]
pub struct CommandList(pub Vec<Command>);

impl Recording for CommandList {}

impl CommandList {
    /// The list behind a recording, if it is one.
    #[must_use]
    pub fn of(recording: &dyn Recording) -> Option<&Self> {
        (recording as &dyn Any).downcast_ref()
    }
}

/// The error for a recording of another device.
pub(crate) fn foreign(device: &DeviceInfo) -> Error {
    Error::InvalidInput {
        what: "a replay".to_owned(),
        reason: format!("the recording was made by another device than {}", device.name),
    }
}
