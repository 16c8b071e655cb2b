//! `cantus top`: real engines in other processes, watched from this one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Done, Place, run};

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, publishing into the place's folder.
fn publishing(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("cantus"));
    command.args(arguments).env("XDG_RUNTIME_DIR", place.folder.path()).env("CANTUS_PUBLISH", "1");
    command.current_dir(place.folder.path()).env("HOME", place.folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn top(place: &Place, arguments: &[&str]) -> Done {
    run(place.command().args(["top"]).args(arguments).env("XDG_RUNTIME_DIR", place.folder.path()))
}

fn engines(place: &Place) -> Vec<Value> {
    let done = top(place, &["--once", "--json", "--interval", "600ms"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let sample: Value = serde_json::from_str(&done.stdout).unwrap();
    sample["engines"].as_array().unwrap().clone()
}

fn eventually<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it never happened");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("cantus")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_engine_in_another_process_is_watched_and_forgotten() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    assert!(engines(&place).is_empty());
    let mut child = Ended(publishing(&place, &["--backend", "cpu", "bench"]).spawn().unwrap());
    let pid = u64::from(child.0.id());
    let of_child = || engines(&place).into_iter().find(|engine| engine["process"] == pid);
    let first = eventually(of_child);
    assert_eq!(first["program"], "cantus bench");
    assert_eq!(first["devices"][0]["backend"], "cpu");
    let count = |engine: &Value| engine["dispatches"].as_u64().unwrap();
    let moved = eventually(|| of_child().filter(|engine| count(engine) > count(&first)));
    assert!(moved["age"].as_f64() > first["age"].as_f64());
    assert!(moved["dispatches_per_second"].as_f64().unwrap() >= 0.0);
    assert!(moved["kernels"].as_array().is_some_and(|kernels| !kernels.is_empty()));
    let folder = place.path("cantus");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    // One that is just being replaced is not there for a moment.
    for file in files(place.folder.path()).iter().filter(|name| !name.ends_with(".tmp")) {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    let table = top(&place, &["--once"]).stdout;
    assert!(table.contains("PROCESS") && table.contains(&pid.to_string()), "{table}");
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert!(!files(place.folder.path()).is_empty(), "a process that is killed leaves its files");
    assert!(engines(&place).is_empty(), "and they are recognised");
    assert!(files(place.folder.path()).iter().all(|name| name.ends_with(".tmp")), "and removed");
}

#[test]
fn an_engine_that_ends_takes_its_files_along_and_one_that_is_not_asked_writes_none() {
    let place = Place::new();
    let field = ["--backend", "cpu", "field", "64x64", "-o", "field.npy"];
    assert!(publishing(&place, &field).status().unwrap().success());
    assert!(place.path("cantus").is_dir(), "it did publish");
    assert_eq!(files(place.folder.path()), [""; 0]);
    let place = Place::new();
    assert!(publishing(&place, &field).env("CANTUS_PUBLISH", "0").status().unwrap().success());
    assert!(!place.path("cantus").exists());
    // A folder that is not this user's alone stops nobody's work.
    std::fs::create_dir(place.path("cantus")).unwrap();
    std::fs::set_permissions(place.path("cantus"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(publishing(&place, &field).status().unwrap().success());
    assert_eq!(files(place.folder.path()), [""; 0]);
}

#[test]
fn without_a_terminal_it_is_a_table_and_json_goes_by_lines() {
    let place = Place::new();
    let plain = top(&place, &["--interval", "200ms"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    for word in ["DEVICE", "MEMORY", "No engine publishes"] {
        assert!(plain.stdout.contains(word), "{word}: {}", plain.stdout);
    }
    assert!(!plain.stdout.contains('\u{1b}'));
    let verbose = top(&place, &["--once", "-v"]).stdout;
    assert!(verbose.contains("processes: - (every process uses the processor)"), "{verbose}");
    let mut command = publishing(&place, &["top", "--json", "--interval", "200ms"]);
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.0.stdout.take().unwrap()));
    let times: Vec<u64> = lines
        .take(3)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["time_ms"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| b - a >= 200), "{times:?}");
    // The reader is gone.
    eventually(|| child.0.try_wait().unwrap()).success().then_some(()).unwrap();
}
