//! Lazy arrays: an expression, replaced by its tensor once that is computed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cantus::Tensor;
use cantus::ops::{Binary, Expr};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::call;
use crate::dlpack::{self, View};
use crate::engine::{check_process, dtype, process};
use crate::errors::exception;
use crate::wait::wait;

struct State {
    expr: Expr,
    /// Once it is computed.
    tensor: Option<Tensor>,
}

/// An array that is computed when it is read.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Lazy {
    engine: cantus::Engine,
    process: u32,
    shape: Vec<usize>,
    dtype: cantus::DType,
    state: Mutex<State>,
}

impl Lazy {
    /// What is recorded; a mistake in it is raised now.
    pub(crate) fn new(engine: cantus::Engine, expr: Expr) -> PyResult<Self> {
        let (shape, dtype) = (expr.shape().map_err(exception)?.to_vec(), expr.dtype().map_err(exception)?);
        let state = Mutex::new(State { expr, tensor: None });
        Ok(Self { engine, process: process(), shape, dtype, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expr(&self) -> PyResult<Expr> {
        check_process(self.process)?;
        Ok(self.state().expr.clone())
    }

    pub(crate) fn engine(&self) -> &cantus::Engine {
        &self.engine
    }

    pub(crate) fn with(&self, expr: Expr) -> PyResult<Self> {
        Self::new(self.engine.clone(), expr)
    }

    /// Computes it, once.
    pub(crate) fn tensor(&self, py: Python<'_>) -> PyResult<Tensor> {
        check_process(self.process)?;
        let expr = {
            let state = self.state();
            if let Some(tensor) = &state.tensor {
                return Ok(tensor.clone());
            }
            state.expr.clone()
        };
        let tensor = wait(py, &self.engine, expr.eval_async())?;
        let mut state = self.state();
        state.expr = Expr::from(&tensor);
        state.tensor = Some(tensor.clone());
        Ok(tensor)
    }
}

#[pymethods]
impl Lazy {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Whether it is computed.
    #[getter]
    fn is_computed(&self) -> bool {
        self.state().tensor.is_some()
    }

    /// A function of elements.
    fn unary(&self, op: &str) -> PyResult<Self> {
        self.with(self.expr()?.unary(call::unary(op)?))
    }

    /// A function of two.
    fn binary(&self, op: &str, other: &Self) -> PyResult<Self> {
        self.with(self.expr()?.binary(call::binary(op)?, &other.expr()?))
    }

    /// A function of two, one of which is a number of this dtype.
    fn binary_number(&self, op: &str, number: f64, reflected: bool) -> PyResult<Self> {
        let (expr, op) = (self.expr()?, call::binary(op)?);
        // What commutes becomes one kernel either way round.
        let turns = !matches!(op, Binary::Add | Binary::Mul);
        self.with(if reflected && turns { expr.constant(number).binary(op, &expr) } else { expr.binary(op, number) })
    }

    /// A sum of products by an equation, as "ij,jk->ik".
    fn einsum(&self, equation: &str, others: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let exprs = others.iter().map(|other| other.expr()).collect::<PyResult<Vec<_>>>()?;
        self.with(self.expr()?.einsum(equation, &exprs))
    }

    fn cast(&self, to: &str) -> PyResult<Self> {
        self.with(self.expr()?.cast(dtype(to)?))
    }

    /// Computes it.
    fn eval(&self, py: Python<'_>) -> PyResult<()> {
        self.tensor(py).map(drop)
    }

    /// The elements as bytes, row-major.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let tensor = self.tensor(py)?;
        let bytes = wait(py, &self.engine, tensor.to_bytes_async())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Copies the elements to memory that the caller keeps during the call.
    fn read_into(&self, py: Python<'_>, address: usize, bytes: usize) -> PyResult<()> {
        let tensor = self.tensor(py)?;
        if tensor.byte_len() != bytes as u64 {
            return Err(PyValueError::new_err(format!("the array has {} bytes, not {bytes}", tensor.byte_len())));
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: `cantus/_array.py` holds the writable array whose address and size these are.
        let into = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) };
        if let Some(view) = wait(py, &self.engine, tensor.host_view_async())? {
            // SAFETY: the view keeps as many bytes, which nothing writes: arrays do not change.
            into.copy_from_slice(unsafe { std::slice::from_raw_parts(view.as_ptr(), bytes) });
            return Ok(());
        }
        let all = wait(py, &self.engine, tensor.to_bytes_async())?;
        into.copy_from_slice(&all);
        Ok(())
    }

    /// The address of its memory, where that is the host's.
    fn address(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let tensor = self.tensor(py)?;
        Ok(wait(py, &self.engine, tensor.host_view_async())?.map(|view| view.as_ptr() as usize))
    }

    /// A DLPack capsule over the host's memory; None where the array is not there.
    fn dlpack<'py>(&self, py: Python<'py>, versioned: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let tensor = self.tensor(py)?;
        match wait(py, &self.engine, tensor.host_view_async())? {
            Some(view) => dlpack::exported(py, &self.shape, self.dtype, View::Host(view), None, versioned).map(Some),
            None => Ok(None),
        }
    }

    /// A DLPack capsule over memory of CUDA's or HIP's, for which that stream waits (None: the device's own); None where the array is not there.
    fn dlpack_driver<'py>(
        &self,
        py: Python<'py>,
        stream: Option<usize>,
        versioned: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let tensor = self.tensor(py)?;
        let Some(own) = self.engine.driver_stream() else { return Ok(None) };
        let kind = dlpack::driver_type(&self.engine.selected().device.backend);
        match wait(py, &self.engine, tensor.driver_view_async(stream.unwrap_or(own.stream)))? {
            Some(view) => dlpack::exported(py, &self.shape, self.dtype, View::Driver(view), kind, versioned).map(Some),
            None => Ok(None),
        }
    }

    /// A copy that shares nothing with it.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let tensor = self.tensor(py)?;
        let name = tensor.device_name();
        let copy = wait(py, &self.engine, tensor.to_device_async(&name))?;
        self.with(Expr::from(&copy))
    }

    /// The WGSL of its last kernel.
    fn wgsl(&self, py: Python<'_>) -> PyResult<String> {
        let expr = self.expr()?;
        py.detach(|| expr.wgsl()).map_err(exception)
    }

    /// The name of the device where it is, once it is computed.
    fn device_name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.tensor(py)?.device_name())
    }

    /// An operation of the table by name: arrays beside this one, whole numbers and floats in the order of the table's row.
    #[pyo3(signature = (name, others, ints, floats))]
    fn call(
        &self,
        py: Python<'_>,
        name: &str,
        others: Vec<PyRef<'_, Self>>,
        ints: Vec<i64>,
        floats: Vec<f64>,
    ) -> PyResult<Vec<Self>> {
        let exprs = others.iter().map(|other| other.expr()).collect::<PyResult<Vec<_>>>()?;
        let results = call::call(py, self, name, &exprs, &ints, &floats)?;
        results.into_iter().map(|expr| self.with(expr)).collect()
    }

    /// A DLPack capsule as (dtype, shape, strides, address, device, owner).
    #[staticmethod]
    fn imported(capsule: &Bound<'_, PyAny>) -> PyResult<dlpack::Imported> {
        dlpack::imported(capsule)
    }
}
