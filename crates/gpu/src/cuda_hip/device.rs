//! An opened device: how it is opened, and the [`Device`] trait over what its parts do. The engine sees only this trait. Each method hands over to the part
//! that does it (`memory`, `queue`, `program`, `recording`); locks are taken there. Nothing here calls the driver except when the device is opened.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::collective::Rings;
use super::driver::Driver;
use super::probe::Found;
use super::program::StreamProgram;
use super::shared::Shared;
use super::takeover::Takeovers;
use crate::backend::native::ProductShape;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Recording, Refusal, Sharing, SumPart, TakeoverFigures, UniformChange, devices_text, ready,
};
use crate::checks::Owner as _;
use crate::error::{Error, Result};
use crate::health::Health;
use crate::kernel::Kernel;
use crate::native_cache::NativeCache;
use crate::wait::{self, Waiter};
use cantus_base::listed::Listed;

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

/// A device of a stream backend.
pub(crate) struct StreamDevice {
    pub(super) shared: Arc<Shared>,
}

impl StreamDevice {
    /// Opens a device that was found.
    pub(crate) fn open(found: &Found, options: &OpenOptions) -> Result<Self> {
        let info = found.info.clone();
        let vendor = found.platform.vendor;
        let driver = Driver::open(found.platform.clone(), found.device, found.pools);
        let driver = driver.map_err(|fault| Error::Device {
            device: info.name.clone(),
            action: "opening".to_owned(),
            message: fault.message,
        })?;
        let driver = Arc::new(driver);
        let health = Arc::new(Health::new(info.name.clone(), options.timeout));
        let shared = Shared {
            waiter: Waiter::new(vendor.name, health.clone(), wait::look(info.kind)),
            info,
            architecture: found.architecture.clone(),
            grid: found.grid,
            profile: options.profile,
            without_native: options.without_native,
            cluster_bytes: found.cluster_bytes,
            takeovers: Takeovers::default(),
            cache: NativeCache::open(options.cache_folder.as_deref(), vendor.name),
            state: Mutex::default(),
            returned: Mutex::default(),
            pool: Pool::new(options.memory_limit),
            health: health.clone(),
            ways: OnceLock::new(),
            products: OnceLock::new(),
            rings: Rings::default(),
            driver,
        };
        let shared = Arc::new(shared);
        let at_work = Arc::downgrade(&shared);
        health.watch_over(at_work);
        Ok(Self { shared })
    }
}

/// Opens the found device of that index.
pub(crate) fn open(
    backend: &str,
    found: &std::result::Result<Vec<Found>, String>,
    index: usize,
    options: &OpenOptions,
) -> Result<Arc<dyn Device>> {
    let missing = |reason: String| Error::NoDevice {
        wanted: format!("the backend {backend}, device {index}"),
        reasons: vec![(backend.to_owned(), reason)],
    };
    let found = found.as_ref().map_err(|reason| missing(reason.clone()))?;
    let chosen = found.get(index).ok_or_else(|| missing(devices_text(found.len())))?;
    StreamDevice::open(chosen, options).map(|device| Arc::new(device) as Arc<dyn Device>)
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
        self.shared.check_bound(program, label, bindings)
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(async move {
            let buffer = self.shared.allocate(bytes, contents, label).await?;
            Ok(Arc::new(buffer) as Arc<dyn Buffer>)
        })
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.write(&**buffer, offset, data))
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.read(&**buffer, offset, into))
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.submit(batch))
    }

    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        ready(self.shared.record(batch))
    }

    fn update(&self, recording: &Arc<dyn Recording>, changes: &[UniformChange]) -> Result<bool> {
        self.shared.update(&**recording, changes)
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
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

    fn sum_over<'a>(
        &'a self,
        members: Vec<(&'a dyn Device, SumPart)>,
        count: usize,
    ) -> BoxFuture<'a, Option<Result<()>>> {
        Box::pin(async move {
            let own = |(device, part): (&dyn Device, SumPart)| {
                let own = (device as &dyn Any).downcast_ref::<Self>()?;
                let vendor = std::ptr::eq(own.shared.driver.platform.vendor, self.shared.driver.platform.vendor);
                vendor.then(|| (own.shared.clone(), part))
            };
            let members: Option<Vec<_>> = members.into_iter().map(own).try_listed();
            self.shared.sum_over(members?, count).await
        })
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        self.shared.trim();
    }

    fn takes(&self, product: &ProductShape) -> bool {
        self.shared.takes_product(product)
    }

    fn has_takeovers(&self, entry: &str) -> bool {
        let takeovers = self.shared.driver.platform.vendor.takeovers;
        !self.shared.without_native && takeovers.iter().any(|takeover| takeover.entry == entry)
    }

    fn takeovers(&self) -> Vec<TakeoverFigures> {
        self.shared.takeovers.list()
    }

    fn must_prove(&self) -> bool {
        true
    }

    fn take_times(&self) -> Vec<KernelTime> {
        let shared = &self.shared;
        let mut state = shared.lock();
        let Ok(_current) = shared.driver.enter() else { return Vec::new() };
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
