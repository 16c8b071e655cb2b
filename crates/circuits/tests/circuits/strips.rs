//! States in strips and in files beside the oracle's and beside those in one tensor: with tensors so small that a few qubits need strips.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use cantus::{Engine, Error};
use cantus_circuits::{Circuit, Compiled, Noise, Observable, Precision, Stream, run_within};

use crate::amplitudes::{built, worst};
use crate::oracle::{self, C, Numbers};
use crate::{cpu, devices};

/// The precisions of an engine, and what its amplitudes may differ by.
fn precisions(engine: &Engine) -> Vec<(Precision, f64)> {
    let mut all = vec![(Precision::Single, 1e-5)];
    all.extend(devices::has_double(engine).then_some((Precision::Double, 1e-13)));
    all
}

/// The processor's engines, and those of this run among the others: drivers are slow, so their devices take turns.
fn engines(test: usize) -> Vec<(String, Engine)> {
    let all = devices::all().into_iter().enumerate();
    all.filter(|(at, _)| *at < 2 || devices::is_mine(at + test, 2)).map(|(_, engine)| engine).collect()
}

/// Draws that differ are few: those within the rounding of amplitudes.
fn alike(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).filter(|(a, b)| a != b).count() <= a.len() / 200
}

#[test]
fn states_in_strips_are_as_the_oracle_has_them_on_every_device() {
    let mut numbers = Numbers(0x5717);
    for (at, (name, engine)) in devices::all().into_iter().enumerate() {
        let cases = [(7, 5), (8, 6), (9, 7), (10, 8), (12, 8), (12, 10)];
        // Every case on the processor; drivers are slow, so their devices take turns.
        let mine = |case: &usize| at < 2 || devices::is_mine(at + case, 3);
        for (qubits, most) in (0..cases.len()).filter(mine).map(|case| cases[case]) {
            let gates = oracle::random(&mut numbers, qubits, 60);
            let (circuit, expected) = (built(qubits, &gates), oracle::state(qubits, &gates));
            for (precision, within) in precisions(&engine) {
                let compiled = Compiled::within(&engine, &circuit, precision, most).expect("a plan");
                let state = compiled.state(&[]).expect("a state");
                let strips = state.strips();
                assert!(strips.len() >= 128 && strips.len() == compiled.figures().strips, "{}", strips.len());
                assert!(strips.iter().all(|strip| strip.len() == (1 << qubits) / strips.len()));
                let error = worst(&state.to_vec().expect("amplitudes"), &expected);
                assert!(error < within, "{name}, {qubits} qubits, tensors of 2^{most}: {error}\n{gates:?}");
            }
        }
    }
}

/// Many circuits, windows of several tiles, and gates of many controls.
#[test]
fn windows_of_all_sizes_are_as_the_oracle_has_them() {
    let engine = cpu();
    let mut numbers = Numbers(31);
    for case in 0..120 {
        let qubits = 7 + case % 6;
        let most = 5 + numbers.below(qubits - 5);
        let gates = oracle::random(&mut numbers, qubits, 40);
        let expected = oracle::state(qubits, &gates);
        let compiled = Compiled::within(&engine, &built(qubits, &gates), Precision::Double, most).expect("a plan");
        let found = compiled.state(&[]).and_then(|state| state.to_vec()).expect("amplitudes");
        let error = worst(&found, &expected);
        assert!(error < 1e-13, "{qubits} qubits, tensors of 2^{most}: {error}\n{gates:?}");
    }
    for (qubits, most) in [(17, 13), (18, 15)] {
        let gates = oracle::random(&mut numbers, qubits, 60);
        let expected = oracle::state(qubits, &gates);
        let compiled = Compiled::within(&engine, &built(qubits, &gates), Precision::Single, most).expect("a plan");
        let found = compiled.state(&[]).and_then(|state| state.to_vec()).expect("amplitudes");
        assert!(worst(&found, &expected) < 1e-5, "{qubits} qubits, tensors of 2^{most}");
    }
}

#[test]
fn all_that_a_state_gives_is_the_same_in_strips() {
    let mut numbers = Numbers(404);
    for (name, engine) in engines(3) {
        let qubits = 10;
        let gates = oracle::random(&mut numbers, qubits, 50);
        let (circuit, expected) = (built(qubits, &gates), oracle::state(qubits, &gates));
        let strings: Vec<String> =
            (0..5).map(|_| (0..qubits).map(|_| ['I', 'X', 'Y', 'Z'][numbers.below(4)]).collect()).collect();
        let factors = [1.0, -0.5, 0.25, 2.0, 0.75];
        let terms: Vec<(&str, f64)> = strings.iter().zip(factors).map(|(string, f)| (string.as_str(), f)).collect();
        let value: f64 = terms.iter().map(|(letters, factor)| factor * oracle::expectation(&expected, letters)).sum();
        let observable = Observable::new(&terms).expect("an observable");
        for (precision, within) in precisions(&engine) {
            let whole = Compiled::new(&engine, &circuit, precision).and_then(|compiled| compiled.state(&[]));
            let strips = Compiled::within(&engine, &circuit, precision, 7).and_then(|compiled| compiled.state(&[]));
            let (whole, strips) = (whole.expect("a state"), strips.expect("a state"));
            assert_eq!((whole.strips().len(), strips.strips().len()), (1, 256), "{name}");
            let (a, b) = (whole.sample(500, 9).expect("samples"), strips.sample(500, 9).expect("samples"));
            assert!(alike(&a, &b), "{name}: {a:?} and {b:?}");
            let found = strips.expectation(&observable).expect("a value");
            assert!((found - value).abs() < 10.0 * within, "{name}: {found} and {value}");
            let probabilities = strips.probabilities().expect("probabilities");
            let worst = probabilities.iter().zip(&expected).map(|(p, a)| (p - a.norm_sqr()).abs()).fold(0.0, f64::max);
            assert!(worst < within, "{name}: {worst}");
        }
    }
}

#[test]
fn gradients_are_the_same_in_strips() {
    let terms = [("XIIIIII", 0.7), ("IIZIIII", -1.0), ("IIIIYII", 0.6), ("IIIIIIZ", 1.2), ("ZZIIIXI", 0.4)];
    let observable = Observable::new(&terms).expect("an observable");
    let mut circuit = Circuit::new(7).expect("qubits");
    let angles: Vec<_> = (0..3).map(|at| circuit.parameter(&format!("a{at}")).expect("a name")).collect();
    for qubit in 0..7 {
        circuit.ry(angles[qubit % 3], qubit).and_then(|c| c.t(qubit)).expect("gates");
    }
    for qubit in 0..7 {
        circuit.cx(qubit, (qubit + 1) % 7).and_then(|c| c.gate("sx", &[], &[qubit])).expect("gates");
    }
    circuit
        .crz(angles[1], 0, 5)
        .and_then(|c| c.rx(angles[2], 6))
        .and_then(|c| c.gate("cry", &[angles[0].into()], &[6, 4]))
        .expect("gates");
    let values = [0.3, 1.1, -0.7];
    for (name, engine) in engines(0) {
        for (precision, within) in [(Precision::Single, 1e-5), (Precision::Double, 1e-11)] {
            if precision == Precision::Double && !devices::has_double(&engine) {
                continue;
            }
            let whole = Compiled::new(&engine, &circuit, precision).expect("a plan");
            let strips = Compiled::within(&engine, &circuit, precision, 5).expect("a plan");
            let (value, slopes) = whole.gradient(&values, &observable).expect("a gradient");
            let (found, found_slopes) = strips.gradient(&values, &observable).expect("a gradient");
            assert!(slopes.iter().any(|slope| slope.abs() > 0.05), "{slopes:?}");
            assert!((value - found).abs() < within, "{name}: {value} and {found}");
            for (a, b) in slopes.iter().zip(&found_slopes) {
                assert!((a - b).abs() < within, "{name}: {slopes:?} and {found_slopes:?}");
            }
        }
    }
}

/// Measurements in the middle, resets, conditions and noise.
#[test]
fn shots_have_the_same_outcomes_in_strips() {
    let text = "OPENQASM 3; include \"stdgates.inc\"; qubit[9] q; bit[9] c; h q; cx q[0], q[8]; rx(0.7) q[8]; c[0] = measure q[8];
        if (c[0]) { x q[3]; h q[7]; } reset q[8]; ry(1.1) q[8]; cx q[8], q[2]; cx q[7], q[1]; c[1] = measure q[7]; ry(0.4) q[7]; ccx q[8], q[7], q[0]; c = measure q;";
    let circuit = Circuit::from_qasm(text).expect("a circuit");
    let noise = Noise::new().depolarising(0.02, 0.05).and_then(|noise| noise.amplitude_damping(0.03)).expect("noise");
    for (name, engine) in engines(1) {
        // Each shot is a trajectory of its own: what a driver computes in strips takes milliseconds for each window.
        let many = if name == "cpu" { 300 } else { 30 };
        for (noise, shots) in [(Noise::new(), many), (noise, 3)] {
            let all = |most| run_within(&engine, &circuit, &[], &noise, shots, 5, most).expect("shots");
            let (whole, strips) = (all(None), all(Some(6)));
            assert!(whole.counts().len() > 1, "{name}: {:?}", whole.counts());
            assert_eq!(whole, strips, "{name}");
        }
    }
}

#[test]
fn what_needs_one_tensor_is_refused_in_strips() {
    let compiled = Compiled::within(&cpu(), &built(9, &[]), Precision::Single, 7).expect("a plan");
    for error in [compiled.states(&[&[], &[]]).err(), compiled.capture(1).err()] {
        let error = error.expect("an error");
        assert!(matches!(error, Error::Limit(_)) && error.to_string().contains("strips"), "{error}");
    }
}

/// A file of the system's folder for such files, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("cantus-circuits-{}-{name}", std::process::id())))
    }

    fn open(&self) -> File {
        File::options().read(true).write(true).create(true).truncate(true).open(&self.0).expect("a file")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn states_in_files_are_as_the_oracle_has_them() {
    let mut numbers = Numbers(808);
    let scratch = Scratch::new("state");
    for (name, engine) in engines(2) {
        for (qubits, most) in [(0, 8), (5, 8), (9, 6)] {
            let gates = if qubits == 0 { Vec::new() } else { oracle::random(&mut numbers, qubits, 50) };
            let (circuit, expected) = (built(qubits, &gates), oracle::state(qubits, &gates));
            for (precision, within) in precisions(&engine) {
                let mut file = scratch.open();
                file.write_all(b"sixteen bytes !!").expect("a header");
                let mut calls = Vec::new();
                let state = Stream::new(file, "scratch")
                    .behind(16)
                    .within(most)
                    .run(&engine, &circuit, &[], precision, |done, all| {
                        calls.push((done, all));
                        Ok(())
                    })
                    .expect("a state");
                assert!(calls.iter().enumerate().all(|(at, (done, _))| *done == at as u64 + 1), "{calls:?}");
                assert!(calls.last().is_none_or(|(done, all)| done == all), "{calls:?}");
                assert!(worst(&state.to_vec().expect("amplitudes"), &expected) < within, "{name}, {qubits} qubits");
                assert!(state.strips().is_empty());
                let whole = Compiled::new(&engine, &circuit, precision).and_then(|c| c.state(&[])).expect("a state");
                let (a, b) = (whole.sample(200, 3).expect("samples"), state.sample(200, 3).expect("samples"));
                assert!(alike(&a, &b), "{name}: {a:?} and {b:?}");
                if qubits > 0 {
                    let letters = "XZYIXZYIXZY";
                    let observable = Observable::new(&[(&letters[..qubits], 1.0)]).expect("an observable");
                    let found = state.expectation(&observable).expect("a value");
                    let value = oracle::expectation(&expected, &letters[..qubits]);
                    assert!((found - value).abs() < 10.0 * within, "{name}, {qubits} qubits: {found} and {value}");
                }
                // What is in the file is what any reader of it finds.
                let mut bytes = Vec::new();
                File::open(&scratch.0).and_then(|mut file| file.read_to_end(&mut bytes)).expect("the file");
                let (header, rest) = bytes.split_at(16);
                assert_eq!(header, b"sixteen bytes !!");
                let part = if precision == Precision::Double { 8 } else { 4 };
                let parts: Vec<f64> = rest
                    .chunks_exact(part)
                    .map(|part| match *part {
                        [a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
                        _ => f64::from_ne_bytes(part.try_into().expect("8 bytes")),
                    })
                    .collect();
                let amplitudes: Vec<C> = parts.chunks_exact(2).map(|pair| C::new(pair[0], pair[1])).collect();
                assert!(worst(&amplitudes, &expected) < within, "{name}, {qubits} qubits in the file");
            }
        }
    }
}

#[test]
fn runs_in_files_end_early_and_refuse_what_they_do_not_take() {
    let (engine, scratch) = (cpu(), Scratch::new("early"));
    let gates = oracle::random(&mut Numbers(6), 9, 50);
    let circuit = built(9, &gates);
    let mut calls = 0;
    let stopped =
        Stream::new(scratch.open(), "scratch").within(6).run(&engine, &circuit, &[], Precision::Single, |_, _| {
            calls += 1;
            if calls < 3 { Ok(()) } else { Err(Error::Cancelled { what: "the run".to_owned() }) }
        });
    assert!(stopped.is_err() && calls == 3, "{calls}");
    let dynamic =
        Circuit::from_qasm("include \"stdgates.inc\"; qubit q; bit c; c = measure q; h q;").expect("a circuit");
    let refused = |circuit: &Circuit, values: &[f64]| {
        let file = scratch.open();
        let run = Stream::new(file, "scratch").run(&engine, circuit, values, Precision::Single, |_, _| Ok(()));
        run.expect_err("an error").to_string()
    };
    assert!(refused(&dynamic, &[]).contains("no one final state"));
    assert!(refused(&circuit, &[1.0]).contains("parameters"), "{}", refused(&circuit, &[1.0]));
    assert!(refused(&Circuit::new(60).expect("qubits"), &[]).contains("2^63 bytes"));
    // A file that is not open for reading.
    let file = File::create(&scratch.0).expect("a file");
    let run = Stream::new(file, "only written").within(6).run(&engine, &circuit, &[], Precision::Single, |_, _| Ok(()));
    let error = run.expect_err("an error");
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("only written"), "{error}");
}

#[test]
fn a_state_draws_what_a_run_draws() {
    let text = "OPENQASM 3; include \"stdgates.inc\"; qubit[4] q; bit[2] a; bit[3] b; h q; cx q[0], q[2]; ry(0.8) q[3];
        b[2] = measure q[0]; a[1] = measure q[3]; b[0] = measure q[2];";
    let circuit = Circuit::from_qasm(text).expect("a circuit");
    let state = Compiled::new(&cpu(), &circuit, Precision::Single).and_then(|c| c.state(&[])).expect("a state");
    let expected = cantus_circuits::run(&cpu(), &circuit, &[], 400, 11).expect("shots");
    assert_eq!(state.measured(&circuit, 400, 11).expect("shots"), expected);
    assert!(expected.counts().len() == 8, "{:?}", expected.counts());
    assert!(state.measured(&Circuit::new(3).expect("qubits"), 1, 0).is_err());
    assert!(state.measured(&circuit, 1 << 30, 0).is_err());
}
