//! Expressions as operation graphs: the one place where the tree is lowered for devices that take operations and no kernels.

mod function;
mod run;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

pub(in crate::ops) use function::Item;
pub(in crate::ops) use run::{computed, operation};

use super::deferred::Deferred;
use super::library::linked;
use super::node::{Node, RandomKind, Source, Typed, View};
use super::number::{converted, scalar};
use super::shape::product;
use crate::engine::Tensor;
use crate::error::Error;
use crate::graph::{Binary, Compare, Graph, Unary, Value};
use crate::ops::elementwise;
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// Why an expression is no graph.
#[derive(Debug, Clone)]
pub(in crate::ops) enum Refused {
    Because(String),
    /// An operation has no form as a graph: once it is computed, the rest may be one.
    Operation,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Because(reason) => write!(f, "a graph has no form of {reason}"),
            Self::Operation => write!(f, "a graph has no form of one of its operations"),
        }
    }
}

type Lowered<T> = Result<T, Refused>;

/// Why an expression is no graph, and the operation that is to be computed before.
type Fault = (Refused, Option<Arc<Deferred>>);

/// A graph being made of an expression, and the tensors that are its arguments.
pub(in crate::ops) struct Lowering {
    pub(in crate::ops) graph: Graph,
    pub(in crate::ops) tensors: Vec<Tensor>,
    inputs: Vec<Value>,
    known: HashMap<*const Typed, Item>,
    operations: HashMap<*const Deferred, Item>,
    /// Operations within operations.
    depth: usize,
    /// An operation without a form, to be computed before.
    pub(in crate::ops) missing: Option<Arc<Deferred>>,
}

/// Returns a kernel's WGSL as an operation graph without arguments: each invocation stores one element, at the place of its id in a result of rows
/// and columns. `uniforms` gives the value of each member of its uniforms.
///
/// # Errors
/// [`Error::Unsupported`] for what a graph has no form of.
pub fn graph_of_kernel(
    name: &str,
    text: &str,
    shape: [usize; 2],
    uniforms: &dyn Fn(&str, DType) -> Option<f64>,
) -> crate::error::Result<Graph> {
    let mut graph = Graph::new(name);
    let lowered = function::mapped(&mut graph, text, shape, uniforms).and_then(|item| item.one());
    let value = lowered.map_err(|refused| Error::Unsupported {
        kernel: name.to_owned(),
        device: "operation graphs".to_owned(),
        construct: refused.to_string(),
        report: String::new(),
    })?;
    graph.output(value);
    Ok(graph.pruned())
}

/// Operations in a row that one graph holds: lowering recurses.
const DEEPEST: usize = 48;

impl Lowering {
    pub(in crate::ops) fn new(name: &str) -> Self {
        Self {
            graph: Graph::new(name),
            tensors: Vec::new(),
            inputs: Vec::new(),
            known: HashMap::new(),
            operations: HashMap::new(),
            depth: 0,
            missing: None,
        }
    }

    /// The graph whose result is the expression, in its own shape and dtype.
    pub(in crate::ops) fn lowered(mut self, typed: &Arc<Typed>) -> Result<(Graph, Vec<Tensor>), Fault> {
        match self.whole(typed).and_then(|item| self.stored(&item, typed.dtype)) {
            Ok(value) => {
                self.graph.output(value);
                Ok((self.graph.pruned(), self.tensors))
            }
            Err(refused) => Err((refused, self.missing)),
        }
    }

    /// Converts a value to the dtype that a tensor holds.
    fn stored(&mut self, item: &Item, dtype: DType) -> Lowered<Value> {
        Ok(match (item, dtype) {
            (Item::Many(parts), DType::Complex64 | DType::Complex128) => {
                let [re, im] = parts.as_slice() else { return Err(Refused::Because("such a number".to_owned())) };
                let (re, im) = (re.one()?, im.one()?);
                self.graph.binary(Binary::Complex, re, im)
            }
            (item, DType::Bool) => {
                let value = item.one()?;
                self.truth(value)
            }
            (item, dtype) => {
                let value = item.one()?;
                self.graph.convert(value, dtype)
            }
        })
    }

    fn truth(&mut self, value: Value) -> Value {
        let zero = self.graph.constant(0, self.graph.dtype(value));
        self.graph.compare(Compare::Ne, value, zero)
    }

    /// The expression in its whole shape.
    pub(in crate::ops) fn whole(&mut self, typed: &Arc<Typed>) -> Lowered<Item> {
        let item = self.value(typed)?;
        Ok(self.aligned(&item, &typed.shape, true))
    }

    /// One value of the expression in its whole shape: for what is not complex.
    pub(in crate::ops) fn single(&mut self, typed: &Arc<Typed>) -> Lowered<Value> {
        self.whole(typed)?.one()
    }

    /// Repeats an item of another shape to this one, aligned at the last axis; also single numbers if `all`.
    fn aligned(&mut self, item: &Item, shape: &[usize], all: bool) -> Item {
        item.each(&mut |value| {
            let from = self.graph.shape(value).to_vec();
            if from == shape || (from.is_empty() && !all) {
                return value;
            }
            let offset = shape.len() - from.len();
            // An axis of length 1 is repeated.
            let kept: Vec<usize> = (0..from.len()).filter(|&axis| from[axis] == shape[axis + offset]).listed();
            let lengths: Vec<usize> = kept.iter().map(|&axis| from[axis]).listed();
            let axes: Vec<usize> = kept.iter().map(|axis| axis + offset).listed();
            let narrow = self.graph.reshape(value, &lengths);
            self.graph.broadcast(narrow, &axes, shape)
        })
    }

    fn value(&mut self, typed: &Arc<Typed>) -> Lowered<Item> {
        if let Some(known) = self.known.get(&Arc::as_ptr(typed)) {
            return Ok(known.clone());
        }
        if typed.shape.contains(&0) {
            return Err(Refused::Because("what has no elements".to_owned()));
        }
        let children = |this: &mut Self| -> Lowered<Vec<Item>> {
            let mut items = Vec::new();
            for child in typed.children() {
                let item = this.value(child)?;
                items.push(this.aligned(&item, &typed.shape, false));
            }
            Ok(items)
        };
        let item = match &typed.node {
            Node::Read(view) => self.read(view, &typed.shape, typed.dtype)?,
            Node::Gather { view, stride, length, .. } => {
                let index = children(self)?.first().map_or_else(|| Err(missing()), Item::one)?;
                self.gather(view, typed, (*stride, *length), index)?
            }
            Node::Constant(value) => self.constant(*value, typed.dtype),
            Node::Unary(op, a) => {
                let [x] = arguments(children(self)?)?;
                let item = self.function(&op.function_of(a.dtype)?, typed.dtype, a.dtype, vec![x])?;
                self.wrapped(&item, typed.dtype)
            }
            Node::Binary(op, a, _) => {
                let [x, y] = arguments(children(self)?)?;
                let item = self.function(&op.function_of(a.dtype)?, typed.dtype, a.dtype, vec![x, y])?;
                self.wrapped(&item, typed.dtype)
            }
            Node::Select(..) => {
                let [condition, a, b] = arguments(children(self)?)?;
                let condition = condition.one()?;
                let condition = self.truth(condition);
                match (a, b) {
                    (Item::Many(a), Item::Many(b)) => {
                        let pairs = a
                            .iter()
                            .zip(&b)
                            .map(|(a, b)| Ok(Item::One(self.graph.select(condition, a.one()?, b.one()?))));
                        Item::Many(pairs.try_listed()?)
                    }
                    (a, b) => Item::One(self.graph.select(condition, a.one()?, b.one()?)),
                }
            }
            Node::Cast(a) => {
                let [x] = arguments(children(self)?)?;
                self.cast(&x, a.dtype, typed.dtype)?
            }
            Node::Random { kind, seed, .. } => {
                let [counter] = arguments(children(self)?)?;
                let function = match kind {
                    RandomKind::Bits => "random_bits",
                    RandomKind::Uniform => "float_random_uniform",
                    RandomKind::Normal => "float_random_normal",
                };
                let key = [*seed as u32, (*seed >> 32) as u32];
                let key = key.map(|word| Item::One(self.graph.constant(u64::from(word), DType::U32)));
                let text = linked(&format!("fn unused() {{ _ = {function}; }}"));
                let text = text[1].rsplit_once("fn unused").map_or("", |(library, _)| library).to_owned();
                function::called(&mut self.graph, &text, function, vec![counter, Item::Many(key.to_vec())])?
            }
        };
        self.known.insert(Arc::as_ptr(typed), item.clone());
        Ok(item)
    }

    /// A function of elements by its WGSL.
    fn function(&mut self, wgsl: &str, to: DType, from: DType, arguments: Vec<Item>) -> Lowered<Item> {
        let (ty, gives) = (scalar(from), scalar(to));
        let parameters = if arguments.len() == 2 { format!("x: {ty}, y: {ty}") } else { format!("x: {ty}") };
        let [_, text] = linked(&format!("fn element({parameters}) -> {gives} {{ return {wgsl}; }}\n"));
        function::called(&mut self.graph, &text, "element", arguments)
    }

    fn wrapped(&mut self, item: &Item, dtype: DType) -> Item {
        match dtype.kind() {
            Kind::Signed | Kind::Unsigned if dtype.is_packed() => item.each(&mut |value| {
                let narrow = self.graph.convert(value, dtype);
                self.graph.convert(narrow, dtype.computed())
            }),
            _ => item.clone(),
        }
    }

    fn constant(&mut self, value: f64, dtype: DType) -> Item {
        match dtype {
            DType::Complex64 | DType::Complex128 => {
                let part = if dtype == DType::Complex64 { DType::F32 } else { DType::F64 };
                Item::Many([value, 0.0].map(|number| Item::One(self.graph.float(number, part))).to_vec())
            }
            // Integers are exact in float64, except those of 64 bits beyond 2^53, which saturate as casts do.
            _ => Item::One(self.graph.float(value, dtype.computed())),
        }
    }

    fn cast(&mut self, x: &Item, from: DType, to: DType) -> Lowered<Item> {
        use Kind::{Bool, Complex, Float, Signed, Unsigned};
        if from == to {
            return Ok(x.clone());
        }
        let part = |dtype| if dtype == DType::Complex64 { DType::F32 } else { DType::F64 };
        Ok(match (from.kind(), to.kind()) {
            (Complex, Complex) => x.each(&mut |value| self.graph.convert(value, part(to))),
            (Complex, Bool) => self.function(&converted("x", from, to), to, from, vec![x.clone()])?,
            (Complex, _) => {
                let Item::Many(parts) = x else { return Err(missing()) };
                let real = parts.first().ok_or_else(missing)?.clone();
                self.cast(&real, part(from), to)?
            }
            (_, Complex) => {
                let real = self.cast(x, from, part(to))?;
                let zero = self.graph.float(0.0, part(to));
                let value = real.one()?;
                // Both parts have the shape of the whole.
                let zero = match self.graph.shape(value).to_vec() {
                    shape if shape.is_empty() => zero,
                    shape => self.graph.broadcast(zero, &[], &shape),
                };
                Item::Many(vec![real, Item::One(zero)])
            }
            (_, Bool) => {
                let value = x.one()?;
                let truth = self.truth(value);
                Item::One(self.graph.convert(truth, DType::U32))
            }
            (Float, Signed | Unsigned) => self.function(&converted("x", from, to), to, from, vec![x.clone()])?,
            // A float is rounded to what is narrower, an integer wraps.
            _ => x.each(&mut |value| {
                let narrow = self.graph.convert(value, to);
                self.graph.convert(narrow, to.computed())
            }),
        })
    }

    /// An argument as it is computed with.
    fn loaded(&mut self, value: Value) -> Item {
        match self.graph.dtype(value) {
            DType::Complex64 | DType::Complex128 => Item::Many(vec![
                Item::One(self.graph.unary(Unary::Real, value)),
                Item::One(self.graph.unary(Unary::Imag, value)),
            ]),
            dtype => Item::One(self.graph.convert(value, dtype.computed())),
        }
    }

    /// A tensor as an argument, in its own shape.
    pub(in crate::ops) fn argument(&mut self, tensor: &Tensor) -> Value {
        let known = self.tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner));
        match known {
            Some(place) => self.inputs[place],
            None => {
                let value = self.graph.input(tensor.dtype(), tensor.shape());
                self.tensors.push(tensor.clone());
                self.inputs.push(value);
                value
            }
        }
    }

    fn source(&mut self, source: &Source) -> Lowered<Item> {
        if let Source::Deferred(deferred) = source
            && deferred.live_result().is_none()
        {
            if let Some(known) = self.operations.get(&Arc::as_ptr(deferred)) {
                return Ok(known.clone());
            }
            self.depth += 1;
            if self.depth > DEEPEST {
                self.missing = Some(deferred.clone());
                return Err(Refused::Operation);
            }
            let item = deferred.graph(self).inspect_err(|refused| {
                if let (Refused::Operation, None) = (refused, &self.missing) {
                    self.missing = Some(deferred.clone());
                }
            })?;
            self.depth -= 1;
            // A reduction keeps its axes or drops them.
            let item = item.each(&mut |value| match product(self.graph.shape(value)) == product(&deferred.shape) {
                true => self.graph.reshape(value, &deferred.shape),
                false => self.graph.broadcast(value, &[], &deferred.shape),
            });
            self.operations.insert(Arc::as_ptr(deferred), item.clone());
            return Ok(item);
        }
        let tensor = match source {
            Source::Deferred(deferred) => deferred.live_result(),
            other => other.tensor(),
        };
        let tensor = tensor.ok_or_else(missing)?;
        let value = self.argument(&tensor);
        Ok(self.loaded(value))
    }

    fn read(&mut self, view: &View, shape: &[usize], dtype: DType) -> Lowered<Item> {
        if matches!(view.source, Source::Indices) {
            let places = view::places(&mut self.graph, view.offset, &view.strides, shape);
            return Ok(Item::One(self.graph.convert(places, dtype.computed())));
        }
        let source = self.source(&view.source)?;
        Ok(source.each(&mut |value| view::viewed(&mut self.graph, value, view.offset, &view.strides, shape)))
    }

    fn gather(&mut self, view: &View, typed: &Typed, (stride, length): (usize, usize), index: Value) -> Lowered<Item> {
        let shape = &typed.shape;
        let graph = &mut self.graph;
        // Negative ones count from the end; what is out of range then is the nearest.
        let index = match graph.dtype(index) {
            DType::I32 => {
                let [zero, length, last] = [0, length as i64, length as i64 - 1].map(|n| graph.integer(n, DType::I32));
                let negative = graph.compare(Compare::Lt, index, zero);
                let turned = graph.binary(Binary::Add, index, length);
                let index = graph.select(negative, turned, index);
                let index = graph.binary(Binary::Maximum, index, zero);
                let index = graph.binary(Binary::Minimum, index, last);
                graph.convert(index, DType::U32)
            }
            DType::U32 => {
                let last = graph.integer(length as i64 - 1, DType::U32);
                graph.binary(Binary::Minimum, index, last)
            }
            other => return Err(Refused::Because(format!("an index of {other}"))),
        };
        let base = view::places(graph, view.offset, &view.strides, shape);
        let step = graph.integer(stride as i64, DType::U32);
        let step = graph.binary(Binary::Multiply, index, step);
        let places = graph.binary(Binary::Add, base, step);
        if matches!(view.source, Source::Indices) {
            return Ok(Item::One(self.graph.convert(places, typed.dtype.computed())));
        }
        let source = self.source(&view.source)?;
        Ok(source.each(&mut |value| {
            let flat = view::flat(&mut self.graph, value);
            self.graph.take(flat, places)
        }))
    }
}

fn arguments<const N: usize>(items: Vec<Item>) -> Lowered<[Item; N]> {
    items.try_into().map_err(|_| missing())
}

fn missing() -> Refused {
    Refused::Because("what is missing (this is a fault of the library)".to_owned())
}

/// The WGSL of a function over `x` and `y`.
trait FunctionOf {
    fn function_of(&self, dtype: DType) -> Lowered<String>;
}

macro_rules! function_of {
    ($($arity:ident),*) => {$(
        impl FunctionOf for elementwise::$arity {
            fn function_of(&self, dtype: DType) -> Lowered<String> {
                self.function().wgsl(dtype, ["x", "y"]).map_err(|error| Refused::Because(error.to_string()))
            }
        }
    )*};
}
function_of!(Unary, Binary);
