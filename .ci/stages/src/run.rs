//! Runs stages, and remembers how long each took, which failed, and what the tests say they did not run.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use crate::reasons::Reasons;
use crate::table::{Part, Stage};

/// Where a stage runs, if that is not the tree: a copy of it, its target folder, and the file for what the stage prints.
pub struct Place<'a> {
    pub folder: &'a Path,
    pub target: &'a Path,
    pub log: &'a Path,
}

/// The stages that have run so far.
pub struct Run {
    began: Instant,
    ran: Vec<(String, Duration, Option<f64>)>,
    /// The stages that failed, and the lines of their output that say why.
    failed: Vec<(String, Vec<String>)>,
    not_run: Vec<(String, String)>,
    /// Where the tests write what they don't run: `CANTUS_SKIPS`, a line for each, `WHAT<tab>WHY`.
    skips: PathBuf,
    /// That file of the run whose stage this one is.
    outer: Option<PathBuf>,
    /// True if the output of stages is captured. Stages write to a terminal directly.
    is_read: bool,
    /// The variables for stages: the turn, the oracles that were found.
    environment: Vec<(String, String)>,
}

impl Run {
    /// Errors: the file of what doesn't run cannot be made.
    pub fn begin(turn: u64, window: bool) -> std::io::Result<Self> {
        let skips = std::env::temp_dir().join(format!("cantus-skips-{}", std::process::id()));
        std::fs::write(&skips, "")?;
        let mut run = Self {
            began: Instant::now(),
            ran: Vec::new(),
            failed: Vec::new(),
            not_run: Vec::new(),
            skips,
            outer: std::env::var_os("CANTUS_SKIPS").map(PathBuf::from),
            is_read: !std::io::stdout().is_terminal(),
            environment: Vec::new(),
        };
        run.tell("CANTUS_TURN", turn.to_string());
        run.tell("CANTUS_SKIPS", run.skips.display().to_string());
        if std::env::var_os("CANTUS_FEATURES").is_none() {
            run.tell(
                "CANTUS_FEATURES",
                if window { "circuits,shell,top,viewer,service,zk" } else { "circuits,shell,top,service,zk" }
                    .to_owned(),
            );
        }
        // Mesa's GL complains a hundred times where there is no folder for sockets.
        if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
            run.tell("XDG_RUNTIME_DIR", std::env::temp_dir().display().to_string());
        }
        // What speeds up the next build only takes time here.
        run.tell("CARGO_INCREMENTAL", "0".to_owned());
        // With 16 units for each crate, what is inlined is compiled in many of them; with 256, as for edits, in more.
        run.tell("CARGO_PROFILE_DEV_CODEGEN_UNITS", "2".to_owned());
        Ok(run)
    }

    fn tell(&mut self, variable: &str, value: String) {
        self.environment.push((variable.to_owned(), value));
    }

    /// Drivers, oracles and compilers: installed where that can be done, found, and told to the stages.
    pub fn prepare(&mut self) {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        let set = |name: &str| std::env::var_os(name).is_some();
        self.stage(&Stage::new("drivers", 15, ".ci/part drivers"));
        if !set("CANTUS_NUMPY") {
            self.stage(&Stage::new("NumPy and SciPy", 10, ".ci/part numpy"));
            if Path::new(".venv/scipy").exists() {
                self.tell("CANTUS_NUMPY", absolute(Path::new(".venv/bin/python")));
            }
        }
        if ci || set("CANTUS_NVRTC_LIBRARY") {
            self.stage(&Stage::new("compilers of CUDA and HIP", 15, ".ci/part compilers"));
            for (variable, file) in [("CANTUS_NVRTC_LIBRARY", "libnvrtc.so.12"), ("CANTUS_PTXAS", "ptxas")] {
                if let Some(path) = (!set(variable)).then(|| found(Path::new(".venv"), file)).flatten() {
                    self.tell(variable, absolute(&path));
                }
            }
        }
        // Where what the tests need is known to be there, a test that misses it fails instead of passing over a part.
        if ci {
            for what in ["ADAPTER", "OPENCL", "CC", "NVRTC", "HIPRTC", "CLANG", "CHECKERS"] {
                self.tell(&format!("CANTUS_REQUIRE_{what}"), "1".to_owned());
            }
        }
    }

    /// Runs a stage; whether it passed.
    pub fn stage(&mut self, stage: &Stage) -> bool {
        println!("\n== {}", stage.name);
        let (began, spent) = (Instant::now(), processor_seconds());
        let mut command = self.command(stage);
        let mut reasons = Reasons::default();
        if self.is_read {
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        }
        let ended = command.spawn().and_then(|mut child| {
            reasons.read(&mut child);
            within(&mut child, stage.minutes)
        });
        let reasons = reasons.lines();
        let took = began.elapsed();
        let wrong = match ended {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(status.to_string()),
            Ok(None) => Some(format!("no end within {} min", stage.minutes)),
            Err(error) => Some(error.to_string()),
        };
        self.note_skipped(stage);
        let room = free().map(|gigabytes| format!(", {gigabytes:.1} GB of the disk free")).unwrap_or_default();
        println!(
            "== {}: {} s{room}{}",
            stage.name,
            took.as_secs(),
            wrong.as_ref().map(|wrong| format!(", failed: {wrong}")).unwrap_or_default()
        );
        let processor = processor_seconds().zip(spent).map(|(now, before)| now - before);
        self.ran.push((stage.name.clone(), took, processor));
        let passed = wrong.is_none();
        self.failed.extend(wrong.map(|wrong| (format!("{}: {wrong}{room}", stage.name), reasons)));
        passed
    }

    /// Runs a stage of the copy, which may fail: whether it passed, and what it printed.
    ///
    /// Errors: it cannot be started, or its output cannot be kept.
    pub fn stage_elsewhere(&mut self, stage: &Stage, place: &Place<'_>) -> std::io::Result<(bool, String)> {
        println!("\n== {}", stage.name);
        let (began, spent) = (Instant::now(), processor_seconds());
        place.log.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let log = std::fs::File::create(place.log)?;
        let mut command = self.command(stage);
        command.current_dir(place.folder).env("CARGO_TARGET_DIR", place.target);
        // One round's build serves the next.
        command.env("CARGO_INCREMENTAL", "1").env_remove("CARGO_PROFILE_DEV_CODEGEN_UNITS");
        let mut child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        // The first build of a copy shares nothing with the tree's.
        let passed = within(&mut child, 2 * stage.minutes)?.is_some_and(|status| status.success());
        self.note_skipped(stage);
        let took = began.elapsed();
        println!("== {}: {} s, {}", stage.name, took.as_secs(), if passed { "passed" } else { "failed" });
        let processor = processor_seconds().zip(spent).map(|(now, before)| now - before);
        self.ran.push((stage.name.clone(), took, processor));
        Ok((passed, String::from_utf8_lossy(&std::fs::read(place.log)?).into_owned()))
    }

    fn command(&self, stage: &Stage) -> Command {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &stage.command]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Minutes since the run began.
    pub fn minutes(&self) -> u64 {
        self.began.elapsed().as_secs() / 60
    }

    /// Runs the stages of a part.
    pub fn part(&mut self, part: &Part) {
        for stage in &part.stages {
            self.stage(stage);
        }
    }

    /// Says at the end that something did not run.
    pub fn left_out(&mut self, what: &str, why: &str) {
        self.not_run.push((what.to_owned(), why.to_owned()));
    }

    /// Something can't be done at all.
    pub fn wrong(&mut self, what: &str) {
        println!("{what}");
        self.failed.push((what.to_owned(), Vec::new()));
    }

    /// Takes in what the last stage did not run; in another round it says the same.
    fn note_skipped(&mut self, stage: &Stage) {
        for (what, why) in self.skipped() {
            let both = (format!("{}: {what}", stage.name), why);
            if !self.not_run.contains(&both) {
                self.not_run.push(both);
            }
        }
    }

    /// Returns the tests of the last stage that did not run; the file is empty then.
    fn skipped(&self) -> Vec<(String, String)> {
        let text = std::fs::read(&self.skips).unwrap_or_default();
        let _ = std::fs::write(&self.skips, "");
        let mut lines: Vec<(String, String)> = Vec::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let (what, why) = line.split_once('\t').unwrap_or((line, ""));
            let both = (what.to_owned(), why.to_owned());
            if !lines.contains(&both) {
                lines.push(both);
            }
        }
        lines
    }

    /// The summary: stages with their seconds, what did not run, what failed.
    pub fn end(self) -> ExitCode {
        if !self.ran.is_empty() {
            println!("\nstages, their seconds, and those of a processor:");
        }
        for (name, took, processor) in &self.ran {
            let processor = processor.map(|seconds| format!("{seconds:5.0} s")).unwrap_or_default();
            println!("{:5} s {processor:>7}  {name}", took.as_secs());
        }
        if !self.not_run.is_empty() {
            println!("\nnot run:");
        }
        for (what, why) in &self.not_run {
            println!("  {what}: {}", shortened(why));
        }
        if let Some(mut outer) = self.outer.and_then(|path| std::fs::OpenOptions::new().append(true).open(path).ok()) {
            for (what, why) in &self.not_run {
                let _ = writeln!(outer, "{what}\t{why}");
            }
        }
        let _ = std::fs::remove_file(&self.skips);
        if self.failed.is_empty() {
            if !self.ran.is_empty() {
                println!("\nall stages passed in {} s", self.began.elapsed().as_secs());
            }
            return ExitCode::SUCCESS;
        }
        println!("\nfailed:");
        for (failed, reasons) in &self.failed {
            println!("  {failed}");
            for line in reasons {
                println!("    {line}");
            }
        }
        ExitCode::FAILURE
    }
}

/// Waits for the process; `None` if it and all that it started had to be killed.
fn within(child: &mut Child, minutes: u64) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut wait = Duration::from_millis(5);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            let signal = |name: &str, process: u32| {
                let _ = Command::new("kill").args([name, &process.to_string()]).status();
            };
            // Stopped first: what runs on would start others while it is looked for.
            signal("-STOP", child.id());
            let mut found = Vec::new();
            loop {
                let fresh: Vec<u32> =
                    descendants(child.id()).into_iter().filter(|process| !found.contains(process)).collect();
                if fresh.is_empty() {
                    break;
                }
                fresh.iter().for_each(|&process| signal("-STOP", process));
                found.extend(fresh);
            }
            found.iter().for_each(|&process| signal("-KILL", process));
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(wait);
        wait = (2 * wait).min(Duration::from_millis(200));
    }
}

/// The processes that a process started, and theirs. Without `/proc` none are found.
fn descendants(of: u32) -> Vec<u32> {
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(line) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // After the name in brackets, which may hold anything: the state, then the parent.
        let parent = line.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        pairs.extend(parent.map(|parent| (parent, process)));
    }
    let mut found = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(pairs.iter().filter(|pair| pair.0 == parent).map(|pair| pair.1));
        at += 1;
    }
    found.split_off(1)
}

/// The processor's seconds of all processes that have ended below this one, where the system has `/proc`: another program beside the tests
/// changes them little. The system counts in hundredths.
fn processor_seconds() -> Option<f64> {
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = line.rsplit_once(')')?;
    let mut ended = rest.split_whitespace().skip(13).map_while(|field| field.parse::<f64>().ok());
    Some((ended.next()? + ended.next()?) / 100.0)
}

/// The file of this name below a folder.
fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().ok()?;
        let path = entry.path();
        if kind.is_file() && entry.file_name() == name {
            return Some(path);
        }
        if let Some(path) = kind.is_dir().then(|| found(&path, name)).flatten() {
            return Some(path);
        }
    }
    None
}

/// The disk's room where the tests run, in GB, where `df` says so: a browser on a disk that is nearly full keeps nothing.
fn free() -> Option<f64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kilobytes = text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<f64>().ok()?;
    Some(kilobytes * 1024.0 / 1e9)
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 200 { text.to_owned() } else { text.chars().take(199).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let mut run = Run::begin(7, false).expect("a temporary file");
        run.skips = std::env::temp_dir().join(format!("cantus-skips-{:?}", std::thread::current().id()));
        run.environment.retain(|(name, _)| name != "CANTUS_SKIPS");
        run.tell("CANTUS_SKIPS", run.skips.display().to_string());
        run.outer = None;
        run.is_read = true;
        run
    }

    #[test]
    fn what_fails_is_told_and_the_rest_runs() {
        let mut run = run();
        assert!(run.stage(&Stage::new("one", 1, "test $CANTUS_TURN = 7")));
        assert!(!run.stage(&Stage::new("two", 1, "false; true")), "a command that fails ends its stage");
        assert!(!run.stage(&Stage::new("three", 1, "false | true")));
        assert!(run.stage(&Stage::new("four", 1, "true")));
        let failed: Vec<_> = run.failed.iter().filter_map(|(stage, _)| stage.split(", ").next()).collect();
        assert_eq!(failed, ["two: exit status: 1", "three: exit status: 1"]);
        assert_eq!(run.ran.len(), 4);
    }

    #[test]
    fn the_processor_is_counted() {
        let mut run = run();
        assert!(run.stage(&Stage::new("one", 1, "for i in $(seq 200000); do :; done")));
        let (_, took, processor) = &run.ran[0];
        if let Some(seconds) = processor {
            assert!(*seconds > 0.05 && *seconds < took.as_secs_f64() + 1.0, "{seconds} of {took:?}");
        }
    }

    #[test]
    fn what_does_not_run_is_a_value() {
        let mut run = run();
        assert!(run.stage(&Stage::new(
            "one",
            1,
            r"for i in 1 2; do printf 'a\tno GPU\n' >>$CANTUS_SKIPS; done; echo 'not run: b: c'"
        )));
        assert!(run.stage(&Stage::new("two", 1, "true")));
        assert_eq!(run.not_run, [("one: a".to_owned(), "no GPU".to_owned())]);
    }

    #[test]
    fn a_failure_comes_with_its_reason() {
        let mut run = run();
        let test = r"echo 'test a ... ok'; echo 'test b ... FAILED'; echo 'thread b panicked at x.rs:1:2:' >&2; echo '1 is not 2' >&2; false";
        assert!(!run.stage(&Stage::new("one", 1, test)));
        let (_, reasons) = &run.failed[0];
        assert!(reasons.contains(&"test b ... FAILED".to_owned()), "{reasons:?}");
        assert!(
            reasons.contains(&"1 is not 2".to_owned()) && !reasons.contains(&"test a ... ok".to_owned()),
            "{reasons:?}"
        );
        // A process that lives on keeps the output open.
        let began = Instant::now();
        assert!(run.stage(&Stage::new("two", 1, "sleep 20 & true")));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let mut child =
            Command::new("bash").args(["-c", "sleep 600 & (sleep 600; true) & wait"]).spawn().expect("bash");
        // Two sleeps, and the shell around one of them.
        while descendants(child.id()).len() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let children = descendants(child.id());
        assert!(within(&mut child, 0).is_ok_and(|status| status.is_none()));
        let lives = |process: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            line.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
        };
        let end = Instant::now() + Duration::from_secs(10);
        while children.iter().any(lives) {
            assert!(Instant::now() < end, "{children:?} live on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
