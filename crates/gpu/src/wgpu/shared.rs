//! The state that the parts of an opened device share: below memory, programs and the queue, which are made of it. Buffers and programs hold `Shared`. On
//! GL one context serves all threads: whoever calls wgpu takes the turn first and the lock second. Calls into wgpu are contained: a panic in there becomes
//! an error of the device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use web_time::Instant;

use super::errors::{Errors as _, Scopes};
use super::groups::GroupCache;
use super::texture::Samplers;
use super::uniforms::UniformArena;
use super::work::{Fault, Work};
#[cfg(not(target_arch = "wasm32"))]
use crate::backend::detached::AtWork;
use crate::backend::{DeviceInfo, KernelTime, MaybeSend, Pool};
use crate::deep_stack;
use crate::error::{Error, Result};
use crate::health::Health;
use crate::matrices::Matrices;
#[cfg(not(target_arch = "wasm32"))]
use crate::wait::Waiter;

/// wgpu's buffer and its identity for caches.
#[derive(Debug, Clone)]
pub(super) struct RawBuffer {
    pub(super) buffer: wgpu::Buffer,
    pub(super) id: u64,
}

/// The state that the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) info: DeviceInfo,
    pub(super) matrices: Matrices,
    pub(super) limits: wgpu::Limits,
    pub(super) health: Arc<Health>,
    pub(super) pool: Pool<RawBuffer>,
    pub(super) profile: bool,
    pub(super) times: Arc<Mutex<Vec<KernelTime>>>,
    pub(super) state: Mutex<State>,
    /// False for an app's own device, whose error callbacks are the app's.
    pub(super) owned: bool,
    pub(super) ids: AtomicU64,
    /// On GL all threads share one context: whoever calls wgpu holds this.
    pub(super) turn: Option<Arc<Mutex<()>>>,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) waiter: Waiter<Work>,
}

/// The state under the device's lock.
pub(super) struct State {
    pub(super) groups: GroupCache,
    pub(super) uniforms: UniformArena,
    pub(super) samplers: Samplers,
    /// Reused buffers that are to be cleared before the next work, by id.
    pub(super) clears: FxHashMap<u64, wgpu::Buffer>,
    /// Staging buffers for reads, not in use.
    pub(super) staging: Vec<wgpu::Buffer>,
    /// Bytes written since the last submission.
    pub(super) unsubmitted: u64,
}

impl Shared {
    /// The device's lock. The turn, where both are taken, is taken first.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread's turn on an API with one context for all threads.
    pub(super) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn with_groups<T>(&self, work: impl FnOnce(&mut GroupCache) -> T) -> T {
        work(&mut self.lock().groups)
    }

    /// A number that no other buffer or pipeline of this device has.
    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until the work has answered.
    pub(super) async fn answered(
        &self,
        work: Work,
        deadline: Option<Instant>,
        what: impl Fn() -> String,
    ) -> Result<()> {
        self.check_deadline(deadline, &what)?;
        #[cfg(not(target_arch = "wasm32"))]
        {
            let ended = self.waiter.wait(0, Arc::new(work), deadline).await;
            let what = what();
            ended.result(&self.health, &what, |fault| self.failure(fault, &what))
        }
        // The browser answers by itself, and gives up devices that hang.
        #[cfg(target_arch = "wasm32")]
        work.answer().await.map_err(|fault| self.failure(fault, &what()))
    }

    /// Fails when a driver whose submissions block (software drivers' do) has used up the time. The device is lost then.
    pub(super) fn check_deadline(&self, deadline: Option<Instant>, what: impl Fn() -> String) -> Result<()> {
        if deadline.is_none_or(|deadline| deadline > Instant::now()) {
            return Ok(());
        }
        self.health.overdue();
        Err(self.health.timeout_error(&what()))
    }

    /// The error for an answer that did not come.
    fn failure(&self, fault: Fault, what: &str) -> Error {
        match fault {
            Fault::Lost(reason) => {
                self.health.lose(&reason);
                self.health.lost_error()
            }
            Fault::Silent => self.fault(what, "the device finished the work but never answered".to_owned()),
        }
    }

    /// Notices the loss of a device whose callbacks belong to an app: wgpu maps nothing on a device that is gone.
    pub(super) fn check_alive(&self) -> Result<()> {
        if self.owned {
            return Ok(());
        }
        let alive = self.contained("asking for its state", || {
            let _turn = self.turn();
            let scopes = Scopes::open(&self.device);
            let probe = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("cantus probe"),
                size: 4,
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::MAP_WRITE,
                mapped_at_creation: true,
            });
            let alive = probe.get_mapped_range_mut(..).is_ok();
            drop(scopes.close());
            alive
        })?;
        if alive {
            return Ok(());
        }
        self.health.lose("it was destroyed or given up");
        Err(self.health.lost_error())
    }

    /// Runs calls into wgpu. A panic in there (a defect, or a driver at its end) becomes an error.
    pub(super) fn contained<T>(&self, action: &str, work: impl FnOnce() -> T) -> Result<T> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
            .map_err(|panic| self.defect(action, &deep_stack::panic_text(&*panic)))
    }

    fn defect(&self, action: &str, text: &str) -> Error {
        self.fault(action, format!("a defect inside wgpu or the driver: {text}"))
    }

    fn fault(&self, action: &str, message: String) -> Error {
        Error::Device { device: self.info.name.clone(), action: action.to_owned(), message }
    }

    /// As [`Shared::contained`] on a thread with a deep stack: wgpu's compilers recurse over the kernel.
    pub(super) fn on_deep_stack<T: MaybeSend>(&self, action: &str, work: impl FnOnce() -> T + MaybeSend) -> Result<T> {
        let done = self.contained(action, || deep_stack::run("cantus-compile", work))?;
        done.map_err(|failure| match failure {
            deep_stack::Failure::NoThread(error) => self.fault(action, format!("no thread could be started: {error}")),
            deep_stack::Failure::Panic(text) => self.defect(action, &text),
        })
    }

    /// The error for a kernel that did not compile.
    pub(super) fn compile_error(&self, error: &wgpu::Error, name: &str) -> Error {
        self.lock().groups.clear();
        self.health.wgpu_error(error, &format!("compiling {name}"), name, 0)
    }
}

// wgpu keeps what is in flight, and its queue waits for the work when it goes: a device that missed its time limit must not go before.
#[cfg(not(target_arch = "wasm32"))]
impl AtWork for Shared {
    fn has_ended(&self) -> bool {
        // The turn may be held by a thread that hangs in the driver.
        let turn = match &self.turn {
            Some(turn) => match turn.try_lock() {
                Ok(turn) => Some(turn),
                Err(_) => return false,
            },
            None => None,
        };
        let ended = self.contained("asking for its state", || self.device.poll(wgpu::PollType::Poll));
        drop(turn);
        // A device that is gone is at work no more.
        ended.map_or(true, |ended| ended.map_or(true, |status| status.is_queue_empty()))
    }

    fn held_bytes(&self) -> u64 {
        let figures = self.pool.figures();
        figures.in_use + figures.pooled
    }
}
