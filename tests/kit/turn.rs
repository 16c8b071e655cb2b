//! The rotation of tests: random inputs are shared out among the devices by turns, so that in a few turns each device has met all of them.

use std::ops::Range;

use cantus::Engine;

use crate::engine::engines;

/// Shares of what is taken by turns.
const SHARES: u64 = 4;

/// Returns whether everything is asked for.
pub fn everything() -> bool {
    std::env::var("CANTUS_TESTS").is_ok_and(|value| value == "all")
}

/// Returns the number of the turn; 0 unless `CANTUS_TURN` says another.
pub fn turn() -> u64 {
    std::env::var("CANTUS_TURN").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns whether the piece with this number has its turn.
pub fn has_turn(number: u64) -> bool {
    everything() || (number + turn()) % SHARES == 0
}

/// Returns whether the device at this place beside the processor, of `devices`, takes the piece with this number: one of them does with each turn.
pub fn takes(number: u64, place: usize, devices: usize) -> bool {
    everything() || (number + turn()) % devices.max(1) as u64 == place as u64
}

/// The seeds that a device takes: the processor all of them, any other one a quarter, each its own.
pub fn seeds(engine: &Engine, seeds: Range<u64>) -> impl Iterator<Item = u64> {
    let place = engines().iter().position(|other| std::ptr::eq(other, engine)).unwrap_or(0) as u64;
    let processor = engine.selected().device.backend == "cpu";
    seeds.filter(move |seed| processor || has_turn(seed + place))
}

/// The same for what takes many kernels, which some drivers compile slowly: the processor takes a quarter, any other device one.
pub fn few(engine: &Engine, seeds: Range<u64>) -> impl Iterator<Item = u64> {
    let place = engines().iter().position(|other| std::ptr::eq(other, engine)).unwrap_or(0) as u64;
    let processor = engine.selected().device.backend == "cpu";
    let only = seeds.start + (place + turn()) % (seeds.end - seeds.start).max(1);
    seeds.filter(move |&seed| everything() || if processor { has_turn(seed) } else { seed == only })
}
