//! The base of every crate of Cantus: errors, dtypes and host data, what is known of a kernel, threads, files, configuration. Knows no device.
//!
//! Apps use the crate `cantus`, which has everything here that is meant for them. What is hidden from the documentation is for the other crates
//! of Cantus alone.

// First, for its macro.

/// `Debug` of what is opaque: its name.
#[doc(hidden)]
#[macro_export]
macro_rules! opaque_debug {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    };
}

pub mod config;
#[doc(hidden)]
pub mod deep_stack;
pub mod error;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod files;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
pub mod fnv;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod folders;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod fragment;
#[doc(hidden)]
pub mod instructions;
#[doc(hidden)]
pub mod listed;
#[doc(hidden)]
pub mod memory;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod private_folder;
pub mod reflection;
pub mod tensor;
pub mod texels;
pub mod texture;
#[doc(hidden)]
pub mod threads;
