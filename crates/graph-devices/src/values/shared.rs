//! The state that the parts of an open device share. Buffers and programs hold `Shared`. A value knows its dtype and shape, where the engine's buffers are
//! bytes: `buffer` turns the one into the other when a program first says what the bytes are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::target::{Fault, FaultKind, Target};
use crate::backend::detached::AtWork;
use crate::backend::{DeviceInfo, MemoryFigures, OpenOptions, Program};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::health::Health;
use crate::tensor::DType;
use crate::wait::{self, Awaited, Ended, Waiter};
use cantus_base::listed::Listed;

/// A value with its type.
pub(super) struct OnDevice<T: Target> {
    pub(super) value: T::Value,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
}

impl<T: Target> Clone for OnDevice<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), dtype: self.dtype, shape: self.shape.clone() }
    }
}

impl<T: Target> OnDevice<T> {
    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bytes()
    }
}

/// A graph with one result, ready to run on one device.
pub(super) struct Compiled<T: Target> {
    owner: Arc<Shared<T>>,
    pub(super) program: Arc<T::Program>,
    pub(super) inputs: Vec<(DType, Vec<usize>)>,
    pub(super) output: (DType, Vec<usize>),
}

impl<T: Target> Program for Compiled<T> {}

impl<T: Target> Compiled<T> {
    /// `None` for a graph of several results.
    pub(super) fn new(owner: &Arc<Shared<T>>, graph: &Arc<Graph>) -> Option<std::result::Result<Self, T::Fault>> {
        let [output] = graph.outputs() else { return None };
        let ty = |value| (graph.dtype(value), graph.shape(value).to_vec());
        let inputs = graph.inputs().iter().map(|value| ty(*value)).listed();
        let program = owner.target.compile(graph);
        Some(program.map(|program| Self {
            owner: owner.clone(),
            program: Arc::new(program),
            inputs,
            output: ty(*output),
        }))
    }

    /// Returns whether this device compiled it.
    pub(super) fn is_of(&self, shared: &Shared<T>) -> bool {
        std::ptr::eq(&raw const *self.owner, shared)
    }
}

pub(super) struct Shared<T: Target> {
    pub(super) info: DeviceInfo,
    pub(super) health: Arc<Health>,
    pub(super) waiter: Waiter<T::Event>,
    figures: Mutex<MemoryFigures>,
    next: AtomicU64,
    /// The last execution.
    pub(super) last: Mutex<Option<Arc<T::Event>>>,
    /// The events that are waited for, and those that were when a time limit passed.
    awaited: Mutex<Vec<Arc<T::Event>>>,
    pub(super) target: T,
}

impl<T: Target> Shared<T> {
    pub(super) fn new(thread: &'static str, info: DeviceInfo, target: T, options: &OpenOptions) -> Self {
        let health = Arc::new(Health::new(info.name.clone(), options.timeout));
        Self {
            waiter: Waiter::new(thread, health.clone(), wait::look(info.kind)),
            info,
            health,
            figures: Mutex::new(MemoryFigures { limit: options.memory_limit, ..MemoryFigures::default() }),
            next: AtomicU64::new(1),
            last: Mutex::new(None),
            awaited: Mutex::default(),
            target,
        }
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, MemoryFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awaited(&self) -> MutexGuard<'_, Vec<Arc<T::Event>>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn error(&self, fault: &T::Fault, action: &str, bytes: u64) -> Error {
        let device = self.info.name.clone();
        match fault.kind() {
            FaultKind::Memory => Error::OutOfMemory { device, what: action.to_owned(), bytes },
            FaultKind::Late => {
                self.health.overdue();
                self.health.timeout_error(action)
            }
            kind => {
                if kind == FaultKind::Lost {
                    self.health.lose(&fault.to_string());
                }
                Error::Device { device, action: action.to_owned(), message: fault.to_string() }
            }
        }
    }

    /// Takes bytes to the device, as many as the shape holds.
    pub(super) fn upload(
        &self,
        bytes: &[u8],
        dtype: DType,
        shape: &[usize],
    ) -> std::result::Result<OnDevice<T>, T::Fault> {
        let wanted = shape.iter().product::<usize>() * dtype.bytes();
        let mut padded = Vec::new();
        let bytes = bytes.get(..wanted).unwrap_or_else(|| {
            padded.extend_from_slice(bytes);
            padded.resize(wanted, 0);
            &padded
        });
        let value = self.target.upload(bytes, dtype, shape)?;
        Ok(OnDevice { value, dtype, shape: shape.to_vec() })
    }

    /// Waits, not longer than the time limit.
    pub(super) async fn wait(&self, event: Arc<T::Event>, what: &str) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut awaited = self.awaited();
            // Of those whose askers went away.
            awaited.retain(is_at_work);
            awaited.push(event.clone());
        }
        let ended = self.waiter.wait(number, event.clone(), self.health.deadline()).await;
        if matches!(ended, Ended::Passed | Ended::Failed(_)) {
            self.awaited().retain(|awaited| !Arc::ptr_eq(awaited, &event));
        }
        ended.result(&self.health, what, |fault| self.error(&fault, what, 0))
    }
}

/// Returns whether the event's work is still running; failed work is not.
fn is_at_work<E: Awaited>(event: &Arc<E>) -> bool {
    matches!(event.passed(), Ok(false))
}

impl<T: Target> AtWork for Shared<T> {
    fn has_ended(&self) -> bool {
        // A lock may be held by a thread that hangs in the library.
        let (Ok(last), Ok(awaited)) = (self.last.try_lock(), self.awaited.try_lock()) else { return false };
        !last.iter().chain(&*awaited).any(is_at_work)
    }

    fn held_bytes(&self) -> u64 {
        self.figures().in_use + self.target.kept()
    }
}
