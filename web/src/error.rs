//! Errors as JavaScript has them: an `Error` named `CantusError` with a code, and the place in the WGSL text where there is one.

use cantus::Error;
use cantus::error::without_remedies;
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
        Error::Dtype(_) => "Dtype",
        Error::Shape(_) => "Shape",
        Error::Limit(_) => "Limit",
        Error::Index(_) => "Index",
        Error::InvalidInput { .. } => "InvalidInput",
        Error::InvalidFile { .. } => "InvalidFile",
        Error::InvalidState { .. } => "InvalidState",
        Error::MemoryLimit { .. } => "MemoryLimit",
        Error::OutOfMemory { .. } => "OutOfMemory",
        Error::NoDevice { .. } => "NoDevice",
        Error::Device { .. } => "Device",
        Error::DeviceLost { .. } => "DeviceLost",
        Error::TensorLost { .. } => "TensorLost",
        Error::Timeout { .. } | Error::Stalled { .. } => "Timeout",
        Error::StoreOutOfRange { .. } => "StoreOutOfRange",
        Error::Cancelled { .. } => "Cancelled",
        Error::AnotherEngine { .. } => "AnotherEngine",
        _ => "Other",
    }
}

/// An `Error` with a code.
fn coded(text: &str, code: &str) -> js_sys::Error {
    let value = js_sys::Error::new(text);
    value.set_name("CantusError");
    set(&value, "code", code.into());
    value
}

fn set(value: &js_sys::Error, name: &str, content: JsValue) {
    // An Error is an extensible object: setting cannot fail.
    let _ = Reflect::set(value, &name.into(), &content);
}

/// The error as a JavaScript value to be thrown.
pub(crate) fn thrown(error: &Error) -> JsValue {
    let value = coded(&without_remedies(&error.to_string()), code(error));
    if let Some(place) = error.place() {
        set(&value, "line", place.line.into());
        set(&value, "column", place.column.into());
        set(&value, "offset", place.offset.into());
        set(&value, "length", place.length.into());
    }
    value.into()
}

/// A panic, in the same form.
pub(crate) fn fault(text: &str) -> JsValue {
    coded(&format!("a fault in Cantus, please report it: {text}"), "Fault").into()
}

/// An error of the caller's, in the same form.
pub(crate) fn invalid(what: &str, reason: &str) -> JsValue {
    thrown(&Error::invalid(what, reason))
}
