//! Features of the language that naga 30 lacks, in terms of what it has. `rewrite::wrong` and `rewrite::all` add its edits. Each is local: a swizzle that
//! is assigned to becomes a variable and single writes, a linear index is computed at the entry point's beginning. A language feature that is only accepted
//! needs no more than a word in the list.

use std::collections::HashSet;

use super::edits::Edit;
use super::infer::Inference;
use super::rewrite::builtin;
use super::tree::{DeclKind, ExprId, ExprKind, Function, Place, Stmt, StmtKind, Tree};

/// Language extensions that work here, by themselves or by a rewriting.
pub(super) const EXTENSIONS: [&str; 12] = [
    "readonly_and_readwrite_storage_textures",
    "packed_4x8_integer_dot_product",
    "unrestricted_pointer_parameters",
    "pointer_composite_access",
    "uniform_buffer_standard_layout",
    "subgroup_id",
    "texture_and_sampler_let",
    "subgroup_uniformity",
    "texture_formats_tier1",
    "linear_indexing",
    "immediate_address_space",
    "swizzle_assignment",
];

pub(super) fn edits(tree: &Tree<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for function in tree.functions.iter().filter(|function| function.is_entry) {
        linear_indices(tree, function, &mut edits);
    }
    super::flat::edits(tree, &mut edits);
    swizzles(tree, &mut edits);
    for (id, expr) in (0_u32..).zip(&tree.exprs) {
        // The elected invocation is the first active one: an exclusive sum of ones is 0 there alone.
        if matches!(expr.kind, ExprKind::Call { callee, .. } if builtin(tree, callee) == Some("subgroupElect")) {
            edits.push(replaced(tree.expr(id).place, "(subgroupExclusiveAdd(1u) == 0u)".to_owned()));
        }
    }
    edits
}

pub(super) fn inserted(at: u32, text: String) -> Edit {
    Edit { start: at, end: at, text }
}

pub(super) fn replaced(place: Place, text: String) -> Edit {
    Edit { start: place.start, end: place.end, text }
}

const LINEAR: [&str; 2] = ["workgroup_index", "global_invocation_index"];

/// A linear index that is a member of a structure; parameters are rewritten.
pub(super) fn linear_member(tree: &Tree<'_>) -> Option<Place> {
    let builtins = tree.structs.iter().flat_map(|structure| &structure.members).filter_map(|member| member.builtin);
    builtins.into_iter().find(|place| LINEAR.contains(&place.text(tree.text)))
}

/// `workgroup_index` and `global_invocation_index` are computed at the beginning from the builtin values that they are made of.
fn linear_indices(tree: &Tree<'_>, function: &Function, edits: &mut Vec<Edit>) {
    let range = function.parameters.first as usize..(function.parameters.first + function.parameters.count) as usize;
    let parameters = &tree.decls[range];
    let of = |wanted: &str| {
        let found = parameters.iter().find(|decl| decl.builtin.is_some_and(|name| name.text(tree.text) == wanted));
        found.map(|decl| decl.name.text(tree.text).to_owned())
    };
    let mut added: Vec<&str> = Vec::new();
    let mut computed = String::new();
    for decl in parameters {
        let Some(which) = decl.builtin.map(|name| name.text(tree.text)).filter(|name| LINEAR.contains(name)) else {
            continue;
        };
        let mut parts = String::new();
        let mut value = |wanted: &'static str| {
            of(wanted).unwrap_or_else(|| {
                if !added.contains(&wanted) {
                    added.push(wanted);
                    parts.push_str(&format!("@builtin({wanted}) cantus_{wanted}: vec3<u32>, "));
                }
                format!("cantus_{wanted}")
            })
        };
        let count = value("num_workgroups");
        let index = if which == "workgroup_index" {
            let id = value("workgroup_id");
            format!("{id}.x + ({id}.y + {id}.z * {count}.y) * {count}.x")
        } else {
            let id = value("global_invocation_id");
            let size = |axis: usize| {
                let written = tree.list(function.workgroup_size).get(axis);
                written.map_or("1", |&size| tree.expr(size).place.text(tree.text)).to_owned()
            };
            let (x, y) = (size(0), size(1));
            format!("{id}.x + ({id}.y + {id}.z * (u32({y}) * {count}.y)) * (u32({x}) * {count}.x)")
        };
        edits.push(replaced(decl.keyword, parts));
        computed.push_str(&format!(" let {} = {index};", decl.name.text(tree.text)));
    }
    if !computed.is_empty() {
        edits.push(inserted(tree.stmt(function.body).place.start + 1, computed));
    }
}

/// `v.zx = e` and `v.zx += e` become a variable of those components, which are then written one by one.
fn swizzles(tree: &Tree<'_>, edits: &mut Vec<Edit>) {
    let mut inference = Inference::new(tree);
    // The head of a loop admits no block.
    let heads: HashSet<u32> = tree.stmts.iter().flat_map(head).collect();
    for (id, stmt) in (0_u32..).zip(&tree.stmts) {
        let StmtKind::Assign { target, value: Some(_), .. } = stmt.kind else { continue };
        let Some((base, name)) = member(tree, target) else { continue };
        let letters = name.text(tree.text);
        let is_swizzle = (2..=4).contains(&letters.len()) && letters.bytes().all(|byte| b"xyzwrgba".contains(&byte));
        if !is_swizzle || heads.contains(&id) || inference.vector(base).is_none() {
            continue;
        }
        let (outer, place) = (tree.expr(target).place, tree.expr(base).place);
        let address = if is_pointer(tree, base) { "" } else { "&" };
        edits.push(inserted(outer.start, format!("{{ let cantus_place = {address}(")));
        let rest = Place { start: place.end, end: outer.end };
        edits.push(replaced(rest, format!("); var cantus_part = (*cantus_place).{letters}; cantus_part")));
        let parts = letters.char_indices().map(|(at, letter)| {
            format!(" (*cantus_place).{letter} = cantus_part.{};", ["x", "y", "z", "w"][at.min(3)])
        });
        edits.push(inserted(stmt.place.end, format!("{} }}", parts.collect::<String>())));
    }
}

fn head(stmt: &Stmt) -> impl Iterator<Item = u32> + use<> {
    let parts = match stmt.kind {
        StmtKind::Loop { first, continuing, .. } => [first, continuing],
        _ => [None, None],
    };
    parts.into_iter().flatten()
}

fn member(tree: &Tree<'_>, id: ExprId) -> Option<(ExprId, Place)> {
    match tree.expr(id).kind {
        ExprKind::Member(base, name) => Some((base, name)),
        _ => None,
    }
}

/// Returns whether an expression is a pointer, as far as its form shows it.
fn is_pointer(tree: &Tree<'_>, mut id: ExprId) -> bool {
    // A name refers to an earlier declaration, so this ends.
    loop {
        match tree.expr(id).kind {
            ExprKind::Paren(inner) => id = inner,
            ExprKind::Unary(b'&', _) => return true,
            ExprKind::Name { name, local, .. } => match tree.named(name, local).map(|decl| tree.decl(decl)) {
                Some(decl) if decl.kind == DeclKind::Parameter => {
                    return super::uniformity::is_pointer_parameter(tree, decl);
                }
                Some(decl) if decl.kind == DeclKind::Let => match decl.init {
                    Some(init) => id = init,
                    None => return false,
                },
                _ => return false,
            },
            _ => return false,
        }
    }
}
