//! Arguments of the program, which is built beside this one, for the same sanitizer (`./test --fuzz`). One list in `RUN` runs to its end. The
//! others stop where the program would open an engine: all that looks at the arguments has looked at them by then.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::mutate::{self, Rng};
use crate::{Input, Outcome};

/// The program that `./test --fuzz` builds: one that forks, which no other build does.
pub fn built() -> Option<PathBuf> {
    std::env::var_os("CANTUS_PROGRAM").map(PathBuf::from)
}

fn value(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => rng.number().to_string(),
        1 => format!("-{}", rng.number()),
        2 => (*rng.pick(&[
            "1e308",
            "nan",
            "inf",
            "0",
            "",
            "1x",
            "64x64",
            "0x0",
            "99999999999999999999",
            "é",
            "a=b",
            "=",
            ",",
        ]))
        .to_owned(),
        3 => format!("{}x{}", rng.number(), rng.number() % 64),
        4 => (*rng.pick(&["love", "cpu", "f32", "png", "json", "text", "wgsl", "cuda", "never"])).to_owned(),
        _ => (rng.below(64)).to_string(),
    }
}

const COMMANDS: [&str; 14] = [
    "devices",
    "field",
    "pattern",
    "coherence",
    "animate",
    "run",
    "compile",
    "kernels",
    "config",
    "--version",
    "help",
    "job",
    "zk",
    "tune",
];

const OPTIONS: [&str; 36] = [
    "--backend",
    "--device",
    "--no-fallback",
    "--width",
    "--height",
    "--range",
    "--frequency",
    "--time",
    "--speed",
    "--seamless",
    "--output",
    "--in",
    "--out",
    "--set",
    "--workgroups",
    "--invocations",
    "--json",
    "--entry",
    "--timeout",
    "--memory-limit",
    "--frames",
    "--fps",
    "--colormap",
    "--verbose",
    "--help",
    "--target",
    "--arch",
    "--uniforms-by-value",
    "--compare",
    "--tolerance",
    "--check",
    "--stream",
    "--overlap",
    "--chunk-rows",
    "--checkpoint",
    "-o",
];

/// The program's inputs, by name: files that it reads, made before the first input.
struct Given {
    /// Kernels over elements of several types.
    kernels: Vec<String>,
    /// Files of each format that `run` reads, a job, and a request of `run --serve`.
    files: Vec<(&'static str, Vec<u8>)>,
    folder: PathBuf,
}

const FORMATS: [&str; 5] = ["npy", "csv", "png", "safetensors", "bin"];
const JOB: &str = r#"repeat = 2
[buffers]
x = "random:7[24]"
y = "zeros[@x]"
z = "in.csv"
[[step]]
kernel = "kernel.wgsl"
bind = { a = "x" }
invocations = [24]
set = { n = 4, "p.x" = 0.5 }
advance = { "p.x" = [0.0, 0.25] }
repeat = 2
swap = ["x", "y"]
[[output]]
buffer = "y"
file = "job.npy"
"#;

impl Given {
    fn new(folder: &Path, runs: &mut Runs) -> Self {
        let named = |name: &str| folder.join(name).display().to_string();
        let kernels = [("", "f32", "p.x + f32(n)"), ("-u32", "u32", "n + u32(p.x)"), ("-vec4", "vec4f", "vec4f(p.x)")];
        let kernels = kernels.map(|(name, element, value)| {
            let path = named(&format!("kernel{name}.wgsl"));
            let text = format!(
                "override n: u32 = 3; struct P {{ x: f32 }} @group(0) @binding(1) var<uniform> p: P;
                @group(0) @binding(0) var<storage, read_write> a: array<{element}>;
                @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ a[id.x] = {value}; }}"
            );
            std::fs::write(&path, text).unwrap();
            path
        });
        let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
        for format in FORMATS {
            let to = format!("a=sound.{format}");
            let list = ["run", &kernels[0], "--out", "a=f32[4,6]", "--set", "p.x=1", "--workgroups", "1", "-o", &to];
            runs.run(None, &list.map(str::to_owned), true);
            files.push((format, std::fs::read(folder.join("sound").with_extension(format)).expect("it is written")));
        }
        files.push(("toml", JOB.into()));
        let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>; override n: u32 = 1;
            @compute @workgroup_size(1) fn main() { a[0] += n; }";
        let text = text.replace('\n', " ");
        let request = format!(
            r#"{{"wgsl": "{text}", "entry": "main", "set": {{"n": 4}}, "workgroups": [1, 1], "bindings": [{{"group": 0, "binding": 0, "bytes": 8}}]}}"#
        );
        files.push(("request", format!("{request}\n01234567{request}\n01234567").into()));
        Self { kernels: kernels.into(), files, folder: folder.to_owned() }
    }

    /// The file of a format, every second time damaged.
    fn file(&self, rng: &mut Rng, format: &str) -> String {
        let name = format!("in.{format}");
        let mut bytes = self.files.iter().find(|(known, _)| *known == format).map(|(_, bytes)| bytes.clone()).unwrap();
        if rng.one_in(2) {
            mutate::bytes(rng, &mut bytes, b"0,1\n2,x\n\"a\": [1]", 3);
        }
        std::fs::write(self.folder.join(&name), bytes).unwrap();
        name
    }
}

/// A list of arguments that means something, and its standard input.
fn sound(rng: &mut Rng, given: &Given) -> (Vec<String>, Option<PathBuf>) {
    let size = format!("{}x{}", 1 + rng.below(40), 1 + rng.below(40));
    let number = rng.below(9).to_string();
    let kernel = rng.pick(&given.kernels).clone();
    let colors = *rng.pick(&["viridis", "magma", "inferno", "plasma", "cividis", "twilight", "turbo"]);
    let name = *rng.pick(&["field", "phi_pattern", "coherence_moments", "softmax", "nothing"]);
    let language = *rng.pick(&["cuda", "hip", "opencl", "c", "spirv", "glsl", "hlsl", "msl", "wgsl"]);
    let element = if kernel.ends_with("u32.wgsl") { "u32" } else { "f32" };
    let shape = match if kernel.ends_with("vec4.wgsl") { 1 } else { rng.below(4) } {
        0 => format!("a={element}[{},{}]", 1 + rng.below(12), 1 + rng.below(12)),
        1 => format!("a={element}[{},4]", 1 + rng.below(40)),
        _ => format!("a={element}[{}]", 1 + rng.below(200)),
    };
    let workgroups = format!("{},{},1", 1 + rng.below(4), 1 + rng.below(2));
    let format = *rng.pick(&FORMATS);
    let from = match rng.below(12) {
        0 => "a=iota".to_owned(),
        1 => format!("a=random:{number}[{}]", 1 + rng.below(99)),
        2 => format!("a=zeros[{},4]", 1 + rng.below(9)),
        3 => format!("a={}#a", given.file(rng, "safetensors")),
        4 => "a=-".to_owned(),
        _ => format!("a={}", given.file(rng, format)),
    };
    let to = format!("a=out.{}", rng.pick(&FORMATS));
    let to = if rng.one_in(8) { "a=-".to_owned() } else { to };
    let tolerance = *rng.pick(&["1e-6rel", "4ulp", "0.5", "0"]);
    let further = *rng.pick(&["--json", "--time", "--repeat=2", "--range=0,1", "--set=n=2"]);
    let mut input = None;
    let (overlap, of) = (
        *rng.pick(&["0,0", "1,1", "2,0", "0,9"]),
        *rng.pick(&["p.x=@rows", "p.x=@first", "p.x=@before", "n=@elements"]),
    );
    let words: Vec<&str> = match rng.below(23) {
        0..=1 => vec!["field", &size, "-o", "a.npy"],
        2 => vec!["field", &size, "--colormap", colors, "--time", &number, "--frequency", "love", "-o", "a.png"],
        3 => vec!["pattern", &size, "--range", "-1,1", "--json", "-o", "b.npy"],
        4 => vec!["coherence", "a.npy", "--json"],
        5 => vec!["animate", &size, "--frames", "3", "--fps", "20", "--speed", &number, "-o", "a.gif"],
        6..=8 => {
            vec!["run", &kernel, "--out", &shape, "--set", "p.x=2.5", "--workgroups", &workgroups, "-o", &to, further]
        }
        9..=12 => {
            input = from.ends_with('-').then(|| given.folder.join(given.file(rng, "npy")));
            vec!["run", &kernel, "--in", &from, "--set", "p.x=1", "--invocations", "64", "-o", &to, further]
        }
        13 => vec![
            "run",
            &kernel,
            "--in",
            &from,
            "--set",
            "n=7",
            "--set",
            "p.x=1",
            "--invocations",
            &number,
            "--compare",
            "cpu",
            "--tolerance",
            tolerance,
        ],
        14 => {
            input = Some(given.folder.join(given.file(rng, "request")));
            vec!["run", "--serve"]
        }
        15 => {
            given.file(rng, "csv");
            given.file(rng, "toml");
            vec!["job", "in.toml"]
        }
        16 => vec!["compile", &kernel, "--target", language, "--entry", "main"],
        17 => vec!["kernels", name],
        18..=20 => {
            given.file(rng, "npy");
            let stream = if rng.one_in(6) { "a,b" } else { "a" };
            let mut words =
                vec!["run", &kernel, "--stream", stream, "--in", "a=in.npy", "--set", "p.x=1", "-o", "a=out.npy"];
            match rng.below(4) {
                0 => words.extend(["--chunk-rows", &number]),
                1 => words.extend(["--chunk-rows", "1", "--overlap", overlap]),
                2 => words.extend(["--set", of, "--json"]),
                _ => words.extend(["--checkpoint", "done", "--checkpoint-every", &number]),
            }
            words
        }
        21 => vec!["kernels", if rng.one_in(2) { "--json" } else { "--verbose" }],
        _ => vec!["config", "show"],
    };
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if rng.one_in(3) {
        words.extend(["--backend".to_owned(), "cpu".to_owned()]);
    }
    (words, input)
}

/// Another word, one more, one less, or a word that is damaged.
fn change(rng: &mut Rng, arguments: &mut Vec<String>, given: &Given) {
    let place = rng.below(arguments.len());
    match rng.below(8) {
        0 => arguments[place] = value(rng),
        1 => arguments.insert(place, (*rng.pick(&OPTIONS)).to_owned()),
        2 => arguments.push(format!("{}={}", rng.pick(&OPTIONS), value(rng))),
        3 if arguments.len() > 1 => drop(arguments.remove(place)),
        4 => arguments[0] = (*rng.pick(&COMMANDS)).to_owned(),
        5 => arguments.push(rng.pick(&given.kernels).clone()),
        6 => {
            let mut bytes = arguments[place].clone().into_bytes();
            mutate::bytes(rng, &mut bytes, b"=,x:.-", 2);
            // The process takes no zero byte.
            bytes.retain(|byte| *byte != 0);
            arguments[place] = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => {
            arguments.push((*rng.pick(&OPTIONS)).to_owned());
            arguments.push(value(rng));
        }
    }
}

pub fn program() -> Input {
    let program = built().expect("cargo build --bin cantus, or CANTUS_PROGRAM, comes first");
    let folder = tempfile::tempdir().unwrap();
    let mut runs = Runs::new(&program, folder.path());
    let given = Given::new(folder.path(), &mut runs);
    Box::new(move |rng| {
        // What is given lies there as long as it is asked for.
        let _folder = &folder;
        let (mut arguments, input) = sound(rng, &given);
        // Half stay as they are.
        for _ in 0..*rng.pick(&[0, 0, 1, 2]) {
            change(rng, &mut arguments, &given);
        }
        match runs.run(input.as_deref(), &arguments, rng.one_in(RUN)) {
            End::Code(0) => Outcome::Ran,
            // Its own alarm, where sizes are large.
            End::Checked | End::Code(1) | End::Signal(ALARM) => Outcome::Passed,
            End::Code(PANIC) | End::Signal(_) => panic!("{arguments:?}"),
            End::Code(_) => Outcome::Refused,
        }
    })
}

/// One list in this number runs to its end, which takes ten times as long.
const RUN: usize = 8;
const ALARM: i32 = libc::SIGPROF;
const PANIC: i32 = 101;

/// The end of a list.
enum End {
    /// Reached the start of the work without an error.
    Checked,
    Code(i32),
    Signal(i32),
}

/// The program, ready to run with many lists of arguments (cli/src/forks.rs).
struct Runs {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Runs {
    fn new(program: &Path, folder: &Path) -> Self {
        let mut child = Command::new(program)
            .current_dir(folder)
            .env("CANTUS_FORKS", "1")
            .envs(["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, folder)))
            .env("CANTUS_BACKEND", "cpu")
            .env("CANTUS_MEMORY_LIMIT", "262144")
            .env("CANTUS_TIMEOUT_MS", "500")
            // Drivers take longer to look for than all the rest.
            .envs(
                ["VK_ICD_FILENAMES", "OCL_ICD_VENDORS", "__EGL_VENDOR_LIBRARY_DIRS", "CANTUS_HIP_LIBRARY"]
                    .map(|name| (name, "/nonexistent")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Runs a list to its end, or only checks it.
    fn run(&mut self, input: Option<&Path>, arguments: &[String], to_its_end: bool) -> End {
        let check = if to_its_end { "" } else { "\x1e" };
        let input = input.unwrap_or(Path::new("/dev/null")).display();
        let words = arguments.join("\x1f").replace(['\n', '\x1e', '\x1d'], " ");
        let line = format!("{check}{input}\x1d{words}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let line = self.lines.next().expect("the program is one that forks: built with --cfg sanitized").unwrap();
        match line.split_once(' ') {
            Some(("code", code)) => End::Code(code.parse().unwrap()),
            Some((_, signal)) => End::Signal(signal.parse().unwrap()),
            None => End::Checked,
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
