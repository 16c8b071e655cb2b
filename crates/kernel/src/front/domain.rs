//! Errors that naga finds only in part or accepts: constants for which a builtin function or an operator has no value, names that nothing declares,
//! and inputs that no compute entry point has.

use super::eval::Evaluator;
use super::eval::value::Ty;
use super::infer::Inference;
use super::rewrite::{builtin, numbered, unevaluated};
use super::tree::{DeclKind, ExprId, ExprKind, Operator, Place, Tree};
use cantus_base::listed::Listed;

/// Builtin functions that the evaluator computes wherever they have a value.
const COMPUTED: [&str; 60] = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "cross",
    "degrees",
    "determinant",
    "distance",
    "dot",
    "exp",
    "exp2",
    "extractBits",
    "faceForward",
    "floor",
    "fma",
    "fract",
    "frexp",
    "insertBits",
    "inverseSqrt",
    "ldexp",
    "length",
    "log",
    "log2",
    "max",
    "min",
    "mix",
    "modf",
    "normalize",
    "pack2x16float",
    "pow",
    "quantizeToF16",
    "radians",
    "reflect",
    "refract",
    "round",
    "saturate",
    "sign",
    "sin",
    "sinh",
    "smoothstep",
    "sqrt",
    "step",
    "tan",
    "tanh",
    "transpose",
    "trunc",
    "unpack2x16float",
    "unpack2x16snorm",
    "unpack2x16unorm",
    "unpack4x8snorm",
    "unpack4x8unorm",
];

/// Returns the first of them, and what is wrong.
pub(super) fn fault(tree: &Tree<'_>) -> Option<(Place, String)> {
    input(tree).or_else(|| undeclared(tree)).or_else(|| without_value(tree, &[])).or_else(|| unsaid(tree))
}

/// Returns the first of them that an entry point reaches, where overrides have become constants.
pub(super) fn fault_of(tree: &Tree<'_>, entry: &str) -> Option<(Place, String)> {
    without_value(tree, &unreached(tree, entry))
}

/// The expressions of functions that an entry point does not reach, from the first to behind the last of each.
fn unreached(tree: &Tree<'_>, entry: &str) -> Vec<(ExprId, ExprId)> {
    let first = tree.functions.iter().position(|function| function.is_entry && function.name.text(tree.text) == entry);
    let reached = super::entry::reached(tree, first);
    let others = tree.functions.iter().zip(reached).filter(|(_, is_reached)| !is_reached);
    others.map(|(function, _)| function.exprs).listed()
}

/// Returns the first call or operator without a value outside of these expressions.
fn without_value(tree: &Tree<'_>, outside: &[(ExprId, ExprId)]) -> Option<(Place, String)> {
    let mut evaluator = Evaluator::new(tree);
    let mut inference = Inference::new(tree);
    // An operand that is not evaluated may have no value.
    let skipped = unevaluated(tree, &mut evaluator);
    let skipped: Vec<Place> = skipped.into_iter().map(|(_, right, _)| tree.expr(right).place).listed();
    let within = |place: Place, all: &Place| all.start <= place.start && place.end <= all.end;
    // The length of an array is evaluated all the same.
    let types: Vec<Place> = if skipped.is_empty() { Vec::new() } else { template_arguments(tree) };
    let is_skipped = |place: Place| {
        skipped.iter().any(|all| within(place, all) && !types.iter().any(|ty| within(*ty, all) && within(place, ty)))
    };
    let inside = |id: ExprId| !outside.iter().any(|&(first, end)| (first..end).contains(&id));
    numbered(tree).filter(|&id| inside(id)).find_map(|id| {
        let place = tree.expr(id).place;
        match tree.expr(id).kind {
            ExprKind::Call { .. } if is_skipped(place) => None,
            ExprKind::Call { callee, arguments, .. } => {
                let name = builtin(tree, callee)?;
                if let ("bitcast", ExprKind::Name { templates, .. }) = (name, tree.expr(callee).kind) {
                    evaluator.vector_type(*tree.list(templates).first()?)?;
                }
                let arguments = tree.list(arguments);
                let reason = mismatch(&mut evaluator, &mut inference, (callee, name), arguments, tree);
                let reason = reason.or_else(|| call(&mut evaluator, id, name, arguments))?;
                Some((place, reason))
            }
            // naga does not look at the right operand where the left one decides.
            ExprKind::Binary(operator @ (Operator::AndThen | Operator::OrElse), left, right) => {
                let word = if operator == Operator::AndThen { "&&" } else { "||" };
                let mut other = |id| inference.vector(id).filter(|known| *known != (Ty::Bool, 1));
                let (place, (ty, size)) =
                    [left, right].into_iter().find_map(|id| Some((tree.expr(id).place, other(id)?)))?;
                let of = if size == 1 { String::new() } else { format!("vectors of {size} ") };
                Some((place, format!("`{word}` does not take {of}{} (both operands are bool)", ty.word())))
            }
            ExprKind::Unary(b'-', inner) => inference
                .is_matrix(inner)
                .then(|| (place, "`-` takes numbers and vectors, not a matrix (multiply it by -1)".to_owned())),
            _ => None,
        }
    })
}

fn template_arguments(tree: &Tree<'_>) -> Vec<Place> {
    let lists = tree.exprs.iter().filter_map(|expr| match expr.kind {
        ExprKind::Name { templates, .. } => Some(tree.list(templates)),
        _ => None,
    });
    lists.flatten().map(|&id| tree.expr(id).place).listed()
}

/// Returns what is wrong with the types of a call: those that naga does not compare.
fn mismatch(
    evaluator: &mut Evaluator<'_>,
    inference: &mut Inference<'_>,
    (callee, name): (ExprId, &str),
    arguments: &[ExprId],
    tree: &Tree<'_>,
) -> Option<String> {
    match (name, arguments) {
        ("select", [reject, accept, _]) => {
            let ((a, n), (b, m)) = (inference.vector(*reject)?, inference.vector(*accept)?);
            let is_same = n == m && a.common(b).is_some();
            (!is_same).then(|| "`select` takes two values of one type".to_owned())
        }
        ("bitcast", [operand]) => {
            let ExprKind::Name { templates, .. } = tree.expr(callee).kind else { return None };
            let (to, size) = evaluator.vector_type(*tree.list(templates).first()?)?;
            let (from, count) = inference.vector(*operand)?;
            let bits = |ty: Ty, count: usize| count * if ty == Ty::F16 { 16 } else { 32 };
            let (from, to) = (bits(from, count), bits(to, size));
            (from != to).then(|| format!("`bitcast` of {from} bits to {to}"))
        }
        ("extractBits" | "insertBits", [number, ..]) => {
            let (ty, _) = inference.vector(*number)?;
            let is_whole = matches!(ty, Ty::Int | Ty::I32 | Ty::U32);
            if is_whole && name == "insertBits" {
                let ((ty, size), (other, count)) = (inference.vector(*number)?, inference.vector(*arguments.get(1)?)?);
                let is_same = size == count && ty.common(other).is_some();
                return (!is_same).then(|| "`insertBits` takes two values of one type".to_owned());
            }
            (!is_whole).then(|| format!("`{name}` takes whole numbers, not {}", ty.word()))
        }
        ("subgroupElect", [_, ..]) => Some("`subgroupElect` takes no arguments".to_owned()),
        ("refract", [a, b, _]) => {
            let ((_, n), (_, m)) = (inference.vector(*a)?, inference.vector(*b)?);
            (n != m).then(|| "`refract` takes two vectors of one size".to_owned())
        }
        ("quadBroadcast", [_, lane]) => {
            let lane = evaluator.whole(*lane).filter(|lane| !(0..4).contains(lane))?;
            Some(format!("the lane {lane} of `quadBroadcast` is not from 0 to 3"))
        }
        (_, [_, lane]) if name.starts_with("subgroupShuffle") || name == "subgroupBroadcast" => {
            let lane = evaluator.whole(*lane).filter(|lane| !(0..128).contains(lane))?;
            Some(format!("the lane {lane} of `{name}` is not from 0 to 127"))
        }
        _ => None,
    }
}

/// Returns what is wrong with a call of a builtin function.
fn call(evaluator: &mut Evaluator<'_>, id: ExprId, name: &str, arguments: &[ExprId]) -> Option<String> {
    let whole = |evaluator: &mut Evaluator<'_>, at: usize| evaluator.whole(*arguments.get(at)?);
    match name {
        "clamp" if evaluator.are_ordered(*arguments.get(1)?, *arguments.get(2)?, |low, high| low > high) => {
            return Some("the lower limit of `clamp` is above the upper one".to_owned());
        }
        "smoothstep" if evaluator.are_ordered(*arguments.first()?, *arguments.get(1)?, |low, high| low == high) => {
            return Some("both edges of `smoothstep` are the same".to_owned());
        }
        "ldexp" => {
            let most = evaluator.greatest_exponent(*arguments.first()?);
            if let Some(exponent) = evaluator.greatest(*arguments.get(1)?)
                && exponent > most
            {
                return Some(format!("the exponent {exponent} of `ldexp` is above {most}"));
            }
        }
        "extractBits" | "insertBits" => {
            let first = arguments.len().checked_sub(2)?;
            // A value at run time is clamped, and the other one with it.
            let sum = whole(evaluator, first)
                .zip(whole(evaluator, first + 1))
                .map(|(offset, count)| offset.saturating_add(count));
            if sum.is_some_and(|sum| sum > 32) {
                return Some(format!("`{name}` reaches beyond the 32 bits of its number"));
            }
        }
        _ if name.starts_with("textureSample") || name.starts_with("textureGather") => {
            let offset = *arguments.last()?;
            if arguments.len() >= 4
                && let Some(cell) = evaluator.offset(offset).into_iter().flatten().find(|cell| !(-8..=7).contains(cell))
            {
                return Some(format!("the offset {cell} of `{name}` is not from -8 to 7"));
            }
            return None;
        }
        _ => {}
    }
    let has_values = COMPUTED.contains(&name) && !arguments.is_empty() && evaluator.is_whole();
    if has_values
        && arguments.iter().all(|&argument| evaluator.value(argument).is_some())
        && evaluator.value(id).is_none()
        && evaluator.is_whole()
    {
        return Some(format!("`{name}` has no value of its type for these constants"));
    }
    None
}

/// A constant that is to be an `i32`, since nothing says another type, and has no value of it. naga takes one of another type.
fn unsaid(tree: &Tree<'_>) -> Option<(Place, String)> {
    let mut evaluator = Evaluator::new(tree);
    tree.decls.iter().find_map(|decl| {
        let is_concrete = matches!(decl.kind, DeclKind::Let | DeclKind::Var | DeclKind::Override) && decl.ty.is_none();
        let init = decl.init.filter(|_| is_concrete)?;
        let number = evaluator.beyond_signed(init)?;
        Some((tree.expr(init).place, format!("{number} is not a value of i32 (write {number}u, or the type)")))
    })
}

/// An operand that names nothing. naga does not look at what `&&` and `||` need not evaluate.
fn undeclared(tree: &Tree<'_>) -> Option<(Place, String)> {
    let is_short =
        |id: ExprId| matches!(tree.expr(id).kind, ExprKind::Binary(Operator::AndThen | Operator::OrElse, ..));
    if !numbered(tree).any(is_short) {
        return None;
    }
    numbered(tree).find_map(|id| {
        let operands: &[ExprId] = match &tree.exprs.get(id as usize)?.kind {
            ExprKind::Binary(_, left, right) => &[*left, *right],
            ExprKind::Unary(_, inner) => &[*inner],
            _ => return None,
        };
        operands.iter().find_map(|&operand| {
            let ExprKind::Name { name, templates, local } = tree.expr(operand).kind else { return None };
            let is_unknown = templates.count == 0 && tree.named(name, local).is_none();
            let text = || format!("no definition in scope for identifier: `{}`", name.text(tree.text));
            is_unknown.then(|| (name, text()))
        })
    })
}

/// A parameter of a compute entry point whose structure has members by `@location`.
fn input(tree: &Tree<'_>) -> Option<(Place, String)> {
    let entries = tree.functions.iter().filter(|function| function.is_compute);
    let parameters = entries.flat_map(|function| {
        let first = function.parameters.first as usize;
        &tree.decls[first..first + function.parameters.count as usize]
    });
    parameters.into_iter().find_map(|parameter| {
        let ExprKind::Name { name, local, .. } = tree.expr(parameter.ty?).kind else { return None };
        let DeclKind::Struct(number) = tree.decl(tree.named(name, local)?).kind else { return None };
        let members = &tree.structs.get(number as usize)?.members;
        let reason = "a compute entry point has no inputs by @location: bind a buffer or a uniform";
        members.iter().any(|member| member.is_located).then(|| (parameter.name, reason.to_owned()))
    })
}
