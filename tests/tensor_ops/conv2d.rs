//! Convolutions.

use cantus::ops::Window;

use crate::oracle::Taps;
use crate::{Numbers, by_turns, close, halves, name, of_halves, oracle, seeds, tensor, wide};

/// Wide enough for the processor's own way, which computes results between the rows as well: with several tiles, blocks of terms, strips of outputs
/// and groups, none of them whole.
#[test]
fn convolutions_of_wide_images() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(850);
        let cases = [
            ([2, 20, 17, 35], 13, [3, 3], [1, 1], [1, 1], [1, 1], 1),
            ([1, 48, 9, 40], 24, [1, 5], [1, 1], [0, 2], [1, 1], 2),
            ([3, 40, 20, 33], 9, [3, 3], [1, 1], [2, 2], [2, 2], 1),
            ([1, 36, 5, 16], 14, [1, 1], [1, 1], [0, 0], [1, 1], 2),
            ([1, 6, 30, 50], 6, [4, 2], [1, 1], [3, 0], [1, 3], 1),
            ([1, 30, 33, 80], 50, [3, 4], [2, 3], [2, 1], [1, 2], 1),
            // Few pixels, whose weights are read as they lie; rows of weights a power of two apart.
            ([1, 128, 7, 7], 40, [3, 3], [1, 1], [1, 1], [1, 1], 1),
            ([1, 1024, 5, 6], 30, [1, 1], [2, 2], [0, 0], [1, 1], 1),
            // An image for each thread, and some more.
            ([9, 24, 11, 19], 20, [3, 3], [2, 2], [1, 1], [1, 1], 1),
            // Planes as they lie: two, three and four at a time.
            ([2, 32, 19, 37], 48, [3, 3], [1, 2], [1, 1], [1, 1], 16),
            ([1, 12, 14, 70], 14, [5, 5], [2, 1], [2, 2], [1, 1], 2),
            // Zeros that would take far more memory than the image.
            ([1, 2, 3, 3], 9, [3, 3], [1, 1], [3000, 3000], [3001, 3001], 1),
            // Windows that do not overlap, that leave out rows and columns, and that are larger than a kernel's tile along one axis or both.
            ([1, 3, 32, 48], 33, [16, 16], [16, 16], [0, 0], [1, 1], 1),
            ([2, 4, 40, 37], 5, [3, 3], [2, 4], [2, 1], [4, 6], 1),
            ([1, 2, 47, 90], 3, [40, 7], [1, 1], [0, 3], [1, 1], 1),
            ([1, 1, 70, 101], 2, [60, 80], [1, 2], [0, 0], [1, 1], 1),
            ([1, 5, 23, 25], 40, [7, 7], [1, 1], [3, 3], [1, 1], 1),
            // A signal, a column, and the weights of five rows.
            ([2, 6, 1, 700], 17, [1, 5], [1, 1], [0, 2], [1, 1], 1),
            ([1, 3, 300, 1], 4, [5, 1], [1, 1], [2, 0], [1, 1], 1),
        ];
        for (shape, outputs, kernel, stride, padding, dilation, groups) in cases {
            let x = numbers.array(&shape);
            let weights = numbers.array(&[outputs, shape[1] / groups, kernel[0], kernel[1]]);
            let taps = Taps { kernel, stride, padding, dilation };
            let window = Window::new(stride, padding, dilation);
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
    for engine in by_turns().iter().filter(|engine| engine.selected().device.backend == "cpu") {
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
fn convolutions_with_every_option() {
    for engine in by_turns() {
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
