//! Layouts in what naga writes: its WGSL and GLSL say nothing of `@align` and `@size`. WGSL gets them added again; GLSL has no way to say
//! them, so a module that needs them is refused there.

#![cfg_attr(not(feature = "writers"), allow(dead_code, reason = "not every build writes WGSL"))]

use super::super::front::Front;
use cantus_base::listed::Listed;
use naga::{ArraySize, Handle, Module, StructMember, Type, TypeInner, VectorSize};

/// A structure's members and size, as the module has them.
type Wanted<'m> = (&'m [StructMember], u32);

/// A module as WGSL, with its layouts: naga's text, with `@size` where a member is not where WGSL would put it by itself. What comes out is
/// read again and compared.
pub(crate) fn wgsl(module: &Module, info: &naga::valid::ModuleInfo) -> Result<String, String> {
    let flags = naga::back::wgsl::WriterFlags::empty();
    let text = naga::back::wgsl::write_string(module, info, flags).map_err(|error| error.to_string())?;
    let unreadable =
        || "the text that was written cannot be read again (a defect: please report the kernel)".to_owned();
    let structures = Front::read(&text).ok_or_else(unreadable)?.structures();
    let Some(text) = with_sizes(&text, module, &structures)? else { return Ok(text) };
    let mut again = naga::front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text))?;
    let attributes = Front::read(&text).and_then(|front| front.attributes()).ok_or_else(unreadable)?;
    super::amend(&mut again, &attributes)?;
    let same = all_structures(module).into_iter().zip(all_structures(&again)).all(|((a, span), (b, other))| {
        span == other && a.iter().map(|member| member.offset).eq(b.iter().map(|member| member.offset))
    });
    if same { Ok(text) } else { Err(unreadable()) }
}

/// The structures that a text declares, in the module's order.
fn all_structures(module: &Module) -> Vec<Wanted<'_>> {
    let predeclared =
        |handle: Handle<Type>| module.special_types.predeclared_types.values().any(|known| *known == handle);
    let structures = module.types.iter().filter(|(handle, _)| !predeclared(*handle));
    let structures = structures.filter_map(|(_, ty)| match &ty.inner {
        TypeInner::Struct { members, span } => Some((members.as_slice(), *span)),
        _ => None,
    });
    structures.listed()
}

/// The text with attributes; `None` where it needs none. `structures` has the places of the members in the text.
fn with_sizes(text: &str, module: &Module, structures: &[Vec<usize>]) -> Result<Option<String>, String> {
    let wanted = all_structures(module);
    let fits = |(found, (members, _)): (&Vec<usize>, &Wanted<'_>)| found.len() == members.len();
    if wanted.len() != structures.len() || !structures.iter().zip(&wanted).all(fits) {
        return Err("the structures in the text are not those of the module".to_owned());
    }
    let mut insertions: Vec<(usize, String)> = Vec::new();
    for (places, (members, span)) in structures.iter().zip(wanted) {
        let mut align = 1;
        for (i, (member, &at)) in members.iter().zip(places).enumerate() {
            let extent = extent(module, member.ty, Rules::Wgsl);
            align = align.max(extent.align);
            let end = u64::from(member.offset) + extent.size;
            let (wanted, natural) = match members.get(i + 1) {
                Some(next) => {
                    let next_align = self::extent(module, next.ty, Rules::Wgsl).align;
                    (u64::from(next.offset), end.next_multiple_of(next_align))
                }
                None => (u64::from(span), end.next_multiple_of(align)),
            };
            let open = matches!(module.types[member.ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. });
            if wanted != natural && !open {
                insertions.push((at, format!("@size({}) ", wanted - u64::from(member.offset))));
            }
        }
    }
    if insertions.is_empty() {
        return Ok(None);
    }
    let mut written = String::with_capacity(text.len() + 32 * insertions.len());
    let mut done = 0;
    for (at, attribute) in insertions {
        written.push_str(text.get(done..at).ok_or("a place outside of the text")?);
        written.push_str(&attribute);
        done = at;
    }
    written.push_str(text.get(done..).unwrap_or_default());
    Ok(Some(written))
}

/// The layout rules that a language applies by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    Wgsl,
    /// GLSL's storage blocks; the same as WGSL's.
    Std430,
    /// GLSL's uniform blocks: arrays and structures are aligned to 16.
    Std140,
}

#[derive(Clone, Copy)]
struct Extent {
    align: u64,
    size: u64,
}

/// Alignment and size by the language's own rules. WGSL's sizes are the module's: `@size` says them.
fn extent(module: &Module, ty: Handle<Type>, rules: Rules) -> Extent {
    let vector = |size: VectorSize, width: u8| {
        let size = size as u64 * u64::from(width);
        Extent { align: size.next_power_of_two(), size }
    };
    let rounded = |align: u64| if rules == Rules::Std140 { align.next_multiple_of(16) } else { align };
    match &module.types[ty].inner {
        TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
            Extent { align: scalar.width.into(), size: scalar.width.into() }
        }
        TypeInner::Vector { size, scalar } => vector(*size, scalar.width),
        TypeInner::Matrix { columns, rows, scalar } => {
            let stride = rounded(vector(*rows, scalar.width).align);
            Extent { align: stride, size: stride * *columns as u64 }
        }
        TypeInner::Array { base, size, stride } => {
            let element = extent(module, *base, rules);
            let align = rounded(element.align);
            let count = if let ArraySize::Constant(count) = size { count.get() } else { 1 };
            let stride = if rules == Rules::Wgsl { u64::from(*stride) } else { element.size.next_multiple_of(align) };
            Extent { align, size: stride.saturating_mul(count.into()) }
        }
        TypeInner::Struct { members, span } => {
            let (mut align, mut end) = (1, 0_u64);
            for member in members {
                let own = extent(module, member.ty, rules);
                align = align.max(own.align);
                end = end.next_multiple_of(own.align).saturating_add(own.size);
            }
            let align = rounded(align);
            Extent { align, size: if rules == Rules::Wgsl { (*span).into() } else { end.next_multiple_of(align) } }
        }
        _ => Extent { align: 1, size: 0 },
    }
}

/// Checks that GLSL gives the bindings of a module the layout that the module has.
#[cfg(any(feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
#[doc(hidden)]
pub fn check_glsl(module: &Module) -> Result<(), String> {
    for (_, global) in module.global_variables.iter() {
        let rules = match global.space {
            naga::AddressSpace::Uniform => Rules::Std140,
            naga::AddressSpace::Storage { .. } => Rules::Std430,
            _ => continue,
        };
        let name = global.name.as_deref().unwrap_or("?");
        let fault = |what: String| format!("GLSL would lay out the binding \"{name}\" in another way: {what}");
        check(module, global.ty, rules).map_err(fault)?;
    }
    Ok(())
}

fn check(module: &Module, ty: Handle<Type>, rules: Rules) -> Result<(), String> {
    match &module.types[ty].inner {
        TypeInner::Array { base, stride, .. } => {
            let element = extent(module, *base, rules);
            let align = extent(module, ty, rules).align;
            if element.size.next_multiple_of(align) != u64::from(*stride) {
                return Err(format!("its elements lie {stride} bytes apart"));
            }
            check(module, *base, rules)
        }
        TypeInner::Matrix { .. } => {
            let (stride, natural) = (extent(module, ty, Rules::Wgsl).align, extent(module, ty, rules).align);
            if stride == natural { Ok(()) } else { Err(format!("columns of its matrix lie {stride} bytes apart")) }
        }
        TypeInner::Struct { members, .. } => {
            let mut end = 0_u64;
            for member in members {
                let own = extent(module, member.ty, rules);
                let natural = end.next_multiple_of(own.align);
                if natural != u64::from(member.offset) {
                    let name = member.name.as_deref().unwrap_or("?");
                    return Err(format!("the member \"{name}\" is at byte {}, not {natural}", member.offset));
                }
                end = natural.saturating_add(own.size);
                check(module, member.ty, rules)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
