//! A backend that wraps the CPU's and fails where it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, DeviceKind, MemoryFigures, OpenOptions, Probe,
    Program, Refusal, ready,
};
use cantus::{Error, Kernel, Result};

/// Where the device fails.
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
    /// Nothing fails, but every submission waits first, as a GPU behind a slow link does; and it calls itself a GPU.
    Slow(std::time::Duration),
}

#[derive(Default)]
pub struct Counts {
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
    info.name = "faulty".into();
    info.priority = 90;
}

impl FaultyDevice {
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
        self.inner.compile(kernel)
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
            _ => self.inner.allocate(bytes, contents, label),
        }
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        if self.lost() { ready(gone()) } else { self.inner.write(buffer, offset, data) }
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        if self.lost() {
            return ready(gone());
        }
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
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        let number = self.counts.submissions.fetch_add(1, Ordering::SeqCst);
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
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        if self.lost() { ready(gone()) } else { self.inner.finish() }
    }
    fn memory(&self) -> MemoryFigures {
        self.inner.memory()
    }
    fn trim(&self) {
        self.inner.trim();
    }
}
