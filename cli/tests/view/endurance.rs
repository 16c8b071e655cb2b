//! Actions that must not hang or leak: resizing, switching devices at rest and in mid-run, a lost device, closing while a
//! kernel runs.

use std::time::{Duration, Instant};

use super::Case;
use super::desktop::{Screen, Window, wait};

pub const CASES: &[Case] = &[
    ("500 resizes without a leak", resizes),
    ("50 device switches without a leak", switches),
    ("a switch and a close in mid-run", mid_run),
    ("a lost device", lost_device),
];

/// Rounds of the same work after the warm-up.
const ROUNDS: usize = 4;

/// Resident memory may grow by this factor in the round in which it grows least.
const GROWTH: f64 = 1.0125;

/// A leak grows in every round; what an allocator or a driver takes once shows in one or two. So the least step counts: `resident` holds the
/// memory after the warm-up and after each round.
fn assert_flat(name: &str, resident: &[u64], growth: f64) {
    println!("        {name}: resident {resident:?} KiB");
    let least = resident.windows(2).map(|pair| pair[1] as f64 / pair[0] as f64).fold(f64::INFINITY, f64::min);
    assert!(least <= growth, "{name}: every round grew, the least by a factor of {least:.4}: {resident:?} KiB");
}

/// Resident memory once it has stopped changing: the least of several looks.
fn settled(window: &Window<'_>) -> u64 {
    (0..10)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(150));
            window.resident()
        })
        .min()
        .unwrap()
}

/// A fixed sequence of sizes between those of a phone's and a desktop's window.
fn sizes() -> impl Iterator<Item = (u32, u32)> {
    let mut state = 12345_u32;
    let mut next = move |range: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % range
    };
    std::iter::from_fn(move || Some((400 + next(1200), 300 + next(900))))
}

/// Mesa's lavapipe (22.3) compiles shaders anew all the time that a window is drawn, and keeps them: executable mappings of its JIT grow by
/// five a second, resize or not, while its GL twin stays flat under the same program. On Vulkan the bound only catches what grows faster.
const LAVAPIPE_GROWTH: f64 = 1.2;

fn resizes(screen: &Screen) {
    for (api, growth) in [("gl", GROWTH), ("vulkan", LAVAPIPE_GROWTH)] {
        resized(screen, api, growth);
    }
}

fn resized(screen: &Screen, api: &str, growth: f64) {
    let mut window = screen.open_with(&["--backend", "cpu", "view", "--size", "256x256"], &[("WGPU_BACKEND", api)]);
    window.wait_title("field, ");
    let mut sizes = sizes();
    let mut round = |resizes| {
        for (width, height) in sizes.by_ref().take(resizes) {
            window.resize(width, height);
        }
        window.resize(1120, 760);
        std::thread::sleep(Duration::from_secs(1));
        settled(&window)
    };
    let mut resident = vec![round(250)];
    resident.extend((0..ROUNDS).map(|_| round(500 / ROUNDS)));
    assert_flat(api, &resident, growth);
    let (took, _) = window.close();
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

fn switches(screen: &Screen) {
    // Drawn by GL, for the reason at LAVAPIPE_GROWTH; computed on every device of the machine.
    let mut window = screen.open_with(&["view", "--size", "256x256"], &[("WGPU_BACKEND", "gl")]);
    window.wait_title("field, ");
    // The list of devices is complete after a moment.
    std::thread::sleep(Duration::from_secs(4));
    let mut titles = std::collections::BTreeSet::new();
    let mut switch = |times: usize, rest: u64| {
        for number in 0..times {
            window.keys(&["d"]);
            // Every third switch does not wait for the device: it is left while it opens or computes.
            if number % 3 != 2 {
                std::thread::sleep(Duration::from_millis(rest));
                let title = wait("a device", || Some(window.title()).filter(|title| !title.contains("opening")));
                titles.insert(title);
            }
        }
        std::thread::sleep(Duration::from_secs(1));
        (settled(&window), window.threads())
    };
    // Each device computes for a while first: drivers take much of their memory with the first kernels.
    let (before, threads_before) = switch(36, 600);
    let mut resident = vec![before];
    let mut threads = vec![];
    for _ in 0..ROUNDS {
        let (after, threads_after) = switch(50 / ROUNDS + 1, 60);
        resident.push(after);
        threads.push(threads_after);
    }
    println!("        devices: {titles:?}; threads {threads_before}, then {threads:?}");
    assert!(titles.len() >= 2, "only {titles:?}");
    assert_flat("switches", &resident, GROWTH);
    assert!(
        threads.iter().next_back().is_some_and(|&after| after <= threads_before + 12),
        "{threads_before} threads grew to {threads:?}"
    );
    let (took, _) = window.close();
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

/// A kernel that takes minutes on the CPU executor.
const SLOW: &str = "@group(0) @binding(0) var<storage, read_write> values: array<f32>;
@compute @workgroup_size(64) fn slow(@builtin(global_invocation_id) id: vec3u) {
    var value = f32(id.x);
    for (var i = 0u; i < 100000000u; i++) { value = fract(value * 1.37 + 0.1); }
    if id.x < arrayLength(&values) { values[id.x] = value; }
}
";

fn mid_run(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.wgsl");
    std::fs::write(&path, SLOW).unwrap();
    let name = path.display().to_string();
    let mut window = screen.open(&["--backend", "cpu", "view", &name, "--size", "512x512"]);
    window.wait_title("slow.wgsl, ");
    // The window says that the kernel runs on.
    window.wait_title("slow.wgsl, still computing");
    let threads = window.threads();
    // Three switches to and fro while it runs; the window answers each time.
    for _ in 0..3 {
        let start = Instant::now();
        window.keys(&["d"]);
        wait("the next device", || Some(window.title()).filter(|title| !title.contains("opening")));
        window.keys(&["shift+d"]);
        wait("the device before", || Some(window.title()).filter(|title| !title.contains("opening")));
        assert!(start.elapsed() < Duration::from_secs(10), "switching took {:?}", start.elapsed());
    }
    // What is mended meanwhile replaces what runs.
    std::fs::write(&path, SLOW.replace("100000000u", "10u")).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    println!("        threads {threads}, then {}", window.threads());
    std::fs::write(&path, SLOW).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let (took, _) = window.close();
    println!("        closed in mid-run in {took:?}");
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

fn lost_device(screen: &Screen) {
    for backend in ["wgpu", "cpu"] {
        let mut window = screen.open(&["--backend", backend, "view", "--size", "256x256", "--lose-device", "20"]);
        window.wait_title("field, ");
        // The next window has another number, and goes on where the first one was.
        window.find();
        window.wait_title("field, ");
        let before = window.resident();
        std::thread::sleep(Duration::from_secs(1));
        assert!(before > 0);
        let (took, _) = window.close();
        assert!(took < Duration::from_secs(5), "closing took {took:?}");
    }
    // Again and again is an end with words, not a loop.
    let output = screen.command(&["view", "--lose-device", "5", "--lose-again"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was lost") && said.contains("3 times in a minute"), "{said}");
}
