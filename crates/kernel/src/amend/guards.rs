//! Guards for GLSL, which naga writes without: division and remainder of whole numbers, conversions of floats to them, and indices. WGSL says what
//! each of them gives; GLSL leaves it undefined, with negative operands of `%` as well.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    Arena, ArraySize, BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Scalar, ScalarKind,
    Span, TypeInner, VectorSize,
};

use super::inserted::{self, Insert};
use cantus_base::listed::Listed;

/// Writes each of them with its guard.
#[doc(hidden)]
pub fn settle(module: &mut Module) {
    inserted::settle(module, |module, function| {
        let found = found(module, function);
        found.iter().any(Option::is_some).then(|| Guarded { found, literals: Vec::new() })
    });
}

/// An operation that needs a guard.
#[derive(Clone, Copy)]
enum Found {
    /// A quotient or a remainder of such numbers.
    Quotient { scalar: Scalar, size: Option<VectorSize> },
    /// A float that becomes a whole number between these.
    Conversion { least: Literal, most: Literal, size: Option<VectorSize> },
    /// An index, and the number of parts; `None` if the array's length is known at run time only.
    Index { count: Option<u32>, is_signed: bool },
    /// An index that is written as a number, into an array whose length is known at run time only.
    Fixed(u32),
}

impl Found {
    /// The numbers that its guard is made of.
    fn literals(self) -> Vec<Literal> {
        match self {
            Self::Quotient { scalar, .. } => {
                [0, 1, -1].into_iter().filter_map(|value| whole(scalar, value)).chain(least(scalar)).listed()
            }
            Self::Conversion { least, most, .. } => vec![least, most],
            Self::Index { count: Some(count), .. } => vec![Literal::U32(count.saturating_sub(1))],
            Self::Index { count: None, .. } => vec![Literal::U32(1)],
            Self::Fixed(index) => vec![Literal::U32(index), Literal::U32(1)],
        }
    }
}

fn whole(scalar: Scalar, value: i8) -> Option<Literal> {
    Some(match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 2) => Literal::I16(value.into()),
        (ScalarKind::Sint, 4) => Literal::I32(value.into()),
        (ScalarKind::Sint, 8) => Literal::I64(value.into()),
        (ScalarKind::Uint, 2) => Literal::U16(u8::try_from(value).ok()?.into()),
        (ScalarKind::Uint, 4) => Literal::U32(u8::try_from(value).ok()?.into()),
        (ScalarKind::Uint, 8) => Literal::U64(u8::try_from(value).ok()?.into()),
        _ => return None,
    })
}

/// The least signed number.
fn least(scalar: Scalar) -> Option<Literal> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 2) => Some(Literal::I16(i16::MIN)),
        (ScalarKind::Sint, 4) => Some(Literal::I32(i32::MIN)),
        (ScalarKind::Sint, 8) => Some(Literal::I64(i64::MIN)),
        _ => None,
    }
}

/// The least and the greatest float of that width that lie within the range of a whole number's type.
fn range(width: u8, kind: ScalarKind, target: u8) -> Option<(Literal, Literal)> {
    let bits = u32::from(target) * 8;
    let (least, bits) = match kind {
        ScalarKind::Sint => (-(2.0_f64.powi(bits as i32 - 1)), bits - 1),
        ScalarKind::Uint => (0.0, bits),
        _ => return None,
    };
    // All digits of the float's significand are set, or all of the number's.
    let most = |digits: u32| 2.0_f64.powi(bits as i32) - 2.0_f64.powi(bits.saturating_sub(digits) as i32);
    match width {
        4 => Some((Literal::F32(least as f32), Literal::F32(most(24) as f32))),
        8 => Some((Literal::F64(least), Literal::F64(most(53)))),
        _ => None,
    }
}

fn found(module: &Module, function: &Function) -> Vec<Option<Found>> {
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let parts = |ty: &TypeInner| match *ty {
        TypeInner::Vector { size, .. } | TypeInner::ValuePointer { size: Some(size), .. } => Some(Some(size as u32)),
        TypeInner::Matrix { columns, .. } => Some(Some(columns as u32)),
        TypeInner::Array { size: ArraySize::Constant(count), .. } => Some(Some(count.get())),
        TypeInner::Array { size: ArraySize::Dynamic, .. } => Some(None),
        _ => None,
    };
    let one = |(handle, expression): (Handle<Expression>, &Expression)| {
        // What has no type is for the validator to refuse.
        types.grow(handle, &function.expressions, &context).ok()?;
        let pointed = |base: Handle<Expression>| match *types.get(base, &module.types) {
            TypeInner::Pointer { base, .. } => parts(&module.types[base].inner),
            ref inner => parts(inner),
        };
        match *expression {
            Expression::Binary { op: BinaryOperator::Divide | BinaryOperator::Modulo, .. } => {
                let (size, scalar) = types.get(handle, &module.types).vector_size_and_scalar()?;
                whole(scalar, 1)?;
                Some(Found::Quotient { scalar, size })
            }
            Expression::As { expr, kind, convert: Some(target) } => {
                let (size, scalar) = types.get(expr, &module.types).vector_size_and_scalar()?;
                if scalar.kind != ScalarKind::Float {
                    return None;
                }
                let (least, most) = range(scalar.width, kind, target)?;
                Some(Found::Conversion { least, most, size })
            }
            Expression::Access { base, index } => {
                let is_signed = types.get(index, &module.types).scalar_kind() == Some(ScalarKind::Sint);
                Some(Found::Index { count: pointed(base)?, is_signed })
            }
            // The first element is there: no smaller buffer is bound.
            Expression::AccessIndex { base, index } if index > 0 && pointed(base) == Some(None) => {
                Some(Found::Fixed(index))
            }
            _ => None,
        }
    };
    function.expressions.iter().map(one).listed()
}

struct Guarded {
    found: Vec<Option<Found>>,
    literals: Vec<(Literal, Handle<Expression>)>,
}

/// The expressions that are inserted before one, and the first of them.
struct Made<'a> {
    new: &'a mut Arena<Expression>,
    literals: &'a [(Literal, Handle<Expression>)],
    span: Span,
    first: Option<Handle<Expression>>,
}

impl Made<'_> {
    fn add(&mut self, expression: Expression) -> Handle<Expression> {
        let made = self.new.append(expression, self.span);
        self.first.get_or_insert(made);
        made
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        self.add(Expression::Binary { op, left, right })
    }

    fn math(&mut self, fun: MathFunction, arg: Handle<Expression>, arg1: Handle<Expression>) -> Handle<Expression> {
        self.add(Expression::Math { fun, arg, arg1: Some(arg1), arg2: None, arg3: None })
    }

    fn literal(&self, literal: Literal) -> Option<Handle<Expression>> {
        self.literals.iter().find(|(known, _)| *known == literal).map(|(_, handle)| *handle)
    }

    /// A number in each component.
    fn number(&mut self, literal: Literal, size: Option<VectorSize>) -> Option<Handle<Expression>> {
        let value = self.literal(literal)?;
        Some(size.map_or(value, |size| self.add(Expression::Splat { size, value })))
    }

    /// Replaces the divisor by 1 if it is 0, or if it is -1 and the quotient overflows. WGSL defines the result of both as that of dividing by 1.
    fn divisor(
        &mut self,
        (scalar, size): (Scalar, Option<VectorSize>),
        dividend: Handle<Expression>,
        divisor: Handle<Expression>,
    ) -> Option<Handle<Expression>> {
        let one = self.number(whole(scalar, 1)?, size)?;
        let Some(least) = least(scalar) else { return Some(self.math(MathFunction::Max, divisor, one)) };
        let (zero, minus, least) =
            (self.number(whole(scalar, 0)?, size)?, self.number(whole(scalar, -1)?, size)?, self.number(least, size)?);
        let is_zero = self.binary(BinaryOperator::Equal, divisor, zero);
        let is_minus = self.binary(BinaryOperator::Equal, divisor, minus);
        let is_least = self.binary(BinaryOperator::Equal, dividend, least);
        let overflows = self.binary(BinaryOperator::And, is_least, is_minus);
        let condition = self.binary(BinaryOperator::InclusiveOr, is_zero, overflows);
        Some(self.add(Expression::Select { condition, accept: one, reject: divisor }))
    }

    /// An index no greater than the last.
    fn bounded(
        &mut self,
        base: Handle<Expression>,
        index: Handle<Expression>,
        count: Option<u32>,
    ) -> Option<Handle<Expression>> {
        let last = match count {
            Some(count) => self.literal(Literal::U32(count.saturating_sub(1)))?,
            None => {
                let length = self.add(Expression::ArrayLength(base));
                let one = self.literal(Literal::U32(1))?;
                self.binary(BinaryOperator::Subtract, length, one)
            }
        };
        Some(self.math(MathFunction::Min, index, last))
    }
}

impl Insert for Guarded {
    fn numbers(&mut self, expressions: &mut Arena<Expression>) {
        for literal in self.found.iter().flatten().flat_map(|found| found.literals()) {
            if !self.literals.iter().any(|(known, _)| *known == literal) {
                let handle = expressions.append(Expression::Literal(literal), Span::UNDEFINED);
                self.literals.push((literal, handle));
            }
        }
    }

    fn before(
        &mut self,
        old: Handle<Expression>,
        _own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>> {
        let found = self.found[old.index()]?;
        let mut made = Made { new, literals: &self.literals, span, first: None };
        match (found, &mut *expression) {
            (Found::Quotient { scalar, size }, Expression::Binary { op, left, right }) => {
                let divisor = made.divisor((scalar, size), *left, *right)?;
                if *op == BinaryOperator::Modulo {
                    let quotient = made.binary(BinaryOperator::Divide, *left, divisor);
                    *right = made.binary(BinaryOperator::Multiply, quotient, divisor);
                    *op = BinaryOperator::Subtract;
                } else {
                    *right = divisor;
                }
            }
            (Found::Conversion { least, most, size }, Expression::As { expr, .. }) => {
                let (least, most) = (made.number(least, size)?, made.number(most, size)?);
                let raised = made.math(MathFunction::Max, *expr, least);
                *expr = made.math(MathFunction::Min, raised, most);
            }
            (Found::Index { count, is_signed }, Expression::Access { base, index }) => {
                if is_signed {
                    *index = made.add(Expression::As { expr: *index, kind: ScalarKind::Uint, convert: None });
                }
                *index = made.bounded(*base, *index, count)?;
            }
            (Found::Fixed(fixed), Expression::AccessIndex { base, .. }) => {
                let (base, index) = (*base, made.literal(Literal::U32(fixed))?);
                let index = made.bounded(base, index, None)?;
                *expression = Expression::Access { base, index };
            }
            _ => {}
        }
        made.first
    }
}

#[cfg(test)]
mod tests {
    use super::range;
    use naga::{Literal, ScalarKind};

    #[test]
    fn the_greatest_floats_within_a_type() {
        for (width, kind, target, least, most) in [
            (4, ScalarKind::Sint, 4, Literal::F32(-2_147_483_648.0), Literal::F32(2_147_483_520.0)),
            (4, ScalarKind::Uint, 4, Literal::F32(0.0), Literal::F32(4_294_967_040.0)),
            (8, ScalarKind::Sint, 4, Literal::F64(-2_147_483_648.0), Literal::F64(2_147_483_647.0)),
            (4, ScalarKind::Sint, 2, Literal::F32(-32768.0), Literal::F32(32767.0)),
            (
                4,
                ScalarKind::Sint,
                8,
                Literal::F32(-9_223_372_036_854_775_808.0),
                Literal::F32(9_223_371_487_098_961_920.0),
            ),
        ] {
            assert_eq!(range(width, kind, target), Some((least, most)), "{width} to {target}");
        }
    }
}
