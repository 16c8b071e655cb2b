//! Noise, by trajectories: each shot draws which error happens.

use cantus::{Error, Result};

use crate::gate::{I, Matrix, ONE, ZERO};

/// Errors of gates and measurements, the same for all qubits.
///
/// ```
/// use cantus_circuits::{Circuit, Noise};
/// let mut flip = Circuit::new(1)?;
/// flip.x(0)?.measure_all()?;
/// let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let noise = Noise::new().readout(0.0, 0.25)?;
/// let counts = cantus_circuits::run_noisy(&engine, &flip, &[], &noise, 1000, 1)?.counts();
/// assert!(counts.iter().any(|(bits, count)| bits == "0" && (150..350).contains(count)));
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    pub(crate) one: f64,
    pub(crate) two: f64,
    pub(crate) damping: f64,
    pub(crate) read_one: f64,
    pub(crate) read_zero: f64,
}

fn probability(value: f64, what: &str) -> Result<f64> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(Error::invalid("the noise", format!("{what} of {value} is not from 0 to 1"))),
    }
}

impl Noise {
    /// Creates the absence of noise.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the depolarising error after each gate of one qubit, and of two: with this probability the qubits become wholly mixed. Gates of more qubits get
    /// the error of one on each qubit.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] outside of 0 to 1.
    pub fn depolarising(self, one: f64, two: f64) -> Result<Self> {
        let what = "a depolarising probability";
        Ok(Self { one: probability(one, what)?, two: probability(two, what)?, ..self })
    }

    /// Sets the probability that a qubit which is 1 becomes 0 after a gate on it.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] outside of 0 to 1.
    pub fn amplitude_damping(self, gamma: f64) -> Result<Self> {
        Ok(Self { damping: probability(gamma, "an amplitude damping")?, ..self })
    }

    /// Sets the probabilities that a measurement of 0 reads 1, and that one of 1 reads 0.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] outside of 0 to 1.
    pub fn readout(self, zero_reads_one: f64, one_reads_zero: f64) -> Result<Self> {
        let what = "a readout error";
        Ok(Self { read_one: probability(zero_reads_one, what)?, read_zero: probability(one_reads_zero, what)?, ..self })
    }

    /// True if gates have errors.
    pub(crate) fn has_gates(&self) -> bool {
        self.one > 0.0 || self.two > 0.0 || self.damping > 0.0
    }

    /// The probability that a measurement with this outcome reads the other one.
    pub(crate) fn misread(&self, one: bool) -> f64 {
        if one { self.read_zero } else { self.read_one }
    }
}

/// Pauli's matrix of a number: I, X, Y, Z.
pub(crate) fn pauli(number: usize) -> Matrix {
    match number {
        0 => vec![ONE, ZERO, ZERO, ONE],
        1 => vec![ZERO, ONE, ONE, ZERO],
        2 => vec![ZERO, -I, I, ZERO],
        _ => vec![ONE, ZERO, ZERO, -ONE],
    }
}
