//! Sparse matrices by compressed rows. `Csr::new` checks the structure on the host, once; products trust it. Values are an expression, so they may change
//! without another check. The result is dense, and the dense side is read once for each entry, in order.

use std::sync::Arc;

use super::matrices;
use crate::backend::BoxFuture;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::shape::product;
use crate::tensor::DType;

const FRAME: &str = cantus_shaders::tensor::CSR_MATMUL;

/// A sparse float32 matrix in compressed rows (CSR): the index of each row's first entry, and each entry's column and value.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// // 2 0 1
/// // 0 0 0
/// // 0 3 0
/// let a = cantus::ops::Csr::new(&engine, 3, &[0, 2, 2, 3], &[0, 2, 1], &[2.0, 1.0, 3.0])?;
/// let v = engine.tensor(&[1.0_f32, 10.0, 100.0])?;
/// assert_eq!(a.matmul(&v).eval()?.to_vec::<f32>()?, [102.0, 0.0, 30.0]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Csr {
    starts: Tensor,
    columns: Tensor,
    values: Expr,
    shape: [usize; 2],
}

/// The inputs of a product, in the kernel's order.
struct Product {
    starts: Arc<Typed>,
    columns: Arc<Typed>,
    values: Arc<Typed>,
    dense: Arc<Typed>,
}

impl Operation for Product {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.starts, &self.columns, &self.values, &self.dense]
    }

    fn parameters(&self, _digest: &mut Digest) -> bool {
        true
    }

    fn fusable(&self) -> u32 {
        2
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let (rows, width) = (call.of.shape[0], call.of.shape[1]);
            let dense = call.narrowed(&self.dense, 1).await?;
            let values = call.narrowed(&self.values, 1).await?;
            let mut writer = Writer::new(&[word(rows)?, word(width)?, 0, 0]);
            for (name, typed, variable) in
                [("start", &self.starts, "i"), ("column", &self.columns, "i"), ("value_of", &values, "i")]
            {
                writer.function(name, typed, &typed.shape, &[(variable, 0..1)], None)?;
            }
            writer.function("dense", &dense, &dense.shape, &[("row", 0..1), ("column", 1..2)], None)?;
            let (value, dtype) = call.finished(&mut writer, "value", &[("row", 0..1), ("column", 1..2)])?;
            let body = format!(
                "\nfn store(row: u32, column: u32, value: f32) {{ y[row * words[0].y + column] = {value}; }}\n\n{FRAME}"
            );
            let output = call.output(&writer, dtype, "csr_matmul").await?;
            let workgroups = [product(&[rows, width]).div_ceil(64), 1, 1];
            let flops = product(&[2, self.values.count(), width]);
            word(product(&[rows, width]))?;
            // All elements may be in one row.
            let rounds = looped(self.values.count(), 0);
            Composed {
                name: "csr_matmul",
                writer: &writer,
                output: stored(dtype),
                body: &body,
                workgroups,
                flops,
                rounds,
            }
            .run(call.engine, &output)
            .await?;
            Ok(output)
        })
    }
}

impl Csr {
    /// Creates a matrix of `columns` columns, with one row fewer than `starts` has elements. Row i has the entries `starts[i]..starts[i + 1]`, each
    /// with its column and its value. Entries at the same position are added.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if `starts` decreases, does not begin with 0 or does not end with the number of entries, if columns and values differ
    /// in number, or if a column is out of range; and as [`Engine::tensor_async`].
    pub async fn new_async(
        engine: &Engine,
        columns: usize,
        starts: &[u32],
        places: &[u32],
        values: &[f32],
    ) -> Result<Self> {
        let fault = |reason: String| Error::invalid("a sparse matrix", reason);
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else {
            return Err(fault("it needs one start more than it has rows".to_owned()));
        };
        if let Some(row) = starts.windows(2).position(|pair| matches!(pair, [start, end] if start > end)) {
            return Err(fault(format!("row {row} ends before it starts")));
        }
        if first != 0 || last as usize != places.len() || places.len() != values.len() {
            return Err(fault(format!(
                "starts run from {first} to {last}, there are {} columns and {} values: they must run from 0 to the number of both",
                places.len(),
                values.len()
            )));
        }
        if let Some(place) = places.iter().find(|&&place| place as usize >= columns) {
            return Err(fault(format!("column {place} of {columns}")));
        }
        Ok(Self {
            starts: engine.tensor_async(starts).await?,
            columns: engine.tensor_async(places).await?,
            values: engine.tensor_async(values).await?.expr(),
            shape: [starts.len() - 1, columns],
        })
    }

    /// [`Csr::new_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(engine: &Engine, columns: usize, starts: &[u32], places: &[u32], values: &[f32]) -> Result<Self> {
        crate::engine::blocking::block_on(Self::new_async(engine, columns, starts, places, values))
    }

    /// Returns the number of rows and columns.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(cantus::ops::Csr::new(&engine, 3, &[0, 1], &[2], &[1.0])?.sides(), [1, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn sides(&self) -> [usize; 2] {
        self.shape
    }

    /// Returns the values of the entries, one axis.
    #[must_use]
    pub fn values(&self) -> &Expr {
        &self.values
    }

    /// Returns the matrix with other float32 values at the same positions, one for each entry.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = cantus::ops::Csr::new(&engine, 2, &[0, 1], &[1], &[3.0])?;
    /// let double = a.with_values(a.values() * 2.0)?;
    /// assert_eq!(double.matmul(engine.tensor(&[1.0_f32, 1.0])?).eval()?.to_vec::<f32>()?, [6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one float32 for each entry, and the first mistake in the recorded expressions.
    pub fn with_values(&self, values: impl Into<Expr>) -> Result<Self> {
        let values = values.into();
        if values.shape()? != self.columns.shape() || values.dtype()? != DType::F32 {
            return Err(Error::shape(
                format!("values of {} {:?}", values.dtype()?, values.shape()?),
                format!("there are {} entries, of f32", self.columns.len()),
            ));
        }
        Ok(Self { values, ..self.clone() })
    }

    /// Returns the product with a dense float32 vector (columns) or matrix (columns, n). Each element is summed in the order of the entries.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = cantus::ops::Csr::new(&engine, 2, &[0, 1, 3], &[1, 0, 1], &[3.0, 1.0, 1.0])?;
    /// let b = engine.tensor_from(&[1.0_f32, 2.0, 10.0, 20.0], &[2, 2])?;
    /// assert_eq!(a.matmul(&b).eval()?.to_vec::<f32>()?, [30.0, 60.0, 11.0, 22.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn matmul(&self, dense: impl Into<Expr>) -> Expr {
        let dense = dense.into();
        let result = self.product(&dense);
        dense.of(result)
    }

    fn product(&self, dense: &Expr) -> Result<Expr> {
        let [rows, columns] = self.shape;
        let shape = dense.shape()?.to_vec();
        let is_vector = shape.len() == 1;
        let matrix = if is_vector { dense.expand(-1) } else { dense.clone() };
        let &[height, width] = &matrices(&matrix, "a product with a sparse matrix")?[..] else {
            return Err(Error::shape(
                format!("a product of a sparse matrix with the shape {shape:?}"),
                "it must have one or two axes",
            ));
        };
        if height != columns {
            return Err(Error::shape(
                format!("the product of a sparse matrix {:?} and {shape:?}", self.shape),
                format!("the left has {columns} columns, the right {height} rows: the numbers must be equal"),
            ));
        }
        let of = |tensor: &Tensor| matrix.beside(&tensor.expr());
        let made = matrix.derived(|typed| {
            if rows == 0 || width == 0 || self.columns.is_empty() {
                return matrix.constant(0.0).broadcast_to(&[rows, width]).state;
            }
            let (starts, columns) = (of(&self.starts)?, of(&self.columns)?);
            let values = matrix.beside(&self.values)?;
            let product = Product { starts, columns, values, dense: typed.clone() };
            Ok(Typed::deferred(product, vec![rows, width], DType::F32))
        });
        Ok(if is_vector { made.squeeze(-1) } else { made })
    }
}
