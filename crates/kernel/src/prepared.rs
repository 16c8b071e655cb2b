//! Kernels prepared ahead: linked WGSL, reflection and CPU bytecode as one block of bytes, so that a build without naga runs them. `cargo xtask prepare`
//! writes the blocks of shipped kernels; apps may keep their own. The bytes may come from anywhere: a checksum finds damage, `nonsense` and the bytecode's
//! own check find malice. The text in the block is believed by devices that compile it. Another version of the format is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Choice, Kernel, Reflection, Text};
use crate::error::{Error, Result};
use crate::spmd;
use cantus_base::fnv::fnv;

/// Version of the format; another version is refused.
pub const PREPARED_VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"cantus\0k";

/// The place of the checksum of what follows it: behind the magic and the version.
const SUM: std::ops::Range<usize> = 12..20;

/// Writes the checksum that fits the bytes: of a kernel that is being prepared, or of one that a test has changed.
#[doc(hidden)]
pub fn seal(bytes: &mut [u8]) {
    let sum = bytes.get(SUM.end..).map(fnv);
    if let (Some(sum), Some(place)) = (sum, bytes.get_mut(SUM)) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Prepared {
    pub(super) file: String,
    pub(super) wgsl: String,
    /// `None` when it is the same as `wgsl`.
    pub(super) native_wgsl: Option<String>,
    pub(super) reflection: Reflection,
    pub(super) overrides: BTreeMap<String, f64>,
    pub(super) program: Option<spmd::Bytecode>,
}

/// Finds an inconsistency in data from outside: the text is believed for devices that compile it, the rest for what is bound and run.
fn nonsense(prepared: &Prepared) -> Option<&'static str> {
    let reflection = &prepared.reflection;
    let place = |binding: &super::Binding| (binding.group, binding.binding);
    if !reflection.bindings.iter().all(|binding| binding.layout.is_sound()) {
        return Some("the layout of a binding");
    }
    if !reflection.bindings.is_sorted_by(|a, b| place(a) < place(b)) {
        return Some("the order of its bindings");
    }
    if reflection.workgroup_size.contains(&0) {
        return Some("the size of its workgroup");
    }
    if prepared.overrides.values().any(|value| value.is_nan()) {
        return Some("an override");
    }
    let program = prepared.program.as_ref()?;
    let is_known = |wanted: &spmd::BindingInfo| {
        reflection.bindings.iter().any(|known| {
            place(known) == (wanted.group, wanted.binding)
                && (!wanted.writable || known.access == super::Access::ReadWrite)
                && wanted.min_bytes <= known.layout.min_bytes()
        })
    };
    let count = |size: [u32; 3]| size.iter().fold(1, |count: u64, &side| count.saturating_mul(side.into()));
    // Those of several dimensions may have been laid out in a row.
    if count(program.workgroup_size()) != count(reflection.workgroup_size) || !program.bindings().iter().all(is_known) {
        return Some("its bytecode is that of another kernel");
    }
    None
}

impl Kernel {
    /// Reads a prepared kernel.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] when the bytes are not a prepared kernel of this version.
    pub fn from_prepared(bytes: &[u8]) -> Result<Self> {
        let fault = |reason: &str| Error::file("prepared kernel", reason);
        let rest = bytes
            .strip_prefix(&MAGIC)
            .ok_or_else(|| fault("the bytes do not start like one (made by cargo xtask prepare)"))?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or_else(|| fault("it is cut short"))?;
        if u32::from_le_bytes(*version) != PREPARED_VERSION {
            return Err(fault("it was made by another version (make it again: cargo xtask prepare)"));
        }
        let (sum, rest) = rest.split_first_chunk::<8>().ok_or_else(|| fault("it is cut short"))?;
        // It finds damage, not malice: the checks below bear both.
        if u64::from_le_bytes(*sum) != fnv(rest) {
            return Err(fault("it is damaged: its checksum is of other bytes (make it again: cargo xtask prepare)"));
        }
        let mut prepared: Prepared =
            postcard::from_bytes(rest).map_err(|error| fault(&format!("it is damaged: {error}")))?;
        if let Some(program) = &prepared.program {
            program.check().map_err(|reason| fault(&format!("its bytecode is damaged: {reason}")))?;
        }
        if let Some(reason) = nonsense(&prepared) {
            return Err(fault(&format!("it is damaged: {reason}")));
        }
        let wgsl: Arc<str> = std::mem::take(&mut prepared.wgsl).into();
        let native_wgsl = match prepared.native_wgsl.take() {
            Some(text) => text.into(),
            None => wgsl.clone(),
        };
        let file: Arc<str> = prepared.file.as_str().into();
        let entry = Some(prepared.reflection.entry_point.clone());
        let choice = Choice { entry, overrides: prepared.overrides.clone(), ahead: None };
        Ok(Self::of(Arc::new(Text::new(file, wgsl, native_wgsl)), choice, Some(Arc::new(prepared))))
    }

    /// Prepares the kernel: the bytes that [`Kernel::from_prepared`] reads.
    ///
    /// ```
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(1) fn one() { x[0] = 1u; }
    /// ")?;
    /// let bytes = kernel.prepare()?; // to be kept with the app, which needs no naga then
    /// assert_eq!(cantus::Kernel::from_prepared(&bytes)?.name(), "one");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`] for a kernel with textures: what it becomes depends on what is bound. A kernel that
    /// the CPU executor cannot run is prepared without bytecode.
    pub fn prepare(&self) -> Result<Vec<u8>> {
        let text = &self.inner.text;
        let reflection = self.reflection()?;
        #[cfg(feature = "wgsl")]
        let is_textured = text.changes.textured.is_some();
        #[cfg(not(feature = "wgsl"))]
        let is_textured = false;
        if is_textured || !reflection.textures.is_empty() || !reflection.samplers.is_empty() {
            return Err(Error::Unsupported {
                kernel: self.name().to_owned(),
                device: "prepared kernels".to_owned(),
                construct: "textures and samplers: keep its WGSL".to_owned(),
                report: String::new(),
            });
        }
        let prepared = Prepared {
            file: text.file.to_string(),
            wgsl: text.wgsl.to_string(),
            native_wgsl: (text.native_wgsl != text.wgsl).then(|| text.native_wgsl.to_string()),
            reflection: reflection.clone(),
            overrides: self.overrides().clone(),
            program: self.program().ok().map(|program| (**program).clone()),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&PREPARED_VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let mut bytes = postcard::to_extend(&prepared, bytes).map_err(|error| {
            Error::invalid(format!("the kernel {}", self.name()), format!("it cannot be serialised: {error}"))
        })?;
        seal(&mut bytes);
        Ok(bytes)
    }

    /// Creates a kernel with a second text for executors whose own sin, exp and atan2 are accurate (the CPU): the same bindings and
    /// entry point, builtins in place of polynomials.
    ///
    /// # Errors
    /// As [`Kernel::from_wgsl`], and when the two texts differ in bindings or workgroup size.
    #[cfg(feature = "wgsl")]
    pub fn from_wgsl_pair(file: &str, wgsl: &str, native_wgsl: &str) -> Result<Self> {
        let portable = Self::from_named_wgsl(file, wgsl)?;
        let native = Self::from_named_wgsl(file, native_wgsl)?;
        if portable.reflection()? != native.reflection()? {
            return Err(Error::invalid(
                format!("the kernel {file}"),
                "its two texts differ in bindings, overrides or workgroup size",
            ));
        }
        let entry = Some(portable.reflection()?.entry_point.clone());
        let text = Text::new(file.into(), wgsl.into(), native_wgsl.into());
        Ok(Self::of(Arc::new(text), Choice { entry, ..Choice::default() }, None))
    }
}
