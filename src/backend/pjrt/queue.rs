//! Batches: programs are started in their order, and the plugin runs them in that of the values that they read.

use std::any::Any;
use std::sync::{Arc, PoisonError};

use super::abi::{self, Fault};
use super::memory::{Held, PjrtBuffer};
use super::program::PjrtProgram;
use super::shared::Shared;
use crate::backend::wait::Awaited;
use crate::backend::{Bound, Buffer, Command, Dispatch, Refusal};
use crate::error::{Error, Result};

impl Shared {
    /// A buffer as one of this device's.
    pub(super) fn own<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a PjrtBuffer> {
        let found = (buffer as &dyn Any).downcast_ref::<PjrtBuffer>();
        found.filter(|buffer| std::ptr::eq(&raw const *buffer.shared, self)).ok_or_else(|| Error::InvalidInput {
            what: what.to_owned(),
            reason: format!("its memory is on another device than {}", self.info.name),
        })
    }

    /// Starts all commands; those that fail are named, the others run.
    pub(super) fn submit(&self, batch: &[Command]) -> std::result::Result<(), Refusal> {
        let mut failed = Vec::new();
        for (place, command) in batch.iter().enumerate() {
            let done = self.health.check().and_then(|()| command.check_cancelled()).and_then(|()| match command {
                Command::Dispatch(dispatch) => self.dispatch(dispatch),
                Command::Copy { source, source_offset, target, target_offset, bytes } => {
                    self.copy((&**source, *source_offset), (&**target, *target_offset), *bytes)
                }
            });
            if let Err(error) = done {
                failed.push((place, error));
            }
        }
        Refusal::all_but(failed)
    }

    fn dispatch(&self, dispatch: &Dispatch) -> Result<()> {
        let label = &*dispatch.label;
        let found = (&*dispatch.program as &dyn Any).downcast_ref::<PjrtProgram>();
        let program = found.filter(|program| program.is_of(self)).ok_or_else(|| Error::InvalidInput {
            what: label.to_owned(),
            reason: format!("its program was compiled for another device than {}", self.info.name),
        })?;
        let mut buffers = Vec::new();
        for bound in &dispatch.bindings {
            match bound {
                Bound::Buffer { buffer, offset: 0, .. } => buffers.push(self.own(&**buffer, label)?),
                // Values are whole: a part of one would be another value.
                _ => {
                    return Err(Error::InvalidInput {
                        what: label.to_owned(),
                        reason: "a graph binds whole tensors".to_owned(),
                    });
                }
            }
        }
        let Some((output, inputs)) = buffers.split_last().filter(|(_, inputs)| inputs.len() == program.inputs.len())
        else {
            let reason = format!("it takes {} bindings, there are {}", program.inputs.len() + 1, buffers.len());
            return Err(Error::InvalidInput { what: label.to_owned(), reason });
        };
        let fault = |fault: Fault| self.error(&fault, &format!("running {label}"), output.bytes());
        let values = inputs.iter().zip(&program.inputs).map(|(buffer, (dtype, shape))| buffer.value(*dtype, shape));
        let values = values.collect::<std::result::Result<Vec<_>, _>>().map_err(fault)?;
        let (result, event) = program.run(self, &values).map_err(fault)?;
        *output.held() = Held::Device(result);
        if event.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = event;
        }
        Ok(())
    }

    /// By way of the host: a value's part is no value.
    fn copy(&self, (source, from): (&dyn Buffer, u64), (target, to): (&dyn Buffer, u64), bytes: u64) -> Result<()> {
        let (source, target) = (self.own(source, "a copy")?, self.own(target, "a copy")?);
        let read = |buffer: &PjrtBuffer| self.now(buffer);
        let (taken, mut whole) = (read(source)?, read(target)?);
        let part = |start: u64| usize::try_from(start).ok().zip(usize::try_from(start + bytes).ok());
        let outside =
            || Error::InvalidInput { what: "a copy".to_owned(), reason: "it goes beyond the memory's end".to_owned() };
        let from = part(from).and_then(|(start, end)| taken.get(start..end)).ok_or_else(outside)?;
        let to = part(to).and_then(|(start, end)| whole.get_mut(start..end)).ok_or_else(outside)?;
        to.copy_from_slice(from);
        *target.held() = Held::Host(Arc::new(whole));
        Ok(())
    }

    /// A buffer's bytes, waited for here.
    fn now(&self, buffer: &PjrtBuffer) -> Result<Vec<u8>> {
        let fault = |fault: Fault| self.error(&fault, &format!("reading {}", buffer.label), buffer.bytes());
        let held = buffer.held().clone();
        let mut bytes = match held {
            Held::Zeros => Vec::new(),
            Held::Host(bytes) => bytes.to_vec(),
            Held::Device(value) => {
                let mut bytes = vec![0; value.shape.iter().product::<usize>() * value.dtype.bytes()];
                let event = self.fetch(&value, &mut bytes).map_err(fault)?;
                event.block().map_err(fault)?;
                bytes
            }
        };
        bytes.resize(usize::try_from(crate::backend::padded(buffer.bytes())).unwrap_or(usize::MAX), 0);
        Ok(bytes)
    }

    pub(super) async fn finish(&self) -> Result<()> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last {
            Some(event) => self.wait(event, "finishing").await,
            None => self.health.check(),
        }
    }
}

/// Whether a fault says that the device cannot do it, and not that it failed.
pub(super) fn is_missing(fault: &Fault) -> bool {
    matches!(fault.code, abi::UNIMPLEMENTED | abi::INVALID_ARGUMENT)
}
