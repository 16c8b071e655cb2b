//! Pointers, textures and samplers of another type than a function declares. naga compares them when it validates, but the passes before copy functions for
//! what they get, and then nothing is left to compare.

use naga::proc::{ResolveContext, TypeResolution};
use naga::{Arena, Block, Function, Module, Span, Statement, TypeInner};

use crate::flow::blocks;

/// The first such argument of a call, and what is wrong.
pub(crate) fn mismatch(module: &Module) -> Option<(Span, String)> {
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    let mut functions = module.functions.iter().map(|(_, function)| function).chain(entries);
    functions
        .find_map(|function| in_block(module, function, &types(module, &module.functions, function)?, &function.body))
}

/// The types of a function's expressions, if naga knows them all.
pub(super) fn types(module: &Module, functions: &Arena<Function>, function: &Function) -> Option<Vec<TypeResolution>> {
    let context = ResolveContext {
        constants: &module.constants,
        overrides: &module.overrides,
        types: &module.types,
        special_types: &module.special_types,
        global_vars: &module.global_variables,
        local_vars: &function.local_variables,
        functions,
        arguments: &function.arguments,
    };
    let mut types: Vec<TypeResolution> = Vec::with_capacity(function.expressions.len());
    for (_, expression) in function.expressions.iter() {
        let ty = context.resolve(expression, |handle| Ok(&types[handle.index()])).ok()?;
        types.push(ty);
    }
    Some(types)
}

fn in_block(module: &Module, function: &Function, types: &[TypeResolution], block: &Block) -> Option<(Span, String)> {
    block.iter().find_map(|statement| match statement {
        Statement::Call { function: callee, arguments, .. } => {
            let callee = &module.functions[*callee];
            callee.arguments.iter().zip(arguments).enumerate().find_map(|(at, (declared, &argument))| {
                let given = types.get(argument.index())?;
                let is_same = given.handle() == Some(declared.ty)
                    || is_like(given.inner_with(&module.types), &module.types[declared.ty].inner, module);
                let name = callee.name.as_deref().unwrap_or("the function");
                let reason = || format!("argument {} of `{name}` has another type than the function declares", at + 1);
                (!is_same).then(|| (function.expressions.get_span(argument), reason()))
            })
        }
        statement => blocks(statement).into_iter().find_map(|inner| in_block(module, function, types, inner)),
    })
}

/// Returns whether two types are one, where they are none of values: those are naga's to compare.
fn is_like(given: &TypeInner, declared: &TypeInner, module: &Module) -> bool {
    use TypeInner::{Image, Pointer, Sampler, ValuePointer};
    match declared {
        Pointer { .. } | ValuePointer { .. } | Image { .. } | Sampler { .. } => {
            !matches!(given, TypeInner::Struct { .. }) && given.non_struct_equivalent(declared, &module.types)
        }
        _ => true,
    }
}
