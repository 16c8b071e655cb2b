//! Variables of address spaces that devices lack, or have with other layouts: `immediate` becomes `uniform`, and a variable of either whose layout
//! only storage has (`uniform_buffer_standard_layout`) becomes read-only storage.

use naga::{AddressSpace, GlobalVariable, Handle, Module, ResourceBinding, StorageAccess, Type, TypeInner};

pub(super) fn settle(module: &mut Module) {
    let taken =
        |variable: &GlobalVariable| variable.binding.filter(|place| place.group == 0).map(|place| place.binding);
    let mut free = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| taken(variable))
        .max()
        .map_or(0, |last| last.saturating_add(1));
    let moved: Vec<_> = module
        .global_variables
        .iter()
        .filter(|(_, variable)| matches!(variable.space, AddressSpace::Uniform | AddressSpace::Immediate))
        // An array without a length is for storage alone.
        .filter(|(_, variable)| !module.types[variable.ty].inner.is_dynamically_sized(&module.types))
        .filter(|(_, variable)| !fits_uniform(module, variable.ty))
        .map(|(handle, _)| handle)
        .collect();
    for (handle, variable) in module.global_variables.iter_mut() {
        if variable.space == AddressSpace::Immediate {
            variable.space = AddressSpace::Uniform;
            variable.binding = Some(ResourceBinding { group: 0, binding: free });
            free = free.saturating_add(1);
        }
        if moved.contains(&handle) {
            variable.space = AddressSpace::Storage { access: StorageAccess::LOAD };
        }
    }
}

/// Returns whether arrays and structures lie on borders of 16 bytes.
fn fits_uniform(module: &Module, ty: Handle<Type>) -> bool {
    let is_whole =
        |ty: Handle<Type>| matches!(module.types[ty].inner, TypeInner::Array { .. } | TypeInner::Struct { .. });
    match &module.types[ty].inner {
        TypeInner::Array { base, stride, .. } => stride % 16 == 0 && fits_uniform(module, *base),
        TypeInner::Struct { members, .. } => {
            let follows = |pair: &[naga::StructMember]| match pair {
                [first, second] if matches!(module.types[first.ty].inner, TypeInner::Struct { .. }) => {
                    let size = module.types[first.ty].inner.size(module.to_ctx());
                    second.offset >= first.offset.saturating_add(size.div_ceil(16).saturating_mul(16))
                }
                _ => true,
            };
            members
                .iter()
                .all(|member| (!is_whole(member.ty) || member.offset % 16 == 0) && fits_uniform(module, member.ty))
                && members.windows(2).all(follows)
        }
        _ => true,
    }
}
