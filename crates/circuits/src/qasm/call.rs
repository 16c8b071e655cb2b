//! Calls of gates: modifiers, the library's gates, and those that the program defines, which are read again at each call. The parser comes here for each
//! gate. A gate of the program is read again at each call, with its parameters bound, which keeps recursion and size bounded by the limits on instructions.
//! Modifiers nest, and their controls come from the outermost in.

use std::collections::HashMap;

use super::token::Kind::{Sign, Word};
use super::{Definition, Meaning, Parser, Read, Value, reason};
use crate::angle::Angle;
use crate::circuit::Instruction;
use crate::gate::{self, Kind};

/// The effect of modifiers.
struct Modified {
    /// Controls, true if they act where their qubit is 1: those of the outermost modifier first.
    controls: Vec<bool>,
    exponent: f64,
}

impl Parser<'_> {
    /// A call, up to its `;`.
    pub(super) fn call(&mut self) -> Read<()> {
        let first = self.at;
        let modified = self.modifiers()?;
        let is_modified = self.at != first;
        let only_value = || Err("a statement that is only a value is not taken".to_owned());
        if !is_modified && self.token().kind != Word {
            self.next();
            return only_value();
        }
        let name = if self.peek() == "gphase" { self.word()? } else { self.name()? };
        let mut angles = Vec::new();
        if self.takes("(") {
            for angle in self.expressions()? {
                angles.push(angle.angle()?);
            }
        }
        if self.peek() == "[" {
            return Err("durations of gates are not taken".to_owned());
        }
        if !is_modified && self.token().kind == Sign && !["$", ";"].contains(&self.peek()) {
            self.next();
            return only_value();
        }
        let mut operands = Vec::new();
        while self.peek() != ";" {
            operands.push(self.operand()?);
            if !self.takes(",") {
                break;
            }
        }
        self.expect(";")?;
        if self.idle {
            return match is_modified && operands.is_empty() && name != "gphase" {
                true => Err(format!("{name} is modified and has no qubits")),
                false => Ok(()),
            };
        }
        // Registers take part qubit by qubit.
        let mut sizes = operands.iter().filter(|(_, whole)| *whole).map(|(qubits, _)| qubits.len());
        let rounds = sizes.next().unwrap_or(1);
        if sizes.any(|size| size != rounds) {
            return Err(format!("{name} is called with registers of unequal sizes"));
        }
        for round in 0..rounds {
            self.step()?;
            let qubit = |(qubits, whole): &(Vec<usize>, bool)| qubits.get(if *whole { round } else { 0 }).copied();
            let qubits: Vec<usize> = operands.iter().filter_map(qubit).collect();
            let own = self.controls.clone();
            let Some((controls, targets)) = qubits.split_at_checked(modified.controls.len()) else {
                return Err(format!("{name} has {} controls and {} qubits", modified.controls.len(), qubits.len()));
            };
            self.controls.extend(modified.controls.iter().copied().zip(controls.iter().copied()));
            if self.controls.len() > 63 {
                return Err("a gate has at most 63 controls".to_owned());
            }
            self.powered(&name, &angles, targets, modified.exponent)?;
            self.controls = own;
        }
        Ok(())
    }

    fn modifiers(&mut self) -> Read<Modified> {
        let mut modified = Modified { controls: Vec::new(), exponent: 1.0 };
        // From the gate outwards.
        let mut exponents = Vec::new();
        loop {
            let word = self.peek();
            if !["inv", "pow", "ctrl", "negctrl"].contains(&word) || self.meaning(word).is_some() {
                break;
            }
            self.step()?;
            self.next();
            match word {
                "inv" => exponents.push(-1.0),
                "pow" => {
                    self.expect("(")?;
                    exponents.push(self.expression()?.float()?);
                    self.expect(")")?;
                }
                _ => {
                    let mut count = 1;
                    if self.takes("(") {
                        count = self.expression()?.integer()?;
                        self.expect(")")?;
                    }
                    let count = usize::try_from(count).ok().filter(|count| (1..=63).contains(count));
                    let count = count.ok_or("a gate has from 1 to 63 controls")?;
                    modified.controls.extend(std::iter::repeat_n(word == "ctrl", count));
                    if modified.controls.len() > 63 {
                        return Err("a gate has at most 63 controls".to_owned());
                    }
                }
            }
            self.expect("@")?;
        }
        for exponent in exponents.into_iter().rev() {
            if exponent.fract() != 0.0 && modified.exponent.abs() > 1.0 {
                return Err("a root of a power is not taken".to_owned());
            }
            modified.exponent *= exponent;
        }
        Ok(modified)
    }

    /// A gate to a power, with the controls of all modifiers around it.
    fn powered(&mut self, name: &str, angles: &[Angle], qubits: &[usize], exponent: f64) -> Read<()> {
        let times = exponent.abs();
        let is_whole = exponent.fract() == 0.0;
        if is_whole && times > 1e6 {
            return Err(format!("the power {exponent} is above 1,000,000"));
        }
        if let Some(Meaning::Gate(at)) = self.meaning(name) {
            let Some(definition) = self.definitions.get(*at).cloned() else { return Ok(()) };
            if !is_whole {
                return Err(format!("only whole powers are taken of {name}, which the program defines"));
            }
            for _ in 0..times as usize {
                self.inlined(name, &definition, angles, qubits, exponent < 0.0)?;
            }
            return Ok(());
        }
        let (kind, own) = match name {
            "gphase" => (Kind::GlobalPhase, 0),
            "U" => (Kind::U, 0),
            _ => match gate::named(name) {
                Some(named) => (named.kind, named.controls),
                None => return Err(format!("there is no gate {name}")),
            },
        };
        // u0 has one angle, a duration that simulators ignore.
        let angles = if name == "u0" { &[][..] } else { angles };
        if angles.len() != kind.angles() {
            return Err(format!("{name} takes {} angles, not {}", kind.angles(), angles.len()));
        }
        if qubits.len() != own + kind.targets() {
            return Err(format!("{name} takes {} qubits, not {}", own + kind.targets(), qubits.len()));
        }
        let mut controls: Vec<bool> = self.controls.iter().map(|(one, _)| *one).collect();
        controls.extend(std::iter::repeat_n(true, own));
        let all: Vec<usize> = self.controls.iter().map(|(_, qubit)| *qubit).chain(qubits.iter().copied()).collect();
        if is_whole {
            for _ in 0..times as usize {
                self.step()?;
                self.steps += all.len() / 4;
                self.circuit.push_gate(kind, 0, exponent < 0.0, angles, &controls, &all).map_err(reason)?;
            }
            return Ok(());
        }
        let constants: Option<Vec<f64>> = angles.iter().map(Angle::constant).collect();
        let Some(constants) = constants else {
            return Err(format!("only whole powers are taken of {name} with a parameter"));
        };
        if kind == Kind::GlobalPhase {
            let angle = Angle::from(constants.first().copied().unwrap_or(0.0) * exponent);
            return self.circuit.push_gate(kind, 0, false, &[angle], &controls, &all).map(drop).map_err(reason);
        }
        let Some(matrix) = gate::power(&kind.matrix(&constants), exponent) else {
            return Err(format!("only whole powers are taken of {name}"));
        };
        self.circuit.controlled_unitary(&matrix, &controls, &all).map(drop).map_err(reason)
    }

    /// The body of a gate that the program defines.
    fn inlined(
        &mut self,
        name: &str,
        definition: &Definition,
        angles: &[Angle],
        qubits: &[usize],
        inverse: bool,
    ) -> Read<()> {
        let (parameters, names) = (&definition.parameters, &definition.qubits);
        if angles.len() != parameters.len() {
            return Err(format!("{name} takes {} angles, not {}", parameters.len(), angles.len()));
        }
        if qubits.len() != names.len() {
            return Err(format!("{name} takes {} qubits, not {}", names.len(), qubits.len()));
        }
        self.steps += parameters.len() + names.len();
        let mut scope = HashMap::new();
        for (parameter, angle) in parameters.iter().zip(angles) {
            let value = angle.constant().map_or_else(|| Value::Angle(angle.clone()), Value::Float);
            scope.insert(parameter.clone(), Meaning::Value(value, false));
        }
        for (qubit, place) in names.iter().zip(qubits) {
            scope.insert(qubit.clone(), Meaning::Qubits(vec![*place]));
        }
        let (source, at, first) = (self.source, self.at, self.circuit.instructions.len());
        // A body sees what is declared outside of all blocks.
        let hidden = self.scopes.split_off(self.scopes.len().min(2));
        self.scopes.push(scope);
        (self.source, self.at) = (definition.source, definition.body);
        self.bodies += 1;
        self.deeper(Self::block)?;
        self.bodies -= 1;
        (self.source, self.at) = (source, at);
        self.scopes.truncate(2);
        self.scopes.extend(hidden);
        if inverse && let Some(body) = self.circuit.instructions.get_mut(first..) {
            body.reverse();
            for step in body {
                if let Instruction::Gate(gate) = step {
                    gate.inverse = !gate.inverse;
                }
            }
        }
        Ok(())
    }
}
