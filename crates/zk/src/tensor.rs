//! Elements of a field on a device. Everything in this crate computes with `FieldTensor`. Memory holds elements in the field's own form (Montgomery's, for
//! most), which is not what limbs and bytes are: those are converted on the host. `Check` says what is looked at when data come in.

use std::marker::PhantomData;

use crate::algebra::{Field, PrimeField};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::host::DType;
use cantus_base::listed::Listed;
use cantus_base::memory;

/// The names of what has no memory, in errors.
const ELEMENTS: &str = "elements of a field";
const LIMBS: &str = "the limbs of elements";

/// The treatment of values that are not below the modulus, and of points that are not on the curve or in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// They are errors. Of points: the equation and the subgroup.
    Strict,
    /// Values are taken modulo the order; points are checked as with [`Check::Strict`].
    Reduce,
    /// Nothing is looked at. Whoever made the data knows that it is right: otherwise results mean nothing, though nothing else suffers.
    Trusted,
}

/// An array of elements of a field on a device. Each element takes [`Field::WORDS`] words of u32, in Montgomery's form if
/// [`crate::FieldKind::is_montgomery`] says so, on every device. Clones are cheap and share the memory.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{BabyBear, Field, FieldTensor};
///
/// let x = FieldTensor::from_elements(&engine, &[1, 2, 3].map(BabyBear::from_u64))?;
/// assert_eq!(x.mul(&x)?.sum()?.to_vec()?, [BabyBear::from_u64(14)]);
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FieldTensor<F> {
    tensor: Tensor,
    field: PhantomData<F>,
}

impl<F: Field> FieldTensor<F> {
    /// Returns the elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shape's product is not the number of elements, else as [`Engine::tensor_async`].
    pub async fn from_shaped_async(engine: &Engine, elements: &[F], shape: &[usize]) -> Result<Self> {
        if shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side)) != Some(elements.len()) {
            return Err(Error::shape(
                format!("the shape {shape:?}"),
                format!("{} elements were given", elements.len()),
            ));
        }
        let shape: Vec<usize> = shape.iter().copied().chain([F::WORDS]).listed();
        let tensor = engine.tensor_from_bytes_async(DType::U32, &shape, bytemuck::cast_slice(elements)).await?;
        Ok(Self::of(tensor))
    }

    /// Creates a list of elements.
    ///
    /// # Errors
    /// As [`Engine::tensor_async`].
    pub async fn from_elements_async(engine: &Engine, elements: &[F]) -> Result<Self> {
        Self::from_shaped_async(engine, elements, &[elements.len()]).await
    }

    /// Returns the values in 32-bit limbs, the least significant first, [`Field::WORDS`] for an element.
    ///
    /// # Errors
    /// [`Error::Shape`] when they are no whole number of elements; [`Error::InvalidInput`] with the place of the first value that is not
    /// below the modulus ([`Check::Strict`]); else as [`Engine::tensor_async`].
    pub async fn from_limbs_async(engine: &Engine, limbs: &[u32], check: Check) -> Result<Self>
    where
        F: PrimeField,
    {
        let elements = elements_from_limbs::<F>(limbs, check)?;
        Self::from_elements_async(engine, &elements).await
    }

    /// Returns the values as big-endian bytes, four times [`Field::WORDS`] for an element: 32 for the scalars and coordinates of BN254, as in
    /// EIP-196.
    ///
    /// # Errors
    /// As [`FieldTensor::from_limbs_async`].
    pub async fn from_be_bytes_async(engine: &Engine, bytes: &[u8], check: Check) -> Result<Self>
    where
        F: PrimeField,
    {
        if !bytes.len().is_multiple_of(4 * F::WORDS) {
            return Err(ragged::<F>(bytes.len(), "bytes", 4));
        }
        let limbs = bytes.chunks_exact(4 * F::WORDS).flat_map(|element| {
            element.rchunks_exact(4).map(|word| word.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
        });
        let limbs = memory::collect(LIMBS, bytes.len() / 4, limbs)?;
        Self::from_limbs_async(engine, &limbs, check).await
    }

    /// Creates an array from words as they are in memory: 32-bit limbs, the least significant first, in Montgomery's form if the field has it, as in
    /// arkworks' `Fp`.
    ///
    /// # Errors
    /// As [`FieldTensor::from_limbs_async`]; [`Check::Reduce`] counts as strict.
    pub async fn from_memory_async(engine: &Engine, words: &[u32], check: Check) -> Result<Self> {
        if !words.len().is_multiple_of(F::WORDS) {
            return Err(ragged::<F>(words.len(), "words", 1));
        }
        let elements = elements_of::<F>(words)?;
        if check != Check::Trusted
            && let Some(place) = elements.iter().position(|element| !element.is_reduced())
        {
            return Err(unreduced::<F>(place));
        }
        Self::from_elements_async(engine, &elements).await
    }

    /// Returns the elements, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_vec_async(&self) -> Result<Vec<F>> {
        elements_of(&self.tensor.to_vec_async::<u32>().await?)
    }

    /// Returns the values in 32-bit limbs, the least significant first, [`Field::WORDS`] for an element.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_limbs_async(&self) -> Result<Vec<u32>> {
        let elements = self.to_vec_async().await?;
        memory::collect(LIMBS, elements.len() * F::WORDS, elements.into_iter().flat_map(F::to_limbs))
    }

    /// Returns the values as big-endian bytes, four times [`Field::WORDS`] for an element.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_be_bytes_async(&self) -> Result<Vec<u8>> {
        let limbs = self.to_limbs_async().await?;
        let bytes =
            limbs.chunks_exact(F::WORDS).flat_map(|limbs| limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()));
        memory::collect("the bytes of elements", 4 * limbs.len(), bytes)
    }

    /// Returns the words as they are in memory.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_memory_async(&self) -> Result<Vec<u32>> {
        self.tensor.to_vec_async::<u32>().await
    }

    /// Returns the lengths of the axes; `[]` for a single element.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        let shape = self.tensor.shape();
        &shape[..shape.len() - 1]
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the words, as a tensor of u32 with an axis of [`Field::WORDS`] behind the others.
    #[must_use]
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Over words that operations wrote.
    pub(super) fn of(tensor: Tensor) -> Self {
        Self { tensor, field: PhantomData }
    }

    /// Returns the same elements in another shape: a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of elements is another, else as [`Engine::tensor_async`].
    pub async fn reshape_async(&self, shape: &[usize]) -> Result<Self> {
        let whole: Vec<usize> = shape.iter().copied().chain([F::WORDS]).listed();
        Ok(Self::of(self.tensor.reshape(&whole).eval_async().await?))
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl<F: Field> FieldTensor<F> {
    /// [`FieldTensor::from_shaped_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_shaped(engine: &Engine, elements: &[F], shape: &[usize]) -> Result<Self> {
        crate::engine::blocking::block_on(Self::from_shaped_async(engine, elements, shape))
    }

    /// [`FieldTensor::from_elements_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_elements(engine: &Engine, elements: &[F]) -> Result<Self> {
        crate::engine::blocking::block_on(Self::from_elements_async(engine, elements))
    }

    /// [`FieldTensor::from_limbs_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::zk::{Check, FieldTensor, Mersenne31};
    ///
    /// let modulus = (1 << 31) - 1;
    /// assert!(FieldTensor::<Mersenne31>::from_limbs(&engine, &[modulus], Check::Strict).is_err());
    /// let reduced = FieldTensor::<Mersenne31>::from_limbs(&engine, &[modulus + 2], Check::Reduce)?;
    /// assert_eq!(reduced.to_limbs()?, [2]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_limbs(engine: &Engine, limbs: &[u32], check: Check) -> Result<Self>
    where
        F: PrimeField,
    {
        crate::engine::blocking::block_on(Self::from_limbs_async(engine, limbs, check))
    }

    /// [`FieldTensor::from_be_bytes_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_be_bytes(engine: &Engine, bytes: &[u8], check: Check) -> Result<Self>
    where
        F: PrimeField,
    {
        crate::engine::blocking::block_on(Self::from_be_bytes_async(engine, bytes, check))
    }

    /// [`FieldTensor::from_memory_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_memory(engine: &Engine, words: &[u32], check: Check) -> Result<Self> {
        crate::engine::blocking::block_on(Self::from_memory_async(engine, words, check))
    }

    /// [`FieldTensor::to_vec_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_vec(&self) -> Result<Vec<F>> {
        crate::engine::blocking::block_on(self.to_vec_async())
    }

    /// [`FieldTensor::to_limbs_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_limbs(&self) -> Result<Vec<u32>> {
        crate::engine::blocking::block_on(self.to_limbs_async())
    }

    /// [`FieldTensor::to_be_bytes_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_be_bytes(&self) -> Result<Vec<u8>> {
        crate::engine::blocking::block_on(self.to_be_bytes_async())
    }

    /// [`FieldTensor::to_memory_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_memory(&self) -> Result<Vec<u32>> {
        crate::engine::blocking::block_on(self.to_memory_async())
    }
}

/// Values in limbs as elements.
pub(super) fn elements_from_limbs<F: PrimeField>(limbs: &[u32], check: Check) -> Result<Vec<F>> {
    if !limbs.len().is_multiple_of(F::WORDS) {
        return Err(ragged::<F>(limbs.len(), "limbs", 1));
    }
    let element = |(place, limbs): (usize, &[u32])| match check {
        Check::Strict => F::from_limbs(limbs).ok_or_else(|| unreduced::<F>(place)),
        _ => Ok(F::from_limbs(limbs).unwrap_or_else(|| F::reduced_from_limbs(limbs))),
    };
    let mut elements = memory::vec(ELEMENTS, limbs.len() / F::WORDS)?;
    for limbs in limbs.chunks_exact(F::WORDS).enumerate() {
        elements.push(element(limbs)?);
    }
    Ok(elements)
}

/// Elements from words as they are in memory.
fn elements_of<F: Field>(words: &[u32]) -> Result<Vec<F>> {
    let elements = words.chunks_exact(F::WORDS).map(|words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)));
    memory::collect(ELEMENTS, words.len() / F::WORDS, elements)
}

fn ragged<F: Field>(count: usize, what: &str, each: usize) -> Error {
    Error::shape(
        format!("{count} {what} of {}", F::KIND),
        format!("an element takes {} (give whole elements)", each * F::WORDS),
    )
}

fn unreduced<F: Field>(place: usize) -> Error {
    Error::invalid(
        format!("element {place} of {}", F::KIND),
        "it is not below the modulus (Check::Reduce takes it modulo the order)",
    )
}
