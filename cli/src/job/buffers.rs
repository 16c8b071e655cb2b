//! The buffers and textures of a job: their first contents, and where each is at the moment.

use std::path::Path;

use cantus::backend::DeviceInfo;
use cantus::engine::Value;
use cantus::kernel::TextureBinding;
use cantus::tensor::npy::Array;
use cantus::{Engine, Error, Result, Tensor, Texture, TextureFormat};

use super::file::JobFile;
use super::{Action, What};
use crate::parse::{Elements, NamedTensor, Shape};
use crate::run::contents::{self, Input};
use crate::run::job::{Source, Step};
use crate::run::textures::Image;

/// The first contents of a buffer or a texture.
pub enum First {
    Buffer(Source),
    Texture(Image),
}

impl First {
    fn name(&self) -> &str {
        match self {
            Self::Buffer(source) => source.name(),
            Self::Texture(image) => &image.name,
        }
    }

    /// The shape; of a texture its height and width.
    fn shape(&self) -> &[usize] {
        match self {
            Self::Buffer(source) => source.shape(),
            Self::Texture(image) => &image.sides,
        }
    }
}

/// A buffer of the file as it is written there.
struct Given<'a> {
    name: &'a str,
    written: Written,
    step: &'a Step,
    binding: &'a str,
}

/// A buffer's text in the file: what `--in` takes, or a texture's format.
enum Written {
    Input(Input),
    Texels(TextureFormat, Shape),
}

impl Given<'_> {
    fn shape(&self) -> Option<&Shape> {
        match &self.written {
            Written::Input(Input { source: contents::Source::Made(_, shape), .. }) => shape.as_ref(),
            Written::Input(_) => None,
            Written::Texels(_, shape) => Some(shape),
        }
    }

    /// Reads or makes the contents. `earlier` are those whose shapes it may take.
    fn read(mut self, earlier: &[First], mips: bool) -> Result<First> {
        let (step, name) = (self.step, self.name);
        let sides = match self.shape() {
            Some(Shape::Like(other)) => Some(earlier.iter().find(|first| first.name() == other).ok_or_else(|| {
                step.fault(
                    name,
                    format!("[@{other}] takes the shape of a buffer that is read from a file or has sides"),
                )
            })?),
            _ => None,
        };
        let sides = sides.map(|first| Shape::Sides(first.shape().to_vec()));
        match &mut self.written {
            Written::Input(Input { source: contents::Source::Made(_, shape), .. }) => *shape = sides.or(shape.take()),
            Written::Input(_) => {}
            Written::Texels(_, shape) => *shape = sides.unwrap_or_else(|| shape.clone()),
        }
        match (self.written, texture(step, self.binding)) {
            (Written::Input(input), Some(binding)) => Ok(First::Texture(Image::read(step, binding, &input, mips)?)),
            (Written::Input(input), None) => {
                Ok(First::Buffer(Source::read(step, &[], name, self.binding, &input.source)?))
            }
            (Written::Texels(format, Shape::Sides(sides)), Some(binding)) => {
                Ok(First::Texture(Image::zeros(step, name, binding, format, &sides)?))
            }
            (Written::Texels(format, _), _) => {
                Err(step.fault(name, format!("{format} is the format of a texture, and the kernel has a buffer there")))
            }
        }
    }
}

/// The texture of that name of a kernel.
fn texture<'a>(step: &'a Step, name: &str) -> Option<&'a TextureBinding> {
    step.reflection().textures.iter().find(|texture| texture.name == name)
}

/// Reads the first contents of each buffer, as the binding that uses it first has it, and sets the amounts that follow from their shapes.
///
/// # Errors
/// [`Error::InvalidInput`] and [`Error::Binding`] for a buffer that no step uses or whose contents don't fit; as [`Source::read`].
pub fn contents_of(file: &JobFile, folder: &Path, names: &[&str], actions: &mut [Action]) -> Result<Vec<First>> {
    let mut given = Vec::new();
    for (buffer, (name, value)) in file.buffers.iter().enumerate() {
        let fault = |reason: String| Error::invalid(format!("the buffer {name}"), reason);
        let text = value.as_str().ok_or_else(|| fault("it takes a string, as in \"zeros[256,256]\"".to_owned()))?;
        let use_of = first_use(actions, buffer).ok_or_else(|| fault("no step uses it".to_owned()))?;
        let (step, binding, has_amount) = use_of;
        let written = parsed(name, text, folder).map_err(fault)?;
        if !has_amount && matches!(&written, Written::Input(Input { source: contents::Source::Made(_, None), .. })) {
            return Err(fault(
                "it needs a shape, as in \"zeros[480,640]\", because its step runs for each element of another"
                    .to_owned(),
            ));
        }
        given.push(Given { name, written, step, binding });
    }
    // Those whose shapes are known first: others may take theirs. Where none is left that is known, the first one says so.
    let mut read: Vec<First> = Vec::new();
    while !given.is_empty() {
        let is_known = |given: &Given<'_>| match given.shape() {
            Some(Shape::Like(other)) => read.iter().any(|first| first.name() == other),
            _ => true,
        };
        let is_lost =
            |given: &Given<'_>| matches!(given.shape(), Some(Shape::Like(other)) if !names.contains(&other.as_str()));
        let next = given.iter().position(is_known).or_else(|| given.iter().position(is_lost)).unwrap_or(0);
        let first = given.remove(next).read(&read, file.mips)?;
        read.push(first);
    }
    read.sort_by_key(|first| names.iter().position(|name| *name == first.name()));
    for action in actions {
        let What::Kernel { step, bound, like: Some(like), .. } = &mut action.what else { continue };
        let Some(first) = read.get(*like) else { continue };
        let binding = bound.iter().find(|(_, place)| place == like).map_or("", |(binding, _)| binding.as_str());
        step.run_for_each(binding, first.shape().to_vec(), &format!("invocations = \"@{}\"", first.name()))?;
    }
    Ok(read)
}

/// Parses what the file says of a buffer.
fn parsed(name: &str, text: &str, folder: &Path) -> std::result::Result<Written, String> {
    let named = format!("{name}={text}");
    if text.split_once('[').is_some_and(|(word, _)| TextureFormat::from_name(word.trim()).is_some()) {
        let NamedTensor { elements, shape, .. } = named.parse()?;
        if let Elements::Texels(format) = elements {
            return Ok(Written::Texels(format, shape));
        }
    }
    let mut input: Input = named.parse()?;
    if let contents::Source::File(path, _) = &mut input.source {
        *path = folder.join(&*path);
    }
    Ok(Written::Input(input))
}

/// The step and the binding that decide what a buffer holds: the first that stores to it as a texture of a format, else the first that uses it. One
/// that is only swapped in is what its partner is. And whether the step's amount is known before the buffers are read.
fn first_use(actions: &[Action], buffer: usize) -> Option<(&Step, &str, bool)> {
    let partners = actions.iter().filter_map(|action| match action.what {
        What::Swap(a, b) if a == buffer => Some(b),
        What::Swap(a, b) if b == buffer => Some(a),
        _ => None,
    });
    let places: Vec<usize> = std::iter::once(buffer).chain(partners).collect();
    let uses = places.iter().flat_map(|wanted| {
        actions.iter().filter_map(move |action| match &action.what {
            What::Kernel { step, bound, like, .. } => {
                let (binding, _) = bound.iter().find(|(_, place)| place == wanted)?;
                Some((&**step, binding.as_str(), like.is_none()))
            }
            What::Swap(..) => None,
        })
    });
    let uses: Vec<(&Step, &str, bool)> = uses.collect();
    let declared = uses.iter().find(|(step, name, _)| texture(step, name).is_some_and(|known| known.storage.is_some()));
    declared.or_else(|| uses.first()).copied()
}

/// A buffer or a texture on a device.
enum Held {
    /// With whether its bytes are in WGSL's layout.
    Buffer(Tensor, bool),
    Texture(Texture),
}

/// The tensor or texture of each buffer at the moment: buffers are swapped without a copy.
pub struct Buffers {
    held: Vec<Held>,
    at: Vec<usize>,
}

impl Buffers {
    /// Moves the contents to an engine.
    ///
    /// # Errors
    /// As the library's transfers.
    pub fn new(engine: &Engine, first: Vec<First>) -> Result<Self> {
        let on = |first: First| match first {
            First::Buffer(source) => Ok(Held::Buffer(source.on(engine)?, source.is_raw())),
            First::Texture(image) => image.on(engine).map(Held::Texture),
        };
        let held = first.into_iter().map(on).collect::<Result<Vec<_>>>()?;
        let at = (0..held.len()).collect();
        Ok(Self { held, at })
    }

    fn held(&self, buffer: usize) -> Result<&Held> {
        let place = self.at.get(buffer).copied().unwrap_or(buffer);
        self.held.get(place).ok_or_else(|| Error::invalid(format!("buffer {buffer}"), "it is not there"))
    }

    /// Runs a step of a round.
    ///
    /// # Errors
    /// As the library's dispatches.
    pub fn act(&mut self, engine: &Engine, what: &What, round: u32) -> Result<()> {
        match what {
            What::Swap(a, b) => self.at.swap(*a, *b),
            What::Kernel { step, bound, samplers, advance, repeat, .. } => {
                let (mut tensors, mut textures) = (Vec::new(), Vec::new());
                for (name, buffer) in bound {
                    match self.held(*buffer)? {
                        Held::Buffer(tensor, raw) => tensors.push((name.as_str(), tensor, *raw)),
                        Held::Texture(texture) => textures.push((name.as_str(), texture)),
                    }
                }
                let more: Vec<(String, Value)> = advance
                    .iter()
                    .map(|(name, [first, by])| (name.clone(), Value::from(first + f64::from(round) * by)))
                    .collect();
                for _ in 0..*repeat {
                    let mut dispatch = step.dispatch(engine, tensors.iter().copied(), &more);
                    for (name, texture) in &textures {
                        dispatch = dispatch.bind(name, *texture);
                    }
                    for (name, sampler) in samplers {
                        dispatch = dispatch.bind(name, sampler);
                    }
                    dispatch.run()?;
                }
            }
        }
        Ok(())
    }

    /// Reads a buffer back; a texture as height x width x channels.
    ///
    /// # Errors
    /// As the library's transfers, and as [`Image::array`].
    pub fn array(&self, buffer: usize) -> Result<Array> {
        match self.held(buffer)? {
            Held::Buffer(tensor, _) => Array::new(tensor.dtype(), tensor.shape(), tensor.to_bytes()?),
            Held::Texture(texture) => Image::array(texture),
        }
    }

    /// Returns the device that the last one is on.
    pub fn device(&self) -> Option<DeviceInfo> {
        self.held.last().map(|held| match held {
            Held::Buffer(tensor, _) => tensor.device(),
            Held::Texture(texture) => texture.texels().device(),
        })
    }
}
