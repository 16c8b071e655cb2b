//! Quantum circuits: `cantus.circuits`.

use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cantus::files::Temporary;
use cantus::num_complex::Complex;
use cantus::tensor::npy;
use cantus_circuits as circuits;
use circuits::{Angle, Function, Operation, Precision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Lazy;
use crate::engine::Engine;
use crate::errors::{exception, guarded};

fn precision(double: bool) -> Precision {
    if double { Precision::Double } else { Precision::Single }
}

/// An angle: an expression of a circuit's parameters, in postfix order. Numbers are pairs of an empty name and a value, parameters of `$` and their number, and
/// functions and operations go by their names.
fn angle(parts: &[(String, f64)], circuit: &circuits::Circuit, known: &[circuits::Parameter]) -> PyResult<Angle> {
    let mut stack: Vec<Angle> = Vec::new();
    let wrong = || PyValueError::new_err("the expression of an angle is incomplete");
    for (name, value) in parts {
        let function = match name.as_str() {
            "negative" => Some(Function::Negative),
            "sin" => Some(Function::Sin),
            "cos" => Some(Function::Cos),
            "tan" => Some(Function::Tan),
            "arcsin" => Some(Function::Arcsin),
            "arccos" => Some(Function::Arccos),
            "arctan" => Some(Function::Arctan),
            "exp" => Some(Function::Exp),
            "log" => Some(Function::Ln),
            "sqrt" => Some(Function::Sqrt),
            _ => None,
        };
        let operation = match name.as_str() {
            "add" => Some(Operation::Add),
            "subtract" => Some(Operation::Subtract),
            "multiply" => Some(Operation::Multiply),
            "divide" => Some(Operation::Divide),
            "power" => Some(Operation::Power),
            _ => None,
        };
        let next = if name.is_empty() {
            Angle::from(*value)
        } else if let Some(parameter) = name.strip_prefix('$') {
            let at = circuit.parameters().iter().position(|known| known == parameter);
            let parameter = at.and_then(|at| known.get(at)).copied();
            Angle::from(parameter.ok_or_else(|| PyValueError::new_err("an angle has a parameter of another circuit"))?)
        } else if let Some(function) = function {
            stack.pop().ok_or_else(wrong)?.apply(function)
        } else if let Some(operation) = operation {
            let (b, a) = (stack.pop().ok_or_else(wrong)?, stack.pop().ok_or_else(wrong)?);
            a.with(operation, b)
        } else {
            return Err(PyValueError::new_err(format!("there is no operation {name} of angles")));
        };
        stack.push(next);
    }
    stack.pop().filter(|_| stack.is_empty()).ok_or_else(wrong)
}

/// A circuit in the making, and its parameters.
struct Built {
    circuit: circuits::Circuit,
    parameters: Vec<circuits::Parameter>,
}

/// A circuit.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Circuit {
    built: Mutex<Built>,
}

impl Circuit {
    fn lock(&self) -> MutexGuard<'_, Built> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self) -> circuits::Circuit {
        self.lock().circuit.clone()
    }

    fn change(&self, work: impl FnOnce(&mut circuits::Circuit) -> cantus::Result<()>) -> PyResult<()> {
        guarded(|| work(&mut self.lock().circuit).map_err(exception))
    }
}

/// Computes a circuit's final state in a new .npy file, which takes its place when it is complete.
fn streamed(
    engine: &cantus::Engine,
    circuit: &circuits::Circuit,
    values: &[f64],
    precision: Precision,
    path: &Path,
    progress: &mut (dyn FnMut(u64, u64) -> cantus::Result<()> + Send),
) -> cantus::Result<()> {
    let shown = path.display().to_string();
    let fault = |reason: String| cantus::Error::Io { action: "cannot write".to_owned(), path: shown.clone(), reason };
    let system = |error: io::Error| fault(error.to_string());
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(fault("it is not a file (choose another name)".to_owned()));
    }
    let dtype = match precision {
        Precision::Single => cantus::DType::Complex64,
        Precision::Double => cantus::DType::Complex128,
    };
    let mut temporary = Temporary::new(path).map_err(system)?;
    // A circuit of more qubits than a file has room for is refused before anything is computed.
    npy::write_header(&mut temporary, dtype, &[1 << circuit.qubits().min(62)]).map_err(system)?;
    let first = temporary.file().stream_position().map_err(system)?;
    let file = temporary.as_file().try_clone().map_err(system)?;
    circuits::Stream::new(file, &shown).behind(first).run(engine, circuit, values, precision, progress)?;
    temporary.commit(path).map_err(system)
}

/// A number, or a name with a number, of [`angle`].
type Parts = Vec<Vec<(String, f64)>>;

#[pymethods]
impl Circuit {
    #[new]
    fn new(qubits: usize, bits: usize) -> PyResult<Self> {
        guarded(|| {
            let mut circuit = circuits::Circuit::new(qubits).map_err(exception)?;
            if bits > 0 {
                circuit.bit_register("c", bits).map_err(exception)?;
            }
            Ok(Self { built: Mutex::new(Built { circuit, parameters: Vec::new() }) })
        })
    }

    #[staticmethod]
    fn from_qasm(name: &str, text: &str) -> PyResult<Self> {
        guarded(|| {
            let circuit = circuits::Circuit::from_named_qasm(name, text).map_err(exception)?;
            let parameters = circuit.handles();
            Ok(Self { built: Mutex::new(Built { circuit, parameters }) })
        })
    }

    fn parameter(&self, name: &str) -> PyResult<()> {
        guarded(|| {
            let mut built = self.lock();
            let parameter = built.circuit.parameter(name).map_err(exception)?;
            built.parameters.push(parameter);
            Ok(())
        })
    }

    fn bit_register(&self, name: &str, count: usize) -> PyResult<usize> {
        guarded(|| self.lock().circuit.bit_register(name, count).map(|range| range.start).map_err(exception))
    }

    fn gate(&self, name: &str, angles: Parts, qubits: Vec<usize>) -> PyResult<()> {
        guarded(|| {
            let mut built = self.lock();
            let angles = angles
                .iter()
                .map(|parts| angle(parts, &built.circuit, &built.parameters))
                .collect::<PyResult<Vec<_>>>()?;
            built.circuit.gate(name, &angles, &qubits).map(drop).map_err(exception)
        })
    }

    fn unitary(&self, entries: Vec<(f64, f64)>, controls: Vec<bool>, qubits: Vec<usize>) -> PyResult<()> {
        let matrix: Vec<Complex<f64>> = entries.into_iter().map(|(re, im)| Complex::new(re, im)).collect();
        self.change(|circuit| circuit.controlled_unitary(&matrix, &controls, &qubits).map(drop))
    }

    fn measure(&self, qubit: usize, bit: usize) -> PyResult<()> {
        self.change(|circuit| circuit.measure(qubit, bit).map(drop))
    }

    fn measure_all(&self) -> PyResult<()> {
        self.change(|circuit| circuit.measure_all().map(drop))
    }

    fn reset(&self, qubit: usize) -> PyResult<()> {
        self.change(|circuit| circuit.reset(qubit).map(drop))
    }

    fn barrier(&self, qubits: Vec<usize>) -> PyResult<()> {
        self.change(|circuit| circuit.barrier(&qubits).map(drop))
    }

    #[getter]
    fn qubits(&self) -> usize {
        self.lock().circuit.qubits()
    }

    #[getter]
    fn bits(&self) -> usize {
        self.lock().circuit.bits()
    }

    #[getter]
    fn gates(&self) -> usize {
        self.lock().circuit.gates()
    }

    #[getter]
    fn parameters(&self) -> Vec<String> {
        self.lock().circuit.parameters().to_vec()
    }

    fn draw(&self) -> String {
        self.lock().circuit.draw()
    }

    fn draw_svg(&self) -> String {
        self.lock().circuit.draw_svg()
    }

    /// Counts by outcome.
    #[allow(clippy::too_many_arguments, reason = "Python's names them")]
    fn counts(
        &self,
        py: Python<'_>,
        engine: &Engine,
        values: Vec<f64>,
        shots: usize,
        seed: u64,
        depolarising: (f64, f64),
        damping: f64,
        readout: (f64, f64),
    ) -> PyResult<Vec<(String, u64)>> {
        let (circuit, engine) = (self.copy(), engine.checked()?);
        let noise = circuits::Noise::new()
            .depolarising(depolarising.0, depolarising.1)
            .and_then(|noise| noise.amplitude_damping(damping))
            .and_then(|noise| noise.readout(readout.0, readout.1))
            .map_err(exception)?;
        let work = || {
            let shots = circuits::run_noisy(engine, &circuit, &values, &noise, shots, seed)?;
            Ok(shots.counts())
        };
        guarded(|| py.detach(work).map_err(exception))
    }

    /// Computes the amplitudes in an .npy file.
    fn stream(&self, py: Python<'_>, engine: &Engine, values: Vec<f64>, double: bool, path: PathBuf) -> PyResult<()> {
        let (circuit, engine) = (self.copy(), engine.checked()?);
        // Ctrl-C ends it between windows.
        let mut stopped = None;
        let mut progress = |_, _| match Python::attach(|py| py.check_signals()) {
            Ok(()) => Ok(()),
            Err(error) => {
                stopped = Some(error);
                Err(cantus::Error::Cancelled { what: "the circuit".to_owned() })
            }
        };
        let work = || streamed(engine, &circuit, &values, precision(double), &path, &mut progress);
        let done = guarded(|| py.detach(work).map_err(exception));
        stopped.map_or(done, Err)
    }

    fn compiled(&self, py: Python<'_>, engine: &Engine, double: bool) -> PyResult<Compiled> {
        let (circuit, engine) = (self.copy(), engine.checked()?);
        let compiled =
            guarded(|| py.detach(|| circuits::Compiled::new(engine, &circuit, precision(double))).map_err(exception))?;
        Ok(Compiled { compiled, engine: engine.clone() })
    }
}

/// A circuit that is planned for an engine.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Compiled {
    compiled: circuits::Compiled,
    engine: cantus::Engine,
}

fn observable(terms: &[(String, f64)]) -> PyResult<circuits::Observable> {
    let terms: Vec<(&str, f64)> = terms.iter().map(|(letters, factor)| (letters.as_str(), *factor)).collect();
    circuits::Observable::new(&terms).map_err(exception)
}

#[pymethods]
impl Compiled {
    /// The amplitudes for sets of parameters: [sets, 2^qubits].
    fn states(&self, py: Python<'_>, sets: Vec<Vec<f64>>) -> PyResult<Lazy> {
        let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
        let tensor = guarded(|| py.detach(|| self.compiled.states(&sets)).map_err(exception))?;
        Lazy::computed(self.engine.clone(), &tensor)
    }

    /// The amplitudes in order, in tensors of equal size.
    fn strips(&self, py: Python<'_>, values: Vec<f64>) -> PyResult<Vec<Lazy>> {
        let state = guarded(|| py.detach(|| self.compiled.state(&values)).map_err(exception))?;
        state.strips().iter().map(|strip| Lazy::computed(self.engine.clone(), strip)).collect()
    }

    fn sample(&self, py: Python<'_>, values: Vec<f64>, shots: usize, seed: u64) -> PyResult<Vec<u64>> {
        guarded(|| py.detach(|| self.compiled.state(&values)?.sample(shots, seed)).map_err(exception))
    }

    fn expectation(&self, py: Python<'_>, values: Vec<f64>, terms: Vec<(String, f64)>) -> PyResult<f64> {
        let observable = observable(&terms)?;
        guarded(|| py.detach(|| self.compiled.expectation(&values, &observable)).map_err(exception))
    }

    fn gradient(&self, py: Python<'_>, values: Vec<f64>, terms: Vec<(String, f64)>) -> PyResult<(f64, Vec<f64>)> {
        let observable = observable(&terms)?;
        guarded(|| py.detach(|| self.compiled.gradient(&values, &observable)).map_err(exception))
    }

    /// Gates, passes, sweeps, and bytes of the amplitudes.
    #[getter]
    fn figures(&self) -> (usize, usize, usize, u64) {
        let figures = self.compiled.figures();
        (figures.gates, figures.passes, figures.sweeps, figures.state_bytes)
    }
}
