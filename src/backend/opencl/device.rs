//! An opened device: what its parts share, and the [`Device`] trait over them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::event::Event;

use super::memory::Block;
use super::probe::Found;
use super::program::OpenClProgram;
use super::queue::Marker;
use crate::backend::native_cache::NativeCache;
use crate::backend::wait::Waiter;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, checks, ready,
};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::translate::OpenClFeatures;

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

/// What the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) features: OpenClFeatures,
    pub(super) argument_bytes: usize,
    pub(super) profile: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Marker>,
    pub(super) pool: Pool<Block>,
    state: Mutex<State>,
    lost: OnceLock<String>,
    ids: AtomicU64,
    /// In order: what is put in first is done first.
    pub(super) queue: CommandQueue,
    pub(super) context: Context,
}

/// What is changed under the device's lock. Whoever puts work into the queue holds it.
#[derive(Default)]
pub(super) struct State {
    /// Host memory that the queue still reads.
    pub(super) uploads: VecDeque<(Event, Vec<u8>)>,
    /// Kernels that may still run.
    pub(super) timing: Vec<(Arc<str>, Event)>,
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other buffer of this device has.
    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// When what begins now must be finished.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
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

    /// The error for a code of OpenCL's.
    pub(super) fn error(&self, code: i32, action: &str) -> Error {
        let (device, action) = (self.info.name.clone(), action.to_owned());
        let message = opencl3::error_codes::ClError(code).to_string();
        match code {
            // CL_DEVICE_NOT_AVAILABLE, and the status of a command that failed.
            -2 | -14 => {
                self.lose(&message);
                Error::DeviceLost { device, reason: format!("{message} ({action})") }
            }
            // CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY
            -6..=-4 => Error::OutOfMemory { device, what: action, bytes: 0 },
            _ => Error::Device { device, action, message },
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The queue may still read from host memory. Where it never ends, the memory stays.
        if self.lost.get().is_some() || self.queue.finish().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
        }
    }
}

/// A device of the OpenCL backend.
pub struct OpenClDevice {
    shared: Arc<Shared>,
}

opaque_debug!(OpenClDevice);

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
        let shared = Shared {
            features: found.features,
            argument_bytes: found.argument_bytes,
            profile: options.profile,
            timeout: options.timeout,
            cache: NativeCache::open(options.cache_folder.as_deref(), super::NAME),
            waiter: Waiter::new(super::NAME),
            pool: Pool::new(options.memory_limit),
            state: Mutex::default(),
            lost: OnceLock::new(),
            ids: AtomicU64::new(1),
            queue,
            context,
            info,
        };
        Ok(Self { shared: Arc::new(shared) })
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
        checks::ids(program.reflection.workgroup_size, label, workgroups)
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

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.finish())
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        drop(self.shared.pool.drain());
    }

    fn take_times(&self) -> Vec<KernelTime> {
        let mut state = self.shared.lock();
        let mut times = Vec::new();
        // Those that are still running are taken next time.
        state.timing.retain(|(label, event)| match super::queue::status(event) {
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
