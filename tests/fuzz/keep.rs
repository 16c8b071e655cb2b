//! Figures of several runs in one file: a line for each seed and class.

use std::path::Path;

use crate::Figures;

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default()
}

/// Returns the kept figures of a class; nothing where no file is named or it does not tell.
pub fn read(path: Option<&Path>, seed: u64, class: &str) -> Figures {
    let key = format!("{seed} {class} ");
    let line =
        path.and_then(|path| lines(path).into_iter().find_map(|line| line.strip_prefix(&key).map(str::to_owned)));
    let line = line.unwrap_or_default();
    let (numbers, crashes) = line.split_once(" | ").unwrap_or((&line, ""));
    let words: Vec<&str> = numbers.split(' ').collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok()).unwrap_or(0);
    let seconds = |place: usize| words.get(place).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let crashes = crashes.split(" | ").filter_map(|crash| {
        let (input, how) = crash.split_once(' ')?;
        Some((input.parse().ok()?, how.to_owned()))
    });
    Figures {
        inputs: number(0),
        passed: number(1),
        ran: number(2),
        slowest: (seconds(3), number(4)),
        memory_kib: number(5),
        seconds: seconds(6),
        next: number(7),
        crashes: crashes.collect(),
    }
}

/// Keeps the figures of a class.
pub fn write(path: Option<&Path>, seed: u64, class: &str, figures: &Figures) {
    let Some(path) = path else { return };
    let key = format!("{seed} {class} ");
    let mut all = lines(path);
    all.retain(|line| !line.starts_with(&key));
    let Figures { inputs, passed, ran, slowest, memory_kib, seconds, next, crashes } = figures;
    let crashes: String = crashes.iter().map(|(input, how)| format!(" | {input} {how}")).collect();
    all.push(format!(
        "{key}{inputs} {passed} {ran} {} {} {memory_kib} {seconds} {next}{crashes}",
        slowest.0, slowest.1
    ));
    std::fs::write(path, all.join("\n") + "\n").unwrap();
}
