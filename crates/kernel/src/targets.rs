//! Products of a kernel for devices: demands on a driver, bytecode, source of the C family, Rust that was compiled ahead.

use std::sync::Arc;

#[cfg(feature = "_cuda_hip")]
use super::fold;
use super::{Choice, Kernel};
#[cfg(feature = "wgsl")]
use super::{
    needs::{Demands, Needs},
    resolved::Resolved,
};
use crate::ahead;
use crate::error::{Error, OverrideError, Result};
#[cfg(feature = "_cuda_hip")]
use crate::reflection::{Access, AddressSpace, Binding, Layout, Scalar};
use crate::spmd;
#[cfg(feature = "translate")]
use crate::translate;
use cantus_base::listed::Listed;

impl Kernel {
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
        Ok(super::recurrence::has_recurrence(&self.parsed()?.module))
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
    fn demands(&self) -> Result<&Demands> {
        let demands = self.inner.known.demands.get_or_init(|| self.resolved().map(Resolved::demands));
        demands.as_ref().map_err(Clone::clone)
    }

    /// Returns the CPU executor's bytecode of the chosen entry point: prepared, or compiled now and kept.
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`] naming the construct that the executor does not run.
    pub fn program(&self) -> Result<&Arc<spmd::Bytecode>> {
        let program = self.inner.known.program.get_or_init(|| {
            if let Some(program) = self.inner.prepared.as_ref().and_then(|prepared| prepared.program.clone()) {
                return Ok(Arc::new(program));
            }
            #[cfg(feature = "wgsl")]
            return self.native_resolved()?.compile().map(Arc::new);
            #[cfg(not(feature = "wgsl"))]
            Err(super::no_front_end(self.file()))
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
        let fixed = self.overrides().iter().filter(|(name, _)| !arguments.contains(&name.as_str()));
        let overrides = fixed.map(|(name, value)| (name.as_str(), *value));
        ahead::fingerprint(&self.inner.text.native_wgsl, entry_point, overrides)
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
        let fault = |reason: &str| {
            Error::invalid(
                format!("the compiled form of the kernel {}", self.name()),
                format!("{reason} (generate it again)"),
            )
        };
        if compiled.fingerprint != self.fingerprint(compiled.arguments)? {
            return Err(fault("it was generated from another text, entry point or overrides"));
        }
        let program = self.program()?;
        if !compiled.fits(program.workgroup_size(), program.bindings()) {
            return Err(fault("its bindings or its workgroup size differ"));
        }
        Ok(self.chosen(Choice { ahead: Some(compiled), ..self.inner.choice.clone() }))
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
                fault: OverrideError::Unset("the compiled form takes it, and it has no value".to_owned()),
            })
        };
        names.iter().map(word).try_listed()
    }

    /// Returns the kernel without its compiled form: the CPU backend runs its bytecode.
    #[must_use]
    pub fn without_ahead(&self) -> Self {
        self.chosen(Choice { ahead: None, ..self.inner.choice.clone() })
    }

    /// Returns the form of [`Kernel::with_ahead`], if one was given.
    #[must_use]
    pub fn compiled_ahead(&self) -> Option<&'static ahead::Compiled> {
        self.inner.choice.ahead
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
        self.native_resolved()?.translate(dialect, |resolved, reflection| {
            let (module, info) = (resolved.module(), resolved.info());
            translate::translate(module, info, resolved.entry_point(), reflection, dialect, options)
        })
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
        self.native_resolved()?.translate(dialect, |resolved, reflection| {
            let (module, info) = (resolved.module(), resolved.info());
            translate::translate_frame(module, info, resolved.entry_point(), reflection, dialect, (options, frame))
        })
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
        let folded = fold::fold_resolved(self.native_resolved()?, group, 0)?;
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
}
