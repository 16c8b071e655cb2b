//! Expressions as operation graphs: the one place where they are lowered for devices that take operations and no kernels. `Graph::of` is the entry. A
//! node's value is an `Item`: one value, or several for complex numbers and structures. Numbers stay single until they meet a shape. Every node's sizes are
//! checked first (`check`), because an expression may come from outside.

mod check;
mod function;
mod operations;
mod view;

use crate::backend::expression::{Expression, Node, Part};
use crate::error::{Error, Result};
use crate::tensor::{DType, Kind};
use crate::{Binary, Compare, Graph, Unary, Value};
use cantus_base::listed::Listed;
use check::count;
use function::Item;

/// Why an expression is no graph.
#[derive(Debug, Clone)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a graph has no form of {}", self.0)
    }
}

type Lowered<T> = std::result::Result<T, Refused>;

fn refused<T>(what: impl Into<String>) -> Lowered<T> {
    Err(Refused(what.into()))
}

impl Graph {
    /// Returns an expression as a graph of that name, with the same arguments and one result, in its own shape and dtype.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for functions of elements and kernels that graphs cannot express.
    pub fn of(name: &str, expression: &Expression) -> Result<Self> {
        let lowering = Lowering { graph: Self::new(name), nodes: &expression.nodes, items: Vec::new() };
        lowering.lowered().map_err(|refused| Error::Unsupported {
            kernel: name.to_owned(),
            device: "operation graphs".to_owned(),
            construct: refused.to_string(),
            report: String::new(),
        })
    }
}

/// A graph being made of an expression, and the values of the nodes so far.
struct Lowering<'a> {
    graph: Graph,
    nodes: &'a [Node],
    items: Vec<Item>,
}

impl<'a> Lowering<'a> {
    fn lowered(mut self) -> Lowered<Graph> {
        for node in self.nodes {
            let item = self.node(node)?;
            self.items.push(item);
        }
        let Some((last, node)) = self.nodes.len().checked_sub(1).zip(self.nodes.last()) else {
            return refused("nothing");
        };
        let item = self.whole(last)?;
        let value = self.stored(&item, node.dtype)?;
        self.graph.output(value);
        Ok(self.graph.pruned())
    }

    fn node(&mut self, node: &'a Node) -> Lowered<Item> {
        self.check(node)?;
        Ok(match &node.part {
            Part::Argument(number) if *number == self.graph.inputs().len() => {
                let value = self.graph.input(node.dtype, &node.shape);
                self.loaded(value)
            }
            Part::Argument(_) => return refused("arguments in another order"),
            Part::Constant(bits) => self.constant(f64::from_bits(*bits), node.dtype),
            Part::View { offset, strides } => match self.source(node, 0)? {
                Some(source) => {
                    source.each(&mut |value| view::viewed(&mut self.graph, value, *offset, strides, &node.shape))
                }
                None => {
                    let places = view::places(&mut self.graph, *offset, strides, &node.shape);
                    Item::One(self.graph.convert(places, node.dtype.computed()))
                }
            },
            Part::Gather { offset, strides, step, length } => {
                self.gather(node, (*offset, strides), [*step, *length])?
            }
            Part::Function(text) => {
                let arguments = (0..node.operands.len()).map(|place| self.element(node, place)).try_listed()?;
                let item = function::called(&mut self.graph, text, "element", arguments)?;
                self.wrapped(&item, node.dtype)
            }
            Part::Select => {
                let condition = self.element(node, 0)?.one()?;
                let condition = self.truth(condition);
                let (a, b) = (self.element(node, 1)?, self.element(node, 2)?);
                a.with(&b, &mut |a, b| Ok(self.graph.select(condition, a, b)))?
            }
            Part::Cast => {
                let (x, from) = (self.element(node, 0)?, self.operand(node, 0)?.1.dtype);
                self.cast(&x, from, node.dtype)?
            }
            Part::Kernel { text, uniforms } => {
                let &[rows, columns] = node.shape.as_slice() else { return refused("a kernel of such a grid") };
                let member = |path: &str| uniforms.iter().find(|(name, _)| *name == path);
                let member = |path: &str, _: DType| member(path).map(|(_, bits)| f64::from_bits(*bits));
                function::mapped(&mut self.graph, text, [rows, columns], &member)?
            }
            _ => self.operation(node)?,
        })
    }

    fn operand(&self, node: &Node, place: usize) -> Lowered<(usize, &'a Node)> {
        let found = node.operands.get(place).and_then(|&operand| Some((operand, self.nodes.get(operand)?)));
        found.map_or_else(|| refused("an operand that is missing"), Ok)
    }

    /// The operand of an element-wise node, repeated to its shape; numbers stay numbers.
    fn element(&mut self, node: &Node, place: usize) -> Lowered<Item> {
        let (operand, _) = self.operand(node, place)?;
        let Some(item) = self.items.get(operand).cloned() else { return refused("an operand that comes later") };
        self.aligned(&item, &node.shape, false)
    }

    /// The value of a node in its whole shape.
    fn whole(&mut self, place: usize) -> Lowered<Item> {
        match (self.items.get(place).cloned(), self.nodes.get(place)) {
            (Some(item), Some(node)) => self.aligned(&item, &node.shape, true),
            _ => refused("an operand that comes later"),
        }
    }

    /// The operand in its whole shape, if there is one.
    fn source(&mut self, node: &Node, place: usize) -> Lowered<Option<Item>> {
        node.operands.get(place).map(|&operand| self.whole(operand)).transpose()
    }

    /// One value of an operand in its whole shape: for operands that are not complex.
    fn single(&mut self, node: &Node, place: usize) -> Lowered<Value> {
        let (operand, _) = self.operand(node, place)?;
        self.whole(operand)?.one()
    }

    /// Repeats an item of another shape to this one, aligned at the last axis; also single numbers if `all`.
    fn aligned(&mut self, item: &Item, shape: &[usize], all: bool) -> Lowered<Item> {
        item.with(item, &mut |value, _| {
            let from = self.graph.shape(value).to_vec();
            if from == shape || (from.is_empty() && !all) {
                return Ok(value);
            }
            let Some(offset) = shape.len().checked_sub(from.len()) else {
                return refused("an operand of more axes than its result");
            };
            // An axis of length 1 is repeated.
            let kept: Vec<usize> = (0..from.len()).filter(|&axis| from[axis] == shape[axis + offset]).listed();
            if count(&from) != kept.iter().try_fold(1, |count: usize, &axis| count.checked_mul(from[axis])) {
                return refused("operands of such sizes");
            }
            let lengths: Vec<usize> = kept.iter().map(|&axis| from[axis]).listed();
            let axes: Vec<usize> = kept.iter().map(|axis| axis + offset).listed();
            let narrow = self.graph.reshape(value, &lengths);
            Ok(self.graph.broadcast(narrow, &axes, shape))
        })
    }

    /// Converts a value to the dtype that a tensor holds.
    fn stored(&mut self, item: &Item, dtype: DType) -> Lowered<Value> {
        Ok(match (item, dtype) {
            (Item::Many(parts), DType::Complex64 | DType::Complex128) => {
                let [re, im] = parts.as_slice() else { return refused("such a number") };
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

    fn truth(&mut self, value: Value) -> Value {
        let zero = self.graph.constant(0, self.graph.dtype(value));
        self.graph.compare(Compare::Ne, value, zero)
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
                let part = part(dtype);
                Item::Many([value, 0.0].map(|number| Item::One(self.graph.float(number, part))).to_vec())
            }
            // Integers are exact in float64, except those of 64 bits beyond 2^53, which saturate as casts do.
            _ => Item::One(self.graph.float(value, dtype.computed())),
        }
    }

    /// Floats become integers by a function: WGSL says what becomes of those out of range.
    fn cast(&mut self, x: &Item, from: DType, to: DType) -> Lowered<Item> {
        use Kind::{Bool, Complex, Float, Signed, Unsigned};
        if from == to {
            return Ok(x.clone());
        }
        Ok(match (from.kind(), to.kind()) {
            (Complex, Complex) => x.each(&mut |value| self.graph.convert(value, part(to))),
            (Complex | Float, Signed | Unsigned) | (Complex, Bool) => return refused(format!("{from} as {to}")),
            (Complex, _) => {
                let Item::Many(parts) = x else { return refused("such a number") };
                let [real, _] = parts.as_slice() else { return refused("such a number") };
                self.cast(real, part(from), to)?
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
            // A float is rounded to what is narrower, an integer wraps.
            _ => x.each(&mut |value| {
                let narrow = self.graph.convert(value, to);
                self.graph.convert(narrow, to.computed())
            }),
        })
    }

    fn gather(
        &mut self,
        node: &Node,
        (offset, strides): (usize, &[usize]),
        [stride, length]: [usize; 2],
    ) -> Lowered<Item> {
        let (index, source) = (self.element(node, 0)?.one()?, self.source(node, 1)?);
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
            other => return refused(format!("an index of {other}")),
        };
        let base = view::places(graph, offset, strides, &node.shape);
        let step = graph.integer(stride as i64, DType::U32);
        let step = graph.binary(Binary::Multiply, index, step);
        let places = graph.binary(Binary::Add, base, step);
        Ok(match source {
            Some(source) => source.each(&mut |value| {
                let flat = view::flat(&mut self.graph, value);
                self.graph.take(flat, places)
            }),
            None => Item::One(self.graph.convert(places, node.dtype.computed())),
        })
    }
}

/// The dtype of a complex number's parts.
fn part(dtype: DType) -> DType {
    if dtype == DType::Complex64 { DType::F32 } else { DType::F64 }
}
