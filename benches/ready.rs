//! From a kernel's text to ready: `Kernel::from_wgsl`, its reflection and its bytecode, which is what the processor runs. Ten texts, from a dozen lines to
//! a `switch` of 20,000 cases. Some are made ready in another form: overrides are set, an entry point is chosen, textures become buffers.
//!
//! A figure is the least time of the rounds, the texts in turn. There is no peer: compare two builds.
//!
//! `cargo bench -p cantus-benches --bench ready [-- ROUNDS [NAME]]`

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use cantus::{Kernel, Result};

struct Case {
    name: &'static str,
    text: String,
    /// Sets what the text leaves open, or asks for a form.
    chosen: fn(Kernel) -> Result<Kernel>,
}

/// Each element of a number's width, and sums over a subgroup: three capabilities.
const WIDE: &str = "
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read_write> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<u64>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(subgroup_size) size: u32) {
    let place = min(id.x, arrayLength(&x) - 1u);
    let sum = subgroupAdd(f32(x[place]));
    if id.x >= arrayLength(&x) { return; }
    x[place] = f16(sum / f32(size));
    y[place] += u64(place) * 6364136223846793005lu;
}";

/// Overrides that size the workgroup and an array, and one that others are made of.
const OVERRIDES: &str = "
override SIDE: u32 = 8u;
override TILE: u32 = SIDE * SIDE;
override SCALE: f32;
override IS_SIGNED: bool = false;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, TILE>;
@compute @workgroup_size(SIDE, SIDE) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) at: u32) {
    tile[at] = x[min(id.x + id.y * SIDE, arrayLength(&x) - 1u)];
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < TILE; i++) { sum += tile[i]; }
    if id.x < arrayLength(&y) { y[id.x] = SCALE * select(abs(sum), sum, IS_SIGNED); }
}";

const TEXTURES: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(2) var smp: sampler;
@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(result);
    if any(id.xy >= size) { return; }
    textureStore(result, id.xy, textureSampleLevel(image, smp, (vec2f(id.xy) + 0.5) / vec2f(size), 0.0));
}";

/// About 1 MB: a state machine that a program wrote.
fn switch(cases: u32) -> String {
    let mut text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
fn next(state: u32) -> u32 {
    switch state {
"
    .to_owned();
    for case in 0..cases {
        let (key, to) = (case.wrapping_mul(2_654_435_761), case.wrapping_mul(40_503) % cases);
        let _ = writeln!(text, "        case {case}u: {{ return {to}u ^ {key}u; }}");
    }
    text + "        default: { return 0u; }
    }
}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) { x[id.x] = next(x[id.x]); }
}"
}

fn cases() -> Vec<Case> {
    let case = |name, text: &str, chosen| Case { name, text: text.to_owned(), chosen };
    vec![
        case("saxpy", include_str!("kernels/saxpy.wgsl"), Ok),
        case("nbody", include_str!("kernels/nbody.wgsl"), Ok),
        case("sha256", include_str!("kernels/sha256.wgsl"), Ok),
        case("reproducible", include_str!("kernels/nbody.wgsl"), |kernel| kernel.reproducible()),
        case("textures", TEXTURES, |kernel| kernel.without_textures()),
        case("chains", include_str!("kernels/chains.wgsl"), |kernel| kernel.with_entry_point("chain7")),
        case("rms_norm", include_str!("kernels/rms_norm.wgsl"), |kernel| kernel.with_override("EPSILON", 1e-6)),
        case("overrides", OVERRIDES, |kernel| kernel.with_override("SIDE", 16)?.with_override("SCALE", 0.5)),
        case("wide", WIDE, Ok),
        case("switch", &switch(20_000), Ok),
    ]
}

/// Makes a kernel ready, and returns the time.
fn ready(case: &Case) -> Result<Duration> {
    let from = Instant::now();
    let kernel = (case.chosen)(Kernel::from_wgsl(&case.text)?)?;
    kernel.reflection()?;
    kernel.program()?;
    Ok(from.elapsed())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let rounds: usize = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(15);
    let wanted = arguments.next();
    let mut cases = cases();
    cases.retain(|case| wanted.as_deref().is_none_or(|name| name == case.name));
    let mut least = vec![Duration::MAX; cases.len()];
    for _ in 0..rounds {
        for (case, least) in cases.iter().zip(&mut least) {
            *least = (*least).min(ready(case)?);
        }
    }
    println!("| text | bytes | ms |\n| --- | ---: | ---: |");
    for (case, least) in cases.iter().zip(&least) {
        println!("| {} | {} | {:.3} |", case.name, case.text.len(), least.as_secs_f64() * 1e3);
    }
    Ok(())
}
