//! The field family on an engine.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{CantusError, Result};
use crate::off_thread;
use crate::tensor::Tensor;

/// A frequency: one of the six named ones, or any positive finite number.
#[derive(Debug, Clone, Copy, PartialEq, uniffi::Enum)]
pub enum Frequency {
    /// 528 Hz
    Love,
    /// 432 Hz
    Unity,
    /// 594 Hz
    Cascade,
    /// 672 Hz
    Truth,
    /// 720 Hz
    Vision,
    /// 768 Hz
    Oneness,
    /// Any other.
    Hertz {
        /// In Hz; positive and finite.
        value: f64,
    },
}

/// Sides of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Record)]
pub struct Grid {
    /// Columns, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
}

/// The parameters of `Engine.field`.
#[derive(Debug, Clone, Copy, PartialEq, uniffi::Record)]
pub struct FieldParams {
    /// Columns, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
    /// The frequency.
    pub frequency: Frequency,
    /// The time; any finite number.
    #[uniffi(default = 0.0)]
    pub time: f64,
}

#[uniffi::export]
impl Engine {
    /// The damped spiral wave: an f32 tensor of shape `[height, width]`, with values from -1 to 1.
    ///
    /// # Errors
    /// `Shape` for a side of 0; `InvalidInput` for a frequency that is not positive and finite, or a time that is not finite.
    pub async fn field(&self, params: FieldParams) -> Result<Arc<Tensor>> {
        let engine = self.inner.clone();
        Ok(Tensor::shared(off_thread(move || cantus::ops::field::field(&engine, &params.into())).await?))
    }

    /// The golden-ratio spiral: an f32 tensor of shape `[height, width]`.
    ///
    /// # Errors
    /// `Shape` for a side of 0.
    pub async fn phi_pattern(&self, grid: Grid) -> Result<Arc<Tensor>> {
        let engine = self.inner.clone();
        let (width, height) = (grid.width as usize, grid.height as usize);
        Ok(Tensor::shared(off_thread(move || cantus::ops::field::phi_pattern(&engine, width, height)).await?))
    }

    /// Returns how strongly the values of a field agree with their upper and left neighbours, from 0 to 1.
    ///
    /// # Errors
    /// `Dtype` unless it is f32, `Shape` unless it has two axes, `InvalidInput` unless its values are finite.
    pub async fn coherence(&self, field: Arc<Tensor>) -> Result<f32> {
        let engine = self.inner.clone();
        off_thread(move || cantus::ops::coherence(&engine, &field.inner)).await
    }
}

/// A frequency from text: a name, or a number of Hz.
///
/// # Errors
/// `InvalidInput` with the names.
#[uniffi::export]
pub fn parse_frequency(text: String) -> Result<Frequency> {
    use cantus::ops::field::Frequency as F;
    Ok(match text.parse::<F>().map_err(CantusError::from)? {
        F::Love => Frequency::Love,
        F::Unity => Frequency::Unity,
        F::Cascade => Frequency::Cascade,
        F::Truth => Frequency::Truth,
        F::Vision => Frequency::Vision,
        F::Oneness => Frequency::Oneness,
        // A name that these bindings do not have is a number to them.
        other => Frequency::Hertz { value: other.hertz() },
    })
}

impl From<Frequency> for cantus::ops::field::Frequency {
    fn from(frequency: Frequency) -> Self {
        match frequency {
            Frequency::Love => Self::Love,
            Frequency::Unity => Self::Unity,
            Frequency::Cascade => Self::Cascade,
            Frequency::Truth => Self::Truth,
            Frequency::Vision => Self::Vision,
            Frequency::Oneness => Self::Oneness,
            Frequency::Hertz { value } => Self::Hertz(value),
        }
    }
}

impl From<FieldParams> for cantus::ops::field::FieldParams {
    fn from(params: FieldParams) -> Self {
        Self::new(params.width as usize, params.height as usize).frequency(params.frequency.into()).time(params.time)
    }
}
