//! Failures in words.

use super::super::tree::{Decl, DeclKind, ExprKind, Place, Tree};
use super::builtin;
use super::graph::{Graph, Mark, Node, Source};
use super::{Demand, Failure, Rule, Scope, Summary};
use crate::error::SourcePlace;

/// Steps of a way that are shown; what lies between is left out.
const MOST: usize = 8;

pub(super) fn failure(
    tree: &Tree<'_>,
    scope: Scope,
    graph: &Graph,
    demand: &Demand,
    path: &[Node],
    summaries: &[Option<Summary>],
) -> Failure {
    let name = demand.builtin.text(tree.text);
    let group = match (demand.rule, scope) {
        (Rule::Derivative, _) => "draw",
        (_, Scope::Workgroup) => "workgroup",
        (_, Scope::Subgroup) => "subgroup",
    };
    let is_here = demand.place.text(tree.text).starts_with(name);
    let mut message = match (is_here, demand.is_value) {
        (true, true) => {
            format!("`{name}` needs an argument that is the same for all invocations of a {group}, and this one varies")
        }
        (true, false) => {
            format!("`{name}` must be reached by all invocations of a {group} or by none, and control flow varies here")
        }
        (false, true) => format!(
            "`{name}`, which is called in here, asks for an argument that is the same for all invocations of a {group}, \
             and this one varies"
        ),
        (false, false) => format!(
            "`{name}`, which is called in here, must be reached by all invocations of a {group} or by none, and control \
             flow varies here"
        ),
    };
    if graph.is_cut() {
        message = format!("{message}: the function has too many parts to prove otherwise (divide it)");
    }
    let mut steps: Vec<(Place, String)> = Vec::new();
    for &node in path {
        let (mark, place) = graph.marks[node as usize];
        let text = match mark {
            Mark::Plain | Mark::Read(_) => continue,
            Mark::Condition => "this condition varies".to_owned(),
            Mark::Set(decl) => format!("`{}` gets a value that varies", tree.decl(decl).name.text(tree.text)),
            Mark::Source(source) => described(tree, scope, source, place, summaries),
        };
        if !steps.iter().any(|(known, step)| *known == place && *step == text) {
            steps.push((place, text));
        }
    }
    if steps.len() > MOST {
        steps.drain(MOST / 2..steps.len() - MOST / 2);
    }
    Failure { severity: demand.severity, place: demand.place, message, steps }
}

fn line(tree: &Tree<'_>, place: Place) -> u32 {
    SourcePlace::of(tree.text, place.start as usize..place.end as usize).map_or(0, |place| place.line)
}

fn described(tree: &Tree<'_>, scope: Scope, source: Source, place: Place, summaries: &[Option<Summary>]) -> String {
    let function = |at: u32| tree.functions[at as usize].name.text(tree.text);
    let deeper = |summary: Option<(Source, Place)>| match root(summary, summaries) {
        Some((source, place)) => {
            let cause = described(tree, scope, source, place, &[]);
            format!(": at line {}, {cause}", line(tree, place))
        }
        None => String::new(),
    };
    let summary = |at: u32| summaries.get(at as usize).and_then(Option::as_ref);
    match source {
        Source::Memory(decl) => {
            let found = tree.decl(decl);
            format!("`{}` varies because {}", found.name.text(tree.text), memory(tree, found))
        }
        Source::Input(decl) => {
            let found = tree.decl(decl);
            let cause = match input(tree, found, scope) {
                Some(builtin) => format!("`{}` at line {}", builtin.text(tree.text), line(tree, builtin)),
                None => "it is an input of the entry point".to_owned(),
            };
            format!("`{}` varies because of {cause}", found.name.text(tree.text))
        }
        Source::Builtin => {
            let name: &str = place.text(tree.text).split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            format!("`{name}` may give each invocation another value")
        }
        Source::Result(at) => {
            format!(
                "`{}` returns a value that varies{}",
                function(at),
                deeper(summary(at).and_then(|found| found.varies))
            )
        }
        Source::Pointee(at, parameter) => {
            let left = summary(at).and_then(|found| found.parameters.get(parameter as usize)?.pointee.as_ref()?.varies);
            format!("`{}` writes a value that varies through its pointer{}", function(at), deeper(left))
        }
    }
}

/// Follows a source to the value that varies by itself, through the functions that return it.
fn root(mut source: Option<(Source, Place)>, summaries: &[Option<Summary>]) -> Option<(Source, Place)> {
    // A function calls only such as come before it.
    for _ in 0..=summaries.len() {
        let summary = |at: u32| summaries.get(at as usize).and_then(Option::as_ref);
        source = match source?.0 {
            Source::Result(at) => summary(at)?.varies,
            Source::Pointee(at, parameter) => summary(at)?.parameters.get(parameter as usize)?.pointee.as_ref()?.varies,
            _ => return source,
        };
    }
    None
}

fn memory(tree: &Tree<'_>, decl: &Decl) -> String {
    if decl.kind == DeclKind::Parameter {
        return "other invocations may write what it points to".to_owned();
    }
    match tree.list(decl.templates).first().map(|&id| tree.expr(id).place.text(tree.text)) {
        Some("private") => "it is private to each invocation".to_owned(),
        Some(space) => format!("other invocations may write it ({space} memory)"),
        None => "other invocations may write it".to_owned(),
    }
}

/// The builtin value that varies in an input of an entry point.
fn input(tree: &Tree<'_>, decl: &Decl, scope: Scope) -> Option<Place> {
    if decl.builtin.is_some() {
        return decl.builtin;
    }
    let ExprKind::Name { name, local, .. } = tree.expr(decl.ty?).kind else { return None };
    let DeclKind::Struct(at) = tree.decl(tree.named(name, local)?).kind else { return None };
    let mut builtins = tree.structs[at as usize].members.iter().filter_map(|member| member.builtin);
    builtins.find(|place| !builtin::is_uniform_value(place.text(tree.text), scope))
}
