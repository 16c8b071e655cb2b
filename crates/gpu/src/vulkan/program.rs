//! Kernels compiled for one device: what they need is checked first, then naga writes SPIR-V and the driver makes a pipeline of it.
//!
//! A program has a second pipeline, made when first needed, for dispatches beyond the device's workgroups per dimension.

use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use ash::vk;
use naga::back::spv;

use super::errors::Errors as _;
use super::objects::Owned;
use super::sets::{SetLayout, SlotKind};
use super::shared::Shared;
use crate::backend::{Program, needs};
use crate::deep_stack::{self, Failure};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel, Reflection};
use cantus_base::listed::Listed;

/// Bytes of the uniform that a folded pipeline reads its true counts from.
pub(super) const FOLD_BYTES: u64 = 32;
/// The group that a folded pipeline's counts have in the module: a number that no kernel has. In the pipeline they are the last slot.
const FOLD_GROUP: u32 = u32::MAX;

/// A compiled kernel.
pub(super) struct VulkanProgram {
    pub(super) shared: Arc<Shared>,
    kernel: Kernel,
    pub(super) name: Arc<str>,
    pub(super) reflection: Reflection,
    pub(super) plain: Arc<Pipeline>,
    folded: OnceLock<Result<Arc<Pipeline>>>,
}

impl Program for VulkanProgram {}

/// A pipeline and the layout of its bindings: those of the reflection in their order, then the counts of a folded one.
pub(super) struct Pipeline {
    pub(super) raw: Owned<vk::Pipeline>,
    pub(super) layout: Arc<SetLayout>,
}

impl VulkanProgram {
    /// Checks what the kernel needs against the device, then compiles it.
    pub(super) fn new(shared: &Arc<Shared>, kernel: &Kernel) -> Result<Self> {
        shared.health.check()?;
        let reflection = kernel.reflection()?.clone();
        let has_matrices = reflection.features.cooperative_matrix;
        if let Some(construct) = shared.matrices.lack().filter(|_| has_matrices) {
            return Err(unsupported(shared, &reflection, construct));
        }
        let bindings = reflection.bindings.len() as u64;
        needs::check(&reflection, &shared.info, &[("bindings", bindings, shared.limits.max_per_stage_resources)])?;
        let resolved = kernel.resolved()?;
        let compile = || {
            if has_matrices {
                let (_, largest) = shared.info.capabilities.subgroup_sizes.unwrap_or((1, 1));
                let sizes = (reflection.workgroup_size, largest);
                let checked = shared.matrices.check(resolved.module(), resolved.info(), sizes);
                checked.map_err(|construct| unsupported(shared, &reflection, construct))?;
            }
            Pipeline::new(shared, &reflection, resolved.module(), resolved.info(), false)
        };
        let plain = on_deep_stack(shared, &reflection.entry_point, compile)?;
        Ok(Self {
            shared: shared.clone(),
            kernel: kernel.clone(),
            name: reflection.entry_point.as_str().into(),
            plain: Arc::new(plain),
            reflection,
            folded: OnceLock::new(),
        })
    }

    /// The pipeline for dispatches that must be folded, made when first asked for.
    pub(super) fn folded(&self) -> Result<&Arc<Pipeline>> {
        self.folded.get_or_init(|| self.fold().map(Arc::new)).as_ref().map_err(Clone::clone)
    }

    fn fold(&self) -> Result<Pipeline> {
        let uniforms = count(&self.reflection, AddressSpace::Uniform) + 1;
        let all = self.reflection.bindings.len() as u64 + 1;
        let limits = &self.shared.info.capabilities.limits;
        if uniforms > limits.uniform_bindings.into() || all > self.shared.limits.max_per_stage_resources.into() {
            return Err(Error::limit(
                format!("the workgroups of {}", self.name),
                format!(
                    "they exceed {} in one dimension, and the kernel leaves no uniform binding free on {} to fold them: dispatch fewer at a time",
                    limits.workgroups_per_dimension, self.shared.info.name
                ),
            ));
        }
        on_deep_stack(&self.shared, &self.name, || {
            let (module, info) = crate::kernel::fold::fold(&self.kernel, FOLD_GROUP, 0)?.into_parts();
            Pipeline::new(&self.shared, &self.reflection, &module, &info, true)
        })
    }
}

impl Pipeline {
    /// `module` has one entry point of the reflection's name, and its overrides are in force.
    fn new(
        shared: &Arc<Shared>,
        reflection: &Reflection,
        module: &naga::Module,
        info: &naga::valid::ModuleInfo,
        folded: bool,
    ) -> Result<Self> {
        let name = reflection.entry_point.as_str();
        let refused = |construct| unsupported(shared, reflection, construct);
        let mut options = shared.spirv.clone();
        let zeroes = !shared.support.zero_workgroup && reflection.workgroup_bytes > 0;
        let zeroes = zeroes.then(|| module.entry_points.iter().position(|entry| entry.name == name)).flatten();
        let settled = crate::kernel::amend::settled(module, info, zeroes).transpose().map_err(refused)?;
        let (module, info) = settled.as_ref().map_or((module, info), |settled| (&settled.module, &settled.info));
        if settled.as_ref().is_some_and(|settled| settled.is_zeroed) {
            options.zero_initialize_workgroup_memory = spv::ZeroInitializeWorkgroupMemoryMode::None;
        }
        let words = words(options, reflection, (module, info), folded).map_err(refused)?;
        let layout = shared.layout(&slots(shared, reflection, folded))?;
        let refused = |error| shared.health.refused(error, &format!("compiling {name}"));
        let device = &shared.raw.device;
        let create = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: naga's SPIR-V of a validated module, with the capabilities that the device was opened with.
        let shader = unsafe { device.create_shader_module(&create, None) }.map_err(refused)?;
        let shader = Owned::new(&shared.raw, shader);
        let entry = CString::new(name).map_err(|_| unsupported(shared, reflection, "a NUL in its name".to_owned()))?;
        let mut flags = vk::PipelineShaderStageCreateFlags::empty();
        if shared.support.size_control {
            // WGSL leaves the subgroup's size to the device.
            flags |= vk::PipelineShaderStageCreateFlags::ALLOW_VARYING_SUBGROUP_SIZE;
        }
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .flags(flags)
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(shader.handle)
            .name(&entry);
        let create = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.pipeline.handle);
        // SAFETY: module, layout and cache live; the layout has what the module uses.
        let made = unsafe { device.create_compute_pipelines(shared.cache.handle(), &[create], None) };
        let made = made.map_err(|(_, error)| refused(error))?;
        let raw = made.first().copied().filter(|raw| *raw != vk::Pipeline::null());
        let raw = raw.ok_or_else(|| refused(vk::Result::ERROR_UNKNOWN))?;
        shared.cache.note_new();
        Ok(Self { raw: Owned::new(&shared.raw, raw), layout })
    }
}

/// The kinds of the slots: as many uniforms as possible by dynamic offsets, the counts first, for they change with every dispatch.
fn slots(shared: &Shared, reflection: &Reflection, folded: bool) -> Vec<SlotKind> {
    let mut left = shared.limits.max_descriptor_set_uniform_buffers_dynamic;
    let mut uniform = || {
        let dynamic = left > 0;
        left = left.saturating_sub(1);
        if dynamic { SlotKind::DynamicUniform } else { SlotKind::Uniform }
    };
    let counts = folded.then(&mut uniform);
    let bindings = reflection.bindings.iter().map(|binding| match binding.space {
        AddressSpace::Storage => SlotKind::Storage,
        AddressSpace::Uniform => uniform(),
    });
    let mut slots: Vec<_> = bindings.listed();
    slots.extend(counts);
    slots
}

/// SPIR-V, with the binding numbers of [`slots`].
fn words(
    mut options: spv::Options<'_>,
    reflection: &Reflection,
    (module, info): (&naga::Module, &naga::valid::ModuleInfo),
    folded: bool,
) -> Result<Vec<u32>, String> {
    let places = reflection.bindings.iter().map(|binding| (binding.group, binding.binding));
    let places = places.chain(folded.then_some((FOLD_GROUP, 0)));
    options.binding_map = places
        .zip(0_u32..)
        .map(|((group, binding), slot)| {
            let info = spv::BindingInfo { descriptor_set: 0, binding: slot, binding_array_size: None };
            (naga::ResourceBinding { group, binding }, info)
        })
        .mapped();
    let pipeline =
        spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: reflection.entry_point.clone() };
    let words = spv::write_vec(module, info, &options, Some(&pipeline));
    let words = words.map_err(|error| format!("naga writes no SPIR-V of it: {error}"))?;
    if reflection.features.cooperative_matrix {
        return crate::kernel::spirv::share(&words).map_err(str::to_owned);
    }
    Ok(words)
}

/// Runs a compiler on a thread with a deep stack: naga's recurse over the kernel. A defect of naga's or the driver's becomes an error.
fn on_deep_stack<T: Send>(shared: &Shared, name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    deep_stack::run("cantus-compile", work).unwrap_or_else(|failure| {
        let message = match failure {
            Failure::NoThread(error) => format!("no thread could be started: {error}"),
            Failure::Panic(text) => format!("a defect inside the compiler: {text}"),
        };
        Err(Error::Device { device: shared.info.name.clone(), action: format!("compiling {name}"), message })
    })
}

fn unsupported(shared: &Shared, reflection: &Reflection, construct: String) -> Error {
    needs::unsupported(reflection, &shared.info, construct, String::new())
}

fn count(reflection: &Reflection, space: AddressSpace) -> u64 {
    reflection.bindings.iter().filter(|binding| binding.space == space).count() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::vulkan::features::{Support, spirv_options};

    /// The kernel whose answer a device must know before it multiplies matrices.
    const ANSWER: &str = cantus_shaders::answers::COOPERATIVE_MATRICES;

    fn spirv_of(kernel: &Kernel, matrices: bool, api: u32) -> Result<Vec<u32>, String> {
        let reflection = kernel.reflection().expect("has one entry point");
        let mut support = Support::default();
        support.kernel.f16 = true;
        support.kernel.subgroups = true;
        support.kernel.cooperative_matrix = matrices;
        let resolved = kernel.resolved().expect("resolves");
        words(spirv_options(&support, api), reflection, (resolved.module(), resolved.info()), false)
    }

    /// Operations and operands behind the header.
    fn instructions(words: &[u32]) -> Vec<(u32, &[u32])> {
        let (mut rest, mut all) = (&words[5..], Vec::new());
        while let Some(first) = rest.first() {
            let (one, after) = rest.split_at((first >> 16) as usize);
            all.push((first & 0xffff, &one[1..]));
            rest = after;
        }
        all
    }

    #[test]
    fn spirv_of_matrices_declares_what_the_device_was_opened_with() {
        let kernel = Kernel::from_wgsl(ANSWER).expect("is WGSL");
        for api in [vk::API_VERSION_1_1, vk::API_VERSION_1_2, vk::API_VERSION_1_3] {
            let words = spirv_of(&kernel, true, api).expect("is written");
            let all = instructions(&words);
            let capabilities: BTreeSet<u32> =
                all.iter().filter(|(operation, _)| *operation == 17).map(|(_, operands)| operands[0]).collect();
            // CooperativeMatrixKHR, VulkanMemoryModel; Vulkan's memory model, the products, and the stores' marks.
            assert!(capabilities.contains(&6022) && capabilities.contains(&5345), "{capabilities:?}");
            assert!(all.contains(&(14, &[0, 3])));
            assert!(all.iter().any(|(operation, _)| *operation == 4459));
            let stores: Vec<_> = all.iter().filter(|(operation, _)| *operation == 4458).collect();
            assert!(!stores.is_empty() && stores.iter().all(|(_, operands)| operands.last() == Some(&0x20)));
            if let Some(folder) = std::env::var_os("CANTUS_SPIRV_FOLDER") {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let file = std::path::Path::new(&folder).join(format!("matrices_{}.spv", vk::api_version_minor(api)));
                std::fs::write(file, bytes).expect("is written");
            }
        }
        // On a device without them naga writes nothing.
        assert!(spirv_of(&kernel, false, vk::API_VERSION_1_3).is_err());
    }
}
