//! Axes of 300,000 elements: every operation that goes along one gives the right number on each device, or says that its driver ends long loops. And of
//! some 10,000: there the rounds of loops in loops decide.

use cantus::ops::{Attention, Csr, Expr, Interpolation, Window, arange, full};
use cantus::{DType, Engine, Error};

use crate::{by_turns, name};

/// An axis, and the sides of a picture of that many pixels.
type Long = [usize; 3];

const LONG: Long = [300_000, 600, 500];
const LESS: [Long; 3] = [[60_000, 250, 240], [40_000, 200, 200], [30_000, 200, 150]];

/// Operations that say how long their loops are, along a long axis, and a number of the result, which is the same at each of the places that are looked at.
fn along([long, high, wide]: Long, engine: &Engine) -> Vec<(&'static str, Expr, f64)> {
    let ones = |shape: &[usize]| full(engine, shape, 1.0, DType::F32);
    let counted = |shape: &[usize]| {
        let count = shape.iter().product::<usize>();
        arange(engine, 0.0, count as f64, 1.0, DType::F32).reshape(shape)
    };
    let first = full(engine, &[long], 0.0, DType::I32);
    let row = Csr::new(engine, 3, &[0, long as u32], &vec![0; long], &vec![1.0; long]).unwrap();
    let picture = [1, 1, high, wide];
    let attention = |queries: usize| {
        let value = counted(&[long]).reshape(&[1, long, 1]).broadcast_to(&[1, long, 8]);
        let keys = ones(&[1, long, 8]);
        ones(&[1, queries, 8]).scaled_dot_product_attention(&keys, &value, &Attention::new())
    };
    let (all, last) = (long as f64, long as f64 - 1.0);
    vec![
        ("a small product", ones(&[3, long]).matmul(ones(&[long, 2])), all),
        ("a transposed product", ones(&[long, 4]).transpose().matmul(ones(&[long, 4])), all),
        ("a product of tiles", ones(&[64, long]).matmul(ones(&[long, 64])), all),
        ("a product with a vector", ones(&[5, long]).matmul(ones(&[long])), all),
        ("channels of conv2d", ones(&[1, long, 1, 1]).conv2d(ones(&[2, long, 1, 1]), Window::default(), 1), all),
        ("taps of conv2d", ones(&picture).conv2d(ones(&picture), Window::default(), 1), all),
        ("taps in a row", ones(&[1, 1, 1, long]).conv2d(ones(&[1, 1, 1, long]), Window::default(), 1), all),
        ("avg_pool2d", ones(&picture).avg_pool2d([high, wide], Window::default(), false), 1.0),
        ("max_pool2d", counted(&picture).max_pool2d([high, wide], Window::default()), last),
        ("keys of attention", attention(1), last / 2.0),
        ("keys of attention by tiles", attention(16), last / 2.0),
        ("scatter_add", ones(&[1]).scatter_add(&first, ones(&[long]), 0), all + 1.0),
        ("scatter_max", ones(&[1]).scatter_max(&first, counted(&[long]), 0), last),
        ("a sparse row", row.matmul(ones(&[3, 1])), all),
        ("sum", ones(&[2, long]).sum(&[1], false), all),
        ("sum down columns", ones(&[long, 32]).sum(&[0], false), all),
        ("softmax", ones(&[long]).softmax(0) * long as f32, 1.0),
        ("layer_norm", ones(&[long]).layer_norm(ones(&[long]), ones(&[long]), 1e-5), 1.0),
        ("rms_norm", ones(&[long]).rms_norm(ones(&[long]), 0.0), 1.0),
        ("interpolate", ones(&[1, 1, long, 1]).interpolate([1, 1], Interpolation::BilinearAntialiased), 1.0),
    ]
}

/// The other operations along an axis.
fn others(long: usize, engine: &Engine) -> Vec<(&'static str, Expr, f64)> {
    let ones = |shape: &[usize]| full(engine, shape, 1.0, DType::F32);
    let counted = || arange(engine, 0.0, long as f64, 1.0, DType::F32);
    let (all, last) = (long as f64, long as f64 - 1.0);
    vec![
        ("einsum", ones(&[2, long]).einsum("ik,jk->ij", &[ones(&[3, long])]), all),
        ("bincount", full(engine, &[long], 0.0, DType::U32).bincount(1), all),
        ("greatest", counted().max(&[0], false), last),
        ("place of the greatest", counted().argmax(Some(0), false), last),
        ("running sum", ones(&[long]).cumsum(0).slice(&[long - 1..long]), all),
        ("variance", ones(&[long]).variance(&[0], 0.0, false), 0.0),
        ("sort", counted().sort(0, true).slice(&[0..1]), last),
        ("topk", counted().topk(1, 0, true).0, last),
        ("median", counted().median(Some(0), false), last / 2.0),
        ("searchsorted", counted().searchsorted(full(engine, &[1], last, DType::F32), false), last),
    ]
}

#[test]
fn long_axes_are_right_or_refused() {
    // Drivers compile some fifty kernels here.
    for engine in by_turns() {
        let mut refused = Vec::new();
        let [long, ..] = LONG;
        let mut all = along(LONG, engine);
        all.extend(others(long, engine));
        check(long, all, engine, &mut refused);
        for less in LESS {
            check(less[0], along(less, engine), engine, &mut refused);
        }
        if engine.selected().device.backend == "cpu" {
            assert!(refused.is_empty(), "{refused:?}");
        }
        if !refused.is_empty() {
            kit::not_run(
                &format!("long axes on {}", name(engine)),
                &format!("its driver ends long loops: {}", refused.join(", ")),
            );
        }
    }
}

fn check(long: usize, all: Vec<(&'static str, Expr, f64)>, engine: &Engine, refused: &mut Vec<String>) {
    for (what, expression, expected) in all {
        let what = format!("{what} of {long}");
        match expression.cast(DType::F32).eval().and_then(|tensor| tensor.to_vec::<f32>()) {
            Ok(values) => {
                assert!(!values.is_empty(), "{what} on {}", name(engine));
                for value in values {
                    let off = (f64::from(value) - expected).abs() / expected.abs().max(1.0);
                    assert!(off < 1e-4, "{what} on {}: {value}, not {expected}", name(engine));
                }
            }
            Err(error @ (Error::Unsupported { .. } | Error::NoDevice { .. })) => {
                assert!(error.to_string().contains("long_loops"), "{what} on {}: {error}", name(engine));
                refused.push(what);
            }
            Err(error) => panic!("{what} on {}: {error}", name(engine)),
        }
    }
}
