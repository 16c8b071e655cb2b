//! Statements. Loops over constants are unrolled while reading, by moving the reader back; branches on measured bits become instructions. Scopes follow
//! version 3. Version 2 has the same statements in other words.

use std::collections::HashMap;

use super::operand::{Index, walk};
use super::{Definition, Kind, Meaning, Parser, Read, Value, reason};
use crate::angle::Angle;
use crate::circuit::Instruction;
use crate::condition::Condition;

/// Types of classical values.
const TYPES: [&str; 5] = ["int", "uint", "float", "angle", "bool"];

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Read<()> {
        self.step()?;
        if self.source == 0 && !self.idle {
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
            "reset" => self.reset(),
            "barrier" => self.barrier(),
            "{" => self.block(),
            "end" => {
                self.next();
                self.expect(";")?;
                if self.branches > 0 && !self.idle {
                    return Err("an end that depends on measurements is not taken".to_owned());
                }
                // What follows is not reached.
                self.idle = true;
                Ok(())
            }
            "opaque" | "def" | "extern" | "delay" | "box" | "duration" | "stretch" | "cal" | "defcal"
            | "defcalgrammar" | "switch" | "complex" | "array" | "output" | "return" | "break" | "continue"
            | "pragma" | "#" | "@" | "nop" | "\"" => {
                self.next();
                Err(format!("{word} is not taken"))
            }
            word if self.version == 3 && TYPES.contains(&word) => self.value(true),
            word => match self.meaning(word) {
                Some(Meaning::Bits(_) | Meaning::Value(..)) if !self.idle => self.assignment(),
                _ if self.assigns() => self.assignment(),
                _ => self.call(),
            },
        }
    }

    /// Returns whether the next statement gives a name another value.
    fn assigns(&self) -> bool {
        let tokens = self.sources.get(self.source).map_or(&[][..], |source| &source.tokens);
        let sign = tokens.get(self.at + 1).map_or("", |token| self.text_of(*token));
        sign == "[" || sign.ends_with('=') && sign != "=="
    }

    fn version(&mut self) -> Read<()> {
        if self.at > 0 || self.source > 0 {
            self.next();
            return Err("the version is the program's first statement".to_owned());
        }
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
        let word = self.next();
        let is_old = ["qreg", "creg"].contains(&self.text_of(word));
        let before = if is_old { None } else { self.size()? };
        let name = self.name()?;
        let size = if is_old { self.size()? } else { before };
        Ok((name, size.unwrap_or(1)))
    }

    fn qubits(&mut self) -> Read<()> {
        let (name, size) = self.register()?;
        self.check_global("qubits")?;
        if self.idle {
            return self.expect(";");
        }
        let range = self.circuit.qubit_register(&name, size).map_err(reason)?;
        self.declare(name, Meaning::Qubits(range.collect()))?;
        self.expect(";")
    }

    fn bits(&mut self) -> Read<()> {
        let is_old = self.peek() == "creg";
        let (name, size) = self.register()?;
        self.check_global("bits")?;
        let range = match self.idle {
            true => 0..0,
            false => self.circuit.bit_register(&name, size).map_err(reason)?,
        };
        self.declare(name, Meaning::Bits(range.clone()))?;
        if !is_old && self.takes("=") {
            return self.measured(&range.collect::<Vec<_>>());
        }
        self.expect(";")
    }

    fn input(&mut self) -> Read<()> {
        self.next();
        let kind = self.word()?;
        self.size()?;
        if !["float", "angle"].contains(&kind.as_str()) {
            return Err(format!("inputs of type {kind} are not taken (float and angle are)"));
        }
        self.check_global("inputs")?;
        let name = self.name()?;
        if self.idle {
            return self.expect(";");
        }
        let parameter = self.circuit.parameter(&name).map_err(reason)?;
        self.declare(name, Meaning::Value(Value::Angle(Angle::from(parameter)), false))?;
        self.expect(";")
    }

    /// A constant or a variable with its value.
    fn value(&mut self, changes: bool) -> Read<()> {
        let kind = self.word()?;
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
        if self.takes("(") {
            parameters = self.names(")")?;
            self.expect(")")?;
        }
        let qubits = self.names("{")?;
        if qubits.is_empty() {
            return Err(format!("{name} has no qubits"));
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
        self.bodies += 1;
        self.skip()?;
        self.bodies -= 1;
        if self.idle {
            return Ok(());
        }
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
        let kind = self.word()?;
        if !TYPES.contains(&kind.as_str()) {
            return Err("the variable of a loop has a type (for int i in ...)".to_owned());
        }
        self.size()?;
        let name = self.name()?;
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
                _ if self.idle => Box::new(std::iter::once(1)),
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
            if !holds || self.idle {
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
                if holds { self.skip()? } else { self.body()? }
            }
            return Ok(());
        };
        self.run_branch(&condition)
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

    fn reset(&mut self) -> Read<()> {
        self.next();
        let qubits = self.operand()?.0;
        self.expect(";")?;
        for qubit in qubits {
            self.circuit.reset(qubit).map_err(reason)?;
        }
        Ok(())
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
        if self.bodies > 0 || self.idle {
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

    fn assignment(&mut self) -> Read<()> {
        let name = self.name()?;
        if let (Some(Meaning::Bits(_)), false) = (self.meaning(&name), self.idle) {
            let bits = self.bits_of(&name)?;
            if !self.takes("=") {
                self.next();
                return Err("bits are only assigned by measurements here".to_owned());
            }
            return self.measured(&bits);
        }
        let idle = std::mem::replace(&mut self.idle, true);
        let is_indexed = self.indices(0)?.is_some();
        self.idle = idle;
        let sign = self.peek();
        self.next();
        if !sign.ends_with('=') || ["==", "!=", "<=", ">="].contains(&sign) {
            return Err("a statement that is only a value is not taken".to_owned());
        }
        if is_indexed && !self.idle {
            return Err("an index of what is no register is not taken".to_owned());
        }
        if self.idle && sign == "=" && self.peek() == "measure" {
            return self.measured(&[]);
        }
        let value = self.expression()?;
        self.expect(";")?;
        let (before, changes) = match self.meaning(&name) {
            _ if self.idle => (Value::Integer(1), true),
            Some(Meaning::Value(before, changes)) => (before.clone(), *changes),
            _ => return Err(format!("{name} is no variable")),
        };
        if !changes {
            return Err(format!("{name} does not change"));
        }
        if self.branches > 0 && !self.idle {
            return Err("an assignment that depends on measurements is not taken".to_owned());
        }
        let value = match sign.strip_suffix('=') {
            Some("") | None => value,
            Some(sign) => self.joined(sign, before, value)?,
        };
        let scope = self.scopes.iter_mut().rev().find(|scope| scope.contains_key(&name));
        if let (Some(scope), false) = (scope, self.idle) {
            scope.insert(name, Meaning::Value(value, true));
        }
        Ok(())
    }
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
