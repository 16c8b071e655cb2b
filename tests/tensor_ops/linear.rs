//! Matrix products, convolutions, pooling.

use cantus::ops::{Expr, Unary, Window};
use ndarray::IxDyn;

use crate::oracle::Taps;
use crate::{Numbers, close, engines, halves, name, of_halves, oracle, seeds, tensor, wide};

#[test]
fn matrix_products_of_any_layout() {
    for engine in engines() {
        for seed in seeds(engine, 0..40) {
            let mut numbers = Numbers::new(500 + seed);
            let mut side = |most: usize| numbers.side(most);
            let (m, k, n) = (side(150), side(150), side(150));
            let batch: Vec<usize> = match seed % 4 {
                0 => vec![2, 3],
                1 => vec![3],
                _ => Vec::new(),
            };
            let (turn_a, turn_b) = (seed % 3 == 0, seed % 5 < 2);
            let shaped = |sides: [usize; 2], turned: bool, batch: &[usize]| -> Vec<usize> {
                let sides = if turned { [sides[1], sides[0]] } else { sides };
                batch.iter().copied().chain(sides).collect()
            };
            // The right operand is shared by all batches at times.
            let shared = seed % 2 == 0;
            let a = numbers.array(&shaped([m, k], turn_a, &batch));
            let b = numbers.array(&shaped([k, n], turn_b, if shared { &[] } else { &batch }));
            let turned = |expr: Expr, turn: bool| if turn { expr.transpose() } else { expr };
            let (x, y) =
                (turned(Expr::from(&tensor(engine, &a)), turn_a), turned(Expr::from(&tensor(engine, &b)), turn_b));
            let straight = |array: &ndarray::ArrayD<f64>, turn: bool| {
                let mut array = array.clone();
                if turn {
                    let rank = array.ndim();
                    array.swap_axes(rank - 2, rank - 1);
                }
                array
            };
            let product = oracle::matmul(&straight(&wide(&a), turn_a), &straight(&wide(&b), turn_b));
            let what = format!("{batch:?} {m} x {k} x {n}, turned {turn_a} {turn_b}, seed {seed}, on {}", name(engine));
            let tolerance = 3e-6 * (k.max(1) as f64);
            close(&x.matmul(&y), &product, tolerance, &what);
            let bias = numbers.array(&[n]);
            let layer = x.fused_linear(&y, Some(&Expr::from(&tensor(engine, &bias))), Some(Unary::Relu));
            let expected = (&product + &wide(&bias)).mapv(|x| x.max(0.0));
            close(&layer, &expected, tolerance, &format!("linear {what}"));
        }
    }
}

/// More terms, rows and columns than the processor's own products take at a time; few rows, so that threads share by columns.
#[test]
fn products_of_many_blocks() {
    for engine in engines() {
        let mut numbers = Numbers::new(550);
        for (m, k, n) in [(7, 700, 3100), (205, 513, 97), (6, 17, 16)] {
            let (a, b) = (numbers.array(&[m, k]), numbers.array(&[k, n]));
            let product = oracle::matmul(&wide(&a), &wide(&b));
            let (x, y) = (tensor(engine, &a), tensor(engine, &b));
            close(&x.matmul(&y), &product, 3e-6 * k as f64, &format!("{m} x {k} x {n} on {}", name(engine)));
        }
    }
}

#[test]
fn vectors_are_rows_and_columns() {
    for engine in engines() {
        let mut numbers = Numbers::new(600);
        for (m, k, n) in [(1, 300, 257), (129, 1000, 1), (1, 5, 1), (1, 1, 40)] {
            let (a, b) = (numbers.array(&[m, k]), numbers.array(&[k, n]));
            let product = oracle::matmul(&wide(&a), &wide(&b));
            let (x, y) = (tensor(engine, &a), tensor(engine, &b));
            let what = format!("{m} x {k} x {n} on {}", name(engine));
            close(&x.matmul(&y), &product, 1e-3, &what);
            let flat = |expr: Expr, count: usize| expr.reshape(&[count]);
            if m == 1 {
                let row = product.clone().into_shape_with_order(IxDyn(&[n])).unwrap();
                close(&flat(x.expr(), k).matmul(&y), &row, 1e-3, &what);
            }
            if n == 1 {
                let column = product.clone().into_shape_with_order(IxDyn(&[m])).unwrap();
                close(&x.matmul(flat(y.expr(), k)), &column, 1e-3, &what);
                // Turned over in memory.
                let turned = tensor(engine, &a.t().as_standard_layout().into_owned());
                close(&turned.transpose().matmul(&y), &product, 1e-3, &what);
            }
        }
    }
}

#[test]
fn products_of_halves_are_summed_in_float32() {
    for engine in engines() {
        let mut numbers = Numbers::new(700);
        let (a, b) = (numbers.array(&[33, 70]), numbers.array(&[70, 47]));
        let product = oracle::matmul(&of_halves(&a), &of_halves(&b));
        let expr = halves(engine, &a).matmul(halves(engine, &b));
        assert_eq!(expr.dtype().unwrap(), cantus::DType::F16);
        close(&expr, &product, 1e-3, &name(engine));
        let gelu = product.mapv(|x| {
            if x > 6.0 { x } else { 0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh()) }
        });
        close(&expr.gelu_tanh(), &gelu, 2e-3, &name(engine));
    }
}

/// Wide enough for the processor's own way, which computes results between the rows as well: with several tiles, blocks of terms, strips of outputs
/// and groups, none of them whole.
#[test]
fn convolutions_of_wide_images() {
    for engine in engines() {
        let mut numbers = Numbers::new(850);
        let cases = [
            ([2, 20, 17, 35], 13, [3, 3], [1, 1], [1, 1], 1),
            ([1, 48, 9, 40], 24, [1, 5], [0, 2], [1, 1], 2),
            ([3, 40, 20, 33], 9, [3, 3], [2, 2], [2, 2], 1),
            ([1, 36, 5, 16], 14, [1, 1], [0, 0], [1, 1], 2),
            ([1, 6, 30, 50], 6, [4, 2], [3, 0], [1, 3], 1),
        ];
        for (shape, outputs, kernel, padding, dilation, groups) in cases {
            let x = numbers.array(&shape);
            let weights = numbers.array(&[outputs, shape[1] / groups, kernel[0], kernel[1]]);
            let taps = Taps { kernel, stride: [1, 1], padding, dilation };
            let window = Window::new([1, 1], padding, dilation);
            let expected = oracle::conv2d(&wide(&x), &wide(&weights), taps, groups);
            let conv = tensor(engine, &x).conv2d(tensor(engine, &weights), window, groups);
            let terms = shape[1] / groups * kernel[0] * kernel[1];
            let what = format!("{shape:?} by {:?}, {groups} groups, {window:?}, on {}", weights.shape(), name(engine));
            close(&conv, &expected, 1e-4 + 3e-6 * terms as f64, &what);
        }
    }
}

/// More images than the processor pads at a time, the last ones fewer than the others; and none at all.
#[test]
fn convolutions_of_many_images() {
    for engine in engines().iter().filter(|engine| engine.selected().device.backend == "cpu") {
        let mut numbers = Numbers::new(870);
        for images in [5, 0] {
            let (x, weights) = (numbers.array(&[images, 16, 256, 250]), numbers.array(&[6, 16, 1, 1]));
            let taps = Taps { kernel: [1, 1], stride: [1, 1], padding: [0, 0], dilation: [1, 1] };
            let expected = oracle::conv2d(&wide(&x), &wide(&weights), taps, 1);
            let conv = tensor(engine, &x).conv2d(tensor(engine, &weights), Window::default(), 1);
            close(&conv, &expected, 2e-4, &format!("{images} images on {}", name(engine)));
        }
    }
}

#[test]
fn convolutions_and_pooling_with_every_option() {
    for engine in engines() {
        for seed in seeds(engine, 0..30) {
            let mut numbers = Numbers::new(800 + seed);
            let groups = [1, 1, 2, 3][numbers.below(4)];
            let (inputs, outputs) = (groups * (1 + numbers.below(6)), groups * (1 + numbers.below(7)));
            let kernel = [1 + numbers.below(4), 1 + numbers.below(4)];
            let stride = [1 + numbers.below(3), 1 + numbers.below(3)];
            let padding = [numbers.below(kernel[0] / 2 + 1), numbers.below(kernel[1] / 2 + 1)];
            let window = Window::new(stride, padding, [1 + numbers.below(2), 1 + numbers.below(2)]);
            let reach = [0, 1].map(|axis| window.dilation[axis] * (kernel[axis] - 1) + 1);
            let [h, w] = reach.map(|reach| reach + numbers.below(25));
            let images = [0, 1, 1, 2, 3][numbers.below(5)];
            let x = numbers.array(&[images, inputs, h, w]);
            let weights = numbers.array(&[outputs, inputs / groups, kernel[0], kernel[1]]);
            let taps = Taps { kernel, stride: window.stride, padding: window.padding, dilation: window.dilation };
            let what = format!(
                "{:?} by {:?}, {groups} groups, {window:?}, seed {seed}, on {}",
                x.shape(),
                weights.shape(),
                name(engine)
            );
            let t = tensor(engine, &x);
            let expected = oracle::conv2d(&wide(&x), &wide(&weights), taps, groups);
            let conv = t.conv2d(tensor(engine, &weights), window, groups);
            close(&conv, &expected, 2e-4, &what);
            let bias = numbers.array(&[outputs, 1, 1]);
            let layer = (&conv + &tensor(engine, &bias)).relu();
            close(&layer, &(&expected + &wide(&bias)).mapv(|x| x.max(0.0)), 2e-4, &what);
            let greatest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let holds = |values: &[f64]| if values.is_empty() { 0.0 } else { greatest(values) };
            close(&t.max_pool2d(kernel, window), &oracle::pool2d(&wide(&x), taps, holds), 0.0, &what);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            close(&t.avg_pool2d(kernel, window, false), &oracle::pool2d(&wide(&x), taps, mean), 1e-5, &what);
            let all = (kernel[0] * kernel[1]) as f64;
            let padded = oracle::pool2d(&wide(&x), taps, |values| values.iter().sum::<f64>() / all);
            close(&t.avg_pool2d(kernel, window, true), &padded, 1e-5, &what);
        }
        let mut numbers = Numbers::new(899);
        let (x, weights) = (numbers.array(&[1, 3, 9, 9]), numbers.array(&[5, 3, 3, 3]));
        let taps = Taps { kernel: [3, 3], stride: [2, 2], padding: [1, 1], dilation: [1, 1] };
        let expected = oracle::conv2d(&of_halves(&x), &of_halves(&weights), taps, 1);
        close(
            &halves(engine, &x).conv2d(halves(engine, &weights), Window::strided(2).padded(1), 1),
            &expected,
            2e-3,
            &name(engine),
        );
    }
}
