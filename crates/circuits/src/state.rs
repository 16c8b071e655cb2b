//! Final states: amplitudes, probabilities, samples, expectation values.

use cantus::{Engine, Result, Tensor};
use num_complex::Complex;

use crate::apply;
use crate::compiled::{Precision, by_precision};
use crate::observable::{Observable, value};
use crate::random;
use crate::real::{Real, wide};

/// Amplitudes that are read at a time.
const PART: usize = 1 << 18;

/// The state of qubits: 2^qubits amplitudes, bit k of whose numbers is qubit k.
#[derive(Debug, Clone)]
pub struct State {
    engine: Engine,
    tensor: Tensor,
    qubits: usize,
    precision: Precision,
}

impl State {
    pub(crate) fn new(engine: Engine, tensor: Tensor, qubits: usize, precision: Precision) -> Self {
        Self { engine, tensor, qubits, precision }
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Returns the number of qubits.
    #[must_use]
    pub fn qubits(&self) -> usize {
        self.qubits
    }

    /// Returns the amplitudes on the device: a tensor [1, 2^qubits] of complex64 or complex128, the state's own memory.
    #[must_use]
    pub fn amplitudes(&self) -> &Tensor {
        &self.tensor
    }

    /// Reads the amplitudes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn to_vec(&self) -> Result<Vec<Complex<f64>>> {
        let mut all = Vec::with_capacity(1 << self.qubits);
        self.each(|_, amplitude| {
            all.push(amplitude);
            true
        })?;
        Ok(all)
    }

    /// Reads the probabilities of all basis states.
    ///
    /// # Errors
    /// Those of the device.
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        let mut all = Vec::with_capacity(1 << self.qubits);
        self.each(|_, amplitude| {
            all.push(amplitude.norm_sqr());
            true
        })?;
        Ok(all)
    }

    /// Calls a function with each amplitude in order, until it returns false.
    fn each(&self, visit: impl FnMut(usize, Complex<f64>) -> bool) -> Result<()> {
        by_precision!(self.precision, T => each::<T>(&self.tensor, 1 << self.qubits, visit))
    }

    /// Draws basis states: of 64 qubits at most, bit k is qubit k. The same seed gives the same draws on each device, unless one falls within the rounding
    /// of amplitudes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sample(&self, shots: usize, seed: u64) -> Result<Vec<u64>> {
        let draws: Vec<f64> = (0..shots as u64).map(|shot| random::uniform(seed, shot, 0)).collect();
        self.drawn(&draws)
    }

    /// The basis states at places between 0 and 1 of the sum of all probabilities.
    pub(crate) fn drawn(&self, draws: &[f64]) -> Result<Vec<u64>> {
        let mut norm = 0.0;
        self.each(|_, amplitude| {
            norm += amplitude.norm_sqr();
            true
        })?;
        let mut order: Vec<usize> = (0..draws.len()).collect();
        order.sort_by(|a, b| draws[*a].total_cmp(&draws[*b]));
        let (mut found, mut next, mut sum, mut last) = (vec![0_u64; draws.len()], 0, 0.0, 0);
        self.each(|at, amplitude| {
            let probability = amplitude.norm_sqr();
            if probability > 0.0 {
                sum += probability;
                last = at as u64;
                while let Some(shot) = order.get(next).filter(|shot| draws[**shot] * norm < sum) {
                    found[*shot] = last;
                    next += 1;
                }
            }
            next < order.len()
        })?;
        // The last ones lie above the sum as it was rounded.
        for shot in order.iter().skip(next) {
            found[*shot] = last;
        }
        Ok(found)
    }

    /// Returns the expectation value of an observable.
    ///
    /// # Errors
    /// [`cantus::Error::InvalidInput`] for an observable of another number of qubits; those of the device.
    pub fn expectation(&self, observable: &Observable) -> Result<f64> {
        observable.check(self.qubits)?;
        let mut sum = 0.0;
        for term in observable.terms() {
            sum += value(term, self.inner(term.flip, term.signs)?);
        }
        Ok(sum)
    }

    /// The probability that a place of the state is 1, as a part of the whole.
    pub(crate) fn probability_of_one(&self, place: u8) -> Result<f64> {
        let (whole, sign) = (self.inner(0, 0)?.re, self.inner(0, 1 << place)?.re);
        Ok(((whole - sign) / (2.0 * whole)).clamp(0.0, 1.0))
    }

    fn inner(&self, flip: usize, signs: usize) -> Result<Complex<f64>> {
        let both = (&self.tensor, &self.tensor);
        by_precision!(self.precision, T => apply::inner::<T>(&self.engine, self.qubits, both, flip, signs))
    }
}

fn each<T: Real>(tensor: &Tensor, count: usize, mut visit: impl FnMut(usize, Complex<f64>) -> bool) -> Result<()> {
    let mut part = vec![Complex::new(T::ZERO, T::ZERO); PART.min(count)];
    for first in (0..count).step_by(part.len().max(1)) {
        T::read(tensor, first, &mut part)?;
        for (at, amplitude) in part.iter().enumerate() {
            if !visit(first + at, wide(*amplitude)) {
                return Ok(());
            }
        }
    }
    Ok(())
}
