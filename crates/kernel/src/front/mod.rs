//! The front end: the text before naga. It rewrites what naga 30 refuses although it is WGSL, and what naga takes and gets wrong. It also checks what
//! naga does not check. Every other text keeps its bytes. `docs/naga.md` lists each case with its reason.
//!
//! # What comes in
//! A text with its `File`. `wgsl.rs` (`Parsed::parse`) calls the stages and passes the results to naga.
//!
//! # Stages
//! 1. **Bounds** (`bounds.rs`, before this module). A scan over tokens refuses texts that naga's recursion would not survive.
//! 2. **Read** (`lex`, `parse`). `Front::read` makes a `Tree`: declarations, statements and expressions with their places in bytes. The reader is
//!    lenient: what is wrong in a text is naga's to report. A text that it cannot follow goes to naga unchanged, and is refused if it may have `@align`,
//!    `@size`, barriers or subgroup operations, which would then be unchecked.
//! 3. **Refuse** (`constants`, `rewrite::refusal`). Constants that take too much to evaluate, and names for what Cantus lacks.
//! 4. **Correct** (`rewrite::wrong`). What naga accepts and gets wrong is rewritten, and naga parses the result. Most texts have nothing of the kind.
//! 5. **Rewrite** (`rewrite::all`). Only if naga's parser or validator refuses or panics, the constructs that it lacks are rewritten as well, and naga
//!    parses again.
//! 6. **Uniformity** (`uniformity`). WGSL's analysis of barriers, subgroup operations and derivatives, on the tree and not on naga's module.
//!
//! Between parsing and validation, `amend` corrects naga's module.
//!
//! # What carries it
//! - `Tree`: flat lists. Nodes refer to each other by number, operands have smaller numbers than what contains them, and no node owns another, so walks
//!   are loops and dropping does not recurse.
//! - `Edit`: a range of bytes and the text in its place. `Source`: the author's text, the text for naga, and the way back between them (`Source::span`).
//! - `Evaluator` (`eval`): the values of constant expressions. `infer`: types of expressions, as far as the text alone gives them.
//! - `Fault`: a message with places.
//!
//! # What holds
//! - Reports show the author's text. naga's spans are mapped back through the edits; of linked texts, to their files.
//! - `None` of the evaluator and of `infer` means "not known here". Neither guesses, and what is not known is not rewritten.
//! - Recursion and work are bounded: `parse::DEEPEST`, `eval::DEEPEST`, `eval::MOST_WORK`.
//! - Edits do not overlap. Of two that would, the first is kept, or the longer one if both begin together.
//!
//! # What is surprising
//! - A text is parsed by naga twice if naga refuses it at first. This is cheaper than rewriting every text, and leaves the others byte for byte as they
//!   were.
//! - Uniformity is checked after validation, so a text with both faults reports naga's.
//!
//! # An example
//! `const MIDDLE = mix(2.0, 4.0, 0.5);` naga's evaluator of constants lacks `mix`, so it refuses the text. `rewrite::all` finds the call in `LACKING`,
//! `Evaluator` computes its value, and the call's bytes are replaced by it. naga takes the new text. An error in a later line has a place behind the
//! edit; `Source::span` moves it back by the difference of lengths.

mod aliases;
mod constants;
pub(crate) mod diagnostics;
mod domain;
mod edits;
mod entry;
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

    /// The text with constants in place of its overrides. `values` has, by name, those whose value differs from the text's, with the new one.
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

    /// A call of a builtin function with constants for which it has no value, where an entry point reaches it, and the reason.
    pub(super) fn outside_domain(&self, entry: &str) -> Option<(naga::Span, String)> {
        let (place, reason) = domain::fault_of(&self.0, entry)?;
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

    /// Control flow and values that must be uniform and may not be: the first error, and the warnings.
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
            Some(id) => evaluator.count(id).filter(|&number| i32::try_from(number).is_ok()).map(Some),
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
