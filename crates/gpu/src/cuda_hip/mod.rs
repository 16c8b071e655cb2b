//! Devices driven through streams: CUDA's driver and HIP's runtime have one shape, and so one implementation. Which of the two a device
//! is, is a [`Vendor`]: names of libraries, functions and attributes, and a dialect of the translator.
//!
//! The functions are looked up at run time, each as a plain C function that returns a number: a code that a newer driver invents stays
//! a number, and a missing library or symbol is a reason.

mod arguments;
mod checks;
mod collective;
mod compiler;
mod device;
mod driver;
mod libraries;
mod library;
mod memory;
mod platform;
mod probe;
mod product;
mod program;
mod queue;
mod recording;
mod shared;
mod sharing;
mod staging;
mod takeover;
mod vendor;

pub use compiler::Compiled;
pub(super) use compiler::Compiler;
pub(super) use device::open;
#[cfg(feature = "cuda")]
pub(super) use library::ClusterNames;
#[cfg(feature = "cuda")]
pub(super) use library::{ContextNames, UpdateNames};
pub(super) use library::{CurrentNames, ExternalNames, FunctionNames, GraphNames, IdentityNames, Names, ProductNames};
#[cfg(feature = "hip")]
pub(super) use library::{NumberNames, PropertiesNames};
pub(super) use probe::{Detail, Found, Manner, probe, summary};
#[cfg(feature = "cuda")]
pub(super) use takeover::{ClusterFacts, Takeover, TakeoverLaunch};
#[cfg(feature = "cuda")]
pub(super) use vendor::PortableNames;
pub(super) use vendor::{
    Architecture, Attributes, CollectiveLibrary, CompilerNames, ProductLibrary, ProductNumbers, Vendor,
};
