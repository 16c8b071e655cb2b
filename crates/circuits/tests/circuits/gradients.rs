//! Gradients beside finite differences of the oracle.

use cantus_circuits::{Angle, Circuit, Compiled, Function, Observable, Precision};

use crate::devices;
use crate::oracle::{self, Gate};

/// A parameter, if any, its factor, and an offset.
type Affine = (Option<usize>, f64, f64);

/// A circuit with parameters in all kinds of gates, and the same for numbers.
fn ansatz(circuit: Option<&mut Circuit>, values: &[f64; 4]) -> Vec<Gate> {
    // Angles as functions of the parameters.
    let steps: Vec<(&'static str, Vec<Affine>, Vec<usize>)> = vec![
        ("ry", vec![(Some(0), 1.0, 0.2)], vec![0]),
        ("rx", vec![(Some(1), -2.0, 0.0)], vec![1]),
        ("h", vec![], vec![2]),
        ("cx", vec![], vec![0, 2]),
        ("crx", vec![(Some(2), 1.0, 0.0)], vec![2, 1]),
        ("swap", vec![], vec![0, 3]),
        ("rzz", vec![(Some(0), 0.5, 0.0)], vec![1, 3]),
        ("u", vec![(Some(3), 1.0, 0.0), (Some(1), 1.0, 1.0), (None, 0.0, 0.3)], vec![3]),
        ("cu", vec![(Some(1), 1.0, 0.0), (None, 0.0, 0.4), (Some(3), 1.0, 0.0), (Some(2), 2.0, 0.0)], vec![3, 0]),
        ("cp", vec![(Some(2), 1.0, 0.1)], vec![1, 2]),
        ("r", vec![(Some(0), 1.0, 0.0), (Some(3), -1.0, 0.5)], vec![2]),
        ("rxx", vec![(Some(1), 1.0, 0.0)], vec![0, 1]),
        ("ccx", vec![], vec![0, 1, 2]),
        ("crz", vec![(Some(3), 1.5, 0.0)], vec![0, 2]),
        ("ry", vec![(Some(2), 1.0, 0.0)], vec![1]),
    ];
    if let Some(circuit) = circuit {
        let parameters: Vec<_> =
            ["a", "b", "c", "d"].iter().map(|name| circuit.parameter(name).expect("a name")).collect();
        for (name, angles, qubits) in &steps {
            let angle = |(parameter, factor, offset): &Affine| match parameter {
                // The sine of the first one, so that expressions take part.
                Some(0) => Angle::from(parameters[0]).apply(Function::Sin) * *factor + *offset,
                Some(at) => Angle::from(parameters[*at]) * *factor + *offset,
                None => Angle::from(*offset),
            };
            let angles: Vec<Angle> = angles.iter().map(angle).collect();
            circuit.gate(name, &angles, qubits).expect("a gate");
        }
    }
    let number = |(parameter, factor, offset): &Affine| match parameter {
        Some(0) => values[0].sin() * factor + offset,
        Some(at) => values[*at] * factor + offset,
        None => *offset,
    };
    steps
        .iter()
        .map(|(name, angles, qubits)| Gate {
            name,
            angles: angles.iter().map(number).collect(),
            qubits: qubits.clone(),
        })
        .collect()
}

#[test]
fn gradients_are_those_of_finite_differences_on_every_device() {
    let terms = [("XYZI", 0.7), ("ZZII", -1.0), ("IIIZ", 0.3), ("YXIY", 1.2)];
    let observable = Observable::new(&terms).expect("an observable");
    let values = [0.4, -0.9, 1.7, 0.25];
    let value = |values: &[f64; 4]| -> f64 {
        let state = oracle::state(4, &ansatz(None, values));
        terms.iter().map(|(letters, factor)| factor * oracle::expectation(&state, letters)).sum()
    };
    let expected: Vec<f64> = (0..4)
        .map(|at| {
            let moved = |step: f64| {
                let mut moved = values;
                moved[at] += step;
                value(&moved)
            };
            // The fourth-order difference.
            (8.0 * (moved(1e-3) - moved(-1e-3)) - (moved(2e-3) - moved(-2e-3))) / 12e-3
        })
        .collect();
    assert!(expected.iter().all(|slope| slope.abs() > 1e-2), "all parameters matter: {expected:?}");
    for (name, engine) in devices::all() {
        for (precision, within) in [(Precision::Single, 2e-5), (Precision::Double, 1e-9)] {
            if precision == Precision::Double && !devices::has_double(&engine) {
                continue;
            }
            let mut circuit = Circuit::new(4).expect("qubits");
            ansatz(Some(&mut circuit), &values);
            let compiled = Compiled::new(&engine, &circuit, precision).expect("a plan");
            let (found, slopes) = compiled.gradient(&values, &observable).expect("a gradient");
            assert!((found - value(&values)).abs() < within, "{name}: {found}");
            for (slope, expected) in slopes.iter().zip(&expected) {
                assert!((slope - expected).abs() < within, "{name}: {slopes:?} and {expected:?}");
            }
        }
    }
}
