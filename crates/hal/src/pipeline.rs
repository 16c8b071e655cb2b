//! Shader modules and compute pipelines: naga's modules compiled to the executor's bytecode.
//!
//! wgpu-core only logs the errors of shader modules. So all that is refused is said when a pipeline is created.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cantus_base::error::Error;
use cantus_kernel::module::{Compiled, Entry, Module};
use cantus_kernel::textures::Forms;
use wgpu_hal::{PipelineError, ShaderInput};
use wgpu_types::ShaderStages;

/// Programs for textures that a pipeline keeps.
const KEPT_FORMS: usize = 16;

/// A shader module: checked, or the reason why no pipeline can be made of it.
#[derive(Debug)]
pub struct ShaderModule {
    outcome: Result<Checked, String>,
}

struct Checked(Module);

/// A compute pipeline.
#[derive(Debug, Clone)]
pub struct ComputePipeline {
    pub(crate) kernel: Arc<Kernel>,
}

/// An entry point, and its programs for what its textures were bound to, the latest last.
pub(crate) struct Kernel {
    pub(crate) entry: Entry,
    pub(crate) label: String,
    programs: Mutex<Vec<(Forms, Arc<Compiled>)>>,
}

cantus_base::opaque_debug!(Checked);
cantus_base::opaque_debug!(Kernel);

impl ShaderModule {
    pub(crate) fn new(shader: ShaderInput<'_>) -> Self {
        let ShaderInput::Naga(shader) = shader else {
            return Self {
                outcome: Err("it takes WGSL, or what wgpu makes naga's module of: no other language".to_owned()),
            };
        };
        let source = shader.debug_source.as_ref();
        let (file, text) = source.map_or(("shader", ""), |source| (&*source.file_name, &*source.source_code));
        let outcome = Module::new(shader.module.into_owned(), file, text);
        Self { outcome: outcome.map(Checked).map_err(|error| error.to_string()) }
    }
}

/// The description of a compute pipeline.
pub(crate) type Descriptor<'a> =
    wgpu_hal::ComputePipelineDescriptor<'a, crate::PipelineLayout, ShaderModule, crate::PipelineCache>;

impl ComputePipeline {
    pub(crate) fn new(desc: &Descriptor<'_>) -> Result<Self, PipelineError> {
        let refuse = |reason: String| PipelineError::Linkage(ShaderStages::COMPUTE, reason);
        let stage = &desc.stage;
        let Checked(module) = stage.module.outcome.as_ref().map_err(|reason| refuse(reason.clone()))?;
        let overrides: BTreeMap<String, f64> =
            stage.constants.iter().map(|(name, value)| (name.clone(), *value)).collect();
        let entry = module.entry(stage.entry_point, overrides).map_err(|error| match error {
            // The program's own fault, and an error of validation.
            Error::Override { .. } => PipelineError::PipelineConstants(ShaderStages::COMPUTE, error.to_string()),
            _ => refuse(error.to_string()),
        })?;
        let label = desc.label.unwrap_or(stage.entry_point).to_owned();
        let kernel = Kernel { entry, label, programs: Mutex::default() };
        // What its textures are is known when it runs; whether it can run is known now.
        let forms = kernel.entry.assumed_forms();
        kernel.program(&forms).map_err(refuse)?;
        Ok(Self { kernel: Arc::new(kernel) })
    }
}

impl Kernel {
    /// Returns the program for what its textures and samplers are bound to. The latest ones are kept.
    pub(crate) fn program(&self, forms: &Forms) -> Result<Arc<Compiled>, String> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = programs.iter().position(|(known, _)| known == forms) {
            // The one that was used last is the last to go.
            let found = programs.remove(at);
            let program = found.1.clone();
            programs.push(found);
            return Ok(program);
        }
        let program = Arc::new(self.entry.compile(forms).map_err(|error| error.to_string())?);
        if programs.len() >= KEPT_FORMS {
            programs.remove(0);
        }
        programs.push((forms.clone(), program.clone()));
        Ok(program)
    }
}
