//! Arrays of workgroup memory whose size an override constant gives.

use std::num::NonZeroU32;

use naga::proc::IndexableLength;
use naga::{ArraySize, Module, Type, TypeInner};

/// Arrays sized by override constants get the size in force: naga's WGSL writer cannot write the others.
pub(crate) fn settle(module: &mut Module) {
    let mut settled = Vec::new();
    for (handle, ty) in module.types.iter() {
        if let TypeInner::Array { base, size: size @ ArraySize::Pending(_), stride } = ty.inner
            && let Ok(IndexableLength::Known(count)) = size.resolve(module.to_ctx())
            && let Some(count) = NonZeroU32::new(count)
        {
            // The name keeps the type apart from others of the same size: each handle stays one type.
            let name = Some(format!("array_of_override_{}", handle.index()));
            let inner = TypeInner::Array { base, size: ArraySize::Constant(count), stride };
            settled.push((handle, Type { name, inner }));
        }
    }
    for (handle, ty) in settled {
        module.types.replace(handle, ty);
    }
}
