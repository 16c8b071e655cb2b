//! Cooperative matrices of Vulkan: what a device needs for them, and the products that it lists.
//!
//! They need `VK_KHR_cooperative_matrix` and Vulkan's memory model, which naga declares for them.

use ash::vk;

use crate::matrices::{Component, Matrices, Product};
use cantus_base::listed::Listed;

fn component(kind: vk::ComponentTypeKHR) -> Option<Component> {
    match kind {
        vk::ComponentTypeKHR::FLOAT16 => Some(Component::F16),
        vk::ComponentTypeKHR::FLOAT32 => Some(Component::F32),
        _ => None,
    }
}

/// Converts a product that Vulkan lists; `None` if WGSL cannot express it.
fn product(listed: &vk::CooperativeMatrixPropertiesKHR<'_>) -> Option<Product> {
    if listed.scope != vk::ScopeKHR::SUBGROUP || listed.c_type != listed.result_type {
        return None;
    }
    let components = [component(listed.a_type)?, component(listed.b_type)?, component(listed.c_type)?];
    Some(Product::new([listed.m_size, listed.n_size, listed.k_size], components))
}

/// A physical device's answers.
pub(super) struct Offer<'a> {
    /// It has `VK_KHR_cooperative_matrix`.
    pub(super) extension: bool,
    /// The extension's feature.
    pub(super) feature: bool,
    /// True if compute shaders support them.
    pub(super) in_compute: bool,
    /// `vulkanMemoryModel`
    pub(super) memory_model: bool,
    /// f16 in arithmetic and in buffers.
    pub(super) f16: bool,
    /// All of WGSL's subgroup operations.
    pub(super) subgroups: bool,
    pub(super) listed: &'a [vk::CooperativeMatrixPropertiesKHR<'static>],
}

impl Offer<'_> {
    pub(super) fn matrices(&self) -> Matrices {
        let needed = [
            (self.extension, "the extension VK_KHR_cooperative_matrix"),
            (self.feature, "the feature cooperativeMatrix"),
            (self.in_compute, "cooperative matrices in compute shaders"),
            (self.memory_model, "the feature vulkanMemoryModel"),
            (self.f16, "f16 in arithmetic and in storage buffers"),
            (self.subgroups, "subgroup operations"),
        ];
        Matrices::new(&needed, self.listed.iter().filter_map(product).listed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Listed = vk::CooperativeMatrixPropertiesKHR<'static>;
    const F16: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT16;
    const F32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT32;

    fn listed(sides: [u32; 3], factors: vk::ComponentTypeKHR, sums: vk::ComponentTypeKHR) -> Listed {
        let [m, n, k] = sides;
        Listed::default()
            .m_size(m)
            .n_size(n)
            .k_size(k)
            .a_type(factors)
            .b_type(factors)
            .c_type(sums)
            .result_type(sums)
            .scope(vk::ScopeKHR::SUBGROUP)
    }

    fn whole(listed: &[Listed]) -> Offer<'_> {
        let (extension, feature, in_compute, memory_model, f16, subgroups) = (true, true, true, true, true, true);
        Offer { extension, feature, in_compute, memory_model, f16, subgroups, listed }
    }

    #[test]
    fn the_device_must_list_the_products_of_the_kernels() {
        let good = listed([16, 16, 16], F16, F32);
        let other = [listed([16, 8, 16], F16, F32), listed([16, 16, 16], F16, F16)];
        let integers = listed([16, 16, 32], vk::ComponentTypeKHR::SINT8, vk::ComponentTypeKHR::SINT32);
        assert!(whole(&[other[0], integers, good]).matrices().are_used());
        // Another scope, other sums, another depth, and none at all.
        let reasons = |listed: &[Listed]| whole(listed).matrices().lack().unwrap_or_default();
        assert!(reasons(&[good.scope(vk::ScopeKHR::WORKGROUP)]).contains("lists none that WGSL has"));
        assert!(reasons(&[good.result_type(F16)]).contains("none that WGSL has"));
        assert!(reasons(&other).contains("16x16 of f16 by 16x8 of f16 with sums in f32"), "{}", reasons(&other));
        assert!(reasons(&[listed([16, 16, 8], F16, F32)]).contains("16x8 of f16"));
        assert!(reasons(&[integers]).contains("none that WGSL has"));
        assert!(reasons(&[]).contains("16x16 of f16 by 16x16 of f16 with sums in f32"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let products = [listed([16, 16, 16], F16, F32)];
        let lack = |change: fn(&mut Offer<'_>)| {
            let mut offer = whole(&products);
            change(&mut offer);
            offer.matrices().lack().unwrap_or_default()
        };
        assert!(lack(|offer| offer.extension = false).contains("VK_KHR_cooperative_matrix"));
        assert!(lack(|offer| offer.feature = false).contains("cooperativeMatrix"));
        assert!(lack(|offer| offer.in_compute = false).contains("compute"));
        assert!(lack(|offer| offer.memory_model = false).contains("vulkanMemoryModel"));
        assert!(lack(|offer| offer.f16 = false).contains("f16"));
        assert!(lack(|offer| offer.subgroups = false).contains("subgroup"));
        assert_eq!(lack(|_| {}), "");
    }
}
