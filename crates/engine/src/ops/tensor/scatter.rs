//! Values written to places that another tensor names. The places are sorted first, by as many bits as they have, and the values of each are then combined
//! tile by tile (`segments`), with as much work for an invocation where all values have one place as where each has its own. Where they are cut depends
//! on their order alone, so a device gives the same bits in every run. The processor has it natively, and adds values one by one.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use super::assemble::assembled_over;
use super::sort::sort_below;
use crate::backend::BoxFuture;
use crate::backend::native::{Combination, NativeOperation, ScatterShape};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::Operand;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{self, MOST_TENSORS, Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Typed, is_whole};
use crate::ops::expr::number::{scalar, stored};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::{broadcast, product};
use crate::ops::expr::view::{axis_of, broadcast_to, reshaped, to_last, with_last};
use crate::tensor::DType;
use cantus_base::listed::Listed;

const SCATTER: &str = cantus_shaders::tensor::SCATTER;
const SEGMENTS: &str = cantus_shaders::tensor::SEGMENTS;
/// Values of a tile.
const TILE: usize = 1024;

/// A scatter along the last axis.
struct Scatter {
    into: Arc<Typed>,
    /// The targets in ascending order, as u32; those beyond the axis have no effect. Every axis except the last may have length 1.
    sorted: Arc<Typed>,
    /// The values to scatter.
    source: Arc<Typed>,
    values: Arc<Typed>,
    /// The combination of an element and a value; without it the value takes the place.
    by: Option<Binary>,
}

impl Scatter {
    /// The combination of `a` and `b`, as WGSL.
    fn combine(&self) -> Result<String> {
        match self.by {
            Some(by) => by.function().wgsl(self.into.dtype, ["a", "b"]),
            None => Ok("b".to_owned()),
        }
    }

    /// Combines each value with those before it in its tile that have its target; then likewise the last ones of whole tiles, and so on until there is
    /// one tile.
    async fn segments(&self, engine: &Engine, values: &Arc<Typed>) -> Result<Vec<Tensor>> {
        let (number, combine) = (scalar(values.dtype), self.combine()?);
        let rank = values.shape.len();
        let (rows, count) = (product(&values.shape[..rank - 1]), values.shape[rank - 1]);
        let mut levels: Vec<Tensor> = Vec::new();
        // How many values each of a level stands for.
        let mut step = 1;
        while step <= count {
            let length = count / step;
            let mut writer = Writer::new(&[word(rows)?, word(length)?, word(step)?, 0]);
            let read = match levels.last() {
                None => {
                    let groups = [("row", 0..rank - 1), ("i", rank - 1..rank)];
                    for (name, typed) in [("sorted", &self.sorted), ("source", &self.source), ("element", values)] {
                        writer.function(name, typed, &values.shape, &groups, None)?;
                    }
                    "element(row, source(row, i))"
                }
                Some(last) => {
                    let groups = [("row", 0..rank - 1), ("i", rank - 1..rank)];
                    writer.function("sorted", &self.sorted, &values.shape, &groups, None)?;
                    let last = Typed::read(last);
                    writer.function("element", &last, &last.shape, &[("row", 0..1), ("i", 1..2)], None)?;
                    "element(row, (i + 1u) * TILE - 1u)"
                }
            };
            let body = format!(
                "\nalias Number = {number};\nconst TILE = {TILE}u;\n\
                 fn combine(a: Number, b: Number) -> Number {{ return {combine}; }}\n\
                 fn target_of(row: u32, i: u32) -> u32 {{ return sorted(row, (i + 1u) * words[0].z - 1u); }}\n\
                 fn value(row: u32, i: u32) -> Number {{ return {read}; }}\n\n{SEGMENTS}"
            );
            let near = writer.tensors().first();
            let totals = engine.output_async(near, values.dtype, &[rows, length], "segments").await?;
            let workgroups = [length.div_ceil(TILE), rows, 1];
            let flops = rows * length;
            let launch = Composed {
                name: "segments",
                writer: &writer,
                output: number,
                body: &body,
                workgroups,
                flops,
                rounds: 0,
            };
            launch.run(engine, &totals).await?;
            levels.push(totals);
            if length <= TILE {
                break;
            }
            step *= TILE;
        }
        Ok(levels)
    }
}

/// The function `all_until`: what the levels of [`Scatter::segments`] have for the values up to the last one of a target.
fn all_until(levels: usize) -> String {
    let mut text =
        "fn all_until(row: u32, last: u32) -> Number {\n    var total = level0(row, last);\n    var tile = last;\n    \
                    var first = 1u;\n"
            .to_owned();
    for level in 1..levels {
        text += &format!(
            "    tile /= {TILE}u;\n    first *= {TILE}u;\n    \
             if tile == 0u || sorted(row, tile * first - 1u) != sorted(row, last) {{ return total; }}\n    \
             tile -= 1u;\n    total = combine(level{level}(row, tile), total);\n"
        );
    }
    text + "    return total;\n}\n"
}

impl Operation for Scatter {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.into, &self.sorted, &self.source, &self.values]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.by.map(|by| by as usize).hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        1
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let into = call.narrowed(&self.into, 1).await?;
            let values = call.narrowed(&self.values, 1).await?;
            let rank = into.shape.len();
            let (rows, length) = (product(&into.shape[..rank - 1]), into.shape[rank - 1]);
            word(into.count())?;
            word(values.count())?;
            let mut writer = Writer::new(&[word(length)?, word(values.shape[rank - 1])?]);
            let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
            writer.function("element", &into, &into.shape, &groups, None)?;
            writer.function("sorted", &self.sorted, &values.shape, &groups, None)?;
            // Only an epilogue that has few tensors of its own fits beside the levels.
            let (whole, mut call) = (call, call);
            let all = if self.by.is_some() {
                let levels = self.segments(call.engine, &values).await?;
                if let Some(epilogue) = call.epilogue {
                    let mut others = Vec::new();
                    emit::tensors(epilogue.typed, &mut others);
                    let fits = writer.tensors().len() + levels.len() + others.len() <= MOST_TENSORS;
                    call.epilogue = call.epilogue.filter(|_| fits);
                }
                for (level, totals) in levels.iter().enumerate() {
                    let read = Typed::read(totals);
                    writer.function(
                        &format!("level{level}"),
                        &read,
                        &read.shape,
                        &[("row", 0..1), ("i", 1..2)],
                        None,
                    )?;
                }
                all_until(levels.len())
            } else {
                // The last one takes the place.
                writer.function("source", &self.source, &values.shape, &groups, None)?;
                writer.function("value", &values, &values.shape, &groups, None)?;
                "fn all_until(row: u32, last: u32) -> Number { return value(row, source(row, last)); }\n".to_owned()
            };
            let (value, dtype) = call.finished(&mut writer, "value", &groups)?;
            let body = format!(
                "\nalias Number = {};\n\
                 fn combine(a: Number, b: Number) -> Number {{ return {}; }}\n{all}\
                 fn store(row: u32, place: u32, value: Number) {{ y[row * words[0].x + place] = {value}; }}\n\n{SCATTER}",
                scalar(into.dtype),
                self.combine()?
            );
            let output = call.output(&writer, dtype, "scatter").await?;
            let workgroups = [length.div_ceil(64), rows, 1];
            Composed {
                name: "scatter",
                writer: &writer,
                output: stored(dtype),
                body: &body,
                workgroups,
                flops: 0,
                rounds: 0,
            }
            .run(call.engine, &output)
            .await?;
            if call.epilogue.is_none() { whole.followed(output).await } else { Ok(output) }
        })
    }
}

/// The same, computed natively by a device.
struct Directly {
    into: Arc<Typed>,
    /// The targets: as those of [`Scatter`], or i32, of which negative ones count from the end.
    index: Arc<Typed>,
    values: Arc<Typed>,
    by: Option<Binary>,
}

impl Directly {
    /// Returns the native operation for the device, if there is one.
    fn operation(&self) -> Option<NativeOperation> {
        let by = match self.by {
            None => None,
            Some(Binary::Add) => Some(Combination::Sum),
            Some(Binary::Max) => Some(Combination::Greatest),
            Some(Binary::Min) => Some(Combination::Least),
            Some(_) => return None,
        };
        let (length, outer) = self.into.shape.split_last()?;
        let (count, outer_index) = self.index.shape.split_last()?;
        let shared = outer_index.iter().all(|&side| side == 1);
        let shape = ScatterShape::new([product(outer), *length, *count], shared, self.into.dtype, by);
        let signed = self.index.dtype == DType::I32;
        Some(NativeOperation::Scatter(if signed { shape.by_signed() } else { shape }))
    }

    /// Sorts the indices with kernels.
    fn sorted(&self) -> Arc<Typed> {
        // An index that is the same for all rows is sorted once.
        let length = self.into.shape.last().copied().unwrap_or_default();
        let index = from_begin(&self.index, length);
        // Those beyond the axis stay beyond it.
        let beyond = Typed::new(Node::Constant(length as f64), Vec::new(), DType::U32);
        let index = Typed::new(Node::Binary(Binary::Min, index.clone(), beyond), index.shape.clone(), DType::U32);
        let [sorted, source] = sort_below(&index, length);
        let (into, values, by) = (self.into.clone(), self.values.clone(), self.by);
        let (shape, dtype) = (into.shape.clone(), into.dtype);
        Typed::deferred(Scatter { into, sorted, source, values, by }, shape, dtype)
    }
}

impl Operation for Directly {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.into, &self.index, &self.values]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.by.hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let Some(operation) = self.operation().filter(|operation| call.engine.has_native(operation)) {
                let NativeOperation::Scatter(shape) = &operation else {
                    return call.compute(&self.sorted()).await;
                };
                let index =
                    if shape.shared { self.index.clone() } else { broadcast_to(&self.index, &self.values.shape) };
                let into = call.compute(&self.into).await?;
                let places = call.compute(&index).await?;
                let values = call.compute(&self.values).await?;
                let like = (self.into.dtype, &*call.of.shape);
                if let Some(result) =
                    call.engine.native_async(operation, &[&into, &places, &values], like, "scatter").await?
                {
                    return Ok(result);
                }
            }
            call.compute(&self.sorted()).await
        })
    }
}

/// Returns places as u32: negative ones count from the end, and a place out of range matches nothing.
fn from_begin(index: &Arc<Typed>, length: usize) -> Arc<Typed> {
    if index.dtype != DType::I32 {
        return index.clone();
    }
    let constant = |value: usize| Typed::new(Node::Constant(value as f64), Vec::new(), DType::I32);
    let of = |op: Binary, a: &Arc<Typed>, b: Arc<Typed>, dtype: DType| {
        Typed::new(Node::Binary(op, a.clone(), b), a.shape.clone(), dtype)
    };
    let below = of(Binary::Lt, index, constant(0), DType::Bool);
    let turned = of(Binary::Add, index, constant(length), DType::I32);
    let whole = Typed::new(Node::Select(below, turned, index.clone()), index.shape.clone(), DType::I32);
    Typed::new(Node::Cast(whole), index.shape.clone(), DType::U32)
}

/// Elements scattered along an axis on an engine; `index` has as many axes as the result.
fn scattered(
    engine: &Engine,
    into: &Arc<Typed>,
    index: &Arc<Typed>,
    values: &Arc<Typed>,
    axis: usize,
    by: Option<Binary>,
) -> Result<Arc<Typed>> {
    if into.dtype != values.dtype || !is_whole(index.dtype) {
        return Err(Error::dtype(
            format!("a scatter of {} to {} by an index of {}", values.dtype, into.dtype, index.dtype),
            "elements and values must have the same dtype, and the index must be i32, u32 or narrower (cast them)",
        ));
    }
    let rank = into.shape.len();
    let fault = || {
        Error::shape(
            format!("a scatter of {:?} to {:?} by {:?} along axis {axis}", values.shape, into.shape, index.shape),
            "the index must have the same number of axes, and both must broadcast to the whole except along that axis",
        )
    };
    if index.shape.len() != rank {
        return Err(fault());
    }
    let mut of_values = into.shape.clone();
    of_values[axis] = index.shape[axis];
    for shape in [&index.shape, &values.shape] {
        if broadcast(shape, &of_values).ok().as_ref() != Some(&of_values) {
            return Err(fault());
        }
    }
    if of_values.contains(&0) || into.shape.contains(&0) {
        return Ok(into.clone());
    }
    let index = index.widened();
    if let Some(by) = by {
        by.function().result(into.dtype)?;
    }
    let (dtype, into) = (into.dtype, to_last(into, axis).widened());
    let values = to_last(&broadcast_to(values, &of_values), axis).widened();
    let directly = Directly { into, index: to_last(&index, axis), values, by };
    let result = match directly.operation().is_some_and(|operation| engine.has_native(&operation)) {
        true => {
            let (shape, computed) = (directly.into.shape.clone(), directly.into.dtype);
            Typed::deferred(directly, shape, computed)
        }
        false => directly.sorted(),
    };
    Ok(with_last(&result, axis).narrowed(dtype))
}

impl Expr {
    /// Returns this with the elements that `index` selects along an axis replaced by `values`. `index` is an i32 or u32 tensor with the same number
    /// of axes; the other axes broadcast. If several values have the same index, the last one wins. Negative indices count from the end. An index out
    /// of range is an error when the result is read, as in [`Expr::take`]. The indices are sorted first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2, 3])?;
    /// let index = engine.tensor_from(&[2_u32, 0], &[2, 1])?;
    /// let y = x.scatter(index, engine.tensor(&[7.0_f32])?, 1).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 7.0, 7.0, 0.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn scatter(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.scattered(&index.into(), &values.into(), axis, None, "scatter")
    }

    /// Returns this with `values` added to the elements that `index` selects, as in [`Expr::scatter`]. They are added in an order that depends only on
    /// the index, so sums have the same bits in every run on a device.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[3])?;
    /// let index = engine.tensor(&[2_i32, 0, 2])?;
    /// let y = x.scatter_add(index, engine.tensor(&[1.0_f32, 2.0, 3.0])?, 0).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn scatter_add(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.scattered(&index.into(), &values.into(), axis, Some(Binary::Add), "scatter_add")
    }

    /// Returns this with each element that `index` selects replaced by the maximum of it and its values, as in [`Expr::scatter`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[2_i32, 2])?;
    /// let y = x.scatter_max(engine.tensor(&[0_u32, 1])?, engine.tensor(&[1_i32, 5])?, 0).eval()?;
    /// assert_eq!(y.to_vec::<i32>()?, [2, 5]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn scatter_max(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.scattered(&index.into(), &values.into(), axis, Some(Binary::Max), "scatter_max")
    }

    /// Returns this with each element that `index` selects replaced by the minimum of it and its values, as in [`Expr::scatter`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[2_i32, 2])?;
    /// let y = x.scatter_min(engine.tensor(&[0_u32, 1])?, engine.tensor(&[1_i32, 5])?, 0).eval()?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn scatter_min(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.scattered(&index.into(), &values.into(), axis, Some(Binary::Min), "scatter_min")
    }

    /// Returns this with the slices that a one-dimensional `index` selects along an axis replaced by `values`, as in [`Expr::scatter`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[3, 2])?;
    /// let y = x.index_copy(engine.tensor(&[-1_i32])?, engine.tensor_from(&[5.0_f32, 6.0], &[1, 2])?, 0).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.0, 5.0, 6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn index_copy(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.along(&index.into(), &values.into(), axis, None, "index_copy")
    }

    /// Returns this with `values` added to the slices that a one-dimensional `index` selects along an axis, as in [`Expr::scatter_add`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2, 2])?;
    /// let rows = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.index_add(engine.tensor(&[1_u32, 1])?, rows, 0).eval()?.to_vec::<f32>()?, [0.0, 0.0, 4.0, 6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn index_add(&self, index: impl Into<Self>, values: impl Into<Self>, axis: isize) -> Self {
        self.along(&index.into(), &values.into(), axis, Some(Binary::Add), "index_add")
    }

    /// Returns this with the slices that a one-dimensional `index` selects along an axis filled with a number, as in [`Expr::scatter`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2, 2])?;
    /// assert_eq!(x.index_fill(engine.tensor(&[1_u32])?, 9.0, 1).eval()?.to_vec::<f32>()?, [0.0, 9.0, 0.0, 9.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn index_fill(&self, index: impl Into<Self>, value: f64, axis: isize) -> Self {
        let value = self.constant(value);
        self.along(&index.into(), &value, axis, None, "index_fill")
    }

    /// Returns this with the elements where a mask (bool, or u32) is not 0 replaced by a number or by the elements of `value`. Shapes broadcast.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, -2.0])?;
    /// assert_eq!(x.masked_fill(x.less(0.0), 0.5).eval()?.to_vec::<f32>()?, [1.0, 0.5]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn masked_fill(&self, mask: impl Into<Self>, value: impl Into<Operand>) -> Self {
        let value = value.into().beside(self);
        mask.into().select(value, self)
    }

    /// Returns this with the part that [`Expr::slice`] would return replaced by `values`, whose shape broadcasts to that of the part.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<i32>(&[2, 3])?;
    /// let y = x.slice_scatter(&[0..2, 1..2], engine.tensor_from(&[7_i32, 8], &[2, 1])?).eval()?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 7, 0, 0, 8, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn slice_scatter(&self, ranges: &[Range<usize>], values: impl Into<Self>) -> Self {
        let values = values.into();
        let part = self.slice(ranges);
        self.derived(|typed| {
            let values = self.beside(&values)?;
            if values.dtype != typed.dtype {
                return Err(Error::dtype(
                    format!("values of {} in a tensor of {}", values.dtype, typed.dtype),
                    "both must have the same dtype (cast one of them)",
                ));
            }
            let shape = part.shape()?;
            if broadcast(&values.shape, shape)? != shape {
                return Err(Error::shape(
                    format!("values of the shape {:?}", values.shape),
                    format!("they do not broadcast to the part's shape {shape:?}"),
                ));
            }
            let rank = typed.shape.len();
            let mut at: Vec<usize> = ranges.iter().map(|range| range.start).listed();
            at.resize(rank, 0);
            Ok(assembled_over(typed, broadcast_to(&values, shape), at))
        })
    }

    fn scattered(&self, index: &Self, values: &Self, axis: isize, by: Option<Binary>, operation: &'static str) -> Self {
        let index = &self.within(index, axis, operation);
        self.derived(|typed| {
            let (index, values) = (self.beside(index)?, self.beside(values)?);
            scattered(&self.engine, typed, &index, &values, axis_of(axis, typed.shape.len())?, by)
        })
    }

    /// The same by an index for whole slices.
    fn along(&self, index: &Self, values: &Self, axis: isize, by: Option<Binary>, operation: &'static str) -> Self {
        let index = &self.within(index, axis, operation);
        self.derived(|typed| {
            let (index, values) = (self.beside(index)?, self.beside(values)?);
            let axis = axis_of(axis, typed.shape.len())?;
            let [count] = index.shape[..] else {
                return Err(Error::shape(format!("an index of the shape {:?}", index.shape), "it must have one axis"));
            };
            let mut shape = vec![1; typed.shape.len()];
            shape[axis] = count;
            scattered(&self.engine, typed, &reshaped(&index, &shape), &values, axis, by)
        })
    }

    /// The elements of one axis, each at the place that `places` names for it; these are a permutation.
    pub(super) fn permuted_to(&self, places: &Tensor) -> Self {
        self.derived(|typed| {
            let places = self.beside(&Self::from(places))?;
            scattered(&self.engine, typed, &places, typed, 0, None)
        })
    }
}

tensor_methods! {
    fn scatter(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn scatter_add(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn scatter_max(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn scatter_min(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn index_copy(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn index_add(index: impl Into<Expr>, values: impl Into<Expr>, axis: isize);
    fn index_fill(index: impl Into<Expr>, value: f64, axis: isize);
    fn masked_fill(mask: impl Into<Expr>, value: impl Into<Operand>);
    fn slice_scatter(ranges: &[Range<usize>], values: impl Into<Expr>);
}
