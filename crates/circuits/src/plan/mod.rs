//! Circuits as passes over a state vector: gates in a row become one matrix or one diagonal, and passes share what they load. `Compiled::new` plans once;
//! parameters fill the tables of each run (`Recipe`). A plan has places and shapes but no number of a gate. Exchanges of qubits outside of branches only
//! rename places, so they cost nothing.

mod fuse;
mod sweep;
mod tables;

pub(crate) use sweep::{Sweep, deposit, schedule};
pub(crate) use tables::{Recipe, passes};

use cantus::{Error, Result};

use crate::circuit::{Circuit, Gate, Instruction, Span};
use crate::gate::{self, Kind, MOST_TARGETS};

/// The most qubits whose places in a state vector are one bit each of a mask.
pub(crate) const MOST_PLACES: usize = 48;

/// The factor of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A matrix over its targets, by rows.
    Dense,
    /// The diagonal of one.
    Diagonal,
}

/// One multiplication of a state vector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Op {
    pub form: Form,
    /// The places of its qubits, ascending: bit k of a table's index is the k-th one.
    pub targets: Vec<u8>,
    /// The places that have to be 1, and those that have to be 0. Other amplitudes stay as they are.
    pub ones: u64,
    pub zeros: u64,
    /// Where its table begins among the plan's.
    pub table: usize,
}

impl Op {
    /// The places of its targets, as a mask.
    pub fn space(&self) -> u64 {
        self.targets.iter().map(|place| 1 << place).sum()
    }

    /// The places that it mixes.
    pub fn mixes(&self) -> u64 {
        if self.form == Form::Dense { self.space() } else { 0 }
    }

    /// All places that it depends on.
    pub fn touches(&self) -> u64 {
        self.space() | self.ones | self.zeros
    }

    /// The number of its table's entries.
    pub fn entries(&self) -> usize {
        match self.form {
            Form::Dense => 1 << (2 * self.targets.len()),
            Form::Diagonal => 1 << self.targets.len(),
        }
    }
}

/// Passes over a state vector of 2^qubits amplitudes. No number of a gate is in it: those are in tables beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    pub qubits: usize,
    pub ops: Vec<Op>,
    /// The order in which the processor runs them, tile by tile.
    pub sweeps: Vec<Sweep>,
    /// The entries of all tables.
    pub entries: usize,
}

impl Plan {
    pub fn of(qubits: usize, ops: Vec<Op>) -> Self {
        let entries = ops.last().map_or(0, |op| op.table + op.entries());
        let sweeps = sweep::tiles(qubits, &ops);
        Self { qubits, ops, sweeps, entries }
    }
}

/// The cost of a pass, in passes that read and write each amplitude once. The cheapest sum decides what is fused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// A matrix, by its number of qubits.
    dense: [f64; MOST_TARGETS + 1],
    diagonal: f64,
    /// The most qubits of a diagonal.
    widest: usize,
}

impl Costs {
    /// The processor keeps tiles in its cache, so arithmetic costs more than bytes.
    pub const PROCESSOR: Self = Self { dense: [0.6, 1.0, 1.5, 2.6, 4.8, 9.0], diagonal: 0.9, widest: 8 };
    /// A GPU goes through memory for each pass, which costs more than the arithmetic of small matrices.
    pub const MEMORY: Self = Self { dense: [1.0, 1.0, 1.0, 1.1, 1.4, 2.4], diagonal: 1.0, widest: 10 };

    fn dense(&self, targets: usize, controls: u32) -> f64 {
        self.dense.get(targets).map_or(f64::INFINITY, |cost| cost * 0.5_f64.powi(controls.min(3) as i32))
    }

    fn diagonal(&self, targets: usize, controls: u32) -> f64 {
        if targets > self.widest { f64::INFINITY } else { self.diagonal * 0.5_f64.powi(controls.min(3) as i32) }
    }
}

/// A gate at places of the state vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elementary {
    pub gate: Gate,
    places: [u8; MOST_TARGETS],
    count: u8,
    pub ones: u64,
    pub zeros: u64,
    pub diagonal: bool,
}

impl Elementary {
    /// The places of its targets, in the order of its matrix.
    pub fn targets(&self) -> &[u8] {
        self.places.get(..usize::from(self.count)).unwrap_or(&[])
    }

    fn space(&self) -> u64 {
        self.targets().iter().map(|place| 1 << place).sum()
    }

    /// A gate at places, for a matrix that replaces its own.
    pub fn at(targets: &[u8]) -> Self {
        let none = Span { start: 0, len: 0 };
        let gate =
            Gate { kind: Kind::Identity, matrix: 0, inverse: false, controls: 0, open: 0, qubits: none, angles: none };
        let mut places = [0; MOST_TARGETS];
        places.iter_mut().zip(targets).for_each(|(to, place)| *to = *place);
        let count = targets.len().min(MOST_TARGETS) as u8;
        Self { gate, places, count, ones: 0, zeros: 0, diagonal: false }
    }

    /// The gate of a circuit with its qubits at places: `layout` by qubit.
    pub fn of(circuit: &Circuit, gate: &Gate, layout: &[u8]) -> Self {
        let qubits = &circuit.operands[gate.qubits.range()];
        let (controls, targets) = qubits.split_at(gate.controls as usize);
        let (mut ones, mut zeros) = (0, 0);
        for (at, qubit) in controls.iter().enumerate() {
            let mask = 1_u64 << layout[*qubit as usize];
            if gate.open >> at & 1 == 1 { zeros |= mask } else { ones |= mask }
        }
        let mut places = [0; MOST_TARGETS];
        for (place, qubit) in places.iter_mut().zip(targets) {
            *place = layout[*qubit as usize];
        }
        let diagonal = match gate.kind {
            Kind::Matrix => gate::is_diagonal(&circuit.matrices[gate.matrix as usize]),
            kind => kind.is_diagonal(),
        };
        Self { gate: *gate, places, count: targets.len().min(MOST_TARGETS) as u8, ones, zeros, diagonal }
    }
}

/// Which place of the state vector each qubit has at the beginning so that each one is at its own at the end. Exchanges of qubits outside of branches cost
/// nothing then: all qubits begin as 0, wherever they are.
pub(crate) fn first_layout(circuit: &Circuit) -> Vec<u8> {
    let mut layout: Vec<u8> = (0..circuit.qubits().min(MOST_PLACES)).map(|place| place as u8).collect();
    for at in free_swaps(circuit).into_iter().rev() {
        if let Some(Instruction::Gate(gate)) = circuit.instructions.get(at)
            && let [a, b] = circuit.operands[gate.qubits.range()]
        {
            layout.swap(a as usize, b as usize);
        }
    }
    layout
}

/// The exchanges of two qubits outside of branches, in order. One in a branch is a gate like others.
pub(crate) fn free_swaps(circuit: &Circuit) -> Vec<usize> {
    let mut free = Vec::new();
    let mut until = 0;
    for (at, step) in circuit.instructions.iter().enumerate() {
        match *step {
            Instruction::Branch { otherwise, .. } => until = until.max(otherwise as usize),
            Instruction::Jump { to } => until = until.max(to as usize),
            Instruction::Gate(gate) if at >= until && gate.kind == Kind::Swap && gate.controls == 0 => free.push(at),
            _ => {}
        }
    }
    free
}

/// The plan of gates, and how its tables follow from the circuit's parameters.
pub(crate) fn plan(qubits: usize, gates: Vec<Elementary>, costs: &Costs) -> (Plan, Recipe) {
    let (ops, members) = fuse::fuse(&gates, costs);
    (Plan::of(qubits, ops), Recipe { gates, members })
}

/// Refuses more qubits than a state vector of `most` bytes can have, with what they would take.
pub(crate) fn check_qubits(circuit: &Circuit, amplitude: u64, most: u64) -> Result<()> {
    let qubits = circuit.qubits();
    let bytes = u32::try_from(qubits).ok().and_then(|qubits| amplitude.checked_shl(qubits)).filter(|_| qubits < 59);
    if qubits <= MOST_PLACES && bytes.is_some_and(|bytes| bytes <= most) {
        return Ok(());
    }
    let takes = match bytes {
        Some(bytes) => crate::bytes(bytes),
        None => format!("2^{} bytes", qubits as u64 + u64::from(amplitude.ilog2())),
    };
    Err(Error::limit(
        "the circuit",
        format!(
            "the amplitudes of {qubits} qubits take {takes}, and a state vector may have {} here (use fewer qubits, or stream them through a file)",
            crate::bytes(most)
        ),
    ))
}
