//! Observables: sums of Pauli strings.

use cantus::{Error, Result};
use num_complex::Complex;

use crate::gate::{C, I, ONE};

/// The most terms of an observable.
pub const MOST_TERMS: usize = 1 << 16;

/// A term as masks of basis states: the string takes |j⟩ to factor · (-1)^(bits of j in `signs`) |j ^ flip⟩.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Factors {
    pub flip: usize,
    pub signs: usize,
    pub factor: C,
}

/// A sum of Pauli strings with real coefficients.
///
/// ```
/// use cantus_circuits::Observable;
/// // Qubit 0 is the last letter, as in Qiskit.
/// let energy = Observable::new(&[("ZZ", 1.0), ("IX", -0.5), ("XI", -0.5)])?;
/// assert_eq!(energy.qubits(), 2);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Observable {
    qubits: usize,
    terms: Vec<Factors>,
}

fn fault(reason: String) -> Error {
    Error::invalid("the observable", reason)
}

impl Observable {
    /// Creates the sum of strings of the letters I, X, Y and Z times numbers. The last letter is qubit 0.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] without terms, with more than [`MOST_TERMS`], for strings of unequal length, other letters, and numbers that are not
    /// finite.
    pub fn new(terms: &[(&str, f64)]) -> Result<Self> {
        let Some((first, _)) = terms.first() else { return Err(fault("it has no terms".to_owned())) };
        if terms.len() > MOST_TERMS {
            return Err(fault(format!("it has {} terms, and at most {MOST_TERMS} are taken", terms.len())));
        }
        let qubits = first.chars().count();
        if qubits > 62 {
            return Err(fault(format!("a string has {qubits} letters, and at most 62 are taken")));
        }
        let term = |(letters, factor): &(&str, f64)| Self::term(qubits, letters, *factor);
        Ok(Self { qubits, terms: terms.iter().map(term).collect::<Result<_>>()? })
    }

    fn term(qubits: usize, letters: &str, factor: f64) -> Result<Factors> {
        if letters.chars().count() != qubits {
            return Err(fault(format!("the string {letters} does not have {qubits} letters as the first one has")));
        }
        if !factor.is_finite() {
            return Err(fault(format!("the factor of {letters} is not finite")));
        }
        let mut term = Factors { flip: 0, signs: 0, factor: ONE * factor };
        for (qubit, letter) in letters.chars().rev().enumerate() {
            let (flips, signs) = match letter {
                'I' => (0, 0),
                'X' => (1, 0),
                'Y' => (1, 1),
                'Z' => (0, 1),
                _ => return Err(fault(format!("{letter} in {letters} is not I, X, Y or Z"))),
            };
            term.flip |= flips << qubit;
            term.signs |= signs << qubit;
            // Y|0⟩ = i|1⟩ and Y|1⟩ = -i|0⟩.
            if letter == 'Y' {
                term.factor *= I;
            }
        }
        Ok(term)
    }

    /// Returns the number of qubits.
    #[must_use]
    pub fn qubits(&self) -> usize {
        self.qubits
    }

    pub(crate) fn terms(&self) -> &[Factors] {
        &self.terms
    }

    pub(crate) fn check(&self, qubits: usize) -> Result<()> {
        match self.qubits == qubits {
            true => Ok(()),
            false => {
                Err(fault(format!("its strings have {} letters, and the circuit has {qubits} qubits", self.qubits)))
            }
        }
    }
}

/// The value of a term, of the sum that goes with its masks.
pub(crate) fn value(term: &Factors, sum: Complex<f64>) -> f64 {
    (term.factor * sum).re
}
