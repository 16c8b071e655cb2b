//! Order along an axis: elements with their places. Stable, and the same on every device. Elements are brought to an order of u32 by the library's
//! functions, with their places beside them, so all dtypes sort alike: short rows by counting those before each, others by digits (`digits`). Few of a
//! long row are searched for instead (`first`), which a slice of sorted rows turns into by itself (`Operation::beginning`). 64-bit numbers go to the host.

use std::hash::Hash;
use std::sync::Arc;

use super::digits::{Keys, LONGEST};
use super::order::Order;
use super::rows::lanes_for;
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, Number, SortShape};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::deferred::Deferred;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View};
use crate::ops::expr::number::family;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::{contiguous, product};
use crate::ops::expr::view::{axis_of, sliced, to_last, with_last};
use crate::ops::frame::Frame;
use crate::ops::host;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const FIRST: Frame<1> = Frame::new(cantus_shaders::tensor::FIRST_OF_ROWS, ["LANES"]);
/// The greatest number of elements per row that are found without sorting: each invocation keeps its own.
const FEW: usize = 16;
/// A slice from the start of sorted rows is found without sorting them if it asks for at most `MOST_BEGUN` elements of a row, and for at most one in
/// `BEGUN_PAYS` of them.
const MOST_BEGUN: usize = 32;
const BEGUN_PAYS: usize = 8;
/// Where rows are few: the least number of elements in a part of a long row, and the most parts.
const PART: usize = 4096;
const PARTS: usize = 64;

/// The function of the library in whose order elements of a dtype are sorted, as u32.
pub(super) fn order(dtype: DType) -> Result<String> {
    match dtype.computed() {
        DType::F32 | DType::I32 | DType::U32 => Ok(format!("{}_order", family(dtype))),
        _ => Err(Error::dtype(format!("an order of {dtype}"), "complex numbers have no order")),
    }
}

fn is_ordered(dtype: DType) -> bool {
    host::is_wide(dtype) || order(dtype).is_ok()
}

/// The rows along the last axis, sorted. The result has one axis more: of the order of each element, and of its place in the row.
struct Sort {
    input: Arc<Typed>,
    descending: bool,
    /// The number of elements wanted from the start of each row.
    keep: usize,
    /// The number of bits of a key that may differ.
    bits: u32,
}

impl Sort {
    /// The first of each part of the rows: order and place of each.
    async fn first(
        &self,
        engine: &Engine,
        writer: Writer,
        functions: String,
        [rows, length, parts]: [usize; 3],
        shape: &[usize],
    ) -> Result<Tensor> {
        let near = writer.tensors().first().cloned();
        let frame = FIRST.filled([lanes_for(length.div_ceil(parts), engine.shared().machine(near.as_ref()))]);
        let body = format!("{functions}\nconst KEEP = {}u;\n{frame}", self.keep);
        let found = engine.output_async(near.as_ref(), DType::U32, shape, "topk").await?;
        let workgroups = [parts, rows, 1];
        Composed {
            name: "first_of_rows",
            writer: &writer,
            output: "u32",
            body: &body,
            workgroups,
            flops: 0,
            rounds: 0,
        }
        .run(engine, &found)
        .await?;
        Ok(found)
    }

    /// The first few of the rows, each found by the invocations of a workgroup.
    async fn few(&self, call: Call<'_>, input: &Arc<Typed>, order: &str) -> Result<Tensor> {
        let rank = input.shape.len();
        let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
        let parts = if rows < PARTS { (length / PART).clamp(1, PARTS) } else { 1 };
        let mut writer = Writer::new(&first_words([rows, length, parts])?);
        writer.function("element", input, &input.shape, &groups(rank), None)?;
        let body = format!("{order}fn place_of(row: u32, place: u32) -> u32 {{ return place; }}\n");
        let all = [rows, parts * self.keep, 2];
        let shape = if parts > 1 { &all[..] } else { &call.of.shape };
        let found = self.first(call.engine, writer, body, [rows, length, parts], shape).await?;
        if parts == 1 {
            return Ok(found);
        }
        let length = all[1];
        let mut writer = Writer::new(&first_words([rows, length, 1])?);
        let words = Typed::of(Source::Tensor(found.clone()), &[found.len()], DType::U32);
        writer.function("word_of", &words, &words.shape, &[("i", 0..1)], None)?;
        let at = "2u * (row * words[0].y + place)";
        let body = format!(
            "\nfn order(row: u32, place: u32) -> u32 {{ return word_of({at}); }}\n\
             fn place_of(row: u32, place: u32) -> u32 {{ return word_of({at} + 1u); }}\n"
        );
        self.first(call.engine, writer, body, [rows, length, 1], &call.of.shape).await
    }

    /// The function by which kernels order elements.
    fn order(&self) -> Result<String> {
        order_of_element(self.input.dtype, self.descending, self.bits)
    }

    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>, input: &Arc<Typed>) -> Result<Option<Tensor>> {
        // Types narrower than a word are ordered as words.
        let input = &input.widened();
        let Some(number) = number(input.dtype) else { return Ok(None) };
        let rank = input.shape.len();
        let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
        let shape = SortShape { rows, length, keep: self.keep, number, descending: self.descending };
        let operation = NativeOperation::Sort(shape);
        if !call.engine.has_native(&operation) {
            return Ok(None);
        }
        let rows = call.compute(input).await?;
        call.engine.native_async(operation, &[&rows], (DType::U32, &call.of.shape), "sort").await
    }
}

/// The function by which kernels for short rows store pairs.
const PAIRS: &str = "fn store(row: u32, at: u32, key: u32, place: u32) {
    let to = 2u * (row * words[0].w + at);
    y[to] = key;
    y[to + 1u] = place;
}
";

/// The axes of rows.
pub(super) fn groups(rank: usize) -> [(&'static str, std::ops::Range<usize>); 2] {
    [("row", 0..rank - 1), ("place", rank - 1..rank)]
}

/// The function `order(row, place)`: the key of `element(row, place)`, of that many bits.
pub(super) fn order_of_element(dtype: DType, descending: bool, bits: u32) -> Result<String> {
    let order = format!("{}(element(row, place))", order(dtype)?);
    let key = match (descending, bits) {
        (false, _) => order,
        (true, 32..) => format!("~{order}"),
        (true, _) => format!("{}u - {order}", (1_u32 << bits) - 1),
    };
    Ok(format!("\nfn order(row: u32, place: u32) -> u32 {{ return {key}; }}\n"))
}

/// The bits of an element's key, without those that are the same in all of a dtype.
pub(super) fn bits_of(dtype: DType) -> u32 {
    match dtype {
        DType::Bool | DType::U8 => 8,
        DType::U16 => 16,
        _ => u32::BITS,
    }
}

/// The numbers that the frame for a few of each row takes.
fn first_words([rows, length, parts]: [usize; 3]) -> Result<[u32; 4]> {
    Ok([word(rows)?, word(length)?, word(length.div_ceil(parts))?, word(parts)?])
}

/// Returns the number type of a dtype for native operations.
pub(in crate::ops) fn number(dtype: DType) -> Option<Number> {
    match dtype {
        DType::F32 => Some(Number::F32),
        DType::I32 => Some(Number::I32),
        DType::U32 => Some(Number::U32),
        DType::F64 => Some(Number::F64),
        DType::I64 => Some(Number::I64),
        DType::U64 => Some(Number::U64),
        DType::Complex64 => Some(Number::Complex64),
        DType::Complex128 => Some(Number::Complex128),
        _ => None,
    }
}

impl Operation for Sort {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.descending, self.keep, self.bits).hash(digest);
        true
    }

    fn beginning(&self, keep: usize) -> Option<Arc<Deferred>> {
        let pays = keep > 0 && keep <= MOST_BEGUN && keep.saturating_mul(BEGUN_PAYS) <= self.keep;
        let mut words = self.input.shape.clone();
        *words.last_mut()? = keep;
        words.push(2);
        let begun = Self { input: self.input.clone(), descending: self.descending, keep, bits: self.bits };
        pays.then(|| Deferred::new(begun, words, DType::U32))
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.input).await?;
            let rank = input.shape.len();
            let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
            word(product(&[2, rows, length]))?;
            if let Some(sorted) = self.native(call, &input).await? {
                return call.followed(sorted).await;
            }
            let order = self.order()?;
            if self.keep <= FEW && self.keep < length {
                let few = self.few(call, &input, &order).await?;
                return call.followed(few).await;
            }
            let keys = Keys { input: &input, order: &order, bits: self.bits, rows, length, keep: self.keep };
            if length <= LONGEST {
                let writer = keys.short()?;
                let output = call.output(&writer, DType::U32, "sort").await?;
                keys.sort_short(call.engine, &writer, ("u32", PAIRS), &output).await?;
                return call.followed(output).await;
            }
            let mut sorted = keys.sort_long(call.engine).await?;
            if self.keep < length {
                let mut ranges: Vec<_> = sorted.shape().iter().map(|&side| 0..side).listed();
                ranges[rank - 1] = 0..self.keep;
                sorted = call.compute(&sliced(&Typed::read(&sorted), &ranges, &vec![1; ranges.len()])).await?;
            }
            call.followed(sorted).await
        })
    }
}

/// The first `keep` elements of the last axis in their order: what [`order`] makes of each, and its place, as u32.
pub(super) fn sort_words(input: &Arc<Typed>, keep: usize, descending: bool) -> [Arc<Typed>; 2] {
    sort_bits(input, keep, descending, bits_of(input.dtype))
}

/// Whole numbers from 0 to `most` in ascending order, as [`sort_words`].
pub(super) fn sort_below(input: &Arc<Typed>, most: usize) -> [Arc<Typed>; 2] {
    let bits = (usize::BITS - most.leading_zeros()).clamp(1, u32::BITS);
    sort_bits(input, input.shape.last().copied().unwrap_or_default(), false, bits)
}

pub(super) fn sort_bits(input: &Arc<Typed>, keep: usize, descending: bool, bits: u32) -> [Arc<Typed>; 2] {
    let mut shape = input.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = keep;
    }
    let shape = &shape;
    if shape.contains(&0) {
        return [(); 2].map(|()| Typed::of(Source::Indices, shape, DType::U32));
    }
    let mut words = shape.clone();
    words.push(2);
    let sorted = Deferred::new(Sort { input: input.rounded(), descending, keep, bits }, words, DType::U32);
    [0, 1].map(|offset| {
        let strides = contiguous(shape).into_iter().map(|stride| 2 * stride).listed();
        let view = View { source: Source::Deferred(sorted.clone()), offset, strides };
        Typed::new(Node::Read(view), shape.clone(), DType::U32)
    })
}

impl Expr {
    /// Returns the indices that sort an axis, as u32: the index of the least element first, or of the greatest with `descending`. Equal elements keep
    /// their order. NaN counts as greater than all others, -0 as 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[3.0_f32, 1.0, 2.0, 1.0])?;
    /// assert_eq!(x.argsort(0, false).eval()?.to_vec::<u32>()?, [1, 3, 2, 0]);
    /// assert_eq!(x.argsort(0, true).eval()?.to_vec::<u32>()?, [0, 2, 1, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn argsort(&self, axis: isize, descending: bool) -> Self {
        self.derived(|typed| {
            let axis = axis_of(axis, typed.shape.len())?;
            if is_ordered(typed.dtype) && typed.shape[axis] == 1 {
                return Ok(Typed::filled(0.0, &typed.shape, DType::U32));
            }
            if host::is_wide(typed.dtype) {
                return Ok(with_last(&host::argsort(&to_last(typed, axis), descending), axis));
            }
            order(typed.dtype)?;
            let [_, places] = sort_words(&to_last(typed, axis), typed.shape[axis], descending);
            Ok(with_last(&places, axis))
        })
    }

    /// Returns the elements along an axis in ascending order, or in descending order, as [`Expr::argsort`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[3_i32, 1, 2, 9, 7, 8], &[2, 3])?;
    /// assert_eq!(x.sort(-1, false).eval()?.to_vec::<i32>()?, [1, 2, 3, 7, 8, 9]);
    /// assert_eq!(x.sort(0, true).eval()?.to_vec::<i32>()?, [9, 7, 8, 3, 1, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn sort(&self, axis: isize, descending: bool) -> Self {
        let settled = self.settled();
        let is_one = |shape: &[usize]| axis_of(axis, shape.len()).is_ok_and(|axis| shape[axis] == 1);
        if settled.dtype().is_ok_and(is_ordered) && settled.shape().is_ok_and(is_one) {
            return settled;
        }
        let is_processors = settled.engine.is_processors();
        if settled.dtype().is_ok_and(is_ordered)
            && settled.shape().is_ok_and(|shape| is_processors || Order::is_one_kernel(shape, axis))
            && (is_processors || settled.dtype().is_ok_and(|dtype| !host::is_wide(dtype)))
        {
            return settled.derived(|typed| {
                let axis = axis_of(axis, typed.shape.len())?;
                if typed.shape.contains(&0) {
                    return Ok(typed.clone());
                }
                // A kernel stores single elements, as words.
                let input = to_last(typed, axis);
                let input = if is_processors { input } else { input.rounded().widened() };
                let (shape, dtype) = (input.shape.clone(), input.dtype);
                let bits = bits_of(typed.dtype);
                let sorted = Typed::deferred(Order { input, descending, bits }, shape, dtype);
                Ok(with_last(&sorted, axis).narrowed(typed.dtype))
            });
        }
        settled.gathered(&settled.argsort(axis, descending), axis)
    }

    /// Returns the `k` greatest elements along an axis (the least ones without `largest`), best first, and their indices as u32.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[3.0_f32, 1.0, 4.0, 1.0, 5.0])?;
    /// let (values, places) = x.topk(2, 0, true);
    /// assert_eq!(values.eval()?.to_vec::<f32>()?, [5.0, 4.0]);
    /// assert_eq!(places.eval()?.to_vec::<u32>()?, [4, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> (Self, Self) {
        let settled = self.settled();
        let places = settled.derived(|typed| {
            let axis = axis_of(axis, typed.shape.len())?;
            if k > typed.shape[axis] {
                return Err(Error::shape(
                    format!("the {k} best of {:?} along axis {axis}", typed.shape),
                    format!("there are {} elements", typed.shape[axis]),
                ));
            }
            if host::is_wide(typed.dtype) {
                let all = with_last(&host::argsort(&to_last(typed, axis), largest), axis);
                let mut ranges: Vec<_> = typed.shape.iter().map(|&side| 0..side).listed();
                ranges[axis] = 0..k;
                return Ok(sliced(&all, &ranges, &vec![1; ranges.len()]));
            }
            let [_, places] = sort_words(&to_last(typed, axis), k, largest);
            Ok(with_last(&places, axis))
        });
        (settled.gathered(&places, axis), places)
    }

    /// The same values for several readers: from memory, or from an operation's result.
    pub(in crate::ops) fn settled(&self) -> Self {
        self.derived(|typed| {
            Ok(match &typed.node {
                Node::Read(_) | Node::Constant(_) => typed.clone(),
                _ => typed.computed(),
            })
        })
    }
}

impl Tensor {
    /// See [`Expr::topk`].
    #[must_use]
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> (Expr, Expr) {
        self.expr().topk(k, axis, largest)
    }
}

tensor_methods! {
    fn argsort(axis: isize, descending: bool);
    fn sort(axis: isize, descending: bool);
}
