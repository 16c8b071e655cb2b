//! A sample as plain text, and the words for figures.

use std::fmt::Write as _;

use cantus::error::Bytes;
use cantus_monitor::{Device, Engine, Reading, Sample};

use crate::report::{self, short};

pub fn text(sample: &Sample, verbose: bool) -> String {
    let devices: Vec<Vec<String>> = sample.devices.iter().map(row).collect();
    let heading = ["DEVICE", "USED", "FREE", "MEMORY", "LOAD", "TEMP", "POWER", "CLOCK"];
    let mut text = report::fitted_table(&heading, &devices, 0);
    text.push('\n');
    if sample.engines.is_empty() {
        let _ = writeln!(text, "{NO_ENGINE}");
    } else {
        let engines: Vec<Vec<String>> = sample.engines.iter().map(engine_row).collect();
        text.push_str(&report::table(
            &["PROCESS", "PROGRAM", "DEVICE", "PER SECOND", "QUEUE", "IN USE", "POOL", "FALLBACKS", "FAILURES"],
            &engines,
        ));
    }
    if verbose {
        for device in &sample.devices {
            let _ = writeln!(text, "\n{} (by {})", device.name, device.source);
            for line in details(device) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    for remark in &sample.remarks {
        let _ = writeln!(text, "{remark}");
    }
    report::wrapped(&text, 2)
}

pub const NO_ENGINE: &str =
    "No engine publishes: run it with CANTUS_PUBLISH=1, or set publish = true in the configuration.";

fn row(device: &Device) -> Vec<String> {
    vec![
        short(&device.name, 40),
        bytes(&device.memory_used_bytes),
        bytes(&device.memory_free_bytes),
        bytes(&device.memory_total_bytes),
        figure(&device.utilisation_percent, 0, "%"),
        figure(&device.temperature_celsius, 0, " °C"),
        figure(&device.power_watts, 1, " W"),
        figure(&device.clock_mhz, 0, " MHz"),
    ]
}

pub fn engine_row(engine: &Engine) -> Vec<String> {
    let figures = &engine.figures;
    let sum =
        |of: fn(&cantus::engine::DeviceFigures) -> u64| figures.devices.iter().map(of).fold(0_u64, u64::saturating_add);
    vec![
        if figures.engine > 1 {
            format!("{}/{}", figures.process, figures.engine)
        } else {
            figures.process.to_string()
        },
        short(&figures.program, 16),
        short(&figures.selected, 24),
        rate(engine.dispatches_per_second),
        format!("{}+{}", sum(|device| device.recorded), sum(|device| device.in_flight)),
        Bytes(sum(|device| device.in_use)).to_string(),
        Bytes(sum(|device| device.pooled)).to_string(),
        figures.fallbacks.to_string(),
        figures.failures.saturating_add(figures.losses).to_string(),
    ]
}

pub fn rate(per_second: f64) -> String {
    // The sum of no rates is -0.
    match per_second + 0.0 {
        rate if rate >= 1e6 => format!("{:.1} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.1} k", rate / 1e3),
        rate if rate >= 100.0 || rate == 0.0 => format!("{rate:.0}"),
        rate => format!("{rate:.1}"),
    }
}

pub fn bytes(reading: &Reading<u64>) -> String {
    reading.value().map_or_else(|| "-".to_owned(), |&bytes| Bytes(bytes).to_string())
}

pub fn figure(reading: &Reading<f64>, decimals: usize, unit: &str) -> String {
    reading.value().map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}{unit}"))
}

/// Every figure of a device by its name, with the reason where it is missing.
pub fn details(device: &Device) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, value: Result<String, &String>| {
        lines.push(match value {
            Ok(value) => format!("{name}: {value}"),
            Err(reason) => format!("{name}: - ({reason})"),
        });
    };
    let size = |reading: &Reading<u64>| reading.value().map_or_else(String::new, |&bytes| Bytes(bytes).to_string());
    let known = |reading: &'_ Reading<f64>, unit: &str| figure(reading, 1, unit);
    match &device.memory_used_bytes.0 {
        Ok(_) => add(
            "memory",
            Ok(format!("{} used, {} free", size(&device.memory_used_bytes), size(&device.memory_free_bytes))),
        ),
        Err(reason) => add("memory", Err(reason)),
    }
    for (name, reading, unit) in [
        ("load", &device.utilisation_percent, " %"),
        ("temperature", &device.temperature_celsius, " °C"),
        ("power", &device.power_watts, " W"),
        ("clock", &device.clock_mhz, " MHz"),
        ("memory clock", &device.memory_clock_mhz, " MHz"),
    ] {
        add(name, reading.0.as_ref().map(|_| known(reading, unit)));
    }
    let processes = device.processes.0.as_ref().map(|processes| {
        let one = |process: &cantus_monitor::Process| match process.memory_bytes {
            Some(bytes) => format!("{} ({})", process.pid, Bytes(bytes)),
            None => process.pid.to_string(),
        };
        if processes.is_empty() { "none".to_owned() } else { processes.iter().map(one).collect::<Vec<_>>().join(", ") }
    });
    add("processes", processes);
    lines
}
