//! Formats, dimensions and samplers of textures: plain data. Kernels' reflection names them, the engine binds by them, and `shaders/lib/texture.wgsl`
//! decodes by their codes, whose order therefore must not change. A format is a row of a macro. What a device's own sampler would do (anisotropy, its own
//! rounding) is not expressible here on purpose.

use serde::{Deserialize, Serialize};

/// The type of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum ChannelType {
    Unorm,
    Snorm,
    Uint,
    Sint,
    Float,
}

/// The packing of channels in the words of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Packing {
    /// Channels of that many bits each, one after the other.
    Channels(u32),
    /// 10, 10, 10 and 2 bits.
    Rgb10a2,
    /// Floats of 11, 11 and 10 bits without a sign.
    Rg11b10,
    /// Three mantissas of 9 bits and one exponent.
    Rgb9e5,
}

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $channels:literal, $kind:ident, $packing:expr;)*) => {
        /// The format of a texel, by WebGPU's names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum TextureFormat {
            $($(#[$doc])* #[doc = concat!("`", $text, "`")] $name,)*
        }

        impl TextureFormat {
            /// All formats, in WebGPU's order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// WebGPU's name: `rgba8unorm`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns the number of channels: 1 to 4.
            #[must_use]
            pub fn channels(self) -> u32 {
                match self {
                    $(Self::$name => $channels,)*
                }
            }

            fn parts(self) -> (ChannelType, Packing) {
                match self {
                    $(Self::$name => (ChannelType::$kind, $packing),)*
                }
            }
        }
    };
}

use Packing::{Channels, Rg11b10, Rgb9e5, Rgb10a2};

formats! {
    R8Unorm = "r8unorm", 1, Unorm, Channels(8);
    R8Snorm = "r8snorm", 1, Snorm, Channels(8);
    R8Uint = "r8uint", 1, Uint, Channels(8);
    R8Sint = "r8sint", 1, Sint, Channels(8);
    R16Unorm = "r16unorm", 1, Unorm, Channels(16);
    R16Snorm = "r16snorm", 1, Snorm, Channels(16);
    R16Uint = "r16uint", 1, Uint, Channels(16);
    R16Sint = "r16sint", 1, Sint, Channels(16);
    R16Float = "r16float", 1, Float, Channels(16);
    Rg8Unorm = "rg8unorm", 2, Unorm, Channels(8);
    Rg8Snorm = "rg8snorm", 2, Snorm, Channels(8);
    Rg8Uint = "rg8uint", 2, Uint, Channels(8);
    Rg8Sint = "rg8sint", 2, Sint, Channels(8);
    R32Uint = "r32uint", 1, Uint, Channels(32);
    R32Sint = "r32sint", 1, Sint, Channels(32);
    R32Float = "r32float", 1, Float, Channels(32);
    Rg16Unorm = "rg16unorm", 2, Unorm, Channels(16);
    Rg16Snorm = "rg16snorm", 2, Snorm, Channels(16);
    Rg16Uint = "rg16uint", 2, Uint, Channels(16);
    Rg16Sint = "rg16sint", 2, Sint, Channels(16);
    Rg16Float = "rg16float", 2, Float, Channels(16);
    Rgba8Unorm = "rgba8unorm", 4, Unorm, Channels(8);
    /// Colours encoded by sRGB's transfer function, decoded where they are read.
    Rgba8UnormSrgb = "rgba8unorm-srgb", 4, Unorm, Channels(8);
    Rgba8Snorm = "rgba8snorm", 4, Snorm, Channels(8);
    Rgba8Uint = "rgba8uint", 4, Uint, Channels(8);
    Rgba8Sint = "rgba8sint", 4, Sint, Channels(8);
    Bgra8Unorm = "bgra8unorm", 4, Unorm, Channels(8);
    /// The same as `rgba8unorm-srgb`, blue first.
    Bgra8UnormSrgb = "bgra8unorm-srgb", 4, Unorm, Channels(8);
    Rgb9e5Ufloat = "rgb9e5ufloat", 3, Float, Rgb9e5;
    Rgb10a2Uint = "rgb10a2uint", 4, Uint, Rgb10a2;
    Rgb10a2Unorm = "rgb10a2unorm", 4, Unorm, Rgb10a2;
    Rg11b10Ufloat = "rg11b10ufloat", 3, Float, Rg11b10;
    Rg32Uint = "rg32uint", 2, Uint, Channels(32);
    Rg32Sint = "rg32sint", 2, Sint, Channels(32);
    Rg32Float = "rg32float", 2, Float, Channels(32);
    Rgba16Unorm = "rgba16unorm", 4, Unorm, Channels(16);
    Rgba16Snorm = "rgba16snorm", 4, Snorm, Channels(16);
    Rgba16Uint = "rgba16uint", 4, Uint, Channels(16);
    Rgba16Sint = "rgba16sint", 4, Sint, Channels(16);
    Rgba16Float = "rgba16float", 4, Float, Channels(16);
    Rgba32Uint = "rgba32uint", 4, Uint, Channels(32);
    Rgba32Sint = "rgba32sint", 4, Sint, Channels(32);
    Rgba32Float = "rgba32float", 4, Float, Channels(32);
    /// Depth in 16 bits.
    Depth16Unorm = "depth16unorm", 1, Unorm, Channels(16);
    /// Depth as a float.
    Depth32Float = "depth32float", 1, Float, Channels(32);
}

impl TextureFormat {
    /// Returns the format of that name.
    ///
    /// ```
    /// use cantus::TextureFormat;
    /// assert_eq!(TextureFormat::from_name("rgba8unorm"), Some(TextureFormat::Rgba8Unorm));
    /// assert_eq!(TextureFormat::from_name("rgba9"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Returns the bytes of a texel in an image that is read or written from outside: 1 to 16.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self.packing() {
            Channels(bits) => self.channels() * bits / 8,
            _ => 4,
        }
    }

    /// 32-bit words of a texel in memory. A texel has words of its own, so invocations that store neighbours never meet.
    #[doc(hidden)]
    #[must_use]
    pub fn words(self) -> u32 {
        self.bytes().div_ceil(4)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn packing(self) -> Packing {
        self.parts().1
    }

    #[doc(hidden)]
    #[must_use]
    pub fn channel_type(self) -> ChannelType {
        self.parts().0
    }

    /// Returns its colours are encoded by sRGB's transfer function.
    #[must_use]
    pub fn is_srgb(self) -> bool {
        matches!(self, Self::Rgba8UnormSrgb | Self::Bgra8UnormSrgb)
    }

    /// Returns whether its channels are in the order blue, green, red, alpha.
    #[must_use]
    pub fn is_bgra(self) -> bool {
        matches!(self, Self::Bgra8Unorm | Self::Bgra8UnormSrgb)
    }

    /// Returns whether it holds depths.
    #[must_use]
    pub fn is_depth(self) -> bool {
        matches!(self, Self::Depth16Unorm | Self::Depth32Float)
    }

    /// Returns the type that a shader reads from it.
    #[must_use]
    pub fn sample_type(self) -> SampleType {
        match self.channel_type() {
            ChannelType::Uint => SampleType::Uint,
            ChannelType::Sint => SampleType::Sint,
            _ => SampleType::Float,
        }
    }
}

impl std::fmt::Display for TextureFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The type that a shader reads from a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SampleType {
    /// `f32`
    Float,
    /// `i32`
    Sint,
    /// `u32`
    Uint,
    /// A depth, `f32`.
    Depth,
}

impl std::fmt::Display for SampleType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Float => "f32",
            Self::Sint => "i32",
            Self::Uint => "u32",
            Self::Depth => "depth",
        })
    }
}

/// The dimension of a texture as a shader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ViewDimension {
    /// `texture_1d`
    D1,
    /// `texture_2d`
    D2,
    /// `texture_2d_array`
    D2Array,
    /// `texture_cube`
    Cube,
    /// `texture_cube_array`
    CubeArray,
    /// `texture_3d`
    D3,
}

impl ViewDimension {
    /// Returns the ending of WGSL's type: `2d_array`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::D1 => "1d",
            Self::D2 => "2d",
            Self::D2Array => "2d_array",
            Self::Cube => "cube",
            Self::CubeArray => "cube_array",
            Self::D3 => "3d",
        }
    }

    /// Returns the axes of an array for such a texture, in words.
    #[doc(hidden)]
    pub fn axes(self) -> &'static str {
        match self {
            Self::D1 => "width x channels",
            Self::D2 => "height x width x channels",
            Self::D2Array => "layers x height x width x channels",
            Self::Cube => "6 x height x width x channels",
            Self::CubeArray => "layers (six for each cube) x height x width x channels",
            Self::D3 => "depth x height x width x channels",
        }
    }

    /// Returns the sides of an array for such a texture, and its channels: one where it has no axis of them. `None` for another number of axes.
    #[doc(hidden)]
    pub fn sides_and_channels(self, shape: &[usize]) -> Option<(&[usize], usize)> {
        let sides = match self {
            Self::D1 => 1,
            Self::D2 => 2,
            Self::D2Array | Self::Cube | Self::CubeArray | Self::D3 => 3,
        };
        match shape.split_at_checked(sides)? {
            (sides, []) => Some((sides, 1)),
            (sides, &[channels]) => Some((sides, channels)),
            _ => None,
        }
    }
}

impl std::fmt::Display for ViewDimension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The access of a kernel to a storage texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StorageTextureAccess {
    /// `read`
    Read,
    /// `write`
    Write,
    /// `read_write`
    ReadWrite,
}

/// A texture of a kernel: a variable of type `texture_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureBinding {
    /// The variable's name in the WGSL text.
    pub name: String,
    /// `@group`
    pub group: u32,
    /// `@binding`
    pub binding: u32,
    /// The dimension.
    pub dimension: ViewDimension,
    /// The type that is read from it or stored in it.
    pub sample_type: SampleType,
    /// True if it has several samples per texel.
    pub multisampled: bool,
    /// The format and access of a storage texture; `None` for one that is sampled or loaded.
    pub storage: Option<(TextureFormat, StorageTextureAccess)>,
}

impl std::fmt::Display for TextureBinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let multisampled = if self.multisampled { "multisampled_" } else { "" };
        match (&self.storage, self.sample_type) {
            (Some((format, access)), _) => {
                let access = match access {
                    StorageTextureAccess::Read => "read",
                    StorageTextureAccess::Write => "write",
                    StorageTextureAccess::ReadWrite => "read_write",
                };
                write!(f, "texture_storage_{}<{format}, {access}>", self.dimension)
            }
            (None, SampleType::Depth) => write!(f, "texture_depth_{multisampled}{}", self.dimension),
            (None, other) => write!(f, "texture_{multisampled}{}<{other}>", self.dimension),
        }
    }
}

/// A sampler of a kernel: a variable of type `sampler` or `sampler_comparison`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerBinding {
    /// The variable's name in the WGSL text.
    pub name: String,
    /// `@group`
    pub group: u32,
    /// `@binding`
    pub binding: u32,
    /// A `sampler_comparison`.
    pub comparison: bool,
}

impl SamplerBinding {
    /// Returns the sampler that programs bind where none is given: linear and clamped to the edge; one that compares gives 1 where the reference is
    /// not greater.
    #[must_use]
    pub fn usual(&self) -> Sampler {
        let linear = Sampler::linear();
        if self.comparison { linear.compare(CompareFunction::LessEqual) } else { linear }
    }
}

/// The texel that a sampler reads beyond the edge of a texture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressMode {
    /// The texel at the edge.
    #[default]
    ClampToEdge,
    /// The texture again.
    Repeat,
    /// The texture again, every second time mirrored.
    MirrorRepeat,
}

/// The interpolation of a sampler between texels, or between levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterMode {
    /// The nearest one.
    #[default]
    Nearest,
    /// Takes the texels around the position, weighted by their distance.
    Linear,
}

/// The comparison by which a `sampler_comparison` compares its reference (left) with a texel (right).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareFunction {
    /// 0 always.
    Never,
    /// 1 where the reference is less.
    Less,
    /// 1 where they are equal.
    Equal,
    /// 1 where the reference is not greater.
    LessEqual,
    /// 1 where the reference is greater.
    Greater,
    /// 1 where they differ.
    NotEqual,
    /// 1 where the reference is not less.
    GreaterEqual,
    /// 1 always.
    Always,
}

macro_rules! named {
    ($($type:ident { $($name:ident = $text:literal),* })*) => {$(
        impl $type {
            /// All of them with WebGPU's names.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($text, Self::$name),)*];

            /// Returns the member with that name in WebGPU.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            }
        }
    )*};
}
named! {
    AddressMode { ClampToEdge = "clamp-to-edge", Repeat = "repeat", MirrorRepeat = "mirror-repeat" }
    FilterMode { Nearest = "nearest", Linear = "linear" }
    CompareFunction {
        Never = "never", Less = "less", Equal = "equal", LessEqual = "less-equal", Greater = "greater",
        NotEqual = "not-equal", GreaterEqual = "greater-equal", Always = "always"
    }
}

/// The state of a sampler, with WebGPU's fields and defaults: nearest texels, clamped to the edge. Anisotropic filtering is not done:
/// `max_anisotropy` is 1.
///
/// ```
/// use cantus::{AddressMode, Sampler};
/// let tiled = Sampler::linear().address(AddressMode::Repeat);
/// assert_eq!(tiled.address_mode, [AddressMode::Repeat; 3]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// Beyond the edge along u, v and w.
    pub address_mode: [AddressMode; 3],
    /// The filter where a texel is larger than a sample (level of detail 0 and less).
    pub mag_filter: FilterMode,
    /// The filter where a texel is smaller than a sample.
    pub min_filter: FilterMode,
    /// The filter between levels.
    pub mipmap_filter: FilterMode,
    /// The least level of detail.
    pub lod_min_clamp: f32,
    /// The greatest level of detail.
    pub lod_max_clamp: f32,
    /// The comparison of a `sampler_comparison`; `None` for a `sampler`.
    pub compare: Option<CompareFunction>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::nearest()
    }
}

impl Sampler {
    /// Creates a sampler that takes the nearest texel of the nearest level, clamped to the edge.
    #[must_use]
    pub fn nearest() -> Self {
        Self::filtered(FilterMode::Nearest)
    }

    /// Creates a sampler that weights the texels and levels around, clamped to the edge.
    #[must_use]
    pub fn linear() -> Self {
        Self::filtered(FilterMode::Linear)
    }

    fn filtered(filter: FilterMode) -> Self {
        Self {
            address_mode: [AddressMode::ClampToEdge; 3],
            mag_filter: filter,
            min_filter: filter,
            mipmap_filter: filter,
            lod_min_clamp: 0.0,
            lod_max_clamp: 32.0,
            compare: None,
        }
    }

    /// Sets the address mode of all axes.
    #[must_use]
    pub fn address(self, mode: AddressMode) -> Self {
        Self { address_mode: [mode; 3], ..self }
    }

    /// Sets the comparison of a `sampler_comparison`.
    #[must_use]
    pub fn compare(self, function: CompareFunction) -> Self {
        Self { compare: Some(function), ..self }
    }

    /// Returns whether it weights texels or levels. A comparison weights its outcomes instead.
    #[doc(hidden)]
    #[must_use]
    pub fn filters(&self) -> bool {
        let all = [self.mag_filter, self.min_filter, self.mipmap_filter];
        self.compare.is_none() && all.contains(&FilterMode::Linear)
    }

    /// Returns it as words: the modes as `shaders/lib/texture.wgsl` takes them, and the least and greatest level of detail.
    #[doc(hidden)]
    #[must_use]
    pub fn to_words(&self) -> [u32; 3] {
        let [u, v, w] = self.address_mode.map(|mode| mode as u32);
        let linear = |filter: FilterMode| u32::from(filter == FilterMode::Linear);
        let filters = linear(self.mag_filter) << 6 | linear(self.min_filter) << 7 | linear(self.mipmap_filter) << 8;
        let compare = self.compare.map_or(0, |function| function as u32 + 1);
        let modes = u | v << 2 | w << 4 | filters | compare << 9;
        [modes, self.lod_min_clamp.to_bits(), self.lod_max_clamp.to_bits()]
    }

    /// Returns the sampler of [`Sampler::to_words`].
    #[doc(hidden)]
    #[must_use]
    pub fn from_words([modes, least, most]: [u32; 3]) -> Self {
        let address = |shift: u32| {
            let found = AddressMode::ALL.get((modes >> shift & 3) as usize);
            found.map_or(AddressMode::ClampToEdge, |(_, mode)| *mode)
        };
        let filter = |bit: u32| if modes >> bit & 1 == 1 { FilterMode::Linear } else { FilterMode::Nearest };
        let compare = (modes >> 9 & 15).checked_sub(1).and_then(|place| CompareFunction::ALL.get(place as usize));
        Self {
            address_mode: [0, 2, 4].map(address),
            mag_filter: filter(6),
            min_filter: filter(7),
            mipmap_filter: filter(8),
            lod_min_clamp: f32::from_bits(least),
            lod_max_clamp: f32::from_bits(most),
            compare: compare.map(|(_, function)| *function),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressMode, CompareFunction, FilterMode, Sampler, TextureFormat};

    #[test]
    fn samplers_come_back_from_words() {
        let filters = [FilterMode::Nearest, FilterMode::Linear];
        for (place, &(_, mode)) in AddressMode::ALL.iter().enumerate() {
            for compare in CompareFunction::ALL.iter().map(|(_, function)| Some(*function)).chain([None]) {
                let sampler = Sampler {
                    address_mode: [mode, AddressMode::Repeat, AddressMode::MirrorRepeat],
                    mag_filter: filters[place % 2],
                    mipmap_filter: filters[(place + 1) % 2],
                    lod_max_clamp: 2.5,
                    compare,
                    ..Sampler::nearest()
                };
                assert_eq!(Sampler::from_words(sampler.to_words()), sampler);
            }
        }
    }

    #[test]
    fn names_are_webgpus() {
        for &format in TextureFormat::ALL {
            assert_eq!(TextureFormat::from_name(format.name()), Some(format));
            let debug = format!("{format:?}").to_lowercase();
            assert_eq!(debug, format.name().replace('-', ""), "{format:?}");
            assert!((1..=4).contains(&format.words()) && format.bytes() <= 16);
        }
    }
}
