//! The rotation, and the parts that a change calls for.

use std::process::Command;

use crate::reach::Change;
use crate::run::Run;
use crate::table;

/// Which turn it is: CANTUS_TURN, else by commit, so that in time each piece has its turn.
pub fn turn() -> u64 {
    let said = std::env::var("CANTUS_TURN").ok().and_then(|text| text.parse().ok());
    said.or_else(|| Some(u64::from_str_radix(git(&["rev-parse", "--short=7", "HEAD"])?.trim(), 16).ok()? % 1000))
        .unwrap_or(0)
}

/// Runs the parts whose paths the change touches, from another one with each turn; what doesn't fit into the time is listed.
pub fn touched_parts(change: &Change, turn: u64, run: &mut Run) {
    let mut left = std::env::var("CANTUS_PARTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let mut parts = table::parts();
    let first = turn as usize % parts.len().max(1);
    parts.rotate_left(first);
    for part in parts {
        if !change.touches(part.paths) {
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

/// The output of git, where it says something.
pub fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
