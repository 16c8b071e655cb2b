//! Dispatches of operations, and the bytes that they bind, on a device without native operations. A GPU's time follows them, and no GPU is needed to count
//! them.
//! `cargo test -p cantus-tests --test tensor_ops counted -- --nocapture` prints the table that the notes of hardware have.

use cantus::ops::{Attention, Expr, Interpolation, Window, rand};
use cantus::{DType, Engine, Fallback, Tensor};

use crate::engines;

/// An operation on its inputs; the least bytes that it moves, its inputs read and its result written once; and its most dispatches.
struct Row {
    name: &'static str,
    inputs: Vec<Tensor>,
    make: fn(&[Tensor]) -> Expr,
    most: u64,
}

fn rows(engine: &Engine) -> Vec<Row> {
    let random = |shape: &[usize], seed| rand(engine, shape, seed).eval().unwrap();
    let places = |count: usize| (random(&[count], 2) * 1000.0).cast(DType::U32).eval().unwrap();
    let zeros = engine.zeros::<f32>(&[1024]).unwrap();
    let row = |name, inputs, make, most| Row { name, inputs, make, most };
    vec![
        row("sort 64 x 256", vec![random(&[64, 256], 1)], |x| x[0].sort(-1, false), 1),
        row("sort 16 x 4096", vec![random(&[16, 4096], 1)], |x| x[0].sort(-1, false), 1),
        row("sort 2^18", vec![random(&[1 << 18], 1)], |x| x[0].sort(-1, false), 21),
        row("argsort 16 x 4096", vec![random(&[16, 4096], 1)], |x| x[0].argsort(-1, false), 2),
        row(
            "scatter_add 2^16 to 1024",
            vec![zeros.clone(), places(1 << 16), random(&[1 << 16], 3)],
            |x| x[0].scatter_add(&x[1], &x[2], 0),
            14,
        ),
        row(
            "scatter_add 2^20 to 1024",
            vec![zeros, places(1 << 20), random(&[1 << 20], 3)],
            |x| x[0].scatter_add(&x[1], &x[2], 0),
            16,
        ),
        row("fft 16 x 4096", vec![random(&[16, 4096, 2], 1)], |x| x[0].fft(-1), 1),
        row("fft 2^16", vec![random(&[1 << 16, 2], 1)], |x| x[0].fft(0), 2),
        row("fft 2^20", vec![random(&[1 << 20, 2], 1)], |x| x[0].fft(0), 2),
        row("rfft 2^17", vec![random(&[1 << 17], 1)], |x| x[0].rfft(0), 3),
        row(
            "concat 256 x 256 twice",
            vec![random(&[256, 256], 1), random(&[256, 256], 2)],
            |x| x[0].concat(&[x[1].expr()], 0),
            1,
        ),
        row("roll 256 x 256", vec![random(&[256, 256], 1)], |x| x[0].roll(&[3], &[-1]), 1),
        row("pad 256 x 256", vec![random(&[256, 256], 1)], |x| x[0].pad(&[(1, 1), (2, 2)], 0.5), 1),
        row("histogram 256 x 256", vec![random(&[256, 256], 1)], |x| x[0].histogram(256, 0.0, 1.0), 1),
        row(
            "interpolate 256 x 256 to a half",
            vec![random(&[1, 1, 256, 256], 1)],
            |x| x[0].interpolate([128, 128], Interpolation::BilinearAntialiased),
            1,
        ),
        row(
            "interpolate 96 x 96 to twice",
            vec![random(&[1, 3, 96, 96], 1)],
            |x| x[0].interpolate([192, 192], Interpolation::Bicubic),
            1,
        ),
        row(
            "conv2d 3 x 3 of 16 channels of 64 x 64",
            vec![random(&[1, 16, 64, 64], 1), random(&[16, 16, 3, 3], 2)],
            |x| x[0].conv2d(&x[1], Window::default().padded(1), 1),
            1,
        ),
        row(
            "attention 256, causal",
            vec![random(&[1, 8, 256, 64], 1), random(&[1, 8, 256, 64], 2), random(&[1, 8, 256, 64], 3)],
            |x| x[0].scaled_dot_product_attention(&x[1], &x[2], &Attention::new().causal()),
            2,
        ),
        row("softmax 16 x 4096", vec![random(&[16, 4096], 1)], |x| x[0].softmax(-1), 1),
        row(
            "layer_norm 16 x 4096",
            vec![random(&[16, 4096], 1), random(&[4096], 2), random(&[4096], 3)],
            |x| x[0].layer_norm(&x[1], &x[2], 1e-5),
            1,
        ),
    ]
}

/// Dispatches so far, and bytes that they bound.
fn counted(engine: &Engine) -> (u64, u64) {
    engine.metrics().iter().fold((0, 0), |(count, bytes), row| (count + row.count, bytes + row.bytes))
}

#[test]
fn few_dispatches_and_bytes() {
    // Devices differ in what they choose only where a library multiplies.
    let Some(other) = engines().iter().find(|engine| engine.selected().device.backend != "cpu") else {
        return;
    };
    let device = &other.selected().device;
    let engine =
        Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never).build().unwrap();
    let mut above = Vec::new();
    println!("| operation | dispatches | bytes of the least |\n| --- | --- | --- |");
    for (number, row) in (0_u64..).zip(rows(&engine)) {
        // Most of the time is the driver's compiler's: the quick circle takes a third of the rows, others with each turn.
        if kit::turn::quick() && !(number + kit::turn::turn()).is_multiple_of(3) {
            continue;
        }
        engine.finish().unwrap();
        let (count, bytes) = counted(&engine);
        let result = (row.make)(&row.inputs).eval().unwrap();
        engine.finish().unwrap();
        let (count_after, bytes_after) = counted(&engine);
        let dispatches = count_after - count;
        let least = row.inputs.iter().map(Tensor::byte_len).sum::<u64>() + result.byte_len();
        println!("| {} | {dispatches} | {:.1} |", row.name, (bytes_after - bytes) as f64 / least as f64);
        if dispatches > row.most {
            above.push(format!("{}: {dispatches}, more than {}", row.name, row.most));
        }
    }
    assert!(above.is_empty(), "{above:?}");
}
