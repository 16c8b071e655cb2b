//! devices, coherence, kernels, config, bench, and help.

use crate::Place;

/// spec: the neighbour correlation, in float64.
fn coherence(values: &[f64], width: usize) -> f64 {
    const PHI: f64 = 1.618_033_988_749_895;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    if deviation == 0.0 {
        return 1.0;
    }
    let z: Vec<f64> = values.iter().map(|value| (value - mean) / deviation).collect();
    let mut sum = 0.0;
    for j in 1..values.len() / width {
        for i in 1..width {
            let at = j * width + i;
            sum += (PHI * z[at] * z[at - width] + PHI * z[at] * z[at - 1]).abs() / PHI;
        }
    }
    (sum / count).min(1.0)
}

/// Numbers without a pattern, the same each time.
fn noise(count: usize) -> Vec<f64> {
    let mut state = 1_u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 40) as u32) / f64::from(1 << 24) - 0.5
    })
    .take(count)
    .collect()
}

#[test]
fn coherence_of_noise_and_of_a_constant() {
    let place = Place::new();
    let noise = noise(60 * 41);
    let expected = coherence(&noise, 60);
    assert!((0.1..0.99).contains(&expected), "the test wants a value that is not at an end: {expected}");
    place.npy("f32.npy", &[41, 60], &noise.iter().map(|&value| value as f32).collect::<Vec<f32>>());
    place.npy("f64.npy", &[41, 60], &noise);
    for file in ["f32.npy", "f64.npy"] {
        let stdout = place.succeed(&format!("coherence {file}"));
        let found: f64 = stdout.trim().parse().unwrap();
        assert!((found - expected).abs() < 2e-5, "{found}, not {expected}");
    }
    let json = place.json("coherence f32.npy --json");
    assert!((json["coherence"].as_f64().unwrap() - expected).abs() < 2e-5);
    assert_eq!((&json["width"], &json["height"]), (&60.into(), &41.into()));
    place.npy("flat.npy", &[3, 3], &[0.25_f32; 9]);
    assert_eq!(place.succeed("coherence flat.npy"), "1\n");
}

#[test]
fn devices_as_text_and_json() {
    let place = Place::new();
    let text = place.succeed("devices");
    assert!(text.contains("* cpu 0") && text.contains("* chosen: cpu 0, "), "{text}");
    assert!(!text.contains("CPU only"), "{text}");
    assert!(place.succeed("devices -v").contains("workgroup memory"));
    let json = place.json("devices --json");
    let backends = json["backends"].as_array().unwrap();
    for backend in backends {
        for key in ["name", "priority", "available", "reason", "devices"] {
            assert!(backend.get(key).is_some(), "{key} in {backend}");
        }
        for device in backend["devices"].as_array().unwrap() {
            for key in ["index", "name", "kind", "driver", "memory_bytes", "experimental", "capabilities"] {
                assert!(device.get(key).is_some(), "{key} in {device}");
            }
        }
    }
    let cpu = backends.iter().find(|backend| backend["name"] == "cpu").unwrap();
    assert_eq!((&cpu["available"], &cpu["devices"][0]["capabilities"]["f16"]), (&true.into(), &true.into()));
    assert_eq!(cpu["devices"][0]["experimental"], false);
    assert_eq!((&json["selected"]["backend"], &json["selected"]["device"]), (&"cpu".into(), &0.into()));
    assert!(json["selected"]["why"].as_str().unwrap().contains("asked for"));
}

#[test]
fn devices_says_what_is_refused() {
    let place = Place::new();
    let done = place.run_plain("--backend hip devices");
    assert_eq!(done.code, Some(0));
    // Where there is such a card it is chosen.
    let refused = done.stdout.contains("None is chosen: ") && done.stdout.contains("hip");
    assert!(refused || done.stdout.contains("* chosen: hip"), "{}", done.stdout);
}

/// Mesa and its libraries write to stderr when a display is looked for. With `-vvv` they may.
#[test]
#[cfg(target_os = "linux")]
fn drivers_keep_quiet_below_three_v() {
    let place = Place::new();
    place.write(
        "double.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 2.0; }",
    );
    // As in a shell that no desktop has prepared.
    let typed = |arguments: &str| {
        let mut command = place.command();
        for name in ["XDG_RUNTIME_DIR", "EGL_LOG_LEVEL", "LIBGL_DEBUG", "MESA_DEBUG"] {
            command.env_remove(name);
        }
        let done = crate::run(command.args(crate::words(arguments)));
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        done.stderr
    };
    assert_eq!(typed("devices"), "");
    // The program's own lines, and no other.
    for (arguments, own) in [
        ("devices -vv", &["info: ", "debug: "][..]),
        ("run double.wgsl --in y=iota --invocations 64", &["main on ", "y f32[64]: "]),
        ("field 16x16 -o field.png", &["field 16 x 16 on "]),
        ("--backend wgpu bench --filter cumsum --size 16x16 --limit 100ms", &["1 case on ", "warning: "]),
        ("--backend wgpu verify phi_pattern", &["warning: "]),
    ] {
        for line in typed(arguments).lines() {
            assert!(own.iter().any(|own| line.starts_with(own)), "cantus {arguments}: {line}");
        }
    }
    if !typed("-vvv devices").contains("XDG_RUNTIME_DIR") {
        cantus_skips::not_run("drivers that write to stderr", "this machine has none");
    }
}

#[test]
fn kernels_are_listed_and_printed() {
    let place = Place::new();
    let list = place.succeed("kernels");
    let json = place.json("kernels --json");
    let kernels = json["kernels"].as_array().unwrap();
    assert!(kernels.len() >= 4, "{list}");
    for kernel in kernels {
        let name = kernel["name"].as_str().unwrap();
        assert!(list.contains(name), "{list}");
        let wgsl = place.succeed(&format!("kernels {name}"));
        // What is printed is WGSL, with the interface that was listed.
        let parsed = cantus::Kernel::from_wgsl(&wgsl).unwrap();
        let bindings: Vec<&str> = parsed.reflection().unwrap().bindings.iter().map(|b| b.name.as_str()).collect();
        let listed: Vec<&str> =
            kernel["bindings"].as_array().unwrap().iter().filter_map(|b| b["name"].as_str()).collect();
        assert_eq!(bindings, listed);
        assert!(place.json(&format!("kernels {name} --json"))["wgsl"].as_str().unwrap().contains("@compute"));
    }
}

#[test]
fn config_is_set_shown_and_taken_out() {
    let place = Place::new();
    let run = |arguments: &str| {
        let done = place.run_plain(arguments);
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        done.stdout
    };
    let path = run("config path");
    assert!(path.trim().ends_with("config.toml"), "{path}");
    let path = std::path::PathBuf::from(path.trim());
    assert!(!path.exists());
    run("config set memory_limit 8GiB");
    run("config set backend cpu");
    run("config set fallback never");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "memory_limit = 8589934592\nbackend = \"cpu\"\nfallback = \"never\"\n");
    std::fs::write(&path, format!("# mine\n{text}")).unwrap();
    run("config set backend wgpu");
    run("config set fallback ''");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "# mine\nmemory_limit = 8589934592\nbackend = \"wgpu\"\n");
    let shown = run("config show");
    assert!(shown.contains("backend = \"wgpu\"  # from "), "{shown}");
    let shown = run("--backend cpu config show");
    assert!(shown.contains("backend = \"cpu\"  # from flag"), "{shown}");
    // What nobody has set is the program's own.
    assert!(shown.contains("fallback = \"never\"  # from this program"), "{shown}");
    run("config set backend ''");
    let shown = run("config show");
    assert!(shown.contains("stall_ms = 10000  # from this program"), "{shown}");
    assert!(!shown.contains("# from flag") && shown.contains("# fallback is not set"), "{shown}");
    run("config set backend wgpu");
    let done = crate::run(place.command().env("CANTUS_BACKEND", "cpu").args(["config", "show", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["settings"]["backend"], serde_json::json!({ "value": "cpu", "from": "CANTUS_BACKEND" }));
    assert_eq!(json["settings"]["device"]["value"], serde_json::Value::Null);
}

#[test]
fn the_configuration_file_and_the_environment_choose_the_backend() {
    let place = Place::new();
    let path = place.run_plain("config path").stdout;
    let path = std::path::Path::new(path.trim());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "backend = \"nonsense\"\n").unwrap();
    place.run_plain("field 4x4 -o f.npy").refused("field", 2, &["nonsense"]);
    let done = crate::run(place.command().env("CANTUS_BACKEND", "cpu").args(["field", "4x4", "-o", "f.npy"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn bench_says_how_long_and_ends_early() {
    let place = Place::new();
    let done = place.run("bench --size 8x8 --limit 1ms");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("on 1 device, about 1 s (Ctrl-C ends early)"), "{}", done.stderr);
    assert!(done.stderr.contains("stopped after 1 of "), "{}", done.stderr);
    let rows: Vec<&str> = done.stdout.split("\n\n").collect();
    assert!(rows.len() == 2 && rows[0].lines().count() == 2 && rows[1].starts_with("cpu 0: "), "{}", done.stdout);
}

#[cfg(unix)]
#[test]
fn bench_keeps_its_rows_at_ctrl_c() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let place = Place::new();
    let command = place.command();
    let mut bench = std::process::Command::new(command.get_program());
    bench.current_dir(place.path("")).env("HOME", place.path("")).args([
        "--backend",
        "cpu",
        "bench",
        "--size",
        "512x512",
    ]);
    let mut bench = bench.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(bench.stderr.take().unwrap());
    let mut said = String::new();
    // From this line on the signal is expected.
    while !said.contains("Ctrl-C ends early") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(std::process::Command::new("kill").args(["-INT", &bench.id().to_string()]).status().unwrap().success());
    stderr.read_to_string(&mut said).unwrap();
    let mut table = String::new();
    bench.stdout.take().unwrap().read_to_string(&mut table).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("stopped after "), "{said}");
    assert!(table.lines().count() >= 2 && table.contains("field"), "{table}");
}

#[test]
fn bench_has_the_keys_that_its_readers_need() {
    let place = Place::new();
    let json = place.json("bench --size 32x16 --json");
    assert!(json["machine"]["threads"].as_u64().unwrap() > 0);
    let results = json["results"].as_array().unwrap();
    let ops: Vec<&str> = results.iter().filter_map(|row| row["op"].as_str()).collect();
    assert_eq!(ops[..3], ["field", "phi_pattern", "coherence"]);
    for op in ["add", "softmax", "reduce_rows", "cumsum", "matmul", "conv2d", "random"] {
        assert!(ops.contains(&op), "{op} is not among {ops:?}");
    }
    assert!(json["failures"].as_array().unwrap().is_empty(), "{}", json["failures"]);
    for row in results {
        assert_eq!(
            (&row["shape"], &row["dtype"], &row["backend"]),
            (&serde_json::json!([16, 32]), &"f32".into(), &"cpu".into())
        );
        let (median, least) = (row["median_ms"].as_f64().unwrap(), row["min_ms"].as_f64().unwrap());
        let quarters = ["min_ms", "low_ms", "median_ms", "high_ms", "max_ms"].map(|key| row[key].as_f64().unwrap());
        assert!(least > 0.0 && median >= least && quarters.is_sorted(), "{row}");
        let (gb_per_s, gflop_per_s) = (row["gb_per_s"].as_f64(), row["gflop_per_s"].as_f64());
        assert_eq!(
            gflop_per_s.is_some(),
            ["matmul", "bmm", "attention", "fft", "matvec", "conv2d"].contains(&row["op"].as_str().unwrap()),
            "{row}"
        );
        assert!(gb_per_s.is_none_or(|rate| rate > 0.0), "{row}");
    }
    let table = place.succeed("bench --size 32x16 --filter add --html bench.html --json bench.json");
    assert!(table.contains("add_row"), "{table}");
    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("bench.json")).unwrap()).unwrap();
    assert_eq!(written["results"][0]["op"], "add");
    let page = std::fs::read_to_string(place.path("bench.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("add_row") && page.trim_end().ends_with("</html>"));
    // Nothing is promised that was not measured.
    assert!(!page.contains("dashed"), "{page}");
    assert!(!page.contains("src=") && !page.contains("href="), "the page needs nothing else");
    let text = place.succeed("bench --size 32x16 --filter coherence");
    assert!(text.contains("coherence") && !text.contains("pattern"), "{text}");
    // A function of elements is timed where its name is given.
    assert!(!ops.contains(&"erf"), "{ops:?}");
    let text = place.succeed("bench --size 32x16 --filter erf");
    assert!(text.contains("erf"), "{text}");
}

#[test]
fn tune_measures_and_remembers() {
    let place = Place::new();
    let first = place.json("tune --seconds 1 --json");
    let rows = first.as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["ms"].as_f64().unwrap() <= row["shipped_ms"].as_f64().unwrap(), "{row}");
        assert!(row["variant"].as_str().is_some_and(|name| !name.is_empty()), "{row}");
    }
    // What was measured is not measured again.
    let measured = |rows: &[serde_json::Value]| -> Vec<String> {
        rows.iter().map(|row| row["operation"].as_str().unwrap().to_owned()).collect()
    };
    let second = place.json("tune --seconds 1 --json");
    let again = measured(second.as_array().unwrap());
    assert!(!measured(rows).iter().any(|operation| again.contains(operation)), "{again:?}");
    let text = place.succeed("tune --seconds 1 --again");
    assert!(text.contains("OPERATION") && text.contains(&measured(rows)[0]), "{text}");
}

#[test]
fn help_has_a_line_for_every_flag_and_examples() {
    let place = Place::new();
    for command in [
        "",
        "devices",
        "field",
        "pattern",
        "coherence",
        "animate",
        "run",
        "job",
        "new",
        "kernels",
        "config",
        "bench",
        "tune",
    ] {
        let help = place.succeed(&format!("{command} --help"));
        assert!(help.contains("Usage: cantus") && help.contains("Examples:\n"), "{command}\n{help}");
        let mut lines = help.split("Examples:").next().unwrap().lines().peekable();
        while let Some(line) = lines.next() {
            if line.trim_start().starts_with("--") || line.trim_start().starts_with('-') {
                let described =
                    line.trim_start().contains("  ") || lines.peek().is_some_and(|next| next.starts_with("          "));
                assert!(described, "{command}: {line}");
            }
        }
    }
    assert!(place.succeed("--version").starts_with("cantus "));
}

/// At 80 columns nothing runs over: help of every subcommand, the devices, the rows of the bench.
#[test]
fn everything_fits_a_terminal_of_80_columns() {
    let place = Place::new();
    let narrow = |arguments: &str| {
        let done = crate::run(place.command().env("COLUMNS", "80").args(crate::words(arguments)));
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        for line in done.stdout.lines() {
            assert!(line.chars().count() <= 80, "cantus {arguments}: {line}");
        }
        done.stdout
    };
    let help = narrow("--help");
    let commands = help.split("Commands:").nth(1).unwrap().lines().skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        commands.filter(|line| !line.starts_with("     ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 15, "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        let not_built = help.lines().any(|line| line.trim_start().starts_with(name) && line.contains("built without"));
        if !not_built {
            narrow(&format!("{name} --help"));
        }
    }
    for arguments in ["devices", "devices -v", "kernels", "--backend cpu bench --size 8x8 --filter add --limit 1ms"] {
        narrow(arguments);
    }
}

#[test]
fn backends_targets_and_choices_in_any_case() {
    let place = Place::new();
    place.write("k.wgsl", "@compute @workgroup_size(1) fn main() {}");
    let run = |arguments: &str| {
        let done = place.run_plain(arguments);
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        done
    };
    run("--backend CPU field 4x4 -o f.npy");
    run("run k.wgsl --workgroups 1 --backend Cpu --compare CPU");
    assert_eq!(run("compile k.wgsl --target CUDA").stdout, run("compile k.wgsl --target cuda").stdout);
    run("new coral --kind JOB");
    let done = crate::run(place.command().env("CANTUS_BACKEND", "CPU").args(["config", "show"]));
    assert!(done.stdout.contains("backend = \"cpu\"  # from CANTUS_BACKEND"), "{}", done.stdout);
}

/// White noise, alternating columns and a field from standard input: what the help says of coherence.
#[test]
fn coherence_is_what_its_help_says() {
    let place = Place::new();
    // A normal distribution by Box and Muller.
    let uniform = noise(2 * 512 * 512);
    let normal: Vec<f32> = uniform
        .chunks_exact(2)
        .map(|pair| ((-2.0 * (pair[0] + 0.5).max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * pair[1]).cos()) as f32)
        .collect();
    place.npy("noise.npy", &[512, 512], &normal);
    let of = |file: &str| place.succeed(&format!("coherence {file}")).trim().parse::<f64>().unwrap();
    assert!((of("noise.npy") - 0.9).abs() < 0.01, "{}", of("noise.npy"));
    let columns: Vec<f32> = (0..64 * 64).map(|at| if at % 2 == 0 { -1.0 } else { 1.0 }).collect();
    place.npy("columns.npy", &[64, 64], &columns);
    assert!(of("columns.npy").abs() < 1e-6);
    let bytes = std::fs::read(place.path("noise.npy")).unwrap();
    let (code, said, errors) = place.serve("--backend cpu coherence -", &bytes);
    assert_eq!((code, String::from_utf8(said).unwrap()), (Some(0), place.succeed("coherence noise.npy")), "{errors}");
    let (code, _, errors) = place.serve("--backend cpu coherence -", &bytes[..bytes.len() - 1]);
    assert!(code == Some(2) && errors.starts_with("error: standard input: it is truncated"), "{errors}");
}
