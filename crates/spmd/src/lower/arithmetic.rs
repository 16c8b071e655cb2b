//! Operators. `expression` calls it with scalars: vectors and matrices are taken apart before. A 16-bit float is computed as f32 and rounded (`narrow`)
//! after each operation. Shifts are masked, and division follows WGSL's rules for zero and overflow by the operation itself.

use std::rc::Rc;

use naga::{BinaryOperator, Expression, Handle};

use super::super::bytecode::{Compare, Convert, Float, Float2, Int, Int2, IntCompare, Op};
use super::builder::Operand;
use super::types::Ty;
use super::{Lowering, Result};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Rc<[Operand]>> {
        let kind = self.kind(left)?;
        let types = (self.types.plain(self.ty(left)?), self.types.plain(self.ty(right)?));
        let (a, b) = (self.scalars(left)?, self.scalars(right)?);
        if op == BinaryOperator::Multiply {
            match types {
                (Ty::Matrix(columns, rows, _), Ty::Matrix(others, ..)) => {
                    let mut results = Vec::new();
                    for column in 0..others as usize {
                        let vector = &b[column * columns as usize..(column + 1) * columns as usize];
                        results.extend(self.matrix_vector(kind, &a, vector, rows as usize));
                    }
                    return Ok(results.into());
                }
                (Ty::Matrix(_, rows, _), Ty::Vector(..)) => {
                    return Ok(self.matrix_vector(kind, &a, &b, rows as usize).into());
                }
                (Ty::Vector(..), Ty::Matrix(_, rows, _)) => {
                    let columns = b.chunks_exact(rows as usize);
                    return Ok(columns.map(|column| self.dot(kind, &a, column)).listed().into());
                }
                _ => {}
            }
        }
        let count = a.len().max(b.len());
        let pick = |operands: &[Operand], place: usize| operands[if operands.len() == 1 { 0 } else { place }];
        let mut results = Vec::with_capacity(count);
        for place in 0..count {
            results.push(self.operator(kind, op, pick(&a, place), pick(&b, place)));
        }
        Ok(results.into())
    }

    fn matrix_vector(&mut self, kind: Scalar, matrix: &[Operand], vector: &[Operand], rows: usize) -> Vec<Operand> {
        (0..rows)
            .map(|row| {
                let line: Vec<Operand> = matrix.iter().skip(row).step_by(rows).copied().listed();
                self.dot(kind, &line, vector)
            })
            .listed()
    }

    pub(super) fn dot(&mut self, kind: Scalar, a: &[Operand], b: &[Operand]) -> Operand {
        let mut sum = None;
        for (a, b) in a.iter().zip(b) {
            let product = self.arithmetic(kind, Float2::Mul, *a, *b);
            sum = Some(match sum {
                Some(sum) => self.arithmetic(kind, Float2::Add, sum, product),
                None => product,
            });
        }
        sum.unwrap_or(Operand::word(0))
    }

    fn operator(&mut self, kind: Scalar, op: BinaryOperator, a: Operand, b: Operand) -> Operand {
        match op {
            BinaryOperator::Add => self.arithmetic(kind, Float2::Add, a, b),
            BinaryOperator::Subtract => self.arithmetic(kind, Float2::Sub, a, b),
            BinaryOperator::Multiply => self.arithmetic(kind, Float2::Mul, a, b),
            BinaryOperator::Divide => self.arithmetic(kind, Float2::Div, a, b),
            BinaryOperator::Modulo => self.arithmetic(kind, Float2::Rem, a, b),
            BinaryOperator::Equal => self.compare(kind, Compare::Equal, a, b),
            BinaryOperator::NotEqual => self.compare(kind, Compare::NotEqual, a, b),
            BinaryOperator::Less => self.compare(kind, Compare::Less, a, b),
            BinaryOperator::LessEqual => self.compare(kind, Compare::LessEqual, a, b),
            BinaryOperator::Greater => self.compare(kind, Compare::Greater, a, b),
            BinaryOperator::GreaterEqual => self.compare(kind, Compare::GreaterEqual, a, b),
            BinaryOperator::And | BinaryOperator::LogicalAnd => self.int2(kind, Int2::And, a, b),
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => self.int2(kind, Int2::Or, a, b),
            BinaryOperator::ExclusiveOr => self.int2(kind, Int2::Xor, a, b),
            BinaryOperator::ShiftLeft => {
                let b = self.shift_amount(kind, b);
                self.int2(kind, Int2::ShiftLeft, a, b)
            }
            BinaryOperator::ShiftRight => {
                let b = self.shift_amount(kind, b);
                let op = if kind.is_signed() { Int2::ShiftRightSigned } else { Int2::ShiftRightUnsigned };
                self.int2(kind, op, a, b)
            }
        }
    }

    fn shift_amount(&mut self, kind: Scalar, amount: Operand) -> Operand {
        if matches!(kind, Scalar::I16 | Scalar::U16) { self.builder.and(amount, Operand::word(15)) } else { amount }
    }

    /// Arithmetic on any kind of number: named as for floats.
    pub(super) fn arithmetic(&mut self, kind: Scalar, op: Float2, a: Operand, b: Operand) -> Operand {
        match kind {
            Scalar::F32 => return self.builder.float2(op, a, b),
            Scalar::F64 => return self.builder.binary(Op::Double2(op), a, b),
            Scalar::F16 => {
                // Exact: f32 has more than twice the digits of f16.
                let wide = self.builder.float2(op, a, b);
                return self.narrow(kind, wide);
            }
            _ => {}
        }
        let signed = kind.is_signed();
        let op = match (op, signed) {
            (Float2::Sub, _) => Int2::Sub,
            (Float2::Mul, _) => Int2::Mul,
            (Float2::Div, true) => Int2::DivSigned,
            (Float2::Div, false) => Int2::DivUnsigned,
            (Float2::Rem, true) => Int2::RemSigned,
            (Float2::Rem, false) => Int2::RemUnsigned,
            (Float2::Min, true) => Int2::MinSigned,
            (Float2::Min, false) => Int2::MinUnsigned,
            (Float2::Max, true) => Int2::MaxSigned,
            (Float2::Max, false) => Int2::MaxUnsigned,
            _ => Int2::Add,
        };
        self.int2(kind, op, a, b)
    }

    pub(super) fn int2(&mut self, kind: Scalar, op: Int2, a: Operand, b: Operand) -> Operand {
        let result = self.builder.binary(if kind.is_wide() { Op::Wide2(op) } else { Op::Int2(op) }, a, b);
        self.narrow(kind, result)
    }

    pub(super) fn int1(&mut self, kind: Scalar, op: Int, a: Operand) -> Operand {
        let result = self.builder.unary(if kind.is_wide() { Op::Wide(op) } else { Op::Int(op) }, a);
        self.narrow(kind, result)
    }

    /// Brings a result of a wider computation back to its kind.
    pub(super) fn narrow(&mut self, kind: Scalar, value: Operand) -> Operand {
        match kind {
            Scalar::F16 => self.builder.float(Float::RoundHalf, value),
            Scalar::I16 => self.builder.convert(Convert::SignExtend16, value),
            Scalar::U16 => self.builder.convert(Convert::ZeroExtend16, value),
            _ => value,
        }
    }

    pub(super) fn compare(&mut self, kind: Scalar, op: Compare, a: Operand, b: Operand) -> Operand {
        match kind {
            Scalar::F32 | Scalar::F16 => return self.builder.float_compare(op, a, b),
            Scalar::F64 => return self.builder.binary(Op::DoubleCompare(op), a, b),
            _ => {}
        }
        let signed = kind.is_signed();
        let (op, a, b) = match op {
            Compare::Equal => (IntCompare::Equal, a, b),
            Compare::NotEqual => (IntCompare::NotEqual, a, b),
            Compare::Less if signed => (IntCompare::LessSigned, a, b),
            Compare::Less => (IntCompare::LessUnsigned, a, b),
            Compare::LessEqual if signed => (IntCompare::LessEqualSigned, a, b),
            Compare::LessEqual => (IntCompare::LessEqualUnsigned, a, b),
            Compare::Greater if signed => (IntCompare::LessSigned, b, a),
            Compare::Greater => (IntCompare::LessUnsigned, b, a),
            Compare::GreaterEqual if signed => (IntCompare::LessEqualSigned, b, a),
            Compare::GreaterEqual => (IntCompare::LessEqualUnsigned, b, a),
        };
        self.builder.binary(if kind.is_wide() { Op::WideCompare(op) } else { Op::IntCompare(op) }, a, b)
    }

    /// One float operation, rounded to its kind.
    pub(super) fn float1(&mut self, kind: Scalar, op: Float, a: Operand) -> Operand {
        if kind == Scalar::F64 {
            return self.builder.unary(Op::Double(op), a);
        }
        let result = self.builder.float(op, a);
        self.narrow(kind, result)
    }

    /// A float constant of the kind.
    pub(super) fn real(&self, kind: Scalar, value: f64) -> Operand {
        match kind {
            Scalar::F64 => Operand::wide(value.to_bits()),
            Scalar::F16 => Operand::float(half::f16::from_f64(value).to_f32()),
            _ => Operand::float(value as f32),
        }
    }
}
