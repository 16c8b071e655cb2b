//! Jobs: accepted, followed, shown, forgotten. Routes call it, and `drive` follows each job. A job is on the disk before its id is told, and its end before
//! anybody hears of it. A job that was interrupted by a stop begins again at the next start; one that ended stays as it is, whatever comes later.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::http::StatusCode;
use blake2::{Blake2s256, Digest};
use cantus::backend::CancelFlag;
use futures_util::future::join_all;
use tokio::sync::{oneshot, watch};

use super::Service;
use super::answers::{Held, Pieces};
use super::kept::{Kept, RECORD};
use super::ledger::{Ledger, Live};
use crate::job::{Job, Record, Shape, State};
use crate::keys::{Caller, now, random_hex};
use crate::priority::blocking;
use crate::problem::Problem;
use crate::queue::{Finished, Lane, Room, Task};
use crate::settings::Scope;
use crate::store::{Change, PIECE};
use crate::traces::{self, Worked};
use crate::work::Work;
use crate::work::output::Output;
use crate::work::progress::Progress;

impl Service {
    pub(super) fn jobs(&self) -> MutexGuard<'_, Ledger> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of jobs in each state.
    pub fn states(&self) -> HashMap<&'static str, u64> {
        self.jobs().states()
    }

    /// Accepts a job: it is on the disk when this returns. A repeated `Idempotency-Key` gives the job that it made.
    ///
    /// # Errors
    /// 429 when the queue is full, 422 for a key that was used for another request, 503 when the disk takes nothing.
    pub async fn accept(self: &Arc<Self>, caller: &Caller, work: Work, request: Request) -> Result<Job, Problem> {
        let (request, digest) = digested(request).await?;
        let named = request.idempotency.as_deref();
        let found = repeated(&self.jobs(), &caller.id, named, &digest)?;
        if let Some(found) = found {
            return written(found).await;
        }
        let texts = request.content_type.len() + request.query.len() + named.map_or(0, str::len);
        let body = request.body.len() as u64;
        // The request goes when the result comes.
        let bytes = RECORD + texts as u64 + body.max(work.produces());
        self.answers.fits(work.produces())?;
        let (lane, owner, room) = self.room(caller, &work, body, request.spent, true)?;
        self.keep(&owner, bytes)?;
        let kept = Kept { service: self.clone(), owner: owner.clone(), bytes: Some(bytes) };
        let id = random_hex::<16>().map_err(|_| Problem::internal())?;
        let job = queued(&id, &work);
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
            due: None,
            shape: None,
            trace: traces::parent(),
            granted: Some(self.grants(work.kind())),
        };
        // In memory first, so that a repetition that comes meanwhile finds it.
        let cancel = CancelFlag::new();
        let (sender, receiver) = watch::channel(false);
        let live = Live {
            record: record.clone(),
            changes: Some(watch::channel(record.job.clone()).0),
            cancel: cancel.clone(),
            written: Some(receiver),
            held: false,
        };
        let found = {
            let mut jobs = self.jobs();
            let found = repeated(&jobs, &record.owner, record.idempotency.as_deref(), &record.digest)?;
            if found.is_none() {
                jobs.insert(live);
            }
            found
        };
        if let Some(found) = found {
            return written(found).await;
        }
        // In a task of its own: a client that goes away now leaves a job that was either accepted or not.
        let service = self.clone();
        let accepting = tokio::spawn(async move {
            if let Err(reason) = service.store.change(Change::Accept(Box::new(record.clone()), request.body)).await {
                crate::log(&format!("a job could not be written: {reason}"));
                service.metrics.disk_failures.fetch_add(1, Ordering::Relaxed);
                service.jobs().remove(&record.id);
                drop(kept);
                return Err(unwritten());
            }
            kept.stay();
            sender.send_replace(true);
            service.drive(&lane, owner, room, work, record.id, cancel);
            Ok(())
        });
        accepting.await.unwrap_or_else(|_| Err(Problem::internal()))?;
        Ok(job)
    }

    /// Queues a job's work, and follows it to its end.
    pub(super) fn drive(
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
        service.followed.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            if begins.await.is_ok()
                && let Some(record) = service.alter(&id, |record| {
                    record.job.state = State::Running;
                    record.job.progress = None;
                    // What a stop interrupts is no attempt.
                    record.attempts += u32::from(!service.is_stopping());
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
            service.followed.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Changes a job in memory, and tells who watches it. One that has ended stays as it is.
    pub(super) fn alter(&self, id: &str, change: impl FnOnce(&mut Record)) -> Option<Record> {
        self.jobs().alter(id, change)
    }

    pub(super) async fn end(&self, id: &str, finished: Finished) {
        let cancelled = self.jobs().get(id).is_none_or(|live| live.cancel.is_cancelled());
        if self.is_stopping()
            && !cancelled
            && finished.result.as_ref().is_err_and(|problem| matches!(problem.status, 409 | 503))
        {
            // Stopped by the service's own end: the next start takes it up.
            return;
        }
        let Some(mut record) = self.jobs().get(id).map(|live| live.record.clone()) else { return };
        if let Err(problem) = &finished.result
            && !cancelled
            && self.had_more(&record, problem)
        {
            return self.hold_begun(id, problem).await;
        }
        let (ended, keep) = (now(), self.settings.keep.as_secs());
        record.job.ended = Some(ended);
        record.job.expires = Some(ended.saturating_add(keep));
        record.due = Some(self.store.age().saturating_add(keep));
        record.job.milliseconds = Some(finished.milliseconds);
        record.job.devices = finished.devices;
        record.job.events = finished.events;
        let owner = Arc::<str>::from(record.owner.as_str());
        let (before, texts) = (record.bytes, record.content_type.len() + record.query.len());
        let after = |bytes: usize| RECORD + (texts + bytes) as u64;
        let fits = |output: Output| self.answers.fits(output.bytes.len() as u64).map(|()| output);
        let mut result = finished.result.and_then(fits);
        if let Ok(output) = &result {
            // What the request did not say, the result takes now; what it takes less is free.
            let more = after(output.bytes.len()).saturating_sub(before);
            if self.disk.take(&owner, more).is_err() {
                result = Err(Problem::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "disk",
                    "the result exceeds the disk quota",
                    format!(
                        "its {} bytes are more than the room for jobs on disk has for this key",
                        output.bytes.len()
                    ),
                ));
            }
        }
        let result = match result {
            Ok(output) => {
                record.job.state = State::Done;
                record.job.progress = Some(100);
                record.shape = Some(output.shape);
                Some(Bytes::from(output.bytes))
            }
            Err(problem) => {
                record.job.state = if problem.status == 409 { State::Cancelled } else { State::Failed };
                record.job.problem = Some(problem);
                None
            }
        };
        record.bytes = after(result.as_ref().map_or(0, Bytes::len));
        // What cannot be written now is written later: nobody is told that it is done before.
        let mut pause = Duration::from_millis(100);
        while let Err(reason) = self.store.change(Change::Finish(Box::new(record.clone()), result.clone())).await {
            crate::log(&format!("a result could not be written and is retried: {reason}"));
            self.metrics.disk_failures.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        self.disk.give(&owner, before.saturating_sub(record.bytes));
        self.metrics.ended(&record.job);
        self.alter(id, |held| *held = record);
    }

    /// Forgets jobs whose time is over.
    pub(super) async fn sweep(&self) {
        loop {
            // Together: what comes at once is one transaction.
            let over = self.jobs().over(self.store.age(), 256);
            let forgotten = join_all(over.into_iter().map(|record| self.forget(record))).await;
            if forgotten.is_empty() || forgotten.contains(&false) {
                break;
            }
        }
    }

    async fn forget(&self, record: Record) -> bool {
        let id = record.id.clone();
        if self.store.change(Change::Forget(Box::new(record))).await.is_err() {
            return false;
        }
        let gone = self.jobs().remove(&id);
        if let Some(live) = gone {
            self.unkeep(&live.record.owner.as_str().into(), live.record.bytes);
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
        self.jobs().newest(Some(caller.id.as_str()).filter(|_| !everybody), most)
    }

    /// A job as it changes.
    ///
    /// # Errors
    /// 404.
    pub fn changes(&self, caller: &Caller, id: &str) -> Result<watch::Receiver<Job>, Problem> {
        self.look(caller, id, Live::follow)
    }

    /// A job's result.
    ///
    /// # Errors
    /// 404; 409 until it has one; what it failed with.
    pub async fn result(self: &Arc<Self>, caller: &Caller, id: &str) -> Result<(Job, Shape, Held), Problem> {
        let look = |live: &Live| (live.record.job.clone(), live.record.shape.clone(), live.record.owner.clone());
        let (job, shape, owner) = self.look(caller, id, look)?;
        let pending = || {
            Problem::new(
                StatusCode::CONFLICT,
                "not-done",
                "the job has no result",
                format!("it is {}", job.state.name()),
            )
        };
        let shape = shape.ok_or_else(|| job.problem.clone().unwrap_or_else(pending))?;
        // As long as it is read, a piece is held and another one may be on its way.
        let bytes = shape.bytes();
        let part = self.answers.part(&owner.as_str().into(), bytes.min(2 * PIECE as u64))?;
        let (service, name) = (self.clone(), id.to_owned());
        let read = Arc::new(move |piece| service.store.result(&name, piece));
        Ok((job, shape, Pieces::new(read, bytes, part).begin().await?))
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
            // Nothing follows a job that is held.
            if self.jobs().release(id) {
                self.end(id, Finished::unbegun(Problem::cancelled())).await;
            }
            return self.job(caller, id).map(Some);
        }
        if self.forget(record).await { Ok(None) } else { Err(undeleted()) }
    }
}

/// A digest of a request.
fn digest(request: &Request) -> String {
    let parts = [request.content_type.as_bytes(), &[0], request.query.as_bytes(), &[0], &request.body];
    let digest = parts.into_iter().fold(Blake2s256::new(), |digest, part| digest.chain_update(part)).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The most bytes of a request that are digested where other requests wait for it.
const LARGE: usize = 1 << 16;

/// The job that an owner's `Idempotency-Key` made.
fn repeated(jobs: &Ledger, owner: &str, key: Option<&str>, digest: &str) -> Result<Option<Found>, Problem> {
    match key.and_then(|key| jobs.named(owner, key)) {
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
type Found = (Job, Option<watch::Receiver<bool>>);

/// The job once it is on the disk: not before may anybody hear that it is accepted.
async fn written((job, written): Found) -> Result<Job, Problem> {
    if let Some(mut written) = written {
        written.wait_for(|written| *written).await.map_err(|_| unwritten())?;
    }
    Ok(job)
}

/// The request and its digest.
async fn digested(request: Request) -> Result<(Request, String), Problem> {
    let both = |request: Request| {
        let digest = digest(&request);
        (request, digest)
    };
    if request.body.len() <= LARGE {
        return Ok(both(request));
    }
    blocking(move || both(request)).await.map_err(|_| Problem::internal())
}

/// A new job for work.
fn queued(id: &str, work: &Work) -> Job {
    Job {
        id: id.to_owned(),
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
    }
}

fn undeleted() -> Problem {
    Problem::unavailable("the disk takes no writes now, so the job stays: delete it again once there is room")
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
    pub body: Bytes,
    /// Its `Idempotency-Key`.
    pub idempotency: Option<String>,
    /// Seconds that it took to parse it.
    pub spent: f64,
}
