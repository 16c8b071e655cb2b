//! The rotation of tests: random inputs are shared out among the devices by turns, so that in a few turns each device has met all of them.

use std::ops::Range;

use cantus::Engine;

use crate::engine::engines;

/// Shares of what is taken by turns.
const SHARES: u64 = 4;

/// How much of the rotation a run takes: `CANTUS_TESTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circle {
    /// `quick`, which `./test` sets: everything on the processor, and a third of what another device takes in a turn.
    Quick,
    /// Without a value, as `./test --full`: every case also on one device beside the processor.
    Full,
    /// `all`, as in `./test --all`: everything everywhere.
    All,
}

fn circle() -> Circle {
    match std::env::var("CANTUS_TESTS").as_deref() {
        Ok("all") => Circle::All,
        Ok("quick") => Circle::Quick,
        _ => Circle::Full,
    }
}

/// Returns whether everything is asked for.
pub fn everything() -> bool {
    circle() == Circle::All
}

/// Returns whether only the quick circle is asked for: a test whose time lies in drivers' compilers takes a smaller share then.
pub fn quick() -> bool {
    circle() == Circle::Quick
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
/// In the quick circle that is so for a third of the pieces.
pub fn takes(number: u64, place: usize, devices: usize) -> bool {
    let pieces = if quick() { 3 } else { 1 } * devices.max(1) as u64;
    everything() || (number + turn()) % pieces == place as u64
}

/// The seeds that a device takes: the processor all of them, any other one a quarter, each its own; in the quick circle one in 16.
pub fn seeds(engine: &Engine, seeds: Range<u64>) -> impl Iterator<Item = u64> {
    let place = engines().iter().position(|other| std::ptr::eq(other, engine)).unwrap_or(0) as u64;
    let processor = engine.selected().device.backend == "cpu";
    let shares = if quick() { SHARES * SHARES } else { SHARES };
    seeds.filter(move |seed| processor || everything() || (seed + place + turn()) % shares == 0)
}

/// The same for what takes many kernels, which some drivers compile slowly: the processor takes a quarter, any other device one.
pub fn few(engine: &Engine, seeds: Range<u64>) -> impl Iterator<Item = u64> {
    let place = engines().iter().position(|other| std::ptr::eq(other, engine)).unwrap_or(0) as u64;
    let processor = engine.selected().device.backend == "cpu";
    let only = seeds.start + (place + turn()) % (seeds.end - seeds.start).max(1);
    seeds.filter(move |&seed| everything() || if processor { has_turn(seed) } else { seed == only })
}
