//! Textures as data in memory, without an engine: `descriptor` has sizes, levels and layers, `convert` the texels. The engine's textures and any
//! other device that keeps textures in buffers share this layout.

mod convert;
mod descriptor;

pub use descriptor::{TextureDescriptor, TextureDimension};
