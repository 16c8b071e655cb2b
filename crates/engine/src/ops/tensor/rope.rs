//! Rotary positions, and dropout.

use super::arrange::places_along;
use super::random::rand;
use crate::error::Error;
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, is_float};
use crate::tensor::DType;

/// The pairs of elements of a vector that [`Expr::rope`] rotates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RopePairs {
    /// Neighbours: 0 and 1, 2 and 3, … as the paper and GPT-J have it.
    Interleaved,
    /// Element i and that half a vector further, as GPT-NeoX and Llama have it.
    Halves,
}

impl Expr {
    /// Applies rotary position embedding (Su et al., 2021) to vectors along the last axis: pair i of d / 2 is rotated by position base^(-2i/d). The axis
    /// before the last counts the vectors. `positions` has the position of each: f32, i32 or u32 of the shape (vectors), from 0 to 10,000.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::RopePairs;
    /// let x = engine.tensor_from(&[1.0_f32, 0.0, 1.0, 0.0], &[2, 2])?;
    /// let y = x.rope(engine.tensor(&[0_u32, 1])?, 10_000.0, RopePairs::Halves).eval()?.to_vec::<f32>()?;
    /// let expected = [1.0, 0.0, 1.0_f32.cos(), 1.0_f32.sin()]; // position 0 is not turned
    /// assert!(y.iter().zip(expected).all(|(y, expected)| (y - expected).abs() < 1e-6));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn rope(&self, positions: impl Into<Self>, base: f64, pairs: RopePairs) -> Self {
        let positions = positions.into();
        self.in_float(|x| {
            let shape = x.shape()?;
            let fault = |reason: &str| Err(Error::shape(format!("rope of {shape:?}"), reason));
            let [.., vectors, width] = *shape else {
                return fault("it needs at least two axes: vectors and their elements");
            };
            if width % 2 != 0 || base.is_nan() || base <= 1.0 {
                return fault("a vector needs an even number of elements, and the base must exceed 1");
            }
            if positions.shape()? != [vectors] {
                return fault("each vector needs one position");
            }
            if x.state.as_ref().is_ok_and(|typed| typed.count() == 0) {
                return Ok(x.clone());
            }
            let half = (width / 2) as f64;
            let place = places_along(&x.engine, &[width], 0);
            let (pair, first) = match pairs {
                RopePairs::Interleaved => (place.binary(Binary::Div, 2), place.bitwise_and(1).equal(0)),
                RopePairs::Halves => (place.fmod(half), place.less(half)),
            };
            let other = x.picked(shape.len() - 1, width, |place, _| match pairs {
                RopePairs::Interleaved => place.bitwise_xor(1),
                RopePairs::Halves => place.binary(Binary::Add, half).fmod(width as f64),
            });
            let speed = pair.cast(DType::F32).binary(Binary::Mul, -base.ln() / half).exp();
            let angle = positions.cast(DType::F32).expand(-1).binary(Binary::Mul, speed);
            let sine = angle.sin();
            let turned = first.select(sine.negate(), &sine);
            Ok(x.binary(Binary::Mul, angle.cos()).binary(Binary::Add, other.binary(Binary::Mul, turned)))
        })
    }

    /// Returns 0 with a probability of `p`, and x / (1 - p) otherwise (Srivastava et al., 2014). `seed` and an element's index decide whether it stays,
    /// as with [`crate::ops::rand`], so every device gives the same result.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = cantus::ops::full(&engine, &[1000], 1.0, cantus::DType::F32);
    /// let y = x.dropout(0.5, 7).eval()?.to_vec::<f32>()?;
    /// assert!(y.iter().all(|y| [0.0, 2.0].contains(y)));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn dropout(&self, p: f64, seed: u64) -> Self {
        let checked = self.derived(|typed| match (is_float(typed.dtype), (0.0..1.0).contains(&p)) {
            (true, true) => Ok(typed.clone()),
            _ => Err(Error::invalid(
                format!("dropout of {} with a probability of {p}", typed.dtype),
                "it needs floats, and a probability from 0 to below 1",
            )),
        });
        let shape = match checked.shape() {
            Ok(shape) => shape.to_vec(),
            Err(error) => return self.failed(&error),
        };
        let stays = rand(&self.engine, &shape, seed).greater_equal(p);
        stays.select(checked.binary(Binary::Mul, (1.0 - p).recip()), checked.constant(0.0))
    }
}

tensor_methods! {
    fn rope(positions: impl Into<Expr>, base: f64, pairs: RopePairs);
    fn dropout(p: f64, seed: u64);
}
