//! A device of operations, opened. Everything else goes to the engine's next device. The engine sees this as a device that runs only
//! `NativeOperation::Expression`. WGSL kernels are refused, so they go to the next device. Programs are cached by expression and therefore by shape;
//! refusals are remembered too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::memory::{Held, ValueBuffer};
use super::shared::{Compiled, Shared};
use super::target::{Fault, FaultKind, Target};
use crate::backend::expression::Expression;
use crate::backend::native::NativeOperation;
use crate::backend::{
    BoxFuture, Buffer, Command, CommandList, Contents, Device, DeviceInfo, MemoryFigures, OpenOptions, Program,
    Recording, Refusal, padded, ready,
};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::kernel::Kernel;

/// Programs kept, at most.
const KEPT: usize = 1024;

type Programs<T> = HashMap<Arc<Expression>, Option<Arc<Compiled<T>>>>;

/// A device of operations, opened.
pub(crate) struct ValueDevice<T: Target> {
    /// Programs by expression; `None` for those that the device cannot run.
    programs: Mutex<Programs<T>>,
    /// Why the last graph was none for it.
    refused: Mutex<Option<String>>,
    shared: Arc<Shared<T>>,
}

impl<T: Target> ValueDevice<T> {
    /// `thread` names the threads that wait for it.
    pub(crate) fn new(thread: &'static str, info: DeviceInfo, target: T, options: &OpenOptions) -> Self {
        let shared = Arc::new(Shared::new(thread, info, target, options));
        let at_work = Arc::downgrade(&shared);
        shared.health.watch_over(at_work);
        Self { programs: Mutex::default(), refused: Mutex::default(), shared }
    }

    fn program(&self, expression: &Arc<Expression>) -> Option<Arc<Compiled<T>>> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = programs.get(expression) {
            return known.clone();
        }
        let program = match Graph::of("expression", expression) {
            Ok(graph) => match Compiled::new(&self.shared, &graph.shared()) {
                Some(Ok(program)) => Some(Arc::new(program)),
                None => self.refuse("a graph of several results".to_owned()),
                Some(Err(fault)) if fault.kind() == FaultKind::Missing => self.refuse(fault.to_string()),
                // Another time it may.
                Some(Err(fault)) => return self.refuse(fault.to_string()),
            },
            Err(error) => self.refuse(error.to_string()),
        };
        if programs.len() >= KEPT {
            programs.clear();
        }
        programs.insert(expression.clone(), program.clone());
        program
    }

    fn refuse(&self, reason: String) -> Option<Arc<Compiled<T>>> {
        tracing::debug!(device = %self.shared.info.name, "a graph was refused: {reason}");
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        None
    }
}

impl<T: Target> Device for ValueDevice<T> {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let entry = kernel.reflection().map(|reflection| reflection.entry_point.clone());
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let because = refused.map_or_else(String::new, |reason| format!(" (of the graph before it says: {reason})"));
        ready(entry.and_then(|entry| {
            Err(Error::Unsupported {
                kernel: entry,
                device: self.shared.info.name.clone(),
                construct: format!("WGSL kernels: {} runs operation graphs{because}", T::TITLE),
                report: String::new(),
            })
        }))
    }

    fn check_workgroups(&self, _program: &dyn Program, _label: &str, _workgroups: [u32; 3]) -> Result<()> {
        Ok(())
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        _contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        let made = self.shared.health.check().and_then(|()| ValueBuffer::new(&self.shared, bytes, label));
        ready(made.map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.health.check()?;
            let target = self.shared.own(&**buffer, "a write")?;
            let size = usize::try_from(padded(target.bytes())).unwrap_or(usize::MAX);
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let Some(end) = start.checked_add(data.len()).filter(|end| *end <= size) else {
                return Err(Error::index(target.label.to_string(), "a write goes beyond its end"));
            };
            let whole = start == 0 && data.len() as u64 >= target.bytes();
            let mut bytes = if whole { vec![0; size] } else { target.contents().await? };
            if let Some(part) = bytes.get_mut(start..end) {
                part.copy_from_slice(data);
            }
            *target.held() = Held::Host(Arc::new(bytes));
            Ok(())
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.health.check()?;
            let source = self.shared.own(&**buffer, "a read")?;
            let bytes = source.contents().await?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = start.checked_add(into.len()).and_then(|end| bytes.get(start..end));
            let part = part.ok_or_else(|| Error::index(source.label.to_string(), "a read goes beyond its end"))?;
            into.copy_from_slice(part);
            Ok(())
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.submit(batch))
    }

    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        ready(self.shared.record(batch))
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
        if let Some(list) = CommandList::of(&**recording) {
            return self.submit(list.0.clone());
        }
        ready(self.shared.replay(&**recording))
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.finish())
    }

    fn copy_from<'a>(
        &'a self,
        target: &'a Arc<dyn Buffer>,
        other: &'a dyn Device,
        source: &'a Arc<dyn Buffer>,
        _bytes: u64,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        self.shared.take(&**target, &other.shared, &**source).map(ready)
    }

    fn native(&self, operation: &NativeOperation) -> Option<Arc<dyn Program>> {
        match operation {
            NativeOperation::Expression(expression) => {
                self.program(expression).map(|program| program as Arc<dyn Program>)
            }
            _ => None,
        }
    }

    fn memory(&self) -> MemoryFigures {
        *self.shared.figures()
    }

    fn trim(&self) {
        // One that is lost may never come to where nothing is used.
        if !self.shared.health.is_lost()
            && let Err(fault) = self.shared.target.trim()
        {
            let error = self.shared.error(&fault, "giving back memory", 0);
            tracing::warn!(device = %self.shared.info.name, "{error}");
        }
    }
}
