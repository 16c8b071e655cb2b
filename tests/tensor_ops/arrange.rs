//! Elements in another order, repeated, or in part.

use cantus::DType;
use cantus::ops::{Expr, meshgrid};
use ndarray::{ArrayD, Axis, IxDyn, stack};

use crate::{Numbers, by_turns, close, few, halves, name, of_halves, tensor, wide};

/// The elements that `from` names, place by place.
fn picked(of: &ArrayD<f64>, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> ArrayD<f64> {
    ArrayD::from_shape_fn(IxDyn(shape), |at| {
        let at: Vec<usize> = (0..shape.len()).map(|axis| at[axis]).collect();
        of[IxDyn(&from(&at))]
    })
}

#[test]
fn repeated_moved_and_turned() {
    for engine in by_turns() {
        for seed in few(engine, 0..24) {
            let mut numbers = Numbers::new(900 + seed);
            let shape = numbers.shape(3, 7);
            let array = numbers.array(&shape);
            let half = seed % 4 == 3;
            let (x, f): (Expr, _) = if half {
                (halves(engine, &array).expr(), of_halves(&array))
            } else {
                // Not only of what lies in memory as it is.
                (-tensor(engine, &array).permute(&[0, 2, 1]).permute(&[0, 2, 1]), -wide(&array))
            };
            let axis = numbers.below(3);
            let what = |op: &str| format!("{op} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));

            let times: Vec<usize> = (0..3).map(|_| numbers.below(4)).collect();
            let tiled: Vec<usize> = (0..3).map(|axis| shape[axis] * times[axis]).collect();
            let expected = picked(&f, &tiled, |at| (0..3).map(|axis| at[axis] % shape[axis]).collect());
            close(&x.tile(&times), &expected, 0.0, &what("tile"));

            let mut longer = shape.clone();
            longer[axis] *= times[0];
            let expected = picked(&f, &longer, |at| {
                let mut at = at.to_vec();
                at[axis] /= times[0];
                at
            });
            close(&x.repeat(times[0], axis as isize), &expected, 0.0, &what("repeat"));

            let shift = numbers.below(30) as isize - 15;
            let other = (axis + 1) % 3;
            let expected = picked(&f, &shape, |at| {
                let mut at = at.to_vec();
                at[axis] = (at[axis] as isize - shift).rem_euclid(shape[axis] as isize) as usize;
                at[other] = (at[other] as isize + shift).rem_euclid(shape[other] as isize) as usize;
                at
            });
            close(&x.roll(&[shift, -shift], &[axis as isize, other as isize]), &expected, 0.0, &what("roll"));

            let mut turned = f.clone();
            turned.invert_axis(Axis(axis));
            close(&x.flip(&[axis as isize]), &turned, 0.0, &what("flip"));
            (0..3).filter(|&other| other != axis).for_each(|axis| turned.invert_axis(Axis(axis)));
            close(&x.flip(&[]), &turned, 0.0, &what("flip of all"));

            let first = numbers.below(shape[axis] + 1);
            let parts = x.split(&[first, shape[axis] - first], axis as isize);
            let part = |range: std::ops::Range<usize>| f.slice_axis(Axis(axis), ndarray::Slice::from(range)).to_owned();
            close(&parts[0], &part(0..first), 0.0, &what("split"));
            close(&parts[1], &part(first..shape[axis]), 0.0, &what("split"));

            let both = x.stack(std::slice::from_ref(&x), axis as isize);
            close(&both, &stack(Axis(axis), &[f.view(), f.view()]).unwrap(), 0.0, &what("stack"));
        }
    }
}

#[test]
fn triangles_diagonals_and_windows() {
    for engine in by_turns() {
        for seed in few(engine, 0..20) {
            let mut numbers = Numbers::new(930 + seed);
            let shape = numbers.shape(3, 9);
            let array = numbers.array(&shape);
            let dtype = [DType::F32, DType::I32, DType::F16][seed as usize % 3];
            let f = wide(&array).mapv(f64::round);
            let x = tensor(engine, &array.mapv(f32::round)).cast(dtype);
            let offset = numbers.below(21) as isize - 10;
            let what = |op: &str| format!("{op} {offset} of {shape:?}, seed {seed}, on {}", name(engine));
            let kept = |keep: fn(isize, isize) -> bool| {
                ArrayD::from_shape_fn(IxDyn(&shape), |at| {
                    let distance = at[2] as isize - at[1] as isize;
                    if keep(distance, offset) { f[&at] } else { 0.0 }
                })
            };
            close(&x.tril(offset), &kept(|distance, offset| distance <= offset), 0.0, &what("tril"));
            close(&x.triu(offset), &kept(|distance, offset| distance >= offset), 0.0, &what("triu"));
            let (down, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
            let length = shape[1].saturating_sub(down).min(shape[2].saturating_sub(right));
            let diagonal = picked(&f, &[shape[0], length], |at| vec![at[0], at[1] + down, at[1] + right]);
            close(&x.diagonal(offset), &diagonal, 0.0, &what("diagonal"));
            let traces = ArrayD::from_shape_fn(IxDyn(&shape[..1]), |at| {
                (0..shape[1].min(shape[2])).map(|i| f[[at[0], i, i]]).sum()
            });
            close(&x.trace(), &traces, 0.0, &what("trace"));
            let axis = numbers.below(3);
            if shape[axis] > 0 {
                let (size, step) = (1 + numbers.below(shape[axis]), 1 + numbers.below(3));
                let mut windows = shape.clone();
                windows[axis] = (shape[axis] - size) / step + 1;
                windows.push(size);
                let expected = picked(&f, &windows, |at| {
                    let mut from = at[..3].to_vec();
                    from[axis] = at[axis] * step + at[3];
                    from
                });
                close(&x.unfold(axis as isize, size, step), &expected, 0.0, &what("unfold"));
            }
        }
    }
}

#[test]
fn classes_grids_and_products() {
    for engine in by_turns() {
        let on = &name(engine);
        let classes = engine.tensor_from(&[2_i32, -1, 0, 7], &[2, 2]).unwrap();
        let mut expected = ArrayD::zeros(IxDyn(&[2, 2, 3]));
        expected[[0, 0, 2]] = 1.0;
        expected[[1, 0, 0]] = 1.0;
        for dtype in [DType::F32, DType::F16, DType::I32, DType::U32] {
            close(&classes.one_hot(3, dtype), &expected, 0.0, on);
        }
        let sides = [3, 1, 4];
        let axes: Vec<Expr> =
            sides.iter().map(|&side| cantus::ops::arange(engine, 0.0, side as f64, 1.0, DType::F32)).collect();
        for (axis, grid) in meshgrid(&axes).iter().enumerate() {
            close(grid, &ArrayD::from_shape_fn(IxDyn(&sides), |at| at[axis] as f64), 0.0, on);
        }
        let products = ArrayD::from_shape_fn(IxDyn(&[3, 4]), |at| (at[0] * at[1]) as f64);
        close(&axes[0].outer(&axes[2]), &products, 0.0, on);
    }
}
