//! OpenQASM programs.

use cantus::Engine;
use cantus_circuits::{Circuit, run};

use crate::mutate::{self, Rng};
use crate::{Input, Outcome};

const PROGRAMS: [&str; 3] = [
    "OPENQASM 3.0; include \"stdgates.inc\"; input float t; const int n = 3; gate g(a) x, y { ctrl @ rz(a / 2) x, y; inv @ h y; } qubit[n] q; bit[n] c; \
     for uint i in [0:n - 1] { ry(pi / (i + 2) * t) q[i]; } let odd = q[{0, 2}]; pow(2) @ g(sin(t)) q[0], q[1]; negctrl(2) @ x q[0], q[1], q[2]; c = measure q; \
     if (c == 5 && !c[0]) { x odd; } else if (c[1:2] > 1) { reset q[-1]; } barrier q;",
    "OPENQASM 2.0; include \"qelib1.inc\"; gate m(a,b) p, q { u3(a, b^2, -a/2) p; cu1(a*b) p, q; } qreg q[4]; creg c[4]; h q; m(0.4, 1e-3) q[0], q[3]; \
     rccx q[0], q[1], q[2]; barrier q; measure q -> c; if (c==3) x q[1]; reset q[0];",
    "int k = 0; qubit[2] q; while (k < 4) { k += 1; if (k % 2 == 0) { swap q[0], q[1]; } else { pow(0.5) @ x q[0]; } gphase(k * 0.1); }",
];

const WORDS: &str = "qubit bit if else for while in gate ctrl inv pow let measure reset -> = == ** % << -1 1e308 9223372036854775807 pi const int input float \
    barrier U gphase \" // /* $0 0x1. negctrl end include [ ] { } ( ) ; : , @ é";

/// The circuits that are drawn and run; larger ones are only read.
const MOST_QUBITS: usize = 6;
const MOST_STEPS: usize = 500;

pub fn programs() -> Input {
    let engine = Engine::builder().backend("cpu").build().expect("the processor");
    Box::new(move |rng: &mut Rng| {
        let own = *rng.pick(&PROGRAMS);
        let mut words = mutate::tokens(own);
        let text = match rng.below(8) {
            0 => {
                let piece =
                    *rng.pick(&["(", "{ ", "[", "-", "if (true) ", "ctrl @ ", "2 ** ", "for int i in [0:1000000] "]);
                let at = rng.below(words.len());
                words.insert(at, piece.repeat(rng.below(20_000)));
                words.concat()
            }
            1..=3 => {
                mutate::gently(rng, &mut words);
                words.concat()
            }
            4..=5 => {
                let other = *rng.pick(&PROGRAMS);
                mutate::roughly(rng, &mut words, &mutate::tokens(other));
                words.concat()
            }
            _ => {
                let mut bytes = own.as_bytes().to_vec();
                mutate::bytes(rng, &mut bytes, WORDS.as_bytes(), 5);
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        match Circuit::from_qasm(&text) {
            Ok(circuit) if circuit.qubits() <= MOST_QUBITS && circuit.len() <= MOST_STEPS => {
                let values: Vec<f64> = (0..circuit.parameters().len()).map(|at| 0.3 - at as f64).collect();
                let (_, shots) = (circuit.draw(), run(&engine, &circuit, &values, 3, rng.input));
                if shots.is_ok() { Outcome::Ran } else { Outcome::Passed }
            }
            Ok(_) => Outcome::Passed,
            Err(_) => Outcome::Refused,
        }
    })
}
