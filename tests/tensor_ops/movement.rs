//! Views, assemblies, gathers, creation, random numbers.

use cantus::DType;
use cantus::ops::{Expr, arange, eye, full, linspace, rand, randn, random_bits};
use ndarray::{ArrayD, Axis, IxDyn, SliceInfoElem, concatenate};

use crate::{Numbers, close, engines, halves, name, of_halves, seeds, tensor, wide};

#[test]
fn views_of_views_of_expressions() {
    for engine in engines() {
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

#[test]
fn concatenation_padding_and_gathers() {
    for engine in engines() {
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

            let widths: Vec<(usize, usize)> = (0..3).map(|_| (numbers.below(4), numbers.below(4))).collect();
            let padded: Vec<usize> = arrays[0].shape().iter().zip(&widths).map(|(side, (a, b))| side + a + b).collect();
            let expected = ArrayD::from_shape_fn(IxDyn(&padded), |at| {
                let inner: Option<Vec<usize>> = (0..3)
                    .map(|axis| at[axis].checked_sub(widths[axis].0).filter(|&i| i < arrays[0].shape()[axis]))
                    .collect();
                inner.map_or(2.5, |inner| values[0][IxDyn(&inner)])
            });
            close(&parts[0].pad(&widths, 2.5), &expected, 0.0, &what);

            if arrays[0].is_empty() {
                continue;
            }
            let length = arrays[0].shape()[axis];
            let index: Vec<i32> = (0..7).map(|_| numbers.below(2 * length) as i32 - length as i32).collect();
            let taken = index.iter().map(|&i| (i + length as i32) as usize % length).collect::<Vec<_>>();
            let t = engine.tensor(&index).unwrap();
            close(&parts[0].take(&t, axis as isize), &values[0].select(Axis(axis), &taken), 0.0, &what);
            let mut wide_shape = arrays[0].shape().to_vec();
            wide_shape[axis] = 5;
            let count: usize = wide_shape.iter().product();
            let index: Vec<u32> = (0..count).map(|_| numbers.below(length) as u32).collect();
            let places = ArrayD::from_shape_vec(IxDyn(&wide_shape), index.clone()).unwrap();
            let expected = ArrayD::from_shape_fn(IxDyn(&wide_shape), |at| {
                let mut from: Vec<usize> = (0..3).map(|axis| at[axis]).collect();
                from[axis] = places[&at] as usize;
                values[0][IxDyn(&from)]
            });
            let t = engine.tensor_from(&index, &wide_shape).unwrap();
            // Of an expression as well, which is computed first.
            close(&parts[0].negate().gather(&t, axis as isize), &-expected, 0.0, &what);
        }
    }
}

#[test]
fn ranges_and_constants() {
    let row = |values: Vec<f64>| ArrayD::from_shape_vec(IxDyn(&[values.len()]), values).unwrap();
    for engine in engines() {
        let on = &name(engine);
        close(&arange(engine, 2.0, 11.0, 3.0, DType::I32), &row(vec![2.0, 5.0, 8.0]), 0.0, on);
        close(&arange(engine, 1.0, -1.0, -0.5, DType::F32), &row(vec![1.0, 0.5, 0.0, -0.5]), 1e-7, on);
        close(&arange(engine, 5.0, 5.0, 1.0, DType::U32), &row(vec![]), 0.0, on);
        close(&arange(engine, 0.0, 4.0, 1.0, DType::F16), &row(vec![0.0, 1.0, 2.0, 3.0]), 0.0, on);
        close(&linspace(engine, -1.0, 1.0, 5, DType::F32), &row(vec![-1.0, -0.5, 0.0, 0.5, 1.0]), 1e-7, on);
        close(&linspace(engine, 3.0, 9.0, 1, DType::F32), &row(vec![3.0]), 0.0, on);
        let diagonal = ArrayD::from_shape_fn(IxDyn(&[3, 5]), |at| if at[1] == at[0] + 1 { 1.0 } else { 0.0 });
        close(&eye(engine, 3, 5, 1, DType::F32), &diagonal, 0.0, on);
        let below = ArrayD::from_shape_fn(IxDyn(&[4, 3]), |at| if at[1] + 1 == at[0] { 1.0 } else { 0.0 });
        close(&eye(engine, 4, 3, -1, DType::I32), &below, 0.0, on);
        close(&full(engine, &[2, 3], -7.0, DType::I32), &ArrayD::from_elem(IxDyn(&[2, 3]), -7.0), 0.0, on);
        close(&full(engine, &[], 1.5, DType::F16), &ArrayD::from_elem(IxDyn(&[]), 1.5), 0.0, on);
    }
}

/// Philox 4x32-10 as its paper defines it, with 64-bit products.
fn philox(counter: u32, seed: u64) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (a, b) = (0xD251_1F53_u64 * u64::from(c[0]), 0xCD9E_8D57_u64 * u64::from(c[2]));
        c = [(b >> 32) as u32 ^ c[1] ^ key[0], b as u32, (a >> 32) as u32 ^ c[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

#[test]
fn random_numbers_are_the_same_everywhere() {
    // The published test vector of a counter and a key of zeros.
    assert_eq!(philox(0, 0), [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
    let seed = 0x0123_4567_89AB_CDEF;
    let count = 20_001;
    let bits: Vec<u32> = (0..count).map(|i| philox(i / 4, seed)[i as usize % 4]).collect();
    for engine in engines() {
        let on = name(engine);
        let got = random_bits(engine, &[count as usize], seed).eval().unwrap().to_vec::<u32>().unwrap();
        assert_eq!(got, bits, "{on}");
        let uniform = rand(engine, &[3, count as usize / 3], seed).eval().unwrap().to_vec::<f32>().unwrap();
        let expected: Vec<f32> = bits.iter().map(|bits| (bits >> 8) as f32 / (1 << 24) as f32).collect();
        assert_eq!(uniform, expected, "{on}");
        let normal = randn(engine, &[count as usize], seed).eval().unwrap().to_vec::<f32>().unwrap();
        for (i, &got) in normal.iter().enumerate() {
            let [a, b, ..] = philox(i as u32 / 2, seed).map(|bits| f64::from(bits >> 8));
            let radius = (-2.0 * ((a + 0.5) / 16_777_216.0).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * b / 16_777_216.0).sin_cos();
            let want = radius * if i % 2 == 1 { sine } else { cosine };
            assert!((f64::from(got) - want).abs() < 2e-5, "{i}: {got}, expected {want}, on {on}");
        }
        let mean = normal.iter().map(|&x| f64::from(x)).sum::<f64>() / f64::from(count);
        let square = normal.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }
}
