//! Cooperative matrices: the products that a device lists, whether the library's kernels run on them, and whether a kernel's own do. Vulkan and wgpu ask it
//! which capabilities to report and whether a kernel's own matrices are among the device's products. Listing a product is not enough: known answers decide
//! whether the driver is believed, and the library's own frame needs `FRAME_IS_RIGHT` besides.

use cantus_base::listed::Listed;
use std::fmt;

#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
use naga::{CooperativeRole, Expression, Scalar, TypeInner};

/// The components that both WGSL and the devices have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Component {
    F16,
    F32,
}

#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
impl Component {
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

#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
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
pub(super) struct Product {
    a: Matrix,
    b: Matrix,
    c: Matrix,
}

impl Product {
    /// Returns the product of m x k and k x n matrices of these components, with sums of component `c`.
    pub(super) const fn new([m, n, k]: [u32; 3], [a, b, c]: [Component; 3]) -> Self {
        Self {
            a: Matrix { rows: m, columns: k, component: a },
            b: Matrix { rows: k, columns: n, component: b },
            c: Matrix { rows: m, columns: n, component: c },
        }
    }

    const fn of_halves(side: u32) -> Self {
        Self::new([side; 3], [Component::F16, Component::F16, Component::F32])
    }

    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
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

/// The product of the library's own kernels.
const SHIPPED: Product = Product::of_halves(16);
/// The products of which a device must list one: there are known answers for them.
const KNOWN: [Product; 2] = [SHIPPED, Product::of_halves(8)];

/// The products of a device that runs kernels with matrices, or what it lacks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrices(Result<Vec<Product>, String>);

impl Matrices {
    /// `needed`: what must be there besides, and its name. `products`: what the device lists, as far as WGSL can say it.
    pub(super) fn new(needed: &[(bool, &str)], products: Vec<Product>) -> Self {
        if let Some((_, missing)) = needed.iter().find(|(there, _)| !there) {
            return Self::lacking(missing);
        }
        if products.iter().any(|product| KNOWN.contains(product)) {
            return Self(Ok(products));
        }
        let listed: Vec<_> = products.iter().map(Product::to_string).listed();
        let listed = if listed.is_empty() { "none that WGSL has".to_owned() } else { listed.join(", ") };
        Self(Err(format!("the product {SHIPPED} by a subgroup, and that of 8x8 (it lists {listed})")))
    }

    pub(super) fn lacking(missing: &str) -> Self {
        Self(Err(missing.to_owned()))
    }

    pub(super) fn are_used(&self) -> bool {
        self.0.is_ok()
    }

    /// True if the library's product of f16 gives right numbers by SPIR-V. On an H100, the one GPU with such matrices that has run it, it does not
    /// (by CUDA it does; kernels that only use matrices are right by both): operations take other kernels there until it does.
    pub(super) const FRAME_IS_RIGHT: bool = false;

    /// Returns whether the library's own kernels run.
    pub(super) fn have_shipped(&self) -> bool {
        self.0.as_ref().is_ok_and(|products| products.contains(&SHIPPED))
    }

    /// Returns the reason why a kernel with matrices is refused.
    pub(super) fn lack(&self) -> Option<String> {
        let lack = self.0.as_ref().err()?;
        Some(format!("it needs cooperative matrices, for which the device lacks {lack}"))
    }

    /// Checks that a kernel's matrices are among the device's products. `subgroup`: the largest subgroup.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(super) fn check(
        &self,
        module: &naga::Module,
        info: &naga::valid::ModuleInfo,
        (workgroup, subgroup): ([u32; 3], u32),
    ) -> Result<(), String> {
        let products = self.0.as_ref().map_err(Clone::clone)?;
        // Every subgroup that holds matrices is whole: Vulkan and Metal demand it.
        if !workgroup[0].is_multiple_of(subgroup.max(1)) {
            return Err(format!(
                "cooperative matrices in a workgroup of {} invocations in x, which is no multiple of the subgroup's {subgroup}",
                workgroup[0]
            ));
        }
        let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
        let entries = module.entry_points.iter().enumerate().map(|(i, e)| (&e.function, info.get_entry_point(i)));
        let has = |inner: &TypeInner| {
            let found = Matrix::of_wgsl(inner);
            if found.is_some_and(|(matrix, role)| products.iter().any(|product| product.has(matrix, role))) {
                return Ok(());
            }
            let what = found.map_or_else(|| "other components".to_owned(), |(m, role)| format!("{m} as {role:?}"));
            Err(format!("cooperative matrices that the device does not list ({what})"))
        };
        // What is only read and written has its type in its expressions alone.
        for (function, info) in functions.chain(entries) {
            for (handle, _) in function.expressions.iter() {
                let inner = info[handle].ty.inner_with(&module.types);
                if matches!(inner, TypeInner::CooperativeMatrix { .. }) {
                    has(inner)?;
                }
            }
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

#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    const HALVES: [Component; 3] = [Component::F16; 3];

    fn listed(products: &[Product]) -> Matrices {
        Matrices(Ok(products.to_vec()))
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
        let resolved = kernel.resolved().expect("resolves");
        matrices.check(resolved.module(), resolved.info(), (reflection.workgroup_size, subgroup))
    }

    #[test]
    fn a_kernels_own_products_are_looked_up() {
        let matrices = listed(&[SHIPPED, Product::new([16; 3], HALVES)]);
        assert_eq!(checked(&matrices, &product(16, "f32", 128), 64), Ok(()));
        assert_eq!(checked(&matrices, &product(16, "f16", 128), 32), Ok(()));
        let refused = |kernel: &Kernel, subgroup| checked(&matrices, kernel, subgroup).expect_err("is refused");
        assert!(refused(&product(8, "f32", 128), 32).contains("8x8 of"));
        assert!(refused(&product(16, "f32", 48), 32).contains("no multiple of the subgroup's 32"));
        assert!(refused(&product(16, "f32", 32), 64).contains("no multiple"));
        // All three matrices are listed, and not their product.
        let apart = listed(&[SHIPPED, Product::new([8; 3], [Component::F32; 3]), Product::new([8; 3], HALVES)]);
        let refused = checked(&apart, &product(8, "f32", 128), 32).expect_err("is refused");
        assert!(refused.contains("8x8 of f16 by 8x8 of f16 with sums in f32"), "{refused}");
        // What is read and written, and multiplied with nothing.
        let moved = "enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, read_write> y: array<f32>;
            @compute @workgroup_size(32) fn moved() {
                let x = coopLoadT<coop_mat8x8<f32, C>>(&y[0], 8u);
                coopStoreT(x, &y[64], 8u);
            }";
        let moved = Kernel::from_wgsl(moved).expect("is WGSL");
        let refused = checked(&matrices, &moved, 32).expect_err("is refused");
        assert!(refused.contains("8x8 of f32 as C"), "{refused}");
        let without = Matrices::lacking("everything");
        assert!(checked(&without, &product(16, "f32", 128), 32).is_err());
    }
}
