//! Coherence in one reading, where a native kernel holds the whole field on chip: its moments and the sum over its neighbours.

use super::{Moments, Sheet};
use crate::error::Result;
use crate::ops::expr::emit::Writer;
use crate::ops::expr::node::Typed;
use crate::ops::expr::operation::Composed;
use crate::ops::expr::view::reshaped;
use crate::tensor::DType;

const WHOLE: &str = cantus_shaders::tensor::COHERENCE_WHOLE;

/// Computes `Sheet::scaled_moments`; the outer `None` if there is no native kernel for it.
pub(super) async fn moments(sheet: &Sheet<'_>, factor: f32) -> Result<Option<Option<Moments>>> {
    let count = sheet.values.len();
    let mut writer = Writer::new(&[sheet.height, sheet.width, factor.to_bits()]);
    let flat = reshaped(&Typed::read(sheet.values), &[count]);
    writer.function("element", &flat, &[count], &[("place", 0..1)], None)?;
    let launch = Composed {
        name: "coherence_whole",
        writer: &writer,
        output: "f32",
        body: WHOLE,
        workgroups: [1; 3],
        flops: 0,
        rounds: 0,
    };
    if !launch.is_taken_over(&sheet.engine).await? {
        return Ok(None);
    }
    let y = sheet.engine.output_async(Some(sheet.values), DType::F32, &[4], "coherence").await?;
    launch.run(&sheet.engine, &y).await?;
    let &[mean, squares, largest, neighbours] = y.to_vec_async::<f32>().await?.as_slice() else { return Ok(None) };
    if largest < 0.0 {
        return Ok(Some(None));
    }
    let [mean, squares, largest, neighbours] = [mean, squares, largest, neighbours].map(f64::from);
    let scale = f64::from(factor).powi(2);
    let (squares, neighbours) = (squares / scale, Some(neighbours / scale));
    Ok(Some(Some(Moments { count: count as f64, mean, squares, largest, neighbours })))
}
