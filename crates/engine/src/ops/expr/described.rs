//! Expressions as plain data, for devices that take operations and no kernels: how they are described, and how they run there. `evaluate` asks first, where
//! a device takes graphs (`Engine::takes_graphs`). Tensors become arguments in the order in which they are met, and functions of elements WGSL text. An
//! operation without a description (`Operation::part`) is computed on its own, and then the rest is tried again.

use std::collections::HashMap;
use std::sync::Arc;

use super::deferred::Deferred;
use super::library::linked;
use super::node::{Expr, Node, RandomKind, Source, Typed, View};
use super::number::{converted, scalar};
use super::operation::Operation;
use super::schedule::Schedule;
use crate::backend::BoxFuture;
use crate::backend::expression::{Expression, Part};
use crate::backend::native::NativeOperation;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// Why an expression is not described.
enum Refused {
    Because(String),
    /// An operation has no description: once it is computed, the rest may have one.
    Operation(Arc<Deferred>),
}

/// Operations in a row that one expression holds: describing recurses.
const DEEPEST: usize = 48;
/// Operations that are computed on their own before the rest is described, at most.
const MOST: usize = 256;

/// An expression being described, and the tensors that are its arguments.
#[derive(Default)]
struct Describing {
    expression: Expression,
    tensors: Vec<Tensor>,
    arguments: Vec<usize>,
    known: HashMap<*const Typed, usize>,
    operations: HashMap<*const Deferred, usize>,
    /// Operations within operations.
    depth: usize,
    /// Operations described so far and their values, kept alive because addresses are keys.
    held: Vec<Arc<dyn Operation>>,
    values: Vec<Arc<Typed>>,
}

type Described = std::result::Result<(Expression, Vec<Tensor>), Refused>;

fn described(typed: &Arc<Typed>) -> Described {
    let mut describing = Describing::default();
    describing.node(typed)?;
    Ok((describing.expression, describing.tensors))
}

impl Describing {
    /// Describes a node, and returns its place.
    fn node(&mut self, typed: &Arc<Typed>) -> std::result::Result<usize, Refused> {
        if let Some(known) = self.known.get(&Arc::as_ptr(typed)) {
            return Ok(*known);
        }
        if typed.shape.contains(&0) {
            return Err(Refused::Because("what has no elements".to_owned()));
        }
        let mut operands = typed.children().iter().map(|child| self.node(child)).try_listed()?;
        let part = match &typed.node {
            Node::Read(View { source, offset, strides }) => {
                operands.extend(self.source(source)?);
                Part::View { offset: *offset, strides: strides.clone() }
            }
            Node::Gather { view: View { source, offset, strides }, stride, length, .. } => {
                operands.extend(self.source(source)?);
                Part::Gather { offset: *offset, strides: strides.clone(), step: *stride, length: *length }
            }
            Node::Constant(value) => Part::Constant(value.to_bits()),
            Node::Unary(op, x) => function(&op.function().wgsl(x.dtype, ["x", "y"]), typed)?,
            Node::Binary(op, x, _) => function(&op.function().wgsl(x.dtype, ["x", "y"]), typed)?,
            Node::Select(..) => Part::Select,
            Node::Cast(x) => cast(x.dtype, typed)?,
            Node::Random { kind, seed, .. } => {
                let name = match kind {
                    RandomKind::Bits => "random_bits",
                    RandomKind::Uniform => "float_random_uniform",
                    RandomKind::Normal => "float_random_normal",
                };
                let [low, high] = [*seed as u32, (*seed >> 32) as u32];
                function(&Ok(format!("{name}(x, vec2u({low}u, {high}u))")), typed)?
            }
        };
        let place = self.expression.push(part, operands, &typed.shape, typed.dtype);
        self.known.insert(Arc::as_ptr(typed), place);
        Ok(place)
    }

    /// Describes what a view reads; nothing for positions.
    fn source(&mut self, source: &Source) -> std::result::Result<Option<usize>, Refused> {
        let tensor = match source {
            Source::Indices => return Ok(None),
            Source::Deferred(deferred) => match deferred.live_result() {
                Some(tensor) => Some(tensor),
                None => return self.operation(deferred).map(Some),
            },
            other => other.tensor(),
        };
        let Some(tensor) = tensor else { return Err(Refused::Because("a tensor that is lost".to_owned())) };
        let known = self.tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner));
        if let Some(known) = known.and_then(|place| self.arguments.get(place)) {
            return Ok(Some(*known));
        }
        let part = Part::Argument(self.tensors.len());
        let place = self.expression.push(part, Vec::new(), tensor.shape(), tensor.dtype());
        self.tensors.push(tensor);
        self.arguments.push(place);
        Ok(Some(place))
    }

    fn operation(&mut self, deferred: &Arc<Deferred>) -> std::result::Result<usize, Refused> {
        if let Some(known) = self.operations.get(&Arc::as_ptr(deferred)) {
            return Ok(*known);
        }
        let missing = || Refused::Operation(deferred.clone());
        if self.depth >= DEEPEST {
            return Err(missing());
        }
        self.depth += 1;
        let operation = deferred.operation().ok_or_else(missing)?;
        let expression = operation.expression();
        self.held.push(operation.clone());
        self.values.extend(expression.clone());
        let place = match expression {
            Some(typed) => self.node(&typed)?,
            None => {
                let part = operation.part().ok_or_else(missing)?;
                let operands = operation.inputs().into_iter().map(|input| self.node(input)).try_listed()?;
                self.expression.push(part, operands, &deferred.shape, deferred.dtype)
            }
        };
        self.depth -= 1;
        self.operations.insert(Arc::as_ptr(deferred), place);
        Ok(place)
    }
}

/// The function of `x` and `y` that a node is.
fn function(wgsl: &Result<String>, typed: &Typed) -> std::result::Result<Part, Refused> {
    let wgsl = wgsl.as_ref().map_err(|error| Refused::Because(error.to_string()))?;
    let children = typed.children();
    let parameters = ["x", "y"].iter().zip(children.iter());
    let parameters: Vec<String> = parameters.map(|(name, of)| format!("{name}: {}", scalar(of.dtype))).listed();
    let (parameters, gives) = (parameters.join(", "), scalar(typed.dtype));
    let [_, text] = linked(&format!("fn element({parameters}) -> {gives} {{ return {wgsl}; }}\n"));
    Ok(Part::Function(text.into()))
}

/// A cast: by WGSL's function for numbers out of range.
fn cast(from: DType, typed: &Typed) -> std::result::Result<Part, Refused> {
    match (from.kind(), typed.dtype.kind()) {
        (Kind::Float | Kind::Complex, Kind::Signed | Kind::Unsigned) | (Kind::Complex, Kind::Bool) => {
            function(&Ok(converted("x", from, typed.dtype)), typed)
        }
        _ => Ok(Part::Cast),
    }
}

/// Computes an expression as one graph on a device that takes operations. `None` without such a device or a description.
pub(in crate::ops) fn computed<'a>(
    engine: &'a Engine,
    schedule: &'a Schedule,
    typed: &'a Arc<Typed>,
) -> BoxFuture<'a, Result<Option<Tensor>>> {
    Box::pin(async move {
        if !engine.takes_graphs() || typed.shape.contains(&0) {
            return Ok(None);
        }
        for _ in 0..MOST {
            match described(typed) {
                Ok((expression, tensors)) => {
                    let inputs: Vec<&Tensor> = tensors.iter().listed();
                    let operation = NativeOperation::Expression(Arc::new(expression));
                    return engine.native_async(operation, &inputs, (typed.dtype, &typed.shape), "graph").await;
                }
                Err(Refused::Operation(missing)) if !is_of(typed, &missing) => {
                    missing.compute(engine, schedule).await?;
                }
                Err(refused) => {
                    tracing::debug!("no plain expression: {refused}");
                    return Ok(None);
                }
            }
        }
        Ok(None)
    })
}

/// Computes an operation as an expression of its own; see [`computed`].
pub(in crate::ops) async fn operation(
    engine: &Engine,
    schedule: &Schedule,
    deferred: &Arc<Deferred>,
) -> Result<Option<Tensor>> {
    if !engine.takes_graphs() {
        return Ok(None);
    }
    let typed = Typed::of(Source::Deferred(deferred.clone()), &deferred.shape, deferred.dtype);
    computed(engine, schedule, &typed).await
}

/// Returns whether the expression is that operation's result, and nothing else.
fn is_of(typed: &Arc<Typed>, deferred: &Arc<Deferred>) -> bool {
    match &typed.node {
        Node::Read(view) => matches!(&view.source, Source::Deferred(of) if Arc::ptr_eq(of, deferred)),
        _ => false,
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Because(reason) => write!(f, "{reason}"),
            Self::Operation(_) => write!(f, "one of its operations"),
        }
    }
}

impl Expr {
    /// Returns the expression as plain data, and its arguments: the tensors that it reads, in order. Its result is that of [`Expr::eval`].
    /// Nothing runs.
    ///
    /// # Errors
    /// The first mistake in the recorded expressions; [`Error::Unsupported`] for operations that have no description.
    pub fn described(&self) -> Result<(Expression, Vec<Tensor>)> {
        let typed = self.state.as_ref().map_err(Clone::clone)?;
        described(typed).map_err(|refused| Error::Unsupported {
            kernel: "expression".to_owned(),
            device: "operation graphs".to_owned(),
            construct: format!("a graph has no form of {refused}"),
            report: String::new(),
        })
    }
}
