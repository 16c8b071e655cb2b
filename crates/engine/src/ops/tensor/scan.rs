//! Scans: each element with those before it. Blocks, their totals by the same kernel, and both combined; or one launch, where a native kernel
//! scans whole rows.

use std::hash::Hash;
use std::sync::Arc;

use super::sort::number;
use crate::backend::BoxFuture;
use crate::backend::native::{Combination, NativeOperation, ScanShape};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View};
use crate::ops::expr::number::scalar;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::{along_last, axis_of, reshaped, sliced};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

const SCAN: &str = cantus_shaders::tensor::SCAN;
/// Elements that a workgroup takes.
const BLOCK: usize = 1024;

/// A scan along the last axis.
struct Scan {
    by: Binary,
    input: Arc<Typed>,
    exclusive: bool,
}

impl Scan {
    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>, input: &Arc<Typed>) -> Result<Option<Tensor>> {
        let by = match self.by {
            Binary::Add => Combination::Sum,
            Binary::Mul => Combination::Product,
            Binary::Max => Combination::Greatest,
            Binary::Min => Combination::Least,
            _ => return Ok(None),
        };
        let input = &input.widened();
        let Some(number) = number(input.dtype).filter(|_| !self.exclusive) else { return Ok(None) };
        let rank = input.shape.len();
        let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
        let operation = NativeOperation::Scan(ScanShape { rows, length, number, by });
        if !call.engine.has_native(&operation) {
            return Ok(None);
        }
        let rows = call.compute(input).await?;
        call.engine.native_async(operation, &[&rows], (input.dtype, &input.shape), "scan").await
    }
}

/// Returns the neutral element of the combination, as WGSL.
fn neutral(by: Binary, dtype: DType) -> &'static str {
    match (by, dtype.kind()) {
        (Binary::Mul, Kind::Complex) => "Number(1, 0)",
        (Binary::Mul, _) => "Number(1)",
        (Binary::Max | Binary::LogAddExp, Kind::Float) => "-Number(float_infinity())",
        (Binary::Min, Kind::Float) => "Number(float_infinity())",
        (Binary::Max, Kind::Signed) if dtype == DType::I64 => "-9223372036854775807li - 1li",
        (Binary::Max, Kind::Signed) => "i32(-2147483647 - 1)",
        (Binary::Min, Kind::Signed) if dtype == DType::I64 => "9223372036854775807li",
        (Binary::Min, Kind::Signed) => "2147483647",
        (Binary::Min, _) => "~Number(0)",
        _ => "Number(0)",
    }
}

impl Operation for Scan {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.by as usize, self.exclusive).hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.input).await?;
            if let Some(scanned) = self.native(call, &input).await? {
                return call.compute(&reshaped(&Typed::read(&scanned), &call.of.shape)).await;
            }
            let scanned = scanned(call.engine, self.by, &input, self.exclusive).await?;
            call.compute(&reshaped(&scanned, &call.of.shape)).await
        })
    }
}

/// The scanned rows.
pub(super) fn scanned<'a>(
    engine: &'a Engine,
    by: Binary,
    input: &'a Arc<Typed>,
    exclusive: bool,
) -> BoxFuture<'a, Result<Arc<Typed>>> {
    Box::pin(async move {
        let rank = input.shape.len();
        let length = input.shape[rank - 1];
        let rows = product(&input.shape[..rank - 1]);
        let blocks = length.div_ceil(BLOCK);
        let written = |groups: usize| {
            let mut writer = Writer::new(&[word(rows)?, word(length)?, word(groups)?, u32::from(exclusive)]);
            writer.function(
                "element",
                input,
                &input.shape,
                &[("row", 0..rank - 1), ("place", rank - 1..rank)],
                None,
            )?;
            Ok::<_, Error>(writer)
        };
        let number = scalar(input.dtype);
        let (neutral, combine) = (neutral(by, input.dtype), by.function().wgsl(input.dtype, ["a", "b"])?);
        let body = format!(
            "\nalias Number = {number};\n\n\
             fn neutral() -> Number {{ return {neutral}; }}\n\
             fn combine(a: Number, b: Number) -> Number {{ return {combine}; }}\n\n{SCAN}"
        );
        let dtype = input.dtype.computed();
        let launch = |writer, groups| Composed {
            name: "scan",
            writer,
            output: number,
            body: &body,
            workgroups: [groups, rows, 1],
            flops: rows * length,
            rounds: 0,
        };
        // One workgroup for a row is right everywhere, but quick only as a native kernel.
        let whole = written(1)?;
        let one_launch = blocks > 1 && dtype.bytes() == 4 && launch(&whole, 1).is_taken_over(engine).await?;
        let groups = if one_launch { 1 } else { blocks };
        let totals = if groups > 1 { groups } else { 0 };
        let all = product(&[rows, length.saturating_add(totals)]);
        word(all)?;
        let writer = written(groups)?;
        let output = engine.output_async(writer.tensors().first(), dtype, &[all], "scan").await?;
        launch(&writer, groups).run(engine, &output).await?;
        let part = |offset: usize, width: usize| {
            let view = View { source: Source::Tensor(output.clone()), offset, strides: vec![width, 1] };
            Typed::new(Node::Read(view), vec![rows, width], dtype)
        };
        let within = part(0, length);
        if groups <= 1 {
            return Ok(within);
        }
        // The total before each block is combined with each of its elements.
        let before = scanned(engine, by, &part(rows * length, blocks), true).await?;
        let before = Typed::read(&compute(engine, &before).await?);
        let Node::Read(before) = &before.node else { return Ok(within) };
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
        Ok(Typed::new(Node::Binary(by, gather, within), vec![rows, length], dtype))
    })
}

impl Expr {
    /// Returns the sum of each element and those before it along an axis. Integers wrap; integers narrower than 32 bits give i32 or u32; f16 is
    /// summed in f32.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.cumsum(0).eval()?.to_vec::<i32>()?, [1, 3, 6, 10]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cumsum(&self, axis: isize) -> Self {
        self.scan(Binary::Add, axis, false)
    }

    /// Returns the sum of the elements before each element along an axis; 0 for the first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.cumsum_exclusive(0).eval()?.to_vec::<i32>()?, [0, 1, 3, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cumsum_exclusive(&self, axis: isize) -> Self {
        self.scan(Binary::Add, axis, true)
    }

    /// Returns the product of each element and those before it along an axis. Integers wrap; f16 is multiplied in f32.
    ///
    /// The CPU multiplies in order. A GPU multiplies parts of a row first: if the product of a part exceeds the dtype's range, a 0 before it gives
    /// NaN, not 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.cumprod(0).eval()?.to_vec::<i32>()?, [1, 2, 6, 24]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cumprod(&self, axis: isize) -> Self {
        self.scan(Binary::Mul, axis, false)
    }

    /// Returns the greatest of each element and those before it along an axis; NaN from the first NaN on.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 3, 2, 4])?;
    /// assert_eq!(x.cummax(0).eval()?.to_vec::<i32>()?, [1, 3, 3, 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cummax(&self, axis: isize) -> Self {
        self.scan(Binary::Max, axis, false)
    }

    /// Returns the least of each element and those before it along an axis; NaN from the first NaN on.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[3_u32, 1, 2, 0])?;
    /// assert_eq!(x.cummin(0).eval()?.to_vec::<u32>()?, [3, 1, 1, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cummin(&self, axis: isize) -> Self {
        self.scan(Binary::Min, axis, false)
    }

    /// Returns the logarithm of the sum of e^x over each element and those before it along an axis, even if e^x is out of range. For floats.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[200.0_f32, 200.0])?;
    /// let y = x.logcumsumexp(0).eval()?.to_vec::<f32>()?;
    /// assert!(y[0] == 200.0 && (y[1] - 200.0 - 2.0_f32.ln()).abs() < 1e-4);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn logcumsumexp(&self, axis: isize) -> Self {
        self.scan(Binary::LogAddExp, axis, false)
    }

    /// Returns the difference of each element and the one before it along an axis, `n` times, which shortens the axis by `n`. Integers wrap.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 4, 9, 16])?;
    /// assert_eq!(x.diff(1, 0).eval()?.to_vec::<i32>()?, [3, 5, 7]);
    /// assert_eq!(x.diff(2, 0).eval()?.to_vec::<i32>()?, [2, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn diff(&self, n: usize, axis: isize) -> Self {
        self.derived(|typed| {
            let axis = axis_of(axis, typed.shape.len())?;
            let mut result = typed.clone();
            // There are no more differences than elements: an empty axis stays empty.
            for _ in 0..n.min(typed.shape[axis]) {
                let length = result.shape[axis];
                let part = |from: usize, to: usize| {
                    let mut ranges: Vec<_> = result.shape.iter().map(|&side| 0..side).listed();
                    ranges[axis] = from..to;
                    sliced(&result, &ranges, &vec![1; ranges.len()])
                };
                let (before, after) = (part(0, length - 1), part(1, length));
                let shape = after.shape.clone();
                result = Typed::new(Node::Binary(Binary::Sub, after, before), shape, typed.dtype);
            }
            Ok(result)
        })
    }

    fn scan(&self, by: Binary, axis: isize, exclusive: bool) -> Self {
        self.derived(|typed| {
            let typed = if matches!(by, Binary::Add | Binary::Mul) { &typed.summable() } else { typed };
            by.function().result(typed.dtype)?;
            if !exclusive && typed.shape[axis_of(axis, typed.shape.len())?] == 1 {
                return Ok(typed.clone());
            }
            let dtype = typed.dtype.computed();
            along_last(typed, axis, |input| {
                let shape = input.shape.clone();
                Typed::deferred(Scan { by, input, exclusive }, shape, dtype)
            })
        })
    }
}

tensor_methods! {
    fn cumsum(axis: isize);
    fn cumsum_exclusive(axis: isize);
    fn cumprod(axis: isize);
    fn cummax(axis: isize);
    fn cummin(axis: isize);
    fn logcumsumexp(axis: isize);
    fn diff(n: usize, axis: isize);
}
