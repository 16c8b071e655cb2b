//! Poseidon2 over the rows of a tensor, and trees.

use super::elementwise::word;
use super::kernel::{form_for, kernel};
use super::tensor::FieldTensor;
use crate::algebra::{Operation, Poseidon2, PrimeField};
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;
use cantus_base::listed::Listed;

const FRAME: (&str, &str) = ("poseidon2", cantus_shaders::zk::POSEIDON2);

fn instance<F: PrimeField>(width: usize) -> Result<Poseidon2<F>> {
    Poseidon2::standard(width).ok_or_else(|| {
        Error::invalid(
            format!("Poseidon2 of {width} elements of {}", F::KIND),
            "there are instances for 16 and 24 of BabyBear and KoalaBear, and for 3 of BN254's scalars",
        )
    })
}

impl<F: PrimeField> FieldTensor<F> {
    /// Returns each row along the last axis, permuted by Poseidon2 with the authors' constants. Rows have 16 or 24 elements of BabyBear or KoalaBear
    /// (Plonky3's instances), or 3 of BN254's scalars.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where there is no such instance, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn poseidon2_async(&self) -> Result<Self> {
        let width = self.shape().last().copied().unwrap_or(0);
        self.absorbed(width, width, width).await
    }

    /// Returns the digest of each row of a matrix, `out` elements, by a sponge without padding (Plonky3's `PaddingFreeSponge`): `rate` elements at a
    /// time take the places of the state's first. Rows of one length alone can be told apart.
    ///
    /// # Errors
    /// [`Error::Shape`] for a rate or an output that exceeds the width, else as [`FieldTensor::poseidon2_async`].
    pub async fn poseidon2_hash_async(&self, width: usize, rate: usize, out: usize) -> Result<Self> {
        self.absorbed(width, rate, out).await
    }

    /// Returns the root of the tree over digests of `out` elements, the rows of a matrix: a parent is the beginning of its permuted children
    /// (Plonky3's `TruncatedPermutation`). The number of rows is a power of two.
    ///
    /// # Errors
    /// [`Error::Shape`] for other numbers of rows, or two digests that exceed the width; else as [`FieldTensor::poseidon2_async`].
    pub async fn poseidon2_root_async(&self, width: usize) -> Result<Vec<F>> {
        let &[rows, out] = self.shape() else { return Err(shape_error(self.shape())) };
        if !rows.is_power_of_two() || 2 * out > width {
            return Err(shape_error(self.shape()));
        }
        let mut level = self.clone();
        while level.shape()[0] > 1 {
            let half = level.shape()[0] / 2;
            level = level.reshape_async(&[half, 2 * out]).await?.absorbed(width, 2 * out, out).await?;
        }
        level.to_vec_async().await
    }

    async fn absorbed(&self, width: usize, rate: usize, out: usize) -> Result<Self> {
        let poseidon = instance::<F>(width)?;
        let Some((&length, lead)) = self.shape().split_last() else { return Err(shape_error(self.shape())) };
        if rate == 0 || rate > width || out > width {
            return Err(Error::shape(
                format!("a sponge of rate {rate} with {out} elements of output"),
                format!("the permutation is of {width}"),
            ));
        }
        let (engine, rows) = (self.tensor().engine(), lead.iter().product::<usize>());
        let words: Vec<usize> = lead.iter().copied().chain([out, F::WORDS]).listed();
        if rows * length * out == 0 {
            return Ok(Self::of(engine.zeros_of_async(DType::U32, &words).await?));
        }
        let operation = Operation::Poseidon2 { field: F::KIND, width, rows, length, rate, out };
        if let Some(result) = native(&engine, operation, &[self.tensor()], &words, FRAME.0).await? {
            return Ok(Self::of(result));
        }
        let power = match poseidon.exponent() {
            3 => "fe_mul(fe_mul(x, x), x)",
            5 => "fe_mul(fe_square(fe_square(x)), x)",
            _ => "fe_mul(fe_mul(fe_square(fe_square(x)), fe_square(x)), x)",
        };
        let constants = poseidon.constants();
        let partial = constants.len() - 9 * width;
        let functions = format!(
            "const WIDTH = {width}u;\nconst PARTIAL = {partial}u;\nfn fe_square(x: Fe) -> Fe {{ return fe_mul(x, x); }}\nfn power(x: Fe) -> Fe {{ return {power}; }}\n"
        );
        let kernel = kernel(FRAME, F::KIND, form_for(self.tensor()), &functions)?;
        let constants = Self::from_elements_async(&engine, &constants).await?;
        let result = engine.output_async(Some(self.tensor()), DType::U32, &words, FRAME.0).await?;
        word(rows * length)?;
        engine
            .dispatch(&kernel)
            .set("sizes.rows", word(rows)?)
            .set("sizes.length", word(length)?)
            .set("sizes.rate", word(rate)?)
            .set("sizes.out", word(out)?)
            .bind("x", self.tensor())
            .bind("constants", constants.tensor())
            .bind("y", &result)
            .invocations(rows)
            .run_async()
            .await?;
        Ok(Self::of(result))
    }
}

fn shape_error(shape: &[usize]) -> Error {
    Error::shape(
        format!("Poseidon2 over a tensor of shape {shape:?}"),
        "it takes rows; a tree takes a power of two of them, two of which fit the permutation",
    )
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl<F: PrimeField> FieldTensor<F> {
    /// [`FieldTensor::poseidon2_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn poseidon2(&self) -> Result<Self> {
        crate::engine::blocking::block_on(self.poseidon2_async())
    }

    /// [`FieldTensor::poseidon2_hash_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn poseidon2_hash(&self, width: usize, rate: usize, out: usize) -> Result<Self> {
        crate::engine::blocking::block_on(self.poseidon2_hash_async(width, rate, out))
    }

    /// [`FieldTensor::poseidon2_root_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn poseidon2_root(&self, width: usize) -> Result<Vec<F>> {
        crate::engine::blocking::block_on(self.poseidon2_root_async(width))
    }
}
