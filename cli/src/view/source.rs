//! The source of the picture: the field, or what a kernel file writes. Makes tensors of `[height, width]` numbers or colours; knows nothing
//! of windows.

use std::path::PathBuf;
use std::sync::Arc;

use cantus::backend::CancelFlag;
use cantus::engine::Value;
use cantus::kernel::{
    Access, AddressSpace, Binding, Layout, Reflection, Scalar, StorageTextureAccess, TextureBinding, ViewDimension,
};
use cantus::ops::{
    self,
    field::{FieldParams, Frequency},
};
use cantus::tensor::npy::Array;
use cantus::{DType, Engine, Error, Result, Tensor, TextureFormat};

use crate::parse::{Elements, Invocations, NamedTensor, Shape, Size};
use crate::run::job::{Bound, OnDevice};
use crate::run::{Given, Job, read_kernel};

/// Something that makes a picture for a moment.
#[derive(Clone)]
pub enum Source {
    /// The field.
    Field,
    /// A kernel of the user's.
    Kernel(Arc<KernelSource>),
}

/// The time, and the other inputs of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Columns and rows.
    pub size: Size,
    /// In Hz.
    pub frequency: f64,
    /// In seconds.
    pub time: f64,
    pub mouse: Mouse,
}

/// The mouse's place on the picture, in its columns and rows, and whether a button is down there.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mouse {
    pub at: [f32; 2],
    pub pressed: bool,
}

/// The kind of the picture's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pixels {
    /// Numbers of 32 bits, which a colour map shows.
    F32,
    U32,
    I32,
    /// Red, green, blue and opacity from 0 to 1.
    Rgba,
    /// Red, green, blue and opacity as 16-bit floats, in a texture.
    Halves,
    /// Red, green, blue and opacity as the bytes of a word, in a texture.
    Bytes,
    /// The same, blue first.
    Bgra,
}

impl Pixels {
    /// Returns the kind of picture in an array of that layout.
    fn of(layout: &Layout) -> Option<Self> {
        match layout {
            Layout::Array { element, .. } => Self::of(element),
            Layout::Scalar(Scalar::F32) => Some(Self::F32),
            Layout::Scalar(Scalar::U32) => Some(Self::U32),
            Layout::Scalar(Scalar::I32) => Some(Self::I32),
            Layout::Vector(size, Scalar::F32) if *size == 4 => Some(Self::Rgba),
            _ => None,
        }
    }

    /// Returns the kind of picture in a texture of that format.
    fn of_texels(format: TextureFormat) -> Option<Self> {
        Some(match format {
            TextureFormat::R32Float => Self::F32,
            TextureFormat::R32Uint => Self::U32,
            TextureFormat::R32Sint => Self::I32,
            TextureFormat::Rgba32Float => Self::Rgba,
            TextureFormat::Rgba16Float => Self::Halves,
            TextureFormat::Rgba8Unorm | TextureFormat::Rgba8Uint => Self::Bytes,
            TextureFormat::Bgra8Unorm => Self::Bgra,
            _ => return None,
        })
    }

    /// Returns the dtype of the values.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 | Self::Rgba => DType::F32,
            Self::U32 => DType::U32,
            Self::I32 => DType::I32,
            Self::Halves => DType::F16,
            Self::Bytes | Self::Bgra => DType::U8,
        }
    }

    /// Returns whether a pixel is a colour.
    pub fn is_colour(self) -> bool {
        !matches!(self, Self::F32 | Self::U32 | Self::I32)
    }

    /// Values of each pixel.
    fn parts(self) -> usize {
        if self.is_colour() { 4 } else { 1 }
    }

    /// Bytes of each pixel.
    pub fn bytes(self) -> usize {
        self.parts() * self.dtype().bytes()
    }

    /// The shape of a picture's values.
    fn shape(self, size: Size) -> Vec<usize> {
        let mut shape = vec![size.height, size.width];
        if self.is_colour() {
            shape.push(4);
        }
        shape
    }

    /// A picture's values by rows and columns, whatever axes its tensor has; red first.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are more or fewer bytes.
    pub fn array(self, mut bytes: Vec<u8>, size: Size) -> Result<Array> {
        if self == Self::Bgra {
            bytes.chunks_exact_mut(4).for_each(|pixel| pixel.swap(0, 2));
        }
        Array::new(self.dtype(), &self.shape(size), bytes)
    }
}

impl Source {
    /// Returns whether time changes the picture.
    pub fn moves(&self) -> bool {
        match self {
            Self::Field => true,
            Self::Kernel(kernel) => kernel.keep || kernel.is_wired(Wire::Time),
        }
    }

    /// Returns whether the frequency changes the picture.
    pub fn is_tuned(&self) -> bool {
        match self {
            Self::Field => true,
            Self::Kernel(kernel) => kernel.is_wired(Wire::Frequency),
        }
    }

    /// Returns whether the mouse changes the picture.
    pub fn follows_mouse(&self) -> bool {
        match self {
            Self::Field => false,
            Self::Kernel(kernel) => kernel.is_wired(Wire::Mouse) || kernel.is_wired(Wire::Pressed),
        }
    }

    /// Returns whether a frame begins with what the one before left.
    pub fn keeps(&self) -> bool {
        matches!(self, Self::Kernel(kernel) if kernel.keep)
    }
}

/// A kernel with what it is given, ready to run.
pub struct KernelSource {
    job: Job,
    /// The place of the shown binding among the job's tensors and textures.
    shown: usize,
    pixels: Pixels,
    /// True if written values stay for the next frame.
    keep: bool,
    /// Places of tensors or textures that change places after each frame.
    swap: Option<(usize, usize)>,
    wired: Vec<(String, Wire)>,
    size: Size,
}

impl KernelSource {
    fn is_wired(&self, wire: Wire) -> bool {
        self.wired.iter().any(|(_, known)| *known == wire)
    }
}

/// A uniform that the viewer sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Time,
    Frequency,
    Width,
    Height,
    Mouse,
    Pressed,
}

/// The kernel on the command line.
#[derive(Debug, Clone)]
pub struct KernelFile {
    /// The file.
    pub path: PathBuf,
    /// The arguments that `cantus run` takes too.
    pub given: Given,
    /// The binding to show, if one is named.
    pub show: Option<String>,
    /// Each frame begins with what the one before left.
    pub keep: bool,
    /// Two bindings that change places after each frame.
    pub swap: Option<[String; 2]>,
}

impl KernelFile {
    /// Reads the file and checks it against what it is given, for pictures of `size`.
    ///
    /// The shown binding is the one that is named, or the first texture that the kernel stores to, or the first buffer that it writes and that is made of
    /// numbers of 32 bits or of colours (`vec4f`). Unless `--in` or `--out` gave it a tensor or texture, it gets zeros of `[height, width]`. Where no
    /// amount is given, one invocation runs for each value: in two dimensions if the workgroup has two, else in one.
    ///
    /// # Errors
    /// As `cantus run`; [`Error::InvalidInput`] when there is nothing to show.
    pub fn load(&self, size: Size) -> Result<KernelSource> {
        let kernel = read_kernel(&self.path, self.given.entry.as_deref(), &self.given.features)?;
        let mut given = self.given.clone();
        let reflection = kernel.reflection()?;
        let Candidate { name: shown, pixels, elements } = self.shown(reflection)?;
        let is_texture = matches!(elements, Elements::Texels(_));
        let has =
            given.inputs.iter().any(|input| input.name == shown) || given.zeros.iter().any(|zeros| zeros.name == shown);
        if !has {
            let shape = Shape::Sides(if is_texture { vec![size.height, size.width] } else { pixels.shape(size) });
            given.zeros.push(NamedTensor { name: shown.clone(), elements, shape });
        }
        if given.workgroups.is_none() && given.invocations.is_none() {
            let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
            let like = given.zeros.iter().find_map(|zeros| match &zeros.shape {
                Shape::Like(other) if zeros.name == shown => Some(other.clone()),
                _ => None,
            });
            given.invocations = Some(match reflection.workgroup_size {
                _ if is_texture => Invocations::Like(like.unwrap_or_else(|| shown.clone())),
                [_, 1, 1] => Invocations::Counts([side(size.width.saturating_mul(size.height)), 1, 1]),
                _ => Invocations::Counts([side(size.width), side(size.height), 1]),
            });
        }
        let job = Job::new(kernel, &given)?;
        let place = |name: &str| {
            let place = job.bound().position(|(known, _)| known == name);
            place.ok_or_else(|| job.fault(name, "nothing is bound to it: give it values with --in or --out"))
        };
        let shown = place(&shown)?;
        let swap = match &self.swap {
            Some([a, b]) => Some((place(a)?, place(b)?)),
            None => None,
        };
        let wired = wired(job.reflection()).into_iter().filter(|(path, _)| !job.is_set(path)).collect();
        Ok(KernelSource { job, shown, pixels, keep: self.keep || swap.is_some(), swap, wired, size })
    }

    fn shown(&self, reflection: &Reflection) -> Result<Candidate> {
        let textures = reflection.textures.iter().filter_map(Candidate::texture);
        let mut candidates: Vec<Candidate> =
            textures.chain(reflection.bindings.iter().filter_map(Candidate::buffer)).collect();
        let place = match &self.show {
            Some(name) => candidates.iter().position(|candidate| candidate.name == *name).ok_or_else(|| {
                let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
                self.nothing(format!("--show {name}: the bindings that can be shown are: {}", names.join(", ")))
            })?,
            None => 0,
        };
        if place >= candidates.len() {
            return Err(self.nothing(
                "it needs a var<storage, read_write> of f32, u32, i32 or vec4f for the values of the picture, or a texture_storage_2d of \
                 rgba8unorm, rgba16float, rgba32float, r32float, r32uint or r32sint that it writes"
                    .to_owned(),
            ));
        }
        Ok(candidates.swap_remove(place))
    }

    fn nothing(&self, reason: String) -> Error {
        Error::file(format!("nothing of {} can be shown", self.path.display()), reason)
    }
}

/// A binding that can be shown.
struct Candidate {
    name: String,
    pixels: Pixels,
    /// The elements that it is made of when nothing is given.
    elements: Elements,
}

impl Candidate {
    fn buffer(binding: &Binding) -> Option<Self> {
        let written = binding.space == AddressSpace::Storage && binding.access == Access::ReadWrite;
        let pixels = Pixels::of(&binding.layout).filter(|_| written)?;
        Some(Self { name: binding.name.clone(), pixels, elements: Elements::Numbers(pixels.dtype()) })
    }

    fn texture(binding: &TextureBinding) -> Option<Self> {
        let (format, access) = binding.storage?;
        let is_shown = access != StorageTextureAccess::Read && binding.dimension == ViewDimension::D2;
        let pixels = Pixels::of_texels(format).filter(|_| is_shown)?;
        Some(Self { name: binding.name.clone(), pixels, elements: Elements::Texels(format) })
    }
}

/// The uniforms that have one of the names that the viewer knows, with its type.
fn wired(reflection: &Reflection) -> Vec<(String, Wire)> {
    let known = |name: &str, layout: &Layout| match (name, layout) {
        ("time", Layout::Scalar(Scalar::F32)) => Some(Wire::Time),
        ("frequency", Layout::Scalar(Scalar::F32)) => Some(Wire::Frequency),
        ("width", Layout::Scalar(Scalar::U32)) => Some(Wire::Width),
        ("height", Layout::Scalar(Scalar::U32)) => Some(Wire::Height),
        ("mouse", Layout::Vector(size, Scalar::F32)) if *size == 2 => Some(Wire::Mouse),
        ("pressed", Layout::Scalar(Scalar::U32)) => Some(Wire::Pressed),
        _ => None,
    };
    let mut wired = Vec::new();
    for binding in reflection.bindings.iter().filter(|binding| binding.space == AddressSpace::Uniform) {
        if let Layout::Struct { members, .. } = &binding.layout {
            for member in members {
                if let Some(wire) = known(&member.name, &member.layout) {
                    wired.push((format!("{}.{}", binding.name, member.name), wire));
                }
            }
        } else if let Some(wire) = known(&binding.name, &binding.layout) {
            wired.push((binding.name.clone(), wire));
        }
    }
    wired
}

/// A source on one engine: keeps the inputs there, and what was written where the next frame begins with it.
pub struct Running {
    engine: Engine,
    kept: Option<(Arc<KernelSource>, Vec<Option<Bound>>)>,
}

/// A picture before it is drawn.
pub struct Made {
    /// The values, or a texture's texels in words: the bytes of its pixels from the first on.
    pub tensor: Tensor,
    pub size: Size,
    pub pixels: Pixels,
}

impl Running {
    /// On `engine`.
    pub fn new(engine: Engine) -> Self {
        Self { engine, kept: None }
    }

    /// Records the picture's kernel. `cancel` ends a user's kernel that is under way on the CPU.
    ///
    /// # Errors
    /// As the operation or dispatch; [`Error::InvalidInput`] when the kernel's tensor is no picture.
    pub fn compute(&mut self, source: &Source, moment: &Moment, cancel: &CancelFlag) -> Result<Made> {
        match source {
            Source::Field => {
                let params = FieldParams::new(moment.size.width, moment.size.height);
                let params = params.frequency(Frequency::Hertz(moment.frequency)).time(moment.time);
                let tensor = ops::field::field(&self.engine, &params)?;
                Ok(Made { tensor, size: moment.size, pixels: Pixels::F32 })
            }
            Source::Kernel(kernel) => self.run(kernel, moment, cancel),
        }
    }

    fn run(&mut self, kernel: &Arc<KernelSource>, moment: &Moment, cancel: &CancelFlag) -> Result<Made> {
        if self.kept.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, kernel)) {
            self.kept = Some((kernel.clone(), self.kept_of(kernel)?));
        }
        let kept = self.kept.iter().flat_map(|(_, kept)| kept).enumerate();
        // What isn't kept starts over each time, so that the same moment gives the same picture.
        let bound = kept
            .map(|(place, kept)| match kept {
                Some(bound) => Ok(Some(bound.clone())),
                None => kernel.job.make_bound(&self.engine, place),
            })
            .filter_map(Result::transpose)
            .collect::<Result<Vec<Bound>>>()?;
        let shown =
            bound.get(kernel.shown).cloned().ok_or_else(|| Error::state("the shown binding", "it has no tensor"))?;
        let more: Vec<(String, Value)> =
            kernel.wired.iter().map(|(path, wire)| (path.clone(), moment.value(*wire))).collect();
        let ready = OnDevice::from(bound);
        kernel.job.record(&self.engine, &ready, &more).cancel(cancel).run()?;
        if let (Some((a, b)), Some((_, kept))) = (kernel.swap, &mut self.kept) {
            kept.swap(a, b);
        }
        let (tensor, size) = match shown {
            Bound::Tensor(tensor) => {
                let size = picture_size(&tensor, kernel.pixels, kernel.size)?;
                (tensor, size)
            }
            Bound::Texture(texture) => {
                let [width, height, _] = texture.size().map(|side| side as usize);
                (texture.texels().clone(), Size { width, height })
            }
        };
        Ok(Made { tensor, size, pixels: kernel.pixels })
    }

    fn kept_of(&self, kernel: &KernelSource) -> Result<Vec<Option<Bound>>> {
        let bound = kernel.job.bound().enumerate();
        let starts_over = |written: bool| written && !kernel.keep;
        bound
            .map(
                |(place, (_, written))| {
                    if starts_over(written) { Ok(None) } else { kernel.job.make_bound(&self.engine, place) }
                },
            )
            .collect()
    }
}

impl Moment {
    fn value(&self, wire: Wire) -> Value {
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        match wire {
            Wire::Time => (self.time as f32).into(),
            Wire::Frequency => (self.frequency as f32).into(),
            Wire::Width => side(self.size.width).into(),
            Wire::Height => side(self.size.height).into(),
            Wire::Mouse => self.mouse.at.into(),
            Wire::Pressed => u32::from(self.mouse.pressed).into(),
        }
    }
}

/// Columns and rows of a tensor: its own, where it has two axes, and a third one for the parts of colours; the asked ones, where their product
/// fits; else a square.
fn picture_size(tensor: &Tensor, pixels: Pixels, asked: Size) -> Result<Size> {
    let count = tensor.shape().iter().product::<usize>() / pixels.parts();
    if tensor.dtype() == pixels.dtype() && count > 0 {
        match *tensor.shape() {
            [height, width] if pixels != Pixels::Rgba => return Ok(Size { width, height }),
            [height, width, 4] if pixels == Pixels::Rgba => return Ok(Size { width, height }),
            _ => {}
        }
        if count == asked.width.saturating_mul(asked.height) {
            return Ok(asked);
        }
        let side = count.isqrt();
        if side * side == count {
            return Ok(Size { width: side, height: side });
        }
    }
    Err(Error::invalid(
        format!("the shown tensor, {}{:?},", tensor.dtype(), tensor.shape()),
        "is not a picture: it must have rows and columns (and four parts of each colour), --size many values, or a square number of them",
    ))
}
