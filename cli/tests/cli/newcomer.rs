//! The guide's chapters on the program, followed to the letter: files as they are written there, commands as they are typed, answers as they are
//! shown.

use crate::Place;

/// The fenced blocks of a page: their language, with the file's name behind it where there is one, and their lines.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language, Vec::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    blocks
}

/// Returns whether a line is the one shown, in which `…` stands for anything.
fn is_like(found: &str, shown: &str) -> bool {
    match shown.split_once('…') {
        None => found == shown,
        Some((first, last)) => {
            found.len() >= first.len() + last.len() && found.starts_with(first) && found.ends_with(last)
        }
    }
}

/// Follows a page, and returns the folder and how many commands there were.
fn follow(page: &str) -> (Place, usize) {
    let place = Place::new();
    let mut commands = 0;
    for (language, lines) in blocks(page) {
        if let Some((_, name)) = language.split_once(' ') {
            place.write(name, lines.join("\n") + "\n");
            continue;
        }
        if language != "console" {
            continue;
        }
        let mut typed = lines.split(|line| line.starts_with("$ ")).skip(1);
        for command in lines.iter().filter_map(|line| line.strip_prefix("$ ")) {
            let shown = typed.next().unwrap();
            let said = match command.strip_prefix("cantus ") {
                Some(arguments) => {
                    let done = place.run(arguments);
                    let expected = shown.first().is_some_and(|line| line.starts_with("error: "));
                    assert_eq!(done.code == Some(0), !expected, "{command}: {}", done.stderr);
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
    (place, commands)
}

#[test]
fn the_first_ten_minutes() {
    let (place, commands) = follow(include_str!("../../../docs/guide/src/ten-minutes.md"));
    assert!(commands >= 8);
    for file in ["field.png", "y.csv", "saxpy.cu", "coral/reaction.png"] {
        assert!(place.path(file).is_file(), "{file}");
    }
}

#[test]
fn the_chapters_on_the_program() {
    for (page, least, file) in [
        (include_str!("../../../docs/guide/src/field.md"), 4, "field.gif"),
        (include_str!("../../../docs/guide/src/run.md"), 6, "after.png"),
        (include_str!("../../../docs/guide/src/images.md"), 3, "blurred.png"),
        (include_str!("../../../docs/guide/src/jobs.md"), 4, "heat.csv"),
        (include_str!("../../../docs/guide/src/larger-than-memory.md"), 3, "y.npy"),
        (include_str!("../../../docs/guide/src/config.md"), 3, ""),
        (include_str!("../../../docs/guide/src/bench.md"), 1, "bench.html"),
    ] {
        let (place, commands) = follow(page);
        assert!(commands >= least, "{page}");
        assert!(place.path(file).exists(), "{file}");
    }
}
