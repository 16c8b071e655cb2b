//! Textures: tensors of texels with a format and a shape, and their description for kernels.
//!
//! # What comes in
//! A `TextureDescriptor` with texels, or the app's own wgpu texture; a kernel with texture and sampler variables; a dispatch that binds the ones to the
//! others.
//!
//! # Stages
//! 1. **Make.** A texture is a tensor of words, all levels and layers in a row, so it is moved, counted and lost as one. A view (`level`, `layers`) is a
//!    range of the same tensor.
//! 2. **Check** (`bound::Given`). Each variable has one texture of the right dimension, format and samples (`misfit`) or one sampler, and no texels are
//!    read through one variable and written through another.
//! 3. **Describe** (`bound::Described`). What a kernel is made for becomes the `Forms` of its variables: format, one level or several, samples, which
//!    earlier texture has the same texels, and the modes of samplers. What changes from dispatch to dispatch becomes words of a uniform: sizes, offsets
//!    of levels, clamps of samplers.
//! 4. **Take the form** (`Kernel::textured_form`, kept by the forms). It has a buffer in place of each texture and calls of `shaders/lib/texture.wgsl` in
//!    place of the builtins. `DispatchBuilder::with_texels` binds the tensors and the hidden uniform, and the dispatch continues as any other.
//!
//! # The app's own textures (`own`)
//! They remain textures of their device, and the hardware filters them. Their tensor is no memory of the engine's: it carries the place, the state and the
//! label. Where a kernel cannot be bound to one, the kernel runs on a copy of its texels, which is copied back if it was written (`Textured::copy`,
//! `copy_back`). If the device refuses the form, all of them are copied.
//!
//! # What holds
//! - No backend except wgpu sees a texture, and wgpu sees only the app's own. Filtering of all others therefore has the same results on every device.
//! - Each texel has words of its own, so kernels that write neighbouring texels never share a word.
//! - Two variables with the same texels share one buffer (`shares`), because a buffer that is written may not be bound twice.
//!
//! # An example
//! `textureLoad(image, id.xy, 0)` of an `rgba8unorm` image of 4 x 2 texels with one level. The form is (`Rgba8Unorm`, one level, one sample). The uniform
//! has 4, 2, 1 layer, 1 level and sixteen offsets. The kernel computes an index, loads a word and unpacks it, and reads zeros outside. An image of
//! another size uses the same kernel with other words.

mod bound;
mod own;

use super::{Engine, Tensor};
use crate::backend::BoxFuture;
use crate::backend::DeviceInfo;
use crate::error::{DtypeError, Error, Result};
use crate::kernel::Kernel;
use crate::tensor::{DType, Element};
pub use bound::Resource;
pub(super) use bound::{Textured, copy_back, textured};
use cantus_base::listed::Listed;
pub use cantus_base::texels::{TextureDescriptor, TextureDimension};
use cantus_base::texture::{Packing, SampleType, TextureBinding, TextureFormat, ViewDimension};

/// Levels of a texture, at most: a side of 2^15 has 16.
const LEVELS: usize = 16;

/// An image, or layers, levels or a block of them, on one device of an engine; a kernel's `texture_*` variables are bound to it. Clones and views
/// are cheap and share the texels.
///
/// Like a tensor, it moves between devices, counts as memory and can be lost. A kernel reads and filters it with the same functions on every
/// device, so results agree everywhere. An app's own texture (`Engine::texture_from_wgpu`) stays where it is, counts as the app's, and is filtered by the
/// hardware.
///
/// ```
/// use cantus::{Kernel, Sampler, TextureDescriptor, TextureFormat};
///
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let kernel = Kernel::from_wgsl("
///     @group(0) @binding(0) var image: texture_2d<f32>;
///     @group(0) @binding(1) var smp: sampler;
///     @group(0) @binding(2) var half: texture_storage_2d<rgba8unorm, write>;
///     @compute @workgroup_size(8, 8)
///     fn shrink(@builtin(global_invocation_id) id: vec3u) {
///         let size = textureDimensions(half);
///         if all(id.xy < size) {
///             let uv = (vec2f(id.xy) + 0.5) / vec2f(size);
///             textureStore(half, id.xy, textureSampleLevel(image, smp, uv, 0.0));
///         }
///     }
/// ")?;
/// let image = TextureDescriptor::new_2d(TextureFormat::R8Unorm, 4, 2);
/// let image = engine.texture_from_bytes(&image, &[0, 100, 200, 200, 0, 100, 0, 0])?;
/// let half = engine.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 2, 1))?;
/// engine.dispatch(&kernel)
///     .bind("image", &image).bind("smp", Sampler::linear()).bind("half", &half)
///     .invocations((2, 1))
///     .run()?;
/// assert_eq!(half.to_bytes()?, [50, 0, 0, 255, 100, 0, 0, 255]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Clone)]
pub struct Texture {
    /// The texels as words, or what stands for an app's own texture.
    texels: Tensor,
    is_own: bool,
    descriptor: TextureDescriptor,
    view: View,
}

/// The pixels of a texture as an array: dtype, shape, and bytes.
pub type Pixels = (DType, Vec<usize>, Vec<u8>);

/// The part of a texture that is bound, read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct View {
    level: u32,
    levels: u32,
    layer: u32,
    layers: u32,
}

impl std::fmt::Debug for Texture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Texture")
            .field("descriptor", &self.descriptor)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// The means of squares of texels.
const LEVELS_TEXT: &str = "
@group(0) @binding(0) var fine: texture_2d<f32>;
@group(0) @binding(1) var coarse: texture_storage_2d<FORMAT, write>;
override factor: u32 = 2;
override is_srgb: bool = false;

fn encoded(light: f32) -> f32 {
    return select(1.055 * pow(light, 1.0 / 2.4) - 0.055, 12.92 * light, light <= 0.0031308);
}

@compute @workgroup_size(8, 8)
fn level(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= textureDimensions(coarse)) {
        return;
    }
    let last = textureDimensions(fine) - 1u;
    var sum = vec4f();
    for (var i = 0u; i < factor * factor; i++) {
        sum += textureLoad(fine, min(id.xy * factor + vec2u(i % factor, i / factor), last), 0);
    }
    var mean = sum / f32(factor * factor);
    if is_srgb {
        mean = vec4f(encoded(mean.x), encoded(mean.y), encoded(mean.z), mean.w);
    }
    textureStore(coarse, id.xy, mean);
}
";

impl Engine {
    /// Creates a texture of zeros.
    ///
    /// # Errors
    /// [`Error::Shape`] for an impossible size; else as [`Engine::zeros_async`].
    pub fn texture_async<'a>(&'a self, descriptor: &'a TextureDescriptor) -> BoxFuture<'a, Result<Texture>> {
        Box::pin(async move {
            descriptor.check()?;
            let words = descriptor.texels() * u64::from(descriptor.format.words());
            let texels = self.zeros_async::<u32>(&[usize::try_from(words).unwrap_or(usize::MAX)]).await?;
            Ok(Texture::of(texels, *descriptor))
        })
    }

    /// Creates a texture from the texels of all levels, in the order of image files: by level, layer, row from the top, and texel, without padding.
    ///
    /// # Errors
    /// [`Error::Shape`] for an impossible size, and if the number of bytes differs from [`TextureDescriptor::byte_len`]; else as
    /// [`Engine::tensor_async`].
    pub fn texture_from_bytes_async<'a>(
        &'a self,
        descriptor: &'a TextureDescriptor,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<Texture>> {
        Box::pin(async move {
            descriptor.check()?;
            if bytes.len() as u64 != descriptor.byte_len() {
                return Err(wrong_length(descriptor.byte_len(), bytes.len()));
            }
            let words = descriptor.format.to_words(bytes);
            Ok(Texture::of(self.tensor_async(&words).await?, *descriptor))
        })
    }

    /// Creates an image from an array of height x width x channels, or of height x width for one channel. The array has the dtype of the format's
    /// channels: `u8` for `rgba8unorm`, `f32` for `r32float`. If the format has four channels and the array three, alpha is 1.
    ///
    /// # Errors
    /// [`Error::Dtype`] and [`Error::Shape`] if the format or the shape does not match; else as [`Engine::texture_from_bytes_async`].
    pub async fn texture_from_array_async<T: Element, S, D>(
        &self,
        array: &ndarray::ArrayBase<S, D>,
        format: TextureFormat,
    ) -> Result<Texture>
    where
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        let values: Vec<T> = array.iter().copied().listed();
        self.texture_from_pixels_async(T::DTYPE, array.shape(), bytemuck::cast_slice(&values), format).await
    }

    /// Creates an image as [`Engine::texture_from_array_async`], from the elements' bytes, row-major.
    ///
    /// # Errors
    /// As [`Engine::texture_from_array_async`].
    pub fn texture_from_pixels_async<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        bytes: &'a [u8],
        format: TextureFormat,
    ) -> BoxFuture<'a, Result<Texture>> {
        Box::pin(async move { self.texture_from_pixels_as_async(ViewDimension::D2, dtype, shape, bytes, format).await })
    }

    /// Creates a texture for a variable of that dimension, from an array's bytes, row-major: width; height x width; depth or layers x height x width;
    /// with the channels as the last axis where there are several. A cube has six layers.
    ///
    /// # Errors
    /// As [`Engine::texture_from_array_async`].
    pub fn texture_from_pixels_as_async<'a>(
        &'a self,
        view: ViewDimension,
        dtype: DType,
        shape: &'a [usize],
        bytes: &'a [u8],
        format: TextureFormat,
    ) -> BoxFuture<'a, Result<Texture>> {
        Box::pin(async move {
            let what = || format!("the image {dtype}{shape:?}");
            let unfit = || Error::shape(what(), format!("its shape is not {}", view.axes()));
            let (sides, channels) = view.sides_and_channels(shape).ok_or_else(unfit)?;
            if format.channel_dtype() != Some(dtype) {
                let wanted = format.channel_dtype().map_or_else(
                    || "bytes that hold several channels (texture_from_bytes)".to_owned(),
                    |dtype| format!("elements of {dtype}"),
                );
                return Err(Error::dtype(what(), format!("{format} takes {wanted}")));
            }
            let wanted = format.channels() as usize;
            let is_colour = channels == 3 && wanted == 4;
            if channels != wanted && !is_colour {
                return Err(Error::shape(what(), format!("{format} has {wanted} channels")));
            }
            let descriptor = TextureDescriptor::for_view(view, format, sides).ok_or_else(unfit)?;
            descriptor.check()?;
            self.texture_from_bytes_async(&descriptor, &format.texels_of(bytes, channels)).await
        })
    }
}

fn wrong_length(expected: u64, given: usize) -> Error {
    Error::shape("the bytes of a texture", format!("it takes {expected} bytes, {given} were given"))
}

macro_rules! blocking {
    ($($(#[$doc:meta])* $name:ident = $form:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {$(
        $(#[$doc])*
        #[cfg(not(target_arch = "wasm32"))]
        pub fn $name(&self, $($argument: $ty),*) -> Result<$result> {
            super::blocking::block_on(self.$form($($argument),*))
        }
    )*};
}

impl Engine {
    blocking! {
        /// [`Engine::texture_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        texture = texture_async(descriptor: &TextureDescriptor) -> Texture;
        /// [`Engine::texture_from_bytes_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        texture_from_bytes = texture_from_bytes_async(descriptor: &TextureDescriptor, bytes: &[u8]) -> Texture;
        /// [`Engine::texture_from_pixels_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        texture_from_pixels = texture_from_pixels_async(dtype: DType, shape: &[usize], bytes: &[u8], format: TextureFormat) -> Texture;
        /// [`Engine::texture_from_pixels_as_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        texture_from_pixels_as = texture_from_pixels_as_async(
            view: ViewDimension, dtype: DType, shape: &[usize], bytes: &[u8], format: TextureFormat
        ) -> Texture;
    }

    /// [`Engine::texture_from_array_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn texture_from_array<T: Element, S, D>(
        &self,
        array: &ndarray::ArrayBase<S, D>,
        format: TextureFormat,
    ) -> Result<Texture>
    where
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        super::blocking::block_on(self.texture_from_array_async(array, format))
    }
}

impl Texture {
    fn of(texels: Tensor, descriptor: TextureDescriptor) -> Self {
        let view = View { level: 0, levels: descriptor.levels, layer: 0, layers: descriptor.layers() };
        Self { texels, is_own: false, descriptor, view }
    }

    /// Returns the description of the whole texture.
    #[must_use]
    pub fn descriptor(&self) -> &TextureDescriptor {
        &self.descriptor
    }

    /// Returns the texels' format.
    #[must_use]
    pub fn format(&self) -> TextureFormat {
        self.descriptor.format
    }

    /// Returns the width, height, and depth or layers of the view's first level, in texels.
    #[must_use]
    pub fn size(&self) -> [u32; 3] {
        let [width, height, depth] = self.descriptor.level_size(self.view.level);
        let is_block = self.descriptor.dimension == TextureDimension::D3;
        [width, height, if is_block { depth } else { self.view.layers }]
    }

    /// Returns the engine it belongs to.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.texels.engine()
    }

    /// Returns the device it is on now.
    #[must_use]
    pub fn device(&self) -> DeviceInfo {
        self.texels.device()
    }

    /// Returns the texels as words on the device, regardless of the view. The texels of the app's wgpu texture can be neither read nor bound by this: take
    /// [`Texture::copied_texels_async`].
    #[must_use]
    pub fn texels(&self) -> &Tensor {
        &self.texels
    }

    /// Returns the texels of all levels and layers as words on the device: the memory of the texture, or a copy of an app's.
    ///
    /// # Errors
    /// For an app's own texture [`Error::InvalidInput`] if it lacks the usage `COPY_SRC` or has several samples; else as [`Engine::zeros_async`].
    pub fn copied_texels_async(&self) -> BoxFuture<'_, Result<Tensor>> {
        Box::pin(async move { if self.is_own { self.copied().await } else { Ok(self.texels.clone()) } })
    }

    /// Returns a view of one level of this view.
    ///
    /// # Errors
    /// [`Error::Index`] if there is no such level.
    pub fn level(&self, level: u32) -> Result<Self> {
        if level >= self.view.levels {
            return Err(Error::index(
                format!("level {level}"),
                format!("the texture has {} levels, from 0", self.view.levels),
            ));
        }
        let view = View { level: self.view.level + level, levels: 1, ..self.view };
        Ok(Self { view, ..self.clone() })
    }

    /// Returns a view of `count` layers from `first` on.
    ///
    /// # Errors
    /// [`Error::Index`] if there are no such layers.
    pub fn layers(&self, first: u32, count: u32) -> Result<Self> {
        let is_block = self.descriptor.dimension == TextureDimension::D3;
        let end = first.checked_add(count).filter(|&end| count > 0 && end <= self.view.layers && !is_block);
        if end.is_none() {
            return Err(Error::index(
                format!("{count} layers from {first}"),
                if is_block {
                    "a block of texels has no layers".to_owned()
                } else {
                    format!("the texture has {} layers, from 0", self.view.layers)
                },
            ));
        }
        let view = View { layer: self.view.layer + first, layers: count, ..self.view };
        Ok(Self { view, ..self.clone() })
    }

    /// The words of a level of the view, from its first layer on.
    fn level_words(&self, level: u32) -> (u64, u64) {
        let level = self.view.level + level;
        let layer = self.descriptor.layer_texels(level) * u64::from(self.descriptor.format.words());
        let start = self.descriptor.level_offset(level) + u64::from(self.view.layer) * layer;
        (start, layer * u64::from(self.view.layers))
    }

    /// Returns the texels of the view's first level: layer after layer, row after row, without padding.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub fn to_bytes_async(&self) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move {
            if self.is_own {
                // What was recorded may have lost it.
                self.texels.settled(&self.texels.inner.engine).await?;
            }
            let (start, count) = self.level_words(0);
            let size = |words: u64| usize::try_from(words).unwrap_or(usize::MAX);
            let mut words = vec![0_u32; size(count)];
            self.copied_texels_async().await?.read_at_async(size(start), &mut words).await?;
            Ok(self.descriptor.format.from_words(&words))
        })
    }

    /// Overwrites the view's first level, with bytes as [`Texture::to_bytes_async`] gives them. An app's own texture is copied and copied back: the app's
    /// `Queue::write_texture` costs less.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of bytes differs; else as [`Tensor::write_at_async`].
    pub fn write_async<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (start, count) = self.level_words(0);
            let format = self.descriptor.format;
            let expected = count / u64::from(format.words()) * u64::from(format.bytes());
            if bytes.len() as u64 != expected {
                return Err(wrong_length(expected, bytes.len()));
            }
            let texels = self.copied_texels_async().await?;
            texels.write_at_async(usize::try_from(start).unwrap_or(usize::MAX), &format.to_words(bytes)).await?;
            if self.is_own {
                self.overwrite(&texels).await?;
                self.engine().flush();
            }
            Ok(())
        })
    }

    /// Returns the texels of the view's first level as an array: height x width x channels, preceded by the layers (or slices) if there are several.
    ///
    /// # Errors
    /// [`Error::Dtype`] if the format's channels are not of that dtype; else as [`Texture::to_bytes_async`].
    pub async fn to_array_async<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let format = self.descriptor.format;
        if let Some(dtype) = format.channel_dtype().filter(|&dtype| dtype != T::DTYPE) {
            let what = format!("a texture of {format}");
            return Err(DtypeError::Mismatch { what, found: dtype.name(), wanted: T::DTYPE.name() }.into());
        }
        let (_, shape, bytes) = self.to_pixels_async().await?;
        let mut values = vec![T::zeroed(); bytes.len() / T::DTYPE.bytes()];
        T::decode(&mut values, &bytes);
        ndarray::ArrayD::from_shape_vec(shape, values).map_err(|error| Error::shape("a texture", error.to_string()))
    }

    /// Returns the dtype, the shape and the bytes of the array that [`Texture::to_array_async`] returns, red first;
    /// [`Engine::texture_from_pixels_async`] takes them.
    ///
    /// # Errors
    /// [`Error::Dtype`] if the channels share bytes; else as [`Texture::to_bytes_async`].
    pub fn to_pixels_async(&self) -> BoxFuture<'_, Result<Pixels>> {
        Box::pin(async move {
            let format = self.descriptor.format;
            let dtype = format.channel_dtype().ok_or_else(|| {
                Error::dtype(format!("a texture of {format}"), "its channels share bytes: take its bytes (to_bytes)")
            })?;
            let mut bytes = self.to_bytes_async().await?;
            format.swap_red(&mut bytes);
            let [width, height, depth] = self.size().map(|side| side as usize);
            let channels = format.channels() as usize;
            let samples = self.descriptor.samples as usize;
            let mut shape = vec![depth, height, width, samples, channels];
            if samples == 1 {
                shape.remove(3);
            }
            if depth == 1 {
                shape.remove(0);
            }
            Ok((dtype, shape, bytes))
        })
    }

    blocking! {
        /// [`Texture::to_pixels_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        to_pixels = to_pixels_async() -> (DType, Vec<usize>, Vec<u8>);
        /// [`Texture::to_bytes_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        to_bytes = to_bytes_async() -> Vec<u8>;
        /// [`Texture::write_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        write = write_async(bytes: &[u8]) -> ();
        /// [`Texture::copied_texels_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        copied_texels = copied_texels_async() -> Tensor;
        /// [`Texture::with_all_levels_async`], blocking.
        ///
        /// # Errors
        /// As the asynchronous form.
        with_all_levels = with_all_levels_async() -> Self;
    }

    /// [`Texture::to_array_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn to_array<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        super::blocking::block_on(self.to_array_async())
    }

    /// Returns the format in which an image of that many channels of a dtype is bound to a variable: the declared one of a storage texture; else by the
    /// dtype, where bytes are fractions of 255 if the kernel reads floats. `None` if the variable reads no such format.
    ///
    /// ```
    /// use cantus::{DType, Kernel, Texture, TextureFormat};
    /// let kernel = Kernel::from_wgsl("
    ///     @group(0) @binding(0) var image: texture_2d<f32>;
    ///     @compute @workgroup_size(1) fn main() { _ = textureLoad(image, vec2u(), 0); }
    /// ")?;
    /// let image = &kernel.reflection()?.textures[0];
    /// assert_eq!(Texture::format_for(image, DType::U8, 3), Some(TextureFormat::Rgba8Unorm));
    /// assert_eq!(Texture::format_for(image, DType::U32, 1), None);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn format_for(binding: &TextureBinding, dtype: DType, channels: usize) -> Option<TextureFormat> {
        let declared = binding.storage.map(|(format, _)| format);
        declared.or_else(|| TextureFormat::of_array(binding.sample_type, dtype, channels))
    }

    /// Returns the dtype of its channels; `None` if several share bytes (`rgb10a2unorm`).
    #[must_use]
    pub fn channels(&self) -> Option<DType> {
        self.descriptor.format.channel_dtype()
    }

    /// Returns the image, or each layer, with all levels. Each level has the means of two by two texels of the one before, which
    /// `textureSampleLevel` reads when an image is drawn small. Colours of sRGB are averaged as light.
    ///
    /// # Errors
    /// [`Error::Dtype`] for integers, depths and `rgb9e5ufloat`, and for textures without two dimensions and one sample; else as
    /// [`Engine::texture_async`] and [`DispatchBuilder::run_async`](super::DispatchBuilder::run_async).
    pub fn with_all_levels_async(&self) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move {
            let format = self.descriptor.format;
            let is_mean = matches!(format.sample_type(), SampleType::Float)
                && !format.is_depth()
                && format.packing() != Packing::Rgb9e5
                && self.descriptor.dimension == TextureDimension::D2
                && self.descriptor.samples == 1;
            if !is_mean {
                return Err(Error::dtype(
                    format!("the levels of a texture of {format}"),
                    "levels are means of texels, for images of floats or normalized integers",
                ));
            }
            let engine = self.engine();
            let [width, height, layers] = self.size();
            let descriptor = TextureDescriptor::new_2d(format, width, height).with_layers(layers).with_all_levels();
            let whole = engine.texture_async(&descriptor).await?;
            let stored = match format {
                TextureFormat::Rgba8UnormSrgb => TextureFormat::Rgba8Unorm,
                TextureFormat::Bgra8UnormSrgb => TextureFormat::Bgra8Unorm,
                other => other,
            };
            let kernel = Kernel::from_wgsl(&LEVELS_TEXT.replace("FORMAT", stored.name()))?
                .with_override("is_srgb", if format.is_srgb() { 1.0 } else { 0.0 })?;
            for layer in 0..layers {
                let mut fine = self.level(0)?.layers(layer, 1)?;
                for level in 0..descriptor.levels {
                    let coarse = whole.level(level)?.layers(layer, 1)?;
                    let mut target = coarse.clone();
                    target.descriptor.format = stored;
                    let kernel = kernel.with_override("factor", if level == 0 { 1.0 } else { 2.0 })?;
                    let [width, height, _] = coarse.size();
                    let dispatch = engine.dispatch(&kernel).bind("fine", &fine).bind("coarse", target);
                    dispatch.invocations((width, height)).run_async().await?;
                    fine = coarse;
                }
            }
            Ok(whole)
        })
    }

    /// Why it is not bound to a variable, if it isn't.
    fn misfit(&self, binding: &TextureBinding) -> Option<String> {
        let format = self.descriptor.format;
        let have = self.descriptor.dimension;
        let [width, height, _] = self.size();
        let layers = self.view.layers;
        let is_square = width == height && have == TextureDimension::D2;
        let plain = have == TextureDimension::D2;
        let dimension = match binding.dimension {
            ViewDimension::D1 if have != TextureDimension::D1 => Some("a texture of one dimension".to_owned()),
            ViewDimension::D3 if have != TextureDimension::D3 => Some("a texture of three dimensions".to_owned()),
            ViewDimension::D2Array if !plain => Some("a texture of two dimensions".to_owned()),
            ViewDimension::D2 if !plain || layers != 1 => Some(if plain {
                format!("one layer, and this has {layers} (give .layers(n, 1))")
            } else {
                "a texture of two dimensions".to_owned()
            }),
            ViewDimension::Cube if !is_square || layers != 6 => Some("six square layers".to_owned()),
            ViewDimension::CubeArray if !is_square || !layers.is_multiple_of(6) => {
                Some("six square layers for each cube".to_owned())
            }
            _ => None,
        };
        if let Some(wanted) = dimension {
            return Some(format!("{binding} takes {wanted}"));
        }
        match (&binding.storage, binding.sample_type) {
            (Some((declared, _)), _) if *declared != format => {
                return Some(format!("the shader declares {declared}, the texture's texels are {format}"));
            }
            (Some(_), _) if self.view.levels != 1 => {
                return Some(format!("{binding} takes one level, and this has {} (give .level(n))", self.view.levels));
            }
            (None, SampleType::Depth) if !format.is_depth() => {
                return Some(format!(
                    "{binding} takes depth16unorm or depth32float, the texture's texels are {format}"
                ));
            }
            (None, wanted) if wanted != SampleType::Depth && wanted != format.sample_type() => {
                return Some(format!(
                    "{binding} reads {wanted}, the texture's {format} holds {}",
                    format.sample_type()
                ));
            }
            _ => {}
        }
        if binding.multisampled != (self.descriptor.samples > 1) {
            let samples = self.descriptor.samples;
            return Some(format!("{binding}: the texture has {samples} samples per texel"));
        }
        None
    }

    /// Its part of the hidden uniform.
    fn describe(&self, words: &mut Vec<u32>) {
        words.extend(self.size());
        words.push(self.view.levels);
        let mut offsets = [0; LEVELS];
        for (offset, level) in offsets.iter_mut().zip(0..self.view.levels) {
            // Checked to be below 2^32 when the texture was made.
            *offset = u32::try_from(self.level_words(level).0).unwrap_or(u32::MAX);
        }
        words.extend(offsets);
    }
}
