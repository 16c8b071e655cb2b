//! Forms of a kernel, each a `Kernel` of its own with a rewritten module. They are made on request, validated once, and kept in the kernel that they were made
//! from. The table in `lib.rs` lists them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::resolved::Resolved;
use super::textures::Forms;
use super::{Choice, Kernel, hash_overrides};
#[cfg(all(feature = "wgpu", target_arch = "wasm32"))]
use super::{amend, capabilities};
#[cfg(all(feature = "wgpu", target_arch = "wasm32"))]
use crate::error::Error;
use crate::error::{self, Result};
use cantus_base::listed::Listed;
use cantus_base::texture::Sampler;

/// The rewritings of a text.
#[derive(Clone, Default, PartialEq, Hash)]
pub(crate) struct Changes {
    /// Its arithmetic is the same on every device.
    pub(crate) is_reproducible: bool,
    /// The most rounds of all loops of an invocation.
    pub(crate) rounds: Option<u32>,
    /// Its large tables lie in buffers.
    pub(crate) is_tabled: bool,
    /// The textures it is bound to, if it is a form for them.
    pub(crate) textured: Option<Arc<Textured>>,
}

/// The target of a form for textures.
#[derive(PartialEq)]
pub(crate) struct Textured {
    forms: Forms,
    overrides: BTreeMap<String, f64>,
    /// The places of textures that are filterable and remain textures, and of samplers that filter.
    pub(crate) filtering: Vec<(u32, u32)>,
}

impl Hash for Textured {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.forms.hash(state);
        hash_overrides(&self.overrides, state);
    }
}

/// The forms that were made of a kernel.
#[derive(Default)]
pub(crate) struct Known {
    reproducible: OnceLock<Result<Kernel>>,
    #[cfg(not(target_arch = "wasm32"))]
    tabled: OnceLock<Option<Tabled>>,
    textured: Mutex<Kept>,
}

/// The forms for what was bound, the one used last at the end.
#[derive(Default)]
struct Kept(Vec<(Forms, Kernel)>);

impl Kept {
    const MOST: usize = 16;

    fn used(&mut self, forms: &Forms) -> Option<Kernel> {
        let at = self.0.iter().position(|(known, _)| known == forms)?;
        let found = self.0.remove(at);
        let kernel = found.1.clone();
        self.0.push(found);
        Some(kernel)
    }

    fn keep(&mut self, forms: Forms, kernel: Kernel) {
        if self.0.len() >= Self::MOST {
            self.0.remove(0);
        }
        self.0.push((forms, kernel));
    }
}

/// The result of [`Kernel::with_loop_limit`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoopLimit {
    /// The kernel whose loops end, or the kernel itself if nothing is counted.
    pub kernel: Kernel,
    /// The counted loops, each with its first place in the text.
    pub loops: Vec<error::SourcePlace>,
}

/// The result of [`Kernel::with_tables`].
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub struct Tabled {
    pub kernel: Kernel,
    /// The names of the bindings, and their contents.
    pub tables: Vec<(String, Vec<u8>)>,
}

impl Kernel {
    /// The rewritings of its text.
    fn changes(&self) -> &Changes {
        &self.inner.text.changes
    }

    /// Returns a form of the kernel whose float32 arithmetic has the same bits on every device. [`crate::engine::Builder::reproducible`] runs it.
    /// It has a further binding, the uniform `cantus_zero`, which must be 0; an engine in that mode sets it.
    ///
    /// Each sum, difference and product is rounded on its own. Functions of the library compute everything else. Numbers of magnitude 2^-126 or
    /// less are zero. The device still decides the order of atomic operations, data races, and loops that wait.
    ///
    /// ```
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ///     @compute @workgroup_size(1) fn shift() { x[0] = x[0] * x[1] + sin(x[2]); }
    /// ")?;
    /// assert!(kernel.reproducible()?.reflection()?.binding("cantus_zero").is_some());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`], with its place, for constructs that cannot be made the same everywhere: f16 and f64, atomic floats, subgroup operations.
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    pub fn reproducible(&self) -> Result<Self> {
        self.reproducible_form().cloned()
    }

    /// Returns [`Kernel::reproducible`], computed once.
    #[doc(hidden)]
    pub fn reproducible_form(&self) -> Result<&Self> {
        if self.changes().is_reproducible {
            return Ok(self);
        }
        let make = || Ok(self.in_form(self.inner.text.reproducible()?.clone()));
        self.inner.known.forms.reproducible.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// Returns the pairs of a texture and a sampler with which the entry point samples it, by their places in the reflection. Computed once.
    ///
    /// # Errors
    /// As [`Kernel::reflection`].
    #[doc(hidden)]
    pub fn sampled(&self) -> Result<&[(usize, usize)]> {
        let pairs = self.inner.known.sampled.get_or_init(|| self.resolved().map(Resolved::sampled));
        pairs.as_deref().map_err(Clone::clone)
    }

    /// Returns the form of the chosen entry point for its bound textures and samplers: it has buffers of texels with the same names, and
    /// [`Kernel::TEXTURES`]. Textures of the device's own API remain, with the samplers that they are sampled with. The latest forms are kept.
    ///
    /// # Errors
    /// [`Error::Unsupported`], with its place, for anything but a builtin of core WGSL; otherwise as [`Kernel::reflection`].
    #[doc(hidden)]
    pub fn textured_form(&self, forms: &Forms) -> Result<Self> {
        let kept = &self.inner.known.forms.textured;
        if let Some(known) = kept.lock().unwrap_or_else(PoisonError::into_inner).used(forms) {
            return Ok(known);
        }
        let parsed = self.resolved()?.lowered(forms)?;
        let reflection = self.reflection()?;
        let textures = reflection.textures.iter().zip(&forms.textures);
        let textures = textures.filter(|(_, form)| form.own == Some(true));
        let filtering = textures.map(|(texture, _)| (texture.group, texture.binding));
        let samplers = reflection.samplers.iter().zip(&forms.samplers);
        let samplers = samplers.filter(|(_, modes)| Sampler::from_words([**modes, 0, 0]).filters());
        let filtering = filtering.chain(samplers.map(|(sampler, _)| (sampler.group, sampler.binding))).listed();
        let textured = Textured { forms: forms.clone(), overrides: self.overrides().clone(), filtering };
        let changes = Changes { textured: Some(Arc::new(textured)), ..self.changes().clone() };
        // Its module has this entry point alone, and the overrides are in force.
        let choice = Choice { entry: Some(reflection.entry_point.clone()), ..Choice::default() };
        let kernel = Self::of(self.inner.text.rewritten(parsed, changes), choice, None);
        kept.lock().unwrap_or_else(PoisonError::into_inner).keep(forms.clone(), kernel.clone());
        Ok(kernel)
    }

    /// Returns the kernel with buffers of texels in place of its textures, as devices run it, for inspection. It assumes sampled textures of
    /// `rgba8unorm` (`rgba8uint`, `rgba8sint`, `depth32float`) with one level, and linear samplers that clamp to the edge; an engine uses the bound
    /// ones. A kernel without textures is returned unchanged.
    ///
    /// ```
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var image: texture_2d<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> x: array<f32>;
    ///     @compute @workgroup_size(1) fn red() { x[0] = textureLoad(image, vec2u(1, 2), 0).r; }
    /// ")?;
    /// assert_eq!(kernel.reflection()?.textures[0].to_string(), "texture_2d<f32>");
    /// let plain = kernel.without_textures()?;
    /// assert_eq!(plain.reflection()?.binding("image").unwrap().1.layout.to_string(), "array<u32>");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`], with its place, for anything but a builtin of core WGSL.
    pub fn without_textures(&self) -> Result<Self> {
        let reflection = self.reflection()?;
        if reflection.textures.is_empty() && reflection.samplers.is_empty() {
            return Ok(self.clone());
        }
        self.textured_form(&Forms::assumed(&reflection.textures, &reflection.samplers))
    }

    /// Returns a form of the kernel whose loops end: after `rounds` rounds of all its loops, an invocation leaves each loop that it reaches. Use it
    /// for untested text on devices that cannot be stopped.
    ///
    /// If [`LoopLimit::loops`] is not empty, the form has a further binding, `cantus_stopped`, one `u32` that must be 0. Afterwards it is 0, or
    /// one more than the index in `loops` of a stopped loop. The results of a stopped invocation are wrong. Loops with a barrier or a subgroup
    /// operation are not counted, because all invocations of a workgroup must agree about them.
    ///
    /// ```
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(1) fn spin() { loop { x[0] += 1u; if x[0] == 0u { break; } } }
    /// ")?;
    /// let limited = kernel.with_loop_limit(1000)?;
    /// assert_eq!(limited.loops[0].line, 3);
    /// assert!(limited.kernel.reflection()?.binding("cantus_stopped").is_some());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    pub fn with_loop_limit(&self, rounds: u32) -> Result<LoopLimit> {
        let Some((parsed, loops)) = self.parsed()?.limited(rounds)? else {
            return Ok(LoopLimit { kernel: self.clone(), loops: Vec::new() });
        };
        let changes = Changes { rounds: Some(rounds), ..self.changes().clone() };
        Ok(LoopLimit { kernel: self.in_form(self.inner.text.rewritten(parsed, changes)), loops })
    }

    /// The binding in which a limited form reports the loop that was stopped.
    pub(crate) const STOPPED: &'static str = "cantus_stopped";

    /// Returns the kernel with read-only buffers in place of constant tables of more than `most` numbers that are indexed with computed indices, and
    /// the contents of the buffers; nothing if it has none. Computed once, for the first `most`.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    #[cfg(not(target_arch = "wasm32"))]
    #[doc(hidden)]
    pub fn with_tables(&self, most: u64) -> Result<Option<&Tabled>> {
        let parsed = self.parsed()?;
        let make = || {
            let (parsed, tables) = parsed.tabled(most)?;
            let changes = Changes { is_tabled: true, ..self.changes().clone() };
            Some(Tabled { kernel: self.in_form(self.inner.text.rewritten(parsed, changes)), tables })
        };
        Ok(self.inner.known.forms.tabled.get_or_init(make).as_ref())
    }

    /// Returns the text of a reproducible or limited form, overrides in force; `None` for other kernels, which are their text.
    #[cfg(all(feature = "wgpu", target_arch = "wasm32"))]
    #[doc(hidden)]
    pub fn rewritten_wgsl(&self) -> Result<Option<String>> {
        let changes = self.changes();
        if !changes.is_reproducible && changes.rounds.is_none() && changes.textured.is_none() {
            return Ok(None);
        }
        let fault = |construct: String| Error::Unsupported {
            kernel: self.file().to_owned(),
            device: "WebGPU".to_owned(),
            construct,
            report: String::new(),
        };
        let mut module = self.resolved()?.module().clone();
        amend::sizes::settle(&mut module);
        let info = capabilities::validate(&module).map_err(|error| fault(error.emit_to_string("")))?;
        amend::wgsl(&module, &info).map(Some).map_err(fault)
    }
}
