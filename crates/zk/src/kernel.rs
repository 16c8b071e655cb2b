//! Kernels of fields, put together once and kept.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::form::{LimbForm, arithmetic};
#[doc(hidden)]
use crate::Kernel;
use crate::algebra::FieldKind;
use crate::engine::Tensor;
use crate::error::Result;

/// The inputs of a kernel's text, beside its frame's name: the field, the form of its limbs, and the functions before the frame.
type Key = (&'static str, FieldKind, LimbForm, String);

/// A frame with the arithmetic of a field and `functions` before it. The name of the frame is that of its entry point.
pub(super) fn kernel(
    (name, frame): (&'static str, &'static str),
    field: FieldKind,
    form: LimbForm,
    functions: &str,
) -> Result<Kernel> {
    static KERNELS: OnceLock<Mutex<HashMap<Key, Kernel>>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(Mutex::default);
    let key = (name, field, form, functions.to_owned());
    if let Some(known) = kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(known.clone());
    }
    let text = format!("{}{functions}\n{frame}", arithmetic(field, form));
    let kernel = Kernel::from_named_wgsl(&format!("{name} {field}"), &text)?;
    kernels.lock().unwrap_or_else(PoisonError::into_inner).insert(key, kernel.clone());
    Ok(kernel)
}

#[cfg(feature = "_test")]
thread_local! {
    static FORCED: std::cell::Cell<Option<LimbForm>> = const { std::cell::Cell::new(None) };
}

/// Sets the form of the kernels that this thread requests from now on, for tests. `None` leaves it to the device.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn force_form(form: Option<LimbForm>) {
    FORCED.set(form);
}

/// The form for the device where a tensor is.
pub(super) fn form_for(tensor: &Tensor) -> LimbForm {
    #[cfg(feature = "_test")]
    if let Some(form) = FORCED.get() {
        return form;
    }
    let device = tensor.device();
    // Where 64-bit products are one instruction. GPUs that have them as several do better with limbs whose sums need no carry.
    if device.capabilities.features.int64 && device.backend != "wgpu" {
        LimbForm::Wide
    } else {
        LimbForm::Narrow { bits: 13 }
    }
}
