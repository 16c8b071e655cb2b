//! Keys and values of attention that grow in place. It writes into its own tensors past the part that was read so far, so expressions over earlier keys
//! stay valid without a copy. Only after `truncate`, and when the capacity doubles, is something copied. It evaluates what it appends: recording alone
//! would keep every step alive.

use std::sync::Arc;

use super::assemble::place;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::emit::MOST_TENSORS;
use crate::ops::expr::evaluate::{narrowed, resolve};
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::schedule::Schedule;
use crate::ops::expr::view::sliced;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A cache of keys and values for [`Expr::scaled_dot_product_attention`], float32 of the shape (…, key heads, positions, elements). New ones are
/// appended. When the cache is full, its capacity doubles and the contents are copied once.
///
/// Results of [`KeyValueCache::keys`] and [`KeyValueCache::values`] stay valid while more is appended, because nothing is overwritten. After
/// [`KeyValueCache::truncate`], new keys and values go into a copy while such results still exist.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::ops::{Attention, KeyValueCache};
/// let mut cache = KeyValueCache::new(&engine, &[1], [2, 2], 16)?; // one head
/// for step in 0..3 {
///     let x = engine.tensor_from(&[step as f32, 1.0], &[1, 1, 2])?.expr();
///     cache.append(&x, &x)?;
///     let y = x.scaled_dot_product_attention(cache.keys(), cache.values(), &Attention::new()).eval()?;
///     assert_eq!(y.shape(), [1, 1, 2]);
/// }
/// assert_eq!(cache.len(), 3);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyValueCache {
    engine: Engine,
    keys: Tensor,
    values: Tensor,
    length: usize,
    /// Places from here on were never seen.
    seen: usize,
}

/// A tensor's first places.
fn first(typed: &Arc<Typed>, length: usize) -> Arc<Typed> {
    let mut ranges: Vec<_> = typed.shape.iter().map(|&side| 0..side).listed();
    let axis = ranges.len() - 2;
    ranges[axis] = 0..length;
    sliced(typed, &ranges, &vec![1; ranges.len()])
}

impl KeyValueCache {
    /// Creates an empty cache for heads of this shape (…, key heads), with the given numbers of elements of a key and of a value, and room for `capacity`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no head or no element, and the errors of allocating a tensor.
    pub async fn new_async(engine: &Engine, heads: &[usize], widths: [usize; 2], capacity: usize) -> Result<Self> {
        if heads.is_empty() || heads.contains(&0) || widths.contains(&0) {
            return Err(Error::shape(
                format!("a cache for heads of the shape {heads:?} and {widths:?} elements"),
                "it needs at least one axis, one head and one element",
            ));
        }
        let shape = |width: usize| [heads, &[capacity.max(1), width]].concat();
        Ok(Self {
            engine: engine.clone(),
            keys: engine.zeros_of_async(DType::F32, &shape(widths[0])).await?,
            values: engine.zeros_of_async(DType::F32, &shape(widths[1])).await?,
            length: 0,
            seen: 0,
        })
    }

    /// [`KeyValueCache::new_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(engine: &Engine, heads: &[usize], widths: [usize; 2], capacity: usize) -> Result<Self> {
        crate::engine::blocking::block_on(Self::new_async(engine, heads, widths, capacity))
    }

    /// Appends keys (…, key heads, positions, elements) and the same number of values. If that fails, the cache stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes do not match the cache, [`Error::Dtype`] for dtypes other than float32, the first error in the
    /// recorded expressions, and the errors of [`Expr::eval_async`].
    pub async fn append_async(&mut self, keys: impl Into<Expr>, values: impl Into<Expr>) -> Result<()> {
        let (keys, values) = (keys.into(), values.into());
        let (new_keys, new_values) = (self.checked(&keys, &self.keys)?, self.checked(&values, &self.values)?);
        let count = |typed: &Typed| typed.shape[typed.shape.len() - 2];
        if count(&new_keys) != count(&new_values) {
            return Err(Error::shape(
                format!("keys {:?} and values {:?}", new_keys.shape, new_values.shape),
                "both must have the same number of positions",
            ));
        }
        if new_keys.shape.contains(&0) {
            return Ok(());
        }
        let needed = self.length.saturating_add(count(&new_keys));
        let grown = [self.with_room(&self.keys, needed).await?, self.with_room(&self.values, needed).await?];
        // Everything that they read gets a result.
        let schedule = Schedule::default();
        for (new, to) in [(&new_keys, &grown[0]), (&new_values, &grown[1])] {
            if self.length < self.seen {
                to.preserve().await?;
            }
            resolve(&self.engine, &schedule, new, None).await?;
            let part = narrowed(&self.engine, &schedule, new, MOST_TENSORS).await?;
            let mut at = vec![0; part.shape.len()];
            at[part.shape.len() - 2] = self.length;
            place(&self.engine, &part, &at, to).await?;
        }
        [self.keys, self.values] = grown;
        self.length = needed;
        self.seen = needed;
        Ok(())
    }

    /// [`KeyValueCache::append_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn append(&mut self, keys: impl Into<Expr>, values: impl Into<Expr>) -> Result<()> {
        crate::engine::blocking::block_on(self.append_async(keys, values))
    }

    fn checked(&self, new: &Expr, cache: &Tensor) -> Result<Arc<Typed>> {
        let typed = cache.expr().beside(new)?;
        let (shape, own) = (&typed.shape, cache.shape());
        let rank = own.len();
        if typed.dtype != DType::F32 {
            return Err(Error::dtype(format!("keys or values of {}", typed.dtype), "the cache holds f32 (cast first)"));
        }
        let fits = shape.len() == rank && (0..rank).all(|axis| axis == rank - 2 || shape[axis] == own[axis]);
        if !fits {
            return Err(Error::shape(
                format!("keys or values {shape:?}"),
                format!("the cache has {own:?}: all axes must be equal except the last but one"),
            ));
        }
        Ok(typed)
    }

    /// Returns the tensor, or a larger one that begins with its contents.
    async fn with_room(&self, tensor: &Tensor, needed: usize) -> Result<Tensor> {
        let mut shape = tensor.shape().to_vec();
        let axis = shape.len() - 2;
        if needed <= shape[axis] {
            return Ok(tensor.clone());
        }
        shape[axis] = needed.max(shape[axis].saturating_mul(2));
        let wider = self.engine.zeros_of_async(DType::F32, &shape).await?;
        if self.length > 0 {
            let known = first(&Typed::read(tensor), self.length);
            place(&self.engine, &known, &vec![0; shape.len()], &wider).await?;
        }
        Ok(wider)
    }

    /// Returns the keys so far: a view, nothing is copied.
    #[must_use]
    pub fn keys(&self) -> Expr {
        self.keys.expr().derived(|typed| Ok(first(typed, self.length)))
    }

    /// Returns the values so far: a view, nothing is copied.
    #[must_use]
    pub fn values(&self) -> Expr {
        self.values.expr().derived(|typed| Ok(first(typed, self.length)))
    }

    /// Returns the number of positions so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there are no positions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Keeps the first `length` positions; later ones are overwritten.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}
