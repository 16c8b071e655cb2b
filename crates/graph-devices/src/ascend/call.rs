//! Calls of aclnn: a node's operator is asked for its workspace and its executor, then run. An executor that is kept runs again over other
//! memory.

use std::ptr::null_mut;

use super::abi::{self, Fault};
use super::library::{Library, Operator, Pointer};
use super::objects::Object;
use crate::graph::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Tensors that an operator reads, at most.
pub(super) const OPERANDS: usize = 3;

/// The result of an operator's first function.
struct Asked {
    operator: Operator,
    second: Pointer,
    workspace: usize,
    executor: Pointer,
}

/// An executor, by its owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Executor {
    /// The library's: it goes with its first run.
    Theirs(Pointer),
    /// Ours, to be run again.
    Kept(Pointer),
    Gone,
}

/// A node's call, with what its executor refers to.
pub(super) struct Call {
    operator: Operator,
    second: Pointer,
    pub(super) workspace: usize,
    executor: Executor,
    /// In the order of the operands.
    inputs: Vec<Object>,
    output: Object,
    /// The addresses of those, as far as the executor knows.
    bound: [Pointer; OPERANDS + 1],
    /// Numbers and lists.
    _others: Vec<Object>,
    set_repeatable: unsafe extern "C" fn(Pointer) -> i32,
    destroy: unsafe extern "C" fn(Pointer) -> i32,
}

// SAFETY: executors and tensors are used by one thread at a time, which has entered their context.
unsafe impl Send for Call {}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: nobody else has it. One that did not run is ours once it is repeatable. It goes before what it refers to.
        unsafe {
            match self.executor {
                Executor::Theirs(executor) if (self.set_repeatable)(executor) == 0 => _ = (self.destroy)(executor),
                Executor::Kept(executor) => _ = (self.destroy)(executor),
                Executor::Theirs(_) | Executor::Gone => {}
            }
        }
    }
}

impl Call {
    /// Takes the executor over, so that it runs again. aclnn refuses that for some operators; and where a tensor is read and written in
    /// place, its address would change for one of the two alone.
    pub(super) fn keep(&mut self, library: &Library) -> bool {
        let Executor::Theirs(executor) = self.executor else { return self.executor != Executor::Gone };
        // SAFETY: the executor has not run yet.
        if unsafe { (library.set_repeatable)(executor) } != 0 {
            return false;
        }
        self.executor = Executor::Kept(executor);
        library.addresses.is_some() && self.operator != Operator::InplaceFillScalar
    }

    /// Puts the work into a stream, with the workspace that it asked for. An executor that is not kept is gone behind this.
    pub(super) fn run(&mut self, library: &Library, workspace: Pointer, stream: Pointer) -> Result<(), Fault> {
        let executor = match self.executor {
            Executor::Kept(executor) => executor,
            Executor::Theirs(executor) => {
                self.executor = Executor::Gone;
                executor
            }
            Executor::Gone => return Err(Fault::refused("an executor runs once")),
        };
        type Second = unsafe extern "C" fn(Pointer, u64, Pointer, Pointer) -> i32;
        // SAFETY: every second function has this type; workspace and tensors' memory are kept in the stream's order.
        let code = unsafe {
            let second = std::mem::transmute::<Pointer, Second>(self.second);
            second(workspace, self.workspace as u64, executor, stream)
        };
        library.check(&format!("aclnn{:?}", self.operator), code)
    }

    /// Tells an executor that is kept where its tensors are now.
    pub(super) fn bind(&mut self, library: &Library, at: &[Pointer], result: Pointer) -> Result<(), Fault> {
        let (Executor::Kept(executor), Some(addresses)) = (self.executor, &library.addresses) else {
            return Err(Fault::refused("no executor is kept"));
        };
        let [bound @ .., last] = &mut self.bound;
        for (number, ((tensor, address), bound)) in self.inputs.iter().zip(at).zip(bound).enumerate() {
            if *bound != *address {
                // SAFETY: executor and tensor live; the number is that of the tensor among the operator's inputs.
                let code = unsafe { (addresses.input)(executor, number, tensor.object, *address) };
                library.check("aclSetInputTensorAddr", code)?;
                *bound = *address;
            }
        }
        if *last != result {
            // SAFETY: executor and tensor live; 0 is the number of the one output.
            let code = unsafe { (addresses.output)(executor, 0, self.output.object, result) };
            library.check("aclSetOutputTensorAddr", code)?;
            *last = result;
        }
        Ok(())
    }
}

/// Calls an operator's first function with objects, or with arguments of those types.
macro_rules! ask {
    ($library:expr, $operator:expr; $($object:ident),*) => {
        ask!($library, $operator $(, $object.object => Pointer)*)
    };
    ($library:expr, $operator:expr $(, $value:expr => $type:ty)*) => {{
        let (library, operator): (&Library, Operator) = ($library, $operator);
        let (first, second) = library.operator(operator)?;
        let (mut bytes, mut executor) = (0_u64, null_mut());
        // SAFETY: the function's type is the header's; objects live as long as the executor.
        let code = unsafe {
            let first = std::mem::transmute::<
                Pointer,
                unsafe extern "C" fn($($type,)* *mut u64, *mut Pointer) -> i32,
            >(first);
            first($($value,)* &raw mut bytes, &raw mut executor)
        };
        library.check(&format!("aclnn{operator:?}GetWorkspaceSize"), code)?;
        Asked { operator, second, workspace: usize::try_from(bytes).unwrap_or(usize::MAX), executor }
    }};
}

/// Asks the operator of a node for its workspace. `at` says where the operands are, null in a trial.
pub(super) fn ask(
    library: &Library,
    graph: &Graph,
    node: &Node,
    at: &[Pointer; OPERANDS],
    result: Pointer,
) -> Result<Call, Fault> {
    let (asked, inputs, output, others) = Asking { library, graph, node, at, result }.ask()?;
    let mut bound = [null_mut(); OPERANDS + 1];
    bound[..OPERANDS].copy_from_slice(at);
    bound[OPERANDS] = result;
    Ok(Call {
        operator: asked.operator,
        second: asked.second,
        workspace: asked.workspace,
        executor: Executor::Theirs(asked.executor),
        inputs,
        output,
        bound,
        _others: others,
        set_repeatable: library.set_repeatable,
        destroy: library.destroy_executor,
    })
}

/// An operator that was asked; its inputs, its output, and the numbers and lists that its executor refers to.
type Parts = (Asked, Vec<Object>, Object, Vec<Object>);

/// A node whose operator is asked.
struct Asking<'a> {
    library: &'a Library,
    graph: &'a Graph,
    node: &'a Node,
    at: &'a [Pointer; OPERANDS],
    result: Pointer,
}

impl<'a> Asking<'a> {
    fn ask(&self) -> Result<Parts, Fault> {
        let (library, node) = (self.library, self.node);
        Ok(match &node.op {
            Op::Input(_) | Op::Reshape | Op::Bitcast => return Err(missing()),
            Op::Constant(bits) => self.filled(*bits)?,
            Op::Iota(_) => {
                let (start, step, out) = (Object::integer(library, 0)?, Object::integer(library, 1)?, self.out()?);
                let end = Object::integer(library, node.count())?;
                let asked = ask!(library, Operator::Arange; start, end, step, out);
                (asked, vec![], out, vec![start, end, step])
            }
            Op::Unary(op) => {
                let (x, out) = (self.operand(0)?, self.out()?);
                (ask!(library, unary(*op, node.dtype)?; x, out), vec![x], out, vec![])
            }
            Op::Binary(op) => self.of_two(*op)?,
            Op::Compare(op) => {
                let (x, y, out) = (self.operand(0)?, self.operand(1)?, self.out()?);
                (ask!(library, compare(*op); x, y, out), vec![x, y], out, vec![])
            }
            Op::Select => {
                let (condition, a, b) = (self.operand(0)?, self.operand(1)?, self.operand(2)?);
                let out = self.out()?;
                (ask!(library, Operator::SWhere; condition, a, b, out), vec![condition, a, b], out, vec![])
            }
            Op::Convert => {
                let (x, out) = (self.operand(0)?, self.out()?);
                let asked = ask!(library, Operator::Cast, x.object => Pointer, abi::kind(node.dtype) => i32,
                    out.object => Pointer);
                (asked, vec![x], out, vec![])
            }
            Op::Broadcast(axes) => self.broadcast(axes)?,
            Op::Transpose(axes) => {
                let (x, axes, out) = (self.operand(0)?, Object::list(library, axes)?, self.out()?);
                (ask!(library, Operator::Permute; x, axes, out), vec![x], out, vec![axes])
            }
            Op::Slice { start, limit, step } => {
                let axes: Vec<usize> = (0..start.len()).listed();
                let lists = lists(library, [start, limit, &axes, step])?;
                let ([start, limit, axes, step], x, out) = (lists, self.operand(0)?, self.out()?);
                let asked = ask!(library, Operator::SliceV2; x, start, limit, axes, step, out);
                (asked, vec![x], out, vec![start, limit, axes, step])
            }
            Op::Pad { low, high } => {
                // The last axis first.
                let around: Vec<usize> = low.iter().zip(high).rev().flat_map(|(low, high)| [*low, *high]).listed();
                let (x, around, out) = (self.operand(0)?, Object::list(library, &around)?, self.out()?);
                let zero = Object::scalar(library, 0, node.dtype)?;
                (ask!(library, Operator::ConstantPadNd; x, around, zero, out), vec![x], out, vec![around, zero])
            }
            Op::Take => {
                let places = self.tensor(self.at[1], DType::I32, &[node.count()])?;
                let (x, flat) = (self.operand(0)?, self.tensor(self.result, node.dtype, &[node.count()])?);
                let asked = ask!(library, Operator::IndexSelect, x.object => Pointer, 0 => i64,
                    places.object => Pointer, flat.object => Pointer);
                (asked, vec![x, places], flat, vec![])
            }
            Op::Reduce(fold, axes) => self.reduced(*fold, axes)?,
            Op::Dot(batches) => self.dot(*batches)?,
            Op::Convolution(window) => self.convolution(window)?,
        })
    }

    fn tensor(&self, at: Pointer, dtype: DType, shape: &[usize]) -> Result<Object, Fault> {
        Object::tensor(self.library, dtype, shape, abi::FORMAT_PLAIN, at)
    }

    fn node_of(&self, place: usize) -> Result<&'a Node, Fault> {
        self.node.operands.get(place).map(|value| self.graph.node(*value)).ok_or_else(missing)
    }

    fn operand(&self, place: usize) -> Result<Object, Fault> {
        let of = self.node_of(place)?;
        self.tensor(self.at[place], of.dtype, &of.shape)
    }

    fn out(&self) -> Result<Object, Fault> {
        self.tensor(self.result, self.node.dtype, &self.node.shape)
    }

    fn filled(&self, bits: u64) -> Result<Parts, Fault> {
        let (out, number) = (self.out()?, Object::scalar(self.library, bits, self.node.dtype)?);
        Ok((ask!(self.library, Operator::InplaceFillScalar; out, number), vec![], out, vec![number]))
    }

    fn of_two(&self, op: Binary) -> Result<Parts, Fault> {
        let (library, dtype) = (self.library, self.node.dtype);
        let (x, y, out) = (self.operand(0)?, self.operand(1)?, self.out()?);
        let whole = matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::I32 | DType::I64);
        let mut factors = Vec::new();
        let asked = match op {
            Binary::Add | Binary::Subtract => {
                let operator = if op == Binary::Add { Operator::Add } else { Operator::Sub };
                let one = Object::integer(library, 1)?;
                let asked = ask!(library, operator; x, y, one, out);
                factors.push(one);
                asked
            }
            Binary::Divide if whole => ask!(library, Operator::DivMod, x.object => Pointer, y.object => Pointer,
                abi::TRUNCATE => i32, out.object => Pointer),
            _ => ask!(library, binary(op, dtype)?; x, y, out),
        };
        Ok((asked, vec![x, y], out, factors))
    }

    fn broadcast(&self, axes: &[usize]) -> Result<Parts, Fault> {
        let of = self.node_of(0)?;
        if let Op::Constant(bits) = of.op {
            return self.filled(bits);
        }
        let mut sides = vec![1; self.node.shape.len()];
        for (axis, side) in axes.iter().zip(&of.shape) {
            *sides.get_mut(*axis).ok_or_else(missing)? = *side;
        }
        let (x, out) = (self.tensor(self.at[0], of.dtype, &sides)?, self.out()?);
        let shape = Object::list(self.library, &self.node.shape)?;
        Ok((ask!(self.library, Operator::Expand; x, shape, out), vec![x], out, vec![shape]))
    }

    fn reduced(&self, fold: Fold, axes: &[usize]) -> Result<Parts, Fault> {
        let library = self.library;
        let (x, dtype, out) = (self.operand(0)?, abi::kind(self.node.dtype), self.out()?);
        let list = Object::list(library, axes)?;
        let asked = match fold {
            Fold::Sum => ask!(library, Operator::ReduceSum, x.object => Pointer, list.object => Pointer,
                false => bool, dtype => i32, out.object => Pointer),
            Fold::Prod => {
                let axis = axes.first().copied().unwrap_or(0) as i64;
                ask!(library, Operator::ProdDim, x.object => Pointer, axis => i64, false => bool, dtype => i32,
                    out.object => Pointer)
            }
            _ => {
                let operator = if fold == Fold::Max { Operator::Amax } else { Operator::Amin };
                ask!(library, operator, x.object => Pointer, list.object => Pointer, false => bool,
                    out.object => Pointer)
            }
        };
        Ok((asked, vec![x], out, vec![list]))
    }

    /// A product of matrices, whose first axes are batches: these become one axis.
    fn dot(&self, batches: usize) -> Result<Parts, Fault> {
        let library = self.library;
        let flat = |at: Pointer, shape: &[usize]| {
            let (outer, inner) = shape.split_at(shape.len().min(batches));
            let outer = (batches > 0).then(|| outer.iter().product());
            self.tensor(at, DType::F32, &outer.into_iter().chain(inner.iter().copied()).listed())
        };
        let a = flat(self.at[0], &self.node_of(0)?.shape)?;
        let b = flat(self.at[1], &self.node_of(1)?.shape)?;
        let out = flat(self.result, &self.node.shape)?;
        let operator = if batches == 0 { Operator::Matmul } else { Operator::BatchMatMul };
        let asked = ask!(library, operator, a.object => Pointer, b.object => Pointer, out.object => Pointer,
            abi::KEEP_DTYPE => i8);
        Ok((asked, vec![a, b], out, vec![]))
    }

    fn convolution(&self, window: &Convolution) -> Result<Parts, Fault> {
        let library = self.library;
        let Convolution { stride, padding, dilation, groups } = window;
        let images = |at: Pointer, of: &Node| Object::tensor(library, of.dtype, &of.shape, abi::FORMAT_NCHW, at);
        let (x, w) = (images(self.at[0], self.node_of(0)?)?, images(self.at[1], self.node_of(1)?)?);
        let out = images(self.result, self.node)?;
        let [stride, padding, dilation, extra] = lists(library, [stride, padding, dilation, &[0, 0]])?;
        let asked = ask!(library, Operator::Convolution, x.object => Pointer, w.object => Pointer,
            null_mut() => Pointer, stride.object => Pointer, padding.object => Pointer,
            dilation.object => Pointer, false => bool, extra.object => Pointer, *groups as i64 => i64,
            out.object => Pointer, abi::KEEP_DTYPE => i8);
        Ok((asked, vec![x, w], out, vec![stride, padding, dilation, extra]))
    }
}

fn lists<const N: usize>(library: &Library, numbers: [&[usize]; N]) -> Result<[Object; N], Fault> {
    let lists = numbers.into_iter().map(|numbers| Object::list(library, numbers)).try_listed()?;
    lists.try_into().map_err(|_| missing())
}

pub(super) fn missing() -> Fault {
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
