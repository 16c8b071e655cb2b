//! Random numbers by place: no device keeps a state.

use super::create::places;
use crate::engine::Engine;
use crate::ops::expr::node::{Expr, Node, RandomKind, Typed};
use crate::tensor::DType;

fn random(engine: &Engine, shape: &[usize], seed: u64, kind: RandomKind) -> Expr {
    Expr::made(engine, || {
        let dtype = if kind == RandomKind::Bits { DType::U32 } else { DType::F32 };
        Ok(Typed::new(Node::Random { kind, seed, counter: places(shape)? }, shape.to_vec(), dtype))
    })
}

/// Returns uniform random numbers in [0, 1), multiples of 2^-24: the upper bits of Philox 4x32-10 (Salmon et al., 2011) with the key `seed`. A seed
/// and an index give the same number on every device.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = cantus::ops::rand(&engine, &[1000], 42).eval()?.to_vec::<f32>()?;
/// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
/// assert_eq!(x, cantus::ops::rand(&engine, &[1000], 42).eval()?.to_vec::<f32>()?);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn rand(engine: &Engine, shape: &[usize], seed: u64) -> Expr {
    random(engine, shape, seed, RandomKind::Uniform)
}

/// Returns normal random numbers of mean 0 and deviation 1, by the Box-Muller method from the bits of [`rand`]. A seed and an index give the same
/// number on every device, within the accuracy of its logarithm and sine.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let mean = cantus::ops::randn(&engine, &[10_000], 7).mean(&[], false).eval()?;
/// assert!(mean.item::<f32>()?.abs() < 0.05);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn randn(engine: &Engine, shape: &[usize], seed: u64) -> Expr {
    random(engine, shape, seed, RandomKind::Normal)
}

/// Returns random bits of Philox 4x32-10 with the key `seed`: word i % 4 of block i / 4 for the element at index i.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// // The first words of the published test vector for a key and a counter of 0.
/// let bits = cantus::ops::random_bits(&engine, &[4], 0).eval()?.to_vec::<u32>()?;
/// assert_eq!(bits, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn random_bits(engine: &Engine, shape: &[usize], seed: u64) -> Expr {
    random(engine, shape, seed, RandomKind::Bits)
}
