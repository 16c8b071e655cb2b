//! The two reductions on devices that run operations and no kernels: expressions that give a number for each row.

use super::{Centre, Moments};
use crate::engine::Tensor;
use crate::error::Result;
use cantus_base::listed::Listed;
use cantus_engine::ops::Expr;

/// Returns whether the field lies on such a device.
pub(super) fn serves(values: &Tensor) -> bool {
    values.device().capabilities.operation_graphs
}

async fn numbers(rows: &Expr) -> Result<Vec<f64>> {
    Ok(rows.eval_async().await?.to_vec_async::<f32>().await?.into_iter().map(f64::from).listed())
}

async fn sum(values: &Expr) -> Result<f64> {
    Ok(numbers(&values.sum(&[1], false)).await?.into_iter().sum())
}

fn centred(values: &Tensor, centre: Centre) -> Expr {
    (values - f64::from(centre.high)) * f64::from(centre.factor) - f64::from(centre.shift)
}

/// Computes `Sheet::scaled_moments` row by row.
pub(super) async fn moments(values: &Tensor, factor: f32) -> Result<Option<Moments>> {
    let &[height, width] = values.shape() else { return Ok(None) };
    let first = values.slice(&[0..1, 0..1]);
    let largest = numbers(&values.abs().max(&[1], false)).await?;
    if !largest.iter().all(|largest| largest.is_finite()) {
        return Ok(None);
    }
    let distances = (values - &first) * f64::from(factor);
    let means = distances.mean(&[1], true);
    let apart = &distances - &means;
    let squares = numbers(&(&apart * &apart).sum(&[1], false)).await?;
    let means = numbers(&means).await?;
    let first = numbers(&first).await?.into_iter().sum::<f64>();
    let factor = f64::from(factor);
    let rows = means.into_iter().zip(squares).map(|(mean, squares)| Moments {
        count: width as f64,
        mean: first + mean / factor,
        squares: squares / factor / factor,
        largest: 0.0,
        neighbours: None,
    });
    let all = rows.take(height).fold(Moments::default(), |all, row| all.with(&row));
    Ok(Some(Moments { largest: largest.into_iter().fold(0.0, f64::max), ..all }))
}

/// Computes `Sheet::neighbours` row by row, of at least two rows and two columns.
pub(super) async fn neighbours(values: &Tensor, centre: Centre) -> Result<f64> {
    let (z, &[height, width]) = (centred(values, centre), values.shape()) else { return Ok(0.0) };
    let (upper, left) = (z.slice(&[0..height - 1, 1..width]), z.slice(&[1..height, 0..width - 1]));
    sum(&(z.slice(&[1..height, 1..width]) * (upper + left)).abs()).await
}
