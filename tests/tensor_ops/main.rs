//! Operations on tensors against float64 on every device of the machine, over random shapes: empty ones, ones, odd ones, and those that are no
//! multiple of a tile. The seed of a case is in its message.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::single_range_in_vec_init, reason = "a slice of one axis is a list of one range")]

mod arrange;
mod assemble;
mod conv2d;
mod counted;
mod create;
mod cudarc;
#[path = "../../examples/digits.rs"]
mod digits;
mod dtypes;
mod einsum;
mod elementwise;
mod every;
mod fft;
mod gather;
mod graph;
mod host;
mod interpolate;
mod layer_norm;
mod layers;
mod limits;
mod linalg;
mod long_axes;
mod matmul;
mod memory;
mod misuse;
mod narrow;
mod native;
mod networks;
mod nonzero;
mod numpy;
mod oracle;
mod pad;
mod peers;
mod pool2d;
mod profile;
mod programs;
mod random;
mod reduce;
mod replay;
mod rms_norm;
mod scan;
mod scatter;
mod shapes;
mod softmax;
mod sort;
mod sparse;
mod special;
mod summary;
mod torch;
mod tuning;
mod values;
mod view;

use cantus::ops::Expr;
use cantus::{Engine, Tensor};
pub(crate) use kit::engine::{by_turns, engines, name};
use kit::inputs::Random;
pub(crate) use kit::turn::{few, seeds};
use ndarray::{ArrayD, IxDyn};

/// Random numbers, shapes and arrays.
pub(crate) struct Numbers(Random);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.0.u64() >> 33) as usize % limit
    }

    /// In [-4, 4).
    pub(crate) fn float(&mut self) -> f32 {
        (self.0.u64() >> 40) as f32 / (1 << 21) as f32 - 4.0
    }

    /// A length: 0 rarely, often 1 or odd, at most `most`.
    pub(crate) fn side(&mut self, most: usize) -> usize {
        match self.below(20) {
            0 => 0,
            1..4 => 1,
            _ => 1 + self.below(most),
        }
    }

    pub(crate) fn shape(&mut self, rank: usize, most: usize) -> Vec<usize> {
        (0..rank).map(|_| self.side(most)).collect()
    }

    pub(crate) fn array(&mut self, shape: &[usize]) -> ArrayD<f32> {
        let count = shape.iter().product();
        ArrayD::from_shape_vec(IxDyn(shape), (0..count).map(|_| self.float()).collect()).unwrap()
    }
}

pub(crate) fn tensor(engine: &Engine, array: &ArrayD<f32>) -> Tensor {
    engine.tensor_from_array(array).unwrap()
}

pub(crate) fn halves(engine: &Engine, array: &ArrayD<f32>) -> Tensor {
    engine.tensor_from_array(&array.mapv(half::f16::from_f32)).unwrap()
}

/// The array as halves hold it, in float64.
pub(crate) fn of_halves(array: &ArrayD<f32>) -> ArrayD<f64> {
    array.mapv(|x| half::f16::from_f32(x).to_f64())
}

pub(crate) fn wide(array: &ArrayD<f32>) -> ArrayD<f64> {
    array.mapv(f64::from)
}

/// Within `tolerance`, absolute or relative to what is expected.
pub(crate) fn close(got: &Expr, expected: &ArrayD<f64>, tolerance: f64, what: &str) {
    let got = got.eval().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(got.shape(), expected.shape(), "{what}: shape");
    let values = values::doubles(&got);
    for (place, (got, want)) in values.iter().zip(expected.iter()).enumerate() {
        let near = (got - want).abs() <= tolerance * want.abs().max(1.0);
        assert!(
            near || got.is_nan() && want.is_nan(),
            "{what}[{place}]: {got}, expected {want}, of {:?}",
            expected.shape()
        );
    }
}
