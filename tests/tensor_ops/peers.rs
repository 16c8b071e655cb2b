//! Operations against NumPy, SciPy and PyTorch, in a process, over random inputs: where those have the definition, theirs rules. `CANTUS_NUMPY`
//! names a Python that has NumPy and SciPy (`./test` makes one), `CANTUS_TORCH` one that has PyTorch (`./test --all`).

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cantus::ops::{Attention, Expr, Interpolation, Overlap, Padding, Window};
use cantus::{Engine, Tensor};

use crate::values::{doubles, sampled};
use crate::{Numbers, engines, name};

/// The inputs of cases, by name; the oracle finds the same as float64, and indices as int64.
struct Inputs(Vec<(&'static str, Tensor)>);

impl Inputs {
    fn new(engine: &Engine, folder: &Path, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let mut all = Vec::new();
        let mut floats = |name: &'static str, shape: &[usize], low: f32, high: f32| {
            let count = shape.iter().product();
            let mut values: Vec<f32> = (0..count).map(|_| low + (numbers.float() + 4.0) / 8.0 * (high - low)).collect();
            if name == "a" {
                // So that its systems have solutions that rounding does not change much.
                (0..count).filter(|place| place % 49 % 8 == 0).for_each(|place| values[place] += 3.0);
            }
            all.push((name, engine.tensor_from(&values, shape).unwrap()));
        };
        floats("x", &[6, 37], -3.0, 3.0);
        floats("y", &[6, 37], -3.0, 3.0);
        floats("positive", &[5, 23], 0.01, 9.0);
        floats("unit", &[4, 19], 0.02, 0.98);
        floats("a", &[3, 7, 7], -1.0, 1.0);
        floats("b", &[3, 7, 4], -1.0, 1.0);
        floats("tall", &[2, 11, 6], -1.0, 1.0);
        floats("large", &[45, 45], -1.0, 1.0);
        floats("signal", &[3, 60], -1.0, 1.0);
        floats("filter", &[3, 9], -1.0, 1.0);
        floats("line", &[2, 4, 21], -1.0, 1.0);
        floats("image", &[2, 4, 11, 9], -1.0, 1.0);
        floats("volume", &[1, 2, 5, 6, 7], -1.0, 1.0);
        floats("w1", &[6, 2, 3], -1.0, 1.0);
        floats("w2", &[6, 2, 3, 2], -1.0, 1.0);
        floats("w3", &[4, 2, 2, 3, 3], -1.0, 1.0);
        floats("t1", &[4, 3, 3], -1.0, 1.0);
        floats("t2", &[4, 3, 3, 2], -1.0, 1.0);
        floats("t3", &[2, 3, 2, 3, 2], -1.0, 1.0);
        floats("gain", &[4], 0.5, 1.5);
        floats("bias", &[4], -1.0, 1.0);
        floats("of_rows", &[37], 0.5, 1.5);
        floats("mean", &[4], -0.5, 0.5);
        floats("grid", &[2, 5, 6, 2], -1.2, 1.2);
        floats("q", &[2, 6, 13, 8], -1.0, 1.0);
        floats("k", &[2, 3, 17, 8], -1.0, 1.0);
        floats("v", &[2, 3, 17, 5], -1.0, 1.0);
        floats("sorted", &[19], -3.0, 3.0);
        let sorted = all.last_mut().map(|(_, tensor)| tensor.sort(0, false).eval().unwrap());
        all.extend(sorted.map(|tensor| ("ordered", tensor)));
        let mut words = |name: &'static str, shape: &[usize], below: usize| {
            let count = shape.iter().product();
            let values: Vec<u32> = (0..count).map(|_| numbers.below(below) as u32).collect();
            all.push((name, engine.tensor_from(&values, shape).unwrap()));
        };
        words("classes", &[6], 37);
        words("places", &[6, 5], 37);
        words("tokens", &[3, 4], 6);
        words("counted", &[50], 9);
        words("mask", &[6, 37], 2);
        for (name, tensor) in &all {
            tensor.to_npy(folder.join(format!("{name}.npy"))).unwrap();
        }
        Self(all)
    }

    fn get(&self, name: &str) -> Expr {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, tensor)| tensor.expr()).unwrap()
    }
}

/// The largest difference of the results, relative to the greater of 1 and another magnitude.
#[derive(Clone, Copy)]
enum Beside {
    /// The element's own.
    Each(f64),
    /// The magnitude of the greatest element, if each is a sum over many.
    Greatest(f64),
}

/// An operation, what the oracle calls it, and how near it must come.
type Case = (&'static str, fn(&Inputs) -> Expr, &'static str, Beside);

macro_rules! cases {
    ($($beside:ident($tolerance:literal) { $($name:literal: |$x:ident| $ours:expr => $theirs:literal;)* })*) => {
        &[$($(($name, |$x| $ours, $theirs, Beside::$beside($tolerance)),)*)*]
    };
}

const NUMPY: &[Case] = cases! {
    Each(2e-6) {
        "asin": |of| of.get("unit").asin() => "np.arcsin(unit)";
        "acos": |of| of.get("unit").acos() => "np.arccos(unit)";
        "atan": |of| of.get("x").atan() => "np.arctan(x)";
        "atan2": |of| of.get("x").atan2(of.get("y")) => "np.arctan2(x, y)";
        "atanh": |of| of.get("unit").atanh() => "np.arctanh(unit)";
        "cbrt": |of| of.get("x").cbrt() => "np.cbrt(x)";
        "hypot": |of| of.get("x").hypot(of.get("y")) => "np.hypot(x, y)";
        "logaddexp": |of| of.get("x").log_add_exp(of.get("y")) => "np.logaddexp(x, y)";
        "erf": |of| of.get("x").erf() => "special.erf(x)";
        "erfc": |of| of.get("x").erfc() => "special.erfc(x)";
        "digamma": |of| of.get("positive").digamma() => "special.psi(positive)";
        "softmax": |of| of.get("x").softmax(1) => "special.softmax(x, 1)";
        "log_softmax": |of| of.get("x").log_softmax(0) => "special.log_softmax(x, 0)";
        "logsumexp": |of| of.get("x").logsumexp(&[1], true) => "special.logsumexp(x, 1, keepdims=True)";
        "prod": |of| of.get("unit").prod(&[0], false) => "np.prod(unit, 0)";
        "variance": |of| of.get("x").variance(&[0], 1.0, false) => "np.var(x, 0, ddof=1)";
        "std": |of| of.get("x").std(&[], 0.0, false) => "np.std(x)";
        "norm of the rows": |of| of.get("x").norm(3.0, &[1], false) => "np.linalg.norm(x, 3, 1)";
        "greatest of magnitudes": |of| of.get("x").norm(f64::INFINITY, &[1], false) => "np.linalg.norm(x, np.inf, 1)";
        "median": |of| of.get("x").median(Some(1), false) => "np.median(x, 1)";
        "quantile": |of| of.get("x").quantile(0.37, Some(0), true) => "np.quantile(x, 0.37, 0, keepdims=True)";
        "cumsum": |of| of.get("x").cumsum(1) => "np.cumsum(x, 1)";
        "cumprod": |of| of.get("unit").cumprod(0) => "np.cumprod(unit, 0)";
        "cummax": |of| of.get("x").cummax(1) => "np.maximum.accumulate(x, 1)";
        "cummin": |of| of.get("x").cummin(0) => "np.minimum.accumulate(x, 0)";
        "logcumsumexp": |of| of.get("x").logcumsumexp(1) => "np.logaddexp.accumulate(x, 1)";
        "diff": |of| of.get("x").diff(2, 1) => "np.diff(x, 2, 1)";
        "sort": |of| of.get("x").sort(1, true) => "-np.sort(-x, 1)";
        "argsort": |of| of.get("x").argsort(0, false) => "np.argsort(x, 0, kind='stable')";
        "searchsorted": |of| of.get("ordered").searchsorted(of.get("x"), true) => "np.searchsorted(ordered, x, 'right')";
        "histogram": |of| of.get("x").histogram(7, -2.0, 2.5) => "np.histogram(x, 7, (-2.0, 2.5))[0]";
        "bincount": |of| of.get("counted").bincount(9) => "np.bincount(counted, minlength=9)";
        "count_nonzero": |of| of.get("mask").count_nonzero(&[1], false) => "np.count_nonzero(mask, 1)";
        "pad by reflection": |of| of.get("x").pad(&[(2, 1), (3, 5)], Padding::Reflect) => "np.pad(x, ((2, 1), (3, 5)), 'reflect')";
        "pad by edges": |of| of.get("x").pad(&[(2, 1), (3, 5)], Padding::Edge) => "np.pad(x, ((2, 1), (3, 5)), 'edge')";
        "pad around": |of| of.get("x").pad(&[(2, 1), (3, 5)], Padding::Wrap) => "np.pad(x, ((2, 1), (3, 5)), 'wrap')";
        "roll": |of| of.get("x").roll(&[2, -5], &[0, 1]) => "np.roll(x, (2, -5), (0, 1))";
        "flip": |of| of.get("x").flip(&[1]) => "np.flip(x, 1)";
        "tile": |of| of.get("x").tile(&[2, 3]) => "np.tile(x, (2, 3))";
        "repeat": |of| of.get("x").repeat(3, 0) => "np.repeat(x, 3, 0)";
        "tril": |of| of.get("large").tril(-2) => "np.tril(large, -2)";
        "triu": |of| of.get("large").triu(3) => "np.triu(large, 3)";
        "diagonal": |of| of.get("large").diagonal(4) => "np.diagonal(large, 4)";
        "gather": |of| of.get("x").gather(of.get("places"), 1) => "np.take_along_axis(x, places, 1)";
        "take": |of| of.get("x").take(of.get("classes"), 1) => "np.take(x, classes, 1)";
        "where": |of| of.get("x").r#where(of.get("mask"), of.get("y")) => "np.where(mask, x, y)";
        "trace": |of| of.get("large").trace() => "np.trace(large)";
        "outer": |of| of.get("gain").outer(of.get("bias")) => "np.outer(gain, bias)";
        "kron": |of| of.get("unit").kron(of.get("gain").expand(0)) => "np.kron(unit, gain[None])";
    }
    Each(5e-6) {
        "tan": |of| of.get("unit").tan() => "np.tan(unit)";
        "hyperbolic functions": |of| of.get("x").sinh() * of.get("x").cosh() + of.get("x").tanh() => "np.sinh(x) * np.cosh(x) + np.tanh(x)";
        "their inverses": |of| of.get("x").asinh() + (of.get("positive").slice(&[0..1, 0..1]) + 1.0).acosh() => "np.arcsinh(x) + np.arccosh(positive[:1, :1] + 1)";
        "logarithms": |of| of.get("positive").log1p() + of.get("positive").log2() + of.get("positive").log10() => "np.log1p(positive) + np.log2(positive) + np.log10(positive)";
        "exponentials": |of| of.get("x").exp2() + of.get("x").expm1() => "np.exp2(x) + np.expm1(x)";
        "lgamma": |of| of.get("positive").lgamma() => "special.gammaln(positive)";
    }
    Greatest(5e-6) {
        "matmul": |of| of.get("a").matmul(of.get("b")) => "a @ b";
        "einsum": |of| of.get("a").einsum("bij,bjk,bik->b", &[of.get("b"), of.get("b")]) => "np.einsum('bij,bjk,bik->b', a, b, b)";
        "tensordot": |of| of.get("a").tensordot(of.get("b"), &[(0, 0), (2, 1)]) => "np.tensordot(a, b, ((0, 2), (0, 1)))";
        "matrix_power": |of| (of.get("large") * 0.2).matrix_power(5) => "np.linalg.matrix_power(large * np.float64(np.float32(0.2)), 5)";
        "det": |of| of.get("a").det() => "np.linalg.det(a)";
        "logarithms of determinants": |of| of.get("a").slogdet().1 => "np.linalg.slogdet(a)[1]";
        "cholesky": |of| (of.get("a").matmul(of.get("a").transpose()) + cantus::ops::eye(&of.0[0].1.engine(), 7, 7, 0, cantus::DType::F32)).cholesky()
            => "np.linalg.cholesky(a @ a.transpose(0, 2, 1) + np.eye(7))";
        "eigenvalues": |of| (of.get("large") + of.get("large").transpose()).eigh().0 => "np.linalg.eigvalsh(large + large.T)";
        "singular values": |of| of.get("tall").svd().1 => "np.linalg.svd(tall, compute_uv=False)";
        "magnitudes of R": |of| of.get("tall").qr().1.abs() => "np.abs(np.linalg.qr(tall)[1])";
        "expm": |of| of.get("a").expm() => "linalg.expm(a)";
    }
    Greatest(2e-6) {
        "convolve": |of| of.get("signal").convolve(of.get("filter"), Overlap::Full) => "signal_.fftconvolve(signal, filter, axes=1)";
        "the part inside": |of| of.get("signal").convolve(of.get("filter"), Overlap::Valid) => "signal_.fftconvolve(signal, filter, 'valid', axes=1)";
        "rfft": |of| of.get("signal").rfft(1) => "parts(np.fft.rfft(signal))";
        "irfft": |of| of.get("signal").rfft(1).irfft(60, 1) => "signal";
        "fft of a rough length": |of| of.get("x").stack(&[of.get("y")], -1).fft(1) => "parts(np.fft.fft(x + 1j * y))";
        "ifft": |of| of.get("x").stack(&[of.get("y")], -1).ifft(0) => "parts(np.fft.ifft(x + 1j * y, axis=0))";
        "fftn": |of| of.get("x").stack(&[of.get("y")], -1).fftn(&[]) => "parts(np.fft.fftn(x + 1j * y))";
    }
    Greatest(2e-4) {
        "solve": |of| of.get("a").solve(of.get("b")) => "np.linalg.solve(a, b)";
        "inverse": |of| of.get("a").inverse() => "np.linalg.inv(a)";
    }
};

const TORCH: &[Case] = cases! {
    Greatest(5e-6) {
        "conv1d": |of| of.get("line").conv1d(of.get("w1"), 2, 1, 2, 2) => "F.conv1d(line, w1, stride=2, padding=1, dilation=2, groups=2)";
        "conv2d": |of| of.get("image").conv2d(of.get("w2"), Window::new([2, 1], [1, 2], [1, 2]), 2) => "F.conv2d(image, w2, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)";
        "conv3d": |of| of.get("volume").conv3d(of.get("w3"), [1, 2, 1], [1, 0, 1], [1, 1, 2], 1) => "F.conv3d(volume, w3, stride=(1, 2, 1), padding=(1, 0, 1), dilation=(1, 1, 2))";
        "conv_transpose1d": |of| of.get("line").conv_transpose1d(of.get("t1"), 2, 1, 1, 1, 2) => "F.conv_transpose1d(line, t1, stride=2, padding=1, output_padding=1, groups=2)";
        "conv_transpose2d": |of| of.get("image").conv_transpose2d(of.get("t2"), Window::new([2, 3], [1, 0], [1, 2]), [1, 0], 2) => "F.conv_transpose2d(image, t2, stride=(2, 3), padding=(1, 0), dilation=(1, 2), output_padding=(1, 0), groups=2)";
        "conv_transpose3d": |of| of.get("volume").conv_transpose3d(of.get("t3"), [2, 1, 2], [0, 1, 0], [1, 1, 1], [1, 0, 0], 1) => "F.conv_transpose3d(volume, t3, stride=(2, 1, 2), padding=(0, 1, 0), output_padding=(1, 0, 0))";
        "max_pool2d": |of| of.get("image").max_pool2d([3, 2], Window::new([2, 2], [1, 1], [2, 1])) => "F.max_pool2d(image, (3, 2), (2, 2), (1, 1), (2, 1))";
        "avg_pool2d": |of| of.get("image").avg_pool2d([3, 2], Window::new([1, 2], [1, 1], [1, 1]), false) => "F.avg_pool2d(image, (3, 2), (1, 2), (1, 1), count_include_pad=False)";
        "adaptive_avg_pool2d": |of| of.get("image").adaptive_avg_pool2d([4, 5]) => "F.adaptive_avg_pool2d(image, (4, 5))";
        "adaptive_max_pool2d": |of| of.get("image").adaptive_max_pool2d([3, 7]) => "F.adaptive_max_pool2d(image, (3, 7))";
        "batch_norm": |of| of.get("image").batch_norm(of.get("mean"), of.get("gain"), of.get("gain"), of.get("bias"), 1e-5) => "F.batch_norm(image, mean, gain, gain, bias, eps=1e-5)";
        "group_norm": |of| of.get("image").group_norm(2, of.get("gain"), of.get("bias"), 1e-5) => "F.group_norm(image, 2, gain, bias, 1e-5)";
        "instance_norm": |of| of.get("image").instance_norm(of.get("gain"), of.get("bias"), 1e-5) => "F.instance_norm(image, weight=gain, bias=bias, eps=1e-5)";
        "layer_norm": |of| of.get("x").layer_norm(of.get("of_rows"), of.get("of_rows"), 1e-5) => "F.layer_norm(x, (37,), of_rows, of_rows, 1e-5)";
        "rms_norm": |of| of.get("x").rms_norm(of.get("of_rows"), 1e-6) => "F.rms_norm(x, (37,), of_rows, 1e-6)";
        "embedding": |of| of.get("tokens").embedding(of.get("x")) => "F.embedding(tokens, x)";
        "nearest": |of| of.get("image").interpolate([7, 20], Interpolation::Nearest) => "F.interpolate(image, (7, 20), mode='nearest')";
        "bilinear": |of| of.get("image").interpolate([7, 20], Interpolation::Bilinear) => "F.interpolate(image, (7, 20), mode='bilinear')";
        "bicubic": |of| of.get("image").interpolate([7, 20], Interpolation::Bicubic) => "F.interpolate(image, (7, 20), mode='bicubic')";
        "bilinear, antialiased": |of| of.get("image").interpolate([5, 4], Interpolation::BilinearAntialiased) => "F.interpolate(image, (5, 4), mode='bilinear', antialias=True)";
        "bicubic, antialiased": |of| of.get("image").interpolate([5, 4], Interpolation::BicubicAntialiased) => "F.interpolate(image, (5, 4), mode='bicubic', antialias=True)";
        "attention": |of| of.get("q").reshape(&[2, 3, 26, 8]).scaled_dot_product_attention(of.get("k"), of.get("v"), &Attention::new()) => "F.scaled_dot_product_attention(q.reshape(2, 3, 26, 8), k, v)";
        "causal attention": |of| of.get("k").scaled_dot_product_attention(of.get("k"), of.get("v"), &Attention::new().causal()) => "F.scaled_dot_product_attention(k, k, v, is_causal=True)";
        "attention of grouped heads": |of| of.get("q").scaled_dot_product_attention(of.get("k"), of.get("v"), &Attention::new().scaled(0.3)) => "F.scaled_dot_product_attention(q, k, v, scale=0.3, enable_gqa=True)";
        "cross_entropy": |of| of.get("x").cross_entropy(of.get("classes")).mean(&[], false) => "F.cross_entropy(x, classes)";
        "huber_loss": |of| of.get("x").huber_loss(of.get("y"), 0.7).mean(&[], false) => "F.huber_loss(x, y, delta=0.7)";
        "binary_cross_entropy": |of| of.get("x").binary_cross_entropy_with_logits(of.get("mask").cast(cantus::DType::F32)).mean(&[], false) => "F.binary_cross_entropy_with_logits(x, mask.to(x.dtype))";
        "columns of windows": |of| of.get("image").im2col([3, 2], Window::new([2, 1], [1, 0], [1, 2])) => "F.unfold(image, (3, 2), (1, 2), (1, 0), (2, 1))";
        "scatter_add": |of| of.get("x").scatter_add(of.get("places"), of.get("y").slice(&[0..6, 0..5]), 1) => "x.scatter_add(1, places, y[:, :5])";
        "scatter_max": |of| of.get("x").scatter_max(of.get("places"), of.get("y").slice(&[0..6, 0..5]), 1) => "x.scatter_reduce(1, places, y[:, :5], 'amax')";
        "topk": |of| of.get("x").topk(5, 1, true).0 => "torch.topk(x, 5, 1)[0]";
        "places of topk": |of| of.get("x").topk(5, 1, false).1 => "torch.topk(x, 5, 1, largest=False)[1]";
        "one_hot": |of| of.get("classes").one_hot(37, cantus::DType::F32) => "F.one_hot(classes, 37)";
        "elu": |of| of.get("x").elu(0.7) => "F.elu(x, 0.7)";
        "selu": |of| of.get("x").selu() => "F.selu(x)";
        "softplus": |of| of.get("x").softplus() => "F.softplus(x)";
        "mish": |of| of.get("x").mish() => "F.mish(x)";
        "hardswish": |of| of.get("x").hard_swish() => "F.hardswish(x)";
        "hardsigmoid": |of| of.get("x").hard_sigmoid() => "F.hardsigmoid(x)";
        "leaky_relu": |of| of.get("x").leaky_relu(0.2) => "F.leaky_relu(x, 0.2)";
        "relu6": |of| (of.get("x") * 4.0).relu6() => "F.relu6(x * 4)";
        "gelu": |of| of.get("x").gelu() => "F.gelu(x)";
        "gelu by tanh": |of| of.get("x").gelu_tanh() => "F.gelu(x, approximate='tanh')";
        "lerp": |of| of.get("x").lerp(of.get("y"), 0.3) => "torch.lerp(x, y, 0.3)";
    }
    // Where a place lies between pixels is a rounding of its own.
    Greatest(1e-4) {
        "grid_sample": |of| of.get("image").grid_sample(of.get("grid"), Interpolation::Bilinear, 0.0, false) => "F.grid_sample(image, grid, align_corners=False)";
        "grid_sample by edges": |of| of.get("image").grid_sample(of.get("grid"), Interpolation::Bicubic, Padding::Edge, true) => "F.grid_sample(image, grid, mode='bicubic', padding_mode='border', align_corners=True)";
    }
};

/// Compares with what a Python says.
fn compared(variable: &str, imports: &str, convert: &str, cases: &[Case], share: u64) {
    let Ok(python) = std::env::var(variable) else {
        kit::not_run(
            &format!("operations beside {}", variable.trim_start_matches("CANTUS_")),
            &format!("{variable} names no Python (./test makes one)"),
        );
        return;
    };
    let seed = kit::turn::turn();
    for (number, engine) in engines().iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs::new(engine, folder.path(), seed + number as u64);
        let chosen: Vec<&Case> = cases
            .iter()
            .enumerate()
            .filter(|(place, _)| sampled(engine, 5000 + place, share))
            .map(|(_, case)| case)
            .collect();
        let mut script = format!("import sys, warnings, numpy as np\n{imports}\nfolder = sys.argv[1]\n");
        for (name, _) in &inputs.0 {
            let _ = writeln!(script, "{name} = {convert}(wide(np.load(f'{{folder}}/{name}.npy')))", name = name);
        }
        for (place, (_, _, theirs, _)) in chosen.iter().enumerate() {
            let _ = writeln!(script, "result = np.asarray({theirs}, dtype='<f8')");
            let _ = writeln!(script, "result.tofile(f'{{folder}}/{place}'); print(*result.shape)");
        }
        let path = folder.path().join("oracle.py");
        std::fs::write(&path, script).unwrap();
        let output = Command::new(&python).arg(&path).arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shapes = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shapes.lines().count(), chosen.len());
        for ((place, (case, ours, theirs, beside)), shape) in chosen.iter().enumerate().zip(shapes.lines()) {
            let what = format!("{case} ({theirs}) on {}, seed {}", name(engine), seed + number as u64);
            let got = ours(&inputs).eval().unwrap_or_else(|error| panic!("{what}: {error}"));
            let shape: Vec<usize> = shape.split_whitespace().map(|side| side.parse().unwrap()).collect();
            assert_eq!(got.shape(), shape, "{what}");
            let bytes = std::fs::read(folder.path().join(place.to_string())).unwrap();
            let wanted = bytes.chunks_exact(8).map(|number| f64::from_le_bytes(number.try_into().unwrap()));
            let got = doubles(&got);
            assert_eq!(got.len(), wanted.len(), "{what}");
            let greatest = wanted.clone().fold(1.0, |most: f64, value| most.max(value.abs()));
            for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
                let near = (got - wanted).abs()
                    <= match *beside {
                        Beside::Each(tolerance) => tolerance * wanted.abs().max(1.0),
                        Beside::Greatest(tolerance) => tolerance * greatest,
                    };
                assert!(near, "{what}, element {at}: {got}, not {wanted}");
            }
        }
    }
}

#[test]
fn definitions_are_numpys_and_scipys() {
    let imports = "from scipy import linalg, special, signal as signal_\n\
                   def wide(x): return x.astype('i8' if x.dtype.kind in 'iu' else 'f8')\n\
                   def same(x): return x\n\
                   def parts(x): return np.stack([x.real, x.imag], -1)";
    compared("CANTUS_NUMPY", imports, "same", NUMPY, 3);
}

#[test]
fn definitions_are_pytorchs_over_random_inputs() {
    let imports = "import torch, torch.nn.functional as F\n\
                   def wide(x): return x.astype('i8' if x.dtype.kind in 'iu' else 'f8')";
    compared("CANTUS_TORCH", imports, "torch.from_numpy", TORCH, 1);
}
