//! Kernels: validates, reflects and prepares WGSL. Runs nothing.
//!
//! naga does the parsing, behind the feature `wgsl`, and appears in no public type. Without the feature, prepared kernels ([`Kernel::from_prepared`]) still
//! run.
//!
//! # How a text becomes ready
//! 1. `Kernel::from_wgsl` keeps the text, and parses it once: the front end reads it before naga (`front`), naga parses it, `amend` corrects naga's
//!    module, naga's validator checks it (`wgsl.rs`, `Parsed`).
//! 2. `Kernel::reflection` gives entry points, bindings, layouts and overrides as plain data, for the chosen entry point with its overrides applied
//!    (`Parsed::resolve`).
//! 3. A backend asks for the form that its device takes: bytecode (`Kernel::program`), naga's module (`Kernel::parsed`), source of the C family
//!    (`Kernel::translate`), Rust compiled ahead (`Kernel::compiled_ahead`).
//!
//! # Forms
//! A form is a `Kernel` of its own: the same text, and a module that was rewritten. All are made on request, validated again, and kept in the kernel that
//! they were made from.
//!
//! | form | module | for |
//! | --- | --- | --- |
//! | `textured_form` | `textures` puts buffers in place of textures | every dispatch with textures; one form for each kind of what is bound |
//! | `reproducible_form` | `reproducible` replaces arithmetic that devices are free in | engines in reproducible mode |
//! | `with_tables` | `amend::tables` moves large tables of constants into buffers | software Vulkan |
//! | `with_loop_limit` | `limit` counts the rounds of loops | kernels from outside |
//! | `fold::fold`, `translate_folded` | `fold` computes the ids of dispatches with more workgroups than the device has in a dimension | backends of GPUs |
//!
//! # What holds
//! - A kernel is immutable. `with_entry_point` and `with_override` give another one, which shares the parsed module.
//! - Equal kernels have the same text, entry point, overrides and form, so devices keep their programs by kernel.
//! - Errors have places in the author's text, whatever was rewritten.
//!
//! # What is surprising
//! - An override belongs to the kernel and not to a dispatch: another value is another program.
//! - There are two texts for a shipped kernel: one for GPUs, with polynomials for some builtins, and one for executors, whose builtins are accurate.
//! - The module for naga may differ from the text that the author wrote. `Kernel::rewritten_wgsl` shows it.

#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod amend;
#[cfg(feature = "wgsl")]
mod atomics;
#[cfg(feature = "wgsl")]
mod behavior;
#[cfg(feature = "wgsl")]
mod bounds;
#[cfg(all(feature = "wgsl", any(feature = "_gpu", feature = "_cuda_hip")))]
#[doc(hidden)]
pub mod fold;
#[cfg(feature = "wgsl")]
mod front;
#[cfg(feature = "wgsl")]
mod limit;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod module;
#[cfg(feature = "wgsl")]
mod needs;
mod prepared;
#[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
mod recurrence;
#[cfg(feature = "wgsl")]
mod reproducible;
#[cfg(feature = "wgsl")]
mod rounds;
#[cfg(any(
    feature = "writers",
    all(any(feature = "vulkan", feature = "wgpu"), feature = "wgsl", not(target_arch = "wasm32"))
))]
#[doc(hidden)]
pub mod spirv;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod textures;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod wgsl;
#[cfg(feature = "writers")]
mod write;

use cantus_base::listed::Listed;
#[cfg(feature = "wgsl")]
use cantus_base::{deep_stack, flow};
use cantus_base::{error, reflection};
use cantus_spmd as spmd;
use cantus_spmd::ahead;
#[cfg(feature = "translate")]
use cantus_translate as translate;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
#[cfg(feature = "wgsl")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "wgsl")]
use cantus_base::texture::Sampler;
#[cfg(feature = "wgsl")]
use needs::Demands;
#[cfg(feature = "wgsl")]
pub use needs::Need;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use needs::Needs;
pub use prepared::PREPARED_VERSION;
#[doc(hidden)]
pub use prepared::seal;
#[cfg(feature = "writers")]
pub use write::Language;

use crate::error::{Error, Result};
pub use cantus_base::texture::{SampleType, SamplerBinding, StorageTextureAccess, TextureBinding, ViewDimension};

pub use crate::reflection::{Access, AddressSpace, Binding, Features, Layout, Member, Override, Reflection, Scalar};

/// A compute kernel: WGSL text, an entry point, and values for its override constants. Cheap to clone.
///
/// ```
/// # fn main() -> cantus::Result<()> {
/// let kernel = cantus::Kernel::from_wgsl("
///     @group(0) @binding(0) var<storage, read_write> y: array<f32>;
///     @compute @workgroup_size(64)
///     fn double(@builtin(global_invocation_id) id: vec3u) {
///         if id.x < arrayLength(&y) { y[id.x] *= 2.0; }
///     }
/// ")?;
/// let reflection = kernel.reflection()?;
/// assert_eq!(reflection.entry_point, "double");
/// assert_eq!(reflection.bindings[0].layout.to_string(), "array<f32>");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Kernel {
    inner: Arc<Inner>,
}

struct Inner {
    /// File name for reports, or `wgsl`.
    file: Arc<str>,
    /// Plain WGSL for GPUs.
    wgsl: Arc<str>,
    /// The same kernel for executors whose builtins are accurate; equal to `wgsl` for kernels that come at run time.
    native_wgsl: Arc<str>,
    entry: Option<String>,
    overrides: BTreeMap<String, f64>,
    #[cfg(feature = "wgsl")]
    parsed: OnceLock<Result<Arc<wgsl::Parsed>>>,
    prepared: Option<Arc<prepared::Prepared>>,
    reflection: OnceLock<Result<Reflection>>,
    program: OnceLock<Result<Arc<spmd::Bytecode>>>,
    label: OnceLock<Arc<str>>,
    #[cfg(feature = "wgsl")]
    demands: OnceLock<Demands>,
    /// The form compiled ahead from this text, entry point and overrides.
    ahead: Option<&'static ahead::Compiled>,
    /// Its arithmetic is the same on every device.
    is_reproducible: bool,
    /// The most rounds of all loops of an invocation.
    limit: Option<u32>,
    /// The textures it is bound to, if it is a form for them.
    #[cfg(feature = "wgsl")]
    textured: Option<Arc<Textured>>,
    /// The forms for what was bound, the latest last.
    #[cfg(feature = "wgsl")]
    forms: Mutex<Vec<(textures::Forms, Kernel)>>,
    /// The textures and samplers that are used together.
    #[cfg(feature = "wgsl")]
    sampled: OnceLock<Result<Vec<(usize, usize)>>>,
    /// The module of the reproducible form, whatever the entry point and overrides.
    #[cfg(feature = "wgsl")]
    rewritten: Arc<OnceLock<Result<Arc<wgsl::Parsed>>>>,
    /// The reproducible form.
    #[cfg(feature = "wgsl")]
    reproducible: OnceLock<Result<Kernel>>,
    /// Its large tables lie in buffers.
    is_tabled: bool,
    /// The form in which they do.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    tabled: OnceLock<Option<Tabled>>,
    hash: u64,
}

/// The reason why modules were not linked, as an error of the kernel's.
#[cfg(feature = "link")]
fn not_linked(error: cantus_link::Error) -> Error {
    use cantus_link::Error as Link;
    match error {
        Link::Text { ref file, ref text, ref place, .. } => Error::InvalidWgsl {
            kernel: file.clone(),
            place: error::SourcePlace::of(text, place.clone()),
            report: {
                let note = text.get(place.start..).and_then(front::diagnostics::of_template);
                format!("{error}{}", note.unwrap_or_default())
            },
        },
        Link::Unreadable { path, reason } => Error::Unreadable { path, reason },
        other => Error::InvalidInput { what: "a kernel's package".to_owned(), reason: other.to_string() },
    }
}

impl Kernel {
    /// Creates a kernel from WGSL text. A single compute entry point is chosen; among several, choose with [`Kernel::with_entry_point`].
    ///
    /// ```
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(1) fn one() { x[0] = 1u; }
    /// ")?;
    /// assert_eq!(kernel.name(), "one");
    /// let error = cantus::Kernel::from_wgsl("fn main( {").unwrap_err();
    /// assert!(error.to_string().contains("expected"), "{error}");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// With the feature `link` the text may import from the library (`import cantus::random::uniform;`); `Kernel::linked` adds other modules.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] with naga's report when the text does not parse or validate.
    #[cfg(feature = "wgsl")]
    pub fn from_wgsl(text: &str) -> Result<Self> {
        Self::from_named_wgsl("wgsl", text)
    }

    /// As [`Kernel::from_wgsl`], with a file name for error reports.
    ///
    /// ```
    /// let error = cantus::Kernel::from_named_wgsl("broken.wgsl", "fn").unwrap_err();
    /// assert!(error.to_string().contains("broken.wgsl"), "{error}");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernel::from_wgsl`].
    #[cfg(feature = "wgsl")]
    pub fn from_named_wgsl(file: &str, text: &str) -> Result<Self> {
        #[cfg(feature = "link")]
        if cantus_link::Linker::is_needed(text) {
            return Self::linked(&cantus_link::Linker::new(), file, text);
        }
        let parsed = Arc::new(wgsl::Parsed::new(&front::File::named(file), text)?);
        let text: Arc<str> = text.into();
        let kernel = Self::assemble(file.into(), text.clone(), text, None, BTreeMap::new(), None);
        // A fresh cell: `set` cannot fail.
        let _ = kernel.inner.parsed.set(Ok(parsed));
        Ok(kernel)
    }

    /// Creates a kernel from a WGSL file. With the feature `link` it may import from other files, as
    /// `Kernel::linked_file` does.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the file cannot be read, else as [`Kernel::from_wgsl`].
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, &error))?;
        #[cfg(feature = "link")]
        if cantus_link::Linker::is_needed(&text) {
            return Self::linked_file(&cantus_link::Linker::new(), path);
        }
        Self::from_named_wgsl(&path.display().to_string(), &text)
    }

    /// Links a kernel whose text imports from other files, and parses it. `file` is its name in error reports. An error in another file is shown
    /// there, with line and column.
    ///
    /// ```
    /// use cantus::link::Linker;
    ///
    /// let linker = Linker::new().module("package::noise", "noise.wgsl", "fn value(x: u32) -> f32 { return x; }");
    /// let error = cantus::Kernel::linked(&linker, "fill.wgsl", "
    ///     import package::noise::value;
    ///     @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3u) { y[id.x] = value(id.x); }
    /// ").unwrap_err();
    /// assert!(error.to_string().contains("noise.wgsl:1:"), "{error}");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] also for imports that are not found; else as [`Kernel::from_wgsl`].
    #[cfg(feature = "link")]
    pub fn linked(linker: &cantus_link::Linker, file: &str, text: &str) -> Result<Self> {
        Self::from_linked(&linker.link(file, text).map_err(not_linked)?)
    }

    /// Links a kernel in a file, as [`Kernel::linked`]. Its package begins at the next `wesl.toml` above the file, else at its folder.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for files, [`Error::InvalidInput`] for a `wesl.toml`, else as [`Kernel::linked`].
    #[cfg(all(feature = "link", not(target_arch = "wasm32")))]
    pub fn linked_file(linker: &cantus_link::Linker, path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::from_linked(&linker.link_file(path).map_err(not_linked)?)
    }

    /// Creates a kernel from the output of a [`Linker`](cantus_link::Linker).
    ///
    /// # Errors
    /// As [`Kernel::from_wgsl`].
    #[cfg(feature = "link")]
    pub fn from_linked(linked: &cantus_link::Linked) -> Result<Self> {
        let file = linked.file();
        let named = front::File { name: file.to_owned(), origins: Some(linked.origins().clone()) };
        let parsed = Arc::new(wgsl::Parsed::new(&named, linked.text())?);
        let text = linked.text().clone();
        let kernel = Self::assemble(file.into(), text.clone(), text, None, BTreeMap::new(), None);
        // A fresh cell: `set` cannot fail.
        let _ = kernel.inner.parsed.set(Ok(parsed));
        Ok(kernel)
    }

    fn assemble(
        file: Arc<str>,
        wgsl: Arc<str>,
        native_wgsl: Arc<str>,
        entry: Option<String>,
        overrides: BTreeMap<String, f64>,
        prepared: Option<Arc<prepared::Prepared>>,
    ) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        wgsl.hash(&mut hasher);
        entry.hash(&mut hasher);
        for (name, value) in &overrides {
            name.hash(&mut hasher);
            value.to_bits().hash(&mut hasher);
        }
        let hash = hasher.finish();
        Self {
            inner: Arc::new(Inner {
                file,
                wgsl,
                native_wgsl,
                entry,
                overrides,
                #[cfg(feature = "wgsl")]
                parsed: OnceLock::new(),
                prepared,
                reflection: OnceLock::new(),
                program: OnceLock::new(),
                label: OnceLock::new(),
                #[cfg(feature = "wgsl")]
                demands: OnceLock::new(),
                ahead: None,
                is_reproducible: false,
                limit: None,
                is_tabled: false,
                #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
                tabled: OnceLock::new(),
                #[cfg(feature = "wgsl")]
                textured: None,
                #[cfg(feature = "wgsl")]
                forms: Mutex::default(),
                #[cfg(feature = "wgsl")]
                sampled: OnceLock::new(),
                #[cfg(feature = "wgsl")]
                rewritten: Arc::default(),
                #[cfg(feature = "wgsl")]
                reproducible: OnceLock::new(),
                hash,
            }),
        }
    }

    /// A copy with another entry point or overrides. What was parsed is kept; what depends on the change is not.
    fn changed(&self, entry: Option<String>, overrides: BTreeMap<String, f64>) -> Self {
        let inner = &self.inner;
        // Prepared reflection and bytecode hold for the values they were prepared with only.
        let same = entry == inner.entry && overrides == inner.overrides;
        let prepared = if same { inner.prepared.clone() } else { None };
        let mut kernel = Self::assemble(
            inner.file.clone(),
            inner.wgsl.clone(),
            inner.native_wgsl.clone(),
            entry,
            overrides,
            prepared,
        );
        // Nobody else has it yet.
        if let Some(kernel) = Arc::get_mut(&mut kernel.inner) {
            kernel.is_reproducible = inner.is_reproducible;
            kernel.limit = inner.limit;
            kernel.is_tabled = inner.is_tabled;
            kernel.hash ^= inner.form();
            #[cfg(feature = "wgsl")]
            {
                kernel.rewritten.clone_from(&inner.rewritten);
                kernel.textured.clone_from(&inner.textured);
            }
        }
        #[cfg(feature = "wgsl")]
        if let Some(parsed) = inner.parsed.get() {
            let _ = kernel.inner.parsed.set(parsed.clone());
        }
        kernel
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
    #[cfg(feature = "wgsl")]
    pub fn reproducible(&self) -> Result<Self> {
        self.reproducible_form().cloned()
    }

    /// Returns [`Kernel::reproducible`], computed once.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn reproducible_form(&self) -> Result<&Self> {
        if self.inner.is_reproducible {
            return Ok(self);
        }
        let inner = &self.inner;
        let form = inner.reproducible.get_or_init(|| {
            let rewritten = inner.rewritten.get_or_init(|| Ok(Arc::new(self.parsed()?.reproducible()?)));
            let rewritten = rewritten.clone()?;
            // The text for GPUs on every device: a CPU's own functions are not theirs.
            let mut kernel = Self::assemble(
                inner.file.clone(),
                inner.wgsl.clone(),
                inner.wgsl.clone(),
                inner.entry.clone(),
                inner.overrides.clone(),
                None,
            );
            if let Some(kernel) = Arc::get_mut(&mut kernel.inner) {
                kernel.is_reproducible = true;
                kernel.limit = inner.limit;
                kernel.is_tabled = inner.is_tabled;
                kernel.textured.clone_from(&inner.textured);
                kernel.hash = inner.hash ^ inner.form() ^ kernel.form();
            }
            // Fresh cells: `set` cannot fail.
            let _ = kernel.inner.parsed.set(Ok(rewritten));
            Ok(kernel)
        });
        form.as_ref().map_err(Clone::clone)
    }

    /// The uniform that the engine sets for a reproducible form.
    #[doc(hidden)]
    pub const ZERO: &'static str = "cantus_zero";

    /// The uniform that the engine sets for a form with buffers in place of textures: their sizes, and the samplers'
    /// levels.
    #[doc(hidden)]
    pub const TEXTURES: &'static str = "cantus_textures";

    /// Returns the pairs of a texture and a sampler with which the entry point samples it, by their places in the reflection. Computed once.
    ///
    /// # Errors
    /// As [`Kernel::reflection`].
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn sampled(&self) -> Result<&[(usize, usize)]> {
        let inner = &self.inner;
        let pairs = inner.sampled.get_or_init(|| self.parsed()?.sampled(inner.entry.as_deref(), &inner.overrides));
        pairs.as_deref().map_err(Clone::clone)
    }

    /// Returns whether the texture of the device's own API at that place is filterable, or the sampler there filters: WebGPU's layouts tell them
    /// apart.
    #[doc(hidden)]
    #[must_use]
    pub fn is_filtering(&self, group: u32, binding: u32) -> bool {
        #[cfg(feature = "wgsl")]
        return self.inner.textured.as_ref().is_some_and(|form| form.filtering.contains(&(group, binding)));
        #[cfg(not(feature = "wgsl"))]
        {
            let _ = (group, binding);
            false
        }
    }

    /// Returns the form of the chosen entry point for its bound textures and samplers: it has buffers of texels with the same names, and
    /// [`Kernel::TEXTURES`]. Textures of the device's own API remain, with the samplers that they are sampled with. The latest forms are kept.
    ///
    /// # Errors
    /// [`Error::Unsupported`], with its place, for anything but a builtin of core WGSL; otherwise as [`Kernel::reflection`].
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn textured_form(&self, forms: &textures::Forms) -> Result<Self> {
        let inner = &self.inner;
        {
            let mut kept = inner.forms.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = kept.iter().position(|(known, _)| known == forms) {
                // The one that was used last is the last to go.
                let found = kept.remove(at);
                let kernel = found.1.clone();
                kept.push(found);
                return Ok(kernel);
            }
        }
        let parsed = self.parsed()?.lowered(inner.entry.as_deref(), &inner.overrides, forms)?;
        let reflection = self.reflection()?;
        let textures = reflection.textures.iter().zip(&forms.textures);
        let textures = textures.filter(|(_, form)| form.own == Some(true));
        let filtering = textures.map(|(texture, _)| (texture.group, texture.binding));
        let samplers = reflection.samplers.iter().zip(&forms.samplers);
        let samplers = samplers.filter(|(_, modes)| Sampler::from_words([**modes, 0, 0]).filters());
        let filtering = filtering.chain(samplers.map(|(sampler, _)| (sampler.group, sampler.binding))).listed();
        let mut kernel = Self::assemble(
            inner.file.clone(),
            inner.wgsl.clone(),
            inner.wgsl.clone(),
            Some(reflection.entry_point.clone()),
            BTreeMap::new(),
            None,
        );
        if let Some(kernel) = Arc::get_mut(&mut kernel.inner) {
            let mut hasher = rustc_hash::FxHasher::default();
            (inner.hash, forms).hash(&mut hasher);
            (kernel.is_reproducible, kernel.limit) = (inner.is_reproducible, inner.limit);
            kernel.is_tabled = inner.is_tabled;
            kernel.hash = hasher.finish() ^ kernel.form();
            let (forms, overrides) = (forms.clone(), inner.overrides.clone());
            kernel.textured = Some(Arc::new(Textured { forms, overrides, filtering }));
        }
        // Fresh cells: `set` cannot fail.
        let _ = kernel.inner.parsed.set(Ok(Arc::new(parsed)));
        let mut kept = inner.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_FORMS {
            kept.remove(0);
        }
        kept.push((forms.clone(), kernel.clone()));
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
    #[cfg(feature = "wgsl")]
    pub fn without_textures(&self) -> Result<Self> {
        let reflection = self.reflection()?;
        if reflection.textures.is_empty() && reflection.samplers.is_empty() {
            return Ok(self.clone());
        }
        self.textured_form(&textures::Forms::assumed(&reflection.textures, &reflection.samplers))
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
    #[cfg(feature = "wgsl")]
    pub fn with_loop_limit(&self, rounds: u32) -> Result<LoopLimit> {
        let inner = &self.inner;
        let (parsed, loops) = self.parsed()?.limited(rounds)?;
        if loops.is_empty() {
            return Ok(LoopLimit { kernel: self.clone(), loops });
        }
        let mut kernel = Self::assemble(
            inner.file.clone(),
            inner.wgsl.clone(),
            inner.wgsl.clone(),
            inner.entry.clone(),
            inner.overrides.clone(),
            None,
        );
        if let Some(kernel) = Arc::get_mut(&mut kernel.inner) {
            kernel.is_reproducible = inner.is_reproducible;
            kernel.limit = Some(rounds);
            kernel.is_tabled = inner.is_tabled;
            kernel.textured.clone_from(&inner.textured);
            kernel.hash = inner.hash ^ inner.form() ^ kernel.form();
        }
        // Fresh cells: `set` cannot fail.
        let _ = kernel.inner.parsed.set(Ok(Arc::new(parsed)));
        Ok(LoopLimit { kernel, loops })
    }

    /// The binding in which a limited form reports the loop that was stopped.
    #[cfg(feature = "wgsl")]
    pub(crate) const STOPPED: &'static str = "cantus_stopped";

    /// Returns the kernel with read-only buffers in place of constant tables of more than `most` numbers that are indexed with computed indices, and
    /// the contents of the buffers; nothing if it has none. Computed once, for the first `most`.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    #[doc(hidden)]
    pub fn with_tables(&self, most: u64) -> Result<Option<&Tabled>> {
        let inner = &self.inner;
        let parsed = self.parsed()?;
        let form = inner.tabled.get_or_init(|| {
            let (parsed, tables) = parsed.tabled(most)?;
            let mut kernel = Self::assemble(
                inner.file.clone(),
                inner.wgsl.clone(),
                inner.wgsl.clone(),
                inner.entry.clone(),
                inner.overrides.clone(),
                None,
            );
            if let Some(kernel) = Arc::get_mut(&mut kernel.inner) {
                kernel.is_reproducible = inner.is_reproducible;
                kernel.limit = inner.limit;
                kernel.is_tabled = true;
                kernel.textured.clone_from(&inner.textured);
                kernel.hash = inner.hash ^ inner.form() ^ kernel.form();
            }
            // Fresh cells: `set` cannot fail.
            let _ = kernel.inner.parsed.set(Ok(Arc::new(parsed)));
            Some(Tabled { kernel, tables })
        });
        Ok(form.as_ref())
    }

    /// Chooses the entry point.
    ///
    /// ```
    /// let text = "
    ///     override n: u32 = 64;
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(n) fn fill(@builtin(global_invocation_id) id: vec3u) { x[id.x] = n; }
    ///     @compute @workgroup_size(1) fn reset() { x[0] = 0u; }
    /// ";
    /// let kernel = cantus::Kernel::from_wgsl(text)?.with_entry_point("reset")?;
    /// assert_eq!(kernel.reflection()?.workgroup_size, [1, 1, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EntryPoint`] if no entry point has that name; the message lists those that exist.
    pub fn with_entry_point(&self, name: &str) -> Result<Self> {
        if self.inner.entry.as_deref() == Some(name) {
            return Ok(self.clone());
        }
        let available = self.entry_points()?;
        if !available.iter().any(|known| known == name) {
            return Err(Error::EntryPoint { wanted: Some(name.to_owned()), available });
        }
        if let [only] = available.as_slice()
            && self.inner.entry.is_none()
            && only == name
        {
            return Ok(self.clone());
        }
        Ok(self.changed(Some(name.to_owned()), self.inner.overrides.clone()))
    }

    /// Sets an override constant, by its name or its `@id`. Booleans are 0 and 1. A form that was compiled ahead stays valid if the override is one
    /// of its arguments.
    ///
    /// ```
    /// let text = "
    ///     override n: u32 = 64;
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(n) fn fill(@builtin(global_invocation_id) id: vec3u) { x[id.x] = n; }
    ///     @compute @workgroup_size(1) fn reset() { x[0] = 0u; }
    /// ";
    /// let kernel = cantus::Kernel::from_wgsl(text)?.with_entry_point("fill")?.with_override("n", 128)?;
    /// assert_eq!(kernel.reflection()?.workgroup_size, [128, 1, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Override`] if no override has that name, or the value does not fit its type.
    pub fn with_override(&self, name: &str, value: impl Into<f64>) -> Result<Self> {
        let value = value.into();
        let mut overrides = self.inner.overrides.clone();
        overrides.insert(name.to_owned(), value);
        let mut changed = self.changed(self.inner.entry.clone(), overrides);
        if let Some(kept) = self.inner.ahead.filter(|compiled| compiled.arguments.contains(&name)) {
            changed = changed.compiled_as(kept);
        }
        #[cfg(feature = "wgsl")]
        {
            changed.parsed()?.check_override(name, value)?;
            Ok(changed)
        }
        #[cfg(not(feature = "wgsl"))]
        {
            let known =
                self.reflection()?.overrides.iter().any(|known| known.name == name && known.value == Some(value));
            if known {
                return Ok(self.clone());
            }
            drop(changed);
            Err(Error::Override {
                name: name.to_owned(),
                reason: "this build has no WGSL front end (feature `wgsl`): a prepared kernel keeps its values"
                    .to_owned(),
            })
        }
    }

    /// Returns the names of the compute entry points.
    ///
    /// ```
    /// let text = "
    ///     override n: u32 = 64;
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(n) fn fill(@builtin(global_invocation_id) id: vec3u) { x[id.x] = n; }
    ///     @compute @workgroup_size(1) fn reset() { x[0] = 0u; }
    /// ";
    /// assert_eq!(cantus::Kernel::from_wgsl(text)?.entry_points()?, ["fill", "reset"]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the text of a prepared kernel does not parse.
    pub fn entry_points(&self) -> Result<Vec<String>> {
        if let Some(prepared) = &self.inner.prepared {
            return Ok(vec![prepared.reflection.entry_point.clone()]);
        }
        #[cfg(feature = "wgsl")]
        return Ok(self.parsed()?.entry_points());
        #[cfg(not(feature = "wgsl"))]
        Err(no_front_end(&self.inner.file))
    }

    /// Returns everything known about the chosen entry point: bindings, workgroup size, overrides, features.
    ///
    /// ```
    /// let text = "
    ///     override n: u32 = 64;
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(n) fn fill(@builtin(global_invocation_id) id: vec3u) { x[id.x] = n; }
    ///     @compute @workgroup_size(1) fn reset() { x[0] = 0u; }
    /// ";
    /// let kernel = cantus::Kernel::from_wgsl(text)?.with_entry_point("fill")?;
    /// let reflection = kernel.reflection()?;
    /// assert_eq!(reflection.bindings[0].layout.to_string(), "array<u32>");
    /// assert_eq!(reflection.overrides[0].value, Some(64.0));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EntryPoint`] when none is chosen, [`Error::Override`] when an override has no value,
    /// [`Error::InvalidWgsl`] when the kernel does not validate with its overrides.
    pub fn reflection(&self) -> Result<&Reflection> {
        let reflection = self.inner.reflection.get_or_init(|| {
            if let Some(prepared) = &self.inner.prepared {
                return Ok(prepared.reflection.clone());
            }
            #[cfg(feature = "wgsl")]
            return self.parsed()?.reflect(self.inner.entry.as_deref(), &self.inner.overrides);
            #[cfg(not(feature = "wgsl"))]
            Err(no_front_end(&self.inner.file))
        });
        reflection.as_ref().map_err(Clone::clone)
    }

    /// Returns the constructs that it needs from a driver, found once.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn needs(&self) -> Result<Needs> {
        self.demands().map(|demands| demands.needs)
    }

    /// Returns the measures of a driver's compile time: the statements of the entry point once every call is written out, and the numbers of its
    /// largest array of an invocation's own with a computed index, or the cases of its longest `switch`.
    ///
    /// # Errors
    /// As [`Kernel::reflection`].
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn extent(&self) -> Result<(u64, u64)> {
        self.demands().map(|demands| (demands.written_out, demands.longest))
    }

    /// Returns whether a loop of it hands the value of one local variable to another.
    #[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
    #[doc(hidden)]
    pub fn has_recurrence(&self) -> Result<bool> {
        Ok(recurrence::has_recurrence(&self.parsed()?.module))
    }

    /// Returns an estimate of the operations of one invocation. Loops count with their bounds if the text shows them, else with 256 iterations.
    ///
    /// # Errors
    /// As [`Kernel::reflection`].
    ///
    /// ```
    /// let kernel = |rounds: u32| cantus::Kernel::from_wgsl(&format!("@group(0) @binding(0) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(1) fn main() {{ for (var i = 0u; i < {rounds}u; i++) {{ y[i] = sqrt(f32(i)); }} }}"));
    /// assert!(kernel(1000)?.operations()? > 50 * kernel(10)?.operations()?);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[cfg(feature = "wgsl")]
    pub fn operations(&self) -> Result<u64> {
        self.demands().map(|demands| demands.operations)
    }

    #[cfg(feature = "wgsl")]
    fn demands(&self) -> Result<Demands> {
        if let Some(demands) = self.inner.demands.get() {
            return Ok(*demands);
        }
        let parsed = self.parsed()?;
        let demands = parsed.demands(self.inner.entry.as_deref(), &self.inner.overrides)?;
        Ok(*self.inner.demands.get_or_init(|| demands))
    }

    /// Returns the CPU executor's bytecode of the chosen entry point: prepared, or compiled now and kept.
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`] naming the construct that the executor does not run.
    pub fn program(&self) -> Result<&Arc<spmd::Bytecode>> {
        let program = self.inner.program.get_or_init(|| {
            if let Some(program) = self.inner.prepared.as_ref().and_then(|prepared| prepared.program.clone()) {
                return Ok(Arc::new(program));
            }
            #[cfg(feature = "wgsl")]
            {
                self.native()?.compile(self.inner.entry.as_deref(), &self.inner.overrides).map(Arc::new)
            }
            #[cfg(not(feature = "wgsl"))]
            Err(no_front_end(&self.inner.file))
        });
        program.as_ref().map_err(Clone::clone)
    }

    /// Returns the fingerprint of text, entry point and overrides, except those that are arguments of the compiled form.
    #[doc(hidden)]
    pub fn fingerprint(&self, arguments: &[&str]) -> Result<u64> {
        Ok(self.fingerprint_of(&self.reflection()?.entry_point, arguments))
    }

    /// Returns the fingerprint as [`Kernel::fingerprint`], for an entry point that is known: overrides need no value.
    #[doc(hidden)]
    pub fn fingerprint_of(&self, entry_point: &str, arguments: &[&str]) -> u64 {
        let fixed = self.inner.overrides.iter().filter(|(name, _)| !arguments.contains(&name.as_str()));
        let overrides = fixed.map(|(name, value)| (name.as_str(), *value));
        ahead::fingerprint(&self.inner.native_wgsl, entry_point, overrides)
    }

    /// Returns the kernel with a form that was compiled ahead from it: the CPU backend runs that in place of the executor.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when it was generated from another text, entry point or overrides.
    ///
    /// # Safety
    /// `compiled` must be the unchanged `KERNEL` of a module that `cantus_build::rust` wrote, because its code trusts the kernel it was generated for.
    /// The kernel must not have a data race: the executor would give some value, but code that rustc compiled has undefined behaviour.
    pub unsafe fn with_ahead(&self, compiled: &'static ahead::Compiled) -> Result<Self> {
        let fault = |reason: &str| Error::InvalidInput {
            what: format!("the compiled form of the kernel {}", self.name()),
            reason: format!("{reason} (generate it again)"),
        };
        if compiled.fingerprint != self.fingerprint(compiled.arguments)? {
            return Err(fault("it was generated from another text, entry point or overrides"));
        }
        let program = self.program()?;
        if !compiled.fits(program.workgroup_size(), program.bindings()) {
            return Err(fault("its bindings or its workgroup size differ"));
        }
        Ok(self.without_ahead().compiled_as(compiled))
    }

    /// The kernel, which nothing else holds yet, with a compiled form.
    fn compiled_as(mut self, compiled: &'static ahead::Compiled) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.ahead = Some(compiled);
        }
        self
    }

    /// Returns the values of overrides as a compiled form takes them.
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Override`] where one has no value.
    #[doc(hidden)]
    pub fn ahead_arguments(&self, names: &[&str]) -> Result<Vec<u32>> {
        let overrides = &self.reflection()?.overrides;
        let word = |name: &&str| {
            let known = overrides.iter().find(|known| known.name == *name);
            known.and_then(|known| Some(ahead::word(known.scalar, known.value?))).ok_or_else(|| Error::Override {
                name: (*name).to_owned(),
                reason: "the compiled form takes it, and it has no value".to_owned(),
            })
        };
        names.iter().map(word).try_listed()
    }

    /// Returns the kernel without its compiled form: the CPU backend runs its bytecode.
    #[must_use]
    pub fn without_ahead(&self) -> Self {
        self.changed(self.inner.entry.clone(), self.inner.overrides.clone())
    }

    /// Returns the form of [`Kernel::with_ahead`], if one was given.
    #[must_use]
    pub fn compiled_ahead(&self) -> Option<&'static ahead::Compiled> {
        self.inner.ahead
    }

    /// Returns the chosen entry point in a language of the C family.
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`] naming the construct that the language cannot express, with its place.
    #[cfg(feature = "translate")]
    pub fn translate(
        &self,
        dialect: translate::Dialect,
        options: &translate::Options,
    ) -> Result<translate::Translation> {
        self.native()?.translate(self.inner.entry.as_deref(), &self.inner.overrides, dialect, options)
    }

    /// Translates as [`Kernel::translate`], with another kernel in place of the entry point's body.
    #[cfg(feature = "_cuda_hip")]
    #[doc(hidden)]
    pub fn translate_frame(
        &self,
        dialect: translate::Dialect,
        options: &translate::Options,
        frame: &translate::Frame<'_>,
    ) -> Result<translate::Translation> {
        self.native()?.translated(
            self.inner.entry.as_deref(),
            &self.inner.overrides,
            dialect,
            |resolved, reflection| {
                let at = resolved.entry_point;
                translate::translate_frame(&resolved.module, &resolved.info, at, reflection, dialect, (options, frame))
            },
        )
    }

    /// Translates as [`Kernel::translate`], with the kernel folded for devices whose dimensions hold few workgroups: it reads the true counts from a
    /// uniform after its own bindings (see `fold`).
    #[cfg(feature = "_cuda_hip")]
    #[doc(hidden)]
    pub fn translate_folded(
        &self,
        dialect: translate::Dialect,
        options: &translate::Options,
    ) -> Result<translate::Translation> {
        let mut reflection = self.reflection()?.clone();
        let group = reflection.bindings.last().map_or(0, |last| last.group + 1);
        let folded = fold::fold_parsed(self, &*self.native()?, group, 0)?;
        let bytes = u32::try_from(fold::UNIFORM_BYTES).unwrap_or(0);
        let counts =
            Layout::Array { element: Box::new(Layout::Vector(4, Scalar::U32)), count: Some(bytes / 16), stride: 16 };
        reflection.bindings.push(Binding {
            name: "folded_counts".to_owned(),
            group,
            binding: 0,
            space: AddressSpace::Uniform,
            access: Access::Read,
            layout: counts,
        });
        translate::translate(&folded.module, &folded.info, 0, &reflection, dialect, options).map_err(|unsupported| {
            Error::Unsupported {
                kernel: reflection.entry_point.clone(),
                device: dialect.name().to_owned(),
                construct: unsupported.construct,
                report: String::new(),
            }
        })
    }

    /// Returns the module for devices whose builtins are accurate.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn native(&self) -> Result<Arc<wgsl::Parsed>> {
        if self.inner.native_wgsl == self.inner.wgsl {
            return self.parsed().cloned();
        }
        wgsl::Parsed::new(&front::File::named(&self.inner.file), &self.inner.native_wgsl).map(Arc::new)
    }

    /// Returns the plain WGSL that runs, imports linked.
    #[must_use]
    pub fn wgsl(&self) -> &str {
        &self.inner.wgsl
    }

    /// Returns the file name used in reports (`wgsl` for text without one).
    #[must_use]
    pub fn file(&self) -> &str {
        &self.inner.file
    }

    /// Returns the entry point that was asked for.
    #[doc(hidden)]
    pub fn wanted_entry_point(&self) -> Option<&str> {
        self.inner.entry.as_deref()
    }

    /// Returns the values set for override constants.
    #[must_use]
    pub fn overrides(&self) -> &BTreeMap<String, f64> {
        &self.inner.overrides
    }

    /// Returns the name for messages: the chosen entry point, or the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.reflection() {
            Ok(reflection) => &reflection.entry_point,
            Err(_) => &self.inner.file,
        }
    }

    /// Returns the name, shared: dispatches carry it.
    #[doc(hidden)]
    pub fn label(&self) -> Arc<str> {
        self.inner.label.get_or_init(|| self.name().into()).clone()
    }

    #[cfg(feature = "wgsl")]
    fn has_same_textures(&self, other: &Self) -> bool {
        self.inner.textured == other.inner.textured
    }

    #[cfg(not(feature = "wgsl"))]
    fn has_same_textures(&self, _: &Self) -> bool {
        true
    }

    /// It is a form for what textures are bound to.
    fn is_textured(&self) -> bool {
        #[cfg(feature = "wgsl")]
        return self.inner.textured.is_some();
        #[cfg(not(feature = "wgsl"))]
        false
    }

    /// Returns the text of a reproducible or limited form, overrides in force; `None` for other kernels, which are their text.
    #[cfg(all(feature = "wgsl", feature = "wgpu", target_arch = "wasm32"))]
    #[doc(hidden)]
    pub fn rewritten_wgsl(&self) -> Result<Option<String>> {
        if !self.inner.is_reproducible && self.inner.limit.is_none() && self.inner.textured.is_none() {
            return Ok(None);
        }
        let fault = |construct: String| Error::Unsupported {
            kernel: self.inner.file.to_string(),
            device: "WebGPU".to_owned(),
            construct,
            report: String::new(),
        };
        let resolved = self.parsed()?.resolve(Some(self.name()), &self.inner.overrides)?;
        let mut module = resolved.module.into_owned();
        amend::sizes::settle(&mut module);
        let info = wgsl::validator(naga::valid::Capabilities::all())
            .validate(&module)
            .map_err(|error| fault(error.emit_to_string("")))?;
        amend::wgsl(&module, &info).map(Some).map_err(fault)
    }

    /// Returns the parsed module.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn parsed(&self) -> Result<&Arc<wgsl::Parsed>> {
        let parsed = self
            .inner
            .parsed
            .get_or_init(|| wgsl::Parsed::new(&front::File::named(&self.inner.file), &self.inner.wgsl).map(Arc::new));
        parsed.as_ref().map_err(Clone::clone)
    }
}

/// Forms for textures that a kernel keeps.
#[cfg(feature = "wgsl")]
const KEPT_FORMS: usize = 16;

/// The target of a form for textures.
#[cfg(feature = "wgsl")]
#[derive(PartialEq)]
struct Textured {
    forms: textures::Forms,
    overrides: BTreeMap<String, f64>,
    /// The places of textures that are filterable and remain textures, and of samplers that filter.
    filtering: Vec<(u32, u32)>,
}

/// The result of [`Kernel::with_loop_limit`].
#[cfg(feature = "wgsl")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoopLimit {
    /// The kernel whose loops end, or the kernel itself if nothing is counted.
    pub kernel: Kernel,
    /// The counted loops, each with its first place in the text.
    pub loops: Vec<error::SourcePlace>,
}

/// The result of [`Kernel::with_tables`].
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub struct Tabled {
    pub kernel: Kernel,
    /// The names of the bindings, and their contents.
    pub tables: Vec<(String, Vec<u8>)>,
}

impl Inner {
    /// Returns the part of a kernel's hash that a rewritten form adds.
    fn form(&self) -> u64 {
        let limit = self.limit.map_or(0, |rounds| 2 | u64::from(rounds) << 3);
        u64::from(self.is_reproducible) | limit | u64::from(self.is_tabled) << 2
    }
}

#[cfg(not(feature = "wgsl"))]
fn no_front_end(file: &str) -> Error {
    Error::Unsupported {
        kernel: file.to_owned(),
        device: "this build".to_owned(),
        construct: "it has no WGSL front end: build with the feature `wgsl`, or use a prepared kernel".to_owned(),
        report: String::new(),
    }
}

/// Two kernels are equal when text, entry point, overrides and compiled form are.
impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || (self.inner.hash == other.inner.hash
                && self.inner.wgsl == other.inner.wgsl
                && self.inner.native_wgsl == other.inner.native_wgsl
                && self.inner.is_reproducible == other.inner.is_reproducible
                && self.inner.limit == other.inner.limit
                && self.inner.is_tabled == other.inner.is_tabled
                && self.has_same_textures(other)
                && self.inner.entry == other.inner.entry
                && self.inner.overrides == other.inner.overrides
                && self.inner.ahead.map(std::ptr::from_ref) == other.inner.ahead.map(std::ptr::from_ref))
    }
}

/// Override values are never NaN (checked when set), so equality is reflexive.
impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash.hash(state);
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("file", &self.inner.file)
            .field("entry", &self.inner.entry)
            .field("overrides", &self.inner.overrides)
            .finish_non_exhaustive()
    }
}
