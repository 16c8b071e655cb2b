//! Results whose size is known only once they are computed: places of what is not 0, elements under a mask, distinct elements. Each waits for
//! one number from the device.

use super::create::arange;
use crate::backend::BoxFuture;
use crate::backend::native::{Function, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::{contiguous, product};
use crate::tensor::DType;

/// The distinct elements of a tensor, ascending.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unique {
    /// The elements, each once.
    pub values: Tensor,
    /// The index into `values` of each element of the tensor, as u32, in the tensor's shape.
    pub inverse: Tensor,
    /// The count of each of `values`, as u32.
    pub counts: Tensor,
}

impl Expr {
    /// The flat places of what is not 0, in order, as u32.
    async fn flat_nonzero(&self) -> Result<Tensor> {
        let count = product(self.shape()?);
        let running = self.not_equal(0.0).reshape(&[count]).cumsum(0).eval_async().await?;
        let total = last(&running).await?;
        if let Some(places) = steps_of(&self.engine, &running, total as usize).await? {
            return Ok(places);
        }
        // The k-th of them is where the count reaches k.
        let wanted = arange(&self.engine, 1.0, f64::from(total) + 1.0, 1.0, DType::U32);
        running.expr().searchsorted(wanted, false).eval_async().await
    }

    /// Returns the indices of the elements that are not 0, in row-major order, as u32 of the shape (number, axes).
    ///
    /// The number of rows is read from the device, so this waits for all earlier work.
    ///
    /// # Errors
    /// As [`Expr::eval_async`], and as reading a tensor.
    pub fn nonzero_async(&self) -> BoxFuture<'_, Result<Tensor>> {
        Box::pin(async move {
            let shape = self.shape()?.to_vec();
            let flat = self.flat_nonzero().await?;
            let mut axes = Vec::new();
            for (&side, stride) in shape.iter().zip(contiguous(&shape)) {
                if flat.is_empty() {
                    break;
                }
                axes.push(flat.floor_divide(stride as f64).fmod(side as f64));
            }
            match axes.split_first() {
                Some((first, others)) => first.stack(others, 1).eval_async().await,
                None => self.engine.zeros_of_async(DType::U32, &[flat.len(), shape.len()]).await,
            }
        })
    }

    /// Returns the elements where a mask of the same shape is not 0, row-major.
    ///
    /// Their number is read from the device, so this waits for all earlier work. To keep the shape, use [`Expr::select`].
    ///
    /// # Errors
    /// As [`Expr::eval_async`], and as reading a tensor.
    pub async fn masked_select_async(&self, mask: impl Into<Self>) -> Result<Tensor> {
        let mask = mask.into();
        let shape = crate::ops::expr::shape::broadcast(self.shape()?, mask.shape()?)?;
        let flat = mask.broadcast_to(&shape).flat_nonzero().await?;
        let all = self.broadcast_to(&shape).reshape(&[product(&shape)]);
        if flat.is_empty() {
            return self.engine.zeros_of_async(self.dtype()?, &[0]).await;
        }
        all.taken(&flat.expr(), 0).eval_async().await
    }

    /// Returns the distinct elements, ascending, with the index of each element among them and their counts. Each NaN counts as distinct.
    ///
    /// Their number is read from the device, so this waits for all earlier work. It sorts.
    ///
    /// # Errors
    /// As [`Expr::eval_async`], and as reading a tensor.
    pub fn unique_async(&self) -> BoxFuture<'_, Result<Unique>> {
        Box::pin(async move {
            let shape = self.shape()?.to_vec();
            let count = product(&shape);
            let flat = self.reshape(&[count]);
            if count == 0 {
                return Ok(Unique {
                    values: flat.eval_async().await?,
                    inverse: self.engine.zeros_of_async(DType::U32, &shape).await?,
                    counts: self.engine.zeros_of_async(DType::U32, &[0]).await?,
                });
            }
            let flat = Self::from(flat.eval_async().await?);
            let order = flat.argsort(0, false).eval_async().await?;
            let sorted = Self::from(flat.taken(&order.expr(), 0).eval_async().await?);
            let one = arange(&self.engine, 1.0, 2.0, 1.0, DType::U32);
            let (after, before) = (sorted.split(&[1, count - 1], 0), sorted.split(&[count - 1, 1], 0));
            let differs = after[1].not_equal(&before[0]).cast(DType::U32);
            let number = one.concat(&[differs], 0).cumsum(0).eval_async().await?;
            let total = last(&number).await?;
            let wanted = arange(&self.engine, 1.0, f64::from(total) + 1.0, 1.0, DType::U32);
            let starts = number.expr().searchsorted(wanted, false).eval_async().await?;
            let edges = starts.concat(&[one * count as f64], 0);
            let inverse = number.expr() - 1;
            Ok(Unique {
                values: sorted.taken(&starts.expr(), 0).eval_async().await?,
                inverse: inverse.permuted_to(&order).reshape(&shape).eval_async().await?,
                counts: edges.diff(1, 0).eval_async().await?,
            })
        })
    }
}

/// The places where counts that end with `total` change, in one native pass on the processor.
async fn steps_of(engine: &Engine, counts: &Tensor, total: usize) -> Result<Option<Tensor>> {
    if total == 0 || !engine.is_processors() {
        return Ok(None);
    }
    let sizes = vec![size_of::<u32>() * counts.len(), size_of::<u32>() * total];
    let function = Function::new((), sizes, |(), inputs, result, _| {
        let (mut before, mut places) = (0, result.chunks_exact_mut(size_of::<u32>()));
        let counts = inputs.iter().flat_map(|input| input.as_chunks::<4>().0).map(|bytes| u32::from_ne_bytes(*bytes));
        for (place, count) in counts.enumerate() {
            if count != before {
                before = count;
                places.next().into_iter().for_each(|to| to.copy_from_slice(&(place as u32).to_ne_bytes()));
            }
        }
        Ok(())
    });
    engine.native_async(NativeOperation::Function(function), &[counts], (DType::U32, &[total]), "nonzero").await
}

/// The last element of counts, or 0 without one.
async fn last(counts: &Tensor) -> Result<u32> {
    let mut last = [0_u32];
    if !counts.is_empty() {
        counts.read_at_async(counts.len() - 1, &mut last).await?;
    }
    Ok(last[0])
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl Expr {
    /// [`Expr::nonzero_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[0.0_f32, 2.0, 3.0, 0.0], &[2, 2])?;
    /// let places = x.expr().nonzero()?;
    /// assert_eq!((places.shape(), places.to_vec::<u32>()?), (&[2, 2][..], vec![0, 1, 1, 0]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn nonzero(&self) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.nonzero_async())
    }

    /// [`Expr::masked_select_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, -2.0, 3.0])?;
    /// assert_eq!(x.expr().masked_select(x.greater(0.0))?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn masked_select(&self, mask: impl Into<Self>) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.masked_select_async(mask))
    }

    /// [`Expr::unique_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let unique = engine.tensor(&[7_i32, -1, 7, 3])?.expr().unique()?;
    /// assert_eq!(unique.values.to_vec::<i32>()?, [-1, 3, 7]);
    /// assert_eq!(unique.inverse.to_vec::<u32>()?, [2, 0, 2, 1]);
    /// assert_eq!(unique.counts.to_vec::<u32>()?, [1, 1, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn unique(&self) -> Result<Unique> {
        crate::engine::blocking::block_on(self.unique_async())
    }
}
