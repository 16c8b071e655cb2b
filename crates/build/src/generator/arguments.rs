//! The overrides that a kernel compiled ahead takes as arguments of the launch, so that one form serves all their values. Each is found by
//! trial: its declaration is rewritten as a variable, and stays so if the text still validates. Overrides that size a workgroup or an array, or
//! initialise a variable of the module, stay constants, and so do those of expressions that naga would evaluate with different mathematics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use naga::{Expression, Function, Handle, MathFunction, Override};

use cantus_base::flow::operands;
use cantus_base::listed::Listed;
use cantus_kernel::Scalar;
use cantus_kernel::wgsl::{Parsed, override_name, scalar_of_type};

/// A module in which overrides are variables, and these, in the order of the launch's arguments.
pub(super) struct Arguments {
    /// `None` where no override is one.
    pub parsed: Option<Arc<Parsed>>,
    /// The names that [`cantus_kernel::Kernel::with_override`] takes.
    pub names: Vec<String>,
    /// The variables' names in the text.
    pub variables: Vec<String>,
}

/// More are left fixed: an argument's number is a byte.
const MOST: usize = 64;

/// Finds them.
pub(super) fn find(parsed: &Parsed) -> Arguments {
    let inexact = inexact(parsed);
    let candidates: Vec<Handle<Override>> = parsed
        .module
        .overrides
        .iter()
        .filter(|(handle, found)| found.name.is_some() && !inexact.contains(handle))
        .map(|(handle, _)| handle)
        .take(MOST)
        .listed();
    let mut best: (Vec<Handle<Override>>, Option<Parsed>) = (Vec::new(), None);
    if let Some(all) = rewritten(parsed, &candidates) {
        best = (candidates, Some(all));
    } else {
        // The last ones first: those before them may be what they are made of.
        let mut left: Vec<Handle<Override>> = candidates.into_iter().rev().listed();
        loop {
            let before = left.len();
            left.retain(|handle| {
                let mut tried = best.0.clone();
                tried.push(*handle);
                match rewritten(parsed, &tried) {
                    Some(parsed) => {
                        best = (tried, Some(parsed));
                        false
                    }
                    None => true,
                }
            });
            if left.len() == before {
                break;
            }
        }
    }
    let (mut chosen, parsed_again) = best;
    chosen.sort_unstable();
    let known = chosen.iter().map(|handle| &parsed.module.overrides[*handle]);
    let variables = known.clone().map(|found| found.name.clone().unwrap_or_default()).listed();
    Arguments { parsed: parsed_again.map(Arc::new), names: known.map(override_name).listed(), variables }
}

/// The text with some overrides as variables, if it is valid.
fn rewritten(parsed: &Parsed, overrides: &[Handle<Override>]) -> Option<Parsed> {
    if overrides.is_empty() {
        return None;
    }
    let group =
        parsed.module.global_variables.iter().filter_map(|(_, variable)| variable.binding.map(|b| b.group)).max();
    let group = group.map_or(0, |group| group.saturating_add(1));
    let source = parsed.text();
    let mut declarations: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for (binding, handle) in overrides.iter().enumerate() {
        let found = &parsed.module.overrides[*handle];
        let span = parsed.module.overrides.get_span(*handle).to_range()?;
        let before = source.get(..span.start)?;
        // The span begins behind the attribute.
        let start = if found.id.is_some() { attribute(before)? } else { span.start };
        let end = span.end + usize::from(!source.get(..span.end)?.ends_with(';'));
        let name = found.name.as_ref()?;
        let declaration = match scalar_of_type(&parsed.module, found.ty)? {
            // A bool cannot be bound; naga takes what depends on such a variable for divergent.
            Scalar::Bool => format!("var<private> {name}: bool"),
            scalar @ (Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::F16) => {
                format!("@group({group}) @binding({binding}) var<uniform> {name}: {}", scalar.name())
            }
            _ => return None,
        };
        // Lines keep their numbers.
        let lines = source.get(start..end)?.matches('\n').count();
        declarations.insert(start, (end, format!("{declaration};{}", "\n".repeat(lines))));
    }
    let mut text = String::new();
    let mut done = 0;
    for (start, (end, declaration)) in declarations {
        text.push_str(source.get(done..start)?);
        text.push_str(&declaration);
        done = end;
    }
    text.push_str(source.get(done..)?);
    parsed.with_text(&text).ok()
}

/// Returns where the `@id(…)` at the end of a text begins.
fn attribute(text: &str) -> Option<usize> {
    let start = text.rfind('@')?;
    let inner = text.get(start + 1..)?.trim().strip_prefix("id")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    inner.chars().all(|c| c.is_ascii_alphanumeric() || c.is_whitespace()).then_some(start)
}

/// Overrides that some function's value is made of which naga computes itself, and less accurately or otherwise than lanes do.
fn inexact(parsed: &Parsed) -> BTreeSet<Handle<Override>> {
    let module = &parsed.module;
    let functions = module.functions.iter().map(|(_, function)| function);
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    functions.chain(entries).flat_map(inexact_in).collect()
}

fn inexact_in(function: &Function) -> BTreeSet<Handle<Override>> {
    let mut found = BTreeSet::new();
    // For each expression that naga can evaluate once overrides are known: the overrides in it.
    let mut known: Vec<Option<BTreeSet<Handle<Override>>>> = Vec::new();
    for (_, expression) in function.expressions.iter() {
        let value = evaluated(expression, &known);
        if let (Some(value), Expression::Math { fun, .. }) = (&value, expression)
            && !is_exact(*fun)
        {
            found.extend(value.iter().copied());
        }
        known.push(value);
    }
    found
}

fn evaluated(
    expression: &Expression,
    known: &[Option<BTreeSet<Handle<Override>>>],
) -> Option<BTreeSet<Handle<Override>>> {
    let all = || {
        let mut together = BTreeSet::new();
        for part in operands(expression) {
            together.extend(known.get(part.index())?.as_ref()?.iter().copied());
        }
        Some(together)
    };
    use Expression as E;
    match *expression {
        E::Override(handle) => Some(BTreeSet::from([handle])),
        E::Literal(_) | E::Constant(_) | E::ZeroValue(_) | E::Compose { .. } | E::Splat { .. } | E::Swizzle { .. } => {
            all()
        }
        E::Access { .. } | E::AccessIndex { .. } | E::Unary { .. } | E::As { .. } | E::Binary { .. } => all(),
        E::Select { .. } | E::Relational { .. } | E::Math { .. } => all(),
        _ => None,
    }
}

/// One right answer, which naga and lanes both give.
fn is_exact(function: MathFunction) -> bool {
    use MathFunction as M;
    matches!(
        function,
        M::Abs
            | M::Min
            | M::Max
            | M::Clamp
            | M::Saturate
            | M::Ceil
            | M::Floor
            | M::Trunc
            | M::Sign
            | M::Sqrt
            | M::CountTrailingZeros
            | M::CountLeadingZeros
            | M::CountOneBits
            | M::ReverseBits
            | M::FirstTrailingBit
            | M::FirstLeadingBit
    )
}
