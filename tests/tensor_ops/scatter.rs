//! Values written to named places, and parts replaced.

use cantus::DType;
use cantus::ops::Expr;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, halves, name, of_halves, tensor, wide};

#[test]
fn scattered_along_any_axis() {
    for engine in by_turns() {
        for seed in few(engine, 0..20) {
            let mut numbers = Numbers::new(800 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [700, 40, 11][rank - 1]);
            let axis = numbers.below(rank);
            let mut of_values = shape.clone();
            of_values[axis] = numbers.side([900, 90, 30][rank - 1]);
            let (array, added) = (numbers.array(&shape), numbers.array(&of_values));
            let half = seed % 5 == 4;
            let make =
                |array: &ArrayD<f32>| if half { halves(engine, array).expr() } else { tensor(engine, array).expr() };
            let value = |array: &ArrayD<f32>| if half { of_halves(array) } else { wide(array) };
            let length = shape[axis] as i32;
            let index: ArrayD<i32> = added.mapv(|_| numbers.below(2 * shape[axis].max(1)) as i32 - length);
            let what = format!("{of_values:?} to {shape:?} along {axis}, seed {seed}, on {}", name(engine));
            let t = engine.tensor_from_array(&index).unwrap();
            let near = if half { 5e-3 } else { 2e-5 };
            let check = |got: Expr, f: fn(f64, f64) -> f64, near: f64| {
                let (mut expected, values) = (value(&array), value(&added));
                for (at, &to) in index.indexed_iter() {
                    let to = if to < 0 { to + length } else { to };
                    if (0..length).contains(&to) {
                        let mut place: Vec<usize> = (0..rank).map(|axis| at[axis]).collect();
                        place[axis] = to as usize;
                        let old = expected[IxDyn(&place)];
                        expected[IxDyn(&place)] = f(old, values[&at]);
                    }
                }
                close(&got, &expected, near, &what);
            };
            let (x, v) = (make(&array), make(&added));
            check(x.scatter(&t, &v, axis as isize), |_, value| value, 0.0);
            check(x.scatter_add(&t, &v, axis as isize), |old, value| old + value, near);
            check(x.scatter_max(&t, &v, axis as isize), f64::max, 0.0);
            check(x.scatter_min(&t, &v, axis as isize), f64::min, 0.0);
            // What goes in and comes out may be computed with it.
            let around = (&x * 2.0).scatter_add(&t, &(&v * 2.0), axis as isize) * 0.5;
            check(around, |old, value| old + value, near);
        }
    }
}

#[test]
fn slices_by_an_index_of_one_axis() {
    for engine in by_turns() {
        for seed in few(engine, 0..8) {
            let mut numbers = Numbers::new(840 + seed);
            let shape: Vec<usize> = (0..2).map(|_| 1 + numbers.below(30)).collect();
            let axis = numbers.below(2);
            let index: Vec<u32> = (0..numbers.below(20)).map(|_| numbers.below(shape[axis]) as u32).collect();
            let mut of_values = shape.clone();
            of_values[axis] = index.len();
            let array = numbers.array(&shape).mapv(|x| x.round());
            let values = numbers.array(&of_values).mapv(|x| x.round());
            let what = format!("{index:?} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let mut sums = wide(&array);
            let mut filled = wide(&array);
            let mut copied = wide(&array);
            for (at, &to) in index.iter().enumerate() {
                let source = wide(&values).index_axis(ndarray::Axis(axis), at).to_owned();
                let mut target = sums.index_axis_mut(ndarray::Axis(axis), to as usize);
                target += &source;
                copied.index_axis_mut(ndarray::Axis(axis), to as usize).assign(&source);
                filled.index_axis_mut(ndarray::Axis(axis), to as usize).fill(7.0);
            }
            let (x, v, i) = (tensor(engine, &array), tensor(engine, &values), engine.tensor(&index).unwrap());
            close(&x.index_add(&i, &v, axis as isize), &sums, 0.0, &what);
            close(&x.index_copy(&i, &v, axis as isize), &copied, 0.0, &what);
            close(&x.index_fill(&i, 7.0, axis as isize), &filled, 0.0, &what);
            let whole = x.cast(DType::I32).index_add(&i, v.cast(DType::I32), axis as isize);
            close(&whole, &sums, 0.0, &what);
        }
    }
}

/// Values that share few places, so that a place's own are cut into tiles, and tiles into tiles; and rows of indices of their own.
#[test]
fn sums_have_the_same_bits_every_time() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(3);
        for (rows, length, count) in [(1, 3, 5000), (1, 1, 1024), (2, 2, 1025), (3, 5000, 4999), (1, 7, 1_100_000)] {
            let values: Vec<f32> = (0..rows * count).map(|_| numbers.float() * 1e3).collect();
            let index: Vec<u32> = (0..rows * count).map(|_| numbers.below(length) as u32).collect();
            let (mut expected, mut sizes) = (vec![0.0_f64; rows * length], vec![0.0_f64; rows * length]);
            for (at, (&to, &value)) in index.iter().zip(&values).enumerate() {
                expected[at / count * length + to as usize] += f64::from(value);
                sizes[at / count * length + to as usize] += f64::from(value).abs();
            }
            let x = engine.zeros::<f32>(&[rows, length]).unwrap();
            let i = engine.tensor_from(&index, &[rows, count]).unwrap();
            let v = engine.tensor_from(&values, &[rows, count]).unwrap();
            let sums = || x.scatter_add(&i, &v, 1).eval().unwrap().to_vec::<f32>().unwrap();
            let (got, again) = (sums(), sums());
            let what = format!("{count} to {rows} x {length} on {}", name(engine));
            assert!(got.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()), "{what}");
            // One by one, as the processor adds them, each sum is rounded as often as there are values.
            let near = if engine.selected().device.backend == "cpu" { 1e-4 } else { 2e-6 };
            for ((got, expected), size) in got.iter().zip(&expected).zip(&sizes) {
                assert!(
                    (f64::from(*got) - expected).abs() <= near * size.max(1.0),
                    "{got}, expected {expected}: {what}"
                );
            }
            // What follows reads three tensors more.
            let more = (x.scatter_add(&i, &v, 1) * &x + &x.expr().exp() * 0.5).eval().unwrap();
            assert!(more.to_vec::<f32>().unwrap().iter().all(|&x| x == 0.5), "{what}");
        }
    }
}

/// Rows of which one is cut for the threads, in every dtype that the processor's own operation takes, and places that all rows share.
#[test]
fn long_rows() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(4);
        for (rows, length, count) in [(1, 200_000, 60_000), (3, 40_000, 30_000), (700, 40, 9)] {
            let of = |numbers: &mut Numbers, count: usize| -> Vec<i32> {
                (0..count).map(|_| (numbers.float() * 1e8) as i32).collect()
            };
            let (into, values) = (of(&mut numbers, rows * length), of(&mut numbers, rows * count));
            let shared: Vec<u32> = (0..count).map(|_| numbers.below(length) as u32).collect();
            let x = engine.tensor(&into).unwrap().expr().reshape(&[rows, length]);
            let v = engine.tensor(&values).unwrap().expr().reshape(&[rows, count]);
            let index = engine.tensor(&shared).unwrap().expr().reshape(&[1, count]);
            let wanted = |by: fn(i32, i32) -> i32| {
                let mut result = into.clone();
                for (result, values) in result.chunks_mut(length).zip(values.chunks(count)) {
                    for (&place, &value) in shared.iter().zip(values) {
                        result[place as usize] = by(result[place as usize], value);
                    }
                }
                result
            };
            let what = format!("{count} to {rows} x {length} on {}", name(engine));
            let got = |expr: Expr| expr.eval().unwrap().to_vec::<i32>().unwrap();
            assert_eq!(got(x.scatter(&index, &v, 1)), wanted(|_, b| b), "{what}");
            assert_eq!(got(x.scatter_add(&index, &v, 1)), wanted(i32::wrapping_add), "{what}");
            assert_eq!(got(x.scatter_max(&index, &v, 1)), wanted(i32::max), "{what}");
            assert_eq!(got(x.scatter_min(&index, &v, 1)), wanted(i32::min), "{what}");
            let unsigned = |expr: &Expr| expr.cast(DType::U32);
            let greatest = unsigned(&x).scatter_max(&index, unsigned(&v), 1).eval().unwrap().to_vec::<u32>().unwrap();
            let wanted = wanted(|a, b| (a as u32).max(b as u32) as i32);
            assert!(greatest.iter().zip(&wanted).all(|(got, wanted)| *got == *wanted as u32), "{what}");
        }
    }
}

#[test]
fn parts_and_masks() {
    for engine in by_turns() {
        for seed in few(engine, 0..8) {
            let mut numbers = Numbers::new(870 + seed);
            let shape: Vec<usize> = (0..3).map(|_| 1 + numbers.below(9)).collect();
            let array = numbers.array(&shape);
            let half = seed % 4 == 3;
            let make =
                |array: &ArrayD<f32>| if half { halves(engine, array).expr() } else { tensor(engine, array).expr() };
            let value = |array: &ArrayD<f32>| if half { of_halves(array) } else { wide(array) };
            let ranges: Vec<std::ops::Range<usize>> = shape[..2]
                .iter()
                .map(|&side| {
                    let from = numbers.below(side + 1);
                    from..from + numbers.below(side - from + 1)
                })
                .collect();
            let row = numbers.array(&[shape[2]]);
            let what = format!("{ranges:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let (mut assigned, mut masked) = (value(&array), value(&array));
            for i in ranges[0].clone() {
                for j in ranges[1].clone() {
                    for k in 0..shape[2] {
                        assigned[[i, j, k]] = value(&row)[[k]];
                    }
                }
            }
            close(&make(&array).slice_scatter(&ranges, make(&row)), &assigned, 0.0, &what);
            masked.mapv_inplace(|x| if x < 0.0 { 0.5 } else { x });
            let x = make(&array);
            close(&x.masked_fill(x.less(0.0), 0.5), &masked, 0.0, &what);
        }
    }
}

/// A part of many blocks, which several threads write: what stays around it must not come over it, whichever is first.
#[test]
fn written_parts_are_not_overtaken() {
    const COUNT: usize = 40_001;
    for engine in by_turns() {
        let (x, part) = (engine.tensor(&[1_i32; COUNT]).unwrap(), engine.tensor(&[2_i32; COUNT - 3]).unwrap());
        let rounds = if engine.selected().device.backend == "cpu" { 1000 } else { 20 };
        for round in 0..rounds {
            let got = x
                .expr()
                .slice_scatter(std::slice::from_ref(&(1..COUNT - 2)), &part)
                .eval()
                .unwrap()
                .to_vec::<i32>()
                .unwrap();
            let wrong =
                got.iter().enumerate().find(|&(at, &is)| is != if (1..COUNT - 2).contains(&at) { 2 } else { 1 });
            assert_eq!(wrong, None, "round {round} on {}", name(engine));
        }
    }
}
