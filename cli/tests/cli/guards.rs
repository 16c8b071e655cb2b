//! Limits that are asked before the work, files that keep what they had, and readers that leave.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use crate::{Done, Place, run};

const ONE: &str = "
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = 1.0; }
";

const COPY: &str = "
@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0]; }
";

const TEXEL: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = textureLoad(image, vec2i(0, 0), 0).x; }
";

/// Runs the program on the CPU backend in a shell, after `limit` and with `rest` behind the arguments.
fn shell(place: &Place, limit: &str, arguments: &str, rest: &str) -> Done {
    let program = assert_cmd::cargo::cargo_bin("cantus");
    let line = format!("{limit}; \"$PROGRAM\" --backend cpu {arguments} {rest}");
    let mut command = assert_cmd::Command::new("sh");
    let home = place.path(".");
    command.current_dir(&home).env("HOME", &home).env("XDG_CONFIG_HOME", &home).env("PROGRAM", program);
    run(command.args(["-c", &line]))
}

/// A file of that many bytes, of which only the first take room on the disk.
fn sparse(place: &Place, name: &str, start: &[u8], bytes: u64) {
    place.write(name, start);
    std::fs::File::options().write(true).open(place.path(name)).unwrap().set_len(bytes).unwrap();
}

/// A `.npy` of float32 zeros.
fn sparse_npy(place: &Place, name: &str, elements: u64) {
    let mut header = Vec::new();
    cantus::tensor::npy::write_header(&mut header, cantus::DType::F32, &[usize::try_from(elements).unwrap()]).unwrap();
    sparse(place, name, &header, header.len() as u64 + 4 * elements);
}

#[test]
#[cfg(target_os = "linux")]
fn what_memory_does_not_hold_is_refused_before_it_is_read() {
    const ELEMENTS: u64 = 1 << 38;
    let place = Place::new();
    place.write("copy.wgsl", COPY);
    sparse_npy(&place, "x.npy", ELEMENTS);
    sparse(&place, "x.bin", &[], 4 * ELEMENTS);
    sparse(&place, "x.csv", b"1,2\n3,4\n", 4 * ELEMENTS);
    let header =
        format!("{{\"x\":{{\"dtype\":\"F32\",\"shape\":[{ELEMENTS}],\"data_offsets\":[0,{}]}}}}", 4 * ELEMENTS);
    let start = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    sparse(&place, "x.safetensors", &start, start.len() as u64 + 4 * ELEMENTS);
    for (input, more) in [
        ("x.npy", &["1.0 TiB", "--stream x reads it in chunks"][..]),
        ("x.bin", &["1.0 TiB"]),
        ("x.csv", &["1.0 TiB"]),
        ("x.safetensors", &["1.0 TiB"]),
        ("iota[274877906944]", &["1.0 TiB"]),
        ("zeros[274877906944]", &["1.0 TiB"]),
        ("random:7[274877906944]", &["1.0 TiB"]),
    ] {
        // The second: a machine that would give it all; what is there to take is bounded by the shell.
        for limit in ["true", "ulimit -v 8000000"] {
            let arguments = format!("run copy.wgsl --in 'x={input}' --out 'y=f32[4]' --workgroups 1");
            shell(&place, limit, &arguments, "").refused(&arguments, 2, more);
        }
    }
    // Another program's reader of the same file.
    let arguments = "zk field sum bn254-fr x.npy -o o.npy";
    if cfg!(feature = "zk") {
        shell(&place, "ulimit -v 8000000", arguments, "").refused(arguments, 2, &["x.npy", "1.0 TiB"]);
    }
}

#[test]
fn the_memory_limit_is_asked_before_a_file_is_read() {
    let place = Place::new();
    place.write("copy.wgsl", COPY);
    place.write("texel.wgsl", TEXEL);
    sparse_npy(&place, "x.npy", 1 << 28);
    sparse(&place, "x.bin", &[], 1 << 30);
    sparse(&place, "x.jpg", &[], 1 << 30);
    // The header alone: no pixel is looked at.
    let mut header = Vec::new();
    drop(png::Encoder::new(&mut header, 20_000, 20_000).write_header().unwrap());
    place.write("x.png", header);
    let limited = |kernel: &str, input: &str, more: &[&str]| {
        let arguments = format!("run {kernel}.wgsl --in {input} --out y=f32[4] --workgroups 1 --memory-limit 256MiB");
        place.refuse(&arguments, 2, &[&["memory limit of 256.0 MiB", "hint: --memory-limit"], more].concat());
    };
    limited("copy", "x=x.npy", &["x.npy", "1.0 GiB", "--stream x"]);
    limited("copy", "x=x.bin", &["x.bin", "1.0 GiB"]);
    limited("copy", "x=iota[268435456]", &["1.0 GiB"]);
    limited("copy", "x=x.png", &["x.png", "20000 x 20000 pixels", "1.5 GiB"]);
    limited("texel", "image=x.png", &["x.png", "20000 x 20000 pixels", "1.5 GiB"]);
    limited("texel", "image=x.jpg", &["x.jpg", "1.0 GiB"]);
    let mut command = place.command();
    let arguments = "--backend cpu --memory-limit 256MiB run copy.wgsl --in x=- --out y=f32[4] --workgroups 1";
    let npy = std::fs::File::open(place.path("x.npy")).unwrap();
    let mut start = vec![0; 128];
    std::io::Read::read_exact(&mut &npy, &mut start).unwrap();
    run(command.args(crate::words(arguments)).write_stdin(start)).refused(arguments, 2, &["standard input", "1.0 GiB"]);
}

/// Every kind of PNG becomes the bytes that another decoder makes of it.
#[test]
fn pictures_of_every_kind() {
    let place = Place::new();
    place.write(
        "bytes.wgsl",
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { a[id.x] = a[id.x]; }",
    );
    let (width, height) = (5, 3);
    let byte = |i: usize| (i * 37 + 11) as u8;
    for (color, depth, parts) in [
        (png::ColorType::Grayscale, png::BitDepth::Eight, 1),
        (png::ColorType::GrayscaleAlpha, png::BitDepth::Eight, 2),
        (png::ColorType::Rgb, png::BitDepth::Eight, 3),
        (png::ColorType::Rgba, png::BitDepth::Eight, 4),
        (png::ColorType::Rgb, png::BitDepth::Sixteen, 3),
        (png::ColorType::GrayscaleAlpha, png::BitDepth::Sixteen, 2),
    ] {
        let count = (width * height) as usize * parts;
        // Both bytes alike, so that every way to halve the depth agrees.
        let twice = if depth == png::BitDepth::Sixteen { 2 } else { 1 };
        let data: Vec<u8> = (0..count).flat_map(|i| vec![byte(i); twice]).collect();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        encoder.write_header().unwrap().write_image_data(&data).unwrap();
        place.write("in.png", &file);
        place.succeed("run bytes.wgsl --in a=in.png --invocations 15 -o a=out.bin");
        let expected = image::open(place.path("in.png")).unwrap().to_rgba8().into_raw();
        assert_eq!(std::fs::read(place.path("out.bin")).unwrap(), expected, "{color:?} {depth:?}");
    }
}

#[test]
fn an_output_keeps_what_the_file_before_it_had() {
    let place = Place::new();
    place.write("one.wgsl", ONE);
    let to = |name: &str| format!("run one.wgsl --out y=f32[4] --workgroups 1 -o y={name}");
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o7777;
    for kept in [0o600, 0o640] {
        place.write("a.npy", "secret");
        std::fs::set_permissions(place.path("a.npy"), std::fs::Permissions::from_mode(kept)).unwrap();
        place.succeed(&to("a.npy"));
        assert_eq!((mode("a.npy"), place.read_f32("a.npy").1[0]), (kept, 1.0));
    }
    place.write("r.npy", "precious");
    std::fs::set_permissions(place.path("r.npy"), std::fs::Permissions::from_mode(0o444)).unwrap();
    place.refuse(&to("r.npy"), 1, &["r.npy", "read-only"]);
    assert_eq!((mode("r.npy"), std::fs::read(place.path("r.npy")).unwrap()), (0o444, b"precious".to_vec()));
    std::fs::create_dir(place.path("d")).unwrap();
    symlink("d/new.npy", place.path("l.npy")).unwrap();
    place.succeed(&to("l.npy"));
    assert!(place.path("l.npy").is_symlink());
    assert_eq!(place.read_f32("d/new.npy").1[0], 1.0);
    symlink("q.npy", place.path("p.npy")).unwrap();
    symlink("p.npy", place.path("q.npy")).unwrap();
    place.run(&to("p.npy")).refused("a circle", 1, &["p.npy", "links"]);
    assert!(place.path("p.npy").is_symlink());
}

#[test]
fn a_limit_on_files_is_an_error_that_leaves_nothing() {
    let place = Place::new();
    place.write("one.wgsl", ONE);
    let before = place.files();
    for (arguments, file) in [
        ("field 512x512 -o f.png", "f.png"),
        ("field 512x512 -o f.npy", "f.npy"),
        ("animate 64x64 --frames 20 -o f.gif", "f.gif"),
        ("run one.wgsl --out 'y=f32[40000]' --workgroups 1 -o y=f.csv", "f.csv"),
        ("run one.wgsl --out 'y=f32[40000]' --workgroups 1 -o y=f.safetensors", "f.safetensors"),
    ] {
        let done = shell(&place, "ulimit -f 1", arguments, "");
        done.refused(arguments, 1, &[&format!("cannot write {file}"), "limit on the size of files"]);
        assert_eq!(place.files(), before, "{arguments}");
    }
}

#[test]
fn settings_that_are_set_at_the_same_time_are_all_kept() {
    const SETTINGS: [(&str, &str); 8] = [
        ("timeout_ms", "8000"),
        ("stall_ms", "9000"),
        ("memory_limit", "1GiB"),
        ("reproducible", "true"),
        ("native", "true"),
        ("low_power", "true"),
        ("profile", "true"),
        ("publish", "true"),
    ];
    let place = Place::new();
    place.write("c.toml", "");
    for round in 0..3 {
        place.write("c.toml", "");
        let set = |(key, value): &(&str, &str)| {
            let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("cantus"));
            command.args(["config", "set", key, value]).env("CANTUS_CONFIG", place.path("c.toml"));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let running: Vec<_> = SETTINGS.iter().map(set).collect();
        assert!(running.into_iter().all(|mut one| one.wait().unwrap().success()));
        let text = std::fs::read_to_string(place.path("c.toml")).unwrap();
        for (key, _) in SETTINGS {
            assert!(text.contains(&format!("{key} = ")), "round {round}: no {key} in\n{text}");
        }
    }
}

#[test]
fn stores_out_of_range_are_found_where_that_is_asked_for() {
    let place = Place::new();
    place.write(
        "k.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n\
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 1.0; }\n",
    );
    let run = "run k.wgsl --out 'y=f32[100]' --workgroups 2 -o y=y.npy";
    let done = shell(&place, "true", &format!("--check-stores {run}"), "");
    done.refused("--check-stores", 2, &["main stores out of range, 28 times", "of y, which has 100"]);
    assert_eq!(place.files().len(), 1, "nothing is written");
    let done = shell(&place, "export CANTUS_CHECK_STORES=1", &run.replace("[100]", "[128]"), "");
    assert_eq!((done.code, place.files().len()), (Some(0), 2), "{}", done.stderr);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    place.write("one.wgsl", ONE);
    for arguments in [
        "run one.wgsl --out 'y=f32[1000000]' --workgroups 1 -o y=-",
        "run one.wgsl --out 'y=f32[1000000]' --workgroups 1 -o y=/dev/stdout",
        "field 512x512 -o -",
    ] {
        // The code is told on stderr: that of a pipe is its last program's.
        let done = shell(&place, "(true", arguments, "; echo code $? >&2) | head -c 6 | tail -c 5");
        assert_eq!(done.stdout, "NUMPY", "{arguments}\n{}", done.stderr);
        assert!(done.stderr.contains("code 0") && !done.stderr.contains("error"), "{arguments}\n{}", done.stderr);
    }
}

/// The limit holds for the whole run, also where one case takes longer.
#[test]
fn a_bench_ends_at_its_limit() {
    let place = Place::new();
    let started = std::time::Instant::now();
    // A product that takes seconds where it is not optimised, after one that does not.
    let done = place.run("bench --filter matmul --size 64x64 --size 8192x8192 --limit 2s");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(started.elapsed().as_secs_f64() < 3.0, "it took {:?}", started.elapsed());
    assert!(done.stdout.contains("64x64") && done.stderr.contains("stopped after"), "{}\n{}", done.stdout, done.stderr);
}

#[test]
fn quiet_leaves_warnings_and_errors() {
    let place = Place::new();
    place.write("one.wgsl", ONE);
    for arguments in ["-q field 8x8 -o f.npy", "run one.wgsl --out y=f32[4] --workgroups 1 --quiet"] {
        let done = place.run(arguments);
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""), "{arguments}");
    }
    place.refuse("-q coherence none.npy", 2, &["none.npy"]);
    place.refuse("-q -v devices", 2, &["--quiet", "--verbose"]);
}

/// A hint is the way out of the error that it stands below, and of no other.
#[test]
fn hints_belong_to_their_errors() {
    let place = Place::new();
    place.write("copy.wgsl", COPY);
    place.npy("d.npy", &[4], &[1.0_f64; 4]);
    let copy = "run copy.wgsl --out y=f32[4] --workgroups 1";
    place.refuse(copy, 2, &["nothing was bound; its type is array<f32>", "hint: --in NAME=FILE"]);
    for (arguments, fragment) in [
        (format!("{copy} --in x=d.npy"), "f64"),
        (format!("{copy} --in z=d.npy"), "unknown binding"),
        (format!("{copy} --in x=iota[4] --set x=3"), "x"),
    ] {
        let done = place.run(&arguments);
        done.refused(&arguments, 2, &[fragment]);
        assert!(!done.stderr.contains("hint: "), "{arguments}\n{}", done.stderr);
    }
    place.write("none.wgsl", "fn helper() {}");
    let done = place.run("run none.wgsl --workgroups 1");
    assert!(done.code == Some(2) && !done.stderr.contains("--entry"), "{}", done.stderr);
}

/// Killed half-way, a run goes on only as the same work.
#[test]
fn a_checkpoint_belongs_to_its_kernel_and_settings() {
    const KERNEL: &str = "
override F: f32 = 2.0;
struct P { a: f32 }
@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: P;
@group(0) @binding(3) var<storage> w: array<f32>;
@compute @workgroup_size(64) fn one(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = x[id.x] * F + p.a + w[0]; }
}
@compute @workgroup_size(64) fn two(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = x[id.x] * F - p.a - w[0]; }
}
";
    let place = Place::new();
    place.write("k.wgsl", KERNEL);
    place.npy("x.npy", &[4_000_000], &vec![1.0_f32; 4_000_000]);
    place.npy("w.npy", &[1], &[0.25_f32]);
    let arguments = |entry: &str, a: &str, f: &str, more: &str| {
        format!(
            "run k.wgsl --entry {entry} --set p.a={a} --set F={f} --stream x --in x=x.npy --in w=w.npy --out y=f32[@x] \
             -o y=s.npy --checkpoint c --checkpoint-every 1ms {more}"
        )
    };
    let first = arguments("one", "1", "2", "--chunk-rows 20000");
    let interrupted = || {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("cantus"));
        command.args(["--backend", "cpu"]).args(crate::words(&first)).current_dir(place.path("."));
        command.env("HOME", place.path(".")).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        while !place.path("c").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The lock of a process that is gone holds nobody.
        let _ = std::fs::remove_file(place.path(".c.lock"));
        place.path("c").exists() && !place.path("s.npy").exists()
    };
    let begun = (0..20).any(|_| {
        let _ = (std::fs::remove_file(place.path("c")), std::fs::remove_file(place.path("s.npy")));
        interrupted()
    });
    assert!(begun, "it was never interrupted in time");
    let other = |arguments: &str| place.refuse(arguments, 2, &["the checkpoint c", "other work", "remove it"]);
    other(&arguments("two", "1", "2", ""));
    other(&arguments("one", "5", "2", ""));
    other(&arguments("one", "1", "3", ""));
    place.write("k.wgsl", KERNEL.replace("* F + p.a", "* F - p.a"));
    other(&arguments("one", "1", "2", ""));
    place.write("k.wgsl", KERNEL);
    place.npy("w.npy", &[1], &[0.5_f32]);
    other(&arguments("one", "1", "2", ""));
    place.npy("w.npy", &[1], &[0.25_f32]);
    place.refuse(&arguments("one", "1", "2", "--chunk-rows 10000"), 2, &["chunks of 20000 rows"]);
    // With the chunks of the checkpoint, where none are named.
    place.succeed(&arguments("one", "1", "2", ""));
    assert!(place.read_f32("s.npy").1.iter().all(|&value| value == 3.25));
    assert!(!place.path("c").exists() && !place.path(".c.lock").exists());
}
