//! The service behind its routes: lanes, jobs and what is counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use blake2::{Blake2s256, Digest};
use cantus::backend::CancelFlag;
use tokio::sync::{oneshot, watch};

use crate::job::{Job, Record, State};
use crate::keys::{Caller, Keys, Rates, now, random_hex};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::queue::{Bounds, Finished, Lane, Means, Room, Task};
use crate::settings::{Scope, Settings};
use crate::store::{Change, Store};
use crate::work::array::Output;
use crate::work::kernel::KernelLimits;
use crate::work::{Limits, Work};

/// A device with its two lanes.
#[derive(Debug)]
pub struct Served {
    /// Its engines: for what is small, and for what is large.
    pub engines: [cantus::Engine; 2],
    small: Arc<Lane>,
    large: Arc<Lane>,
}

impl Served {
    /// The device.
    pub fn info(&self) -> &cantus::backend::DeviceInfo {
        &self.engines[1].selected().device
    }

    /// Bytes that work holds on it.
    pub fn memory(&self) -> u64 {
        self.engines.iter().map(|engine| engine.memory().in_use).sum()
    }

    /// Requests that wait for it or run on it.
    pub fn waiting(&self) -> usize {
        self.small.load().0 + self.large.load().0
    }
}

/// A job in memory.
#[derive(Debug)]
struct Live {
    record: Record,
    changes: watch::Sender<Job>,
    cancel: CancelFlag,
    /// Whether it is on the disk; closed without, when it could not be written.
    written: watch::Receiver<bool>,
}

/// The running service.
#[derive(Debug)]
pub struct Service {
    /// What it was told.
    pub settings: Settings,
    /// The keys, unless it is open.
    pub keys: Option<Arc<Keys>>,
    /// Who calls an open service.
    pub anybody: Arc<Caller>,
    /// What each key and address did lately.
    pub rates: Rates,
    /// What is counted.
    pub metrics: Metrics,
    /// Looks at the machine.
    pub watch: crate::watch::Watch,
    /// The devices.
    pub devices: Vec<Served>,
    /// Callers' kernels.
    kernels: Option<Arc<Lane>>,
    /// What limits requests.
    pub limits: Limits,
    store: Store,
    jobs: Mutex<HashMap<String, Live>>,
    /// Bytes of jobs on disk.
    disk: AtomicU64,
    stopping: AtomicBool,
    /// Large bodies are parsed by a few at a time: a tree of JSON takes many times its text.
    pub parsing: tokio::sync::Semaphore,
    /// Kibibytes of bodies that are being sent.
    pub bodies: tokio::sync::Semaphore,
    /// One measurement at a time.
    pub measuring: tokio::sync::Semaphore,
    /// Told when the service stops.
    pub stop: watch::Sender<bool>,
}

/// A job that was begun so often ends the process, it seems.
const ATTEMPTS: u32 = 3;

impl Service {
    /// Opens devices, keys and store, and takes up the jobs that were left.
    ///
    /// # Errors
    /// In words, for whoever starts it.
    pub fn open(settings: Settings, command: Vec<std::ffi::OsString>) -> Result<Arc<Self>, String> {
        let keys = if settings.open {
            if !settings.listen.ip().is_loopback() {
                return Err("--open is for this machine alone: listen on 127.0.0.1 or [::1], or use keys".to_owned());
            }
            None
        } else {
            let path = settings.keys.clone().unwrap_or_else(|| settings.data.join("keys.toml"));
            Some(Arc::new(Keys::open(&path)?))
        };
        let bounds = Bounds {
            count: settings.queue,
            bytes: settings.queue_bytes,
            share: if keys.is_none() { 100 } else { settings.queue_share },
            wait: settings.queue_time,
            time: settings.time,
            batch: settings.batch_size.max(1),
            window: Duration::from_micros(settings.batch_window),
            memory: settings.memory,
        };
        let thread = |error: std::io::Error| format!("no thread can be started: {error}");
        let mut devices = Vec::new();
        let names = if settings.devices.is_empty() { vec![String::new()] } else { settings.devices.clone() };
        for name in names {
            // An engine for each lane: a device works off what it is given in order, so one would make the small wait for the large.
            let open = || crate::engine::open(&name, settings.memory, None).map_err(|error| error.to_string());
            let engines = [open()?, open()?];
            let lane = |which: &str, engine: &cantus::Engine| {
                let name = format!("{}, {which}", engine.selected().device.name);
                Lane::begin(name, bounds, Means::Engine(engine.clone())).map_err(thread)
            };
            let (small, large) = (lane("small", &engines[0])?, lane("large", &engines[1])?);
            devices.push(Served { engines, small, large });
        }
        let kernel_limits = settings.kernels.clone().map(|device| KernelLimits {
            memory: settings.kernel_memory,
            time: settings.kernel_time,
            text: settings.kernel_text,
            device,
            command,
        });
        let kernels = kernel_limits.clone().map(|limits| {
            let bounds = Bounds { batch: 1, count: settings.queue.min(1000), ..bounds };
            Lane::begin("callers' kernels".to_owned(), bounds, Means::Processes(limits))
        });
        let kernels = kernels.transpose().map_err(thread)?;
        let opened = Store::open(&settings.data)?;
        if let Some((aside, reason)) = &opened.aside {
            crate::log(&format!("the database of jobs is damaged ({reason}); it was set aside as {}", aside.display()));
        }
        let scopes = [Scope::Operations, Scope::Administration].into_iter();
        let scopes = scopes.chain(settings.kernels.is_some().then_some(Scope::Kernels)).collect();
        let service = Arc::new(Self {
            keys,
            anybody: Arc::new(Caller::anybody(scopes)),
            rates: Rates::default(),
            metrics: Metrics::default(),
            watch: crate::watch::Watch::default(),
            devices,
            kernels,
            limits: Limits { memory: settings.memory, kernels: kernel_limits },
            store: opened.store,
            jobs: Mutex::default(),
            disk: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            parsing: tokio::sync::Semaphore::new(2),
            bodies: tokio::sync::Semaphore::new(
                usize::try_from(settings.queue_bytes / 1024)
                    .unwrap_or(usize::MAX)
                    .min(tokio::sync::Semaphore::MAX_PERMITS),
            ),
            measuring: tokio::sync::Semaphore::new(1),
            stop: watch::channel(false).0,
            settings,
        });
        service.metrics.set_aside.store(u64::from(opened.aside.is_some()), Ordering::Relaxed);
        service.resume(opened.records);
        let swept = Arc::downgrade(&service);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let Some(service) = swept.upgrade() else { break };
                service.sweep().await;
            }
        });
        Ok(service)
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Live>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes no more work.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Every lane.
    pub fn lanes(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.devices.iter().flat_map(|device| [&device.small, &device.large]).chain(&self.kernels)
    }

    /// How many jobs stand in each state.
    pub fn states(&self) -> HashMap<&'static str, u64> {
        let mut states = HashMap::new();
        for live in self.jobs().values() {
            *states.entry(live.record.job.state.name()).or_default() += 1;
        }
        states
    }

    /// The lane for work: of the device where least waits.
    fn lane(&self, work: &Work) -> Result<&Arc<Lane>, Problem> {
        if let Work::Kernel(_) = work {
            return self.kernels.as_ref().ok_or_else(Problem::internal);
        }
        let small = work.alike().is_some();
        let lanes = self.devices.iter().map(|device| if small { &device.small } else { &device.large });
        lanes.min_by_key(|lane| lane.load()).ok_or_else(Problem::internal)
    }

    fn room(
        &self,
        caller: &Caller,
        work: &Work,
        bytes: u64,
        bounded: bool,
    ) -> Result<(Arc<Lane>, Arc<str>, Room), Problem> {
        if self.is_stopping() {
            return Err(Problem::unavailable("the service is stopping"));
        }
        let (lane, owner) = (self.lane(work)?.clone(), Arc::<str>::from(caller.id.as_str()));
        let room = lane.reserve(&owner, bytes, bounded)?;
        Ok((lane, owner, room))
    }

    /// Computes while the caller waits. Dropped, the work is cancelled.
    ///
    /// # Errors
    /// 429, and what the work ends with.
    pub async fn compute(&self, caller: &Caller, work: Work, bytes: u64) -> Result<Finished, Problem> {
        struct Guard(CancelFlag);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        let (lane, owner, room) = self.room(caller, &work, bytes, true)?;
        let (reply, outcome) = oneshot::channel();
        let cancel = CancelFlag::new();
        let _guard = Guard(cancel.clone());
        lane.push(Task { owner, work, cancel, begun: None, reply, room });
        let mut finished = outcome.await.map_err(|_| Problem::unavailable("the service is stopping"))?;
        finished.result = Ok(finished.result?);
        Ok(finished)
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
        let (reply, outcome) = oneshot::channel();
        let (begun, begins) = oneshot::channel();
        lane.push(Task { owner, work, cancel, begun: Some(begun), reply, room });
        let service = self.clone();
        tokio::spawn(async move {
            if begins.await.is_ok()
                && let Some(record) = service.alter(&id, |record| {
                    record.job.state = State::Running;
                    record.attempts += 1;
                })
            {
                let _ = service.store.change(Change::Update(Box::new(record))).await;
            }
            // Without an answer the lane has ended: the job stays as it is on the disk, for the next start.
            if let Ok(finished) = outcome.await {
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
    fn resume(self: &Arc<Self>, mut records: Vec<Record>) {
        // In the order of before: what was begun comes first.
        records.sort_by_key(|record| (record.job.created, std::cmp::Reverse(record.attempts)));
        for mut record in records {
            let cancel = CancelFlag::new();
            let id = record.id.clone();
            let open = !record.job.state.ended();
            if open {
                record.job.state = State::Queued;
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
    async fn sweep(&self) {
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

    /// Takes no more work; lets what runs end for as long as `grace`, then stops it. Jobs that did not end are taken up by the next start.
    pub async fn stop(&self, grace: Duration) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        let until = tokio::time::Instant::now() + grace;
        while self.lanes().any(|lane| lane.load().0 > 0) && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for lane in self.lanes() {
            lane.end(true);
        }
        // What was computed to its end is written to its end.
        let until = tokio::time::Instant::now() + Duration::from_secs(2);
        while self.lanes().any(|lane| lane.load().0 > 0) && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
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
