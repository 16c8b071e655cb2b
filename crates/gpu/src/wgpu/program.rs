//! Kernels compiled for one device: what they need is checked first, then layouts and pipelines are made.
//!
//! A program has a second pipeline, made when first needed, for dispatches beyond the device's workgroups per dimension.

use std::sync::{Arc, OnceLock};

use super::errors::Caught;
use super::groups::{EntryKind, GroupLayout, LayoutEntry};
use super::shared::Shared;
use super::texture;
use crate::backend::{Program, needs};
use crate::error::{Error, Result};
use crate::kernel::{Access, AddressSpace, Kernel, Reflection};
use cantus_base::listed::{Listed, Ordered};

/// Bytes of the uniform that a folded pipeline reads its true counts from.
pub(super) const FOLD_BYTES: u64 = 32;

/// A compiled kernel.
pub(super) struct WgpuProgram {
    pub(super) shared: Arc<Shared>,
    #[cfg(feature = "wgsl")]
    kernel: Kernel,
    pub(super) name: Arc<str>,
    pub(super) reflection: Reflection,
    pub(super) plain: Pipeline,
    folded: OnceLock<Result<Pipeline>>,
}

impl Program for WgpuProgram {}

/// A pipeline and the layout of its bind groups.
pub(super) struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(super) id: u64,
    pub(super) groups: Vec<Group>,
}

/// One bind group of a pipeline.
pub(super) struct Group {
    pub(super) index: u32,
    pub(super) layout: GroupLayout,
    /// In the order of their binding numbers.
    pub(super) slots: Vec<Slot>,
}

/// One binding of a bind group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) binding: u32,
    pub(super) source: Source,
    /// Reached by a dynamic offset.
    pub(super) dynamic: bool,
    /// Size of the type.
    pub(super) bytes: u64,
    pub(super) kind: EntryKind,
}

/// The source of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The binding of that place in `Reflection::bindings`.
    Binding(usize),
    /// The true counts of a folded dispatch.
    Counts,
}

/// The shader as wgpu is given it.
enum Shader {
    #[cfg(not(all(feature = "wgsl", not(target_arch = "wasm32"))))]
    Text { wgsl: String, constants: Vec<(String, f64)> },
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    Module {
        module: Box<naga::Module>,
        /// It sets its workgroup memory to zero itself.
        is_zeroed: bool,
    },
    /// SPIR-V, for Vulkan only.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    Spirv(Vec<u32>),
}

/// A program being compiled: whether it is good is known once `caught` tells.
pub(super) struct Compiling {
    pub(super) program: WgpuProgram,
    pub(super) caught: Caught,
}

impl WgpuProgram {
    /// Checks what the kernel needs against the device, then starts to compile it.
    pub(super) fn start(shared: &Arc<Shared>, kernel: &Kernel) -> Result<Compiling> {
        shared.health.check()?;
        let reflection = kernel.reflection()?.clone();
        if let Some(construct) = shared.matrices.lack().filter(|_| reflection.features.cooperative_matrix) {
            return Err(needs::unsupported(&reflection, &shared.info, construct, String::new()));
        }
        let (bindings, limits) = (&reflection.bindings, &shared.limits);
        let groups = places(&reflection).map(|(group, _)| u64::from(group) + 1).max().unwrap_or(0);
        let numbers = places(&reflection).map(|(_, binding)| u64::from(binding) + 1).max().unwrap_or(0);
        let most = limits.max_buffers_and_acceleration_structures_per_shader_stage;
        let further = [
            ("bindings", bindings.len() as u64, most),
            ("bind groups", groups, limits.max_bind_groups),
            ("binding numbers in a group", numbers, limits.max_bindings_per_bind_group),
        ];
        needs::check(&reflection, &shared.info, &further)?;
        let shader = shader(shared, kernel, &reflection)?;
        let (plain, caught) = Pipeline::start(shared, kernel, &reflection, None, shader)?;
        let program = Self {
            shared: shared.clone(),
            #[cfg(feature = "wgsl")]
            kernel: kernel.clone(),
            name: reflection.entry_point.as_str().into(),
            reflection,
            plain,
            folded: OnceLock::new(),
        };
        Ok(Compiling { program, caught })
    }

    /// The pipeline for dispatches that must be folded, made when first asked for.
    ///
    /// Its validation is known at once off the web. On the web it is not, and an error comes out with the batch that uses it.
    pub(super) fn folded(&self) -> Result<&Pipeline> {
        self.folded.get_or_init(|| self.fold()).as_ref().map_err(Clone::clone)
    }

    /// The error for a kernel that did not compile. A refusal of the app's textures is kept: the kernel runs on copies of the texels.
    pub(super) fn refused(&self, error: Error) -> Error {
        match error {
            Error::Device { device, message, .. } if !self.reflection.textures.is_empty() => Error::Unsupported {
                kernel: self.name.to_string(),
                device,
                construct: format!("the app's textures as they are ({message})"),
                report: String::new(),
            },
            other => other,
        }
    }

    #[cfg(feature = "wgsl")]
    fn fold(&self) -> Result<Pipeline> {
        let place = fold_place(&self.shared, &self.reflection).ok_or_else(|| Error::limit(format!("the workgroups of {}", self.name), format!(
                "they exceed {} in one dimension, and the kernel leaves no uniform binding free on {} to fold them: dispatch fewer at a time",
                self.shared.limits.max_compute_workgroups_per_dimension, self.shared.info.name
            )))?;
        let folded = crate::kernel::fold::fold(&self.kernel, place.0, place.1)?;
        #[cfg(target_arch = "wasm32")]
        let shader = Shader::Text { wgsl: folded.to_wgsl()?, constants: Vec::new() };
        #[cfg(not(target_arch = "wasm32"))]
        let shader = {
            let (module, info) = folded.into_parts();
            amended(self.shared.device.adapter_info().backend, module, &info, 0)
        };
        let (pipeline, caught) = Pipeline::start(&self.shared, &self.kernel, &self.reflection, Some(place), shader)?;
        match caught.now() {
            Ok(Some(error)) => Err(self.shared.compile_error(&error, &self.name)),
            Ok(None) | Err(_) => Ok(pipeline),
        }
    }

    #[cfg(not(feature = "wgsl"))]
    fn fold(&self) -> Result<Pipeline> {
        Err(Error::limit(
            format!("the workgroups of {}", self.name),
            format!(
                "they exceed {} in one dimension; folding them needs the feature `wgsl`, which this build lacks: dispatch fewer at a time",
                self.shared.limits.max_compute_workgroups_per_dimension
            ),
        ))
    }
}

impl Pipeline {
    fn start(
        shared: &Arc<Shared>,
        kernel: &Kernel,
        reflection: &Reflection,
        fold: Option<(u32, u32)>,
        shader: Shader,
    ) -> Result<(Self, Caught)> {
        let name = reflection.entry_point.as_str();
        let planned = plan_groups(&shared.limits, kernel, reflection, fold);
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        let shader = passed_through(shared, reflection, &planned, shader)?;
        let action = format!("compiling {name}");
        shared.on_deep_stack(&action, || {
            let _turn = shared.turn();
            let scopes = super::errors::Scopes::open(&shared.device);
            let groups = shared.with_groups(|cache| make_layouts(&shared.device, cache, planned));
            let layout = pipeline_layout(&shared.device, &groups, name);
            let raw = make_pipeline(&shared.device, &layout, shader, name);
            let caught = scopes.close();
            (Self { raw, id: shared.new_id(), groups }, caught)
        })
    }
}

fn make_pipeline(
    device: &wgpu::Device,
    layout: &wgpu::PipelineLayout,
    shader: Shader,
    name: &str,
) -> wgpu::ComputePipeline {
    // The safe constructor: bounds, division and loop checks are all on.
    let checked = |source| device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(name), source });
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    let is_zeroed = matches!(shader, Shader::Module { is_zeroed: true, .. });
    #[cfg(not(all(feature = "wgsl", not(target_arch = "wasm32"))))]
    let is_zeroed = false;
    let (module, constants): (_, Vec<(String, f64)>) = match shader {
        #[cfg(not(all(feature = "wgsl", not(target_arch = "wasm32"))))]
        Shader::Text { wgsl, constants } => (checked(wgpu::ShaderSource::Wgsl(wgsl.into())), constants),
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        Shader::Module { module, .. } => {
            (checked(wgpu::ShaderSource::Naga(std::borrow::Cow::Owned(*module))), Vec::new())
        }
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        Shader::Spirv(words) => {
            let entry = wgpu::PassthroughShaderEntryPoint { name: name.into(), workgroup_size: (0, 0, 0) };
            let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
                label: Some(name),
                entry_points: vec![entry].into(),
                spirv: Some(words.into()),
                ..wgpu::ShaderModuleDescriptorPassthrough::default()
            };
            // SAFETY: naga's SPIR-V of a validated module with all its checks, and with the layout's numbers of the bindings.
            (unsafe { device.create_shader_module_passthrough(descriptor) }, Vec::new())
        }
    };
    let constants: Vec<(&str, f64)> = constants.iter().map(|(name, value)| (name.as_str(), *value)).listed();
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(name),
        layout: Some(layout),
        module: &module,
        entry_point: Some(name),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &constants,
            zero_initialize_workgroup_memory: !is_zeroed,
        },
        cache: None,
    })
}

fn pipeline_layout(device: &wgpu::Device, groups: &[Group], name: &str) -> wgpu::PipelineLayout {
    let count = groups.iter().map(|group| group.index as usize + 1).max().unwrap_or(0);
    // Groups may be sparse: what lies between stays empty.
    let mut layouts: Vec<Option<&wgpu::BindGroupLayout>> = vec![None; count];
    for group in groups {
        layouts[group.index as usize] = Some(&group.layout.raw);
    }
    device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(name),
        bind_group_layouts: &layouts,
        immediate_size: 0,
    })
}

fn make_layouts(
    device: &wgpu::Device,
    cache: &mut super::groups::GroupCache,
    planned: Vec<(u32, Vec<Slot>)>,
) -> Vec<Group> {
    let groups = planned.into_iter().map(|(index, slots)| {
        let entries: Vec<LayoutEntry> = slots
            .iter()
            .map(|slot| LayoutEntry {
                binding: slot.binding,
                kind: slot.kind,
                dynamic: slot.dynamic,
                min_bytes: slot.bytes,
            })
            .listed();
        Group { index, layout: cache.layout(device, &entries), slots }
    });
    groups.listed()
}

/// The bind groups of a kernel: its bindings, and the counts of a folded dispatch.
fn plan_groups(
    limits: &wgpu::Limits,
    kernel: &Kernel,
    reflection: &Reflection,
    fold: Option<(u32, u32)>,
) -> Vec<(u32, Vec<Slot>)> {
    let mut dynamic_left = limits.max_dynamic_uniform_buffers_per_pipeline_layout;
    let mut take_dynamic = || {
        let dynamic = dynamic_left > 0;
        dynamic_left = dynamic_left.saturating_sub(1);
        dynamic
    };
    let mut groups: Vec<(u32, Vec<Slot>)> = Vec::new();
    let mut add = |group: u32, slot: Slot| match groups.iter_mut().find(|(index, _)| *index == group) {
        Some((_, slots)) => slots.push(slot),
        None => groups.push((group, vec![slot])),
    };
    // First the counts: they change with every dispatch, so they should be dynamic if any are.
    if let Some((group, binding)) = fold {
        let source = Source::Counts;
        add(group, Slot { binding, source, dynamic: take_dynamic(), bytes: FOLD_BYTES, kind: EntryKind::Uniform });
    }
    for (index, binding) in reflection.bindings.iter().enumerate() {
        let kind = match (binding.space, binding.access) {
            (AddressSpace::Uniform, _) => EntryKind::Uniform,
            (AddressSpace::Storage, Access::Read) => EntryKind::Read,
            (AddressSpace::Storage, Access::ReadWrite) => EntryKind::ReadWrite,
        };
        let slot = Slot {
            binding: binding.binding,
            source: Source::Binding(index),
            dynamic: kind == EntryKind::Uniform && take_dynamic(),
            bytes: binding.layout.min_bytes(),
            kind,
        };
        add(binding.group, slot);
    }
    // What follows the buffers among a dispatch's bindings.
    let textures = reflection.textures.iter().map(|texture| {
        let filterable = kernel.is_filtering(texture.group, texture.binding);
        (texture.group, texture.binding, texture::texture_layout(texture, filterable))
    });
    let samplers = reflection.samplers.iter().map(|sampler| {
        let filters = kernel.is_filtering(sampler.group, sampler.binding);
        (sampler.group, sampler.binding, texture::sampler_layout(sampler, filters))
    });
    for (index, (group, binding, ty)) in (reflection.bindings.len()..).zip(textures.chain(samplers)) {
        let (source, kind) = (Source::Binding(index), EntryKind::Other(ty));
        add(group, Slot { binding, source, dynamic: false, bytes: 0, kind });
    }
    groups.order_by_key(|(index, _)| *index);
    for (_, slots) in &mut groups {
        slots.order_by_key(|slot| slot.binding);
    }
    groups
}

/// The groups and numbers of all bindings.
fn places(reflection: &Reflection) -> impl Iterator<Item = (u32, u32)> {
    let buffers = reflection.bindings.iter().map(|binding| (binding.group, binding.binding));
    let textures = reflection.textures.iter().map(|texture| (texture.group, texture.binding));
    buffers.chain(textures).chain(reflection.samplers.iter().map(|sampler| (sampler.group, sampler.binding)))
}

/// A free group and binding for the counts, within the limits.
#[cfg(feature = "wgsl")]
fn fold_place(shared: &Shared, reflection: &Reflection) -> Option<(u32, u32)> {
    let limits = &shared.limits;
    let bindings = &reflection.bindings;
    let uniforms = bindings.iter().filter(|binding| binding.space == AddressSpace::Uniform).count();
    let all = bindings.len() as u64 + 1;
    if uniforms as u64 >= u64::from(limits.max_uniform_buffers_per_shader_stage)
        || all > u64::from(limits.max_buffers_and_acceleration_structures_per_shader_stage)
    {
        return None;
    }
    (0..limits.max_bind_groups).find_map(|group| {
        let taken = places(reflection).filter(|(other, _)| *other == group).map(|(_, binding)| binding);
        let next = taken.max().map_or(Some(0), |highest| highest.checked_add(1))?;
        (next < limits.max_bindings_per_bind_group).then_some((group, next))
    })
}

/// A module as wgpu gets it, folded or not.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
fn amended(backend: wgpu::Backend, mut module: naga::Module, info: &naga::valid::ModuleInfo, entry: usize) -> Shader {
    use crate::kernel::amend::{components, guards, shifts, zeroed};
    // Vulkan's drivers do it themselves.
    let is_zeroed = backend != wgpu::Backend::Vulkan && zeroed::settle(&mut module, info, entry);
    components::settle(&mut module);
    shifts::settle(&mut module);
    if backend == wgpu::Backend::Gl {
        guards::settle(&mut module);
    }
    Shader::Module { module: Box::new(module), is_zeroed }
}

/// On Vulkan, the SPIR-V of a kernel with matrices; any other shader as it is.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
fn passed_through(
    shared: &Shared,
    reflection: &Reflection,
    planned: &[(u32, Vec<Slot>)],
    shader: Shader,
) -> Result<Shader> {
    let Shader::Module { module, .. } = &shader else { return Ok(shader) };
    if !reflection.features.cooperative_matrix || shared.device.adapter_info().backend != wgpu::Backend::Vulkan {
        return Ok(shader);
    }
    let of_group = |(group, slots): &(u32, Vec<Slot>)| {
        let group = *group;
        slots.iter().zip(0..).map(move |(slot, place)| (group, slot.binding, place)).listed()
    };
    let words = super::matrices::spirv(module, &reflection.entry_point, planned.iter().flat_map(of_group));
    let refused = |construct| needs::unsupported(reflection, &shared.info, construct, String::new());
    words.map(Shader::Spirv).map_err(refused)
}

/// The kernel as naga's module, overrides in force. wgpu is given no text here: what naga gets wrong is amended in the module.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
fn shader(shared: &Shared, kernel: &Kernel, reflection: &Reflection) -> Result<Shader> {
    let resolved = kernel.resolved()?;
    let (module, info) = (resolved.module(), resolved.info());
    let refused = |construct| needs::unsupported(reflection, &shared.info, construct, String::new());
    if reflection.features.cooperative_matrix {
        let (_, largest) = shared.info.capabilities.subgroup_sizes.unwrap_or((1, 1));
        shared.matrices.check(module, info, (reflection.workgroup_size, largest)).map_err(refused)?;
    }
    let backend = shared.device.adapter_info().backend;
    let shader = amended(backend, module.clone(), info, resolved.entry_point());
    if let (wgpu::Backend::Gl, Shader::Module { module, .. }) = (backend, &shader) {
        crate::kernel::amend::check_glsl(module).map_err(refused)?;
    }
    Ok(shader)
}

/// The kernel's text, or that of its reproducible or limited form.
#[cfg(not(all(feature = "wgsl", not(target_arch = "wasm32"))))]
fn shader(_shared: &Shared, kernel: &Kernel, _reflection: &Reflection) -> Result<Shader> {
    #[cfg(feature = "wgsl")]
    if let Some(wgsl) = kernel.rewritten_wgsl()? {
        return Ok(Shader::Text { wgsl, constants: Vec::new() });
    }
    let constants = kernel.overrides().iter().map(|(name, value)| (name.clone(), *value)).listed();
    Ok(Shader::Text { wgsl: kernel.wgsl().to_owned(), constants })
}

#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
#[cfg(test)]
mod tests {
    use super::super::matrices::spirv;
    use super::{Shader, amended};
    use crate::kernel::Kernel;

    /// The module that wgpu's own compiler gets, resolved and amended.
    fn module(text: &str) -> naga::Module {
        let kernel = Kernel::from_wgsl(text).expect("is WGSL");
        let resolved = kernel.resolved().expect("resolves");
        let (module, entry) = (resolved.module().clone(), resolved.entry_point());
        let Shader::Module { module, .. } = amended(wgpu::Backend::Vulkan, module, resolved.info(), entry) else {
            panic!("another shader")
        };
        *module
    }

    #[test]
    fn what_wgpu_is_given_validates() {
        use naga::valid::Capabilities;
        let small = cantus_shaders::answers::SMALL_COOPERATIVE_MATRICES;
        let large = cantus_shaders::answers::COOPERATIVE_MATRICES;
        for (text, name) in [(small, "small_cooperative_matrices"), (large, "cooperative_matrices")] {
            let module = module(text);
            let allowed = Capabilities::COOPERATIVE_MATRIX | Capabilities::SHADER_FLOAT16;
            assert!(crate::kernel::capabilities::validator(allowed).validate(&module).is_ok());
            let words = spirv(&module, name, [(0, 0, 5)].into_iter()).expect("is written");
            // OpDecorate of the binding, in the place that wgpu gave it; Vulkan's memory model; a matrix that others see.
            let has = |wanted: &[u32]| words.windows(wanted.len()).any(|some| some == wanted);
            assert!(words.windows(4).any(|some| some[0] == 71 | 4 << 16 && some[2..] == [33, 5]));
            assert!(has(&[14 | 3 << 16, 0, 3]));
            assert!(words.windows(6).any(|some| some[0] == 4458 | 6 << 16 && some[5] == 0x20));
        }
    }
}
