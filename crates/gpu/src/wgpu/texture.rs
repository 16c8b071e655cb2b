//! Textures and samplers in wgpu's words: formats, layouts, and the samplers that a device keeps.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "prepared kernels have no textures"))]

use rustc_hash::FxHashMap;

use crate::kernel::{SamplerBinding, StorageTextureAccess, TextureBinding, ViewDimension};
use cantus_base::texture::{AddressMode, CompareFunction, FilterMode, SampleType, Sampler, TextureFormat};

/// Samplers that a device keeps, at most.
const MAX_SAMPLERS: usize = 256;

macro_rules! formats {
    ($($name:ident)*) => {
        /// Formats have the same names here and there.
        const FORMATS: &[(wgpu::TextureFormat, TextureFormat)] =
            &[$((wgpu::TextureFormat::$name, TextureFormat::$name),)*];
    };
}
formats! {
    R8Unorm R8Snorm R8Uint R8Sint R16Unorm R16Snorm R16Uint R16Sint R16Float Rg8Unorm Rg8Snorm Rg8Uint Rg8Sint R32Uint R32Sint R32Float
    Rg16Unorm Rg16Snorm Rg16Uint Rg16Sint Rg16Float Rgba8Unorm Rgba8UnormSrgb Rgba8Snorm Rgba8Uint Rgba8Sint Bgra8Unorm Bgra8UnormSrgb
    Rgb9e5Ufloat Rgb10a2Uint Rgb10a2Unorm Rg11b10Ufloat Rg32Uint Rg32Sint Rg32Float Rgba16Unorm Rgba16Snorm Rgba16Uint Rgba16Sint
    Rgba16Float Rgba32Uint Rgba32Sint Rgba32Float Depth16Unorm Depth32Float
}

/// Returns the format of wgpu's that has the same texels; `None` for compressed formats, formats of video, stencils and depths of 24 bits.
#[must_use]
pub fn texture_format(format: wgpu::TextureFormat) -> Option<TextureFormat> {
    FORMATS.iter().find(|(known, _)| *known == format).map(|(_, format)| *format)
}

fn raw_format(format: TextureFormat) -> Option<wgpu::TextureFormat> {
    FORMATS.iter().find(|(_, known)| *known == format).map(|(format, _)| *format)
}

pub(super) fn raw_dimension(dimension: ViewDimension) -> wgpu::TextureViewDimension {
    match dimension {
        ViewDimension::D1 => wgpu::TextureViewDimension::D1,
        ViewDimension::D2 => wgpu::TextureViewDimension::D2,
        ViewDimension::D2Array => wgpu::TextureViewDimension::D2Array,
        ViewDimension::Cube => wgpu::TextureViewDimension::Cube,
        ViewDimension::CubeArray => wgpu::TextureViewDimension::CubeArray,
        ViewDimension::D3 => wgpu::TextureViewDimension::D3,
    }
}

/// The layout's entry for a texture; `filterable` says whether a filtering sampler may read it.
pub(super) fn texture_layout(binding: &TextureBinding, filterable: bool) -> wgpu::BindingType {
    let view_dimension = raw_dimension(binding.dimension);
    let storage = binding.storage.and_then(|(format, access)| Some((raw_format(format)?, access)));
    if let Some((format, access)) = storage {
        let access = match access {
            StorageTextureAccess::Read => wgpu::StorageTextureAccess::ReadOnly,
            StorageTextureAccess::Write => wgpu::StorageTextureAccess::WriteOnly,
            StorageTextureAccess::ReadWrite => wgpu::StorageTextureAccess::ReadWrite,
        };
        return wgpu::BindingType::StorageTexture { access, format, view_dimension };
    }
    let sample_type = match binding.sample_type {
        SampleType::Float => wgpu::TextureSampleType::Float { filterable: filterable && !binding.multisampled },
        SampleType::Sint => wgpu::TextureSampleType::Sint,
        SampleType::Uint => wgpu::TextureSampleType::Uint,
        SampleType::Depth => wgpu::TextureSampleType::Depth,
    };
    wgpu::BindingType::Texture { sample_type, view_dimension, multisampled: binding.multisampled }
}

/// The layout's entry for a sampler.
pub(super) fn sampler_layout(binding: &SamplerBinding, filters: bool) -> wgpu::BindingType {
    wgpu::BindingType::Sampler(match (binding.comparison, filters) {
        (true, _) => wgpu::SamplerBindingType::Comparison,
        (false, true) => wgpu::SamplerBindingType::Filtering,
        (false, false) => wgpu::SamplerBindingType::NonFiltering,
    })
}

/// The words of a sampler that are bound as bytes.
pub(super) fn sampler_words(bytes: &[u8]) -> [u32; 3] {
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    words
}

/// The samplers of a device, by their words.
#[derive(Default)]
pub(super) struct Samplers(FxHashMap<[u32; 3], (wgpu::Sampler, u64)>);

impl Samplers {
    /// Gives up all of them if they are many. Bind groups keep theirs.
    pub(super) fn limit(&mut self) {
        if self.0.len() > MAX_SAMPLERS {
            self.0.clear();
        }
    }

    pub(super) fn make(&mut self, device: &wgpu::Device, new_id: impl FnOnce() -> u64, words: [u32; 3]) {
        self.0
            .entry(words)
            .or_insert_with(|| (device.create_sampler(&descriptor(&Sampler::from_words(words))), new_id()));
    }

    pub(super) fn get(&self, words: [u32; 3]) -> Option<(&wgpu::Sampler, u64)> {
        self.0.get(&words).map(|(sampler, id)| (sampler, *id))
    }
}

fn descriptor(sampler: &Sampler) -> wgpu::SamplerDescriptor<'static> {
    let [address_mode_u, address_mode_v, address_mode_w] = sampler.address_mode.map(|mode| match mode {
        AddressMode::ClampToEdge => wgpu::AddressMode::ClampToEdge,
        AddressMode::Repeat => wgpu::AddressMode::Repeat,
        AddressMode::MirrorRepeat => wgpu::AddressMode::MirrorRepeat,
    });
    let filter = |filter: FilterMode| match filter {
        FilterMode::Nearest => wgpu::FilterMode::Nearest,
        FilterMode::Linear => wgpu::FilterMode::Linear,
    };
    wgpu::SamplerDescriptor {
        label: None,
        address_mode_u,
        address_mode_v,
        address_mode_w,
        mag_filter: filter(sampler.mag_filter),
        min_filter: filter(sampler.min_filter),
        mipmap_filter: match sampler.mipmap_filter {
            FilterMode::Nearest => wgpu::MipmapFilterMode::Nearest,
            FilterMode::Linear => wgpu::MipmapFilterMode::Linear,
        },
        lod_min_clamp: sampler.lod_min_clamp,
        lod_max_clamp: sampler.lod_max_clamp,
        compare: sampler.compare.map(|function| match function {
            CompareFunction::Never => wgpu::CompareFunction::Never,
            CompareFunction::Less => wgpu::CompareFunction::Less,
            CompareFunction::Equal => wgpu::CompareFunction::Equal,
            CompareFunction::LessEqual => wgpu::CompareFunction::LessEqual,
            CompareFunction::Greater => wgpu::CompareFunction::Greater,
            CompareFunction::NotEqual => wgpu::CompareFunction::NotEqual,
            CompareFunction::GreaterEqual => wgpu::CompareFunction::GreaterEqual,
            CompareFunction::Always => wgpu::CompareFunction::Always,
        }),
        ..wgpu::SamplerDescriptor::default()
    }
}
