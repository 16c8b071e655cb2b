//! Offsets by WGSL's rules. naga forgets that `@align` of a member aligns the structure too, wherever that is part of another structure or in
//! an array; the rules are short, so all offsets are computed again from the attributes in the text.

use naga::{ArraySize, Handle, Module, Type, TypeInner, VectorSize};

use super::super::front::Attributes;

/// Alignment and size in bytes. The size of a runtime-sized array is that of one element.
#[derive(Clone, Copy)]
struct Extent {
    align: u64,
    size: u64,
}

fn up(value: u64, align: u64) -> u64 {
    value.div_ceil(align.max(1)).saturating_mul(align)
}

/// Gives all types of the module the offsets, strides and sizes that WGSL says.
pub(super) fn settle(module: &mut Module, attributes: &Attributes) -> Result<(), String> {
    let mut extents: Vec<Extent> = Vec::with_capacity(module.types.len());
    let mut changed: Vec<(Handle<Type>, Type)> = Vec::new();
    let fits = |value: u64| u32::try_from(value).map_err(|_| "a type is larger than 4 GiB".to_owned());
    for (handle, ty) in module.types.iter() {
        let of = |inner: Handle<Type>| extents.get(inner.index()).copied();
        let vector = |size: VectorSize, width: u8| {
            let size = size as u64 * u64::from(width);
            Extent { align: size.next_power_of_two(), size }
        };
        let extent = match &ty.inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                let size = u64::from(scalar.width);
                Extent { align: size, size }
            }
            TypeInner::Vector { size, scalar } => vector(*size, scalar.width),
            TypeInner::Matrix { columns, rows, scalar } => {
                let column = vector(*rows, scalar.width);
                Extent { align: column.align, size: column.align * *columns as u64 }
            }
            TypeInner::Array { base, size, stride } => {
                let Some(element) = of(*base) else { return Err("a type stands before its parts".to_owned()) };
                let right = up(element.size, element.align);
                if right != u64::from(*stride) {
                    let inner = TypeInner::Array { base: *base, size: *size, stride: fits(right)? };
                    changed.push((handle, Type { name: ty.name.clone(), inner }));
                }
                let count = if let ArraySize::Constant(count) = size { u64::from(count.get()) } else { 1 };
                Extent { align: element.align, size: right.saturating_mul(count) }
            }
            TypeInner::Struct { members, span } => {
                let given = ty.name.as_deref().and_then(|name| attributes.get(name));
                let given = given.filter(|given| given.len() == members.len());
                let (mut offset, mut align) = (0_u64, 1_u64);
                let mut right = members.clone();
                for (i, member) in right.iter_mut().enumerate() {
                    let Some(own) = of(member.ty) else { return Err("a type stands before its parts".to_owned()) };
                    let (aligned, sized) = given.and_then(|given| given.get(i).copied()).unwrap_or_default();
                    let own_align = aligned.map_or(own.align, u64::from).max(own.align);
                    let own_size = sized.map_or(own.size, u64::from);
                    if own_size < own.size {
                        let name = member.name.as_deref().unwrap_or("?");
                        return Err(format!("the member \"{name}\" takes {} bytes: its @size is too small", own.size));
                    }
                    offset = up(offset, own_align);
                    member.offset = fits(offset)?;
                    offset = offset.saturating_add(own_size);
                    align = align.max(own_align);
                }
                let size = up(offset, align);
                if right != *members || size != u64::from(*span) {
                    let inner = TypeInner::Struct { members: right, span: fits(size)? };
                    changed.push((handle, Type { name: ty.name.clone(), inner }));
                }
                Extent { align, size }
            }
            // Not in memory that a host sees.
            _ => Extent { align: 1, size: 0 },
        };
        extents.push(extent);
    }
    for (handle, ty) in changed {
        if module.types.get(&ty).is_some_and(|other| other != handle) {
            return Err("two types become one with their layouts put right".to_owned());
        }
        module.types.replace(handle, ty);
    }
    Ok(())
}
