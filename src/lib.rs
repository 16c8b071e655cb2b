//! Cantus is a portable compute engine. Write a kernel once, in WGSL, and run it on every device: GPUs through CUDA, HIP, Vulkan, Metal,
//! DX12, OpenCL or the browser's WebGPU, and any CPU without a driver.
//!
//! ```
//! # fn main() -> cantus::Result<()> {
//! let engine = cantus::Engine::new()?; // the best device of this machine
//! let x = engine.tensor(&[1.0_f32, 2.0, 3.0, 4.0])?;
//! let y = engine.zeros::<f32>(&[4])?;
//! let saxpy = cantus::Kernel::from_wgsl("
//!     struct Params { a: f32 }
//!     @group(0) @binding(0) var<uniform> params: Params;
//!     @group(0) @binding(1) var<storage> x: array<f32>;
//!     @group(0) @binding(2) var<storage, read_write> y: array<f32>;
//!     @compute @workgroup_size(64)
//!     fn saxpy(@builtin(global_invocation_id) id: vec3u) {
//!         if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
//!     }
//! ")?;
//! engine.dispatch(&saxpy).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(x.len()).run()?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(()) }
//! ```
//!
//! The main types, in the words of WGSL and WebGPU:
//!
//! | | |
//! | --- | --- |
//! | [`Kernel`] | WGSL text, an entry point, override values; parsed, validated and reflected once |
//! | [`Tensor`] | shape, dtype, and a buffer on one device; contiguous and row-major |
//! | [`Engine`] | ranks devices, places tensors, runs kernels, falls back, and records events |
//! | [`backend::Backend`], [`backend::Device`] | a way to reach devices, and one of them; anyone can add a backend |
//! | [`ops`] | lazy operations on tensors |
//!
//! Guarantees:
//! - **It always runs.** Drivers are found at run time. Without any, the CPU runs the same WGSL.
//! - **Right numbers or an error.** An [`Error`] says what failed, where, and what to do. A failure that a call cannot know yet is reported when
//!   its output tensors are read.
//! - **The same numbers everywhere.** Integers agree bit for bit on all devices, except where WGSL leaves results open. Floats agree within the
//!   tolerance that the operation states.
//!
//! Every call that may wait has an `_async` form. The blocking forms do not exist on the web.
//!
//! # Features
//!
//! | feature | what it adds | packages |
//! | --- | --- | --- |
//! | `wgsl` | kernels from WGSL text at run time; without it, prepared kernels run | +15 |
//! | `wgpu` | Vulkan, Metal, DX12, GL and the browser's WebGPU | +45 |
//! | `cpu` | the CPU | +18 |
//! | `ahead-kernels` | with `field`: its kernels compiled ahead for the CPU, 2,000 lines of Rust | `cpu` and 1 |
//! | `vulkan` | Vulkan directly | `wgsl` and 3 |
//! | `opencl` | OpenCL 1.2 and later | `wgsl` and 5 |
//! | `cuda`, `hip` | NVIDIA and AMD GPUs through their own libraries | `wgsl` and 1 |
//! | `field` | pictures of a wave and of a spiral, and their coherence: [`ops::field`], [`ops::coherence()`] | 1 |
//! | `config` | settings from a TOML file | +6 |
//! | `npy` | NumPy's `.npy` files | +13 |
//! | `stream` | data larger than memory, chunk by chunk | `npy` and `wgsl` |
//! | `trace` | profiles as traces for Chrome's and Perfetto's viewers | +8 |
//! | `link` | kernels that import from other files and from the library, in WESL's syntax: `Kernel::linked`, `link` | `wgsl` and 11 |
//! | `translate` | kernels as CUDA, HIP, OpenCL C and C | `wgsl` |
//! | `writers` | kernels as SPIR-V, MSL, HLSL and GLSL | `wgsl` and 1 |
//! | `fft` | Fourier transforms on the CPU by `rustfft`, about ten times as fast as kernels | `cpu` |
//! | `linalg` | factorisations and linear systems on the CPU by `faer`, in float64 | `cpu` |
//! | `zk` | finite fields, curves, multi-scalar multiplication and transforms for zero-knowledge proofs | `wgsl` |
//! | `monitor` | engines that can be watched: [`engine::Builder::publish`], `engine::published` | |
//!
//! The rows up to `field` are the default. `cargo tree` counts 111 packages on Linux then, 15 of them parts of Cantus. There are 44 without features, 52
//! with `cpu`, 69 with `wgsl` and `cpu`, and 102 with `wgpu` as well. Drivers' libraries are loaded at run time.

#![warn(missing_debug_implementations)]

#[cfg(feature = "_test")]
#[doc(hidden)]
pub mod testing;

#[cfg(feature = "graph")]
pub mod graph;
pub mod ops;
#[cfg(all(feature = "stream", not(target_arch = "wasm32")))]
pub mod stream;
pub mod typed;

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub use cantus_base::files;
#[doc(inline)]
pub use cantus_base::{config, error};
#[doc(hidden)]
pub use cantus_base::{fnv, memory};
#[doc(inline)]
pub use cantus_engine::{backend, engine};
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
#[doc(inline)]
pub use cantus_group as group;
#[doc(inline)]
pub use cantus_kernel as kernel;
#[cfg(feature = "link")]
#[doc(inline)]
pub use cantus_link as link;
#[doc(hidden)]
pub use cantus_spmd as spmd;
#[doc(inline)]
pub use cantus_spmd::ahead;
#[cfg(feature = "translate")]
#[doc(inline)]
pub use cantus_translate as translate;
#[cfg(feature = "zk")]
#[doc(inline)]
pub use cantus_zk as zk;

/// The parts of a tensor, as plain data: shape, dtype, `.npy` files. No engine and no device: the handle is [`crate::Tensor`].
pub mod tensor {
    #[doc(inline)]
    pub use cantus_base::tensor::*;
    #[cfg(all(feature = "npy", not(target_arch = "wasm32")))]
    #[doc(inline)]
    pub use cantus_npy as npy;
}

#[cfg(feature = "wgsl")]
pub use cantus_base::texture::{AddressMode, CompareFunction, FilterMode, Sampler, TextureFormat};
pub use config::{Config, Fallback};
pub use engine::{Engine, Tensor};
#[cfg(feature = "wgsl")]
pub use engine::{Texture, TextureDescriptor, TextureDimension};
pub use error::{Error, Result};
pub use kernel::Kernel;
pub use tensor::{DType, Element};

// What public signatures speak of, in the versions that go with this crate.
pub use half;
pub use ndarray;
pub use num_complex;
#[cfg(feature = "wgpu")]
pub use wgpu;

// The guide's code, tested with the documentation's.
#[cfg(all(doctest, feature = "wgsl", feature = "wgpu", feature = "cpu"))]
mod guide {
    macro_rules! chapters {
        ($($name:ident = $file:literal;)*) => {
            $(#[doc = include_str!(concat!("../docs/guide/src/", $file, ".md"))] struct $name;)*
        };
    }
    chapters! {
        ComingFrom = "coming-from";
        FirstKernel = "first-kernel";
        Images = "images";
        Tensors = "tensors-and-operations";
        LargerThanMemory = "larger-than-memory";
        Devices = "devices-and-fallback";
        SeveralDevices = "several-devices";
        Reproducible = "reproducible";
        Embedding = "embedding";
        Web = "web";
        Backend = "adding-a-backend";
        Debugging = "debugging";
        ZeroKnowledge = "zero-knowledge";
        Readme = "../../../README";
    }
}
