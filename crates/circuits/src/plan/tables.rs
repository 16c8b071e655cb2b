//! The numbers of a plan: products of gates' matrices for given parameters.

use num_complex::Complex;

use super::{Elementary, Form, Op, Plan};
use crate::circuit::Circuit;
use crate::gate::{self, C, Kind, Matrix, ONE, ZERO};
use crate::real::Real;

/// Which gates make the table of each pass.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub gates: Vec<Elementary>,
    pub members: Vec<Vec<usize>>,
}

/// The matrix of a gate over its targets.
fn matrix(circuit: &Circuit, gate: &Elementary, parameters: &[f64]) -> Matrix {
    let matrix = match gate.gate.kind {
        Kind::Matrix => circuit.matrices[gate.gate.matrix as usize].clone(),
        kind => kind.matrix(&circuit.angles_of(&gate.gate, parameters)),
    };
    if gate.gate.inverse { gate::adjoint(&matrix) } else { matrix }
}

impl Recipe {
    /// The tables of a plan, in a row.
    pub fn fill<T: Real>(&self, circuit: &Circuit, plan: &Plan, parameters: &[f64], into: &mut Vec<Complex<T>>) {
        for (op, members) in plan.ops.iter().zip(&self.members) {
            let matrices = members.iter().map(|&at| (&self.gates[at], matrix(circuit, &self.gates[at], parameters)));
            let table = match op.form {
                Form::Dense => dense(op, matrices),
                Form::Diagonal => diagonal(op, matrices),
            };
            into.extend(table.iter().map(|entry| Complex::new(T::from_f64(entry.re), T::from_f64(entry.im))));
        }
    }
}

/// Bits of an op's index: the gate's targets, in its order, and its controls that the op does not have.
struct Local {
    targets: Vec<usize>,
    ones: usize,
    zeros: usize,
}

impl Local {
    fn of(op: &Op, gate: &Elementary) -> Self {
        let bit = |place: u8| op.targets.iter().position(|known| *known == place).unwrap_or(0);
        let mask =
            |mask: u64| (0..op.targets.len()).filter(|at| mask >> op.targets[*at] & 1 == 1).map(|at| 1 << at).sum();
        Self {
            targets: gate.targets().iter().map(|place| bit(*place)).collect(),
            ones: mask(gate.ones),
            zeros: mask(gate.zeros),
        }
    }

    fn acts(&self, index: usize) -> bool {
        index & self.ones == self.ones && index & self.zeros == 0
    }

    /// The gate's own index, of the op's.
    fn inner(&self, index: usize) -> usize {
        self.targets.iter().enumerate().map(|(at, bit)| (index >> bit & 1) << at).sum()
    }

    /// The op's index with the gate's targets set to an index of its own.
    fn outer(&self, index: usize, inner: usize) -> usize {
        let set = |index: usize, (at, bit): (usize, &usize)| index & !(1 << bit) | (inner >> at & 1) << bit;
        self.targets.iter().enumerate().fold(index, set)
    }
}

fn dense<'a>(op: &Op, gates: impl Iterator<Item = (&'a Elementary, Matrix)>) -> Matrix {
    let side = 1_usize << op.targets.len();
    let mut whole: Matrix = (0..side * side).map(|at| if at / side == at % side { ONE } else { ZERO }).collect();
    for (gate, matrix) in gates {
        let local = Local::of(op, gate);
        let own = 1_usize << local.targets.len();
        let mut rows = vec![ZERO; own * side];
        for first in (0..side).filter(|row| local.acts(*row) && local.inner(*row) == 0) {
            rows.fill(ZERO);
            for (row, into) in rows.chunks_exact_mut(side).enumerate() {
                for column in 0..own {
                    let factor = matrix[row * own + column];
                    let from = side * local.outer(first, column);
                    if factor != ZERO {
                        into.iter_mut().zip(&whole[from..from + side]).for_each(|(to, from)| *to += factor * from);
                    }
                }
            }
            for (row, from) in rows.chunks_exact(side).enumerate() {
                let to = side * local.outer(first, row);
                whole[to..to + side].copy_from_slice(from);
            }
        }
    }
    whole
}

fn diagonal<'a>(op: &Op, gates: impl Iterator<Item = (&'a Elementary, Matrix)>) -> Vec<C> {
    let mut whole = vec![ONE; 1 << op.targets.len()];
    for (gate, matrix) in gates {
        let local = Local::of(op, gate);
        let own = 1_usize << local.targets.len();
        for (index, entry) in whole.iter_mut().enumerate() {
            if local.acts(index) {
                *entry *= matrix[local.inner(index) * (own + 1)];
            }
        }
    }
    whole
}

/// A plan of matrices at the places of gates, a pass each, and its tables. A matrix may be any: it replaces the gate's own.
pub(crate) fn passes<T: Real>(qubits: usize, items: &[(Elementary, Matrix)]) -> (Plan, Vec<Complex<T>>) {
    let (mut ops, mut numbers) = (Vec::new(), Vec::new());
    for (gate, matrix) in items {
        let form = if gate::is_diagonal(matrix) { Form::Diagonal } else { Form::Dense };
        let mut targets = gate.targets().to_vec();
        targets.sort_unstable();
        let op = Op { form, targets, ones: gate.ones, zeros: gate.zeros, table: numbers.len() };
        let one = std::iter::once((gate, matrix.clone()));
        let table = match form {
            Form::Dense => dense(&op, one),
            Form::Diagonal => diagonal(&op, one),
        };
        numbers.extend(table.iter().map(|entry| Complex::new(T::from_f64(entry.re), T::from_f64(entry.im))));
        ops.push(op);
    }
    (Plan::of(qubits, ops), numbers)
}
