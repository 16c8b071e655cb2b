//! Texts of gates, angles and conditions in pictures, for `draw`. Angles are written as parts of π where they are such, and long expressions are cut
//! to "…", so a text is no input for a parser.

use std::f64::consts::PI;
use std::fmt::Write as _;

use crate::angle::{Function, Node, Operation};
use crate::circuit::{Circuit, Gate, Span};
use crate::condition::Test;

/// The most letters of an expression.
const MOST_LETTERS: usize = 24;

/// A text and the rank of its last operation. Operands of a lower rank are put in parentheses.
type Bound = (String, u8);
const WHOLE: u8 = 9;

fn within(part: Bound, least: u8) -> String {
    if part.1 < least { format!("({})", part.0) } else { part.0 }
}

fn joined(a: Bound, sign: &str, b: Bound, binds: u8) -> Bound {
    // Operations of one rank go from left to right.
    (format!("{}{sign}{}", within(a, binds), within(b, binds + 1)), binds)
}

/// The text of postfix parts, or "…" where it is long.
fn written<T: Copy>(parts: &[T], mut next: impl FnMut(T, &mut Vec<Bound>) -> Bound) -> String {
    let mut stack = Vec::new();
    for part in parts {
        let text = next(*part, &mut stack);
        if text.0.chars().count() > MOST_LETTERS {
            return "…".to_owned();
        }
        stack.push(text);
    }
    stack.pop().map(|text| text.0).unwrap_or_default()
}

fn taken(stack: &mut Vec<Bound>) -> Bound {
    stack.pop().unwrap_or_else(|| ("…".to_owned(), WHOLE))
}

/// An angle as people write it.
fn angle(nodes: &[Node], names: &[String]) -> String {
    written(nodes, |node, stack| match node {
        Node::Value(value) => number(value),
        Node::Parameter(index) => (names.get(index as usize).cloned().unwrap_or_default(), WHOLE),
        Node::One(Function::Negative) => (format!("-{}", within(taken(stack), 2)), 1),
        Node::One(function) => {
            let name = match function {
                Function::Negative => "-",
                Function::Sin => "sin",
                Function::Cos => "cos",
                Function::Tan => "tan",
                Function::Arcsin => "arcsin",
                Function::Arccos => "arccos",
                Function::Arctan => "arctan",
                Function::Exp => "exp",
                Function::Ln => "ln",
                Function::Sqrt => "√",
            };
            (format!("{name}({})", taken(stack).0), WHOLE)
        }
        Node::Two(operation) => {
            let (sign, binds) = match operation {
                Operation::Add => ("+", 1),
                Operation::Subtract => ("-", 1),
                Operation::Multiply => ("*", 2),
                Operation::Divide => ("/", 2),
                Operation::Power => ("**", 3),
            };
            let (b, a) = (taken(stack), taken(stack));
            match operation {
                // Powers go from right to left.
                Operation::Power => (format!("{}{sign}{}", within(a, binds + 1), within(b, binds)), binds),
                _ => joined(a, sign, b, binds),
            }
        }
    })
}

/// A number, in parts of π where it is one.
fn number(value: f64) -> Bound {
    let sign = if value < 0.0 { "-" } else { "" };
    let binds = |other: u8| if value < 0.0 { 1 } else { other };
    let parts = [1, 2, 3, 4, 6, 8, 12].into_iter().chain((4..=20).map(|power| 1 << power));
    for parts in parts {
        let times = value / PI * f64::from(parts);
        if times.round() != 0.0 && times.abs() < 100.0 && (times - times.round()).abs() < 1e-9 {
            let times = match times.round().abs() {
                1.0 => String::new(),
                other => format!("{other}"),
            };
            return match parts {
                1 => (format!("{sign}{times}π"), binds(WHOLE)),
                _ => (format!("{sign}{times}π/{parts}"), binds(2)),
            };
        }
    }
    if value != 0.0 && !(0.01..1e5).contains(&value.abs()) {
        return (format!("{value:.1e}"), binds(WHOLE));
    }
    let short = format!("{value:.3}");
    (short.trim_end_matches('0').trim_end_matches('.').to_owned(), binds(WHOLE))
}

impl Circuit {
    /// A gate with its angles.
    pub(crate) fn label(&self, gate: &Gate) -> String {
        let mut label = gate.kind.label().to_owned();
        if gate.inverse {
            label.push('†');
        }
        let texts: Vec<String> = self.angles[gate.angles.range()]
            .iter()
            .map(|span| angle(&self.nodes[span.range()], self.parameters()))
            .collect();
        if !texts.is_empty() {
            let _ = write!(label, "({})", texts.join(","));
        }
        label
    }

    /// A condition on classical bits, by the names of their registers.
    pub(crate) fn condition(&self, span: Span) -> String {
        written(&self.tests[span.range()], |test, stack| {
            let (sign, binds) = match test {
                Test::Value(value) => return (value.to_string(), WHOLE),
                Test::Bits { start, len } => return (self.bits_named(start as usize, len as usize), WHOLE),
                Test::Not => {
                    let (text, binds) = taken(stack);
                    return match text.strip_prefix('!').filter(|_| binds == 8) {
                        // What is not 0 counts.
                        Some(rest) => (rest.to_owned(), WHOLE),
                        None => (format!("!{}", within((text, binds), 8)), 8),
                    };
                }
                Test::Equal => ("==", 5),
                Test::Less => ("<", 5),
                Test::And => ("&", 4),
                Test::Xor => ("^", 3),
                Test::Or => ("|", 2),
            };
            let (b, a) = (taken(stack), taken(stack));
            joined(a, sign, b, binds)
        })
    }

    fn bits_named(&self, start: usize, len: usize) -> String {
        let register = self.bit_registers().iter().find(|register| register.range.contains(&start));
        let Some(register) = register else { return format!("bit {start}") };
        let (first, name) = (start - register.range.start, &register.name);
        match len {
            _ if len == register.range.len() => name.clone(),
            1 => format!("{name}[{first}]"),
            _ => format!("{name}[{first}:{}]", (first + len).saturating_sub(1)),
        }
    }
}
