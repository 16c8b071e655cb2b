//! A device that makes every wait of its callers visible: each of its calls that may wait is pending once before it begins and once after it is
//! done, so a future that uses it can be dropped at each place where it awaits.

use std::sync::Arc;
use std::task::Poll;

use cantus::backend::{
    Backend, Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions,
    Probe, Program, Recording, Refusal, native::NativeOperation,
};
use cantus::{Kernel, Result};

/// Another backend's devices, which hesitate.
pub struct Hesitant(pub Arc<dyn Backend>);

struct HesitantDevice(Arc<dyn Device>);

/// Pending once.
pub async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn hesitate<T>(work: impl Future<Output = T>) -> T {
    pause().await;
    let result = work.await;
    pause().await;
    result
}

impl Backend for Hesitant {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn priority(&self) -> i32 {
        self.0.priority()
    }
    fn may_exceed(&self, priority: i32) -> bool {
        self.0.may_exceed(priority)
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(hesitate(self.0.probe()))
    }
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(hesitate(async move {
            Ok(Arc::new(HesitantDevice(self.0.open(index, options).await?)) as Arc<dyn Device>)
        }))
    }
}

impl Device for HesitantDevice {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        Box::pin(hesitate(self.0.compile(kernel)))
    }
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        self.0.check_workgroups(program, label, workgroups)
    }
    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        self.0.check_bindings(program, label, bindings)
    }
    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(hesitate(self.0.allocate(bytes, contents, label)))
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(hesitate(self.0.write(buffer, offset, data)))
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(hesitate(self.0.read(buffer, offset, into)))
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        // Queued in the call, as the trait has it.
        Box::pin(hesitate(self.0.submit(batch)))
    }
    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        Box::pin(hesitate(self.0.record(batch)))
    }
    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
        Box::pin(hesitate(self.0.replay(recording)))
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(hesitate(self.0.finish()))
    }
    fn native(&self, operation: &NativeOperation) -> Option<Arc<dyn Program>> {
        self.0.native(operation)
    }
    fn must_prove(&self) -> bool {
        self.0.must_prove()
    }
    fn memory(&self) -> MemoryFigures {
        self.0.memory()
    }
    fn trim(&self) {
        self.0.trim();
    }
    fn take_times(&self) -> Vec<KernelTime> {
        self.0.take_times()
    }
}
