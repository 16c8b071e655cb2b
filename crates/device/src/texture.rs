//! An app's textures on a device that shares the app's API: kernels are bound to them as they are.

use std::sync::Arc;

use super::{Buffer, MaybeSend, MaybeSync};
use crate::error::Result;
use crate::kernel::TextureBinding;

/// How a kernel is bound to a texture of the app's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextureAccess {
    /// As it is.
    Own {
        /// True if samplers may filter it.
        filterable: bool,
    },
    /// By a copy of its texels, for that reason.
    Copied(String),
}

/// The part of a texture that is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextureView {
    /// The first level.
    pub level: u32,
    /// The number of levels.
    pub levels: u32,
    /// The first layer.
    pub layer: u32,
    /// The number of layers.
    pub layers: u32,
}

impl TextureView {
    /// Returns whether both have texels of the same level and layer.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let apart = |start: u32, count: u32, other: u32, others: u32| start + count <= other || other + others <= start;
        !apart(self.level, self.levels, other.level, other.levels)
            && !apart(self.layer, self.layers, other.layer, other.layers)
    }
}

/// A device's textures of the app's ([`super::Device::textures`]). A texture is a [`Buffer`] that no kernel is bound to; its views are.
///
/// A [`super::Command::Copy`] of the whole texture from or to a buffer has the texels as the format's bytes: by level, layer or slice, and row, each
/// row padded to [`ROW_ALIGNMENT`] bytes. Other copies, reads and writes of the texture are errors.
///
/// A kernel for such textures has them and their samplers in `Reflection::textures` and `Reflection::samplers`. The dispatch's bindings continue with
/// a [`super::Bound::Buffer`] for each texture, which is a view, and a [`super::Bound::Uniform`] for each sampler, the bytes of its three words.
pub trait Textures: MaybeSend + MaybeSync {
    /// Returns how a variable is bound to a part of the texture, whose format and dimension fit it. `filters`: a sampler filters it.
    ///
    /// # Errors
    /// A sentence with the remedy if the texture lacks a usage.
    fn access(
        &self,
        texture: &dyn Buffer,
        view: TextureView,
        binding: &TextureBinding,
        filters: bool,
    ) -> Result<TextureAccess, String>;

    /// Checks that the texture can be copied to a buffer, or from one.
    ///
    /// # Errors
    /// [`crate::Error::InvalidInput`] with the remedy; [`crate::Error::DeviceLost`].
    fn check_copy(&self, texture: &dyn Buffer, writes: bool) -> Result<()>;

    /// Returns a view for a variable.
    ///
    /// # Errors
    /// When the device failed, or the texture is another device's.
    fn view(&self, texture: &dyn Buffer, view: TextureView, binding: &TextureBinding) -> Result<Arc<dyn Buffer>>;
}

/// The alignment of a row in a copy between a texture and a buffer, in bytes.
pub const ROW_ALIGNMENT: u64 = 256;
