//! Textures and samplers of a kernel: pictures and arrays in, pictures and arrays out.

use cantus::kernel::{Reflection, TextureBinding};
use cantus::tensor::npy::Array;
use cantus::{DType, Engine, Error, Result, Sampler, Texture, TextureDescriptor, TextureFormat};

use super::contents::{self, Input};
use super::job::Step;
use super::pixels::Pixels;
use super::shown;
use crate::output;

/// A texture before it is on a device.
pub struct Image {
    pub name: String,
    /// Height and width.
    pub sides: [usize; 2],
    format: TextureFormat,
    /// Elements of height x width x channels; zeros without.
    pixels: Option<Array>,
    has_levels: bool,
}

impl Image {
    /// A picture or an array for a texture of a kernel, with all levels where `mips` says so.
    ///
    /// # Errors
    /// [`Error::Binding`] when it doesn't fit the texture, [`Error::Unreadable`] and [`Error::InvalidInput`] naming the file.
    pub fn read(step: &Step, binding: &TextureBinding, input: &Input, mips: bool) -> Result<Self> {
        let fault = |reason: String| step.fault(&input.name, reason);
        let pixels = match &input.source {
            contents::Source::File(path, tensor) => match output::extension(path).as_str() {
                "png" | "jpg" | "jpeg" => {
                    let Pixels { rgba, width, height } = Pixels::read(path, 4)?;
                    Array::new(DType::U8, &[height, width, 4], rgba)?
                }
                "npy" | "safetensors" => contents::read_numbers(path, tensor.as_deref(), &input.name)?,
                _ => return Err(fault(format!("{} is not a .png, .jpg or .npy", shown(path)))),
            },
            contents::Source::Stdin => contents::read_stdin()?,
            contents::Source::Made(..) => {
                return Err(fault(format!("it is a {binding}: give a picture or a .npy, or create it by its format")));
            }
        };
        let (height, width, channels) = match *pixels.shape.as_slice() {
            [height, width] => (height, width, 1),
            [height, width, channels] => (height, width, channels),
            _ => return Err(fault(format!("its shape is {:?}: an image is height x width x channels", pixels.shape))),
        };
        let format = Texture::format_for(binding, pixels.dtype, channels).ok_or_else(|| {
            fault(format!("it is a {binding}, which has no format of {channels} channels of {}", pixels.dtype))
        })?;
        let has_levels = mips && binding.storage.is_none();
        let name = input.name.clone();
        Ok(Self { name, sides: [height, width], format, pixels: Some(pixels), has_levels })
    }

    /// An empty texture, of height and width, under a name of its own.
    ///
    /// # Errors
    /// [`Error::Binding`] when the format or the shape is none of the texture's.
    pub fn zeros(
        step: &Step,
        name: &str,
        binding: &TextureBinding,
        format: TextureFormat,
        shape: &[usize],
    ) -> Result<Self> {
        let [height, width] = *shape else {
            return Err(
                step.fault(name, format!("{format}{shape:?} is not an image: give rows and columns, as in [480,640]"))
            );
        };
        if let Some((declared, _)) = binding.storage
            && declared != format
        {
            return Err(step.fault(name, format!("it is made of {format}, the shader declares {declared}")));
        }
        Ok(Self { name: name.to_owned(), sides: [height, width], format, pixels: None, has_levels: false })
    }

    /// Its bytes on a device.
    pub fn bytes(&self) -> u64 {
        self.sides.iter().fold(u64::from(self.format.bytes()), |bytes, &side| bytes.saturating_mul(side as u64))
    }

    /// The texture on an engine.
    ///
    /// # Errors
    /// As the library's.
    pub fn on(&self, engine: &Engine) -> Result<Texture> {
        let [height, width] = self.sides.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        let descriptor = TextureDescriptor::new_2d(self.format, width, height);
        let Some(array) = &self.pixels else { return engine.texture(&descriptor) };
        let image = engine.texture_from_pixels(array.dtype, &array.shape, &array.bytes, self.format)?;
        if self.has_levels { image.with_all_levels() } else { Ok(image) }
    }

    /// Returns the texels of a texture, as an array of height x width x channels.
    ///
    /// # Errors
    /// As the library's, and [`Error::InvalidInput`] for texels whose channels share bytes.
    pub fn array(texture: &Texture) -> Result<Array> {
        let (dtype, mut shape, bytes) = texture.to_pixels().map_err(|error| match error {
            // The channels share bytes.
            Error::InvalidInput { what, .. } => Error::InvalidInput {
                what,
                reason: "its channels share bytes, which no supported file format holds: store rgba16float".to_owned(),
            },
            other => other,
        })?;
        if shape.last() == Some(&1) {
            shape.pop();
        }
        Array::new(dtype, &shape, bytes)
    }
}

/// The samplers of a kernel: the usual ones.
pub fn samplers(reflection: &Reflection) -> Vec<(String, Sampler)> {
    reflection.samplers.iter().map(|binding| (binding.name.clone(), binding.usual())).collect()
}
