//! Work on a device, and on the next where that fails. A lane's thread calls `compute` with a batch of similar tasks. If the batch fails, each is computed
//! by itself, so one caller's mistake costs the others time only. Where a device fails the engine has the next one, and the work begins again there.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cantus::backend::CancelFlag;
use cantus::engine::{Event, EventKind};
use cantus::{Engine, Error};

use super::{Means, Task};
use crate::problem::Problem;
use crate::work::output::Output;
use crate::work::progress::Steps;
use crate::work::{Failure, Work};

/// The outcomes of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    pub results: Vec<Result<Output, Problem>>,
    pub devices: Vec<String>,
    pub events: Vec<String>,
}

impl Outcomes {
    /// A device that computes now.
    fn on(&mut self, device: Option<&String>) {
        let new = device.filter(|&device| self.devices.last() != Some(device)).cloned();
        self.devices.extend(new);
    }

    /// Adds an event, once, however often it happened.
    fn tell(&mut self, what: String) {
        if !self.events.contains(&what) {
            self.events.push(what);
        }
    }
}

/// The worker of a lane.
#[derive(Debug)]
pub(super) struct Worker {
    means: Means,
    /// Bytes that work may hold on the device.
    memory: u64,
    /// Devices that failed for good: the engine passes them over again for each tensor, and says so each time.
    left: Mutex<Vec<String>>,
}

impl Worker {
    pub fn new(means: Means, memory: u64) -> Self {
        Self { means, memory, left: Mutex::default() }
    }

    /// Gives back memory that is kept for more work.
    pub fn rest(&self) {
        if let Means::Engine(engine) = &self.means {
            engine.trim();
        }
    }

    /// Computes a batch; what several of alike cannot do together, each does by itself.
    pub fn compute(&self, tasks: &[&Task], stop: &CancelFlag) -> Outcomes {
        let mut outcomes = Outcomes::default();
        match &self.means {
            Means::Processes(limits) => {
                outcomes.devices.push(limits.device.clone());
                for task in tasks {
                    outcomes.results.push(match &task.work {
                        Work::Kernel(work) => work.run(limits, stop),
                        _ => Err(Problem::internal()),
                    });
                }
            }
            Means::Engine(engine) => {
                match self.attempt(engine, tasks, stop, &mut outcomes) {
                    Ok(results) => outcomes.results = results.into_iter().map(Ok).collect(),
                    // What one of them does wrong is not the others' fault.
                    Err(_) if tasks.len() > 1 => {
                        for task in tasks {
                            let result = self.attempt(engine, &[task], stop, &mut outcomes);
                            outcomes.results.push(result.map(|mut one| one.remove(0)));
                        }
                    }
                    Err(problem) => outcomes.results.push(Err(problem)),
                }
            }
        }
        outcomes
    }

    /// Computes; where a device fails the engine has the next one, and the work is begun again there.
    fn attempt(
        &self,
        engine: &Engine,
        tasks: &[&Task],
        stop: &CancelFlag,
        outcomes: &mut Outcomes,
    ) -> Result<Vec<Output>, Problem> {
        let works: Vec<&Work> = tasks.iter().map(|task| &task.work).collect();
        let Some(first) = tasks.first() else { return Ok(Vec::new()) };
        let mut tries = 0;
        loop {
            let host = works.iter().all(|work| work.on_host());
            let device = if host { Some(HOST.to_owned()) } else { self.device(engine) };
            outcomes.on(device.as_ref());
            let before = engine.events().last().map(|event| event.at);
            let steps = Steps { progress: &first.progress, stop };
            let guarded = AssertUnwindSafe(|| {
                engine.cancel_scope(stop, || {
                    engine.memory_scope(|| Computed(Work::run_alike(engine, &works, self.memory, &steps)))
                })
            });
            let result = std::panic::catch_unwind(guarded);
            for event in engine.events().into_iter().filter(|event| Some(event.at) > before) {
                self.tell(&event, device.as_deref(), outcomes);
            }
            if !host && !outcomes.events.is_empty() {
                let now = Self::probe(engine);
                if let Some(device) = device.as_ref().filter(|_| now.is_some() && now != device) {
                    self.left().push(device.clone());
                }
                outcomes.on(now.as_ref());
            }
            let device = device.unwrap_or_else(|| "the device".to_owned());
            match result {
                Ok(Computed(Ok(outputs))) => return Ok(outputs),
                Ok(Computed(Err(Failure::Problem(problem)))) => return Err(problem),
                Ok(Computed(Err(Failure::Library(error)))) => {
                    tries += 1;
                    if !device_fault(&error) || tries > 3 || stop.is_cancelled() {
                        if !error.is_input() && !stop.is_cancelled() {
                            crate::log(&format!("{device}: {error}"));
                        }
                        return Err(Problem::of(&error));
                    }
                    outcomes.tell(format!("{device} {}; the work was begun again", why(&error)));
                    crate::log(&format!("{device}: {error}; the work is begun again"));
                }
                Err(_) => {
                    crate::log("a computation panicked");
                    return Err(Problem::internal());
                }
            }
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the device where work runs now: the engine's own choice holds until that device fails.
    fn device(&self, engine: &Engine) -> Option<String> {
        if self.left().is_empty() { Some(engine.selected().device.name.clone()) } else { Self::probe(engine) }
    }

    /// Returns the device where a tensor is created now.
    fn probe(engine: &Engine) -> Option<String> {
        engine.zeros_of(cantus::DType::U32, &[1]).ok().map(|tensor| tensor.device_name())
    }

    /// Reports the engine's events about devices, with the kind of the failure and without a driver's words.
    fn tell(&self, event: &Event, begun: Option<&str>, outcomes: &mut Outcomes) {
        let device = &event.device;
        match event.kind {
            EventKind::FellBack if begun != Some(device) => {
                outcomes.tell(format!("work went on to {device}"));
                outcomes.on(Some(device));
            }
            EventKind::Failed if !self.left().contains(device) => outcomes.tell(format!("{device} failed")),
            EventKind::Lost => outcomes.tell(format!("what was on {device} was lost")),
            _ => {}
        }
    }
}

/// The name of the host, for work without a device.
const HOST: &str = "host";

/// Why work is begun again.
fn why(error: &Error) -> &'static str {
    match error {
        Error::TensorLost { cause, .. } => why(cause),
        Error::DeviceLost { .. } => "was lost",
        Error::OutOfMemory { .. } => "ran out of memory",
        _ => "failed",
    }
}

/// The result of work in a memory scope: nothing of it lives on a device.
struct Computed(Result<Vec<Output>, Failure>);

impl cantus::engine::Kept for Computed {
    fn tensors(&self, _: &mut dyn FnMut(&cantus::Tensor)) {}
}

fn device_fault(error: &Error) -> bool {
    match error {
        Error::TensorLost { cause, .. } => device_fault(cause),
        error => error.is_device_fault() && !matches!(error, Error::Timeout { .. } | Error::Unsupported { .. }),
    }
}
