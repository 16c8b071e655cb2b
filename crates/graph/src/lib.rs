//! Operation graphs, for devices that run operations and no kernels: typed, immutable and flat. No device is known here.
//!
//! # What comes in
//! An expression as plain data (`cantus_device::expression`), as the engine describes it (`ops/expr/described.rs`): nodes that name earlier ones, with
//! functions of elements as WGSL text. `Graph::of` lowers it.
//!
//! # Stages
//! 1. **Check** (`lower/check`). Shapes of operands and results fit, and views stay within what they read.
//! 2. **Lower** (`lower`), node by node. A function of elements is inlined from its WGSL (`lower/function`), so no function is written twice and integers
//!    keep WGSL's rules. A strided view becomes slices, reshapes, transposes and repetitions, or a gather if none fits (`lower/view`). Reductions, products
//!    and convolutions are nodes (`lower/operations`).
//! 3. **Build** (`build`). What is there already is not added twice, and what is made of constants alone is computed at once.
//! 4. **Prune.** Only what the result needs remains.
//! 5. **Write** (`stablehlo`) as StableHLO text for PJRT, or hand over as nodes (Ascend). `parse` reads that text and no other, and `simulate` computes a
//!    graph on the processor: tests compare devices with it.
//!
//! # What holds
//! - Every node comes after the nodes that it reads.
//! - What a target would leave open is explicit: the divisor of an integer division is never 0, a shift is less than the width, a float becomes an integer
//!   only within its range. Indices of a gather are clamped before it.
//! - Products and convolutions are of float32 in its full precision.
//!
//! # What is surprising
//! - A complex number is two values (`Item::Many`) and becomes one only where it is stored.
//! - Types narrower than a word are computed in i32, u32 or f32, as kernels do (`DType::computed`), and converted where they are stored.
//! - An expression that cannot be lowered is `Error::Unsupported`, and the engine takes the next device.
//!
//! # An example
//! `x.T * 2` with `x` of float32 and shape `[3, 4]`. The view has strides (1, 4); `lower/view` finds that it moves along both axes of `x` and emits a
//! transpose. The function of elements, a product as WGSL text, is inlined as a multiplication, for which the constant is broadcast. The graph has an
//! argument, a transpose, a constant, a broadcast, and a product, which is the output.

mod build;
mod lower;
mod parse;
mod simulate;
mod stablehlo;

use cantus_base::listed::Listed;
use cantus_base::{error, tensor};
use cantus_device as backend;

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "pjrt")]
#[doc(hidden)]
pub use parse::reused_input;
pub use simulate::Precision;

use crate::tensor::DType;

/// A value of a graph: the result of one of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

impl Value {
    /// Returns the place of its node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// -x; integers wrap.
    Negate,
    /// The magnitude; of the least integer itself.
    Abs,
    /// Down to a whole number.
    Floor,
    /// Up to a whole number.
    Ceil,
    /// Rounds to the nearest whole number, and a tie to the even one.
    RoundEven,
    /// The square root.
    Sqrt,
    /// 1 / √x
    Rsqrt,
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// The sine of radians.
    Sine,
    /// The cosine of radians.
    Cosine,
    /// The hyperbolic tangent.
    Tanh,
    /// Each bit turned over; of bool the opposite.
    Not,
    /// The number of bits that are 1.
    Popcnt,
    /// The number of leading bits that are 0.
    LeadingZeros,
    /// The real part of a complex number.
    Real,
    /// The imaginary part of a complex number.
    Imag,
}

/// A function of two elements of one dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// x + y; integers wrap.
    Add,
    /// x - y; integers wrap.
    Subtract,
    /// x y; integers wrap.
    Multiply,
    /// x / y; of integers towards 0, y being neither 0 nor, with the least integer, -1.
    Divide,
    /// The remainder of that division.
    Remainder,
    /// The lesser; of floats neither is NaN.
    Minimum,
    /// The greater; of floats neither is NaN.
    Maximum,
    /// x^y
    Power,
    /// The angle of the point (y, x).
    Atan2,
    /// The bits that both have.
    And,
    /// The bits that one of them has.
    Or,
    /// The bits that just one of them has.
    Xor,
    /// x 2^y, y being less than the width.
    ShiftLeft,
    /// x / 2^y rounded down, y being less than the width; by the sign of the dtype.
    ShiftRight,
    /// The complex number x + y i.
    Complex,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compare {
    /// =
    Eq,
    /// ≠; true for NaN.
    Ne,
    /// <
    Lt,
    /// ≤
    Le,
    /// >
    Gt,
    /// ≥
    Ge,
}

/// The combination of elements in a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fold {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The greatest; NaN where there is one.
    Max,
    /// The least; NaN where there is one.
    Min,
}

/// A correlation of images NCHW with weights OIHW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Steps of the window.
    pub stride: [usize; 2],
    /// Zeros around the images.
    pub padding: [usize; 2],
    /// Steps within the window.
    pub dilation: [usize; 2],
    /// Groups of channels that do not mix.
    pub groups: usize,
}

/// The operation of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// The argument of that number.
    Input(usize),
    /// A number, by its bits (of bool 0 or 1). Its shape is [].
    Constant(u64),
    /// An element's place along an axis.
    Iota(usize),
    /// A function of one element.
    Unary(Unary),
    /// A function of two elements; the shapes are equal.
    Binary(Binary),
    /// A comparison of two elements; the result is bool.
    Compare(Compare),
    /// condition, a, b: a where the condition is true.
    Select,
    /// The number in another dtype. Integers wrap, floats round to nearest even; a float that becomes an integer is within its range.
    Convert,
    /// The bits as another dtype of the same width.
    Bitcast,
    /// Repeated along new axes: axis i of the operand is axis `axes[i]` of the result.
    Broadcast(Vec<usize>),
    /// The elements in another shape.
    Reshape,
    /// Axis i of the result is axis `axes[i]` of the operand.
    Transpose(Vec<usize>),
    /// Every `step`-th element from `start` up to `limit` along each axis.
    Slice {
        /// The first element.
        start: Vec<usize>,
        /// The one behind the last.
        limit: Vec<usize>,
        /// Distance from one element to the next.
        step: Vec<usize>,
    },
    /// Zeros before and behind, along each axis.
    Pad {
        /// Zeros before.
        low: Vec<usize>,
        /// Zeros after.
        high: Vec<usize>,
    },
    /// flat operand, places (u32): the elements at these places. All are within the operand.
    Take,
    /// One number of all elements along some axes, which the result lacks.
    Reduce(Fold, Vec<usize>),
    /// a [batch.., m, k] and b [batch.., k, n], float32: [batch.., m, n], with that many axes of batches.
    Dot(usize),
    /// images, weights.
    Convolution(Convolution),
}

/// One step of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The operands.
    pub operands: Vec<Value>,
    /// The dtype of the result.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Vec<usize>,
}

impl Node {
    /// Returns the number of elements of the result.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A graph of operations from arguments to results. Every node comes after the nodes that it reads.
///
/// ```
/// use cantus::graph::{Binary, Graph};
/// use cantus::DType;
/// let mut graph = Graph::new("saxpy");
/// let x = graph.input(DType::F32, &[4]);
/// let y = graph.input(DType::F32, &[4]);
/// let a = graph.float(2.0, DType::F32);
/// let scaled = graph.binary(Binary::Multiply, a, x); // numbers are repeated as needed
/// let sum = graph.binary(Binary::Add, scaled, y);
/// graph.output(sum);
/// assert!(graph.stablehlo().contains("stablehlo.add"));
/// let bytes = |values: [f32; 4]| bytemuck::cast_slice(&values).to_vec();
/// let results = graph.simulate(&[bytes([1.0; 4]), bytes([0.5; 4])], Default::default())?;
/// assert_eq!(results, [bytes([2.5; 4])]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph {
    name: String,
    nodes: Vec<Node>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    known: HashMap<Node, Value>,
}

/// Compares the computations; names of values do not count.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.inputs == other.inputs && self.outputs == other.outputs
    }
}

impl Eq for Graph {}

impl std::hash::Hash for Graph {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.nodes, &self.outputs).hash(state);
    }
}

impl Graph {
    /// Creates an empty graph.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Returns the graph with another name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns all nodes, each after those that it reads.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node of a value.
    ///
    /// # Panics
    /// For a value of another graph.
    #[must_use]
    pub fn node(&self, value: Value) -> &Node {
        &self.nodes[value.index()]
    }

    /// Returns the arguments.
    #[must_use]
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// Returns the results.
    #[must_use]
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// Returns the graph with only the nodes that its results need, in their order of creation.
    #[must_use]
    pub fn pruned(&self) -> Self {
        let mut needed = vec![false; self.nodes.len()];
        for value in self.outputs.iter().chain(&self.inputs) {
            needed[value.index()] = true;
        }
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if needed[place] {
                node.operands.iter().for_each(|value| needed[value.index()] = true);
            }
        }
        let mut places = vec![Value(0); self.nodes.len()];
        let mut result = Self::new(&self.name);
        for (place, node) in self.nodes.iter().enumerate().filter(|(place, _)| needed[*place]) {
            let mut node = node.clone();
            node.operands.iter_mut().for_each(|value| *value = places[value.index()]);
            places[place] = Value(u32::try_from(result.nodes.len()).unwrap_or(u32::MAX));
            result.known.insert(node.clone(), places[place]);
            result.nodes.push(node);
        }
        result.inputs = self.inputs.iter().map(|value| places[value.index()]).listed();
        result.outputs = self.outputs.iter().map(|value| places[value.index()]).listed();
        result
    }

    /// Returns the graph in an `Arc`.
    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}
