//! A kernel, translated, compiled and loaded. Forms that are rarely needed (a uniform bound to a tensor, more workgroups than a dimension
//! holds) are compiled when they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::compiler::{CompileFault, Way};
use super::driver::{LaunchShape, Module};
use super::shared::{Held, Shared};
use super::takeover::{Takeover, TakeoverLaunch};
use crate::backend::{Bound, Dispatch, Program, needs};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel, Reflection};
use crate::translate::{Argument, Frame, Options, Translation};
use cantus_base::listed::{Listed, Ordered};

/// The driver takes this many bytes of arguments in one launch.
const ARGUMENT_BYTES: u64 = 4096;

/// The uniform from which native kernels are planned.
const WORDS: &str = "words";

fn words(contents: &[u8]) -> Vec<u32> {
    contents.chunks_exact(4).map(bytemuck::pod_read_unaligned).listed()
}

/// Loaded code, and how it is called.
pub(super) struct Form {
    pub(super) module: Module,
    pub(super) arguments: Vec<Argument>,
}

/// A compiled kernel.
pub(super) struct StreamProgram {
    pub(super) shared: Arc<Shared>,
    pub(super) reflection: Reflection,
    pub(super) kernel: Kernel,
    /// Native kernels that may run in its place, highest rank first.
    taken: Vec<Taken>,
    /// Forms, by [uniforms by value][folded].
    forms: [[OnceLock<Result<Form>>; 2]; 2],
}

impl Program for StreamProgram {
    fn is_taken_over(&self, contents: &[u8], workgroups: [u32; 3]) -> bool {
        self.serving(&words(contents), workgroups).is_some()
    }
}

impl Drop for StreamProgram {
    fn drop(&mut self) {
        // Launches of it may be in the stream.
        let forms = std::mem::take(&mut self.forms).into_iter().flatten().filter_map(OnceLock::into_inner);
        let taken = std::mem::take(&mut self.taken).into_iter().filter_map(Taken::into_form);
        let mut state = self.shared.lock();
        for form in forms.flatten().chain(taken) {
            state.keep(Held::Code(form.module));
        }
    }
}

impl StreamProgram {
    /// Translates and compiles the form that most dispatches use.
    pub(super) fn new(shared: &Arc<Shared>, kernel: &Kernel) -> Result<Self> {
        shared.health.check()?;
        let reflection = kernel.reflection()?.clone();
        let taken = Taken::of(kernel, &reflection, shared);
        let (shared, kernel) = (shared.clone(), kernel.clone());
        let program = Self { shared, reflection, kernel, taken, forms: Default::default() };
        needs::check(&program.reflection, &program.shared.info, &[])?;
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

    /// The native kernel that runs a dispatch in this one's place, and how it is launched.
    pub(super) fn takeover(&self, dispatch: &Dispatch) -> Option<(&Taken, &Form, TakeoverLaunch)> {
        let (place, _) = self.reflection.binding(WORDS)?;
        let Some(Bound::Uniform(contents)) = dispatch.bindings.get(place) else { return None };
        self.serving(&words(contents), dispatch.workgroups)
    }

    fn serving(&self, words: &[u32], workgroups: [u32; 3]) -> Option<(&Taken, &Form, TakeoverLaunch)> {
        self.taken.iter().find_map(|taken| {
            let (form, launch) = taken.serve(self, words, workgroups)?;
            Some((taken, form, launch))
        })
    }

    /// The words of a native kernel with other contents of a uniform, launched in the same shape; `None` where it would not be.
    pub(super) fn replan(
        &self,
        takeover: &Takeover,
        (binding, contents): (usize, &[u8]),
        workgroups: [u32; 3],
        shape: &LaunchShape,
    ) -> Option<[u32; 3]> {
        self.reflection.binding(WORDS).filter(|(place, _)| *place == binding)?;
        let launches = (takeover.plan)(&words(contents), workgroups, &self.shared.cluster_facts());
        launches.into_iter().find(|launch| launch.shape(takeover.threads) == *shape).map(|launch| launch.words)
    }

    /// The code of a native kernel.
    pub(super) fn framed(&self, frame: &Frame<'_>) -> Result<Form> {
        let options = Options::new().bound_loops(true).uniforms_by_value(self.by_value_fits());
        let dialect = self.shared.driver.platform.vendor.dialect;
        let translation = self.kernel.translate_frame(dialect, &options, frame)?;
        Ok(Form { module: self.load(&translation)?, arguments: translation.arguments })
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
                    "its registers limit a workgroup to {threads} invocations, and it has {}",
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
                    let construct = format!("no compiled code is available for it: {reason}");
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
                    tracing::debug!("compiling with {} failed: {error}", way.options.join(" "));
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        // What the first choice said is what an author can use.
        Err(refusal.unwrap_or_else(|| self.unsupported("no compiler is available for it".to_owned(), String::new())))
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
                Err(error) => tracing::warn!("cached code is discarded and compiled again: {error}"),
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

/// A takeover for one kernel, compiled when it is first used.
pub(super) struct Taken {
    pub(super) takeover: &'static Takeover,
    form: OnceLock<Result<Form>>,
    /// True if launches of a cluster's size and memory fit.
    fits: Mutex<BTreeMap<(u32, u32), bool>>,
}

impl Taken {
    /// The takeovers for a kernel on a device, highest rank first.
    pub(super) fn of(kernel: &Kernel, reflection: &Reflection, shared: &Shared) -> Vec<Self> {
        let vendor = shared.driver.platform.vendor;
        if shared.without_native || reflection.binding(Kernel::ZERO).is_some() {
            return Vec::new();
        }
        let serves = |takeover: &&'static Takeover| {
            shared.architecture.compute >= takeover.compute && takeover.is_of(kernel, &reflection.entry_point)
        };
        let mut found: Vec<&'static Takeover> = vendor.takeovers.iter().filter(serves).listed();
        found.order_by_key(|takeover| std::cmp::Reverse(takeover.rank));
        found.into_iter().map(|takeover| Self { takeover, form: OnceLock::new(), fits: Mutex::default() }).listed()
    }

    /// Its code, if it was compiled.
    pub(super) fn into_form(self) -> Option<Form> {
        self.form.into_inner()?.ok()
    }

    /// Returns the launch and the code of a dispatch that the takeover can serve.
    fn serve(&self, program: &StreamProgram, words: &[u32], workgroups: [u32; 3]) -> Option<(&Form, TakeoverLaunch)> {
        let shared = &*program.shared;
        if shared.takeovers.is_refused(self.takeover.name) {
            return None;
        }
        let launches = (self.takeover.plan)(words, workgroups, &shared.cluster_facts());
        if launches.is_empty() {
            return None;
        }
        // It may compile with what is fused into other kernels.
        let compiled = self.form.get_or_init(|| {
            self.compile(program).inspect_err(|error| shared.takeovers.fail(self.takeover.name, &error.to_string()))
        });
        let form = compiled.as_ref().ok()?;
        let launch = launches.into_iter().find(|launch| self.fits(shared, &form.module, launch))?;
        Some((form, launch))
    }

    /// The driver is asked once for each size whether such a cluster runs at all.
    fn fits(&self, shared: &Shared, module: &Module, launch: &TakeoverLaunch) -> bool {
        if launch.cluster == 0 {
            return true;
        }
        let mut known = self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((launch.cluster, launch.shared_bytes)).or_insert_with(|| {
            let active = shared.driver.active_clusters(module, &launch.shape(self.takeover.threads));
            matches!(active, Ok(count) if count > 0)
        })
    }

    fn compile(&self, program: &StreamProgram) -> Result<Form> {
        let (takeover, shared) = (self.takeover, &program.shared);
        let text = takeover.text(&program.kernel);
        let form = program.framed(&Frame { source: &text })?;
        if shared.cluster_bytes > 0 {
            shared.driver.allow_clusters(&form.module, shared.cluster_bytes).map_err(|fault| Error::Device {
                device: shared.info.name.clone(),
                action: format!("preparing {}", takeover.name),
                message: fault.message,
            })?;
        }
        Ok(form)
    }
}

impl TakeoverLaunch {
    pub(super) fn shape(&self, threads: u32) -> LaunchShape {
        LaunchShape {
            grid: [self.grid, 1, 1],
            block: [threads, 1, 1],
            cluster: self.cluster,
            shared_bytes: self.shared_bytes,
        }
    }
}
