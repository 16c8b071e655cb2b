//! `cantus job`: several kernels over the same buffers.

use super::Place;

const LIFE: &str = include_str!("../../templates/job/life.wgsl");

/// A round of the Game of Life on a torus, written anew.
fn life(cells: &[u32], width: usize, height: usize) -> Vec<u32> {
    let at = |x: usize, y: usize| cells[(y % height) * width + x % width] & 1;
    let cell = |place: usize| {
        let (x, y) = (place % width + width, place / width + height);
        let around: u32 = [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2), (0, 0), (2, 2), (0, 2), (2, 0)]
            .iter()
            .skip(1)
            .map(|(dx, dy)| at(x + dx - 1, y + dy - 1))
            .sum();
        u32::from(around == 3 || (around == 2 && at(x, y) == 1))
    };
    (0..cells.len()).map(cell).collect()
}

#[test]
fn a_simulation_from_a_file() {
    let place = Place::new();
    place.write("life.wgsl", LIFE);
    let (width, height, rounds) = (37, 21, 9);
    place.write(
        "life.toml",
        format!(
            r#"
            repeat = {rounds}
            [buffers]
            now = "start.npy"
            next = "zeros[@now]"
            [[step]]
            kernel = "life.wgsl"
            bind = {{ cells = "now", after = "next" }}
            set = {{ WIDTH = {width}, HEIGHT = {height} }}
            invocations = [{width}, {height}]
            swap = ["now", "next"]
            [[output]]
            buffer = "now"
            file = "last.npy"
            [[output]]
            buffer = "now"
            file = "frame-{{}}.npy"
            every = 4
            [[output]]
            buffer = "now"
            file = "life.gif"
            every = 3
            fps = 10
            colormap = "gray"
            range = [0, 1]
            "#
        ),
    );
    // Numbers whose lowest bits are mixed.
    let start: Vec<u32> = (0..width * height).map(|place| (place as u32).wrapping_mul(2_654_435_761) >> 13).collect();
    place.npy("start.npy", &[height, width], &start);
    let said = place.json("job life.toml --json");
    assert_eq!(said["rounds"], rounds);
    assert_eq!(said["outputs"][2]["frames"], 3);
    let mut cells = start;
    let mut frames = Vec::new();
    for _ in 0..rounds {
        cells = life(&cells, width, height);
        frames.push(cells.clone());
    }
    let read = |name: &str| super::run::read::<u32>(&place, name);
    assert_eq!(read("last.npy"), (vec![height, width], cells));
    for (name, round) in [("frame-1.npy", 4), ("frame-2.npy", 8)] {
        assert_eq!(read(name).1, frames[round - 1], "{name}");
    }
    let file = std::io::BufReader::new(std::fs::File::open(place.path("life.gif")).unwrap());
    let film = image::AnimationDecoder::into_frames(image::codecs::gif::GifDecoder::new(file).unwrap());
    let film: Vec<image::Frame> = film.collect::<Result<_, _>>().unwrap();
    assert_eq!(film.len(), 3);
    for (frame, round) in film.iter().zip([3, 6, 9]) {
        assert_eq!(frame.delay().numer_denom_ms(), (100, 1));
        let alive: Vec<u32> = frame.buffer().pixels().map(|pixel| u32::from(pixel[0] > 127)).collect();
        assert_eq!(alive, frames[round - 1], "round {round}");
    }
}

/// `total` counts rounds in a first step and what `advance` gives in a second; a third runs once.
const COUNT: &str = "
struct Moment { time: f32, scale: f32 }
@group(0) @binding(0) var<storage, read_write> total: array<f32>;
@group(0) @binding(1) var<uniform> moment: Moment;
@compute @workgroup_size(4) fn add(@builtin(global_invocation_id) id: vec3u) { total[id.x] += moment.scale * moment.time; }
@compute @workgroup_size(4) fn shift(@builtin(global_invocation_id) id: vec3u) { total[id.x] += 100.0; }";

#[test]
fn steps_in_order_with_what_changes() {
    let place = Place::new();
    place.write("count.wgsl", COUNT);
    place.write(
        "count.toml",
        r#"
        repeat = 3
        buffers = { sum = "iota[4]" }
        [[step]]
        kernel = "count.wgsl"
        entry = "add"
        bind = { total = "sum" }
        set = { moment = { scale = 2 } }
        advance = { "moment.time" = [0.5, 0.25] }
        workgroups = 1
        repeat = 2
        [[step]]
        kernel = "count.wgsl"
        entry = "shift"
        once = true
        bind = { total = "sum" }
        workgroups = [1, 1]
        [[output]]
        buffer = "sum"
        file = "sum.npy"
        "#,
    );
    let said = place.json("job count.toml --json");
    assert_eq!((&said["rounds"], &said["steps"], &said["dispatches"]), (&3.into(), &2.into(), &7.into()));
    // Two times scale by 0.5, 0.75 and 1, and 100 once.
    let expected = |rounds: u32| -> Vec<f32> {
        let times: f32 = (0..rounds).map(|round| 2.0 * 2.0 * (0.5 + 0.25 * round as f32)).sum();
        (0..4).map(|start| start as f32 + 100.0 + times).collect()
    };
    assert_eq!(place.read_f32("sum.npy"), (vec![4], expected(3)));
    place.succeed("job count.toml --repeat 1");
    assert_eq!(place.read_f32("sum.npy").1, expected(1));
}

#[test]
fn what_new_makes_runs() {
    let place = Place::new();
    place.succeed("new coral --kind job");
    place.succeed("job coral/life.toml --repeat 4");
    place.succeed("job coral/reaction.toml --repeat 2");
    let picture = image::open(place.path("coral/reaction.png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (256, 256));
    assert!(place.path("coral/life.gif").exists());
}

#[test]
fn new_apps_name_the_sources() {
    let place = Place::new();
    place.succeed("new heat");
    let manifest = std::fs::read_to_string(place.path("heat/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"heat\"") && !manifest.contains("{{"), "{manifest}");
    let path = manifest.split("cantus = { path = \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(std::path::Path::new(path).join("src/lib.rs").is_file(), "{path}");
    // A page takes the package from there, which has to be built.
    let done = place.run("new waves --kind page");
    let built = std::path::Path::new(path).join("web/pkg/profile").is_file();
    assert_eq!(done.stderr.contains("web/build.sh"), !built, "{}", done.stderr);
    let package: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("waves/package.json")).unwrap()).unwrap();
    assert_eq!(package["name"], "waves");
    place.refuse("new heat", 1, &["heat", "already exists"]);
    place.refuse("new Heat", 2, &["lower-case"]);
    place.refuse("new 2d", 2, &["a letter first"]);
    place.refuse("new no/such/folder", 1, &["folder"]);
    place.refuse("new other --cantus nowhere", 2, &["nowhere", "--cantus"]);
    place.succeed("new sea --kind window");
    assert!(std::fs::read_to_string(place.path("sea/Cargo.toml")).unwrap().contains("eframe"));
    place.succeed("new rod --kind python");
    let needed = std::fs::read_to_string(place.path("rod/requirements.txt")).unwrap();
    let sources = needed.lines().last().unwrap();
    assert!(std::path::Path::new(sources).join("pyproject.toml").is_file(), "{needed}");
    place.npy("before.npy", &[5], &[0.0_f32, 0.0, 16.0, 0.0, 8.0]);
    place.succeed("run rod/step.wgsl --in before=before.npy --out after=f32[5] --set params.rate=0.25 --invocations 5 -o after=after.npy");
    assert_eq!(place.read_f32("after.npy").1, [0.0, 4.0, 8.0, 6.0, 6.0]);
    place.succeed("new my-sums --kind wgpu-test");
    let file = |file: &str| std::fs::read_to_string(place.path("my-sums").join(file)).unwrap();
    let manifest = file("Cargo.toml");
    let path = manifest.split("cantus-wgpu = { path = \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(std::path::Path::new(path).join("Cargo.toml").is_file(), "{path}");
    // Rust has no hyphens in names; the workflow's own braces stay.
    assert!(
        file("tests/sums.rs").contains("my_sums::Sums")
            && file(".github/workflows/test.yml").contains("${{ matrix.os }}")
    );
    place.npy("ones.npy", &[100], &[1_u32; 100]);
    place.succeed("run my-sums/src/sums.wgsl --in numbers=ones.npy --out sums=u32[2] --workgroups 2 -o sums=sums.npy");
    for (app, text) in [
        ("heat", "cargo run"),
        ("my-sums", "cargo test"),
        ("waves", "web/build.sh"),
        ("sea", "cargo run"),
        ("rod", "pip install"),
    ] {
        let readme = std::fs::read_to_string(place.path(app).join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {app}\n")) && readme.contains(text), "{readme}");
    }
    place.refuse("new other --kind game", 2, &["rust", "python", "window", "page", "job", "wgpu-test"]);
}

#[test]
fn what_does_not_fit_is_said() {
    let place = Place::new();
    place.write("life.wgsl", LIFE);
    let refuse = |text: &str, fragments: &[&str]| {
        place.write("job.toml", text);
        place.refuse("job job.toml", 2, fragments);
    };
    let step = "[[step]]\nkernel = \"life.wgsl\"\nbind = { cells = \"now\", after = \"next\" }\ninvocations = 256\n";
    let buffers = "[buffers]\nnow = \"zeros[8]\"\nnext = \"zeros[8]\"\n";
    place.refuse("job missing.toml", 2, &["missing.toml"]);
    refuse("repeat = ", &["job.toml", "line 1"]);
    refuse("repeats = 3", &["repeats", "line 1"]);
    refuse("", &["no [[step]]"]);
    refuse("[[step]]\n", &["step 1", "neither kernel nor swap"]);
    refuse(&format!("repeat = 0\n{buffers}{step}"), &["at least once"]);
    refuse(&format!("{buffers}{}", step.replace("life.wgsl", "death.wgsl")), &["step 1", "death.wgsl"]);
    refuse(&format!("{buffers}{}", step.replace("\"next\"", "\"nexd\"")), &["nexd", "did you mean \"next\""]);
    refuse(&format!("{buffers}{}", step.replace("after =", "aftr =")), &["step 1", "aftr", "did you mean \"after\""]);
    refuse(&format!("{buffers}{}", step.replace("invocations = 256", "")), &["workgroups or invocations"]);
    refuse(&format!("{buffers}{}", step.replace("256", "[0, 1]")), &["at least 1"]);
    refuse(&format!("{buffers}{step}set = {{ BREADTH = 3 }}"), &["step 1", "BREADTH"]);
    refuse(&format!("{buffers}{step}set = {{ WIDTH = \"three\" }}"), &["WIDTH", "a number"]);
    refuse(&format!("{buffers}third = \"zeros[8]\"\n{step}"), &["third", "no step uses it"]);
    refuse(&format!("{}{step}", buffers.replace("zeros[8]", "missing.npy")), &["missing.npy"]);
    let output = |rest: &str| format!("repeat = 9\n{buffers}{step}[[output]]\n{rest}");
    refuse(&output("buffer = \"later\"\nfile = \"x.npy\""), &["later"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.doc\""), &["x.doc", ".npy"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.npy\"\nevery = 2"), &["{}", ".gif"]);
    refuse(&output("buffer = \"now\"\nfile = \"x{}.npy\"\nevery = 10"), &["every"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.npy\"\nfps = 10"), &["fps"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.gif\"\nfps = 0"), &["fps"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.png\"\ncolormap = \"mud\""), &["mud", "viridis"]);
    refuse(&output("buffer = \"now\"\nfile = \"x.png\"\nrange = [1, 0]"), &["range"]);
    // One axis is no picture; found at the first frame, and no file stays.
    refuse(&output("buffer = \"now\"\nfile = \"x.gif\""), &["rows and columns"]);
}

/// Textures are read from pictures, made by their format, swapped, and written as pictures.
#[test]
fn textures_in_and_out() {
    let place = Place::new();
    let photo = image::RgbaImage::from_fn(14, 10, |x, y| image::Rgba([18 * x as u8, 25 * y as u8, (x * y) as u8, 255]));
    photo.save(place.path("photo.png")).unwrap();
    place.write(
        "half.wgsl",
        "@group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var half: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(4, 4) fn main(@builtin(global_invocation_id) id: vec3u) {
            let uv = (vec2f(id.xy) + 0.5) / vec2f(textureDimensions(half));
            if all(id.xy < textureDimensions(half)) { textureStore(half, id.xy, textureSampleLevel(image, smp, uv, 1.0)); }
        }",
    );
    place.write(
        "turn.wgsl",
        "@group(0) @binding(0) var before: texture_storage_2d<rgba8unorm, read>;
        @group(0) @binding(1) var after: texture_storage_2d<rgba8unorm, write>;
        @group(0) @binding(2) var<storage, read_write> red: array<f32>;
        @compute @workgroup_size(4, 4) fn main(@builtin(global_invocation_id) id: vec3u) {
            let size = textureDimensions(after);
            if all(id.xy < size) {
                let color = textureLoad(before, vec2u(size.x - 1 - id.x, id.y));
                textureStore(after, id.xy, color);
                red[id.y * size.x + id.x] += color.r;
            }
        }",
    );
    let job = |mips: bool, more: &str| {
        format!(
            r#"
            repeat = 3
            mips = {mips}
            [buffers]
            photo = "photo.png"
            now = "rgba8unorm[5,7]"
            next = "rgba8unorm[@now]"
            red = "zeros[@now]"
            [[step]]
            kernel = "half.wgsl"
            bind = {{ image = "photo", half = "now" }}
            invocations = "@now"
            once = true
            [[step]]
            kernel = "turn.wgsl"
            bind = {{ before = "now", after = "next" }}
            invocations = "@now"
            swap = ["now", "next"]
            [[output]]
            buffer = "now"
            file = "now.png"
            [[output]]
            buffer = "red"
            file = "red.npy"
            {more}
            "#
        )
    };
    place.write("turn.toml", job(true, ""));
    place.succeed("job turn.toml");
    let found = image::open(place.path("now.png")).unwrap().to_rgba8();
    assert_eq!(found.dimensions(), (7, 5));
    let (shape, red) = super::run::read::<f32>(&place, "red.npy");
    assert_eq!(shape, [5, 7]);
    let mean = |x: u32, y: u32, channel: usize| {
        let at = |dx: u32, dy: u32| f64::from(photo.get_pixel(2 * x + dx, 2 * y + dy).0[channel]);
        (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4.0
    };
    for (x, y, pixel) in found.enumerate_pixels() {
        // Three turns are one.
        for channel in 0..4 {
            let wanted = mean(6 - x, y, channel);
            assert!((f64::from(pixel.0[channel]) - wanted).abs() <= 0.51, "{x}, {y}: {pixel:?}, not {wanted}");
        }
        let sum = 2.0 * mean(6 - x, y, 0).round() + mean(x, y, 0).round();
        let found = f64::from(red[(y * 7 + x) as usize]) * 255.0;
        assert!((found - sum).abs() <= 3.01, "{x}, {y}: {found}, not {sum}");
    }
    let refuse = |text: String, fragments: &[&str]| {
        place.write("wrong.toml", text);
        place.refuse("job wrong.toml", 2, fragments);
    };
    refuse(job(false, "").replace("rgba8unorm[5,7]", "r32float[5,7]"), &["now", "the shader declares rgba8unorm"]);
    refuse(job(false, "").replace("rgba8unorm[5,7]", "zeros[5,7]"), &["now", "by its format"]);
    refuse(job(false, "").replace("rgba8unorm[5,7]", "rgba8unorm[@later]"), &["now", "[@later]"]);
    refuse(job(false, "").replace("zeros[@now]", "rgba8unorm[@now]"), &["red", "the kernel has a buffer there"]);
    refuse(job(false, "").replace("zeros[@now]", "zeros"), &["red", "it needs a shape"]);
    refuse(job(false, "").replace("invocations = \"@now\"", "invocations = \"@never\""), &["never"]);
    refuse(job(false, "").replace("invocations = \"@now\"", "invocations = \"now\""), &["@BUFFER"]);
    refuse(job(false, "[[output]]\nbuffer = \"now\"\nfile = \"now.gif\""), &["now.gif", "one value each"]);
}

#[test]
fn samplers_of_a_step_have_settings() {
    let place = Place::new();
    place.write(
        "shift.wgsl",
        "
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var<storage, read_write> found: array<f32>;
        @compute @workgroup_size(8) fn shift(@builtin(global_invocation_id) id: vec3u) {
            if id.x < 8u { found[id.x] = textureSampleLevel(image, smp, vec2f((f32(id.x) - 1.0) / 4.0, 0.5), 0.0).r; }
        }",
    );
    // Fractions of 255 that are no neighbours' means.
    let row = image::GrayImage::from_raw(4, 1, vec![0, 51, 102, 255]).unwrap();
    row.save(place.path("row.png")).unwrap();
    let job = |samplers: &str| {
        format!(
            "[buffers]\nimage = \"row.png\"\nfound = \"zeros[8]\"\n[[step]]\nkernel = \"shift.wgsl\"\ninvocations = 8\n{samplers}\n\
            [[output]]\nbuffer = \"found\"\nfile = \"found.npy\"\n"
        )
    };
    // Texels at -2 + i, half-way to the next; the nearest of two is the right one.
    let texel = |index: i32, repeats: bool| {
        let index = if repeats { index.rem_euclid(4) } else { index.clamp(0, 3) };
        [0.0, 0.2, 0.4, 1.0][index as usize]
    };
    let run = "run shift.wgsl --in image=row.png --out found=f32[8] --invocations 8 -o found=found.npy";
    for (samplers, flags, filter, repeats) in [
        ("", "", "linear", false),
        ("samplers = { smp = \"nearest\" }", "--sampler smp=nearest", "nearest", false),
        (
            "samplers = { smp = { filter = \"nearest\", address = \"repeat\" } }",
            "--sampler smp=nearest --sampler smp.address=repeat",
            "nearest",
            true,
        ),
        (
            "samplers.smp = { address = [\"repeat\", \"clamp-to-edge\", \"clamp-to-edge\"], lod = [0, 1.5] }",
            "--sampler smp.address=repeat,clamp-to-edge,clamp-to-edge --sampler smp.lod=0,1.5",
            "linear",
            true,
        ),
    ] {
        place.write("shift.toml", job(samplers));
        for command in ["job shift.toml", &format!("{run} {flags}")] {
            place.succeed(command);
            let (_, found) = super::run::read::<f32>(&place, "found.npy");
            for (i, found) in (0..8).zip(found) {
                let (left, right) = (texel(i - 2, repeats), texel(i - 1, repeats));
                let expected: f32 = if filter == "nearest" { right } else { (left + right) / 2.0 };
                assert!((found - expected).abs() < 1e-5, "{command} {samplers}: {i} is {found}, not {expected}");
            }
        }
    }
    for (flag, fragments) in [
        ("smq=nearest", &["sampler smq", "no such sampler", "\"smp\"?"][..]),
        ("smp=cubic", &["sampler smp", "\"cubic\"", "nearest, linear"]),
        ("smp.lod=2,1", &["lod = [2, 1]"]),
        ("smp.compare=less", &["without a comparison"]),
    ] {
        place.refuse(&format!("{run} --sampler {flag}"), 2, fragments);
    }
    for (samplers, fragments) in [
        ("samplers = { smq = \"nearest\" }", &["sampler smq", "no such sampler", "\"smp\"?"][..]),
        ("samplers = { smp = \"cubic\" }", &["sampler smp", "\"cubic\"", "nearest, linear"]),
        ("samplers = { smp = 3 }", &["sampler smp", "linear"]),
        ("samplers = { smp = { addresses = \"repeat\" } }", &["addresses", "\"address\"?"]),
        ("samplers = { smp = { address = [\"repeat\"] } }", &["three"]),
        ("samplers = { smp = { compare = \"less\" } }", &["without a comparison"]),
        ("samplers = { smp = { lod = [2, 1] } }", &["lod = [2, 1]"]),
    ] {
        place.write("wrong.toml", job(samplers));
        place.refuse("job wrong.toml", 2, fragments);
    }
}

#[test]
fn a_job_on_standard_input() {
    let place = Place::new();
    place.write("life.wgsl", LIFE);
    let text = "[buffers]\nnow = \"random:7:2[256,256]\"\nnext = \"zeros[@now]\"\n[[step]]\nkernel = \"life.wgsl\"\nbind = { cells = \"now\", after = \"next\" }\n\
                invocations = [256, 256]\n[[output]]\nbuffer = \"next\"\nfile = \"next.npy\"\n";
    let (code, _, said) = place.serve("--backend cpu job -", text.as_bytes());
    assert_eq!(code, Some(0), "{said}");
    let (shape, cells) = super::run::read::<u32>(&place, "next.npy");
    assert!(shape == [256, 256] && cells.iter().all(|&cell| cell < 2) && cells.contains(&1));
    let (code, _, said) = place.serve("--backend cpu job -", b"repeat = ");
    assert!(code == Some(2) && said.starts_with("error: standard input: "), "{said}");
}

/// The progress on a terminal counts rounds that were computed: recording them takes no time at all.
#[test]
#[cfg(target_os = "linux")]
fn progress_counts_what_was_computed() {
    let place = Place::new();
    place.write(
        "slow.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            var value = x[id.x];
            for (var i = 0u; i < 60000u; i++) { value = value * 1664525u + 1013904223u; }
            x[id.x] = value;
        }",
    );
    place.write(
        "slow.toml",
        "repeat = 40\n[buffers]\nx = \"iota[4096]\"\n[[step]]\nkernel = \"slow.wgsl\"\ninvocations = 4096\n",
    );
    let program = place.command().get_program().to_owned();
    let typed = format!("{} --backend cpu job slow.toml", program.to_str().unwrap());
    let mut command = assert_cmd::Command::new("script");
    command.args(["-qec", &typed, "/dev/null"]).current_dir(place.path("")).env("HOME", place.path(""));
    let Ok(output) = command.env("TERM", "xterm").output() else {
        return cantus_skips::not_run("progress on a terminal", "there is no script (util-linux), which gives one");
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let counts: Vec<u32> =
        shown.split(" of 40 rounds").filter_map(|before| before.rsplit(' ').next()?.parse().ok()).collect();
    assert!(counts.is_sorted() && counts.len() >= 3, "{shown}");
    assert!(counts.first().is_some_and(|&first| first <= 20), "{shown}");
    assert!(shown.contains("s left") && shown.contains("40 rounds on "), "{shown}");
}
