//! A backend that wraps the CPU's and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, DeviceKind, MemoryFigures, OpenOptions, Probe,
    Program, Recording, Refusal, ready,
};
use cantus::{Error, Kernel, Result};

/// The place where the device fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Open,
    Compile,
    /// From the n-th allocation on.
    Allocate(usize),
    /// The n-th submission is refused.
    Submit(usize),
    /// The n-th submission loses the device.
    Lose(usize),
    /// Reads wait until `Counts::open`; the n-th submission is refused.
    Gate(usize),
    /// Calls of one kind fail.
    At(Strike),
    /// One call of any kind in 61 fails.
    Sometimes,
    /// Nothing fails, but every submission waits first, as a GPU behind a slow link does; and it calls itself a GPU.
    Slow(std::time::Duration),
    /// Nothing fails, but it must give known answers first, and takes this long to compile each kernel.
    Unproven(std::time::Duration),
    /// Its compiler takes this long for a kernel called `saxpy`.
    Stuck(std::time::Duration),
    /// It keeps the processor busy this long with such a kernel.
    Busy(std::time::Duration),
}

/// A kind of call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Compile,
    Allocate,
    Write,
    Read,
    Submit,
    Record,
    Replay,
    Finish,
}

/// The way in which a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// With an error of the device's.
    Refused,
    /// As refused, and a batch comes back: nothing of it ran.
    Returned,
    /// As returned, where a dispatch is called "bad".
    Bad,
    NoMemory,
    /// The device is lost, then and for good.
    Lost,
}

/// The calls that fail, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    pub place: Place,
    pub kind: Kind,
    /// This many calls go well before …
    pub after: usize,
    /// … this many fail.
    pub times: usize,
    /// The failure comes out only when the call was waited for a while.
    pub late: bool,
}

#[derive(Default)]
pub struct Counts {
    /// Calls of the kind that fails, since it may.
    pub calls: AtomicUsize,
    /// From when on calls of the kind fail.
    pub armed: AtomicBool,
    pub allocations: AtomicUsize,
    pub submissions: AtomicUsize,
    pub lost: AtomicBool,
    pub open: AtomicBool,
}

pub struct FaultyBackend {
    pub fault: Fault,
    pub counts: Arc<Counts>,
}

struct FaultyDevice {
    inner: Arc<dyn Device>,
    info: DeviceInfo,
    fault: Fault,
    counts: Arc<Counts>,
}

fn fail<T>(action: &str) -> Result<T> {
    Err(Error::Device { device: "faulty".into(), action: action.into(), message: "made to fail".into() })
}

fn gone<T>() -> Result<T> {
    Err(Error::DeviceLost { device: "faulty".into(), reason: "made to be lost".into() })
}

impl Backend for FaultyBackend {
    fn name(&self) -> &str {
        "faulty"
    }
    fn priority(&self) -> i32 {
        90
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async {
            let mut probe = CpuBackend::new().probe().await;
            for device in &mut probe.devices {
                rename(device, self.fault);
            }
            probe
        })
    }
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            if self.fault == Fault::Open {
                return fail("opening");
            }
            let inner = CpuBackend::new().open(index, options).await?;
            let mut info = inner.info().clone();
            rename(&mut info, self.fault);
            Ok(Arc::new(FaultyDevice { inner, info, fault: self.fault, counts: self.counts.clone() })
                as Arc<dyn Device>)
        })
    }
}

fn rename(info: &mut DeviceInfo, fault: Fault) {
    if matches!(fault, Fault::Slow(_)) {
        info.kind = DeviceKind::DiscreteGpu;
    }
    info.backend = "faulty".into();
    info.name = if matches!(fault, Fault::Unproven(_)) { "unproven" } else { "faulty" }.into();
    info.priority = 90;
}

/// Waits for a while, if the failure is to come late.
async fn delay(late: bool) {
    for _ in 0..if late { 20 } else { 0 } {
        let mut waited = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut waited, true) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }
}

impl FaultyDevice {
    /// The failure of this call, if it is to fail.
    fn struck(&self, place: Place) -> Option<(Strike, Error)> {
        if self.fault == Fault::Sometimes {
            let number = self.counts.calls.fetch_add(1, Ordering::SeqCst);
            let kind = if number.is_multiple_of(2) { Kind::Returned } else { Kind::Refused };
            let strike = Strike { place, kind, after: 0, times: 1, late: number.is_multiple_of(3) };
            let failing = number % 61 == 60;
            return failing.then(|| (strike, fail::<()>(&format!("{place:?}")).unwrap_err()));
        }
        let Fault::At(strike) = self.fault else { return None };
        if self.lost() {
            return Some((strike, gone::<()>().unwrap_err()));
        }
        if strike.place != place || !self.counts.armed.load(Ordering::SeqCst) {
            return None;
        }
        let number = self.counts.calls.fetch_add(1, Ordering::SeqCst);
        if number < strike.after || number >= strike.after + strike.times {
            return None;
        }
        let error = match strike.kind {
            Kind::NoMemory => Error::OutOfMemory { device: "faulty".into(), what: format!("{place:?}"), bytes: 1 },
            Kind::Lost => {
                self.counts.lost.store(true, Ordering::SeqCst);
                gone::<()>().unwrap_err()
            }
            _ => fail::<()>(&format!("{place:?}")).unwrap_err(),
        };
        Some((strike, error))
    }

    /// The call, or its failure.
    fn or_struck<'a, T: Send + 'a>(
        &'a self,
        place: Place,
        call: impl FnOnce() -> BoxFuture<'a, Result<T>>,
    ) -> BoxFuture<'a, Result<T>> {
        match self.struck(place) {
            None => call(),
            Some((strike, error)) => Box::pin(async move {
                delay(strike.late).await;
                Err(error)
            }),
        }
    }

    fn lost(&self) -> bool {
        self.counts.lost.load(Ordering::SeqCst)
    }
}

impl Device for FaultyDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        if self.fault == Fault::Compile {
            return ready(fail(&format!("compiling the kernel {}", kernel.name())));
        }
        match self.fault {
            Fault::Unproven(delay) => std::thread::sleep(delay),
            Fault::Stuck(delay) if kernel.name() == "saxpy" => std::thread::sleep(delay),
            Fault::Busy(time) if kernel.name() == "saxpy" => {
                let end = std::time::Instant::now() + time;
                while std::time::Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            _ => {}
        }
        self.or_struck(Place::Compile, || self.inner.compile(kernel))
    }
    fn must_prove(&self) -> bool {
        matches!(self.fault, Fault::Unproven(_) | Fault::Stuck(_) | Fault::Busy(_))
    }
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        self.inner.check_workgroups(program, label, workgroups)
    }
    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        let number = self.counts.allocations.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Allocate(from) if number >= from => {
                ready(Err(Error::OutOfMemory { device: "faulty".into(), what: label.into(), bytes }))
            }
            _ if self.lost() => ready(gone()),
            _ => self.or_struck(Place::Allocate, || self.inner.allocate(bytes, contents, label)),
        }
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        if self.lost() {
            ready(gone())
        } else {
            self.or_struck(Place::Write, || self.inner.write(buffer, offset, data))
        }
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        if self.lost() {
            return ready(gone());
        }
        self.or_struck(Place::Read, move || {
            Box::pin(async move {
                std::future::poll_fn(|context| {
                    if !matches!(self.fault, Fault::Gate(_)) || self.counts.open.load(Ordering::SeqCst) {
                        return std::task::Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                })
                .await;
                self.inner.read(buffer, offset, into).await
            })
        })
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        let number = self.counts.submissions.fetch_add(1, Ordering::SeqCst);
        let bad =
            batch.iter().any(|command| matches!(command, Command::Dispatch(dispatch) if &*dispatch.label == "bad"));
        let only_bad = matches!(self.fault, Fault::At(Strike { kind: Kind::Bad, .. }));
        if let Some((strike, error)) = (bad || !only_bad).then(|| self.struck(Place::Submit)).flatten() {
            return Box::pin(async move {
                delay(strike.late).await;
                match strike.kind {
                    Kind::Returned | Kind::Bad => Err(Refusal::whole(error, batch)),
                    _ => Err(error.into()),
                }
            });
        }
        match self.fault {
            Fault::Slow(delay) => {
                std::thread::sleep(delay);
                self.inner.submit(batch)
            }
            Fault::Submit(at) | Fault::Gate(at) if number == at => {
                ready(fail("submitting a batch").map_err(Refusal::from))
            }
            Fault::Lose(at) if number == at => {
                self.counts.lost.store(true, Ordering::SeqCst);
                ready(gone().map_err(Refusal::from))
            }
            _ if self.lost() => ready(gone().map_err(Refusal::from)),
            _ => self.inner.submit(batch),
        }
    }
    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        self.or_struck(Place::Record, || self.inner.record(batch))
    }
    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
        match self.struck(Place::Replay) {
            None => self.inner.replay(recording),
            Some((strike, error)) => Box::pin(async move {
                delay(strike.late).await;
                Err(error.into())
            }),
        }
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        if self.lost() { ready(gone()) } else { self.or_struck(Place::Finish, || self.inner.finish()) }
    }
    fn memory(&self) -> MemoryFigures {
        self.inner.memory()
    }
    fn trim(&self) {
        self.inner.trim();
    }
}
