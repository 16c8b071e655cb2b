//! The three reductions on devices that run operations and no kernels: expressions that give a number for each row.

use super::Centre;
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::Expr;

/// Whether the field lies on such a device.
pub(super) fn serves(values: &Tensor) -> bool {
    values.device().capabilities.operation_graphs
}

async fn numbers(rows: &Expr) -> Result<Vec<f64>> {
    Ok(rows.eval_async().await?.to_vec_async::<f32>().await?.into_iter().map(f64::from).collect())
}

async fn sum(values: &Expr) -> Result<f64> {
    Ok(numbers(&values.sum(&[1], false)).await?.into_iter().sum())
}

fn centred(values: &Tensor, centre: Centre) -> Expr {
    (values - f64::from(centre.high)) * f64::from(centre.factor) - f64::from(centre.shift)
}

/// As `Sheet::sums`.
pub(super) async fn sums(values: &Tensor, factor: f32) -> Result<Option<(f64, f64, f64)>> {
    let first = values.slice(&[0..1, 0..1]);
    let largest = numbers(&values.abs().max(&[1], false)).await?;
    let sum = sum(&((values - &first) * f64::from(factor))).await?;
    let first = numbers(&first).await?.into_iter().sum();
    let is_finite = largest.iter().all(|largest| largest.is_finite());
    Ok(is_finite.then(|| (sum, largest.into_iter().fold(0.0, f64::max), first)))
}

/// As `Sheet::deviation`.
pub(super) async fn deviation(values: &Tensor, centre: Centre) -> Result<(f64, f64)> {
    let z = centred(values, centre);
    Ok((sum(&z).await?, sum(&(&z * &z)).await?))
}

/// As `Sheet::neighbours`, of two rows and two columns at least.
pub(super) async fn neighbours(values: &Tensor, centre: Centre) -> Result<f64> {
    let (z, &[height, width]) = (centred(values, centre), values.shape()) else { return Ok(0.0) };
    let (upper, left) = (z.slice(&[0..height - 1, 1..width]), z.slice(&[1..height, 0..width - 1]));
    sum(&(z.slice(&[1..height, 1..width]) * (upper + left)).abs()).await
}
