//! Cooperative matrices: the products that a device lists, whether the library's kernels run on them, and whether a kernel's own do.
//!
//! They need `VK_KHR_cooperative_matrix` and Vulkan's memory model, which naga declares for them.

use std::fmt;

use ash::vk;
use naga::{CooperativeRole, Expression, Scalar, TypeInner};

/// The components that both WGSL and Vulkan have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Component {
    F16,
    F32,
}

impl Component {
    fn of_vulkan(kind: vk::ComponentTypeKHR) -> Option<Self> {
        match kind {
            vk::ComponentTypeKHR::FLOAT16 => Some(Self::F16),
            vk::ComponentTypeKHR::FLOAT32 => Some(Self::F32),
            _ => None,
        }
    }

    fn of_wgsl(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::F16 => Some(Self::F16),
            Scalar::F32 => Some(Self::F32),
            _ => None,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        })
    }
}

/// A matrix of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Matrix {
    rows: u32,
    columns: u32,
    component: Component,
}

impl Matrix {
    fn of_wgsl(inner: &TypeInner) -> Option<(Self, CooperativeRole)> {
        let TypeInner::CooperativeMatrix { columns, rows, scalar, role } = *inner else { return None };
        let component = Component::of_wgsl(scalar)?;
        Some((Self { rows: rows as u32, columns: columns as u32, component }, role))
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} of {}", self.rows, self.columns, self.component)
    }
}

/// A product that a subgroup computes at once: a b + c, whose sums are of c's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Product {
    a: Matrix,
    b: Matrix,
    c: Matrix,
}

impl Product {
    /// As Vulkan lists it; `None` where WGSL cannot say it.
    fn of_vulkan(listed: &vk::CooperativeMatrixPropertiesKHR<'_>) -> Option<Self> {
        if listed.scope != vk::ScopeKHR::SUBGROUP || listed.c_type != listed.result_type {
            return None;
        }
        let matrix = |rows, columns, kind| Some(Matrix { rows, columns, component: Component::of_vulkan(kind)? });
        Some(Self {
            a: matrix(listed.m_size, listed.k_size, listed.a_type)?,
            b: matrix(listed.k_size, listed.n_size, listed.b_type)?,
            c: matrix(listed.m_size, listed.n_size, listed.c_type)?,
        })
    }

    fn has(&self, matrix: Matrix, role: CooperativeRole) -> bool {
        matrix
            == match role {
                CooperativeRole::A => self.a,
                CooperativeRole::B => self.b,
                CooperativeRole::C => self.c,
            }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} with sums in {}", self.a, self.b, self.c.component)
    }
}

/// The product of the library's own kernels, and of the known answers that a device must give first.
const SHIPPED: Product = {
    const fn square(component: Component) -> Matrix {
        Matrix { rows: 16, columns: 16, component }
    }
    Product { a: square(Component::F16), b: square(Component::F16), c: square(Component::F32) }
};

/// What a physical device says.
pub(super) struct Offer<'a> {
    /// It has `VK_KHR_cooperative_matrix`.
    pub(super) extension: bool,
    /// The extension's feature.
    pub(super) feature: bool,
    /// In compute shaders.
    pub(super) in_compute: bool,
    /// `vulkanMemoryModel`
    pub(super) memory_model: bool,
    /// f16 in arithmetic and in buffers.
    pub(super) f16: bool,
    /// All of WGSL's subgroup operations.
    pub(super) subgroups: bool,
    pub(super) listed: &'a [vk::CooperativeMatrixPropertiesKHR<'static>],
}

/// The products of a device on which the library's kernels run, or what it lacks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrices(Result<Vec<Product>, String>);

impl Matrices {
    pub(super) fn new(offer: &Offer<'_>) -> Self {
        let needed = [
            (offer.extension, "the extension VK_KHR_cooperative_matrix"),
            (offer.feature, "the feature cooperativeMatrix"),
            (offer.in_compute, "cooperative matrices in compute shaders"),
            (offer.memory_model, "the feature vulkanMemoryModel"),
            (offer.f16, "f16 in arithmetic and in storage buffers"),
            (offer.subgroups, "subgroup operations"),
        ];
        if let Some((_, missing)) = needed.into_iter().find(|(there, _)| !there) {
            return Self(Err(missing.to_owned()));
        }
        let products: Vec<_> = offer.listed.iter().filter_map(Product::of_vulkan).collect();
        if products.contains(&SHIPPED) {
            return Self(Ok(products));
        }
        let listed: Vec<_> = products.iter().map(Product::to_string).collect();
        let listed = if listed.is_empty() { "none that WGSL has".to_owned() } else { listed.join(", ") };
        Self(Err(format!("the product {SHIPPED} by a subgroup (it lists {listed})")))
    }

    pub(super) fn are_used(&self) -> bool {
        self.0.is_ok()
    }

    /// What the device lacks for kernels with matrices.
    pub(super) fn lack(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Whether a kernel's matrices are among the device's products. `subgroup`: the largest subgroup.
    pub(super) fn check(
        &self,
        module: &naga::Module,
        info: &naga::valid::ModuleInfo,
        (workgroup, subgroup): ([u32; 3], u32),
    ) -> Result<(), String> {
        let products = self.0.as_ref().map_err(Clone::clone)?;
        // Vulkan demands it: every subgroup that holds matrices is whole.
        if !workgroup[0].is_multiple_of(subgroup.max(1)) {
            return Err(format!(
                "cooperative matrices in a workgroup of {} invocations in x, which is no multiple of the subgroup's {subgroup}",
                workgroup[0]
            ));
        }
        for (_, ty) in module.types.iter() {
            if !matches!(ty.inner, TypeInner::CooperativeMatrix { .. }) {
                continue;
            }
            let found = Matrix::of_wgsl(&ty.inner);
            if !found.is_some_and(|(matrix, role)| products.iter().any(|product| product.has(matrix, role))) {
                let what = found.map_or_else(|| "other components".to_owned(), |(m, role)| format!("{m} as {role:?}"));
                return Err(format!("cooperative matrices that the device does not list ({what})"));
            }
        }
        let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
        let entries = module.entry_points.iter().enumerate().map(|(i, e)| (&e.function, info.get_entry_point(i)));
        for (function, info) in functions.chain(entries) {
            for (_, expression) in function.expressions.iter() {
                let Expression::CooperativeMultiplyAdd { a, b, c } = *expression else { continue };
                let matrix = |handle: naga::Handle<Expression>| {
                    Matrix::of_wgsl(info[handle].ty.inner_with(&module.types)).map(|(m, _)| m)
                };
                let (Some(a), Some(b), Some(c)) = (matrix(a), matrix(b), matrix(c)) else {
                    return Err("a product of cooperative matrices of other components".to_owned());
                };
                let wanted = Product { a, b, c };
                if !products.contains(&wanted) {
                    return Err(format!("a product of cooperative matrices that the device does not list ({wanted})"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

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
        assert!(Matrices::new(&whole(&[other[0], integers, good])).are_used());
        // Another scope, other sums, another depth, and none at all.
        let reasons = |listed: &[Listed]| Matrices::new(&whole(listed)).lack().unwrap_or_default().to_owned();
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
            Matrices::new(&offer).lack().unwrap_or_default().to_owned()
        };
        assert!(lack(|offer| offer.extension = false).contains("VK_KHR_cooperative_matrix"));
        assert!(lack(|offer| offer.feature = false).contains("cooperativeMatrix"));
        assert!(lack(|offer| offer.in_compute = false).contains("compute"));
        assert!(lack(|offer| offer.memory_model = false).contains("vulkanMemoryModel"));
        assert!(lack(|offer| offer.f16 = false).contains("f16"));
        assert!(lack(|offer| offer.subgroups = false).contains("subgroup"));
        assert_eq!(lack(|_| {}), "");
    }

    /// A product of matrices of `side` by an entry point of `lanes` invocations.
    fn product(side: u32, sums: &str, lanes: u32) -> Kernel {
        let text = format!(
            "enable f16; enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, read_write> y: array<{sums}>;
            var<workgroup> x: array<f16, 256>;
            @compute @workgroup_size({lanes}) fn product() {{
                let a = coopLoadT<coop_mat{side}x{side}<f16, A>>(&x[0], {side}u);
                let b = coopLoadT<coop_mat{side}x{side}<f16, B>>(&x[0], {side}u);
                let c = coopLoadT<coop_mat{side}x{side}<{sums}, C>>(&y[0], {side}u);
                coopStoreT(coopMultiplyAdd(a, b, c), &y[0], {side}u);
            }}"
        );
        Kernel::from_wgsl(&text).expect("is WGSL")
    }

    fn checked(matrices: &Matrices, kernel: &Kernel, subgroup: u32) -> Result<(), String> {
        let reflection = kernel.reflection().expect("has one entry point");
        let parsed = kernel.parsed().expect("parses");
        let resolved = parsed.resolve(Some(&reflection.entry_point), kernel.overrides()).expect("resolves");
        matrices.check(&resolved.module, &resolved.info, (reflection.workgroup_size, subgroup))
    }

    #[test]
    fn a_kernels_own_products_are_looked_up() {
        let matrices = Matrices::new(&whole(&[listed([16, 16, 16], F16, F32), listed([16, 16, 16], F16, F16)]));
        assert_eq!(checked(&matrices, &product(16, "f32", 128), 64), Ok(()));
        assert_eq!(checked(&matrices, &product(16, "f16", 128), 32), Ok(()));
        let refused = |kernel: &Kernel, subgroup| checked(&matrices, kernel, subgroup).expect_err("is refused");
        assert!(refused(&product(8, "f32", 128), 32).contains("8x8 of"));
        assert!(refused(&product(16, "f32", 48), 32).contains("no multiple of the subgroup's 32"));
        assert!(refused(&product(16, "f32", 32), 64).contains("no multiple"));
        // All three matrices are listed, and not their product.
        let apart = Matrices::new(&whole(&[
            listed([16, 16, 16], F16, F32),
            listed([8, 8, 8], F32, F32),
            listed([8, 8, 8], F16, F16),
        ]));
        let refused = checked(&apart, &product(8, "f32", 128), 32).expect_err("is refused");
        assert!(refused.contains("8x8 of f16 by 8x8 of f16 with sums in f32"), "{refused}");
        let without = Matrices::new(&whole(&[]));
        assert!(checked(&without, &product(16, "f32", 128), 32).is_err());
    }
}
