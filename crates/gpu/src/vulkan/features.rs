//! Vulkan's optional features: which ones a physical device has, which of them Cantus switches on, and what they amount to. `adapter` asks what there is,
//! `device` switches on what is used, and `program` derives the SPIR-V capabilities for naga. A feature must appear in all three, or naga writes code that
//! the device was not opened for.

use std::ffi::CStr;

use ash::{ext, khr, vk};

use naga::back::spv as spirv;

use crate::kernel;

/// Vulkan's version and extensions, as far as a physical device and the instance both have them.
pub(super) struct Available {
    pub(super) api: u32,
    extensions: Vec<vk::ExtensionProperties>,
}

impl Available {
    pub(super) fn new(instance: &ash::Instance, physical: vk::PhysicalDevice, api: u32) -> Self {
        // SAFETY: the physical device belongs to the instance.
        let extensions = unsafe { instance.enumerate_device_extension_properties(physical) }.unwrap_or_default();
        Self { api, extensions }
    }

    pub(super) fn has(&self, name: &CStr) -> bool {
        self.extensions.iter().any(|known| known.extension_name_as_c_str() == Ok(name))
    }

    /// Returns whether a feature is available: in the core since that version, or as an extension.
    pub(super) fn since(&self, version: u32, name: &CStr) -> bool {
        self.api >= version || self.has(name)
    }
}

/// The features of a device that Cantus uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Support {
    pub(super) kernel: kernel::Features,
    pub(super) timeline: bool,
    pub(super) int8: bool,
    pub(super) zero_workgroup: bool,
    pub(super) size_control: bool,
    pub(super) dot_product: bool,
    pub(super) robust: bool,
    pub(super) cooperative_matrix: bool,
    pub(super) memory_model: bool,
    shared_int64_atomics: bool,
}

/// Vulkan's feature structures, to be asked for or to be switched on.
#[derive(Default)]
pub(super) struct Chain {
    core: vk::PhysicalDeviceFeatures,
    bits16: vk::PhysicalDevice16BitStorageFeatures<'static>,
    small: vk::PhysicalDeviceShaderFloat16Int8Features<'static>,
    atomics64: vk::PhysicalDeviceShaderAtomicInt64Features<'static>,
    atomic_floats: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    size_control: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    zero_workgroup: vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'static>,
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>,
    dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures<'static>,
}

impl Chain {
    /// Asks a physical device.
    pub(super) fn query(instance: &ash::Instance, physical: vk::PhysicalDevice, available: &Available) -> Self {
        let mut chain = Self::default();
        let core = {
            let mut features = chain.linked(available);
            // SAFETY: only structures that the device knows are linked; they live until the call is over.
            unsafe { instance.get_physical_device_features2(physical, &mut features) };
            features.features
        };
        chain.core = core;
        chain
    }

    /// The structures for switching on what is used.
    pub(super) fn wanted(support: &Support) -> Self {
        let kernel = support.kernel;
        let small = kernel.f16 || kernel.int16;
        Self {
            core: vk::PhysicalDeviceFeatures::default()
                .robust_buffer_access(support.robust)
                .shader_float64(kernel.float64)
                .shader_int64(kernel.int64)
                .shader_int16(kernel.int16),
            bits16: vk::PhysicalDevice16BitStorageFeatures::default()
                .storage_buffer16_bit_access(small)
                .uniform_and_storage_buffer16_bit_access(small),
            small: vk::PhysicalDeviceShaderFloat16Int8Features::default()
                .shader_float16(kernel.f16)
                .shader_int8(support.int8),
            atomics64: vk::PhysicalDeviceShaderAtomicInt64Features::default()
                .shader_buffer_int64_atomics(kernel.int64_atomics)
                .shader_shared_int64_atomics(kernel.int64_atomics && support.shared_int64_atomics),
            atomic_floats: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default()
                .shader_buffer_float32_atomics(kernel.float32_atomics)
                .shader_buffer_float32_atomic_add(kernel.float32_atomics),
            size_control: vk::PhysicalDeviceSubgroupSizeControlFeatures::default()
                .subgroup_size_control(support.size_control),
            zero_workgroup: vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures::default()
                .shader_zero_initialize_workgroup_memory(support.zero_workgroup),
            timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(support.timeline),
            dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures::default()
                .shader_integer_dot_product(support.dot_product),
            matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default()
                .cooperative_matrix(kernel.cooperative_matrix),
            memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures::default()
                .vulkan_memory_model(kernel.cooperative_matrix),
        }
    }

    /// The structures that the device knows, linked.
    pub(super) fn linked(&mut self, available: &Available) -> vk::PhysicalDeviceFeatures2<'_> {
        let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
        let mut all = vk::PhysicalDeviceFeatures2::default().features(self.core).push_next(&mut self.bits16);
        if available.since(v12, khr::shader_float16_int8::NAME) {
            all = all.push_next(&mut self.small);
        }
        if available.since(v12, khr::shader_atomic_int64::NAME) {
            all = all.push_next(&mut self.atomics64);
        }
        if available.has(ext::shader_atomic_float::NAME) {
            all = all.push_next(&mut self.atomic_floats);
        }
        if available.since(v13, ext::subgroup_size_control::NAME) {
            all = all.push_next(&mut self.size_control);
        }
        if available.since(v13, khr::zero_initialize_workgroup_memory::NAME) {
            all = all.push_next(&mut self.zero_workgroup);
        }
        if available.since(v12, khr::timeline_semaphore::NAME) {
            all = all.push_next(&mut self.timeline);
        }
        if available.since(v13, khr::shader_integer_dot_product::NAME) {
            all = all.push_next(&mut self.dot_product);
        }
        if available.has(khr::cooperative_matrix::NAME) {
            all = all.push_next(&mut self.matrix);
        }
        if available.since(v12, khr::vulkan_memory_model::NAME) {
            all = all.push_next(&mut self.memory_model);
        }
        all
    }

    /// Returns the features that the answers amount to. `subgroups`: all of WGSL's subgroup operations are there.
    pub(super) fn support(&self, subgroups: bool) -> Support {
        let on = |flag: vk::Bool32| flag == vk::TRUE;
        let bits16 =
            on(self.bits16.storage_buffer16_bit_access) && on(self.bits16.uniform_and_storage_buffer16_bit_access);
        let int64 = on(self.core.shader_int64);
        Support {
            kernel: kernel::Features {
                f16: on(self.small.shader_float16) && bits16,
                int64,
                float64: on(self.core.shader_float64),
                int16: on(self.core.shader_int16) && bits16,
                subgroups,
                int64_atomics: int64 && on(self.atomics64.shader_buffer_int64_atomics),
                float32_atomics: on(self.atomic_floats.shader_buffer_float32_atomics)
                    && on(self.atomic_floats.shader_buffer_float32_atomic_add),
                // Decided when the device's products are known.
                cooperative_matrix: false,
            },
            timeline: on(self.timeline.timeline_semaphore),
            int8: on(self.small.shader_int8),
            zero_workgroup: on(self.zero_workgroup.shader_zero_initialize_workgroup_memory),
            size_control: on(self.size_control.subgroup_size_control),
            dot_product: on(self.dot_product.shader_integer_dot_product),
            robust: on(self.core.robust_buffer_access),
            cooperative_matrix: on(self.matrix.cooperative_matrix),
            memory_model: on(self.memory_model.vulkan_memory_model),
            shared_int64_atomics: on(self.atomics64.shader_shared_int64_atomics),
        }
    }
}

/// The extensions to switch on: those that the used features need below the version that took them in.
pub(super) fn extensions(support: &Support, available: &Available) -> Vec<&'static CStr> {
    let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
    let kernel = support.kernel;
    let wanted: [(bool, u32, &'static CStr); 10] = [
        (kernel.f16 || support.int8, v12, khr::shader_float16_int8::NAME),
        (kernel.int64_atomics, v12, khr::shader_atomic_int64::NAME),
        (kernel.float32_atomics, u32::MAX, ext::shader_atomic_float::NAME),
        (support.size_control, v13, ext::subgroup_size_control::NAME),
        (support.zero_workgroup, v13, khr::zero_initialize_workgroup_memory::NAME),
        (support.timeline, v12, khr::timeline_semaphore::NAME),
        (support.dot_product, v13, khr::shader_integer_dot_product::NAME),
        (kernel.cooperative_matrix, u32::MAX, khr::cooperative_matrix::NAME),
        (kernel.cooperative_matrix, v12, khr::vulkan_memory_model::NAME),
        // A device that does not conform in all points demands it.
        (true, u32::MAX, khr::portability_subset::NAME),
    ];
    let mut names: Vec<&'static CStr> = Vec::new();
    for (used, core, name) in wanted {
        if used && available.api < core && available.has(name) {
            names.push(name);
        }
    }
    names
}

/// The SPIR-V capabilities that naga may use on such a device.
pub(super) fn capabilities(support: &Support, api: u32) -> Vec<spirv::Capability> {
    use spirv::Capability as C;
    let kernel = support.kernel;
    let mut all = vec![C::Shader, C::Matrix];
    let mut when = |condition: bool, capabilities: &[C]| {
        if condition {
            all.extend_from_slice(capabilities);
        }
    };
    when(
        kernel.subgroups,
        &[
            C::GroupNonUniform,
            C::GroupNonUniformVote,
            C::GroupNonUniformArithmetic,
            C::GroupNonUniformBallot,
            C::GroupNonUniformShuffle,
            C::GroupNonUniformShuffleRelative,
            C::GroupNonUniformQuad,
        ],
    );
    when(kernel.int64, &[C::Int64]);
    when(kernel.int64_atomics, &[C::Int64Atomics]);
    when(kernel.f16, &[C::Float16]);
    when(kernel.int16, &[C::Int16]);
    when(kernel.float64, &[C::Float64]);
    when(kernel.float32_atomics, &[C::AtomicFloat32AddEXT]);
    when(support.int8, &[C::Int8]);
    when(kernel.cooperative_matrix, &[C::CooperativeMatrixKHR, C::VulkanMemoryModel]);
    // naga writes the core's names for these, which SPIR-V has since 1.6.
    when(
        support.dot_product && api >= vk::API_VERSION_1_3,
        &[C::DotProduct, C::DotProductInputAll, C::DotProductInput4x8Bit, C::DotProductInput4x8BitPacked],
    );
    all
}

/// The options for SPIR-V on a device.
pub(super) fn spirv_options(support: &Support, api: u32) -> spirv::Options<'static> {
    use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
    spirv::Options {
        lang_version: match api {
            ..vk::API_VERSION_1_2 => (1, 3),
            vk::API_VERSION_1_2..vk::API_VERSION_1_3 => (1, 5),
            _ => (1, 6),
        },
        flags: spirv::WriterFlags::empty(),
        capabilities: Some(capabilities(support, api).into_iter().collect()),
        bounds_check_policies: BoundsCheckPolicies {
            index: BoundsCheckPolicy::Restrict,
            buffer: BoundsCheckPolicy::Restrict,
            image_load: BoundsCheckPolicy::Restrict,
            binding_array: BoundsCheckPolicy::Unchecked,
        },
        zero_initialize_workgroup_memory: if support.zero_workgroup {
            spirv::ZeroInitializeWorkgroupMemoryMode::Native
        } else {
            spirv::ZeroInitializeWorkgroupMemoryMode::Polyfill
        },
        force_loop_bounding: true,
        emit_int_div_checks: true,
        use_storage_input_output_16: false,
        ..spirv::Options::default()
    }
}
