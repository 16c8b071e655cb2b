//! Layers and losses of networks against their definitions in float64.

use cantus::DType;
use cantus::ops::{Attention, Expr, RopePairs, Window};
use ndarray::{ArrayD, Axis, IxDyn};

use crate::oracle::{self, Taps};
use crate::{Numbers, by_turns, close, engines, few, halves, name, of_halves, tensor, wide};

#[test]
fn channels_are_normalised() {
    for engine in by_turns() {
        for seed in few(engine, 0..10) {
            let mut numbers = Numbers::new(1500 + seed);
            let groups = 1 + numbers.below(3);
            let channels = groups * (1 + numbers.below(3));
            let shape = [1 + numbers.below(3), channels, 1 + numbers.below(9), 2 + numbers.below(9)];
            let array = numbers.array(&shape);
            let numbers_of = |numbers: &mut Numbers| numbers.array(&[channels]);
            let (gain, bias, mean) = (numbers_of(&mut numbers), numbers_of(&mut numbers), numbers_of(&mut numbers));
            let variance = mean.mapv(|x| x.abs() + 0.1);
            let f = wide(&array);
            let normalised = |groups: usize| {
                let per = channels / groups;
                ArrayD::from_shape_fn(IxDyn(&shape), |at| {
                    let group = at[1] / per;
                    let part = f.index_axis(Axis(0), at[0]);
                    let part = part.slice_axis(Axis(0), ndarray::Slice::from(group * per..(group + 1) * per));
                    let count = part.len() as f64;
                    let mean = part.sum() / count;
                    let variance = part.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                    (f[&at] - mean) / (variance + 1e-5).sqrt() * f64::from(gain[[at[1]]]) + f64::from(bias[[at[1]]])
                })
            };
            let what = format!("{groups} groups of {shape:?}, seed {seed}, on {}", name(engine));
            let x = tensor(engine, &array);
            let (g, b) = (tensor(engine, &gain), tensor(engine, &bias));
            close(&x.group_norm(groups, &g, &b, 1e-5), &normalised(groups), 3e-5, &what);
            close(&x.instance_norm(&g, &b, 1e-5), &normalised(channels), 3e-5, &what);
            let expected = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
                let of = |array: &ArrayD<f32>| f64::from(array[[at[1]]]);
                (f[&at] - of(&mean)) / (of(&variance) + 1e-3).sqrt() * of(&gain) + of(&bias)
            });
            let got = x.batch_norm(tensor(engine, &mean), tensor(engine, &variance), &g, &b, 1e-3);
            close(&got, &expected, 3e-5, &what);
        }
    }
}

#[test]
fn convolutions_of_signals_and_volumes() {
    for engine in by_turns() {
        for seed in few(engine, 0..10) {
            let mut numbers = Numbers::new(1530 + seed);
            let groups = 1 + numbers.below(2);
            let (inputs, outputs) = (groups * (1 + numbers.below(2)), groups * (1 + numbers.below(3)));
            let (stride, padding, dilation) = (1 + numbers.below(2), numbers.below(3), 1 + numbers.below(2));
            let what = |op: &str| {
                format!(
                    "{op}, {groups} groups, {inputs} to {outputs} channels, {stride} {padding} {dilation}, seed {seed}, on {}",
                    name(engine)
                )
            };
            let (batch, length, taps) = (1 + numbers.below(2), 6 + numbers.below(20), 1 + numbers.below(3));
            let x = numbers.array(&[batch, inputs, 1, length]);
            let w = numbers.array(&[outputs, inputs / groups, 1, taps]);
            let window =
                Taps { kernel: [1, taps], stride: [1, stride], padding: [0, padding], dilation: [1, dilation] };
            let expected = oracle::conv2d(&wide(&x), &wide(&w), window, groups).remove_axis(Axis(2));
            let got =
                tensor(engine, &x).squeeze(2).conv1d(tensor(engine, &w).squeeze(2), stride, padding, dilation, groups);
            close(&got, &expected, 1e-4, &what("conv1d"));

            // A volume by its definition: planes of images.
            let (depth, planes, side) = (5 + numbers.below(3), 1 + numbers.below(2), 5 + numbers.below(3));
            let x = numbers.array(&[batch, inputs, depth, side, side]);
            let w = numbers.array(&[outputs, inputs / groups, planes, taps, 2]);
            let (fx, fw) = (wide(&x), wide(&w));
            let flat = Taps { kernel: [taps, 2], stride: [1, stride], padding: [padding, 1], dilation: [dilation, 1] };
            let deep =
                Taps { kernel: [planes, 1], stride: [stride, 1], padding: [padding, 0], dilation: [dilation, 1] };
            let results = deep.output([depth, 1])[0];
            let [height, width] = flat.output([side, side]);
            let mut expected = ArrayD::zeros(IxDyn(&[batch, outputs, results, height, width]));
            for to in 0..results {
                for tap in 0..planes {
                    if let Some(from) = deep.from(0, to, tap, depth) {
                        let image = fx.index_axis(Axis(2), from).to_owned();
                        let part = oracle::conv2d(&image, &fw.index_axis(Axis(2), tap).to_owned(), flat, groups);
                        let mut plane = expected.index_axis_mut(Axis(2), to);
                        plane += &part;
                    }
                }
            }
            let got = tensor(engine, &x).conv3d(
                tensor(engine, &w),
                [stride, 1, stride],
                [padding, padding, 1],
                [dilation, dilation, 1],
                groups,
            );
            close(&got, &expected, 1e-4, &what("conv3d"));
        }
    }
}

#[test]
fn transposed_convolutions_spread_each_pixel() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(1560 + seed);
            let groups = 1 + numbers.below(2);
            let (inputs, outputs) = (groups * (1 + numbers.below(2)), 1 + numbers.below(3));
            let shape = [1 + numbers.below(2), inputs, 2 + numbers.below(5), 2 + numbers.below(5)];
            let kernel = [1 + numbers.below(3), 1 + numbers.below(3)];
            let (stride, dilation) = ([1 + numbers.below(3), 1 + numbers.below(2)], [1 + numbers.below(2), 1]);
            let padding = [numbers.below(2), numbers.below(2)];
            let extra = [0, 1].map(|axis| numbers.below(stride[axis].max(dilation[axis])));
            let side = |axis: usize| {
                ((shape[axis + 2] - 1) * stride[axis] + dilation[axis] * (kernel[axis] - 1) + extra[axis] + 1) as isize
                    - 2 * padding[axis] as isize
            };
            if side(0) < 1 || side(1) < 1 {
                continue;
            }
            let x = numbers.array(&shape);
            let w = numbers.array(&[inputs, outputs, kernel[0], kernel[1]]);
            let result = [shape[0], outputs * groups, side(0) as usize, side(1) as usize];
            let mut expected: ArrayD<f64> = ArrayD::zeros(IxDyn(&result));
            for (at, &value) in x.indexed_iter() {
                let group = at[1] / (inputs / groups);
                for (of, &weight) in w.indexed_iter().filter(|(of, _)| of[0] == at[1]) {
                    let place = |axis: usize| {
                        let to =
                            (at[axis + 2] * stride[axis] + of[axis + 2] * dilation[axis]).checked_sub(padding[axis])?;
                        (to < result[axis + 2]).then_some(to)
                    };
                    if let (Some(y), Some(x)) = (place(0), place(1)) {
                        expected[[at[0], group * outputs + of[1], y, x]] += f64::from(value) * f64::from(weight);
                    }
                }
            }
            let what = format!(
                "{shape:?}, {kernel:?}, {stride:?} {padding:?} {dilation:?} {extra:?}, seed {seed}, on {}",
                name(engine)
            );
            let window = Window::new(stride, padding, dilation);
            let got = tensor(engine, &x).conv_transpose2d(tensor(engine, &w), window, extra, groups);
            close(&got, &expected, 1e-4, &what);
        }
    }
}

#[test]
fn pooled_to_a_size() {
    for engine in by_turns() {
        for seed in few(engine, 0..10) {
            let mut numbers = Numbers::new(1590 + seed);
            let shape = [1 + numbers.below(2), 1 + numbers.below(2), 1 + numbers.below(20), 1 + numbers.below(20)];
            let size = [1 + numbers.below(25), 1 + numbers.below(9)];
            let array = numbers.array(&shape);
            let f = wide(&array);
            let of = |pool: fn(&[f64]) -> f64| {
                ArrayD::from_shape_fn(IxDyn(&[shape[0], shape[1], size[0], size[1]]), |at| {
                    let part = |axis: usize| {
                        let (length, count, i) = (shape[axis + 2], size[axis], at[axis + 2]);
                        i * length / count..((i + 1) * length).div_ceil(count)
                    };
                    let values: Vec<f64> = part(0)
                        .flat_map(|y| part(1).map(move |x| (y, x)))
                        .map(|(y, x)| f[[at[0], at[1], y, x]])
                        .collect();
                    pool(&values)
                })
            };
            let what = format!("{shape:?} to {size:?}, seed {seed}, on {}", name(engine));
            let x = tensor(engine, &array);
            close(
                &x.adaptive_avg_pool2d(size),
                &of(|values| values.iter().sum::<f64>() / values.len() as f64),
                1e-5,
                &what,
            );
            close(
                &x.adaptive_max_pool2d(size),
                &of(|values| values.iter().copied().fold(f64::MIN, f64::max)),
                0.0,
                &what,
            );
        }
    }
}

#[test]
fn attention_is_the_softmax_of_products() {
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(1620 + seed);
            let (batch, groups, shared) = (1 + numbers.below(2), 1 + numbers.below(2), 1 + numbers.below(3));
            let heads = groups * shared;
            let causal = numbers.below(2) == 0;
            // Few are answered one by one, many by tiles; what is too wide for tiles one by one again.
            let queries = 1 + numbers.below([9, 40][seed as usize % 2]);
            let keys = if causal { queries + numbers.below(150) } else { 1 + numbers.below(150) };
            let most = [70, 70, 150][seed as usize % 3];
            let (depth, width) = (1 + numbers.below(most), 1 + numbers.below(most));
            let half = seed % 5 == 4;
            let arrays = [[batch, heads, queries, depth], [batch, groups, keys, depth], [batch, groups, keys, width]]
                .map(|shape| numbers.array(&shape));
            let masks = numbers.below(3);
            let mask = numbers.array(&[heads, queries, keys]);
            let make =
                |array: &ArrayD<f32>| if half { halves(engine, array).expr() } else { tensor(engine, array).expr() };
            let [q, k, v] = arrays.each_ref().map(|array| if half { of_halves(array) } else { wide(array) });
            let rows = batch * heads * queries;
            let weights: Vec<Vec<f64>> = (0..rows)
                .map(|row| {
                    let (b, h, i) = (row / queries / heads, row / queries % heads, row % queries);
                    let score = |j: usize| {
                        let product: f64 = (0..depth).map(|d| q[[b, h, i, d]] * k[[b, h / shared, j, d]]).sum();
                        let seen = !causal || j + queries <= keys + i;
                        let bias = match masks {
                            1 if mask[[h, i, j]] < -1.0 => f64::NEG_INFINITY,
                            2 => f64::from(mask[[h, i, j]]),
                            _ => 0.0,
                        };
                        if seen { product / (depth as f64).sqrt() + bias } else { f64::NEG_INFINITY }
                    };
                    let scores: Vec<f64> = (0..keys).map(score).collect();
                    // Who sees no key gets 0.
                    let none = scores.iter().all(|score| *score == f64::NEG_INFINITY);
                    if none { vec![0.0; keys] } else { oracle::softmax(&scores) }
                })
                .collect();
            let expected = ArrayD::from_shape_fn(IxDyn(&[batch, heads, queries, width]), |at| {
                let (b, h, i) = (at[0], at[1], at[2]);
                let weights = &weights[(b * heads + h) * queries + i];
                weights.iter().enumerate().map(|(j, weight)| weight * v[[b, h / shared, j, at[3]]]).sum()
            });
            let mut attention = Attention::new();
            if causal {
                attention = attention.causal();
            }
            match masks {
                1 => attention = attention.masked(tensor(engine, &mask).greater_equal(-1.0)),
                2 => attention = attention.masked(tensor(engine, &mask)),
                _ => {}
            }
            let what = format!(
                "{heads} heads of {groups}, {queries} to {keys} of {depth} and {width}, causal {causal}, mask {masks}, seed {seed}, on {}",
                name(engine)
            );
            let [q, k, v] = arrays.each_ref().map(make);
            close(
                &q.scaled_dot_product_attention(&k, &v, &attention),
                &expected,
                if half { 3e-3 } else { 2e-5 },
                &what,
            );
        }
    }
}

#[test]
fn positions_turn_pairs() {
    for engine in by_turns() {
        for seed in few(engine, 0..8) {
            let mut numbers = Numbers::new(1650 + seed);
            let shape = [1 + numbers.below(3), 1 + numbers.below(9), 2 * (1 + numbers.below(20))];
            let pairs = [RopePairs::Halves, RopePairs::Interleaved][seed as usize % 2];
            let array = numbers.array(&shape);
            let positions: Vec<u32> = (0..shape[1]).map(|_| numbers.below(2000) as u32).collect();
            let f = wide(&array);
            let half = shape[2] / 2;
            let expected = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
                let (pair, other, sign) = match pairs {
                    RopePairs::Interleaved => (at[2] / 2, at[2] ^ 1, if at[2] % 2 == 0 { -1.0 } else { 1.0 }),
                    _ if at[2] < half => (at[2], at[2] + half, -1.0),
                    _ => (at[2] - half, at[2] - half, 1.0),
                };
                let angle = f64::from(positions[at[1]]) * 10_000_f64.powf(-(pair as f64) / half as f64);
                f[&at] * angle.cos() + sign * f[[at[0], at[1], other]] * angle.sin()
            });
            let what = format!("{pairs:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let p = engine.tensor(&positions).unwrap();
            // The angle is a float32: of 2,000 it is known to 1e-4.
            close(&tensor(engine, &array).rope(&p, 10_000.0, pairs), &expected, 2e-3, &what);
        }
    }
}

#[test]
fn losses_by_their_definitions() {
    for (place, engine) in engines().iter().enumerate() {
        // Many kernels: a quarter of the devices at a time, and the processor.
        if engine.selected().device.backend != "cpu" && !kit::turn::has_turn(place as u64) {
            continue;
        }
        let mut numbers = Numbers::new(1680);
        let shape = [7, 5, 3];
        let (array, other) = (numbers.array(&shape), numbers.array(&shape));
        let (x, y) = (tensor(engine, &array).expr(), tensor(engine, &other).expr());
        let on = &name(engine);
        let mean = |f: &dyn Fn(f64, f64) -> f64| {
            let sum: f64 = array.iter().zip(&other).map(|(&x, &y)| f(f64::from(x), f64::from(y))).sum();
            ArrayD::from_elem(IxDyn(&[]), sum / array.len() as f64)
        };
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        close(&x.mse_loss(&y), &mean(&|x, y| (x - y).powi(2)), 2e-5, on);
        close(&x.l1_loss(&y), &mean(&|x, y| (x - y).abs()), 2e-5, on);
        let huber = |x: f64, y: f64| {
            let d = (x - y).abs();
            if d <= 1.5 { d * d / 2.0 } else { 1.5 * (d - 0.75) }
        };
        close(&x.huber_loss(&y, 1.5), &mean(&huber), 2e-5, on);
        let entropy = move |x: f64, y: f64| {
            let (p, t) = (logistic(x), logistic(y));
            -(t * p.ln() + (1.0 - t) * (1.0 - p).ln())
        };
        close(&x.sigmoid().binary_cross_entropy(y.sigmoid()), &mean(&entropy), 2e-5, on);
        close(&x.binary_cross_entropy_with_logits(y.sigmoid()), &mean(&entropy), 2e-5, on);
        let divergence = move |x: f64, y: f64| logistic(y) * (logistic(y).ln() - logistic(x).ln());
        close(&x.sigmoid().log().kl_div(y.sigmoid()), &mean(&divergence), 2e-5, on);

        let classes: ArrayD<u32> = ArrayD::from_shape_fn(IxDyn(&[7, 3]), |at| ((at[0] + 2 * at[1]) % 5) as u32);
        let logarithms = oracle::rows(&wide(&array), 1, |row| oracle::softmax(row).iter().map(|p| p.ln()).collect());
        let sum: f64 = classes.indexed_iter().map(|(at, &class)| -logarithms[[at[0], class as usize, at[1]]]).sum();
        let expected = ArrayD::from_elem(IxDyn(&[]), sum / 21.0);
        let target = engine.tensor_from_array(&classes).unwrap();
        close(&x.cross_entropy(&target), &expected, 2e-5, on);
        close(&x.log_softmax(1).nll_loss(&target), &expected, 2e-5, on);
        close(&x.cast(DType::F16).cross_entropy(&target), &expected, 3e-3, on);
    }
}

#[test]
fn dropout_keeps_what_its_seed_says() {
    let kept = |engine, p: f64| -> Vec<f32> {
        let x = cantus::ops::full(engine, &[40, 500], 1.0, DType::F32);
        x.dropout(p, 11).eval().unwrap().to_vec().unwrap()
    };
    let first = kept(&engines()[0], 0.25);
    for engine in by_turns() {
        let values = kept(engine, 0.25);
        assert_eq!(values, first, "{}", name(engine));
        let zeros = values.iter().filter(|x| **x == 0.0).count() as f64 / values.len() as f64;
        assert!((zeros - 0.25).abs() < 0.015, "{zeros} on {}", name(engine));
        assert!(values.iter().all(|&x| x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6), "{}", name(engine));
        assert!(kept(engine, 0.0).iter().all(|&x| x == 1.0));
    }
}

#[test]
fn mistakes_in_layers() {
    let engine = &engines()[0];
    let zeros = |shape: &[usize]| engine.zeros::<f32>(shape).unwrap().expr();
    let (images, vector) = (zeros(&[1, 4, 5, 5]), zeros(&[4]));
    let whole = engine.zeros::<i32>(&[2, 3]).unwrap().expr();
    let plain = Attention::new();
    let cases: [(Expr, &str); 24] = [
        (images.group_norm(3, &vector, &vector, 1e-5), "3 groups do not divide 4"),
        (images.group_norm(2, zeros(&[3]), &vector, 1e-5), "each of the 4 channels"),
        (vector.instance_norm(&vector, &vector, 1e-5), "the first two axes"),
        (images.batch_norm(zeros(&[1]), &vector, &vector, &vector, 0.0), "each of the 4 channels"),
        (images.conv1d(zeros(&[4, 4, 1]), 1, 0, 1, 1), "it needs 3 axes"),
        (zeros(&[1, 4, 5]).conv1d(zeros(&[4, 4, 9]), 1, 0, 1, 1), "it covers 9"),
        (images.conv3d(&images, [1; 3], [0; 3], [1; 3], 1), "it needs 5 axes"),
        (zeros(&[1, 1, 2, 5, 5]).conv3d(zeros(&[1, 1, 3, 1, 1]), [1; 3], [0; 3], [1; 3], 1), "it covers 3"),
        (images.conv_transpose2d(zeros(&[3, 1, 2, 2]), Window::default(), [0; 2], 1), "the weights are for 3"),
        (images.conv_transpose2d(zeros(&[4, 1, 2, 2]), Window::default(), [1; 2], 1), "not below stride"),
        (images.conv_transpose2d(zeros(&[4, 1, 1, 1]), Window::default().padded(3), [0; 2], 1), "leaves nothing"),
        (images.adaptive_avg_pool2d([0, 1]), "at least one row"),
        (vector.adaptive_max_pool2d([1, 1]), "four axes"),
        (vector.rope(&vector, 10_000.0, RopePairs::Halves), "vectors"),
        (zeros(&[2, 3]).rope(zeros(&[2]), 10_000.0, RopePairs::Halves), "even number"),
        (zeros(&[2, 4]).rope(zeros(&[3]), 10_000.0, RopePairs::Halves), "one position"),
        (vector.dropout(1.0, 1), "below 1"),
        (whole.dropout(0.5, 1), "needs floats"),
        (vector.mse_loss(zeros(&[3])), "must be equal"),
        (vector.huber_loss(&vector, 0.0), "positive"),
        (zeros(&[2, 3]).cross_entropy(&whole), "classes must be the second axis"),
        (vector.scaled_dot_product_attention(&vector, &vector, &plain), "at least three axes"),
        (zeros(&[3, 2, 4]).scaled_dot_product_attention(zeros(&[2, 2, 4]), zeros(&[2, 2, 4]), &plain), "must divide"),
        (
            zeros(&[1, 3, 4]).scaled_dot_product_attention(
                zeros(&[1, 2, 4]),
                zeros(&[1, 2, 4]),
                &plain.clone().causal(),
            ),
            "one key per query",
        ),
    ];
    for (expr, expected) in cases {
        let message = expr.eval().expect_err(expected).to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}
