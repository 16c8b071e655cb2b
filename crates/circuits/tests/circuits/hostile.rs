//! Programs that ask for too much: an error in bounded time and memory.

use std::time::{Duration, Instant};

use cantus::Error;
use cantus_circuits::{Circuit, Compiled, Precision, run};

use crate::{devices, oracle::Numbers};

/// The time that the processor gave this thread, where the system tells it: a busy machine gives a test little.
fn worked() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn refused(text: &str, reason: &str) {
    let (start, before) = (Instant::now(), worked());
    let error = Circuit::from_qasm(text).err().unwrap_or_else(|| panic!("taken: {}", &text[..text.len().min(200)]));
    assert!(error.to_string().contains(reason), "{error}");
    let time = worked().zip(before).map_or_else(|| start.elapsed(), |(after, before)| after.saturating_sub(before));
    assert!(time < Duration::from_secs(60), "{time:?}: {reason}");
}

#[test]
fn loops_and_nesting_have_bounds() {
    refused("qubit q; for int i in [0:9000000000] { x q; }", "steps");
    refused("qubit q; for int i in [0:9000000000] { }", "steps");
    refused("int k = 0; while (true) { k += 1; }", "steps");
    refused("qubit q; while (true) { x q; }", "steps");
    refused("qubit q; for int i in [0:9] { pow(1000000) @ x q; }", "instructions");
    refused(&format!("int k = {}1{};", "(".repeat(100_000), ")".repeat(100_000)), "nests deeper");
    refused(&format!("int k = {}1;", "-".repeat(100_000)), "nests deeper");
    refused(&"{".repeat(100_000), "nests deeper");
    refused(&format!("qubit q; {} x q;", "if (true) ".repeat(100_000)), "nests deeper");
    refused("qubit[5000] q;", "limit");
    refused("bit[9000000000] c;", "limit");
    refused("qubit[9223372036854775807] q;", "limit");
    refused("qubit q; ctrl(64) @ x q;", "63 controls");
    refused("qubit q; pow(9000000000) @ x q;", "above 1,000,000");
    refused("input float a; float b = a; while (true) { b = b + b; }", "parts");
    // Each gate calls the one before twice.
    let mut doubling = "gate g0 a { x a; x a; }".to_owned();
    for level in 1..45 {
        doubling += &format!(" gate g{level} a {{ g{} a; g{} a; }}", level - 1, level - 1);
    }
    refused(&format!("{doubling} qubit q; g44 q;"), "");
    let mut empty = "gate g0 a { }".to_owned();
    for level in 1..45 {
        empty += &format!(" gate g{level} a {{ g{} a; g{} a; }}", level - 1, level - 1);
    }
    refused(&format!("{empty} qubit q; g44 q;"), "steps");
}

#[test]
fn too_many_qubits_are_refused_with_what_they_take() {
    for (name, engine) in devices::all() {
        for (qubits, takes) in [(40, "8.0 TiB"), (48, "2.0 PiB"), (60, "2^63 bytes"), (4000, "2^4003 bytes")] {
            let circuit = Circuit::new(qubits).expect("a circuit takes no memory");
            for error in
                [Compiled::new(&engine, &circuit, Precision::Single).err(), run(&engine, &circuit, &[], 1, 0).err()]
            {
                let error = error.expect("an error");
                assert!(matches!(error, Error::Limit(_)) && error.to_string().contains(takes), "{name}: {error}");
            }
        }
    }
}

/// Programs that are mutilated end in a circuit or an error.
#[test]
fn any_text_ends_in_a_circuit_or_an_error() {
    let rows: serde_json::Value = serde_json::from_str(include_str!("qiskit.json")).expect("JSON");
    let texts: Vec<&str> = rows.as_array().expect("rows").iter().filter_map(|row| row["text"].as_str()).collect();
    let words = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ",",
        ":",
        "@",
        "qubit",
        "bit",
        "if",
        "else",
        "for",
        "while",
        "in",
        "gate",
        "ctrl",
        "inv",
        "pow",
        "let",
        "measure",
        "reset",
        "->",
        "=",
        "==",
        "**",
        "%",
        "<<",
        "-1",
        "0",
        "1e308",
        "9223372036854775807",
        "pi",
        "q",
        "c",
        "const",
        "int",
        "input",
        "float",
        "barrier",
        "U",
        "gphase",
        "\"",
        "//",
        "/*",
        "é",
        "$0",
        "0x",
        "1.",
        "..",
        "negctrl",
        "alias",
        "end",
        "include",
    ];
    let mut numbers = Numbers(4242);
    let (mut read, mut total) = (0, 0);
    let rounds = if std::env::var("CANTUS_TESTS").as_deref() == Ok("all") { 20_000 } else { 2000 };
    for _ in 0..rounds {
        let text = texts[numbers.below(texts.len())];
        let mut parts: Vec<&str> = text.split_inclusive([' ', ';', '(', ',', '[']).collect();
        for _ in 0..1 + numbers.below(4) {
            let at = numbers.below(parts.len());
            match numbers.below(4) {
                0 => drop(parts.remove(at)),
                1 => parts.insert(at, words[numbers.below(words.len())]),
                2 => parts[at] = words[numbers.below(words.len())],
                _ => parts.truncate(at.max(1)),
            }
            if parts.is_empty() {
                break;
            }
        }
        total += 1;
        read += usize::from(Circuit::from_qasm(&parts.join(" ")).is_ok());
    }
    assert!(read > total / 100 && read < total, "{read} of {total} were read");
}
