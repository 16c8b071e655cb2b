//! Circuits: flat tables of instructions, qubits, angles and matrices, with bounds, so that a hostile file costs bounded memory. `builder` fills them, for
//! the OpenQASM reader (`qasm`) too.

use std::fmt::Display;
use std::ops::Range;

use cantus::{Error, Result};

use crate::angle::{Node, Parameter};
use crate::condition::Test;
use crate::gate::{C, Kind};

/// The most qubits of a circuit. Running one needs memory for 2^qubits amplitudes.
pub const MOST_QUBITS: usize = 1 << 12;
/// The most classical bits of a circuit.
pub const MOST_BITS: usize = 1 << 16;
/// The most instructions of a circuit.
pub const MOST_INSTRUCTIONS: usize = 1 << 22;

/// A range of one of the circuit's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    pub fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// A gate on qubits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gate {
    pub kind: Kind,
    /// The place of its matrix, for [`Kind::Matrix`].
    pub matrix: u32,
    /// True for the conjugate transpose.
    pub inverse: bool,
    /// Of its qubits, the first ones are controls.
    pub controls: u32,
    /// Bit k is set if control k acts where its qubit is 0.
    pub open: u64,
    pub qubits: Span,
    /// The spans of nodes of its angles.
    pub angles: Span,
}

/// A step of a circuit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Instruction {
    Gate(Gate),
    Measure {
        qubit: u32,
        bit: u32,
    },
    Reset {
        qubit: u32,
    },
    Barrier {
        qubits: Span,
    },
    /// Goes on at `otherwise` unless the condition, a span of tests, holds.
    Branch {
        condition: Span,
        otherwise: u32,
    },
    Jump {
        to: u32,
    },
}

/// A register's name and its part of the circuit's qubits or bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// The name.
    pub name: String,
    /// The qubits or bits that it has.
    pub range: Range<usize>,
}

/// A quantum circuit.
///
/// Qubit 0 is the lowest bit of a basis state's number, as in Qiskit. Qubits begin as 0, classical bits too.
///
/// ```
/// use cantus_circuits::Circuit;
/// let mut ghz = Circuit::new(3)?;
/// ghz.h(0)?.cx(0, 1)?.cx(1, 2)?.measure_all()?;
/// let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let counts = cantus_circuits::run(&engine, &ghz, &[], 1000, 7)?.counts();
/// assert_eq!(counts.iter().map(|(bits, _)| bits.as_str()).collect::<Vec<_>>(), ["000", "111"]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Circuit {
    qubits: usize,
    bits: usize,
    quantum: Vec<Register>,
    classical: Vec<Register>,
    parameters: Vec<String>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) operands: Vec<u32>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) angles: Vec<Span>,
    pub(crate) tests: Vec<Test>,
    pub(crate) matrices: Vec<Vec<C>>,
}

pub(crate) fn fault(reason: impl Display) -> Error {
    Error::invalid("the circuit", reason.to_string())
}

pub(crate) fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Circuit {
    /// Creates a circuit of qubits, which its register `q` has, without classical bits.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than [`MOST_QUBITS`].
    pub fn new(qubits: usize) -> Result<Self> {
        let mut circuit = Self::default();
        if qubits > 0 {
            circuit.qubit_register("q", qubits)?;
        }
        Ok(circuit)
    }

    /// Adds qubits, and returns their numbers.
    ///
    /// # Errors
    /// [`Error::Limit`] if there would be more than [`MOST_QUBITS`].
    pub fn qubit_register(&mut self, name: &str, count: usize) -> Result<Range<usize>> {
        let range = added(self.qubits, count, MOST_QUBITS, "qubits")?;
        self.qubits = range.end;
        self.quantum.push(Register { name: name.to_owned(), range: range.clone() });
        Ok(range)
    }

    /// Adds classical bits, and returns their numbers.
    ///
    /// # Errors
    /// [`Error::Limit`] if there would be more than [`MOST_BITS`].
    pub fn bit_register(&mut self, name: &str, count: usize) -> Result<Range<usize>> {
        let range = added(self.bits, count, MOST_BITS, "classical bits")?;
        self.bits = range.end;
        self.classical.push(Register { name: name.to_owned(), range: range.clone() });
        Ok(range)
    }

    /// Adds a parameter: a number that is given when the circuit runs.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a name that there is already.
    pub fn parameter(&mut self, name: &str) -> Result<Parameter> {
        if self.parameters.iter().any(|known| known == name) {
            return Err(fault(format!("there is a parameter {name} already")));
        }
        self.parameters.push(name.to_owned());
        Ok(Parameter(short(self.parameters.len() - 1)))
    }

    /// Returns the number of qubits.
    #[must_use]
    pub fn qubits(&self) -> usize {
        self.qubits
    }

    /// Returns the number of classical bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Returns the registers of qubits.
    #[must_use]
    pub fn qubit_registers(&self) -> &[Register] {
        &self.quantum
    }

    /// Returns the registers of classical bits.
    #[must_use]
    pub fn bit_registers(&self) -> &[Register] {
        &self.classical
    }

    /// Returns the names of the parameters, in order.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Returns the parameters themselves, in order.
    #[must_use]
    pub fn handles(&self) -> Vec<Parameter> {
        (0..short(self.parameters.len())).map(Parameter).collect()
    }

    /// Returns the number of gates.
    #[must_use]
    pub fn gates(&self) -> usize {
        self.instructions.iter().filter(|step| matches!(step, Instruction::Gate(_))).count()
    }

    /// Returns the number of instructions: gates, measurements, resets, barriers and branches.
    #[must_use]
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Returns whether there is no instruction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Returns whether gates depend on measurements, qubits are reset, or a qubit is used after its measurement. Such a circuit has no one final state.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        let mut measured = vec![false; self.qubits];
        self.instructions.iter().any(|step| match *step {
            Instruction::Gate(gate) => self.operands[gate.qubits.range()].iter().any(|&qubit| measured[qubit as usize]),
            Instruction::Measure { qubit, .. } => std::mem::replace(&mut measured[qubit as usize], true),
            Instruction::Barrier { .. } => false,
            Instruction::Reset { .. } | Instruction::Branch { .. } | Instruction::Jump { .. } => true,
        })
    }

    /// The values of a gate's angles.
    pub(crate) fn angles_of(&self, gate: &Gate, parameters: &[f64]) -> Vec<f64> {
        let value = |span: &Span| crate::angle::value(&self.nodes[span.range()], parameters);
        self.angles[gate.angles.range()].iter().map(value).collect()
    }

    /// Refuses a set of parameters that does not fit.
    pub(crate) fn check_parameters(&self, values: &[f64]) -> Result<()> {
        let what = || "the parameters".to_owned();
        if values.len() != self.parameters.len() {
            let names = self.parameters.join(", ");
            return Err(Error::invalid(
                what(),
                format!("the circuit has {} ({names}), and {} values are given", self.parameters.len(), values.len()),
            ));
        }
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Error::invalid(what(), "one is not a finite number"));
        }
        Ok(())
    }
}

fn added(have: usize, count: usize, most: usize, what: &str) -> Result<Range<usize>> {
    match have.checked_add(count) {
        Some(end) if end <= most => Ok(have..end),
        _ => Err(Error::limit("the circuit", format!("{have} {what} and {count} more are above the limit of {most}"))),
    }
}
