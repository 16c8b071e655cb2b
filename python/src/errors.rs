//! The library's errors as Python's, by class.

use cantus::Error;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(cantus, DeviceError, PyRuntimeError, "A device failed, or there is none.");
create_exception!(
    cantus,
    KernelError,
    PyValueError,
    "A kernel's text or its bindings are at fault; the message shows the place."
);
create_exception!(cantus, CancelledError, PyRuntimeError, "The computation was cancelled.");

/// The exception for an error: its class says what kind it is, its text what to do.
pub(crate) fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::InvalidWgsl { .. } | Error::EntryPoint { .. } | Error::Override { .. } | Error::Binding { .. } => {
            KernelError::new_err(text)
        }
        Error::InvalidSize { .. } | Error::AnotherEngine { .. } | Error::Config { .. } => PyValueError::new_err(text),
        Error::InvalidInput { .. } => PyTypeError::new_err(text),
        Error::MemoryLimit { .. } | Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::Timeout { .. } | Error::Stalled { .. } => PyTimeoutError::new_err(text),
        Error::Cancelled { .. } => CancelledError::new_err(text),
        Error::Unreadable { .. } => PyFileNotFoundError::new_err(text),
        Error::Io { .. } => PyOSError::new_err(text),
        Error::TensorLost { cause, .. } => {
            let cause = exception((*cause).clone());
            Python::attach(|py| match cause.get_type(py).call1((text.clone(),)) {
                Ok(error) => PyErr::from_value(error),
                Err(_) => PyRuntimeError::new_err(text),
            })
        }
        _ => DeviceError::new_err(text),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("KernelError", py.get_type::<KernelError>())?;
    module.add("CancelledError", py.get_type::<CancelledError>())
}
