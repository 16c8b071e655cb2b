//! Recordings: batches that the library keeps and starts as one. Without that the commands are kept.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::memory::Held;
use super::queue::Resolved;
use super::shared::{OnDevice, Shared};
use super::target::{Fault, FaultKind, Place, Run, Target};
use crate::backend::{Buffer, Command, CommandList, Recording, Refusal, recording};
use crate::error::Result;
use crate::tensor::DType;

/// A tensor's memory, and the value in it.
type Typed = (Arc<dyn Buffer>, DType, Vec<usize>);

/// What is in a tensor's memory at a point of a batch.
type InPlace<'a> = (Place, &'a Arc<dyn Buffer>, DType, &'a [usize]);

/// A batch that the library keeps.
struct ValueRecording<T: Target> {
    recording: T::Recording,
    /// Memory that is read before the batch writes to it.
    inputs: Vec<Typed>,
    /// Memory that it writes, as it is at the end.
    results: Vec<Typed>,
    /// They keep programs alive.
    commands: Vec<Command>,
    shared: Arc<Shared<T>>,
}

impl<T: Target> Recording for ValueRecording<T> {}

/// A batch as runs.
struct Runs<'a, T: Target> {
    inputs: Vec<Typed>,
    runs: Vec<Run<'a, T>>,
    results: Vec<Typed>,
}

impl<T: Target> Shared<T> {
    /// `None` where the batch is more than runs over whole values of one type.
    fn runs<'a>(&self, batch: &'a [Command]) -> Result<Option<Runs<'a, T>>> {
        let mut all = Runs { inputs: Vec::new(), runs: Vec::new(), results: Vec::new() };
        // By memory, the value that is in it.
        let mut values: HashMap<*const (), InPlace<'a>> = HashMap::new();
        let address = |buffer: &Arc<dyn Buffer>| Arc::as_ptr(buffer).cast::<()>();
        for (number, command) in batch.iter().enumerate() {
            let Command::Dispatch(dispatch) = command else { return Ok(None) };
            let Resolved { program, inputs, output } = self.resolve(dispatch)?;
            let mut places = Vec::with_capacity(inputs.len());
            for ((buffer, _), (dtype, shape)) in inputs.into_iter().zip(&program.inputs) {
                let new = Place::Input(all.inputs.len());
                let (place, _, of, sides) = values.entry(address(buffer)).or_insert_with(|| {
                    all.inputs.push((buffer.clone(), *dtype, shape.clone()));
                    (new, buffer, *dtype, shape)
                });
                // The same bytes as another value: by way of the host.
                if (*of, *sides) != (*dtype, &**shape) {
                    return Ok(None);
                }
                if let Place::Result(run) = *place
                    && let Some(run) = all.runs.get_mut(run)
                {
                    run.last_read = number;
                }
                places.push(*place);
            }
            let (dtype, shape) = &program.output;
            values.insert(address(output.0), (Place::Result(number), output.0, *dtype, shape));
            all.runs.push(Run { program: &program.program, inputs: places, last_read: number, lasts: false });
        }
        let mut last: Vec<_> = values.into_values().collect();
        last.sort_by_key(|(place, ..)| if let Place::Result(run) = place { *run } else { 0 });
        for (place, buffer, dtype, shape) in last {
            if let Place::Result(run) = place
                && let Some(run) = all.runs.get_mut(run)
            {
                run.lasts = true;
                all.results.push((buffer.clone(), dtype, shape.to_vec()));
            }
        }
        Ok(Some(all))
    }

    /// Keeps a batch, by the library where that can be.
    pub(super) fn record(self: &Arc<Self>, batch: &[Command]) -> Result<Arc<dyn Recording>> {
        self.health.check()?;
        let list = || Ok(Arc::new(CommandList(batch.to_vec())) as Arc<dyn Recording>);
        let Some(Runs { inputs, runs, results }) = self.runs(batch)? else { return list() };
        if runs.is_empty() {
            return list();
        }
        let types: Vec<_> = inputs.iter().map(|(_, dtype, shape)| (*dtype, shape.clone())).collect();
        match self.target.record(&types, &runs) {
            Ok(Some(recording)) => {
                let (commands, shared) = (batch.to_vec(), self.clone());
                Ok(Arc::new(ValueRecording { recording, inputs, results, commands, shared }))
            }
            Ok(None) => list(),
            // What cannot be recorded can still be run.
            Err(fault) if !matches!(fault.kind(), FaultKind::Lost | FaultKind::Late) => {
                tracing::debug!("{} keeps commands in place of a recording: {fault}", self.info.name);
                list()
            }
            Err(fault) => Err(self.error(&fault, "recording a batch", 0)),
        }
    }

    /// Starts a recording behind all that was started.
    pub(super) fn replay(&self, recording: &dyn Recording) -> Result<(), Refusal> {
        let own = (recording as &dyn Any).downcast_ref::<ValueRecording<T>>();
        let Some(own) = own.filter(|own| std::ptr::eq(&raw const *own.shared, self)) else {
            return Err(recording::foreign(&self.info).into());
        };
        self.health.check()?;
        own.commands.iter().try_for_each(Command::check_cancelled)?;
        let value = |(buffer, dtype, shape): &Typed| self.own(&**buffer, "a replay")?.value(*dtype, shape);
        let values = own.inputs.iter().map(value).collect::<Result<Vec<_>>>()?;
        let started = self.target.replay(&own.recording, &values);
        let event = started.map_err(|fault| self.error(&fault, "replaying a recording", 0))?;
        let (inputs, results) = self.target.places(&own.recording);
        let now = own.inputs.iter().zip(inputs).chain(own.results.iter().zip(results));
        for ((buffer, dtype, shape), value) in now {
            let value = OnDevice { value: value.clone(), dtype: *dtype, shape: shape.clone() };
            *self.own(&**buffer, "a replay")?.held() = Held::Device(value);
        }
        if event.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = event;
        }
        Ok(())
    }
}
