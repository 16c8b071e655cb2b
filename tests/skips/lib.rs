//! Reports what tests don't run: `./test` lists it at its end. The harness keeps what passing tests print; this goes past it.

use std::io::Write;

/// Says that something isn't run, and why: a line for a person, and one of `CANTUS_SKIPS`, the file that `./test` names.
pub fn not_run(what: &str, why: &str) {
    let line = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let (what, why) = (line(what), line(why));
    println!("not run: {what}: {why}");
    let Some(path) = std::env::var_os("CANTUS_SKIPS") else { return };
    // In one piece: programs write side by side.
    let written = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    let written = written.and_then(|mut file| file.write_all(format!("{what}\t{why}\n").as_bytes()));
    assert!(written.is_ok(), "{}: {written:?}", path.display());
}
