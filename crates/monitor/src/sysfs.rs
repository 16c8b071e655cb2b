//! AMD's and Intel's GPUs by Linux' sysfs: the kernel's documentation has the files (`gpu/amdgpu/driver-misc`, `gpu/amdgpu/thermal`, the ABI
//! of `i915` and `xe`, `hwmon/sysfs-interface`). The root is a parameter, so that tests hand in trees.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{Device, Reading};

#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Energy counters in microjoules at the last look.
    energy: HashMap<PathBuf, (u64, Instant)>,
}

/// The first line of a file; sysfs has none longer than a page.
fn text(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The folders or files in a folder whose names begin so, in order.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let fits =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    found.sort();
    found
}

/// A figure of the first file that has one, in units of `unit`.
fn first(paths: &[PathBuf], unit: f64, reason: &str) -> Reading<f64> {
    let value = paths.iter().find_map(|path| number(path));
    Reading(value.map(|value| value as f64 / unit).ok_or_else(|| reason.to_owned()))
}

/// The processor's temperature, by its driver's name.
pub fn processor_temperature(root: &Path) -> Reading<f64> {
    let own = |folder: &PathBuf| {
        let name = text(&folder.join("name"));
        matches!(name.as_deref(), Some("coretemp" | "k10temp" | "zenpower" | "cpu_thermal"))
    };
    let sensors = children(&root.join("class/hwmon"), "hwmon");
    let paths: Vec<PathBuf> =
        sensors.iter().filter(|folder| own(folder)).map(|folder| folder.join("temp1_input")).collect();
    first(&paths, 1e3, "this machine has no sensor that the system knows")
}

impl Tree {
    pub fn new(root: PathBuf) -> Self {
        Self { root, energy: HashMap::new() }
    }

    /// The GPUs that have a driver in the kernel.
    pub fn devices(&mut self, now: Instant) -> Vec<Device> {
        let is_card = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("card"));
            name.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let cards = children(&self.root.join("class/drm"), "card");
        cards.iter().filter(|path| is_card(path)).filter_map(|card| self.device(card, now)).collect()
    }

    fn device(&mut self, card: &Path, now: Instant) -> Option<Device> {
        let folder = card.join("device");
        let vendor = text(&folder.join("vendor"))?;
        let product = text(&folder.join("device")).unwrap_or_default();
        let facts = text(&folder.join("uevent")).unwrap_or_default();
        let fact = |key: &str| facts.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let driver = fact("DRIVER=").unwrap_or_else(|| "no driver".to_owned());
        let pci = fact("PCI_SLOT_NAME=");
        let maker = match vendor.as_str() {
            "0x1002" => "AMD",
            "0x8086" => "Intel",
            "0x10de" => "NVIDIA",
            _ => "",
        };
        let marketing = text(&folder.join("product_name")).filter(|name| !name.is_empty());
        let name = marketing.unwrap_or_else(|| {
            let number = product.trim_start_matches("0x");
            if maker.is_empty() {
                format!("GPU {vendor}:{number} ({driver})")
            } else {
                format!("{maker} GPU {number} ({driver})")
            }
        });
        let mut device = Device::unknown(&name, "sysfs", pci, &format!("the driver {driver} does not report it"));
        match maker {
            "AMD" => amd(&folder, &mut device),
            "Intel" => self.intel(card, &folder, now, &mut device),
            _ => {}
        }
        Some(device)
    }

    /// The watts between two readings of an energy counter.
    fn power(&mut self, counters: &[PathBuf], now: Instant) -> Reading<f64> {
        let Some((path, energy)) = counters.iter().find_map(|path| Some((path, number(path)?))) else {
            return Reading::none("the driver reports no power sensor for this GPU");
        };
        match self.energy.insert(path.clone(), (energy, now)) {
            Some((before, then)) if now > then => {
                // A counter that began again tells nothing.
                let joules = energy.checked_sub(before).map(|microjoules| microjoules as f64 / 1e6);
                let watts = joules.map(|joules| joules / now.duration_since(then).as_secs_f64());
                Reading(watts.ok_or_else(|| "the energy counter wrapped around".to_owned()))
            }
            _ => Reading::none("it takes a second look"),
        }
    }

    fn intel(&mut self, card: &Path, folder: &Path, now: Instant, device: &mut Device) {
        let sensors = children(&folder.join("hwmon"), "hwmon");
        let of = |name: &str| sensors.iter().map(|sensor| sensor.join(name)).collect::<Vec<_>>();
        let none = "its driver has no such sensor";
        device.temperature_celsius = first(&[of("temp1_input"), of("temp2_input")].concat(), 1e3, none);
        device.power_watts = match first(&[of("power1_average"), of("power1_input")].concat(), 1e6, none) {
            Reading(Err(_)) => self.power(&[of("energy1_input"), of("energy2_input")].concat(), now),
            power => power,
        };
        let clocks = [
            card.join("gt_act_freq_mhz"),
            card.join("gt/gt0/rps_act_freq_mhz"),
            folder.join("tile0/gt0/freq0/act_freq"),
        ];
        device.clock_mhz = first(&clocks, 1.0, "its driver does not report it");
        device.utilisation_percent =
            Reading::none("Intel's drivers report it by performance counters, not by sysfs (see intel_gpu_top)");
        device.processes = Reading::none("Intel's drivers report it per process, not by sysfs (see intel_gpu_top)");
    }
}

fn amd(folder: &Path, device: &mut Device) {
    let bytes = |name: &str| number(&folder.join(name));
    if let (Some(total), Some(used)) = (bytes("mem_info_vram_total"), bytes("mem_info_vram_used")) {
        device.memory_total_bytes = Reading(Ok(total));
        device.memory_used_bytes = Reading(Ok(used));
        device.memory_free_bytes = Reading(Ok(total.saturating_sub(used)));
    }
    let none = "its driver has no such sensor";
    let sensors = children(&folder.join("hwmon"), "hwmon");
    let of = |name: &str| sensors.iter().map(|sensor| sensor.join(name)).collect::<Vec<_>>();
    device.utilisation_percent = first(&[folder.join("gpu_busy_percent")], 1.0, "its driver does not report it");
    device.temperature_celsius = first(&of("temp1_input"), 1e3, none);
    device.power_watts = first(&[of("power1_average"), of("power1_input")].concat(), 1e6, none);
    device.clock_mhz = or_level(first(&of("freq1_input"), 1e6, none), &folder.join("pp_dpm_sclk"));
    device.memory_clock_mhz = or_level(first(&of("freq2_input"), 1e6, none), &folder.join("pp_dpm_mclk"));
    device.processes = Reading::none("amdgpu reports it per process, not by sysfs (see amdgpu_top)");
}

/// Falls back to the marked level if there is no sensor, as in `1: 1340Mhz *`.
fn or_level(clock: Reading<f64>, levels: &Path) -> Reading<f64> {
    if clock.0.is_ok() {
        return clock;
    }
    let marked = text(levels).and_then(|text| {
        let line = text.lines().find_map(|line| line.trim_end().strip_suffix('*'))?;
        let level = line.split_once(':')?.1.trim().to_ascii_lowercase();
        level.strip_suffix("mhz")?.trim().parse().ok()
    });
    marked.map_or(clock, |clock| Reading(Ok(clock)))
}
