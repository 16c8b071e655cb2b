//! Matrix products: native where the device has one, by tiles elsewhere, and as a reduction if one side is a vector. `Operation::run` decides in this
//! order: the device's native product, a vendor's library that a kernel states the product for, parts of k for few tiles, cooperative matrices, tiles.
//! Vectors are reductions. Transposed and sliced operands are read in place by strides; other expressions are computed first.

use std::hash::Hash;
use std::sync::Arc;

use super::reduce::{Fold, Reduce};
use crate::backend::BoxFuture;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::{MatmulShape, NativeOperation, Operand, ProductShape};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::elementwise::{Binary, Unary};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::evaluate::resolve;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View, is_float};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Epilogue, Operation, looped};
use crate::ops::expr::shape::{broadcast, contiguous, product};
use crate::ops::expr::view::{broadcast_to, permuted, reshaped};
use crate::ops::frame::Frame;
use crate::ops::host;
use crate::ops::tune::{Job, Machine, Variant};
use crate::tensor::DType;
use cantus_base::listed::Listed;

const MATMUL: Frame<8> = Frame::new(
    cantus_shaders::tensor::MATMUL,
    ["SIDE", "DEPTH", "PARTS", "A_ALONG_K", "B_ALONG_COLUMNS", "// SUMS", "// STEP", "// STORE"],
);
const MATMUL_COOPERATIVE: Frame<2> =
    Frame::new(cantus_shaders::tensor::MATMUL_COOPERATIVE, ["A_ALONG_K", "B_ALONG_COLUMNS"]);
/// Rows and columns of its tile.
const COOPERATIVE_TILE: usize = 64;

/// A product of matrices in the last two axes; the axes before them are the same for both.
struct Matmul {
    a: Arc<Typed>,
    b: Arc<Typed>,
    /// One of them is a vector, and this is the result's shape, without its axis: nothing joins the kernel.
    vector: Option<Vec<usize>>,
}

/// An operand that a kernel reads as it is: strides say where, halves become floats on the way.
pub(in crate::ops) async fn plain(call: Call<'_>, typed: &Arc<Typed>) -> Result<Arc<Typed>> {
    match &typed.node {
        Node::Read(view) if view.source.tensor().is_some() => Ok(typed.clone()),
        _ => Ok(Typed::read(&call.compute(typed).await?)),
    }
}

fn view(typed: &Typed) -> Option<(&View, Tensor)> {
    match &typed.node {
        Node::Read(view) => view.source.tensor().map(|tensor| (view, tensor)),
        _ => None,
    }
}

/// Returns the layout of an operand, for a device's native product of float32.
pub(super) fn operand(typed: &Typed) -> Option<(Operand, Tensor)> {
    (typed.dtype == DType::F32).then(|| lies(typed)).flatten()
}

/// Returns the layout of an operand.
pub(in crate::ops) fn lies(typed: &Typed) -> Option<(Operand, Tensor)> {
    let (view, tensor) = view(typed)?;
    let rank = typed.shape.len();
    let mut offsets = vec![view.offset];
    for axis in 0..rank - 2 {
        let stride = view.strides[axis];
        offsets = offsets.iter().flat_map(|&from| (0..typed.shape[axis]).map(move |at| from + at * stride)).listed();
    }
    Some((Operand { offsets, row: view.strides[rank - 2], column: view.strides[rank - 1] }, tensor))
}

/// From this many reads on, a vector that is an expression is computed once. Below, launching its kernel costs more.
const ONCE_PAYS: usize = 1 << 14;

/// A vector that is read once for each of that many rows or columns of a matrix.
fn read_often(vector: Arc<Typed>, times: usize) -> Arc<Typed> {
    let is_dear = vector.depth > 0 && times > 1 && vector.count().saturating_mul(times) >= ONCE_PAYS;
    if is_dear { vector.computed() } else { vector }
}

/// Undoes the widening of integers before a product: it is widened where it is read, or not at all. A cast that spreads
/// one value over a shape widens nothing.
fn unwidened(typed: Arc<Typed>) -> Arc<Typed> {
    match &typed.node {
        Node::Cast(inner)
            if inner.shape == typed.shape && inner.dtype.computed() == typed.dtype && !is_float(typed.dtype) =>
        {
            inner.clone()
        }
        _ => typed,
    }
}

/// The tiled kernel for invocations with `parts` x `parts` blocks of 4 x 4 values: WGSL's compilers do not unroll loops over registers.
fn tiled([side, depth, parts]: [usize; 3], [a, b]: [Option<&str>; 2]) -> String {
    let (mut sums, mut step, mut store) = (String::new(), String::new(), String::new());
    let line = |text: &mut String, line: String| *text += &format!("{line}\n");
    for part in 0..parts {
        for tile in ["a", "b"] {
            let lane = if tile == "a" { "local.y" } else { "local.x" };
            line(&mut step, format!("let {tile}{part} = tile_{tile}[d * VECTORS + {lane} * PARTS + {part}u];"));
        }
    }
    for (down, across) in (0..parts).flat_map(|down| (0..parts).map(move |across| (down, across))) {
        for (row, component) in ["x", "y", "z", "w"].into_iter().enumerate() {
            let sum = format!("sum{}_{across}", 4 * down + row);
            line(&mut sums, format!("var {sum} = vec4f();"));
            line(&mut step, format!("{sum} += a{down}.{component} * b{across};"));
            let (row, column) = (4 * down + row, 4 * across);
            line(&mut store, format!("store_row(batch, to_row + {row}u, to_column + {column}u, {sum});"));
        }
    }
    let [side, depth, parts] = [side, depth, parts].map(|count| format!("{count}u"));
    let sizes = [&side, &depth, &parts].map(|size| Some(size.as_str()));
    let [side, depth, parts] = sizes;
    MATMUL.filled([side, depth, parts, a, b, Some(&sums), Some(&step), Some(&store)])
}

/// The kernel for other numbers than f32.
fn of_numbers(frame: String, number: &str) -> String {
    if number == "f32" {
        return frame;
    }
    let (vector, zero) = (format!("vec4{}", &number[..1]), format!("return {number}()"));
    frame.replace("vec4f", &vector).replace("return 0.0", &zero).replace("f32", number)
}

/// The device's native product, if it has one. Narrow operands that it does not multiply as they are get widened once.
async fn by_device(call: Call<'_>, [a, b]: [&Arc<Typed>; 2], [m, n, k]: [usize; 3]) -> Result<Option<Tensor>> {
    let Call { engine, of, .. } = call;
    let has_native = |dtype| engine.has_native(&NativeOperation::Matmul(MatmulShape::square(2, dtype)));
    let is_own = a.dtype == b.dtype && has_native(a.dtype);
    let (a, b) = if !is_own && has_native(of.dtype) {
        (plain(call, &a.widened()).await?, plain(call, &b.widened()).await?)
    } else {
        (a.clone(), b.clone())
    };
    let (Some((left, x)), Some((right, y))) = (lies(&a), lies(&b)) else { return Ok(None) };
    let operation = NativeOperation::Matmul(MatmulShape { m, n, k, a: left, b: right, dtype: a.dtype });
    engine.native_async(operation, &[&x, &y], (of.dtype, &of.shape), "matmul").await
}

/// The product as a sum of products of parts of k: a device with many cores has more to do at a time.
async fn split_over_k(call: Call<'_>, [a, b]: [&Arc<Typed>; 2], parts: usize) -> Result<Tensor> {
    let dtype = call.of.dtype;
    let rank = a.shape.len();
    let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
    let batch = &a.shape[..rank - 2];
    let shaped = |sides: &[usize]| [batch, sides].concat();
    // a: .., m, part, k -> .., part, m, k. b: its rows are cut as they lie.
    let mut order: Vec<usize> = (0..=rank).listed();
    order.swap(rank - 2, rank - 1);
    let a = permuted(&reshaped(a, &shaped(&[m, parts, k / parts])), &order);
    let b = reshaped(b, &shaped(&[parts, k / parts, n]));
    let products = Typed::deferred(Matmul { a, b, vector: None }, shaped(&[parts, m, n]), dtype);
    let mut order: Vec<usize> = (0..rank - 2).listed();
    order.extend([rank - 1, rank, rank - 2]);
    let reduce = Reduce { fold: Fold::Sum, input: permuted(&products, &order), from: rank };
    resolve(call.engine, call.schedule, &reduce.input, None).await?;
    reduce.reduce(call).await
}

impl Matmul {
    async fn product(&self, call: Call<'_>) -> Result<Tensor> {
        let Call { engine, of, .. } = call;
        let (a, b) = (plain(call, &self.a).await?, plain(call, &self.b).await?);
        let rank = a.shape.len();
        let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
        let batches = product(&a.shape[..rank - 2]);
        let along = |typed: &Typed, axis: usize| view(typed).is_none_or(|(view, _)| view.strides[axis] == 1);
        let transposed = [&a, &b].map(|typed| !along(typed, rank - 1) && along(typed, rank - 2));
        let job = Job::matmul(batches, [m, n, k], transposed, a.dtype == DType::F16);
        let tensors = [&a, &b].map(|typed| view(typed).map(|(_, tensor)| tensor));
        let near = tensors.iter().flatten().max_by_key(|tensor| tensor.byte_len());
        let mut variant = engine.shared().variant(near, job);
        let stated = match by_library(call, [&a, &b], [m, n, k]) {
            Some(ByLibrary::Whole(shape, tensors)) => Some((shape, tensors)),
            Some(ByLibrary::Sums) => {
                let sums = Box::pin(self.product(Call { epilogue: None, ..call })).await?;
                return call.followed(sums).await;
            }
            None => None,
        };
        if stated.is_some() && matches!(variant, Variant::Split(_)) {
            // Beneath the library's there is one kernel.
            variant = Variant::Tile { side: 16, depth: 16, parts: 1 };
        } else if variant == Variant::Native {
            if let Some(product) = by_device(call, [&a, &b], [m, n, k]).await? {
                return call.followed(product).await;
            }
            variant = job.tiled(Machine::Cpu);
        }
        let cooperative = variant == Variant::Cooperative;
        let (side, depth, parts) = match variant {
            Variant::Split(parts) if k % usize::from(parts) == 0 => {
                return split_over_k(call, [&a, &b], usize::from(parts)).await;
            }
            Variant::Tile { side, depth, parts } => (usize::from(side), depth, usize::from(parts)),
            // A length that the parts do not divide.
            _ => (16, 16, 1),
        };
        word(product(&[batches, m, n]))?;
        let mut writer = Writer::new(&[word(m)?, word(n)?, word(k)?, 0]);
        let groups = |row, column| [("batch", 0..rank - 2), (row, rank - 2..rank - 1), (column, rank - 1..rank)];
        writer.function("load_a", &a, &a.shape, &groups("row", "k"), None)?;
        writer.function("load_b", &b, &b.shape, &groups("k", "column"), None)?;
        let (value, dtype) = call.finished(&mut writer, "value", &groups("row", "column"))?;
        let output = call.output(&writer, dtype, "matmul").await?;
        let (name, enabled, tile) = match cooperative {
            true => ("matmul_cooperative", "enable f16;\nenable wgpu_cooperative_matrix;\n", COOPERATIVE_TILE),
            false => ("matmul", "", 4 * side * parts),
        };
        let number = match of.dtype {
            DType::I32 => "i32",
            DType::U32 => "u32",
            _ => "f32",
        };
        // Those that are transposed are read along the other axis.
        let along = transposed.map(|transposed| transposed.then_some("false"));
        let frame = match cooperative {
            true => MATMUL_COOPERATIVE.filled(along),
            false => tiled([side, usize::from(depth), parts], along),
        };
        let text = of_numbers(frame, number);
        let body = format!(
            "{enabled}\nfn store(batch: u32, row: u32, column: u32, value: {number}) {{\n    \
             y[(batch * words[0].x + row) * words[0].y + column] = {value};\n}}\n\n{text}"
        );
        let workgroups = [n.div_ceil(tile), m.div_ceil(tile), batches];
        let flops = product(&[2, batches, m, n, k]);
        // The loops of each step: those that load both operands, and the multiplication.
        let depth = usize::from(depth);
        let loads = 2 * looped((depth * parts).div_ceil(side.max(1)), 0);
        let rounds = looped(k.div_ceil(depth.max(1)), loads + looped(depth, 0));
        Composed { name, writer: &writer, output: stored(dtype), body: &body, workgroups, flops, rounds }
            .run_stated(engine, &output, stated)
            .await?;
        Ok(output)
    }
}

/// From this many multiplications on, a vendor's library is asked. Below, launching it costs more.
const LIBRARY_PAYS: usize = 1 << 18;

/// A vendor library's part of a product.
enum ByLibrary {
    /// All of it, with what follows.
    Whole(ProductShape, Vec<Tensor>),
    /// The sums: what follows is a kernel of its own.
    Sums,
}

/// Returns the device library's part of a product, if any.
fn by_library(call: Call<'_>, [a, b]: [&Arc<Typed>; 2], [m, n, k]: [usize; 3]) -> Option<ByLibrary> {
    if product(&a.shape).saturating_mul(n) < LIBRARY_PAYS || a.dtype != b.dtype {
        return None;
    }
    let ((left, x), (right, y)) = (lies(a)?, lies(b)?);
    let matmul = MatmulShape { m, n, k, a: left, b: right, dtype: a.dtype };
    let shape = ProductShape { result: call.of.dtype, ..ProductShape::new(matmul) };
    let near = if x.byte_len() >= y.byte_len() { x.clone() } else { y.clone() };
    let Some(epilogue) = call.epilogue else {
        return call.engine.takes(&near, &shape).then(|| ByLibrary::Whole(shape, vec![x, y]));
    };
    let mut tensors = vec![x, y];
    let mut whole = shape.clone();
    // The libraries have no epilogues for integers.
    if call.of.dtype == DType::F32
        && with_epilogue(epilogue, &mut whole, &mut tensors).is_some()
        && call.engine.takes(&near, &whole)
    {
        return Some(ByLibrary::Whole(whole, tensors));
    }
    call.engine.takes(&near, &shape).then_some(ByLibrary::Sums)
}

/// Adds what follows to a product, where libraries know it: a bias for each column, then relu; or f16 or bf16 in place of float32.
fn with_epilogue(epilogue: Epilogue<'_>, shape: &mut ProductShape, tensors: &mut Vec<Tensor>) -> Option<()> {
    let mut typed = epilogue.typed;
    if let Node::Cast(inner) = &typed.node
        && typed.dtype.is_half()
    {
        shape.result = typed.dtype;
        typed = inner;
    }
    if let Node::Unary(Unary::Relu, inner) = &typed.node {
        shape.relu = true;
        typed = inner;
    }
    let is_result = |typed: &Typed| {
        matches!(&typed.node, Node::Read(View { source: Source::Deferred(of), offset: 0, strides })
            if Arc::ptr_eq(of, epilogue.of) && *strides == contiguous(&epilogue.of.shape))
    };
    if let (Node::Binary(Binary::Add, one, other), false) = (&typed.node, shape.result != DType::F32) {
        let (result, bias) = if is_result(one) { (one, other) } else { (other, one) };
        let (view, tensor) = view(bias)?;
        let (last, before) = view.strides.split_last()?;
        let broadcast =
            bias.shape == epilogue.of.shape || bias.shape.len() == 1 && bias.shape.last() == epilogue.of.shape.last();
        if bias.dtype != DType::F32 || *last != 1 || before.iter().any(|&stride| stride != 0) || !broadcast {
            return None;
        }
        shape.bias = Some(view.offset);
        tensors.push(tensor);
        typed = result;
    }
    (typed.dtype == DType::F32 && is_result(typed)).then_some(())
}

/// Two operands as matrices that have a product: a vector on the left is a row, one on the right a column.
fn matrices(a: &Arc<Typed>, b: &Arc<Typed>) -> Result<[Arc<Typed>; 2]> {
    let fault = |reason: String| Error::shape(format!("the matrix product of {:?} and {:?}", a.shape, b.shape), reason);
    if a.dtype != b.dtype || a.dtype == DType::Bool {
        return Err(Error::dtype(
            format!("the matrix product of {} and {}", a.dtype, b.dtype),
            "both must be numbers of the same dtype (cast first)",
        ));
    }
    let left = match a.shape[..] {
        [] => return Err(fault("both need at least one axis".to_owned())),
        [k] => reshaped(a, &[1, k]),
        _ => a.clone(),
    };
    let right = match b.shape[..] {
        [] => return Err(fault("both need at least one axis".to_owned())),
        [k] => reshaped(b, &[k, 1]),
        _ => b.clone(),
    };
    let (columns, rows) = (left.shape[left.shape.len() - 1], right.shape[right.shape.len() - 2]);
    if columns != rows {
        let reason = format!("the left has {columns} columns, the right {rows} rows: the numbers must be equal");
        return Err(fault(reason));
    }
    Ok([left, right])
}

/// A product of that shape as products of numbers, summed over k, whose axis goes last.
fn as_sums(left: &Arc<Typed>, right: &Arc<Typed>, mut shape: Vec<usize>) -> Reduce {
    let rank = shape.len();
    shape.push(left.shape[rank - 1]);
    let mut left_shape = left.shape.clone();
    left_shape.insert(rank - 1, 1);
    let mut order: Vec<usize> = (0..rank - 2).listed();
    order.extend([rank - 1, rank - 2]);
    let turned = permuted(right, &order);
    let mut right_shape = turned.shape.clone();
    right_shape.insert(rank - 2, 1);
    let left = broadcast_to(&reshaped(&left.widened(), &left_shape), &shape);
    let right = broadcast_to(&reshaped(&turned.widened(), &right_shape), &shape);
    let number = left.dtype;
    let products = Typed::new(Node::Binary(Binary::Mul, left, right), shape, number);
    Reduce { fold: Fold::Sum, input: products, from: rank }
}

impl Operation for Matmul {
    fn lowers(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.a, &self.b]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.vector.hash(digest);
        true
    }

    fn takes_memory(&self) -> bool {
        self.a.dtype == DType::F32
    }

    fn fusable(&self) -> u32 {
        if self.vector.is_some() { 0 } else { 4 }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(self.product(call))
    }

    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        is_float(self.a.dtype).then_some(Part::Product)
    }
}

impl Expr {
    /// Returns the matrix product over the last two axes; the axes before them broadcast. A vector on the left counts as a row, one on the right as a
    /// column, and its axis is dropped from the result. Transposed and sliced operands are read in place. f16 and bf16 are multiplied and summed in f32:
    /// f16 by tensor cores on NVIDIA GPUs of compute capability 8.0 and later, bf16 by AVX512-BF16 on processors that have it, which flushes subnormal
    /// numbers to zero. Integers wrap. For exact sums of i8, cast both operands to i32 first; this costs nothing, because AVX512-VNNI multiplies the bytes.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let v = engine.tensor(&[10.0_f32, 1.0])?;
    /// assert_eq!(a.matmul(&v).eval()?.to_vec::<f32>()?, [12.0, 34.0]);
    /// assert_eq!(a.matmul(a.transpose()).eval()?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn matmul(&self, other: impl Into<Self>) -> Self {
        let other = other.into();
        self.derived(|a| {
            let b = self.beside(&other)?;
            let [left, right] = matrices(a, &b)?;
            let (x, y) = (left.shape.len(), right.shape.len());
            let (m, k, n) = (left.shape[x - 2], left.shape[x - 1], right.shape[y - 1]);
            let batch = broadcast(&left.shape[..x - 2], &right.shape[..y - 2])?;
            let shaped = |sides: [usize; 2]| batch.iter().copied().chain(sides).listed();
            let (left, right) = match (x, y) {
                (2, 2) => (left, right),
                _ => (broadcast_to(&left, &shaped([m, k])), broadcast_to(&right, &shaped([k, n]))),
            };
            let full = shaped([m, n]);
            let mut shape = batch.clone();
            shape.extend((a.shape.len() > 1).then_some(m));
            shape.extend((b.shape.len() > 1).then_some(n));
            let dtype = a.dtype;
            if full.contains(&0) || k == 0 {
                return Ok(Typed::filled(0.0, &shape, dtype));
            }
            let number = dtype.computed();
            if !matches!(number, DType::F32 | DType::I32 | DType::U32) {
                let product = host::matmul(&left, &right, number);
                return Ok(reshaped(&product, &shape));
            }
            let (left, right) = match (m, n) {
                (1, n) => (read_often(left, n), right),
                (m, 1) => (left, read_often(right, m)),
                _ => (left, right),
            };
            let is_vector = m == 1 || n == 1;
            let reads = |typed: &Arc<Typed>| {
                typed.dtype == DType::F32
                    && matches!(&typed.node, Node::Read(view) if !matches!(view.source, Source::Indices))
            };
            let plain = || NativeOperation::Matmul(MatmulShape::square(1, DType::F32));
            if is_vector && reads(&left) && reads(&right) && self.engine.has_native(&plain()) {
                let vector = Some(shape.clone());
                return Ok(Typed::deferred(Matmul { a: left, b: right, vector }, shape, DType::F32));
            }
            if is_vector {
                // In the result's own shape, so that what follows can join it.
                return Ok(Typed::deferred(as_sums(&left, &right, full), shape, number).narrowed(dtype));
            }
            let (left, right) = (unwidened(left), unwidened(right));
            let product = Typed::deferred(Matmul { a: left, b: right, vector: None }, full, number);
            Ok(reshaped(&product, &shape).narrowed(dtype))
        })
    }

    /// Returns x w + bias with an activation, in one kernel. A device with its own matrix product runs that and one more kernel.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (x, w) = (engine.tensor_from(&[1.0_f32, 2.0], &[1, 2])?, engine.tensor_from(&[1.0_f32, -1.0, 1.0, -1.0], &[2, 2])?);
    /// let bias = engine.tensor(&[0.5_f32, 0.5])?.expr();
    /// let y = x.fused_linear(&w, Some(&bias), Some(cantus::ops::Unary::Relu)).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.5, 0.0]);
    /// assert_eq!((x.matmul(&w) + &bias).relu().eval()?.to_vec::<f32>()?, [3.5, 0.0]); // the same kernel
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn fused_linear(&self, weight: impl Into<Self>, bias: Option<&Self>, activation: Option<Unary>) -> Self {
        let mut result = self.matmul(weight);
        if let Some(bias) = bias {
            result = result.binary(Binary::Add, bias);
        }
        match activation {
            Some(activation) => result.unary(activation),
            None => result,
        }
    }
}

tensor_methods! {
    fn matmul(other: impl Into<Expr>);
    fn fused_linear(weight: impl Into<Expr>, bias: Option<&Expr>, activation: Option<Unary>);
}
