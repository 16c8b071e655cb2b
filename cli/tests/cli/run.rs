//! `cantus run` over real files.

use half::f16;

use crate::Place;

const SAXPY: &str = "
struct Params { a: f32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < params.n { y[id.x] += params.a * x[id.x]; }
}
";

const TWO_ENTRIES: &str = "
override SCALE: f32 = 2.0;
override FLIP: bool = false;
@group(0) @binding(0) var<storage> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
@group(0) @binding(2) var<uniform> offset: vec2i;
@compute @workgroup_size(8)
fn scale(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) {
        let scaled = i32(f32(x[id.x]) * SCALE);
        y[id.x] = select(scaled, -scaled, FLIP);
    }
}
@compute @workgroup_size(8, 2)
fn shift(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let at = id.x + id.y * groups.x * 8u;
    if at < arrayLength(&y) { y[at] = x[at] + offset.x * 100 + offset.y; }
}
";

pub fn read<T: ndarray_npy::ReadableElement>(place: &Place, name: &str) -> (Vec<usize>, Vec<T>) {
    let array: ndarray::ArrayD<T> = ndarray_npy::read_npy(place.path(name)).unwrap();
    (array.shape().to_vec(), array.into_iter().collect())
}

#[test]
fn saxpy_over_real_files() {
    let place = Place::new();
    place.write("saxpy.wgsl", SAXPY);
    let x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.5).collect();
    let y: Vec<f32> = (0..1000).map(|i| 1000.0 - i as f32).collect();
    place.npy("x.npy", &[10, 100], &x);
    place.npy("y.npy", &[10, 100], &y);
    let done = place.run(
        "run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=-3 --set params.n=999 --invocations 1000 -o y=out.npy",
    );
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("saxpy on cpu: ") && done.stderr.contains("-> out.npy"), "{}", done.stderr);
    let (shape, found) = read::<f32>(&place, "out.npy");
    assert_eq!(shape, [10, 100]);
    let expected: Vec<f32> = (0..1000).map(|i| if i < 999 { y[i] - 3.0 * x[i] } else { y[i] }).collect();
    assert_eq!(found, expected);
    assert_eq!(place.read_f32("y.npy").1, y, "the input file was changed");
}

#[test]
fn bytes_in_and_out() {
    let place = Place::new();
    place.write(
        "k.wgsl",
        "struct Particle { position: vec3f, charge: u32 }
        @group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
        @group(0) @binding(1) var<storage> halves: array<u32>;
        @compute @workgroup_size(1)
        fn charge(@builtin(global_invocation_id) id: vec3u) {
            particles[id.x].charge = arrayLength(&particles) * 100u + halves[id.x];
        }",
    );
    // Two particles and a half: what is left of the third is no element.
    let words: Vec<u8> = (0..10_u32).flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(place.path("particles.bin"), &words).unwrap();
    place.npy("halves.npy", &[2], &[7_u32, 8]);
    place.succeed("run k.wgsl --in particles=particles.bin --in halves=halves.npy --workgroups 2 -o particles=out.bin");
    let out = std::fs::read(place.path("out.bin")).unwrap();
    let out: Vec<u32> = out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(out, [0, 1, 2, 207, 4, 5, 6, 208, 8, 9]);
    // Numbers of one kind keep their dtype.
    std::fs::write(place.path("halves.bin"), 5_u32.to_le_bytes()).unwrap();
    for (arguments, reason) in [
        ("--in particles=short.bin --in halves=halves.bin", "takes at least 16"),
        ("--in particles=odd.bin --in halves=halves.bin", "no whole number of u32"),
        ("--in particles=missing.bin --in halves=halves.bin", "cannot read missing.bin"),
    ] {
        std::fs::write(place.path("short.bin"), [0; 12]).unwrap();
        std::fs::write(place.path("odd.bin"), [0; 18]).unwrap();
        let done = place.run(&format!("run k.wgsl {arguments} --workgroups 1"));
        assert!(done.code != Some(0) && done.stderr.contains(reason), "{}", done.stderr);
    }
}

#[test]
fn overrides_entries_and_zeros() {
    let place = Place::new();
    place.write("k.wgsl", TWO_ENTRIES);
    let x: Vec<i32> = (0..20).collect();
    place.npy("x.npy", &[4, 5], &x);
    let run = "run k.wgsl --in x=x.npy --out y=i32[@x] -o y=out.npy";
    place.succeed(&format!("{run} --entry scale --workgroups 3"));
    assert_eq!(read::<i32>(&place, "out.npy"), (vec![4, 5], x.iter().map(|x| 2 * x).collect()));
    place.succeed(&format!("{run} --entry scale --workgroups 3 --set SCALE=-1.5 --set FLIP=true"));
    let expected = x.iter().map(|&x| -((x as f32 * -1.5) as i32)).collect();
    assert_eq!(read::<i32>(&place, "out.npy"), (vec![4, 5], expected));
    place.succeed(&format!("{run} --entry shift --invocations 8,2 --set offset=-7,3"));
    let expected = x.iter().enumerate().map(|(at, x)| if at < 16 { x - 697 } else { 0 }).collect();
    assert_eq!(read::<i32>(&place, "out.npy"), (vec![4, 5], expected));
}

#[test]
fn f16_and_64_bit_files() {
    let place = Place::new();
    place.write(
        "half.wgsl",
        "enable f16;
        @group(0) @binding(0) var<storage, read_write> v: array<f16>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { v[id.x] = v[id.x] * 2.0h; }",
    );
    let values: Vec<f16> = [1.0, -0.5, 1024.0, 6.1e-5].map(f16::from_f32).to_vec();
    place.npy("v.npy", &[4], &values);
    place.succeed("run half.wgsl --in v=v.npy --workgroups 4 -o v=w.npy");
    let array = cantus::tensor::npy::read(place.path("w.npy")).unwrap();
    let doubled: Vec<f16> = values.iter().map(|value| f16::from_f32(value.to_f32() * 2.0)).collect();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f16>(&array.bytes), doubled);

    place.write(
        "wide.wgsl",
        "@group(0) @binding(0) var<storage> a: array<i64>;
        @group(0) @binding(1) var<storage, read_write> b: array<i64>;
        @group(0) @binding(2) var<uniform> add: i64;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { b[id.x] = a[id.x] + add; }",
    );
    place.npy("a.npy", &[2], &[1_i64 << 40, -5]);
    place.succeed("run wide.wgsl --in a=a.npy --out b=i64[2] --set add=9007199254740993 --workgroups 2 -o b=b.npy");
    assert_eq!(read::<i64>(&place, "b.npy").1, [(1 << 40) + 9_007_199_254_740_993, 9_007_199_254_740_988]);
}

#[test]
fn run_as_json() {
    let place = Place::new();
    place.write("k.wgsl", TWO_ENTRIES);
    place.npy("x.npy", &[3], &[1, 2, 3]);
    let json = place.json("run k.wgsl --entry scale --in x=x.npy --out y=i32[3] --workgroups 1 -o y=y.npy --json");
    assert_eq!((&json["entry"], &json["device"]["backend"]), (&"scale".into(), &"cpu".into()));
    assert_eq!(json["outputs"], serde_json::json!([{ "name": "y", "dtype": "i32", "shape": [3], "file": "y.npy" }]));
    assert!(json["ms"].as_f64().unwrap() > 0.0 && json["compare"].is_null());
}

#[test]
fn compare_with_itself_finds_nothing() {
    let place = Place::new();
    place.write("saxpy.wgsl", SAXPY);
    place.npy("x.npy", &[64], &[0.1_f32; 64]);
    place.npy("y.npy", &[64], &[0.2_f32; 64]);
    let run =
        "run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=3 --set params.n=64 --invocations 64 --compare cpu";
    let stdout = place.succeed(&format!("{run} --tolerance 0"));
    assert!(stdout.contains("against cpu 0: ") && stdout.contains("y f32[64]: equal"), "{stdout}");
    let json = place.json(&format!("{run}:0 --json"));
    let output = &json["compare"]["outputs"][0];
    assert_eq!(
        (&output["name"], &output["unequal"], &output["absolute"]["value"]),
        (&"y".into(), &0.into(), &0.0.into())
    );
    assert_eq!(json["compare"]["device"]["backend"], "cpu");
}

/// Needs two devices that differ; where there is but one, that is said on stderr past the test harness, which captures no direct writes.
#[test]
fn a_difference_beyond_the_tolerance_fails() {
    let place = Place::new();
    let devices: serde_json::Value = serde_json::from_str(&place.run_plain("devices --json").stdout).unwrap();
    let other = devices["backends"].as_array().unwrap().iter().find(|b| b["name"] != "cpu" && b["available"] == true);
    let Some(other) = other else {
        cantus_skips::not_run("cantus run --compare --tolerance", "there is no second device");
        return;
    };
    place.write(
        "sine.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn sine(@builtin(global_invocation_id) id: vec3u) { y[id.x] = exp(sin(f32(id.x) * 0.37)); }",
    );
    let other = other["name"].as_str().unwrap();
    let run = format!("run sine.wgsl --out y=f32[4096] --workgroups 64 --compare {other}");
    let stdout = place.succeed(&format!("{run} --tolerance 1e-2"));
    assert!(stdout.contains("absolute") && stdout.contains("relative") && stdout.contains("ULP"), "{stdout}");
    let done = place.run(&format!("{run} --tolerance 0"));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("error: y differs by"), "{}", done.stderr);
}

/// One process answers many requests: right ones, wrong ones, and the right one again; anything else ends it.
#[test]
fn requests_are_answered_until_they_end() {
    let place = Place::new();
    let kernel = "override BY: u32 = 2;
        @group(0) @binding(0) var<storage> x: array<u32>;
        @group(1) @binding(3) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn multiply(@builtin(global_invocation_id) id: vec3u) { y[id.x] += x[id.x] * BY; }
        @compute @workgroup_size(1) fn clear(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 0u; }";
    let request = |wgsl: &str, entry: &str| {
        let bindings = serde_json::json!([
            { "group": 0, "binding": 0, "bytes": 12 }, { "group": 1, "binding": 3, "bytes": 10 },
        ]);
        let head = serde_json::json!({ "wgsl": wgsl, "entry": entry, "set": { "BY": 5 }, "workgroups": [3], "bindings": bindings });
        let mut bytes = format!("{head}\n").into_bytes();
        for word in [1_u32, 2, 3, 10, 20] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([7, 0]);
        bytes
    };
    let mut input = request(kernel, "multiply");
    input.extend(request("fn (", "multiply"));
    input.extend(request(kernel, "nowhere"));
    let unset = format!("override C: u32; {}", kernel.replace("* BY", "* BY * C"));
    input.extend(request(&unset, "multiply"));
    input.extend(request(kernel, "clear"));
    let done = place.serve("--backend cpu run --serve", &input);
    assert_eq!(done.0, Some(0), "{}", done.2);
    let mut rest = &done.1[..];
    let mut answers = Vec::new();
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let head: serde_json::Value = serde_json::from_slice(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        let size: u64 = head["written"].as_array().into_iter().flatten().map(|w| w["bytes"].as_u64().unwrap()).sum();
        let (bytes, others) = rest.split_at(size as usize);
        answers.push((head, bytes.to_vec()));
        rest = others;
    }
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert_eq!(answers[0].0["written"], serde_json::json!([{ "group": 1, "binding": 3, "bytes": 10 }]));
    assert_eq!(answers[0].1, [15, 0, 0, 0, 30, 0, 0, 0, 22, 0]);
    assert!(answers[1].0["error"].as_str().unwrap().contains("expected"), "{answers:?}");
    assert!(answers[2].0["error"].as_str().unwrap().contains("clear"), "{answers:?}");
    let unset = answers[3].0["error"].as_str().unwrap();
    assert!(unset.ends_with("no value was set"), "in the program's words, not the library's: {unset}");
    assert_eq!(answers[4].1, [0; 10]);
    let cut = request(kernel, "multiply");
    for (fault, says) in
        [(&b"{}\n"[..], "workgroups"), (b"nothing\n", "expected"), (&cut[..cut.len() - 3], "ends within")]
    {
        let (code, output, error) = place.serve("--backend cpu run --serve", fault);
        assert_eq!((code, output.len()), (Some(2), 0), "{error}");
        assert!(error.contains(says), "{error}");
    }
    let both = place.run("run --serve kernel.wgsl");
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn requests_have_textures_and_samplers() {
    let place = Place::new();
    let kernel = "
        @group(0) @binding(0) var layers: texture_2d_array<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var made: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(2, 1) fn main(@builtin(global_invocation_id) id: vec3u) {
            let u = (f32(id.x) + 1.5) / 2.0;
            textureStore(made, id.xy, textureSampleLevel(layers, smp, vec2f(u, 0.5), 1, 0.0));
        }";
    let head = serde_json::json!({ "wgsl": kernel, "workgroups": [1], "bindings": [
        { "group": 0, "binding": 0, "bytes": 16,
          "texture": { "dimension": "2d", "format": "rgba8unorm", "size": [2, 1, 2], "levels": 1, "samples": 1 } },
        { "group": 0, "binding": 1, "bytes": 0,
          "sampler": { "address_mode": ["repeat", "clamp-to-edge", "clamp-to-edge"], "mag_filter": "nearest", "min_filter": "nearest",
                       "mipmap_filter": "nearest", "lod_min_clamp": 0, "lod_max_clamp": 32, "compare": null } },
        { "group": 0, "binding": 2, "bytes": 8,
          "texture": { "dimension": "2d", "format": "rgba8unorm", "size": [2, 1, 1], "levels": 1, "samples": 1 } },
    ]});
    let mut input = format!("{head}\n").into_bytes();
    input.extend(0..16_u8);
    input.extend([0; 8]);
    let (code, output, error) = place.serve("--backend cpu run --serve", &input);
    assert_eq!(code, Some(0), "{error}");
    let end = output.iter().position(|&byte| byte == b'\n').unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output[..end]).unwrap();
    assert_eq!(answer["written"], serde_json::json!([{ "group": 0, "binding": 2, "bytes": 8 }]));
    // The second layer, from its second texel on, which then repeats.
    assert_eq!(output[end + 1..], [12, 13, 14, 15, 8, 9, 10, 11]);
    let wrong = format!("{head}\n").replace("\"format\":\"rgba8unorm\"", "\"format\":\"rgba9\"");
    let (code, _, error) = place.serve("--backend cpu run --serve", wrong.as_bytes());
    assert!(code == Some(2) && error.contains("format"), "{error}");
}

/// Of all elements.
const PLAIN_SAXPY: &str = "
struct Params { a: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
}
";

fn names(place: &Place) -> Vec<String> {
    let name = |path: &String| std::path::Path::new(path).file_name().unwrap().to_string_lossy().into_owned();
    place.files().iter().map(name).collect()
}

/// Counts on the way, in a buffer that is there for all chunks, and rows that overlap.
const SMOOTH: &str = "
struct Chunk { first: u32, before: u32, elements: u32 }
@group(0) @binding(0) var<uniform> chunk: Chunk;
@group(0) @binding(1) var<storage> x: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;
@group(0) @binding(3) var<storage, read_write> odd: array<atomic<u32>>;
@compute @workgroup_size(64)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= chunk.elements { return; }
    let left = select(0, x[max(id.x, 1u) - 1u], id.x > 0u);
    let right = select(0, x[min(id.x + 1u, chunk.elements - 1u)], id.x + 1u < chunk.elements);
    y[id.x] = left + 2 * x[id.x] + right + i32(chunk.first) * 0;
    if id.x >= chunk.before && (x[id.x] & 1) == 1 { atomicAdd(&odd[0], 1u); }
}
";

#[test]
fn a_stream_is_the_whole_chunk_by_chunk() {
    let place = Place::new();
    place.write("blur.wgsl", SMOOTH);
    let x: Vec<i32> = (0..10_000).map(|i| i * 7919 % 1000 - 500).collect();
    place.npy("x.npy", &[10_000], &x);
    let sets = "--set chunk.first=@first --set chunk.before=@before --set chunk.elements=@elements";
    for rows in [1, 77, 9_999, 100_000] {
        let done = place.run(&format!(
            "run blur.wgsl --stream x --in x=x.npy --out y=i32[@x] --out odd=u32[1] {sets} --overlap 1,1 --chunk-rows {rows} -o y=y.npy -o odd=odd.npy"
        ));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(
            done.stderr.contains("10000 rows, 39.1 KiB") && done.stderr.contains("-> y.npy, odd.npy"),
            "{}",
            done.stderr
        );
        let (shape, y) = read::<i32>(&place, "y.npy");
        assert_eq!(shape, [10_000]);
        let at = |i: isize| usize::try_from(i).ok().and_then(|i| x.get(i)).copied().unwrap_or(0);
        let expected: Vec<i32> = (0..10_000).map(|i| at(i - 1) + 2 * at(i) + at(i + 1)).collect();
        assert_eq!(y, expected, "by {rows}");
    }
    assert_eq!(names(&place), ["blur.wgsl", "odd.npy", "x.npy", "y.npy"]);
}

#[test]
fn a_stream_that_is_killed_goes_on() {
    let place = Place::new();
    place.write("saxpy.wgsl", PLAIN_SAXPY);
    let x: Vec<f32> = (0..4_000_000).map(|i| (i % 1000) as f32).collect();
    place.npy("x.npy", &[2_000_000, 2], &x);
    place.npy("y.npy", &[2_000_000, 2], &x);
    let command = "--backend cpu run saxpy.wgsl --stream x,y --in x=x.npy --in y=y.npy --set params.a=2 --chunk-rows 10000 \
                   --checkpoint done --checkpoint-every 1ms -o y=out.npy";
    // What a run that was killed in the midst of a checkpoint leaves.
    place.write(".done.tmp", "cut off");
    let mut kills = 0;
    let done = loop {
        let mut program = std::process::Command::new(place.command().get_program());
        program.args(crate::words(command)).current_dir(place.path("")).env("HOME", place.path(""));
        let mut child = program.stderr(std::process::Stdio::null()).spawn().unwrap();
        let started = std::time::Instant::now();
        // Killed soon after each checkpoint, until it ends by itself.
        let seen = std::fs::metadata(place.path("done")).and_then(|file| file.modified()).ok();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let now = std::fs::metadata(place.path("done")).and_then(|file| file.modified()).ok();
            if kills < 2 && now.is_some() && now != seen {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            assert!(started.elapsed().as_secs() < 120, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        kills += 1;
        if let Some(status) = status {
            break status;
        }
    };
    assert!(done.success() && kills == 3, "it was killed {} times", kills - 1);
    let (shape, found) = read::<f32>(&place, "out.npy");
    assert_eq!(shape, [2_000_000, 2]);
    assert!(found.iter().zip(&x).all(|(found, x)| *found == 3.0 * x));
    assert_eq!(names(&place), ["out.npy", "saxpy.wgsl", "x.npy", "y.npy"]);
}

#[test]
fn what_cannot_be_streamed_says_so() {
    let place = Place::new();
    place.write("saxpy.wgsl", PLAIN_SAXPY);
    place.npy("x.npy", &[10], &[1.0_f32; 10]);
    place.npy("y.npy", &[11], &[1.0_f32; 11]);
    place.npy("integers.npy", &[10], &[1_i32; 10]);
    for (arguments, parts) in [
        ("--stream x --in y=y.npy", &["\"x\"", "--in x=FILE.npy is missing"][..]),
        ("--stream x --in x=zeros --in y=y.npy", &["--stream reads .npy files"]),
        ("--stream x,y --in x=x.npy --in y=y.npy", &["y.npy", "11 rows", "has 10"]),
        ("--stream x,y --in x=integers.npy --in y=y.npy", &["i32", "the shader has"]),
        ("--stream x --in x=x.npy --out y=f32[@x] -o y=y.csv", &["written to a .npy file"]),
        ("--stream x --in x=x.npy --out y=f32[@x] -o x=z.npy", &["only reads it"]),
        ("--stream x --in x=x.npy --out y=f32[@x] --set params.a=@row", &["@first"]),
        ("--stream x --in x=x.npy --out y=f32[10] --checkpoint c -o y=z.npy", &["--checkpoint", "y is on the device"]),
        ("--stream x --in x=x.npy --out y=f32[@x] --invocations 4", &["cannot be used with"]),
        ("--stream x --in x=x.npy --out y=f32[@x] --overlap 3", &["two numbers of rows"]),
        ("--invocations 4 --checkpoint c", &["--stream"]),
    ] {
        let done = place.run(&format!("run saxpy.wgsl {arguments}"));
        assert!(matches!(done.code, Some(1 | 2)), "{arguments}: {}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "{arguments}: {}\n  does not say: {part}", done.stderr);
        }
    }
    assert_eq!(names(&place), ["integers.npy", "saxpy.wgsl", "x.npy", "y.npy"]);
}

#[test]
fn results_that_no_file_keeps_are_shown() {
    let place = Place::new();
    place.write("saxpy.wgsl", PLAIN_SAXPY);
    let run = |count: &str| {
        let done =
            place.run(&format!("run saxpy.wgsl --in x=iota --in y=zeros --set params.a=2 --invocations {count}"));
        assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{}", done.stderr);
        done.stderr
    };
    assert!(run("3").contains("\ny f32[3]: 0, 2, 4 (-o y=FILE keeps it)\n"), "{}", run("3"));
    let long = run("1000");
    let shown = "\ny f32[1000]: 0, 2, 4, 6, 8, 10, 12, 14, …; 0 at least, 1998 at most (-o y=FILE keeps it)\n";
    assert!(long.contains(shown), "{long}");
    // What would take long to fetch is only named.
    assert!(run("5000000").contains("\ndropped: y (-o NAME=FILE keeps one)\n"));
}

#[test]
fn an_invocation_for_each_element() {
    let place = Place::new();
    place.write(
        "count.wgsl",
        "@group(0) @binding(0) var<storage> like: array<vec2f>;
        @group(0) @binding(1) var<storage, read_write> grid: array<atomic<u32>>;
        @compute @workgroup_size(1) fn line(@builtin(global_invocation_id) id: vec3u) { _ = like[0]; atomicAdd(&grid[id.x], 1 + 10 * id.y); }
        @compute @workgroup_size(1, 2) fn plane(@builtin(global_invocation_id) id: vec3u) { _ = like[0]; atomicAdd(&grid[id.x], 1 + 10 * id.y); }",
    );
    let count = |entry: &str, like: &str| {
        place.succeed(&format!(
            "run count.wgsl --entry {entry} --in like={like} --out grid=u32[32] --invocations @like -o grid=grid.npy"
        ));
        let grid = read::<u32>(&place, "grid.npy").1;
        (grid.iter().filter(|&&value| value > 0).count(), grid[0])
    };
    // The parts of a vector are one element.
    assert_eq!(count("line", "zeros[3,4,2]"), (12, 1));
    assert_eq!(count("plane", "zeros[3,4,2]"), (4, 4 + 10 * (1 + 2 + 3)), "rows round up to whole workgroups");
    assert_eq!(count("plane", "zeros[2,3,4,2]"), (4, 6 + 10 * 15));
    place.refuse(
        "run count.wgsl --entry line --in like=zeros --out grid=u32[8] --invocations @like",
        2,
        &["@like", "like=iota[480,640]"],
    );
    place.refuse(
        "run count.wgsl --entry line --in like=zeros[2] --out grid=u32[8] --invocations @likes",
        2,
        &["did you mean \"like\"?"],
    );
    place.refuse("run count.wgsl --entry line --out grid=u32[8] --invocations @like", 2, &["neither --in nor --out"]);
    place.refuse("run count.wgsl --entry line --in like=zeros[2,2] --out grid=u32[8] --invocations @", 2, &["@x"]);
}

/// Numbers below a bound: all of them, and no other.
#[test]
fn random_numbers_below_a_bound() {
    let place = Place::new();
    place.write(
        "copy.wgsl",
        "@group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] = x[id.x]; } }",
    );
    place.write("floats.wgsl", std::fs::read_to_string(place.path("copy.wgsl")).unwrap().replace("u32>;", "f32>;"));
    let numbers = |from: &str| {
        place.succeed(&format!("run copy.wgsl --in x={from} --out y=u32[@x] --invocations @x -o y=y.npy"));
        read::<u32>(&place, "y.npy").1
    };
    let faces = numbers("random:7:6[6000]");
    for face in 0..6 {
        let count = faces.iter().filter(|&&value| value == face).count();
        assert!((850..1150).contains(&count), "{face}: {count}");
    }
    assert!(faces.iter().all(|&face| face < 6));
    assert_ne!(faces, numbers("random:8:6[6000]"));
    assert_eq!(numbers("random:7:1[4]"), [0; 4]);
    place.succeed("run floats.wgsl --in x=random:7:10[1000] --out y=f32[@x] --invocations @x -o y=y.npy");
    let floats = place.read_f32("y.npy").1;
    assert!(floats.iter().all(|value| (0.0..10.0).contains(value)) && floats.iter().any(|&value| value > 9.0));
    for (from, says) in [
        ("random:7:0[4]", "at least 1"),
        ("random:7:x[4]", "at least 1"),
        ("random:7:4294967297[4]", "holds no number that large"),
    ] {
        place.refuse(&format!("run copy.wgsl --in x={from} --out y=u32[4] --workgroups 1"), 2, &[says]);
    }
}

#[test]
fn a_binding_that_is_declared_and_not_used() {
    let place = Place::new();
    place.write(
        "k.wgsl",
        "@group(0) @binding(0) var<storage> unused: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn main() { y[0] = 1.0; }",
    );
    place.refuse("run k.wgsl --in unused=zeros --in y=zeros --invocations 1", 2, &["declares it and does not use it"]);
    place.refuse("run k.wgsl --in none=zeros --in y=zeros --invocations 1", 2, &["unknown binding"]);
}

/// Editors put a new file in the old one's place, and for a moment the name has no file.
#[test]
fn a_watch_outlives_the_file() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let arguments = "--backend cpu run k.wgsl --in y=zeros[1] --invocations 1 --watch";
    place.refuse(
        "run k.wgsl --in y=zeros[1] --invocations 1 --watch",
        2,
        &["cannot read k.wgsl: there is no such file"],
    );
    let kernel = |value: u32| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>; @compute @workgroup_size(1) fn main() {{ y[0] = {value}u; }}"
        )
    };
    place.write("k.wgsl", kernel(11));
    let mut watch = std::process::Command::new(place.command().get_program());
    watch.args(crate::words(arguments)).current_dir(place.path("")).env("HOME", place.path(""));
    let mut watch = watch.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut until = |wanted: &str| assert!(said.any(|line| line.contains(wanted)), "{wanted}");
    until("y u32[1]: 11");
    until("waiting for a change");
    std::fs::remove_file(place.path("k.wgsl")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    place.write("k.wgsl", kernel(22));
    until("y u32[1]: 22");
    until("waiting for a change");
    place.write("k.wgsl", "nonsense");
    until("error: ");
    until("waiting for a change");
    place.write("other", kernel(33));
    std::fs::rename(place.path("other"), place.path("k.wgsl")).unwrap();
    until("y u32[1]: 33");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// Whoever names a backend gets what it computes, or an error; with leave, what another one does.
#[test]
fn a_backend_that_is_named_computes_or_fails() {
    let place = Place::new();
    // Nobody but the processor has these.
    place.write(
        "wide.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<u64>;
        @compute @workgroup_size(1) fn main() { y[0] = 7lu; }",
    );
    let json = place.json("devices --json");
    let unable = json["backends"].as_array().unwrap().iter().find(|backend| {
        backend["name"] != "cpu"
            && backend["devices"]
                .as_array()
                .is_some_and(|devices| devices.first().is_some_and(|device| device["capabilities"]["int64"] == false))
    });
    let Some(unable) = unable.and_then(|backend| backend["name"].as_str()) else {
        return cantus_skips::not_run("a device without 64-bit integers", "every device of this machine has them");
    };
    let run = |backend: Option<&str>, variables: &[(&str, &str)]| {
        let mut command = place.command();
        command.envs(variables.iter().copied()).args(backend.map(|name| format!("--backend={name}")));
        crate::run(command.args(crate::words("run wide.wgsl --in y=zeros --invocations 1 -o y=y.npy")))
    };
    for done in [run(Some(unable), &[]), run(None, &[("CANTUS_BACKEND", unable)])] {
        done.refused(unable, 1, &["cannot run on", "CANTUS_FALLBACK=always"]);
        assert!(!place.path("y.npy").exists());
    }
    let done = run(Some(unable), &[("CANTUS_FALLBACK", "always")]);
    assert!(done.code == Some(0) && done.stderr.contains("warning: "), "{}", done.stderr);
    assert_eq!(read::<u64>(&place, "y.npy").1, [7]);
}

/// A `vec3` in an array takes the room of four numbers: rows of three would be misread.
#[test]
fn rows_of_three_are_refused_for_vec3() {
    let place = Place::new();
    let text = |ty: &str, value: &str| {
        format!(
            "@group(0) @binding(0) var<storage> points: array<{ty}>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
             @compute @workgroup_size(4) fn go(@builtin(global_invocation_id) id: vec3u) {{\n\
             y[id.x] = points[id.x]{value} + 100.0 * f32(arrayLength(&points)); }}"
        )
    };
    place.write("points.wgsl", text("vec3f", ".x"));
    place.write("turns.wgsl", text("mat3x3f", "[1].x"));
    let numbers: Vec<f32> = (0..48).map(|k| k as f32).collect();
    place.npy("three.npy", &[4, 3], &numbers[..12]);
    place.npy("four.npy", &[4, 4], &numbers[..16]);
    place.npy("turns.npy", &[4, 3, 4], &numbers);
    for (kernel, points) in
        [("points", "three.npy"), ("points", "iota[4,3]"), ("turns", "iota[4,3,3]"), ("turns", "iota[4,9]")]
    {
        let command = format!("run {kernel}.wgsl --in points={points} --out y=f32[4] --invocations 4");
        place.refuse(&command, 2, &["binding \"points\"", "with padding behind each row of 3"]);
    }
    place.write("out.wgsl", "@group(0) @binding(0) var<storage, read_write> y: array<vec3f>;\n@compute @workgroup_size(4) fn go(@builtin(global_invocation_id) id: vec3u) { y[id.x] = vec3f(1.0); }");
    place.refuse("run out.wgsl --out y=f32[4,3] --invocations 4", 2, &["binding \"y\"", "give 4"]);
    for (kernel, points, step) in [("points", "four.npy", 4.0), ("points", "iota", 4.0), ("turns", "turns.npy", 12.0)] {
        let command = format!("run {kernel}.wgsl --in points={points} --out y=f32[4] --invocations 4 -o y=y.npy");
        let done = place.run(&command);
        assert_eq!(done.code, Some(0), "{command}: {}", done.stderr);
        let first = if kernel == "turns" { 4.0 } else { 0.0 };
        let expected: Vec<f32> = (0..4).map(|k| 400.0 + first + step * k as f32).collect();
        assert_eq!(read::<f32>(&place, "y.npy").1, expected, "{command}");
    }
}

/// Textures of every dimension, by the shape of an array.
#[test]
fn rows_volumes_layers_and_cubes() {
    let place = Place::new();
    let numbers: Vec<f32> = (0..96).map(|k| k as f32).collect();
    for (dimension, shape, load, out, at, groups) in [
        ("1d", &[5][..], "textureLoad(t, id.x, 0)", "1d", "id.x", "5"),
        ("3d", &[2, 3, 4], "textureLoad(t, id, 0)", "3d", "id", "4,3,2"),
        ("2d_array", &[2, 3, 4], "textureLoad(t, id.xy, id.z, 0)", "2d_array", "id.xy, id.z", "4,3,2"),
        (
            "cube",
            &[6, 4, 4],
            "textureSampleLevel(t, s, select(vec3f(-1.0, 0.0, 0.0), vec3f(1.0, 0.0, 0.0), id.z == 0u), 0.0)",
            "2d_array",
            "id.xy, id.z",
            "4,4,6",
        ),
    ] {
        let sampler = if dimension == "cube" { "@group(0) @binding(2) var s: sampler;" } else { "" };
        let text = format!(
            "@group(0) @binding(0) var t: texture_{dimension}<f32>;\n\
             @group(0) @binding(1) var made: texture_storage_{out}<r32float, write>;\n{sampler}\n\
             @compute @workgroup_size(1) fn go(@builtin(global_invocation_id) id: vec3u) {{\n\
             textureStore(made, {at}, {load} + 1.0); }}"
        );
        place.write("go.wgsl", &text);
        let count = shape.iter().product();
        place.npy("t.npy", shape, &numbers[..count]);
        let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let command = format!(
            "run go.wgsl --in t=t.npy --out made=r32float[{}] --invocations {groups} -o made=made.npy",
            sides.join(",")
        );
        let done = place.run(&command);
        assert_eq!(done.code, Some(0), "{dimension}: {}", done.stderr);
        let found = read::<f32>(&place, "made.npy").1;
        let expected: Vec<f32> = match dimension {
            // The middle of the faces +x and -x, between four texels.
            "cube" => (0..count).map(|k| if k < 16 { 8.5 } else { 24.5 }).collect(),
            _ => numbers[..count].iter().map(|number| number + 1.0).collect(),
        };
        assert_eq!(found, expected, "{dimension}");
        let wrong = command.replace(&format!("r32float[{}]", sides.join(",")), "r32float[2,2,2,2]");
        place.refuse(&wrong, 2, &["is no texture_", "give "]);
    }
}
