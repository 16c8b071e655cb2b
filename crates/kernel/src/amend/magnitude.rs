//! `abs` of an unsigned number: naga's GLSL takes the number for a signed one there. The greater of it and itself says the same.

use cantus_base::listed::Listed;
use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{Expression, Function, Handle, MathFunction, Module, ScalarKind};

/// Rewrites each of them.
pub(super) fn settle(module: &mut Module) {
    let functions: Vec<_> =
        module.functions.iter().map(|(handle, function)| (handle, found(module, function))).listed();
    let entries: Vec<_> = module.entry_points.iter().map(|entry| found(module, &entry.function)).listed();
    for (handle, found) in functions {
        rewrite(&mut module.functions[handle], found);
    }
    for (entry, found) in module.entry_points.iter_mut().zip(entries) {
        rewrite(&mut entry.function, found);
    }
}

/// Returns the calls of `abs` to replace in a function.
fn found(module: &Module, function: &Function) -> Vec<Handle<Expression>> {
    let is_abs = |expression: &Expression| matches!(expression, Expression::Math { fun: MathFunction::Abs, .. });
    if !function.expressions.iter().any(|(_, expression)| is_abs(expression)) {
        return Vec::new();
    }
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let unsigned = |(handle, expression): (Handle<Expression>, &Expression)| {
        // What has no type is for the validator to refuse.
        types.grow(handle, &function.expressions, &context).ok()?;
        (is_abs(expression) && types.get(handle, &module.types).scalar_kind() == Some(ScalarKind::Uint))
            .then_some(handle)
    };
    function.expressions.iter().filter_map(unsigned).listed()
}

fn rewrite(function: &mut Function, found: Vec<Handle<Expression>>) {
    for handle in found {
        if let Expression::Math { fun, arg, arg1, .. } = &mut function.expressions[handle] {
            (*fun, *arg1) = (MathFunction::Max, Some(*arg));
        }
    }
}
