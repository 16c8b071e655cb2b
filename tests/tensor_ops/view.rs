//! Views: parts, axes in another order, shapes.

use ndarray::{Axis, IxDyn, SliceInfoElem};

use crate::{Numbers, by_turns, close, halves, name, of_halves, seeds, tensor, wide};

#[test]
fn views_of_views_of_expressions() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..40) {
            let mut numbers = Numbers::new(1000 + seed);
            let mut shape = numbers.shape(3, 12);
            let x = numbers.array(&shape);
            let half = seed % 4 == 3;
            let (t, mut f) = if half { (halves(engine, &x), of_halves(&x)) } else { (tensor(engine, &x), wide(&x)) };
            let mut expr = t.expr();
            let mut steps = String::new();
            for _ in 0..4 {
                match numbers.below(5) {
                    0 => {
                        let mut order: Vec<usize> = (0..shape.len()).collect();
                        (0..shape.len()).for_each(|i| order.swap(i, numbers.below(i + 1)));
                        steps += &format!(" permute {order:?}");
                        expr = expr.permute(&order.iter().map(|&axis| axis as isize).collect::<Vec<_>>());
                        f = f.permuted_axes(IxDyn(&order));
                    }
                    1 => {
                        let count: usize = shape.iter().product();
                        let to = if count.is_multiple_of(2) { vec![2, count / 2] } else { vec![count, 1] };
                        steps += &format!(" reshape {to:?}");
                        expr = expr.reshape(&to);
                        f = f.as_standard_layout().into_owned().into_shape_with_order(IxDyn(&to)).unwrap();
                    }
                    2 => {
                        let ranges: Vec<_> = shape
                            .iter()
                            .map(|&side| {
                                let start = numbers.below(side + 1);
                                start..start + numbers.below(side - start + 1)
                            })
                            .collect();
                        let by: Vec<usize> = shape.iter().map(|_| 1 + numbers.below(2)).collect();
                        steps += &format!(" slice {ranges:?} by {by:?}");
                        expr = expr.slice_steps(&ranges, &by);
                        let parts: Vec<SliceInfoElem> = ranges
                            .iter()
                            .zip(&by)
                            .map(|(range, &by)| SliceInfoElem::Slice {
                                start: range.start as isize,
                                end: Some(range.end as isize),
                                step: by as isize,
                            })
                            .collect();
                        f = f.slice(&parts[..]).to_owned();
                    }
                    3 => {
                        steps += " negate";
                        expr = expr.negate();
                        f = -f;
                    }
                    _ => {
                        steps += " expand";
                        let axis = numbers.below(shape.len() + 1);
                        expr = expr.expand(axis as isize);
                        f = f.insert_axis(Axis(axis));
                    }
                }
                shape = f.shape().to_vec();
            }
            close(&expr, &f, 0.0, &format!("{:?}{steps}, seed {seed}, on {}", x.shape(), name(engine)));
        }
    }
}
