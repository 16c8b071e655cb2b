//! The monitor on a double of NVML, on trees as sysfs has them, on the processor for real, and on a folder full of files that no engine wrote.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cantus_monitor::{Device, Monitor, Process, Reading, Sample, Sources};

/// Sources of which none is the machine's.
fn nothing(folder: &Path) -> Sources {
    let at = |name: &str| folder.join(name);
    let mut sources = Sources::default();
    (sources.nvml, sources.sysfs, sources.published, sources.vulkan) =
        (Some(at("libnone.so")), at("sys"), at("engines"), false);
    sources
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
}

fn by<'a>(sample: &'a Sample, source: &str) -> Vec<&'a Device> {
    sample.devices.iter().filter(|device| device.source == source).collect()
}

#[test]
fn nvml_tells_and_what_it_does_not_tell_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnvml.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nvml.c");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success());
    let mut sources = nothing(folder.path());
    sources.nvml = Some(library);
    let sample = Monitor::new(sources).sample();
    let gpus = by(&sample, "nvml");
    let [full, silent] = gpus.as_slice() else { panic!("{gpus:?}") };
    assert_eq!(full.name, "Double [31mH100", "without its control character");
    assert_eq!(full.pci.as_deref(), Some("0000:1b:00.0"));
    assert_eq!(full.memory_total_bytes, Reading(Ok(80 << 30)));
    assert_eq!(full.memory_used_bytes, Reading(Ok(2 << 30)));
    assert_eq!(full.memory_free_bytes, Reading(Ok(78 << 30)));
    assert_eq!(full.utilisation_percent, Reading(Ok(37.0)));
    assert_eq!(full.temperature_celsius, Reading(Ok(61.0)));
    assert_eq!(full.power_watts, Reading(Ok(312.5)));
    assert_eq!((full.clock_mhz.clone(), full.memory_clock_mhz.clone()), (Reading(Ok(1980.0)), Reading(Ok(2619.0))));
    let processes = vec![Process { pid: 4242, memory_bytes: Some(1 << 30) }, Process { pid: 4243, memory_bytes: None }];
    assert_eq!(full.processes, Reading(Ok(processes)));
    assert_eq!(silent.name, "Silent");
    let json = serde_json::to_value(silent).unwrap();
    for figure in
        ["memory_total_bytes", "utilisation_percent", "temperature_celsius", "power_watts", "clock_mhz", "processes"]
    {
        assert!(json[figure]["value"].is_null(), "{figure}");
        assert_eq!(json[figure]["reason"], "this GPU does not report it", "{figure}");
    }
}

#[test]
fn a_library_that_is_missing_or_none_is_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Monitor::new(nothing(folder.path())).sample();
    assert!(
        sample.remarks.iter().any(|remark| remark == "NVIDIA: its driver's library NVML is not there"),
        "{:?}",
        sample.remarks
    );
    // A library without NVML's functions.
    let library = folder.path().join("libempty.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-x", "c", "/dev/null", "-o"]).arg(&library).status();
    assert!(built.unwrap().success());
    let mut sources = nothing(folder.path());
    sources.nvml = Some(library);
    let sample = Monitor::new(sources).sample();
    assert!(sample.remarks.iter().any(|remark| remark.starts_with("NVIDIA: NVML")), "{:?}", sample.remarks);
    assert_eq!(sample.devices.len(), 1, "the processor is there");
}

#[test]
fn amds_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sys/class/drm");
    write(
        &root,
        &[
            ("card1/device/vendor", "0x1002"),
            ("card1/device/device", "0x744c"),
            ("card1/device/uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:03:00.0"),
            ("card1/device/mem_info_vram_total", "25753026560"),
            ("card1/device/mem_info_vram_used", "1073741824"),
            ("card1/device/gpu_busy_percent", "42"),
            ("card1/device/hwmon/hwmon4/name", "amdgpu"),
            ("card1/device/hwmon/hwmon4/temp1_input", "53000"),
            ("card1/device/hwmon/hwmon4/power1_average", "87000000"),
            ("card1/device/hwmon/hwmon4/freq1_input", "2482000000"),
            ("card1/device/pp_dpm_mclk", "0: 96Mhz\n1: 456Mhz\n2: 1249Mhz *"),
            // A display of the card, and an APU whose files are damaged.
            ("card1-DP-1/device/vendor", "0x1002"),
            ("card2/device/vendor", "0x1002"),
            ("card2/device/mem_info_vram_total", "-7"),
            ("card2/device/gpu_busy_percent", "\u{1}busy"),
            ("card2/device/hwmon/hwmon5/power1_input", "15000000"),
            ("card2/device/pp_dpm_sclk", "0: 200Mhz\n1: 1100Mhz *\n2: 1600Mhz"),
        ],
    );
    let sample = Monitor::new(nothing(folder.path())).sample();
    let gpus = by(&sample, "sysfs");
    let [card, damaged] = gpus.as_slice() else { panic!("{gpus:?}") };
    assert_eq!((card.name.as_str(), card.pci.as_deref()), ("AMD GPU 744c (amdgpu)", Some("0000:03:00.0")));
    assert_eq!(card.memory_total_bytes, Reading(Ok(25_753_026_560)));
    assert_eq!(card.memory_free_bytes, Reading(Ok(25_753_026_560 - (1 << 30))));
    assert_eq!(card.utilisation_percent, Reading(Ok(42.0)));
    assert_eq!(card.temperature_celsius, Reading(Ok(53.0)));
    assert_eq!(card.power_watts, Reading(Ok(87.0)));
    assert_eq!(card.clock_mhz, Reading(Ok(2482.0)));
    assert_eq!(card.memory_clock_mhz, Reading(Ok(1249.0)), "the level that is marked");
    assert!(damaged.memory_total_bytes.0.is_err() && damaged.utilisation_percent.0.is_err());
    assert_eq!(damaged.power_watts, Reading(Ok(15.0)));
    assert_eq!(damaged.clock_mhz, Reading(Ok(1100.0)));
}

#[test]
fn intels_files_are_read_and_energy_becomes_power() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sys/class/drm");
    write(
        &root,
        &[
            ("card0/device/vendor", "0x8086"),
            ("card0/device/device", "0x56a0"),
            ("card0/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:09:00.0"),
            ("card0/gt_act_freq_mhz", "2400"),
            ("card0/device/hwmon/hwmon2/energy1_input", "1000000"),
            ("card1/device/vendor", "0x8086"),
            ("card1/device/device", "0xe20b"),
            ("card1/device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:0a:00.0"),
            ("card1/device/tile0/gt0/freq0/act_freq", "2850"),
            ("card1/device/hwmon/hwmon3/temp2_input", "44000"),
        ],
    );
    let mut monitor = Monitor::new(nothing(folder.path()));
    let begun = Instant::now();
    let sample = monitor.sample();
    let gpus = by(&sample, "sysfs");
    assert_eq!(gpus[0].name, "Intel GPU 56a0 (i915)");
    assert_eq!(gpus[0].clock_mhz, Reading(Ok(2400.0)));
    assert_eq!(gpus[0].power_watts, Reading::none("it takes a second look"));
    assert!(gpus[0].memory_total_bytes.0.as_ref().unwrap_err().contains("i915"));
    assert_eq!(gpus[1].name, "Intel GPU e20b (xe)");
    assert_eq!(
        (gpus[1].clock_mhz.clone(), gpus[1].temperature_celsius.clone()),
        (Reading(Ok(2850.0)), Reading(Ok(44.0)))
    );
    std::thread::sleep(Duration::from_millis(200));
    write(&root, &[("card0/device/hwmon/hwmon2/energy1_input", "11000000")]);
    let sample = monitor.sample();
    let watts = *by(&sample, "sysfs")[0].power_watts.value().unwrap();
    // Ten joules over at least 0.2 s, and at most over the time since the beginning.
    assert!(watts <= 50.0 && watts >= 10.0 / begun.elapsed().as_secs_f64(), "{watts} W");
    write(&root, &[("card0/device/hwmon/hwmon2/energy1_input", "5")]);
    let sample = monitor.sample();
    assert_eq!(by(&sample, "sysfs")[0].power_watts, Reading::none("the energy counter wrapped around"));
}

#[test]
fn the_processor_is_the_machines() {
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = Monitor::new(nothing(folder.path()));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let loaded = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        monitor.sample();
        std::thread::sleep(Duration::from_millis(700));
        let loaded = monitor.sample();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        loaded
    });
    let [device] = loaded.devices.as_slice() else { panic!("{loaded:?}") };
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(device.memory_total_bytes, Reading(Ok(kib * 1024)));
    // Every processor has a thread that never rests, whoever else works here.
    let load = *device.utilisation_percent.value().unwrap();
    assert!((60.0..=100.0).contains(&load), "{load} %");
}

/// The file of an engine that this test pretends to be: it holds the lock.
fn engine(folder: &Path, name: &str, text: &str) -> std::fs::File {
    let lock = std::fs::File::create(folder.join(format!("{name}.lock"))).unwrap();
    lock.try_lock().unwrap();
    std::fs::write(folder.join(format!("{name}.json")), text).unwrap();
    lock
}

fn figures(process: u32, age: f64, dispatches: u64) -> String {
    format!(
        r#"{{"process":{process},"program":"app","engine":1,"age":{age},"selected":"GPU","devices":[],"kernels":[],
        "dispatches":{dispatches},"fallbacks":0,"failures":0,"losses":0,"events":[]}}"#
    )
}

#[test]
fn rates_are_over_the_engines_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let engines = folder.path().join("engines");
    std::fs::create_dir(&engines).unwrap();
    let _lock = engine(&engines, "5-1", &figures(5, 2.0, 100));
    let mut monitor = Monitor::new(nothing(folder.path()));
    assert_eq!(monitor.sample().engines[0].dispatches_per_second, 50.0, "since the engine was made");
    std::fs::write(engines.join("5-1.json"), figures(5, 2.5, 400)).unwrap();
    assert_eq!(monitor.sample().engines[0].dispatches_per_second, 600.0);
    assert_eq!(monitor.sample().engines[0].dispatches_per_second, 600.0, "the same figures again");
    std::fs::write(engines.join("5-1.json"), figures(5, 3.0, 400)).unwrap();
    assert_eq!(monitor.sample().engines[0].dispatches_per_second, 0.0, "it rests");
}

#[test]
fn engines_come_by_process() {
    let folder = tempfile::tempdir().unwrap();
    let engines = folder.path().join("engines");
    std::fs::create_dir(&engines).unwrap();
    let of = |process: u32, number: u32| {
        let text = figures(process, 1.0, 1).replace("\"engine\":1", &format!("\"engine\":{number}"));
        engine(&engines, &format!("{process}-{number}"), &text)
    };
    let _locks = [(20, 1), (3, 2), (100, 1), (3, 1)].map(|(process, number)| of(process, number));
    let sample = Monitor::new(nothing(folder.path())).sample();
    let found: Vec<_> = sample.engines.iter().map(|engine| (engine.figures.process, engine.figures.engine)).collect();
    assert_eq!(found, [(3, 1), (3, 2), (20, 1), (100, 1)]);
}

#[test]
fn what_is_no_engines_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let engines = folder.path().join("engines");
    std::fs::create_dir(&engines).unwrap();
    let good = figures(7, 1.0, 1);
    let mut locks = vec![engine(&engines, "7-1", &good)];
    for (name, text) in [
        ("garbage", "\u{0}\u{1}not json".to_owned()),
        ("empty", String::new()),
        ("deep", "[".repeat(200_000)),
        ("huge", format!("{good}{}", " ".repeat(300 << 10))),
        ("strange", good.replace("\"dispatches\":1", "\"dispatches\":-1")),
        ("link", String::new()),
        ("pipe", String::new()),
        ("folder", String::new()),
        ("foreign", figures(8, 1.0, 1)),
    ] {
        locks.push(engine(&engines, name, &text));
    }
    let outside = folder.path().join("outside");
    std::fs::write(&outside, figures(9, 1.0, 1)).unwrap();
    for name in ["link", "pipe", "folder"] {
        std::fs::remove_file(engines.join(format!("{name}.json"))).unwrap();
    }
    std::os::unix::fs::symlink(&outside, engines.join("link.json")).unwrap();
    assert!(Command::new("mkfifo").arg(engines.join("pipe.json")).status().unwrap().success());
    std::fs::create_dir(engines.join("folder.json")).unwrap();
    // Only root can give a file away.
    let given_away = std::os::unix::fs::chown(engines.join("foreign.json"), Some(65_534), None).is_ok();
    // The same figures, and nobody who holds a lock: the process is dead.
    std::fs::write(engines.join("10-1.json"), figures(10, 1.0, 1)).unwrap();
    std::fs::write(engines.join("10-1.lock"), "").unwrap();
    std::fs::write(engines.join("11-1.json"), figures(11, 1.0, 1)).unwrap();
    let sample = Monitor::new(nothing(folder.path())).sample();
    let found: Vec<u32> = sample.engines.iter().map(|engine| engine.figures.process).collect();
    assert_eq!(found, if given_away { vec![7] } else { vec![7, 8] });
    for name in ["10-1.json", "10-1.lock", "11-1.json"] {
        assert!(!engines.join(name).exists(), "{name} is stale");
    }
    assert!(outside.exists());
    drop(locks);
    assert!(Monitor::new(nothing(folder.path())).sample().engines.is_empty(), "they have ended");
    // A folder in which others may write tells nothing.
    let _lock = engine(&engines, "7-1", &good);
    std::fs::set_permissions(&engines, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(Monitor::new(nothing(folder.path())).sample().engines.is_empty());
}
