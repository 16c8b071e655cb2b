//! The processor and the machine's memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sysinfo::{CpuRefreshKind, System};

use crate::{Device, Reading, sysfs};

pub struct Cpu {
    system: System,
    sysfs: PathBuf,
    last: Instant,
    utilisation: Reading<f64>,
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").finish_non_exhaustive()
    }
}

/// Counters move in steps of ten milliseconds: over less time their difference says nothing.
const SHORTEST: Duration = Duration::from_millis(150);

impl Cpu {
    pub fn new(sysfs: PathBuf) -> Self {
        let mut system = System::new();
        system.refresh_cpu_specifics(CpuRefreshKind::everything());
        Self { system, sysfs, last: Instant::now(), utilisation: Reading::none("it takes a second look") }
    }

    pub fn look(&mut self, now: Instant) -> Device {
        self.system.refresh_memory();
        if now.saturating_duration_since(self.last) >= SHORTEST {
            self.system.refresh_cpu_specifics(CpuRefreshKind::everything());
            self.utilisation = Reading(Ok(f64::from(self.system.global_cpu_usage())));
            self.last = now;
        }
        let cpus = self.system.cpus();
        let brand = cpus.first().map_or("", |cpu| cpu.brand()).trim();
        let name = if brand.is_empty() { "processor" } else { brand };
        let (total, available) = (self.system.total_memory(), self.system.available_memory());
        let mut device = Device::unknown(name, "system", None, "the system does not report it");
        device.memory_total_bytes = Reading(Ok(total));
        device.memory_used_bytes = Reading(Ok(total.saturating_sub(available)));
        device.memory_free_bytes = Reading(Ok(available));
        device.utilisation_percent = self.utilisation.clone();
        let clock = cpus.iter().map(sysinfo::Cpu::frequency).max().filter(|&clock| clock > 0);
        if let Some(clock) = clock {
            device.clock_mhz = Reading(Ok(clock as f64));
        }
        device.temperature_celsius = sysfs::processor_temperature(&self.sysfs);
        device.power_watts = Reading::none("only root may read the processor's energy counter");
        device.processes = Reading::none("every process uses the processor");
        device
    }
}
