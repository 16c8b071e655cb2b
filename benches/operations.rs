//! Every operation of `cantus bench`: on the CPU backend and on CUDA beside PyTorch's, which writes into memory that it already has, on any other
//! one beside those of Burn (CubeCL) on wgpu's Vulkan.
//!
//! Sides take turns, and each turn repeats its operation for a while: of all turns the median and the least time count. Ours runs from recording
//! the operation to the end of its work, its memory from the pool. Both sides use all processors. On a device ours runs what is shipped, or what
//! `cantus tune` has measured; Burn tunes itself in calls that do not count.
//!
//! `cargo bench -p cantus-benches --bench operations [-- [OPTION…] FILTER[,FILTER…] [SIDE[,SIDE…] [TURNS]]]`, with
//! `--backend=NAME`, `--json=FILE` (the rows in the form that `benches/tables.py` reads, written behind each; those that the file has are not timed
//! again), `--beside=FILE` (the peer's times of such a file, in place of a peer), `--turn=MILLISECONDS`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::path::PathBuf;
use std::time::Duration;

use cantus::{Config, Engine, Fallback};
use parse::Size;
use peers::process::Peer;
use peers::turns::{self, figures};
use serde_json::{Value, json};

#[allow(dead_code, reason = "the program prints more than times")]
#[path = "../cli/src/bench_ops.rs"]
mod bench_ops;
#[cfg(feature = "zk")]
#[path = "../cli/src/bench_zk.rs"]
mod bench_zk;

/// The parts of the program that the table of operations needs.
mod parse {
    /// Columns and rows.
    #[derive(Clone, Copy)]
    pub struct Size {
        pub width: usize,
        pub height: usize,
    }
}

/// The time for which a side repeats its operation in a turn.
const TURN: Duration = Duration::from_millis(60);

/// Times in microseconds by operation and side: the median and the least of ours, and of the peer's if there is one.
#[derive(Default)]
struct Rows {
    /// Where they are kept.
    path: Option<PathBuf>,
    /// The peer's name.
    peer: String,
    rows: Vec<Value>,
}

impl Rows {
    /// The rows of a file; none if it is not there.
    fn read(path: &str) -> Self {
        let file = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let file = file.unwrap_or_default();
        let peer = file["peer"].as_str().or_else(|| file["columns"][1].as_str()).unwrap_or("recorded times");
        let rows = file["rows"].as_array().cloned().unwrap_or_default();
        Self { path: Some(path.into()), peer: peer.to_owned(), rows }
    }

    fn of(&self, op: &str, side: usize) -> Option<&Value> {
        self.rows.iter().find(|row| row["op"] == op && row["size"] == side)
    }

    /// The peer's times: of the two forms of rows.
    fn peer(&self, op: &str, side: usize) -> [f64; 2] {
        let Some(row) = self.of(op, side) else { return [f64::NAN; 2] };
        let median = row["us"][1].as_f64().or_else(|| row["peer_us"].as_f64()).unwrap_or(f64::NAN);
        [median, row["least_us"][1].as_f64().unwrap_or(median)]
    }

    /// Adds a row, and writes all: through another file, so that whoever is stopped meanwhile leaves the rows before.
    fn add(&mut self, (op, side): (&str, usize), [ours, theirs]: [[f64; 2]; 2], (device, peer): (&str, &str)) {
        // A time that is missing is null.
        let row = json!({
            "op": op, "size": side, "us": [ours[0], theirs[0]], "least_us": [ours[1], theirs[1]],
        });
        self.rows.push(row);
        let Some(path) = &self.path else { return };
        let shown: Vec<String> =
            self.rows.iter().map(|row| format!("{} {}", row["op"].as_str().unwrap_or(""), row["size"])).collect();
        let file = json!({
            "title": "Operations",
            "columns": ["Cantus", peer],
            "compared": [["Cantus", peer]],
            "machine": device,
            "date": turns::today(),
            "command": std::env::args().collect::<Vec<_>>().join(" "),
            "notes": "README.md",
            "shown": shown,
            "rows": self.rows,
        });
        let beside = path.with_extension("tmp");
        std::fs::write(&beside, format!("{file:#}\n")).expect("rows are written");
        std::fs::rename(&beside, path).expect("rows are kept");
    }
}

fn main() {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let option = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let backend = option("--backend").unwrap_or("cpu");
    let turn = option("--turn").and_then(|text| text.parse().ok()).map_or(TURN, Duration::from_millis);
    let mut rows = option("--json").map_or_else(Rows::default, Rows::read);
    let beside = option("--beside").map(Rows::read);
    let list = |at: usize| -> Vec<String> {
        let text = arguments.get(at).filter(|text| !text.is_empty());
        text.map_or(Vec::new(), |text| text.split(',').map(str::to_owned).collect())
    };
    let (filters, sides) = (list(0), list(1));
    let rounds = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(5);
    let builder = Engine::builder().config(Config::default()).backend(backend).fallback(Fallback::Never);
    let engine = builder.build().expect("a device of the backend");
    let mut peer = match backend {
        _ if beside.is_some() => None,
        "cpu" | "cuda" => Peer::python("operations_torch.py", backend),
        _ => Peer::burn(),
    };
    // Threads of a side that spin hold up the other one where both compute on the processor.
    let pause = if backend == "cuda" || peer.is_none() { turns::PAUSE / 50 } else { turns::PAUSE };
    let device = engine.selected().device.name.clone();
    println!("{device}, {rounds} turns; medians, least times in brackets");
    let version = match (&peer, &beside) {
        (Some(peer), _) => peer.version.clone(),
        (None, Some(beside)) => beside.peer.clone(),
        (None, None) => "no peer: run benches/peers/setup.sh, for Burn with the word burn".to_owned(),
    };
    println!("{version}");
    for op in bench_ops::ops() {
        let wanted = if filters.is_empty() { op.usual } else { filters.iter().any(|filter| filter == op.name) };
        if !wanted {
            continue;
        }
        let given: Vec<usize> = sides.iter().filter_map(|side| side.parse().ok()).collect();
        for side in if given.is_empty() { op.sides.to_vec() } else { given } {
            if rows.path.is_some() && rows.of(op.name, side).is_some() {
                continue;
            }
            let work = op.prepare(&engine, Size { width: side, height: side }).expect("its inputs");
            let run = || {
                work().expect("the operation runs");
                engine.finish().expect("the work ends");
            };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                ours.extend(turns::timed(turn, pause, run));
                std::thread::sleep(pause);
                if let Some(peer) = &mut peer {
                    theirs.extend(peer.ask(&format!("{} {side} {}", op.name, turn.as_secs_f64())));
                }
            }
            let theirs = beside.as_ref().map_or_else(|| figures(theirs), |beside| beside.peer(op.name, side));
            let ours = figures(ours);
            rows.add((op.name, side), [ours, theirs], (&device, &version));
            let ([ours, least], [theirs, their_least]) = (ours, theirs);
            println!(
                "{:15} {side:5} {ours:11.1} us ({least:11.1})   {theirs:11.1} us ({their_least:11.1})   ratio {:6.2} ({:.2})",
                op.name,
                ours / theirs,
                least / their_least
            );
        }
    }
}
