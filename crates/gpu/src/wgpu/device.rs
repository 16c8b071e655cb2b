//! An opened device: the [`Device`] trait over what its parts do. The engine sees only this trait. Futures here never hold the device's lock, nor an error
//! scope, over an await: calls are made under the lock, answers awaited after it. The app's own textures are in `import`.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::groups::GroupCache;
use super::program::WgpuProgram;
use super::shared::{Shared, State};
use super::texture::Samplers;
use super::uniforms::UniformArena;
use super::{checks, errors};
#[cfg(feature = "wgsl")]
use crate::backend::Textures;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, Refusal, ready,
};
use crate::checks::Owner as _;
use crate::error::{Error, Result};
use crate::health::Health;
use crate::kernel::Kernel;
use crate::matrices::Matrices;
#[cfg(not(target_arch = "wasm32"))]
use crate::wait::Waiter;

/// A device of the wgpu backend.
pub(super) struct WgpuDevice {
    pub(super) shared: Arc<Shared>,
}

impl WgpuDevice {
    /// Wraps an opened device. `owned`: its error callbacks are ours to set.
    pub(super) fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        info: DeviceInfo,
        matrices: Matrices,
        options: &OpenOptions,
        owned: bool,
    ) -> Self {
        let health = Arc::new(Health::new(info.name.clone(), options.timeout));
        if owned {
            errors::attach(&health, &device);
        }
        let limits = device.limits();
        let state = State {
            groups: GroupCache::default(),
            uniforms: UniformArena::new(&limits),
            samplers: Samplers::default(),
            clears: FxHashMap::default(),
            staging: Vec::new(),
            unsubmitted: 0,
        };
        let turn = (device.adapter_info().backend == wgpu::Backend::Gl).then(Arc::default);
        let shared = Shared {
            #[cfg(not(target_arch = "wasm32"))]
            // Nothing is answered without a poll.
            waiter: Waiter::new("wgpu", health.clone(), std::time::Duration::ZERO),
            device,
            queue,
            info,
            matrices,
            limits,
            health,
            pool: Pool::new(options.memory_limit),
            profile: options.profile,
            times: Arc::default(),
            state: Mutex::new(state),
            owned,
            ids: AtomicU64::new(1),
            turn,
        };
        let shared = Arc::new(shared);
        #[cfg(not(target_arch = "wasm32"))]
        {
            let at_work = Arc::downgrade(&shared);
            shared.health.watch_over(at_work);
        }
        Self { shared }
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let compiling = match WgpuProgram::start(&self.shared, kernel) {
            Ok(compiling) => compiling,
            Err(error) => return ready(Err(error)),
        };
        Box::pin(async move {
            match compiling.caught.first().await {
                Some(error) => {
                    Err(compiling.program.refused(self.shared.compile_error(&error, &compiling.program.name)))
                }
                None if self.shared.health.is_lost() => Err(self.shared.health.lost_error()),
                None => Ok(Arc::new(compiling.program) as Arc<dyn Program>),
            }
        })
    }

    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        self.shared.check_ids(program, label, workgroups)?;
        let limit = self.shared.limits.max_compute_workgroups_per_dimension;
        if workgroups.contains(&0) || workgroups.iter().all(|&count| count <= limit) {
            return Ok(());
        }
        checks::folded(&self.shared, program, label, workgroups).map(|_| ())
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
        Box::pin(self.shared.clone().allocate(bytes, contents, label.into()))
    }

    #[cfg(feature = "wgsl")]
    fn textures(&self) -> Option<&dyn Textures> {
        // Another instance's textures would be looked up among its own.
        (!self.shared.owned).then_some(self as &dyn Textures)
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a write")?;
            self.shared.write(buffer, offset, data).await
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a read")?;
            self.shared.read(buffer, offset, into).await
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        match self.shared.submit(&batch) {
            Ok(submitted) => Box::pin(submitted.accepted(batch)),
            // Seen before anything was encoded.
            Err(error @ Error::Cancelled { .. }) => ready(Err(Refusal::whole(error, batch))),
            Err(error) => ready(Err(error.into())),
        }
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.clone().finish())
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

    fn longest(&self) -> Option<u64> {
        crate::checks::longest(self.info().kind)
    }

    fn take_times(&self) -> Vec<KernelTime> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            // The times arrive by callback, and callbacks by polling.
            let _ = self.shared.contained("taking times", || {
                let _turn = self.shared.turn();
                self.shared.device.poll(wgpu::PollType::Poll)
            });
        }
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
