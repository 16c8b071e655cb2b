//! Jobs of earlier processes, taken up again. What was accepted stays accepted: a job that this start cannot compute, because it was started with
//! less than the one that accepted the job, is held, and a later start computes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use cantus::backend::CancelFlag;
use futures_util::future::join_all;

use super::Service;
use super::ledger::Live;
use crate::job::{Granted, Record, State};
use crate::keys::Caller;
use crate::problem::Problem;
use crate::queue::Finished;
use crate::store::Change;

/// A job that was begun so often ends the process, it seems.
const ATTEMPTS: u32 = 3;

/// Why a job is not begun again.
enum Left {
    /// It has failed.
    Failed(Box<Problem>),
    /// This start cannot compute it.
    Held(Box<Problem>),
}

impl Service {
    /// The jobs that are being computed.
    pub(super) fn running(&self) -> Vec<String> {
        self.jobs().running()
    }

    /// An orderly stop interrupts these: that they were begun is no fault of theirs. Those that have ended meanwhile stay as they are.
    pub(super) async fn interrupt(&self, jobs: Vec<String>) {
        let back = |record: &mut Record| record.attempts = record.attempts.saturating_sub(1);
        let changed = jobs.iter().filter_map(|id| self.alter(id, back));
        join_all(changed.map(|record| self.store.change(Change::Update(Box::new(record))))).await;
    }

    /// Takes up what an earlier process left.
    pub(super) fn resume(self: &Arc<Self>, mut records: Vec<Record>) {
        // In the order of before: what was begun comes first.
        records.sort_by_key(|record| (record.job.created, std::cmp::Reverse(record.attempts)));
        let mut held = BTreeMap::<String, u64>::new();
        for mut record in records {
            let cancel = CancelFlag::new();
            let id = record.id.clone();
            let open = !record.job.state.ended();
            if open {
                record.job.state = State::Queued;
                record.job.progress = Some(0);
                // An earlier start may have held it.
                record.job.events.clear();
            } else if record.due.is_none() {
                record.due = Some(self.store.age().saturating_add(self.settings.keep.as_secs()));
            }
            let owner = Arc::<str>::from(record.owner.as_str());
            self.places.add(&owner, 1);
            self.disk.add(&owner, record.bytes);
            self.jobs().insert(Live::stored(record.clone(), cancel.clone()));
            if !open {
                continue;
            }
            self.metrics.resumed.fetch_add(1, Ordering::Relaxed);
            match self.begin_again(&record, cancel) {
                Ok(()) => {}
                Err(Left::Held(problem)) => {
                    *held.entry(problem.detail.clone()).or_default() += 1;
                    self.hold(&id, &problem);
                }
                Err(Left::Failed(problem)) => {
                    let service = self.clone();
                    tokio::spawn(async move { service.end(&id, Finished::unbegun(*problem)).await });
                }
            }
        }
        for (reason, count) in held {
            crate::log(&format!(
                "warning: {count} waiting jobs cannot be computed with these settings, and wait for another start: {reason}"
            ));
        }
    }

    fn begin_again(self: &Arc<Self>, record: &Record, cancel: CancelFlag) -> Result<(), Left> {
        let failed = |problem| Left::Failed(Box::new(problem));
        let held = |problem| Left::Held(Box::new(problem));
        if record.attempts >= ATTEMPTS {
            return Err(failed(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "given-up",
                "the job was given up",
                format!("the service ended {ATTEMPTS} times while it computed this job"),
            )));
        }
        let unread = |_| held(Problem::unavailable("its request cannot be read from the disk"));
        let body = self.store.request(&record.id).map_err(unread)?;
        let body = body.ok_or_else(|| failed(Problem::internal()))?;
        // It was right when it was accepted: whatever is refused now is for this start's sake.
        let mut work = crate::body::read(&record.content_type, &record.query, &body).map_err(held)?;
        work.check(&self.limits).map_err(held)?;
        let owner = Caller::named(&record.owner);
        let (lane, owner, room) = self.room(&owner, &work, body.len() as u64, 0.0, false).map_err(held)?;
        self.drive(&lane, owner, room, work, record.id.clone(), cancel);
        Ok(())
    }

    /// Holds a job, with the reason among its events.
    fn hold(&self, id: &str, problem: &Problem) {
        let reason = format!("it waits for a start of the service that can compute it: {}", problem.detail);
        let mut jobs = self.jobs();
        jobs.alter(id, |record| {
            record.job.state = State::Queued;
            record.job.progress = Some(0);
            record.job.events = vec![reason];
        });
        jobs.hold(id);
    }

    /// Holds a job that was begun. That it was begun is no fault of its.
    pub(super) async fn hold_begun(&self, id: &str, problem: &Problem) {
        self.hold(id, problem);
        let back = |record: &mut Record| record.attempts = record.attempts.saturating_sub(1);
        if let Some(record) = self.alter(id, back) {
            let _ = self.store.change(Change::Update(Box::new(record))).await;
        }
    }

    /// The limits of work of a kind.
    pub(super) fn grants(&self, kind: &str) -> Granted {
        let settings = &self.settings;
        let (memory, time) = if kind == "kernel" {
            (settings.kernel_memory, settings.kernel_time.min(settings.time))
        } else {
            (settings.memory, settings.time)
        };
        Granted { memory, milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Returns whether a job met a limit that was wider when it was accepted.
    pub(super) fn had_more(&self, record: &Record, problem: &Problem) -> bool {
        let (Some(then), now) = (record.granted, self.grants(&record.job.kind)) else { return false };
        let memory = problem.status == StatusCode::PAYLOAD_TOO_LARGE.as_u16() && then.memory > now.memory;
        memory || problem.is_time_limit() && then.milliseconds > now.milliseconds
    }
}
