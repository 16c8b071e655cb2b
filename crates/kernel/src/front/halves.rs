//! Defects of naga with `f16`: bitcasts, for which it takes the operand's width, and `frexp`, whose exponents it takes for 16-bit integers.
//! Packing and unpacking, and `frexp` of `f32`, say the same and are right.

use super::edits::Edit;
use super::eval::Evaluator;
use super::eval::value::Ty;
use super::infer::Inference;
use super::rewrite::{builtin, numbered, replaced};
use super::tree::{ExprKind, Place, Tree};

/// Helpers, put behind the text where they are needed. The names must be free.
const TO_FOUR: (&str, &str) = (
    "cantus_halves_of_words",
    "(v: vec2<u32>) -> vec4<f16> { return vec4<f16>(vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y))); }",
);
const FROM_FOUR: (&str, &str) = (
    "cantus_words_of_halves",
    "(v: vec4<f16>) -> vec2<u32> { let w = vec4<f32>(v); return vec2<u32>(pack2x16float(w.xy), pack2x16float(w.zw)); }",
);

/// Results of `frexp`, by the number of components.
fn frexp(size: usize) -> (String, String) {
    let name = format!("cantus_frexp_{size}");
    let of = |ty: &str| if size == 1 { ty.to_owned() } else { format!("vec{size}<{ty}>") };
    let (half, single, whole) = (of("f16"), of("f32"), of("i32"));
    let helper = format!(
        "\nstruct {name}_result {{ fract: {half}, exp: {whole} }}\nfn {name}(v: {half}) -> {name}_result {{ let r = frexp({single}(v)); return {name}_result({half}(r.fract), r.exp); }}"
    );
    (name, helper)
}

/// Edits of the calls whose operand's type is known; the others are left, and naga or a later check refuses them.
pub(super) fn calls(tree: &Tree<'_>) -> Vec<Edit> {
    let has_halves = tree.enables.iter().flat_map(|(_, names)| names).any(|name| name.text(tree.text) == "f16");
    let has_calls = tree.text.contains("bitcast") || tree.text.contains("frexp");
    if !has_halves || !has_calls || tree.text.contains("cantus_") {
        return Vec::new();
    }
    let constants = tree.constants();
    let (mut evaluator, mut inference) = (Evaluator::new(tree), Inference::new(tree));
    let mut sizes = [false; 5];
    let mut edits = Vec::new();
    let mut helpers = [(TO_FOUR, false), (FROM_FOUR, false)];
    for id in numbered(tree) {
        let ExprKind::Call { callee, arguments, .. } = tree.expr(id).kind else { continue };
        let (Some(name @ ("bitcast" | "frexp")), [operand]) = (builtin(tree, callee), tree.list(arguments)) else {
            continue;
        };
        let Some((from, count)) = inference.vector(*operand) else { continue };
        let written = tree.expr(callee).place;
        if name == "frexp" {
            // A constant's members are replaced by their values.
            if from == Ty::F16 && count <= 4 && evaluator.value(id).is_none() {
                sizes[count] = true;
                edits.push(Edit { start: written.start, end: written.end, text: frexp(count).0 });
            }
            continue;
        }
        let ExprKind::Name { templates, .. } = tree.expr(callee).kind else { continue };
        let target = tree.list(templates).first().and_then(|&ty| evaluator.vector_type(ty));
        let Some((target, size)) = target else { continue };
        if target != Ty::F16 && from != Ty::F16 {
            continue;
        }
        if constants[id as usize]
            && let Some(edit) = replaced(tree, &mut evaluator, id)
        {
            edits.push(edit);
            continue;
        }
        let own = written.text(tree.text);
        let (before, after) = match (target, from, size) {
            (Ty::F16, Ty::F16, 1) => ("f16".to_owned(), ""),
            (Ty::F16, Ty::F16, size) => (format!("vec{size}<f16>"), ""),
            (Ty::F16, _, 2) => ("vec2<f16>(unpack2x16float(bitcast<u32>".to_owned(), "))"),
            (Ty::F16, _, 4) => {
                helpers[0].1 = true;
                (format!("{}(bitcast<vec2<u32>>", TO_FOUR.0), ")")
            }
            (_, Ty::F16, 1) => (format!("{own}(pack2x16float(vec2<f32>"), "))"),
            (_, Ty::F16, 2) => {
                helpers[1].1 = true;
                (format!("{own}({}", FROM_FOUR.0), ")")
            }
            _ => continue,
        };
        let end = tree.expr(id).place.end;
        edits.push(Edit { start: written.start, end: written.end, text: before });
        edits.push(Edit { start: end, end, text: after.to_owned() });
    }
    let end = tree.text.len() as u32;
    for ((name, body), _) in helpers.into_iter().filter(|(_, is_needed)| *is_needed) {
        edits.push(Edit { start: end, end, text: format!("\nfn {name}{body}") });
    }
    for (size, _) in sizes.into_iter().enumerate().filter(|(_, is_needed)| *is_needed) {
        edits.push(Edit { start: end, end, text: frexp(size).1 });
    }
    edits
}

/// A bitcast that may be to `f16`, if neither the text nor naga's module shows its type.
pub(super) fn unknown(tree: &Tree<'_>) -> Option<Place> {
    let has_halves = tree.enables.iter().flat_map(|(_, names)| names).any(|name| name.text(tree.text) == "f16");
    if !has_halves || !tree.text.contains("bitcast") {
        return None;
    }
    let (mut evaluator, mut inference) = (Evaluator::new(tree), Inference::new(tree));
    numbered(tree).find_map(|id| {
        let ExprKind::Call { callee, arguments, .. } = tree.expr(id).kind else { return None };
        let ExprKind::Name { templates, .. } = tree.expr(callee).kind else { return None };
        let (Some("bitcast"), [operand]) = (builtin(tree, callee), tree.list(arguments)) else { return None };
        let target = tree.list(templates).first().and_then(|&ty| evaluator.vector_type(ty));
        let is_half = target.is_none_or(|(ty, _)| ty == Ty::F16);
        (is_half && (inference.vector(*operand).is_none() || tree.text.contains("cantus_")))
            .then(|| tree.expr(id).place)
    })
}
