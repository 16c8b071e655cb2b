//! Pooling.

use cantus::ops::Window;

use crate::oracle::Taps;
use crate::{Numbers, by_turns, close, name, oracle, seeds, tensor, wide};

#[test]
fn windows_with_every_option() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..30) {
            let mut numbers = Numbers::new(880 + seed);
            let kernel = [1 + numbers.below(4), 1 + numbers.below(4)];
            let stride = [1 + numbers.below(3), 1 + numbers.below(3)];
            let padding = [numbers.below(kernel[0] / 2 + 1), numbers.below(kernel[1] / 2 + 1)];
            let window = Window::new(stride, padding, [1 + numbers.below(2), 1 + numbers.below(2)]);
            let reach = [0, 1].map(|axis| window.dilation[axis] * (kernel[axis] - 1) + 1);
            let [h, w] = reach.map(|reach| reach + numbers.below(25));
            let shape = [[0, 1, 1, 2, 3][numbers.below(5)], 1 + numbers.below(9), h, w];
            let x = numbers.array(&shape);
            let taps = Taps { kernel, stride, padding, dilation: window.dilation };
            let what = format!("{:?} by {kernel:?}, {window:?}, seed {seed}, on {}", x.shape(), name(engine));
            let t = tensor(engine, &x);
            let greatest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let holds = |values: &[f64]| if values.is_empty() { 0.0 } else { greatest(values) };
            close(&t.max_pool2d(kernel, window), &oracle::pool2d(&wide(&x), taps, holds), 0.0, &what);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            close(&t.avg_pool2d(kernel, window, false), &oracle::pool2d(&wide(&x), taps, mean), 1e-5, &what);
            let all = (kernel[0] * kernel[1]) as f64;
            let padded = oracle::pool2d(&wide(&x), taps, |values| values.iter().sum::<f64>() / all);
            close(&t.avg_pool2d(kernel, window, true), &padded, 1e-5, &what);
        }
    }
}
