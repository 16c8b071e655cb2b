//! Coherence in one reading, where a native kernel holds the whole field on chip: its moments and the sum over its neighbours.

use super::{Moments, Sheet};
use crate::error::Result;
use cantus_engine::ops::taken_over;

const WHOLE: &str = cantus_shaders::tensor::COHERENCE_WHOLE;

/// Computes `Sheet::scaled_moments`; the outer `None` if there is no native kernel for it.
pub(super) async fn moments(sheet: &Sheet<'_>, factor: f32) -> Result<Option<Option<Moments>>> {
    let words = [sheet.height, sheet.width, factor.to_bits()];
    let taken = taken_over(&sheet.engine, sheet.values, ("coherence_whole", WHOLE), &words, &[4]).await?;
    let Some(y) = taken else { return Ok(None) };
    let &[mean, squares, largest, neighbours] = y.to_vec_async::<f32>().await?.as_slice() else { return Ok(None) };
    if largest < 0.0 {
        return Ok(Some(None));
    }
    let [mean, squares, largest, neighbours] = [mean, squares, largest, neighbours].map(f64::from);
    let scale = f64::from(factor).powi(2);
    let (squares, neighbours) = (squares / scale, Some(neighbours / scale));
    Ok(Some(Some(Moments { count: sheet.values.len() as f64, mean, squares, largest, neighbours })))
}
