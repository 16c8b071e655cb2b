//! Amplitudes and expectation values beside the oracle's, on every device.

use cantus::Engine;
use cantus_circuits::{Angle, Circuit, Compiled, Observable, Precision};

use crate::oracle::{self, C, Gate, Numbers};
use crate::{cpu, devices};

pub fn built(qubits: usize, gates: &[Gate]) -> Circuit {
    let mut circuit = Circuit::new(qubits).expect("qubits");
    for gate in gates {
        let angles: Vec<Angle> = gate.angles.iter().map(|angle| Angle::from(*angle)).collect();
        circuit.gate(gate.name, &angles, &gate.qubits).expect("a gate");
    }
    circuit
}

pub fn amplitudes(engine: &Engine, circuit: &Circuit, precision: Precision) -> Vec<C> {
    let compiled = Compiled::new(engine, circuit, precision).expect("a plan");
    compiled.state(&[]).expect("a state").to_vec().expect("amplitudes")
}

pub fn worst(a: &[C], b: &[C]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).norm())
        .fold(0.0, |worst, one| if one.is_nan() { f64::INFINITY } else { worst.max(one) })
}

#[test]
fn random_circuits_are_as_the_oracle_has_them_on_every_device() {
    let engines = devices::all();
    let mut numbers = Numbers(0x1234_5678);
    let (mut ran, mut doubles) = (0, vec![0; engines.len()]);
    for case in 0..1000 {
        let qubits = 2 + case % 11;
        let count = 10 + numbers.below(60);
        let gates = oracle::random(&mut numbers, qubits, count);
        // Every case on the processor; the other engines take turns, as their compilers and drivers are slow.
        let mine: Vec<_> = engines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at == 0 && devices::is_mine(case, 2) || *at > 0 && devices::is_mine(case / 11 + at, 20))
            .collect();
        if mine.is_empty() {
            continue;
        }
        let expected = oracle::state(qubits, &gates);
        let circuit = built(qubits, &gates);
        for (at, (name, engine)) in mine {
            let error = worst(&amplitudes(engine, &circuit, Precision::Single), &expected);
            assert!(error < 1e-5, "case {case}, {qubits} qubits, {name}: {error}\n{gates:?}");
            if devices::has_double(engine) {
                let error = worst(&amplitudes(engine, &circuit, Precision::Double), &expected);
                assert!(error < 1e-13, "case {case}, {qubits} qubits, {name}, complex128: {error}\n{gates:?}");
                doubles[at] += 1;
            }
            ran += 1;
        }
    }
    assert!(ran > 400, "{ran} ran");
    // The processor's own code, and its kernels.
    println!("in complex128: {doubles:?}");
    assert!(doubles[0] > 400 && doubles[1] > 20, "{doubles:?}");
}

/// Larger than a tile: several sweeps, several tiles.
#[test]
fn states_of_several_tiles_are_as_the_oracle_has_them() {
    let engine = cpu();
    let mut numbers = Numbers(77);
    for qubits in [13, 14, 16, 17] {
        let gates = oracle::random(&mut numbers, qubits, 60);
        let (circuit, expected) = (built(qubits, &gates), oracle::state(qubits, &gates));
        assert!(worst(&amplitudes(&engine, &circuit, Precision::Single), &expected) < 1e-5, "{qubits} qubits");
        assert!(
            worst(&amplitudes(&engine, &circuit, Precision::Double), &expected) < 1e-13,
            "{qubits} qubits in float64"
        );
    }
}

#[test]
fn expectation_values_are_as_the_oracle_has_them_on_every_device() {
    let mut numbers = Numbers(99);
    for (name, engine) in devices::all() {
        for qubits in [1, 2, 5, 9, 13] {
            let gates = oracle::random(&mut numbers, qubits, 30);
            let state = oracle::state(qubits, &gates);
            let strings: Vec<String> =
                (0..4).map(|_| (0..qubits).map(|_| ['I', 'X', 'Y', 'Z'][numbers.below(4)]).collect()).collect();
            let terms: Vec<(&str, f64)> =
                strings.iter().zip([1.0, -0.5, 0.25, 2.0]).map(|(s, f)| (s.as_str(), f)).collect();
            let expected: f64 =
                terms.iter().map(|(letters, factor)| factor * oracle::expectation(&state, letters)).sum();
            let circuit = built(qubits, &gates);
            let observable = Observable::new(&terms).expect("an observable");
            for (precision, within) in [(Precision::Single, 1e-5), (Precision::Double, 1e-12)] {
                if precision == Precision::Double && !devices::has_double(&engine) {
                    continue;
                }
                let compiled = Compiled::new(&engine, &circuit, precision).expect("a plan");
                let found = compiled.expectation(&[], &observable).expect("a value");
                assert!((found - expected).abs() < within, "{name}, {qubits} qubits: {found} and {expected}");
            }
        }
    }
}

#[test]
fn precision_that_a_device_lacks_is_refused() {
    let circuit = built(2, &[]);
    for (name, engine) in devices::all().into_iter().filter(|(_, engine)| !devices::has_double(engine)) {
        let error = Compiled::new(&engine, &circuit, Precision::Double).and_then(|compiled| compiled.state(&[]));
        let error = error.expect_err("no float64").to_string();
        assert!(error.contains("complex128"), "{name}: {error}");
    }
}

/// Every kernel that ran is counted: they are the same few, whatever the circuit.
#[test]
fn no_kernel_is_compiled_for_a_circuit() {
    let all = ["begin", "dense1", "dense2", "dense3", "dense4", "dense5", "diagonal"];
    let mut numbers = Numbers(5);
    // The first one runs the processor's own code.
    for (name, engine) in devices::all().into_iter().skip(1) {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..if name.starts_with("cpu") { 30 } else { 8 } {
            let gates = oracle::random(&mut numbers, 7, 80);
            amplitudes(&engine, &built(7, &gates), Precision::Single);
            seen.extend(engine.metrics().iter().map(|row| row.operation.clone()));
        }
        assert!(seen.len() > 2 && seen.iter().all(|kernel| all.contains(&kernel.as_str())), "{name}: {seen:?}");
    }
}

#[test]
fn captured_circuits_run_for_new_parameters_and_sets_of_them() {
    for (name, engine) in devices::all() {
        let mut circuit = Circuit::new(4).expect("qubits");
        let (a, b) = (circuit.parameter("a").expect("a name"), circuit.parameter("b").expect("a name"));
        circuit.h(0).and_then(|c| c.ry(2.0 * Angle::from(a), 1)).expect("gates");
        circuit
            .cx(1, 2)
            .and_then(|c| c.crz(a * b, 0, 3))
            .and_then(|c| c.swap(0, 2))
            .and_then(|c| c.rx(b, 3))
            .expect("gates");
        let expected = |a: f64, b: f64| {
            let gate = |name, angles: &[f64], qubits: &[usize]| Gate {
                name,
                angles: angles.to_vec(),
                qubits: qubits.to_vec(),
            };
            let gates = [
                gate("h", &[], &[0]),
                gate("ry", &[2.0 * a], &[1]),
                gate("cx", &[], &[1, 2]),
                gate("crz", &[a * b], &[0, 3]),
                gate("swap", &[], &[0, 2]),
                gate("rx", &[b], &[3]),
            ];
            oracle::state(4, &gates)
        };
        let compiled = Compiled::new(&engine, &circuit, Precision::Single).expect("a plan");
        let sets = [[0.3, 1.1], [-2.0, 0.7], [0.0, 0.0]];
        let rows: Vec<&[f64]> = sets.iter().map(|set| &set[..]).collect();
        let wanted: Vec<C> = sets.iter().flat_map(|set| expected(set[0], set[1])).collect();
        let read = |tensor: &cantus::Tensor| -> Vec<C> {
            let values = tensor.to_vec::<num_complex::Complex<f32>>().expect("amplitudes");
            values.iter().map(|value| C::new(f64::from(value.re), f64::from(value.im))).collect()
        };
        assert!(worst(&read(&compiled.states(&rows).expect("states")), &wanted) < 1e-6, "{name}");
        let replay = compiled.capture(3).expect("a graph");
        for turn in 0..3 {
            let turned: Vec<&[f64]> = (0..3).map(|at| rows[(at + turn) % 3]).collect();
            replay.replay(&turned).expect("a replay");
            let wanted: Vec<C> = (0..3)
                .flat_map(|at| {
                    let set = sets[(at + turn) % 3];
                    expected(set[0], set[1])
                })
                .collect();
            assert!(worst(&read(replay.states()), &wanted) < 1e-6, "{name}, turn {turn}");
        }
        assert!(replay.replay(&rows[..2]).is_err());
        assert!(compiled.state(&[1.0]).is_err() && compiled.state(&[1.0, f64::NAN]).is_err());
    }
}
