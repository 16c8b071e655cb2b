//! Constants and ranges.

use cantus::DType;
use cantus::ops::{arange, eye, full, linspace};
use ndarray::{ArrayD, IxDyn};

use crate::{by_turns, close, name};

#[test]
fn ranges_and_constants() {
    let row = |values: Vec<f64>| ArrayD::from_shape_vec(IxDyn(&[values.len()]), values).unwrap();
    for engine in by_turns() {
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
