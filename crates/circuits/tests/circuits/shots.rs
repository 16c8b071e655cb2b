//! Samples, mid-circuit measurements, conditions, resets and noise: their statistics, and the same outcomes on every device.

use cantus_circuits::{Circuit, Compiled, Noise, Precision, Shots, run, run_noisy};

use crate::oracle::{self, Numbers};
use crate::{amplitudes::built, cpu, devices};

fn program(text: &str) -> Circuit {
    Circuit::from_qasm(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The statistic χ² of counts against probabilities, and the degrees of freedom. Rare outcomes are one class.
fn chi_squared(counts: &[u64], probabilities: &[f64]) -> (f64, usize) {
    let shots: u64 = counts.iter().sum();
    let (mut rare, mut rare_expected, mut sum, mut classes) = (0.0, 0.0, 0.0, 0);
    for (count, probability) in counts.iter().zip(probabilities) {
        let expected = probability * shots as f64;
        if expected < 5.0 {
            rare += *count as f64;
            rare_expected += expected;
        } else {
            sum += (*count as f64 - expected).powi(2) / expected;
            classes += 1;
        }
    }
    if rare_expected >= 1.0 {
        sum += (rare - rare_expected).powi(2) / rare_expected;
        classes += 1;
    }
    (sum, classes.max(2) - 1)
}

/// Holds with a chance of about 1 in 10^5 to fail for right samples; seeds are fixed, so a run always gives the same.
fn assert_fits(counts: &[u64], probabilities: &[f64], what: &str) {
    let (sum, degrees) = chi_squared(counts, probabilities);
    let degrees = degrees as f64;
    // Wilson and Hilferty: the cube root is nearly normal.
    let deviation = 2.0 / (9.0 * degrees);
    let normal = ((sum / degrees).cbrt() - (1.0 - deviation)) / deviation.sqrt();
    assert!(normal < 4.3, "{what}: χ² = {sum} with {degrees} degrees of freedom");
}

/// Counts by the number that the classical bits make.
fn counted(shots: &Shots, bits: usize) -> Vec<u64> {
    let mut counts = vec![0; 1 << bits];
    for shot in 0..shots.len() {
        let number: usize = shots.bits(shot).iter().enumerate().map(|(bit, one)| usize::from(*one) << bit).sum();
        counts[number] += 1;
    }
    counts
}

#[test]
fn samples_are_distributed_as_probabilities() {
    let mut numbers = Numbers(31);
    for qubits in [1, 3, 6, 10] {
        let gates = oracle::random(&mut numbers, qubits, 40);
        let circuit = built(qubits, &gates);
        let probabilities: Vec<f64> =
            oracle::state(qubits, &gates).iter().map(|amplitude| amplitude.norm_sqr()).collect();
        let shots = run(&cpu(), &circuit, &[], 20_000, 5).expect("shots");
        assert_fits(&counted(&shots, qubits), &probabilities, &format!("{qubits} qubits"));
        let state = Compiled::new(&cpu(), &circuit, Precision::Double)
            .and_then(|compiled| compiled.state(&[]))
            .expect("a state");
        let mut counts = vec![0; 1 << qubits];
        state.sample(20_000, 6).expect("samples").into_iter().for_each(|state| counts[state as usize] += 1);
        assert_fits(&counts, &probabilities, &format!("{qubits} qubits of a state"));
    }
}

/// The teleported state arrives: its probabilities are those of the state that was sent.
const TELEPORTATION: &str = "
    include \"stdgates.inc\"; qubit[3] q; bit[2] m; bit out;
    u3(1.1, 0.4, 0.3) q[0]; h q[1]; cx q[1], q[2]; cx q[0], q[1]; h q[0];
    m[0] = measure q[0]; m[1] = measure q[1];
    if (m[1]) { x q[2]; } if (m[0] == 1) z q[2];
    inv @ u3(1.1, 0.4, 0.3) q[2]; ry(0.8) q[2]; out = measure q[2];";

#[test]
fn conditions_and_resets_do_what_they_say() {
    let shots = run(&cpu(), &program(TELEPORTATION), &[], 8000, 3).expect("shots");
    let one = 0.4_f64.sin().powi(2);
    let expected: Vec<f64> = (0..8).map(|bits| 0.25 * if bits & 4 == 4 { one } else { 1.0 - one }).collect();
    assert_fits(&counted(&shots, 3), &expected, "teleportation");

    // A qubit is used again: two coins of one qubit.
    let coins = "qubit q; bit[3] c; h q; c[0] = measure q; reset q; h q; c[1] = measure q; reset q; c[2] = measure q;";
    let counts = counted(&run(&cpu(), &program(coins), &[], 8000, 4).expect("shots"), 3);
    assert_fits(&counts, &[0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0], "coins");
    assert_eq!(counts[4..], [0; 4]);

    // if, else, and registers as numbers.
    let choice = "qubit[3] q; bit[2] c; bit d; h q[0]; h q[1]; c[0] = measure q[0]; c[1] = measure q[1];
        if (c == 2) { x q[2]; } else if (c > 2) { h q[2]; } else { id q[2]; } d = measure q[2];";
    let expected = [0.25, 0.25, 0.0, 0.125, 0.0, 0.0, 0.25, 0.125];
    assert_fits(&counted(&run(&cpu(), &program(choice), &[], 8000, 5).expect("shots"), 3), &expected, "choice");
    let text = run(&cpu(), &program(choice), &[], 50, 5).expect("shots").text(0);
    assert!(text.len() == 4 && text.as_bytes()[1] == b' ', "{text}: registers apart");
}

#[test]
fn outcomes_are_the_same_on_every_device() {
    let noise = Noise::new()
        .depolarising(0.05, 0.1)
        .and_then(|noise| noise.amplitude_damping(0.03))
        .and_then(|noise| noise.readout(0.02, 0.05))
        .expect("noise");
    let mut first: Option<[Shots; 3]> = None;
    for (name, engine) in devices::all() {
        let gates = oracle::random(&mut Numbers(8), 6, 40);
        let plain = run(&engine, &built(6, &gates), &[], 500, 21).expect("shots");
        let dynamic = run(&engine, &program(TELEPORTATION), &[], 500, 22).expect("shots");
        let noisy = run_noisy(&engine, &program(TELEPORTATION), &[], &noise, 40, 23).expect("shots");
        let all = [plain, dynamic, noisy];
        assert_eq!(*first.get_or_insert_with(|| all.clone()), all, "{name}");
    }
}

#[test]
fn noise_has_its_statistics() {
    let flip = program("qubit q; bit c; x q; c = measure q;");
    let shots = 6000;
    let ones = |noise: Noise, circuit: &Circuit| {
        let shots = run_noisy(&cpu(), circuit, &[], &noise, shots, 77).expect("shots");
        counted(&shots, 1)
    };
    // Depolarised with probability λ, a qubit reads wrong in half of these cases.
    let noise = Noise::new().depolarising(0.3, 0.0).expect("noise");
    assert_fits(&ones(noise, &flip), &[0.15, 0.85], "depolarising");
    let noise = Noise::new().amplitude_damping(0.2).expect("noise");
    assert_fits(&ones(noise, &flip), &[0.2, 0.8], "amplitude damping");
    let noise = Noise::new().readout(0.1, 0.25).expect("noise");
    assert_fits(&ones(noise, &flip), &[0.25, 0.75], "readout of 1");
    assert_fits(&ones(noise, &program("qubit q; bit c; c = measure q;")), &[0.9, 0.1], "readout of 0");
    // A bell pair after two-qubit depolarising: (1 - λ) of the pair, and λ of all four.
    let bell = program("qubit[2] q; bit[2] c; h q[0]; cx q[0], q[1]; c = measure q;");
    let noise = Noise::new().depolarising(0.0, 0.4).expect("noise");
    let counts = counted(&run_noisy(&cpu(), &bell, &[], &noise, shots, 78).expect("shots"), 2);
    assert_fits(&counts, &[0.4, 0.1, 0.1, 0.4], "depolarised pair");
    // Damping shortens what is not diagonal by √(1 - γ): H, damp, H.
    let noise = Noise::new().amplitude_damping(0.36).expect("noise");
    let sum = program("qubit q; bit c; h q; id q; h q; c = measure q;");
    // Twice damped, what is not diagonal is (1 - γ) / 2, and the third time what the second H made of it falls.
    let coherence = (1.0_f64 - 0.36) / 2.0;
    let one = (0.5 - coherence) * (1.0 - 0.36);
    assert_fits(&ones(noise, &sum), &[1.0 - one, one], "coherence");
    assert!(Noise::new().readout(0.0, 1.5).is_err());
}

/// Groups whose states wait without memory are computed again: a run with many branches gives what it gives with few.
#[test]
fn many_branches_give_what_a_single_shot_gives() {
    let text = "qubit[4] q; bit[12] c; for int i in [0:2] { h q; for int k in [0:3] { c[4 * i + k] = measure q[k]; } }";
    let all = run(&cpu(), &program(text), &[], 64, 9).expect("shots");
    assert!(all.counts().len() > 50);
    for shots in [1, 7, 32] {
        let few = run(&cpu(), &program(text), &[], shots, 9).expect("shots");
        for shot in 0..shots {
            assert_eq!(few.bits(shot), all.bits(shot), "shot {shot} of {shots}");
        }
    }
}
