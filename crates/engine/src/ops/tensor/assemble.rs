//! Tensors put together from parts. One kernel writes as many parts to their places as it can bind. `concat`, `stack`, `pad` and `slice_scatter` record it.
//! Parts must not overlap, since nothing orders their writes. Together they fill the result, or another tensor of its shape lies under them. The CPU copies all parts in one native operation; elsewhere types narrower than a
//! word are assembled in a wide one, since kernels store whole words.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::backend::native::{AssembleShape, CopyShape, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{MOST_TENSORS, Writer, tensors, word, word_text};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::{broadcast_strides, contiguous};
use crate::ops::expr::view::axis_of;
use crate::ops::frame::Frame;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const ASSEMBLE: Frame<1> = Frame::new(cantus_shaders::tensor::ASSEMBLE, ["// PARTS"]);

/// The parts of a tensor: expressions, and the first index of each along every axis.
struct Assemble {
    parts: Vec<(Arc<Typed>, Vec<usize>)>,
    /// The elements around the one part, of the tensor's shape.
    under: Option<Arc<Typed>>,
}

/// The space around a box within a shape, as boxes that do not overlap: the first index of each along every axis, and its lengths.
fn around(at: &[usize], sides: &[usize], shape: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (mut boxes, mut from, mut lengths) = (Vec::new(), vec![0; shape.len()], shape.to_vec());
    for axis in 0..shape.len() {
        let end = at[axis] + sides[axis];
        for (begin, length) in [(0, at[axis]), (end, shape[axis] - end)] {
            if length > 0 {
                (from[axis], lengths[axis]) = (begin, length);
                boxes.push((from.clone(), lengths.clone()));
            }
        }
        (from[axis], lengths[axis]) = (at[axis], sides[axis]);
    }
    boxes
}

/// A view of a tensor that has a part; the part is computed if it is not such a view.
async fn located(call: Call<'_>, part: &Arc<Typed>) -> Result<(View, Tensor)> {
    if let Node::Read(view) = &part.node
        && let Some(tensor) = view.source.tensor()
    {
        return Ok((view.clone(), tensor));
    }
    let tensor = call.compute(part).await?;
    Ok((View { source: Source::Tensor(tensor.clone()), offset: 0, strides: contiguous(&part.shape) }, tensor))
}

impl Operation for Assemble {
    fn lowers(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<Typed>> {
        self.under.iter().chain(self.parts.iter().map(|(part, _)| part)).listed()
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.under.is_some().hash(digest);
        self.parts.iter().map(|(_, place)| place).listed().hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(self.assemble(call))
    }
}

impl Assemble {
    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>) -> Result<Option<Tensor>> {
        let shape = &call.of.shape;
        let empty = NativeOperation::Assemble(AssembleShape::new(shape, Vec::new()));
        let bytes = call.of.dtype.bytes();
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) || shape.contains(&0) || !call.engine.has_native(&empty) {
            return Ok(None);
        }
        let (mut parts, mut tensors) = (Vec::new(), Vec::new());
        if let Some(under) = &self.under {
            let (view, tensor) = located(call, under).await?;
            let strides = broadcast_strides(&under.shape, &view.strides, &under.shape);
            let whole = || vec![(vec![0; shape.len()], shape.to_vec())];
            let part = self.parts.first().filter(|(part, _)| !part.shape.contains(&0));
            for (from, sides) in part.map_or_else(whole, |(part, at)| around(at, &part.shape, shape)) {
                let offset = view.offset + from.iter().zip(&strides).map(|(from, stride)| from * stride).sum::<usize>();
                parts.push((CopyShape::new(&sides, &strides, offset).of_bytes(bytes), from));
                tensors.push(tensor.clone());
            }
        }
        for (part, at) in self.parts.iter().filter(|(part, _)| !part.shape.contains(&0)) {
            let (view, tensor) = located(call, part).await?;
            let strides = broadcast_strides(&part.shape, &view.strides, &part.shape);
            parts.push((CopyShape::new(&part.shape, &strides, view.offset).of_bytes(bytes), at.clone()));
            tensors.push(tensor);
        }
        let tensors: Vec<&Tensor> = tensors.iter().listed();
        let operation = NativeOperation::Assemble(AssembleShape::new(shape, parts));
        call.engine.native_async(operation, &tensors, (call.of.dtype, shape), "assemble").await
    }

    async fn assemble(&self, call: Call<'_>) -> Result<Tensor> {
        if let Some(whole) = self.native(call).await? {
            return Ok(whole);
        }
        if call.of.dtype.is_packed() {
            // Elements that share a word go through words.
            let parts = self.parts.iter().map(|(part, at)| (part.widened(), at.clone())).listed();
            let under = self.under.as_ref().map(|under| under.widened());
            let whole = Typed::deferred(Self { parts, under }, call.of.shape.clone(), call.of.dtype.computed());
            return call.compute(&whole.narrowed(call.of.dtype)).await;
        }
        let mut parts: Vec<(Arc<Typed>, &[usize])> = Vec::new();
        for (part, at) in self.parts.iter().filter(|(part, _)| !part.shape.contains(&0)) {
            parts.push((call.slim(part).await?, at));
        }
        let under = match &self.under {
            Some(under) if !under.shape.contains(&0) => Some(call.slim(under).await?),
            _ => None,
        };
        let mut inputs = Vec::new();
        under.iter().chain(parts.iter().map(|(part, _)| part)).for_each(|part| tensors(part, &mut inputs));
        let output = call.engine.output_async(inputs.first(), call.of.dtype, &call.of.shape, "assemble").await?;
        if let Some(under) = under {
            // All of it, by a kernel before the part's: one expression, which its pieces would not be.
            place_all(call.engine, &[(under, &vec![0; call.of.shape.len()])], &output).await?;
        }
        let mut rest = &parts[..];
        while let Some((first, _)) = rest.first() {
            let mut bound = Vec::new();
            tensors(first, &mut bound);
            // As many more as bind no more tensors than a kernel may.
            let more = rest.iter().skip(1).take(MOST_PARTS - 1).take_while(|(part, _)| {
                tensors(part, &mut bound);
                bound.len() <= MOST_TENSORS
            });
            let (now, later) = rest.split_at(1 + more.count());
            place_all(call.engine, now, &output).await?;
            rest = later;
        }
        Ok(output)
    }
}

/// Parts that a kernel writes, at most.
const MOST_PARTS: usize = 16;

/// Writes parts that are not empty into a tensor whose elements fill words. Beside each part is the place of its first element, along every axis.
async fn place_all(engine: &Engine, parts: &[(Arc<Typed>, &[usize])], target: &Tensor) -> Result<()> {
    let strides = contiguous(target.shape());
    word(target.len())?;
    let counts: Vec<u32> = parts.iter().map(|(part, _)| word(part.count())).try_listed()?;
    let mut writer = Writer::new(&counts);
    let mut statements = String::new();
    for (number, (part, at)) in parts.iter().enumerate() {
        let groups = [("i", 0..part.shape.len())];
        writer.function(&format!("element{number}"), part, &part.shape, &groups, None)?;
        let offset = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        let view = View { source: Source::Indices, offset, strides: strides.clone() };
        let to = Typed::new(Node::Read(view), part.shape.clone(), DType::U32);
        writer.function(&format!("place{number}"), &to, &part.shape, &groups, None)?;
        let count = word_text(number);
        statements += &format!(
            "    if i < {count} {{\n        y[place{number}(i)] = element{number}(i);\n        return;\n    }}\n    i -= {count};\n"
        );
    }
    let body = format!("\n{}", ASSEMBLE.filled([Some(statements.trim_start())]));
    let count: usize = parts.iter().map(|(part, _)| part.count()).sum();
    let workgroups = [count.div_ceil(256), 1, 1];
    let output = stored(target.dtype());
    Composed { name: "assemble", writer: &writer, output, body: &body, workgroups, flops: 0, rounds: 0 }
        .run(engine, target)
        .await
}

/// Writes a part that is not empty, as [`place_all`].
pub(super) async fn place(engine: &Engine, part: &Arc<Typed>, at: &[usize], target: &Tensor) -> Result<()> {
    place_all(engine, &[(part.clone(), at)], target).await
}

/// An assembly of any dtype.
pub(super) fn assembled(parts: Vec<(Arc<Typed>, Vec<usize>)>, shape: Vec<usize>, dtype: DType) -> Arc<Typed> {
    Typed::deferred(Assemble { parts, under: None }, shape, dtype)
}

/// A tensor of any dtype with a part in it, whose first index this is.
pub(super) fn assembled_over(under: &Arc<Typed>, part: Arc<Typed>, at: Vec<usize>) -> Arc<Typed> {
    let assemble = Assemble { parts: vec![(part, at)], under: Some(under.clone()) };
    Typed::deferred(assemble, under.shape.clone(), under.dtype)
}

impl Expr {
    /// Joins this and others along an axis. All other axes must be equal.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (a, b) = (engine.tensor(&[1_i32, 2])?.expr(), engine.tensor(&[3_i32])?.expr());
    /// assert_eq!(a.concat(&[b], 0).eval()?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn concat(&self, others: &[Self], axis: isize) -> Self {
        self.derived(|first| {
            let rank = first.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut parts = vec![(first.clone(), vec![0; rank])];
            let mut shape = first.shape.clone();
            for other in others {
                let other = self.beside(other)?;
                let alike = other.shape.len() == rank && (0..rank).all(|at| at == axis || other.shape[at] == shape[at]);
                if !alike || other.dtype != first.dtype {
                    return Err(Error::shape(
                        format!("concat of {} {:?} and {} {:?}", first.dtype, first.shape, other.dtype, other.shape),
                        format!("the dtypes must be equal, and the shapes except along axis {axis}"),
                    ));
                }
                let mut at = vec![0; rank];
                at[axis] = shape[axis];
                shape[axis] = shape[axis].checked_add(other.shape[axis]).ok_or_else(|| {
                    Error::limit(
                        format!("concat of {:?} and {:?}", first.shape, other.shape),
                        "it is too large to count",
                    )
                })?;
                parts.push((other, at));
            }
            Ok(assembled(parts, shape, first.dtype))
        })
    }
}

tensor_methods! {
    fn concat(others: &[Expr], axis: isize);
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn what_is_around_a_box_is_covered_once() {
        let shape = [3, 4, 2];
        let sides = |side: usize| (0..=side).flat_map(move |from| (from..=side).map(move |to| (from, to - from)));
        for (a, b) in sides(3).flat_map(|a| sides(4).map(move |b| (a, b))) {
            for c in sides(2) {
                let (at, lengths) = ([a.0, b.0, c.0], [a.1, b.1, c.1]);
                let mut times = [[[0; 2]; 4]; 3];
                let own = (at.to_vec(), lengths.to_vec());
                for (from, lengths) in around(&at, &lengths, &shape).into_iter().chain([own]) {
                    for (i, j) in (0..lengths[0]).flat_map(|i| (0..lengths[1]).map(move |j| (i, j))) {
                        (0..lengths[2]).for_each(|k| times[from[0] + i][from[1] + j][from[2] + k] += 1);
                    }
                }
                assert!(times.iter().flatten().flatten().all(|&times| times == 1), "{at:?} {lengths:?}: {times:?}");
            }
        }
    }
}
