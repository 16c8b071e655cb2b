//! Graphs by the calls of aclnn. Each operator is called twice: for its workspace and its executor, then to run.

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use super::abi::{self, Fault};
use super::adapt::adapted;
use super::library::{Library, Operator, Pointer};
use super::memory::{Event, Memory, Pinned, Stream};
use super::objects::Object;
use crate::backend::values::{Fetched, Ran, Target};
use crate::graph::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary, Value};
use crate::tensor::DType;

/// An open device.
pub(super) struct Ascend {
    stream: Arc<Stream>,
    /// The workspace of the operators, which run one after another. Whoever starts work holds it.
    workspace: Mutex<Option<Memory>>,
}

impl Ascend {
    pub(super) fn new(stream: Arc<Stream>) -> Self {
        Self { stream, workspace: Mutex::default() }
    }

    fn library(&self) -> &Library {
        &self.stream.context.library
    }
}

impl Target for Ascend {
    type Fault = Fault;
    type Value = Arc<Memory>;
    type Event = Event;
    type Program = Graph;
    type Landing = Pinned;

    const TITLE: &'static str = "an Ascend device";

    /// Asks every operator for its workspace, over no memory: what it refuses is known before anything runs.
    fn compile(&self, graph: &Arc<Graph>) -> Result<Graph, Fault> {
        let graph = adapted(graph)?;
        self.stream.context.enter()?;
        let inputs = vec![None; graph.inputs().len()];
        Pass { ascend: self, graph: &graph, workspace: None }.run(&inputs)?;
        Ok(graph)
    }

    fn run(&self, graph: &Graph, inputs: &[Arc<Memory>]) -> Ran<Self> {
        self.stream.context.enter()?;
        let inputs: Vec<Slot> = inputs.iter().cloned().map(Some).collect();
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let result = Pass { ascend: self, graph, workspace: Some(&mut workspace) }.run(&inputs);
        drop(workspace);
        let result = result?.ok_or_else(|| Fault::refused("a graph without a result"))?;
        Ok((result, Some(self.stream.record()?)))
    }

    fn upload(&self, bytes: &[u8], _dtype: DType, _shape: &[usize]) -> Result<Arc<Memory>, Fault> {
        self.stream.context.enter()?;
        let memory = self.stream.memory(bytes.len())?;
        if bytes.is_empty() {
            return Ok(Arc::new(memory));
        }
        let mut staging = self.stream.pinned(bytes.len())?;
        staging.fill(bytes);
        let (library, stream) = (self.library(), self.stream.stream);
        // SAFETY: both hold that many bytes until the stream has passed.
        let code = unsafe {
            (library.copy_async)(memory.address, memory.bytes, staging.address, bytes.len(), abi::TO_DEVICE, stream)
        };
        library.check("aclrtMemcpyAsync", code)?;
        self.stream.record()?;
        Ok(Arc::new(memory))
    }

    fn fetch(&self, value: &Arc<Memory>, dtype: DType, shape: &[usize]) -> Fetched<Self> {
        self.stream.context.enter()?;
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        let landing = self.stream.pinned(bytes)?;
        if bytes > 0 {
            let (library, stream) = (self.library(), self.stream.stream);
            // SAFETY: as in `upload`.
            let code =
                unsafe { (library.copy_async)(landing.address, bytes, value.address, bytes, abi::TO_HOST, stream) };
            library.check("aclrtMemcpyAsync", code)?;
        }
        let event = self.stream.record()?;
        Ok((landing, event))
    }

    fn kept(&self) -> u64 {
        self.stream.kept()
    }

    fn trim(&self) -> Result<(), Fault> {
        *self.workspace.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.stream.trim()
    }
}

/// Where a value is; nowhere while a graph is only tried.
type Slot = Option<Arc<Memory>>;

/// One pass over a graph: to run it, or to try it where there is no workspace.
struct Pass<'a> {
    ascend: &'a Ascend,
    graph: &'a Graph,
    workspace: Option<&'a mut Option<Memory>>,
}

/// Calls an operator's first function with arguments of those types, then its second.
macro_rules! call {
    ($pass:ident, $operator:expr $(, $value:expr => $type:ty)*) => {{
        let operator = $operator;
        let library = $pass.ascend.library();
        let (first, second) = library.operator(operator)?;
        let (mut bytes, mut executor) = (0_u64, null_mut());
        // SAFETY: the function's type is the header's; objects live during the call.
        let code = unsafe {
            let first = std::mem::transmute::<
                Pointer,
                unsafe extern "C" fn($($type,)* *mut u64, *mut Pointer) -> i32,
            >(first);
            first($($value,)* &raw mut bytes, &raw mut executor)
        };
        library.check(&format!("aclnn{operator:?}GetWorkspaceSize"), code)?;
        $pass.second(operator, second, bytes, executor)
    }};
}

impl Pass<'_> {
    fn run(&mut self, inputs: &[Slot]) -> Result<Slot, Fault> {
        let graph = self.graph;
        let mut last = vec![0; graph.nodes().len()];
        for (place, node) in graph.nodes().iter().enumerate() {
            // A number that is repeated is filled in where it is needed.
            let read = node.operands.iter().filter(|value| !self.is_filled(node, **value));
            read.for_each(|value| last[value.index()] = place);
        }
        graph.outputs().iter().for_each(|value| last[value.index()] = usize::MAX);
        let mut values: Vec<Slot> = vec![None; graph.nodes().len()];
        for (place, node) in graph.nodes().iter().enumerate() {
            let operand = |at: usize| node.operands.get(at).and_then(|value| values.get(value.index())?.clone());
            values[place] = match &node.op {
                Op::Input(number) => inputs.get(*number).cloned().flatten(),
                // The same bytes under another type.
                Op::Reshape | Op::Bitcast => operand(0),
                _ if last[place] == 0 => None,
                _ => self.step(node, &[operand(0), operand(1), operand(2)])?,
            };
            // The stream runs in order: what nothing reads any more serves the next node.
            for value in &node.operands {
                if last[value.index()] == place {
                    values[value.index()] = None;
                }
            }
        }
        Ok(graph.outputs().first().and_then(|value| values.get(value.index())?.clone()))
    }

    fn is_filled(&self, node: &Node, operand: Value) -> bool {
        matches!(node.op, Op::Broadcast(_)) && self.graph.number(operand).is_some()
    }

    fn second(&mut self, operator: Operator, second: Pointer, bytes: u64, executor: Pointer) -> Result<(), Fault> {
        let (library, stream) = (self.ascend.library(), &self.ascend.stream);
        let give_back = || {
            // SAFETY: an executor that did not run is ours once it is repeatable.
            unsafe {
                if (library.set_repeatable)(executor) == 0 {
                    (library.destroy_executor)(executor);
                }
            }
        };
        let Some(workspace) = &mut self.workspace else {
            give_back();
            return Ok(());
        };
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if size > 0 && workspace.as_ref().is_none_or(|memory| memory.bytes < size) {
            **workspace = None;
            **workspace = Some(stream.memory(size).inspect_err(|_| give_back())?);
        }
        let memory = workspace.as_ref().filter(|_| size > 0).map_or(null_mut(), |memory| memory.address);
        type Second = unsafe extern "C" fn(Pointer, u64, Pointer, Pointer) -> i32;
        // SAFETY: every second function has this type; workspace and tensors' memory are kept in the stream's order.
        let code = unsafe {
            let second = std::mem::transmute::<Pointer, Second>(second);
            second(memory, bytes, executor, stream.stream)
        };
        library.check(&format!("aclnn{operator:?}"), code)
    }

    fn room(&self, node: &Node) -> Result<Slot, Fault> {
        match self.workspace {
            Some(_) => Ok(Some(Arc::new(self.ascend.stream.memory(node.count() * node.dtype.bytes())?))),
            None => Ok(None),
        }
    }

    fn step(&mut self, node: &Node, slots: &[Slot; 3]) -> Result<Slot, Fault> {
        let stream = self.ascend.stream.clone();
        let library = &*stream.context.library;
        let result = self.room(node)?;
        let address = |slot: &Slot| slot.as_ref().map_or(null_mut(), |memory| memory.address);
        let tensor = |slot: &Slot, dtype, shape: &[usize]| {
            Object::tensor(library, dtype, shape, abi::FORMAT_PLAIN, address(slot))
        };
        let graph = self.graph;
        let node_of = |at: usize| node.operands.get(at).map(|value| graph.node(*value)).ok_or_else(missing);
        let operand = |at: usize| {
            let of = node_of(at)?;
            tensor(&slots[at], of.dtype, &of.shape)
        };
        let out = tensor(&result, node.dtype, &node.shape)?;
        match &node.op {
            Op::Input(_) | Op::Reshape | Op::Bitcast => return Err(missing()),
            Op::Constant(bits) => {
                let number = Object::scalar(library, *bits, node.dtype)?;
                call!(self, Operator::InplaceFillScalar, out.object => Pointer, number.object => Pointer)?;
            }
            Op::Iota(_) => {
                let (start, step) = (Object::integer(library, 0)?, Object::integer(library, 1)?);
                let end = Object::integer(library, node.count())?;
                call!(self, Operator::Arange, start.object => Pointer, end.object => Pointer, step.object => Pointer,
                    out.object => Pointer)?;
            }
            Op::Unary(op) => {
                let x = operand(0)?;
                call!(self, unary(*op, node.dtype)?, x.object => Pointer, out.object => Pointer)?;
            }
            Op::Binary(op) => {
                let (x, y) = (operand(0)?, operand(1)?);
                let whole = matches!(node.dtype, DType::I8 | DType::U8 | DType::I16 | DType::I32 | DType::I64);
                match op {
                    Binary::Add | Binary::Subtract => {
                        let operator = if *op == Binary::Add { Operator::Add } else { Operator::Sub };
                        let one = Object::integer(library, 1)?;
                        call!(self, operator, x.object => Pointer, y.object => Pointer, one.object => Pointer,
                            out.object => Pointer)?;
                    }
                    Binary::Divide if whole => call!(self, Operator::DivMod, x.object => Pointer,
                        y.object => Pointer, abi::TRUNCATE => i32, out.object => Pointer)?,
                    _ => call!(self, binary(*op, node.dtype)?, x.object => Pointer, y.object => Pointer,
                        out.object => Pointer)?,
                }
            }
            Op::Compare(op) => {
                let (x, y) = (operand(0)?, operand(1)?);
                call!(self, compare(*op), x.object => Pointer, y.object => Pointer, out.object => Pointer)?;
            }
            Op::Select => {
                let (condition, a, b) = (operand(0)?, operand(1)?, operand(2)?);
                call!(self, Operator::SWhere, condition.object => Pointer, a.object => Pointer, b.object => Pointer,
                    out.object => Pointer)?;
            }
            Op::Convert => {
                let x = operand(0)?;
                call!(self, Operator::Cast, x.object => Pointer, abi::kind(node.dtype) => i32,
                    out.object => Pointer)?;
            }
            Op::Broadcast(axes) => {
                let of = node_of(0)?;
                if let Op::Constant(bits) = of.op {
                    let number = Object::scalar(library, bits, node.dtype)?;
                    call!(self, Operator::InplaceFillScalar, out.object => Pointer, number.object => Pointer)?;
                } else {
                    let mut sides = vec![1; node.shape.len()];
                    for (axis, side) in axes.iter().zip(&of.shape) {
                        *sides.get_mut(*axis).ok_or_else(missing)? = *side;
                    }
                    let (x, shape) = (tensor(&slots[0], of.dtype, &sides)?, Object::list(library, &node.shape)?);
                    call!(self, Operator::Expand, x.object => Pointer, shape.object => Pointer,
                        out.object => Pointer)?;
                }
            }
            Op::Transpose(axes) => {
                let (x, axes) = (operand(0)?, Object::list(library, axes)?);
                call!(self, Operator::Permute, x.object => Pointer, axes.object => Pointer, out.object => Pointer)?;
            }
            Op::Slice { start, limit, step } => {
                let axes: Vec<usize> = (0..start.len()).collect();
                let lists = [start, limit, &axes, step].map(|list| Object::list(library, list));
                let [start, limit, axes, step] = lists;
                let (start, limit, axes, step, x) = (start?, limit?, axes?, step?, operand(0)?);
                call!(self, Operator::SliceV2, x.object => Pointer, start.object => Pointer, limit.object => Pointer,
                    axes.object => Pointer, step.object => Pointer, out.object => Pointer)?;
            }
            Op::Pad { low, high } => {
                // The last axis first.
                let around: Vec<usize> = low.iter().zip(high).rev().flat_map(|(low, high)| [*low, *high]).collect();
                let (x, around) = (operand(0)?, Object::list(library, &around)?);
                let zero = Object::scalar(library, 0, node.dtype)?;
                call!(self, Operator::ConstantPadNd, x.object => Pointer, around.object => Pointer,
                    zero.object => Pointer, out.object => Pointer)?;
            }
            Op::Take => {
                let places = tensor(&slots[1], DType::I32, &[node.count()])?;
                let (x, flat) = (operand(0)?, tensor(&result, node.dtype, &[node.count()])?);
                call!(self, Operator::IndexSelect, x.object => Pointer, 0 => i64, places.object => Pointer,
                    flat.object => Pointer)?;
            }
            Op::Reduce(fold, axes) => {
                let (x, dtype) = (operand(0)?, abi::kind(node.dtype));
                let list = Object::list(library, axes)?;
                match fold {
                    Fold::Sum => call!(self, Operator::ReduceSum, x.object => Pointer, list.object => Pointer,
                        false => bool, dtype => i32, out.object => Pointer)?,
                    Fold::Prod => {
                        let axis = axes.first().copied().unwrap_or(0) as i64;
                        call!(self, Operator::ProdDim, x.object => Pointer, axis => i64, false => bool, dtype => i32,
                            out.object => Pointer)?;
                    }
                    _ => {
                        let operator = if *fold == Fold::Max { Operator::Amax } else { Operator::Amin };
                        call!(self, operator, x.object => Pointer, list.object => Pointer, false => bool,
                            out.object => Pointer)?;
                    }
                }
            }
            Op::Dot(batches) => {
                let flat = |shape: &[usize]| {
                    let (outer, inner) = shape.split_at(shape.len().min(*batches));
                    let outer = (*batches > 0).then(|| outer.iter().product());
                    outer.into_iter().chain(inner.iter().copied()).collect::<Vec<usize>>()
                };
                let side = |at: usize| tensor(&slots[at], DType::F32, &flat(&node_of(at)?.shape));
                let (a, b) = (side(0)?, side(1)?);
                let out = tensor(&result, DType::F32, &flat(&node.shape))?;
                let operator = if *batches == 0 { Operator::Matmul } else { Operator::BatchMatMul };
                call!(self, operator, a.object => Pointer, b.object => Pointer, out.object => Pointer,
                    abi::KEEP_DTYPE => i8)?;
            }
            Op::Convolution(window) => {
                let Convolution { stride, padding, dilation, groups } = window;
                let images = |slot: &Slot, of: &Node| {
                    Object::tensor(library, of.dtype, &of.shape, abi::FORMAT_NCHW, address(slot))
                };
                let (x, w) = (images(&slots[0], node_of(0)?)?, images(&slots[1], node_of(1)?)?);
                let out = images(&result, node)?;
                let lists = [stride, padding, dilation, &[0, 0]].map(|list| Object::list(library, list));
                let [stride, padding, dilation, extra] = lists;
                let (stride, padding, dilation, extra) = (stride?, padding?, dilation?, extra?);
                call!(self, Operator::Convolution, x.object => Pointer, w.object => Pointer, null_mut() => Pointer,
                    stride.object => Pointer, padding.object => Pointer, dilation.object => Pointer, false => bool,
                    extra.object => Pointer, *groups as i64 => i64, out.object => Pointer, abi::KEEP_DTYPE => i8)?;
            }
        }
        Ok(result.clone())
    }
}

fn missing() -> Fault {
    Fault::refused("an operand is missing")
}

fn unary(op: Unary, dtype: DType) -> Result<Operator, Fault> {
    Ok(match op {
        Unary::Negate => Operator::Neg,
        Unary::Abs => Operator::Abs,
        Unary::Floor => Operator::Floor,
        Unary::Ceil => Operator::Ceil,
        Unary::RoundEven => Operator::Round,
        Unary::Sqrt => Operator::Sqrt,
        Unary::Rsqrt => Operator::Rsqrt,
        Unary::Exp => Operator::Exp,
        Unary::Log => Operator::Log,
        Unary::Sine => Operator::Sin,
        Unary::Cosine => Operator::Cos,
        Unary::Tanh => Operator::Tanh,
        Unary::Not if dtype == DType::Bool => Operator::LogicalNot,
        Unary::Not => Operator::BitwiseNot,
        Unary::Popcnt | Unary::LeadingZeros | Unary::Real | Unary::Imag => {
            return Err(Fault::refused(format!("aclnn has no operator for {op:?}")));
        }
    })
}

fn binary(op: Binary, dtype: DType) -> Result<Operator, Fault> {
    let logic = dtype == DType::Bool;
    Ok(match op {
        Binary::Multiply => Operator::Mul,
        Binary::Divide => Operator::Div,
        Binary::Remainder => Operator::FmodTensor,
        Binary::Minimum => Operator::Minimum,
        Binary::Maximum => Operator::Maximum,
        Binary::Power => Operator::PowTensorTensor,
        Binary::Atan2 => Operator::Atan2,
        Binary::And if logic => Operator::LogicalAnd,
        Binary::And => Operator::BitwiseAndTensor,
        Binary::Or if logic => Operator::LogicalOr,
        Binary::Or => Operator::BitwiseOrTensor,
        Binary::Xor => Operator::BitwiseXorTensor,
        Binary::Add | Binary::Subtract | Binary::ShiftLeft | Binary::ShiftRight | Binary::Complex => {
            return Err(Fault::refused(format!("aclnn has no operator for {op:?}")));
        }
    })
}

fn compare(op: Compare) -> Operator {
    match op {
        Compare::Eq => Operator::EqTensor,
        Compare::Ne => Operator::NeTensor,
        Compare::Lt => Operator::LtTensor,
        Compare::Le => Operator::LeTensor,
        Compare::Gt => Operator::GtTensor,
        Compare::Ge => Operator::GeTensor,
    }
}
