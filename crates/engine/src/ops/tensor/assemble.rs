//! Tensors put together from parts. Each part is written to its place by a kernel of its own. `concat`, `stack` and `pad` record it. Parts must not
//! overlap, and together they fill the result, which begins unspecified. The CPU copies all parts in one native operation; elsewhere types narrower than a
//! word are assembled in a wide one, since kernels store whole words.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::backend::native::{AssembleShape, CopyShape, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::emit::{Writer, tensors, word};
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::replay::KeyWords;
use crate::ops::expr::shape::{broadcast_strides, contiguous};
use crate::ops::expr::view::axis_of;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const ASSEMBLE: &str = cantus_shaders::tensor::ASSEMBLE;

/// The parts of a tensor: expressions, and the first index of each along every axis.
struct Assemble {
    parts: Vec<(Arc<Typed>, Vec<usize>)>,
}

impl Operation for Assemble {
    fn lowers(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<Typed>> {
        self.parts.iter().map(|(part, _)| part).listed()
    }

    fn parameters(&self, words: &mut KeyWords) -> bool {
        self.parts.iter().map(|(_, place)| place).listed().hash(words);
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
        for (part, at) in self.parts.iter().filter(|(part, _)| !part.shape.contains(&0)) {
            let known = match &part.node {
                Node::Read(view) => view.source.tensor().map(|tensor| (view.clone(), tensor)),
                _ => None,
            };
            let (view, tensor) = match known {
                Some(known) => known,
                None => {
                    let tensor = compute(call.engine, part).await?;
                    (
                        View { source: Source::Tensor(tensor.clone()), offset: 0, strides: contiguous(&part.shape) },
                        tensor,
                    )
                }
            };
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
            let whole = Typed::deferred(Self { parts }, call.of.shape.clone(), call.of.dtype.computed());
            return compute(call.engine, &whole.narrowed(call.of.dtype)).await;
        }
        let mut output: Option<Tensor> = None;
        for (part, at) in &self.parts {
            if part.shape.contains(&0) {
                continue;
            }
            let part = call.slim(part).await?;
            let target = match &output {
                Some(target) => target.clone(),
                None => {
                    let mut inputs = Vec::new();
                    tensors(&part, &mut inputs);
                    call.engine.output_async(inputs.first(), call.of.dtype, &call.of.shape, "assemble").await?
                }
            };
            place(call.engine, &part, at, &target).await?;
            output = Some(target);
        }
        match output {
            Some(output) => Ok(output),
            None => call.engine.output_async(None, call.of.dtype, &call.of.shape, "assemble").await,
        }
    }
}

/// Writes a part that is not empty into a tensor whose elements fill words: `at` is where its first element goes, along every axis.
pub(super) async fn place(engine: &Engine, part: &Arc<Typed>, at: &[usize], target: &Tensor) -> Result<()> {
    let strides = contiguous(target.shape());
    let count = part.count();
    word(target.len())?;
    let mut writer = Writer::new(&[word(count)?]);
    let groups = [("i", 0..part.shape.len())];
    writer.function("element", part, &part.shape, &groups, None)?;
    let offset = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
    let view = View { source: Source::Indices, offset, strides };
    let to = Typed::new(Node::Read(view), part.shape.clone(), DType::U32);
    writer.function("place", &to, &part.shape, &groups, None)?;
    let body = format!("\n{ASSEMBLE}");
    let workgroups = [count.div_ceil(256), 1, 1];
    let output = stored(target.dtype());
    Composed { name: "assemble", writer: &writer, output, body: &body, workgroups, flops: 0, rounds: 0 }
        .run(engine, target)
        .await
}

/// An assembly of any dtype.
pub(super) fn assembled(parts: Vec<(Arc<Typed>, Vec<usize>)>, shape: Vec<usize>, dtype: DType) -> Arc<Typed> {
    Typed::deferred(Assemble { parts }, shape, dtype)
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
                    return Err(Error::InvalidSize {
                        what: format!(
                            "concat of {} {:?} and {} {:?}",
                            first.dtype, first.shape, other.dtype, other.shape
                        ),
                        reason: format!("the dtypes must be equal, and the shapes except along axis {axis}"),
                    });
                }
                let mut at = vec![0; rank];
                at[axis] = shape[axis];
                shape[axis] = shape[axis].checked_add(other.shape[axis]).ok_or_else(|| Error::InvalidSize {
                    what: format!("concat of {:?} and {:?}", first.shape, other.shape),
                    reason: "it is too large to count".to_owned(),
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
