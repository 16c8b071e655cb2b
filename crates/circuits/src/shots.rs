//! Runs with shots, and the outcomes that a final state has.

use std::borrow::Cow;

use cantus::{Engine, Error, Result};

use crate::circuit::{Circuit, Instruction};
use crate::compiled::{Precision, check_final};
use crate::noise::Noise;
use crate::outcomes::Shots;
use crate::split::Split;
use crate::state::State;
use crate::trajectory::Run;

/// The most shots of a run.
pub const MOST_SHOTS: usize = 1 << 24;
/// The most bits of all shots together.
const MOST_OUTCOMES: usize = 1 << 31;

fn check_shots(circuit: &Circuit, shots: usize) -> Result<()> {
    let most = (MOST_OUTCOMES / circuit.bits().max(1)).min(MOST_SHOTS);
    match shots <= most {
        true => Ok(()),
        false => Err(Error::limit(
            "the shots",
            format!("{shots} are above the limit of {most} (run several times, with other seeds)"),
        )),
    }
}

/// Runs a circuit for a number of shots, each of which measures what the circuit measures. A circuit without measurements is measured whole at its end.
///
/// The same seed gives the same outcomes on each device, unless a draw falls within the rounding of amplitudes.
///
/// # Errors
/// [`Error::Limit`] for a state that does not fit the engine's device, for more than [`MOST_SHOTS`], and for more than 2^31 bits in all;
/// [`Error::InvalidInput`] for parameters that do not fit; those of the device.
pub fn run(engine: &Engine, circuit: &Circuit, parameters: &[f64], shots: usize, seed: u64) -> Result<Shots> {
    run_noisy(engine, circuit, parameters, &Noise::new(), shots, seed)
}

/// [`run`] with noise: each shot is a trajectory, which draws the errors that happen.
///
/// # Errors
/// As [`run`].
pub fn run_noisy(
    engine: &Engine,
    circuit: &Circuit,
    parameters: &[f64],
    noise: &Noise,
    shots: usize,
    seed: u64,
) -> Result<Shots> {
    run_within(engine, circuit, parameters, noise, shots, seed, None)
}

/// [`run_noisy`] with tensors of at most 2^most amplitudes: for tests.
///
/// # Errors
/// As [`run`].
#[doc(hidden)]
pub fn run_within(
    engine: &Engine,
    circuit: &Circuit,
    parameters: &[f64],
    noise: &Noise,
    shots: usize,
    seed: u64,
    most: Option<usize>,
) -> Result<Shots> {
    circuit.check_parameters(parameters)?;
    let split = Split::fitting(engine, circuit, Precision::Single, most)?;
    let circuit = &*measured(circuit)?;
    check_shots(circuit, shots)?;
    let outcomes = Run::new(engine, circuit, parameters, noise, seed, split)?.all(shots)?;
    Ok(Shots::of(circuit, shots, outcomes))
}

/// The circuit, measured whole at its end if it has no measurement and no bits.
fn measured(circuit: &Circuit) -> Result<Cow<'_, Circuit>> {
    let measures = |step: &Instruction| matches!(step, Instruction::Measure { .. });
    if circuit.bits() > 0 || circuit.instructions.iter().any(measures) {
        return Ok(Cow::Borrowed(circuit));
    }
    let mut copy = circuit.clone();
    copy.measure_all()?;
    Ok(Cow::Owned(copy))
}

impl State {
    /// Draws the outcomes of a circuit's measurements, if this is its final state. Where all of them are at the end, these are the outcomes that [`run`] has with
    /// the same seed, unless a draw falls within the rounding of amplitudes.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a circuit without one final state, and for one of other qubits; [`Error::Limit`] above [`MOST_SHOTS`], or
    /// with more than 2^31 bits in all; those of the device.
    pub fn measured(&self, circuit: &Circuit, shots: usize, seed: u64) -> Result<Shots> {
        check_final(circuit)?;
        if circuit.qubits() != self.qubits() {
            return Err(Error::invalid(
                "the circuit",
                format!("it has {} qubits, and the state {}", circuit.qubits(), self.qubits()),
            ));
        }
        let circuit = &*measured(circuit)?;
        check_shots(circuit, shots)?;
        let drawn = self.sample(shots, seed)?;
        let outcome = |(shot, drawn): (usize, u64)| {
            let mut bits = vec![false; circuit.bits()];
            for step in &circuit.instructions {
                if let Instruction::Measure { qubit, bit } = *step
                    && let Some(bit) = bits.get_mut(bit as usize)
                {
                    *bit = drawn >> qubit & 1 == 1;
                }
            }
            (shot as u64, bits)
        };
        Ok(Shots::of(circuit, shots, drawn.into_iter().enumerate().map(outcome)))
    }
}
