//! Operations that take a kernel of their own: what such an operation says of itself, and how it is run.
//!
//! # A new operation
//! 1. A type with the inputs and the parameters, in the area that it belongs to (`ops/tensor`, `ops/linalg`, `ops/fft`). A method of `Expr` checks the
//!    arguments and records it in a `Deferred`; `tensor_methods!` gives tensors the same method.
//! 2. `Operation::inputs` and `Operation::run` have no defaults. `run` gets a `Call`: the engine, the shape and dtype of the result, and perhaps the
//!    `Epilogue`, an expression that may end the kernel.
//! 3. `run` brings its inputs to few tensors (`Call::slim`) and writes their functions (`Writer`). It ends the kernel with the epilogue
//!    (`Call::finished`), or lets it follow in a kernel of its own (`Call::followed`), and runs the frame by a `Composed`. A device's own form
//!    (`NativeOperation`) is tried before.
//!
//! | method | default | say more where |
//! | --- | --- | --- |
//! | `parameters` | not replayed | evaluations repeat: add everything that changes the commands, since a replay believes it |
//! | `fusable` | 0 | the kernel can end with an epilogue: the more it saves, the larger |
//! | `lowers` | no | inputs may be expressions, and need no memory |
//! | `takes_memory` | no | the processor's form reads its inputs from memory |
//! | `part` | none | devices that take graphs can have it |
//! | `beginning`, `with_places` | none | sorts |

use std::sync::Arc;

use super::deferred::Deferred;
use super::digest::Digest;
use super::emit::{self, Group, Writer};
use super::evaluate::{compute_in, kernel, narrowed};
use super::node::Typed;
use super::schedule::Schedule;
use super::view::reshaped;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::ProductShape;
use crate::backend::{BoxFuture, MaybeSend, MaybeSync};
use crate::engine::{Engine, Extent, Tensor};
use crate::error::Result;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// An operation that is recorded, and computed by a kernel of its own: a frame of `shaders/tensor` around the expressions that it reads.
pub(in crate::ops) trait Operation: MaybeSend + MaybeSync {
    /// The expressions that it reads. What these read is computed before it runs.
    fn inputs(&self) -> Vec<&Arc<Typed>>;

    /// Adds everything that it depends on, except its inputs, to the digest. Returns whether evaluations of it may be replayed: equal digests and inputs then
    /// record equal commands.
    fn parameters(&self, digest: &mut Digest) -> bool {
        let _ = digest;
        false
    }

    /// The type's name.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Returns how much an epilogue in its kernel saves: the larger, the better; 0 if it cannot be part of it.
    fn fusable(&self) -> u32 {
        0
    }

    /// Returns whether [`Schedule::lowered`] may replace its inputs. Such an operation looks at an input only after [`Call::slim`],
    /// [`Call::narrowed`] or [`Call::compute`].
    fn lowers(&self) -> bool {
        false
    }

    /// Returns whether the processor's own form of it takes its inputs from memory.
    fn takes_memory(&self) -> bool {
        false
    }

    /// The expression, if it is an expression's value and not an operation.
    fn expression(&self) -> Option<Arc<Typed>> {
        None
    }

    /// For sorted values: the same values as a gather by the places that sorting finds.
    fn with_places(&self) -> Option<Arc<Typed>> {
        None
    }

    /// For sorted rows: an operation that finds only the first `keep` elements of each row, if that is quicker. The last two axes of its result are the
    /// places in a row, and the words of each.
    fn beginning(&self, keep: usize) -> Option<Arc<Deferred>> {
        let _ = keep;
        None
    }

    /// Returns whether its inputs still exist.
    fn is_there(&self) -> bool {
        true
    }

    /// Computes it into a new tensor.
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>>;

    /// The operation on its inputs as plain data, for devices that take no kernels.
    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        None
    }
}

/// The expression that follows an operation in its own kernel: it has the operation's shape and reads its result.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Epilogue<'a> {
    pub(in crate::ops) typed: &'a Arc<Typed>,
    pub(in crate::ops) of: &'a Arc<Deferred>,
}

/// A call of an operation: the engine, the schedule, the shape and dtype of its own result, and the epilogue.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Call<'a> {
    pub(in crate::ops) engine: &'a Engine,
    /// How what its inputs read is computed.
    pub(in crate::ops) schedule: &'a Schedule,
    /// The shape and the dtype of the operation's own result.
    pub(in crate::ops) of: &'a Deferred,
    pub(in crate::ops) epilogue: Option<Epilogue<'a>>,
}

impl<'a> Call<'a> {
    /// An input with few enough tensors that those of the epilogue fit beside it.
    pub(in crate::ops) async fn slim(&self, typed: &Arc<Typed>) -> Result<Arc<Typed>> {
        let mut others = Vec::new();
        if let Some(epilogue) = self.epilogue {
            emit::tensors(epilogue.typed, &mut others);
        }
        self.narrowed(typed, emit::MOST_TENSORS.saturating_sub(others.len()).max(1)).await
    }

    /// An input with at most `most` tensors.
    pub(in crate::ops) async fn narrowed(&self, typed: &Arc<Typed>, most: usize) -> Result<Arc<Typed>> {
        narrowed(self.engine, self.schedule, typed, most).await
    }

    /// Computes an input, or something made of it.
    pub(in crate::ops) async fn compute(&self, typed: &Arc<Typed>) -> Result<Tensor> {
        compute_in(self.engine, self.schedule, typed).await
    }

    /// Adds the epilogue's function of `value` and a place, whose groups of axes the frame counts under these names. The WGSL of what is to
    /// be stored, and its dtype.
    pub(in crate::ops) fn finished(
        &self,
        writer: &mut Writer,
        value: &str,
        groups: &[Group<'_>],
    ) -> Result<(String, DType)> {
        let Some(epilogue) = self.epilogue else { return Ok((value.to_owned(), self.of.dtype)) };
        writer.function("finished", epilogue.typed, &epilogue.typed.shape, groups, Some(epilogue.of))?;
        let names: Vec<&str> = groups.iter().map(|(name, _)| *name).listed();
        Ok((format!("finished({value}, {})", names.join(", ")), epilogue.typed.dtype))
    }

    /// A tensor for the result, near what the writer's kernel reads.
    pub(in crate::ops) async fn output(&self, writer: &Writer, dtype: DType, name: &str) -> Result<Tensor> {
        self.engine.output_async(writer.tensors().first(), dtype, &self.of.shape, name).await
    }

    /// Computes the epilogue in a kernel of its own, over a result of a native operation or a library.
    pub(in crate::ops) async fn followed(&self, result: Tensor) -> Result<Tensor> {
        match self.epilogue {
            Some(epilogue) => self.compute(&epilogue.typed.with_result(epilogue.of, &result)).await,
            None => Ok(result),
        }
    }
}

/// Returns the rounds of a loop with those of the loops inside, which make `each` in each round. The last test of a loop's condition counts as a round,
/// because drivers that end loops early count it.
pub(in crate::ops) fn looped(rounds: usize, each: usize) -> usize {
    rounds.saturating_mul(each.saturating_add(1)).saturating_add(1)
}

/// One kernel to run: a body for what a writer wrote.
pub(in crate::ops) struct Composed<'a> {
    /// The frame's name.
    pub(in crate::ops) name: &'a str,
    pub(in crate::ops) writer: &'a Writer,
    /// The WGSL type of the output's elements.
    pub(in crate::ops) output: &'a str,
    pub(in crate::ops) body: &'a str,
    pub(in crate::ops) workgroups: [usize; 3],
    /// Floating-point operations, for profiles; 0 where counting them says little.
    pub(in crate::ops) flops: usize,
    /// The most rounds that the loops of an invocation make together ([`looped`]), where they grow with the sizes; 0 where they are few.
    pub(in crate::ops) rounds: usize,
}

impl Composed<'_> {
    /// Runs it into `y`.
    pub(in crate::ops) async fn run(&self, engine: &Engine, y: &Tensor) -> Result<()> {
        self.run_stated(engine, y, None).await
    }

    /// Returns whether a native kernel runs in its place, on the device of its inputs.
    pub(in crate::ops) async fn is_taken_over(&self, engine: &Engine) -> Result<bool> {
        let make = || kernel(self.name, &self.writer.text(self.output, self.body));
        let Some(near) = self.writer.tensors().first() else { return Ok(false) };
        engine.is_taken_over(near, (self.name, make), &self.writer.bytes(), self.workgroups).await
    }

    /// Runs it as a kernel that states a product, with the product's tensors a, b, and the bias if it has one.
    pub(in crate::ops) async fn run_stated(
        &self,
        engine: &Engine,
        y: &Tensor,
        stated: Option<(ProductShape, Vec<Tensor>)>,
    ) -> Result<()> {
        let kernel = kernel(self.name, &self.writer.text(self.output, self.body))?;
        let bytes = self.writer.bytes();
        let mut dispatch = engine.dispatch(&kernel).flops(self.flops as u64).rounds(self.rounds as u64).fresh();
        dispatch = dispatch.set_bytes("words", &bytes).bind("y", y);
        for (name, tensor) in emit::NAMES.iter().zip(self.writer.tensors()) {
            dispatch = dispatch.bind(name, tensor);
        }
        let named = |tensor: &Tensor| {
            let place = self.writer.tensors().iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner))?;
            emit::NAMES.get(place).copied()
        };
        let stated = stated.and_then(|(product, tensors)| {
            let mut names = tensors.iter().map(named).try_listed()?;
            names.insert(2.min(names.len()), "y");
            Some((product, names))
        });
        dispatch.stating(stated).workgroups(Extent::from(self.workgroups)).run_async().await
    }
}

/// Runs a frame, whose name and text are given, on the elements of a tensor, which it calls as `element(place)` and which are few enough for one
/// workgroup, if a native kernel replaces it on the tensor's device; `None` where none does. `words` are those that it reads before the others'.
/// Returns its result: float32 of that shape.
pub fn taken_over<'a>(
    engine: &'a Engine,
    values: &'a Tensor,
    (name, body): (&'a str, &'a str),
    words: &'a [u32],
    shape: &'a [usize],
) -> BoxFuture<'a, Result<Option<Tensor>>> {
    Box::pin(async move {
        let count = values.len();
        let mut writer = Writer::new(words);
        writer.function("element", &reshaped(&Typed::read(values), &[count]), &[count], &[("place", 0..1)], None)?;
        let workgroups = [1; 3];
        let launch = Composed { name, writer: &writer, output: "f32", body, workgroups, flops: 0, rounds: 0 };
        if !launch.is_taken_over(engine).await? {
            return Ok(None);
        }
        let y = engine.output_async(Some(values), DType::F32, shape, name).await?;
        launch.run(engine, &y).await?;
        Ok(Some(y))
    })
}
