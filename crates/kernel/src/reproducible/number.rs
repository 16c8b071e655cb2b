//! Arithmetic and comparisons of float32 whose bits no device can change. `body` and `builtin` compose everything of these. `guarded` passes a rounded
//! result through an exclusive or with a word that is zero, so no compiler can fuse it with the next operation. Small numbers are flushed on both sides of
//! an operation, so it does not matter what the device does with them.

use naga::{BinaryOperator as Op, Expression, Handle, Literal, Scalar, ScalarKind, UnaryOperator, VectorSize};

use super::body::{Body, Form};
use super::{Outcome, refuse};
use cantus_base::listed::Listed;

type Value = Handle<Expression>;

const MAGNITUDE: u32 = 0x7fff_ffff;
/// The bits of the smallest normal number.
const SMALLEST: u32 = 0x0080_0000;
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;

impl Form {
    fn rows(self) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Vector(size) | Self::Matrix(_, size) => size as usize,
        }
    }

    /// The form of a matrix's columns.
    fn column(self) -> Self {
        match self {
            Self::Matrix(_, rows) => Self::Vector(rows),
            other => other,
        }
    }
}

impl Body<'_, '_> {
    /// A literal in the form of a number.
    pub(super) fn splat(&mut self, literal: Literal, form: Form) -> Value {
        let value = self.literal(literal);
        self.spread(value, form)
    }

    /// A scalar in the form of a scalar or vector.
    fn spread(&mut self, value: Value, form: Form) -> Value {
        match form {
            Form::Vector(size) => self.emit(Expression::Splat { size, value }),
            Form::Scalar | Form::Matrix(..) => value,
        }
    }

    fn operate(&mut self, op: Op, left: Value, right: Value) -> Value {
        self.emit(Expression::Binary { op, left, right })
    }

    fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.emit(Expression::Select { condition, accept, reject })
    }

    fn bits(&mut self, value: Value) -> Value {
        self.emit(Expression::As { expr: value, kind: ScalarKind::Uint, convert: None })
    }

    fn number(&mut self, bits: Value) -> Value {
        self.emit(Expression::As { expr: bits, kind: ScalarKind::Float, convert: None })
    }

    fn magnitude(&mut self, bits: Value, form: Form) -> Value {
        let mask = self.splat(Literal::U32(MAGNITUDE), form);
        self.operate(Op::And, bits, mask)
    }

    /// Bits with zero for what is not larger than the smallest normal number.
    fn without_small(&mut self, bits: Value, form: Form) -> Value {
        let magnitude = self.magnitude(bits, form);
        let smallest = self.splat(Literal::U32(SMALLEST), form);
        let small = self.operate(Op::LessEqual, magnitude, smallest);
        let zero = self.splat(Literal::U32(0), form);
        self.select(small, zero, bits)
    }

    /// Each column of a matrix, or the value itself.
    fn by_columns(&mut self, value: Value, form: Form, change: impl Fn(&mut Self, Value, Form) -> Value) -> Value {
        let Form::Matrix(columns, rows) = form else { return change(self, value, form) };
        let changed = (0..columns as u32)
            .map(|index| {
                let column = self.emit(Expression::AccessIndex { base: value, index });
                change(self, column, Form::Vector(rows))
            })
            .listed();
        self.matrix_of(columns, rows, changed)
    }

    /// A number from outside: zero where it is small.
    pub(super) fn flushed(&mut self, value: Value, form: Form) -> Value {
        self.by_columns(value, form, |body, value, form| {
            let bits = body.bits(value);
            let kept = body.without_small(bits, form);
            body.number(kept)
        })
    }

    /// A number that was just rounded: its bits pass where no compiler can follow.
    fn guarded(&mut self, value: Value, form: Form) -> Value {
        let mut bits = self.bits(value);
        if let Some(word) = self.zero {
            let word = self.spread(word, form);
            bits = self.operate(Op::ExclusiveOr, bits, word);
        }
        let kept = self.without_small(bits, form);
        self.number(kept)
    }

    /// A number whose bits are about to be seen: NaN in one form.
    pub(super) fn settled(&mut self, value: Value, form: Form) -> Value {
        self.by_columns(value, form, |body, value, form| {
            let bits = body.bits(value);
            let kept = body.settled_bits(bits, form);
            body.number(kept)
        })
    }

    fn settled_bits(&mut self, bits: Value, form: Form) -> Value {
        let magnitude = self.magnitude(bits, form);
        let infinity = self.splat(Literal::U32(INFINITY), form);
        let is_nan = self.operate(Op::Greater, magnitude, infinity);
        let nan = self.splat(Literal::U32(NAN), form);
        self.select(is_nan, nan, bits)
    }

    /// The bits of a number of the kernel.
    pub(super) fn seen_bits(&mut self, value: Value, form: Form) -> Value {
        let bits = self.bits(value);
        self.settled_bits(bits, form)
    }

    pub(super) fn negated(&mut self, value: Value, form: Form) -> Value {
        self.by_columns(value, form, |body, value, form| {
            let negative = body.emit(Expression::Unary { op: UnaryOperator::Negate, expr: value });
            body.flushed(negative, form)
        })
    }

    /// A sum, difference or product of two numbers of one form.
    pub(super) fn rounded(&mut self, op: Op, left: Value, right: Value, form: Form) -> Value {
        let result = self.operate(op, left, right);
        self.guarded(result, form)
    }

    /// A comparison, which NaN fails unless it is for difference.
    pub(super) fn compared(&mut self, op: Op, left: Value, right: Value, form: Form) -> Value {
        let result = self.operate(op, left, right);
        let ordered = |body: &mut Self, value| {
            let bits = body.bits(value);
            let magnitude = body.magnitude(bits, form);
            let infinity = body.splat(Literal::U32(INFINITY), form);
            body.operate(Op::LessEqual, magnitude, infinity)
        };
        let (left, right) = (ordered(self, left), ordered(self, right));
        let both = self.operate(Op::And, left, right);
        if op == Op::NotEqual {
            let unordered = self.emit(Expression::Unary { op: UnaryOperator::LogicalNot, expr: both });
            return self.operate(Op::InclusiveOr, result, unordered);
        }
        self.operate(Op::And, result, both)
    }

    /// The second where it is less than the first (`Op::Less`) or the first less than it (`Op::Greater`).
    pub(super) fn extreme(&mut self, op: Op, first: Value, second: Value, form: Form) -> Value {
        let beyond = self.compared(op, second, first, form);
        self.select(beyond, second, first)
    }

    /// One component of a vector, or the scalar itself.
    pub(super) fn component(&mut self, value: Value, form: Option<Form>, index: u32) -> Value {
        match form {
            Some(Form::Vector(_)) => self.emit(Expression::AccessIndex { base: value, index }),
            _ => value,
        }
    }

    /// A function of the library for each component.
    pub(super) fn each(&mut self, name: &str, values: &[(Value, Option<Form>)], form: Form) -> Outcome<Value> {
        self.each_as(name, values, form.rows(), Scalar::F32)
    }

    pub(super) fn each_as(
        &mut self,
        name: &str,
        values: &[(Value, Option<Form>)],
        count: usize,
        scalar: Scalar,
    ) -> Outcome<Value> {
        let mut results = Vec::with_capacity(count);
        for index in (0..).take(count) {
            let arguments = values.iter().map(|&(value, form)| self.component(value, form, index)).listed();
            results.push(self.call(name, arguments)?);
        }
        Ok(self.vector_of(scalar, results))
    }

    /// The sum of the products of two vectors' components, from the first to the last.
    pub(super) fn dot(&mut self, left: Value, right: Value, form: Form) -> Value {
        let products = self.rounded(Op::Multiply, left, right, form);
        self.total(products, form)
    }

    fn total(&mut self, values: Value, form: Form) -> Value {
        let mut sum = self.component(values, Some(form), 0);
        for index in (1..).take(form.rows().saturating_sub(1)) {
            let next = self.component(values, Some(form), index);
            sum = self.rounded(Op::Add, sum, next, Form::Scalar);
        }
        sum
    }

    /// The columns of a matrix.
    pub(super) fn columns(&mut self, value: Value, count: VectorSize) -> Vec<Value> {
        (0..count as u32).map(|index| self.emit(Expression::AccessIndex { base: value, index })).listed()
    }

    /// A matrix times a vector: its columns times the vector's components, from the first to the last.
    fn combination(&mut self, columns: &[Value], vector: Value, rows: VectorSize) -> Value {
        let form = Form::Vector(rows);
        let mut sum = None;
        for (index, &column) in (0..).zip(columns) {
            let factor = self.emit(Expression::AccessIndex { base: vector, index });
            let factor = self.spread(factor, form);
            let product = self.rounded(Op::Multiply, column, factor, form);
            sum = Some(match sum {
                Some(sum) => self.rounded(Op::Add, sum, product, form),
                None => product,
            });
        }
        sum.unwrap_or(vector)
    }

    pub(super) fn binary(&mut self, old: Value, op: Op, left: Value, right: Value) -> Outcome<Option<Value>> {
        let (Some(left_form), Some(right_form)) = (self.form(left), self.form(right)) else { return self.copied(old) };
        let (a, b) = (self.get(left)?, self.get(right)?);
        let matrix = |form| matches!(form, Form::Matrix(..));
        let form = if left_form == Form::Scalar { right_form } else { left_form };
        let result = match op {
            Op::Multiply if matrix(left_form) || matrix(right_form) => self.product(a, left_form, b, right_form)?,
            Op::Add | Op::Subtract if matrix(form) => {
                let Form::Matrix(columns, rows) = form else { return self.copied(old) };
                let (left, right) = (self.columns(a, columns), self.columns(b, columns));
                let pairs = left.into_iter().zip(right);
                let sums = pairs.map(|(a, b)| self.rounded(op, a, b, form.column())).listed();
                self.matrix_of(columns, rows, sums)
            }
            Op::Add | Op::Subtract | Op::Multiply => {
                let (a, b) = self.alike(a, left_form, b, right_form);
                self.rounded(op, a, b, form)
            }
            Op::Divide | Op::Modulo => {
                let name = if op == Op::Divide { "divide" } else { "float_rest" };
                self.each(name, &[(a, Some(left_form)), (b, Some(right_form))], form)?
            }
            Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual if !matrix(form) => {
                self.compared(op, a, b, form)
            }
            _ => return refuse("an operator that floats do not have", self.span),
        };
        Ok(Some(result))
    }

    /// Both as vectors, where one is.
    fn alike(&mut self, a: Value, a_form: Form, b: Value, b_form: Form) -> (Value, Value) {
        match (a_form, b_form) {
            (Form::Scalar, Form::Vector(_)) => (self.spread(a, b_form), b),
            (Form::Vector(_), Form::Scalar) => (a, self.spread(b, a_form)),
            _ => (a, b),
        }
    }

    fn product(&mut self, a: Value, a_form: Form, b: Value, b_form: Form) -> Outcome<Value> {
        let scaled = |body: &mut Self, matrix, columns, rows, factor| {
            let factor = body.spread(factor, Form::Vector(rows));
            let parts = body.columns(matrix, columns);
            let parts = parts.into_iter().map(|part| body.rounded(Op::Multiply, part, factor, Form::Vector(rows)));
            let parts = parts.listed();
            body.matrix_of(columns, rows, parts)
        };
        Ok(match (a_form, b_form) {
            (Form::Matrix(columns, rows), Form::Scalar) => scaled(self, a, columns, rows, b),
            (Form::Scalar, Form::Matrix(columns, rows)) => scaled(self, b, columns, rows, a),
            (Form::Matrix(columns, rows), Form::Vector(_)) => {
                let columns = self.columns(a, columns);
                self.combination(&columns, b, rows)
            }
            (Form::Vector(_), Form::Matrix(columns, rows)) => {
                let columns = self.columns(b, columns);
                let sums = columns.into_iter().map(|column| self.dot(a, column, Form::Vector(rows))).listed();
                self.vector_of(Scalar::F32, sums)
            }
            (Form::Matrix(inner, rows), Form::Matrix(columns, _)) => {
                let left = self.columns(a, inner);
                let right = self.columns(b, columns);
                let sums = right.into_iter().map(|column| self.combination(&left, column, rows)).listed();
                self.matrix_of(columns, rows, sums)
            }
            _ => return refuse("a product of two forms that WGSL does not have", self.span),
        })
    }
}
