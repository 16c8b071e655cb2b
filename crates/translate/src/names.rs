//! Names: those of WGSL, kept unless a language or its headers use them.

use std::sync::LazyLock;

use naga::Module;
use naga::proc::{KeywordSet, NameKey, Namer};
use rustc_hash::FxHashMap;

/// Words of any of the four languages: a kernel's names are the same in all of them.
const WORDS: &str = include_str!("words.txt");

static RESERVED: LazyLock<KeywordSet> = LazyLock::new(|| WORDS.split_ascii_whitespace().collect());
static NONE: LazyLock<naga::proc::CaseInsensitiveKeywordSet> =
    LazyLock::new(naga::proc::CaseInsensitiveKeywordSet::new);

/// Names for everything in a module. Those made here never begin with `cantus_` and never end in a digit without an underscore before
/// the number, so that names of the translator's own do either.
pub(super) fn names(module: &Module) -> (Namer, FxHashMap<NameKey, String>) {
    let mut namer = Namer::default();
    let mut names = Default::default();
    namer.reset(module, &RESERVED, KeywordSet::empty(), &NONE, &["cantus_"], &mut names);
    (namer, names.into_iter().collect())
}
