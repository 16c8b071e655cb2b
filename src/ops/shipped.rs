//! The kernels that come with the library: written in `shaders/`, linked and prepared by `cargo xtask prepare`.

use std::sync::OnceLock;

use crate::error::Result;
use crate::kernel::Kernel;

/// A kernel that comes with the library.
#[derive(Debug)]
pub struct ShippedKernel {
    name: &'static str,
    family: &'static str,
    prepared: &'static [u8],
    kernel: OnceLock<Result<Kernel>>,
}

impl ShippedKernel {
    const fn new(family: &'static str, name: &'static str, prepared: &'static [u8]) -> Self {
        Self { name, family, prepared, kernel: OnceLock::new() }
    }

    /// The name: of its file, its entry point, and its row in tests and benches.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The folder in `shaders/`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// The kernel, read from its prepared form once.
    ///
    /// # Errors
    /// [`crate::Error::InvalidInput`] when the prepared form is of another version of the library.
    pub fn kernel(&self) -> Result<&Kernel> {
        let kernel = self.kernel.get_or_init(|| {
            let kernel = Kernel::from_prepared(self.prepared)?;
            // A form of another text is as good as none: `cargo xtask ahead --check` finds it.
            Ok(match super::ahead::compiled(self.name) {
                // SAFETY: `cargo xtask ahead` wrote it; shipped kernels have no data race.
                Ok(compiled) => unsafe { kernel.with_ahead(compiled) }.unwrap_or(kernel),
                Err(_) => kernel,
            })
        });
        kernel.as_ref().map_err(Clone::clone)
    }

    /// What the CPU backend runs in place of the executor.
    ///
    /// # Errors
    /// Why there is nothing: the construct that the generator does not take.
    pub fn ahead(&self) -> std::result::Result<&'static crate::ahead::Compiled, String> {
        let compiled = super::ahead::compiled(self.name).map_err(str::to_owned)?;
        match self.kernel().map(Kernel::compiled_ahead) {
            Ok(Some(_)) => Ok(compiled),
            _ => Err("it was generated from another text (cargo xtask ahead)".to_owned()),
        }
    }
}

macro_rules! shipped {
    ($($constant:ident = $family:literal / $name:literal;)*) => {
        $(pub(super) static $constant: ShippedKernel =
            ShippedKernel::new($family, $name, include_bytes!(concat!("prepared/", $name, ".kernel")));)*

        /// Every shipped kernel, by family and name.
        #[must_use]
        pub fn kernels() -> &'static [&'static ShippedKernel] {
            static ALL: &[&ShippedKernel] = &[$(&$constant),*];
            ALL
        }
    };
}

shipped! {
    FIELD = "field" / "field";
    PHI_PATTERN = "field" / "phi_pattern";
    COHERENCE_MEAN = "field" / "coherence_mean";
    COHERENCE_DEVIATION = "field" / "coherence_deviation";
    COHERENCE_NEIGHBOUR_SUM = "field" / "coherence_neighbour_sum";
}

/// A kernel with the form that was compiled ahead from its text, if one was.
#[cfg(feature = "wgsl")]
pub(super) fn with_compiled(kernel: Kernel) -> Kernel {
    let Ok(fingerprint) = kernel.fingerprint(&[]) else { return kernel };
    let compiled = super::ahead::TEXTS.iter().find(|compiled| compiled.fingerprint == fingerprint);
    match compiled {
        // SAFETY: `cargo xtask ahead` wrote it; the kernels of operations have no data race.
        Some(compiled) => unsafe { kernel.with_ahead(compiled) }.unwrap_or(kernel),
        None => kernel,
    }
}
