//! Futures that are dropped half-way, at each of their polls, on each device of the machine: `./test --all` takes every place, `./test` an eighth.

use cantus::Config;
use cantus::backend::Registry;
use cantus::engine::survey;
use kit::drops::{Figures, drops};
use kit::turn::{everything, turn};

fn share(number: u64) -> bool {
    everything() || (number + turn()).is_multiple_of(8)
}

#[test]
fn every_operation_can_be_dropped_at_every_wait() {
    let devices = survey(&Registry::with_defaults(), &Config::default()).backends;
    let with_devices = devices.into_iter().filter(|backend| backend.available);
    for backend in with_devices {
        let started = std::time::Instant::now();
        let Figures { operations, drops } = drops(&Registry::with_defaults, &backend.name, &|_| true, &share);
        println!("{}: {operations} operations, dropped at {drops} places, {:.1?}", backend.name, started.elapsed());
        assert!(operations > 30 && drops > 20, "{}: {operations} operations, {drops} drops", backend.name);
    }
}
