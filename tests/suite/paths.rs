//! Every path that a comment or a page names exists. A reader follows such a path, and no other check reports one that a move left behind.
//!
//! A path is a word with a slash and the ending of a source file, the name of a source file, or a word in backticks whose first part is a folder
//! (`ops/expr`). It may begin anywhere above the file, and leave out `crates` and `src`. Code in pages and docs is not read, and neither are strings.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Folders of no text of the project, wherever they lie: what is fetched, and the page, packages and libraries once they are built, whole or in part.
const NO_TEXT: &[&str] = &["target", "node_modules", ".git", ".venv", "dist", "npm", "out", "pkg"];

/// Texts that are generated or describe the past.
const UNREAD: &[&str] = &[
    "benches/notes",
    "CHANGELOG.md",
    "shaders/src/prepared",
    "native-fastpaths/cpu/src",
    "tests/suite/paths.rs",
    "tests/suite/translate/snapshots",
];

/// Files of an app, of a user or of another project that comments and pages speak of.
const OF_OTHERS: &[&str] = &[
    ".github/workflows/test.yml",
    "api/operation",
    "cantus-serve/keys.toml",
    "cantus/config.toml",
    "cantus/examples/bn254-sum.js",
    "cantus/proofs",
    "coral/reaction.toml",
    "gpu/amdgpu/driver-misc",
    "gpu/amdgpu/thermal",
    "shaders/blur.wgsl",
    "shaders/clouds.wgsl",
    "shaders/share.wgsl",
    "shaders/shift.wgsl",
];

/// Endings of files that a path with a slash may have.
const ENDINGS: &[&str] =
    &["c", "cpp", "cu", "html", "js", "json", "md", "mjs", "py", "rs", "sh", "toml", "ts", "wgsl", "yml"];
/// Endings of files that are named without a folder. Others are often an app's.
const ALONE: &[&str] = &["cpp", "cu", "mjs", "py", "rs", "sh"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files and folders of the project, relative to its root, by `/`.
fn entries() -> Vec<String> {
    let (root, mut found, mut open) = (root(), Vec::new(), vec![String::new()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if NO_TEXT.contains(&&*name) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

/// The parts of a path that count.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !["", ".", "..", "crates", "src"].contains(part)).collect()
}

/// The files and folders that exist, by every form in which they may be named.
struct Tree {
    ends: HashSet<String>,
    folders: HashSet<String>,
}

impl Tree {
    fn new(entries: &[String]) -> Self {
        let (mut ends, mut folders) = (HashSet::new(), HashSet::new());
        for entry in entries {
            let parts = parts(entry);
            for start in 0..parts.len() {
                let end = parts[start..].join("/");
                // A module's folder is also named by its file.
                ends.extend(end.rsplit_once('.').map(|(stem, _)| stem.to_owned()));
                ends.insert(end);
            }
            folders.extend(parts.iter().rev().skip(1).map(|&part| part.to_owned()));
        }
        Self { ends, folders }
    }

    fn has(&self, path: &str) -> bool {
        let parts = parts(path);
        parts.is_empty() || self.ends.contains(&parts.join("/"))
    }
}

/// How a file marks what is prose.
#[derive(Clone, Copy, PartialEq)]
enum Marks {
    All,
    Slashes,
    Hash,
}

fn marks(path: &str) -> Option<Marks> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => Some(Marks::All),
        Some("rs" | "wgsl" | "mjs" | "js" | "ts" | "cu" | "cpp" | "c") => Some(Marks::Slashes),
        Some("toml" | "sh" | "py" | "yml") => Some(Marks::Hash),
        _ if path.starts_with(".ci/") || path.starts_with("xtask/release/") || path == "test" => Some(Marks::Hash),
        _ => None,
    }
}

/// The prose of a text, by lines.
fn prose(text: &str, marks: Marks) -> impl Iterator<Item = (usize, &str)> {
    let (mut fenced, mark) = (false, if marks == Marks::Slashes { "//" } else { "#" });
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let words = if marks == Marks::All {
            line
        } else {
            let starts = line.match_indices(mark).map(|(at, _)| at);
            let start = { starts }.find(|&at| line[..at].chars().next_back().is_none_or(char::is_whitespace));
            let Some(start) = start else {
                fenced = false;
                return None;
            };
            line[start..].trim_start_matches(['/', '#', '!'])
        };
        if words.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((number, words))
    })
}

/// The paths that a line of prose names.
fn named(line: &str, tree: &Tree) -> Vec<String> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_.-/{},".contains(c);
    let mut found = Vec::new();
    for token in line.split_whitespace().filter(|token| !token.contains("://")) {
        let mut rest = 0;
        while let Some(start) = token[rest..].find(is_path).map(|at| rest + at) {
            let end = token[start..].find(|c| !is_path(c)).map_or(token.len(), |at| start + at);
            rest = end;
            let (before, after) = (token[..start].chars().next_back(), token[end..].chars().next());
            // Part of a pattern, a variable or an address.
            let is_part = |c: Option<char>| c.is_some_and(|c| "*<>$~@:…%=".contains(c));
            if is_part(before) || after.is_some_and(|c| "*<>$…%=".contains(c)) {
                continue;
            }
            let quoted = before == Some('`') && after == Some('`');
            let word = &token[start..end];
            let all =
                if word.contains('{') { alternatives(word) } else { word.split(',').map(str::to_owned).collect() };
            for word in all {
                let word = word.trim_end_matches(['.', ',', '/']);
                if counts(word, quoted, tree) {
                    found.push(word.to_owned());
                }
            }
        }
    }
    found
}

/// The words that braces stand for: of `{b,c}.rs`, two.
fn alternatives(word: &str) -> Vec<String> {
    let Some((head, (inner, tail))) = word.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
    else {
        return Vec::new();
    };
    inner
        .split(',')
        .flat_map(|one| {
            let whole = format!("{head}{one}{tail}");
            if whole.contains('{') { alternatives(&whole) } else { vec![whole] }
        })
        .collect()
}

/// Returns whether a word is a path.
fn counts(word: &str, quoted: bool, tree: &Tree) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_placeholder = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part);
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase() || "_-".contains(c))
    };
    match name.rsplit_once('.') {
        // A place on a server.
        _ if word.starts_with('/') => false,
        _ if word.split('/').any(is_placeholder) && !tree.has(word) => false,
        Some(("", _)) => false,
        Some((_, ending)) if word.contains('/') => ENDINGS.contains(&ending),
        Some((_, ending)) => ALONE.contains(&ending),
        None => quoted && parts(word).len() > 1 && tree.folders.contains(parts(word)[0]),
    }
}

/// The paths of a text that do not exist, with their lines.
fn stale(text: &str, marks: Marks, tree: &Tree) -> Vec<(usize, String)> {
    let all = prose(text, marks).flat_map(|(line, words)| named(words, tree).into_iter().map(move |path| (line, path)));
    all.filter(|(_, path)| !tree.has(path)).collect()
}

#[test]
fn every_path_that_is_named_exists() {
    let entries = entries();
    let tree = Tree::new(&entries);
    let is_read = |path: &str| !UNREAD.iter().any(|unread| path == *unread || path.starts_with(&format!("{unread}/")));
    let (mut wrong, mut read, mut of_others) = (Vec::new(), 0, HashSet::new());
    for path in entries.iter().filter(|path| is_read(path)) {
        let Some(marks) = marks(path) else { continue };
        let Ok(text) = std::fs::read_to_string(root().join(path)) else { continue };
        read += 1;
        for (line, named) in stale(&text, marks, &tree) {
            match OF_OTHERS.iter().find(|known| **known == named) {
                Some(known) => _ = of_others.insert(known),
                None => wrong.push(format!("  {path}:{line}: {named}")),
            }
        }
    }
    assert!(read > 500, "the project is not where it is looked for: {read} files");
    assert!(wrong.is_empty(), "these paths do not exist (name the file where it is now):\n{}", wrong.join("\n"));
    let unused: Vec<_> = OF_OTHERS.iter().filter(|known| !of_others.contains(known)).collect();
    assert!(unused.is_empty(), "no comment names these any more, or they exist: {unused:?}");
}

/// A project of a few files.
fn sample() -> Tree {
    let files =
        ["ARCHITECTURE.md", "crates/device/src/refusal.rs", "crates/engine/src/backend/mod.rs", "shaders/a/b.wgsl"];
    let folders = ["crates/device/src", "crates/engine/src/backend", "shaders/a"];
    Tree::new(&files.iter().chain(&folders).map(|path| (*path).to_owned()).collect::<Vec<_>>())
}

#[test]
fn a_stale_path_is_found_in_comments_and_pages() {
    let cases = [
        (Marks::Slashes, "//! See backend/refusal.rs.", "backend/refusal.rs"),
        (Marks::Slashes, "    let x = 1; // as `backend/refusal.rs` does", "backend/refusal.rs"),
        (Marks::Slashes, "/// Its other side is `backend/checks`.", "backend/checks"),
        (Marks::Slashes, "// The order (gone.rs) counts.", "gone.rs"),
        (Marks::Hash, "cargo test # what ./crates/engine/lost.sh says", "./crates/engine/lost.sh"),
        (Marks::All, "- **Loss** ([how](../device/src/{refusal,lost}.rs))", "../device/src/lost.rs"),
        (Marks::All, "```\ngone.rs\n```\n`shaders/a/c.wgsl`, and more", "shaders/a/c.wgsl"),
    ];
    for (marks, text, path) in cases {
        let found: Vec<_> = stale(text, marks, &sample()).into_iter().map(|(_, path)| path).collect();
        assert_eq!(found, [path], "{text}");
    }
}

#[test]
fn what_exists_or_is_no_path_is_left_alone() {
    let texts = [
        "`crates/device/src/refusal.rs`, `device/refusal.rs`, refusal.rs, `device/refusal`, `backend/mod.rs`, `engine/backend`",
        "ARCHITECTURE.md, and/or, `f32/f16`, `x / y`, 1.5, e.g. this, `shaders/NAME.wgsl`, `a/*.rs`, `$HOME/gone.rs`, report.md",
        "https://example.org/gone.rs, `application/json`, `OUT_DIR/kernels.rs`, <kernel>.rs, `shaders/a/`, .rs",
    ];
    for text in texts {
        assert_eq!(stale(text, Marks::All, &sample()), [], "{text}");
    }
    assert_eq!(stale("let path = \"gone.rs\";\nlet url = \"a//gone.rs\";", Marks::Slashes, &sample()), []);
    assert_eq!(stale("/// ```\n/// read(gone.rs)\n/// ```", Marks::Slashes, &sample()), []);
}
