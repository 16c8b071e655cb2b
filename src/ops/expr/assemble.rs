//! Tensors put together from parts: concatenation and padding. Each part is written to its place by a kernel of its own.

use std::sync::Arc;

use super::deferred::{Deferred, Launch, Operation, slim};
use super::emit::{Writer, stored, too_large};
use super::node::{Expr, Node, Source, Typed, View};
use super::shape::contiguous;
use super::view::axis_of;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::tensor::DType;

/// What covers a tensor: expressions, and the first index of each along every axis.
pub(super) struct Assemble {
    pub(super) parts: Vec<(Arc<Typed>, Vec<usize>)>,
}

const PLACED: &str = "
@compute @workgroup_size(256)
fn assemble(@builtin(global_invocation_id) id: vec3u) {
    if id.x < words[0].x { y[place(id.x)] = element(id.x); }
}
";

impl Assemble {
    pub(super) async fn run(&self, engine: &Engine, of: &Arc<Deferred>) -> Result<Tensor> {
        let mut output: Option<Tensor> = None;
        let strides = contiguous(&of.shape);
        for (part, at) in &self.parts {
            if part.shape.contains(&0) {
                continue;
            }
            let part = slim(engine, part, 0).await?;
            let count = part.count();
            let mut writer = Writer::new(&[u32::try_from(count).map_err(|_| too_large(count))?]);
            let rank = part.shape.len();
            writer.function("element", &part, &part.shape, &[("i", 0..rank)], None)?;
            let offset = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            let view = View { source: Source::Indices, offset, strides: strides.clone() };
            let place = Typed::new(Node::Read(view), part.shape.clone(), DType::U32);
            writer.function("place", &place, &part.shape, &[("i", 0..rank)], None)?;
            let target = match &output {
                Some(target) => target.clone(),
                None => engine.output(writer.tensors().first(), of.dtype, &of.shape, "assemble").await?,
            };
            let workgroups = [count.div_ceil(256), 1, 1];
            let launch = Launch {
                name: "assemble",
                writer: &writer,
                output: stored(of.dtype),
                body: PLACED,
                workgroups,
                flops: 0,
            };
            launch.run(engine, &target).await?;
            output = Some(target);
        }
        match output {
            Some(output) => Ok(output),
            None => engine.output(None, of.dtype, &of.shape, "assemble").await,
        }
    }
}

/// An assembly of any dtype: halves, of which two share a word, go through float32.
fn assembled(parts: Vec<(Arc<Typed>, Vec<usize>)>, shape: Vec<usize>, dtype: DType) -> Arc<Typed> {
    if dtype != DType::F16 {
        return Typed::deferred(Operation::Assemble(Assemble { parts }), shape, dtype);
    }
    let wide = |(part, at): (Arc<Typed>, Vec<usize>)| {
        (Typed::new(Node::Cast(part.clone()), part.shape.clone(), DType::F32), at)
    };
    let parts = parts.into_iter().map(wide).collect();
    let result = Typed::deferred(Operation::Assemble(Assemble { parts }), shape.clone(), DType::F32);
    Typed::new(Node::Cast(result), shape, DType::F16)
}

impl Expr {
    /// This and others one after the other along an axis. Their other axes must be alike.
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
                    return Err(Error::InvalidSize {
                        what: format!(
                            "concat of {} {:?} and {} {:?}",
                            first.dtype, first.shape, other.dtype, other.shape
                        ),
                        reason: format!("but for axis {axis} the shapes must be equal, and so must the dtypes"),
                    });
                }
                let mut at = vec![0; rank];
                at[axis] = shape[axis];
                shape[axis] += other.shape[axis];
                parts.push((other, at));
            }
            Ok(assembled(parts, shape, first.dtype))
        })
    }

    /// With `before` and `after` elements of a value around it, a pair for each axis.
    #[must_use]
    pub fn pad(&self, widths: &[(usize, usize)], value: f64) -> Self {
        let constant = self.constant(value);
        self.derived(|typed| {
            let constant = constant.state.as_ref().map_err(Clone::clone)?;
            let rank = typed.shape.len();
            if widths.len() != rank {
                return Err(Error::InvalidSize {
                    what: format!("a padding of {widths:?}"),
                    reason: format!("it takes a pair for each of the {rank} axes"),
                });
            }
            let sides = typed.shape.iter().zip(widths);
            let shape: Option<Vec<usize>> =
                sides.map(|(side, (before, after))| side.checked_add(*before)?.checked_add(*after)).collect();
            let shape = shape.ok_or_else(|| Error::InvalidSize {
                what: format!("a padding of {widths:?}"),
                reason: "it is too large to count".to_owned(),
            })?;
            let mut parts = Vec::new();
            // The border in pieces that do not overlap: no element is written twice.
            let mut inner: Vec<(usize, usize)> = shape.iter().map(|&side| (0, side)).collect();
            for axis in 0..rank {
                let (before, after) = widths[axis];
                for (from, to) in [(0, before), (shape[axis] - after, shape[axis])] {
                    let mut piece = inner.clone();
                    piece[axis] = (from, to);
                    let sides = piece.iter().map(|(from, to)| to - from).collect();
                    let filled = Typed::new(Node::Cast(constant.clone()), sides, typed.dtype);
                    parts.push((filled, piece.iter().map(|(from, _)| *from).collect()));
                }
                inner[axis] = (before, shape[axis] - after);
            }
            parts.push((typed.clone(), widths.iter().map(|(before, _)| *before).collect()));
            Ok(assembled(parts, shape, typed.dtype))
        })
    }

    /// The elements along an axis at the places that an i32 or u32 tensor names: its shape takes the axis's place. Negative places count
    /// from the end; those out of range are the nearest.
    #[must_use]
    pub fn take(&self, index: impl Into<Self>, axis: isize) -> Self {
        let index = index.into();
        self.derived(|typed| {
            let index = self.beside(&index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut shape = typed.shape[..axis].to_vec();
            shape.extend(&index.shape);
            shape.extend(&typed.shape[axis + 1..]);
            // The index runs along the axes that took the axis's place.
            let mut wide = index.shape.clone();
            wide.extend(std::iter::repeat_n(1, rank - axis - 1));
            let index = super::view::reshaped(&index, &wide);
            gathered(typed, axis, index, shape, |strides| {
                let mut wider = strides[..axis].to_vec();
                wider.extend(std::iter::repeat_n(0, wide.len() - (rank - axis - 1)));
                wider.extend(&strides[axis + 1..]);
                wider
            })
        })
    }

    /// The element along an axis that an i32 or u32 tensor of as many axes names at each place, as NumPy's `take_along_axis`: the other
    /// axes broadcast. Places are as in [`Expr::take`].
    #[must_use]
    pub fn gather(&self, index: impl Into<Self>, axis: isize) -> Self {
        let index = index.into();
        self.derived(|typed| {
            let index = self.beside(&index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut from = typed.shape.clone();
            from[axis] = 1;
            if index.shape.len() != rank {
                return Err(Error::InvalidSize {
                    what: format!("gather by {:?} from {:?}", index.shape, typed.shape),
                    reason: "the index must have as many axes".to_owned(),
                });
            }
            let shape = super::shape::broadcast(&from, &index.shape)?;
            let to = shape.clone();
            gathered(typed, axis, index, shape, move |strides| {
                let mut inner = strides.to_vec();
                inner[axis] = 0;
                super::shape::broadcast_strides(&from, &inner, &to)
            })
        })
    }
}

/// A gather node; `spread` makes strides of the source into strides of the result.
fn gathered(
    typed: &Arc<Typed>,
    axis: usize,
    index: Arc<Typed>,
    shape: Vec<usize>,
    spread: impl Fn(&[usize]) -> Vec<usize>,
) -> Result<Arc<Typed>> {
    if !matches!(index.dtype, DType::I32 | DType::U32) {
        return Err(Error::InvalidInput {
            what: format!("an index of {}", index.dtype),
            reason: "it must be i32 or u32 (cast it)".to_owned(),
        });
    }
    let length = typed.shape[axis];
    if length == 0 && !shape.contains(&0) {
        return Err(Error::InvalidSize {
            what: format!("axis {axis} of {:?}", typed.shape),
            reason: "it is empty".to_owned(),
        });
    }
    // What is read must lie somewhere.
    let source = match &typed.node {
        Node::Read(_) => typed.clone(),
        _ => Typed::deferred(Operation::Compute(typed.clone()), typed.shape.clone(), typed.dtype),
    };
    let Node::Read(view) = &source.node else { return Ok(source) };
    let strides = super::shape::broadcast_strides(&source.shape, &view.strides, &typed.shape);
    let stride = strides[axis];
    let view = View { source: view.source.clone(), offset: view.offset, strides: spread(&strides) };
    let node = Node::Gather { view, stride, length: length.max(1), index };
    Ok(Typed::new(node, shape, typed.dtype))
}
