//! Graphs in the words of aclnn: u32 as i32 (by way of i64 where the sign counts), iota along one axis, shifts as products. What aclnn has no
//! operator for is refused.

use super::abi::Fault;
use crate::graph::{Binary, Compare, Fold, Graph, Node, Op, Unary, Value};
use crate::tensor::DType;
use cantus_base::listed::Listed;

const WORD: i64 = 0xffff_ffff;

/// The dtype that stands for one, or why no dtype does.
fn plain(dtype: DType) -> Result<DType, Fault> {
    match dtype {
        DType::U32 => Ok(DType::I32),
        DType::Bool | DType::I8 | DType::U8 | DType::I16 | DType::I32 | DType::I64 => Ok(dtype),
        _ if float(dtype) => Ok(dtype),
        _ => Err(Fault::refused(format!("{dtype} is no dtype of its matrix and vector cores"))),
    }
}

fn float(dtype: DType) -> bool {
    dtype.is_half() || dtype == DType::F32
}

struct Adapted<'a> {
    from: &'a Graph,
    to: Graph,
    values: Vec<Value>,
}

/// The same graph in what aclnn has.
pub(super) fn adapted(graph: &Graph) -> Result<Graph, Fault> {
    let mut adapted = Adapted { from: graph, to: Graph::new(graph.name()), values: Vec::new() };
    for node in graph.nodes() {
        if node.shape.contains(&0) {
            return Err(Fault::refused("a value without elements"));
        }
        let value = adapted.node(node)?;
        adapted.values.push(value);
    }
    for output in graph.outputs() {
        let value = adapted.value(*output)?;
        adapted.to.output(value);
    }
    Ok(adapted.to.pruned())
}

fn refused(what: impl std::fmt::Debug, dtype: DType) -> Fault {
    Fault::refused(format!("aclnn has no operator for {what:?} of {dtype}"))
}

impl Adapted<'_> {
    fn value(&self, value: Value) -> Result<Value, Fault> {
        self.values.get(value.index()).copied().ok_or_else(|| Fault::refused("a node reads what comes behind it"))
    }

    /// A u32 as the number that it is.
    fn wide(&mut self, x: Value) -> Value {
        let x = self.to.convert(x, DType::I64);
        let mask = self.to.integer(WORD, DType::I64);
        self.to.binary(Binary::And, x, mask)
    }

    /// The number behind a broadcast, if it is one.
    fn number(&self, value: Value) -> Option<u64> {
        let node = self.from.node(value);
        match (&node.op, node.operands.first()) {
            (Op::Constant(bits), _) => Some(*bits),
            (Op::Broadcast(_) | Op::Reshape, Some(of)) => self.number(*of),
            _ => None,
        }
    }

    fn node(&mut self, node: &Node) -> Result<Value, Fault> {
        let dtype = plain(node.dtype)?;
        let operands = node.operands.iter().map(|value| self.value(*value)).try_listed()?;
        let from = node.operands.first().map_or(node.dtype, |value| self.from.dtype(*value));
        let missing = || Fault::refused("an operand is missing");
        let operand = |place: usize| operands.get(place).copied().ok_or_else(missing);
        Ok(match &node.op {
            Op::Input(_) => self.to.input(dtype, &node.shape),
            Op::Constant(bits) => self.to.constant(*bits, dtype),
            Op::Iota(axis) => {
                let side = node.shape.get(*axis).copied().unwrap_or(1);
                let line = self.to.iota(0, DType::I32, &[side]);
                let line = self.to.convert(line, dtype);
                self.to.broadcast(line, &[*axis], &node.shape)
            }
            Op::Unary(op) => self.unary(*op, operand(0)?, from)?,
            Op::Binary(op) => {
                let shift = node.operands.get(1).and_then(|value| self.number(*value));
                self.binary(*op, operand(0)?, operand(1)?, from, shift)?
            }
            Op::Compare(op) => {
                let (mut x, mut y) = (operand(0)?, operand(1)?);
                if from == DType::U32 && !matches!(op, Compare::Eq | Compare::Ne) {
                    (x, y) = (self.wide(x), self.wide(y));
                }
                self.to.compare(*op, x, y)
            }
            Op::Select => self.to.select(operand(0)?, operand(1)?, operand(2)?),
            Op::Convert => {
                let mut x = operand(0)?;
                if from == DType::U32 && node.dtype != DType::Bool {
                    x = self.wide(x);
                }
                if node.dtype == DType::U32 && float(self.to.dtype(x)) {
                    x = self.to.convert(x, DType::I64);
                }
                self.to.convert(x, dtype)
            }
            Op::Bitcast => self.to.bitcast(operand(0)?, dtype),
            Op::Broadcast(axes) => self.to.broadcast(operand(0)?, axes, &node.shape),
            Op::Reshape => self.to.reshape(operand(0)?, &node.shape),
            Op::Transpose(axes) => self.to.transpose(operand(0)?, axes),
            Op::Slice { start, limit, step } => self.to.slice(operand(0)?, start, limit, step),
            Op::Pad { low, high } => self.to.pad(operand(0)?, low, high),
            Op::Take => self.to.take(operand(0)?, operand(1)?),
            Op::Reduce(fold, axes) => {
                let mut x = operand(0)?;
                let ordered = matches!(fold, Fold::Max | Fold::Min);
                if from == DType::U32 && ordered {
                    x = self.wide(x);
                }
                let fold = match (from, fold) {
                    (DType::Bool, Fold::Sum) => Fold::Max,
                    (DType::Bool, Fold::Prod) => Fold::Min,
                    _ => *fold,
                };
                let folded = match fold {
                    // One axis at a time, the last first.
                    Fold::Prod => {
                        let mut axes = axes.clone();
                        axes.sort_unstable();
                        axes.iter().rev().fold(x, |x, axis| self.to.reduce(fold, x, &[*axis]))
                    }
                    _ => self.to.reduce(fold, x, axes),
                };
                self.to.convert(folded, dtype)
            }
            Op::Dot(_) => self.to.dot(operand(0)?, operand(1)?),
            Op::Convolution(window) => {
                let [.., height, width] = node.shape[..] else { return Err(missing()) };
                self.to.convolution(operand(0)?, operand(1)?, *window, [height, width])
            }
        })
    }

    fn unary(&mut self, op: Unary, x: Value, from: DType) -> Result<Value, Fault> {
        let float = float(from);
        match op {
            Unary::Abs if from == DType::U32 => Ok(x),
            Unary::Negate | Unary::Abs if from != DType::Bool => Ok(self.to.unary(op, x)),
            Unary::Not if !float => Ok(self.to.unary(op, x)),
            Unary::Floor | Unary::Ceil | Unary::RoundEven | Unary::Sqrt | Unary::Rsqrt if float => {
                Ok(self.to.unary(op, x))
            }
            Unary::Exp | Unary::Log | Unary::Sine | Unary::Cosine | Unary::Tanh if float => Ok(self.to.unary(op, x)),
            _ => Err(refused(op, from)),
        }
    }

    fn binary(&mut self, op: Binary, x: Value, y: Value, from: DType, shift: Option<u64>) -> Result<Value, Fault> {
        let op = match op {
            Binary::Multiply | Binary::Minimum if from == DType::Bool => Binary::And,
            Binary::Add | Binary::Maximum if from == DType::Bool => Binary::Or,
            _ => op,
        };
        match op {
            Binary::Xor if from == DType::Bool => Ok(self.to.compare(Compare::Ne, x, y)),
            Binary::And | Binary::Or if from == DType::Bool => Ok(self.to.binary(op, x, y)),
            _ if from == DType::Bool => Err(refused(op, from)),
            Binary::Divide | Binary::Remainder | Binary::Minimum | Binary::Maximum if from == DType::U32 => {
                let (x, y) = (self.wide(x), self.wide(y));
                let wide = self.to.binary(op, x, y);
                Ok(self.to.convert(wide, DType::I32))
            }
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
                Ok(self.to.binary(op, x, y))
            }
            Binary::Minimum | Binary::Maximum => Ok(self.to.binary(op, x, y)),
            Binary::Power | Binary::Atan2 if float(from) => Ok(self.to.binary(op, x, y)),
            Binary::And | Binary::Or | Binary::Xor if !float(from) => Ok(self.to.binary(op, x, y)),
            Binary::ShiftLeft if matches!(from, DType::I32 | DType::U32) && shift.is_some_and(|by| by < 32) => {
                let factor = 1_i64 << shift.unwrap_or(0);
                let factor = self.to.integer(factor, DType::I32);
                Ok(self.to.binary(Binary::Multiply, x, factor))
            }
            _ => Err(refused(op, from)),
        }
    }
}
