//! Weights that are multiplied again and again, and changed in between: a device that keeps what it made of them makes it anew. On each device of the
//! machine, against float64.

use cantus::ops::{Expr, Window};
use cantus::{DType, Engine, Fallback, Kernel, Tensor};
use kit::engine::{by_turns, name};

/// Values by a linear congruence, in 1/8.
fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 24) as i32 - 128) as f32 / 8.0
    };
    (0..count).map(|_| next()).collect()
}

const SIZE: [usize; 3] = [70, 150, 130];

/// Every third result of a product beside float64. Sums of products of eighths are whole in float32, apart from bf16's own rounding.
fn check(what: &str, product: &Tensor, a: &[f32], w: &[f32], tolerance: f64) {
    let [m, n, k] = SIZE;
    let result = product.cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
    for at in (0..m * n).step_by(3) {
        let (row, column) = (at / n, at % n);
        let terms = (0..k).map(|term| f64::from(a[row * k + term]) * f64::from(w[term * n + column]));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
        let error = (f64::from(result[at]) - sum).abs();
        assert!(error <= tolerance * size + 1e-9, "{what}, {row}, {column}: {}, not {sum}", result[at]);
    }
}

const CHANGE: &str = "@group(0) @binding(0) var<storage, read_write> w: array<u32>;
@group(0) @binding(1) var<storage, read> other: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&w) { w[id.x] = other[id.x]; }
}";

/// Products before and after each way of writing to the weights.
fn changed_weights(engine: &Engine, dtype: DType, tolerance: f64) {
    let [m, n, k] = SIZE;
    let a = values(m * k, 1);
    let rounded = |values: &[f32]| match dtype {
        DType::I8 => values.iter().map(|value| value.trunc()).collect::<Vec<_>>(),
        _ => values.to_vec(),
    };
    let tensor =
        |values: &[f32], shape: &[usize]| engine.tensor_from(values, shape).unwrap().cast(dtype).eval().unwrap();
    let (left, w) = (tensor(&a, &[m, k]), tensor(&rounded(&values(k * n, 2)), &[k, n]));
    let a = rounded(&a);
    let wide = |expr: Expr| if dtype == DType::I8 { expr.cast(DType::I32) } else { expr };
    let product = || wide(Expr::from(&left)).matmul(wide(Expr::from(&w))).eval().unwrap();
    let what = |step: &str| format!("{}, {dtype}, {step}", name(engine));
    let repeated = |step: &str, weights: &[f32]| {
        for time in 0..3 {
            check(&what(&format!("{step}, {time}")), &product(), &a, weights, tolerance);
        }
    };
    repeated("at first", &rounded(&values(k * n, 2)));
    // From the host.
    let other = rounded(&values(k * n, 3));
    let bytes = tensor(&other, &[k, n]);
    match dtype {
        DType::F32 => w.write(&bytes.to_vec::<f32>().unwrap()),
        DType::BF16 => w.write(&bytes.to_vec::<half::bf16>().unwrap()),
        _ => w.write(&bytes.to_vec::<i8>().unwrap()),
    }
    .unwrap();
    repeated("written by the host", &other);
    // By a kernel.
    let other = rounded(&values(k * n, 4));
    let source = tensor(&other, &[k, n]);
    let word = if dtype == DType::F32 { "f32" } else { "u32" };
    let kernel = Kernel::from_wgsl(&CHANGE.replace("array<u32>", &format!("array<{word}>"))).unwrap();
    engine.dispatch(&kernel).bind("w", &w).bind("other", &source).invocations(w.byte_len() as usize / 4).run().unwrap();
    repeated("written by a kernel", &other);
}

#[test]
fn products_follow_their_weights() {
    for engine in by_turns() {
        changed_weights(engine, DType::F32, 1e-6);
        changed_weights(engine, DType::BF16, 1.0 / 256.0);
        changed_weights(engine, DType::I8, 0.0);
    }
}

#[test]
fn convolutions_follow_their_weights() {
    let ([channels, side, outputs], window) = ([8, 20, 24], Window::new([1; 2], [1; 2], [1; 2]));
    for engine in by_turns() {
        let image = values(channels * side * side, 1);
        let x = engine.tensor_from(&image, &[1, channels, side, side]).unwrap();
        let w = engine.tensor_from(&values(outputs * channels * 9, 2), &[outputs, channels, 3, 3]).unwrap();
        for seed in 3..5 {
            let weights = values(outputs * channels * 9, seed);
            w.write(&weights).unwrap();
            for time in 0..3 {
                let y = x.conv2d(&w, window, 1).eval().unwrap().to_vec::<f32>().unwrap();
                for at in (0..y.len()).step_by(7) {
                    let (o, row, column) = (at / side / side, at / side % side, at % side);
                    let mut sum = 0.0;
                    for tap in 0..channels * 9 {
                        let (c, i, j) = (tap / 9, tap / 3 % 3, tap % 3);
                        let (r, s) = ((row + i).wrapping_sub(1), (column + j).wrapping_sub(1));
                        if r < side && s < side {
                            let product = f64::from(image[(c * side + r) * side + s]);
                            sum += product * f64::from(weights[o * channels * 9 + tap]);
                        }
                    }
                    let error = (f64::from(y[at]) - sum).abs();
                    assert!(error < 0.05, "{}, {seed}, {time}, {at}: {}, not {sum}", name(engine), y[at]);
                }
            }
        }
    }
}

/// Kept panels count as memory, and are given up for work that needs it.
#[test]
fn what_is_kept_makes_room() {
    let limit = 64 << 20;
    let builder = Engine::builder().backend("cpu").fallback(Fallback::Never).memory_limit(limit);
    let engine = builder.build().unwrap();
    let [m, n, k] = [16, 1024, 1024];
    let (a, w) = (values(m * k, 1), values(k * n, 2));
    let (left, right) = (engine.tensor_from(&a, &[m, k]).unwrap(), engine.tensor_from(&w, &[k, n]).unwrap());
    let expected = left.matmul(&right).eval().unwrap().to_vec::<f32>().unwrap();
    let before = engine.memory().in_use;
    let product = || left.matmul(&right).eval().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(product(), expected);
    assert_eq!(product(), expected);
    assert!(engine.memory().in_use >= before + (4 << 20), "nothing is kept: {before}, {}", engine.memory().in_use);
    // All but a little of what is left without it.
    let large = engine.zeros::<f32>(&[(usize::try_from(limit).unwrap() - (8 << 20)) / 4 - 1024]).unwrap();
    let sum = large.expr().sum(&[], false).eval();
    assert_eq!(sum.unwrap().item::<f32>().unwrap(), 0.0, "what is kept stands in the way");
    assert_eq!(product(), expected);
    drop(large);
    engine.trim();
    assert!(engine.memory().in_use <= before, "what is kept stays: {before}, {}", engine.memory().in_use);
    assert_eq!(product(), expected);
    // Whoever sees the memory could write to it unseen.
    let view = right.host_view().unwrap();
    assert!(view.is_some());
    let before = engine.memory().in_use;
    assert_eq!(product(), expected);
    assert_eq!(product(), expected);
    assert!(engine.memory().in_use <= before, "what may be written to is kept");
}
