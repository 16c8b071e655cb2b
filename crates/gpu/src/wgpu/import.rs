//! Textures of the app's on a device that shares the app's: made known, and asked what they allow. The engine asks it (`Device::textures`) how an app's
//! texture may be bound: as it is, by a copy, or not at all, with the sentence that says why. GL has no views and guesses dimensions, so more textures are
//! copied there.

use std::sync::Arc;

use super::app::{of_the_app, recorded};
use super::device::WgpuDevice;
use super::image::Image;
use super::memory::{Memory, WgpuBuffer};
use super::texture::texture_format;
use crate::backend::{Buffer, Device, TextureAccess, TextureView, Textures};
use crate::checks::Owner as _;
use crate::error::{Error, Result};
use crate::kernel::{StorageTextureAccess, TextureBinding, ViewDimension};
use cantus_base::texture::TextureFormat;

/// Makes a texture of the app's known to a device that shares the app's. Its [`Buffer::bytes`] are those of a copy.
///
/// # Errors
/// [`Error::InvalidInput`] for a device that is not the app's, a texture of another device, and a format that Cantus doesn't have.
pub async fn import_texture(device: &dyn Device, texture: wgpu::Texture, label: &str) -> Result<Arc<dyn Buffer>> {
    let refused = |reason: String| Error::invalid("the wgpu texture", reason);
    let shared = of_the_app(device).map_err(refused)?;
    if texture_format(texture.format()).is_none() {
        let format = format!("{:?}", texture.format()).to_lowercase();
        return Err(refused(format!(
            "its format {format} has no texels that kernels read (render it to another format)"
        )));
    }
    let state = match texture.usage().contains(wgpu::TextureUsages::TEXTURE_BINDING) {
        true => wgpu::TextureUses::RESOURCE,
        false => wgpu::TextureUses::COPY_SRC,
    };
    let barrier = wgpu::wgt::TextureTransition { texture: &texture, selector: None, state };
    let other = recorded(shared, |encoder| encoder.transition_resources(std::iter::empty(), std::iter::once(barrier)));
    if let Some(reason) = other.await? {
        return Err(refused(reason));
    }
    let (image, bytes) = Image::new(shared.new_id(), texture);
    Ok(Arc::new(WgpuBuffer { shared: shared.clone(), memory: Memory::Image(image), label: label.into(), bytes }))
}

impl WgpuDevice {
    fn image<'a>(&self, texture: &'a dyn Buffer) -> Result<&'a Image> {
        let buffer = self.shared.own_buffer(texture, "a texture")?;
        match &buffer.memory {
            Memory::Image(image) => Ok(image),
            Memory::Buffer(..) => Err(Error::state(buffer.label.to_string(), "it is a buffer, not a texture")),
        }
    }
}

/// The sentence for a texture that was made without a usage.
fn lacking(usage: &str) -> String {
    format!("the app's texture has no usage {usage} (name it in the descriptor that the texture is created with)")
}

/// Returns whether wgpu's GL makes a cube, or cubes, of it.
fn is_cube_of_gl(texture: &wgpu::Texture) -> bool {
    let size = texture.size();
    texture.dimension() == wgpu::TextureDimension::D2
        && texture.sample_count() == 1
        && size.width == size.height
        && size.depth_or_array_layers.is_multiple_of(6)
}

/// Returns whether wgpu's GL binds that part: it has no views. It binds a texture as the dimension that it guesses from the whole one, and as an
/// image one layer or all.
fn is_view_of_gl(texture: &wgpu::Texture, view: TextureView, binding: &TextureBinding) -> bool {
    let size = texture.size();
    let is_block = texture.dimension() == wgpu::TextureDimension::D3;
    let layers = if is_block { 1 } else { size.depth_or_array_layers };
    let is_whole = view.layers == layers;
    if binding.storage.is_some() {
        return match binding.dimension {
            ViewDimension::D3 => false,
            ViewDimension::D2Array => is_whole,
            _ => true,
        };
    }
    let is_cube = is_cube_of_gl(texture);
    is_whole
        && texture.sample_count() == 1
        && match binding.dimension {
            ViewDimension::D1 | ViewDimension::D3 => true,
            ViewDimension::D2 => layers == 1,
            ViewDimension::D2Array => layers > 1 && !is_cube,
            ViewDimension::Cube => is_cube && layers == 6,
            ViewDimension::CubeArray => is_cube && layers > 6,
        }
}

impl Textures for WgpuDevice {
    fn access(
        &self,
        texture: &dyn Buffer,
        view: TextureView,
        binding: &TextureBinding,
        filters: bool,
    ) -> Result<TextureAccess, String> {
        let texture = &self.image(texture).map_err(|error| error.to_string())?.texture;
        let usage = match binding.storage {
            None => (wgpu::TextureUsages::TEXTURE_BINDING, "TEXTURE_BINDING"),
            Some(_) => (wgpu::TextureUsages::STORAGE_BINDING, "STORAGE_BINDING"),
        };
        if !texture.usage().contains(usage.0) {
            return Err(lacking(usage.1));
        }
        let copied = |reason: String| Ok(TextureAccess::Copied(reason));
        if self.shared.turn.is_some() && !is_view_of_gl(texture, view, binding) {
            return copied(format!("wgpu's GL binds no such part of it as a {binding}"));
        }
        let features = texture.format().guaranteed_format_features(self.shared.device.features());
        let filterable = features.flags.contains(wgpu::TextureFormatFeatureFlags::FILTERABLE);
        let name = texture_format(texture.format()).map_or("?", TextureFormat::name);
        let (flag, verb) = match binding.storage.map(|(_, access)| access) {
            None if filters && !filterable && texture.format().has_depth_aspect() => {
                return copied(format!("the app's device filters no depths of {name}"));
            }
            None if filters && !filterable => {
                return copied(format!("the app's device filters {name} only with the feature FLOAT32_FILTERABLE"));
            }
            None => return Ok(TextureAccess::Own { filterable }),
            Some(StorageTextureAccess::Read) => (wgpu::TextureFormatFeatureFlags::STORAGE_READ_ONLY, "read"),
            Some(StorageTextureAccess::Write) => (wgpu::TextureFormatFeatureFlags::STORAGE_WRITE_ONLY, "write"),
            Some(StorageTextureAccess::ReadWrite) => {
                (wgpu::TextureFormatFeatureFlags::STORAGE_READ_WRITE, "read_write")
            }
        };
        match features.flags.contains(flag) {
            true => Ok(TextureAccess::Own { filterable }),
            false => copied(format!("the app's device has no storage textures of {name} with {verb}")),
        }
    }

    fn check_copy(&self, texture: &dyn Buffer, writes: bool) -> Result<()> {
        self.shared.check_alive()?;
        let label = &self.shared.own_buffer(texture, "a texture")?.label;
        let texture = &self.image(texture)?.texture;
        let refused = |reason: String| Err(Error::invalid(label.to_string(), reason));
        if texture.sample_count() > 1 {
            return refused("wgpu copies no texture of several samples (resolve it in a render pass)".to_owned());
        }
        if !texture.usage().contains(wgpu::TextureUsages::COPY_SRC) {
            return refused(lacking("COPY_SRC"));
        }
        if writes && !texture.usage().contains(wgpu::TextureUsages::COPY_DST) {
            return refused(lacking("COPY_DST"));
        }
        if writes && texture.format() == wgpu::TextureFormat::Depth32Float {
            return refused("wgpu copies nothing into depth32float (render it)".to_owned());
        }
        // wgpu's GL reads by a framebuffer, and tells nobody when it can't.
        let features = texture.format().guaranteed_format_features(self.shared.device.features());
        let is_drawn = features.allowed_usages.contains(wgpu::TextureUsages::RENDER_ATTACHMENT);
        let reads = is_drawn && !texture.format().has_depth_aspect() && !is_cube_of_gl(texture);
        if self.shared.turn.is_some() && !reads {
            return refused("GL copies no cubes, no depths, and no formats that it doesn't render to".to_owned());
        }
        Ok(())
    }

    fn view(&self, texture: &dyn Buffer, view: TextureView, binding: &TextureBinding) -> Result<Arc<dyn Buffer>> {
        Ok(self.image(texture)?.view(&self.shared, view, binding.dimension)?)
    }
}
