//! Peers in a process of their own that stays up and is called in turn: NumPy, PyTorch, Burn.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The peers' folder: the project's own, or the one that `CANTUS_BENCH_PEERS` names.
fn folder() -> PathBuf {
    let named = std::env::var_os("CANTUS_BENCH_PEERS").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("peers"))
}

/// The process.
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Versions, as it says them.
    pub version: String,
}

impl Peer {
    /// Starts a peer's script in the environment that `benches/peers/setup.sh` makes, or with the interpreter that
    /// `CANTUS_BENCH_PYTHON` names; `None` when it is missing. What can compute on several devices takes `device`.
    pub fn python(script: &str, device: &str) -> Option<Self> {
        let folder = folder();
        let named = std::env::var_os("CANTUS_BENCH_PYTHON").map(Into::into);
        let mut command = Command::new(named.unwrap_or_else(|| folder.join(".venv/bin/python")));
        command.arg(folder.join(script)).env("CANTUS_PEER_DEVICE", device);
        Self::start(command)
    }

    /// Starts the program that `benches/peers/setup.sh burn` builds, or the one that `CANTUS_BENCH_BURN` names.
    pub fn burn() -> Option<Self> {
        let named = std::env::var_os("CANTUS_BENCH_BURN").map(Into::into);
        Self::start(Command::new(named.unwrap_or_else(|| folder().join("burn/target/release/peer-burn"))))
    }

    /// A peer says its version first, then answers each line with "SECONDS VALUE".
    fn start(mut command: Command) -> Option<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let (input, output) = (child.stdin.take()?, child.stdout.take()?);
        let mut output = BufReader::new(output);
        let mut version = String::new();
        output.read_line(&mut version).ok()?;
        Some(Self { child, input, output, version: version.trim().to_owned() })
    }

    /// Sends a line: the numbers of the answer.
    pub fn ask(&mut self, line: &str) -> Vec<f64> {
        writeln!(self.input, "{line}").expect("the peer listens");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("the peer answers");
        answer.split_whitespace().map(|text| text.parse().expect("the peer answers in numbers")).collect()
    }

    /// Runs `operation` on a square of `side`: its own time, and its result.
    pub fn call(&mut self, operation: &str, side: usize) -> (Duration, f64) {
        let numbers = self.ask(&format!("{operation} {side}"));
        let number = |at: usize| *numbers.get(at).expect("the peer answers with a time and a value");
        (Duration::from_secs_f64(number(0)), number(1))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
