//! Products of matrices of 64-bit numbers and complex ones.

use std::ops::{AddAssign, Mul};
use std::sync::Arc;

use super::{Values, part_of, recorded};
use crate::backend::native::{CopyShape, MatmulShape, NativeOperation, Operand};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::{Node, Typed};
use crate::ops::expr::operation::Call;
use crate::ops::tensor::{lies, plain};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// A product, row by row: the innermost loop runs along rows of both results and the right side.
fn product<T: Copy + Default + AddAssign + Mul<Output = T>>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    let batches = a.len() / (m * k).max(1);
    let mut result = vec![T::default(); batches * m * n];
    if k == 0 || n == 0 || m == 0 {
        return result;
    }
    /// Rows of the right side that stay in the cache while all rows of the left pass.
    const BLOCK: usize = 64;
    for ((a, b), result) in a.chunks_exact(m * k).zip(b.chunks_exact(k * n)).zip(result.chunks_exact_mut(m * n)) {
        for from in (0..k).step_by(BLOCK) {
            let to = (from + BLOCK).min(k);
            for (a, result) in a.chunks_exact(k).zip(result.chunks_exact_mut(n)) {
                for (&x, b) in a[from..to].iter().zip(b[from * n..to * n].chunks_exact(n)) {
                    for (sum, &y) in result.iter_mut().zip(b) {
                        *sum += x * y;
                    }
                }
            }
        }
    }
    result
}

/// The product of matrices (…, m, k) and (…, k, n) of one dtype, the axes before being alike.
pub(in crate::ops) fn matmul(a: &Arc<Typed>, b: &Arc<Typed>, dtype: DType) -> Arc<Typed> {
    let rank = a.shape.len();
    let sides @ [_, k, n] = [a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]];
    let mut shape = a.shape.clone();
    shape[rank - 1] = n;
    if k == 0 {
        return Typed::filled(0.0, &shape, dtype);
    }
    recorded(("matmul", Vec::new()), vec![a.clone(), b.clone()], shape, dtype, move |inputs, _| match &inputs[..] {
        [Values::Reals(a), Values::Reals(b)] => Values::Reals(product(a, b, sides)),
        [Values::Complexes(a), Values::Complexes(b)] => Values::Complexes(product(a, b, sides)),
        [Values::Signed(a), Values::Signed(b)] => {
            let wrapping = |values: &[i64]| values.iter().map(|&value| std::num::Wrapping(value)).listed();
            Values::Signed(product(&wrapping(a), &wrapping(b), sides).into_iter().map(|value| value.0).listed())
        }
        [Values::Unsigned(a), Values::Unsigned(b)] => {
            let wrapping = |values: &[u64]| values.iter().map(|&value| std::num::Wrapping(value)).listed();
            Values::Unsigned(product(&wrapping(a), &wrapping(b), sides).into_iter().map(|value| value.0).listed())
        }
        _ => Values::Reals(Vec::new()),
    })
}

/// A matrix, or one part of complex numbers, in memory.
struct Side {
    operand: Operand,
    tensor: Tensor,
}

impl Side {
    /// A part of the elements. Of vectors and what is multiplied by them a copy is read, in which they lie side by side.
    async fn new(
        engine: &Engine,
        typed: &Typed,
        [part, parts]: [usize; 2],
        dtype: DType,
        copied: bool,
    ) -> Result<Option<Self>> {
        let Some((operand, tensor)) = lies(typed) else { return Ok(None) };
        let Node::Read(view) = &typed.node else { return Ok(None) };
        if copied && parts > 1 {
            let strides = view.strides.iter().map(|stride| stride * parts).listed();
            let shape = CopyShape::new(&typed.shape, &strides, view.offset * parts + part).of_bytes(dtype.bytes());
            let copied =
                engine.native_async(NativeOperation::Copy(shape), &[&tensor], (dtype, &typed.shape), "copy").await?;
            return Ok(copied
                .and_then(|tensor| lies(&Typed::read(&tensor)))
                .map(|(operand, tensor)| Self { operand, tensor }));
        }
        let offsets = operand.offsets.iter().map(|offset| offset * parts + part).listed();
        let operand = Operand { offsets, row: operand.row * parts, column: operand.column * parts };
        Ok(Some(Self { operand, tensor }))
    }
}

/// Computes a product natively on the CPU: of float64 and 64-bit integers, and of complex numbers from products of their parts.
pub(super) async fn native(call: Call<'_>, a: &Arc<Typed>, b: &Arc<Typed>) -> Result<Option<Tensor>> {
    let (engine, dtype) = (call.engine, part_of(a.dtype));
    if !engine.is_processors() || !matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::U64) {
        return Ok(None);
    }
    let (a, b) = (plain(call, a).await?, plain(call, b).await?);
    let rank = a.shape.len();
    let [m, k, n] = [a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]];
    if a.dtype == DType::Complex64
        && let (Some((left, of_a)), Some((right, of_b))) = (lies(&a), lies(&b))
    {
        let operation = NativeOperation::Matmul(MatmulShape { m, n, k, a: left, b: right, dtype: a.dtype });
        return engine.native_async(operation, &[&of_a, &of_b], (a.dtype, &call.of.shape), "matmul").await;
    }
    let parts = if a.dtype.kind() == Kind::Complex { 2 } else { 1 };
    let is_vector = m == 1 || n == 1;
    let mut products = Vec::new();
    for [of_a, of_b] in [[0, 0], [1, 1], [0, 1], [1, 0]].into_iter().take(if parts == 1 { 1 } else { 4 }) {
        let left = Side::new(engine, &a, [of_a, parts], dtype, is_vector).await?;
        let right = Side::new(engine, &b, [of_b, parts], dtype, is_vector).await?;
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        let shape = MatmulShape { m, n, k, a: left.operand, b: right.operand, dtype };
        let (tensors, like) = ([&left.tensor, &right.tensor], (dtype, &*call.of.shape));
        match engine.native_async(NativeOperation::Matmul(shape), &tensors, like, "matmul").await? {
            Some(product) => products.push(Typed::read(&product)),
            None => return Ok(None),
        }
    }
    let [re, im_im, im, im_re] = match &products[..] {
        [product] => return Ok(whole(product)),
        [a, b, c, d] => [a, b, c, d],
        _ => return Ok(None),
    };
    let combined = |op: Binary, a: &Arc<Typed>, b: &Arc<Typed>, dtype: DType| {
        Typed::new(Node::Binary(op, a.clone(), b.clone()), a.shape.clone(), dtype)
    };
    let re = combined(Binary::Sub, re, im_im, dtype);
    let im = combined(Binary::Add, im, im_re, dtype);
    call.compute(&combined(Binary::Complex, &re, &im, call.of.dtype)).await.map(Some)
}

/// The tensor that is read as it is.
fn whole(typed: &Typed) -> Option<Tensor> {
    match &typed.node {
        Node::Read(view) => view.source.tensor(),
        _ => None,
    }
}
