//! A plain simulator in complex128, which shares no code with the crate: gates by their physics, amplitudes one by one.

use num_complex::Complex;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub type C = Complex<f64>;

fn c(re: f64, im: f64) -> C {
    Complex::new(re, im)
}

/// A gate on qubits: controls first.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub name: &'static str,
    pub angles: Vec<f64>,
    pub qubits: Vec<usize>,
}

/// Names, angles and qubits of all gates that the random circuits have.
pub const GATES: &[(&str, usize, usize)] = &[
    ("id", 0, 1),
    ("x", 0, 1),
    ("y", 0, 1),
    ("z", 0, 1),
    ("h", 0, 1),
    ("s", 0, 1),
    ("sdg", 0, 1),
    ("t", 0, 1),
    ("tdg", 0, 1),
    ("sx", 0, 1),
    ("sxdg", 0, 1),
    ("rx", 1, 1),
    ("ry", 1, 1),
    ("rz", 1, 1),
    ("p", 1, 1),
    ("u2", 2, 1),
    ("u", 3, 1),
    ("r", 2, 1),
    ("cx", 0, 2),
    ("cy", 0, 2),
    ("cz", 0, 2),
    ("ch", 0, 2),
    ("csx", 0, 2),
    ("cs", 0, 2),
    ("crx", 1, 2),
    ("cry", 1, 2),
    ("crz", 1, 2),
    ("cp", 1, 2),
    ("cu", 4, 2),
    ("swap", 0, 2),
    ("iswap", 0, 2),
    ("rxx", 1, 2),
    ("ryy", 1, 2),
    ("rzz", 1, 2),
    ("rzx", 1, 2),
    ("ecr", 0, 2),
    ("dcx", 0, 2),
    ("ccx", 0, 3),
    ("ccz", 0, 3),
    ("cswap", 0, 3),
    ("c3x", 0, 4),
    ("c3sx", 0, 4),
    ("c4x", 0, 5),
];

fn pauli(letter: char) -> Vec<C> {
    let (o, l, i) = (c(0.0, 0.0), c(1.0, 0.0), c(0.0, 1.0));
    match letter {
        'I' => vec![l, o, o, l],
        'X' => vec![o, l, l, o],
        'Y' => vec![o, -i, i, o],
        _ => vec![l, o, o, -l],
    }
}

/// The Kronecker product of letters; the last one is qubit 0.
fn string(letters: &str) -> Vec<C> {
    letters.chars().fold(vec![c(1.0, 0.0)], |left, letter| {
        let (right, side) = (pauli(letter), (left.len() as f64).sqrt() as usize);
        let wide = 2 * side;
        (0..wide * wide)
            .map(|at| left[at / wide / 2 * side + at % wide / 2] * right[at / wide % 2 * 2 + at % wide % 2])
            .collect()
    })
}

/// e^(i phase) (cos α - i sin α P), with P² = 1.
fn turned(alpha: f64, of: &[C], phase: f64) -> Vec<C> {
    let side = (of.len() as f64).sqrt() as usize;
    let one = |at: usize| if at / side == at % side { alpha.cos() } else { 0.0 };
    of.iter()
        .enumerate()
        .map(|(at, entry)| C::from_polar(1.0, phase) * (one(at) - c(0.0, alpha.sin()) * entry))
        .collect()
}

fn times(a: &[C], b: &[C]) -> Vec<C> {
    let side = (a.len() as f64).sqrt() as usize;
    (0..a.len()).map(|at| (0..side).map(|k| a[at / side * side + k] * b[k * side + at % side]).sum()).collect()
}

fn sum(parts: &[(f64, &str)]) -> Vec<C> {
    let strings: Vec<Vec<C>> = parts.iter().map(|(_, letters)| string(letters)).collect();
    (0..strings[0].len())
        .map(|at| parts.iter().zip(&strings).map(|((factor, _), string)| string[at] * *factor).sum())
        .collect()
}

/// The matrix of the gate's targets, and the number of controls.
fn matrix(name: &str, angles: &[f64]) -> (usize, Vec<C>) {
    let a = |at: usize| angles[at];
    // U(θ, φ, λ) = e^(i(φ+λ)/2) Rz(φ) Ry(θ) Rz(λ).
    let u = |theta: f64, phi: f64, lambda: f64| {
        let rz = |angle: f64| turned(angle / 2.0, &string("Z"), 0.0);
        let inner = times(&rz(phi), &times(&turned(theta / 2.0, &string("Y"), 0.0), &rz(lambda)));
        inner.into_iter().map(|entry| entry * C::from_polar(1.0, (phi + lambda) / 2.0)).collect::<Vec<_>>()
    };
    let z_power = |turns: f64| turned(PI / 2.0 * turns, &string("Z"), PI / 2.0 * turns);
    let x_power = |turns: f64| turned(PI / 2.0 * turns, &string("X"), PI / 2.0 * turns);
    let h = || sum(&[(FRAC_1_SQRT_2, "X"), (FRAC_1_SQRT_2, "Z")]);
    let swap = || sum(&[(0.5, "II"), (0.5, "XX"), (0.5, "YY"), (0.5, "ZZ")]);
    match name {
        "id" => (0, string("I")),
        "x" | "y" | "z" => (0, string(&name.to_uppercase())),
        "h" => (0, h()),
        "s" => (0, z_power(0.5)),
        "sdg" => (0, z_power(-0.5)),
        "t" => (0, z_power(0.25)),
        "tdg" => (0, z_power(-0.25)),
        "sx" => (0, x_power(0.5)),
        "sxdg" => (0, x_power(-0.5)),
        "rx" | "ry" | "rz" | "crx" | "cry" | "crz" => {
            let axis = name[name.len() - 1..].to_uppercase();
            (usize::from(name.len() == 3), turned(a(0) / 2.0, &string(&axis), 0.0))
        }
        "p" => (0, z_power(a(0) / PI)),
        "cp" => (1, z_power(a(0) / PI)),
        "u2" => (0, u(PI / 2.0, a(0), a(1))),
        "u" => (0, u(a(0), a(1), a(2))),
        "cu" => (1, u(a(0), a(1), a(2)).into_iter().map(|entry| entry * C::from_polar(1.0, a(3))).collect()),
        "r" => (0, turned(a(0) / 2.0, &sum(&[(a(1).cos(), "X"), (a(1).sin(), "Y")]), 0.0)),
        "cx" => (1, string("X")),
        "cy" => (1, string("Y")),
        "cz" => (1, string("Z")),
        "ch" => (1, h()),
        "csx" => (1, x_power(0.5)),
        "cs" => (1, z_power(0.5)),
        "swap" => (0, swap()),
        "cswap" => (1, swap()),
        // e^(iπ/4 (XX + YY)).
        "iswap" => (0, times(&turned(-PI / 4.0, &string("XX"), 0.0), &turned(-PI / 4.0, &string("YY"), 0.0))),
        "rxx" => (0, turned(a(0) / 2.0, &string("XX"), 0.0)),
        "ryy" => (0, turned(a(0) / 2.0, &string("YY"), 0.0)),
        "rzz" => (0, turned(a(0) / 2.0, &string("ZZ"), 0.0)),
        // Z on the first qubit, the last letter.
        "rzx" => (0, turned(a(0) / 2.0, &string("XZ"), 0.0)),
        "ecr" => (0, sum(&[(FRAC_1_SQRT_2, "IX"), (-FRAC_1_SQRT_2, "XY")])),
        "dcx" => {
            // |q1 q0⟩ by two CX.
            let to = |from: usize| {
                let (q0, q1) = (from & 1, from >> 1);
                let q1 = q1 ^ q0;
                (q0 ^ q1) | q1 << 1
            };
            (0, (0..16).map(|at| c(f64::from(u8::from(to(at % 4) == at / 4)), 0.0)).collect())
        }
        "ccx" => (2, string("X")),
        "ccz" => (2, string("Z")),
        "c3x" => (3, string("X")),
        "c3sx" => (3, x_power(0.5)),
        "c4x" => (4, string("X")),
        other => panic!("no gate {other}"),
    }
}

/// The final state from all qubits 0.
pub fn state(qubits: usize, gates: &[Gate]) -> Vec<C> {
    let mut state = vec![c(0.0, 0.0); 1 << qubits];
    state[0] = c(1.0, 0.0);
    for gate in gates {
        let (controls, matrix) = matrix(gate.name, &gate.angles);
        let (controls, targets) = gate.qubits.split_at(controls);
        let side = 1 << targets.len();
        state = (0..state.len())
            .map(|at| {
                if controls.iter().any(|qubit| at >> qubit & 1 == 0) {
                    return state[at];
                }
                let row: usize = targets.iter().enumerate().map(|(bit, qubit)| (at >> qubit & 1) << bit).sum();
                let cleared = targets.iter().fold(at, |at, qubit| at & !(1 << qubit));
                let from = |column: usize| -> usize {
                    cleared | targets.iter().enumerate().map(|(bit, qubit)| (column >> bit & 1) << qubit).sum::<usize>()
                };
                (0..side).map(|column| matrix[row * side + column] * state[from(column)]).sum()
            })
            .collect();
    }
    state
}

/// The expectation value of a Pauli string in a state.
pub fn expectation(state: &[C], letters: &str) -> f64 {
    let qubits = state.len().ilog2() as usize;
    let mut turned = state.to_vec();
    for (qubit, letter) in letters.chars().rev().enumerate() {
        assert!(qubit < qubits);
        let matrix = pauli(letter);
        turned = (0..turned.len())
            .map(|at| {
                let row = at >> qubit & 1;
                (0..2).map(|column| matrix[2 * row + column] * turned[at & !(1 << qubit) | column << qubit]).sum()
            })
            .collect();
    }
    state.iter().zip(&turned).map(|(a, b)| (a.conj() * b).re).sum()
}

/// Numbers from 0 to 1, by a generator of their own.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

/// A random circuit of all gates that fit its qubits.
pub fn random(numbers: &mut Numbers, qubits: usize, count: usize) -> Vec<Gate> {
    let fitting: Vec<_> = GATES.iter().filter(|gate| gate.2 <= qubits).collect();
    (0..count)
        .map(|_| {
            let (name, angles, operands) = *fitting[numbers.below(fitting.len())];
            let mut free: Vec<usize> = (0..qubits).collect();
            let qubits = (0..operands).map(|_| free.swap_remove(numbers.below(free.len()))).collect();
            Gate { name, angles: (0..angles).map(|_| (numbers.next() - 0.5) * 4.0 * PI).collect(), qubits }
        })
        .collect()
}
