//! Operations natively by a device, and by the portable kernels alone.

use cantus::ops::Expr;
use cantus::{Engine, Fallback};

use ndarray::{ArrayD, IxDyn};

use crate::reduce::some_axes;
use crate::{Numbers, Random, by_turns, close, name, oracle, tensor, wide};

#[test]
fn the_portable_kernels_alone_give_the_same() {
    for engine in by_turns() {
        let device = &engine.selected().device;
        let portable = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
        let portable = portable.native(false).build().unwrap();
        let mut random = Random::new(11);
        let values: Vec<f32> = (0..96 * 96).map(|_| random.unit() as f32 - 0.5).collect();
        let computed = |engine: &Engine| {
            let x = engine.tensor_from(&values, &[96, 96]).unwrap().expr();
            let image = x.reshape(&[1, 1, 96, 96]);
            let kernel = x.slice(&[0..3, 0..3]).reshape(&[1, 1, 3, 3]);
            let heads = x.reshape(&[2, 48, 96]);
            let all = [
                x.matmul(&x),
                image.conv2d(kernel, cantus::ops::Window::default(), 1),
                x.sort(1, false),
                x.cumsum(1),
                x.cummax(1),
                x.topk(5, 1, true).0,
                x.argmax(Some(1), false).cast(cantus::DType::F32),
                x.histogram(17, -0.4, 0.3).cast(cantus::DType::F32),
                x.scatter_add((&x * 40.0).cast(cantus::DType::I32), &x, 1),
                heads.scaled_dot_product_attention(&heads, &heads, &cantus::ops::Attention::new().causal()),
            ];
            all.map(|expr| expr.eval().unwrap().to_vec::<f32>().unwrap())
        };
        for (native, portable) in computed(engine).iter().zip(computed(&portable)) {
            assert_eq!(native.len(), portable.len());
            for (a, b) in native.iter().zip(portable) {
                assert!((a - b).abs() <= 1e-4, "{}: {a} and {b}", name(engine));
            }
        }
        assert!(!ran(&portable, "(native)"), "{}", name(engine));
        let own = ["matmul", "conv2d", "sort", "scan", "reduce", "attention", "histogram", "scatter"];
        let missing = own.iter().find(|operation| !ran(engine, &format!("{operation} (native)")));
        assert!(missing.is_none() || device.backend != "cpu", "{missing:?}");
    }
}

/// Returns whether something whose name ends so ran on an engine.
fn ran(engine: &Engine, name: &str) -> bool {
    engine.metrics().iter().any(|row| row.operation.ends_with(name))
}

/// In place of the kernels, which the numbers alone would not tell.
#[cfg(all(feature = "fft", feature = "linalg"))]
#[test]
fn transforms_and_factorisations_are_the_libraries() {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap();
    let mut random = Random::new(12);
    let values: Vec<f32> = (0..40 * 40).map(|_| random.unit() as f32 - 0.5).collect();
    let x = engine.tensor_from(&values, &[40, 40]).unwrap().expr();
    let symmetric = &x + x.transpose();
    let positive = x.matmul(x.transpose()) + cantus::ops::eye(&engine, 40, 40, 0, cantus::DType::F32);
    let all = [
        x.solve(&x),
        x.inverse(),
        x.det(),
        x.slogdet().1,
        positive.cholesky(),
        x.qr().0,
        symmetric.eigh().0,
        x.svd().1,
        x.stack(std::slice::from_ref(&symmetric), -1).fft(1),
    ];
    for expr in all {
        expr.eval().unwrap();
    }
    assert!(ran(&engine, "fft (native)"));
    for kernel in ["lu_panel", "cholesky_block", "qr_panel", "eigh_jacobi", "svd_jacobi", "triangular_block"] {
        assert!(!ran(&engine, kernel), "{kernel}");
    }
}

/// The processor with and without means of its own.
fn both() -> [Engine; 2] {
    let builder = || Engine::builder().backend("cpu").fallback(Fallback::Never);
    [builder().build().unwrap(), builder().native(false).build().unwrap()]
}

/// Runs `made` by both, from the same tensors.
fn by_both(inputs: &[(Vec<f32>, Vec<usize>)], made: impl Fn(&[Expr]) -> Expr) -> [Vec<f32>; 2] {
    both().map(|engine| {
        let tensors: Vec<_> =
            inputs.iter().map(|(values, shape)| engine.tensor_from(values, shape).unwrap().expr()).collect();
        made(&tensors).eval().unwrap().to_vec::<f32>().unwrap()
    })
}

fn random_inputs(random: &mut Random, shapes: &[&[usize]]) -> Vec<(Vec<f32>, Vec<usize>)> {
    let values = |random: &mut Random, count: usize| (0..count).map(|_| (random.unit() as f32 - 0.5) * 6.0).collect();
    shapes.iter().map(|shape| (values(random, shape.iter().product()), shape.to_vec())).collect()
}

/// Every function of elements, on what is special too.
#[test]
fn chains_have_the_kernels_bits() {
    use cantus::ops::{Binary, Unary};
    let special =
        [0.0, -0.0, 1.0, -1.0, 0.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 3e38, -3e38, 88.8, -104.0, 7.5];
    let mut random = Random::new(31);
    let mut values: Vec<f32> = special.to_vec();
    values.extend((0..300 - special.len()).map(|_| (random.unit() as f32 - 0.5) * 20.0));
    let other: Vec<f32> = (0..300).map(|place| values[(place * 7 + 3) % 300]).collect();
    let inputs = [(values, vec![300]), (other, vec![300])];
    let mut wrong = Vec::new();
    let mut same = |what: &str, made: &dyn Fn(&[Expr]) -> Expr| {
        let [native, portable] = by_both(&inputs, made);
        for (place, (a, b)) in native.iter().zip(&portable).enumerate() {
            let [x, y] = [inputs[0].0[place], inputs[1].0[place]];
            if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
                wrong.push(format!("{what} of {x} and {y}: {a}, not {b}"));
            }
        }
    };
    for &op in Unary::ALL {
        if op.dtypes().any(|dtype| dtype == cantus::DType::F32) {
            let number = |x: &Expr| x.unary(op).cast(cantus::DType::F32) + 0.0;
            if !["angle", "real", "imag"].contains(&op.name()) {
                same(op.name(), &|x| number(&x[0]));
            }
        }
    }
    for &op in Binary::ALL {
        if op.dtypes().any(|dtype| dtype == cantus::DType::F32) && op.name() != "complex" {
            same(op.name(), &|x| x[0].binary(op, &x[1]).cast(cantus::DType::F32) + 0.0);
        }
    }
    same("where", &|x| x[0].r#where(x[0].less(&x[1]), &x[1]) * 2.0);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn chains_of_any_shape_have_the_kernels_bits() {
    let mut random = Random::new(32);
    for rows in [1, 3, 70] {
        for length in [1, 15, 64, 77, 512, 600, 1031] {
            let inputs = random_inputs(&mut random, &[&[rows, length], &[length], &[rows, 1], &[length, rows]]);
            let [native, portable] = by_both(&inputs, |x| {
                let gated = (&x[0] * 0.5 + &x[1]).silu() * &x[2];
                (&gated * &gated - x[3].transpose()).tanh() + gated
            });
            let same = native.iter().zip(&portable).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && native.len() == rows * length, "{rows} x {length}");
        }
    }
}

#[test]
fn rows_with_what_is_around_them_are_the_kernels() {
    let mut random = Random::new(33);
    for rows in [1, 5, 90] {
        for length in [1, 17, 64, 100, 1000, 2049] {
            let inputs = random_inputs(&mut random, &[&[rows, length], &[length], &[length], &[rows, length]]);
            type Made = fn(&[Expr]) -> Expr;
            let all: [(&str, Made); 6] = [
                ("softmax", |x| x[0].softmax(1)),
                ("log_softmax", |x| (&x[0] * 3.0).log_softmax(-1)),
                ("layer_norm", |x| x[0].layer_norm(&x[1], &x[2], 1e-5)),
                ("rms_norm", |x| (&x[0] + &x[3]).rms_norm(&x[1], 1e-6)),
                ("rms_norm, gate", |x| x[0].rms_norm(&x[1], 1e-6).silu() * &x[3]),
                ("softmax of columns", |x| x[0].softmax(0)),
            ];
            for (what, made) in all {
                let [native, portable] = by_both(&inputs, made);
                for (a, b) in native.iter().zip(&portable) {
                    assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{what}, {rows} x {length}: {a}, not {b}");
                }
            }
        }
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = vec![1.0; 200];
        values[130] = bad;
        let [native, portable] = by_both(&[(values, vec![2, 100])], |x| x[0].softmax(1));
        assert!(native.iter().zip(&portable).all(|(a, b)| a == b || a.is_nan() && b.is_nan()), "{bad}");
    }
}

#[test]
fn what_is_moved_is_moved_as_by_kernels() {
    use cantus::ops::Interpolation;
    /// Places of an axis, also from its end, of numbers from -3 to 3.
    fn places(of: &Expr, axis: usize, numbers: &Expr) -> Expr {
        numbers * (of.shape().unwrap()[axis] as f64 / 3.001)
    }
    let mut random = Random::new(34);
    for [n, h, w] in [[1, 1, 1], [2, 5, 33], [3, 40, 129], [1, 300, 300]] {
        let inputs = random_inputs(&mut random, &[&[n, h, w], &[n, h, w + 2], &[n, h, w]]);
        type Made = fn(&[Expr]) -> Expr;
        let moves: [(&str, Made); 8] = [
            ("concat", |x| x[0].concat(&[x[1].clone(), x[2].clone() * 2.0], 2)),
            ("concat of rows", |x| x[0].concat(std::slice::from_ref(&x[2]), 1)),
            ("stack", |x| x[0].stack(std::slice::from_ref(&x[2]), -1)),
            ("roll", |x| x[0].roll(&[3, -2], &[2, 1])),
            ("pad", |x| x[0].pad(&[(0, 0), (1, 2), (2, 1)], cantus::ops::Padding::Edge)),
            ("take", |x| x[0].take(places(&x[0], 2, &x[2]).cast(cantus::DType::I32), 2)),
            ("gather", |x| x[0].gather(places(&x[0], 1, &x[2].abs()).cast(cantus::DType::U32), 1)),
            ("gather from the end", |x| {
                let turned = x[0].transpose();
                turned.gather(places(&turned, 2, &x[2]).cast(cantus::DType::I32).transpose(), 2)
            }),
        ];
        for (what, made) in moves {
            let evaluated = |x: &[Expr]| {
                let x: Vec<_> = x.iter().map(|x| Expr::from(x.eval().unwrap())).collect();
                made(&x)
            };
            let [native, portable] = by_both(&inputs, evaluated);
            assert_eq!(native, portable, "{what} of {n} x {h} x {w}");
        }
        for by in [
            Interpolation::Nearest,
            Interpolation::Bilinear,
            Interpolation::Bicubic,
            Interpolation::BilinearAntialiased,
            Interpolation::BicubicAntialiased,
        ] {
            for size in [[1, 1], [h, 2 * w], [2 * h + 1, w], [h.div_ceil(3), w.div_ceil(2)], [70, 5]] {
                let [native, portable] = by_both(&inputs, |x| x[0].expand(0).interpolate(size, by));
                for (a, b) in native.iter().zip(&portable) {
                    assert!((a - b).abs() <= 1e-5, "{by:?}, {n} x {h} x {w} to {size:?}: {a}, not {b}");
                }
            }
        }
    }
}

/// A chain reads rolls in place or as runs; one alone is copied as runs.
#[test]
fn rolls_are_part_of_chains() {
    let engine = &both()[0];
    let x = cantus::ops::full(engine, &[40, 130], 1.5, cantus::DType::F32).eval().unwrap();
    let around = &x + x.roll(&[1], &[0]) + x.roll(&[-2], &[1]);
    around.sum(&[1], false).eval().unwrap();
    around.eval().unwrap();
    assert!(!ran(engine, "roll (native)") && !ran(engine, "elementwise"));
    x.roll(&[3], &[1]).eval().unwrap();
    assert!(ran(engine, "roll (native)"));
}

/// Tables of what each pixel is made of would take thousands of times the memory of such a line.
#[test]
fn long_lines_are_scaled_without_long_tables() {
    let engine = &both()[0];
    let length = 1 << 20;
    let line = cantus::ops::full(engine, &[1, 1, 1, length], 1.0, cantus::DType::F32);
    let by = cantus::ops::Interpolation::BilinearAntialiased;
    let one = line.interpolate([1, 1], by).eval().unwrap().item::<f32>().unwrap();
    assert!(one == 1.0, "{one}");
    assert!(!ran(engine, "interpolate (native)"));
    line.interpolate([1, length / 2], cantus::ops::Interpolation::Bilinear).eval().unwrap();
    assert!(ran(engine, "interpolate (native)"));
}

/// Reductions along rows, down columns and between them, of views and of chains; the seed is in the message.
#[test]
fn reductions_of_what_lies_any_way_are_right() {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap();
    let shapes: [&[usize]; 7] =
        [&[70_000], &[300, 1031], &[9000, 70], &[3, 65, 130], &[5, 4, 3, 100], &[2, 600, 96], &[1, 77, 1]];
    for seed in 0..60 {
        let mut numbers = Numbers::new(seed);
        let shape = shapes[numbers.below(shapes.len())];
        let mut x = numbers.array(shape);
        let nan = seed % 5 == 0;
        if nan && let Some(value) = x.iter_mut().nth(numbers.below(1000)) {
            *value = f32::NAN;
        }
        let mut t = Expr::from(&tensor(&engine, &x));
        // The axes in another order, and every second element of the last one.
        let rank = shape.len();
        let mut order: Vec<usize> = (0..rank).collect();
        (0..rank).for_each(|axis| order.swap(axis, numbers.below(rank)));
        if numbers.below(2) == 0 {
            t = t.permute(&order.iter().map(|&axis| axis as isize).collect::<Vec<_>>());
            x = x.permuted_axes(order);
        }
        let line = ArrayD::from_shape_fn(IxDyn(&x.shape()[rank - 1..]), |_| numbers.float());
        let scaled = numbers.below(2) == 0;
        if scaled {
            t = (t * &tensor(&engine, &line).expr()).abs();
            x = (&x * &line).mapv(f32::abs);
        }
        let f = wide(&x);
        let places = some_axes(&mut numbers, rank);
        let axes: Vec<isize> = places.iter().map(|&axis| axis as isize).collect();
        let what =
            |op: &str| format!("{op} over {places:?} of {:?}, strides {:?}, seed {seed}", x.shape(), x.strides());
        let count: usize = places.iter().map(|&axis| x.shape()[axis]).product();
        let sum = |row: &[f64]| row.iter().sum::<f64>();
        close(&t.sum(&axes, false), &oracle::reduce(&f, &places, false, sum), 1e-6 * 4.0 * count as f64, &what("sum"));
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        close(&t.mean(&axes, true), &oracle::reduce(&f, &places, true, mean), 1e-5, &what("mean"));
        let best = |better: fn(f64, f64) -> f64| {
            move |row: &[f64]| {
                row.iter()
                    .copied()
                    .reduce(|a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { better(a, b) })
                    .unwrap_or(0.0)
            }
        };
        close(&t.max(&axes, false), &oracle::reduce(&f, &places, false, best(f64::max)), 0.0, &what("max"));
        close(&t.min(&axes, false), &oracle::reduce(&f, &places, false, best(f64::min)), 0.0, &what("min"));
    }
    assert!(ran(&engine, "reduce (native)"));
}

/// Reductions of what is read along and across its rows, alone and beside another reader. On the processor none of them is a kernel.
#[test]
fn what_lies_across_is_reduced() {
    let own = Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap();
    let mut engines: Vec<&Engine> = by_turns();
    engines.push(&own);
    for engine in engines {
        for side in [3, 64, 90] {
            let x = Numbers::new(side as u64).array(&[side, side]);
            let t = Expr::from(&tensor(engine, &x));
            let both = (&t + t.transpose()).abs();
            let f = (&wide(&x) + &wide(&x).t()).mapv(f64::abs);
            let greatest = |row: &[f64]| row.iter().copied().fold(f64::MIN, f64::max);
            for (axes, places) in [(&[][..], &[0, 1][..]), (&[0][..], &[0][..]), (&[1][..], &[1][..])] {
                let what = |op: &str| format!("{op} over {places:?} of {side} x {side}, on {}", name(engine));
                let sum = |row: &[f64]| row.iter().sum::<f64>();
                close(&both.sum(axes, false), &oracle::reduce(&f, places, false, sum), 5e-2, &what("sum"));
                close(&both.max(axes, false), &oracle::reduce(&f, places, false, greatest), 1e-6, &what("max"));
            }
            let most = f.iter().copied().fold(f64::MIN, f64::max);
            let scaled = &both / (both.max(&[], false) + 1.0);
            close(&scaled, &f.mapv(|x| x / (most + 1.0)), 1e-6, &format!("{side}, on {}", name(engine)));
        }
    }
    assert!(ran(&own, "reduce (native)") && !ran(&own, "reduce_rows") && !ran(&own, "reduce_columns"));
}

/// Products of every size around the tiles, of operands that lie any way.
#[test]
fn products_of_any_size_are_right() {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap();
    for seed in 0..80 {
        let mut numbers = Numbers::new(seed);
        let most = [14, 70, 300][seed as usize % 3];
        let [m, n, k] = [0; 3].map(|_| 1 + numbers.below(most));
        let k = if seed % 7 == 0 { k + 200 } else { k };
        let turned = [numbers.below(2) == 0, numbers.below(2) == 0];
        let side = |turned, [rows, columns]: [usize; 2]| if turned { [columns, rows] } else { [rows, columns] };
        let [a, b] = [numbers.array(&side(turned[0], [m, k])), numbers.array(&side(turned[1], [k, n]))];
        let [mut left, mut right] = [&a, &b].map(|x| tensor(&engine, x).expr());
        let [mut wide_left, mut wide_right] = [wide(&a), wide(&b)];
        if turned[0] {
            (left, wide_left) = (left.transpose(), wide_left.reversed_axes());
        }
        if turned[1] {
            (right, wide_right) = (right.transpose(), wide_right.reversed_axes());
        }
        let expected = oracle::matmul(&wide_left, &wide_right);
        close(
            &left.matmul(&right),
            &expected,
            2e-6 * 4.0 * k as f64,
            &format!("{m} x {n} x {k}, turned {turned:?}, seed {seed}"),
        );
    }
}

/// Unless something else was measured to be quicker: see `tuning`. On an engine of its own, as others count too.
#[test]
fn products_of_halves_are_the_processors_own() {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap();
    for (done, dtype) in [cantus::DType::F16, cantus::DType::BF16].into_iter().enumerate() {
        let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap().cast(dtype).eval().unwrap();
        let y = x.matmul(&x).cast(cantus::DType::F32).eval().unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [7.0, 10.0, 15.0, 22.0], "{dtype}");
        let rows = engine.metrics();
        let own: u64 = rows.iter().filter(|row| row.operation == "matmul (native)").map(|row| row.count).sum();
        assert_eq!(own, done as u64 + 1, "{dtype}: {rows:?}");
    }
}
