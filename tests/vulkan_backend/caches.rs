//! The pipeline cache's file: damaged, not writable, written by two processes at once. And a machine without drivers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use cantus::backend::vulkan::VulkanBackend;
use cantus::backend::{Backend, OpenOptions};
use pollster::block_on;

use crate::Case;
use crate::support::Found;
use kit::backend::{uniform, whole};

pub const CASES: &[Case] = &[
    ("the cache's file is written and used again", written),
    ("a damaged cache is made anew", damaged),
    ("a folder that cannot be written", not_writable),
    ("two processes fill the cache at once", two_processes),
    ("no driver is a reason", no_driver),
];

const KERNEL: &str = "
    @group(0) @binding(0) var<uniform> add: u32;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += add + NUMBERu; }";

/// Compiles and runs a few kernels with that folder for the cache, and closes the device.
fn fill(found: &Found, folder: &Path, numbers: std::ops::Range<u32>) {
    let device = found.open_with(&OpenOptions::new().cache_folder(folder));
    for number in numbers {
        let program = device.compile(&KERNEL.replace("NUMBER", &number.to_string()));
        let y = device.zeros(256);
        device.run(&program, vec![uniform(&[5_u32]), whole(&y)], [1, 1, 1]).unwrap();
        assert_eq!(device.read::<u32>(&y), [5 + number; 64]);
    }
}

/// The files of a folder and what is in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join("vulkan")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn written(found: &Found) {
    let folder = tempfile::tempdir().unwrap();
    fill(found, folder.path(), 0..3);
    let all = files(folder.path());
    let [file] = all.as_slice() else { panic!("one file is expected: {all:?}") };
    let first = std::fs::read(file).unwrap();
    assert!(first.starts_with(b"CANTUSVK"));
    // Opened without compiling anything, it stays as it is.
    fill(found, folder.path(), 0..0);
    assert_eq!(std::fs::read(file).unwrap(), first);
    // It is a part of what a later run writes.
    fill(found, folder.path(), 3..6);
    assert!(std::fs::read(file).unwrap().len() >= first.len());
}

fn damaged(found: &Found) {
    let folder = tempfile::tempdir().unwrap();
    fill(found, folder.path(), 0..2);
    let file = files(folder.path()).remove(0);
    let good = std::fs::read(&file).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut other_driver = good.clone();
    other_driver[12] ^= 1;
    for bad in [Vec::new(), b"nonsense".to_vec(), flipped, good[..good.len() - 3].to_vec(), other_driver] {
        std::fs::write(&file, &bad).unwrap();
        fill(found, folder.path(), 0..2);
        let again = std::fs::read(&file).unwrap();
        assert_eq!(again.len(), good.len());
        assert_eq!(again[..32], good[..32], "it is made anew");
    }
}

fn not_writable(found: &Found) {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be: that fails for any user.
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, b"in the way").unwrap();
    fill(found, &blocked, 0..3);
    assert_eq!(std::fs::read(&blocked).unwrap(), b"in the way");
}

fn two_processes(found: &Found) {
    let folder = tempfile::tempdir().unwrap();
    let child = |first: u32| {
        Command::new(std::env::current_exe().unwrap())
            .env("CANTUS_TEST_FILL", folder.path())
            .env("CANTUS_TEST_DEVICE", found.info.index.to_string())
            .env("CANTUS_TEST_FIRST", first.to_string())
            .spawn()
            .unwrap()
    };
    let children = [child(0), child(100), child(200)];
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let all = files(folder.path());
    assert_eq!(all.len(), 1, "nothing but the cache is left: {all:?}");
    let before = std::fs::read(&all[0]).unwrap();
    // It is whole: opened again, it is not made again.
    fill(found, folder.path(), 0..1);
    assert!(std::fs::read(&all[0]).unwrap().len() >= before.len());
}

fn no_driver(_: &Found) {
    let child = Command::new(std::env::current_exe().unwrap())
        .env("CANTUS_TEST_PROBE", "1")
        .env("VK_ICD_FILENAMES", "/nonexistent.json")
        .env("VK_DRIVER_FILES", "/nonexistent.json")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}");
    assert!(text.contains("install") && text.contains("driver"), "{text}");
}

/// Runs this program as a child of one of its cases; nothing when it is not one.
pub fn as_child() -> Option<ExitCode> {
    if std::env::var_os("CANTUS_TEST_PROBE").is_some() {
        let backend = VulkanBackend::new();
        let probe = block_on(backend.probe());
        println!("{}", probe.reason.unwrap_or_default());
        let opened = block_on(backend.open(0, &OpenOptions::default())).is_ok();
        return Some(ExitCode::from(u8::from(!probe.devices.is_empty() || opened)));
    }
    let folder = PathBuf::from(std::env::var_os("CANTUS_TEST_FILL")?);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let (devices, _) = crate::support::devices();
    let found = devices.into_iter().find(|found| Some(found.info.index as u32) == number("CANTUS_TEST_DEVICE"))?;
    let first = number("CANTUS_TEST_FIRST")?;
    for round in 0..10 {
        fill(&found, &folder, first + round * 3..first + round * 3 + 3);
    }
    Some(ExitCode::SUCCESS)
}
