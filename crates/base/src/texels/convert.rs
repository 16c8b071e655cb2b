//! Converts texels between the bytes of an image, the words of a texture in memory, and the elements of an array. Kernels read the words by
//! `shaders/lib/texture.wgsl`.

use crate::listed::Listed;
use crate::tensor::DType;
use crate::texture::ChannelType::{Float, Sint, Snorm, Uint, Unorm};
use crate::texture::{Packing, SampleType, TextureFormat};

impl TextureFormat {
    /// Returns the dtype of its channels; `None` where they share bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn channel_dtype(self) -> Option<DType> {
        let Packing::Channels(bits) = self.packing() else { return None };
        Some(match (self.channel_type(), bits) {
            (Unorm | Uint, 8) => DType::U8,
            (Snorm | Sint, 8) => DType::I8,
            (Unorm | Uint, 16) => DType::U16,
            (Snorm | Sint, 16) => DType::I16,
            (Float, 16) => DType::F16,
            (Float, _) => DType::F32,
            (Uint | Unorm, _) => DType::U32,
            (Sint | Snorm, _) => DType::I32,
        })
    }

    /// Returns the format in which a kernel reads such numbers from an array of that dtype and that many channels, if there is one.
    #[doc(hidden)]
    #[must_use]
    pub fn of_array(sample_type: SampleType, dtype: DType, channels: usize) -> Option<Self> {
        let channels = match channels {
            1 => "r",
            2 => "rg",
            3 | 4 => "rgba",
            _ => return None,
        };
        let kind = match (sample_type, dtype) {
            (SampleType::Depth, DType::F32) if channels == "r" => return Some(Self::Depth32Float),
            (SampleType::Float, DType::U8) => "8unorm",
            (SampleType::Float, DType::I8) => "8snorm",
            (SampleType::Float, DType::U16) => "16unorm",
            (SampleType::Float, DType::I16) => "16snorm",
            (SampleType::Float, DType::F16) => "16float",
            (SampleType::Float, DType::F32) => "32float",
            (SampleType::Uint, DType::U8) => "8uint",
            (SampleType::Uint, DType::U16) => "16uint",
            (SampleType::Uint, DType::U32) => "32uint",
            (SampleType::Sint, DType::I8) => "8sint",
            (SampleType::Sint, DType::I16) => "16sint",
            (SampleType::Sint, DType::I32) => "32sint",
            _ => return None,
        };
        Self::from_name(&format!("{channels}{kind}"))
    }

    /// The bytes of 1, or of full intensity, in a channel; nothing where channels share bytes.
    fn opaque(self) -> Vec<u8> {
        let Some(dtype) = self.channel_dtype() else { return Vec::new() };
        let is_normalized = matches!(self.channel_type(), Unorm | Snorm);
        match (dtype, is_normalized) {
            (DType::U8, true) => vec![0xff],
            (DType::I8, true) => vec![0x7f],
            (DType::U16, true) => 0xffff_u16.to_le_bytes().to_vec(),
            (DType::I16, true) => 0x7fff_u16.to_le_bytes().to_vec(),
            (DType::F16, _) => half::f16::ONE.to_le_bytes().to_vec(),
            (DType::F32, _) => 1.0_f32.to_le_bytes().to_vec(),
            (dtype, _) => {
                let mut one = vec![0; dtype.bytes()];
                one.iter_mut().take(1).for_each(|byte| *byte = 1);
                one
            }
        }
    }

    /// Returns texels from an array's elements of [`TextureFormat::channel_dtype`], red first. Pixels of three channels get an alpha of 1
    /// in a format of four.
    #[doc(hidden)]
    #[must_use]
    pub fn texels_of(self, elements: &[u8], channels: usize) -> Vec<u8> {
        let mut texels = Vec::with_capacity(elements.len());
        if channels == 3 && self.channels() == 4 {
            let alpha = self.opaque();
            for pixel in elements.chunks_exact((3 * alpha.len()).max(1)) {
                texels.extend_from_slice(pixel);
                texels.extend_from_slice(&alpha);
            }
        } else {
            texels.extend_from_slice(elements);
        }
        self.swap_red(&mut texels);
        texels
    }

    /// Turns texels into pixels whose first channel is red, and back.
    #[doc(hidden)]
    pub fn swap_red(self, texels: &mut [u8]) {
        if self.is_bgra() {
            texels.chunks_exact_mut(4).for_each(|texel| texel.swap(0, 2));
        }
    }

    /// Returns texels as the words of a texture in memory: one of less than a word has a word of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn to_words(self, texels: &[u8]) -> Vec<u32> {
        let bytes = self.bytes() as usize;
        if bytes.is_multiple_of(4) {
            return bytemuck::pod_collect_to_vec(texels);
        }
        let word = |texel: &[u8]| texel.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        texels.chunks_exact(bytes).map(word).listed()
    }

    /// Returns the texels of [`TextureFormat::to_words`].
    #[doc(hidden)]
    #[must_use]
    pub fn from_words(self, words: &[u32]) -> Vec<u8> {
        let bytes = self.bytes() as usize;
        if bytes.is_multiple_of(4) {
            return bytemuck::cast_slice(words).to_vec();
        }
        let mut texels = Vec::with_capacity(words.len() * bytes);
        for word in words {
            texels.extend(word.to_le_bytes().iter().take(bytes));
        }
        texels
    }
}

#[cfg(test)]
mod tests {
    use super::TextureFormat;

    #[test]
    fn texels_come_back_from_words() {
        for &format in TextureFormat::ALL {
            let texels: Vec<u8> = (0..format.bytes() * 5).map(|byte| (byte * 37 + 11) as u8).collect();
            let words = format.to_words(&texels);
            assert_eq!(words.len(), format.words() as usize * 5, "{format}");
            assert_eq!(format.from_words(&words), texels, "{format}");
        }
    }

    #[test]
    fn pixels_without_alpha_are_opaque() {
        let pixel = |format: TextureFormat, pixel: &[u8]| format.texels_of(pixel, 3);
        assert_eq!(pixel(TextureFormat::Rgba8Unorm, &[1, 2, 3]), [1, 2, 3, 255]);
        assert_eq!(pixel(TextureFormat::Bgra8Unorm, &[1, 2, 3]), [3, 2, 1, 255]);
        assert_eq!(pixel(TextureFormat::Rgba8Snorm, &[1, 2, 3]), [1, 2, 3, 127]);
        assert_eq!(pixel(TextureFormat::Rgba8Uint, &[1, 2, 3]), [1, 2, 3, 1]);
        assert_eq!(pixel(TextureFormat::Rgba16Float, &[0; 6])[6..], 0x3c00_u16.to_le_bytes());
        assert_eq!(pixel(TextureFormat::Rgba32Float, &[0; 12])[12..], 1.0_f32.to_le_bytes());
    }
}
