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

/// Creates an instance of wgpu with one adapter, the CPU.
#[must_use]
pub fn instance() -> wgpu::Instance {
    // SAFETY: the instance is valid, and wgpu owns it from here on.
    unsafe { wgpu::Instance::from_hal::<cantus_hal::Api>(cantus_hal::Instance::new()) }
}

/// The guide's page compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/wgpu-ci.md")]
struct Guide;
