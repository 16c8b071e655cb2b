//! Subgroup builtins in workgroups of two and three dimensions, which naga 30 refuses (gfx-rs/wgpu#5555): the workgroup becomes a row of as many
//! invocations, and the ids of two and three dimensions are computed from the place in it. Which invocations share a subgroup is the device's choice
//! either way.

use super::edits::Edit;
use super::eval::Evaluator;
use super::features::{inserted, replaced};
use super::tree::{Decl, Function, Place, Tree};

const OF_SUBGROUPS: [&str; 4] = ["num_subgroups", "subgroup_id", "subgroup_invocation_id", "subgroup_size"];
const IDS: [&str; 2] = ["local_invocation_id", "global_invocation_id"];

/// The entry points that are laid out in a row, and their workgroups' sizes as written. None where ids come in structures, or where a side is
/// known at run time alone.
pub(super) fn entries<'t>(tree: &'t Tree<'_>) -> Vec<(&'t Function, [u32; 3])> {
    let members = tree.structs.iter().flat_map(|structure| &structure.members).filter_map(|member| member.builtin);
    let mut names = members.map(|place| place.text(tree.text));
    if names.any(|name| OF_SUBGROUPS.contains(&name) || IDS.contains(&name)) {
        return Vec::new();
    }
    let mut evaluator = Evaluator::new(tree);
    let mut found = Vec::new();
    for function in tree.functions.iter().filter(|function| function.is_entry) {
        let mut size = [1; 3];
        let written = tree.list(function.workgroup_size);
        let sides = size.iter_mut().zip(written).all(|(side, &id)| match evaluator.count(id) {
            Some(count) => {
                *side = count;
                true
            }
            None => false,
        });
        let has = |wanted: &dyn Fn(&str) -> bool| {
            parameters(tree, function).iter().any(|decl| builtin(tree, decl).is_some_and(wanted))
        };
        let is_flat = size[1] <= 1 && size[2] <= 1;
        if sides
            && !is_flat
            && has(&|name| OF_SUBGROUPS.contains(&name))
            && !has(&|name| name == "global_invocation_index")
        {
            found.push((function, size));
        }
    }
    found
}

pub(super) fn edits(tree: &Tree<'_>, edits: &mut Vec<Edit>) {
    for (function, [x, y, z]) in entries(tree) {
        let written = tree.list(function.workgroup_size);
        let (Some(&first), Some(&last)) = (written.first(), written.last()) else { continue };
        let whole = Place { start: tree.expr(first).place.start, end: tree.expr(last).place.end };
        edits.push(replaced(whole, format!("{}", u64::from(x) * u64::from(y) * u64::from(z))));
        let of = |wanted: &str| {
            let found = parameters(tree, function).iter().find(|decl| builtin(tree, decl) == Some(wanted));
            found.map(|decl| decl.name.text(tree.text))
        };
        // What the ids are computed from comes in the place of the first of them.
        let mut added = String::new();
        let mut value = |wanted: &str, ty: &str| {
            of(wanted).map_or_else(
                || {
                    added.push_str(&format!("@builtin({wanted}) cantus_{wanted}: {ty}, "));
                    format!("cantus_{wanted}")
                },
                str::to_owned,
            )
        };
        let ids: Vec<&Decl> = parameters(tree, function)
            .iter()
            .filter(|decl| builtin(tree, decl).is_some_and(|name| IDS.contains(&name)))
            .collect();
        if ids.is_empty() {
            continue;
        }
        let index = value("local_invocation_index", "u32");
        let place = format!("vec3<u32>({index} % {x}u, {index} / {x}u % {y}u, {index} / {}u)", x.saturating_mul(y));
        let mut computed = String::new();
        for decl in &ids {
            let name = decl.name.text(tree.text);
            if builtin(tree, decl) == Some("local_invocation_id") {
                computed.push_str(&format!(" let {name} = {place};"));
            } else {
                let group = value("workgroup_id", "vec3<u32>");
                computed.push_str(&format!(" let {name} = {group} * vec3<u32>({x}u, {y}u, {z}u) + {place};"));
            }
        }
        for (number, decl) in ids.iter().enumerate() {
            edits.push(replaced(decl.keyword, if number == 0 { added.clone() } else { String::new() }));
        }
        edits.push(inserted(tree.stmt(function.body).place.start + 1, computed));
    }
}

fn parameters<'t>(tree: &'t Tree<'_>, function: &Function) -> &'t [Decl] {
    let first = function.parameters.first as usize;
    tree.decls.get(first..first + function.parameters.count as usize).unwrap_or_default()
}

fn builtin<'t>(tree: &Tree<'t>, decl: &Decl) -> Option<&'t str> {
    decl.builtin.map(|place| place.text(tree.text))
}
