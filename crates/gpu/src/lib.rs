//! The backends for devices behind a driver, each loaded at run time: wgpu, Vulkan, OpenCL, CUDA and HIP.
//!
//! # Where things are
//! Each folder has the same files: `mod.rs` (the `Backend`), `device.rs` (the `Device`), `queue.rs`, `program.rs`, `memory.rs`, `shared.rs`; each may use
//! those after it. CUDA and HIP share `cuda_hip`, over a table of the vendor's functions. `docs/internals/backends.md` has what is particular to each.
//!
//! # What all of them share
//! - `checks`: dispatches and copies are checked before anything is recorded, with the names of what is concerned. The CPU checks its own.
//! - `in_flight`: what a submission may still touch (command buffers, descriptor sets, page-locked blocks, modules, device memory) is kept until its number
//!   has passed. Dropping a buffer, program or future never frees memory in use. wgpu does the same internally. APIs with events have one event for each
//!   number (`Marks`).
//! - `cantus_driver::wait`: the caller polls for 30 µs (400 µs on a discrete GPU, where polling costs the work nothing). Then one of the device's threads
//!   waits in the driver while another keeps the time limit, which drivers may ignore. A backend supplies two functions: look at a point in its queue, and
//!   sleep until it has passed.
//! - `cantus_device::detached`: a device that misses its time limit is lost. It is held, with its memory and threads, until its work ends, which may be
//!   never; the engine itself ends at once.
//! - `matrices` (what cooperative matrices a device has) and `nodes` (whether the machine shows any GPU, without loading a driver).
//!
//! # What holds
//! - A refused submission has no number, so nobody waits for it.
//! - Host access to a tensor's memory is decided and performed under the device's lock, one piece at a time.
//! - Tasks are woken while no lock is held. wgpu may call back inside any call, so its callbacks only store their answer.
//! - Writes wait for staging memory, and reads for the device, without blocking a thread and within the time limit.
//! - When memory runs out, a device first lets queued work finish, then releases its pools, then takes memory of another type. After that the engine takes
//!   a device of other silicon.
//! - Drivers' libraries stay loaded until the process ends.
//!
//! # What is surprising
//! - wgpu 30 panics in a timed-out poll if another thread's poll reaches the end of the work first, and drops that poll's answers. `wgpu/work.rs` takes the
//!   panic as the end of the work; for a dropped answer, the end of its submission counts.
//!
//! # An example
//! A batch writes a buffer `y` and is submitted as number 7: `InFlight::keep(7, ..)` holds the command buffer, the descriptor sets and `y`'s block. The app
//! drops its last handle of `y`. The block stays, because 7 has not passed. A read of another tensor waits for 7: 30 µs of polling, then the waiting
//! thread. Once it has passed, `pass(7)` hands out all that was kept, and the block goes back to the pool with no lock held.

#[cfg(feature = "_device")]
mod checks;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
mod cuda_hip;
#[cfg(all(any(feature = "vulkan", feature = "_native"), not(target_arch = "wasm32")))]
mod in_flight;
#[cfg(any(feature = "wgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
mod matrices;
#[cfg(feature = "_gpu")]
mod nodes;

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub mod cuda;
#[cfg(all(feature = "hip", not(target_arch = "wasm32")))]
pub mod hip;
#[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
pub mod opencl;
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
pub mod vulkan;
#[cfg(feature = "wgpu")]
pub mod wgpu;

#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{deep_stack, error, fnv, tensor};
#[cfg(not(target_arch = "wasm32"))]
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{files, private_folder};
use cantus_device as backend;
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_driver::health;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
use cantus_driver::library;
#[cfg(all(feature = "_native", not(target_arch = "wasm32")))]
use cantus_driver::native_cache;
#[cfg(not(target_arch = "wasm32"))]
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_driver::wait;
use cantus_kernel as kernel;
#[cfg(feature = "_native")]
use cantus_translate as translate;

#[cfg(all(feature = "_test", feature = "_native", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub use cantus_driver::native_cache::kept as kept_code;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
pub use cuda_hip::Compiled;
