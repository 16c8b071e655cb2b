//! The CPU as an adapter of wgpu. Compute shaders run where there is no GPU and no driver: in CI, in containers, on any machine.
//!
//! ```
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let instance = cantus_wgpu::instance();
//! // wgpu's own types from here on.
//! let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await?;
//! let (device, queue) = adapter.request_device(&wgpu::DeviceDescriptor::default()).await?;
//! # let _ = (device, queue);
//! # Ok(()) }
//! # pollster::block_on(start()).unwrap();
//! ```
//!
//! Render pipelines are refused with a sentence, and windows show nothing.
#![cfg(not(target_arch = "wasm32"))]

pub use cantus_hal::{Failure, Options, Order};

/// Creates an instance of wgpu with one adapter, the CPU. [`Options::from_env`] says which variables it reads; where one is wrong, the instance has no
/// adapter, and the reason is reported.
#[must_use]
pub fn instance() -> wgpu::Instance {
    of(cantus_hal::Instance::new())
}

/// Creates an instance with options, whatever the environment says.
///
/// ```
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = cantus_wgpu::Options::default();
/// options.order = Some(cantus_wgpu::Order::Random(7));
/// options.check_stores = true;
/// let instance = cantus_wgpu::instance_with(options);
/// # instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await?;
/// # Ok(()) }
/// # pollster::block_on(start()).unwrap();
/// ```
#[must_use]
pub fn instance_with(options: Options) -> wgpu::Instance {
    of(cantus_hal::Instance::with(options))
}

fn of(instance: cantus_hal::Instance) -> wgpu::Instance {
    // SAFETY: the instance is valid, and wgpu owns it from here on.
    unsafe { wgpu::Instance::from_hal::<cantus_hal::Api>(instance) }
}

/// The guide's page compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/wgpu-ci.md")]
struct Guide;
