//! Functions of elements, sums and products of lists. `FieldTensor`'s methods are here. One WGSL text serves all fields, with the modulus and limbs written
//! in (`kernel`). Two operands have one shape, or one of them a single element. Inversions share one inversion for several elements.

use super::kernel::{form_for, kernel};
use super::tensor::FieldTensor;
use crate::algebra::{Elementwise, FieldKind, Operation, PrimeField};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;
use cantus_base::listed::Listed;

const MAP: (&str, &str) = ("field_map", cantus_shaders::zk::FIELD_MAP);
const POW: (&str, &str) = ("field_pow", cantus_shaders::zk::FIELD_POW);
const INVERSE: (&str, &str) = ("field_inverse", cantus_shaders::zk::FIELD_INVERSE);
const SUM: (&str, &str) = ("field_sum", cantus_shaders::zk::FIELD_SUM);

/// Elements that share an inversion.
const RUN: usize = 32;
/// Elements that a workgroup adds up.
const STRETCH: usize = 64 * 16;

/// A count for a kernel.
pub(super) fn word(count: usize) -> Result<u32> {
    u32::try_from(count)
        .map_err(|_| Error::limit(format!("{count} elements"), "a kernel counts up to 2^32 (use several tensors)"))
}

/// A tensor of no elements needs no kernel.
async fn nothing(engine: &Engine, shape: &[usize]) -> Result<Tensor> {
    engine.zeros_of_async(DType::U32, shape).await
}

/// The name of a function's kernel, and what it applies.
fn kernel_of(function: Elementwise) -> (&'static str, &'static str) {
    match function {
        Elementwise::Add => ("field_add", "fn apply(a: Fe, b: Fe) -> Fe { return fe_add(a, b); }"),
        Elementwise::Sub => ("field_sub", "fn apply(a: Fe, b: Fe) -> Fe { return fe_sub(a, b); }"),
        Elementwise::Mul => ("field_mul", "fn apply(a: Fe, b: Fe) -> Fe { return fe_mul(a, b); }"),
        Elementwise::Neg => ("field_neg", "fn apply(a: Fe, b: Fe) -> Fe { return fe_neg(a); }"),
        Elementwise::Square => ("field_square", "fn apply(a: Fe, b: Fe) -> Fe { return fe_mul(a, a); }"),
    }
}

impl<F: PrimeField> FieldTensor<F> {
    async fn map(&self, function: Elementwise, other: &Self) -> Result<Self> {
        let engine = self.tensor().engine();
        let (shape, steps) = joined(self, other, function)?;
        let count: usize = shape.iter().product();
        let words: Vec<usize> = shape.iter().copied().chain([F::WORDS]).listed();
        if count == 0 {
            return Ok(Self::of(nothing(&engine, &words).await?));
        }
        let operation = Operation::Elementwise { field: F::KIND, function, count, steps };
        let both = [self.tensor(), other.tensor()];
        let inputs = if function.is_binary() { &both[..] } else { &both[..1] };
        let (name, body) = kernel_of(function);
        if let Some(result) = native(&engine, operation, inputs, &words, name).await? {
            return Ok(Self::of(result));
        }
        let kernel = kernel(MAP, F::KIND, form_for(self.tensor()), body)?;
        let result = engine.output_async(Some(self.tensor()), DType::U32, &words, name).await?;
        engine
            .dispatch(&kernel)
            .label(name)
            .set("sizes.count", word(count)?)
            .set("sizes.a_step", word(steps[0])?)
            .set("sizes.b_step", word(steps[1])?)
            .bind("a", self.tensor())
            .bind("b", other.tensor())
            .bind("y", &result)
            .invocations(count)
            .run_async()
            .await?;
        Ok(Self::of(result))
    }

    /// Returns the sums of two tensors' elements. The shapes are the same, or one tensor has a single element, which serves all.
    ///
    /// # Errors
    /// [`Error::Shape`] for other shapes, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn add_async(&self, other: &Self) -> Result<Self> {
        self.map(Elementwise::Add, other).await
    }

    /// Returns the differences; shapes and errors as of [`FieldTensor::add_async`].
    ///
    /// # Errors
    /// As [`FieldTensor::add_async`].
    pub async fn sub_async(&self, other: &Self) -> Result<Self> {
        self.map(Elementwise::Sub, other).await
    }

    /// Returns the products; shapes and errors as of [`FieldTensor::add_async`].
    ///
    /// # Errors
    /// As [`FieldTensor::add_async`].
    pub async fn mul_async(&self, other: &Self) -> Result<Self> {
        self.map(Elementwise::Mul, other).await
    }

    /// Returns the opposites.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn neg_async(&self) -> Result<Self> {
        self.map(Elementwise::Neg, self).await
    }

    /// Returns the squares.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn square_async(&self) -> Result<Self> {
        self.map(Elementwise::Square, self).await
    }

    /// Returns the powers by an exponent in 64-bit words, the least significant first; the power by 0 is 1, also of 0.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn pow_async(&self, exponent: &[u64]) -> Result<Self> {
        let operation = Operation::Power { field: F::KIND, exponent: exponent.to_vec(), count: self.len() };
        Ok(Self::of(by_exponent(POW, F::KIND, self.tensor(), exponent, operation).await?))
    }

    /// Returns the inverses; 0 stays 0.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn inverse_async(&self) -> Result<Self> {
        Ok(Self::of(inverses(F::KIND, self.tensor()).await?))
    }

    /// Returns the sum of all elements: a tensor of shape `[]`.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn sum_async(&self) -> Result<Self> {
        self.rows_sum(None, [1, self.len()], &[]).await
    }

    /// Returns the sums along the last axis.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor without axes, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn sum_rows_async(&self) -> Result<Self> {
        let Some((&length, rows)) = self.shape().split_last() else {
            return Err(Error::shape("sums of rows of a single element", "there is no axis to sum along"));
        };
        self.rows_sum(None, [rows.iter().product(), length], rows).await
    }

    /// Returns the sum of the products of two tensors of one shape: a tensor of shape `[]`.
    ///
    /// # Errors
    /// [`Error::Shape`] for different shapes, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn dot_async(&self, other: &Self) -> Result<Self> {
        if self.shape() != other.shape() {
            return Err(mismatch(self, other, "field_dot"));
        }
        self.rows_sum(Some(other), [1, self.len()], &[]).await
    }

    async fn rows_sum(&self, other: Option<&Self>, [rows, length]: [usize; 2], shape: &[usize]) -> Result<Self> {
        let engine = self.tensor().engine();
        let words: Vec<usize> = shape.iter().copied().chain([F::WORDS]).listed();
        if rows * length == 0 {
            return Ok(Self::of(nothing(&engine, &words).await?));
        }
        let field = F::KIND;
        let (operation, name) = match other {
            None => (Operation::Sum { field, rows, length }, "field_sum"),
            Some(_) => (Operation::Dot { field, rows, length }, "field_dot"),
        };
        let both = [self.tensor(), other.unwrap_or(self).tensor()];
        let inputs = if other.is_some() { &both[..] } else { &both[..1] };
        if let Some(result) = native(&engine, operation, inputs, &words, name).await? {
            return Ok(Self::of(result));
        }
        let mut current = self.tensor().clone();
        let (mut second, mut length) = (other.map(|other| other.tensor().clone()), length);
        loop {
            let stretches = length.div_ceil(STRETCH);
            let functions = match second {
                None => "fn load(at: u32) -> Fe { return a[at]; }",
                Some(_) => {
                    "@group(0) @binding(2) var<storage> b: array<Fe>;\nfn load(at: u32) -> Fe { return fe_mul(a[at], b[at]); }"
                }
            };
            let kernel = kernel(SUM, F::KIND, form_for(&current), functions)?;
            let shape = if stretches == 1 { words.clone() } else { vec![rows, stretches, F::WORDS] };
            let sums = engine.output_async(Some(&current), DType::U32, &shape, name).await?;
            let mut dispatch = engine
                .dispatch(&kernel)
                .label(name)
                .set("sizes.length", word(length)?)
                .set("sizes.stretches", word(stretches)?)
                .set("sizes.stretch", word(STRETCH)?)
                .bind("a", &current)
                .bind("y", &sums)
                .workgroups([stretches, rows]);
            if let Some(second) = &second {
                dispatch = dispatch.bind("b", second);
            }
            word(rows * length)?;
            dispatch.run_async().await?;
            (current, second, length) = (sums, None, stretches);
            if stretches == 1 {
                return Ok(Self::of(current));
            }
        }
    }
}

/// The inverses of elements by their words; 0 stays 0.
pub(super) async fn inverses(field: FieldKind, elements: &Tensor) -> Result<Tensor> {
    let words = |pair: &[u32]| u64::from(pair[0]) | pair.get(1).map_or(0, |&high| u64::from(high) << 32);
    let mut exponent: Vec<u64> = field.modulus().chunks(2).map(words).listed();
    // The order less 2: the lowest word of each is odd, and 1 where there is a word above it to take from.
    if let Some(low) = exponent.first_mut() {
        let (less, borrow) = low.overflowing_sub(2);
        *low = less;
        if borrow && let Some(next) = exponent.get_mut(1) {
            *next -= 1;
        }
    }
    let operation = Operation::Inverse { field, count: elements.len() / field.words() };
    by_exponent(INVERSE, field, elements, &exponent, operation).await
}

/// A kernel that raises to a power.
async fn by_exponent(
    frame: (&'static str, &'static str),
    field: FieldKind,
    elements: &Tensor,
    exponent: &[u64],
    operation: Operation,
) -> Result<Tensor> {
    let engine = elements.engine();
    let (shape, count) = (elements.shape(), elements.len() / field.words());
    if count == 0 {
        return nothing(&engine, shape).await;
    }
    if let Some(result) = native(&engine, operation, &[elements], shape, frame.0).await? {
        return Ok(result);
    }
    let limbs: Vec<u32> = exponent.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).chain([0]).listed();
    let top = exponent.iter().rposition(|&word| word != 0);
    let bits = top.map_or(0, |top| 64 * top + 64 - exponent[top].leading_zeros() as usize);
    let run = if frame.0 == INVERSE.0 { RUN.min(count) } else { 1 };
    let exponent = engine.tensor_async(&limbs).await?;
    let kernel = kernel(frame, field, form_for(elements), "")?;
    let result = engine.output_async(Some(elements), DType::U32, shape, frame.0).await?;
    let mut dispatch = engine
        .dispatch(&kernel)
        .set("sizes.count", word(count)?)
        .set("sizes.bits", word(bits)?)
        .bind("a", elements)
        .bind("exponent", &exponent)
        .bind("y", &result)
        .invocations(count.div_ceil(run));
    if frame.0 == INVERSE.0 {
        dispatch = dispatch.set("sizes.run", word(run)?);
    }
    dispatch.run_async().await?;
    Ok(result)
}

fn mismatch<F: PrimeField>(a: &FieldTensor<F>, b: &FieldTensor<F>, what: &str) -> Error {
    Error::shape(
        format!("{what} of {:?} and {:?}", a.shape(), b.shape()),
        "both have one shape, or one of them a single element",
    )
}

/// The shape of what comes of two, and the steps through them.
fn joined<F: PrimeField>(
    a: &FieldTensor<F>,
    b: &FieldTensor<F>,
    function: Elementwise,
) -> Result<(Vec<usize>, [usize; 2])> {
    if a.shape() == b.shape() {
        Ok((a.shape().to_vec(), [1, 1]))
    } else if b.len() == 1 {
        Ok((a.shape().to_vec(), [1, 0]))
    } else if a.len() == 1 {
        Ok((b.shape().to_vec(), [0, 1]))
    } else {
        Err(mismatch(a, b, kernel_of(function).0))
    }
}

/// The blocking forms: as methods, and as functions.
macro_rules! blocking {
    ($($(#[$doc:meta])* $name:ident, $function:ident = $asynchronous:ident($($argument:ident: $type:ty),*);)*) => {
        #[cfg(not(target_arch = "wasm32"))]
        impl<F: PrimeField> FieldTensor<F> {
            $(
                #[doc = concat!("[`FieldTensor::", stringify!($asynchronous), "`], blocking.")]
                ///
                /// # Errors
                /// As the asynchronous form.
                pub fn $name(&self, $($argument: $type),*) -> Result<Self> {
                    crate::engine::blocking::block_on(self.$asynchronous($($argument),*))
                }
            )*
        }
        $(
            $(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As [`FieldTensor::", stringify!($asynchronous), "`].")]
            #[cfg(not(target_arch = "wasm32"))]
            pub fn $function<F: PrimeField>(a: &FieldTensor<F>, $($argument: $type),*) -> Result<FieldTensor<F>> {
                a.$name($($argument),*)
            }
        )*
    };
}
blocking! {
    /// The sums of two tensors' elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::zk::{self, Field, FieldTensor, Goldilocks};
    ///
    /// let a = FieldTensor::from_elements(&engine, &[1, 2].map(Goldilocks::from_u64))?;
    /// let last = FieldTensor::from_elements(&engine, &[-Goldilocks::ONE])?;
    /// assert_eq!(zk::field_add(&a, &last)?.to_vec()?, [0, 1].map(Goldilocks::from_u64));
    /// # Ok::<(), cantus::Error>(())
    /// ```
    add, field_add = add_async(other: &FieldTensor<F>);
    /// The differences of two tensors' elements.
    sub, field_sub = sub_async(other: &FieldTensor<F>);
    /// The products of two tensors' elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::zk::{self, Bls12381Fr, Field, FieldTensor};
    ///
    /// let a = FieldTensor::from_elements(&engine, &[2, 3].map(Bls12381Fr::from_u64))?;
    /// assert_eq!(zk::field_mul(&a, &a)?.to_vec()?, [4, 9].map(Bls12381Fr::from_u64));
    /// # Ok::<(), cantus::Error>(())
    /// ```
    mul, field_mul = mul_async(other: &FieldTensor<F>);
    /// The opposites.
    neg, field_neg = neg_async();
    /// The squares.
    square, field_square = square_async();
    /// The powers by an exponent in 64-bit words, the least significant first.
    pow, field_pow = pow_async(exponent: &[u64]);
    /// The inverses; 0 stays 0.
    inverse, field_inverse = inverse_async();
    /// The sum of all elements.
    sum, field_sum = sum_async();
    /// The sums along the last axis.
    sum_rows, field_sum_rows = sum_rows_async();
    /// The sum of the products of two tensors of one shape.
    dot, field_dot = dot_async(other: &FieldTensor<F>);
}
