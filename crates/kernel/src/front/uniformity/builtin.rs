//! The analysis's tables of builtin functions, builtin values and address spaces. The walk asks it for each call and builtin value. A new builtin of WGSL
//! needs a row here, or it counts as a function that requires nothing. Cooperative matrices are not WGSL's and require nothing.

use super::super::tree::{Decl, DeclKind, ExprId, ExprKind, Tree};
use super::Scope;

/// The requirements and the result of a call of a builtin function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    /// Uniform control flow makes uniform results of uniform arguments.
    Plain,
    /// A barrier of the workgroup.
    Barrier,
    SubgroupBarrier,
    /// `workgroupUniformLoad`.
    UniformLoad,
    /// Derivatives, and samples that need them.
    Derivative,
    /// `is_shared`: all invocations of the subgroup get the same; `parameter` must be uniform.
    Subgroup {
        is_shared: bool,
        parameter: Option<usize>,
    },
    Atomic,
    TextureLoad,
}

impl Builtin {
    pub(super) fn of(name: &str) -> Self {
        let subgroup = |is_shared, parameter| Self::Subgroup { is_shared, parameter };
        match name {
            "workgroupBarrier" | "storageBarrier" | "textureBarrier" => Self::Barrier,
            "subgroupBarrier" => Self::SubgroupBarrier,
            "workgroupUniformLoad" => Self::UniformLoad,
            "dpdx"
            | "dpdxCoarse"
            | "dpdxFine"
            | "dpdy"
            | "dpdyCoarse"
            | "dpdyFine"
            | "fwidth"
            | "fwidthCoarse"
            | "fwidthFine"
            | "textureSample"
            | "textureSampleBias"
            | "textureSampleCompare" => Self::Derivative,
            "textureLoad" => Self::TextureLoad,
            "subgroupAdd"
            | "subgroupAll"
            | "subgroupAnd"
            | "subgroupAny"
            | "subgroupBallot"
            | "subgroupBroadcast"
            | "subgroupBroadcastFirst"
            | "subgroupMax"
            | "subgroupMin"
            | "subgroupMul"
            | "subgroupOr"
            | "subgroupXor" => subgroup(true, None),
            "subgroupShuffleUp" | "subgroupShuffleDown" | "subgroupShuffleXor" => subgroup(false, Some(1)),
            _ if name.starts_with("atomic") => Self::Atomic,
            _ if name.starts_with("subgroup") || name.starts_with("quad") => subgroup(false, None),
            // Cooperative matrices are no WGSL: naga states no rule for them.
            _ => Self::Plain,
        }
    }
}

/// The scopes in which a text may have something to check.
pub(super) fn scopes(text: &str) -> impl Iterator<Item = Scope> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let workgroup = has(&["Barrier", "workgroupUniformLoad", "dpd", "fwidth", "textureSample"]);
    let subgroup = has(&["subgroup", "quad"]);
    [(workgroup, Scope::Workgroup), (subgroup, Scope::Subgroup)]
        .into_iter()
        .filter_map(|(is, scope)| is.then_some(scope))
}

/// Returns whether a builtin value is the same for all invocations of a scope.
pub(super) fn is_uniform_value(name: &str, scope: Scope) -> bool {
    match name {
        "workgroup_id" | "num_workgroups" | "subgroup_size" | "num_subgroups" => true,
        "subgroup_id" => scope == Scope::Subgroup,
        _ => false,
    }
}

/// The address space of a variable, or of the memory behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Function,
    /// Read-only: the same for all.
    Constant,
    /// Other invocations may write it, or each has its own.
    Shared,
}

fn space(space: Option<&str>, access: Option<&str>) -> Space {
    match (space, access) {
        (Some("function"), _) => Space::Function,
        (Some("private" | "workgroup"), _) | (Some("storage"), Some("read_write" | "write")) => Space::Shared,
        // Textures and samplers have none.
        _ => Space::Constant,
    }
}

fn name<'t>(tree: &Tree<'t>, id: Option<&ExprId>) -> Option<&'t str> {
    id.map(|&id| tree.expr(id).place.text(tree.text))
}

/// Returns the address space of a variable of the module.
pub(super) fn variable_space(tree: &Tree<'_>, decl: &Decl) -> Space {
    let templates = tree.list(decl.templates);
    space(name(tree, templates.first()), name(tree, templates.get(1)))
}

/// Returns the address space behind a parameter; `None` if it is not a pointer.
pub(super) fn pointed_space(tree: &Tree<'_>, decl: &Decl) -> Option<Space> {
    let mut ty = decl.ty?;
    // A chain of aliases is no longer than there are declarations.
    for _ in 0..=tree.decls.len() {
        let ExprKind::Name { name: written, templates, local } = tree.expr(ty).kind else { return None };
        match tree.named(written, local).map(|id| tree.decl(id)) {
            Some(alias) if alias.kind == DeclKind::Alias => ty = alias.ty?,
            None if written.text(tree.text) == "ptr" => {
                let templates = tree.list(templates);
                return Some(space(name(tree, templates.first()), name(tree, templates.get(2))));
            }
            _ => return None,
        }
    }
    None
}

/// Returns whether an input of an entry point is the same for all. A structure is so if all of its members are.
pub(super) fn is_uniform_input(tree: &Tree<'_>, decl: &Decl, scope: Scope) -> bool {
    let is = |place: super::super::tree::Place| is_uniform_value(place.text(tree.text), scope);
    if let Some(builtin) = decl.builtin {
        return is(builtin);
    }
    let mut ty = decl.ty;
    for _ in 0..=tree.decls.len() {
        let Some(ExprKind::Name { name, local, .. }) = ty.map(|ty| tree.expr(ty).kind) else { return false };
        let Some(found) = tree.named(name, local).map(|id| tree.decl(id)) else { return false };
        match found.kind {
            DeclKind::Alias => ty = found.ty,
            DeclKind::Struct(at) => {
                return tree.structs[at as usize].members.iter().all(|member| member.builtin.is_some_and(is));
            }
            _ => return false,
        }
    }
    false
}

/// A texture that can be written and read.
pub(super) fn is_written_texture(tree: &Tree<'_>, texture: ExprId) -> bool {
    let ty = tree.root(texture).and_then(|decl| tree.decl(decl).ty);
    let Some(ExprKind::Name { templates, .. }) = ty.map(|ty| tree.expr(ty).kind) else { return false };
    name(tree, tree.list(templates).last()) == Some("read_write")
}
