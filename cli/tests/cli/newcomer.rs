//! The guide's first ten minutes, followed to the letter: files as they are written there, commands as they are typed, answers as they are shown.

use crate::Place;

const PAGE: &str = include_str!("../../../docs/guide/src/ten-minutes.md");

/// The fenced blocks of the page: their language and their lines.
fn blocks() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in PAGE.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language, Vec::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    blocks
}

/// Whether a line is the one shown, in which `…` stands for anything.
fn is_like(found: &str, shown: &str) -> bool {
    match shown.split_once('…') {
        None => found == shown,
        Some((first, last)) => {
            found.len() >= first.len() + last.len() && found.starts_with(first) && found.ends_with(last)
        }
    }
}

#[test]
fn the_first_ten_minutes() {
    let place = Place::new();
    let mut commands = 0;
    for (language, lines) in blocks() {
        if language == "wgsl" {
            place.write("saxpy.wgsl", lines.join("\n") + "\n");
            continue;
        }
        assert_eq!(language, "console");
        let mut typed = lines.split(|line| line.starts_with("$ ")).skip(1);
        for command in lines.iter().filter_map(|line| line.strip_prefix("$ ")) {
            let shown = typed.next().unwrap();
            let said = match command.strip_prefix("cantus ") {
                Some(arguments) => {
                    let done = place.run(arguments);
                    done.stdout + &done.stderr
                }
                None => std::fs::read_to_string(place.path(command.strip_prefix("cat ").unwrap())).unwrap(),
            };
            commands += 1;
            let said: Vec<&str> = said.lines().collect();
            if shown == ["…"] {
                continue;
            }
            assert_eq!(said.len(), shown.len(), "{command}: {said:#?}");
            for (found, shown) in said.iter().zip(shown) {
                assert!(is_like(found, shown), "{command}:\n{found}\n{shown}");
            }
        }
    }
    assert!(commands >= 8);
    for file in ["field.png", "y.csv", "saxpy.cu", "coral/reaction.png"] {
        assert!(place.path(file).is_file(), "{file}");
    }
}
