//! A kernel, translated and built. The form that takes a uniform from a buffer is built when it is needed.

use std::sync::{Arc, Mutex, OnceLock};

use opencl3::kernel::Kernel as ClKernel;
use opencl3::program::Program as ClProgram;

use super::shared::Shared;
use crate::backend::{Program, needs};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel, Reflection};
use crate::translate::{Argument, Dialect, Options, Translation};

/// Nothing that changes a result: no fast maths, denormals as they are.
const BUILD_OPTIONS: &str = "-cl-std=CL1.2";
/// Options for Intel's processors. The vectoriser of their compiler (2026.22) overflows the stack, which ends the process, if a loop passes the
/// value of one variable to another. `CL_CONFIG_USE_VECTORIZER=False` would disable it for the whole process; no kernel attribute disables it.
const UNOPTIMISED: &str = "-cl-std=CL1.2 -cl-opt-disable";

/// A built kernel, and how it is called.
pub(super) struct Form {
    /// Arguments are set on the kernel itself: one launch at a time.
    pub(super) kernel: Mutex<ClKernel>,
    pub(super) arguments: Vec<Argument>,
    /// Keeps the code.
    _program: ClProgram,
}

/// A compiled kernel.
pub(super) struct OpenClProgram {
    pub(super) shared: Arc<Shared>,
    pub(super) reflection: Reflection,
    kernel: Kernel,
    /// Forms, by whether uniforms are passed by value.
    forms: [OnceLock<Result<Form>>; 2],
}

impl Program for OpenClProgram {}

impl OpenClProgram {
    /// Translates and builds the form that most dispatches use.
    pub(super) fn new(shared: &Arc<Shared>, kernel: &Kernel) -> Result<Self> {
        shared.health.check()?;
        let reflection = kernel.reflection()?.clone();
        let program = Self { shared: shared.clone(), reflection, kernel: kernel.clone(), forms: Default::default() };
        program.check_needs()?;
        program.form(program.by_value_fits())?;
        Ok(program)
    }

    fn check_needs(&self) -> Result<()> {
        let info = &self.shared.info;
        needs::check(&self.reflection, info, &[]).or_else(|error| {
            if !self.reflection.features.missing_from(info.capabilities.features).is_empty() {
                // The translation names the place in the source.
                self.translate(true)?;
            }
            Err(error)
        })
    }

    fn unsupported(&self, construct: String, report: String) -> Error {
        needs::unsupported(&self.reflection, &self.shared.info, construct, report)
    }

    /// Uniforms and handles all fit into the arguments of a launch.
    pub(super) fn by_value_fits(&self) -> bool {
        let each = self.reflection.bindings.iter().map(|binding| match binding.space {
            AddressSpace::Uniform => binding.layout.min_bytes() + 16,
            AddressSpace::Storage => 16,
        });
        each.sum::<u64>() <= self.shared.argument_bytes as u64
    }

    /// A form of the kernel, built now if it was not yet.
    pub(super) fn form(&self, by_value: bool) -> Result<&Form> {
        let cell = &self.forms[usize::from(by_value)];
        cell.get_or_init(|| self.make(by_value)).as_ref().map_err(Clone::clone)
    }

    fn translate(&self, by_value: bool) -> Result<Translation> {
        let options = Options::new().bound_loops(true).uniforms_by_value(by_value).opencl(self.shared.features);
        self.kernel.translate(Dialect::OpenCl, &options)
    }

    fn make(&self, by_value: bool) -> Result<Form> {
        let translation = self.translate(by_value)?;
        let program = self.build(&translation)?;
        let action = format!("loading {}", self.reflection.entry_point);
        let kernel =
            ClKernel::create(&program, &translation.entry).map_err(|error| self.shared.error(error.0, &action))?;
        let device = self.shared.context.default_device();
        if let Ok(most) = kernel.get_work_group_size(device)
            && (most as u64) < self.reflection.invocations()
        {
            let invocations = self.reflection.invocations();
            let construct = format!("a workgroup of it holds {most} invocations there, and it has {invocations}");
            return Err(self.unsupported(construct, String::new()));
        }
        Ok(Form { kernel: Mutex::new(kernel), arguments: translation.arguments, _program: program })
    }

    /// Code from the cache or the compiler.
    fn build(&self, translation: &Translation) -> Result<ClProgram> {
        let shared = &self.shared;
        let context = &shared.context;
        let unoptimised = shared.is_intels_processor && self.kernel.has_recurrence()?;
        let options = if unoptimised { UNOPTIMISED } else { BUILD_OPTIONS };
        let key = shared.cache.key(&[&translation.source, options, &shared.info.name, &shared.info.driver]);
        if let Some(code) = shared.cache.get(&key) {
            // Code that the driver no longer takes is built again.
            match ClProgram::create_and_build_from_binary(context, &[&code], options) {
                Ok(program) => return Ok(program),
                Err(error) => tracing::warn!("cached code is discarded and compiled again: {error}"),
            }
        }
        if translation.source.contains('\0') {
            return Err(self.unsupported("its translation holds a zero byte".to_owned(), String::new()));
        }
        let program = ClProgram::create_and_build_from_source(context, &translation.source, options);
        let program =
            program.map_err(|log| self.unsupported("the device's compiler refuses its translation".to_owned(), log))?;
        if let Some(code) = program.get_binaries().ok().and_then(|mut binaries| binaries.pop()) {
            shared.cache.put(&key, &code);
        }
        Ok(program)
    }
}
