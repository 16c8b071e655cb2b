//! Prefix sums: blocks, their totals by the same kernel, and one addition.

use std::sync::Arc;

use super::deferred::{Deferred, Launch, Operation, slim};
use super::emit::{Writer, scalar, too_large};
use super::evaluate::compute;
use super::node::{Binary, Expr, Node, Source, Typed, View};
use super::view::{axis_of, permuted};
use crate::backend::BoxFuture;
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::tensor::DType;

const SCAN: &str = include_str!("../../../shaders/tensor/scan.wgsl");
/// Elements that a workgroup takes.
const BLOCK: usize = 1024;

/// A prefix sum along the last axis.
pub(super) struct Scan {
    pub(super) input: Arc<Typed>,
    pub(super) exclusive: bool,
}

impl Scan {
    pub(super) async fn run(&self, engine: &Engine, of: &Arc<Deferred>) -> Result<Tensor> {
        let input = slim(engine, &self.input, 0).await?;
        let sums = scanned(engine, &input, self.exclusive).await?;
        compute(engine, &super::view::reshaped(&sums, &of.shape)).await
    }
}

/// The prefix sums of rows.
fn scanned<'a>(engine: &'a Engine, input: &'a Arc<Typed>, exclusive: bool) -> BoxFuture<'a, Result<Arc<Typed>>> {
    Box::pin(async move {
        let rank = input.shape.len();
        let length = input.shape[rank - 1];
        let rows: usize = input.shape[..rank - 1].iter().product();
        let blocks = length.div_ceil(BLOCK);
        let word = |value: usize| u32::try_from(value).map_err(|_| too_large(value));
        let all = rows * (length + blocks);
        word(all)?;
        let mut writer = Writer::new(&[word(rows)?, word(length)?, word(blocks)?, u32::from(exclusive)]);
        writer.function("element", input, &input.shape, &[("row", 0..rank - 1), ("place", rank - 1..rank)], None)?;
        let number = scalar(input.dtype);
        let body = format!("\nalias Number = {number};\n\n{SCAN}");
        let dtype = if input.dtype == DType::F16 { DType::F32 } else { input.dtype };
        let output = engine.output(writer.tensors().first(), dtype, &[all], "scan").await?;
        let launch = Launch {
            name: "scan",
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
        let before = scanned(engine, &part(rows * length, blocks), true).await?;
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
    #[must_use]
    pub fn cumsum(&self, axis: isize) -> Self {
        self.prefix(axis, false)
    }

    /// The sum of those before each element along an axis: 0 for the first.
    #[must_use]
    pub fn cumsum_exclusive(&self, axis: isize) -> Self {
        self.prefix(axis, true)
    }

    fn prefix(&self, axis: isize, exclusive: bool) -> Self {
        self.derived(|typed| {
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            if typed.shape.contains(&0) {
                return Ok(typed.clone());
            }
            let mut order: Vec<usize> = (0..rank).filter(|&other| other != axis).collect();
            order.push(axis);
            let input = permuted(typed, &order);
            let dtype = if typed.dtype == DType::F16 { DType::F32 } else { typed.dtype };
            let shape = input.shape.clone();
            let result = Typed::deferred(Operation::Scan(Scan { input, exclusive }), shape, dtype);
            let back: Vec<usize> =
                (0..rank).map(|axis| order.iter().position(|&from| from == axis).unwrap_or(axis)).collect();
            let result = permuted(&result, &back);
            Ok(match typed.dtype {
                DType::F16 => Typed::new(Node::Cast(result), typed.shape.clone(), DType::F16),
                _ => result,
            })
        })
    }
}
