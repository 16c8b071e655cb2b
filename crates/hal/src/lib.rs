//! The CPU as a device of wgpu-hal: compute shaders run on the executor of Cantus, without a driver.
//!
//! Programs take `cantus-wgpu`, which hands them a `wgpu::Instance`. This crate knows neither wgpu nor wgpu-core, so a patched wgpu-core can depend on it.
//!
//! - `instance`, `adapter`: what is offered; `options`: choices of the program. `device` makes objects, `encoder` records commands.
//! - `queue`: a thread that runs `command`s in the order of submission.
//! - `pipeline`: naga's modules compiled by `cantus_kernel::module` to bytecode of `cantus_spmd`.
//! - `memory`, `buffer`, `texture`, `texel`, `bind`, `query`: what commands use.
//! - `unused`: types that cannot have a value, for render pipelines and ray tracing.
//!
//! Validation, states of mappings, tracking, zero initialisation and error scopes are wgpu-core's. Render pipelines are refused with a sentence, as is all
//! that the executor does not run, when the pipeline is created.
//!
//! The variant of [`Api`] is `Noop`: wgpu-core knows no other that none of its own backends has.
#![cfg(not(target_arch = "wasm32"))]

mod adapter;
mod bind;
mod buffer;
mod command;
mod device;
mod encoder;
mod instance;
mod memory;
mod options;
mod pipeline;
mod query;
mod queue;
mod texel;
mod texture;
mod unused;

pub use adapter::Adapter;
pub use bind::{BindGroup, BindGroupLayout, PipelineLayout};
pub use buffer::Buffer;
pub use cantus_spmd::Order;
pub use device::Device;
pub use encoder::{CommandBuffer, CommandEncoder};
pub use instance::{Instance, Surface, is_asked_for};
pub use options::{Failure, Options};
pub use pipeline::{ComputePipeline, ShaderModule};
pub use query::QuerySet;
pub use queue::{Fence, Queue};
pub use texture::{Sampler, Texture, TextureView};
pub use unused::{AccelerationStructure, PipelineCache, RayTracingPipeline, RenderPipeline, SurfaceTexture};

/// The types of this device, for wgpu-core.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Api;

impl wgpu_hal::Api for Api {
    const VARIANT: wgpu_types::Backend = wgpu_types::Backend::Noop;

    type Instance = Instance;
    type Surface = Surface;
    type Adapter = Adapter;
    type Device = Device;
    type Queue = Queue;
    type CommandEncoder = CommandEncoder;
    type CommandBuffer = CommandBuffer;
    type Buffer = Buffer;
    type Texture = Texture;
    type SurfaceTexture = SurfaceTexture;
    type TextureView = TextureView;
    type Sampler = Sampler;
    type QuerySet = QuerySet;
    type Fence = Fence;
    type BindGroupLayout = BindGroupLayout;
    type BindGroup = BindGroup;
    type PipelineLayout = PipelineLayout;
    type ShaderModule = ShaderModule;
    type RenderPipeline = RenderPipeline;
    type ComputePipeline = ComputePipeline;
    type RayTracingPipeline = RayTracingPipeline;
    type PipelineCache = PipelineCache;
    type AccelerationStructure = AccelerationStructure;
}

/// Types whose values wgpu-core holds as `dyn` of the trait.
macro_rules! resources {
    ($($type:ty $(: $trait:ident)?;)*) => {$(
        impl wgpu_hal::DynResource for $type {
            fn as_any(&self) -> &dyn std::any::Any {
                self
            }

            fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
                self
            }
        }
        $(impl wgpu_hal::$trait for $type {})?
    )*};
}

resources! {
    Instance;
    Surface;
    Adapter;
    Device;
    Queue;
    CommandEncoder;
    CommandBuffer: DynCommandBuffer;
    Buffer: DynBuffer;
    Texture: DynTexture;
    SurfaceTexture: DynSurfaceTexture;
    TextureView: DynTextureView;
    Sampler: DynSampler;
    QuerySet: DynQuerySet;
    Fence: DynFence;
    BindGroupLayout: DynBindGroupLayout;
    BindGroup: DynBindGroup;
    PipelineLayout: DynPipelineLayout;
    ShaderModule: DynShaderModule;
    RenderPipeline: DynRenderPipeline;
    ComputePipeline: DynComputePipeline;
    RayTracingPipeline: DynRayTracingPipeline;
    PipelineCache: DynPipelineCache;
    AccelerationStructure: DynAccelerationStructure;
}
