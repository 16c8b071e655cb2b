//! Statements.

use std::collections::HashMap;
use std::ops::Range;

use super::{Definition, Kind, MOST_STEPS, Meaning, Parser, Read, Value, reason};
use crate::angle::Angle;
use crate::circuit::Instruction;
use crate::condition::Condition;

/// Types of classical values.
const TYPES: [&str; 5] = ["int", "uint", "float", "angle", "bool"];

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Read<()> {
        self.step()?;
        if self.source == 0 {
            self.origin = self.at;
        }
        let word = self.peek();
        if self.bodies > 0 && !["for", "if", "while", "barrier", "{"].contains(&word) {
            if ["measure", "reset", "qubit", "bit", "creg", "qreg", "gate", "let", "input", "include"].contains(&word) {
                self.next();
                return Err(format!("{word} is not allowed in a gate"));
            }
            return self.call();
        }
        match word {
            "OPENQASM" => self.version(),
            "include" => self.include(),
            "qubit" | "qreg" => self.qubits(),
            "bit" | "creg" => self.bits(),
            "input" => self.input(),
            "const" => {
                self.next();
                self.value(false)
            }
            "gate" => self.definition(),
            "let" => self.alias(),
            "for" => self.for_loop(),
            "while" => self.while_loop(),
            "if" => self.branch(),
            "measure" => self.measure_into(),
            "reset" => self.each_qubit(|parser, qubit| parser.circuit.reset(qubit).map(drop).map_err(reason)),
            "barrier" => self.barrier(),
            "{" => self.block(),
            "end" => {
                self.next();
                self.expect(";")?;
                if self.branches > 0 {
                    return Err("an end that depends on measurements is not taken".to_owned());
                }
                // What follows is not reached.
                self.at = self.sources.get(self.source).map_or(self.at, |source| source.tokens.len().saturating_sub(1));
                Ok(())
            }
            ";" => self.expect(";"),
            "opaque" | "def" | "extern" | "delay" | "box" | "duration" | "stretch" | "cal" | "defcal"
            | "defcalgrammar" | "switch" | "complex" | "array" | "output" | "return" | "break" | "continue"
            | "pragma" | "#" | "@" | "nop" | "\"" => {
                self.next();
                Err(format!("{word} is not taken"))
            }
            word if TYPES.contains(&word) => self.value(true),
            word => match self.meaning(word) {
                Some(Meaning::Bits(_) | Meaning::Value(..)) => self.assignment(),
                _ => self.call(),
            },
        }
    }

    fn version(&mut self) -> Read<()> {
        self.next();
        let token = self.next();
        self.version = match token.kind {
            Kind::Float(2.0) => 2,
            Kind::Float(version) if (3.0..4.0).contains(&version) => 3,
            Kind::Integer(version @ 2..=3) => version as u32,
            _ => return Err(format!("version {} is not taken (2 and 3 are)", self.text_of(token))),
        };
        self.expect(";")
    }

    fn include(&mut self) -> Read<()> {
        self.next();
        let token = self.next();
        let name = self.text_of(token);
        if token.kind != Kind::Text || !["stdgates.inc", "qelib1.inc"].contains(&name) {
            return Err(format!("{name:?} is not taken (stdgates.inc and qelib1.inc are, and known already)"));
        }
        self.expect(";")
    }

    /// A size in brackets, if there is one.
    fn size(&mut self) -> Read<Option<usize>> {
        if !self.takes("[") {
            return Ok(None);
        }
        let size = self.expression()?.integer()?;
        self.expect("]")?;
        let size = usize::try_from(size).ok().filter(|size| *size > 0);
        size.map(Some).ok_or_else(|| "a size is above 0".to_owned())
    }

    fn check_global(&self, what: &str) -> Read<()> {
        match self.scopes.len() > 2 || self.branches > 0 {
            true => Err(format!("{what} are declared outside of blocks")),
            false => Ok(()),
        }
    }

    /// A declaration of version 3, `type[size] name`, or of version 2, `type name[size]`.
    fn register(&mut self) -> Read<(String, usize)> {
        self.next();
        let before = self.size()?;
        let name = self.name()?;
        let size = match before {
            Some(size) => size,
            None => self.size()?.unwrap_or(1),
        };
        Ok((name, size))
    }

    fn qubits(&mut self) -> Read<()> {
        let (name, size) = self.register()?;
        self.check_global("qubits")?;
        let range = self.circuit.qubit_register(&name, size).map_err(reason)?;
        self.declare(name, Meaning::Qubits(range.collect()))?;
        self.expect(";")
    }

    fn bits(&mut self) -> Read<()> {
        let (name, size) = self.register()?;
        self.check_global("bits")?;
        let range = self.circuit.bit_register(&name, size).map_err(reason)?;
        self.declare(name, Meaning::Bits(range.clone()))?;
        if self.takes("=") {
            return self.measured(&range.collect::<Vec<_>>());
        }
        self.expect(";")
    }

    fn input(&mut self) -> Read<()> {
        self.next();
        let kind = self.name()?;
        self.size()?;
        if !["float", "angle"].contains(&kind.as_str()) {
            return Err(format!("inputs of type {kind} are not taken (float and angle are)"));
        }
        self.check_global("inputs")?;
        let name = self.name()?;
        let parameter = self.circuit.parameter(&name).map_err(reason)?;
        self.declare(name, Meaning::Value(Value::Angle(Angle::from(parameter)), false))?;
        self.expect(";")
    }

    /// A constant or a variable with its value.
    fn value(&mut self, changes: bool) -> Read<()> {
        let kind = self.name()?;
        if !TYPES.contains(&kind.as_str()) {
            return Err(format!("values of type {kind} are not taken"));
        }
        self.size()?;
        let name = self.name()?;
        let value = match self.takes("=") {
            true => typed(&kind, self.expression()?)?,
            false if changes => Value::Integer(0),
            false => return Err(format!("the constant {name} has no value")),
        };
        self.declare(name, Meaning::Value(value, changes))?;
        self.expect(";")
    }

    fn definition(&mut self) -> Read<()> {
        self.next();
        self.check_global("gates")?;
        let name = self.name()?;
        let mut parameters = Vec::new();
        if self.takes("(") && !self.takes(")") {
            loop {
                parameters.push(self.name()?);
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        let mut qubits = vec![self.name()?];
        while self.takes(",") {
            qubits.push(self.name()?);
        }
        let mut names: Vec<&String> = parameters.iter().chain(&qubits).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(format!("two parameters or qubits of {name} have one name"));
        }
        let body = self.at;
        if self.peek() != "{" {
            return self.expect("{");
        }
        self.skip()?;
        self.definitions.push(Definition { parameters, qubits, body, source: self.source });
        self.declare(name, Meaning::Gate(self.definitions.len() - 1))
    }

    fn alias(&mut self) -> Read<()> {
        self.next();
        let name = self.name()?;
        self.expect("=")?;
        let mut qubits = self.operand()?.0;
        while self.takes("++") {
            let more = self.operand()?.0;
            qubits.extend(more);
            if qubits.len() > crate::circuit::MOST_QUBITS {
                return Err(format!("{name} would have more qubits than a circuit"));
            }
        }
        self.declare(name, Meaning::Qubits(qubits))?;
        self.expect(";")
    }

    /// Statements in braces, in a scope of their own.
    pub(super) fn block(&mut self) -> Read<()> {
        self.expect("{")?;
        self.scopes.push(HashMap::new());
        self.deeper(|parser| {
            while !parser.takes("}") {
                if parser.is_end() {
                    return Err("the block does not end".to_owned());
                }
                parser.statement()?;
            }
            Ok(())
        })?;
        self.scopes.pop();
        Ok(())
    }

    fn body(&mut self) -> Read<()> {
        if self.peek() == "{" { self.block() } else { self.deeper(Self::statement) }
    }

    fn for_loop(&mut self) -> Read<()> {
        self.next();
        let mut name = self.name()?;
        if TYPES.contains(&name.as_str()) {
            self.size()?;
            name = self.name()?;
        }
        self.expect("in")?;
        let values: Box<dyn Iterator<Item = i64>> = if self.takes("{") {
            let mut values = Vec::new();
            while !self.takes("}") {
                values.push(self.expression()?.integer()?);
                if !self.takes(",") {
                    self.expect("}")?;
                    break;
                }
            }
            Box::new(values.into_iter())
        } else {
            self.expect("[")?;
            let range = self.range()?;
            self.expect("]")?;
            match range {
                Index::Range(first, step, last) => Box::new(walk(first, step, last)?),
                Index::One(_) => return Err("a loop needs a range, [first:last]".to_owned()),
            }
        };
        let body = self.at;
        let mut ran = false;
        for value in values {
            self.step()?;
            self.at = body;
            self.scopes.push(HashMap::from([(name.clone(), Meaning::Value(Value::Integer(value), false))]));
            self.body()?;
            self.scopes.pop();
            ran = true;
        }
        if !ran { self.skip() } else { Ok(()) }
    }

    fn while_loop(&mut self) -> Read<()> {
        self.next();
        let start = self.at;
        loop {
            self.at = start;
            self.expect("(")?;
            let holds = match self.expression()? {
                Value::Condition(_) => return Err("a loop that depends on measurements is not taken".to_owned()),
                value => value.integer()? != 0,
            };
            self.expect(")")?;
            if !holds {
                return self.skip();
            }
            self.body()?;
        }
    }

    fn branch(&mut self) -> Read<()> {
        self.next();
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let Value::Condition(condition) = condition else {
            let holds = condition.integer()? != 0;
            if holds {
                self.body()?
            } else {
                self.skip()?
            }
            if self.takes("else") {
                if holds { self.skip_else()? } else { self.body()? }
            }
            return Ok(());
        };
        self.run_branch(&condition)
    }

    /// Passes over what an `else` has: an `if` with its own `else` too.
    fn skip_else(&mut self) -> Read<()> {
        self.step()?;
        if !self.takes("if") {
            return self.skip();
        }
        self.expect("(")?;
        self.expression()?;
        self.expect(")")?;
        self.skip()?;
        if self.takes("else") { self.deeper(Self::skip_else) } else { Ok(()) }
    }

    fn run_branch(&mut self, condition: &Condition) -> Read<()> {
        if self.bodies > 0 {
            return Err("a condition on bits is not allowed in a gate".to_owned());
        }
        let branch = self.circuit.begin_branch(condition).map_err(reason)?;
        self.branches += 1;
        self.body()?;
        if self.takes("else") {
            self.circuit.push(Instruction::Jump { to: 0 }).map_err(reason)?;
            let jump = self.circuit.instructions.len() - 1;
            self.circuit.end_branch(branch);
            self.body()?;
            self.circuit.end_branch(jump);
        } else {
            self.circuit.end_branch(branch);
        }
        self.branches -= 1;
        Ok(())
    }

    fn each_qubit(&mut self, run: impl Fn(&mut Self, usize) -> Read<()>) -> Read<()> {
        self.next();
        loop {
            for qubit in self.operand()?.0 {
                run(self, qubit)?;
            }
            if !self.takes(",") {
                return self.expect(";");
            }
        }
    }

    fn barrier(&mut self) -> Read<()> {
        self.next();
        let mut qubits = Vec::new();
        while self.peek() != ";" {
            qubits.extend(self.operand()?.0);
            if !self.takes(",") {
                break;
            }
        }
        self.expect(";")?;
        qubits.sort_unstable();
        qubits.dedup();
        if self.bodies > 0 {
            return Ok(());
        }
        if qubits.is_empty() {
            qubits = (0..self.circuit.qubits()).collect();
            self.steps += qubits.len();
        }
        self.circuit.barrier(&qubits).map(drop).map_err(reason)
    }

    /// `measure qubits -> bits;`
    fn measure_into(&mut self) -> Read<()> {
        self.next();
        let qubits = self.operand()?.0;
        if !self.takes("->") {
            self.next();
            return Err("a measurement whose outcome is not kept is not taken (assign it to bits)".to_owned());
        }
        let name = self.name()?;
        let bits = self.bits_of(&name)?;
        self.expect(";")?;
        self.measure(&qubits, &bits)
    }

    /// `measure qubits;` behind `bits =`.
    fn measured(&mut self, bits: &[usize]) -> Read<()> {
        if !self.takes("measure") {
            self.next();
            return Err("bits are only assigned by measurements here".to_owned());
        }
        let qubits = self.operand()?.0;
        self.expect(";")?;
        self.measure(&qubits, bits)
    }

    fn measure(&mut self, qubits: &[usize], bits: &[usize]) -> Read<()> {
        if qubits.len() != bits.len() {
            return Err(format!("{} qubits are measured into {} bits", qubits.len(), bits.len()));
        }
        for (qubit, bit) in qubits.iter().zip(bits) {
            self.step()?;
            self.circuit.measure(*qubit, *bit).map_err(reason)?;
        }
        Ok(())
    }

    fn bits_of(&mut self, name: &str) -> Read<Vec<usize>> {
        let Some(Meaning::Bits(range)) = self.meaning(name) else {
            return Err(format!("{name} is no register of bits"));
        };
        let range: Range<usize> = range.clone();
        Ok(match self.indices(range.len())? {
            Some(places) => places.into_iter().map(|place| range.start + place).collect(),
            None => range.collect(),
        })
    }

    fn assignment(&mut self) -> Read<()> {
        let name = self.name()?;
        if let Some(Meaning::Bits(_)) = self.meaning(&name) {
            let bits = self.bits_of(&name)?;
            self.expect("=")?;
            return self.measured(&bits);
        }
        let sign = self.peek();
        self.next();
        let value = self.expression()?;
        self.expect(";")?;
        let Some(Meaning::Value(before, changes)) = self.meaning(&name).cloned() else {
            return Err(format!("{name} is no variable"));
        };
        if !changes {
            return Err(format!("{name} does not change"));
        }
        if self.branches > 0 {
            return Err("an assignment that depends on measurements is not taken".to_owned());
        }
        let value = match sign.strip_suffix('=') {
            Some("") => value,
            Some(sign) if sign != "=" && sign != "!" => self.joined(sign, before, value)?,
            _ => return Err(format!("\"=\" is expected here, not {sign:?}")),
        };
        let scope = self.scopes.iter_mut().rev().find(|scope| scope.contains_key(&name));
        if let Some(scope) = scope {
            scope.insert(name, Meaning::Value(value, true));
        }
        Ok(())
    }

    /// Qubits by name, and whether they are a register or a part of one, which takes part qubit by qubit.
    pub(super) fn operand(&mut self) -> Read<(Vec<usize>, bool)> {
        self.step()?;
        if self.takes("$") {
            return Err("physical qubits are not taken".to_owned());
        }
        let name = self.name()?;
        let size = match self.meaning(&name) {
            Some(Meaning::Qubits(qubits)) => qubits.len(),
            Some(_) => return Err(format!("{name} is not of qubits")),
            None => return Err(format!("{name} is not declared")),
        };
        let places = self.indices(size)?;
        let Some(Meaning::Qubits(qubits)) = self.meaning(&name) else { return Ok((Vec::new(), false)) };
        let found: Vec<usize> = match places {
            Some(places) => places.iter().filter_map(|place| qubits.get(*place).copied()).collect(),
            None => qubits.clone(),
        };
        // Registers count by their size, so that a loop over them ends as well.
        self.steps += found.len();
        let whole = found.len() != 1;
        Ok((found, whole))
    }

    /// Places in brackets behind a register of a size: one, a range, or a set; `None` without brackets.
    pub(super) fn indices(&mut self, size: usize) -> Read<Option<Vec<usize>>> {
        if !self.takes("[") {
            return Ok(None);
        }
        let place = |index: i64| {
            let from_end = if index < 0 { index.checked_add(size as i64) } else { Some(index) };
            let place = from_end.and_then(|index| usize::try_from(index).ok()).filter(|place| *place < size);
            place.ok_or_else(|| format!("there is no {index} in a register of {size}"))
        };
        let mut places = Vec::new();
        if self.takes("{") {
            while !self.takes("}") {
                places.push(place(self.expression()?.integer()?)?);
                if !self.takes(",") {
                    self.expect("}")?;
                    break;
                }
            }
        } else {
            match self.range()? {
                Index::One(index) => places.push(place(index)?),
                Index::Range(first, step, last) => {
                    let (first, last) = (place(first)? as i64, place(last)? as i64);
                    for index in walk(first, step, last)? {
                        places.push(place(index)?);
                    }
                }
            }
        }
        self.expect("]")?;
        Ok(Some(places))
    }

    /// `a`, `a:b` or `a:step:b`.
    fn range(&mut self) -> Read<Index> {
        let first = match self.peek() {
            ":" => 0,
            _ => self.expression()?.integer()?,
        };
        if !self.takes(":") {
            return Ok(Index::One(first));
        }
        let second = match self.peek() {
            "]" => -1,
            _ => self.expression()?.integer()?,
        };
        if !self.takes(":") {
            return Ok(Index::Range(first, 1, second));
        }
        let last = match self.peek() {
            "]" => -1,
            _ => self.expression()?.integer()?,
        };
        Ok(Index::Range(first, second, last))
    }
}

enum Index {
    One(i64),
    /// The first, the step and the last, which is one of them if it is reached.
    Range(i64, i64, i64),
}

/// The numbers of a range.
fn walk(first: i64, step: i64, last: i64) -> Read<impl Iterator<Item = i64>> {
    if step == 0 {
        return Err("the step of a range is 0".to_owned());
    }
    let inside = move |value: &i64| if step > 0 { *value <= last } else { *value >= last };
    let mut next = Some(first);
    let values = std::iter::from_fn(move || {
        let value = next.filter(inside)?;
        next = value.checked_add(step);
        Some(value)
    });
    Ok(values.take(MOST_STEPS + 1))
}

/// A value as its type has it.
fn typed(kind: &str, value: Value) -> Read<Value> {
    match (kind, value) {
        (_, Value::Condition(_)) => Err("a value that depends on measurements is not taken".to_owned()),
        ("int" | "uint", value) => value.integer().map(Value::Integer),
        ("bool", value) => value.integer().map(|value| Value::Bool(value != 0)),
        (_, value @ Value::Angle(_)) => Ok(value),
        (_, value) => value.float().map(Value::Float),
    }
}
