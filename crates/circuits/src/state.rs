//! Final states: amplitudes, probabilities, samples, expectation values. `Compiled::state` returns it. It is read in blocks, since amplitudes may be in
//! strips or in a file; sums are float64. A draw near the boundary of two outcomes may differ between devices by rounding.

use cantus::{Engine, Error, Result, Tensor};
use num_complex::Complex;

use crate::compiled::{Precision, by_precision};
use crate::native::Run;
use crate::observable::{Observable, value};
use crate::random;
use crate::real::wide;
use crate::strips::Strips;

/// Amplitudes that are read at a time.
const PART: usize = 1 << 18;

/// The state of qubits: 2^qubits amplitudes, bit k of whose numbers is qubit k.
#[derive(Debug, Clone)]
pub struct State {
    engine: Engine,
    strips: Strips,
    precision: Precision,
}

impl State {
    pub(crate) fn new(engine: Engine, strips: Strips, precision: Precision) -> Self {
        Self { engine, strips, precision }
    }

    pub(crate) fn in_strips(&self) -> &Strips {
        &self.strips
    }

    /// Returns the number of qubits.
    #[must_use]
    pub fn qubits(&self) -> usize {
        self.strips.split().qubits
    }

    /// Returns the precision of the amplitudes.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the amplitudes on the device, in order: a tensor [1, 2^qubits] of complex64 or complex128, the state's own memory. A state that is larger than a
    /// binding of the device has several tensors of equal size, and one in a file has none.
    #[must_use]
    pub fn strips(&self) -> &[Tensor] {
        self.strips.tensors()
    }

    /// Reads the amplitudes.
    ///
    /// # Errors
    /// Those of the device; [`Error::Limit`] where memory does not hold them.
    pub fn to_vec(&self) -> Result<Vec<Complex<f64>>> {
        let mut all = self.room()?;
        self.each(|_, amplitude| {
            all.push(amplitude);
            true
        })?;
        Ok(all)
    }

    /// Reads the probabilities of all basis states.
    ///
    /// # Errors
    /// As [`State::to_vec`].
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        let mut all = self.room()?;
        self.each(|_, amplitude| {
            all.push(amplitude.norm_sqr());
            true
        })?;
        Ok(all)
    }

    /// Memory for as many values as there are amplitudes.
    fn room<V>(&self) -> Result<Vec<V>> {
        let mut all = Vec::new();
        all.try_reserve_exact(1 << self.qubits()).map_err(|_| {
            Error::limit(
                "the state",
                format!(
                    "memory does not hold {} for the values of {} qubits (sample it, or read it strip by strip)",
                    crate::bytes((size_of::<V>() as u64) << self.qubits()),
                    self.qubits()
                ),
            )
        })?;
        Ok(all)
    }

    /// Calls a function with each amplitude in order, until it returns false.
    fn each(&self, visit: impl FnMut(usize, Complex<f64>) -> bool) -> Result<()> {
        by_precision!(self.precision, T => each::<T>(&self.strips, visit))
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
        observable.check(self.qubits())?;
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
        let state = &self.strips;
        by_precision!(self.precision, T => Strips::inner::<T>(&self.engine, state, state, flip, signs))
    }
}

fn each<T: Run>(strips: &Strips, mut visit: impl FnMut(usize, Complex<f64>) -> bool) -> Result<()> {
    let split = strips.split();
    let mut part = vec![Complex::new(T::ZERO, T::ZERO); PART.min(1 << split.strip)];
    for first in (0..1_usize << split.qubits).step_by(part.len()) {
        strips.read::<T>(first, &mut part)?;
        for (at, amplitude) in part.iter().enumerate() {
            if !visit(first + at, wide(*amplitude)) {
                return Ok(());
            }
        }
    }
    Ok(())
}
