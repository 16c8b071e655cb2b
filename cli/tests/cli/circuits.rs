//! `cantus circuits`: counts, amplitudes and pictures of OpenQASM files.

use crate::Place;

const BELL: &str = "OPENQASM 3; include \"stdgates.inc\"; input float theta; qubit[2] q; bit[2] c; ry(theta) q[0]; cx q[0], q[1]; c = measure q;";

#[test]
fn counts_amplitudes_and_pictures() {
    let place = Place::new();
    std::fs::write(place.path("bell.qasm"), BELL).unwrap();
    let run = "circuits run bell.qasm --shots 1000 --seed 7 --set theta=1.5707963267948966";
    let done = place.run(&format!("{run} --json --amplitudes state.npy"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let answer: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let counts = answer["counts"].as_object().unwrap();
    let of = |bits: &str| counts[bits].as_u64().unwrap();
    assert!(counts.len() == 2 && of("00") + of("11") == 1000 && (400..600).contains(&of("00")), "{answer}");
    // Four complex64 behind NumPy's header.
    let file = std::fs::read(place.path("state.npy")).unwrap();
    let (header, state) = file.split_at(file.len() - 32);
    assert!(header.starts_with(b"\x93NUMPY") && header.windows(3).any(|part| part == b"<c8"), "{header:?}");
    let half = std::f32::consts::FRAC_1_SQRT_2;
    for (part, expected) in state.chunks_exact(4).zip([half, 0.0, 0.0, 0.0, 0.0, 0.0, half, 0.0]) {
        let part = f32::from_le_bytes(part.try_into().unwrap());
        assert!((part - expected).abs() < 1e-6, "{part} and {expected}");
    }
    let table = place.run(run);
    assert!(table.stdout.contains("00") && table.stdout.contains('█'), "{}", table.stdout);
    assert_eq!(table.stdout, place.run(run).stdout, "the same seed");
    let noisy = place.run(&format!("{run} --json --depolarising 0.1,0.2 --damping 0.1 --readout 0.05"));
    let noisy: serde_json::Value = serde_json::from_str(&noisy.stdout).unwrap();
    assert_eq!(noisy["counts"].as_object().unwrap().len(), 4, "{noisy}");

    let text = place.run("circuits draw bell.qasm");
    assert!(text.stdout.contains("q[0]: ─Ry(theta)─●─M→0─"), "{}", text.stdout);
    assert_eq!(place.run("circuits draw bell.qasm -o bell.svg").code, Some(0));
    assert!(std::fs::read_to_string(place.path("bell.svg")).unwrap().starts_with("<svg"));
    let bench = place.run("circuits bench bell.qasm --runs 3 --set theta=1 --json");
    let bench: serde_json::Value = serde_json::from_str(&bench.stdout).unwrap();
    assert_eq!(bench[0]["gates"], 2, "{bench}");
}

#[test]
fn states_in_files_are_those_in_memory() {
    let place = Place::new();
    let wide = "OPENQASM 3; include \"stdgates.inc\"; qubit[9] q; bit[2] c; h q; cp(0.7) q[0], q[8]; ry(0.4) q[8]; cx q[8], q[1]; c[0] = measure q[8]; c[1] = measure q[1];";
    std::fs::write(place.path("wide.qasm"), wide).unwrap();
    let counts = |arguments: &str| -> serde_json::Value {
        let done = place.run(&format!("circuits run wide.qasm --shots 500 --seed 3 --json {arguments}"));
        assert_eq!(done.code, Some(0), "{arguments}: {}", done.stderr);
        serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap()["counts"].clone()
    };
    for precision in ["", "--double"] {
        let inside = counts(&format!("--amplitudes inside.npy {precision}"));
        assert_eq!(inside, counts(&format!("--stream outside.npy {precision}")));
        let [a, b] = ["inside.npy", "outside.npy"].map(|name| std::fs::read(place.path(name)).unwrap());
        let size = if precision.is_empty() { 8 << 9 } else { 16 << 9 };
        assert_eq!((a.len(), &a[..a.len() - size]), (b.len(), &b[..b.len() - size]), "headers");
        assert!(a == b && a.len() > size, "amplitudes of the same plan");
    }
    std::fs::write(place.path("large.qasm"), "qubit[44] q; h q;").unwrap();
    for (arguments, code, words) in [
        ("circuits run large.qasm --stream state.npy", 1, "free there"),
        ("circuits run wide.qasm --stream state.npy --damping 0.1", 2, "cannot be used with"),
        ("circuits run wide.qasm --stream state.npy --amplitudes other.npy", 2, "cannot be used with"),
        ("circuits run wide.qasm --double", 2, "required"),
    ] {
        let done = place.run(arguments);
        assert_eq!(done.code, Some(code), "{arguments}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments}: {}", done.stderr);
        assert!(!place.path("state.npy").exists(), "{arguments}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new();
    std::fs::write(place.path("bell.qasm"), BELL).unwrap();
    std::fs::write(place.path("wrong.qasm"), "qubit q;\ndelay[1ns] q;").unwrap();
    std::fs::write(place.path("large.qasm"), "qubit[40] q; h q;").unwrap();
    std::fs::write(place.path("bytes.qasm"), [0xff, 0xfe]).unwrap();
    for (arguments, words) in [
        ("circuits run wrong.qasm", "wrong.qasm, line 2: delay is not taken"),
        ("circuits run large.qasm", "8.0 TiB"),
        ("circuits draw bytes.qasm", "no text"),
        ("circuits run bell.qasm", "the input has no value"),
        ("circuits run bell.qasm --set theta=1 --set phi=2", "no such input"),
        ("circuits run bell.qasm --set theta=1 --readout 2", "not from 0 to 1"),
        ("circuits run bell.qasm --set theta", "a number are expected"),
    ] {
        let done = place.run(arguments);
        assert_eq!(done.code, Some(2), "{arguments}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments}: {}", done.stderr);
    }
}
