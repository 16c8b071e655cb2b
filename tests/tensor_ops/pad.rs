//! Padding of a number, and of what lies inside.

use cantus::ops::{Expr, Padding};
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, halves, name, of_halves, tensor, wide};

/// Returns the place that a place before or after an axis reads, step by step.
fn inside(place: isize, length: isize, with: Padding) -> Option<usize> {
    let mut place = place;
    while !(0..length).contains(&place) {
        place = match with {
            Padding::Edge => place.clamp(0, length - 1),
            Padding::Wrap => place + if place < 0 { length } else { -length },
            Padding::Reflect if length == 1 => 0,
            Padding::Reflect if place < 0 => -place,
            Padding::Reflect => 2 * (length - 1) - place,
            _ => return None,
        };
    }
    Some(place as usize)
}

#[test]
fn padded_in_every_way() {
    for engine in by_turns() {
        for seed in few(engine, 0..24) {
            let mut numbers = Numbers::new(1120 + seed);
            let with = [Padding::Constant(2.5), Padding::Edge, Padding::Reflect, Padding::Wrap][seed as usize % 4];
            // Of nothing only a number can be put around.
            let shape: Vec<usize> = match with {
                Padding::Constant(_) => numbers.shape(3, 11),
                _ => (0..3).map(|_| 1 + numbers.below(9)).collect(),
            };
            let array = numbers.array(&shape);
            let (x, f): (Expr, _) = if seed % 5 == 4 {
                (halves(engine, &array).expr(), of_halves(&array))
            } else {
                (tensor(engine, &array).expr(), wide(&array))
            };
            // Up to several times as wide as what is inside.
            let widths: Vec<(usize, usize)> = (0..3).map(|_| (numbers.below(12), numbers.below(5))).collect();
            let padded: Vec<usize> = shape.iter().zip(&widths).map(|(side, (a, b))| side + a + b).collect();
            let what = format!("{with:?} by {widths:?} around {shape:?}, seed {seed}, on {}", name(engine));
            let expected = ArrayD::from_shape_fn(IxDyn(&padded), |at| {
                let from =
                    |axis: usize| inside(at[axis] as isize - widths[axis].0 as isize, shape[axis] as isize, with);
                let from: Option<Vec<usize>> = (0..3).map(from).collect();
                from.map_or(2.5, |from| f[IxDyn(&from)])
            });
            close(&x.pad(&widths, with), &expected, 0.0, &what);
        }
    }
}
