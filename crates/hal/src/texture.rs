//! Textures, views and samplers: texels as words in memory, in the layout of `cantus_base::texels`, with copies from and to the bytes of buffers. Texels
//! take whole words as everywhere in Cantus (`cantus_base::texels`), while copies to buffers have packed bytes: rows are converted one by one. Offsets are
//! checked to fit 32 bits when a texture is made, because kernels count words so.

use std::sync::Arc;

use cantus_base::texels::{TextureDescriptor, TextureDimension};
use cantus_base::texture::{self, AddressMode, CompareFunction, FilterMode, TextureFormat};
use wgpu_hal::{BufferTextureCopy, CopyExtent, DeviceError, TextureCopy, TextureCopyBase};
use wgpu_types as wgt;

use crate::memory::Memory;

/// Levels that the uniform of a kernel describes.
const LEVELS: usize = 16;

/// Returns the executor's format for one of wgpu's; the names are the same.
pub(crate) fn format(format: wgt::TextureFormat) -> Option<TextureFormat> {
    match format {
        // Any depth of at least 24 bits will do.
        wgt::TextureFormat::Depth24Plus => Some(TextureFormat::Depth32Float),
        other => {
            let debug = format!("{other:?}");
            TextureFormat::ALL.iter().copied().find(|known| format!("{known:?}") == debug)
        }
    }
}

/// A texture.
#[derive(Debug, Clone)]
pub struct Texture {
    pub(crate) texels: Arc<Texels>,
}

/// The texels of a texture: all levels, each with all layers.
#[derive(Debug)]
pub(crate) struct Texels {
    pub(crate) memory: Memory,
    pub(crate) descriptor: TextureDescriptor,
}

/// A view of a texture, as kernels are bound to it.
#[derive(Debug, Clone)]
pub struct TextureView {
    pub(crate) texels: Arc<Texels>,
    pub(crate) format: TextureFormat,
    pub(crate) level: u32,
    pub(crate) levels: u32,
    pub(crate) layer: u32,
    pub(crate) layers: u32,
}

/// A sampler.
#[derive(Debug, Clone)]
pub struct Sampler {
    pub(crate) sampler: texture::Sampler,
}

impl Texture {
    pub(crate) fn new(desc: &wgpu_hal::TextureDescriptor<'_>) -> Result<Self, DeviceError> {
        let dimension = match desc.dimension {
            wgt::TextureDimension::D1 => TextureDimension::D1,
            wgt::TextureDimension::D2 => TextureDimension::D2,
            wgt::TextureDimension::D3 => TextureDimension::D3,
        };
        // wgpu-core creates none of a format without capabilities.
        let format = format(desc.format).ok_or(DeviceError::Unexpected)?;
        let wgt::Extent3d { width, height, depth_or_array_layers } = desc.size;
        let descriptor = TextureDescriptor {
            dimension,
            size: [width, height, depth_or_array_layers],
            levels: desc.mip_level_count,
            samples: desc.sample_count,
            format,
        };
        descriptor.check().map_err(|error| {
            tracing::error!("{error}");
            DeviceError::OutOfMemory
        })?;
        let memory = Memory::new(descriptor.level_offset(descriptor.levels) * 4)?;
        Ok(Self { texels: Arc::new(Texels { memory, descriptor }) })
    }
}

impl TextureView {
    pub(crate) fn new(texture: &Texture, desc: &wgpu_hal::TextureViewDescriptor<'_>) -> Result<Self, DeviceError> {
        let whole = texture.texels.descriptor;
        let (level, layer) = (desc.range.base_mip_level, desc.range.base_array_layer);
        let levels = desc.range.mip_level_count.unwrap_or(whole.levels.saturating_sub(level));
        let layers = desc.range.array_layer_count.unwrap_or(whole.layers().saturating_sub(layer));
        let format = format(desc.format).ok_or(DeviceError::Unexpected)?;
        Ok(Self { texels: texture.texels.clone(), format, level, levels, layer, layers })
    }

    /// Adds its part of the words that describe a kernel's textures: sizes, levels, and where each level begins.
    pub(crate) fn describe(&self, words: &mut Vec<u32>) {
        let whole = &self.texels.descriptor;
        let [width, height, depth] = whole.level_size(self.level);
        let is_block = whole.dimension == TextureDimension::D3;
        words.extend([width, height, if is_block { depth } else { self.layers }, self.levels]);
        let mut offsets = [0; LEVELS];
        for (offset, level) in offsets.iter_mut().zip(self.level..self.level + self.levels) {
            // Checked to be below 2^32 when the texture was made.
            *offset = u32::try_from(self.texels.word(level, self.layer)).unwrap_or(u32::MAX);
        }
        words.extend(offsets);
    }

    /// Fills its first level with a texel, from a slice of a block on if one is given.
    pub(crate) fn fill(&self, texel: &[u32], slice: Option<u32>) -> Option<()> {
        let whole = &self.texels.descriptor;
        let [width, height, depth] = whole.level_size(self.level);
        let plane = u64::from(width) * u64::from(height) * u64::from(whole.samples);
        let (first, count) = match (slice, whole.dimension) {
            (Some(slice), _) => (u64::from(slice), 1),
            (None, TextureDimension::D3) => (0, u64::from(depth)),
            (None, _) => (0, u64::from(self.layers)),
        };
        let start = self.texels.word(self.level, self.layer) + first * plane * u64::from(whole.format.words());
        let bytes: &[u8] = bytemuck::cast_slice(texel.get(..whole.format.words() as usize)?);
        if bytes.iter().all(|byte| *byte == 0) {
            let length = plane * count * bytes.len() as u64;
            return self.texels.memory.clear(start * 4..start * 4 + length);
        }
        (0..plane * count).try_for_each(|place| self.texels.memory.write(start * 4 + place * bytes.len() as u64, bytes))
    }
}

impl Texels {
    /// The word where a layer of a level begins.
    fn word(&self, level: u32, layer: u32) -> u64 {
        let of_layer = self.descriptor.layer_texels(level) * u64::from(self.descriptor.format.words());
        self.descriptor.level_offset(level) + u64::from(layer) * of_layer
    }

    /// The byte where a row of a region begins, and the bytes of its texels.
    fn row(&self, base: &TextureCopyBase, [y, z]: [u32; 2], width: u32) -> (u64, u64) {
        let [across, down, _] = self.descriptor.level_size(base.mip_level);
        let texel = u64::from(self.descriptor.samples) * u64::from(self.descriptor.format.words()) * 4;
        let row = u64::from(base.origin.z + z) * u64::from(down) + u64::from(base.origin.y + y);
        let place = row * u64::from(across) + u64::from(base.origin.x);
        (self.word(base.mip_level, base.array_layer) * 4 + place * texel, u64::from(width) * texel)
    }

    /// Copies a region of another texture with words of the same size.
    pub(crate) fn copy(&self, source: &Self, region: &TextureCopy) -> Option<()> {
        rows(region.size).try_for_each(|row| {
            let (from, bytes) = source.row(&region.src_base, row, region.size.width);
            let (to, _) = self.row(&region.dst_base, row, region.size.width);
            self.memory.copy(to, &source.memory, from, bytes)
        })
    }

    /// Copies a region between a buffer's bytes and its words.
    pub(crate) fn copy_bytes(&self, buffer: &Memory, region: &BufferTextureCopy, to_buffer: bool) -> Option<()> {
        let format = self.descriptor.format;
        let (bytes, size) = (u64::from(format.bytes()), region.size);
        let layout = &region.buffer_layout;
        let pitch = layout.bytes_per_row.map_or(u64::from(size.width) * bytes, u64::from);
        let image = layout.rows_per_image.map_or(u64::from(size.height), u64::from);
        rows(size).try_for_each(|[y, z]| {
            let (texels, _) = self.row(&region.texture_base, [y, z], size.width);
            let packed = layout.offset + (u64::from(z) * image + u64::from(y)) * pitch;
            let is_whole = bytes.is_multiple_of(4);
            // A texel of less than a word has a word of its own.
            let (runs, step) =
                if is_whole { (1, u64::from(size.width) * bytes) } else { (u64::from(size.width), bytes) };
            (0..runs).try_for_each(|run| {
                let (words, packed) = (texels + run * 4, packed + run * bytes);
                if to_buffer {
                    buffer.copy(packed, &self.memory, words, step)
                } else {
                    self.memory.copy(words, buffer, packed, step)
                }
            })
        })
    }
}

/// The rows of a region: y, and the slice.
fn rows(size: CopyExtent) -> impl Iterator<Item = [u32; 2]> {
    (0..size.depth).flat_map(move |z| (0..size.height).map(move |y| [y, z]))
}

impl Sampler {
    /// Anisotropic filters are linear ones here.
    pub(crate) fn new(desc: &wgpu_hal::SamplerDescriptor<'_>) -> Self {
        let filter = |is_linear: bool| if is_linear { FilterMode::Linear } else { FilterMode::Nearest };
        let address = |mode: wgt::AddressMode| match mode {
            wgt::AddressMode::Repeat => AddressMode::Repeat,
            wgt::AddressMode::MirrorRepeat => AddressMode::MirrorRepeat,
            // Borders take a feature that is not offered.
            wgt::AddressMode::ClampToEdge | wgt::AddressMode::ClampToBorder => AddressMode::ClampToEdge,
        };
        let compare = desc.compare.map(|function| match function {
            wgt::CompareFunction::Never => CompareFunction::Never,
            wgt::CompareFunction::Less => CompareFunction::Less,
            wgt::CompareFunction::Equal => CompareFunction::Equal,
            wgt::CompareFunction::LessEqual => CompareFunction::LessEqual,
            wgt::CompareFunction::Greater => CompareFunction::Greater,
            wgt::CompareFunction::NotEqual => CompareFunction::NotEqual,
            wgt::CompareFunction::GreaterEqual => CompareFunction::GreaterEqual,
            wgt::CompareFunction::Always => CompareFunction::Always,
        });
        let sampler = texture::Sampler {
            address_mode: desc.address_modes.map(address),
            mag_filter: filter(desc.mag_filter == wgt::FilterMode::Linear),
            min_filter: filter(desc.min_filter == wgt::FilterMode::Linear),
            mipmap_filter: filter(desc.mipmap_filter == wgt::MipmapFilterMode::Linear),
            lod_min_clamp: desc.lod_clamp.start,
            lod_max_clamp: desc.lod_clamp.end,
            compare,
        };
        Self { sampler }
    }
}
