//! The parser: programs beside Qiskit's own reading and beside the oracle, and what it refuses.

use cantus_circuits::{Circuit, Precision};

use crate::amplitudes::{amplitudes, built, worst};
use crate::cpu;
use crate::oracle::{self, C, Gate};

/// Programs with the amplitudes that Qiskit computed for them (`record.py`).
#[test]
fn programs_are_read_as_qiskit_reads_them() {
    let rows: serde_json::Value = serde_json::from_str(include_str!("qiskit.json")).expect("JSON");
    let rows = rows.as_array().expect("rows");
    assert!(rows.len() > 50);
    let engine = cpu();
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        let circuit = Circuit::from_named_qasm(name, row["text"].as_str().expect("a text")).expect("a program");
        let part = |value: &serde_json::Value| value.as_f64().expect("a number");
        let expected: Vec<C> = row["amplitudes"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|pair| C::new(part(&pair[0]), part(&pair[1])))
            .collect();
        let mut found = amplitudes(&engine, &circuit, Precision::Double);
        // OpenQASM 2 does not say the global phase.
        if row["text"].as_str().is_some_and(|text| text.starts_with("OPENQASM 2")) {
            let overlap: C = found.iter().zip(&expected).map(|(a, b)| a.conj() * b).sum();
            found.iter_mut().for_each(|amplitude| *amplitude *= overlap / overlap.norm());
        }
        let error = worst(&found, &expected);
        assert!(error < 1e-8, "{name}: {error}");
    }
}

fn state(text: &str) -> Vec<C> {
    let circuit = Circuit::from_qasm(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    amplitudes(&cpu(), &circuit, Precision::Double)
}

fn gate(name: &'static str, angles: &[f64], qubits: &[usize]) -> Gate {
    Gate { name, angles: angles.to_vec(), qubits: qubits.to_vec() }
}

#[test]
fn programs_are_what_they_say() {
    let pi = std::f64::consts::PI;
    let cases: Vec<(&str, usize, Vec<Gate>)> = vec![
        (
            "const int n = 4; qubit[n] q; let odd = q[{1, 3}]; for uint i in [0:n - 1] { ry(pi / (i + 2)) q[i]; }
             for int i in {0, 2} { cx q[i], q[i + 1]; } rz(-pi / 3) odd; rx(sin(0.4) * 2) q[-1]; cp(2 * pi / 2 ** 3) q[0], q[3];",
            4,
            vec![
                gate("ry", &[pi / 2.0], &[0]), gate("ry", &[pi / 3.0], &[1]), gate("ry", &[pi / 4.0], &[2]), gate("ry", &[pi / 5.0], &[3]),
                gate("cx", &[], &[0, 1]), gate("cx", &[], &[2, 3]), gate("rz", &[-pi / 3.0], &[1]), gate("rz", &[-pi / 3.0], &[3]),
                gate("rx", &[2.0 * 0.4_f64.sin()], &[3]), gate("cp", &[pi / 4.0], &[0, 3]),
            ],
        ),
        (
            "qubit[3] q; h q; int k = 0; while (k < 3) { if (k % 2 == 0) { rx(0.1 * k + 0.2) q[k]; } else { ry(1) q[k]; } k += 1; }
             for int i in [2:-1:1] { cz q[i], q[i - 1]; } for int i in [5:4] { x q[0]; }",
            3,
            vec![
                gate("h", &[], &[0]), gate("h", &[], &[1]), gate("h", &[], &[2]), gate("rx", &[0.2], &[0]), gate("ry", &[1.0], &[1]),
                gate("rx", &[0.4], &[2]), gate("cz", &[], &[2, 1]), gate("cz", &[], &[1, 0]),
            ],
        ),
        ("qubit[2] q; pow(0.5) @ x q[0]; ctrl @ pow(0.5) @ x q[0], q[1]; pow(-2) @ s q[1]; pow(3) @ t q[0];", 2, vec![
            gate("sx", &[], &[0]), gate("csx", &[], &[0, 1]), gate("sdg", &[], &[1]), gate("sdg", &[], &[1]),
            gate("t", &[], &[0]), gate("t", &[], &[0]), gate("t", &[], &[0]),
        ]),
        ("qubit a; qubit[2] r; h a; cx a, r; ctrl @ gphase(0.7) a; inv @ ctrl(2) @ x r[0], r[1], a;", 3, vec![
            gate("h", &[], &[0]), gate("cx", &[], &[0, 1]), gate("cx", &[], &[0, 2]), gate("p", &[0.7], &[0]), gate("ccx", &[], &[1, 2, 0]),
        ]),
        ("gate a(t) p { rx(t) p; s p; } gate b(t) p, q { a(2 * t) p; cx p, q; a(t) q; } qubit[2] q; inv @ b(0.3) q[0], q[1]; b(0.4) q[1], q[0];", 2, vec![
            gate("sdg", &[], &[1]), gate("rx", &[-0.3], &[1]), gate("cx", &[], &[0, 1]), gate("sdg", &[], &[0]), gate("rx", &[-0.6], &[0]),
            gate("rx", &[0.8], &[1]), gate("s", &[], &[1]), gate("cx", &[], &[1, 0]), gate("rx", &[0.4], &[0]), gate("s", &[], &[0]),
        ]),
        ("OPENQASM 2.0; include \"qelib1.inc\"; qreg q[2]; creg c[2]; u3(0.1, 1/2, 2^2) q[0]; barrier q; cx q[0], q[1]; measure q -> c;", 2, vec![
            gate("u", &[0.1, 0.5, 4.0], &[0]), gate("cx", &[], &[0, 1]),
        ]),
    ];
    for (text, qubits, gates) in cases {
        let error = worst(&state(text), &oracle::state(qubits, &gates));
        assert!(error < 1e-12, "{error}: {text}");
    }
}

#[test]
fn circuits_without_qubits_have_one_amplitude() {
    let circuit = Circuit::from_qasm("gphase(0.5); gphase(0.25);").expect("a program");
    for precision in [Precision::Single, Precision::Double] {
        assert!(worst(&amplitudes(&cpu(), &circuit, precision), &[C::from_polar(1.0, 0.75)]) < 1e-6);
    }
    let shots = cantus_circuits::run(&cpu(), &circuit, &[], 3, 0).expect("shots");
    assert_eq!(shots.counts(), [(String::new(), 3)]);
}

#[test]
fn gates_of_the_builder_are_those_of_names() {
    let mut circuit = Circuit::new(3).expect("qubits");
    circuit
        .h(0)
        .and_then(|c| c.u(0.1, 0.2, 0.3, 1))
        .and_then(|c| c.ccx(0, 1, 2))
        .and_then(|c| c.rzz(0.4, 2, 0))
        .expect("gates");
    let gates = [
        gate("h", &[], &[0]),
        gate("u", &[0.1, 0.2, 0.3], &[1]),
        gate("ccx", &[], &[0, 1, 2]),
        gate("rzz", &[0.4], &[2, 0]),
    ];
    assert_eq!(circuit, built(3, &gates));
    for wrong in [
        circuit.h(3).err(),
        circuit.cx(1, 1).err(),
        circuit.rx(f64::NAN, 0).err(),
        circuit.gate("what", &[], &[0]).err(),
    ] {
        assert!(wrong.expect("an error").to_string().starts_with("the circuit"));
    }
}

/// Errors name the construct, with its line.
#[test]
fn refusals_name_the_construct_and_its_line() {
    let cases = [
        ("qubit q;\nfoo q;", 2, "there is no gate foo"),
        ("qubit q;\nx q[1];", 2, "there is no 1 in a register of 1"),
        ("qubit[2] q;\n\ncx q[0], q[0];", 3, "named twice"),
        ("qubit[2] q;\ncx q[0];", 2, "takes 2 qubits"),
        ("qubit q;\nrx q;", 2, "takes 1 angles"),
        ("qubit q;\nrx(1/0.0) q;", 2, "the value is inf"),
        ("qubit q;\ndelay[10ns] q;", 2, "delay is not taken"),
        ("def f(int a) { }", 1, "def is not taken"),
        ("OPENQASM 4;", 1, "version 4"),
        ("include \"mine.inc\";", 1, "mine.inc"),
        ("qubit q; bit c;\nc = measure q;\nwhile (c) { x q; }", 3, "depends on measurements"),
        ("qubit q; bit c;\nint k = 0;\nif (c) { k = 1; }", 3, "depends on measurements"),
        ("qubit[2] q; qubit[3] r;\ncx q, r;", 2, "unequal sizes"),
        ("qubit q;\nx q", 2, "\";\" is expected"),
        ("gate g a { measure a; } qubit q;\ng q;", 1, "not allowed in a gate"),
        ("gate g a { g a; } qubit q;\ng q;", 1, "nests deeper"),
        ("qubit q; qubit q;", 1, "declared already"),
        ("input int n;", 1, "type int"),
        ("const int n = 3;\nn = 4;", 2, "does not change"),
        ("qubit q;\nx € q;", 2, "no part of the language"),
        ("/* never", 1, "does not end"),
        ("qubit[2] q; pow(0.5) @ iswap q[0], q[1];", 1, "only whole powers"),
    ];
    for (text, line, reason) in cases {
        let error = Circuit::from_named_qasm("p.qasm", text).expect_err(text).to_string();
        assert!(error.contains(&format!("p.qasm, line {line}:")) && error.contains(reason), "{text:?}: {error}");
    }
}

/// The syntax is checked of what a condition leaves out and of gates that nothing calls; names, commas and numbers are those of the grammar (`grammar.py` has more).
#[test]
fn the_syntax_is_that_of_the_language() {
    for text in [
        "qubit q; if (false) { x q } else { }",
        "qubit q; if (true) x q; else { rx(1 2) q; }",
        "qubit q; if (false) if (1 2) x q;",
        "for int i in [1:0] { let a = ; }",
        "while (false) { int k 3; }",
        "gate g(a) p { rx(a + ) p; }",
        "gate g p { x p }",
        "gate measure p { }",
        "gate g { }",
        "int gate = 3;",
        "qubit q;;",
        "qubit q; ctrl @x q;",
        "qubit q; rx(+1) q;",
        "qubit q; rx(1_) q;",
        "qubit q; rx(1__0) q;",
        "qubit½ q;",
        "qubit q[2];",
        "qreg[2] q;",
        "qubit q; reset q, q;",
        "for i in [0:1] { }",
        "int k = 3; OPENQASM 3.0;",
        "int k = 3; k <= 2;",
        "qubit q; end; x q",
        "qubit q; q[0];",
        "int k = 3; k[0] = 1;",
        "qubit[3] q; x q[0:1:];",
        "qubit[3] q; x q[0::1];",
    ] {
        let error = Circuit::from_qasm(text).expect_err(text);
        assert!(matches!(error, cantus::Error::InvalidFile { .. }), "{text}: {error}");
    }
    for text in [
        "gate g(a, b,) p, q, { rx(a,) p; U(b, a, 0x1_f,) q; } qubit[2] r; g(1, 2,) r[0], r[1],;",
        "qubit[2] q; bit c; if (false) { c[0] = measure q[0]; measure q[1] -> c; int k = 1; k += 2; reset q; barrier q, q; end; } else x q;",
        "qubit[3] q; let a = q[:2,] ++ q[{1,}]; for int i in {0, 1,} x q[i]; if (1 == 2) { for int i in [0:9] { x a[i]; } }",
        "int k = 6; k &= 3; k <<= 2; qubit[k] q; x q[7];",
        "OPENQASM 2.0; gate int a { x a; } qreg q[1]; int q[0]; rx(+1) q[0];",
        "qubit q; for int i in [0:1] { if (i == 1) { end; } } foo bar;",
    ] {
        Circuit::from_qasm(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
}
