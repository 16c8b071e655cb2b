//! The kernels that come with the library: written in `shaders/`, linked and prepared by `cargo xtask prepare`.

use std::sync::OnceLock;

#[cfg(feature = "ahead")]
use cantus_cpu_kernels::Compiled;

use crate::error::Result;
use cantus_kernel::Kernel;

/// A kernel that comes with the library.
#[derive(Debug)]
pub struct ShippedKernel {
    name: &'static str,
    family: &'static str,
    prepared: &'static [u8],
    #[cfg(feature = "ahead")]
    compiled: &'static Compiled,
    kernel: OnceLock<Result<Kernel>>,
}

impl ShippedKernel {
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
    /// [`crate::error::Error::InvalidFile`] when the prepared or the compiled form is of another version of the library.
    pub fn kernel(&self) -> Result<&Kernel> {
        self.kernel.get_or_init(|| self.read()).as_ref().map_err(Clone::clone)
    }

    fn read(&self) -> Result<Kernel> {
        let kernel = Kernel::from_prepared(self.prepared)?;
        // SAFETY: the generator wrote it from this kernel's text, and no two invocations of these kernels write the same element.
        #[cfg(feature = "ahead")]
        let kernel = unsafe { kernel.with_ahead(self.compiled) }?;
        Ok(kernel)
    }
}

macro_rules! shipped {
    ($($constant:ident = $family:literal / $name:ident, $prepared:ident;)*) => {
        $(pub(crate) static $constant: ShippedKernel = ShippedKernel {
            name: stringify!($name),
            family: $family,
            prepared: cantus_shaders::prepared::$prepared,
            #[cfg(feature = "ahead")]
            compiled: &cantus_cpu_kernels::$name::KERNEL,
            kernel: OnceLock::new(),
        };)*

        /// Every shipped kernel, by family and name.
        ///
        /// ```
        /// let field = cantus::ops::kernels().iter().find(|kernel| kernel.name() == "field").expect("it is shipped");
        /// assert_eq!((field.family(), field.kernel()?.reflection()?.entry_point.as_str()), ("field", "field"));
        /// # Ok::<_, cantus::Error>(())
        /// ```
        #[must_use]
        pub fn kernels() -> &'static [&'static ShippedKernel] {
            static ALL: &[&ShippedKernel] = &[$(&$constant),*];
            ALL
        }
    };
}

shipped! {
    FIELD = "field" / field, FIELD_KERNEL;
    PHI_PATTERN = "field" / phi_pattern, PHI_PATTERN_KERNEL;
    COHERENCE_MOMENTS = "field" / coherence_moments, COHERENCE_MOMENTS_KERNEL;
    COHERENCE_NEIGHBOUR_SUM = "field" / coherence_neighbour_sum, COHERENCE_NEIGHBOUR_SUM_KERNEL;
}
