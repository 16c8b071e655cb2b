//! Number-theoretic transforms of rows. Only checks and shifts are here; the passes are kernels, or the CPU's own operation. Values come in natural order.
//! A coset's shift must not be 0, and the length must be a power of two within the field's two-adicity.

use super::elementwise::word;
use super::kernel::{form_for, kernel};
use super::tensor::FieldTensor;
use crate::algebra::{Operation, PrimeField, powers};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;

const NTT: (&str, &str) = ("ntt", cantus_shaders::zk::NTT);

impl<F: PrimeField> FieldTensor<F> {
    /// Number-theoretic transforms of the rows along the last axis, whose length is a power of two up to 2^[`two_adicity`]: from the coefficients
    /// of a polynomial to its values at the powers of [`PrimeField::root_of_unity`], in their order.
    ///
    /// [`two_adicity`]: crate::FieldKind::two_adicity
    ///
    /// # Errors
    /// [`Error::Shape`] for other lengths, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn ntt_async(&self) -> Result<Self> {
        self.transformed(false, F::ONE).await
    }

    /// Returns the inverse of [`FieldTensor::ntt_async`]: from values to coefficients.
    ///
    /// # Errors
    /// As [`FieldTensor::ntt_async`].
    pub async fn inverse_ntt_async(&self) -> Result<Self> {
        self.transformed(true, F::ONE).await
    }

    /// Returns the values on a coset: at `shift` times the powers of the root.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a shift of 0, else as [`FieldTensor::ntt_async`].
    pub async fn coset_ntt_async(&self, shift: F) -> Result<Self> {
        self.transformed(false, shift).await
    }

    /// Returns the inverse of [`FieldTensor::coset_ntt_async`].
    ///
    /// # Errors
    /// As [`FieldTensor::coset_ntt_async`].
    pub async fn inverse_coset_ntt_async(&self, shift: F) -> Result<Self> {
        self.transformed(true, shift).await
    }

    async fn transformed(&self, inverse: bool, shift: F) -> Result<Self> {
        let length = self.shape().last().copied().unwrap_or(1);
        let log = length.checked_ilog2().unwrap_or(0);
        let root = F::root_of_unity(log).filter(|_| length.is_power_of_two());
        let Some(root) = root else {
            return Err(Error::shape(
                format!("a transform of {length} elements of {}", F::KIND),
                format!("lengths are powers of two up to 2^{}", F::KIND.two_adicity()),
            ));
        };
        let Some(unshift) = shift.inverse() else {
            return Err(Error::invalid("the shift of a coset", "it is 0"));
        };
        if self.is_empty() || (length == 1 && !self.is_empty()) {
            return Ok(self.clone());
        }
        let (engine, rows) = (self.tensor().engine(), self.len() / length);
        let shift_words = bytemuck::cast_slice::<F, u32>(&[shift]).to_vec();
        let operation = Operation::Ntt { field: F::KIND, rows, log, inverse, shift: shift_words };
        let words = self.tensor().shape();
        if let Some(result) = native(&engine, operation, &[self.tensor()], words, "ntt").await? {
            return Ok(Self::of(result));
        }
        let base = if inverse { root.inverse().unwrap_or(root) } else { root };
        let roots = powers(base, F::ONE, length / 2);
        let scale = F::from_u64(length as u64).inverse().unwrap_or(F::ONE);
        let shifts = match (inverse, shift == F::ONE) {
            (false, true) => vec![F::ONE],
            (false, false) => powers(shift, F::ONE, length),
            (true, _) => powers(unshift, scale, length),
        };
        let roots = Self::from_elements_async(&engine, &roots).await?;
        let shifts = Self::from_elements_async(&engine, &shifts).await?;
        let kernel = kernel(NTT, F::KIND, form_for(self.tensor()), "")?;
        let mut current = self.tensor().clone();
        let mut spare: Option<Tensor> = None;
        for pass in 0..log {
            let target = match spare.take() {
                Some(spare) => spare,
                None => engine.output_async(Some(&current), DType::U32, words, "ntt").await?,
            };
            engine
                .dispatch(&kernel)
                .set("sizes.half", word(length / 2)?)
                .set("sizes.pairs", word(rows * length / 2)?)
                .set("sizes.span", word(1 << pass)?)
                .set("sizes.first", u32::from(pass == 0 && !inverse && shift != F::ONE))
                .set("sizes.last", u32::from(pass + 1 == log && inverse))
                .bind("x", &current)
                .bind("roots", roots.tensor())
                .bind("shifts", shifts.tensor())
                .bind("y", &target)
                .invocations(rows * length / 2)
                .run_async()
                .await?;
            // What was given stays as it is.
            let before = std::mem::replace(&mut current, target);
            spare = (pass > 0).then_some(before);
        }
        Ok(Self::of(current))
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl<F: PrimeField> FieldTensor<F> {
    /// [`FieldTensor::ntt_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::zk::{BabyBear, Field, FieldTensor, PrimeField};
    ///
    /// // 3 + x at the four powers of a fourth root of unity.
    /// let coefficients = [3, 1, 0, 0].map(BabyBear::from_u64);
    /// let x = FieldTensor::from_elements(&engine, &coefficients)?;
    /// let values = x.ntt()?;
    /// let root = BabyBear::root_of_unity(2).unwrap();
    /// assert_eq!(values.to_vec()?[1], coefficients[0] + root);
    /// assert_eq!(values.inverse_ntt()?.to_vec()?, coefficients);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn ntt(&self) -> Result<Self> {
        crate::engine::blocking::block_on(self.ntt_async())
    }

    /// [`FieldTensor::inverse_ntt_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn inverse_ntt(&self) -> Result<Self> {
        crate::engine::blocking::block_on(self.inverse_ntt_async())
    }

    /// [`FieldTensor::coset_ntt_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn coset_ntt(&self, shift: F) -> Result<Self> {
        crate::engine::blocking::block_on(self.coset_ntt_async(shift))
    }

    /// [`FieldTensor::inverse_coset_ntt_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn inverse_coset_ntt(&self, shift: F) -> Result<Self> {
        crate::engine::blocking::block_on(self.inverse_coset_ntt_async(shift))
    }
}
