//! Files of named arrays, and Arrow's columns.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::PathBuf;

use cantus_data::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};
use cantus_data::{HostArray, Writer};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::Lazy;
use crate::engine::Engine;
use crate::errors::{detached, exception, guarded};
use crate::wait::wait;

/// A `.safetensors`, `.npz` or `.npy` file whose header was read.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Archive {
    archive: cantus_data::Archive,
}

#[pymethods]
impl Archive {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, mapped: bool) -> PyResult<Self> {
        let open = || match mapped {
            // SAFETY: whoever asks for a map is told that nobody may write to the file or shorten it.
            true => unsafe { cantus_data::Archive::map(path) },
            false => cantus_data::Archive::open(path),
        };
        Ok(Self { archive: detached(py, open)? })
    }

    fn names(&self) -> Vec<String> {
        self.archive.names().map(str::to_owned).collect()
    }

    fn array(&self, py: Python<'_>, engine: &Engine, name: &str) -> PyResult<Lazy> {
        // The engine is asked first: the file may take a while.
        engine.checked()?;
        let array = detached(py, || self.archive.array(name))?;
        created(py, engine, array)
    }
}

fn created(py: Python<'_>, engine: &Engine, array: HostArray) -> PyResult<Lazy> {
    let own = engine.checked()?;
    let tensor = wait(py, own, array.into_tensor_async(own))?;
    Lazy::computed(own.clone(), &tensor)
}

/// Saves arrays by name, whole or not at all.
#[pyfunction]
pub(crate) fn save(
    py: Python<'_>,
    path: PathBuf,
    arrays: Vec<(String, PyRef<'_, Lazy>)>,
    metadata: BTreeMap<String, String>,
) -> PyResult<()> {
    let mut tensors = Vec::new();
    for (name, array) in &arrays {
        tensors.push((name, array.tensor(py)?, array.engine().clone()));
    }
    let described = tensors.iter().map(|(name, tensor, _)| (*name, (tensor.dtype(), tensor.shape().to_vec())));
    let mut file = guarded(|| Writer::create(path, described, &metadata).map_err(exception))?;
    for (name, tensor, engine) in &tensors {
        let bytes = wait(py, engine, tensor.to_bytes_async())?;
        detached(py, || file.write(name, &bytes))?;
    }
    detached(py, || file.commit())
}

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Whatever a capsule holds goes with it: the structure releases itself unless it was moved out.
unsafe extern "C" fn forget<T>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python with a capsule of `capsule`'s, which holds such a box.
    unsafe {
        let content = ffi::PyCapsule_GetPointer(capsule, ffi::PyCapsule_GetName(capsule));
        if !content.is_null() {
            drop(Box::from_raw(content.cast::<T>()));
        }
    }
}

fn capsule<'py, T>(py: Python<'py>, content: T, name: &'static CStr) -> PyResult<Bound<'py, PyAny>> {
    let content = Box::into_raw(Box::new(content));
    // SAFETY: the name is static, and `forget` frees the box.
    let made = unsafe { ffi::PyCapsule_New(content.cast(), name.as_ptr(), Some(forget::<T>)) };
    if made.is_null() {
        // SAFETY: nobody took it.
        drop(unsafe { Box::from_raw(content) });
    }
    // SAFETY: a new object, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// The structure in a capsule.
fn content<T>(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<*mut T> {
    // SAFETY: the name says what the capsule holds.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 {
            return Ok(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast());
        }
    }
    Err(PyTypeError::new_err(format!("this is no capsule named {}", name.to_string_lossy())))
}

/// The capsules of `__arrow_c_array__`.
pub(crate) fn exported<'py>(py: Python<'py>, array: &Lazy) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let tensor = array.tensor(py)?;
    let (array, schema) = wait(py, array.engine(), cantus_data::arrow::export_async(&tensor))?;
    Ok((capsule(py, schema, SCHEMA)?, capsule(py, array, ARRAY)?))
}

/// Columns by name from the capsules of `__arrow_c_array__`, or that of `__arrow_c_stream__`; and whether they are those of a table.
#[pyfunction]
#[pyo3(signature = (engine, first, second=None))]
pub(crate) fn from_arrow(
    py: Python<'_>,
    engine: &Engine,
    first: &Bound<'_, PyAny>,
    second: Option<&Bound<'_, PyAny>>,
) -> PyResult<(bool, Vec<(String, Lazy)>)> {
    engine.checked()?;
    let (is_table, columns) = match second {
        Some(second) => {
            let (schema, array) = (content::<ArrowSchema>(first, SCHEMA)?, content::<ArrowArray>(second, ARRAY)?);
            // SAFETY: capsules of those names hold such structures. They are moved out, so that the capsules have nothing left to free. The arrays
            // of Arrow's libraries do not change, and nor do ours.
            let (schema, array) = unsafe { (ArrowSchema::take(schema), ArrowArray::take(array)) };
            // SAFETY: nobody else uses what was moved out; nothing writes to the arrays of Arrow's libraries, nor to ours.
            let read = || unsafe { Ok((schema.is_structure(), cantus_data::arrow::columns(array, &schema)?)) };
            guarded(|| read().map_err(exception))?
        }
        None => {
            // SAFETY: a capsule of that name holds such a structure, which is moved out, so that the capsule has nothing left to free.
            let mut stream = unsafe { ArrowArrayStream::take(content::<ArrowArrayStream>(first, STREAM)?) };
            // SAFETY: nobody else uses what was moved out; nothing writes to the arrays of Arrow's libraries, nor to ours.
            let read = || unsafe { Ok((stream.schema()?.is_structure(), cantus_data::arrow::stream(stream)?)) };
            guarded(|| read().map_err(exception))?
        }
    };
    let named = |(name, array)| Ok((name, created(py, engine, array)?));
    Ok((is_table, columns.into_iter().map(named).collect::<PyResult<_>>()?))
}
