//! Bad input: each bad input has its message and its exit code, and leaves no file.

use crate::Place;

const KERNEL: &str = "
struct Params { a: f32, n: u32, v: vec3f }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < params.n { y[id.x] += params.a * x[id.x] * params.v.y; }
}
";

/// A folder with the kernel and its inputs.
fn place() -> Place {
    let place = Place::new();
    place.write("k.wgsl", KERNEL);
    place.npy("x.npy", &[8], &[1.0_f32; 8]);
    place.npy("y.npy", &[8], &[1.0_f32; 8]);
    place
}

const SET: &str = "--set params.a=2 --set params.n=8 --set params.v=1,2,3";
const INPUTS: &str = "--in x=x.npy --in y=y.npy";

#[test]
fn the_correct_run_of_the_same_kernel() {
    place().succeed(&format!("run k.wgsl {INPUTS} {SET} --workgroups 1 -o y=out.npy"));
}

#[test]
fn broken_kernels() {
    let place = place();
    place.write("broken.wgsl", "@compute @workgroup_size(1)\nfn main( { }");
    place.refuse("run broken.wgsl --workgroups 1", 2, &["broken.wgsl:2:", "does not compile"]);
    place.write("types.wgsl", "@compute @workgroup_size(1) fn main() { let a: i32 = 1.5; }");
    place.refuse("run types.wgsl --workgroups 1", 2, &["types.wgsl"]);
    place.write("none.wgsl", "fn f() {}");
    place.refuse("run none.wgsl --workgroups 1", 2, &["no compute entry point"]);
    place.write("bytes.wgsl", [0xff, 0xfe, 0x00]);
    place.refuse("run bytes.wgsl --workgroups 1", 2, &["bytes.wgsl"]);
    place.refuse("run missing.wgsl --workgroups 1", 2, &["cannot read missing.wgsl"]);
}

/// Also where a subcommand needs no device: the word would be dropped.
#[test]
fn an_unknown_backend_is_refused_by_every_subcommand() {
    let place = place();
    let help = place.run_plain("--help").stdout;
    let named = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A line that goes on is set in further.
    let mut names: Vec<&str> = named
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.retain(|name| *name != "help");
    let arguments = [
        ("field", "8x8 -o f.npy"),
        ("pattern", "8x8 -o p.npy"),
        ("coherence", "x.npy"),
        ("animate", "8x8 -o a.png"),
        ("run", "k.wgsl --workgroups 1"),
        ("job", "none.toml"),
        ("compile", "k.wgsl --target cuda"),
        ("new", "made"),
        ("zk", "hash sha256 x.npy"),
        ("circuits", "run none.qasm"),
        ("config", "show"),
        ("completions", "bash"),
        ("man", "pages"),
    ];
    assert!(names.len() >= 15 && arguments.iter().all(|(name, _)| names.contains(name)), "{names:?}");
    let refuses = |arguments: &str, words: &[&str]| place.run_plain(arguments).refused(arguments, 2, words);
    for name in names {
        let more = arguments.iter().find(|(own, _)| *own == name).map_or("", |(_, more)| more);
        for given in ["--backend abc", "--backend=cpux"] {
            refuses(&format!("{given} {name} {more}"), &["is no backend of this program", "cpu"]);
        }
    }
    refuses("devices --backend abc --json", &["is no backend of this program"]);
    refuses(&format!("run k.wgsl {INPUTS} {SET} --workgroups 1 --compare abc"), &["is no backend of"]);
    // The variable and the file count where a device is wanted, and can still be looked at and changed.
    let with = |arguments: &str| {
        let mut command = place.command();
        command.args(arguments.split_whitespace()).env("CANTUS_BACKEND", "abc");
        command.output().unwrap().status.code()
    };
    assert_eq!((with("devices"), with("config show"), with("devices --backend cpu")), (Some(2), Some(0), Some(0)));
}

#[test]
fn files_that_cannot_be_read_are_named_with_what_is_wrong() {
    let place = place();
    place.refuse("job none.toml", 2, &["cannot read none.toml: there is no such file"]);
    place.refuse("job .", 2, &["cannot read .: it is a folder"]);
    place.refuse("zk hash sha256 .", 2, &["cannot read .: it is a folder"]);
    for suffix in ["npy", "bin", "csv", "png", "safetensors"] {
        let run = format!("run k.wgsl --in x=none.{suffix} --in y=y.npy --workgroups 1");
        place.refuse(&run, 2, &[&format!("cannot read none.{suffix}: there is no such file")]);
    }
    let said = place.run_plain("compile softmax --target stablehlo --shape -3x5").stderr;
    assert!(said.contains("-3x5") && !said.contains("tip:"), "{said}");
    let mut command = place.command();
    command.args(["devices"]).env("CANTUS_PJRT_PLUGIN", "/no/such/plugin.so");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/no/such/plugin.so: there is no such file"), "{said}");
    assert_eq!(said.matches("/no/such/plugin.so").count(), 1, "{said}");
}

#[test]
fn entry_points() {
    let place = place();
    place.refuse(&format!("run k.wgsl --entry nope {INPUTS} {SET} --workgroups 1"), 2, &["\"nope\"", "saxpy"]);
    place.write("two.wgsl", "@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}");
    place.refuse("run two.wgsl --workgroups 1", 2, &["a, b", "--entry"]);
}

#[test]
fn bindings_missing_superfluous_and_twice() {
    let place = place();
    let rest = format!("{SET} --workgroups 1");
    place.refuse(
        &format!("run k.wgsl --in x=x.npy {rest}"),
        2,
        &["\"y\"", "array<f32>", "--in NAME=FILE", "--out NAME="],
    );
    place.refuse(&format!("run k.wgsl {INPUTS} --in z=x.npy {rest}"), 2, &["--in", "\"z\"", "x: array<f32>"]);
    place.refuse(&format!("run k.wgsl {INPUTS} --out z=f32[8] {rest}"), 2, &["--out", "\"z\""]);
    place.refuse(&format!("run k.wgsl {INPUTS} --in x=y.npy {rest}"), 2, &["\"x\"", "second time"]);
    place.refuse(&format!("run k.wgsl {INPUTS} --out y=f32[8] {rest}"), 2, &["\"y\"", "second time"]);
    place.refuse(&format!("run k.wgsl --in y=y.npy --out x=f32[8] {rest}"), 2, &["\"x\"", "only read", "--in"]);
    place.refuse(&format!("run k.wgsl {INPUTS} {rest} -o x=out.npy"), 2, &["\"x\"", "only reads"]);
    place.refuse(&format!("run k.wgsl {INPUTS} {rest} -o z=out.npy"), 2, &["\"z\"", "-o"]);
    place.refuse(&format!("run k.wgsl --in x=x.npy {rest} -o y=out.npy"), 2, &["\"y\"", "--out y=DTYPE[SHAPE]"]);
}

#[test]
fn settings() {
    let place = place();
    let run = |set: &str| format!("run k.wgsl {INPUTS} {set} --workgroups 1 -o y=out.npy");
    place.refuse(&run("--set params.a=2 --set params.n=8"), 2, &["params.v", "--set"]);
    place.refuse(&run(""), 2, &["params", "--set"]);
    place.refuse(&run(&format!("{SET} --set params.b=1")), 2, &["\"b\"", "a, n, v"]);
    place.refuse(&run(&format!("{SET} --set SIZE=1")), 2, &["SIZE", "no such override"]);
    place.refuse(&run("--set a=2"), 2, &["\"a\"", "no such override", "--set params.a="]);
    place.refuse(&run(&format!("{SET} --set other.a=1")), 2, &["other.a", "params"]);
    place.refuse(&run(&format!("{SET} --set params.a=two")), 2, &["params.a", "\"two\""]);
    place.refuse(&run(&format!("{SET} --set params.n=-1")), 2, &["-1", "u32"]);
    place.refuse(&run(&format!("{SET} --set params.n=1.5")), 2, &["1.5", "u32"]);
    place.refuse(&run(&format!("{SET} --set params.v=1,2")), 2, &["vec3<f32>", "3", "2"]);
    place.refuse(&run(&format!("{SET} --set x=1")), 2, &["\"x\"", "set or bound again"]);
    place.refuse(&format!("run k.wgsl --in y=y.npy {SET} --set x=1 --workgroups 1"), 2, &["\"x\"", "storage"]);
    place.refuse(&run("--set params"), 2, &["NAME=VALUE"]);
}

#[test]
fn files_that_do_not_fit() {
    let place = place();
    let rest = format!("{SET} --workgroups 1 -o y=out.npy");
    place.npy("wide.npy", &[8], &[1.0_f64; 8]);
    place.npy("whole.npy", &[8], &[1_i32; 8]);
    place.npy("empty.npy", &[0], &[0.0_f32; 0]);
    place.refuse(
        &format!("run k.wgsl --in x=wide.npy --in y=y.npy {rest}"),
        2,
        &["wide.npy holds f64", "array<f32>", "\"x\"", "x.astype(\"f4\")"],
    );
    place.refuse(
        &format!("run k.wgsl --in x=whole.npy --in y=y.npy {rest}"),
        2,
        &["whole.npy holds i32", "array<f32>"],
    );
    place.refuse(
        &format!("run k.wgsl --in x=empty.npy --in y=y.npy {rest}"),
        2,
        &["empty.npy holds f32[0], 0 bytes", "at least 4"],
    );
    place.refuse(&format!("run k.wgsl --in x=x.npy --out y=u32[8] {rest}"), 2, &["u32", "array<f32>"]);
    place.write(
        "v.wgsl",
        "@group(0) @binding(0) var<storage, read_write> p: array<vec3f>;
        @group(0) @binding(1) var<storage, read_write> q: array<f32, 100>;
        @compute @workgroup_size(1) fn main() { p[0] = vec3f(q[0]); q[1] = 0; }",
    );
    place.refuse(
        "run v.wgsl --in p=x.npy --in q=y.npy --workgroups 1",
        2,
        &["y.npy holds f32[8], 32 bytes", "at least 400"],
    );
    place.npy("nine.npy", &[3, 3], &[0.0_f32; 9]);
    place.refuse(
        "run v.wgsl --in p=nine.npy --out q=f32[100] --workgroups 1",
        2,
        &["nine.npy: the shape [3, 3]", "padding behind each row of 3"],
    );
    place.refuse("run v.wgsl --out p=f32[9] --out q=f32[100] --workgroups 1", 2, &["\"p\"", "36 bytes"]);
}

#[test]
fn damaged_npy_files() {
    let place = place();
    let whole = std::fs::read(place.path("x.npy")).unwrap();
    place.write("cut.npy", &whole[..whole.len() - 1]);
    place.write("head.npy", &whole[..20]);
    place.write("long.npy", [&whole[..], &[0]].concat());
    place.write("text.npy", "1,2,3");
    let cases =
        [("cut.npy", "truncated"), ("head.npy", "truncated"), ("long.npy", "longer"), ("text.npy", "not a .npy file")];
    for (file, says) in cases {
        let run = format!("run k.wgsl --in x={file} --in y=y.npy {SET} --workgroups 1 -o y=out.npy");
        place.refuse(&run, 2, &[file, says]);
        place.refuse(&format!("coherence {file}"), 2, &[file, says]);
    }
    place.refuse("coherence missing.npy", 2, &["cannot read missing.npy"]);
    place.refuse("coherence .", 2, &["cannot read ."]);
}

#[test]
fn how_much_to_run() {
    let place = place();
    let run = |amount: &str| format!("run k.wgsl {INPUTS} {SET} {amount}");
    place.refuse(&run(""), 2, &["--workgroups", "--invocations"]);
    place.refuse(&run("--workgroups 1 --invocations 1"), 2, &["--workgroups", "--invocations"]);
    for amount in ["0", "1,0", "-1", "1,2,3,4", "4294967296", "1.5", "many"] {
        place.refuse(&run(&format!("--workgroups {amount}")), 2, &["one to three counts"]);
        place.refuse(&run(&format!("--invocations {amount}")), 2, &["one to three counts"]);
    }
    place.refuse(&run("--workgroups 4294967295"), 2, &["2^32"]);
}

#[test]
fn shapes_to_be_made() {
    let place = place();
    let run = |out: &str| format!("run k.wgsl --in x=x.npy --out {out} {SET} --workgroups 1 -o y=out.npy");
    for (out, says) in [
        ("y=f32", "NAME=DTYPE[SHAPE]"),
        ("y", "NAME=DTYPE[SHAPE]"),
        ("y=f32[0]", "at least 1"),
        ("y=f32[-4]", "at least 1"),
        ("y=f31[8]", "f32, f16, bf16"),
        ("y=f32[@z]", "\"z\""),
        ("y=f32[99999999999999999999]", "exceeds what this system can address"),
        ("y=f32[4294967296,4294967296,4294967296]", "4294967296"),
    ] {
        place.refuse(&run(out), 2, &[says]);
    }
}

#[test]
fn sizes() {
    let place = Place::new();
    for size in ["0x4", "4x0", "4", "x", "4x4x4", "1e3x4", "99999999999999999999x4"] {
        place.refuse(&format!("field {size} -o f.png"), 2, &[size]);
    }
    for side in ["0", "-5", "1.5", "big"] {
        place.refuse(&format!("field --width {side} -o f.png"), 2, &["a side is a whole number of at least 1"]);
        place.refuse(&format!("pattern --height {side} -o p.png"), 2, &["a side is a whole number of at least 1"]);
    }
    place.refuse("field --width 99999999999999999999 -o f.npy", 2, &["exceeds what this system can address"]);
    for size in ["-4x4", "-4"] {
        place.refuse(&format!("field {size} -o f.png"), 2, &["negative numbers are not accepted here: -4"]);
    }
    place.refuse("field -x -o f.png", 2, &["unexpected argument"]);
    place.refuse("field 4294967296x1 -o f.npy", 2, &["4294967296"]);
    place.refuse("field 3000000000x1 -o f.png", 2, &["3000000000", "2147483647", ".npy"]);
    place.refuse("field 4x4 --width 4 -o f.png", 2, &["--width"]);
    place.refuse("animate 65536x1 -o a.gif", 2, &["65536", "65535", ".png"]);
    place.refuse("animate 60000x60000 --memory-limit 1GB --frames 1 -o a.png", 2, &["13.4 GiB", "--memory-limit"]);
}

#[test]
fn numbers_and_names_of_the_field() {
    let place = Place::new();
    for time in ["nan", "inf", "-inf", "1e999", "soon"] {
        place.refuse(&format!("field --time={time} -o f.png"), 2, &["not a finite number"]);
    }
    for frequency in ["hate", "0", "-528", "nan", "inf", "1e999", "''"] {
        place.refuse(&format!("field --frequency {frequency} -o f.png"), 2, &["love", "unity", "oneness"]);
    }
    place.refuse("field --colormap nope -o f.png", 2, &["nope", "viridis", "twilight"]);
    for range in ["1,-1", "1", "0,0", "nan,1", "a,b"] {
        place.refuse(&format!("field --range {range} -o f.png"), 2, &["MIN,MAX"]);
    }
    for fps in ["0", "-1", "nan", "1e9", "fast"] {
        place.refuse(&format!("animate --fps {fps} -o a.png"), 2, &["0.01 to 1000"]);
    }
    place.refuse("animate --fps 60 -o a.gif", 2, &["60", "50", "--fps"]);
    for frames in ["0", "-1", "1000001", "x"] {
        place.refuse(&format!("animate --frames {frames} -o a.png"), 2, &["--frames"]);
    }
    place.refuse("animate --seamless --speed 2 -o a.png", 2, &["--seamless", "--speed"]);
}

#[test]
fn outputs() {
    let place = place();
    for command in ["field 4x4", "pattern 4x4"] {
        place.refuse(&format!("{command} -o f.jpg"), 2, &["f.jpg", ".png", ".npy"]);
        place.refuse(&format!("{command} -o f"), 2, &[".png", ".npy"]);
        place.refuse(
            &format!("{command} -o no/such/f.png"),
            1,
            &["cannot write no/such/f.png", "the folder no/such does not exist"],
        );
        place.refuse(&format!("{command} -o k.wgsl/f.png"), 1, &["cannot write k.wgsl/f.png"]);
    }
    // The name that was given, and not that of the file which becomes it.
    let named = |length: usize| format!("{}.png", "a".repeat(length - 4));
    place.refuse(&format!("field 4x4 -o {}", named(300)), 1, &["cannot write aaaa", "too long"]);
    place.succeed(&format!("field 4x4 -o {}", named(255)));
    if cfg!(target_os = "linux") {
        place.refuse("field 4x4 -o /proc/f.png", 1, &["cannot write /proc/f.png"]);
        for output in ["huge.npy", "huge.png"] {
            place.refuse(&format!("field 2000000000x2000000000 -o {output}"), 1, &["cannot write huge.", "free there"]);
        }
    }
    std::fs::create_dir(place.path("folder.png")).unwrap();
    place.refuse("field 4x4 -o folder.png", 1, &["cannot write folder.png", "it is a folder"]);
    place.refuse("animate 4x4 --frames 1 -o a.mp4", 2, &["a.mp4", ".gif"]);
    place.refuse("animate 4x4 --frames 1 -o no/a.gif", 1, &["cannot write no/a.gif"]);
    let run = format!("run k.wgsl {INPUTS} {SET} --workgroups 1");
    place.refuse(&format!("{run} -o y=no/out.npy"), 1, &["cannot write no/out.npy"]);
    place.refuse(&format!("{run} -o y"), 2, &["NAME=FILE"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let place = Place::new();
    for name in ["f.npy", "f.png"] {
        std::os::unix::fs::symlink("/dev/full", place.path(name)).unwrap();
        place.refuse(&format!("field 64x64 -o {name}"), 1, &[&format!("cannot write {name}"), "the disk is full"]);
    }
    for name in ["a.gif", "a.png"] {
        std::os::unix::fs::symlink("/dev/full", place.path(name)).unwrap();
        place.refuse(&format!("animate 64x64 --frames 2 -o {name}"), 1, &[&format!("cannot write {name}")]);
    }
}

#[test]
fn devices_that_are_not_there() {
    let place = Place::new();
    let refuse = |arguments: &str, says: &[&str]| {
        let code = if arguments.contains("--device") { 1 } else { 2 };
        place.run_plain(arguments).refused(arguments, code, says);
        assert!(place.files().is_empty());
    };
    refuse("--backend nonsense field 4x4", &["nonsense", "cpu"]);
    refuse("--backend gpu field 4x4", &["\"gpu\"", "did you mean \"wgpu\"?"]);
    refuse("--backend vulcan bench", &["did you mean \"vulkan\"?"]);
    refuse("--backend cpu --device 99 field 4x4", &["device 99", "cpu"]);
    refuse("--backend nonsense bench", &["nonsense"]);
    place.run_plain("--device -1 field 4x4").refused("--device -1", 2, &[]);
    let done = crate::run(place.command().env("CANTUS_BACKEND", "nonsense").args(["field", "4x4"]));
    done.refused("CANTUS_BACKEND=nonsense", 2, &["nonsense"]);
    let place = self::place();
    let run = format!("run k.wgsl {INPUTS} {SET} --workgroups 1");
    place.refuse(&format!("{run} --compare cpu:99"), 1, &["device 99"]);
    place.refuse(&format!("{run} --compare cpu:x"), 2, &["\"x\""]);
    place.refuse(&format!("{run} --tolerance 1"), 2, &["--compare"]);
    place.refuse(&format!("{run} --compare cpu --tolerance -1"), 2, &["tolerance"]);
}

#[test]
fn memory_and_time_limits() {
    let place = Place::new();
    place.npy("f.npy", &[512, 512], &vec![0.5_f32; 512 * 512]);
    place.write(
        "double.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {
            if i.x < arrayLength(&x) { x[i.x] *= 2.0; }
        }",
    );
    let whole = "--memory-limit 64KiB run double.wgsl --in x=f.npy --workgroups 4096 -o x=g.npy";
    place.refuse(whole, 2, &["f.npy", "1.0 MiB", "memory limit of 64.0 KiB", "--stream x", "--memory-limit"]);
    for limit in ["0", "-1", "lots", "1XB"] {
        place.refuse(&format!("--memory-limit {limit} coherence f.npy"), 2, &["512MB"]);
    }
    for limit in ["0", "-1", "never", "1h"] {
        place.refuse(&format!("--timeout {limit} coherence f.npy"), 2, &["500ms"]);
    }
    // What streams fits in any limit.
    place.succeed("--memory-limit 64KiB coherence f.npy");
    place.succeed("--memory-limit 64KiB field 512x512 -o g.npy");
    place.write(
        "endless.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { loop { y[0] += 1u; if y[0] == 0u && y[1] == 1u { break; } } }",
    );
    let started = std::time::Instant::now();
    place.refuse(
        "--timeout 200 run endless.wgsl --out y=u32[2] --workgroups 1 -o y=y.npy",
        1,
        &["200 ms", "--timeout"],
    );
    assert!(started.elapsed().as_secs() < 10);
    // Kernels without a loop end late, and are told so all the same.
    place.refuse("--timeout 1ms field 4096x4096 -o f.npy", 1, &["did not finish within 1 ms", "--timeout"]);
}

#[test]
fn fields_that_are_none() {
    let place = Place::new();
    let mut values = vec![0.5_f32; 64];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        values[63] = bad;
        place.npy("f.npy", &[8, 8], &values);
        place.refuse("coherence f.npy", 2, &["NaN", "infinit"]);
    }
    place.npy("f.npy", &[64], &vec![0.5_f32; 64]);
    place.refuse("coherence f.npy", 2, &["f.npy", "[64]", "two"]);
    place.npy("f.npy", &[8, 8], &vec![1_i32; 64]);
    place.refuse("coherence f.npy", 2, &["f.npy", "i32", "float32"]);
    place.npy("f.npy", &[0, 8], &[0.0_f32; 0]);
    place.refuse("coherence f.npy", 2, &["f.npy", "no rows"]);
    place.npy("f.npy", &[8, 0], &[0.0_f32; 0]);
    place.refuse("coherence f.npy", 2, &["f32[0]", "no elements"]);
}

#[test]
fn settings_of_the_machine() {
    let place = Place::new();
    let with = |name: &str, value: &str| crate::run(place.command().env(name, value).args(["field", "4x4"]));
    with("CANTUS_MEMORY_LIMIT", "lots").refused("", 2, &["CANTUS_MEMORY_LIMIT", "lots", "512MiB"]);
    with("CANTUS_DEVICE", "first").refused("", 2, &["CANTUS_DEVICE", "first"]);
    with("CANTUS_FALLBACK", "maybe").refused("", 2, &["CANTUS_FALLBACK", "always or never"]);
    with("CANTUS_CONFIG", "missing.toml").refused("", 2, &["missing.toml"]);
    assert!(place.files().is_empty());
    place.write("c.toml", "backend = 3\n");
    with("CANTUS_CONFIG", "c.toml").refused("", 2, &["c.toml", "backend"]);
    place.write("c.toml", "colour = \"red\"\n");
    with("CANTUS_CONFIG", "c.toml").refused("", 2, &["c.toml", "colour"]);
    let set = |key: &str, value: &str| {
        crate::run(place.command().env("CANTUS_CONFIG", "c.toml").args(["config", "set", key, value]))
    };
    // A file that is wrong already is not written over.
    set("backend", "cpu").refused("", 2, &["c.toml", "colour"]);
    place.write("c.toml", "backend = \"cpu\"\n");
    set("colour", "red").refused("", 2, &["colour", "memory_limit"]);
    set("colour", "").refused("", 2, &["colour", "memory_limit"]);
    set("memory_limit", "lots").refused("", 2, &["lots"]);
    set("backend", "cqu").refused("", 2, &["\"cqu\"", "did you mean \"cpu\"", "wgpu"]);
    assert_eq!(std::fs::read_to_string(place.path("c.toml")).unwrap(), "backend = \"cpu\"\n");
}

#[test]
fn names_and_usage() {
    let place = Place::new();
    place.refuse("kernels nope", 2, &["\"nope\"", "field", "phi_pattern"]);
    place.refuse("kernels fiel", 2, &["did you mean \"field\"?"]);
    place.refuse("config set backends cpu", 2, &["did you mean \"backend\"?"]);
    place.refuse("bench --filter nope", 2, &["nope", "coherence"]);
    place.refuse("bench --filter add --json no/such.json", 1, &["cannot write no/such.json"]);
    for seconds in ["0", "-1", "ever"] {
        place.refuse(&format!("tune --seconds {seconds}"), 2, &["--seconds"]);
    }
    place.refuse("paint", 2, &["paint"]);
    place.refuse("run scale --in x=iota:64 --invocations 64", 2, &["x=iota[480,640]"]);
    place.refuse("run scale --in x=zeros:f32[8] --invocations 8", 2, &["x=zeros[480,640]"]);
    place.refuse("field --nope", 2, &["--nope"]);
    place.refuse("coherence", 2, &["FIELD.npy"]);
    let done = place.run_plain("");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("Usage: cantus"), "{}", done.stderr);
}

/// Subcommands that a build leaves out are listed, and say how to get them.
#[test]
fn subcommands_of_other_builds_say_how_to_get_them() {
    let place = Place::new();
    #[cfg(not(feature = "viewer"))]
    place.refuse("view field", 2, &["built without the window", "cargo install --path cli --features viewer"]);
    #[cfg(not(feature = "serve"))]
    place.refuse("serve --port 1", 2, &["built without the service", "cargo install --path cli --features serve"]);
    #[cfg(not(feature = "top"))]
    place.refuse("top --once", 2, &["built without the monitor", "--features top", "--features full"]);
    #[cfg(not(feature = "shell"))]
    place.refuse("man pages", 2, &["built without the manual pages", "--features shell"]);
    let help = place.succeed("--help");
    for (name, built) in [
        ("view", cfg!(feature = "viewer")),
        ("serve", cfg!(feature = "serve")),
        ("top", cfg!(feature = "top")),
        ("completions", cfg!(feature = "shell")),
    ] {
        let mut lines = help.lines().skip_while(|line| !line.trim_start().starts_with(name));
        let first = lines.next().expect("an entry for each");
        // Long entries go on in lines that begin further to the right.
        let is_more = |line: &&str| line.starts_with("      ");
        let entry = [first].into_iter().chain(lines.take_while(is_more)).map(str::trim).collect::<Vec<_>>().join(" ");
        assert_eq!(entry.contains("was built without it"), !built, "{entry}");
    }
}
