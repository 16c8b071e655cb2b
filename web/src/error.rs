//! Errors as JavaScript has them: an `Error` named `CantusError` with a code, and the place in the WGSL text where there is one.

use cantus::Error;
use js_sys::Reflect;
use wasm_bindgen::JsValue;

/// The variant's name, for programs to act on.
fn code(error: &Error) -> &'static str {
    match error {
        Error::InvalidWgsl { .. } => "InvalidWgsl",
        Error::EntryPoint { .. } => "EntryPoint",
        Error::Override { .. } => "Override",
        Error::Unsupported { .. } => "Unsupported",
        Error::Binding { .. } => "Binding",
        Error::InvalidSize { .. } => "InvalidSize",
        Error::InvalidInput { .. } => "InvalidInput",
        Error::MemoryLimit { .. } => "MemoryLimit",
        Error::OutOfMemory { .. } => "OutOfMemory",
        Error::NoDevice { .. } => "NoDevice",
        Error::Device { .. } => "Device",
        Error::DeviceLost { .. } => "DeviceLost",
        Error::TensorLost { .. } => "TensorLost",
        Error::Timeout { .. } | Error::Stalled { .. } => "Timeout",
        Error::Cancelled { .. } => "Cancelled",
        Error::AnotherEngine { .. } => "AnotherEngine",
        _ => "Other",
    }
}

/// The error as a JavaScript value to be thrown.
pub(crate) fn thrown(error: &Error) -> JsValue {
    let value = js_sys::Error::new(&error.to_string());
    value.set_name("CantusError");
    let set = |name: &str, content: JsValue| {
        // An Error is an extensible object: setting cannot fail.
        let _ = Reflect::set(&value, &name.into(), &content);
    };
    set("code", code(error).into());
    if let Some(place) = error.place() {
        set("line", place.line.into());
        set("column", place.column.into());
        set("offset", place.offset.into());
        set("length", place.length.into());
    }
    value.into()
}

/// An error of the caller's, in the same form.
pub(crate) fn invalid(what: &str, reason: &str) -> JsValue {
    thrown(&Error::InvalidInput { what: what.to_owned(), reason: reason.to_owned() })
}
