//! Pictures as text and as SVG.

use std::f64::consts::PI;

use cantus_circuits::{Angle, Circuit, Condition, Function, Operation};

#[test]
fn pictures_are_as_they_were() {
    let text = "qubit[3] q; bit[1] c; h q[0]; cx q[0], q[2]; negctrl @ rz(pi/2) q[1], q[0]; swap q[1], q[2]; barrier q; c[0] = measure q[0];
                if (c == 1) x q[1]; h q[2];";
    let circuit = Circuit::from_qasm(text).expect("a program");
    let expected = "\
q[0]: ─H─●─Rz(π/2)───░─M→0─if c==1───end───
         │    │
q[1]: ───┼────○────×─░───────if────X─end───
         │         │
q[2]: ───⊕─────────×─░───────if──────end─H─
";
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&circuit.draw()), trimmed(expected), "\n{}", circuit.draw());
    let svg = circuit.draw_svg();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("Rz(π/2)"), "{svg}");
}

#[test]
fn nested_conditions_end_where_their_blocks_do() {
    let text = "qubit[2] q; bit[2] c; if (c[0]) { x q[0]; if (c == 2) { y q[0]; } else { z q[1]; } } else { h q[0]; }";
    let circuit = Circuit::from_qasm(text).expect("a program");
    let expected = "\
q[0]: ─if c[0]─X─if c==2─Y─else───end─else─H─end─

q[1]: ───if────────if──────else─Z─end─else───end─
";
    assert_eq!(circuit.draw(), expected, "\n{}", circuit.draw());
}

type Joined = fn(Angle, Angle) -> Angle;

#[test]
fn angles_read_as_people_write_them() {
    let parameters = || {
        let mut circuit = Circuit::new(1).expect("a qubit");
        let (a, b) = (circuit.parameter("a").expect("a name"), circuit.parameter("b").expect("a name"));
        (circuit, Angle::from(a), Angle::from(b))
    };
    let drawn = |mut circuit: Circuit, angle: Angle| circuit.rx(angle, 0).expect("a gate").draw();
    let cases = [
        (PI, "π"),
        (-PI / 2.0, "-π/2"),
        (0.75 * PI, "3π/4"),
        (PI / 262_144.0, "π/262144"),
        (0.0, "0"),
        (1.25, "1.25"),
        (0.0123, "0.012"),
        (-1.94e-4, "-1.9e-4"),
        (2.5e7, "2.5e7"),
    ];
    for (value, expected) in cases {
        assert_eq!(drawn(parameters().0, value.into()), format!("q: ─Rx({expected})─\n"));
    }
    let cases: [(Joined, &str); 10] = [
        (|a, _| a, "a"),
        (|a, _| 2.0 * a + 1.0, "2*a+1"),
        (|a, b| a - (b - 0.5), "a-(b-0.5)"),
        (|a, b| (a + b) * PI / 2.0, "(a+b)*π/2"),
        (|a, b| a / (b * 3.0), "a/(b*3)"),
        (|a, b| -(a + b), "-(a+b)"),
        (|a, _| a * -1.0, "a*(-1)"),
        (|_, b| b.apply(Function::Sin).with(Operation::Power, 2.0.into()), "sin(b)**2"),
        (|a, b| a.with(Operation::Power, b).with(Operation::Power, 2.0.into()), "(a**b)**2"),
        (|a, b| (a.clone() + b.clone()) * (a.clone() - b.clone()) / (a.clone() * a + b.clone() * b + 0.125), "…"),
    ];
    for (angle, expected) in cases {
        let (circuit, a, b) = parameters();
        assert_eq!(drawn(circuit, angle(a, b)), format!("q: ─Rx({expected})─\n"));
    }
}

#[test]
fn conditions_read_by_registers() {
    let cases = [
        (Condition::bit(1), "c[1]"),
        (Condition::bit(3), "d"),
        (!Condition::bit(3), "!d"),
        (Condition::equals(0..3, 5), "c==5"),
        (Condition::equals(1..3, 2).or(Condition::bit(3)), "c[1:2]==2|d"),
        (!Condition::equals(0..3, 1), "!(c==1)"),
        (Condition::bit(0).and(Condition::bit(3)), "c[0]&d"),
    ];
    for (condition, expected) in cases {
        let mut circuit = Circuit::new(1).expect("a qubit");
        circuit.bit_register("c", 3).and_then(|_| circuit.bit_register("d", 1)).expect("bits");
        circuit.only_if(&condition, |then| then.x(0).map(drop)).expect("a condition");
        assert_eq!(circuit.draw(), format!("q: ─if {expected}─X─end─\n"));
    }
}
