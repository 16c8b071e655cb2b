//! Shifts by a number that is known at run time only, or is out of range by a `let`. WGSL takes the rest of its division by the width; naga writes
//! it as it is, for which SPIR-V and GLSL have no result.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{Arena, BinaryOperator, Expression, Function, Handle, Literal, Module, Span, TypeInner, VectorSize};

use super::inserted::{self, Insert};
use cantus_base::listed::Listed;

/// A shift that may be by its width or more.
#[derive(Clone, Copy)]
struct Found {
    /// Vector size of the shifted value.
    size: Option<VectorSize>,
    bits: u8,
}

/// Returns whether there is one.
#[cfg(feature = "vulkan")]
pub(super) fn are_in(module: &Module) -> bool {
    let mut functions = module.functions.iter().map(|(_, function)| function);
    let mut entries = module.entry_points.iter().map(|entry| &entry.function);
    let any = |function: &Function| !found(module, function).is_empty();
    functions.any(any) || entries.any(any)
}

/// Masks the number of each of them.
#[doc(hidden)]
pub fn settle(module: &mut Module) {
    inserted::settle(module, |module, function| {
        let found = found(module, function);
        (!found.is_empty()).then_some(Masked { found, masks: Vec::new() })
    });
}

struct Masked {
    found: Vec<Option<Found>>,
    /// Masks for 16, 32 and 64 bits.
    masks: Vec<Handle<Expression>>,
}

impl Insert for Masked {
    fn numbers(&mut self, expressions: &mut Arena<Expression>) {
        let mask = |mask| expressions.append(Expression::Literal(Literal::U32(mask)), Span::UNDEFINED);
        self.masks = [15, 31, 63].map(mask).into();
    }

    fn before(
        &mut self,
        old: Handle<Expression>,
        _own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>> {
        let Found { size, bits } = self.found[old.index()]?;
        let Expression::Binary { right: by, .. } = expression else { return None };
        let mask = self.masks[usize::from(bits / 32)];
        let splat = size.map(|size| new.append(Expression::Splat { size, value: mask }, span));
        let rest = Expression::Binary { op: BinaryOperator::And, left: *by, right: splat.unwrap_or(mask) };
        *by = new.append(rest, span);
        splat.or(Some(*by))
    }
}

fn found(module: &Module, function: &Function) -> Vec<Option<Found>> {
    let shift = |expression: &Expression| match *expression {
        Expression::Binary { op: BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight, left, right } => {
            Some((left, right))
        }
        _ => None,
    };
    let expressions = &function.expressions;
    if !expressions.iter().any(|(_, one)| shift(one).is_some_and(|(_, by)| !below(module, expressions, by, 16))) {
        return Vec::new();
    }
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let one = |(handle, expression): (Handle<Expression>, &Expression)| {
        // What has no type is for the validator to refuse.
        types.grow(handle, expressions, &context).ok()?;
        let (left, by) = shift(expression)?;
        let (size, scalar) = match *types.get(left, &module.types) {
            TypeInner::Scalar(scalar) => (None, scalar),
            TypeInner::Vector { size, scalar } => (Some(size), scalar),
            _ => return None,
        };
        let bits = match scalar.width {
            2 | 4 | 8 => scalar.width * 8,
            _ => return None,
        };
        (!below(module, expressions, by, bits.into())).then_some(Found { size, bits })
    };
    let all: Vec<_> = expressions.iter().map(one).listed();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

/// Returns whether a number is seen to be below `bits`.
fn below(module: &Module, expressions: &Arena<Expression>, by: Handle<Expression>, bits: u32) -> bool {
    match &expressions[by] {
        Expression::Literal(Literal::U32(by)) => *by < bits,
        Expression::ZeroValue(_) => true,
        Expression::Constant(constant) => {
            below(module, &module.global_expressions, module.constants[*constant].init, bits)
        }
        Expression::Splat { value, .. } => below(module, expressions, *value, bits),
        Expression::Compose { components, .. } => {
            components.iter().all(|component| below(module, expressions, *component, bits))
        }
        Expression::Binary { op: BinaryOperator::And, left, right } => {
            below(module, expressions, *left, bits) || below(module, expressions, *right, bits)
        }
        Expression::Binary { op: BinaryOperator::Modulo, right, .. } => {
            matches!(&expressions[*right], Expression::Literal(Literal::U32(by)) if (1..=bits).contains(by))
        }
        _ => false,
    }
}
