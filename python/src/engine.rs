//! Engines, one for each device that is asked for, and what the machine has.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use cantus::backend::{DriverMemory, HostMemory};
use cantus::ops::{self, Expr, field};
use cantus::{DType, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::Lazy;
use crate::call::index;
use crate::dlpack::driver_type;
use crate::errors::{detached, exception, guarded};
use crate::few::{self, Few, Most};
use crate::kernel::Kernel;
use crate::numbers::Numbers;
use crate::texture::{Sampling, Texture, sampler};
use crate::wait::wait;

/// An engine on one device.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Engine {
    pub(crate) engine: cantus::Engine,
    process: u32,
    /// Results are the same wherever and however often they are computed.
    reproducible: bool,
    /// It computes in the host's memory, and what the host computes is what it computes.
    pub(crate) is_host: bool,
    /// Kernels' times are taken also on devices where that has a cost.
    timed: bool,
}

/// The number of forks behind this process. Asking the system would take a call each time.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Called in the child of a fork.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn process() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// After a fork none of the threads that compute is there.
pub(crate) fn check_process(of: u32) -> PyResult<()> {
    if of == process() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this array belongs to the process before the fork, whose threads are not here: create arrays after the fork, \
         or start processes by \"spawn\" (multiprocessing.set_start_method(\"spawn\"))",
    ))
}

pub(crate) fn dtype(name: &str) -> PyResult<DType> {
    name.parse().map_err(exception)
}

/// Keeps Python's memory alive. The object is released under the interpreter's lock.
struct Owner(Option<Py<PyAny>>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // At the interpreter's end there is nothing to give back to.
            let _ = Python::try_attach(|_| drop(object));
        }
    }
}

impl Engine {
    pub(crate) fn checked(&self) -> PyResult<&cantus::Engine> {
        check_process(self.process)?;
        Ok(&self.engine)
    }

    /// Returns whether the host computes few numbers of a dtype at once.
    fn counts_at_once(&self, dtype: DType) -> bool {
        self.is_host && Few::holds(dtype) || dtype == DType::F32 && !self.reproducible
    }

    /// How many numbers are few here. Who measures kernels wants them to run.
    fn most(&self) -> Most {
        if self.is_host && !self.timed { Most::Host } else { Most::Device }
    }

    fn lazy(&self, expr: Expr) -> PyResult<Lazy> {
        Lazy::new(self.engine.clone(), expr)
    }

    fn evaluated(&self, tensor: &Tensor) -> PyResult<Lazy> {
        Lazy::computed(self.engine.clone(), tensor)
    }
}

/// # Safety
/// `address` is that of `bytes` readable bytes, which the caller keeps.
unsafe fn memory<'a>(address: usize, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: `bytes` bytes are readable there, and kept by the caller (this function's contract).
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }
}

#[pymethods]
impl Engine {
    /// Opens a device by a backend's name, with `:index` or without; None takes the best.
    #[new]
    #[pyo3(signature = (name=None, reproducible=false))]
    fn new(py: Python<'_>, name: Option<&str>, reproducible: bool) -> PyResult<Self> {
        let timed = std::env::var("CANTUS_PROFILE").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        let mut builder = cantus::Engine::builder().reproducible(reproducible).profile(timed).trust_places();
        if let Some(name) = name {
            let (backend, place) = name.split_once(':').unwrap_or((name, "0"));
            let place =
                place.parse().map_err(|_| PyValueError::new_err(format!("{name:?} is no device (as \"wgpu:1\")")))?;
            builder = builder.backend(backend).device(place);
        }
        let engine = detached(py, || builder.build())?;
        let is_host = !reproducible && engine.selected().device.backend == "cpu";
        Ok(Self { engine, process: process(), reproducible, is_host, timed })
    }

    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        device(py, &self.engine.selected().device)
    }

    /// A copy of memory that the caller keeps during the call.
    fn copied(
        &self,
        py: Python<'_>,
        dtype_name: &str,
        shape: Vec<usize>,
        address: usize,
        bytes: usize,
    ) -> PyResult<Lazy> {
        // SAFETY: `cantus/_array.py` holds the array whose address and size these are.
        let contents = unsafe { memory(address, bytes) };
        let (engine, dtype) = (self.checked()?, dtype(dtype_name)?);
        if self.counts_at_once(dtype)
            && self.most().keeps(&shape, dtype)
            && let Some(few) = Few::from_bytes(&shape, dtype, contents, self.most())
        {
            return Ok(Lazy::known(engine.clone(), few, None));
        }
        let tensor = wait(py, engine, engine.tensor_from_bytes_async(dtype, &shape, contents))?;
        self.evaluated(&tensor)
    }

    /// Memory of `owner`'s as it is, where the device computes in the host's.
    fn adopted(
        &self,
        py: Python<'_>,
        dtype_name: &str,
        shape: Vec<usize>,
        address: usize,
        bytes: usize,
        owner: Py<PyAny>,
    ) -> PyResult<Lazy> {
        let (engine, dtype) = (self.checked()?, dtype(dtype_name)?);
        let Some(start) = NonNull::new(address as *mut u8).filter(|_| bytes > 0) else {
            return self.copied(py, dtype_name, shape, address, 0);
        };
        // SAFETY: `owner` keeps the memory; whoever imports it is told not to write to it.
        let memory = unsafe { HostMemory::new(start, bytes as u64, Owner(Some(owner))) };
        let tensor = wait(py, engine, engine.tensor_from_host_memory_async(dtype, &shape, memory))?;
        self.evaluated(&tensor)
    }

    /// Memory of `owner`'s as it is, of this device's driver. What fills it is done, or in the stream of `driver`.
    fn adopted_from_driver(
        &self,
        py: Python<'_>,
        dtype_name: &str,
        shape: Vec<usize>,
        address: u64,
        bytes: u64,
        owner: Py<PyAny>,
    ) -> PyResult<Lazy> {
        let (engine, dtype) = (self.checked()?, dtype(dtype_name)?);
        // SAFETY: `owner` keeps the memory; whoever imports it is told not to write to it.
        let memory = unsafe { DriverMemory::new(address, bytes, Owner(Some(owner))) };
        let tensor = wait(py, engine, engine.tensor_from_driver_memory_async(dtype, &shape, memory))?;
        self.evaluated(&tensor)
    }

    /// DLPack's device, and the driver's stream that all work goes into; None where the device is neither CUDA's nor HIP's.
    fn driver(&self) -> PyResult<Option<(i32, i32, usize)>> {
        let engine = self.checked()?;
        let kind = driver_type(&engine.selected().device.backend);
        Ok(kind.zip(engine.driver_stream()).map(|(kind, own)| (kind, own.device, own.stream)))
    }

    /// Makes an array without inputs: `ints` is the shape, or as the name says.
    #[pyo3(signature = (name, ints, floats, dtype_name))]
    fn make(&self, name: &str, ints: Vec<i64>, floats: Vec<f64>, dtype_name: &str) -> PyResult<Lazy> {
        let engine = self.checked()?;
        let dtype = dtype(dtype_name)?;
        let float = |place: usize| floats.get(place).copied().unwrap_or(0.0);
        let shape = || ints.iter().map(|&side| index(side)).collect::<PyResult<Vec<usize>>>();
        // Random numbers have the seed before the shape.
        let seeded = || -> PyResult<(u64, Vec<usize>)> {
            let (&seed, shape) = ints.split_first().ok_or_else(|| PyValueError::new_err("a seed is missing"))?;
            Ok((seed.cast_unsigned(), shape.iter().map(|&side| index(side)).collect::<PyResult<_>>()?))
        };
        let int = |place: usize| ints.get(place).copied().unwrap_or(0);
        // Of few numbers the numbers themselves as well.
        let known = |shape: &[usize], numbers: &dyn Fn(usize) -> Option<Numbers>, expr: Expr| {
            let is_few = self.counts_at_once(dtype) && self.most().makes(shape, dtype);
            match few::count(shape).filter(|_| is_few).and_then(numbers) {
                Some(numbers) => {
                    Ok(Lazy::known(engine.clone(), Few::new(shape.to_vec(), numbers, self.most()), Some(expr)))
                }
                None => self.lazy(expr),
            }
        };
        guarded(|| {
            self.lazy(match name {
                "full" => {
                    let shape = shape()?;
                    let numbers = |count| Numbers::repeated(dtype, float(0), count);
                    return known(&shape, &numbers, ops::full(engine, &shape, float(0), dtype));
                }
                "arange" => ops::arange(engine, float(0), float(1), float(2), dtype),
                "linspace" => ops::linspace(engine, float(0), float(1), index(int(0))?, dtype),
                "eye" => {
                    let (rows, columns, to) = (index(int(0))?, index(int(1))?, int(2) as isize);
                    let is_one = |at: usize| (at / columns).checked_add_signed(to) == Some(at % columns);
                    let of = |at: usize| f64::from(u8::from(is_one(at)));
                    let numbers = |count| if count <= few::KEPT { Numbers::made(dtype, count, &of) } else { None };
                    return known(&[rows, columns], &numbers, ops::eye(engine, rows, columns, to, dtype));
                }
                "rand" => seeded().map(|(seed, shape)| ops::rand(engine, &shape, seed))?,
                "randn" => seeded().map(|(seed, shape)| ops::randn(engine, &shape, seed))?,
                "bits" => seeded().map(|(seed, shape)| ops::random_bits(engine, &shape, seed))?,
                _ => return Err(PyValueError::new_err(format!("nothing makes {name}"))),
            })
        })
    }

    /// The damped spiral wave: all of it, or first and last (not included) row and column of a part.
    #[pyo3(signature = (width, height, hertz, time, part=None))]
    fn field(
        &self,
        py: Python<'_>,
        width: usize,
        height: usize,
        hertz: f64,
        time: f64,
        part: Option<[usize; 4]>,
    ) -> PyResult<Lazy> {
        let engine = self.checked()?;
        let params = field::FieldParams::new(width, height).frequency(field::Frequency::Hertz(hertz)).time(time);
        let tensor = match part {
            Some([top, bottom, left, right]) => {
                wait(py, engine, field::field_part_async(engine, &params, top..bottom, left..right))?
            }
            None => wait(py, engine, field::field_async(engine, &params))?,
        };
        self.evaluated(&tensor)
    }

    /// The golden-ratio spiral.
    fn phi_pattern(&self, py: Python<'_>, width: usize, height: usize) -> PyResult<Lazy> {
        let engine = self.checked()?;
        let tensor = wait(py, engine, field::phi_pattern_async(engine, width, height))?;
        self.evaluated(&tensor)
    }

    /// The coherence of a field.
    fn coherence(&self, py: Python<'_>, of: &Lazy) -> PyResult<f32> {
        let tensor = of.tensor(py)?;
        wait(py, &self.engine, ops::coherence_async(&self.engine, &tensor))
    }

    /// Runs a kernel: tensors, textures, samplers and numbers by name, and how many invocations or workgroups.
    #[allow(clippy::too_many_arguments, reason = "what a kernel takes")]
    fn run(
        &self,
        py: Python<'_>,
        kernel: &Kernel,
        bindings: Vec<(String, PyRef<'_, Lazy>)>,
        textures: Vec<(String, PyRef<'_, Texture>)>,
        samplers: Vec<(String, Sampling)>,
        numbers: Vec<(String, Vec<f64>)>,
        invocations: Option<[u32; 3]>,
        workgroups: Option<[u32; 3]>,
    ) -> PyResult<()> {
        let engine = self.checked()?;
        let tensors = bindings
            .iter()
            .map(|(name, array)| Ok((name.as_str(), array.tensor(py)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let textures: Vec<_> =
            textures.iter().map(|(name, texture)| (name.as_str(), texture.texture.clone())).collect();
        let samplers =
            samplers.iter().map(|(name, given)| Ok((name.as_str(), sampler(given)?))).collect::<PyResult<Vec<_>>>()?;
        kernel.run(py, engine, &tensors, (&textures, &samplers), &numbers, invocations, workgroups)
    }

    /// Waits for all work.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.checked()?;
        wait(py, engine, engine.finish_async())
    }

    /// Bytes in use, and kept for reuse.
    fn memory(&self) -> (u64, u64) {
        let figures = self.engine.memory();
        (figures.in_use, figures.pooled)
    }

    /// Gives memory that is kept for reuse back to the system.
    fn trim(&self) {
        self.engine.trim();
    }

    /// Returns the events, such as fallbacks and failures, as texts.
    fn events(&self) -> Vec<String> {
        self.engine.events().iter().map(|event| format!("{event:?}")).collect()
    }

    /// Calls `work` and measures what the device does meanwhile: rows of (operation, device, count, seconds, GB/s, GFLOP/s), the seconds in
    /// all, and a trace for Perfetto.
    fn profile(&self, work: &Bound<'_, PyAny>) -> PyResult<(Vec<Row>, f64, String)> {
        let engine = self.checked()?;
        let device = &engine.selected().device;
        // The processor's times are always there; on other devices they hold up each kernel a little.
        if !self.timed && device.backend != "cpu" {
            return Err(PyRuntimeError::new_err(format!(
                "{} was opened without times of kernels (set CANTUS_PROFILE=1 before Cantus is first used)",
                device.name
            )));
        }
        let (result, profile) = guarded(|| Ok(engine.profile(|| work.call0().map(drop))))?;
        result?;
        let rows = profile
            .rows()
            .into_iter()
            .map(|row| (row.operation, row.device, row.count, row.total.as_secs_f64(), row.gb_per_s, row.gflop_per_s));
        Ok((rows.collect(), profile.time().as_secs_f64(), profile.to_json()))
    }
}

type Row = (String, String, u64, f64, Option<f64>, Option<f64>);

fn device<'py>(py: Python<'py>, info: &cantus::backend::DeviceInfo) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    let features = info.capabilities.features;
    row.set_item("backend", &info.backend)?;
    row.set_item("index", info.index)?;
    row.set_item("name", &info.name)?;
    row.set_item("kind", info.kind.name())?;
    row.set_item("driver", &info.driver)?;
    row.set_item("memory", info.memory_bytes)?;
    row.set_item("priority", info.priority)?;
    row.set_item("experimental", info.is_experimental())?;
    row.set_item("float64", features.float64)?;
    row.set_item("int64", features.int64)?;
    Ok(row)
}

/// Every backend: its name, the reason why it has no device, and its devices.
#[pyfunction]
pub(crate) fn survey(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let registry = cantus::backend::Registry::with_defaults();
    let found = detached(py, || Ok(cantus::engine::survey(&registry, &cantus::Config::default())))?;
    let rows = PyList::empty(py);
    for backend in &found.backends {
        let devices = backend.devices.iter().map(|info| device(py, info)).collect::<PyResult<Vec<_>>>()?;
        rows.append((&backend.name, &backend.reason, devices))?;
    }
    Ok(rows)
}

/// Named frequencies, in Hz.
#[pyfunction]
pub(crate) fn frequencies() -> BTreeMap<&'static str, f64> {
    field::Frequency::names().collect()
}
