//! An opened device: how it is opened, and the [`Device`] trait over what its parts do. The engine sees only this trait. Captures use the device's
//! defaults, which keep commands and submit them again. Each method hands over to `memory`, `program` or `queue`, where the device's lock is taken.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;

use super::event::status;
use super::probe::{Found, NAME};
use super::program::OpenClProgram;
use super::shared::Shared;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Refusal, ready,
};
use crate::checks::Owner as _;
use crate::error::{Error, Result};
use crate::health::Health;
use crate::kernel::Kernel;
use crate::native_cache::NativeCache;
use crate::wait::{self, Waiter};

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

/// A device of the OpenCL backend.
pub struct OpenClDevice {
    shared: Arc<Shared>,
}

cantus_base::opaque_debug!(OpenClDevice);

impl OpenClDevice {
    pub(super) fn open(found: &Found, options: &OpenOptions) -> Result<Self> {
        let info = found.info.clone();
        let fault = |code: opencl3::error_codes::ClError| Error::Device {
            device: info.name.clone(),
            action: "opening".to_owned(),
            message: code.to_string(),
        };
        let context = Context::from_device(&found.device).map_err(fault)?;
        let properties = if options.profile { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        #[expect(deprecated, reason = "its successor is not in OpenCL 1.2")]
        let queue = CommandQueue::create_default(&context, properties).map_err(fault)?;
        let health = Arc::new(Health::new(found.info.name.clone(), options.timeout));
        let shared = Shared {
            features: found.features,
            argument_bytes: found.argument_bytes,
            is_intels_processor: found.is_intels_processor,
            profile: options.profile,
            cache: NativeCache::open(options.cache_folder.as_deref(), NAME),
            waiter: Waiter::new(NAME, health.clone(), wait::look(found.info.kind)),
            pool: Pool::new(options.memory_limit),
            state: Mutex::default(),
            health: health.clone(),
            ids: AtomicU64::new(1),
            queue,
            context,
            info,
        };
        let shared = Arc::new(shared);
        let at_work = Arc::downgrade(&shared);
        health.watch_over(at_work);
        Ok(Self { shared })
    }
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        ready(OpenClProgram::new(&self.shared, kernel).map(|program| Arc::new(program) as Arc<dyn Program>))
    }

    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        self.shared.check_ids(program, label, workgroups)
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

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.write(&**buffer, offset, data))
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.read(&**buffer, offset, into))
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.submit(batch))
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.finish())
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        drop(self.shared.pool.drain());
    }

    fn must_prove(&self) -> bool {
        true
    }

    fn take_times(&self) -> Vec<KernelTime> {
        let mut state = self.shared.lock();
        let mut times = Vec::new();
        // Those that are still running are taken next time.
        state.timing.retain(|(label, event)| match status(event) {
            Ok(false) => true,
            Ok(true) => {
                if let (Ok(start), Ok(end)) = (event.profiling_command_start(), event.profiling_command_end())
                    && times.len() < KEPT_TIMES
                {
                    times.push(KernelTime {
                        label: label.clone(),
                        start: None,
                        time: Duration::from_nanos(end.saturating_sub(start)),
                    });
                }
                false
            }
            Err(_) => false,
        });
        times
    }
}
