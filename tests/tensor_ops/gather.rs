//! Elements by index.

use ndarray::{ArrayD, Axis, IxDyn};

use crate::{Numbers, by_turns, close, halves, name, of_halves, seeds, tensor, wide};

#[test]
fn gathers_along_any_axis() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(1150 + seed);
            let shape = numbers.shape(3, 11);
            let axis = numbers.below(3);
            let array = numbers.array(&shape);
            let half = seed % 4 == 3;
            let what = format!("axis {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let (part, values) = if half {
                (halves(engine, &array).expr(), of_halves(&array))
            } else {
                (tensor(engine, &array).expr(), wide(&array))
            };
            if array.is_empty() {
                continue;
            }
            let length = array.shape()[axis];
            let index: Vec<i32> = (0..7).map(|_| numbers.below(2 * length) as i32 - length as i32).collect();
            let taken = index.iter().map(|&i| (i + length as i32) as usize % length).collect::<Vec<_>>();
            let t = engine.tensor(&index).unwrap();
            close(&part.take(&t, axis as isize), &values.select(Axis(axis), &taken), 0.0, &what);
            let mut wide_shape = array.shape().to_vec();
            wide_shape[axis] = 5;
            let count: usize = wide_shape.iter().product();
            let index: Vec<u32> = (0..count).map(|_| numbers.below(length) as u32).collect();
            let places = ArrayD::from_shape_vec(IxDyn(&wide_shape), index.clone()).unwrap();
            let expected = ArrayD::from_shape_fn(IxDyn(&wide_shape), |at| {
                let mut from: Vec<usize> = (0..3).map(|axis| at[axis]).collect();
                from[axis] = places[&at] as usize;
                values[IxDyn(&from)]
            });
            let t = engine.tensor_from(&index, &wide_shape).unwrap();
            // Of an expression as well, which is computed first.
            close(&part.negate().gather(&t, axis as isize), &-expected, 0.0, &what);
        }
    }
}
