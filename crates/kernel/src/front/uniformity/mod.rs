//! The specification's uniformity analysis (WGSL, "Uniformity"): barriers must be reached by all invocations of a workgroup, operations of a subgroup by
//! all of the subgroup, and some arguments must be the same for all of them.
//!
//! # How it runs
//! 1. Each function becomes a graph ([`graph`]) by a walk over its statements ([`statement`]) and expressions ([`expression`]). An edge from a to b says
//!    that a is uniform only if b is. Functions come after those that they call.
//! 2. A search from what must be uniform finds whether it reaches `VARIES`. If so, that is a failure, and the way is told step by step ([`report`]).
//! 3. Searches from the parameters and the result give the [`Summary`] for callers: what a call demands of its arguments, and what its result depends on.
//!
//! Barriers are checked within a workgroup, and subgroup operations within a subgroup. Texts without any such operation skip the analysis.
//!
//! # What holds
//! - Walk and graph are linear in the text, up to the depth of its blocks and the number of pointer parameters (at most 255). Nothing recurses over the
//!   terms of a sum. A graph with too many edges for its text is cut, and then nothing is known.
//! - It works on our own syntax tree, because naga's analysis takes workgroup memory as uniform and every variable of a function as varying.
//!
//! # What is surprising
//! - A variable has several nodes in a function, one for each value that it gets (the specification's "Function-scope Variable Value Analysis").
//! - Control flow is a node too: a barrier behind `if v { return; }` fails where `v` varies, although no branch is around it.
//! - A filter (`diagnostic(off, subgroup_uniformity)`) lowers failures of subgroup operations, never those of barriers.
//!
//! # An example
//! `let v = x[0]; if v == 0 { workgroupBarrier(); }` with `x` of `var<storage, read_write>`. The load is a node with an edge to `VARIES`, as other
//! invocations may write `x`. The condition depends on `v`, control flow in the branch on the condition, and the barrier needs that control flow. The
//! search from the barrier reaches `VARIES` in three steps, and the report names the barrier, the condition, `v` and `x`. With `var<storage, read>` the
//! load is uniform and the text passes.

mod builtin;
mod expression;
mod graph;
mod report;
mod statement;
#[cfg(test)]
mod tests;

use self::graph::{Graph, Mark, Node, RESULT, START, Search, Source, VARIES};
use self::statement::Walk;
use super::tree::{Decl, DeclKind, ExprKind, Place, Severity, Tree};

/// Among which invocations something is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Workgroup,
    Subgroup,
}

/// A rule that requires uniformity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Cannot be filtered.
    Barrier,
    Derivative,
    Subgroup,
}

/// Something that must be uniform.
#[derive(Debug, Clone, Copy)]
struct Demand {
    node: Node,
    severity: Severity,
    rule: Rule,
    /// The name of the builtin function that asks.
    builtin: Place,
    /// The place where this function calls it, directly or through others.
    place: Place,
    /// A value must be uniform, not control flow.
    is_value: bool,
}

/// The summary of a function for its callers.
#[derive(Debug, Clone, Default)]
struct Summary {
    call: Option<Demand>,
    /// Why what it returns may vary.
    varies: Option<(Source, Place)>,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, Default)]
struct Parameter {
    value: Option<Demand>,
    contents: Option<Demand>,
    is_returned: bool,
    contents_returned: bool,
    /// The effect on a caller's variable through a pointer.
    pointee: Option<Pointee>,
}

/// The dependences of the value behind a pointer after a call.
#[derive(Debug, Clone, Default)]
struct Pointee {
    varies: Option<(Source, Place)>,
    control: bool,
    values: Vec<u32>,
    contents: Vec<u32>,
}

/// Control flow or a value that must be uniform and may not be.
#[derive(Debug)]
pub(super) struct Failure {
    pub severity: Severity,
    pub place: Place,
    pub message: String,
    /// The steps from the demand to the varying value.
    pub steps: Vec<(Place, String)>,
}

/// Returns whether a parameter is a pointer.
pub(super) fn is_pointer_parameter(tree: &Tree<'_>, decl: &Decl) -> bool {
    builtin::pointed_space(tree, decl).is_some()
}

/// True where a text may have something to check.
pub(super) fn may_be_collective(text: &str) -> bool {
    builtin::scopes(text).next().is_some()
}

/// All failures of a text: one for each function, scope and severity.
pub(super) fn failures(tree: &Tree<'_>) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut order = None;
    for scope in builtin::scopes(tree.text) {
        let mut summaries = vec![None; tree.functions.len()];
        for &function in order.get_or_insert_with(|| callees_first(tree)).iter() {
            let summary = analyze(tree, scope, function, &summaries, &mut failures);
            summaries[function as usize] = Some(summary);
        }
    }
    failures
}

/// The functions, each behind those that it calls.
pub(super) fn callees_first(tree: &Tree<'_>) -> Vec<u32> {
    let called = |function: u32| {
        let (first, end) = tree.functions[function as usize].exprs;
        (first..end).filter_map(|id| match tree.expr(id).kind {
            ExprKind::Call { callee, .. } => function_called(tree, callee),
            _ => None,
        })
    };
    let mut order = Vec::with_capacity(tree.functions.len());
    let mut seen = vec![false; tree.functions.len()];
    for start in 0..tree.functions.len() as u32 {
        if std::mem::replace(&mut seen[start as usize], true) {
            continue;
        }
        let mut path = vec![(start, called(start))];
        while let Some((function, open)) = path.last_mut() {
            match open.next() {
                Some(next) if !std::mem::replace(&mut seen[next as usize], true) => path.push((next, called(next))),
                Some(_) => {}
                None => {
                    order.push(*function);
                    path.pop();
                }
            }
        }
    }
    order
}

/// The function of the text that a call's name stands for.
pub(super) fn function_called(tree: &Tree<'_>, callee: u32) -> Option<u32> {
    let ExprKind::Name { name, local, .. } = tree.expr(callee).kind else { return None };
    match tree.decl(tree.named(name, local)?).kind {
        DeclKind::Function(function) => Some(function),
        _ => None,
    }
}

fn analyze(
    tree: &Tree<'_>,
    scope: Scope,
    function: u32,
    summaries: &[Option<Summary>],
    failures: &mut Vec<Failure>,
) -> Summary {
    let mut walk = Walk::new(tree, scope, function, summaries);
    walk.run();
    let Walk { graph, demands, parameters, .. } = walk;
    let mut search = Search::new(&graph);
    let mut summary = Summary { parameters: vec![Parameter::default(); parameters.len()], ..Summary::default() };
    search.begin();
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        // Only what lies within the function is reached once for all severities.
        let outside = parameters.iter().flat_map(|found| [Some(found.value), found.contents]).flatten();
        for node in outside.chain([VARIES, START]) {
            search.forget(node);
        }
        let of = || demands.iter().filter(|demand| demand.severity == severity);
        search.reach(of().map(|demand| demand.node));
        let origin = |search: &Search, node: Node| {
            let from = search.path(node).first().copied();
            of().find(|demand| Some(demand.node) == from).copied()
        };
        if search.is_reached(VARIES) || graph.is_cut() {
            let demand = if graph.is_cut() { of().next().copied() } else { origin(&search, VARIES) };
            if let Some(demand) = demand {
                let path = if graph.is_cut() { Vec::new() } else { search.path(VARIES) };
                failures.push(report::failure(tree, scope, &graph, &demand, &path, summaries));
            }
            continue;
        }
        if search.is_reached(START) && summary.call.is_none() {
            summary.call = origin(&search, START);
        }
        for (parameter, nodes) in summary.parameters.iter_mut().zip(&parameters) {
            if search.is_reached(nodes.value) && parameter.value.is_none() {
                parameter.value = origin(&search, nodes.value);
            }
            if let Some(contents) =
                nodes.contents.filter(|&node| search.is_reached(node) && parameter.contents.is_none())
            {
                parameter.contents = origin(&search, contents);
            }
        }
    }
    search.begin();
    search.reach([RESULT]);
    summary.varies = source(&graph, &search);
    for (parameter, nodes) in summary.parameters.iter_mut().zip(&parameters) {
        parameter.is_returned = search.is_reached(nodes.value);
        parameter.contents_returned = nodes.contents.is_some_and(|node| search.is_reached(node));
    }
    for (parameter, left) in summary.parameters.iter_mut().zip(&parameters) {
        parameter.pointee = left.left.map(|left| pointee(&graph, &mut search, left, &parameters));
    }
    summary
}

/// The first source of a reached node that varies.
fn source(graph: &Graph, search: &Search) -> Option<(Source, Place)> {
    let path = if search.is_reached(VARIES) { search.path(VARIES) } else { Vec::new() };
    let marks = path.iter().rev().map(|&node| graph.marks[node as usize]);
    marks.filter_map(|(mark, place)| if let Mark::Source(source) = mark { Some((source, place)) } else { None }).next()
}

/// The state of what a parameter points to at the end, which is in the node `left`.
fn pointee(graph: &Graph, search: &mut Search, left: Node, parameters: &[statement::ParameterNodes]) -> Pointee {
    search.begin();
    search.reach([left]);
    let reached = |of: &dyn Fn(&statement::ParameterNodes) -> Option<Node>| {
        let numbered = (0_u32..).zip(parameters);
        numbered.filter(|(_, nodes)| of(nodes).is_some_and(|node| search.is_reached(node))).map(|(at, _)| at).collect()
    };
    Pointee {
        varies: source(graph, search),
        control: search.is_reached(START),
        values: reached(&|nodes| Some(nodes.value)),
        contents: reached(&|nodes| nodes.contents),
    }
}
