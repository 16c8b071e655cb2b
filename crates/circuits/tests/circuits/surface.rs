//! Two rounds of the rotated surface code of distance 3, 9 qubits of data and 8 that measure stabilizers, with the code's own rules as the oracle. With noise,
//! the rates of detectors of the code of distance 2 are beside those of Pauli frames, which follow errors through Clifford gates without any state.

use cantus_circuits::{Circuit, Noise, run, run_noisy};

use crate::{cpu, oracle::Numbers};

struct Code {
    data: usize,
    /// The stabilizers: true for those of X, and their qubits of data, which are numbered row by row.
    stabilizers: &'static [(bool, &'static [usize])],
    /// The logical Z.
    logical: &'static [usize],
}

const THREE: Code = Code {
    data: 9,
    stabilizers: &[
        (true, &[0, 1, 3, 4]),
        (true, &[4, 5, 7, 8]),
        (true, &[1, 2]),
        (true, &[6, 7]),
        (false, &[1, 2, 4, 5]),
        (false, &[3, 4, 6, 7]),
        (false, &[0, 3]),
        (false, &[5, 8]),
    ],
    logical: &[0, 1, 2],
};
const TWO: Code =
    Code { data: 4, stabilizers: &[(true, &[0, 1, 2, 3]), (false, &[0, 2]), (false, &[1, 3])], logical: &[0, 1] };

#[derive(Debug, Clone, Copy)]
enum Step {
    H(usize),
    Cx(usize, usize),
    Measure(usize, usize),
    Reset(usize),
    /// Pauli's X, Y or Z: 1, 2 or 3.
    Error(usize, usize),
}

impl Code {
    fn qubits(&self) -> usize {
        self.data + self.stabilizers.len()
    }

    /// Measures all stabilizers into bits from `bits` on.
    fn round(&self, steps: &mut Vec<Step>, bits: usize) {
        for (at, (is_x, data)) in self.stabilizers.iter().enumerate() {
            let own = self.data + at;
            if *is_x {
                steps.push(Step::H(own));
            }
            steps.extend(data.iter().map(|data| if *is_x { Step::Cx(own, *data) } else { Step::Cx(*data, own) }));
            if *is_x {
                steps.push(Step::H(own));
            }
            steps.extend([Step::Measure(own, bits + at), Step::Reset(own)]);
        }
    }

    /// Two rounds with an error between them, and a measurement of the data.
    fn steps(&self, error: Option<(usize, usize)>) -> Vec<Step> {
        let (mut steps, count) = (Vec::new(), self.stabilizers.len());
        self.round(&mut steps, 0);
        steps.extend(error.map(|(pauli, qubit)| Step::Error(pauli, qubit)));
        self.round(&mut steps, count);
        steps.extend((0..self.data).map(|data| Step::Measure(data, 2 * count + data)));
        steps
    }

    fn circuit(&self, steps: &[Step]) -> Circuit {
        let (qubits, bits) = (self.qubits(), 2 * self.stabilizers.len() + self.data);
        let mut text = format!("OPENQASM 3.0; include \"stdgates.inc\"; qubit[{qubits}] q; bit[{bits}] c;");
        for step in steps {
            text += &match *step {
                Step::H(qubit) => format!("h q[{qubit}];"),
                Step::Cx(control, target) => format!("cx q[{control}], q[{target}];"),
                Step::Measure(qubit, bit) => format!("c[{bit}] = measure q[{qubit}];"),
                Step::Reset(qubit) => format!("reset q[{qubit}];"),
                Step::Error(pauli, qubit) => format!("{} q[{qubit}];", ["id", "x", "y", "z"][pauli]),
            };
        }
        Circuit::from_qasm(&text).expect("a program")
    }

    /// The detectors, which are 0 without errors: changes of all stabilizers between the rounds, the Z stabilizers of the first round, and up to the data, and the logical Z.
    fn detectors(&self, bits: &[bool]) -> Vec<bool> {
        let count = self.stabilizers.len();
        let parity = |data: &[usize]| data.iter().fold(false, |sum, data| sum ^ bits[2 * count + data]);
        let z = || self.stabilizers.iter().enumerate().filter(|(_, (is_x, _))| !is_x);
        let mut found: Vec<bool> = (0..count).map(|at| bits[at] ^ bits[count + at]).collect();
        found.extend(z().map(|(at, _)| bits[at]));
        found.extend(z().map(|(at, (_, data))| bits[count + at] ^ parity(data)));
        found.push(parity(self.logical));
        found
    }
}

#[test]
fn a_round_without_errors_keeps_the_code() {
    let shots = run(&cpu(), &THREE.circuit(&THREE.steps(None)), &[], 800, 3).expect("shots");
    let mut outcomes = [0_u32; 16];
    for shot in 0..shots.len() {
        let bits = shots.bits(shot);
        assert!(THREE.detectors(&bits).iter().all(|one| !one), "{bits:?}");
        outcomes[(0..4).map(|at| usize::from(bits[at]) << at).sum::<usize>()] += 1;
    }
    // The four stabilizers of X are fair coins: χ² with 15 degrees of freedom is above 55 in one of 10^6 runs.
    let sum: f64 = outcomes.iter().map(|count| (f64::from(*count) - 50.0).powi(2) / 50.0).sum();
    assert!(sum < 55.0, "{outcomes:?}");
}

#[test]
fn each_error_of_one_qubit_changes_its_stabilizers() {
    for pauli in 1..4 {
        for qubit in 0..THREE.data {
            let shots = run(&cpu(), &THREE.circuit(&THREE.steps(Some((pauli, qubit)))), &[], 2, 5).expect("shots");
            for shot in 0..shots.len() {
                let found = THREE.detectors(&shots.bits(shot));
                // X and Y change stabilizers of Z, Z and Y those of X.
                let changes = |is_x: bool| if is_x { pauli >= 2 } else { pauli <= 2 };
                let expected = THREE.stabilizers.iter().map(|(is_x, data)| changes(*is_x) && data.contains(&qubit));
                let expected = expected.chain([false; 8]).chain([pauli <= 2 && THREE.logical.contains(&qubit)]);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{pauli} on {qubit}");
            }
        }
    }
}

/// The outcomes of one trajectory, relative to one without errors.
fn frame(code: &Code, steps: &[Step], numbers: &mut Numbers, one: f64, two: f64, misread: f64) -> Vec<bool> {
    let mut bits = vec![false; 2 * code.stabilizers.len() + code.data];
    let (mut x, mut z) = (vec![false; code.qubits()], vec![false; code.qubits()]);
    let mut draw = |probability: f64| numbers.next() < probability;
    for step in steps {
        let noisy = match *step {
            Step::H(qubit) => {
                (x[qubit], z[qubit]) = (z[qubit], x[qubit]);
                vec![qubit]
            }
            Step::Cx(control, target) => {
                x[target] ^= x[control];
                z[control] ^= z[target];
                vec![control, target]
            }
            Step::Measure(qubit, bit) => {
                bits[bit] = x[qubit] ^ draw(misread);
                continue;
            }
            Step::Reset(qubit) => {
                (x[qubit], z[qubit]) = (false, false);
                continue;
            }
            Step::Error(..) => continue,
        };
        // Wholly mixed: each Pauli of all of them with the same chance.
        if draw(if noisy.len() == 1 { one } else { two }) {
            for qubit in noisy {
                x[qubit] ^= draw(0.5);
                z[qubit] ^= draw(0.5);
            }
        }
    }
    bits
}

#[test]
fn noise_moves_detectors_as_pauli_frames_do() {
    let (one, two, misread) = (0.01, 0.03, 0.02);
    let noise = Noise::new().depolarising(one, two).and_then(|noise| noise.readout(misread, misread)).expect("noise");
    let (steps, shots, samples) = (TWO.steps(None), 2000, 60_000);
    let found = run_noisy(&cpu(), &TWO.circuit(&steps), &[], &noise, shots, 11).expect("shots");
    let rates = |all: &mut dyn Iterator<Item = Vec<bool>>, count: f64| {
        let mut sums = [0.0; 8];
        for bits in all {
            TWO.detectors(&bits).iter().zip(&mut sums).for_each(|(one, sum)| *sum += f64::from(u8::from(*one)) / count);
        }
        sums
    };
    let found = rates(&mut (0..shots).map(|shot| found.bits(shot)), shots as f64);
    let mut numbers = Numbers(77);
    let mut frames = (0..samples).map(|_| frame(&TWO, &steps, &mut numbers, one, two, misread));
    let expected = rates(&mut frames, f64::from(samples));
    for (at, (found, rate)) in found.iter().zip(expected).enumerate() {
        let deviation = (rate * (1.0 - rate) * (1.0 / shots as f64 + 1.0 / f64::from(samples))).sqrt();
        assert!(rate > 0.01 && (found - rate).abs() < 4.5 * deviation, "{at}: {found} beside {rate} ± {deviation}");
    }
}
