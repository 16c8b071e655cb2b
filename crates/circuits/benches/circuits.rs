//! Amplitudes of OpenQASM files on the CPU: `cargo bench -p cantus-circuits -- FILES`. Prints, for each, the median of seven runs in milliseconds after one
//! that warms up, the time for the plan apart, and the bytes moved over the least possible (each amplitude written once). `aer.py` makes files, and times
//! Qiskit Aer beside this.

use std::time::{Duration, Instant};

use cantus::{Engine, Result};
use cantus_circuits::{Circuit, Compiled, Precision};

fn main() -> Result<()> {
    let engine = Engine::builder().backend("cpu").build()?;
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let start = Instant::now();
        let circuit = Circuit::from_named_qasm(file, &text)?;
        let read = start.elapsed();
        let start = Instant::now();
        let compiled = Compiled::new(&engine, &circuit, Precision::Single)?;
        let planned = start.elapsed();
        let mut times = Vec::new();
        for run in 0..8 {
            let start = Instant::now();
            let state = compiled.state(&[])?;
            engine.finish()?;
            let time = start.elapsed();
            drop(state);
            times.extend((run > 0).then_some(time));
        }
        times.sort_unstable();
        let figures = compiled.figures();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{file}: {:.2} ms (reading {:.1}, plan {:.1}); {} gates, {} passes, {} sweeps; bytes over the least: {:.0}",
            milliseconds(times[times.len() / 2]),
            milliseconds(read),
            milliseconds(planned),
            figures.gates,
            figures.passes,
            figures.sweeps,
            2.0 * figures.sweeps as f64,
        );
    }
    Ok(())
}
