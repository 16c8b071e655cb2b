//! Constant vectors made of vectors. naga keeps the parts as they are, and then takes a part for a component: it picks the wrong one, refuses the
//! text, or panics. Such a vector is written with its components.

use super::edits::Edit;
use super::eval::Evaluator;
use super::tree::{DeclKind, ExprId, ExprKind, List, Operator, Place, Tree};

/// Longer texts are not written.
const LONGEST: usize = 1 << 12;
/// Deeper expressions are not looked at.
const DEEPEST: u32 = 100;

/// Edits of the constant vectors that have vectors among their arguments.
pub(super) fn edits(tree: &Tree<'_>, constants: &[bool], follows_let: bool) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut evaluator = Evaluator::new(tree);
    evaluator.follows_let = follows_let;
    for (id, expr) in (0_u32..).zip(&tree.exprs) {
        let ExprKind::Call { callee, arguments, .. } = expr.kind else { continue };
        // As many arguments as components: all are scalars. A single argument is a conversion or a splat. Neither needs an edit.
        let is_short = |size: usize| (2..size).contains(&(arguments.count as usize));
        if !constants[id as usize] || !vector_size(tree, callee, 0).is_some_and(is_short) {
            continue;
        }
        let text = match evaluator.value(id).and_then(|value| value.text()) {
            Some(text) => Some(text),
            None => by_components(tree, callee, arguments, &edits),
        };
        if let Some(text) = text {
            edits.push(Edit { start: expr.place.start, end: expr.place.end, text });
        }
    }
    edits
}

/// The constructor with `.x`, `.y` and so on of each argument that is a vector: for values that are not known here.
fn by_components(tree: &Tree<'_>, callee: ExprId, arguments: List, edits: &[Edit]) -> Option<String> {
    let mut parts = Vec::new();
    for &argument in tree.list(arguments) {
        let text = edited(tree, tree.expr(argument).place, edits)?;
        match components(tree, argument, 0)? {
            1 => parts.push(text),
            count => parts.extend(["x", "y", "z", "w"].iter().take(count).map(|name| format!("({text}).{name}"))),
        }
    }
    let text = format!("{}({})", tree.expr(callee).place.text(tree.text), parts.join(", "));
    (text.len() <= LONGEST).then_some(text)
}

/// A part of the text with the edits in it; those of what contains others come after theirs.
fn edited(tree: &Tree<'_>, place: Place, edits: &[Edit]) -> Option<String> {
    let mut text = String::new();
    let mut end = place.end;
    for edit in edits.iter().rev().filter(|edit| place.start <= edit.start && edit.end <= place.end) {
        if edit.end <= end {
            text.insert_str(0, tree.text.get(edit.end as usize..end as usize)?);
            text.insert_str(0, &edit.text);
            end = edit.start;
        }
        if text.len() > LONGEST {
            return None;
        }
    }
    text.insert_str(0, tree.text.get(place.start as usize..end as usize)?);
    Some(text)
}

/// The number of components of the vector type that a name stands for.
fn vector_size(tree: &Tree<'_>, id: ExprId, depth: u32) -> Option<usize> {
    let ExprKind::Name { name, local, .. } = tree.expr(id).kind else { return None };
    match tree.named(name, local).map(|decl| tree.decl(decl)) {
        Some(decl) if decl.kind == DeclKind::Alias && depth < DEEPEST => vector_size(tree, decl.ty?, depth + 1),
        Some(_) => None,
        None => match name.text(tree.text).strip_prefix("vec")?.as_bytes() {
            [size @ b'2'..=b'4'] | [size @ b'2'..=b'4', b'f' | b'h' | b'i' | b'u'] => Some(usize::from(size - b'0')),
            _ => None,
        },
    }
}

/// The number of components of a scalar or vector, as far as the text shows it.
fn components(tree: &Tree<'_>, id: ExprId, depth: u32) -> Option<usize> {
    if depth > DEEPEST {
        return None;
    }
    let of = |id: ExprId| components(tree, id, depth + 1);
    match tree.expr(id).kind {
        ExprKind::Literal => Some(1),
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => of(inner),
        ExprKind::Binary(Operator::Multiply, left, right) => Some(of(left)?.max(of(right)?)),
        ExprKind::Binary(_, left, right) => of(left).or_else(|| of(right)),
        ExprKind::Name { name, local, .. } => {
            let decl = tree.decl(tree.named(name, local)?);
            match (decl.ty, decl.init) {
                (Some(ty), _) => written(tree, ty),
                (None, init) => of(init?),
            }
        }
        ExprKind::Call { callee, arguments, .. } => written(tree, callee).or_else(|| match tree.list(arguments) {
            // Functions of components: one argument gives the number.
            [one] => of(*one),
            _ => None,
        }),
        ExprKind::Member(base, member) => {
            let name = member.text(tree.text);
            match of_struct(tree, base) {
                Some(members) => {
                    let found = members.iter().find(|member| member.name.text(tree.text) == name)?;
                    written(tree, found.ty)
                }
                None => of(base).map(|_| name.len()),
            }
        }
        ExprKind::Index(base, _) => (of(base)? > 1).then_some(1),
    }
}

/// The number of components of a written type.
fn written(tree: &Tree<'_>, ty: ExprId) -> Option<usize> {
    let ExprKind::Name { name, local, .. } = tree.expr(ty).kind else { return None };
    let is_scalar = ["bool", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"]
        .contains(&name.text(tree.text))
        && tree.named(name, local).is_none();
    if is_scalar { Some(1) } else { vector_size(tree, ty, 0) }
}

/// The members of the structure that a constant is.
fn of_struct<'t>(tree: &'t Tree<'_>, mut id: ExprId) -> Option<&'t [super::tree::Member]> {
    for _ in 0..DEEPEST {
        match tree.expr(id).kind {
            ExprKind::Paren(inner) => id = inner,
            ExprKind::Call { callee, .. } => id = callee,
            ExprKind::Name { name, local, .. } => {
                let decl = tree.decl(tree.named(name, local)?);
                match decl.kind {
                    DeclKind::Struct(number) => return tree.structs.get(number as usize).map(|s| s.members.as_slice()),
                    _ => id = decl.ty.or(decl.init)?,
                }
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::edits;
    use cantus_base::listed::Listed;

    #[test]
    fn vectors_of_vectors_are_written_with_their_components() {
        for (expression, written) in [
            ("vec3f(vec2f(), 3.0)", Some("vec3<f32>(0e0f, 0e0f, 3e0f)")),
            ("vec4(vec2(1), vec2(2, 3))", Some("vec4(1, 1, 2, 3)")),
            ("V(vec3i(vec2i(1, 2), 3), 4)", Some("vec4<i32>(1i, 2i, 3i, 4i)")),
            ("vec4f(1.0, vec2f(), 2.0)", Some("vec4<f32>(1e0f, 0e0f, 0e0f, 2e0f)")),
            ("vec3<f64>(W, 1.0lf)", Some("vec3<f64>((W).x, (W).y, 1.0lf)")),
            (
                "vec3f(S(vec2f(1.0), 2.0).v, 1.0)",
                Some("vec3f((S(vec2f(1.0), 2.0).v).x, (S(vec2f(1.0), 2.0).v).y, 1.0)"),
            ),
            ("vec3f(1.0)", None),
            ("vec3f(1.0, 2.0, 3.0)", None),
            ("vec3f(vec2f(run), 3.0)", None),
        ] {
            let text = format!(
                "struct S {{ v: vec2f, s: f32 }}\nalias V = vec4<i32>;\nconst W = vec2<f64>();\nvar<private> run: f32;\n\
                 fn f() {{ let c = {expression}; }}"
            );
            let tree = parse(&text).unwrap();
            let constants = tree.constants();
            let found = edits(&tree, &constants, false).into_iter().map(|edit| edit.text).listed();
            assert_eq!(found.last().map(String::as_str), written, "{expression}");
        }
    }
}
