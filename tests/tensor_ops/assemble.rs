//! Concatenation.

use cantus::ops::Expr;
use ndarray::{ArrayD, Axis, concatenate};

use crate::{Numbers, by_turns, close, halves, name, of_halves, seeds, tensor, wide};

#[test]
fn concatenation() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(1100 + seed);
            let shape = numbers.shape(3, 11);
            let axis = numbers.below(3);
            let half = seed % 4 == 3;
            let arrays: Vec<ArrayD<f32>> = (0..3)
                .map(|_| {
                    let mut shape = shape.clone();
                    shape[axis] = numbers.side(9);
                    numbers.array(&shape)
                })
                .collect();
            let make = |array: &ArrayD<f32>| if half { halves(engine, array) } else { tensor(engine, array) };
            let value = |array: &ArrayD<f32>| if half { of_halves(array) } else { wide(array) };
            let what = format!("axis {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let parts: Vec<Expr> = arrays.iter().map(|array| make(array).expr()).collect();
            let values: Vec<ArrayD<f64>> = arrays.iter().map(value).collect();
            let views: Vec<_> = values.iter().map(|array| array.view()).collect();
            close(&parts[0].concat(&parts[1..], axis as isize), &concatenate(Axis(axis), &views).unwrap(), 0.0, &what);
        }
    }
}
