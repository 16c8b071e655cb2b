//! Operations on tensors against float64 on every device of the machine, over random shapes: empty ones, ones, odd ones, and those that are no
//! multiple of a tile. The seed of a case is in its message.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::single_range_in_vec_init, reason = "a slice of one axis is a list of one range")]

#[path = "../../examples/digits.rs"]
mod digits;
mod graph;
mod linear;
mod memory;
mod misuse;
mod movement;
mod oracle;
mod profile;
mod reduce;
mod special;
mod torch;
mod tuning;

use std::sync::OnceLock;

use cantus::backend::Registry;
use cantus::engine::survey;
use cantus::ops::Expr;
use cantus::{Config, DType, Engine, Fallback, Tensor};
use ndarray::{ArrayD, IxDyn};

/// An engine on each device of the machine.
pub(crate) fn engines() -> &'static [Engine] {
    static ENGINES: OnceLock<Vec<Engine>> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let found = survey(&Registry::with_defaults(), &Config::default()).backends;
        let devices = found.into_iter().flat_map(|backend| backend.devices);
        let opened = devices.map(|info| {
            let builder = Engine::builder().backend(&info.backend).device(info.index).fallback(Fallback::Never);
            builder.build().unwrap_or_else(|error| panic!("{}: {error}", info.name))
        });
        let engines: Vec<Engine> = opened.collect();
        let required = std::env::var("CANTUS_REQUIRE_ADAPTER").is_ok();
        assert!(
            !required || engines.len() > 1,
            "CANTUS_REQUIRE_ADAPTER is set, and there is no device but the processor"
        );
        engines
    })
}

pub(crate) fn name(engine: &Engine) -> String {
    format!("{}: {}", engine.selected().device.backend, engine.selected().device.name)
}

/// Random numbers for tests: xorshift, the same for a seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        let mut numbers = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..8).for_each(|_| _ = numbers.word());
        numbers
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.word() >> 33) as usize % limit
    }

    /// In [-4, 4).
    pub(crate) fn float(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1 << 21) as f32 - 4.0
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
    let values: Vec<f64> = match got.dtype() {
        DType::F32 => got.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        DType::F16 => got.to_vec::<half::f16>().unwrap().into_iter().map(f64::from).collect(),
        DType::I32 => got.to_vec::<i32>().unwrap().into_iter().map(f64::from).collect(),
        DType::U32 => got.to_vec::<u32>().unwrap().into_iter().map(f64::from).collect(),
        other => panic!("{what}: {other}"),
    };
    for (place, (got, want)) in values.iter().zip(expected.iter()).enumerate() {
        let near = (got - want).abs() <= tolerance * want.abs().max(1.0);
        assert!(
            near || got.is_nan() && want.is_nan(),
            "{what}[{place}]: {got}, expected {want}, of {:?}",
            expected.shape()
        );
    }
}
