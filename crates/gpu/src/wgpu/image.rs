//! Textures of the app's: viewed, bound and copied. Their memory is the app's, so the pool does not know them. `import` makes them known and `queue` binds
//! and copies them. Views are made once for each part and dimension. Memory is the app's, so dropping an image frees nothing, and views are forgotten
//! without a lock, because bind groups hold the app's texture.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "prepared kernels have no textures"))]

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::shared::Shared;
use super::texture::{raw_dimension, texture_format};
use crate::backend::{Bound, Buffer, ROW_ALIGNMENT, TextureView};
use crate::error::{Error, Result};
use crate::kernel::{Reflection, StorageTextureAccess, ViewDimension};
use cantus_base::texture::TextureFormat;

/// A texture of the app's and its views so far.
pub(super) struct Image {
    pub(super) id: u64,
    pub(super) texture: wgpu::Texture,
    views: Mutex<FxHashMap<(TextureView, ViewDimension), Arc<WgpuView>>>,
}

/// A view, to be bound.
pub(super) struct WgpuView {
    pub(super) id: u64,
    pub(super) raw: wgpu::TextureView,
    shared: Arc<Shared>,
    texture: wgpu::Texture,
    part: TextureView,
}

impl Buffer for WgpuView {
    fn bytes(&self) -> u64 {
        0
    }
}

impl Drop for WgpuView {
    fn drop(&mut self) {
        // The bind groups over it keep the app's texture. Whatever drops a view, commands included, holds no lock of the device's.
        let _turn = self.shared.turn();
        self.shared.lock().groups.forget(&[self.id]);
    }
}

/// A level's bytes in a copy: those of a row with its padding, and the rows.
fn level(texture: &wgpu::Texture, level: u32) -> (u64, wgpu::Extent3d) {
    let size = texture.size().mip_level_size(level, texture.dimension());
    let texel = texture_format(texture.format()).map_or(0, TextureFormat::bytes);
    ((u64::from(size.width) * u64::from(texel)).next_multiple_of(ROW_ALIGNMENT), size)
}

/// The bytes of all levels in a copy.
fn copied_bytes(texture: &wgpu::Texture) -> u64 {
    let bytes = (0..texture.mip_level_count()).map(|place| {
        let (row, size) = level(texture, place);
        row * u64::from(size.height) * u64::from(size.depth_or_array_layers)
    });
    bytes.sum()
}

impl Image {
    /// The texture, and the bytes of a copy.
    pub(super) fn new(id: u64, texture: wgpu::Texture) -> (Self, u64) {
        let bytes = copied_bytes(&texture);
        (Self { id, texture, views: Mutex::default() }, bytes)
    }

    /// The view of a part as a dimension, made once.
    pub(super) fn view(
        &self,
        shared: &Arc<Shared>,
        part: TextureView,
        dimension: ViewDimension,
    ) -> Result<Arc<WgpuView>> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = views.get(&(part, dimension)) {
            return Ok(known.clone());
        }
        let raw = shared.contained("making a view", || {
            let _turn = shared.turn();
            self.texture.create_view(&wgpu::TextureViewDescriptor {
                dimension: Some(raw_dimension(dimension)),
                base_mip_level: part.level,
                mip_level_count: Some(part.levels),
                base_array_layer: part.layer,
                array_layer_count: (dimension != ViewDimension::D3).then_some(part.layers),
                ..wgpu::TextureViewDescriptor::default()
            })
        })?;
        let (id, shared) = (shared.new_id(), shared.clone());
        let made = Arc::new(WgpuView { id, raw, shared, texture: self.texture.clone(), part });
        views.insert((part, dimension), made.clone());
        Ok(made)
    }

    /// Calls `copy` for the place of each level in the texture and in a buffer.
    fn each_level(
        &self,
        mut copy: impl FnMut(wgpu::TexelCopyTextureInfo<'_>, wgpu::TexelCopyBufferLayout, wgpu::Extent3d),
    ) {
        let mut offset = 0;
        for mip_level in 0..self.texture.mip_level_count() {
            let (row, size) = level(&self.texture, mip_level);
            // Rows of at most 2^15 texels of 16 bytes.
            let bytes_per_row = u32::try_from(row).ok();
            let layout = wgpu::TexelCopyBufferLayout { offset, bytes_per_row, rows_per_image: Some(size.height) };
            copy(wgpu::TexelCopyTextureInfo { mip_level, ..self.texture.as_image_copy() }, layout, size);
            offset += row * u64::from(size.height) * u64::from(size.depth_or_array_layers);
        }
    }

    /// Copies all texels into a buffer.
    pub(super) fn copy_out(&self, encoder: &mut wgpu::CommandEncoder, buffer: &wgpu::Buffer) {
        self.each_level(|texture, layout, size| {
            encoder.copy_texture_to_buffer(texture, wgpu::TexelCopyBufferInfo { buffer, layout }, size);
        });
    }

    /// Copies all texels from a buffer.
    pub(super) fn copy_in(&self, encoder: &mut wgpu::CommandEncoder, buffer: &wgpu::Buffer) {
        self.each_level(|texture, layout, size| {
            encoder.copy_buffer_to_texture(wgpu::TexelCopyBufferInfo { buffer, layout }, texture, size);
        });
    }
}

/// Checks the views and samplers that are bound after a kernel's buffers.
pub(super) fn check_bound(shared: &Shared, reflection: &Reflection, label: &str, bound: &[Bound]) -> Result<()> {
    let expected = reflection.textures.len() + reflection.samplers.len();
    if bound.len() != expected {
        return Err(Error::invalid(
            label,
            format!("{} textures and samplers were given, and the kernel has {expected}", bound.len()),
        ));
    }
    let fault = |name: &str, reason: String| {
        Err(Error::Binding { kernel: label.to_owned(), binding: name.to_owned(), fault: reason.into() })
    };
    let mut views: Vec<(&WgpuView, bool, &str)> = Vec::new();
    for (texture, bound) in reflection.textures.iter().zip(bound) {
        let view = match bound {
            Bound::Buffer { buffer, .. } => (&**buffer as &dyn Any).downcast_ref::<WgpuView>(),
            Bound::Uniform(_) => None,
        };
        let Some(view) = view.filter(|view| std::ptr::eq(Arc::as_ptr(&view.shared), shared)) else {
            return fault(&texture.name, "it is bound to no texture of this device".to_owned());
        };
        let writes = !matches!(texture.storage, None | Some((_, StorageTextureAccess::Read)));
        let meets = |(other, other_writes, _): &&(&WgpuView, bool, &str)| {
            (writes || *other_writes) && other.texture == view.texture && other.part.meets(&view.part)
        };
        if let Some((_, _, other)) = views.iter().find(meets) {
            return fault(
                &texture.name,
                format!(
                    "the same texels are bound to \"{other}\", and one of the two is written (bind other levels or layers)"
                ),
            );
        }
        views.push((view, writes, &texture.name));
    }
    for (sampler, bound) in reflection.samplers.iter().zip(bound.iter().skip(reflection.textures.len())) {
        if !matches!(bound, Bound::Uniform(bytes) if bytes.len() == 12) {
            return fault(&sampler.name, "it is bound to no sampler".to_owned());
        }
    }
    Ok(())
}
