//! Angles of gates: numbers, or expressions of a circuit's parameters in postfix order. They stay expressions until a circuit runs, so new
//! parameters need no new plan; `gradient` takes their derivatives.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The most nodes of one expression.
pub(crate) const MOST_NODES: usize = 1 << 12;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Function {
    /// The negative.
    Negative,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// The inverse sine.
    Arcsin,
    /// The inverse cosine.
    Arccos,
    /// The inverse tangent.
    Arctan,
    /// The exponential.
    Exp,
    /// The natural logarithm.
    Ln,
    /// The square root.
    Sqrt,
}

impl Function {
    /// The value and the derivative at `x`.
    pub(crate) fn at(self, x: f64) -> (f64, f64) {
        match self {
            Self::Negative => (-x, -1.0),
            Self::Sin => (x.sin(), x.cos()),
            Self::Cos => (x.cos(), -x.sin()),
            Self::Tan => (x.tan(), 1.0 + x.tan().powi(2)),
            Self::Arcsin => (x.asin(), 1.0 / (1.0 - x * x).sqrt()),
            Self::Arccos => (x.acos(), -1.0 / (1.0 - x * x).sqrt()),
            Self::Arctan => (x.atan(), 1.0 / (1.0 + x * x)),
            Self::Exp => (x.exp(), x.exp()),
            Self::Ln => (x.ln(), 1.0 / x),
            Self::Sqrt => (x.sqrt(), 0.5 / x.sqrt()),
        }
    }
}

/// An operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient.
    Divide,
    /// The power.
    Power,
}

impl Operation {
    /// The value, and the derivatives by both numbers.
    pub(crate) fn at(self, a: f64, b: f64) -> (f64, f64, f64) {
        match self {
            Self::Add => (a + b, 1.0, 1.0),
            Self::Subtract => (a - b, 1.0, -1.0),
            Self::Multiply => (a * b, b, a),
            Self::Divide => (a / b, 1.0 / b, -a / (b * b)),
            Self::Power => {
                let power = a.powf(b);
                // The exponent of a negative number does not vary.
                let by_exponent = if a > 0.0 { power * a.ln() } else { 0.0 };
                (power, if b == 0.0 { 0.0 } else { b * a.powf(b - 1.0) }, by_exponent)
            }
        }
    }
}

/// A part of an expression, in postfix order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Node {
    Value(f64),
    Parameter(u32),
    One(Function),
    Two(Operation),
}

/// A parameter of a circuit: a number that is given when the circuit runs. [`Circuit::parameter`](crate::Circuit::parameter) makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter(pub(crate) u32);

impl Parameter {
    /// Returns its place among the circuit's parameters, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An angle in radians: a number, a [`Parameter`], or an expression of both.
///
/// ```
/// use cantus_circuits::{Angle, Circuit};
/// let mut circuit = Circuit::new(1)?;
/// let theta = circuit.parameter("theta")?;
/// let angle = 2.0 * Angle::from(theta) + 0.5;
/// assert_eq!(angle.value(&[1.0]), 2.5);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Angle(pub(crate) Vec<Node>);

impl Angle {
    /// Returns the number, if it depends on no parameter.
    #[must_use]
    pub fn constant(&self) -> Option<f64> {
        match self.0[..] {
            [Node::Value(value)] => Some(value),
            _ => None,
        }
    }

    /// Returns its value for parameters in the circuit's order; those that are missing count as NaN.
    #[must_use]
    pub fn value(&self, parameters: &[f64]) -> f64 {
        value(&self.0, parameters)
    }

    /// Applies a function.
    #[must_use]
    pub fn apply(mut self, function: Function) -> Self {
        if let [Node::Value(value)] = self.0[..] {
            return Self::from(function.at(value).0);
        }
        self.0.push(Node::One(function));
        self
    }

    /// Joins two angles by an operation.
    #[must_use]
    pub fn with(mut self, operation: Operation, other: Self) -> Self {
        if let ([Node::Value(a)], [Node::Value(b)]) = (&self.0[..], &other.0[..]) {
            return Self::from(operation.at(*a, *b).0);
        }
        self.0.extend(other.0);
        self.0.push(Node::Two(operation));
        self
    }
}

/// The value of a postfix expression.
pub(crate) fn value(nodes: &[Node], parameters: &[f64]) -> f64 {
    if let [Node::Value(value)] = nodes {
        return *value;
    }
    dual(nodes, parameters, None).0
}

/// The value of a postfix expression, and its derivative by a parameter.
pub(crate) fn dual(nodes: &[Node], parameters: &[f64], by: Option<u32>) -> (f64, f64) {
    let mut stack: Vec<(f64, f64)> = Vec::with_capacity(8);
    let none = (f64::NAN, f64::NAN);
    for node in nodes {
        let next = match *node {
            Node::Value(value) => (value, 0.0),
            Node::Parameter(index) => {
                let value = parameters.get(index as usize).copied().unwrap_or(f64::NAN);
                (value, f64::from(u8::from(by == Some(index))))
            }
            Node::One(function) => {
                let (x, slope) = stack.pop().unwrap_or(none);
                let (value, by_x) = function.at(x);
                (value, chained(by_x, slope))
            }
            Node::Two(operation) => {
                let (b, slope_b) = stack.pop().unwrap_or(none);
                let (a, slope_a) = stack.pop().unwrap_or(none);
                let (value, by_a, by_b) = operation.at(a, b);
                (value, chained(by_a, slope_a) + chained(by_b, slope_b))
            }
        };
        stack.push(next);
    }
    stack.pop().unwrap_or(none)
}

/// The chain rule. A value that does not depend on the parameter has no slope, however steep the function is there.
fn chained(outer: f64, slope: f64) -> f64 {
    if slope == 0.0 { 0.0 } else { outer * slope }
}

impl From<f64> for Angle {
    fn from(value: f64) -> Self {
        Self(vec![Node::Value(value)])
    }
}

impl From<Parameter> for Angle {
    fn from(parameter: Parameter) -> Self {
        Self(vec![Node::Parameter(parameter.0)])
    }
}

macro_rules! operators {
    ($($operator:ident, $method:ident, $operation:ident;)*) => {$(
        impl<T: Into<Angle>> $operator<T> for Angle {
            type Output = Self;
            fn $method(self, other: T) -> Self {
                self.with(Operation::$operation, other.into())
            }
        }

        impl $operator<Angle> for f64 {
            type Output = Angle;
            fn $method(self, other: Angle) -> Angle {
                Angle::from(self).with(Operation::$operation, other)
            }
        }

        impl<T: Into<Angle>> $operator<T> for Parameter {
            type Output = Angle;
            fn $method(self, other: T) -> Angle {
                Angle::from(self).with(Operation::$operation, other.into())
            }
        }
    )*};
}
operators! {
    Add, add, Add;
    Sub, sub, Subtract;
    Mul, mul, Multiply;
    Div, div, Divide;
}

impl Neg for Angle {
    type Output = Self;
    fn neg(self) -> Self {
        self.apply(Function::Negative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        let (x, y) = (Angle::from(Parameter(0)), Angle::from(Parameter(1)));
        let sine = (2.0 * x.clone()).apply(Function::Sin);
        let expressions = [
            sine.clone() * y.clone(),
            sine / (y.clone() + 3.0),
            (x.clone() + 1.0).with(Operation::Power, y.clone()).apply(Function::Ln),
            (x.clone() * 0.3).apply(Function::Arcsin) - y.clone().apply(Function::Cos).apply(Function::Exp),
            (x.clone() * 0.3).apply(Function::Arccos).apply(Function::Tan),
            -(x.apply(Function::Arctan).apply(Function::Sqrt)) * y,
        ];
        for nodes in expressions {
            let at = [0.7, 1.3];
            for by in 0..2_u32 {
                let moved = |step: f64| {
                    let mut at = at;
                    at[by as usize] += step;
                    nodes.value(&at)
                };
                let expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                let (value, slope) = dual(&nodes.0, &at, Some(by));
                assert!((slope - expected).abs() < 1e-8, "{nodes:?} by {by}: {slope} and {expected}");
                assert_eq!(value, nodes.value(&at));
            }
        }
    }
}
