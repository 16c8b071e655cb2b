//! Images in another size, read by a grid, and as columns.

use std::f64::consts::PI;

use cantus::ops::{Interpolation, Padding, Window};
use cantus::{DType, Engine};
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, engines, few, halves, name, of_halves, tensor, wide};

/// Keys's cubic convolution, piece by piece.
fn cubic(x: f64, a: f64) -> f64 {
    match x.abs() {
        x if x <= 1.0 => (a + 2.0) * x.powi(3) - (a + 3.0) * x.powi(2) + 1.0,
        x if x < 2.0 => a * x.powi(3) - 5.0 * a * x.powi(2) + 8.0 * a * x - 4.0 * a,
        _ => 0.0,
    }
}

/// Returns the weights of each element of a row of another length.
fn weights(length: usize, to: usize, by: Interpolation) -> Vec<Vec<(usize, f64)>> {
    let step = length as f64 / to as f64;
    let within = |at: f64| at.clamp(0.0, length as f64 - 1.0) as usize;
    let spread = |center: f64, reach: f64, kernel: &dyn Fn(f64) -> f64| {
        let scale = step.max(1.0);
        let taps: Vec<(usize, f64)> = (0..length)
            .map(|at| (at, kernel((at as f64 + 0.5 - center) / scale)))
            .filter(|(at, _)| ((*at as f64 + 0.5 - center) / scale).abs() < reach)
            .collect();
        let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
        taps.into_iter().map(|(at, weight)| (at, weight / sum)).collect()
    };
    (0..to)
        .map(|place| {
            let center = (place as f64 + 0.5) * step;
            let base = (center - 0.5).floor();
            let part = center - 0.5 - base;
            match by {
                Interpolation::Nearest => vec![(within((place as f64 * step).floor()), 1.0)],
                Interpolation::Bilinear => vec![(within(base), 1.0 - part), (within(base + 1.0), part)],
                Interpolation::Bicubic => {
                    (-1..=2).map(|tap| (within(base + f64::from(tap)), cubic(f64::from(tap) - part, -0.75))).collect()
                }
                Interpolation::BilinearAntialiased => spread(center, 1.0, &|x| 1.0 - x.abs()),
                _ => spread(center, 2.0, &|x| cubic(x, -0.5)),
            }
        })
        .collect()
}

fn scaled(x: &ArrayD<f64>, [height, width]: [usize; 2], by: Interpolation) -> ArrayD<f64> {
    let (rows, columns) = (weights(x.shape()[2], height, by), weights(x.shape()[3], width, by));
    ArrayD::from_shape_fn(IxDyn(&[x.shape()[0], x.shape()[1], height, width]), |at| {
        let row =
            |y: usize| columns[at[3]].iter().map(|&(from, weight)| weight * x[[at[0], at[1], y, from]]).sum::<f64>();
        rows[at[2]].iter().map(|&(y, weight)| weight * row(y)).sum()
    })
}

const ALL: [Interpolation; 5] = [
    Interpolation::Nearest,
    Interpolation::Bilinear,
    Interpolation::Bicubic,
    Interpolation::BilinearAntialiased,
    Interpolation::BicubicAntialiased,
];

#[test]
fn images_in_another_size() {
    for engine in by_turns() {
        for seed in few(engine, 0..20) {
            let mut numbers = Numbers::new(1200 + seed);
            let by = ALL[seed as usize % 5];
            let shape = [1 + numbers.below(2), 1 + numbers.below(3), 1 + numbers.below(40), 1 + numbers.below(40)];
            // Lengths by which the step is a float: the nearest pixel is the same in float32 and float64.
            let size = match by {
                Interpolation::Nearest => [shape[2] * 4, shape[3].div_ceil(2)],
                _ => [1 + numbers.below(60), 1 + numbers.below(60)],
            };
            let array = numbers.array(&shape);
            let half = seed % 7 == 6;
            let (x, f) =
                if half { (halves(engine, &array), of_halves(&array)) } else { (tensor(engine, &array), wide(&array)) };
            let what = format!("{by:?} of {shape:?} to {size:?}, seed {seed}, on {}", name(engine));
            close(&x.interpolate(size, by), &scaled(&f, size, by), if half { 4e-3 } else { 5e-5 }, &what);
        }
        // More rows than a tile has, and fewer than one; one axis alone; and what follows.
        for (shape, size) in [
            ([1, 2, 300, 90], [7, 200]),
            ([2, 1, 130, 140], [64, 70]),
            ([1, 1, 5, 300], [90, 11]),
            ([1, 1, 1000, 3], [2, 5]),
            ([1, 2, 60, 33], [60, 80]),
        ] {
            for by in ALL {
                // Steps that float32 and float64 round to the same pixel.
                let size = if by == Interpolation::Nearest { [shape[2] * 2, shape[3] * 4] } else { size };
                let array = Numbers::new(77).array(&shape);
                let known = scaled(&wide(&array), size, by) * 2.0 + 1.0;
                // Places far from the first pixel are rounded to some 1e-5 of a pixel.
                let what = format!("{by:?} of {shape:?} to {size:?}, and what follows, on {}", name(engine));
                close(&(tensor(engine, &array).interpolate(size, by) * 2.0 + 1.0), &known, 1e-3, &what);
            }
        }
        let none = engine.zeros::<f32>(&[0, 3, 4, 5]).unwrap().interpolate([8, 2], Interpolation::Bilinear);
        assert_eq!(none.eval().unwrap().shape(), [0, 3, 8, 2]);
    }
}

/// A pixel of an image, or what lies outside.
fn pixel(x: &ArrayD<f64>, image: [usize; 2], at: [i64; 2], outside: Padding, aligned: bool) -> f64 {
    let mut place = [0; 2];
    for axis in 0..2 {
        let length = x.shape()[axis + 2] as i64;
        let mut at = at[axis];
        while !(0..length).contains(&at) {
            at = match outside {
                Padding::Edge => at.clamp(0, length - 1),
                Padding::Wrap => at.rem_euclid(length),
                Padding::Reflect if aligned && length == 1 => 0,
                Padding::Reflect => match (at < 0, aligned) {
                    (true, true) => -at,
                    (true, false) => -1 - at,
                    (false, true) => 2 * (length - 1) - at,
                    (false, false) => 2 * length - 1 - at,
                },
                Padding::Constant(value) => return value,
                _ => panic!("{outside:?}"),
            };
        }
        place[axis] = at as usize;
    }
    x[[image[0], image[1], place[0], place[1]]]
}

#[test]
fn images_read_by_a_grid() {
    for engine in by_turns() {
        for seed in few(engine, 0..24) {
            let mut numbers = Numbers::new(1300 + seed);
            let by = ALL[seed as usize % 3];
            let outside =
                [Padding::Constant(0.5), Padding::Edge, Padding::Reflect, Padding::Wrap][seed as usize / 3 % 4];
            let aligned = seed % 2 == 0;
            let shape = [1 + numbers.below(2), 1 + numbers.below(3), 1 + numbers.below(9), 1 + numbers.below(9)];
            let sides = [shape[0], numbers.side(9), numbers.side(9), 2];
            let array = numbers.array(&shape);
            // Beyond the image too, and in steps so that the nearest pixel is no matter of rounding.
            let grid = numbers.array(&sides).mapv(|x| (x * 10.0).round() / 16.0 + 0.013);
            let f = wide(&array);
            let place = |x: f32, side: usize| {
                let (x, side) = (f64::from(x), side as f64);
                if aligned { (x + 1.0) / 2.0 * (side - 1.0) } else { ((x + 1.0) * side - 1.0) / 2.0 }
            };
            let result = [shape[0], shape[1], sides[1], sides[2]];
            let expected = ArrayD::from_shape_fn(IxDyn(&result), |at| {
                let image = [at[0], at[1]];
                let x = place(grid[[at[0], at[2], at[3], 0]], shape[3]);
                let y = place(grid[[at[0], at[2], at[3], 1]], shape[2]);
                if by == Interpolation::Nearest {
                    return pixel(
                        &f,
                        image,
                        [y.round_ties_even() as i64, x.round_ties_even() as i64],
                        outside,
                        aligned,
                    );
                }
                let kernel = |x: f64| match by {
                    Interpolation::Bilinear => (1.0 - x.abs()).max(0.0),
                    _ => cubic(x, -0.75),
                };
                let mut sum = 0.0;
                for i in -1..=2 {
                    for j in -1..=2 {
                        let tap = [y.floor() as i64 + i, x.floor() as i64 + j];
                        let weight = kernel(tap[0] as f64 - y) * kernel(tap[1] as f64 - x);
                        sum += weight * pixel(&f, image, tap, outside, aligned);
                    }
                }
                sum
            });
            let what = format!(
                "{by:?}, {outside:?}, aligned {aligned}, of {shape:?} by {sides:?}, seed {seed}, on {}",
                name(engine)
            );
            let got = tensor(engine, &array).grid_sample(tensor(engine, &grid), by, outside, aligned);
            close(&got, &expected, 5e-5, &what);
        }
    }
}

#[test]
fn windows_as_columns() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(1400 + seed);
            let shape = [1 + numbers.below(2), 1 + numbers.below(3), 5 + numbers.below(9), 5 + numbers.below(9)];
            let kernel = [1 + numbers.below(3), 1 + numbers.below(3)];
            let pair = |numbers: &mut Numbers, least: usize| [least + numbers.below(2), least + numbers.below(2)];
            let (stride, padding, dilation) = (pair(&mut numbers, 1), pair(&mut numbers, 0), pair(&mut numbers, 1));
            let taps = crate::oracle::Taps { kernel, stride, padding, dilation };
            let array = numbers.array(&shape);
            let f = wide(&array);
            let [height, width] = taps.output([shape[2], shape[3]]);
            let expected =
                ArrayD::from_shape_fn(IxDyn(&[shape[0], shape[1] * kernel[0] * kernel[1], height * width]), |at| {
                    let (channel, tap) = (at[1] / (kernel[0] * kernel[1]), at[1] % (kernel[0] * kernel[1]));
                    let y = taps.from(0, at[2] / width, tap / kernel[1], shape[2]);
                    let x = taps.from(1, at[2] % width, tap % kernel[1], shape[3]);
                    y.zip(x).map_or(0.0, |(y, x)| f[[at[0], channel, y, x]])
                });
            let what = format!("{taps:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let columns = tensor(engine, &array).im2col(kernel, Window::new(stride, padding, dilation));
            close(&columns, &expected, 0.0, &what);
        }
    }
}

#[test]
fn a_turned_image_keeps_its_pixels() {
    // By a quarter of a turn and back: every pixel is read where it lies.
    let engine: &Engine = &engines()[0];
    let side = 6;
    let x = cantus::ops::arange(engine, 0.0, 36.0, 1.0, DType::F32).reshape(&[1, 1, side, side]);
    let turned = |angle: f64| {
        let (sine, cosine) = angle.sin_cos();
        let axis = |place: usize| (2.0 * place as f64 + 1.0) / side as f64 - 1.0;
        let grid = ArrayD::from_shape_fn(IxDyn(&[1, side, side, 2]), |at| {
            let (x, y) = (axis(at[2]), axis(at[1]));
            (if at[3] == 0 { cosine * x - sine * y } else { sine * x + cosine * y }) as f32
        });
        engine.tensor_from_array(&grid).unwrap()
    };
    let once = x.grid_sample(turned(PI / 2.0), Interpolation::Nearest, 0.0, false);
    let back = once.grid_sample(turned(-PI / 2.0), Interpolation::Nearest, 0.0, false);
    assert_ne!(once.eval().unwrap().to_vec::<f32>().unwrap(), x.eval().unwrap().to_vec::<f32>().unwrap());
    assert_eq!(back.eval().unwrap().to_vec::<f32>().unwrap(), x.eval().unwrap().to_vec::<f32>().unwrap());
}
