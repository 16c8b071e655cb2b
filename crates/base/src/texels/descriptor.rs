//! Descriptions of textures: their axes, sizes and levels. The engine allocates and checks textures by it, and converters (`texels/convert`) walk images by
//! it. A texel takes whole words in memory (`TextureFormat::words`) and packed bytes in an image from outside (`TextureFormat::bytes`): the two sizes
//! differ for most formats.

use crate::error::{Error, Result};
use crate::texture::{TextureFormat, ViewDimension};

/// Texels along a side of a texture, at most.
const MAX_SIDE: u32 = 1 << 15;
/// Layers of a texture, at most.
const MAX_LAYERS: u32 = 2048;

/// The axes of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextureDimension {
    /// A row of texels.
    D1,
    /// An image, or layers of images.
    D2,
    /// A block of texels.
    D3,
}

/// A description of a texture, with WebGPU's fields.
///
/// ```
/// use cantus::{TextureDescriptor, TextureFormat};
/// let photo = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 640, 480);
/// assert_eq!(photo.with_all_levels().levels, 10);
/// assert_eq!(photo.byte_len(), 640 * 480 * 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextureDescriptor {
    /// The axes.
    pub dimension: TextureDimension,
    /// Width, height, and depth or layers, in texels: at most 32,768 along a side, and 2,048 layers.
    pub size: [u32; 3],
    /// Levels of detail, each half as large as the one before: 1 to 16.
    pub levels: u32,
    /// Samples of each texel: 1, or 4 for `texture_multisampled_2d`.
    pub samples: u32,
    /// The texels' format.
    pub format: TextureFormat,
}

impl TextureDescriptor {
    fn new(dimension: TextureDimension, format: TextureFormat, size: [u32; 3]) -> Self {
        Self { dimension, size, levels: 1, samples: 1, format }
    }

    /// Creates a row of texels.
    #[must_use]
    pub fn new_1d(format: TextureFormat, width: u32) -> Self {
        Self::new(TextureDimension::D1, format, [width, 1, 1])
    }

    /// Creates an image.
    #[must_use]
    pub fn new_2d(format: TextureFormat, width: u32, height: u32) -> Self {
        Self::new(TextureDimension::D2, format, [width, height, 1])
    }

    /// Creates a block of texels.
    #[must_use]
    pub fn new_3d(format: TextureFormat, width: u32, height: u32, depth: u32) -> Self {
        Self::new(TextureDimension::D3, format, [width, height, depth])
    }

    /// Creates a texture for a variable of that dimension, from its sides with the slowest first: depth or layers, height, width. `None` for another
    /// number of sides, and for cubes whose layers are not sixes.
    ///
    /// ```
    /// use cantus::kernel::ViewDimension;
    /// use cantus::{TextureDescriptor, TextureFormat};
    /// let block = TextureDescriptor::for_view(ViewDimension::D3, TextureFormat::R32Float, &[2, 3, 4]);
    /// assert_eq!(block.unwrap().size, [4, 3, 2]);
    /// assert!(TextureDescriptor::for_view(ViewDimension::Cube, TextureFormat::R32Float, &[5, 8, 8]).is_none());
    /// ```
    #[must_use]
    pub fn for_view(view: ViewDimension, format: TextureFormat, sides: &[usize]) -> Option<Self> {
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        Some(match (view, sides) {
            (ViewDimension::D1, &[width]) => Self::new_1d(format, side(width)),
            (ViewDimension::D2, &[height, width]) => Self::new_2d(format, side(width), side(height)),
            (ViewDimension::D3, &[depth, height, width]) => {
                Self::new_3d(format, side(width), side(height), side(depth))
            }
            (ViewDimension::D2Array | ViewDimension::Cube | ViewDimension::CubeArray, &[layers, height, width]) => {
                let fits = match view {
                    ViewDimension::Cube => layers == 6,
                    ViewDimension::CubeArray => layers.is_multiple_of(6),
                    _ => true,
                };
                fits.then(|| Self::new_2d(format, side(width), side(height)).with_layers(side(layers)))?
            }
            _ => return None,
        })
    }

    /// Sets the number of layers. A cube has six: +x, -x, +y, -y, +z, -z.
    #[must_use]
    pub fn with_layers(self, layers: u32) -> Self {
        Self { size: [self.size[0], self.size[1], layers], ..self }
    }

    /// Sets the number of levels.
    #[must_use]
    pub fn with_levels(self, levels: u32) -> Self {
        Self { levels, ..self }
    }

    /// Sets all levels, down to a side of one texel.
    #[must_use]
    pub fn with_all_levels(self) -> Self {
        self.with_levels(self.most_levels())
    }

    /// Sets the number of samples in each texel.
    #[must_use]
    pub fn with_samples(self, samples: u32) -> Self {
        Self { samples, ..self }
    }

    fn most_levels(&self) -> u32 {
        let depth = if self.dimension == TextureDimension::D3 { self.size[2] } else { 1 };
        let longest = self.size[0].max(self.size[1]).max(depth).max(1);
        u32::BITS - longest.leading_zeros()
    }

    /// Returns the width, height, and depth or layers of a level.
    ///
    /// ```
    /// use cantus::{TextureDescriptor, TextureFormat};
    /// let photo = TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 640, 3).with_all_levels();
    /// assert_eq!(photo.level_size(2), [160, 1, 1]);
    /// ```
    #[must_use]
    pub fn level_size(&self, level: u32) -> [u32; 3] {
        let shrunk = |side: u32| side.checked_shr(level).unwrap_or(0).max(1);
        let [width, height, depth] = self.size;
        match self.dimension {
            TextureDimension::D1 => [shrunk(width), 1, depth],
            TextureDimension::D2 => [shrunk(width), shrunk(height), depth],
            TextureDimension::D3 => [shrunk(width), shrunk(height), shrunk(depth)],
        }
    }

    /// Returns the texels of a level in one layer (in all slices of a block), samples counted.
    #[doc(hidden)]
    #[must_use]
    pub fn layer_texels(&self, level: u32) -> u64 {
        let [width, height, depth] = self.level_size(level);
        let slices = if self.dimension == TextureDimension::D3 { depth } else { 1 };
        u64::from(width) * u64::from(height) * u64::from(slices) * u64::from(self.samples)
    }

    /// Returns the number of layers: 1 for a block.
    #[doc(hidden)]
    #[must_use]
    pub fn layers(&self) -> u32 {
        if self.dimension == TextureDimension::D3 { 1 } else { self.size[2] }
    }

    /// Returns the texels of a level in all layers, samples counted.
    #[doc(hidden)]
    #[must_use]
    pub fn level_texels(&self, level: u32) -> u64 {
        self.layer_texels(level) * u64::from(self.layers())
    }

    /// Returns the texels of all levels and layers, samples counted.
    #[doc(hidden)]
    #[must_use]
    pub fn texels(&self) -> u64 {
        (0..self.levels).fold(0, |sum, level| sum + self.level_texels(level))
    }

    /// Returns the word where a level begins.
    #[doc(hidden)]
    #[must_use]
    pub fn level_offset(&self, level: u32) -> u64 {
        (0..level).fold(0, |sum, level| sum + self.level_texels(level)) * u64::from(self.format.words())
    }

    /// Returns the words of a level's row whose bytes are padded to an alignment, and the rows of all its layers or slices.
    #[doc(hidden)]
    #[must_use]
    pub fn padded_rows(&self, level: u32, alignment: u64) -> (u64, u64) {
        let [width, height, depth] = self.level_size(level);
        let row = (u64::from(width) * u64::from(self.format.bytes())).next_multiple_of(alignment) / 4;
        (row, u64::from(height) * u64::from(depth))
    }

    /// Returns the word where a level begins if rows are padded to an alignment.
    #[doc(hidden)]
    #[must_use]
    pub fn padded_offset(&self, level: u32, alignment: u64) -> u64 {
        (0..level).fold(0, |sum, level| {
            let (row, rows) = self.padded_rows(level, alignment);
            sum + row * rows
        })
    }

    /// Returns the bytes of all levels as `Engine::texture_from_bytes` takes them, without padding.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.texels() * u64::from(self.format.bytes())
    }

    /// Checks that there is such a texture.
    ///
    /// # Errors
    /// [`Error::Shape`] names the side, the levels or the samples.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let fault = |reason: String| {
            let [width, height, depth] = self.size;
            let what = format!("a texture of {width} x {height} x {depth} {}", self.format);
            Err(Error::shape(what, reason))
        };
        let [width, height, depth] = self.size;
        if self.size.contains(&0) {
            return fault("every side must be at least 1".to_owned());
        }
        let deepest = if self.dimension == TextureDimension::D3 { MAX_SIDE } else { MAX_LAYERS };
        if width > MAX_SIDE || height > MAX_SIDE || depth > deepest {
            return fault(format!("a side has at most {MAX_SIDE} texels, and a texture {MAX_LAYERS} layers"));
        }
        if self.dimension == TextureDimension::D1 && (height, depth) != (1, 1) {
            return fault("a one-dimensional texture has one row and one layer".to_owned());
        }
        if self.levels == 0 || self.levels > self.most_levels() {
            return fault(format!("it has {} levels; the number must be 1 to {}", self.levels, self.most_levels()));
        }
        if !matches!(self.samples, 1 | 4) {
            return fault(format!("it has {} samples per texel; the number must be 1 or 4", self.samples));
        }
        if self.samples > 1 && (self.dimension != TextureDimension::D2 || self.levels > 1) {
            return fault("a texture with several samples has two dimensions and one level".to_owned());
        }
        if self.texels() * u64::from(self.format.words()) > u64::from(u32::MAX) {
            return fault("it has more than 2^32 words".to_owned());
        }
        Ok(())
    }
}
