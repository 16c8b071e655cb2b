//! The circuit as an app runs it: planned once for an engine and a precision, then run for any parameters, one set or many, as amplitudes,
//! probabilities, expectation values or gradients. `shots` has samples and noise.

use std::sync::Arc;

use cantus::backend::DeviceKind;
use cantus::engine::{Graph, GraphInputs};
use cantus::{Engine, Error, Result, Tensor};
use num_complex::Complex;

use crate::apply;
use crate::circuit::{Circuit, Instruction};
use crate::native::Run;
use crate::observable::Observable;
use crate::plan::{self, Costs, Elementary, Plan, Recipe};
use crate::split::Split;
use crate::state::State;
use crate::strips::Strips;

/// The numbers that amplitudes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// complex64: 8 bytes an amplitude.
    #[default]
    Single,
    /// complex128: 16 bytes an amplitude. The CPU has it, and devices with float64.
    Double,
}

impl Precision {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Single => 8,
            Self::Double => 16,
        }
    }
}

/// Runs `$body` with the type of the parts of amplitudes.
macro_rules! by_precision {
    ($precision:expr, $part:ident => $body:expr) => {
        match $precision {
            $crate::compiled::Precision::Single => {
                type $part = f32;
                $body
            }
            $crate::compiled::Precision::Double => {
                type $part = f64;
                $body
            }
        }
    };
}
pub(crate) use by_precision;

/// A circuit that is planned for an engine. New parameters change numbers only: no kernel is compiled for a circuit.
///
/// ```
/// use cantus_circuits::{Circuit, Compiled, Observable, Precision};
/// let mut circuit = Circuit::new(1)?;
/// let theta = circuit.parameter("theta")?;
/// circuit.ry(theta, 0)?;
/// let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let compiled = Compiled::new(&engine, &circuit, Precision::Single)?;
/// let z = Observable::new(&[("Z", 1.0)])?;
/// let (value, gradient) = compiled.gradient(&[0.5], &z)?; // cos θ, -sin θ
/// assert!((value - 0.5_f64.cos()).abs() < 1e-6 && (gradient[0] + 0.5_f64.sin()).abs() < 1e-6);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compiled {
    engine: Engine,
    circuit: Arc<Circuit>,
    precision: Precision,
    split: Split,
    plan: Arc<Plan>,
    recipe: Arc<Recipe>,
}

/// The cheapest way to run passes on an engine's device.
pub(crate) fn costs(engine: &Engine) -> Costs {
    match engine.selected().device.kind {
        DeviceKind::Cpu => Costs::PROCESSOR,
        _ => Costs::MEMORY,
    }
}

/// Refuses a circuit that has no one final state.
pub(crate) fn check_final(circuit: &Circuit) -> Result<()> {
    match circuit.is_dynamic() {
        false => Ok(()),
        true => Err(Error::invalid(
            "the circuit",
            "it has no one final state, as gates follow measurements, resets or conditions (run it with shots)",
        )),
    }
}

impl Compiled {
    /// Plans a circuit. Its measurements at the end are no part of the state, and are left out.
    ///
    /// # Errors
    /// [`Error::Limit`] for a state that does not fit the engine's device, [`Error::InvalidInput`] for a circuit without one final state (use
    /// [`run`](crate::run)).
    pub fn new(engine: &Engine, circuit: &Circuit, precision: Precision) -> Result<Self> {
        Self::planned(engine, circuit, precision, None)
    }

    /// [`Compiled::new`] with tensors of at most 2^most amplitudes: for tests.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[doc(hidden)]
    pub fn within(engine: &Engine, circuit: &Circuit, precision: Precision, most: usize) -> Result<Self> {
        Self::planned(engine, circuit, precision, Some(most))
    }

    fn planned(engine: &Engine, circuit: &Circuit, precision: Precision, most: Option<usize>) -> Result<Self> {
        let split = Split::fitting(engine, circuit, precision, most)?;
        check_final(circuit)?;
        let gates = whole(circuit);
        let (plan, recipe) = plan::plan(circuit.qubits(), gates, &costs(engine));
        let (plan, recipe) = (Arc::new(plan), Arc::new(recipe));
        Ok(Self { engine: engine.clone(), circuit: Arc::new(circuit.clone()), precision, split, plan, recipe })
    }

    /// Returns the circuit.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Returns what it does, pass by pass.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            gates: self.circuit.gates(),
            passes: self.plan.ops.len(),
            sweeps: self.split.sweeps(&self.plan),
            strips: self.split.strips(),
            state_bytes: self.precision.bytes() << self.plan.qubits,
        }
    }

    /// Returns the final state for parameters.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a wrong number of parameters or one that is not finite; those of the device.
    pub fn state(&self, parameters: &[f64]) -> Result<State> {
        by_precision!(self.precision, T => {
            let tables = self.tables::<T>(&[parameters])?;
            let strips = Strips::run::<T>(&self.engine, self.split, &self.plan, &tables, None)?;
            Ok(State::new(self.engine.clone(), strips, self.precision))
        })
    }

    /// Returns the final states for sets of parameters: a tensor [sets, 2^qubits] of amplitudes.
    ///
    /// # Errors
    /// As [`Compiled::state`]; [`Error::InvalidInput`] without sets; [`Error::Limit`] for states that are larger than a binding of the device.
    pub fn states(&self, sets: &[&[f64]]) -> Result<Tensor> {
        self.check_whole()?;
        by_precision!(self.precision, T => {
            let tables = self.tables::<T>(sets)?;
            apply::run::<T>(&self.engine, &self.plan, &tables, sets.len(), None)
        })
    }

    /// Refuses a state in strips.
    fn check_whole(&self) -> Result<()> {
        match self.split.is_whole() {
            true => Ok(()),
            false => Err(Error::limit(
                "the states",
                format!(
                    "one of {} qubits takes {}, more than a tensor that the device binds (one state at a time is in strips)",
                    self.plan.qubits,
                    crate::bytes(self.figures().state_bytes)
                ),
            )),
        }
    }

    /// The tables for sets of parameters, on the device.
    fn tables<T: Run>(&self, sets: &[&[f64]]) -> Result<Tensor> {
        let tables = apply::tables::<T>(&self.engine, sets.len().max(1), self.plan.entries)?;
        <T as crate::real::Real>::write(&tables, &self.numbers::<T>(sets)?)?;
        Ok(tables)
    }

    /// The tables for sets of parameters, in a row.
    fn numbers<T: Run>(&self, sets: &[&[f64]]) -> Result<Vec<Complex<T>>> {
        if sets.is_empty() {
            return Err(Error::invalid(
                "the sets of parameters",
                "there are none (a circuit without parameters takes one empty set)",
            ));
        }
        let mut numbers = Vec::with_capacity(sets.len() * self.plan.entries.max(1));
        for set in sets {
            self.circuit.check_parameters(set)?;
            self.recipe.fill(&self.circuit, &self.plan, set, &mut numbers);
        }
        if self.plan.entries == 0 {
            numbers.resize(sets.len(), Complex::new(T::ZERO, T::ZERO));
        }
        Ok(numbers)
    }

    /// Captures the circuit for a number of sets of parameters at once, as a graph that [`Replay::replay`] runs.
    ///
    /// # Errors
    /// As [`Engine::capture`]; [`Error::Limit`] for states that are larger than a binding of the device.
    pub fn capture(&self, sets: usize) -> Result<Replay> {
        self.check_whole()?;
        by_precision!(self.precision, T => {
            let tables = apply::tables::<T>(&self.engine, sets.max(1), self.plan.entries)?;
            let zeros = vec![Complex::new(0.0, 0.0); tables.len()];
            <T as crate::real::Real>::write(&tables, &zeros)?;
            let graph = self.engine.capture(|| apply::run::<T>(&self.engine, &self.plan, &tables, sets.max(1), None))?;
            Ok(Replay { compiled: self.clone(), graph, tables, sets: sets.max(1) })
        })
    }

    /// Returns the expectation value of an observable in the final state.
    ///
    /// # Errors
    /// As [`Compiled::state`]; [`Error::InvalidInput`] for an observable of another number of qubits.
    pub fn expectation(&self, parameters: &[f64], observable: &Observable) -> Result<f64> {
        self.state(parameters)?.expectation(observable)
    }

    /// Returns the expectation value of an observable, and its derivative by each parameter, by the adjoint method: two states go backwards through the
    /// circuit, so the time is that of a few runs, however many parameters there are. Memory is needed for three states.
    ///
    /// # Errors
    /// As [`Compiled::expectation`].
    pub fn gradient(&self, parameters: &[f64], observable: &Observable) -> Result<(f64, Vec<f64>)> {
        self.circuit.check_parameters(parameters)?;
        observable.check(self.plan.qubits)?;
        by_precision!(self.precision, T => crate::gradient::gradient::<T>(&self.engine, &self.circuit, self.state(parameters)?.in_strips(), parameters, observable))
    }
}

/// The size of a compiled circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The gates of the circuit.
    pub gates: usize,
    /// The multiplications of the state vector that they became.
    pub passes: usize,
    /// The number of times that the CPU goes through memory for them; other devices do so for each pass.
    pub sweeps: usize,
    /// The tensors that a state is in: 1 unless it is larger than a binding of the device.
    pub strips: usize,
    /// The bytes of the amplitudes.
    pub state_bytes: u64,
}

/// A captured circuit. Replays write its states anew for other parameters.
#[derive(Debug)]
pub struct Replay {
    compiled: Compiled,
    graph: Graph<Tensor>,
    tables: Tensor,
    sets: usize,
}

impl Replay {
    /// Runs the circuit for sets of parameters, as many as it was captured for.
    ///
    /// # Errors
    /// As [`Compiled::states`]; [`Error::InvalidInput`] for another number of sets.
    pub fn replay(&self, sets: &[&[f64]]) -> Result<()> {
        if sets.len() != self.sets {
            return Err(Error::invalid(
                "the sets of parameters",
                format!("the circuit was captured for {}, and {} are given", self.sets, sets.len()),
            ));
        }
        by_precision!(self.compiled.precision, T => {
            let numbers = self.compiled.numbers::<T>(sets)?;
            self.graph.replay(&GraphInputs::new().set(&self.tables, &numbers))
        })
    }

    /// Returns the amplitudes of the last replay: a tensor [sets, 2^qubits], the same one each time.
    #[must_use]
    pub fn states(&self) -> &Tensor {
        self.graph.outputs()
    }
}

/// All gates of a circuit.
pub(crate) fn whole(circuit: &Circuit) -> Vec<Elementary> {
    elementary(circuit, 0..circuit.instructions.len(), &mut plan::first_layout(circuit), &plan::free_swaps(circuit))
}

/// The gates among instructions. Exchanges that are free change the layout instead.
pub(crate) fn elementary(
    circuit: &Circuit,
    range: std::ops::Range<usize>,
    layout: &mut [u8],
    free: &[usize],
) -> Vec<Elementary> {
    let mut gates = Vec::new();
    for at in range {
        let Some(Instruction::Gate(gate)) = circuit.instructions.get(at) else { continue };
        if free.binary_search(&at).is_ok()
            && let [a, b] = circuit.operands[gate.qubits.range()]
        {
            layout.swap(a as usize, b as usize);
            continue;
        }
        gates.push(Elementary::of(circuit, gate, layout));
    }
    gates
}
