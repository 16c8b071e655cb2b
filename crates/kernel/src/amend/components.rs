//! Components of vectors in buffers by an index. wgpu leaves the bounds of buffers to the driver, which keeps an access within the buffer, not
//! within the vector: llvmpipe folds an index that it knows into no component at all. The last component takes what is beyond it.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    AddressSpace, Arena, Expression, Function, Handle, Literal, MathFunction, Module, ScalarKind, Span, TypeInner,
    VectorSize,
};

use super::inserted::{self, Insert};
use cantus_base::listed::Listed;

/// An access to a component by an index that is no constant.
struct Found {
    size: VectorSize,
    signed: bool,
}

/// Bounds each of them.
#[doc(hidden)]
pub fn settle(module: &mut Module) {
    inserted::settle(module, |module, function| {
        let found = found(module, function);
        (!found.is_empty()).then_some(Bounded { found, last: Vec::new() })
    });
}

struct Bounded {
    found: Vec<Option<Found>>,
    /// The last component of two, of three and of four.
    last: Vec<Handle<Expression>>,
}

impl Insert for Bounded {
    fn numbers(&mut self, expressions: &mut Arena<Expression>) {
        let last = (1..4).map(|last| expressions.append(Expression::Literal(Literal::U32(last)), Span::UNDEFINED));
        self.last = last.listed();
    }

    fn before(
        &mut self,
        old: Handle<Expression>,
        _own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>> {
        let Found { size, signed } = self.found[old.index()].as_ref()?;
        let Expression::Access { index, .. } = expression else { return None };
        let mut begins = None;
        if *signed {
            let word = Expression::As { expr: *index, kind: ScalarKind::Uint, convert: None };
            *index = new.append(word, span);
            begins = Some(*index);
        }
        let last = Some(self.last[*size as usize - VectorSize::Bi as usize]);
        let bounded = Expression::Math { fun: MathFunction::Min, arg: *index, arg1: last, arg2: None, arg3: None };
        *index = new.append(bounded, span);
        begins.or(Some(*index))
    }
}

fn found(module: &Module, function: &Function) -> Vec<Option<Found>> {
    let is_access = |expression: &Expression| matches!(expression, Expression::Access { .. });
    if !function.expressions.iter().any(|(_, expression)| is_access(expression)) {
        return Vec::new();
    }
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let all: Vec<Option<Found>> = function
        .expressions
        .iter()
        .map(|(handle, expression)| {
            // What has no type is for the validator to refuse.
            types.grow(handle, &function.expressions, &context).ok()?;
            let Expression::Access { base, index } = expression else { return None };
            let (space, size) = match *types.get(*base, &module.types) {
                TypeInner::Pointer { base, space } => match module.types[base].inner {
                    TypeInner::Vector { size, .. } => (space, size),
                    _ => return None,
                },
                TypeInner::ValuePointer { size: Some(size), space, .. } => (space, size),
                _ => return None,
            };
            let in_buffer = matches!(space, AddressSpace::Storage { .. } | AddressSpace::Uniform);
            let signed = types.get(*index, &module.types).scalar_kind() == Some(ScalarKind::Sint);
            in_buffer.then_some(Found { size, signed })
        })
        .listed();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}
