//! Lazy arrays: an expression, replaced by its tensor once that is computed.

use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cantus::Tensor;
use cantus::backend::HostMemory;
use cantus::ops::{Binary, Expr, Unary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyEllipsis, PyInt, PySlice, PyTuple};

use crate::call;
use crate::checks::{self, Checks, Extent};
use crate::data;
use crate::dlpack::{self, View};
use crate::engine::{check_process, dtype, process};
use crate::errors::{detached, exception, guarded};
use crate::few::{Few, Most, Part};
use crate::numbers::Numbers;
use crate::wait::wait;

/// An expression, or its tensor: of that no expression is held, for which a kernel that overwrites it would copy it. Or numbers that the host holds, few or
/// written by element, and their expression once something was recorded from it.
pub(crate) enum State {
    Recorded(Expr),
    Computed(Tensor),
    Known(Arc<Few>, Option<Expr>),
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Its numbers, if the host holds them.
    pub(crate) fn few(state: &Mutex<Self>) -> Option<Arc<Few>> {
        match &*locked(state) {
            Self::Known(few, _) => Some(few.clone()),
            Self::Recorded(_) | Self::Computed(_) => None,
        }
    }

    /// Computes it, once.
    pub(crate) fn tensor(state: &Mutex<Self>, py: Python<'_>, engine: &cantus::Engine) -> PyResult<Tensor> {
        let tensor = match &*locked(state) {
            Self::Computed(tensor) => return Ok(tensor.clone()),
            Self::Recorded(expr) | Self::Known(_, Some(expr)) => Ok(expr.clone()),
            Self::Known(few, None) => Err(few.clone()),
        };
        let tensor = match tensor {
            Ok(expr) => wait(py, engine, expr.eval_async())?,
            Err(few) => uploaded(py, engine, &few)?,
        };
        // What it was is dropped when nothing is locked.
        let before = std::mem::replace(&mut *locked(state), Self::Computed(tensor.clone()));
        drop(before);
        Ok(tensor)
    }
}

/// A tensor of numbers that the host holds: a copy of few, the memory itself of many, to which nobody writes while the tensor has it (`Lazy::write` has to
/// hold them alone, and a kernel writes to an array of its own: see `Lazy::copy`).
fn uploaded(py: Python<'_>, engine: &cantus::Engine, few: &Arc<Few>) -> PyResult<Tensor> {
    let (dtype, bytes) = (few.dtype(), few.bytes());
    if !few.is_lent() {
        return wait(py, engine, engine.tensor_from_bytes_async(dtype, &few.shape, bytes));
    }
    // SAFETY: the tensor holds the numbers, and who writes to them holds them alone.
    let memory = unsafe { HostMemory::new(NonNull::from(bytes).cast(), bytes.len() as u64, few.clone()) };
    wait(py, engine, engine.tensor_from_host_memory_async(dtype, &few.shape, memory))
}

/// An array that is computed when it is read. Arrays hold it without an object of Python's.
#[pyclass(frozen, module = "cantus._core")]
#[derive(Clone)]
pub(crate) struct Lazy(Arc<Inner>);

pub(crate) struct Inner {
    engine: cantus::Engine,
    process: u32,
    pub(crate) shape: Vec<usize>,
    dtype: cantus::DType,
    state: Arc<Mutex<State>>,
    /// Checks of the places that it depends on.
    checks: Option<Arc<Checks>>,
    /// Extent of whole numbers, once it was asked for: arrays do not change.
    extent: OnceLock<Arc<Extent>>,
}

impl Deref for Lazy {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Lazy {
    fn of(engine: cantus::Engine, shape: Vec<usize>, dtype: cantus::DType, state: State) -> Self {
        let (process, state) = (process(), Arc::new(Mutex::new(state)));
        Self(Arc::new(Inner { engine, process, shape, dtype, state, checks: None, extent: OnceLock::new() }))
    }

    /// Creates a recorded array; a mistake in the expression is raised now.
    pub(crate) fn new(engine: cantus::Engine, expr: Expr) -> PyResult<Self> {
        let (shape, dtype) = (expr.shape().map_err(exception)?.to_vec(), expr.dtype().map_err(exception)?);
        Ok(Self::of(engine, shape, dtype, State::Recorded(expr)))
    }

    /// Computed, where much is recorded: before the library does it, which looks for no signals.
    fn submitted(self) -> PyResult<Self> {
        let is_long = matches!(&*self.state(), State::Recorded(expr) if expr.is_long());
        if is_long {
            Python::attach(|py| State::tensor(&self.state, py, &self.engine))?;
        }
        Ok(self)
    }

    /// Creates an array whose tensor is computed.
    pub(crate) fn computed(engine: cantus::Engine, tensor: &Tensor) -> PyResult<Self> {
        let lazy = Self::new(engine, Expr::from(tensor))?;
        *locked(&lazy.state) = State::Computed(tensor.clone());
        Ok(lazy)
    }

    /// Creates an array of numbers that the host holds, of which `expr` may be an expression.
    pub(crate) fn known(engine: cantus::Engine, few: Arc<Few>, expr: Option<Expr>) -> Self {
        Self::of(engine, few.shape.clone(), few.dtype(), State::Known(few, expr))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Its numbers, if the host holds them.
    pub(crate) fn few(&self) -> Option<Arc<Few>> {
        State::few(&self.state).filter(|_| self.process == process())
    }

    /// Returns the result of a function of few numbers, computed on the host now.
    pub(crate) fn at_once(&self, of: impl FnOnce(&Few) -> Option<Arc<Few>>) -> Option<Self> {
        let few = self.few()?;
        of(&few).map(|few| Self::known(self.engine.clone(), few, None).depending_on(self.checks.clone()))
    }

    /// Returns the result of a function of the few numbers of two arrays.
    fn both_at_once(&self, beside: &Self, of: impl FnOnce(&Few, &Few) -> Option<Arc<Few>>) -> Option<Self> {
        let (few, other) = (self.few()?, beside.few().filter(|_| self.engine.is(&beside.engine))?);
        let made = of(&few, &other)?;
        Some(Self::known(self.engine.clone(), made, None).depending_on(self.checks_with(&[beside])))
    }

    /// The few numbers of others of the same engine; None if one has more.
    fn few_of(&self, others: &[&Self]) -> Option<Vec<Arc<Few>>> {
        others.iter().map(|other| other.few().filter(|_| self.engine.is(&other.engine))).collect()
    }

    pub(crate) fn expr(&self) -> PyResult<Expr> {
        check_process(self.process)?;
        let few = match &*self.state() {
            State::Recorded(expr) | State::Known(_, Some(expr)) => return Ok(expr.clone()),
            State::Computed(tensor) => return Ok(Expr::from(tensor)),
            State::Known(few, None) => few.clone(),
        };
        let tensor = Python::attach(|py| uploaded(py, &self.engine, &few))?;
        let made = Expr::from(&tensor);
        if let State::Known(_, expr) = &mut *self.state() {
            *expr = Some(made.clone());
        }
        Ok(made)
    }

    pub(crate) fn engine(&self) -> &cantus::Engine {
        &self.engine
    }

    pub(crate) fn kind(&self) -> cantus::DType {
        self.dtype
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// A function of elements.
    pub(crate) fn unary_by(&self, op: Unary) -> PyResult<Self> {
        if let Some(known) = self.at_once(|few| few.unary(op)) {
            return Ok(known);
        }
        self.recorded(&[], |expr| Ok(expr.unary(op)))
    }

    /// A function of two, if both have one dtype.
    pub(crate) fn combined_by(&self, op: Binary, other: &Self) -> PyResult<Option<Self>> {
        if self.dtype != other.dtype { Ok(None) } else { self.binary_by(op, other).map(Some) }
    }

    fn binary_by(&self, op: Binary, other: &Self) -> PyResult<Self> {
        if let Some(known) = self.both_at_once(other, |few, other| few.binary(op, other)) {
            return Ok(known);
        }
        self.recorded(&[other], |expr| Ok(expr.binary(op, &other.expr()?)))
    }

    /// A function of two, one of which is a number of this dtype.
    pub(crate) fn number_by(&self, op: Binary, number: f64, reflected: bool) -> PyResult<Self> {
        if let Some(known) = self.at_once(|few| few.with_number(op, number, reflected)) {
            return Ok(known);
        }
        // What commutes becomes one kernel either way round.
        let turns = !matches!(op, Binary::Add | Binary::Mul);
        self.recorded(&[], |expr| {
            Ok(if reflected && turns { expr.constant(number).binary(op, &expr) } else { expr.binary(op, number) })
        })
    }

    /// Records an array from this one and others.
    fn recorded(&self, others: &[&Self], record: impl FnOnce(Expr) -> PyResult<Expr>) -> PyResult<Self> {
        guarded(|| {
            let made = Self::new(self.engine.clone(), record(self.expr()?)?)?.submitted()?;
            Ok(made.depending_on(self.checks_with(others)))
        })
    }

    /// The same array, just made, with the checks that it depends on.
    fn depending_on(mut self, checks: Option<Arc<Checks>>) -> Self {
        if checks.is_some()
            && let Some(inner) = Arc::get_mut(&mut self.0)
        {
            inner.checks = checks;
        }
        self
    }

    fn checks_with(&self, others: &[&Self]) -> Option<Arc<Checks>> {
        Checks::joined(std::iter::once(self).chain(others.iter().copied()).map(|of| of.checks.as_ref()))
    }

    /// Returns the expression, once the places that it depends on are known to be in range.
    pub(crate) fn sound_expr(&self, py: Python<'_>) -> PyResult<Expr> {
        if let Some(checks) = &self.checks {
            checks.verify(py, &self.engine)?;
        }
        self.expr()
    }

    /// Computes it, once.
    pub(crate) fn tensor(&self, py: Python<'_>) -> PyResult<Tensor> {
        self.sound_expr(py)?;
        State::tensor(&self.state, py, &self.engine)
    }
}

#[pymethods]
impl Lazy {
    #[getter]
    pub(crate) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Returns whether it is computed.
    #[getter]
    fn is_computed(&self) -> bool {
        matches!(&*self.state(), State::Computed(_) | State::Known(..))
    }

    /// The same array, which keeps its elements where a kernel writes to its memory: the kernel writes to a copy.
    fn kept(&self) -> PyResult<Self> {
        self.recorded(&[], Ok)
    }

    /// A function of elements.
    fn unary(&self, op: &str) -> PyResult<Self> {
        self.unary_by(call::unary(op)?)
    }

    /// A function of two, if both have one dtype.
    fn combined(&self, op: &str, other: &Self) -> PyResult<Option<Self>> {
        self.combined_by(call::binary(op)?, other)
    }

    /// The matrix product with another, if both have one dtype, of numbers.
    pub(crate) fn product(&self, other: &Self) -> PyResult<Option<Self>> {
        let is_plain = self.dtype == other.dtype && self.dtype != cantus::DType::Bool;
        if is_plain { self.matmul(other).map(Some) } else { Ok(None) }
    }

    /// The transpose, if it has two axes.
    pub(crate) fn transposed(&self) -> PyResult<Option<Self>> {
        if self.shape.len() == 2 { self.turned().map(Some) } else { Ok(None) }
    }

    /// A function of two.
    fn binary(&self, op: &str, other: &Self) -> PyResult<Self> {
        self.binary_by(call::binary(op)?, other)
    }

    /// A function of two, one of which is a number of this dtype.
    fn binary_number(&self, op: &str, number: f64, reflected: bool) -> PyResult<Self> {
        self.number_by(call::binary(op)?, number, reflected)
    }

    /// The matrix product with another of its dtype.
    fn matmul(&self, other: &Self) -> PyResult<Self> {
        if let Some(known) = self.both_at_once(other, Few::product) {
            return Ok(known);
        }
        self.recorded(&[other], |expr| Ok(expr.matmul(other.expr()?)))
    }

    /// The last two axes exchanged.
    fn turned(&self) -> PyResult<Self> {
        if let Some(known) = self.at_once(Few::turned) {
            return Ok(known);
        }
        self.recorded(&[], |expr| {
            let mut axes: Vec<isize> = (0..self.shape.len().cast_signed()).collect();
            if let [.., row, column] = &mut axes[..] {
                std::mem::swap(row, column);
            }
            Ok(expr.permute(&axes))
        })
    }

    /// `a` where this is true, and `b` elsewhere, of one dtype.
    fn select(&self, a: &Self, b: &Self) -> PyResult<Self> {
        self.recorded(&[a, b], |expr| Ok(expr.select(a.expr()?, b.expr()?)))
    }

    /// A sum of products by an equation, as "ij,jk->ik".
    fn einsum(&self, equation: &str, others: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let exprs = others.iter().map(|other| other.expr()).collect::<PyResult<Vec<_>>>()?;
        self.recorded(
            &others.iter().map(|other| &**other).collect::<Vec<_>>(),
            |expr| Ok(expr.einsum(equation, &exprs)),
        )
    }

    pub(crate) fn cast(&self, to: &str) -> PyResult<Self> {
        let to = dtype(to)?;
        if let Some(known) = self.at_once(|few| few.cast(to)) {
            return Ok(known);
        }
        self.recorded(&[], |expr| Ok(expr.cast(to)))
    }

    /// The same whole numbers, which must lie from `low` to `high`: else it and what is computed from it can't be read. `what` names where they
    /// lead to. Where they are in the host's memory, they are looked at now.
    fn checked(&self, py: Python<'_>, low: i64, high: i64, what: String) -> PyResult<Self> {
        let extent = self.extent.get_or_init(Arc::default);
        let allowed = (low.into(), high.into());
        let checks = Checks::with(self.checks.as_ref(), self.state.clone(), allowed, what, extent.clone());
        let is_here = self.is_computed() && self.engine.selected().device.backend == "cpu";
        if is_here {
            checks.verify(py, &self.engine)?;
        }
        let (engine, shape) = (self.engine.clone(), self.shape.clone());
        Ok(Self(Arc::new(Inner {
            engine,
            process: self.process,
            shape,
            dtype: self.dtype,
            state: self.state.clone(),
            checks: Some(checks),
            extent: self.extent.clone(),
        })))
    }

    /// The least and the greatest of its whole numbers; None of nothing. Looked for once.
    fn extent(&self, py: Python<'_>) -> PyResult<Option<(i128, i128)>> {
        self.sound_expr(py)?;
        checks::extent(py, &self.engine, &self.state, self.extent.get_or_init(Arc::default))
    }

    /// Computes it.
    fn eval(&self, py: Python<'_>) -> PyResult<()> {
        if matches!(&*self.state(), State::Known(..)) {
            return check_process(self.process);
        }
        self.tensor(py).map(drop)
    }

    /// The elements as bytes, row-major.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(few) = self.few() {
            return Ok(PyBytes::new(py, few.bytes()));
        }
        let tensor = self.tensor(py)?;
        let bytes = wait(py, &self.engine, tensor.to_bytes_async())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Copies the elements to memory that the caller keeps during the call.
    fn read_into(&self, py: Python<'_>, address: usize, bytes: usize) -> PyResult<()> {
        let expected = self.shape.iter().product::<usize>() * self.dtype.bytes();
        if expected != bytes {
            return Err(PyValueError::new_err(format!("the array has {expected} bytes, not {bytes}")));
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: `cantus/_array.py` holds the writable array whose address and size these are.
        let into = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) };
        if let Some(few) = self.few() {
            into.copy_from_slice(few.bytes());
            return Ok(());
        }
        let tensor = self.tensor(py)?;
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

    /// A DLPack capsule over the host's memory; None where the array is not there. Without elements there is no memory.
    fn dlpack<'py>(&self, py: Python<'py>, versioned: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.shape.contains(&0) {
            return dlpack::exported(py, &self.shape, self.dtype, View::Nothing, None, versioned).map(Some);
        }
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
        // SAFETY: DLPack's protocol: whoever asks names a stream of the array's device, which lives.
        match wait(py, &self.engine, unsafe { tensor.driver_view_async(stream.unwrap_or(own.stream)) })? {
            Some(view) => dlpack::exported(py, &self.shape, self.dtype, View::Driver(view), kind, versioned).map(Some),
            None => Ok(None),
        }
    }

    /// Arrow's capsules: the type, and the array over the host's memory or a copy.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        data::exported(py, self)
    }

    /// A copy that shares nothing with it.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        if let Some(few) = self.few() {
            // A kernel may write to the memory of a tensor that is made of the copy.
            let own = if few.is_lent() { Arc::new((*few).clone()) } else { few };
            return Ok(Self::known(self.engine.clone(), own, None));
        }
        let tensor = self.tensor(py)?;
        let name = tensor.device_name();
        let copy = wait(py, &self.engine, tensor.to_device_async(&name))?;
        Self::computed(self.engine.clone(), &copy)
    }

    /// The WGSL of its last kernel.
    fn wgsl(&self, py: Python<'_>) -> PyResult<String> {
        let expr = self.expr()?;
        detached(py, || expr.wgsl())
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
        self.called(py, name, &others.iter().map(|other| &**other).collect::<Vec<_>>(), &ints, &floats)
    }

    /// A DLPack capsule as (dtype, shape, strides, address, device, owner).
    #[staticmethod]
    fn imported(capsule: &Bound<'_, PyAny>) -> PyResult<dlpack::Imported> {
        dlpack::imported(capsule)
    }
}

impl Lazy {
    pub(crate) fn part(&self, part: Part) -> PyResult<Self> {
        if let Some(known) = self.at_once(|few| few.part(&part)) {
            return Ok(known);
        }
        let has_all = part.has_all(&self.shape);
        let Part { ranges, steps, shape } = part;
        let record = |expr: Expr| {
            let part = if has_all { expr } else { expr.slice_steps(&ranges, &steps) };
            Ok(if part.shape().is_ok_and(|known| known == shape) { part } else { part.reshape(&shape) })
        };
        self.recorded(&[], record)
    }

    /// Where the part lies that a key of integers, forward slices, None and one Ellipsis names; None for any other key, and for one that is wrong.
    pub(crate) fn part_at(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Part>> {
        let one = [key.clone()];
        let several: Vec<Bound<'_, PyAny>>;
        let items: &[Bound<'_, PyAny>] = match key.cast_exact::<PyTuple>() {
            Ok(tuple) => {
                several = tuple.iter().collect();
                &several
            }
            Err(_) => &one,
        };
        let is_rest = |item: &Bound<'_, PyAny>| item.is(PyEllipsis::get(key.py()));
        let used = items.iter().filter(|item| !item.is_none() && !is_rest(item)).count();
        let rests = items.iter().filter(|item| is_rest(item)).count();
        let Some(rest) = self.shape.len().checked_sub(used).filter(|_| rests < 2) else { return Ok(None) };
        let (mut ranges, mut steps, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        let mut sides = self.shape.iter().copied();
        let all = |sides: &mut dyn Iterator<Item = usize>, ranges: &mut Vec<Range<usize>>, steps: &mut Vec<usize>| {
            let side = sides.next().unwrap_or(0);
            ranges.push(0..side);
            steps.push(1);
            side
        };
        for item in items {
            if item.is_none() {
                shape.push(1);
            } else if is_rest(item) {
                shape.extend((0..rest).map(|_| all(&mut sides, &mut ranges, &mut steps)));
            } else if let Ok(slice) = item.cast_exact::<PySlice>() {
                let side = sides.next().unwrap_or(0);
                let found = slice.indices(side.cast_signed())?;
                let (Ok(start), Ok(step)) = (usize::try_from(found.start), usize::try_from(found.step)) else {
                    return Ok(None);
                };
                let last = found.slicelength.saturating_sub(1).saturating_mul(step);
                let range = if found.slicelength == 0 { 0..0 } else { start..start + last + 1 };
                ranges.push(range);
                steps.push(step);
                shape.push(found.slicelength);
            } else if let Ok(place) = item.cast_exact::<PyInt>() {
                let side = sides.next().unwrap_or(0);
                let Ok(place) = place.extract::<isize>() else { return Ok(None) };
                let from_end = if place < 0 { place.saturating_add(side.cast_signed()) } else { place };
                let Some(at) = usize::try_from(from_end).ok().filter(|&at| at < side) else { return Ok(None) };
                ranges.push(at..at + 1);
                steps.push(1);
            } else {
                return Ok(None);
            }
        }
        if rests == 0 {
            shape.extend((0..rest).map(|_| all(&mut sides, &mut ranges, &mut steps)));
        }
        Ok(Some(Part { ranges, steps, shape }))
    }

    /// Its numbers, read from the host's memory once they are computed; None where the device has memory of its own, of dtypes that are not held, and
    /// without room. The array stays as it is.
    pub(crate) fn numbers(&self, py: Python<'_>, most: Most) -> PyResult<Option<Arc<Few>>> {
        if let Some(few) = self.few() {
            return Ok(Some(few));
        }
        if !Few::holds(self.dtype) {
            return Ok(None);
        }
        let tensor = self.tensor(py)?;
        let Some(view) = wait(py, &self.engine, tensor.host_view_async())? else { return Ok(None) };
        // SAFETY: the view keeps its bytes, to which nobody writes: arrays do not change.
        let bytes = unsafe { std::slice::from_raw_parts(view.as_ptr(), view.bytes()) };
        Ok(Few::from_bytes(&self.shape, self.dtype, bytes, most))
    }

    /// The one element of a part of a computed array, from the host's memory; None as [`Lazy::numbers`], and of what is recorded.
    pub(crate) fn element(&self, py: Python<'_>, part: &Part, most: Most) -> PyResult<Option<Self>> {
        let is_computed = matches!(&*self.state(), State::Computed(_));
        if !is_computed || !part.shape.is_empty() || !Few::holds(self.dtype) {
            return Ok(None);
        }
        let tensor = self.tensor(py)?;
        let Some(view) = wait(py, &self.engine, tensor.host_view_async())? else { return Ok(None) };
        let size = self.dtype.bytes();
        let place = part.ranges.iter().zip(&self.shape).fold(0, |place, (range, side)| place * side + range.start);
        if (place + 1) * size > view.bytes() {
            return Ok(None);
        }
        // SAFETY: the element lies within the view, to whose bytes nobody writes: arrays do not change.
        let bytes = unsafe { std::slice::from_raw_parts(view.as_ptr().add(place * size), size) };
        Ok(Few::from_bytes(&[], self.dtype, bytes, most).map(|few| Self::known(self.engine.clone(), few, None)))
    }

    /// Writes numbers to a part of it: in place if nobody else has the array, else to a copy that takes its place. `few` is what it holds; false, and
    /// nothing is written, if the numbers do not fit.
    pub(crate) fn write(&mut self, few: Arc<Few>, part: &Part, from: &Numbers) -> bool {
        if let Some(inner) = Arc::get_mut(&mut self.0)
            && let Some(state) = Arc::get_mut(&mut inner.state)
            && let State::Known(own, expr) = state.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            // A tensor that nobody else has lets the numbers go.
            drop((few, expr.take()));
            if let Some(own) = Arc::get_mut(own) {
                inner.extent = OnceLock::new();
                return own.write(part, from);
            }
            let mut copy = (**own).clone();
            let fits = copy.write(part, from);
            if fits {
                *own = Arc::new(copy);
                inner.extent = OnceLock::new();
            }
            return fits;
        }
        // What was just read from a tensor is nobody else's.
        let mut few = few;
        let fits = match Arc::get_mut(&mut few) {
            Some(own) => own.write(part, from),
            None => {
                let mut copy = (*few).clone();
                let fits = copy.write(part, from);
                few = Arc::new(copy);
                fits
            }
        };
        if fits {
            *self = Self::known(self.engine.clone(), few, None).depending_on(self.checks.clone());
        }
        fits
    }

    /// See [`call::call`].
    pub(crate) fn called(
        &self,
        py: Python<'_>,
        name: &str,
        others: &[&Self],
        ints: &[i64],
        floats: &[f64],
    ) -> PyResult<Vec<Self>> {
        if let Some(few) = self.few()
            && let Some(beside) = self.few_of(others)
            && let Some(known) = few.called(name, &beside, ints)
        {
            let known = Self::known(self.engine.clone(), known, None);
            return Ok(vec![known.depending_on(self.checks_with(others))]);
        }
        let exprs = others.iter().map(|other| other.expr()).collect::<PyResult<Vec<_>>>()?;
        guarded(|| {
            let results = call::call(py, self, name, &exprs, ints, floats)?;
            let checks = self.checks_with(others);
            let lazy = |expr| Ok(Self::new(self.engine.clone(), expr)?.submitted()?.depending_on(checks.clone()));
            results.into_iter().map(lazy).collect()
        })
    }
}
