//! Expressions: numbers where they are constant, angles of parameters, and conditions on classical bits. An expression is evaluated while it is read: to a
//! number if it is constant, to an angle that is linear in the inputs, or to a condition on bits. Anything else is an error with its place. Integer and
//! float rules differ between versions 2 and 3.

use std::f64::consts::{E, PI, TAU};

use super::{KEYWORDS, Kind, Meaning, Parser, Read, Value};
use crate::angle::{Angle, Function, MOST_NODES, Operation};
use crate::condition::{Condition, Test, bits};

/// The signs of two operands, from the loosest on.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The value of every expression that is only read.
const IDLE: Value = Value::Integer(1);

impl Value {
    pub(super) fn integer(self) -> Read<i64> {
        match self {
            Self::Integer(value) => Ok(value),
            Self::Bool(value) => Ok(i64::from(value)),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Ok(value as i64),
            Self::Float(value) => Err(format!("an integer is expected here, not {value}")),
            Self::Angle(_) => Err("this depends on a parameter, and a constant is expected here".to_owned()),
            Self::Condition(_) => Err("this depends on measurements, and a constant is expected here".to_owned()),
        }
    }

    pub(super) fn angle(self) -> Read<Angle> {
        match self {
            Self::Integer(value) => Ok(Angle::from(value as f64)),
            Self::Float(value) => Ok(Angle::from(value)),
            Self::Bool(value) => Ok(Angle::from(f64::from(u8::from(value)))),
            Self::Angle(angle) => Ok(angle),
            Self::Condition(_) => Err("an angle that depends on measurements is not taken".to_owned()),
        }
    }

    pub(super) fn float(self) -> Read<f64> {
        let constant = "this depends on a parameter, and a constant is expected here";
        self.angle()?.constant().ok_or_else(|| constant.to_owned())
    }

    fn condition(self) -> Read<Condition> {
        match self {
            Self::Condition(condition) => Ok(condition),
            other => {
                let value = other.integer()?;
                let value = u64::try_from(value).map_err(|_| "bits are not negative".to_owned())?;
                Ok(Condition(vec![Test::Value(value)]))
            }
        }
    }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Read<Value> {
        self.step()?;
        let value = self.deeper(|parser| parser.level(0))?;
        Ok(if self.idle { IDLE } else { value })
    }

    /// Expressions with commas between them, and their `)`.
    pub(super) fn expressions(&mut self) -> Read<Vec<Value>> {
        let mut values = Vec::new();
        while self.peek() != ")" {
            values.push(self.expression()?);
            if !self.takes(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(values)
    }

    /// An expression of signs of a level and tighter ones.
    fn level(&mut self, level: usize) -> Read<Value> {
        let Some(signs) = LEVELS.get(level) else { return self.power() };
        let mut left = self.level(level + 1)?;
        loop {
            let sign = self.peek();
            // In version 2 it is a power.
            if !signs.contains(&sign) || (sign == "^" && self.version == 2) {
                return Ok(left);
            }
            self.step()?;
            self.next();
            let right = self.level(level + 1)?;
            left = self.joined(sign, left, right)?;
        }
    }

    /// Powers bind tighter than signs before a number, and to the right.
    fn power(&mut self) -> Read<Value> {
        let sign = self.peek();
        if ["-", "!", "~"].contains(&sign) || (sign == "+" && self.version == 2) {
            self.next();
            let value = self.deeper(Self::power)?;
            return if self.idle { Ok(IDLE) } else { negated(sign, value) };
        }
        let base = self.primary()?;
        match self.peek() {
            "[" => return Err("an index of what is no register is not taken".to_owned()),
            "(" => return Err("what is called here is no function".to_owned()),
            _ => {}
        }
        if self.peek() == "**" || (self.version == 2 && self.peek() == "^") {
            self.next();
            let exponent = self.deeper(Self::power)?;
            return self.joined("**", base, exponent);
        }
        Ok(base)
    }

    fn primary(&mut self) -> Read<Value> {
        self.step()?;
        let token = self.next();
        let text = self.text_of(token);
        match token.kind {
            Kind::Integer(value) => {
                let unit = self.peek();
                if ["ns", "us", "µs", "ms", "dt", "s"].contains(&unit) {
                    return Err(format!("durations ({value}{unit}) are not taken"));
                }
                Ok(Value::Integer(value))
            }
            Kind::Float(value) => Ok(Value::Float(value)),
            Kind::Text => {
                let value = i64::from_str_radix(&text.replace('_', ""), 2);
                value.map(Value::Integer).map_err(|_| format!("{text:?} is no text of at most 63 bits"))
            }
            Kind::Sign if text == "(" => {
                let value = self.expression()?;
                self.expect(")")?;
                Ok(value)
            }
            Kind::Word => self.meant(text),
            _ if text.is_empty() => Err("the program ends where a value is expected".to_owned()),
            _ => Err(format!("a value is expected here, not {text:?}")),
        }
    }

    fn meant(&mut self, name: &str) -> Read<Value> {
        let found = if self.idle { None } else { self.meaning(name).cloned() };
        match found {
            Some(Meaning::Value(value, _)) => return Ok(value),
            Some(Meaning::Bits(range)) => {
                let places = self.indices(range.len())?;
                let range = match places.as_deref() {
                    None => range,
                    Some([first, rest @ ..]) if rest.iter().zip(first + 1..).all(|(place, next)| *place == next) => {
                        range.start + first..range.start + first + places.as_deref().map_or(0, <[usize]>::len)
                    }
                    Some(_) => return Err(format!("bits of {name} that are no row are not taken in a condition")),
                };
                if range.len() > 64 {
                    return Err(format!("{name} has more than the 64 bits that conditions take"));
                }
                return Ok(Value::Condition(Condition(vec![bits(range)])));
            }
            Some(Meaning::Qubits(_)) => return Err(format!("{name} is of qubits, and a value is expected here")),
            Some(Meaning::Gate(_)) => return Err(format!("{name} is a gate, and a value is expected here")),
            None => {}
        }
        match name {
            "pi" | "π" => return Ok(Value::Float(PI)),
            "tau" | "τ" => return Ok(Value::Float(TAU)),
            "euler" | "ℇ" => return Ok(Value::Float(E)),
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "measure" => return Err("a measurement inside an expression is not taken (assign it to bits)".to_owned()),
            _ => {}
        }
        let is_type = ["int", "uint", "float", "angle", "bool"].contains(&name);
        if is_type && self.takes("[") {
            self.expression()?;
            self.expect("]")?;
        }
        if !is_type && name != "pow" && KEYWORDS.contains(&name) && self.version == 3 {
            return Err(format!("a value is expected here, and {name} is not taken as one"));
        }
        if !self.takes("(") {
            if self.idle && !is_type {
                return self.indices(0).map(|_| IDLE);
            }
            return Err(format!("{name} is not declared"));
        }
        let values = self.expressions()?;
        if is_type {
            return match (<[Value; 1]>::try_from(values), self.idle) {
                (Ok([_]), true) => Ok(IDLE),
                (Ok([value]), false) => cast(name, value),
                (Err(_), _) => Err(format!("{name} takes one value")),
            };
        }
        if self.idle { Ok(IDLE) } else { function(name, values) }
    }

    pub(super) fn joined(&self, sign: &str, a: Value, b: Value) -> Read<Value> {
        if self.idle {
            return Ok(IDLE);
        }
        if matches!(a, Value::Condition(_)) || matches!(b, Value::Condition(_)) {
            return conditions(sign, a.condition()?, b.condition()?);
        }
        if matches!(a, Value::Angle(_)) || matches!(b, Value::Angle(_)) {
            let operation = match sign {
                "+" => Operation::Add,
                "-" => Operation::Subtract,
                "*" => Operation::Multiply,
                "/" => Operation::Divide,
                "**" => Operation::Power,
                _ => return Err(format!("{sign:?} of what depends on a parameter is not taken")),
            };
            let angle = a.angle()?.with(operation, b.angle()?);
            if angle.0.len() > MOST_NODES {
                return Err(format!("the expression has more than {MOST_NODES} parts"));
            }
            return Ok(Value::Angle(angle));
        }
        if let (Value::Integer(a), Value::Integer(b)) = (&a, &b)
            && let Some(value) = integers(sign, *a, *b, self.version)?
        {
            return Ok(value);
        }
        let is_bool = matches!((&a, &b), (Value::Bool(_), Value::Bool(_)));
        if let ("&&" | "||" | "&" | "|" | "^", Ok(a), Ok(b)) = (sign, a.clone().integer(), b.clone().integer()) {
            return Ok(match sign {
                "&&" => Value::Bool(a != 0 && b != 0),
                "||" => Value::Bool(a != 0 || b != 0),
                "&" if is_bool => Value::Bool(a & b != 0),
                "|" if is_bool => Value::Bool(a | b != 0),
                "^" if is_bool => Value::Bool(a ^ b != 0),
                "&" => Value::Integer(a & b),
                "|" => Value::Integer(a | b),
                _ => Value::Integer(a ^ b),
            });
        }
        let (a, b) = (a.float()?, b.float()?);
        let value = match sign {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "%" => a.rem_euclid(b),
            "**" => a.powf(b),
            "==" => return Ok(Value::Bool(a == b)),
            "!=" => return Ok(Value::Bool(a != b)),
            "<" => return Ok(Value::Bool(a < b)),
            "<=" => return Ok(Value::Bool(a <= b)),
            ">" => return Ok(Value::Bool(a > b)),
            ">=" => return Ok(Value::Bool(a >= b)),
            _ => return Err(format!("{sign:?} of {a} and {b} is not defined")),
        };
        finite(value)
    }
}

fn finite(value: f64) -> Read<Value> {
    match value.is_finite() {
        true => Ok(Value::Float(value)),
        false => Err(format!("the value is {value}")),
    }
}

/// Operations of integers; `None` for those of floats.
fn integers(sign: &str, a: i64, b: i64, version: u32) -> Read<Option<Value>> {
    let checked = |value: Option<i64>| match value {
        Some(value) => Ok(Some(Value::Integer(value))),
        None => Err(format!("{a} {sign} {b} is no integer of 64 bits")),
    };
    match sign {
        "+" => checked(a.checked_add(b)),
        "-" => checked(a.checked_sub(b)),
        "*" => checked(a.checked_mul(b)),
        "/" if version == 3 => checked(a.checked_div(b)),
        "%" => checked(a.checked_rem(b)),
        "**" if b >= 0 => checked(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        "<<" => checked(u32::try_from(b).ok().filter(|b| *b < 63).and_then(|b| a.checked_mul(1 << b))),
        ">>" => checked(u32::try_from(b).ok().and_then(|b| a.checked_shr(b))),
        _ => Ok(None),
    }
}

fn negated(sign: &str, value: Value) -> Read<Value> {
    Ok(match (sign, value) {
        ("+", value @ (Value::Integer(_) | Value::Float(_) | Value::Angle(_))) => value,
        ("-", Value::Integer(value)) => {
            Value::Integer(value.checked_neg().ok_or("the value is no integer of 64 bits")?)
        }
        ("-", Value::Float(value)) => Value::Float(-value),
        ("-", Value::Angle(angle)) => Value::Angle(-angle),
        ("!", Value::Condition(condition)) => Value::Condition(!condition),
        ("~", Value::Condition(condition)) if matches!(condition.0[..], [Test::Bits { len: 1, .. }]) => {
            Value::Condition(!condition)
        }
        ("!", Value::Bool(value)) => Value::Bool(!value),
        ("!", Value::Integer(value)) => Value::Bool(value == 0),
        ("~", Value::Integer(value)) => Value::Integer(!value),
        (sign, _) => return Err(format!("{sign:?} of this is not defined")),
    })
}

fn conditions(sign: &str, a: Condition, b: Condition) -> Read<Value> {
    if a.0.len() + b.0.len() > MOST_NODES {
        return Err(format!("the condition has more than {MOST_NODES} parts"));
    }
    Ok(Value::Condition(match sign {
        "&&" => a.and(b),
        "||" | "|" => a.or(b),
        "&" => a.joined(b, Test::And),
        "^" => a.joined(b, Test::Xor),
        "==" => a.joined(b, Test::Equal),
        "!=" => !a.joined(b, Test::Equal),
        "<" => a.joined(b, Test::Less),
        ">=" => !a.joined(b, Test::Less),
        ">" => b.joined(a, Test::Less),
        "<=" => !b.joined(a, Test::Less),
        _ => return Err(format!("{sign:?} of what depends on measurements is not taken")),
    }))
}

fn cast(name: &str, value: Value) -> Read<Value> {
    match (name, value) {
        ("int" | "uint", Value::Float(value)) if value.abs() < 9e15 => Ok(Value::Integer(value as i64)),
        // A number of bits is one already.
        ("int" | "uint" | "bool", value @ Value::Condition(_)) => Ok(value),
        ("int" | "uint", value) => value.integer().map(Value::Integer),
        ("bool", value) => value.integer().map(|value| Value::Bool(value != 0)),
        (_, value @ Value::Angle(_)) => Ok(value),
        (_, value) => value.float().map(Value::Float),
    }
}

fn function(name: &str, values: Vec<Value>) -> Read<Value> {
    let one = match name {
        "sin" => Some(Function::Sin),
        "cos" => Some(Function::Cos),
        "tan" => Some(Function::Tan),
        "arcsin" | "asin" => Some(Function::Arcsin),
        "arccos" | "acos" => Some(Function::Arccos),
        "arctan" | "atan" => Some(Function::Arctan),
        "exp" => Some(Function::Exp),
        "ln" | "log" => Some(Function::Ln),
        "sqrt" => Some(Function::Sqrt),
        _ => None,
    };
    let count = values.len();
    let mut values = values.into_iter();
    match (one, name, values.next(), values.next(), count) {
        (Some(one), _, Some(value), None, 1) => {
            let angle = value.angle()?.apply(one);
            match angle.constant() {
                Some(value) => finite(value),
                None => Ok(Value::Angle(angle)),
            }
        }
        (None, "floor", Some(value), None, 1) => finite(value.float()?.floor()),
        (None, "ceiling", Some(value), None, 1) => finite(value.float()?.ceil()),
        (None, "pow", Some(a), Some(b), 2) => {
            let angle = a.angle()?.with(Operation::Power, b.angle()?);
            angle.constant().map_or(Ok(Value::Angle(angle)), finite)
        }
        (None, "mod", Some(a), Some(b), 2) => match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => {
                a.checked_rem_euclid(b).map(Value::Integer).ok_or_else(|| format!("mod({a}, {b}) is not defined"))
            }
            (a, b) => finite(a.float()?.rem_euclid(b.float()?)),
        },
        (None, "popcount", Some(value), None, 1) => Ok(Value::Integer(i64::from(value.integer()?.count_ones()))),
        (_, "floor" | "ceiling" | "pow" | "mod" | "popcount", ..) | (Some(_), ..) => {
            Err(format!("{name} does not take {count} values"))
        }
        _ => Err(format!("there is no function {name}")),
    }
}
