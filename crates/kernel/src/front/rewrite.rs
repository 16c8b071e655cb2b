//! The rewritings of a text, and their reasons. Each of these has an entry in `docs/naga.md`. `wgsl.rs` takes `wrong` for every text and `all` only when
//! naga refused. A rewriting must keep the meaning, and must not depend on another one having been applied. What the reader does not know stays as it is:
//! naga's own message is better than a wrong rewriting.

use std::collections::HashMap;

use super::edits::Edit;
use super::eval::Evaluator;
use super::eval::value::{Scalar, Value};
use super::tree::{DeclId, DeclKind, ExprId, ExprKind, Operator, Place, StmtKind, Tree};
use crate::behavior::Behavior;
use cantus_base::listed::Listed;

/// Builtins of constant expressions that naga's evaluator lacks, or computes in float32, beyond whose range abstract numbers lie.
const LACKING: [&str; 33] = [
    "bitcast",
    "determinant",
    "distance",
    "extractBits",
    "faceForward",
    "frexp",
    "insertBits",
    "ldexp",
    "length",
    "mix",
    "modf",
    "pack2x16float",
    "pack2x16snorm",
    "pack2x16unorm",
    "pack4x8snorm",
    "pack4x8unorm",
    "pack4xI8",
    "pack4xI8Clamp",
    "pack4xU8",
    "pack4xU8Clamp",
    "quantizeToF16",
    "reflect",
    "refract",
    "select",
    "smoothstep",
    "transpose",
    "unpack2x16float",
    "unpack2x16snorm",
    "unpack2x16unorm",
    "unpack4x8snorm",
    "unpack4x8unorm",
    "unpack4xI8",
    "unpack4xU8",
];

/// Constants that naga computes wrong.
pub(super) fn wrong(tree: &Tree<'_>) -> Vec<Edit> {
    computed_wrong(tree, true)
}

/// `follows_let` where names that `let` gives to constants are constants for naga.
fn computed_wrong(tree: &Tree<'_>, follows_let: bool) -> Vec<Edit> {
    let mut edits = super::halves::calls(tree);
    let constants = tree.constants();
    edits.extend(super::vectors::edits(tree, &constants, follows_let));
    // Nearly all texts end here.
    if !tree.text.contains("atanh") && !tree.text.contains(">>") {
        return edits;
    }
    let mut evaluator = Evaluator::new(tree);
    evaluator.follows_let = follows_let;
    for id in numbered(tree) {
        if !constants[id as usize] {
            continue;
        }
        let found = match tree.expr(id).kind {
            ExprKind::Call { callee, .. } => builtin(tree, callee) == Some("atanh"),
            // An abstract integer has 64 bits, of which a shift by more leaves the sign.
            ExprKind::Binary(Operator::ShiftRight, left, right) => evaluator.is_long_shift(left, right),
            _ => false,
        };
        if found && let Some(edit) = replaced(tree, &mut evaluator, id) {
            edits.push(edit);
        }
    }
    edits
}

/// All rewrites, for a text that naga refuses.
pub(super) fn all(tree: &Tree<'_>) -> Vec<Edit> {
    // Names of `let` become variables here.
    let mut edits = computed_wrong(tree, false);
    edits.extend(extensions(tree));
    edits.extend(super::features::edits(tree));
    edits.extend(tree.diagnostics.iter().map(|&place| erased(place)));
    let minus = tree.double_minus.iter().map(|&at| Edit { start: at, end: at, text: " ".to_owned() });
    edits.extend(minus);
    edits.extend(hexadecimal_halves(tree));
    edits.extend(tree.trailing.iter().map(|&comma| erased(comma)));
    edits.extend(bracketed(tree));
    let constants = tree.constants();
    edits.extend(run_time_names(tree, &constants));
    edits.extend(shadowed(tree));
    edits.extend(constant_builtins(tree, &constants));
    edits.extend(decided(tree));
    edits.extend(derivatives(tree, &constants));
    edits
}

/// `0x3p+2h`: naga takes such a literal for no number of `f16`.
fn hexadecimal_halves(tree: &Tree<'_>) -> Vec<Edit> {
    let mut evaluator = Evaluator::new(tree);
    let halves = numbered(tree).filter(|&id| {
        let expr = tree.expr(id);
        let text = expr.place.text(tree.text);
        matches!(expr.kind, ExprKind::Literal)
            && text.ends_with('h')
            && text.get(1..2).is_some_and(|x| x.eq_ignore_ascii_case("x"))
    });
    halves.filter_map(|id| replaced(tree, &mut evaluator, id)).listed()
}

/// `dpdx(1)`: a module may have render stages beside the kernel, and naga converts no abstract integer to the float that a derivative takes.
fn derivatives(tree: &Tree<'_>, constants: &[bool]) -> Vec<Edit> {
    if !tree.text.contains("dpd") && !tree.text.contains("fwidth") {
        return Vec::new();
    }
    let mut evaluator = Evaluator::new(tree);
    let mut edits = Vec::new();
    for id in numbered(tree) {
        let ExprKind::Call { callee, arguments, .. } = tree.expr(id).kind else { continue };
        let (Some(name), [operand]) = (builtin(tree, callee), tree.list(arguments)) else { continue };
        let is_derivative = ["dpdx", "dpdy", "fwidth"]
            .iter()
            .any(|of| name.strip_prefix(of).is_some_and(|rest| matches!(rest, "" | "Coarse" | "Fine")));
        if is_derivative
            && constants[*operand as usize]
            && matches!(evaluator.value(*operand), Some(Value::Scalar(Scalar::Int(_))))
        {
            let place = tree.expr(*operand).place;
            edits.push(super::features::inserted(place.start, "f32(".to_owned()));
            edits.push(super::features::inserted(place.end, ")".to_owned()));
        }
    }
    edits
}

/// `false && …` and `true || …`, replaced by their value: the right operand is not evaluated, so it may have none.
fn decided(tree: &Tree<'_>) -> Vec<Edit> {
    let mut evaluator = Evaluator::new(tree);
    let found = unevaluated(tree, &mut evaluator);
    let lacking = found.into_iter().filter(|&(_, right, _)| evaluator.value(right).is_none());
    let edit = |(id, _, value): (ExprId, ExprId, bool)| {
        let place = tree.expr(id).place;
        Edit { start: place.start, end: place.end, text: value.to_string() }
    };
    lacking.map(edit).listed()
}

/// The constant expressions with `&&` or `||` whose left operand decides: each with its right operand and its value.
pub(super) fn unevaluated(tree: &Tree<'_>, evaluator: &mut Evaluator<'_>) -> Vec<(ExprId, ExprId, bool)> {
    if !tree.text.contains("&&") && !tree.text.contains("||") {
        return Vec::new();
    }
    let constants = tree.constants();
    let decides = |id: ExprId| {
        let ExprKind::Binary(operator @ (Operator::AndThen | Operator::OrElse), left, right) = tree.expr(id).kind
        else {
            return None;
        };
        let value = operator == Operator::OrElse;
        let is_decided = constants[left as usize]
            && constants[right as usize]
            && evaluator.value(left) == Some(Value::Scalar(Scalar::Bool(value)));
        is_decided.then_some((id, right, value))
    };
    numbered(tree).filter_map(decides).listed()
}

pub(super) fn numbered(tree: &Tree<'_>) -> impl DoubleEndedIterator<Item = ExprId> + use<> {
    (0..tree.exprs.len()).map(|id| id as ExprId)
}

/// Constants in place of overrides, as [`super::Front::with_constants`] has it.
pub(super) fn constants_for_overrides(
    tree: &Tree<'_>,
    values: &HashMap<String, Option<Option<String>>>,
) -> Option<String> {
    let mut edits: Vec<Edit> = Vec::new();
    for decl in tree.decls.iter().filter(|decl| decl.kind == DeclKind::Override) {
        let before = tree.text.get(..decl.keyword.start as usize)?.trim_end();
        let id = before.strip_suffix(')').and_then(|inside| {
            let name = inside[..inside.rfind('(')?].trim_end().strip_suffix("id")?;
            name.trim_end().strip_suffix('@').map(str::len)
        });
        let start = id.map_or(decl.keyword.start, |start| start as u32);
        edits.push(Edit { start, end: decl.keyword.end, text: "const".to_owned() });
        let Some(value) = values.get(decl.name.text(tree.text)).and_then(Option::as_ref) else { continue };
        let text = value.as_ref()?;
        edits.push(match (decl.init, decl.ty) {
            (Some(init), _) => {
                let place = tree.expr(init).place;
                Edit { start: place.start, end: place.end, text: text.clone() }
            }
            (None, Some(ty)) => {
                let end = tree.expr(ty).place.end;
                Edit { start: end, end, text: format!(" = {text}") }
            }
            (None, None) => return None,
        });
    }
    let rewritten = super::Source::rewritten(&super::File::named(""), tree.text, edits)?;
    Some(rewritten.for_naga().to_owned())
}

/// The builtin function that a callee names.
pub(super) fn builtin<'t>(tree: &Tree<'t>, callee: ExprId) -> Option<&'t str> {
    match tree.expr(callee).kind {
        ExprKind::Name { name, local, .. } if tree.named(name, local).is_none() => Some(name.text(tree.text)),
        _ => None,
    }
}

fn erased(place: Place) -> Edit {
    Edit { start: place.start, end: place.end, text: " ".to_owned() }
}

/// An expression's value in place of it.
pub(super) fn replaced(tree: &Tree<'_>, evaluator: &mut Evaluator<'_>, id: ExprId) -> Option<Edit> {
    let place = tree.expr(id).place;
    let text = evaluator.value(id)?.text()?;
    Some(Edit { start: place.start, end: place.end, text })
}

/// `enable subgroups;` and the like: naga has these features but does not accept the directives.
fn extensions(tree: &Tree<'_>) -> Vec<Edit> {
    let directives = tree.enables.iter().chain(&tree.requires).filter_map(|(place, names)| {
        let names: Vec<&str> = names.iter().map(|name| name.text(tree.text)).collect();
        let kept: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| *name != "subgroups" && !super::features::EXTENSIONS.contains(name))
            .collect();
        let keyword = place.text(tree.text).split_whitespace().next()?;
        (kept.len() < names.len()).then(|| Edit {
            start: place.start,
            end: place.end,
            text: if kept.is_empty() { " ".to_owned() } else { format!("{keyword} {};", kept.join(", ")) },
        })
    });
    directives.listed()
}

/// `const_assert (a) == b;`: naga takes the first bracket for one around all of it.
fn bracketed(tree: &Tree<'_>) -> Vec<Edit> {
    let asserted =
        tree.asserted.iter().map(|&id| tree.expr(id).place).filter(|place| place.text(tree.text).starts_with('('));
    asserted
        .flat_map(|place| [(place.start, "("), (place.end, ")")])
        .map(|(at, sign)| super::features::inserted(at, sign.to_owned()))
        .listed()
}

/// `let` gives a name to a value at run time; naga takes it for a constant where it can, and refuses an index out of range or a division by
/// zero. A variable has no such value. Names that are assigned to are left alone: that is an error.
fn run_time_names(tree: &Tree<'_>, constants: &[bool]) -> Vec<Edit> {
    let lets = tree.decls.iter().filter(|decl| {
        decl.kind == DeclKind::Let && !decl.is_written && decl.init.is_some_and(|init| constants[init as usize])
    });
    lets.map(|decl| Edit { start: decl.keyword.start, end: decl.keyword.end, text: "var".to_owned() }).listed()
}

/// A `continuing` block's declaration of a name that its loop's body declares too: naga has one scope for both. It gets a name of its own.
fn shadowed(tree: &Tree<'_>) -> Vec<Edit> {
    let declared = |block| {
        let StmtKind::Block(list) = tree.stmt(block).kind else { return Vec::new() };
        let all = tree.list(list).iter().filter_map(|&id| match tree.stmt(id).kind {
            StmtKind::Declare(decl) => Some(decl),
            _ => None,
        });
        all.listed()
    };
    let name = |decl| tree.decl(decl).name.text(tree.text);
    let mut names: HashMap<DeclId, String> = HashMap::new();
    for stmt in &tree.stmts {
        let StmtKind::Loop { body, continuing: Some(continuing), .. } = stmt.kind else { continue };
        let outer: Vec<&str> = declared(body).into_iter().map(name).listed();
        for decl in declared(continuing).into_iter().filter(|&decl| outer.contains(&name(decl))) {
            let mut other = format!("{}_continuing", name(decl));
            while tree.text.contains(&other) {
                other.push('_');
            }
            names.insert(decl, other);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let declared = names.iter().map(|(&decl, other)| (tree.decl(decl).name, other));
    let used = tree.exprs.iter().filter_map(|expr| match expr.kind {
        ExprKind::Name { name, local: Some(decl), .. } => Some((name, names.get(&decl)?)),
        _ => None,
    });
    let renamed = |(place, other): (Place, &String)| Edit { start: place.start, end: place.end, text: other.clone() };
    declared.chain(used).map(renamed).listed()
}

/// Calls in constant expressions that naga cannot evaluate, replaced by their values.
fn constant_builtins(tree: &Tree<'_>, constants: &[bool]) -> Vec<Edit> {
    let mut evaluator = Evaluator::new(tree);
    let mut edits: Vec<Edit> = Vec::new();
    // The results of `frexp` and `modf` have no constructor: constants that are such are taken away, their members replaced.
    let mut pairs = vec![false; tree.decls.len()];
    for (known, decl) in pairs.iter_mut().zip(&tree.decls) {
        let is_pair = decl.kind == DeclKind::Const
            && decl.init.and_then(|init| evaluator.value(init)).is_some_and(|value| matches!(value, Value::Pair(..)));
        if is_pair && let Some(init) = decl.init {
            *known = true;
            edits.push(erased(Place { start: decl.keyword.start, end: tree.expr(init).place.end }));
        }
    }
    // Operands have smaller numbers than the expressions that contain them, so one pass is enough.
    let mut needs = Vec::with_capacity(tree.exprs.len());
    for id in numbered(tree) {
        let of = |id: ExprId| needs.get(id as usize).copied().unwrap_or(false);
        let pair = |id: ExprId, evaluator: &mut Evaluator<'_>| matches!(evaluator.value(id), Some(Value::Pair(..)));
        let need = constants[id as usize]
            && match tree.expr(id).kind {
                ExprKind::Call { callee, .. } => builtin(tree, callee).is_some_and(|name| LACKING.contains(&name)),
                ExprKind::Binary(Operator::ShiftLeft, left, right) => evaluator.is_long_shift(left, right),
                ExprKind::Name { name, local, .. } => tree.named(name, local).is_some_and(|decl| pairs[decl as usize]),
                ExprKind::Member(base, _) | ExprKind::Paren(base) => of(base) && pair(base, &mut evaluator),
                _ => false,
            };
        needs.push(need);
    }
    for id in numbered(tree).rev().filter(|&id| needs[id as usize]) {
        if let Some(edit) = replaced(tree, &mut evaluator, id) {
            edits.push(edit);
        }
    }
    edits
}

/// Finds a construct that Cantus lacks or refuses, by its words, and the reason.
pub(super) fn refusal(tree: &Tree<'_>) -> Option<(Place, String)> {
    if let Some(place) = super::halves::unknown(tree) {
        let reason = "a bitcast to or from f16 of something whose type is not clear here (use pack2x16float and unpack2x16float)";
        return Some((place, reason.to_owned()));
    }
    let first =
        null(tree).or_else(|| tree.misplaced.clone()).or_else(|| extension(tree)).or_else(|| without_value(tree));
    let first = first.or_else(|| missing_end(tree)).or_else(|| super::constants::beyond_half(tree));
    let first = first.or_else(|| super::misuse::fault(tree)).or_else(|| super::domain::fault(tree));
    let first = first.or_else(|| super::entry::fault(tree));
    first.or_else(|| super::aliases::conflict(tree)).or_else(|| {
        let place = super::features::linear_member(tree)?;
        let name = place.text(tree.text);
        Some((place, format!("`{name}` in a structure is not supported: make it a parameter of the entry point")))
    })
}

/// A character that WGSL has nowhere, not even in a comment.
fn null(tree: &Tree<'_>) -> Option<(Place, String)> {
    let at = u32::try_from(tree.text.find('\0')?).ok()?;
    Some((Place { start: at, end: at + 1 }, "a null character is no part of a text".to_owned()))
}

/// A `return` without a value in a function that gives one.
fn without_value(tree: &Tree<'_>) -> Option<(Place, String)> {
    let functions = tree.functions.iter().filter(|function| function.has_result);
    let mut statements = functions.flat_map(|function| function.first_stmt..=function.body).map(|id| tree.stmt(id));
    let found = statements.find(|statement| matches!(statement.kind, StmtKind::Return(None)))?;
    Some((found.place, "a `return` without a value, and the function gives one".to_owned()))
}

/// Extensions that Cantus lacks.
fn extension(tree: &Tree<'_>) -> Option<(Place, String)> {
    use super::features::EXTENSIONS;
    let required = tree.requires.iter().flat_map(|(_, names)| names).find_map(|&place| {
        let name = place.text(tree.text);
        let reason =
            || format!("the language extension \"{name}\" is not part of Cantus, which has {}", EXTENSIONS.join(", "));
        (!EXTENSIONS.contains(&name)).then(|| (place, reason()))
    });
    required.or_else(|| {
        tree.enables.iter().flat_map(|(_, names)| names).find_map(|&place| {
            let name = place.text(tree.text);
            let lacking = name.starts_with("chromium_") || matches!(name, "texel_buffers" | "sized_binding_array");
            let reason =
                || format!("the extension \"{name}\" is not part of compute kernels here: remove code that needs it");
            lacking.then(|| (place, reason()))
        })
    })
}

/// A function that may end without returning its result, or a loop that never ends.
fn missing_end(tree: &Tree<'_>) -> Option<(Place, String)> {
    let lacking = tree
        .functions
        .iter()
        .find(|function| function.has_result && tree.stmt(function.body).behavior.meets(Behavior::NEXT));
    if let Some(function) = lacking {
        let name = function.name.text(tree.text);
        return Some((
            function.name,
            format!("`{name}` may end without a value: every way through it must return one"),
        ));
    }
    let unending = tree.stmts.iter().find(|stmt| stmt.behavior == Behavior::NONE);
    unending.map(|stmt| (stmt.place, "nothing leaves this loop (add a break or a return)".to_owned()))
}
