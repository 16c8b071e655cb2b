//! An opened device: what its parts share, and the [`Device`] trait over them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::compiler::Compiler;
use super::driver::{Block, Driver, Event, Fault, FaultKind, Pinned};
use super::program::StreamProgram;
use super::queue::Arguments;
use super::staging::Staging;
use super::{Architecture, Found};
use crate::backend::native_cache::NativeCache;
use crate::backend::wait::Waiter;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Recording, ready,
};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

/// What the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) architecture: Architecture,
    /// Most blocks in each dimension of a launch.
    pub(super) grid: [u32; 3],
    pub(super) profile: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Event>,
    // Dropped in this order: what refers to the driver's objects before the driver.
    state: Mutex<State>,
    pub(super) pool: Pool<Block>,
    lost: OnceLock<String>,
    compiler: OnceLock<std::result::Result<Compiler, String>>,
    pub(super) driver: Arc<Driver>,
}

/// What is changed under the device's lock. Whoever puts work into the stream holds it.
#[derive(Default)]
pub(super) struct State {
    pub(super) staging: Staging,
    /// Blocks for reads, not in use.
    pub(super) reading: Vec<Pinned>,
    pub(super) arguments: Arguments,
    /// Kernels that may still run, with the events around them.
    pub(super) timing: Vec<(Arc<str>, Event, Event)>,
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When what begins now must be finished.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// The compiler, loaded when first asked for.
    pub(super) fn compiler(&self) -> std::result::Result<&Compiler, &str> {
        let vendor = self.driver.platform.vendor;
        self.compiler.get_or_init(|| Compiler::new(vendor, &vendor.compiler_functions)).as_ref().map_err(String::as_str)
    }

    /// From now on nothing is asked of the device.
    pub(super) fn lose(&self, reason: &str) {
        let _ = self.lost.set(reason.to_owned());
    }

    pub(super) fn check_alive(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(Error::DeviceLost { device: self.info.name.clone(), reason: reason.clone() }),
        }
    }

    /// The error for a fault of the driver's. One that ends the context ends the device.
    pub(super) fn error(&self, fault: Fault, action: &str) -> Error {
        let device = self.info.name.clone();
        match fault.kind {
            FaultKind::Call => Error::Device { device, action: action.to_owned(), message: fault.message },
            FaultKind::OutOfMemory => Error::OutOfMemory { device, what: action.to_owned(), bytes: 0 },
            FaultKind::Lost => {
                self.lose(&fault.message);
                Error::DeviceLost { device, reason: format!("{} ({action})", fault.message) }
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The stream may still be reading from the staging blocks. Where it never ends, they stay.
        if self.lost.get().is_some() || self.driver.settle().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
        }
    }
}

/// A device of a stream backend.
pub(in crate::backend) struct StreamDevice {
    shared: Arc<Shared>,
}

impl StreamDevice {
    /// Opens a device that was found.
    pub(in crate::backend) fn open(found: &Found, options: &OpenOptions) -> Result<Self> {
        let info = found.info.clone();
        let vendor = found.platform.vendor;
        let driver = Driver::open(found.platform.clone(), found.device, found.current, found.pools);
        let driver = driver.map_err(|fault| Error::Device {
            device: info.name.clone(),
            action: "opening".to_owned(),
            message: fault.message,
        })?;
        let driver = Arc::new(driver);
        let shared = Shared {
            info,
            architecture: found.architecture.clone(),
            grid: found.grid,
            profile: options.profile,
            timeout: options.timeout,
            cache: NativeCache::open(options.cache_folder.as_deref(), vendor.name),
            waiter: Waiter::new(vendor.name),
            state: Mutex::default(),
            pool: Pool::new(options.memory_limit),
            lost: OnceLock::new(),
            compiler: OnceLock::new(),
            driver,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Device for StreamDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        ready(StreamProgram::new(&self.shared, kernel).map(|program| Arc::new(program) as Arc<dyn Program>))
    }

    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        match self.shared.folding(label, workgroups, program)? {
            None => Ok(()),
            Some(_) => program.form(program.by_value_fits(), true).map(|_| ()),
        }
    }

    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        self.shared.check_bindings(program, label, bindings)
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        ready(self.shared.allocate(bytes, contents, label).map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        ready(self.shared.write(&**buffer, offset, data))
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.read(&**buffer, offset, into))
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<()>> {
        ready(self.shared.submit(&batch))
    }

    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        ready(self.shared.record(batch))
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<()>> {
        ready(self.shared.replay(&**recording))
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.finish())
    }

    fn copy_from<'a>(
        &'a self,
        target: &'a Arc<dyn Buffer>,
        other: &'a dyn Device,
        source: &'a Arc<dyn Buffer>,
        bytes: u64,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let other = (other as &dyn Any).downcast_ref::<Self>()?;
        let same_vendor = std::ptr::eq(other.shared.driver.platform.vendor, self.shared.driver.platform.vendor);
        let copy = || self.shared.copy_peer(target.clone(), other.shared.clone(), source.clone(), bytes);
        same_vendor.then(|| Box::pin(copy()) as BoxFuture<'a, Result<()>>)
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        self.shared.trim();
    }

    fn must_prove(&self) -> bool {
        true
    }

    fn take_times(&self) -> Vec<KernelTime> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if shared.driver.make_current().is_err() {
            return Vec::new();
        }
        let mut times = Vec::new();
        // Those that are still running are taken next time.
        state.timing.retain(|(label, start, end)| match shared.driver.passed(end) {
            Ok(false) => true,
            Ok(true) => {
                if let Ok(milliseconds) = shared.driver.elapsed(start, end)
                    && times.len() < KEPT_TIMES
                {
                    let time = Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0);
                    times.push(KernelTime { label: label.clone(), start: None, time });
                }
                false
            }
            Err(_) => false,
        });
        times
    }
}
