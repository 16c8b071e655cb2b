//! Data in and out of [`cantus`]: files of named arrays, Arrow's columns, `ndarray` arrays and pictures.
//!
//! ```
//! # let folder = tempfile::tempdir().expect("makes a folder");
//! # let path = folder.path().join("model.safetensors");
//! use cantus_data::{Archive, save};
//!
//! let engine = cantus::Engine::builder().backend("cpu").build()?;
//! let weight = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! save(&path, [("weight", &weight)])?; // .npz by that suffix
//!
//! let file = Archive::open(&path)?; // reads the header
//! assert_eq!(file.names().collect::<Vec<_>>(), ["weight"]);
//! let weight = file.tensor(&engine, "weight")?; // reads this array
//! assert_eq!(weight.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<_, cantus::Error>(())
//! ```
//!
//! | from, to | in | out |
//! | --- | --- | --- |
//! | `.safetensors`, `.npz`, `.npy` | [`Archive::open`]; [`Archive::map`] without a copy | [`save`], [`Writer`] |
//! | Arrow's C data interface (Arrow, Polars, DuckDB, pyarrow) | [`arrow::array`], [`arrow::columns`], [`arrow::stream`] | [`arrow::export`] |
//! | `ndarray`, vectors | [`HostArray::from_array`], [`HostArray::from_vec`] | [`View::array`] |
//! | the crate `image` | [`HostArray::from_image`] | `to_image`, [`View::image`] |
//!
//! What comes in is a [`HostArray`] first: a dtype, a shape, and memory of the host's with its owner. [`HostArray::into_tensor`] makes it a tensor. On the
//! CPU the tensor lies in that memory if it begins at a multiple of 16 bytes and holds a multiple of 4; otherwise, and on other devices, the contents are
//! copied and the memory is given back at once.
//!
//! Input may be hostile: a file that is truncated, overlaps itself, or claims shapes beyond what it holds is an error that names the file.
//!
//! # Features
//!
//! | feature | what it adds | packages |
//! | --- | --- | --- |
//! | `safetensors` | `.safetensors` files | +9 |
//! | `npz` | `.npz` files, compressed ones too | +14 |
//! | `map` | [`Archive::map`] | +1 |
//! | `image` | pictures of the crate `image` | +4 |
//!
//! The first three are the default. Arrow's interface, `ndarray` and `.npy` need no feature.

#![warn(missing_debug_implementations)]

#[cfg(not(target_arch = "wasm32"))]
mod archive;
pub mod arrow;
mod host;
#[cfg(feature = "image")]
mod picture;
#[cfg(not(target_arch = "wasm32"))]
mod save;
mod view;

#[cfg(not(target_arch = "wasm32"))]
pub use archive::{Archive, Format};
pub use host::HostArray;
#[cfg(all(feature = "image", not(target_arch = "wasm32")))]
pub use picture::to_image;
#[cfg(feature = "image")]
pub use picture::to_image_async;
#[cfg(not(target_arch = "wasm32"))]
pub use save::{Writer, save, save_async};
pub use view::View;

// The guide's code, tested with the documentation's.
#[cfg(all(doctest, feature = "safetensors"))]
#[doc = include_str!("../../../docs/guide/src/data.md")]
struct Guide;
