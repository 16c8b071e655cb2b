//! Textures as data in memory: the levels and layers of one, and its texels as bytes, as words and as elements of an array.

mod convert;
mod descriptor;

pub use descriptor::{TextureDescriptor, TextureDimension};
