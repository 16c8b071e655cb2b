//! The operators, parts and dtype of arrays, which programs ask for most often. `cantus.Array` extends this class, so that Python's operators come here
//! at once; all other cases go on in `cantus/_array.py`.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cantus::DType;
use cantus::ops::{Binary, Unary};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple, PyType};

use crate::array::Lazy;
use crate::call;
use crate::engine::Engine;
use crate::few::{self, Few, Most};
use crate::numbers::Numbers;

/// An array: what is recorded, and the device.
#[pyclass(frozen, subclass, weakref, module = "cantus._core")]
pub(crate) struct Handle {
    /// The recorded array: another one once the array was changed. Locked while it is copied, never while something is recorded or computed.
    x: Mutex<Held>,
    /// The state of a part of another array: [`WRITTEN`] if it was written to and not read since.
    part: AtomicU8,
    /// The device.
    #[pyo3(get, name = "_device")]
    device: Py<PyAny>,
}

/// An array of its own; a part of another one, of which NumPy makes a view, as `x[1:]`; such a part that was written to and not read since.
const WHOLE: u8 = 0;
const PART: u8 = 1;
const WRITTEN: u8 = 2;

/// A part that is written to and goes unread was meant to change the array that it is of: NumPy's slices do.
impl Drop for Handle {
    fn drop(&mut self) {
        if self.part.load(Ordering::Relaxed) == WRITTEN {
            Python::attach(|py| {
                let message =
                    c"a part of an array was written to and not read: parts are copies, and the array is unchanged \
                    (write to x[key] = value itself)";
                if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), message, 1) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}

/// The recorded array, or how to get it.
enum Held {
    Recorded(Lazy),
    /// A function of Python's without arguments that gives what is recorded, called by the first that asks for more than the function's own
    /// attributes: how many rows a mask selects is known once it is computed.
    Late(Py<PyAny>),
}

/// The class that Python derives, with its functions.
struct Extension {
    /// The class of arrays, which extends [`Handle`].
    class: Py<PyType>,
    /// Python's dtypes.
    dtypes: Vec<(DType, Py<PyAny>)>,
    /// Does what is not plain: of an operator's name, an array, the other operand, and whether that is the first one.
    general: Py<PyAny>,
}

static EXTENSION: PyOnceLock<Extension> = PyOnceLock::new();

fn extension(py: Python<'_>) -> PyResult<&Extension> {
    EXTENSION.get(py).ok_or_else(|| PyRuntimeError::new_err("cantus was not imported (import cantus)"))
}

/// Notes the class of arrays and what belongs to it.
#[pyfunction]
pub(crate) fn extended(
    class: &Bound<'_, PyType>,
    dtypes: &Bound<'_, PyDict>,
    general: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = class.py();
    if !class.is_subclass_of::<Handle>()? {
        return Err(PyTypeError::new_err("the class of arrays extends Handle"));
    }
    let named = |(name, kind): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        PyResult::Ok((crate::engine::dtype(&name.extract::<String>()?)?, kind.unbind()))
    };
    let dtypes = dtypes.iter().map(named).collect::<PyResult<_>>()?;
    let (class, general) = (class.clone().unbind(), general.clone().unbind());
    let _ = EXTENSION.set(py, Extension { class, dtypes, general });
    Ok(())
}

/// Creates the array of what is recorded, on a device.
#[pyfunction]
pub(crate) fn wrap<'py>(x: &Lazy, device: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = device.py();
    extension(py)?.array(py, Held::Recorded(x.clone()), device.as_any().clone().unbind())
}

/// Creates the array that a function of Python's records when it is asked for.
#[pyfunction]
pub(crate) fn late<'py>(record: &Bound<'py, PyAny>, device: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = device.py();
    extension(py)?.array(py, Held::Late(record.clone().unbind()), device.clone().unbind())
}

impl Extension {
    fn array<'py>(&self, py: Python<'py>, x: Held, device: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let handle = PyClassInitializer::from(Handle { x: Mutex::new(x), part: AtomicU8::new(WHOLE), device });
        // SAFETY: the class extends `Handle`. This is what its constructor does, without arguments of Python's.
        unsafe {
            let made = pyo3::impl_::pymethods::tp_new_impl::<_, Handle>(py, handle, self.class.as_ptr().cast())?;
            Bound::from_owned_ptr_or_err(py, made)
        }
    }

    fn is_array(&self, of: &Bound<'_, PyAny>) -> bool {
        of.get_type_ptr().cast() == self.class.as_ptr()
    }
}

/// Returns whether numbers of Python's fit beside an array of this dtype without a thought: floats, and whole numbers.
fn is_plain(dtype: DType, whole: bool) -> bool {
    match dtype {
        DType::F32 | DType::F64 | DType::F16 | DType::BF16 => true,
        DType::I32 | DType::I64 | DType::I16 | DType::U32 | DType::U64 | DType::U16 => whole,
        _ => false,
    }
}

fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// Whole numbers that every dtype of whole numbers has, and that a float64 has exactly.
const SMALL: i64 = 1000;
const EXACT: i64 = 1 << 53;

impl Handle {
    fn locked(&self) -> MutexGuard<'_, Held> {
        self.x.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lazy(&self, py: Python<'_>) -> PyResult<Lazy> {
        if self.part.load(Ordering::Relaxed) == WRITTEN {
            self.part.store(PART, Ordering::Relaxed);
        }
        let record = match &*self.locked() {
            Held::Recorded(x) => return Ok(x.clone()),
            Held::Late(record) => record.clone_ref(py),
        };
        let x: PyRef<'_, Lazy> = record.bind(py).call0()?.extract()?;
        self.hold(&x);
        Ok(x.clone())
    }

    fn hold(&self, x: &Lazy) {
        // What it was is dropped when nothing is locked.
        let before = std::mem::replace(&mut *self.locked(), Held::Recorded(x.clone()));
        drop(before);
    }

    fn made<'py>(&self, py: Python<'py>, extension: &Extension, x: Lazy) -> PyResult<Bound<'py, PyAny>> {
        extension.array(py, Held::Recorded(x), self.device.clone_ref(py))
    }

    /// Returns whether the host may hold its numbers: the device computes in the host's memory, and by the same rules.
    fn is_held(&self, py: Python<'_>) -> PyResult<bool> {
        let engine = self.device.bind(py).getattr(pyo3::intern!(py, "engine"))?;
        Ok(engine.cast::<Engine>().is_ok_and(|engine| engine.get().is_host))
    }

    /// Writes a few numbers to a part of it on the host; false of anything else, and nothing is written. One kernel for each number would take a
    /// hundred times as long.
    fn write(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        let own = self.lazy(py)?;
        // A write to all replaces the numbers.
        let Some(part) = own.part_at(key)?.filter(|part| part.shape != own.shape || !part.has_all(&own.shape)) else {
            return Ok(false);
        };
        let dtype = own.kind();
        let most = match own.few() {
            Some(few) => few.most(),
            None if Few::holds(dtype) && self.is_held(py)? => Most::Host,
            None => return Ok(false),
        };
        // What is large and recorded is not computed for the sake of a large part.
        let most_written =
            if own.few().is_some() || most.keeps(&own.shape, dtype) { most.kept(dtype) } else { few::KEPT };
        let Some(count) = few::count(&part.shape).filter(|count| (1..=most_written).contains(count)) else {
            return Ok(false);
        };
        let numbers = if let Ok(number) = value.cast_exact::<PyFloat>() {
            let takes = is_plain(dtype, false);
            if takes { Numbers::repeated(dtype, number.extract()?, count) } else { None }
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            let number = number.extract::<i64>().ok().filter(|number| number.unsigned_abs() <= EXACT.unsigned_abs());
            number.and_then(|number| Numbers::repeated(dtype, number as f64, count))
        } else if extension(py)?.is_array(value) {
            let other = value.cast::<Self>()?.get().lazy(py)?;
            let fits = other.kind() == dtype && most.keeps(&other.shape, dtype);
            let few = if fits { other.numbers(py, most)? } else { None };
            few.and_then(|few| few.numbers_for(&part.shape))
        } else {
            None
        };
        let Some(numbers) = numbers else { return Ok(false) };
        let Some(few) = own.numbers(py, most)? else { return Ok(false) };
        // Nobody else may have it while it is written in place.
        drop(own);
        let written = match &mut *self.locked() {
            Held::Recorded(x) => x.write(few, &part, &numbers),
            Held::Late(_) => false,
        };
        if written && self.part.load(Ordering::Relaxed) == PART {
            self.part.store(WRITTEN, Ordering::Relaxed);
        }
        Ok(written)
    }

    /// An operator with another array of the same dtype, or with a number. None of anything else.
    fn plain<'py>(
        &self,
        extension: &Extension,
        op: Binary,
        other: &Bound<'py, PyAny>,
        reflected: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = other.py();
        let own = self.lazy(py)?;
        let dtype = own.kind();
        let divides_whole = op == Binary::Div && !is_plain(dtype, false);
        if divides_whole {
            return Ok(None);
        }
        if extension.is_array(other) {
            let result = own.combined_by(op, &other.cast::<Self>()?.get().lazy(py)?)?;
            return result.map(|x| self.made(py, extension, x)).transpose();
        }
        // A number beside complex ones has no imaginary part.
        let beside_complex = matches!(dtype, DType::Complex64 | DType::Complex128)
            && matches!(op, Binary::Add | Binary::Sub | Binary::Mul);
        let number = if let Ok(number) = other.cast_exact::<PyFloat>() {
            if is_plain(dtype, false) || beside_complex { number.extract::<f64>()? } else { return Ok(None) }
        } else if let Ok(number) = other.cast_exact::<PyInt>() {
            let Ok(number) = number.extract::<i64>() else { return Ok(None) };
            let most = if is_plain(dtype, false) { EXACT } else { SMALL };
            let fits = (is_plain(dtype, true) || beside_complex) && (-most..=most).contains(&number);
            if !fits || number < 0 && is_unsigned(dtype) {
                return Ok(None);
            }
            number as f64
        } else {
            return Ok(None);
        };
        match own.number_by(op, number, reflected) {
            Ok(x) => self.made(py, extension, x).map(Some),
            // Python says it as Python does.
            Err(error) if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn operator<'py>(
        slf: &Bound<'py, Self>,
        op: Binary,
        other: &Bound<'py, PyAny>,
        reflected: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let extension = extension(slf.py())?;
        match slf.get().plain(extension, op, other, reflected)? {
            Some(array) => Ok(array),
            None => general(extension, op.name(), slf, other, reflected),
        }
    }
}

fn general<'py>(
    extension: &Extension,
    op: &str,
    slf: &Bound<'py, Handle>,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> PyResult<Bound<'py, PyAny>> {
    extension.general.bind(slf.py()).call1((op, slf, other, reflected))
}

#[pymethods]
impl Handle {
    #[new]
    fn new(x: &Lazy, device: Py<PyAny>) -> Self {
        Self { x: Mutex::new(Held::Recorded(x.clone())), part: AtomicU8::new(WHOLE), device }
    }

    #[getter(_x)]
    fn recorded(&self, py: Python<'_>) -> PyResult<Lazy> {
        self.lazy(py)
    }

    /// The function that records the array, while nothing has asked for it.
    #[getter(_late)]
    fn unrecorded(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &*self.locked() {
            Held::Recorded(_) => None,
            Held::Late(record) => Some(record.clone_ref(py)),
        }
    }

    #[setter(_x)]
    fn become_another(&self, x: &Lazy) {
        if self.part.load(Ordering::Relaxed) == PART {
            self.part.store(WRITTEN, Ordering::Relaxed);
        }
        self.hold(x);
    }

    /// The dtype's name in the core.
    #[getter(_kind)]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.lazy(py)?.kind().name())
    }

    /// A function of elements.
    fn _unary<'py>(&self, py: Python<'py>, op: &str) -> PyResult<Bound<'py, PyAny>> {
        self.made(py, extension(py)?, self.lazy(py)?.unary_by(call::unary(op)?)?)
    }

    /// The elements in another dtype.
    fn _cast<'py>(&self, py: Python<'py>, to: &str) -> PyResult<Bound<'py, PyAny>> {
        self.made(py, extension(py)?, self.lazy(py)?.cast(to)?)
    }

    /// A function of elements that are floats; None of other dtypes.
    fn _of_floats<'py>(&self, py: Python<'py>, op: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let lazy = self.lazy(py)?;
        if !is_plain(lazy.kind(), false) {
            return Ok(None);
        }
        self.made(py, extension(py)?, lazy.unary_by(call::unary(op)?)?).map(Some)
    }

    /// The first result of an operation of the table by name: see [`Lazy`]'s `call`.
    fn _call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        others: Vec<PyRef<'py, Self>>,
        ints: Vec<i64>,
        floats: Vec<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let others: Vec<Lazy> = others.iter().map(|other| other.lazy(py)).collect::<PyResult<_>>()?;
        let results = self.lazy(py)?.called(py, name, &others.iter().collect::<Vec<_>>(), &ints, &floats)?;
        let first = results.into_iter().next();
        self.made(py, extension(py)?, first.ok_or_else(|| PyRuntimeError::new_err(format!("{name} has no result")))?)
    }

    /// The lengths of the axes.
    ///
    /// >>> import cantus
    /// >>> cantus.ones((2, 3)).shape
    /// (2, 3)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.lazy(py)?.shape(py)
    }

    /// The number of axes.
    ///
    /// >>> import cantus
    /// >>> cantus.ones((2, 3)).ndim
    /// 2
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lazy(py)?.rank())
    }

    /// The type of the elements.
    ///
    /// >>> import cantus
    /// >>> cantus.ones(2).dtype
    /// cantus.float32
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = self.lazy(py)?.kind();
        let found = extension(py)?.dtypes.iter().find(|(known, _)| *known == dtype);
        let missing = || PyRuntimeError::new_err(format!("{dtype} has no dtype in Python (this is a fault in Cantus)"));
        found.map(|(_, kind)| kind.bind(py).clone()).ok_or_else(missing)
    }

    /// The transpose of a matrix.
    ///
    /// >>> import cantus
    /// >>> cantus.ones((2, 3)).T.shape
    /// (3, 2)
    #[getter(T)]
    fn transpose<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let extension = extension(py)?;
        match own.lazy(py)?.transposed()? {
            Some(x) => own.made(py, extension, x),
            None => general(extension, "T", slf, slf, false),
        }
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Add, other, false)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Add, other, true)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Sub, other, false)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Sub, other, true)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Mul, other, false)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Mul, other, true)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Div, other, false)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, Binary::Div, other, true)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let op = match op {
            CompareOp::Lt => Binary::Lt,
            CompareOp::Le => Binary::Le,
            CompareOp::Eq => Binary::Eq,
            CompareOp::Ne => Binary::Ne,
            CompareOp::Gt => Binary::Gt,
            CompareOp::Ge => Binary::Ge,
        };
        Self::operator(slf, op, other, false)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let extension = extension(py)?;
        if extension.is_array(other) {
            let (a, b) = (slf.get().lazy(py)?, other.cast::<Self>()?.get().lazy(py)?);
            if let Some(x) = a.product(&b)? {
                return slf.get().made(py, extension, x);
            }
        }
        general(extension, "matmul", slf, other, false)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let (extension, lazy) = (extension(py)?, own.lazy(py)?);
        if is_unsigned(lazy.kind()) {
            return general(extension, "sub", slf, 0_i64.into_pyobject(py)?.as_any(), true);
        }
        own.made(py, extension, lazy.unary_by(Unary::Neg)?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let extension = extension(py)?;
        let array = own.lazy(py)?;
        let Some(part) = array.part_at(key)? else { return general(extension, "part", slf, key, false) };
        if part.shape == array.shape && part.has_all(&array.shape) {
            return own.made(py, extension, array.clone());
        }
        // Where NumPy gives a view; masks, indices and single numbers are copies there too.
        let is_view = !part.shape.is_empty();
        let element = if is_view || array.few().is_some() || !own.is_held(py)? {
            None
        } else {
            array.element(py, &part, Most::Host)?
        };
        let x = element.map_or_else(|| array.part(part), Ok)?;
        let part = own.made(py, extension, x)?;
        if is_view && let Ok(made) = part.cast::<Self>() {
            made.get().part.store(PART, Ordering::Relaxed);
        }
        Ok(part)
    }

    fn __setitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if slf.get().write(key, value)? {
            return Ok(());
        }
        slf.call_method1(pyo3::intern!(slf.py(), "_update"), (key, value)).map(drop)
    }
}
