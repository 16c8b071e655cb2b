//! Vectors made of vectors, where all of it is constant or an override's. naga's evaluator takes the parts for components once the overrides are
//! known, and its SPIR-V has constant vectors with a vector among their components. Each is made of its components instead.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{Arena, Expression, Function, Handle, Literal, Module, Scalar, Span, TypeInner, VectorSize};

use super::inserted::{self, Insert};
use cantus_base::listed::Listed;

/// Rewrites each of them.
pub(super) fn settle(module: &mut Module) {
    of_module(module);
    inserted::settle(module, |module, function| {
        let sizes = found(module, &function.expressions, Some(function))?;
        Some(Flat { sizes, zeros: Vec::new() })
    });
}

/// For each expression that is a vector its size, and whether it is one to be flattened. Nothing where none is.
type Sizes = Vec<Option<(VectorSize, Scalar, bool)>>;

/// `function` is the one that the expressions belong to; otherwise they are the module's.
fn found(module: &Module, expressions: &Arena<Expression>, function: Option<&Function>) -> Option<Sizes> {
    let may_be = |expression: &Expression| match expression {
        Expression::Compose { ty, components } => match module.types[*ty].inner {
            TypeInner::Vector { size, .. } => components.len() < size as usize,
            _ => false,
        },
        _ => false,
    };
    let mut settled: Vec<bool> = Vec::with_capacity(expressions.len());
    let mut any = false;
    for (_, expression) in expressions.iter() {
        let is_settled = is_settled(expression, &settled);
        settled.push(is_settled);
        any |= is_settled && may_be(expression);
    }
    if !any {
        return None;
    }
    let (locals, arguments) = (Arena::new(), Vec::new());
    let context = match function {
        Some(function) => ResolveContext::with_locals(module, &function.local_variables, &function.arguments),
        None => ResolveContext::with_locals(module, &locals, &arguments),
    };
    let mut types = Typifier::new();
    let sizes = expressions.iter().map(|(handle, expression)| {
        // What has no type is for the validator to refuse.
        types.grow(handle, expressions, &context).ok()?;
        let flattened = settled[handle.index()] && may_be(expression);
        match *types.get(handle, &module.types) {
            TypeInner::Vector { size, scalar } => Some((size, scalar, flattened)),
            _ => None,
        }
    });
    Some(sizes.listed())
}

/// Returns whether an expression is known before a dispatch.
fn is_settled(expression: &Expression, settled: &[bool]) -> bool {
    let of = |handle: &Handle<Expression>| settled[handle.index()];
    match expression {
        Expression::Literal(_) | Expression::Constant(_) | Expression::Override(_) | Expression::ZeroValue(_) => true,
        Expression::Compose { components, .. } => components.iter().all(of),
        Expression::Splat { value, .. } => of(value),
        Expression::AccessIndex { base, .. } => of(base),
        Expression::Swizzle { vector, .. } => of(vector),
        Expression::Access { base, index } => of(base) && of(index),
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => of(expr),
        Expression::Binary { left, right, .. } => of(left) && of(right),
        Expression::Relational { argument, .. } => of(argument),
        Expression::Select { condition, accept, reject } => of(condition) && of(accept) && of(reject),
        Expression::Math { arg, arg1, arg2, arg3, .. } => of(arg) && [arg1, arg2, arg3].into_iter().flatten().all(of),
        _ => false,
    }
}

struct Flat {
    sizes: Sizes,
    zeros: Vec<(Scalar, Handle<Expression>)>,
}

impl Flat {
    fn zeros(sizes: &Sizes, expressions: &mut Arena<Expression>) -> Vec<(Scalar, Handle<Expression>)> {
        let mut zeros: Vec<(Scalar, Handle<Expression>)> = Vec::new();
        for (_, scalar, _) in sizes.iter().flatten() {
            if !zeros.iter().any(|(known, _)| known == scalar)
                && let Some(zero) = Literal::zero(*scalar)
            {
                zeros.push((*scalar, expressions.append(Expression::Literal(zero), Span::UNDEFINED)));
            }
        }
        zeros
    }

    /// The components of a vector among the expressions that are written already; `part` makes one that has no expression.
    fn components(
        &self,
        new: &mut Arena<Expression>,
        part: Handle<Expression>,
        (size, scalar): (VectorSize, Scalar),
        first: &mut Option<Handle<Expression>>,
        span: Span,
    ) -> Vec<Handle<Expression>> {
        let count = size as usize;
        match &new[part] {
            Expression::Compose { components, .. } if components.len() == count => components.clone(),
            Expression::Splat { value, .. } => vec![*value; count],
            Expression::ZeroValue(_) if let Some((_, zero)) = self.zeros.iter().find(|(known, _)| *known == scalar) => {
                vec![*zero; count]
            }
            _ => (0..count as u32)
                .map(|index| {
                    let made = new.append(Expression::AccessIndex { base: part, index }, span);
                    first.get_or_insert(made);
                    made
                })
                .listed(),
        }
    }
}

impl Insert for Flat {
    fn numbers(&mut self, expressions: &mut Arena<Expression>) {
        self.zeros = Self::zeros(&self.sizes, expressions);
    }

    fn before(
        &mut self,
        old: Handle<Expression>,
        own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>> {
        let (_, _, true) = self.sizes[old.index()]? else { return None };
        let (Expression::Compose { components: before, .. }, Expression::Compose { components, .. }) =
            (own, expression)
        else {
            return None;
        };
        let mut first = None;
        let parts = before.iter().zip(std::mem::take(components));
        *components = parts
            .flat_map(|(old, part)| match self.sizes[old.index()] {
                Some((size, scalar, _)) => self.components(new, part, (size, scalar), &mut first, span),
                None => vec![part],
            })
            .listed();
        first
    }
}

/// The module's own expressions: what constants, overrides and variables begin with.
fn of_module(module: &mut Module) {
    let Some(sizes) = found(module, &module.global_expressions, None) else { return };
    let old = std::mem::take(&mut module.global_expressions);
    let mut new = Arena::new();
    let zeros = Flat::zeros(&sizes, &mut new);
    let mut flat = Flat { sizes, zeros };
    let mut map: Vec<Handle<Expression>> = Vec::with_capacity(old.len());
    for (handle, own) in old.iter() {
        let span = old.get_span(handle);
        let mut expression = own.clone();
        // There are no others in the module's own.
        crate::flow::change_operands(&mut expression, &mut |operand| *operand = map[operand.index()]);
        // A name stands for its components as well.
        if let Expression::Constant(constant) = expression
            && flat.sizes[handle.index()].is_some()
            && let Some(&init) = map.get(module.constants[constant].init.index())
        {
            map.push(init);
            continue;
        }
        flat.before(handle, own, &mut expression, &mut new, span);
        map.push(new.append(expression, span));
    }
    let moved = |handle: &mut Handle<Expression>| *handle = map[handle.index()];
    module.constants.iter_mut().for_each(|(_, constant)| moved(&mut constant.init));
    module.overrides.iter_mut().filter_map(|(_, one)| one.init.as_mut()).for_each(moved);
    module.global_variables.iter_mut().filter_map(|(_, one)| one.init.as_mut()).for_each(moved);
    for entry in &mut module.entry_points {
        entry.workgroup_size_overrides.iter_mut().flatten().flatten().for_each(moved);
    }
    module.global_expressions = new;
}
