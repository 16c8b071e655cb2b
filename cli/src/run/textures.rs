//! Textures and samplers of a kernel: pictures and arrays in, pictures and arrays out.

use cantus::error::DtypeError;
use cantus::kernel::{Reflection, TextureBinding, ViewDimension};
use cantus::tensor::npy::Array;
use cantus::{DType, Engine, Error, Result, Sampler, Texture, TextureDescriptor, TextureFormat};

use super::contents::{self, Input};
use super::job::Step;
use super::pixels::Pixels;
use super::shown;
use crate::parse::Assignment;
use crate::{job, output};

/// A texture before it is on a device.
pub struct Image {
    pub name: String,
    /// Height and width; before them depth or layers, of a row its width alone.
    pub sides: Vec<usize>,
    view: ViewDimension,
    format: TextureFormat,
    /// Elements of height x width x channels; zeros without.
    pixels: Option<Array>,
    has_levels: bool,
}

impl Image {
    /// A picture or an array for a texture of a kernel, with all levels where `mips` says so.
    ///
    /// # Errors
    /// [`Error::Binding`] when it doesn't fit the texture, [`Error::Unreadable`] and [`Error::InvalidFile`] naming the file.
    pub fn read(step: &Step, binding: &TextureBinding, input: &Input, mips: bool) -> Result<Self> {
        let fault = |reason: String| step.fault(&input.name, reason);
        let pixels = match &input.source {
            contents::Source::File(path, tensor) => match output::extension(path).as_str() {
                "png" | "jpg" | "jpeg" => {
                    let Pixels { rgba, width, height } = Pixels::read(path, 4)?;
                    let shape: &[usize] = match binding.dimension {
                        ViewDimension::D2 => &[height, width, 4],
                        ViewDimension::D2Array => &[1, height, width, 4],
                        _ => return Err(fault(format!("it is a {binding}: give a .npy, not a picture"))),
                    };
                    Array::new(DType::U8, shape, rgba)?
                }
                "npy" | "safetensors" => contents::read_numbers(path, tensor.as_deref(), &input.name)?,
                _ => return Err(fault(format!("{} is not a .png, .jpg or .npy", shown(path)))),
            },
            contents::Source::Stdin => contents::read_stdin()?,
            contents::Source::Made(..) => {
                return Err(fault(format!("it is a {binding}: give a picture or a .npy, or create it by its format")));
            }
        };
        let view = binding.dimension;
        let (sides, channels) = view
            .sides_and_channels(&pixels.shape)
            .ok_or_else(|| fault(format!("its shape is {:?}: a texture_{view} is {}", pixels.shape, view.axes())))?;
        let sides = sides.to_vec();
        let format = Texture::format_for(binding, pixels.dtype, channels).ok_or_else(|| {
            fault(format!("it is a {binding}, which has no format of {channels} channels of {}", pixels.dtype))
        })?;
        let has_levels = mips && binding.storage.is_none();
        let name = input.name.clone();
        Ok(Self { name, sides, view, format, pixels: Some(pixels), has_levels })
    }

    /// An empty texture of those sides, under a name of its own.
    ///
    /// # Errors
    /// [`Error::Binding`] when the format or the shape is not one of the texture's.
    pub fn zeros(
        step: &Step,
        name: &str,
        binding: &TextureBinding,
        format: TextureFormat,
        shape: &[usize],
    ) -> Result<Self> {
        let view = binding.dimension;
        if TextureDescriptor::for_view(view, format, shape).is_none() {
            let axes = view.axes().trim_end_matches(" x channels");
            return Err(
                step.fault(name, format!("{format}{shape:?} is no texture_{view}: give {axes}, as in {format}[…]"))
            );
        }
        if let Some((declared, _)) = binding.storage
            && declared != format
        {
            return Err(step.fault(name, format!("it is made of {format}, the shader declares {declared}")));
        }
        Ok(Self { name: name.to_owned(), sides: shape.to_vec(), view, format, pixels: None, has_levels: false })
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
        let Some(array) = &self.pixels else {
            let descriptor = TextureDescriptor::for_view(self.view, self.format, &self.sides);
            let descriptor = descriptor.ok_or_else(|| {
                Error::invalid(self.name.clone(), format!("its sides {:?} are not {}", self.sides, self.view.axes()))
            })?;
            return engine.texture(&descriptor);
        };
        let image = engine.texture_from_pixels_as(self.view, array.dtype, &array.shape, &array.bytes, self.format)?;
        if self.has_levels { image.with_all_levels() } else { Ok(image) }
    }

    /// Returns the texels of a texture, as an array of height x width x channels.
    ///
    /// # Errors
    /// As the library's, and [`Error::Dtype`] for texels whose channels share bytes.
    pub fn array(texture: &Texture) -> Result<Array> {
        let (dtype, mut shape, bytes) = texture.to_pixels().map_err(|error| match error {
            // The channels share bytes.
            Error::Dtype(DtypeError::Refused { what, .. }) => {
                Error::dtype(what, "its channels share bytes, which no supported file format holds: store rgba16float")
            }
            other => other,
        })?;
        if shape.last() == Some(&1) {
            shape.pop();
        }
        Array::new(dtype, &shape, bytes)
    }
}

/// The samplers of a kernel as `--sampler` sets them, and the usual ones for the others: `smp=nearest`, `smp.address=repeat`, `smp.lod=0,4`.
///
/// # Errors
/// [`Error::InvalidInput`] naming the sampler, the setting, and what there is instead.
pub fn samplers(reflection: &Reflection, settings: &[Assignment]) -> Result<Vec<(String, Sampler)>> {
    let mut all = toml::Table::new();
    for Assignment { name, value } in settings {
        let (sampler, setting) = name.split_once('.').unwrap_or((name, "filter"));
        let word = |word: &str| match word.parse::<f64>() {
            Ok(number) => toml::Value::Float(number),
            Err(_) => toml::Value::String(word.to_owned()),
        };
        let value = if value.contains(',') {
            toml::Value::Array(value.split(',').map(|part| word(part.trim())).collect())
        } else {
            word(value)
        };
        let fields = all.entry(sampler).or_insert_with(|| toml::Table::new().into());
        if let Some(fields) = fields.as_table_mut() {
            fields.insert(setting.to_owned(), value);
        }
    }
    job::samplers::all(reflection, &all)
}
