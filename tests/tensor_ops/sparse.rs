//! Products of sparse matrices.

use cantus::ops::Csr;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, name, tensor};

#[test]
fn sparse_times_dense() {
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(2600 + seed);
            let (rows, columns, width) = (numbers.side(200), 1 + numbers.below(90), numbers.side(20));
            let mut starts = vec![0_u32];
            let (mut places, mut values) = (Vec::new(), Vec::new());
            let mut whole = vec![0.0_f64; rows * columns];
            for row in 0..rows {
                // Many rows are empty; some places stand twice.
                for _ in 0..numbers.below(12) * numbers.below(2) {
                    let (place, value) = (numbers.below(columns), numbers.float());
                    places.push(place as u32);
                    values.push(value);
                    whole[row * columns + place] += f64::from(value);
                }
                starts.push(places.len() as u32);
            }
            let a = Csr::new(engine, columns, &starts, &places, &values).unwrap();
            assert_eq!(a.sides(), [rows, columns]);
            let b = numbers.array(&[width, columns]);
            let expected = ArrayD::from_shape_fn(IxDyn(&[rows, width]), |at| {
                (0..columns).map(|k| whole[at[0] * columns + k] * f64::from(b[[at[1], k]])).sum()
            });
            let what = format!("{rows} x {columns} times {width}, seed {seed}, on {}", name(engine));
            // A transposed operand, and what follows.
            let dense = tensor(engine, &b).transpose();
            close(&a.matmul(&dense), &expected, 1e-5, &what);
            close(&(a.matmul(&dense) * 2.0 + 1.0), &(&expected * 2.0 + 1.0), 1e-5, &what);
            if width > 0 {
                let first = expected.index_axis(ndarray::Axis(1), 0).to_owned();
                let vector = dense.slice(&[0..columns, 0..1]).squeeze(1);
                close(&a.matmul(&vector), &first, 1e-5, &what);
                let halved = a.with_values(a.values() * 0.5).unwrap();
                close(&halved.matmul(&vector), &(first * 0.5), 1e-5, &what);
            }
        }
    }
}

#[test]
fn what_is_no_sparse_matrix() {
    let engine = cantus::Engine::builder().backend("cpu").build().unwrap();
    let told = |starts: &[u32], places: &[u32], values: &[f32], expected: &str| {
        let message = Csr::new(&engine, 3, starts, places, values).expect_err("is a mistake").to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    };
    told(&[], &[], &[], "one start more");
    told(&[0, 2, 1], &[0], &[1.0], "row 1 ends before it starts");
    told(&[1, 1], &[0], &[1.0], "starts run from 1");
    told(&[0, 2], &[0], &[1.0], "1 columns and 1 values");
    told(&[0, 1], &[0], &[], "0 values");
    told(&[0, 1], &[3], &[1.0], "column 3 of 3");
    let a = Csr::new(&engine, 3, &[0, 1], &[2], &[1.0]).unwrap();
    let product =
        |shape: &[usize]| a.matmul(engine.zeros::<f32>(shape).unwrap()).eval().expect_err("is a mistake").to_string();
    assert!(product(&[4]).contains("3 columns, the right 4 rows"));
    assert!(product(&[1, 3, 1]).contains("one or two axes"));
    assert!(a.matmul(engine.zeros::<i32>(&[3]).unwrap()).eval().unwrap_err().to_string().contains("cast first"));
    assert!(a.with_values(engine.zeros::<f32>(&[2]).unwrap()).unwrap_err().to_string().contains("1 entries"));
}
