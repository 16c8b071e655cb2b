//! Order along an axis, places in sorted rows, and ranks.

use cantus::DType;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, name, oracle, tensor, wide};

/// The places of a row in order; equal ones stay in theirs.
fn argsort(row: &[f64], descending: bool) -> Vec<f64> {
    let mut places: Vec<usize> = (0..row.len()).collect();
    let key = |x: f64| if x.is_nan() { f64::INFINITY } else { x };
    places.sort_by(|&a, &b| {
        let order = key(row[a]).partial_cmp(&key(row[b])).unwrap();
        if descending { order.reverse() } else { order }
    });
    places.into_iter().map(|place| place as f64).collect()
}

#[test]
fn sorted_along_any_axis_and_stable() {
    for engine in by_turns() {
        for seed in few(engine, 0..24) {
            let mut numbers = Numbers::new(600 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [5000, 400, 20][rank - 1]);
            let axis = numbers.below(rank);
            let descending = numbers.below(2) == 0;
            // Few values, so that there are ties.
            let few = numbers.below(2) == 0;
            let dtype = [DType::F32, DType::I32, DType::F16, DType::U32][seed as usize % 4];
            let array = numbers.array(&shape).mapv(|x| match dtype {
                DType::U32 => (x.abs() * 1000.0).round(),
                DType::I32 => (x * 1000.0).round(),
                _ if few => x.round(),
                // What halves hold as well.
                _ => (x * 64.0).round() / 64.0,
            });
            let t = tensor(engine, &array).cast(dtype);
            let f = wide(&array);
            let what = format!("{dtype} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let places = oracle::rows(&f, axis, |row| argsort(row, descending));
            close(&t.argsort(axis as isize, descending), &places, 0.0, &what);
            let sorted = oracle::rows(&f, axis, |row| {
                argsort(row, descending).into_iter().map(|place| row[place as usize]).collect()
            });
            close(&t.sort(axis as isize, descending), &sorted, 0.0, &what);
            // Of an expression too.
            let more = oracle::rows(&sorted, axis, |row| row.iter().map(|x| x + 1.0).collect());
            close(&(&t + 1).sort(axis as isize, descending), &more, 0.0, &what);
            // Few are found without a sort.
            let k = numbers.below([20, shape[axis]][seed as usize / 4 % 2].min(shape[axis]) + 1);
            let (values, best) = t.topk(k, axis as isize, descending);
            let first = |all: &ArrayD<f64>| all.slice_axis(ndarray::Axis(axis), ndarray::Slice::from(..k)).to_owned();
            close(&values, &first(&sorted), 0.0, &what);
            close(&best, &first(&places), 0.0, &what);
        }
    }
}

/// Slices from the beginning of sorted rows, with steps, through other axes, of what is computed already and of what is not.
#[test]
fn the_first_of_sorted_rows() {
    for engine in by_turns() {
        for seed in few(engine, 0..36) {
            let mut numbers = Numbers::new(1700 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [5000, 400, 40][rank - 1]);
            let axis = numbers.below(rank);
            let descending = numbers.below(2) == 0;
            let mut array = numbers.array(&shape).mapv(|x| (x * 40.0).round());
            array.iter_mut().step_by(7).for_each(|x| *x = f32::NAN);
            let (t, f) = (tensor(engine, &array), wide(&array));
            let places = oracle::rows(&f, axis, |row| argsort(row, descending));
            let sorted = oracle::rows(&f, axis, |row| {
                argsort(row, descending).into_iter().map(|place| row[place as usize]).collect()
            });
            let (mut ranges, mut steps) = (Vec::new(), Vec::new());
            for (at, &side) in shape.iter().enumerate() {
                let most = if at == axis { side.div_ceil(6) } else { side };
                let end = side.min(1 + numbers.below(most.max(1)));
                ranges.push(numbers.below(end.max(1))..end);
                steps.push(1 + numbers.below(2));
            }
            let part = |all: &ArrayD<f64>| {
                all.slice_each_axis(|of| {
                    let (range, step) = (&ranges[of.axis.index()], steps[of.axis.index()]);
                    ndarray::Slice::new(range.start as isize, Some(range.end as isize), step as isize)
                })
                .to_owned()
            };
            let what = format!("{ranges:?} by {steps:?} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let (values, order) = (t.sort(axis as isize, descending), t.argsort(axis as isize, descending));
            if seed % 3 == 0 {
                values.eval().unwrap();
            }
            let (few, at) = (values.slice_steps(&ranges, &steps), order.slice_steps(&ranges, &steps));
            if seed % 3 == 1 {
                close(&values, &sorted, 0.0, &what);
            }
            close(&few, &part(&sorted), 0.0, &what);
            close(&at, &part(&places), 0.0, &what);
            close(&values, &sorted, 0.0, &what);
            // Read in another order, beside the places.
            let axes: Vec<isize> = (0..rank as isize).rev().collect();
            let turned = few.permute(&axes) + at.permute(&axes).cast(DType::F32);
            close(&turned, &(part(&sorted) + part(&places)).reversed_axes(), 0.0, &what);
        }
    }
}

/// A slice of a few sorted elements doesn't write whole rows.
#[test]
fn rows_are_not_sorted_for_a_few() {
    let engine = cantus::Engine::builder().backend("cpu").build().unwrap();
    let mut numbers = Numbers::new(1800);
    let x = tensor(&engine, &numbers.array(&[50, 800]));
    x.sort(1, false).slice(&[0..50, 0..5]).eval().unwrap();
    let rows = engine.metrics();
    let sorts = rows.iter().find(|row| row.operation == "sort (native)").unwrap();
    assert_eq!((sorts.count, sorts.bytes), (1, 4 * (50 * 800 + 50 * 5 * 2)));
}

/// Rows that a processor cuts into parts, sorts by digits or by comparisons, and of which it only looks for the first; and that other devices sort by one
/// workgroup of every size, or tile by tile.
#[test]
fn rows_of_every_length() {
    for engine in by_turns() {
        let lengths =
            [(1, 70_001), (2, 7681), (3, 4097), (2, 4096), (5, 2000), (2, 1024), (3, 192), (2, 191), (4, 64), (7, 1)];
        for (rows, length) in lengths {
            let mut numbers = Numbers::new(640 + length as u64);
            // Many ties, and both signs.
            let array = numbers.array(&[rows, length]).mapv(|x| (x * 500.0).round());
            let (t, f) = (tensor(engine, &array), wide(&array));
            for (dtype, descending) in [(DType::F32, false), (DType::I32, true)] {
                let t = t.cast(dtype);
                let what = format!("{dtype} [{rows}, {length}] on {}", name(engine));
                let places = oracle::rows(&f, 1, |row| argsort(row, descending));
                close(&t.argsort(1, descending), &places, 0.0, &what);
                let sorted = oracle::rows(&f, 1, |row| {
                    argsort(row, descending).into_iter().map(|place| row[place as usize]).collect()
                });
                close(&t.sort(1, descending), &sorted, 0.0, &what);
                for k in [1, 16.min(length), length / 7, length - length / 7, length] {
                    let (_, best) = t.topk(k, 1, descending);
                    let first = places.slice_axis(ndarray::Axis(1), ndarray::Slice::from(..k)).to_owned();
                    close(&best, &first, 0.0, &format!("the {k} best of {what}"));
                }
            }
        }
    }
}

/// Keys of fewer bits, and of all of them.
#[test]
fn rows_of_narrow_and_wide_keys() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(690);
        let processor = engine.selected().device.backend == "cpu";
        let mut number = kit::turn::turn();
        for length in [50, 700, 5000] {
            for descending in [false, true] {
                for dtype in [DType::U8, DType::U16, DType::Bool, DType::I8, DType::U32, DType::F32] {
                    // A driver compiles a sort for seconds: the quick circle asks it for a few, others with each turn.
                    number += 1;
                    if !processor && kit::turn::quick() && !number.is_multiple_of(7) {
                        continue;
                    }
                    let values: Vec<u32> = (0..2 * length)
                        .map(|_| match dtype {
                            DType::U8 => numbers.below(256) as u32,
                            DType::U16 => numbers.below(1 << 16) as u32,
                            DType::Bool => numbers.below(2) as u32,
                            DType::I8 => numbers.below(128) as u32,
                            // Whole in float32.
                            _ => (numbers.below(1 << 24) as u32) << 8,
                        })
                        .collect();
                    let t = engine.tensor_from(&values, &[2, length]).unwrap().expr().cast(dtype);
                    let f = ArrayD::from_shape_vec(IxDyn(&[2, length]), values.iter().map(|&x| f64::from(x)).collect())
                        .unwrap();
                    let what = format!("{dtype} of {length}, descending {descending}, on {}", name(engine));
                    let places = oracle::rows(&f, 1, |row| argsort(row, descending));
                    close(&t.argsort(1, descending), &places, 0.0, &what);
                    let sorted = oracle::rows(&f, 1, |row| {
                        argsort(row, descending).into_iter().map(|place| row[place as usize]).collect()
                    });
                    close(&t.sort(1, descending).cast(DType::F32), &sorted, 0.0, &what);
                }
            }
        }
    }
}

#[test]
fn nan_is_last_and_zeros_are_equal() {
    for engine in by_turns() {
        let values =
            [2.0_f32, f32::NAN, -0.0, f32::INFINITY, 0.0, f32::NEG_INFINITY, f32::NAN, -1e-40, f32::MAX, f32::MIN];
        let t = engine.tensor(&values).unwrap();
        let places = t.argsort(0, false).eval().unwrap().to_vec::<u32>().unwrap();
        // Places alone: what is read is not computed with.
        assert_eq!(places, [5, 9, 7, 2, 4, 0, 8, 3, 1, 6], "{}", name(engine));
        let places = t.argsort(0, true).eval().unwrap().to_vec::<u32>().unwrap();
        assert_eq!(places, [1, 6, 3, 8, 0, 2, 4, 7, 9, 5], "{}", name(engine));
        let places = t.topk(9, 0, true).1.eval().unwrap().to_vec::<u32>().unwrap();
        assert_eq!(places, [1, 6, 3, 8, 0, 2, 4, 7, 9], "{}", name(engine));
        let extremes = engine.tensor(&[5_i32, i32::MIN, -1, i32::MAX, 0]).unwrap();
        let sorted = extremes.sort(0, false).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(sorted, [i32::MIN, -1, 0, 5, i32::MAX], "{}", name(engine));
    }
}

#[test]
fn places_in_sorted_rows() {
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(650 + seed);
            let (rows, length, count) = (1 + numbers.below(4), numbers.side(300), numbers.side(500));
            let whole = numbers.below(2) == 0;
            let make = |x: ArrayD<f32>| x.mapv(|x| if whole { (x * 8.0).round() } else { x });
            // One sorted row for all, or one for each.
            let shared = numbers.below(2) == 0;
            let sorted = make(numbers.array(&[if shared { 1 } else { rows }, length]));
            let sorted = oracle::rows(&wide(&sorted), 1, |row| {
                let mut row = row.to_vec();
                row.sort_by(f64::total_cmp);
                row
            });
            let mut values = make(numbers.array(&[rows, count]));
            // Both sides of equals differ, whatever the seed.
            if let (Some(value), Some(known)) = (values.first_mut(), sorted.get([0, length / 2])) {
                *value = *known as f32;
            }
            let dtype = if whole { DType::I32 } else { DType::F32 };
            let s = tensor(engine, &sorted.mapv(|x| x as f32)).cast(dtype);
            for right in [false, true] {
                let what = format!("{count} in {length}, right {right}, seed {seed}, on {}", name(engine));
                let expected = ArrayD::from_shape_fn(IxDyn(&[rows, count]), |at| {
                    let row = if shared { 0 } else { at[0] };
                    let value = f64::from(values[&at]);
                    let before = |x: f64| if right { x <= value } else { x < value };
                    (0..length).filter(|&place| before(sorted[[row, place]])).count() as f64
                });
                close(&s.searchsorted(tensor(engine, &values).cast(dtype), right), &expected, 0.0, &what);
            }
        }
    }
}

#[test]
fn medians_and_quantiles() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(670 + seed);
            let shape: Vec<usize> = (0..2).map(|_| 1 + numbers.below(90)).collect();
            let array = numbers.array(&shape);
            let (t, f) = (tensor(engine, &array), wide(&array));
            let q = [0.0, 0.25, 0.9, 1.0][seed as usize % 4];
            let of = |q: f64| {
                move |row: &[f64]| {
                    let mut row = row.to_vec();
                    row.sort_by(f64::total_cmp);
                    let place = q * (row.len() - 1) as f64;
                    let (low, high) = (row[place.floor() as usize], row[place.ceil() as usize]);
                    low + place.fract() * (high - low)
                }
            };
            let what = format!("{q} of {shape:?}, seed {seed}, on {}", name(engine));
            close(&t.median(Some(0), true), &oracle::reduce(&f, &[0], true, of(0.5)), 1e-6, &what);
            close(&t.quantile(q, Some(-1), false), &oracle::reduce(&f, &[1], false, of(q)), 1e-6, &what);
            close(&t.quantile(q, None, false), &oracle::reduce(&f, &[0, 1], false, of(q)), 1e-6, &what);
        }
        if ["cpu", "opencl"].contains(&&*engine.selected().device.backend) {
            let t = engine.tensor(&[1.0_f32, f32::NAN, 2.0]).unwrap();
            assert!(t.median(Some(0), false).eval().unwrap().item::<f32>().unwrap().is_nan(), "{}", name(engine));
        }
    }
}
