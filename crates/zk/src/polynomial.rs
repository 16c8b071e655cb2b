//! Polynomials by their coefficients, the constant first, and sums over the corners of cubes. Evaluation, division by a root and the rounds of sumcheck are
//! compositions of `FieldTensor`'s methods, except division, in which each coefficient needs the one above and which therefore runs on the host.

use super::tensor::FieldTensor;
use crate::algebra::{PrimeField, powers};
use crate::error::{Error, Result};

fn flat<F: PrimeField>(tensor: &FieldTensor<F>, what: &str) -> Result<()> {
    if tensor.shape().len() == 1 {
        return Ok(());
    }
    Err(Error::shape(format!("{what} of shape {:?}", tensor.shape()), "it is a list"))
}

impl<F: PrimeField> FieldTensor<F> {
    /// Returns the polynomial's value at `x`; the list of coefficients has the constant first, and no coefficients make 0.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor that is not a list, otherwise as [`FieldTensor::dot_async`].
    pub async fn evaluate_async(&self, x: F) -> Result<F> {
        flat(self, "a polynomial")?;
        let powers = Self::from_elements_async(&self.tensor().engine(), &powers(x, F::ONE, self.len())).await?;
        Ok(self.dot_async(&powers).await?.to_vec_async().await?.first().copied().unwrap_or(F::ZERO))
    }

    /// Returns the quotient by X - x and the remainder, which is the value at x. Each coefficient needs the one above it, so this runs on the host.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor that is not a list, otherwise as [`FieldTensor::to_vec_async`].
    pub async fn divide_by_root_async(&self, x: F) -> Result<(Self, F)> {
        flat(self, "a polynomial")?;
        let mut quotient = self.to_vec_async().await?;
        let mut carry = F::ZERO;
        for coefficient in quotient.iter_mut().rev() {
            (carry, *coefficient) = (carry * x + *coefficient, carry);
        }
        quotient.pop();
        Ok((Self::from_elements_async(&self.tensor().engine(), &quotient).await?, carry))
    }

    /// The halves of a list of even length.
    async fn halves(&self) -> Result<[Self; 2]> {
        flat(self, "a table")?;
        let half = self.len() / 2;
        if half == 0 || !self.len().is_multiple_of(2) {
            return Err(Error::shape(format!("a table of {} values", self.len()), "a variable takes two halves"));
        }
        let part = |from: usize| self.tensor().slice(&[from..from + half, 0..F::WORDS]);
        Ok([Self::of(part(0).eval_async().await?), Self::of(part(half).eval_async().await?)])
    }

    /// Returns a multilinear table with its first variable (which tells the halves apart) set to `r`: half as long.
    ///
    /// # Errors
    /// [`Error::Shape`] for a table of odd length, else as [`FieldTensor::add_async`].
    pub async fn fold_async(&self, r: F) -> Result<Self> {
        let [low, high] = self.halves().await?;
        let r = Self::from_elements_async(&self.tensor().engine(), &[r]).await?;
        low.add_async(&high.sub_async(&low).await?.mul_async(&r).await?).await
    }
}

/// Returns a round of sumcheck: for the product of these multilinear tables, the sums over all corners of the other variables with the first one at
/// 0, 1, …, up to the number of tables. [`FieldTensor::fold_async`] ends the round.
///
/// # Errors
/// [`Error::Shape`] for no tables, or tables of different or odd lengths; else as [`FieldTensor::add_async`].
pub async fn sumcheck_round_async<F: PrimeField>(tables: &[&FieldTensor<F>]) -> Result<Vec<F>> {
    let Some(first) = tables.first() else {
        return Err(Error::shape("sumcheck", "there is no table"));
    };
    let mut lines = Vec::with_capacity(tables.len());
    for table in tables {
        if table.shape() != first.shape() {
            return Err(Error::shape(
                format!("tables of shapes {:?} and {:?}", first.shape(), table.shape()),
                "they are of the same variables",
            ));
        }
        let [low, high] = table.halves().await?;
        let step = high.sub_async(&low).await?;
        lines.push((low, step));
    }
    let mut sums = Vec::with_capacity(tables.len() + 1);
    for point in 0..=tables.len() {
        if point > 0 {
            for (value, step) in &mut lines {
                *value = value.add_async(step).await?;
            }
        }
        let mut product = lines[0].0.clone();
        for (value, _) in &lines[1..] {
            product = product.mul_async(value).await?;
        }
        sums.push(product.sum_async().await?.to_vec_async().await?.first().copied().unwrap_or(F::ZERO));
    }
    Ok(sums)
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl<F: PrimeField> FieldTensor<F> {
    /// [`FieldTensor::evaluate_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::zk::{BabyBear, Field, FieldTensor};
    ///
    /// let p = FieldTensor::from_elements(&engine, &[1, 2, 3].map(BabyBear::from_u64))?;
    /// let x = BabyBear::from_u64(10);
    /// assert_eq!(p.evaluate(x)?, BabyBear::from_u64(321));
    /// let (quotient, remainder) = p.divide_by_root(x)?;
    /// assert_eq!((quotient.to_vec()?, remainder), ([32, 3].map(BabyBear::from_u64).to_vec(), BabyBear::from_u64(321)));
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn evaluate(&self, x: F) -> Result<F> {
        crate::engine::blocking::block_on(self.evaluate_async(x))
    }

    /// [`FieldTensor::divide_by_root_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn divide_by_root(&self, x: F) -> Result<(Self, F)> {
        crate::engine::blocking::block_on(self.divide_by_root_async(x))
    }

    /// [`FieldTensor::fold_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn fold(&self, r: F) -> Result<Self> {
        crate::engine::blocking::block_on(self.fold_async(r))
    }
}

/// [`sumcheck_round_async`], blocking.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{self, BabyBear, Field, FieldTensor};
///
/// let table = FieldTensor::from_elements(&engine, &[1, 2, 3, 4].map(BabyBear::from_u64))?;
/// assert_eq!(zk::sumcheck_round(&[&table])?, [3, 7].map(BabyBear::from_u64));
/// # Ok::<(), cantus::Error>(())
/// ```
///
/// # Errors
/// As the asynchronous form.
#[cfg(not(target_arch = "wasm32"))]
pub fn sumcheck_round<F: PrimeField>(tables: &[&FieldTensor<F>]) -> Result<Vec<F>> {
    crate::engine::blocking::block_on(sumcheck_round_async(tables))
}
