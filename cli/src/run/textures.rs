//! Textures and samplers of a kernel: pictures and arrays in, pictures and arrays out.

use cantus::kernel::{Reflection, SampleType, TextureBinding};
use cantus::tensor::npy::Array;
use cantus::{CompareFunction, DType, Engine, Error, Result, Sampler, Texture, TextureDescriptor, TextureFormat};

use super::contents::{self, Input};
use super::job::Step;
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
                    let (pixels, width, height) = contents::pixels(path)?;
                    Array::new(DType::U8, &[height, width, 4], pixels.concat())?
                }
                "npy" | "safetensors" => contents::read_numbers(path, tensor.as_deref(), &input.name)?,
                _ => return Err(fault(format!("{} is not a .png, .jpg or .npy", shown(path)))),
            },
            contents::Source::Stdin => contents::read_stdin()?,
            contents::Source::Made(..) => {
                return Err(fault(format!("it is a {binding}: give a picture or a .npy, or create it with --out")));
            }
        };
        let (height, width, channels) = match *pixels.shape.as_slice() {
            [height, width] => (height, width, 1),
            [height, width, channels] => (height, width, channels),
            _ => return Err(fault(format!("its shape is {:?}: an image is height x width x channels", pixels.shape))),
        };
        let format = match binding.storage {
            Some((format, _)) => format,
            None => format_of(binding.sample_type, pixels.dtype, channels).ok_or_else(|| {
                fault(format!("it is a {binding}, which has no format of {channels} channels of {}", pixels.dtype))
            })?,
        };
        let has_levels = mips && binding.storage.is_none();
        let name = input.name.clone();
        Ok(Self { name, sides: [height, width], format, pixels: Some(pixels), has_levels })
    }

    /// An empty texture, of height and width.
    ///
    /// # Errors
    /// [`Error::Binding`] when the format or the shape is none of the texture's.
    pub fn zeros(step: &Step, binding: &TextureBinding, format: TextureFormat, shape: &[usize]) -> Result<Self> {
        let [height, width] = *shape else {
            return Err(step.fault(
                &binding.name,
                format!("{format}{shape:?} is not an image: give rows and columns, as in [480,640]"),
            ));
        };
        if let Some((declared, _)) = binding.storage
            && declared != format
        {
            return Err(step.fault(&binding.name, format!("--out makes {format}, the shader declares {declared}")));
        }
        Ok(Self { name: binding.name.clone(), sides: [height, width], format, pixels: None, has_levels: false })
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
        let [width, height, _] = texture.size().map(|side| side as usize);
        let format = texture.format();
        let (dtype, mut bytes) = match texture.channels() {
            Some(dtype) => (dtype, texture.to_bytes()?),
            None => {
                return Err(Error::InvalidInput {
                    what: format!("a texture of {format}"),
                    reason: "its channels share bytes, which no supported file format holds: store rgba16float"
                        .to_owned(),
                });
            }
        };
        if format.is_bgra() {
            bytes.chunks_exact_mut(4).for_each(|pixel| pixel.swap(0, 2));
        }
        let shape = match format.channels() as usize {
            1 => vec![height, width],
            channels => vec![height, width, channels],
        };
        Array::new(dtype, &shape, bytes)
    }
}

/// The format for what a kernel reads from elements of a dtype: bytes are fractions where it reads floats.
fn format_of(sample_type: SampleType, dtype: DType, channels: usize) -> Option<TextureFormat> {
    let channels = match channels {
        1 => "r",
        2 => "rg",
        3 | 4 => "rgba",
        _ => return None,
    };
    let kind = match (sample_type, dtype) {
        (SampleType::Depth, DType::F32) if channels == "r" => return Some(TextureFormat::Depth32Float),
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
    TextureFormat::from_name(&format!("{channels}{kind}"))
}

/// The samplers of a kernel: linear, clamped to the edge; those that compare say where the reference is not greater.
pub fn samplers(reflection: &Reflection) -> Vec<(String, Sampler)> {
    let sampler = |comparison: bool| match comparison {
        true => Sampler::linear().compare(CompareFunction::LessEqual),
        false => Sampler::linear(),
    };
    reflection.samplers.iter().map(|binding| (binding.name.clone(), sampler(binding.comparison))).collect()
}
