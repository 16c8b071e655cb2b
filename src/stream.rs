//! Data larger than a device's memory, or the machine's: computed chunk by chunk, while the next one is read and the one before is written.
//!
//! ```
//! use cantus::{Engine, stream::{Npy, NpyFile, Stream}};
//!
//! # let engine = Engine::builder().backend("cpu").build()?;
//! # let folder = tempfile::tempdir().expect("a folder");
//! # std::env::set_current_dir(&folder).expect("is there");
//! # engine.tensor_from(&(0..6000).map(|value| value as f32).collect::<Vec<_>>(), &[2000, 3])?.to_npy("large.npy")?;
//! let total = Stream::new(&engine, Npy::open("large.npy")?).sum()?;
//! let scaled = Stream::new(&engine, Npy::open("large.npy")?).memory(256 << 20).checkpoint("scaled.checkpoint");
//! let scaled = scaled.named(format!("square roots of parts of {total}"));
//! scaled.map(|chunk| Ok((chunk.tensor() * (1.0 / total)).sqrt()), NpyFile::new("scaled.npy"))?;
//! # assert_eq!(total, 17_997_000.0);
//! # Ok::<_, cantus::Error>(())
//! ```
//!
//! A stream is an array whose first axis may be longer than any memory; a chunk is some of its rows, on the engine's device. A thread reads ahead,
//! the caller's thread uploads and records the work, another one downloads and writes: each waits for the others only when their few chunks are
//! all in use. Where the device computes in the host's memory nothing is uploaded: it reads what was read. Profiles show the parts as
//! `stream: read ahead`, uploads, kernels, and `stream: write`.

#[cfg(feature = "field")]
pub use cantus_field::streamed::coherence;
#[doc(inline)]
pub use cantus_stream::*;
