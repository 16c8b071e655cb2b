//! Kernels: validates, reflects and prepares WGSL. Runs nothing.
//!
//! naga does the parsing, behind the feature `wgsl`, and appears in no public type. Without the feature, prepared kernels ([`Kernel::from_prepared`]) still
//! run.
//!
//! # How a text becomes ready
//! 1. `Kernel::from_wgsl` keeps the text, and parses it once: the front end reads it before naga (`front`), naga parses it, `amend` corrects naga's
//!    module, naga's validator checks it (`wgsl.rs`, `Parsed`).
//! 2. `Kernel::resolved` has the chosen entry point with its overrides in force (`Resolved`), found once.
//! 3. `Kernel::reflection` gives bindings, layouts and overrides of it as plain data.
//! 4. A backend asks for the form that its device takes: bytecode (`Kernel::program`), naga's module (`Kernel::resolved`), source of the C family
//!    (`Kernel::translate`), Rust compiled ahead (`Kernel::compiled_ahead`).
//!
//! # What carries it
//! A `Kernel` is a `Text` and a `Choice`. The `Text` has the modules, and is shared by all kernels of one text. The `Choice` is the entry point, the
//! overrides and the form that was compiled ahead. Everything else about a kernel follows from the two, and is found once (`Known`).
//!
//! # Forms
//! A form is a `Kernel` of its own: a `Text` with another module, and the `Changes` that made it. All are made on request, validated once, and kept in the
//! kernel that they were made from.
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
//! - A kernel is immutable. `with_entry_point` and `with_override` give another one, which shares the text.
//! - Equal kernels have equal texts, changes and choices, so devices keep their programs by kernel.
//! - Each module is validated once: a text's, a form's, and the one in which overrides are in force. `capabilities` reads the features off the module.
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
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod capabilities;
#[cfg(all(feature = "wgsl", any(feature = "_gpu", feature = "_cuda_hip")))]
#[doc(hidden)]
pub mod fold;
#[cfg(feature = "wgsl")]
mod forms;
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
mod resolved;
#[cfg(feature = "wgsl")]
mod rounds;
#[cfg(any(
    feature = "writers",
    all(any(feature = "vulkan", feature = "wgpu"), feature = "wgsl", not(target_arch = "wasm32"))
))]
#[doc(hidden)]
pub mod spirv;
mod targets;
mod text;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod textures;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub mod wgsl;
#[cfg(feature = "writers")]
mod write;

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
pub use forms::LoopLimit;
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub use forms::Tabled;
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
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use resolved::Resolved;
use text::Text;
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
    text: Arc<Text>,
    choice: Choice,
    /// Of text and choice.
    hash: u64,
    prepared: Option<Arc<prepared::Prepared>>,
    known: Known,
}

/// The entry point of a text, and what is set for it.
#[derive(Clone, Default)]
struct Choice {
    entry: Option<String>,
    overrides: BTreeMap<String, f64>,
    /// The form compiled ahead from this text, entry point and overrides.
    ahead: Option<&'static ahead::Compiled>,
}

/// Facts that follow from text and choice, each found when it is first asked for.
#[derive(Default)]
struct Known {
    #[cfg(feature = "wgsl")]
    resolved: OnceLock<Result<Resolved>>,
    /// The one of the text for executors, if that differs.
    #[cfg(feature = "wgsl")]
    native: OnceLock<Result<Resolved>>,
    reflection: OnceLock<Result<Reflection>>,
    program: OnceLock<Result<Arc<spmd::Bytecode>>>,
    label: OnceLock<Arc<str>>,
    #[cfg(feature = "wgsl")]
    demands: OnceLock<Result<Demands>>,
    /// The textures and samplers that are used together.
    #[cfg(feature = "wgsl")]
    sampled: OnceLock<Result<Vec<(usize, usize)>>>,
    #[cfg(feature = "wgsl")]
    forms: forms::Known,
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
        other => Error::file("a kernel's package", other.to_string()),
    }
}

impl Kernel {
    /// The uniform that the engine sets for a reproducible form.
    #[doc(hidden)]
    pub const ZERO: &'static str = "cantus_zero";

    /// The uniform that the engine sets for a form with buffers in place of textures: their sizes, and the samplers'
    /// levels.
    #[doc(hidden)]
    pub const TEXTURES: &'static str = "cantus_textures";

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
        Ok(Self::of(Arc::new(Text::parse(&front::File::named(file), text.into())?), Choice::default(), None))
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
    /// [`Error::Unreadable`] for files, [`Error::InvalidFile`] for a `wesl.toml`, else as [`Kernel::linked`].
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
        let named = front::File { name: linked.file().to_owned(), origins: Some(linked.origins().clone()) };
        Ok(Self::of(Arc::new(Text::parse(&named, linked.text().clone())?), Choice::default(), None))
    }

    fn of(text: Arc<Text>, choice: Choice, prepared: Option<Arc<prepared::Prepared>>) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        text.hash(&mut hasher);
        choice.hash(&mut hasher);
        let hash = hasher.finish();
        Self { inner: Arc::new(Inner { text, choice, hash, prepared, known: Known::default() }) }
    }

    /// The same text with another choice.
    fn chosen(&self, choice: Choice) -> Self {
        let inner = &self.inner;
        // Prepared reflection and bytecode hold for the values they were prepared with only.
        let is_same = choice.entry == inner.choice.entry && choice.overrides == inner.choice.overrides;
        Self::of(inner.text.clone(), choice, inner.prepared.clone().filter(|_| is_same))
    }

    /// Another form of the text, with this kernel's choice. What was compiled ahead is not of that form.
    #[cfg(feature = "wgsl")]
    fn in_form(&self, text: Arc<Text>) -> Self {
        Self::of(text, Choice { ahead: None, ..self.inner.choice.clone() }, None)
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
        let chosen = &self.inner.choice;
        if chosen.entry.as_deref() == Some(name) {
            return Ok(self.clone());
        }
        let available = self.entry_points()?;
        if !available.iter().any(|known| known == name) {
            return Err(Error::EntryPoint { wanted: Some(name.to_owned()), available });
        }
        if let [only] = available.as_slice()
            && chosen.entry.is_none()
            && only == name
        {
            return Ok(self.clone());
        }
        Ok(self.chosen(Choice { entry: Some(name.to_owned()), ahead: None, ..chosen.clone() }))
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
        #[cfg(feature = "wgsl")]
        {
            self.parsed()?.check_override(name, value)?;
            let mut choice = self.inner.choice.clone();
            choice.overrides.insert(name.to_owned(), value);
            choice.ahead = choice.ahead.filter(|compiled| compiled.arguments.contains(&name));
            Ok(self.chosen(choice))
        }
        #[cfg(not(feature = "wgsl"))]
        {
            let known =
                self.reflection()?.overrides.iter().any(|known| known.name == name && known.value == Some(value));
            if known {
                return Ok(self.clone());
            }
            Err(Error::Override {
                name: name.to_owned(),
                fault: error::OverrideError::Value(
                    "this build has no WGSL front end (feature `wgsl`): a prepared kernel keeps its values".to_owned(),
                ),
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
        Err(no_front_end(self.file()))
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
        let reflection = self.inner.known.reflection.get_or_init(|| {
            if let Some(prepared) = &self.inner.prepared {
                return Ok(prepared.reflection.clone());
            }
            #[cfg(feature = "wgsl")]
            return self.resolved()?.reflect();
            #[cfg(not(feature = "wgsl"))]
            Err(no_front_end(self.file()))
        });
        reflection.as_ref().map_err(Clone::clone)
    }

    /// Returns whether the texture of the device's own API at that place is filterable, or the sampler there filters: WebGPU's layouts tell them
    /// apart.
    #[doc(hidden)]
    #[must_use]
    pub fn is_filtering(&self, group: u32, binding: u32) -> bool {
        #[cfg(feature = "wgsl")]
        return self
            .inner
            .text
            .changes
            .textured
            .as_ref()
            .is_some_and(|form| form.filtering.contains(&(group, binding)));
        #[cfg(not(feature = "wgsl"))]
        {
            let _ = (group, binding);
            false
        }
    }

    /// Returns the plain WGSL that runs, imports linked.
    #[must_use]
    pub fn wgsl(&self) -> &str {
        &self.inner.text.wgsl
    }

    /// Returns the file name used in reports (`wgsl` for text without one).
    #[must_use]
    pub fn file(&self) -> &str {
        &self.inner.text.file
    }

    /// Returns the entry point that was asked for.
    #[doc(hidden)]
    pub fn wanted_entry_point(&self) -> Option<&str> {
        self.inner.choice.entry.as_deref()
    }

    /// Returns the values set for override constants.
    #[must_use]
    pub fn overrides(&self) -> &BTreeMap<String, f64> {
        &self.inner.choice.overrides
    }

    /// Returns the name for messages: the chosen entry point, or the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.reflection() {
            Ok(reflection) => &reflection.entry_point,
            Err(_) => self.file(),
        }
    }

    /// Returns the name, shared: dispatches carry it.
    #[doc(hidden)]
    pub fn label(&self) -> Arc<str> {
        self.inner.known.label.get_or_init(|| self.name().into()).clone()
    }

    /// Returns the parsed module.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`] when a prepared kernel's text does not parse.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn parsed(&self) -> Result<&Arc<wgsl::Parsed>> {
        self.inner.text.parsed()
    }

    /// Returns the parsed module of the text for devices whose builtins are accurate.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn native(&self) -> Result<&Arc<wgsl::Parsed>> {
        self.inner.text.native()
    }

    /// Returns the entry point with its overrides in force.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn resolved(&self) -> Result<&Resolved> {
        let choice = &self.inner.choice;
        let resolve = || Resolved::new(self.parsed()?, choice.entry.as_deref(), &choice.overrides);
        self.inner.known.resolved.get_or_init(resolve).as_ref().map_err(Clone::clone)
    }

    /// Returns the entry point of the text for devices whose builtins are accurate.
    #[cfg(feature = "wgsl")]
    fn native_resolved(&self) -> Result<&Resolved> {
        let (text, choice) = (&self.inner.text, &self.inner.choice);
        if text.native_wgsl == text.wgsl {
            return self.resolved();
        }
        let resolve = || Resolved::new(text.native()?, choice.entry.as_deref(), &choice.overrides);
        self.inner.known.native.get_or_init(resolve).as_ref().map_err(Clone::clone)
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
        let (ours, theirs) = (&*self.inner, &*other.inner);
        std::ptr::eq(ours, theirs)
            || (ours.hash == theirs.hash
                && ours.choice == theirs.choice
                && (Arc::ptr_eq(&ours.text, &theirs.text) || ours.text == theirs.text))
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
            && self.overrides == other.overrides
            && self.ahead.map(std::ptr::from_ref) == other.ahead.map(std::ptr::from_ref)
    }
}

impl Hash for Choice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entry.hash(state);
        hash_overrides(&self.overrides, state);
    }
}

fn hash_overrides(overrides: &BTreeMap<String, f64>, state: &mut impl Hasher) {
    overrides.iter().for_each(|(name, value)| (name, value.to_bits()).hash(state));
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
            .field("file", &self.inner.text.file)
            .field("entry", &self.inner.choice.entry)
            .field("overrides", &self.inner.choice.overrides)
            .finish_non_exhaustive()
    }
}
