//! Variables and functions used where they may not be, reported with their names and a remedy. naga's own messages show its module.

use super::rewrite::builtin;
use super::tree::{Decl, DeclKind, ExprKind, Function, Place, StmtKind, Tree};
use super::uniformity::function_called;

/// Returns the first of them, and what is wrong.
pub(super) fn fault(tree: &Tree<'_>) -> Option<(Place, String)> {
    address_space(tree)
        .or_else(|| pointer(tree))
        .or_else(|| store(tree))
        .or_else(|| texture_store(tree))
        .or_else(|| for_pixels(tree))
}

/// The variable of the module that a declaration is, with the words in its angle brackets.
pub(super) fn variable<'t>(tree: &Tree<'t>, decl: &Decl) -> Option<Vec<&'t str>> {
    let name = decl.name.text(tree.text);
    let is_module =
        decl.kind == DeclKind::Var && tree.module.get(name).is_some_and(|&id| tree.decl(id).name == decl.name);
    let text = |&id: &u32| tree.expr(id).place.text(tree.text);
    is_module.then(|| tree.list(decl.templates).iter().map(text).collect())
}

/// The word of a type, and the texts of what is in its angle brackets.
pub(super) fn of_type<'t>(tree: &Tree<'t>, decl: &Decl) -> Option<(&'t str, Vec<&'t str>)> {
    let ExprKind::Name { name, templates, .. } = tree.expr(decl.ty?).kind else { return None };
    let text = |&id: &u32| tree.expr(id).place.text(tree.text);
    Some((name.text(tree.text), tree.list(templates).iter().map(text).collect()))
}

/// A texture or a sampler with an address space.
fn address_space(tree: &Tree<'_>) -> Option<(Place, String)> {
    tree.decls.iter().find_map(|decl| {
        let space = variable(tree, decl)?;
        let (ty, _) = of_type(tree, decl)?;
        let is_handle = ty.starts_with("texture_") || ty == "sampler" || ty == "sampler_comparison";
        let name = decl.name.text(tree.text);
        let reason = || format!("a {ty} takes no address space: write `var {name}: …`");
        (is_handle && !space.is_empty()).then(|| (decl.name, reason()))
    })
}

/// A type of pointers that no memory has: to storage that is only written, and to atomics in memory of one invocation or in a uniform.
fn pointer(tree: &Tree<'_>) -> Option<(Place, String)> {
    tree.exprs.iter().find_map(|expr| {
        let ExprKind::Name { name, templates, local } = expr.kind else { return None };
        if name.text(tree.text) != "ptr" || tree.named(name, local).is_some() {
            return None;
        }
        let [space, ty, access @ ..] = tree.list(templates) else { return None };
        let word = |id: u32| tree.expr(id).place.text(tree.text);
        let reason = match (word(*space), access) {
            ("storage", [access]) if word(*access) == "write" => {
                "storage is `read` or `read_write`: `write` is for textures alone".to_owned()
            }
            ("storage", access)
                if word(*ty).starts_with("atomic") && access.first().is_none_or(|&of| word(of) == "read") =>
            {
                "atomics are in storage that may be written: `ptr<storage, …, read_write>`".to_owned()
            }
            (space @ ("function" | "private" | "uniform"), _) if word(*ty).starts_with("atomic") => {
                let where_to = if space == "uniform" { "a uniform" } else { "memory of one invocation" };
                format!("atomics are in storage and workgroup memory, not in {where_to} (`ptr<{space}, …>`)")
            }
            _ => return None,
        };
        Some((expr.place, reason))
    })
}

/// A store to what is only read.
fn store(tree: &Tree<'_>) -> Option<(Place, String)> {
    tree.stmts.iter().find_map(|stmt| {
        let StmtKind::Assign { target, .. } = stmt.kind else { return None };
        let decl = tree.decl(tree.root(target)?);
        let name = decl.name.text(tree.text);
        let reason = match variable(tree, decl)?.as_slice() {
            ["storage"] | ["storage", "read"] => {
                format!("`{name}` is only read: declare it `var<storage, read_write> {name}` to store to it")
            }
            ["uniform"] => format!("`{name}` is a uniform, which is only read: store to a `var<storage, read_write>`"),
            _ => return None,
        };
        Some((tree.expr(target).place, reason))
    })
}

/// `textureStore` to a texture that takes no stores.
fn texture_store(tree: &Tree<'_>) -> Option<(Place, String)> {
    tree.exprs.iter().find_map(|expr| {
        let ExprKind::Call { callee, arguments, .. } = expr.kind else { return None };
        if builtin(tree, callee) != Some("textureStore") {
            return None;
        }
        let texture = *tree.list(arguments).first()?;
        let decl = tree.decl(tree.root(texture)?);
        let name = decl.name.text(tree.text);
        let reason = match of_type(tree, decl)? {
            (ty, parts) if ty.starts_with("texture_storage") && parts.get(1) == Some(&"read") => {
                let format = parts.first()?;
                format!("`{name}` is only read: declare it as `{ty}<{format}, write>` to store to it")
            }
            (ty, _) if ty.starts_with("texture_") && !ty.starts_with("texture_storage") => {
                format!("`{name}` is a {ty}, which is only read: textureStore takes a `texture_storage_2d<rgba8unorm, write>` or the like")
            }
            _ => return None,
        };
        Some((tree.expr(texture).place, reason))
    })
}

/// Finds operations of fragment stages in the functions that a compute entry point reaches.
fn for_pixels(tree: &Tree<'_>) -> Option<(Place, String)> {
    const DERIVATIVES: [&str; 9] =
        ["dpdx", "dpdxCoarse", "dpdxFine", "dpdy", "dpdyCoarse", "dpdyFine", "fwidth", "fwidthCoarse", "fwidthFine"];
    let mut open: Vec<&Function> = tree.functions.iter().filter(|function| function.is_compute).collect();
    let mut is_known = vec![false; tree.functions.len()];
    while let Some(function) = open.pop() {
        let discard = (function.first_stmt..=function.body)
            .map(|id| tree.stmt(id))
            .find(|stmt| matches!(stmt.kind, StmtKind::Empty) && stmt.place.text(tree.text).starts_with("discard"));
        if let Some(stmt) = discard {
            return Some((stmt.place, "`discard` is for fragment stages: a compute kernel returns instead".to_owned()));
        }
        for id in function.exprs.0..function.exprs.1 {
            let ExprKind::Call { callee, .. } = tree.expr(id).kind else { continue };
            if let Some(name) = builtin(tree, callee).filter(|name| DERIVATIVES.contains(name)) {
                let reason = format!("`{name}` is for fragment stages: a compute kernel has no neighbouring pixels");
                return Some((tree.expr(id).place, reason));
            }
            if let Some(number) = function_called(tree, callee)
                && let Some(known) = is_known.get_mut(number as usize)
                && !std::mem::replace(known, true)
            {
                open.push(&tree.functions[number as usize]);
            }
        }
    }
    None
}
