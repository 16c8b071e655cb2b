//! Cooperative matrices through wgpu, whose feature for them is experimental: what an adapter needs, the products that it lists, and their SPIR-V.
//!
//! wgpu hands naga's SPIR-V to Vulkan as it is, without the marks that Vulkan's memory model demands (`kernel/spirv.rs`). There the SPIR-V is written
//! here and passed through. Metal gets its kernels the usual way.

use wgpu::{CooperativeMatrixProperties, CooperativeScalarType, Features};

use crate::matrices::{Component, Matrices, Product};
use cantus_base::listed::Listed;

fn component(kind: CooperativeScalarType) -> Option<Component> {
    match kind {
        CooperativeScalarType::F16 => Some(Component::F16),
        CooperativeScalarType::F32 => Some(Component::F32),
        _ => None,
    }
}

/// Converts a product that wgpu lists; `None` if WGSL cannot express it.
fn product(listed: &CooperativeMatrixProperties) -> Option<Product> {
    let (factors, sums) = (component(listed.ab_type)?, component(listed.cr_type)?);
    Some(Product::new([listed.m_size, listed.n_size, listed.k_size], [factors, factors, sums]))
}

/// Returns the matrices supported by an adapter with these features and this list.
pub(super) fn offered(features: Features, listed: &[CooperativeMatrixProperties]) -> Matrices {
    let has = |feature| features.contains(feature);
    let needed = [
        (has(Features::EXPERIMENTAL_COOPERATIVE_MATRIX), "wgpu's feature EXPERIMENTAL_COOPERATIVE_MATRIX"),
        (has(Features::PASSTHROUGH_SHADERS), "wgpu's feature PASSTHROUGH_SHADERS"),
        (has(Features::SHADER_F16), "f16"),
        (has(Features::SUBGROUP | Features::SUBGROUP_BARRIER), "subgroup operations"),
    ];
    Matrices::new(&needed, listed.iter().filter_map(product).listed())
}

/// SPIR-V of a kernel with matrices. `slots`: each binding as (group, number, place in the group's layout), which is the number that wgpu gives it.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
pub(super) fn spirv(
    module: &naga::Module,
    name: &str,
    slots: impl Iterator<Item = (u32, u32, u32)>,
) -> Result<Vec<u32>, String> {
    use naga::back::spv;
    use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
    let info = crate::kernel::capabilities::validate(module);
    let info = info.map_err(|error| error.emit_to_string(""))?;
    let place = |(group, binding, slot)| {
        let info = spv::BindingInfo { descriptor_set: group, binding: slot, binding_array_size: None };
        (naga::ResourceBinding { group, binding }, info)
    };
    let options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        binding_map: slots.map(place).mapped(),
        bounds_check_policies: BoundsCheckPolicies {
            index: BoundsCheckPolicy::Restrict,
            buffer: BoundsCheckPolicy::Restrict,
            image_load: BoundsCheckPolicy::Restrict,
            binding_array: BoundsCheckPolicy::Restrict,
        },
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: name.to_owned() };
    let words = spv::write_vec(module, &info, &options, Some(&pipeline));
    let words = words.map_err(|error| format!("naga writes no SPIR-V of it: {error}"))?;
    crate::kernel::spirv::share(&words).map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const F16: CooperativeScalarType = CooperativeScalarType::F16;
    const F32: CooperativeScalarType = CooperativeScalarType::F32;

    fn listed(
        sides: [u32; 3],
        factors: CooperativeScalarType,
        sums: CooperativeScalarType,
    ) -> CooperativeMatrixProperties {
        let [m_size, n_size, k_size] = sides;
        let (ab_type, cr_type, saturating_accumulation) = (factors, sums, false);
        CooperativeMatrixProperties { m_size, n_size, k_size, ab_type, cr_type, saturating_accumulation }
    }

    fn all() -> Features {
        Features::EXPERIMENTAL_COOPERATIVE_MATRIX
            | Features::PASSTHROUGH_SHADERS
            | Features::SHADER_F16
            | Features::SUBGROUP
            | Features::SUBGROUP_BARRIER
    }

    #[test]
    fn the_adapter_must_list_the_products_of_the_kernels() {
        let large = offered(all(), &[listed([8, 8, 16], F16, F16), listed([16, 16, 16], F16, F32)]);
        assert!(large.are_used() && large.have_shipped());
        // Metal's list: its kernels are those of 8 x 8, and not the library's own.
        let small = [listed([8, 8, 8], F32, F32), listed([8, 8, 8], F16, F16), listed([8, 8, 8], F16, F32)];
        let metal = offered(all(), &small);
        assert!(metal.are_used() && !metal.have_shipped());
        let lack = offered(all(), &small[..2]).lack().unwrap_or_default();
        assert!(lack.contains("it lists 8x8 of f32 by 8x8 of f32 with sums in f32, 8x8 of f16"), "{lack}");
        let integers = listed([16, 16, 16], CooperativeScalarType::I32, CooperativeScalarType::I32);
        assert!(offered(all(), &[integers]).lack().unwrap_or_default().contains("none that WGSL has"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let list = [listed([16, 16, 16], F16, F32)];
        let lack = |without: Features| offered(all() - without, &list).lack().unwrap_or_default();
        assert_eq!(lack(Features::empty()), "");
        assert!(lack(Features::EXPERIMENTAL_COOPERATIVE_MATRIX).ends_with("feature EXPERIMENTAL_COOPERATIVE_MATRIX"));
        assert!(lack(Features::PASSTHROUGH_SHADERS).ends_with("feature PASSTHROUGH_SHADERS"));
        assert!(lack(Features::SHADER_F16).ends_with("f16"));
        assert!(lack(Features::SUBGROUP_BARRIER).ends_with("subgroup operations"));
    }
}
