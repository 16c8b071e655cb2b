//! Derivatives of expectation values by the adjoint method (Jones and Gacon, 2020, arXiv:2009.02823): one run forward and one back give the
//! derivative by every parameter, where finite differences take two runs for each.

use std::sync::Arc;

use cantus::{Engine, Error, Result};
use num_complex::Complex;

use crate::angle::{self, Node};
use crate::apply;
use crate::circuit::Circuit;
use crate::compiled::{costs, whole};
use crate::gate::{self, Matrix, ONE, ZERO};
use crate::native::Run;
use crate::observable::Observable;
use crate::plan::{self, Elementary, Plan};
use crate::real::Real;
use crate::strips::Strips;

/// The most controls of a gate whose angle has a parameter.
const MOST_CONTROLS: u32 = 12;

/// A plan on one state, which is replaced.
fn run<T: Run>(engine: &Engine, plan: Plan, numbers: &[Complex<T>], state: &mut Strips) -> Result<()> {
    if plan.ops.is_empty() {
        return Ok(());
    }
    let tables = apply::tables::<T>(engine, 1, plan.entries)?;
    <T as Real>::write(&tables, numbers)?;
    *state = Strips::run::<T>(engine, state.split(), &Arc::new(plan), &tables, Some(state))?;
    Ok(())
}

/// Runs gates on a state, and forgets them.
fn undo<T: Run>(
    engine: &Engine,
    circuit: &Circuit,
    parameters: &[f64],
    gates: &mut Vec<Elementary>,
    state: &mut Strips,
) -> Result<()> {
    let (plan, recipe) = plan::plan(circuit.qubits(), std::mem::take(gates), &costs(engine));
    let mut numbers = Vec::with_capacity(plan.entries);
    recipe.fill::<T>(circuit, &plan, parameters, &mut numbers);
    run(engine, plan, &numbers, state)
}

/// An angle's place among a gate's, and its derivative by each parameter in it.
type Slopes = Vec<(usize, Vec<(usize, f64)>)>;

fn slopes(circuit: &Circuit, gate: &Elementary, parameters: &[f64]) -> Slopes {
    let spans = &circuit.angles[gate.gate.angles.range()];
    let of = |(place, span): (usize, &crate::circuit::Span)| {
        let nodes = &circuit.nodes[span.range()];
        let mut named: Vec<u32> = nodes
            .iter()
            .filter_map(|node| if let Node::Parameter(index) = node { Some(*index) } else { None })
            .collect();
        named.sort_unstable();
        named.dedup();
        let each = |index: u32| (index as usize, angle::dual(nodes, parameters, Some(index)).1);
        (place, named.into_iter().map(each).collect::<Vec<_>>())
    };
    spans.iter().enumerate().map(of).filter(|(_, slopes)| !slopes.is_empty()).collect()
}

/// The derivative of a gate by one of its angles, as passes: what its controls exclude becomes 0.
fn derivative(
    circuit: &Circuit,
    gate: &Elementary,
    parameters: &[f64],
    by: usize,
) -> Result<Vec<(Elementary, Matrix)>> {
    let matrix = gate.gate.kind.derivative(&circuit.angles_of(&gate.gate, parameters), by);
    let matrix = if gate.gate.inverse { gate::adjoint(&matrix) } else { matrix };
    let mut passes = vec![(*gate, matrix)];
    let controls = gate.ones | gate.zeros;
    if controls.count_ones() > MOST_CONTROLS {
        return Err(Error::limit(
            "the gradient",
            format!("a gate with a parameter has more than {MOST_CONTROLS} controls"),
        ));
    }
    for place in (0..64_u8).filter(|place| controls >> place & 1 == 1) {
        let keeps_one = gate.ones >> place & 1 == 1;
        let (low, high) = if keeps_one { (ZERO, ONE) } else { (ONE, ZERO) };
        passes.push((Elementary::at(&[place]), vec![low, ZERO, ZERO, high]));
    }
    Ok(passes)
}

/// The expectation value in a final state, and its derivative by each parameter.
pub(crate) fn gradient<T: Run>(
    engine: &Engine,
    circuit: &Circuit,
    state: &Strips,
    parameters: &[f64],
    observable: &Observable,
) -> Result<(f64, Vec<f64>)> {
    let qubits = circuit.qubits();
    let gates = whole(circuit);
    let mut forward = state.clone();
    let mut backward = state.accumulate::<T>(engine, observable.terms())?;
    let value = Strips::inner::<T>(engine, state, &backward, 0, 0)?.re;
    let mut by_parameter = vec![0.0; parameters.len()];
    // What is to be undone in either state before it is looked at.
    let (mut forward_gates, mut backward_gates) = (Vec::new(), Vec::new());
    for gate in gates.into_iter().rev() {
        let slopes = slopes(circuit, &gate, parameters);
        let mut inverse = gate;
        inverse.gate.inverse = !gate.gate.inverse;
        forward_gates.push(inverse);
        if !slopes.is_empty() {
            undo::<T>(engine, circuit, parameters, &mut forward_gates, &mut forward)?;
            undo::<T>(engine, circuit, parameters, &mut backward_gates, &mut backward)?;
            for (place, slopes) in slopes {
                let (plan, numbers) = plan::passes::<T>(qubits, &derivative(circuit, &gate, parameters, place)?);
                let mut turned = forward.clone();
                run(engine, plan, &numbers, &mut turned)?;
                let by_angle = 2.0 * Strips::inner::<T>(engine, &backward, &turned, 0, 0)?.re;
                for (index, slope) in slopes {
                    if let Some(sum) = by_parameter.get_mut(index) {
                        *sum += slope * by_angle;
                    }
                }
            }
        }
        backward_gates.push(inverse);
    }
    Ok((value, by_parameter))
}
