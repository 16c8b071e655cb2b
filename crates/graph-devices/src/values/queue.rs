//! Batches: programs are started in their order, and the device runs them in that of the values that they read.

use std::any::Any;
use std::sync::{Arc, PoisonError};

use super::memory::{Held, ValueBuffer};
use super::shared::{Compiled, OnDevice, Shared};
use super::target::{Fault, FaultKind, Target};
use crate::backend::{Bound, Buffer, Command, Dispatch, Refusal, padded};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A buffer, as the engine and as this device knows it.
type Memory<'a, T> = (&'a Arc<dyn Buffer>, &'a ValueBuffer<T>);

/// A dispatch that was looked at.
#[doc(hidden)]
pub struct Resolved<'a, T: Target> {
    pub(super) program: &'a Compiled<T>,
    pub(super) inputs: Vec<Memory<'a, T>>,
    pub(super) output: Memory<'a, T>,
}

impl<T: Target> Shared<T> {
    /// A buffer as one of this device's.
    pub(super) fn own<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a ValueBuffer<T>> {
        let found = (buffer as &dyn Any).downcast_ref::<ValueBuffer<T>>();
        found
            .filter(|buffer| std::ptr::eq(&raw const *buffer.shared, self))
            .ok_or_else(|| Error::state(what, format!("its memory is on another device than {}", self.info.name)))
    }

    /// Starts all commands; those that fail are named, the others run.
    pub(super) fn submit(&self, batch: Vec<Command>) -> std::result::Result<(), Refusal> {
        let mut failed = Vec::new();
        // Each command goes behind its turn: what it alone still held is nobody's then.
        for (place, command) in batch.into_iter().enumerate() {
            let done = self.health.check().and_then(|()| command.check_cancelled()).and_then(|()| match &command {
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

    /// A dispatch's program, with the memory of its inputs and of its result.
    pub(super) fn resolve<'a>(&self, dispatch: &'a Dispatch) -> Result<Resolved<'a, T>> {
        let label = &*dispatch.label;
        let found = (&*dispatch.program as &dyn Any).downcast_ref::<Compiled<T>>();
        let program = found.filter(|program| program.is_of(self)).ok_or_else(|| {
            Error::state(label, format!("its program was compiled for another device than {}", self.info.name))
        })?;
        let mut buffers = Vec::new();
        for bound in &dispatch.bindings {
            match bound {
                Bound::Buffer { buffer, offset: 0, .. } => buffers.push((buffer, self.own(&**buffer, label)?)),
                // Values are whole: a part of one would be another value.
                _ => {
                    return Err(Error::invalid(label, "a graph binds whole tensors"));
                }
            }
        }
        match buffers.pop() {
            Some(output) if buffers.len() == program.inputs.len() => Ok(Resolved { program, inputs: buffers, output }),
            output => {
                let (takes, are) = (program.inputs.len() + 1, buffers.len() + usize::from(output.is_some()));
                let reason = format!("it takes {takes} bindings, there are {are}");
                Err(Error::invalid(label, reason))
            }
        }
    }

    fn dispatch(&self, dispatch: &Dispatch) -> Result<()> {
        let label = &*dispatch.label;
        let Resolved { program, inputs, output: (_, output) } = self.resolve(dispatch)?;
        let fault = |fault: T::Fault| self.error(&fault, &format!("running {label}"), output.bytes());
        let values =
            inputs.iter().zip(&program.inputs).map(|((_, buffer), (dtype, shape))| buffer.value(*dtype, shape));
        let values = values.try_listed()?;
        // Held by this dispatch alone: no tensor, no later command, no recording reads it again.
        let is_spare = |((buffer, _), ty): &(&Memory<'_, T>, &(DType, Vec<usize>))| {
            Arc::strong_count(buffer) == 1 && Arc::weak_count(buffer) == 0 && **ty == program.output
        };
        let spare = inputs.iter().zip(&program.inputs).position(|input| is_spare(&input));
        if let Some((_, buffer)) = spare.and_then(|place| inputs.get(place)) {
            *buffer.held() = Held::Zeros;
        }
        let (value, event) = self.target.run(&program.program, &values, spare).map_err(fault)?;
        let (dtype, shape) = program.output.clone();
        *output.held() = Held::Device(OnDevice { value, dtype, shape });
        if event.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = event;
        }
        Ok(())
    }

    /// Copies by way of the host, because part of a value is not a value.
    fn copy(&self, (source, from): (&dyn Buffer, u64), (target, to): (&dyn Buffer, u64), bytes: u64) -> Result<()> {
        let (source, target) = (self.own(source, "a copy")?, self.own(target, "a copy")?);
        let (taken, mut whole) = (source.now()?, target.now()?);
        let part = |start: u64| usize::try_from(start).ok().zip(usize::try_from(start + bytes).ok());
        let outside = || Error::index("a copy", "it goes beyond the memory's end");
        let from = part(from).and_then(|(start, end)| taken.get(start..end)).ok_or_else(outside)?;
        let to = part(to).and_then(|(start, end)| whole.get_mut(start..end)).ok_or_else(outside)?;
        to.copy_from_slice(from);
        *target.held() = Held::Host(Arc::new(whole));
        Ok(())
    }

    /// Takes what memory of another device holds to memory of this one; `None` where that goes by reading and writing.
    pub(super) fn take(&self, target: &dyn Buffer, other: &Self, source: &dyn Buffer) -> Option<Result<()>> {
        let (source, target) = (other.own(source, "a copy").ok()?, self.own(target, "a copy").ok()?);
        let fault = |fault: T::Fault| self.error(&fault, &format!("moving {}", target.label), target.bytes());
        let held = source.held().clone();
        let taken = match held {
            Held::Device(value) if value.bytes() as u64 > target.bytes() => return None,
            Held::Device(OnDevice { value, dtype, shape }) => match self.target.take(&other.target, &value)? {
                Err(fault) if fault.kind() == FaultKind::Missing => return None,
                taken => taken.map(|value| Held::Device(OnDevice { value, dtype, shape })).map_err(fault),
            },
            Held::Host(bytes) if bytes.len() as u64 > padded(target.bytes()) => return None,
            held => Ok(held),
        };
        Some(self.health.check().and(taken).map(|taken| *target.held() = taken))
    }

    pub(super) async fn finish(&self) -> Result<()> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(event) = last().clone() else { return self.health.check() };
        let done = self.wait(event.clone(), "finishing").await;
        // One that is late is looked at until it has passed.
        if !self.health.is_lost() {
            last().take_if(|last| Arc::ptr_eq(last, &event));
        }
        done
    }
}
