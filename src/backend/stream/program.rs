//! A kernel, translated, compiled and loaded. Forms that are rarely needed (a uniform bound to a tensor, more workgroups than a dimension
//! holds) are compiled when they are.

use std::sync::{Arc, OnceLock};

use super::compiler::{CompileFault, Way};
use super::driver::Module;
use super::shared::{Held, Shared};
use crate::backend::{Program, needs};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel, Reflection};
use crate::translate::{Argument, Options, Translation};

/// The driver takes this many bytes of arguments in one launch.
const ARGUMENT_BYTES: u64 = 4096;

/// Loaded code, and how it is called.
pub(super) struct Form {
    pub(super) module: Module,
    pub(super) arguments: Vec<Argument>,
}

/// A compiled kernel.
pub(super) struct StreamProgram {
    pub(super) shared: Arc<Shared>,
    pub(super) reflection: Reflection,
    kernel: Kernel,
    /// By [uniforms by value][folded].
    forms: [[OnceLock<Result<Form>>; 2]; 2],
}

impl Program for StreamProgram {}

impl Drop for StreamProgram {
    fn drop(&mut self) {
        // Launches of it may be in the stream.
        let forms = std::mem::take(&mut self.forms).into_iter().flatten().filter_map(OnceLock::into_inner);
        let mut state = self.shared.lock();
        for form in forms.flatten() {
            state.keep(Held::Code(form.module));
        }
    }
}

impl StreamProgram {
    /// Translates and compiles the form that most dispatches use.
    pub(super) fn new(shared: &Arc<Shared>, kernel: &Kernel) -> Result<Self> {
        shared.health.check()?;
        let reflection = kernel.reflection()?.clone();
        let program = Self { shared: shared.clone(), reflection, kernel: kernel.clone(), forms: Default::default() };
        needs::check(&program.reflection, &shared.info, &[])?;
        program.form(program.by_value_fits(), false)?;
        Ok(program)
    }

    fn unsupported(&self, construct: String, report: String) -> Error {
        needs::unsupported(&self.reflection, &self.shared.info, construct, report)
    }

    /// Uniforms and addresses all fit into the arguments of a launch.
    pub(super) fn by_value_fits(&self) -> bool {
        let each = self.reflection.bindings.iter().map(|binding| match binding.space {
            AddressSpace::Uniform => binding.layout.min_bytes() + 16,
            AddressSpace::Storage => 16,
        });
        // The fold's counts come on top.
        each.sum::<u64>() + 64 <= ARGUMENT_BYTES
    }

    /// A form of the kernel, compiled now if it was not yet.
    pub(super) fn form(&self, by_value: bool, folded: bool) -> Result<&Form> {
        let cell = &self.forms[usize::from(by_value)][usize::from(folded)];
        cell.get_or_init(|| self.make(by_value, folded)).as_ref().map_err(Clone::clone)
    }

    fn make(&self, by_value: bool, folded: bool) -> Result<Form> {
        let options = Options::new().bound_loops(true).uniforms_by_value(by_value);
        let dialect = self.shared.driver.platform.vendor.dialect;
        let translation = if folded {
            self.kernel.translate_folded(dialect, &options)?
        } else {
            self.kernel.translate(dialect, &options)?
        };
        let module = self.load(&translation)?;
        let threads = self.shared.driver.most_threads(&module).unwrap_or(u32::MAX);
        if u64::from(threads) < self.reflection.invocations() {
            return Err(self.unsupported(
                format!(
                    "it needs so many registers that a workgroup holds {threads} invocations, and it has {}",
                    self.reflection.invocations()
                ),
                String::new(),
            ));
        }
        Ok(Form { module, arguments: translation.arguments })
    }

    /// Code from the cache, the compiler, or what was embedded when the library was built. What one way leads to nothing, the next is tried for.
    fn load(&self, translation: &Translation) -> Result<Module> {
        let shared = &self.shared;
        let ways = match shared.ways() {
            Ok(ways) => ways,
            Err(reason) => {
                let Some(code) = (shared.driver.platform.vendor.embedded)(&translation.source) else {
                    let construct = format!("no code is at hand for it: {reason}");
                    return Err(self.unsupported(construct, String::new()));
                };
                return self.module(code.as_bytes(), translation);
            }
        };
        let mut refusal = None;
        for (number, way) in ways.all() {
            match self.by(way, translation) {
                Ok(module) => {
                    ways.choose(number);
                    return Ok(module);
                }
                Err(error @ (Error::Unsupported { .. } | Error::Device { .. })) => {
                    tracing::debug!("compiling with {} leads to nothing: {error}", way.options.join(" "));
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        // What the first choice said is what an author can use.
        Err(refusal.unwrap_or_else(|| self.unsupported("no compiler is at hand for it".to_owned(), String::new())))
    }

    fn module(&self, code: &[u8], translation: &Translation) -> Result<Module> {
        let module = self.shared.driver.load(code, &translation.entry);
        module.map_err(|fault| self.shared.error(fault, &format!("loading {}", self.reflection.entry_point)))
    }

    /// Code from the cache, or as one compiler makes it.
    fn by(&self, way: &Way, translation: &Translation) -> Result<Module> {
        let shared = &self.shared;
        let version = way.compiler.version;
        let key = shared.cache.key(&[
            &translation.source,
            &way.options.join(" "),
            &format!("{}.{}", version.0, version.1),
            &shared.info.name,
            &shared.info.driver,
        ]);
        if let Some(code) = shared.cache.get(&key) {
            // Code that the driver no longer takes is compiled again.
            match self.module(&code, translation) {
                Ok(module) => return Ok(module),
                Err(error) => tracing::warn!("cached code is made anew: {error}"),
            }
        }
        let code = self.compile(way, translation)?;
        let module = self.module(&code, translation)?;
        shared.cache.put(&key, &code);
        Ok(module)
    }

    fn compile(&self, way: &Way, translation: &Translation) -> Result<Vec<u8>> {
        // hiprtc looks at the current device beside the architecture.
        let _current = self.shared.driver.enter().map_err(|fault| self.shared.error(fault, "compiling"))?;
        let compiled = way.compiler.compile(&translation.source, &translation.entry, &way.options);
        compiled.map(|compiled| compiled.code).map_err(|fault| match fault {
            CompileFault::Refused(log) => {
                self.unsupported("the device's compiler refuses its translation".to_owned(), log)
            }
            CompileFault::Failed(message) => Error::Device {
                device: self.shared.info.name.clone(),
                action: format!("compiling {}", self.reflection.entry_point),
                message,
            },
        })
    }
}
