//! The processor as a device.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::memory::{CpuBuffer, Memory};
use super::program::{CpuProgram, KernelProgram};
use super::queue::{Queue, TimeLimits};
use crate::backend::needs;
use crate::backend::{
    BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, HostMemory, KernelTime, MemoryFigures, OpenOptions,
    Program, Refusal, ready,
};
use crate::error::Result;
use crate::kernel::Kernel;
use cantus_base::memory;

/// The processor, opened.
pub struct CpuDevice {
    info: DeviceInfo,
    memory: Memory,
    queue: Queue,
}

cantus_base::opaque_debug!(CpuDevice);

impl CpuDevice {
    pub(super) fn new(info: DeviceInfo, options: &OpenOptions) -> Result<Self> {
        // Without a limit of the user's, leave the system a fifth of its memory: overcommitment would end in its killing us.
        let limit = options.memory_limit.or(info.memory_bytes.map(|bytes| bytes / 5 * 4));
        let memory = Memory::new(info.name.clone(), limit);
        let limits =
            TimeLimits { timeout: options.timeout, stall: options.stall_limit, check_stores: options.check_stores };
        let queue = Queue::new(info.name.clone(), limits)?;
        Ok(Self { info, memory, queue })
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let check = || {
            let reflection = kernel.reflection()?;
            needs::check(reflection, &self.info, &[])?;
            KernelProgram::new(kernel, &self.info.name).map(CpuProgram::Kernel)
        };
        ready(check().map(|program| Arc::new(program) as Arc<dyn Program>))
    }

    fn check_workgroups(&self, _program: &dyn Program, _label: &str, _workgroups: [u32; 3]) -> Result<()> {
        // The executor takes any number.
        Ok(())
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        ready(self.memory.allocate(bytes, contents, label).map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>))
    }

    fn host_address(&self, buffer: &Arc<dyn Buffer>) -> Option<NonNull<u8>> {
        let any: &dyn Any = &**buffer;
        let buffer = any.downcast_ref::<CpuBuffer>()?;
        buffer.lend();
        NonNull::new(buffer.start())
    }

    fn adopt(&self, memory: HostMemory) -> Result<Arc<dyn Buffer>, HostMemory> {
        // Words are read whole, and elements by vectors' own loads.
        if memory.start().as_ptr().align_offset(16) != 0 || !memory.bytes().is_multiple_of(4) {
            return Err(memory);
        }
        Ok(Arc::new(self.memory.adopt(memory)))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.queue.idle().await;
            let _exclusive = self.queue.exclusive();
            let target = self.queue.target(&**buffer, offset, data.len() as u64)?;
            // SAFETY: the range was checked; no job runs while the guard lives.
            unsafe { memory::copy(data.as_ptr(), target, data.len()) };
            Ok(())
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.queue.idle().await;
            let _exclusive = self.queue.exclusive();
            let source = self.queue.range(&**buffer, offset, into.len() as u64)?;
            // SAFETY: the range was checked; no job runs while the guard lives.
            unsafe { memory::copy(source.cast_const(), into.as_mut_ptr(), into.len()) };
            Ok(())
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.queue.submit(batch, true)
    }

    fn submit_awaited(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.queue.submit(batch, false)
    }

    fn help(&self) {
        self.queue.help();
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.queue.idle().await;
            Ok(())
        })
    }

    #[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
    fn native(&self, operation: &crate::backend::native::NativeOperation) -> Option<Arc<dyn Program>> {
        super::native::Native::new(operation).map(|native| Arc::new(CpuProgram::Native(native)) as Arc<dyn Program>)
    }

    fn memory(&self) -> MemoryFigures {
        self.memory.figures()
    }

    fn trim(&self) {
        self.memory.trim();
    }

    fn take_times(&self) -> Vec<KernelTime> {
        self.queue.take_times()
    }
}
