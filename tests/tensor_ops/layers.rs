//! Layers beside those of `networks`: transposed convolutions of any number of axes, padding that keeps sizes, tables, and a cache of attention.

use cantus::ops::{Attention, Expr, KeyValueCache, Window};
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, name, tensor, wide};

/// Each element adds the weights, times itself, to the result.
fn spread(x: &ArrayD<f64>, w: &ArrayD<f64>, sizes: [&[usize]; 4], groups: usize) -> ArrayD<f64> {
    let [stride, padding, dilation, extra] = sizes;
    let axes = x.ndim() - 2;
    let per_group = x.shape()[1] / groups;
    let outputs = w.shape()[1];
    let mut shape = vec![x.shape()[0], outputs * groups];
    for axis in 0..axes {
        let reach = dilation[axis] * (w.shape()[axis + 2] - 1);
        shape.push((x.shape()[axis + 2] - 1) * stride[axis] + reach + extra[axis] + 1 - 2 * padding[axis]);
    }
    let mut result = ArrayD::zeros(IxDyn(&shape));
    for (at, value) in x.indexed_iter() {
        for (of, weight) in w.indexed_iter().filter(|(of, _)| of[0] == at[1]) {
            let mut to = vec![at[0], at[1] / per_group * outputs + of[1]];
            for axis in 0..axes {
                let place = at[axis + 2] * stride[axis] + of[axis + 2] * dilation[axis];
                to.extend(place.checked_sub(padding[axis]).filter(|&place| place < shape[axis + 2]));
            }
            if to.len() == shape.len() {
                result[IxDyn(&to)] += value * weight;
            }
        }
    }
    result
}

#[test]
fn transposed_convolutions_of_signals_and_volumes() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(2700 + seed);
            let groups = 1 + numbers.below(2);
            let (inputs, outputs) = (groups * (1 + numbers.below(2)), 1 + numbers.below(2));
            let axes = if seed % 2 == 0 { 1 } else { 3 };
            let mut list =
                |least: usize, most: usize| -> [usize; 3] { [(); 3].map(|()| least + numbers.below(most + 1 - least)) };
            let (sides, kernel, stride, dilation) = (list(2, 4), list(1, 3), list(1, 3), list(1, 2));
            let extra = [0, 1, 2].map(|axis| stride[axis] - 1);
            let padding = [0, 1, 2].map(|axis| usize::from(kernel[axis] == 3));
            let with = |first: [usize; 2], list: [usize; 3]| [&first[..], &list[..axes]].concat();
            let x = numbers.array(&with([2, inputs], sides));
            let w = numbers.array(&with([inputs, outputs], kernel));
            let sizes = [&stride[..], &padding, &dilation, &extra];
            let expected = spread(&wide(&x), &wide(&w), sizes, groups);
            let (t, v) = (tensor(engine, &x), tensor(engine, &w));
            let got = if axes == 1 {
                t.conv_transpose1d(v, stride[0], padding[0], dilation[0], extra[0], groups)
            } else {
                t.conv_transpose3d(v, stride, padding, dilation, extra, groups)
            };
            let what = format!("{:?} {:?} {sizes:?}, seed {seed}, on {}", x.shape(), w.shape(), name(engine));
            close(&got, &expected, 1e-4, &what);
        }
    }
}

#[test]
fn padding_keeps_sizes() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(2750 + seed);
            let (side, kernel, stride, dilation) =
                (1 + numbers.below(9), 1 + numbers.below(4), 1 + numbers.below(3), 1 + numbers.below(2));
            let (x, w) = (numbers.array(&[1, 1, side, 3]), numbers.array(&[1, 1, kernel, 1]));
            // Windows that begin `before` rows above the image, and see nothing beyond it.
            let count = side.div_ceil(stride);
            let zeros = ((count - 1) * stride + dilation * (kernel - 1) + 1).saturating_sub(side);
            let before = zeros / 2;
            let expected = ArrayD::from_shape_fn(IxDyn(&[1, 1, count, 3]), |at| {
                (0..kernel)
                    .filter_map(|tap| {
                        let row = (at[2] * stride + tap * dilation).checked_sub(before).filter(|&row| row < side)?;
                        Some(f64::from(x[[0, 0, row, at[3]]]) * f64::from(w[[0, 0, tap, 0]]))
                    })
                    .sum()
            });
            let padded = tensor(engine, &x).pad_same(&[kernel, 1], &[stride, 1], &[dilation, 1]);
            let window = Window::new([stride, 1], [0, 0], [dilation, 1]);
            let what = format!("{side} {kernel} {stride} {dilation}, seed {seed}, on {}", name(engine));
            close(&padded.conv2d(tensor(engine, &w), window, 1), &expected, 1e-5, &what);
        }
    }
}

#[test]
fn tables_have_rows() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2780);
        let table = numbers.array(&[7, 5]);
        let words = [3_i32, 0, 6, -1, 3, 2];
        let expected = ArrayD::from_shape_fn(IxDyn(&[2, 3, 5]), |at| {
            let word = words[3 * at[0] + at[1]];
            f64::from(table[[usize::try_from(word).unwrap_or(6), at[2]]])
        });
        let index = engine.tensor_from(&words, &[2, 3]).unwrap();
        close(&index.embedding(tensor(engine, &table)), &expected, 0.0, &name(engine));
    }
}

#[test]
fn a_cache_grows_and_keeps_what_it_has() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2800);
        let (keys, values) = (numbers.array(&[2, 3, 40, 6]), numbers.array(&[2, 3, 40, 5]));
        let (k, v) = (tensor(engine, &keys).expr(), tensor(engine, &values).expr());
        let part = |x: &Expr, from: usize, to: usize| x.slice(&[0..2, 0..3, from..to]);
        let mut cache = KeyValueCache::new(engine, &[2, 3], [6, 5], 4).unwrap();
        assert!(cache.is_empty());
        let early = {
            cache.append(part(&k, 0, 3), part(&v, 0, 3)).unwrap();
            cache.keys()
        };
        let mut length = 3;
        // Within the room, over it by one, by far, and by nothing.
        for step in [1, 1, 20, 0, 15] {
            cache.append(part(&k, length, length + step), part(&v, length, length + step) * 1.0).unwrap();
            length += step;
            assert_eq!(cache.len(), length);
            let first =
                |x: &ArrayD<f32>| wide(x).slice_axis(ndarray::Axis(2), ndarray::Slice::from(..length)).to_owned();
            close(&cache.keys(), &first(&keys), 0.0, &name(engine));
            close(&cache.values(), &first(&values), 0.0, &name(engine));
        }
        let three = wide(&keys).slice_axis(ndarray::Axis(2), ndarray::Slice::from(..3)).to_owned();
        close(&early, &three, 0.0, &name(engine));
        // As if all had been there at once.
        let query = tensor(engine, &numbers.array(&[2, 3, 2, 6]));
        let whole = query.scaled_dot_product_attention(&k, &v, &Attention::new().causal()).eval().unwrap();
        let whole = ArrayD::from_shape_vec(IxDyn(whole.shape()), whole.to_vec::<f32>().unwrap()).unwrap();
        let got = query.scaled_dot_product_attention(cache.keys(), cache.values(), &Attention::new().causal());
        close(&got, &wide(&whole), 1e-6, &name(engine));
        cache.truncate(2);
        cache.append(part(&k, 10, 11), part(&v, 10, 11)).unwrap();
        let mut expected = three;
        expected
            .slice_axis_mut(ndarray::Axis(2), ndarray::Slice::from(2..3))
            .assign(&wide(&keys).slice_axis(ndarray::Axis(2), ndarray::Slice::from(10..11)));
        close(&cache.keys(), &expected, 0.0, &name(engine));
    }
}

#[test]
fn mistakes() {
    let engine = cantus::Engine::builder().backend("cpu").build().unwrap();
    let zeros = |shape: &[usize]| engine.zeros::<f32>(shape).unwrap().expr();
    let whole = engine.zeros::<i32>(&[3]).unwrap();
    let cases = [
        (zeros(&[1, 1, 3]).conv_transpose1d(zeros(&[2, 1, 2]), 1, 0, 1, 0, 1), "the weights are for 2"),
        (zeros(&[1, 1, 3]).conv_transpose1d(zeros(&[1, 1, 2]), 0, 0, 1, 0, 1), "at least 1"),
        (zeros(&[1, 3]).conv_transpose1d(zeros(&[1, 1, 2]), 1, 0, 1, 0, 1), "it needs 3 axes"),
        (zeros(&[1, 1, 3]).conv_transpose3d(zeros(&[1, 1, 2]), [1; 3], [0; 3], [1; 3], [0; 3], 1), "it needs 5 axes"),
        (zeros(&[1, 1, 3]).pad_same(&[2], &[1, 1], &[1]), "one number per padded axis"),
        (zeros(&[3]).pad_same(&[2, 2], &[1, 1], &[1, 1]), "one number per padded axis"),
        (zeros(&[3]).pad_same(&[0], &[1], &[1]), "at least 1"),
        (whole.embedding(zeros(&[3])), "two axes"),
        (zeros(&[3]).embedding(zeros(&[3, 2])), "i32, u32 or a narrower"),
    ];
    for (expr, expected) in cases {
        let message = expr.eval().expect_err(expected).to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
    let new = |heads: &[usize], widths| KeyValueCache::new(&engine, heads, widths, 1);
    assert!(new(&[], [1, 1]).unwrap_err().to_string().contains("one head"));
    assert!(new(&[2], [0, 1]).unwrap_err().to_string().contains("one element"));
    let mut cache = new(&[2], [3, 4]).unwrap();
    let mut told = |keys: Expr, values: Expr, expected: &str| {
        let message = cache.append(keys, values).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        assert!(cache.is_empty());
    };
    told(zeros(&[2, 1, 4]), zeros(&[2, 1, 4]), "the cache has [2, 1, 3]");
    told(zeros(&[2, 1, 3]), zeros(&[2, 2, 4]), "the same number of positions");
    told(zeros(&[2, 1, 3]).cast(cantus::DType::F16), zeros(&[2, 1, 4]), "cast first");
    told(zeros(&[1, 3]), zeros(&[2, 1, 4]), "the cache has");
}
