//! Prefix sums: blocks, their totals by the same kernel, and one addition.

use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::{Writer, scalar, word};
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::{along_last, reshaped};
use crate::tensor::DType;

const CUMSUM: &str = include_str!("../../../shaders/tensor/cumsum.wgsl");
/// Elements that a workgroup takes.
const BLOCK: usize = 1024;

/// A prefix sum along the last axis.
struct Cumsum {
    input: Arc<Typed>,
    exclusive: bool,
}

impl Operation for Cumsum {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.input).await?;
            let sums = summed(call.engine, &input, self.exclusive).await?;
            compute(call.engine, &reshaped(&sums, &call.of.shape)).await
        })
    }
}

/// The prefix sums of rows.
fn summed<'a>(engine: &'a Engine, input: &'a Arc<Typed>, exclusive: bool) -> BoxFuture<'a, Result<Arc<Typed>>> {
    Box::pin(async move {
        let rank = input.shape.len();
        let length = input.shape[rank - 1];
        let rows = product(&input.shape[..rank - 1]);
        let blocks = length.div_ceil(BLOCK);
        let all = product(&[rows, length.saturating_add(blocks)]);
        word(all)?;
        let mut writer = Writer::new(&[word(rows)?, word(length)?, word(blocks)?, u32::from(exclusive)]);
        writer.function("element", input, &input.shape, &[("row", 0..rank - 1), ("place", rank - 1..rank)], None)?;
        let number = scalar(input.dtype);
        let body = format!("\nalias Number = {number};\n\n{CUMSUM}");
        let dtype = if input.dtype == DType::F16 { DType::F32 } else { input.dtype };
        let output = engine.output(writer.tensors().first(), dtype, &[all], "cumsum").await?;
        let launch = Composed {
            name: "cumsum",
            writer: &writer,
            output: number,
            body: &body,
            workgroups: [blocks, rows, 1],
            flops: rows * length,
        };
        launch.run(engine, &output).await?;
        let part = |offset: usize, width: usize| {
            let view = View { source: Source::Tensor(output.clone()), offset, strides: vec![width, 1] };
            Typed::new(Node::Read(view), vec![rows, width], dtype)
        };
        let sums = part(0, length);
        if blocks == 1 {
            return Ok(sums);
        }
        // What stands before each block is added to all of it.
        let before = summed(engine, &part(rows * length, blocks), true).await?;
        let before = Typed::read(&compute(engine, &before).await?);
        let Node::Read(before) = &before.node else { return Ok(sums) };
        let block = Typed::new(
            Node::Read(View { source: Source::Indices, offset: 0, strides: vec![0, 1] }),
            vec![rows, length],
            DType::U32,
        );
        let size = Typed::new(Node::Constant(BLOCK as f64), Vec::new(), DType::U32);
        let index = Typed::new(Node::Binary(Binary::Div, block, size), vec![rows, length], DType::U32);
        let view = View { source: before.source.clone(), offset: before.offset, strides: vec![blocks, 0] };
        let gather = Node::Gather { view, stride: 1, length: blocks, index };
        let gather = Typed::new(gather, vec![rows, length], dtype);
        Ok(Typed::new(Node::Binary(Binary::Add, sums, gather), vec![rows, length], dtype))
    })
}

impl Expr {
    /// The sum of each element and those before it along an axis. Integers wrap; f16 is summed in f32.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.cumsum(0).eval()?.to_vec::<i32>()?, [1, 3, 6, 10]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cumsum(&self, axis: isize) -> Self {
        self.prefix(axis, false)
    }

    /// The sum of those before each element along an axis: 0 for the first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.cumsum_exclusive(0).eval()?.to_vec::<i32>()?, [0, 1, 3, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cumsum_exclusive(&self, axis: isize) -> Self {
        self.prefix(axis, true)
    }

    fn prefix(&self, axis: isize, exclusive: bool) -> Self {
        self.derived(|typed| {
            let dtype = if typed.dtype == DType::F16 { DType::F32 } else { typed.dtype };
            along_last(typed, axis, |input| {
                let shape = input.shape.clone();
                Typed::deferred(Cumsum { input, exclusive }, shape, dtype)
            })
        })
    }
}

tensor_methods! {
    fn cumsum(axis: isize);
    fn cumsum_exclusive(axis: isize);
}
