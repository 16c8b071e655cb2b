//! Jobs: accepted, followed, taken up again, forgotten.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use blake2::{Blake2s256, Digest};
use cantus::backend::CancelFlag;
use tokio::sync::{oneshot, watch};

use super::Service;
use crate::job::{Job, Record, State};
use crate::keys::{Caller, now, random_hex};
use crate::problem::Problem;
use crate::queue::{Finished, Lane, Room, Task};
use crate::settings::Scope;
use crate::store::Change;
use crate::traces::{self, Worked};
use crate::work::Work;
use crate::work::array::Output;
use crate::work::progress::Progress;

/// A job in memory.
#[derive(Debug)]
pub(super) struct Live {
    record: Record,
    changes: watch::Sender<Job>,
    cancel: CancelFlag,
    /// Whether it is on the disk; closed without, when it could not be written.
    written: watch::Receiver<bool>,
}

/// A job that was begun so often ends the process, it seems.
const ATTEMPTS: u32 = 3;

impl Service {
    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Live>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many jobs stand in each state.
    pub fn states(&self) -> HashMap<&'static str, u64> {
        let mut states = HashMap::new();
        for live in self.jobs().values() {
            *states.entry(live.record.job.state.name()).or_default() += 1;
        }
        states
    }

    /// Accepts a job: it is on the disk when this returns. A repeated `Idempotency-Key` gives the job that it made.
    ///
    /// # Errors
    /// 429 when the queue is full, 422 for a key that was used for another request, 503 when the disk takes nothing.
    pub async fn accept(self: &Arc<Self>, caller: &Caller, work: Work, request: Request) -> Result<Job, Problem> {
        let digest: String = Blake2s256::new()
            .chain_update(request.content_type.as_bytes())
            .chain_update([0])
            .chain_update(request.query.as_bytes())
            .chain_update([0])
            .chain_update(&request.body)
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let named = request.idempotency.as_deref();
        let found = match named {
            Some(key) => repeated(&self.jobs(), &caller.id, key, &digest)?,
            None => None,
        };
        if let Some(found) = found {
            return written(found).await;
        }
        let bytes = request.body.len() as u64;
        if self.disk.load(Ordering::Relaxed).saturating_add(bytes) > self.settings.disk {
            return Err(Problem::unavailable("the room for jobs on disk is full: delete some, or wait"));
        }
        let (lane, owner, room) = self.room(caller, &work, bytes, true)?;
        let id = random_hex::<16>().map_err(|_| Problem::internal())?;
        let job = Job {
            id: id.clone(),
            state: State::Queued,
            kind: work.kind().to_owned(),
            progress: Some(0),
            created: now(),
            ended: None,
            milliseconds: None,
            devices: Vec::new(),
            events: Vec::new(),
            problem: None,
            expires: None,
        };
        let record = Record {
            id,
            owner: caller.id.clone(),
            job: job.clone(),
            content_type: request.content_type,
            query: request.query,
            attempts: 0,
            bytes,
            idempotency: request.idempotency,
            digest,
            shape: None,
            trace: traces::parent(),
        };
        // In memory first, so that a repetition that comes meanwhile finds it.
        let cancel = CancelFlag::new();
        let (sender, receiver) = watch::channel(false);
        let live = Live {
            record: record.clone(),
            changes: watch::channel(record.job.clone()).0,
            cancel: cancel.clone(),
            written: receiver,
        };
        let found = {
            let mut jobs = self.jobs();
            let found = match &record.idempotency {
                Some(key) => repeated(&jobs, &record.owner, key, &record.digest)?,
                None => None,
            };
            if found.is_none() {
                jobs.insert(record.id.clone(), live);
            }
            found
        };
        if let Some(found) = found {
            return written(found).await;
        }
        // In a task of its own: a client that goes away now leaves a job that was either accepted or not.
        let service = self.clone();
        let accepting = tokio::spawn(async move {
            service.disk.fetch_add(record.bytes, Ordering::Relaxed);
            if let Err(reason) = service.store.change(Change::Accept(Box::new(record.clone()), request.body)).await {
                crate::log(&format!("a job could not be written: {reason}"));
                service.metrics.disk_failures.fetch_add(1, Ordering::Relaxed);
                service.jobs().remove(&record.id);
                service.disk.fetch_sub(record.bytes, Ordering::Relaxed);
                return Err(unwritten());
            }
            sender.send_replace(true);
            service.drive(&lane, owner, room, work, record.id, cancel);
            Ok(())
        });
        accepting.await.unwrap_or_else(|_| Err(Problem::internal()))?;
        Ok(job)
    }

    /// Queues a job's work, and follows it to its end.
    fn drive(
        self: &Arc<Self>,
        lane: &Arc<Lane>,
        owner: Arc<str>,
        room: Room,
        work: Work,
        id: String,
        cancel: CancelFlag,
    ) {
        let (reply, mut outcome) = oneshot::channel();
        let (begun, begins) = oneshot::channel();
        let (progress, mut further) = Progress::new();
        let (kind, queued) = (work.kind(), SystemTime::now());
        lane.push(Task { owner, work, cancel, progress, begun: Some(begun), reply, room });
        let service = self.clone();
        tokio::spawn(async move {
            if begins.await.is_ok()
                && let Some(record) = service.alter(&id, |record| {
                    record.job.state = State::Running;
                    record.job.progress = None;
                    record.attempts += 1;
                })
            {
                let _ = service.store.change(Change::Update(Box::new(record))).await;
            }
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut outcome => break outcome,
                    Ok(()) = further.changed() => {
                        let percent = *further.borrow_and_update();
                        // In memory alone: after a restart it begins again.
                        let _ = service.alter(&id, |record| record.job.progress = percent);
                    }
                }
            };
            // Without an answer the lane has ended: the job stays as it is on the disk, for the next start.
            if let Ok(finished) = outcome {
                let parent = service.jobs().get(&id).and_then(|live| live.record.trace.clone());
                service.traces.worked(&Worked {
                    parent: parent.as_deref(),
                    kind,
                    job: Some(&id),
                    queued,
                    finished: &finished,
                });
                service.end(&id, finished).await;
            }
        });
    }

    /// Changes a job in memory, and tells who watches it. One that has ended stays as it is.
    fn alter(&self, id: &str, change: impl FnOnce(&mut Record)) -> Option<Record> {
        let mut jobs = self.jobs();
        let live = jobs.get_mut(id).filter(|live| !live.record.job.state.ended())?;
        change(&mut live.record);
        let shown = live.record.job.clone();
        live.changes.send_replace(shown);
        Some(live.record.clone())
    }

    async fn end(&self, id: &str, finished: Finished) {
        let cancelled = self.jobs().get(id).is_none_or(|live| live.cancel.is_cancelled());
        if self.is_stopping()
            && !cancelled
            && finished.result.as_ref().is_err_and(|problem| matches!(problem.status, 409 | 503))
        {
            // Stopped by the service's own end: the next start takes it up.
            return;
        }
        let Some(mut record) = self.jobs().get(id).map(|live| live.record.clone()) else { return };
        let (ended, keep) = (now(), self.settings.keep.as_secs());
        record.job.ended = Some(ended);
        record.job.expires = Some(ended.saturating_add(keep));
        record.job.milliseconds = Some(finished.milliseconds);
        record.job.devices = finished.devices;
        record.job.events = finished.events;
        let result = match finished.result {
            Ok(output) => {
                record.job.state = State::Done;
                record.job.progress = Some(100);
                record.shape = Some(output.shape);
                Some(output.bytes)
            }
            Err(problem) => {
                record.job.state = if problem.status == 409 { State::Cancelled } else { State::Failed };
                record.job.problem = Some(problem);
                None
            }
        };
        let (before, after) = (record.bytes, result.as_ref().map_or(0, |bytes| bytes.len() as u64));
        record.bytes = after;
        // What cannot be written now is written later: nobody is told that it is done before.
        let mut pause = Duration::from_millis(100);
        while let Err(reason) = self.store.change(Change::Finish(Box::new(record.clone()), result.clone())).await {
            crate::log(&format!("a result could not be written, and will be: {reason}"));
            self.metrics.disk_failures.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        self.disk.fetch_add(after, Ordering::Relaxed);
        self.disk.fetch_sub(before, Ordering::Relaxed);
        self.metrics.ended(&record.job);
        self.alter(id, |held| *held = record);
    }

    /// Takes up what an earlier process left.
    pub(super) fn resume(self: &Arc<Self>, mut records: Vec<Record>) {
        // In the order of before: what was begun comes first.
        records.sort_by_key(|record| (record.job.created, std::cmp::Reverse(record.attempts)));
        for mut record in records {
            let cancel = CancelFlag::new();
            let id = record.id.clone();
            let open = !record.job.state.ended();
            if open {
                record.job.state = State::Queued;
                record.job.progress = Some(0);
            }
            self.disk.fetch_add(record.bytes, Ordering::Relaxed);
            let live = Live {
                record: record.clone(),
                changes: watch::channel(record.job.clone()).0,
                cancel: cancel.clone(),
                written: watch::channel(true).1,
            };
            self.jobs().insert(id.clone(), live);
            if !open {
                continue;
            }
            self.metrics.resumed.fetch_add(1, Ordering::Relaxed);
            let begun = self.begin_again(&record, cancel);
            if let Err(problem) = begun {
                let service = self.clone();
                tokio::spawn(async move {
                    let finished = Finished {
                        result: Err(problem),
                        began: None,
                        milliseconds: 0.0,
                        batch: 1,
                        devices: Vec::new(),
                        events: Vec::new(),
                    };
                    service.end(&id, finished).await;
                });
            }
        }
    }

    fn begin_again(self: &Arc<Self>, record: &Record, cancel: CancelFlag) -> Result<(), Problem> {
        if record.attempts >= ATTEMPTS {
            return Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "given-up",
                "the job was given up",
                format!("the service ended {ATTEMPTS} times while it computed this job"),
            ));
        }
        let body = self.store.request(&record.id).ok().flatten().ok_or_else(Problem::internal)?;
        let mut work = crate::body::read(&record.content_type, &record.query, &body)?;
        work.check(&self.limits)?;
        let owner = Caller::named(&record.owner);
        let (lane, owner, room) = self.room(&owner, &work, body.len() as u64, false)?;
        self.drive(&lane, owner, room, work, record.id.clone(), cancel);
        Ok(())
    }

    /// Forgets jobs whose time is over.
    pub(super) async fn sweep(&self) {
        let time = now();
        let over: Vec<Record> = self
            .jobs()
            .values()
            .filter(|live| live.record.job.expires.is_some_and(|expires| expires <= time))
            .map(|live| live.record.clone())
            .collect();
        for record in over {
            self.forget(record).await;
        }
    }

    async fn forget(&self, record: Record) -> bool {
        let (id, bytes) = (record.id.clone(), record.bytes);
        if self.store.change(Change::Forget(Box::new(record))).await.is_err() {
            return false;
        }
        if self.jobs().remove(&id).is_some() {
            self.disk.fetch_sub(bytes, Ordering::Relaxed);
        }
        true
    }

    /// A job that the caller may see.
    ///
    /// # Errors
    /// 404, also for somebody else's.
    pub fn job(&self, caller: &Caller, id: &str) -> Result<Job, Problem> {
        self.look(caller, id, |live| live.record.job.clone())
    }

    fn look<T>(&self, caller: &Caller, id: &str, look: impl FnOnce(&Live) -> T) -> Result<T, Problem> {
        let jobs = self.jobs();
        let seen = |live: &&Live| live.record.owner == caller.id || caller.scopes.contains(&Scope::Administration);
        let live = jobs.get(id).filter(seen).ok_or_else(|| Problem::not_found("there is no such job"))?;
        Ok(look(live))
    }

    /// The caller's jobs, the newest first; everybody's for administration.
    pub fn list(&self, caller: &Caller, most: usize) -> Vec<Job> {
        let everybody = caller.scopes.contains(&Scope::Administration);
        let jobs = self.jobs();
        let own = jobs.values().filter(|live| everybody || live.record.owner == caller.id);
        let mut list: Vec<&Live> = own.collect();
        list.sort_by(|a, b| (b.record.job.created, &b.record.id).cmp(&(a.record.job.created, &a.record.id)));
        list.into_iter().take(most).map(|live| live.record.job.clone()).collect()
    }

    /// A job as it changes.
    ///
    /// # Errors
    /// 404.
    pub fn changes(&self, caller: &Caller, id: &str) -> Result<watch::Receiver<Job>, Problem> {
        self.look(caller, id, |live| live.changes.subscribe())
    }

    /// A job's result.
    ///
    /// # Errors
    /// 404; 409 while there is none; what it failed with.
    pub async fn result(self: &Arc<Self>, caller: &Caller, id: &str) -> Result<(Job, Output), Problem> {
        let (job, shape) = self.look(caller, id, |live| (live.record.job.clone(), live.record.shape.clone()))?;
        let pending = || {
            Problem::new(
                StatusCode::CONFLICT,
                "not-done",
                "the job has no result",
                format!("it is {}", job.state.name()),
            )
        };
        let shape = shape.ok_or_else(|| job.problem.clone().unwrap_or_else(pending))?;
        let (service, id) = (self.clone(), id.to_owned());
        let bytes = tokio::task::spawn_blocking(move || service.store.result(&id)).await;
        let bytes = bytes.ok().and_then(Result::ok).flatten().ok_or_else(Problem::internal)?;
        Ok((job, Output { shape, bytes }))
    }

    /// Cancels a job, or forgets one that has ended. Whether it was forgotten.
    ///
    /// # Errors
    /// 404; 503 when the disk takes nothing.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<Option<Job>, Problem> {
        let record = self.look(caller, id, |live| {
            live.cancel.cancel();
            live.record.clone()
        })?;
        if !record.job.state.ended() {
            return Ok(Some(record.job));
        }
        if self.forget(record).await { Ok(None) } else { Err(Problem::unavailable("the disk takes nothing now")) }
    }
}

/// The job that an owner's `Idempotency-Key` made.
fn repeated(jobs: &HashMap<String, Live>, owner: &str, key: &str, digest: &str) -> Result<Option<Found>, Problem> {
    let named = |live: &&Live| live.record.owner == owner && live.record.idempotency.as_deref() == Some(key);
    match jobs.values().find(named) {
        Some(live) if live.record.digest == digest => Ok(Some((live.record.job.clone(), live.written.clone()))),
        Some(_) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency",
            "the key was used for another request",
            "an Idempotency-Key belongs to one request",
        )),
        None => Ok(None),
    }
}

/// A job, and whether it is on the disk.
type Found = (Job, watch::Receiver<bool>);

/// The job once it is on the disk: not before may anybody hear that it is accepted.
async fn written((job, mut written): Found) -> Result<Job, Problem> {
    written.wait_for(|written| *written).await.map(|_| job).map_err(|_| unwritten())
}

fn unwritten() -> Problem {
    Problem::unavailable("the job could not be written to disk")
}

/// A request as it came, for a job.
#[derive(Debug)]
pub struct Request {
    /// Its media type.
    pub content_type: String,
    /// Its query.
    pub query: String,
    /// Its body.
    pub body: Arc<[u8]>,
    /// Its `Idempotency-Key`.
    pub idempotency: Option<String>,
}
