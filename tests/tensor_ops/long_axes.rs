//! Axes of 300,000 elements: every operation that goes along one gives the right number on each device, or says that its driver ends long loops.

use cantus::ops::{Attention, Csr, Expr, Interpolation, Window, arange, full};
use cantus::{DType, Engine, Error};

use crate::{engines, name};

const LONG: usize = 300_000;

/// Operations along a long axis, and a number of the result, which is the same at each of the places that are looked at.
fn along(engine: &Engine) -> Vec<(&'static str, Expr, f64)> {
    let ones = |shape: &[usize]| full(engine, shape, 1.0, DType::F32);
    let counted = |shape: &[usize]| {
        let count = shape.iter().product::<usize>();
        arange(engine, 0.0, count as f64, 1.0, DType::F32).reshape(shape)
    };
    let first = full(engine, &[LONG], 0.0, DType::I32);
    let whole: Vec<u32> = vec![0; LONG];
    let row = Csr::new(engine, 3, &[0, LONG as u32], &whole, &vec![1.0; LONG]).unwrap();
    let (long, last) = (LONG as f64, LONG as f64 - 1.0);
    vec![
        ("a small product", ones(&[3, LONG]).matmul(ones(&[LONG, 2])), long),
        ("a transposed product", ones(&[LONG, 4]).transpose().matmul(ones(&[LONG, 4])), long),
        ("a product of tiles", ones(&[64, LONG]).matmul(ones(&[LONG, 64])), long),
        ("a product with a vector", ones(&[5, LONG]).matmul(ones(&[LONG])), long),
        ("einsum", ones(&[2, LONG]).einsum("ik,jk->ij", &[ones(&[3, LONG])]), long),
        ("channels of conv2d", ones(&[1, LONG, 1, 1]).conv2d(ones(&[2, LONG, 1, 1]), Window::default(), 1), long),
        ("taps of conv2d", ones(&[1, 1, 600, 500]).conv2d(ones(&[1, 1, 600, 500]), Window::default(), 1), long),
        ("avg_pool2d", ones(&[1, 1, 600, 500]).avg_pool2d([600, 500], Window::default(), false), 1.0),
        ("max_pool2d", counted(&[1, 1, 600, 500]).max_pool2d([600, 500], Window::default()), last),
        ("keys of attention", attention(&ones(&[1, 1, 8]), &ones(&[1, LONG, 8]), &counted(&[LONG]), 8), last / 2.0),
        (
            "keys of attention by tiles",
            attention(&ones(&[1, 16, 8]), &ones(&[1, LONG, 8]), &counted(&[LONG]), 8),
            last / 2.0,
        ),
        ("scatter_add", ones(&[1]).scatter_add(&first, ones(&[LONG]), 0), long + 1.0),
        ("scatter_max", ones(&[1]).scatter_max(&first, counted(&[LONG]), 0), last),
        ("bincount", first.cast(DType::U32).bincount(1), long),
        ("a sparse row", row.matmul(ones(&[3, 1])), long),
        ("sum", ones(&[2, LONG]).sum(&[1], false), long),
        ("sum down columns", ones(&[LONG, 32]).sum(&[0], false), long),
        ("greatest", counted(&[LONG]).max(&[0], false), last),
        ("place of the greatest", counted(&[LONG]).argmax(Some(0), false), last),
        ("running sum", ones(&[LONG]).cumsum(0).slice(&[LONG - 1..LONG]), long),
        ("softmax", ones(&[LONG]).softmax(0) * long as f32, 1.0),
        ("layer_norm", ones(&[LONG]).layer_norm(ones(&[LONG]), ones(&[LONG]), 1e-5), 1.0),
        ("rms_norm", ones(&[LONG]).rms_norm(ones(&[LONG]), 0.0), 1.0),
        ("variance", ones(&[LONG]).variance(&[0], 0.0, false), 0.0),
        ("sort", counted(&[LONG]).sort(0, true).slice(&[0..1]), last),
        ("topk", counted(&[LONG]).topk(1, 0, true).0, last),
        ("median", counted(&[LONG]).median(Some(0), false), last / 2.0),
        ("searchsorted", counted(&[LONG]).searchsorted(full(engine, &[1], last, DType::F32), false), last),
        ("interpolate", ones(&[1, 1, LONG, 1]).interpolate([1, 1], Interpolation::BilinearAntialiased), 1.0),
    ]
}

fn attention(query: &Expr, key: &Expr, places: &Expr, width: usize) -> Expr {
    let value = places.reshape(&[1, LONG, 1]).broadcast_to(&[1, LONG, width]);
    query.scaled_dot_product_attention(key, &value, &Attention::new())
}

#[test]
fn long_axes_are_right_or_refused() {
    for engine in engines() {
        let mut refused = Vec::new();
        for (what, expression, expected) in along(engine) {
            let result = expression.cast(DType::F32).eval().and_then(|tensor| tensor.to_vec::<f32>());
            match result {
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
        if engine.selected().device.backend == "cpu" {
            assert!(refused.is_empty(), "{refused:?}");
        }
        if !refused.is_empty() {
            kit::not_run(
                &format!("axes of {LONG} on {}", name(engine)),
                &format!("its driver ends long loops: {}", refused.join(", ")),
            );
        }
    }
}
