//! The rotation, and the parts that a change calls for.

use std::process::Command;

use crate::run::Run;
use crate::table;

/// Which turn it is: CANTUS_TURN, else by commit, so that in time each piece has its turn.
pub fn turn() -> u64 {
    let said = std::env::var("CANTUS_TURN").ok().and_then(|text| text.parse().ok());
    said.or_else(|| Some(u64::from_str_radix(git(&["rev-parse", "--short=7", "HEAD"])?.trim(), 16).ok()? % 1000))
        .unwrap_or(0)
}

/// Runs the parts whose paths the change touches, from another one with each turn; what doesn't fit into the time is listed.
pub fn touched_parts(turn: u64, run: &mut Run) {
    let base = std::env::var("CANTUS_BASE").ok().or_else(|| git(&["rev-list", "-1", "--before=4 hours ago", "HEAD"]));
    // Without a history everything counts as touched.
    let changed =
        base.filter(|base| !base.trim().is_empty()).and_then(|base| git(&["diff", "--name-only", base.trim(), "HEAD"]));
    let mut left = std::env::var("CANTUS_PARTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let mut parts = table::parts();
    let first = turn as usize % parts.len().max(1);
    parts.rotate_left(first);
    for part in parts {
        if changed.as_deref().is_some_and(|changed| !changed.lines().any(|path| part.is_touched_by(path))) {
            run.left_out(part.name, "the change touches nothing of it");
        } else if part.minutes > left {
            run.left_out(
                part.name,
                &format!("it is touched and takes {} min: ./test --part {}", part.minutes, part.name),
            );
        } else {
            left -= part.minutes;
            run.part(&part);
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
