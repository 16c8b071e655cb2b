//! Operands of OpenQASM's statements: registers and their elements, by index, range or set. A place is an index into the program's qubits or bits, so that
//! the statements behind need no names. Every index is checked against its register, and the error has the line.

use std::ops::Range;

use super::{MOST_STEPS, Meaning, Parser, Read};

impl Parser<'_> {
    /// Qubits by name, and whether they are a register or a part of one, which takes part qubit by qubit.
    pub(super) fn operand(&mut self) -> Read<(Vec<usize>, bool)> {
        self.step()?;
        if self.takes("$") {
            return Err("physical qubits are not taken".to_owned());
        }
        let name = self.name()?;
        let size = match self.meaning(&name) {
            _ if self.idle => 0,
            Some(Meaning::Qubits(qubits)) => qubits.len(),
            Some(_) => return Err(format!("{name} is not of qubits")),
            None => return Err(format!("{name} is not declared")),
        };
        let places = self.indices(size)?;
        let qubits = match self.meaning(&name) {
            Some(Meaning::Qubits(qubits)) if !self.idle => qubits,
            _ => return Ok((Vec::new(), false)),
        };
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
        let idle = self.idle;
        let place = |index: i64| {
            if idle {
                return Ok(0);
            }
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
            if self.takes(",") && self.peek() != "]" {
                return Err("more than one index is not taken".to_owned());
            }
        }
        self.expect("]")?;
        if self.peek() == "[" {
            return Err("more than one index is not taken".to_owned());
        }
        Ok(Some(places))
    }

    /// `a`, `a:b` or `a:step:b`.
    pub(super) fn range(&mut self) -> Read<Index> {
        let first = match self.peek() {
            ":" => 0,
            _ => self.expression()?.integer()?,
        };
        if !self.takes(":") {
            return Ok(Index::One(first));
        }
        let second = match self.peek() {
            "]" => -1,
            ":" => return Err("a range without a step between its colons is not taken".to_owned()),
            _ => self.expression()?.integer()?,
        };
        if !self.takes(":") {
            return Ok(Index::Range(first, 1, second));
        }
        let last = self.expression()?.integer()?;
        Ok(Index::Range(first, second, last))
    }

    /// The bits of a register, or of a part of one.
    pub(super) fn bits_of(&mut self, name: &str) -> Read<Vec<usize>> {
        let range: Range<usize> = match self.meaning(name) {
            _ if self.idle => 0..0,
            Some(Meaning::Bits(range)) => range.clone(),
            _ => return Err(format!("{name} is no register of bits")),
        };
        Ok(match self.indices(range.len())? {
            Some(places) => places.into_iter().map(|place| range.start + place).collect(),
            None => range.collect(),
        })
    }
}

pub(super) enum Index {
    One(i64),
    /// The first, the step and the last, which is one of them if it is reached.
    Range(i64, i64, i64),
}

/// The numbers of a range.
pub(super) fn walk(first: i64, step: i64, last: i64) -> Read<impl Iterator<Item = i64>> {
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
