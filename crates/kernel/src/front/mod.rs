//! The text before naga: what naga 30 refuses though WGSL has it, or takes and gets wrong, is rewritten; everything else keeps its bytes.
//! `docs/naga.md` lists the reasons. The reading is our own and small: declarations and expressions with their places ([`tree`]), an
//! evaluator of constant expressions ([`eval`]), and edits by ranges of bytes, so that reports still show the author's text.

mod aliases;
mod constants;
mod domain;
mod edits;
mod eval;
mod features;
mod flat;
mod halves;
mod infer;
mod lex;
mod misuse;
mod parse;
mod report;
mod rewrite;
pub(crate) mod said;
mod tree;
mod uniformity;
mod vectors;

pub(super) use edits::{File, Source};

use cantus_base::listed::Listed;
use std::collections::HashMap;

/// Alignment and size that attributes give to a structure's members, by the structure's name.
pub(super) type Attributes = HashMap<String, Vec<(Option<u32>, Option<u32>)>>;

/// A fault in a text: the first label is where.
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) labels: Vec<(naga::Span, String)>,
}

/// A text, read.
pub(super) struct Front<'t>(tree::Tree<'t>);

impl<'t> Front<'t> {
    /// Reads a text; `None` where it cannot be followed.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        parse::parse(text).map(Self)
    }

    /// Returns the text with the parts rewritten that naga would accept and get wrong. `None` where there is nothing of
    /// that kind.
    pub(super) fn corrected(&self, file: &File) -> Option<Source> {
        Source::rewritten(file, self.0.text, rewrite::wrong(&self.0))
    }

    /// Returns the text with the constructs that naga refuses rewritten as well.
    pub(super) fn rewritten(&self, file: &File) -> Option<Source> {
        Source::rewritten(file, self.0.text, rewrite::all(&self.0))
    }

    /// The text with constants in place of its overrides: by name, those that have another value than the text gives, where there is one.
    pub(super) fn with_constants(&self, values: &HashMap<String, Option<Option<String>>>) -> Option<String> {
        rewrite::constants_for_overrides(&self.0, values)
    }

    /// The sizes of the workgroups that the rewriting lays out in a row, by entry point.
    pub(super) fn flattened(&self) -> Vec<(String, [u32; 3])> {
        let name = |function: &tree::Function| function.name.text(self.0.text).to_owned();
        flat::entries(&self.0).into_iter().map(|(function, size)| (name(function), size)).listed()
    }

    /// A name that stands for something that Cantus lacks, and the reason.
    pub(super) fn refusal(&self) -> Option<(naga::Span, String)> {
        let (place, reason) = rewrite::refusal(&self.0)?;
        Some((naga::Span::new(place.start, place.end), reason))
    }

    /// Constants that are too many to be evaluated.
    pub(super) fn excess(&self) -> Option<(naga::Span, String)> {
        let (place, reason) = constants::excess(&self.0)?;
        Some((naga::Span::new(place.start, place.end), reason))
    }

    /// Returns where the module's declarations end.
    pub(super) fn ends(&self) -> &[u32] {
        &self.0.ends
    }

    /// Control flow and values that must be uniform and may not be: the first that is an error, and what is reported only.
    pub(super) fn uniformity(&self) -> (Option<Fault>, Vec<Fault>) {
        let mut reported = Vec::new();
        let mut error = None;
        for failure in uniformity::failures(&self.0) {
            let span = |place: tree::Place| naga::Span::new(place.start, place.end);
            let is_error = failure.severity == tree::Severity::Error;
            let mut labels = vec![(span(failure.place), "here".to_owned())];
            labels.extend(failure.steps.into_iter().map(|(place, text)| (span(place), text)));
            let fault = Fault { message: failure.message, labels };
            if !is_error {
                reported.push(fault);
            } else if error.is_none() {
                error = Some(fault);
            }
        }
        (error, reported)
    }

    /// Returns where the members of the structures begin, in the text's order.
    #[cfg_attr(not(feature = "writers"), allow(dead_code, reason = "not every build writes WGSL"))]
    pub(super) fn structures(&self) -> Vec<Vec<usize>> {
        let starts =
            |structure: &tree::Structure| structure.members.iter().map(|member| member.name.start as usize).listed();
        self.0.structs.iter().map(starts).listed()
    }

    /// The attributes of all structures; `None` where one cannot be evaluated.
    pub(super) fn attributes(&self) -> Option<Attributes> {
        let tree = &self.0;
        let mut evaluator = eval::Evaluator::new(tree);
        let mut number = |id: Option<tree::ExprId>| match id {
            Some(id) => evaluator.count(id).map(Some),
            None => Some(None),
        };
        let structs = tree
            .structs
            .iter()
            .filter(|found| found.members.iter().any(|member| member.align.is_some() || member.size.is_some()));
        let mut all = Attributes::new();
        for structure in structs {
            let members = structure.members.iter().map(|member| Some((number(member.align)?, number(member.size)?)));
            all.insert(structure.name.clone(), members.try_listed()?);
        }
        Some(all)
    }
}

/// True where a text may have such attributes, for texts that cannot be read.
pub(super) fn may_have_attributes(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let name = text[at + 1..].trim_start();
        name.starts_with("align") || name.starts_with("size")
    })
}

/// True where a text may have operations that need uniform control flow, for texts that cannot be read.
pub(super) fn may_be_collective(text: &str) -> bool {
    uniformity::may_be_collective(text)
}
