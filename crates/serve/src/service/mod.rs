//! The service behind its routes: lanes, jobs and what is counted. Routes get a `Service` and nothing below it. It owns the lanes (one for each device
//! served), the jobs in memory, the store on disk and the counters. Locks here are held for moments only, never over an await.

mod answers;
mod jobs;
mod kept;
mod ledger;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits")]
mod loss;
mod resume;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cantus::backend::CancelFlag;
use tokio::sync::{oneshot, watch};

use crate::job::Shape;
use crate::keys::{Caller, Keys, Rates};
use crate::metrics::Metrics;
use crate::priority::Yields;
use crate::problem::Problem;
use crate::queue::{Bounds, Finished, Lane, Means, Room, Task};
use crate::settings::{Scope, Settings};
use crate::share::{Bound, Part, Shares};
use crate::store::Store;
use crate::traces::{self, Traces, Worked};
use crate::turns::Turns;
use crate::work::kernel::KernelLimits;
use crate::work::output::Output;
use crate::work::progress::Progress;
use crate::work::{Limits, Work};
use answers::Answers;
pub use answers::{Held, Pieces};
pub use jobs::Request;
use ledger::Ledger;

/// The time that work is given where all threads compute what takes long.
const FIRST: Duration = Duration::from_millis(50);

/// As [`FIRST`], for a process, which has to begin.
const FIRST_OF_PROCESS: Duration = Duration::from_millis(250);

/// Opens an engine on the device of a name.
type Engines = dyn Fn(&str) -> cantus::Result<cantus::Engine> + Send + Sync;

/// A device with its two lanes.
#[derive(Debug)]
pub struct Served {
    /// Its engines: for what is small, and for what is large.
    pub engines: [cantus::Engine; 2],
    /// Engines of further threads for what is large.
    further: Arc<Mutex<Vec<cantus::Engine>>>,
    small: Arc<Lane>,
    large: Arc<Lane>,
}

fn unstarted(error: std::io::Error) -> String {
    format!("no thread can be started: {error}")
}

impl Served {
    /// Opens a device with its lanes.
    fn open(name: &str, engine: &Arc<Engines>, few: Bounds, many: Bounds) -> Result<Self, String> {
        let opener = {
            let (engine, name) = (engine.clone(), name.to_owned());
            move || engine(&name).map_err(|error| error.to_string())
        };
        // An engine for each lane: a device works off what it is given in order, so one would make the small wait for the large. What an engine
        // begins goes after others as the thread does that opens it.
        let yielding = || {
            many.yields.apply();
            opener()
        };
        let opened = std::thread::scope(|scope| scope.spawn(yielding).join());
        let engines = [opener()?, opened.map_err(|_| "the device's driver panicked".to_owned())??];
        let named = |which: &str| format!("{}, {which}", engines[0].selected().device.name);
        let [first, second] = engines.each_ref().map(|engine| Means::Engine(engine.clone()));
        let none = Box::new(|| Err("it has one thread".to_owned()));
        let small = Lane::begin(named("small"), few, first, none).map_err(unstarted)?;
        let further = Arc::<Mutex<Vec<cantus::Engine>>>::default();
        let kept = further.clone();
        let opener = Box::new(move || {
            let engine = opener()?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(engine.clone());
            Ok(Means::Engine(engine))
        });
        let large = Lane::begin(named("large"), many, second, opener).map_err(unstarted)?;
        Ok(Self { engines, further, small, large })
    }

    /// The device.
    pub fn info(&self) -> &cantus::backend::DeviceInfo {
        &self.engines[1].selected().device
    }

    /// All of its engines.
    pub fn all_engines(&self) -> Vec<cantus::Engine> {
        let further = self.further.lock().unwrap_or_else(PoisonError::into_inner);
        self.engines.iter().chain(&*further).cloned().collect()
    }

    /// Bytes that work holds on it.
    pub fn memory(&self) -> u64 {
        self.all_engines().iter().map(|engine| engine.memory().in_use).sum()
    }

    /// Requests that wait for it or run on it.
    pub fn waiting(&self) -> usize {
        self.small.load().0 + self.large.load().0
    }
}

/// Opens the keys, unless the service is open.
fn keys(settings: &Settings) -> Result<Option<Arc<Keys>>, String> {
    if settings.open {
        if !settings.listen.ip().is_loopback() {
            return Err("--open is for this machine alone: listen on 127.0.0.1 or [::1], or use keys".to_owned());
        }
        return Ok(None);
    }
    let path = settings.keys.clone().unwrap_or_else(|| settings.data.join("keys.toml"));
    Ok(Some(Arc::new(Keys::open(&path)?)))
}

/// Begins the lane of callers' kernels, which run in processes of their own.
fn kernel_lane(limits: KernelLimits, settings: &Settings, bounds: Bounds) -> std::io::Result<Arc<Lane>> {
    let bounds = Bounds {
        batch: 1,
        count: settings.queue.min(1000),
        threads: settings.kernel_processes,
        first: Some(FIRST_OF_PROCESS),
        // A process has the priority of the thread that begins it: a key's first moments go before what others have long computed.
        yields: Yields::Nothing,
        ..bounds
    };
    let opener = {
        let limits = limits.clone();
        Box::new(move || Ok(Means::Processes(limits.clone())))
    };
    Lane::begin("callers' kernels".to_owned(), bounds, Means::Processes(limits), opener)
}

/// The running service.
#[derive(Debug)]
pub struct Service {
    /// Its settings.
    pub settings: Settings,
    /// The keys, unless it is open.
    pub keys: Option<Arc<Keys>>,
    /// The caller of an open service.
    pub anybody: Arc<Caller>,
    /// The recent requests of each key and address.
    pub rates: Rates,
    /// The counters.
    pub metrics: Metrics,
    /// Looks at the machine.
    pub watch: crate::watch::Watch,
    /// The destination of spans.
    pub traces: Traces,
    /// The devices.
    pub devices: Vec<Served>,
    /// Callers' kernels.
    kernels: Option<Arc<Lane>>,
    /// The limits of requests.
    pub limits: Limits,
    store: Store,
    jobs: Mutex<Ledger>,
    /// Bytes of jobs on disk.
    pub disk: Shares,
    /// Jobs.
    places: Shares,
    /// Jobs that are followed to their end.
    followed: AtomicU64,
    stopping: AtomicBool,
    /// Large bodies are parsed by a few at a time, of each key one: a tree of JSON takes many times its text.
    pub parsing: Arc<Turns>,
    /// Bytes of bodies that are being sent.
    pub bodies: Arc<Shares>,
    /// Results that are being answered.
    answers: Answers,
    /// One measurement at a time.
    pub measuring: Arc<tokio::sync::Semaphore>,
    /// Told when the service stops.
    pub stop: watch::Sender<bool>,
}

impl Service {
    /// Opens devices, keys and store, and takes up the jobs that were left.
    ///
    /// # Errors
    /// In words, for whoever starts it.
    pub fn open(settings: Settings, command: Vec<std::ffi::OsString>) -> Result<Arc<Self>, String> {
        let memory = settings.memory;
        Self::with_engines(
            settings,
            command,
            &(Arc::new(move |name: &str| crate::engine::open(name, memory, None)) as _),
        )
    }

    /// [`Service::open`], with engines for the names of devices.
    fn with_engines(
        settings: Settings,
        command: Vec<std::ffi::OsString>,
        engine: &Arc<Engines>,
    ) -> Result<Arc<Self>, String> {
        crate::folder::own(&settings.data)?;
        let keys = keys(&settings)?;
        let traces = Traces::open(&settings)?;
        let bounds = Bounds {
            count: settings.queue,
            bytes: settings.queue_bytes,
            share: if keys.is_none() { 100 } else { settings.queue_share },
            wait: settings.queue_time,
            time: settings.time,
            batch: settings.batch_size.max(1),
            window: Duration::from_micros(settings.batch_window),
            memory: settings.memory,
            threads: 1,
            first: None,
            yields: Yields::Nothing,
        };
        // Where there are keys none of them has the whole machine.
        let yields = if keys.is_some() { Yields::Core } else { Yields::Priority };
        let names = if settings.devices.is_empty() { vec![String::new()] } else { settings.devices.clone() };
        let open = |name: &String| {
            let many = Bounds { threads: settings.workers, first: Some(FIRST), yields, ..bounds };
            Served::open(name, engine, bounds, many)
        };
        let devices = names.iter().map(open).collect::<Result<_, _>>()?;
        let drivers = crate::folder::drivers(&settings.data)?;
        let kernel_limits = settings.kernels.clone().map(|device| KernelLimits {
            memory: settings.kernel_memory,
            time: settings.kernel_time,
            text: settings.kernel_text,
            device,
            command,
            folder: drivers.clone(),
        });
        let kernels = kernel_limits.clone().map(|limits| kernel_lane(limits, &settings, bounds));
        let kernels = kernels.transpose().map_err(unstarted)?;
        if let Some(limits) = &kernel_limits {
            // Kernels run in processes, and each opens it: better to know it now.
            let opened = crate::engine::open(&limits.device, limits.memory, Some(limits.time));
            opened.map_err(|error| format!("--kernels {}: {error}", limits.device))?;
        }
        let opened = Store::open(&settings.data)?;
        // What an earlier process left; this one alone has the folder now.
        crate::folder::sweep(&settings.data);
        if let Some((aside, reason)) = &opened.aside {
            crate::log(&format!(
                "the database of jobs cannot be used ({reason}); it was set aside as {}",
                aside.display()
            ));
        }
        let scopes = [Scope::Operations, Scope::Administration].into_iter();
        let scopes = scopes.chain(settings.kernels.is_some().then_some(Scope::Kernels)).collect();
        let service = Arc::new(Self {
            keys,
            anybody: Arc::new(Caller::anybody(scopes)),
            rates: Rates::default(),
            metrics: Metrics::default(),
            watch: crate::watch::Watch::default(),
            traces,
            devices,
            kernels,
            limits: Limits { memory: settings.memory, kernels: kernel_limits },
            store: opened.store,
            jobs: Mutex::default(),
            disk: Shares::new(Bound { most: settings.disk, share: bounds.share }),
            places: Shares::new(Bound { most: settings.jobs, share: bounds.share }),
            followed: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            parsing: Turns::new(4),
            bodies: Arc::new(Shares::new(Bound { most: settings.queue_bytes, share: bounds.share })),
            answers: Answers::new(Shares::new(Bound { most: settings.queue_bytes, share: bounds.share })),
            measuring: Arc::new(tokio::sync::Semaphore::new(1)),
            stop: watch::channel(false).0,
            settings,
        });
        service.metrics.set_aside.store(u64::from(opened.aside.is_some()), Ordering::Relaxed);
        service.resume(opened.records);
        service.keep_swept();
        Ok(service)
    }

    /// Sweeps now and then, as long as the service is there.
    fn keep_swept(self: &Arc<Self>) {
        let swept = Arc::downgrade(self);
        tokio::spawn(async move {
            for turn in 1_u64.. {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let Some(service) = swept.upgrade() else { break };
                service.sweep().await;
                // Other changes write the store's age too; where there are none it is written now and then.
                if turn.is_multiple_of(12) {
                    let _ = service.store.change(crate::store::Change::Age).await;
                }
            }
        });
    }

    /// Returns why it accepts no jobs now, if so.
    pub fn unready(&self) -> Option<&'static str> {
        if self.is_stopping() {
            Some("the service is stopping")
        } else {
            self.store.is_failing().then_some("the disk rejects writes")
        }
    }

    /// Returns whether it takes no more work.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Every lane.
    pub fn lanes(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.devices.iter().flat_map(|device| [&device.small, &device.large]).chain(&self.kernels)
    }

    /// The lane for work: of the device where least waits.
    fn lane(&self, work: &Work) -> Result<&Arc<Lane>, Problem> {
        if let Work::Kernel(_) = work {
            return self.kernels.as_ref().ok_or_else(Problem::internal);
        }
        let small = work.is_quick();
        let lanes = self.devices.iter().map(|device| if small { &device.small } else { &device.large });
        lanes.min_by_key(|lane| lane.load()).ok_or_else(Problem::internal)
    }

    fn room(
        &self,
        caller: &Caller,
        work: &Work,
        bytes: u64,
        spent: f64,
        bounded: bool,
    ) -> Result<(Arc<Lane>, Arc<str>, Room), Problem> {
        if self.is_stopping() {
            return Err(Problem::unavailable("the service is stopping"));
        }
        let (lane, owner) = (self.lane(work)?.clone(), Arc::<str>::from(caller.id.as_str()));
        let room = lane.reserve(&owner, bytes, spent, bounded)?;
        Ok((lane, owner, room))
    }

    /// Computes while the caller waits. The body was parsed in `spent` seconds, and `body` is the part that counts it until the queue does. Dropped, the
    /// work is cancelled.
    ///
    /// # Errors
    /// 429, and what the work ends with.
    pub async fn compute(
        &self,
        caller: &Caller,
        work: Work,
        bytes: u64,
        spent: f64,
        body: Part,
    ) -> Result<Finished, Problem> {
        struct Guard(CancelFlag);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        self.answers.fits(work.produces())?;
        let (lane, owner, room) = self.room(caller, &work, bytes, spent, true)?;
        // From here on the queue counts it.
        drop(body);
        let (reply, outcome) = oneshot::channel();
        let cancel = CancelFlag::new();
        let _guard = Guard(cancel.clone());
        let (kind, queued) = (work.kind(), SystemTime::now());
        lane.push(Task { owner, work, cancel, progress: Progress::new().0, begun: None, reply, room });
        let mut finished = outcome.await.map_err(|_| Problem::unavailable("the service is stopping"))?;
        self.traces.worked(&Worked {
            parent: traces::parent().as_deref(),
            kind,
            job: None,
            queued,
            finished: &finished,
        });
        // What the service's own end stopped, its caller did not cancel.
        let stopped = |problem: Problem| {
            if problem.status == 409 && self.is_stopping() {
                Problem::unavailable("the service is stopping")
            } else {
                problem
            }
        };
        finished.result = Ok(finished.result.map_err(stopped)?);
        Ok(finished)
    }

    /// Holds a result while its caller reads it.
    ///
    /// # Errors
    /// 413; 429 where too much is being read.
    pub fn held(&self, caller: &Caller, output: Output) -> Result<(Shape, Held), Problem> {
        let part = self.answers.part(&caller.id.as_str().into(), output.bytes.len() as u64)?;
        Ok((output.shape, Answers::hold(part, output.bytes)))
    }

    /// Takes no more work; lets what runs end for as long as `grace`, then stops it. Jobs that did not end are taken up by the next start.
    pub async fn stop(&self, grace: Duration) {
        let running = self.running();
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        let until = tokio::time::Instant::now() + grace;
        while self.lanes().any(|lane| lane.load().0 > 0) && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Before what runs is stopped, which may take a while: nothing begins any more.
        self.lanes().for_each(|lane| lane.end(false));
        let _ = tokio::time::timeout(Duration::from_secs(2), self.interrupt(running)).await;
        self.lanes().for_each(|lane| lane.end(true));
        let _ = tokio::time::timeout(Duration::from_secs(1), self.store.change(crate::store::Change::Age)).await;
        // What was computed to its end is written to its end, and what was not as well.
        let until = tokio::time::Instant::now() + Duration::from_secs(2);
        let busy = || self.followed.load(Ordering::Relaxed) > 0 || self.lanes().any(|lane| lane.load().0 > 0);
        while busy() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
