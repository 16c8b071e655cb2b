//! The text before naga: what naga 30 refuses though WGSL has it, or takes and gets wrong, is rewritten; everything else keeps its bytes.
//! `docs/naga.md` lists the reasons. The reading is our own and small: declarations and expressions with their places ([`tree`]), an
//! evaluator of constant expressions ([`eval`]), and edits by ranges of bytes, so that reports still show the author's text.

mod edits;
mod eval;
mod halves;
mod infer;
mod lex;
mod parse;
mod rewrite;
mod tree;

pub(super) use edits::Source;

use std::collections::HashMap;

/// Alignment and size that attributes give to a structure's members, by the structure's name.
pub(super) type Attributes = HashMap<String, Vec<(Option<u32>, Option<u32>)>>;

/// A text, read.
pub(super) struct Front<'t>(tree::Tree<'t>);

impl<'t> Front<'t> {
    /// Reads a text; `None` where it cannot be followed.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        parse::parse(text).map(Self)
    }

    /// What naga would take and get wrong, rewritten. `None` where there is nothing of that kind.
    pub(super) fn corrected(&self, file: &str) -> Option<Source> {
        Source::rewritten(file, self.0.text, rewrite::wrong(&self.0))
    }

    /// With what naga refuses rewritten as well.
    pub(super) fn rewritten(&self, file: &str) -> Option<Source> {
        Source::rewritten(file, self.0.text, rewrite::all(&self.0))
    }

    /// A name that stands for something that Cantus lacks, and the reason.
    pub(super) fn refusal(&self) -> Option<(naga::Span, String)> {
        rewrite::refusal(&self.0)
    }

    /// Where the members of the structures begin, in the text's order.
    #[cfg_attr(not(feature = "writers"), allow(dead_code, reason = "not every build writes WGSL"))]
    pub(super) fn structures(&self) -> Vec<Vec<usize>> {
        let starts =
            |structure: &tree::Structure| structure.members.iter().map(|member| member.name.start as usize).collect();
        self.0.structs.iter().map(starts).collect()
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
            all.insert(structure.name.clone(), members.collect::<Option<_>>()?);
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

/// Neither layouts nor constants of the text are such that naga alone could get them wrong.
#[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
pub(super) fn is_for_naga(text: &str) -> bool {
    !may_have_attributes(text) && Front::read(text).is_none_or(|front| rewrite::wrong(&front.0).is_empty())
}
