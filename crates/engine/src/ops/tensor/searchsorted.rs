//! Places in sorted rows, by bisection.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Source, Typed};
use crate::ops::expr::number::scalar;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::{broadcast, product};
use crate::ops::expr::view::broadcast_to;
use crate::ops::host;
use crate::tensor::DType;
use cantus_base::listed::Listed;

use super::sort::order;

const SEARCHSORTED: &str = cantus_shaders::tensor::SEARCHSORTED;

struct SearchSorted {
    sorted: Arc<Typed>,
    values: Arc<Typed>,
    after: bool,
}

impl Operation for SearchSorted {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.sorted, &self.values]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.after.hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let sorted = call.narrowed(&self.sorted, 1).await?;
            let values = call.narrowed(&self.values, 1).await?;
            let rank = values.shape.len();
            let (rows, count) = (product(&values.shape[..rank - 1]), values.shape[rank - 1]);
            let length = sorted.shape[rank - 1];
            word(product(&[rows, count]))?;
            let mut writer = Writer::new(&[word(count)?, word(length)?]);
            let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
            writer.function("sorted", &sorted, &sorted.shape, &groups, None)?;
            writer.function("value", &values, &values.shape, &groups, None)?;
            let body = format!(
                "\nconst AFTER = {};\nfn order(x: {}) -> u32 {{ return {}(x); }}\n\n{SEARCHSORTED}",
                self.after,
                scalar(values.dtype),
                order(values.dtype)?
            );
            let output = call.output(&writer, DType::U32, "searchsorted").await?;
            let workgroups = [count.div_ceil(256), rows, 1];
            Composed {
                name: "searchsorted",
                writer: &writer,
                output: "u32",
                body: &body,
                workgroups,
                flops: 0,
                rounds: 0,
            }
            .run(call.engine, &output)
            .await?;
            call.followed(output).await
        })
    }
}

/// Places in rows along the last axis, the other axes being alike.
pub(super) fn searched(sorted: &Arc<Typed>, values: &Arc<Typed>, after: bool) -> Arc<Typed> {
    let shape = values.shape.clone();
    if shape.contains(&0) {
        return Typed::of(Source::Indices, &shape, DType::U32);
    }
    if host::is_wide(values.dtype) {
        return host::searchsorted(sorted, values, after);
    }
    Typed::deferred(SearchSorted { sorted: sorted.clone(), values: values.clone(), after }, shape, DType::U32)
}

impl Expr {
    /// Returns for each value the index, as u32, at which inserting it keeps this tensor sorted along its last axis: before equal elements, or
    /// after them if `right` is set. All axes except the last broadcast, so one sorted row serves all values. NaN compares greater than all numbers.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let sorted = engine.tensor(&[1.0_f32, 3.0, 3.0, 5.0])?;
    /// let values = engine.tensor(&[0.0_f32, 3.0, 9.0])?;
    /// assert_eq!(sorted.searchsorted(&values, false).eval()?.to_vec::<u32>()?, [0, 1, 4]);
    /// assert_eq!(sorted.searchsorted(&values, true).eval()?.to_vec::<u32>()?, [0, 3, 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn searchsorted(&self, values: impl Into<Self>, right: bool) -> Self {
        let values = values.into();
        self.derived(|sorted| {
            let values = self.beside(&values)?;
            let (Some((&length, rows)), Some((&count, of))) = (sorted.shape.split_last(), values.shape.split_last())
            else {
                return Err(Error::shape(
                    format!("searchsorted of {:?} in {:?}", values.shape, sorted.shape),
                    "both need at least one axis",
                ));
            };
            if sorted.dtype != values.dtype {
                return Err(Error::dtype(
                    format!("searchsorted of {} in {}", values.dtype, sorted.dtype),
                    "both must have the same dtype (cast one of them)",
                ));
            }
            if !host::is_wide(values.dtype) {
                order(values.dtype)?;
            }
            let rows = broadcast(rows, of)?;
            let with = |last: usize| rows.iter().copied().chain([last]).listed();
            if length == 0 {
                return Ok(Typed::filled(0.0, &with(count), DType::U32));
            }
            let (sorted, values) = (sorted.rounded(), values.rounded());
            Ok(searched(&broadcast_to(&sorted, &with(length)), &broadcast_to(&values, &with(count)), right))
        })
    }
}

tensor_methods! {
    fn searchsorted(values: impl Into<Expr>, right: bool);
}
