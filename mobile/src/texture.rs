//! Textures: images from bytes with a row pitch, as cameras give them, and back.

use std::sync::Arc;

use cantus::{TextureDescriptor, TextureFormat};

use crate::engine::Engine;
use crate::error::{CantusError, Result};
use crate::off_thread;

/// An image on one device of an engine. Releasing the last reference gives its memory back.
#[derive(uniffi::Object)]
pub struct Texture {
    pub(crate) inner: cantus::Texture,
}

/// The size and the format of an image.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct ImageSize {
    /// The texels' format by WebGPU's name: `rgba8unorm`, `r8unorm`.
    pub format: String,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The texels that a sampler takes: the nearest one, or those around, weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum FilterMode {
    /// The nearest texel of the nearest level.
    Nearest,
    /// Texels and levels around the position.
    Linear,
}

/// The texel that a sampler reads beyond the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum AddressMode {
    /// The texel at the edge.
    ClampToEdge,
    /// The image again.
    Repeat,
    /// The image again, every second time mirrored.
    MirrorRepeat,
}

/// A sampler; a kernel's sampler without a value is linear and clamps to the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Record)]
pub struct Sampler {
    /// Of texels and levels.
    pub filter: FilterMode,
    /// Along all axes.
    pub address: AddressMode,
}

impl From<Sampler> for cantus::Sampler {
    fn from(sampler: Sampler) -> Self {
        let filtered = match sampler.filter {
            FilterMode::Nearest => Self::nearest(),
            FilterMode::Linear => Self::linear(),
        };
        filtered.address(match sampler.address {
            AddressMode::ClampToEdge => cantus::AddressMode::ClampToEdge,
            AddressMode::Repeat => cantus::AddressMode::Repeat,
            AddressMode::MirrorRepeat => cantus::AddressMode::MirrorRepeat,
        })
    }
}

#[uniffi::export]
impl Engine {
    /// An image of zeros.
    ///
    /// # Errors
    /// `Shape` for an impossible size, `InvalidInput` for an unknown format.
    pub async fn texture(&self, size: ImageSize) -> Result<Arc<Texture>> {
        let (engine, descriptor) = (self.inner.clone(), described(&size.format, size.width, size.height)?);
        Ok(Texture::shared(off_thread(move || engine.texture(&descriptor)).await?))
    }

    /// An image from bytes, row after row from the top. `row_pitch` is the distance from one row's first byte to the next one's, as a
    /// camera's buffer has it; `null` where rows have no padding. The last row's padding may be left out.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown format; `Shape` for an impossible size, and when the number of bytes does not fit.
    #[uniffi::method(default(row_pitch = None))]
    pub async fn texture_from_bytes(
        &self,
        size: ImageSize,
        bytes: Vec<u8>,
        row_pitch: Option<u32>,
    ) -> Result<Arc<Texture>> {
        let (engine, descriptor) = (self.inner.clone(), described(&size.format, size.width, size.height)?);
        let texels = unpadded(&descriptor, &bytes, row_pitch.map(|pitch| pitch as usize))?.unwrap_or(bytes);
        Ok(Texture::shared(off_thread(move || engine.texture_from_bytes(&descriptor, &texels)).await?))
    }
}

#[uniffi::export]
impl Texture {
    /// The format, and the size of the largest level.
    pub fn size(&self) -> ImageSize {
        let [width, height, _] = self.inner.size();
        ImageSize { format: self.inner.format().name().to_owned(), width, height }
    }

    /// Levels of detail.
    pub fn levels(&self) -> u32 {
        self.inner.descriptor().levels
    }

    /// The name of the device it is on now.
    pub fn device_name(&self) -> String {
        self.inner.texels().device_name()
    }

    /// The texels of the largest level, row after row without padding, after all work recorded so far.
    ///
    /// # Errors
    /// `TensorLost` when earlier work that wrote them failed.
    pub async fn read_bytes(&self) -> Result<Vec<u8>> {
        let texture = self.inner.clone();
        off_thread(move || texture.to_bytes()).await
    }

    /// Overwrites the largest level: the next picture of a camera. The arguments are those of `texture_from_bytes`.
    ///
    /// # Errors
    /// `Shape` when the number of bytes does not fit.
    #[uniffi::method(default(row_pitch = None))]
    pub async fn write_bytes(&self, bytes: Vec<u8>, row_pitch: Option<u32>) -> Result<()> {
        let texture = self.inner.clone();
        let pitch = row_pitch.map(|pitch| pitch as usize);
        let texels = unpadded(texture.descriptor(), &bytes, pitch)?.unwrap_or(bytes);
        off_thread(move || texture.write(&texels)).await
    }

    /// The image with all levels of detail.
    ///
    /// # Errors
    /// `Dtype` for formats of integers and depths.
    pub async fn with_all_levels(&self) -> Result<Arc<Self>> {
        let texture = self.inner.clone();
        Ok(Self::shared(off_thread(move || texture.with_all_levels()).await?))
    }
}

impl Texture {
    fn shared(inner: cantus::Texture) -> Arc<Self> {
        Arc::new(Self { inner })
    }
}

/// The description of an image of a format's name.
pub(crate) fn described(format: &str, width: u32, height: u32) -> Result<TextureDescriptor> {
    let known = TextureFormat::from_name(format).ok_or_else(|| {
        let names: Vec<&str> = TextureFormat::ALL.iter().map(|format| format.name()).collect();
        CantusError::input(format!("\"{format}\" is not a texture format: {}", names.join(", ")))
    })?;
    Ok(TextureDescriptor::new_2d(known, width, height))
}

/// The texels of an image's rows without the padding between them; `None` where they do not fit.
pub(crate) fn unpadded(image: &TextureDescriptor, bytes: &[u8], pitch: Option<usize>) -> Result<Option<Vec<u8>>> {
    let [width, height, _] = image.size.map(|side| side as usize);
    let row = width.saturating_mul(image.format.bytes() as usize);
    let Some(pitch) = pitch.filter(|&pitch| pitch != row) else { return Ok(None) };
    let needed = height.checked_sub(1).and_then(|rows| rows.checked_mul(pitch)?.checked_add(row));
    if pitch < row || needed.is_none_or(|needed| bytes.len() < needed) {
        let text = format!("{} bytes are not {height} rows of {row} bytes with a row pitch of {pitch}", bytes.len());
        return Err(CantusError::shape(text));
    }
    let mut texels = Vec::with_capacity(row.saturating_mul(height));
    bytes.chunks(pitch.max(1)).take(height).for_each(|padded| texels.extend(padded.iter().take(row)));
    Ok(Some(texels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_their_padding() {
        let image = TextureDescriptor::new_2d(TextureFormat::Rg8Unorm, 2, 3);
        let padded: Vec<u8> = (0..16).collect();
        let rows = vec![0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15];
        assert_eq!(unpadded(&image, &padded, Some(6)), Ok(Some(rows)));
        assert_eq!(unpadded(&image, &padded, Some(4)), Ok(None));
        assert_eq!(unpadded(&image, &padded, None), Ok(None));
        assert!(unpadded(&image, &padded, Some(7)).is_err(), "the last row is cut");
        assert!(unpadded(&image, &padded, Some(3)).is_err(), "rows that overlap");
        assert!(unpadded(&image, &padded, Some(usize::MAX)).is_err(), "beyond all addresses");
    }
}
