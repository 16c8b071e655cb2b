//! Products and convolutions of the sizes that networks have, on the CPU backend beside PyTorch (MKL, oneDNN), which writes into memory that it
//! already has where it can.
//!
//! Products: square ones, few rows, few columns, batches of small ones, transposed operands, a bias and a function behind. Convolutions: layers of
//! ResNet-50, ResNeXt and MobileNet, one image, forward. Sides take turns, medians count, and before that every result is compared with the
//! peer's.
//!
//! `cargo bench -p cantus-benches --bench products [-- FILTER[,FILTER…] [TURNS]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::Duration;

use cantus::ops::{Expr, Window};
use cantus::{Config, DType, Engine, Fallback, Tensor};
use peers::process::Peer;
use peers::turns::{self, figures};

/// The time for which a side repeats its operation in a turn.
const TURN: Duration = Duration::from_millis(100);

enum Case {
    /// Batches, m, k, n; whether the left and the right operand lie transposed; whether a bias and gelu follow.
    Matmul([usize; 4], [bool; 2], bool),
    /// A square product of f16 or bf16.
    Halves(usize, DType),
    /// A square product of signed bytes with sums of i32, and whether the right operand is transposed.
    Bytes(usize, bool),
    /// Channels, side, outputs, kernel, stride, padding, dilation, groups.
    Conv([usize; 8]),
}
use Case::{Bytes, Conv, Halves, Matmul};

const PLAIN: [bool; 2] = [false, false];

const CASES: [(&str, Case); 37] = [
    ("square 128", Matmul([1, 128, 128, 128], PLAIN, false)),
    ("square 256", Matmul([1, 256, 256, 256], PLAIN, false)),
    ("square 512", Matmul([1, 512, 512, 512], PLAIN, false)),
    ("square 1024", Matmul([1, 1024, 1024, 1024], PLAIN, false)),
    ("square 2048", Matmul([1, 2048, 2048, 2048], PLAIN, false)),
    ("square 4096", Matmul([1, 4096, 4096, 4096], PLAIN, false)),
    ("four rows", Matmul([1, 4, 4096, 4096], PLAIN, false)),
    ("sixteen rows", Matmul([1, 16, 1024, 4096], PLAIN, false)),
    ("sixteen rows, weights transposed", Matmul([1, 16, 1024, 4096], [false, true], false)),
    ("tall", Matmul([1, 8192, 64, 64], PLAIN, false)),
    ("tall, few columns", Matmul([1, 8192, 256, 8], PLAIN, false)),
    ("deep", Matmul([1, 64, 16384, 64], PLAIN, false)),
    ("batch of 16", Matmul([4096, 16, 16, 16], PLAIN, false)),
    ("batch of 32", Matmul([1024, 32, 32, 32], PLAIN, false)),
    ("batch of 64", Matmul([256, 64, 64, 64], PLAIN, false)),
    ("left transposed", Matmul([1, 512, 512, 512], [true, false], false)),
    ("right transposed", Matmul([1, 512, 512, 512], [false, true], false)),
    ("both transposed", Matmul([1, 512, 512, 512], [true, true], false)),
    ("linear 128", Matmul([1, 128, 768, 768], [false, true], true)),
    ("linear 512", Matmul([1, 512, 768, 3072], [false, true], true)),
    ("f16 512", Halves(512, DType::F16)),
    ("f16 1024", Halves(1024, DType::F16)),
    ("bf16 512", Halves(512, DType::BF16)),
    ("bf16 1024", Halves(1024, DType::BF16)),
    ("i8 512", Bytes(512, false)),
    ("i8 1024", Bytes(1024, false)),
    ("i8 1024, weights transposed", Bytes(1024, true)),
    // ResNet-50: the first layer, both kinds of a block, the way past a block, the last block.
    ("stem 7x7, stride 2", Conv([3, 224, 64, 7, 2, 3, 1, 1])),
    ("1x1 64 to 256", Conv([64, 56, 256, 1, 1, 0, 1, 1])),
    ("1x1 256 to 64", Conv([256, 56, 64, 1, 1, 0, 1, 1])),
    ("1x1 256 to 512, stride 2", Conv([256, 56, 512, 1, 2, 0, 1, 1])),
    ("3x3 64", Conv([64, 56, 64, 3, 1, 1, 1, 1])),
    ("3x3 128, stride 2", Conv([128, 56, 128, 3, 2, 1, 1, 1])),
    ("3x3 512 on 7x7", Conv([512, 7, 512, 3, 1, 1, 1, 1])),
    ("3x3 256, dilation 2", Conv([256, 28, 256, 3, 1, 2, 2, 1])),
    // ResNeXt, MobileNet.
    ("3x3 128 in 32 groups", Conv([128, 56, 128, 3, 1, 1, 1, 32])),
    ("depthwise 3x3 96, stride 2", Conv([96, 112, 96, 3, 2, 1, 1, 96])),
];

/// Numbers by a linear congruence, the same as the peer's.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

type Work = Box<dyn Fn() -> Tensor>;

impl Case {
    /// Returns the request for the peer.
    fn line(&self) -> String {
        let list = |numbers: &[usize]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match self {
            Matmul(size, [left, right], linear) => {
                format!("matmul:{},{},{},{} 0", list(size), u8::from(*left), u8::from(*right), u8::from(*linear))
            }
            Halves(side, dtype) => format!("half:{side},{} 0", u8::from(*dtype == DType::BF16)),
            Bytes(side, transposed) => format!("bytes:{side},{} 0", u8::from(*transposed)),
            Conv(shape) => format!("conv:{} 0", list(shape)),
        }
    }

    fn flops(&self) -> f64 {
        match *self {
            Matmul(size, ..) => size.iter().fold(2.0, |product, &side| product * side as f64),
            Halves(side, _) | Bytes(side, _) => 2.0 * (side as f64).powi(3),
            Conv([c, side, o, k, stride, padding, dilation, groups]) => {
                let out = (side + 2 * padding - dilation * (k - 1) - 1) / stride + 1;
                2.0 * (c / groups * o * k * k * out * out) as f64
            }
        }
    }

    fn prepare(&self, engine: &Engine) -> Work {
        let tensor = |shape: &[usize], seed: u32| {
            engine.tensor_from(&numbers(shape.iter().product(), seed), shape).expect("an input")
        };
        match *self {
            Matmul([batch, m, k, n], [left, right], linear) => {
                let a = tensor(&if left { [batch, k, m] } else { [batch, m, k] }, 1);
                let b = tensor(&if right { [batch, n, k] } else { [batch, k, n] }, 2);
                let bias = tensor(&[n], 3);
                let turned = |x: &Tensor, turn: bool| if turn { Expr::from(x).transpose() } else { Expr::from(x) };
                Box::new(move || {
                    let product = turned(&a, left).matmul(turned(&b, right));
                    let whole = if linear { (product + &bias).gelu() } else { product };
                    whole.eval().expect("the product")
                })
            }
            Halves(side, dtype) => {
                let half = |seed| tensor(&[side, side], seed).cast(dtype).eval().expect("an input");
                let (a, b) = (half(1), half(2));
                Box::new(move || a.matmul(&b).eval().expect("the product"))
            }
            Bytes(side, transposed) => {
                let bytes = |seed| {
                    let values: Vec<i8> =
                        numbers(side * side, seed).iter().map(|value| (value * 254.0) as i8).collect();
                    engine.tensor_from(&values, &[side, side]).expect("an input")
                };
                let (a, b) = (bytes(1), bytes(2));
                Box::new(move || {
                    let b = if transposed { Expr::from(&b).transpose() } else { Expr::from(&b) };
                    a.cast(DType::I32).matmul(b.cast(DType::I32)).eval().expect("the product")
                })
            }
            Conv([c, side, o, k, stride, padding, dilation, groups]) => {
                let (x, w) = (tensor(&[1, c, side, side], 1), tensor(&[o, c / groups, k, k], 2));
                let window = Window::new([stride; 2], [padding; 2], [dilation; 2]);
                Box::new(move || x.conv2d(&w, window, groups).eval().expect("the convolution"))
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let filters: Vec<&str> = arguments.first().map_or(Vec::new(), |text| text.split(',').collect());
    let rounds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the processor");
    let mut peer = Peer::python("products_torch.py", "cpu").expect("a peer: run benches/peers/setup.sh");
    println!("{}; {}; {}", engine.selected().device.name, cantus::spmd::instruction_set(), peer.version);
    for (name, case) in &CASES {
        if !filters.iter().all(|filter| filter.is_empty()) && !filters.iter().any(|filter| name.contains(filter)) {
            continue;
        }
        let work = case.prepare(&engine);
        let result = work().cast(DType::F32).eval().expect("the result").to_vec::<f32>().expect("the result");
        // The peer tells the sum of the squares, and some elements.
        let told = peer.ask(&format!("{} -1", case.line()));
        let (norm, few) = told.split_first().expect("the peer's result");
        let ours: f64 = result.iter().map(|&value| f64::from(value).powi(2)).sum();
        // Halves are rounded, bf16 to 2^-9 of an element.
        let [close, near] = if matches!(case, Halves(..)) { [1e-3, 1e-2] } else { [1e-5, 1e-3] };
        assert!((ours / norm - 1.0).abs() < close, "{name}: {ours}, the peer's {norm}");
        for (at, &theirs) in few.iter().enumerate() {
            let own = f64::from(result[at * (result.len() / few.len())]);
            assert!(
                (own - theirs).abs() < near * own.abs().max(1.0) * (norm / result.len() as f64).sqrt().max(1e-3),
                "{name}: {own}, {theirs}"
            );
        }
        let run = || {
            let _result = work();
            engine.finish().expect("the work ends");
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.extend(turns::timed(TURN, turns::PAUSE, run));
            std::thread::sleep(turns::PAUSE);
            theirs.extend(peer.ask(&format!("{} {}", case.line(), TURN.as_secs_f64())));
        }
        let [[ours, _], [theirs, _]] = [ours, theirs].map(figures);
        println!(
            "{name:34} {:9.1} us {:7.1} GFLOPS   {:9.1} us {:7.1} GFLOPS   ratio {:.2}",
            ours,
            case.flops() / ours / 1e3,
            theirs,
            case.flops() / theirs / 1e3,
            ours / theirs
        );
    }
}
