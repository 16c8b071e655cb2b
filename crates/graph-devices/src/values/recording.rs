//! Recordings: batches as runs over whole values, which the library keeps and starts as one, or which are started one by one. Of batches that are
//! more than that the commands are kept.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::memory::Held;
use super::queue::Resolved;
use super::shared::{OnDevice, Shared};
use super::target::{Fault, FaultKind, Place, Run, Target};
use crate::backend::{Bound, Buffer, Command, CommandList, Recording, Refusal, recording};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::{Listed, Ordered};

/// A tensor's memory, and the value in it.
type Typed = (Arc<dyn Buffer>, DType, Vec<usize>);

/// The contents of a tensor's memory at a point of a batch.
type InPlace<'a> = (Place, &'a Arc<dyn Buffer>, DType, &'a [usize]);

/// A batch as runs.
struct ValueRecording<T: Target> {
    /// The library's own recording of it.
    kept: Option<T::Recording>,
    all: Runs<T>,
    commands: Vec<Command>,
    shared: Arc<Shared<T>>,
}

impl<T: Target> Recording for ValueRecording<T> {}

struct Runs<T: Target> {
    /// Memory that is read before the batch writes to it.
    inputs: Vec<Typed>,
    runs: Vec<Run<T>>,
    /// Memory that it writes and somebody may read, as it is at the end.
    results: Vec<Typed>,
}

fn address(buffer: &Arc<dyn Buffer>) -> *const () {
    Arc::as_ptr(buffer).cast()
}

/// Returns the number of times that a batch holds each memory.
fn holds(batch: &[Command]) -> HashMap<*const (), usize> {
    let mut holds = HashMap::new();
    let bindings = batch.iter().flat_map(|command| match command {
        Command::Dispatch(dispatch) => &*dispatch.bindings,
        Command::Copy { .. } => &[],
    });
    for bound in bindings {
        if let Bound::Buffer { buffer, .. } = bound {
            *holds.entry(address(buffer)).or_default() += 1;
        }
    }
    holds
}

impl<T: Target> Shared<T> {
    /// `None` where the batch is more than runs over whole values of one type.
    fn runs(&self, batch: &[Command]) -> Result<Option<Runs<T>>> {
        let (mut inputs, mut runs, mut outputs) = (Vec::<Typed>::new(), Vec::<Run<T>>::new(), Vec::new());
        // By memory, the value that is in it.
        let mut values: HashMap<*const (), InPlace<'_>> = HashMap::new();
        for (number, command) in batch.iter().enumerate() {
            let Command::Dispatch(dispatch) = command else { return Ok(None) };
            let Resolved { program, inputs: read, output } = self.resolve(dispatch)?;
            let mut places = Vec::with_capacity(read.len());
            for ((buffer, _), (dtype, shape)) in read.into_iter().zip(&program.inputs) {
                let (place, _, of, sides) = values.entry(address(buffer)).or_insert_with(|| {
                    inputs.push((buffer.clone(), *dtype, shape.clone()));
                    (Place::Input(inputs.len() - 1), buffer, *dtype, shape)
                });
                // The same bytes as another value: by way of the host.
                if (*of, *sides) != (*dtype, &**shape) {
                    return Ok(None);
                }
                if let Place::Result(run) = *place
                    && let Some(run) = runs.get_mut(run)
                {
                    run.note_read(number);
                }
                places.push(*place);
            }
            let (dtype, shape) = &program.output;
            values.insert(address(output.0), (Place::Result(number), output.0, *dtype, shape));
            runs.push(Run::new(number, program.program.clone(), places));
            outputs.push(&program.output);
        }
        // What the batch alone holds, and does not read before it writes it, is read by nobody at the end.
        let holds = holds(batch);
        let is_read = |buffer: &Arc<dyn Buffer>| {
            inputs.iter().any(|(known, ..)| Arc::ptr_eq(known, buffer))
                || holds.get(&address(buffer)).is_none_or(|held| *held != Arc::strong_count(buffer))
                || Arc::weak_count(buffer) > 0
        };
        let mut results = Vec::new();
        for (place, buffer, dtype, shape) in values.into_values() {
            if let Place::Result(number) = place
                && is_read(buffer)
                && let Some(run) = runs.get_mut(number)
            {
                run.lasts = true;
                results.push((number, (buffer.clone(), dtype, shape.to_vec())));
            }
        }
        results.order_by_key(|(number, _)| *number);
        let spare = |(number, run): (usize, &Run<T>)| {
            run.inputs.iter().position(|place| {
                let Place::Result(read) = *place else { return false };
                outputs.get(read) == outputs.get(number)
                    && runs.get(read).is_some_and(|read| read.ends_at(number))
                    && run.inputs.iter().filter(|other| *other == place).count() == 1
            })
        };
        let spares: Vec<_> = runs.iter().enumerate().map(spare).listed();
        runs.iter_mut().zip(spares).for_each(|(run, spare)| run.spare = spare);
        let results = results.into_iter().map(|(_, result)| result).listed();
        Ok(Some(Runs { inputs, runs, results }))
    }

    /// Keeps a batch, by the library where that can be.
    pub(super) fn record(self: &Arc<Self>, batch: &[Command]) -> Result<Arc<dyn Recording>> {
        self.health.check()?;
        let list = || Ok(Arc::new(CommandList(batch.to_vec())) as Arc<dyn Recording>);
        let Some(all) = self.runs(batch)?.filter(|all| !all.runs.is_empty()) else { return list() };
        let types: Vec<_> = all.inputs.iter().map(|(_, dtype, shape)| (*dtype, shape.clone())).listed();
        let kept = match self.target.record(&types, &all.runs) {
            Ok(kept) => kept,
            // What cannot be recorded can still be run.
            Err(fault) if !matches!(fault.kind(), FaultKind::Lost | FaultKind::Late) => {
                tracing::debug!("{} keeps runs in place of a recording: {fault}", self.info.name);
                None
            }
            Err(fault) => return Err(self.error(&fault, "recording a batch", 0)),
        };
        Ok(Arc::new(ValueRecording { kept, all, commands: batch.to_vec(), shared: self.clone() }))
    }

    /// Starts a recording behind all that was started.
    pub(super) fn replay(&self, recording: &dyn Recording) -> Result<(), Refusal> {
        let own = (recording as &dyn Any).downcast_ref::<ValueRecording<T>>();
        let Some(own) = own.filter(|own| std::ptr::eq(&raw const *own.shared, self)) else {
            return Err(recording::foreign(&self.info).into());
        };
        self.health.check()?;
        own.commands.iter().try_for_each(Command::check_cancelled)?;
        let Runs { inputs, runs, results } = &own.all;
        let value = |(buffer, dtype, shape): &Typed| self.own(&**buffer, "a replay")?.value(*dtype, shape);
        let values = inputs.iter().map(value).try_listed()?;
        let fault = |fault: T::Fault| self.error(&fault, "replaying a recording", 0);
        let put = |memory: &[Typed], values: &[T::Value]| {
            memory.iter().zip(values).try_for_each(|((buffer, dtype, shape), value)| {
                let value = OnDevice { value: value.clone(), dtype: *dtype, shape: shape.clone() };
                *self.own(&**buffer, "a replay")?.held() = Held::Device(value);
                Ok::<_, Error>(())
            })
        };
        let mut last = None;
        if let Some(kept) = &own.kept {
            last = self.target.replay(kept, &values).map_err(fault)?;
            let (read, written) = self.target.places(kept);
            put(inputs, read)?;
            put(results, written)?;
        } else {
            let made = Run::all(runs, &values, |run, values| {
                let (value, event) = self.target.run(&run.program, values, run.spare)?;
                last = event.or(last.take());
                Ok(value)
            });
            put(results, &made.map_err(fault)?)?;
        }
        if last.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        }
        Ok(())
    }
}
