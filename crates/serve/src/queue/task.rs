//! Work that waits, and how it ends.

use std::sync::Arc;
use std::time::SystemTime;

use cantus::backend::CancelFlag;

use super::Room;
use crate::problem::Problem;
use crate::work::Work;
use crate::work::output::Output;
use crate::work::progress::Progress;

/// Work that waits.
#[derive(Debug)]
pub struct Task {
    /// The key that it is done for.
    pub owner: Arc<str>,
    /// The work.
    pub work: Work,
    /// Stops it.
    pub cancel: CancelFlag,
    /// Told how far it is.
    pub progress: Progress,
    /// Told when it begins.
    pub begun: Option<tokio::sync::oneshot::Sender<()>>,
    /// Told how it ended. Dropped, when the lane ended first.
    pub reply: tokio::sync::oneshot::Sender<Finished>,
    /// Room that it takes in the lane.
    pub room: Room,
}

/// Work that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The result, or why it has no result.
    pub result: Result<Output, Problem>,
    /// Its start, if it started.
    #[cfg_attr(not(feature = "traces"), expect(dead_code, reason = "a span begins there"))]
    pub began: Option<SystemTime>,
    /// The duration of the dispatch that it was part of.
    pub milliseconds: f64,
    /// Requests in that dispatch.
    pub batch: usize,
    /// The devices that computed it.
    pub devices: Vec<String>,
    /// Events on the way.
    pub events: Vec<String>,
}

impl Finished {
    /// Work that was never begun.
    pub fn unbegun(problem: Problem) -> Self {
        let (devices, events) = (Vec::new(), Vec::new());
        Self { result: Err(problem), began: None, milliseconds: 0.0, batch: 1, devices, events }
    }
}

/// Ends a task.
pub(super) fn finish(
    task: Task,
    result: Result<Output, Problem>,
    began: Option<SystemTime>,
    milliseconds: f64,
    batch: usize,
    devices: &[String],
    events: &[String],
) {
    let finished = Finished { result, began, milliseconds, batch, devices: devices.to_vec(), events: events.to_vec() };
    // Room is free before the answer is there: who asks again at once finds it.
    let Task { reply, room, .. } = task;
    drop(room);
    let _ = reply.send(finished);
}
