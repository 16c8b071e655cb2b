//! What is shown: the field, or what a kernel file writes. Makes tensors of `[height, width]` float32; knows nothing of windows.

use std::path::PathBuf;
use std::sync::Arc;

use cantus::backend::CancelFlag;
use cantus::engine::Value;
use cantus::kernel::{Access, AddressSpace, Binding, Layout, Reflection, Scalar};
use cantus::ops::{
    self,
    field::{FieldParams, Frequency},
};
use cantus::{DType, Engine, Error, Result, Tensor};

use crate::parse::{NamedTensor, Shape, Size};
use crate::run::{Given, Job, read_kernel};

/// Something that makes a picture for a moment.
#[derive(Clone)]
pub enum Source {
    /// The field.
    Field,
    /// A kernel of the user's.
    Kernel(Arc<KernelSource>),
}

/// The moment, and what else a picture depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Columns and rows.
    pub size: Size,
    /// In Hz.
    pub frequency: f64,
    /// In seconds.
    pub time: f64,
}

impl Source {
    /// Whether time changes the picture.
    pub fn moves(&self) -> bool {
        match self {
            Self::Field => true,
            Self::Kernel(kernel) => kernel.wired.iter().any(|(_, what)| *what == Wire::Time),
        }
    }

    /// Whether the frequency changes the picture.
    pub fn is_tuned(&self) -> bool {
        match self {
            Self::Field => true,
            Self::Kernel(kernel) => kernel.wired.iter().any(|(_, what)| *what == Wire::Frequency),
        }
    }
}

/// A kernel with what it is given, ready to run.
pub struct KernelSource {
    job: Job,
    /// The place of the shown binding among the job's tensors.
    shown: usize,
    wired: Vec<(String, Wire)>,
    size: Size,
}

/// A uniform that the viewer sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Time,
    Frequency,
    Width,
    Height,
}

/// The kernel on the command line.
#[derive(Debug, Clone)]
pub struct KernelFile {
    /// The file.
    pub path: PathBuf,
    /// As `cantus run` takes it.
    pub given: Given,
    /// The binding to show, if one is named.
    pub show: Option<String>,
}

impl KernelFile {
    /// Reads the file and checks it against what it is given, for pictures of `size`.
    ///
    /// The shown binding is the one that is named, or the first that the kernel writes and that is made of float32. Unless `--in` or
    /// `--out` gave it a tensor, it gets zeros of `[height, width]`. Where no amount is given, one invocation runs for each value: in
    /// two dimensions if the workgroup has two, else in one.
    ///
    /// # Errors
    /// As `cantus run`; [`Error::InvalidInput`] when there is nothing to show.
    pub fn load(&self, size: Size) -> Result<KernelSource> {
        let kernel = read_kernel(&self.path, self.given.entry.as_deref())?;
        let mut given = self.given.clone();
        let reflection = kernel.reflection()?;
        let shown = self.shown(reflection)?.name.clone();
        let has =
            given.inputs.iter().any(|input| input.name == shown) || given.zeros.iter().any(|zeros| zeros.name == shown);
        if !has {
            let shape = Shape::Sides(vec![size.height, size.width]);
            given.zeros.push(NamedTensor { name: shown.clone(), dtype: DType::F32, shape });
        }
        if given.workgroups.is_none() && given.invocations.is_none() {
            let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
            given.invocations = Some(match reflection.workgroup_size {
                [_, 1, 1] => [side(size.width.saturating_mul(size.height)), 1, 1],
                _ => [side(size.width), side(size.height), 1],
            });
        }
        let job = Job::new(kernel, &given)?;
        let Some(shown) = job.bound().position(|(name, _)| name == shown) else {
            return Err(self.nothing("the binding has no tensor".to_owned()));
        };
        let wired = wired(job.reflection()).into_iter().filter(|(path, _)| !job.is_set(path)).collect();
        Ok(KernelSource { job, shown, wired, size })
    }

    fn shown<'a>(&self, reflection: &'a Reflection) -> Result<&'a Binding> {
        let drawn = |binding: &&Binding| {
            binding.space == AddressSpace::Storage
                && binding.access == Access::ReadWrite
                && binding.layout.scalar() == Some(Scalar::F32)
        };
        let mut candidates = reflection.bindings.iter().filter(drawn);
        let names = || {
            let names: Vec<&str> =
                reflection.bindings.iter().filter(drawn).map(|binding| binding.name.as_str()).collect();
            names.join(", ")
        };
        match &self.show {
            Some(name) => candidates
                .find(|binding| binding.name == *name)
                .ok_or_else(|| self.nothing(format!("--show {name}: the bindings that can be shown are: {}", names()))),
            None => candidates.next().ok_or_else(|| {
                self.nothing("it needs a var<storage, read_write> of f32 for the values of the picture".to_owned())
            }),
        }
    }

    fn nothing(&self, reason: String) -> Error {
        Error::InvalidInput { what: format!("nothing of {} can be shown", self.path.display()), reason }
    }
}

/// The uniforms that have one of the names that the viewer knows, with its type.
fn wired(reflection: &Reflection) -> Vec<(String, Wire)> {
    let known = |name: &str, layout: &Layout| match (name, layout) {
        ("time", Layout::Scalar(Scalar::F32)) => Some(Wire::Time),
        ("frequency", Layout::Scalar(Scalar::F32)) => Some(Wire::Frequency),
        ("width", Layout::Scalar(Scalar::U32)) => Some(Wire::Width),
        ("height", Layout::Scalar(Scalar::U32)) => Some(Wire::Height),
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

/// A source on one engine: keeps the inputs there.
pub struct Running {
    engine: Engine,
    inputs: Option<(Arc<KernelSource>, Vec<Option<Tensor>>)>,
}

impl Running {
    /// On `engine`.
    pub fn new(engine: Engine) -> Self {
        Self { engine, inputs: None }
    }

    /// Records the picture's kernel: `[height, width]` float32. `cancel` ends a user's kernel that is under way on the CPU.
    ///
    /// # Errors
    /// As the operation or dispatch; [`Error::InvalidInput`] when the kernel's tensor is no picture.
    pub fn compute(&mut self, source: &Source, moment: &Moment, cancel: &CancelFlag) -> Result<(Tensor, Size)> {
        match source {
            Source::Field => {
                let params = FieldParams::new(moment.size.width, moment.size.height);
                let params = params.frequency(Frequency::Hertz(moment.frequency)).time(moment.time);
                Ok((ops::field::field(&self.engine, &params)?, moment.size))
            }
            Source::Kernel(kernel) => self.run(kernel, moment, cancel),
        }
    }

    fn run(&mut self, kernel: &Arc<KernelSource>, moment: &Moment, cancel: &CancelFlag) -> Result<(Tensor, Size)> {
        if self.inputs.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, kernel)) {
            self.inputs = Some((kernel.clone(), self.inputs_of(kernel)?));
        }
        let inputs = self.inputs.iter().flat_map(|(_, inputs)| inputs).enumerate();
        // What the kernel writes starts over each time, so that the same moment gives the same picture.
        let tensors = inputs
            .map(|(place, kept)| match kept {
                Some(tensor) => Ok(Some(tensor.clone())),
                None => kernel.job.tensor(&self.engine, place),
            })
            .filter_map(Result::transpose)
            .collect::<Result<Vec<Tensor>>>()?;
        let more: Vec<(String, Value)> =
            kernel.wired.iter().map(|(path, wire)| (path.clone(), moment.value(*wire))).collect();
        kernel.job.record(&self.engine, &tensors, &more).cancel(cancel).run()?;
        let shown = tensors.get(kernel.shown).cloned().ok_or_else(|| Error::InvalidInput {
            what: "the shown binding".to_owned(),
            reason: "it has no tensor".to_owned(),
        })?;
        let size = picture_size(&shown, kernel.size)?;
        Ok((shown, size))
    }

    fn inputs_of(&self, kernel: &KernelSource) -> Result<Vec<Option<Tensor>>> {
        let bound = kernel.job.bound().enumerate();
        bound
            .map(|(place, (_, written))| if written { Ok(None) } else { kernel.job.tensor(&self.engine, place) })
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
        }
    }
}

/// Columns and rows of a tensor: its own, where it has two axes; the asked ones, where their product fits; else a square.
fn picture_size(tensor: &Tensor, asked: Size) -> Result<Size> {
    let count: usize = tensor.shape().iter().product();
    if tensor.dtype() == DType::F32 && count > 0 {
        if let &[height, width] = tensor.shape() {
            return Ok(Size { width, height });
        }
        if count == asked.width.saturating_mul(asked.height) {
            return Ok(asked);
        }
        let side = count.isqrt();
        if side * side == count {
            return Ok(Size { width: side, height: side });
        }
    }
    Err(Error::InvalidInput {
        what: format!("the shown tensor, {}{:?},", tensor.dtype(), tensor.shape()),
        reason: "is no picture: it must be float32 with two axes, of --size many values, or a square number of them"
            .to_owned(),
    })
}
