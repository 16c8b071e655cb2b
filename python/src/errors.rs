//! The library's errors as Python's, by class.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cantus::error::LimitError;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

create_exception!(
    cantus,
    Error,
    PyRuntimeError,
    "The base of DeviceError, KernelError and CancelledError. Raised itself, it is a fault in Cantus."
);
create_exception!(cantus, DeviceError, Error, "A device failed, or none is available.");
create_exception!(cantus, CancelledError, Error, "The computation was cancelled.");

/// `cantus.KernelError`, which is a `ValueError` too.
fn kernel_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = TYPE.get_or_try_init(py, || {
        let members = PyDict::new(py);
        members.set_item("__module__", "cantus")?;
        members.set_item("__doc__", "A kernel's text or its bindings are wrong. The message shows where.")?;
        let bases = (py.get_type::<Error>(), py.get_type::<PyValueError>());
        let made = py.get_type::<PyType>().call1(("KernelError", bases, members))?;
        PyResult::Ok(made.cast_into::<PyType>()?.unbind())
    })?;
    Ok(made.bind(py))
}

/// Runs what calls the library: a panic is an error of Cantus's, not the end of the program (`PanicException` is no `Exception`).
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Error::new_err(format!("a fault in Cantus, please report it: {text}")))
    })
}

/// Runs what may take a while without the interpreter's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> cantus::Result<T> + Send) -> PyResult<T> {
    guarded(|| py.detach(work).map_err(exception))
}

/// The exception for an error: its class says what kind it is, its text what to do.
pub(crate) fn exception(error: cantus::Error) -> PyErr {
    use cantus::Error as E;
    let text = cantus::error::without_remedies(&error.to_string());
    match error {
        E::InvalidWgsl { .. } | E::EntryPoint { .. } | E::Override { .. } | E::Binding { .. } => {
            Python::attach(|py| match kernel_error(py) {
                Ok(kind) => PyErr::from_type(kind.clone(), text),
                Err(error) => error,
            })
        }
        E::Shape(_) | E::InvalidInput { .. } | E::InvalidFile { .. } => PyValueError::new_err(text),
        E::Limit(LimitError::Memory { .. } | LimitError::MemoryLimit { .. }) => PyMemoryError::new_err(text),
        E::Limit(_) | E::AnotherEngine { .. } | E::Config { .. } => PyValueError::new_err(text),
        E::Dtype(_) => PyTypeError::new_err(text),
        E::Index(_) | E::StoreOutOfRange { .. } => PyIndexError::new_err(text),
        E::InvalidState { .. } => PyRuntimeError::new_err(text),
        E::Fault { .. } => Error::new_err(text),
        E::MemoryLimit { .. } | E::OutOfMemory { .. } => PyMemoryError::new_err(text),
        E::Timeout { .. } | E::Stalled { .. } => PyTimeoutError::new_err(text),
        E::Cancelled { .. } => CancelledError::new_err(text),
        E::Unreadable { .. } => PyFileNotFoundError::new_err(text),
        E::Io { .. } => PyOSError::new_err(text),
        E::TensorLost { cause, .. } => {
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
    module.add("Error", py.get_type::<Error>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("KernelError", kernel_error(py)?)?;
    module.add("CancelledError", py.get_type::<CancelledError>())
}
