//! Entry points that naga accepts: a built-in value that comes twice, a workgroup's size of `i32` and `u32`, and operations that a stage has not. Functions
//! that an entry point reaches are of its stage.

use super::eval::value::Ty;
use super::infer::Inference;
use super::misuse;
use super::rewrite::builtin;
use super::tree::{Decl, DeclId, DeclKind, ExprKind, Function, Place, Tree};
use super::uniformity::function_called;

/// Returns the first of them, and what is wrong.
pub(super) fn fault(tree: &Tree<'_>) -> Option<(Place, String)> {
    tree.functions.iter().enumerate().filter(|(_, function)| function.is_entry).find_map(|(number, function)| {
        twice(tree, function).or_else(|| size(tree, function)).or_else(|| of_other_stages(tree, number, function))
    })
}

/// Returns by number which functions these reach, with themselves.
pub(super) fn reached(tree: &Tree<'_>, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut known = vec![false; tree.functions.len()];
    let mut left: Vec<usize> = from.into_iter().collect();
    while let Some(at) = left.pop() {
        let (Some(is_known), Some(function)) = (known.get_mut(at), tree.functions.get(at)) else { continue };
        if std::mem::replace(is_known, true) {
            continue;
        }
        let calls = (function.exprs.0..function.exprs.1).filter_map(|id| match tree.expr(id).kind {
            ExprKind::Call { callee, .. } => function_called(tree, callee),
            _ => None,
        });
        left.extend(calls.map(|number| number as usize));
    }
    known
}

/// A built-in value that an entry point takes twice, or gives twice.
fn twice(tree: &Tree<'_>, function: &Function) -> Option<(Place, String)> {
    let first = function.parameters.first;
    let mut inputs: Vec<Place> = Vec::new();
    for decl in (first..first + function.parameters.count).map(|id: DeclId| tree.decl(id)) {
        inputs.extend(decl.builtin);
        inputs.extend(of_members(tree, decl));
    }
    let result = tree.module.get(function.name.text(tree.text)).map(|&id| of_members(tree, tree.decl(id)));
    [inputs, result.unwrap_or_default()].into_iter().find_map(|values| {
        let text = |place: Place| place.text(tree.text);
        let same = |at: usize, place: Place| values.iter().take(at).any(|&other| text(other) == text(place));
        let (_, &place) = values.iter().enumerate().find(|&(at, &place)| same(at, place))?;
        Some((place, format!("a second `@builtin({})` of one entry point", text(place))))
    })
}

/// The built-in values among the members of the structure that a declaration's type is.
fn of_members(tree: &Tree<'_>, decl: &Decl) -> Vec<Place> {
    let structure = decl.ty.and_then(|mut ty| {
        // An alias refers to another declaration: naga refuses what goes round.
        for _ in 0..=tree.decls.len() {
            let ExprKind::Name { name, local, .. } = tree.expr(ty).kind else { return None };
            match tree.decl(tree.named(name, local)?) {
                Decl { kind: DeclKind::Alias, ty: Some(other), .. } => ty = *other,
                Decl { kind: DeclKind::Struct(number), .. } => return tree.structs.get(*number as usize),
                _ => return None,
            }
        }
        None
    });
    structure.into_iter().flat_map(|structure| &structure.members).filter_map(|member| member.builtin).collect()
}

/// The sides of a workgroup are of one type.
fn size(tree: &Tree<'_>, function: &Function) -> Option<(Place, String)> {
    let mut inference = Inference::new(tree);
    let mut known: Option<Ty> = None;
    tree.list(function.workgroup_size).iter().find_map(|&side| {
        let (ty, _) = inference.vector(side).filter(|(ty, _)| matches!(ty, Ty::I32 | Ty::U32))?;
        let first = *known.get_or_insert(ty);
        let reason = || format!("the sides of @workgroup_size are of one type, not {} and {}", first.word(), ty.word());
        (first != ty).then(|| (tree.expr(side).place, reason()))
    })
}

/// An operation or a variable of other stages that a vertex or a fragment stage reaches.
fn of_other_stages(tree: &Tree<'_>, number: usize, function: &Function) -> Option<(Place, String)> {
    if function.is_compute
        || !["atomic", "workgroup", "write", "subgroup", "quad"].iter().any(|word| tree.text.contains(word))
    {
        return None;
    }
    let reached = reached(tree, [number]);
    let functions = tree.functions.iter().zip(reached).filter(|(_, is_reached)| *is_reached);
    functions.flat_map(|(function, _)| function.exprs.0..function.exprs.1).find_map(|id| {
        let reason = match tree.expr(id).kind {
            ExprKind::Call { callee, .. } if function.is_vertex => {
                let is_other = |name: &str| ["atomic", "subgroup", "quad"].iter().any(|start| name.starts_with(start));
                let name = builtin(tree, callee).filter(|name| is_other(name))?;
                format!("`{name}` is for compute and fragment stages, and a vertex stage reaches it")
            }
            ExprKind::Name { name, local: None, .. } => {
                let decl = tree.decl(tree.named(name, None)?);
                let is_written = |(ty, parts): (&str, Vec<&str>)| {
                    ty.starts_with("texture_storage") && matches!(parts.get(1), Some(&("write" | "read_write")))
                };
                match misuse::variable(tree, decl)?.as_slice() {
                    ["workgroup", ..] => "workgroup memory is for compute stages".to_owned(),
                    ["storage", "read_write"] if function.is_vertex => "a vertex stage only reads".to_owned(),
                    [] if function.is_vertex && misuse::of_type(tree, decl).is_some_and(is_written) => {
                        "a vertex stage only reads".to_owned()
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some((tree.expr(id).place, reason))
    })
}
