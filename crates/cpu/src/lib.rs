//! The CPU backend: this machine's processor as a device. Needs no driver.
//!
//! # What comes in
//! What any device gets (`Device`): kernels to compile, native operations, memory to allocate, and batches of commands. WGSL runs through the lock-step
//! executor (`cantus-spmd`). Many operations of tensors run natively instead, without a kernel.
//!
//! # Stages
//! 1. **Compile** (`program`). A kernel's bytecode comes from the kernel (`Kernel::program`). If Rust compiled ahead came with it and fits (`compiled`),
//!    that runs in place of the bytecode.
//! 2. **Native operations** (`native`). `own` maps a `NativeOperation` to its implementation of `Operation`, beside the code that computes it: products,
//!    convolutions, reductions, sorts, chains of functions. `None` means that the operation's kernel runs.
//! 3. **Submit** (`queue`). Batches run in order, each alone. The queue's thread is one of the pool's threads. A caller that waits runs waiting batches
//!    itself (`Queue::help`), so small work wakes no thread. On the web a batch runs when it is submitted.
//! 4. **Run** (`Shared::step`). A dispatch gets its buffers as addresses. The executor splits a grid into batches of lanes, and a native operation splits
//!    its elements, over the pool. Limits (deadline, cancel flags, stall) are checked on the way.
//! 5. **Answer.** Commands that failed are listed by their place (`Ran::AllBut`). All others ran.
//!
//! # What carries it
//! - `CpuBuffer` (`memory`): an aligned block from a pool, or adopted memory. A `Keeper` beside it holds what operations made of its contents, such as
//!   packed panels.
//! - `CpuProgram`: a kernel or a native operation. `Floats`: a binding's address and length. `Limits`: what stops a run.
//!
//! # What holds
//! - Buffers are read and written only by a job, or by a holder of `Queue::exclusive`. The lock `running` keeps the two apart.
//! - Whatever writes to a buffer calls `CpuBuffer::changes` first, which invalidates what was kept. A buffer whose address the host knows keeps nothing.
//! - A native operation's bindings are checked against `Operation::sizes` before it runs. A kernel's are checked by the executor.
//! - Work is split by sizes alone, never by the number of threads, so the number of threads changes no bit.
//! - A failed command does not fail its batch.
//!
//! # What is surprising
//! - Native operations run before any kernel is composed: the evaluator asks for them (`expr/chain.rs`), and WGSL is not even written.
//! - `forms!` compiles a function once for each instruction set. Which one runs is chosen once (`InstructionSet`).
//!
//! # An example
//! `(x * 2 + 1).sum(&[1], false)` with `x` of shape `[3, 1000]`. The evaluator asks for `NativeOperation::Reduce` with the steps load, 2, multiply, 1,
//! add. `own` gives its implementation (`reduce`), and the device a `CpuProgram::Native`. The dispatch has two buffers, `x` and the result. At a blocking
//! read of the result, the caller runs the batch on its own thread: `step` finds the addresses, marks the result's buffer as changed, and the reduction
//! computes blocks of lanes and adds them up. 3,000 elements are too few for a second thread.

#![allow(
    clippy::extra_unused_type_parameters,
    reason = "a function of which there is a form for each instruction set names the set"
)]

#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod attention;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod chain;
mod compiled;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod complexes;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod converts;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod copies;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod counts;
mod device;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod doubles;
mod fault;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod find;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod floats;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod folds;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod forms;
#[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
mod fourier;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod gathers;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod gemv;
mod memory;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod multiply;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod native;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod order;
#[cfg(target_arch = "x86_64")]
mod packed_dot;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod patches;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod pools;
mod prefix;
mod processor;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod product;
mod program;
mod queue;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod random;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod reduce;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod registers;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod resample;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod rows;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod scatters;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod slabs;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod tiles;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod wholes;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod windows;

#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{error, tensor, threads};
use cantus_device as backend;
use cantus_kernel as kernel;
use cantus_spmd as spmd;
use cantus_spmd::ahead;

use std::sync::Arc;

use self::processor::{NAME, PRIORITY, device_info};
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
use crate::error::{Error, Result};

pub use compiled::compiled_ahead;
pub use device::CpuDevice;

/// Finds one device: the processor.
#[derive(Debug, Default, Clone, Copy)]
pub struct CpuBackend;

impl CpuBackend {
    /// The backend.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(Probe::found(vec![device_info()]))
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        if index != 0 {
            let reason = "the backend cpu has one device, with the index 0".to_owned();
            return ready(Err(Error::NoDevice {
                wanted: format!("device {index}"),
                reasons: vec![(NAME.to_owned(), reason)],
            }));
        }
        ready(CpuDevice::new(device_info(), options).map(|device| Arc::new(device) as Arc<dyn Device>))
    }
}

/// Lends this thread to the CPU backend's work, for good: on the web, where nobody else can start threads, each web worker that is to help calls
/// it once, on the module's shared memory. It never returns.
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub fn help() -> ! {
    threads::help()
}
