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

/// Chains over rolls of long and short axes, their views and reductions, in dtypes of one, two and four bytes.
#[test]
fn chains_over_rolls() {
    for engine in by_turns() {
        for seed in few(engine, 0..32) {
            let mut numbers = Numbers::new(7000 + seed);
            let shape = match seed % 4 {
                0 => numbers.shape(3, 7),
                1 => vec![1 + numbers.below(40), 64 + numbers.below(200)],
                2 => vec![1 + numbers.below(4), 2 + numbers.below(90), 65 + numbers.below(70)],
                _ => vec![1 + numbers.below(3000)],
            };
            let dtype = [DType::F32, DType::U8, DType::I8, DType::I32, DType::F16, DType::Bool][seed as usize % 6];
            let array =
                numbers.array(&shape).mapv(|x| if dtype == DType::Bool { f32::from(x > 0.0) } else { x.abs() * 7.0 });
            let f = wide(&array).mapv(f64::trunc);
            let x = tensor(engine, &array.mapv(f32::trunc)).cast(dtype);
            let x = if seed % 3 == 0 { x.eval().unwrap().expr() } else { x };
            let axis = numbers.below(shape.len());
            let (by, back) =
                (numbers.below(2 * shape[axis]) as isize - shape[axis] as isize, numbers.below(3) as isize);
            let what = |op: &str| {
                format!("{op} of {shape:?} as {dtype} rolled by {by} along {axis}, seed {seed}, on {}", name(engine))
            };
            let rolled = |f: &ArrayD<f64>, by: isize, axis: usize| {
                picked(f, &shape, |at| {
                    let mut at = at.to_vec();
                    at[axis] = (at[axis] as isize - by).rem_euclid(shape[axis] as isize) as usize;
                    at
                })
            };
            let roll = |x: &Expr, by: isize, axis: usize| x.roll(&[by], &[axis as isize]);
            let last = shape.len() - 1;
            let (a, b) = (roll(&x, by, axis), roll(&x, -back, last));
            let (fa, fb) = (rolled(&f, by, axis), rolled(&f, -back, last));
            close(&a, &fa, 0.0, &what("alone"));
            // In float32, which all of them fit.
            let wide_of = |x: &Expr| x.cast(DType::F32);
            let sum = wide_of(&a) + wide_of(&b) * 2.0 - wide_of(&x);
            let known = &fa + &(&fb * 2.0) - &f;
            close(&sum, &known, 0.0, &what("a sum"));
            close(&roll(&sum, by, last), &rolled(&known, by, last), 0.0, &what("a sum's roll"));
            let both = if dtype == DType::Bool { a.maximum(&b) } else { a.maximum(&b).minimum(&x) };
            let most = ndarray::Zip::from(&fa).and(&fb).map_collect(|a, b| a.max(*b));
            let known_both = if dtype == DType::Bool {
                most
            } else {
                ndarray::Zip::from(&most).and(&f).map_collect(|a, b| a.min(*b))
            };
            close(&both, &known_both, 0.0, &what("the greatest"));

            let totals = known.sum_axis(Axis(axis));
            close(&sum.sum(&[axis as isize], false), &totals, 1e-6, &what("a total"));
            // A part of each axis, every second element of the last one.
            let ranges: Vec<_> = shape.iter().map(|&side| side / 3..side).collect();
            let mut steps = vec![1; shape.len()];
            steps[last] = 2;
            let mut part = known.clone();
            for (axis, range) in ranges.iter().enumerate() {
                let step = steps[axis] as isize;
                part = part.slice_axis(Axis(axis), ndarray::Slice::new(range.start as isize, None, step)).to_owned();
            }
            close(&(sum.slice_steps(&ranges, &steps) * 1.0), &part, 0.0, &what("a part"));
            let part_of = |x: &Expr| wide_of(&x.slice_steps(&ranges, &steps));
            let parts = part_of(&a) + part_of(&b) * 2.0 - part_of(&x);
            close(&parts, &part, 0.0, &what("a sum of parts"));
            // Another order of axes, and one place of the axis.
            let order: Vec<isize> = (0..shape.len() as isize).rev().collect();
            let turned = wide_of(&a.permute(&order)) * 3.0 + wide_of(&b.permute(&order));
            let known_turned = (&fa * 3.0 + &fb).reversed_axes();
            close(&turned, &known_turned.as_standard_layout().to_owned(), 0.0, &what("turned"));
            let place = numbers.below(shape[axis]);
            let mut ranges: Vec<_> = shape.iter().map(|&side| 0..side).collect();
            ranges[axis] = place..place + 1;
            let row = wide_of(&a.slice(&ranges).squeeze(axis as isize)) + 1.0;
            close(&row, &(fa.index_axis(Axis(axis), place).to_owned() + 1.0), 0.0, &what("a row"));
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
