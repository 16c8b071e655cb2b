//! naga's module between its front end and its validator: the changes correct what naga 30 gets wrong or cannot write. `docs/naga.md` lists the
//! reasons. Modules without such constructs stay as they are.

pub(crate) mod arguments;
#[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub mod components;
mod deep;
mod emitted;
#[cfg(any(feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
#[doc(hidden)]
pub mod guards;
mod inserted;
mod layout;
mod magnitude;
mod pointers;
mod returns;
#[cfg(any(feature = "vulkan", feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
#[doc(hidden)]
pub mod shifts;
mod shuffles;
#[cfg(any(feature = "writers", feature = "_gpu", feature = "_cuda_hip"))]
pub(crate) mod sizes;
mod spaces;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod tables;
mod vectors;
#[cfg(any(feature = "vulkan", feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
#[doc(hidden)]
pub mod zeroed;

#[cfg(any(feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
#[doc(hidden)]
pub use emitted::check_glsl;
#[cfg(any(test, feature = "writers", all(feature = "wgpu", target_arch = "wasm32")))]
pub(crate) use emitted::wgsl;

use super::front::Attributes;

/// A module for SPIR-V, checked again.
#[cfg(feature = "vulkan")]
#[doc(hidden)]
pub struct Settled {
    #[doc(hidden)]
    pub module: naga::Module,
    #[doc(hidden)]
    pub info: naga::valid::ModuleInfo,
    /// It sets its workgroup memory to zero itself.
    #[doc(hidden)]
    pub is_zeroed: bool,
}

/// Amends a module for SPIR-V; nothing where it is right as it is. `zeroes` is the entry point whose workgroup memory the driver does not set to zero.
#[cfg(feature = "vulkan")]
#[doc(hidden)]
pub fn settled(
    module: &naga::Module,
    info: &naga::valid::ModuleInfo,
    zeroes: Option<usize>,
) -> Option<Result<Settled, String>> {
    if zeroes.is_none() && !shifts::are_in(module) {
        return None;
    }
    let mut module = module.clone();
    let is_zeroed = zeroes.is_some_and(|entry_point| zeroed::settle(&mut module, info, entry_point));
    shifts::settle(&mut module);
    let info = super::capabilities::validate(&module);
    Some(info.map(|info| Settled { module, info, is_zeroed }).map_err(|error| error.emit_to_string("")))
}

/// Puts a module right. An error is the reason why it cannot be run.
pub(super) fn amend(module: &mut naga::Module, attributes: &Attributes) -> Result<(), String> {
    if !attributes.is_empty() {
        layout::settle(module, attributes)?;
    }
    if let Some(name) = shared_matrix(module) {
        return Err(format!(
            "the variable \"{name}\" holds a cooperative matrix, which belongs to one subgroup: keep its elements in an array (coopStore), the matrix in \
             a variable of a function"
        ));
    }
    vectors::settle(module);
    spaces::settle(module);
    returns::settle(module);
    deep::settle(module);
    magnitude::settle(module);
    shuffles::settle(module);
    pointers::settle(module);
    Ok(())
}

/// The name of a variable that invocations share and that is made of cooperative matrices.
fn shared_matrix(module: &naga::Module) -> Option<String> {
    use naga::{AddressSpace, TypeInner};
    // Types come after those that they are made of.
    let mut has_matrix: Vec<bool> = Vec::with_capacity(module.types.len());
    for (_, ty) in module.types.iter() {
        let of = |part: naga::Handle<naga::Type>| has_matrix.get(part.index()).copied().unwrap_or(false);
        has_matrix.push(match &ty.inner {
            TypeInner::CooperativeMatrix { .. } => true,
            TypeInner::Array { base, .. } => of(*base),
            TypeInner::Struct { members, .. } => members.iter().any(|member| of(member.ty)),
            _ => false,
        });
    }
    let mut shared = module.global_variables.iter().filter(|(_, variable)| variable.space != AddressSpace::Private);
    let (_, found) = shared.find(|(_, variable)| has_matrix.get(variable.ty.index()) == Some(&true))?;
    Some(found.name.clone().unwrap_or_default())
}
