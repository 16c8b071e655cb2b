//! Twenty random chains of ten elementwise operations: recorded at run time, as an expression, beside the same chain compiled ahead. Both on the CPU backend,
//! in turn, the first into memory from the pool, the second always into the same; before that their results are compared.
//!
//! `kernels/chains.wgsl` has the compiled ones: `-- --write` writes it anew.
//!
//! `cargo bench -p cantus-benches --bench chains [-- [SIDE [TURNS]]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::Duration;

use cantus::ops::Expr;
use cantus::{Config, Engine, Fallback, Kernel};
use peers::turns::{self, figures};

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// The time for which a side repeats its chain in a turn.
const TURN: Duration = Duration::from_millis(50);
const CHAINS: u32 = 20;
const OPERATIONS: usize = 10;

/// An operation on what came before, `v`, and the second input, `y`: as an expression, and as WGSL.
type Step = (fn(Expr, &Expr) -> Expr, &'static str);

const STEPS: [Step; 13] = [
    (|v, y| v + y, "v + y"),
    (|v, y| v - y, "v - y"),
    (|v, y| v * y, "v * y"),
    (|v, y| v.maximum(y), "max(v, y)"),
    (|v, y| v.minimum(y), "min(v, y)"),
    (|v, _| v * 0.75_f32, "v * 0.75"),
    (|v, _| v + 0.5_f32, "v + 0.5"),
    (|v, _| v.maximum(-1.0_f32), "max(v, -1.0)"),
    (|v, _| -v, "-v"),
    (|v, _| v.abs(), "abs(v)"),
    (|v, _| &v * &v, "v * v"),
    (|v, _| v.minimum(4.0_f32).exp(), "exp(min(v, 4.0))"),
    (|v, _| v.abs().sqrt(), "sqrt(abs(v))"),
];

/// The steps of a chain, by a linear congruence. The last two count as two operations.
fn chain(number: u32) -> Vec<Step> {
    let mut state = number;
    let mut steps = Vec::new();
    let mut left = OPERATIONS;
    while left > 0 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let place = (state >> 16) as usize % STEPS.len();
        let operations = if place < STEPS.len() - 2 { 1 } else { 2 };
        if operations <= left {
            steps.push(STEPS[place]);
            left -= operations;
        }
    }
    steps
}

/// All chains as entry points of one file.
fn text() -> String {
    let mut text = "// Twenty chains of ten elementwise operations, written by `benches/chains.rs`.\n
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;\n"
        .to_owned();
    for number in 0..CHAINS {
        let steps: String = chain(number).iter().map(|(_, step)| format!("        v = {step};\n")).collect();
        text += &format!(
            "
@compute @workgroup_size(256)
fn chain{number}(@builtin(global_invocation_id) id: vec3u) {{
    if id.x < arrayLength(&z) {{
        let y = b[id.x];
        var v = a[id.x];
{steps}        z[id.x] = v;
    }}
}}
"
        );
    }
    text
}

macro_rules! compiled {
    ($($name:ident)*) => {
        [$(kernels::chains::$name::kernel as fn() -> cantus::Result<Kernel>),*]
    };
}

fn main() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/chains.wgsl");
    if std::env::args().any(|argument| argument == "--write") {
        std::fs::write(file, text()).expect("the file is written");
        return;
    }
    assert_eq!(include_str!("kernels/chains.wgsl"), text(), "run with --write, then again");
    let compiled = compiled!(chain0 chain1 chain2 chain3 chain4 chain5 chain6 chain7 chain8 chain9 chain10 chain11 chain12 chain13 chain14 chain15
        chain16 chain17 chain18 chain19);
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (side, rounds) = (arguments.first().copied().unwrap_or(1024), arguments.get(1).copied().unwrap_or(5));
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the processor");
    let values = |of: fn(f64) -> f64, step: f64| {
        let values: Vec<f32> = (0..side * side).map(|at| of(at as f64 * step) as f32).collect();
        engine.tensor(&values).expect("an input")
    };
    let (x, y) = (values(|at| at.sin() * 2.0, 0.37), values(f64::cos, 0.73));
    let z = engine.zeros::<f32>(&[side * side]).expect("memory");
    println!("{}; {side} x {side}, {rounds} turns; medians in microseconds", engine.selected().device.name);
    println!("| chain | recorded | compiled ahead | ratio |\n| --- | --- | --- | --- |");
    let mut logarithms = 0.0;
    for (number, kernel) in compiled.iter().enumerate() {
        let (steps, kernel) = (chain(number as u32), kernel().expect("a kernel"));
        assert!(kernel.compiled_ahead().is_some(), "chain {number} is not compiled ahead");
        let second = Expr::from(&y);
        let recorded = || {
            let result = steps.iter().fold(Expr::from(&x), |v, (step, _)| step(v, &second)).eval().expect("the chain");
            engine.finish().expect("the work ends");
            result
        };
        let ahead = || {
            let dispatch = engine.dispatch(&kernel).bind("a", &x).bind("b", &y).bind("z", &z);
            dispatch.invocations(side * side).run().expect("the kernel");
            engine.finish().expect("the work ends");
            z.clone()
        };
        let [one, other] = [recorded(), ahead()].map(|tensor| tensor.to_vec::<f32>().expect("the result"));
        for (at, (one, other)) in one.iter().zip(&other).enumerate() {
            let near = (one - other).abs() <= 1e-5 * one.abs().max(1.0) || one.to_bits() == other.to_bits();
            assert!(near || one.is_nan() && other.is_nan(), "chain {number}, {at}: {one}, {other}");
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.extend(turns::timed(TURN, turns::PAUSE, || drop(recorded())));
            theirs.extend(turns::timed(TURN, turns::PAUSE, || drop(ahead())));
        }
        let [[ours, _], [theirs, _]] = [ours, theirs].map(figures);
        println!("| {number} | {ours:.1} | {theirs:.1} | {:.2} |", ours / theirs);
        logarithms += (ours / theirs).ln();
    }
    println!("geometric mean {:.2}", (logarithms / f64::from(CHAINS)).exp());
}
