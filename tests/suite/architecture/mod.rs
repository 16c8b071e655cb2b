//! No arrow points up. Between crates the compiler keeps that; this test keeps it between the rooms of a crate that has several, and between the
//! files of each backend: every path in their source is resolved, and what is below knows nothing of what is above.
//!
//! Paths count wherever they are: in `use` with groups and renames, inline in expressions and types, by `super::`, through re-exports, and
//! within macros. Methods have no path and are not seen.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use source::{Arrow, Source};

/// The rooms of crates that have several, highest first. Those on one line know nothing of each other. ARCHITECTURE.md says the same in words.
const ORDERS: &[(&str, &[&[&str]])] = &[
    (
        "base",
        &[
            &["texels"],
            &["tensor", "config"],
            &[
                "reflection",
                "deep_stack",
                "files",
                "flow",
                "fnv",
                "folders",
                "fragment",
                "instructions",
                "memory",
                "private_folder",
            ],
            &["error", "threads", "texture"],
            &["listed"],
        ],
    ),
    ("engine", &[&["ops"], &["engine"], &["backend"]]),
];

/// The sources of a crate.
fn sources(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates").join(name).join("src")
}

/// The library's crates, by name.
fn crates() -> &'static BTreeMap<String, Source> {
    static CRATES: LazyLock<BTreeMap<String, Source>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
        let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let names = folders.filter(|entry| entry.path().join("src").is_dir()).map(|entry| entry.file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let parsed =
            |name: &String| Source::parse(&sources(name).join("lib.rs"), &|path| std::fs::read_to_string(path).ok());
        names.map(|name| (parsed(&name), name)).map(|(source, name)| (name, source)).collect()
    });
    &CRATES
}

fn level(order: &[&[&str]], module: &str) -> Option<usize> {
    order.iter().position(|level| level.contains(&module))
}

/// The arrows between top modules that do not point down, and modules that have no place in the order.
fn wrong_arrows(source: &Source, order: &[&[&str]]) -> Vec<(String, String, String)> {
    let top = |module: usize| source.modules[module].path.first().cloned();
    let mut wrong = Vec::new();
    for Arrow { from, to, path, line } in &source.arrows {
        let (Some(a), Some(b)) = (top(*from), top(*to)) else { continue };
        if a == b || level(order, &a).zip(level(order, &b)).is_some_and(|(a, b)| a < b) {
            continue;
        }
        let place = format!("{}:{line}: {path}", source.modules[*from].file.display());
        wrong.push((a, b, place));
    }
    wrong
}

/// The cycles between the files of a folder, each as a list of `file -> file` with places.
fn cycles(source: &Source, folder: &Path) -> Vec<String> {
    let mut edges: BTreeMap<PathBuf, BTreeMap<PathBuf, String>> = BTreeMap::new();
    for Arrow { from, to, path, line } in &source.arrows {
        let (from, to) = (&source.modules[*from].file, &source.modules[*to].file);
        if from != to && from.starts_with(folder) && to.starts_with(folder) {
            edges.entry(from.clone()).or_default().entry(to.clone()).or_insert(format!("{line}: {path}"));
        }
    }
    let reachable = |start: &PathBuf| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            for next in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let closure: BTreeMap<_, _> = edges.keys().map(|file| (file.clone(), reachable(file))).collect();
    let mut found = Vec::new();
    for (from, targets) in &edges {
        for (to, place) in targets {
            if closure.get(to).is_some_and(|further| further.contains(from)) {
                found.push(format!("{}:{place} (in {})", from.display(), to.display()));
            }
        }
    }
    found
}

#[test]
fn no_arrow_points_up() {
    for (name, order) in ORDERS {
        let source = &crates()[*name];
        let unplaced: BTreeSet<_> = source.modules.iter().filter_map(|module| module.path.first()).collect();
        for module in unplaced {
            assert!(level(order, module).is_some(), "the module {module} of {name} has no place in `ORDERS` yet");
        }
        let wrong = wrong_arrows(source, order);
        assert!(
            wrong.is_empty(),
            "these arrows of {name} point up (move what both need below both):\n{}",
            wrong.iter().map(|(a, b, place)| format!("  {a} -> {b} at {place}")).collect::<Vec<_>>().join("\n")
        );
    }
}

/// The files of a backend are in an order: `Backend` over `Device` over queue, program and memory.
#[test]
fn the_files_of_each_backend_have_an_order() {
    let mut found = cycles(&crates()["cpu"], &sources("cpu"));
    for (name, least) in [("gpu", 6), ("graph-devices", 3)] {
        let folders = std::fs::read_dir(sources(name)).unwrap().map(|entry| entry.unwrap().path());
        let folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
        assert!(folders.len() >= least, "the backends are not where they are looked for");
        found.extend(folders.iter().flat_map(|folder| cycles(&crates()[name], folder)));
    }
    assert!(found.is_empty(), "these arrows are part of a cycle within a backend:\n  {}", found.join("\n  "));
}

/// Every file counts: none is left out because no `mod` names it where this test looks.
#[test]
fn every_file_is_parsed() {
    assert!(crates().len() >= 11, "the crates are not where they are looked for");
    let mut missed = Vec::new();
    for (name, source) in crates() {
        let parsed: BTreeSet<_> = source.modules.iter().map(|module| module.file.clone()).collect();
        let (mut open, program) = (vec![sources(name)], sources(name).join("main.rs"));
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path == program {
                    // A program beside the library is a crate of its own.
                } else if path.extension().is_some_and(|extension| extension == "rs") && !parsed.contains(&path) {
                    missed.push(path);
                }
            }
        }
    }
    assert!(missed.is_empty(), "no module of its crate: {missed:?}");
}

/// A crate of a few files: `below` may not know `above`.
fn sample(below: &str, extra: &[(&str, &str)]) -> Source {
    let mut files = BTreeMap::from([
        ("src/lib.rs", "pub mod above; pub mod below; pub use above::Thing as Front; pub use above::inner;"),
        (
            "src/above/mod.rs",
            "pub mod inner; pub mod deep; pub struct Thing; pub fn make() -> Thing { Thing } pub const N: u32 = 1;",
        ),
        ("src/above/inner.rs", "pub fn work() {} pub type Short = u8;"),
        ("src/above/deep.rs", "pub use super::inner::work as toil;"),
        ("src/below/mod.rs", below),
    ]);
    files.extend(extra.iter().copied());
    Source::parse(Path::new("src/lib.rs"), &|path| files.get(path.to_str().unwrap()).map(|&text| text.to_owned()))
}

const SMALL: &[&[&str]] = &[&["above"], &["below"]];

#[test]
fn an_arrow_up_is_found_in_every_form() {
    let forms = [
        ("use", "use crate::above::Thing;"),
        ("use of a module", "use crate::above; fn f() { above::make(); }"),
        ("group", "use crate::{above::{inner::work}};"),
        ("group with self", "use crate::above::{self};"),
        ("rename", "use crate::above as other; fn f() { other::make(); }"),
        ("glob", "use crate::above::*;"),
        ("public use", "pub use crate::above::Thing;"),
        ("inline expression", "fn f() { crate::above::make(); }"),
        ("inline constant", "const M: u32 = crate::above::N + 1;"),
        ("inline type", "fn f(_: Vec<crate::above::Thing>) {}"),
        ("trait object", "type T = Box<dyn Fn(crate::above::Thing)>;"),
        ("pattern", "fn f(x: u32) { if let crate::above::N = x {} }"),
        ("super", "fn f() { super::above::make(); }"),
        ("self and super", "use self::super::above::Thing;"),
        ("super twice", "mod m { fn f() { super::super::above::make(); } }"),
        ("use in a body", "fn f() { use crate::above::make; make(); }"),
        ("re-export of the root", "fn f(_: crate::Front) {}"),
        ("module that the root re-exports", "fn f() { crate::inner::work(); }"),
        ("super to a re-export", "use super::Front;"),
        ("re-export of a re-export", "use crate::above::deep::toil;"),
        ("macro's argument", "fn f() { println!(\"{}\", crate::above::N); }"),
        ("macro in a macro", "fn f() { assert!(matches!(1, crate::above::N)); }"),
        ("macro's definition", "macro_rules! m { () => { $crate::above::make() } }"),
        ("use in a macro", "macro_rules! m { () => { use crate::{above::make}; } }"),
        ("super in a macro", "fn f() { println!(\"{}\", super::above::N); }"),
        (
            "implementation",
            "struct S; impl From<crate::above::Thing> for S { fn from(_: crate::above::Thing) -> S { S } }",
        ),
        ("test module", "#[cfg(test)] mod tests { use crate::above::*; }"),
        ("attribute cfg", "#[cfg(feature = \"never\")] use crate::above::Thing;"),
    ];
    for (form, text) in forms {
        let wrong = wrong_arrows(&sample(text, &[]), SMALL);
        assert!(wrong.iter().any(|(a, b, _)| a == "below" && b == "above"), "not seen: {form}: {text}");
    }
}

#[test]
fn an_arrow_up_is_found_in_other_files() {
    let below = "mod child; #[path = \"elsewhere.rs\"] mod moved;";
    let extra = [
        ("src/below/child.rs", "fn f() { super::super::above::make(); }"),
        ("src/below/elsewhere.rs", "use crate::above::Thing;"),
    ];
    let wrong = wrong_arrows(&sample(below, &extra), SMALL);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn what_points_down_or_elsewhere_is_right() {
    let text = "
        // crate::above::Thing
        /// [`crate::above::Thing`]
        pub(in crate::below) fn f() -> std::vec::Vec<u8> { let above = 1; println!(\"{above} crate::above::N\"); vec![] }
        mod above { pub fn make() {} }
        fn g() { above::make(); }
    ";
    let wrong = wrong_arrows(&sample(text, &[]), SMALL);
    assert!(wrong.is_empty(), "{wrong:?}");
    let turned: &[&[&str]] = &[&["below"], &["above"]];
    assert!(wrong_arrows(&sample("use crate::above::Thing;", &[]), turned).is_empty());
}

#[test]
fn modules_on_one_level_know_nothing_of_each_other() {
    let level: &[&[&str]] = &[&["above", "below"]];
    assert_eq!(wrong_arrows(&sample("use crate::above::Thing;", &[]), level).len(), 1);
}

#[test]
fn a_cycle_between_files_is_found() {
    let below = "mod device; mod memory; use device::Device;";
    let files = |memory| {
        [("src/below/device.rs", "use super::memory::Memory; pub struct Device;"), ("src/below/memory.rs", memory)]
    };
    let folder = Path::new("src/below");
    assert!(cycles(&sample(below, &files("pub struct Memory;")), folder).is_empty());
    let cyclic = ["use super::device::Device; pub struct Memory;", "pub struct Memory(super::Device);"];
    for memory in cyclic {
        assert!(!cycles(&sample(below, &files(memory)), folder).is_empty(), "{memory}");
    }
}
