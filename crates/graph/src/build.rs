//! Adding nodes to a graph. What is there already is not added twice, and what is made of numbers alone is computed at once. `lower` adds nodes through
//! these methods alone. Single numbers are broadcast where they meet a shape. Because equal nodes are found again, a graph from the same expression is the
//! same text, by which devices cache.

use super::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary, Value};
use crate::tensor::DType;
use cantus_base::listed::Listed;

impl Graph {
    fn push(&mut self, op: Op, operands: &[Value], dtype: DType, shape: &[usize]) -> Value {
        let node = Node { op, operands: operands.to_vec(), dtype, shape: shape.to_vec() };
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let number = |value: &Value| matches!(self.node(*value).op, Op::Constant(_));
        let folds =
            matches!(node.op, Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Convert | Op::Bitcast);
        if folds
            && shape.is_empty()
            && operands.iter().all(number)
            && let Some(bits) = self.folded(&node)
        {
            return self.constant(bits, dtype);
        }
        let value = Value(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node.clone());
        self.known.insert(node, value);
        value
    }

    /// The dtype of a value.
    #[must_use]
    pub fn dtype(&self, value: Value) -> DType {
        self.node(value).dtype
    }

    /// The shape of a value.
    #[must_use]
    pub fn shape(&self, value: Value) -> &[usize] {
        &self.node(value).shape
    }

    /// The bits of a number; `None` for everything else.
    #[must_use]
    pub fn number(&self, value: Value) -> Option<u64> {
        match self.node(value).op {
            Op::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// One more argument.
    pub fn input(&mut self, dtype: DType, shape: &[usize]) -> Value {
        let value = self.push(Op::Input(self.inputs.len()), &[], dtype, shape);
        self.inputs.push(value);
        value
    }

    /// One more result.
    pub fn output(&mut self, value: Value) {
        self.outputs.push(value);
    }

    /// A number by its bits, of shape [].
    pub fn constant(&mut self, bits: u64, dtype: DType) -> Value {
        self.push(Op::Constant(bits), &[], dtype, &[])
    }

    /// A number of a float dtype, an integer or a bool. For integers a number is truncated.
    pub fn float(&mut self, number: f64, dtype: DType) -> Value {
        let bits = dtype.float_bits(number).unwrap_or_else(|| match dtype {
            DType::U64 => number as u64,
            DType::Bool => u64::from(number != 0.0),
            _ => {
                let mask = u64::MAX >> (64 - 8 * dtype.bytes().min(8));
                (number as i64).cast_unsigned() & mask
            }
        });
        self.constant(bits, dtype)
    }

    /// An integer.
    pub fn integer(&mut self, number: i64, dtype: DType) -> Value {
        let mask = u64::MAX >> (64 - 8 * dtype.bytes().min(8));
        self.constant(number.cast_unsigned() & mask, dtype)
    }

    /// An element's place along an axis.
    pub fn iota(&mut self, axis: usize, dtype: DType, shape: &[usize]) -> Value {
        self.push(Op::Iota(axis), &[], dtype, shape)
    }

    /// A number, or what has this shape already, in this shape.
    fn spread(&mut self, value: Value, shape: &[usize]) -> Value {
        if self.shape(value) == shape { value } else { self.broadcast(value, &[], shape) }
    }

    /// Numbers among values of one shape take that shape.
    fn together<const N: usize>(&mut self, values: [Value; N]) -> ([Value; N], Vec<usize>) {
        let shape = values.iter().map(|value| self.shape(*value).to_vec()).find(|shape| !shape.is_empty());
        let shape = shape.unwrap_or_default();
        (values.map(|value| self.spread(value, &shape)), shape)
    }

    /// A function of one element.
    pub fn unary(&mut self, op: Unary, x: Value) -> Value {
        let dtype = match (op, self.dtype(x)) {
            (Unary::Real | Unary::Imag, DType::Complex64) => DType::F32,
            (Unary::Real | Unary::Imag, DType::Complex128) => DType::F64,
            (_, dtype) => dtype,
        };
        let shape = self.shape(x).to_vec();
        if op == Unary::Not
            && let Op::Unary(Unary::Not) = self.node(x).op
        {
            return self.node(x).operands[0];
        }
        self.push(Op::Unary(op), &[x], dtype, &shape)
    }

    /// A function of two elements, of equal shapes or numbers.
    pub fn binary(&mut self, op: Binary, x: Value, y: Value) -> Value {
        if self.dtype(x) == DType::Bool
            && let Some(known) = self.logic(op, x, y)
        {
            return known;
        }
        let ([x, y], shape) = self.together([x, y]);
        let dtype = match (op, self.dtype(x)) {
            (Binary::Complex, DType::F64) => DType::Complex128,
            (Binary::Complex, _) => DType::Complex64,
            (_, dtype) => dtype,
        };
        self.push(Op::Binary(op), &[x, y], dtype, &shape)
    }

    /// Simplifies a logical operation of which one operand is known.
    fn logic(&self, op: Binary, x: Value, y: Value) -> Option<Value> {
        let (known, other) = match (self.number(x), self.number(y)) {
            (Some(bits), _) => (bits != 0, y),
            (_, Some(bits)) => (bits != 0, x),
            _ => return (x == y && matches!(op, Binary::And | Binary::Or)).then_some(x),
        };
        match (op, known) {
            (Binary::And, true) | (Binary::Or, false) => Some(other),
            // The known one keeps its truth; its shape is that of all numbers.
            (Binary::And, false) | (Binary::Or, true) => Some(if self.number(x).is_some() { x } else { y }),
            _ => None,
        }
    }

    /// A comparison.
    pub fn compare(&mut self, op: Compare, x: Value, y: Value) -> Value {
        let ([x, y], shape) = self.together([x, y]);
        self.push(Op::Compare(op), &[x, y], DType::Bool, &shape)
    }

    /// `a` where `condition`, `b` elsewhere.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        match self.number(condition) {
            Some(0) => return b,
            Some(_) => return a,
            None => {}
        }
        let ([condition, a, b], shape) = self.together([condition, a, b]);
        let dtype = self.dtype(a);
        self.push(Op::Select, &[condition, a, b], dtype, &shape)
    }

    /// The number in another dtype; see [`Op::Convert`].
    pub fn convert(&mut self, x: Value, dtype: DType) -> Value {
        if self.dtype(x) == dtype {
            return x;
        }
        let shape = self.shape(x).to_vec();
        self.push(Op::Convert, &[x], dtype, &shape)
    }

    /// The bits as another dtype of the same width.
    pub fn bitcast(&mut self, x: Value, dtype: DType) -> Value {
        if self.dtype(x) == dtype {
            return x;
        }
        let shape = self.shape(x).to_vec();
        self.push(Op::Bitcast, &[x], dtype, &shape)
    }

    /// Repeats; see [`Op::Broadcast`].
    pub fn broadcast(&mut self, x: Value, axes: &[usize], shape: &[usize]) -> Value {
        if self.shape(x) == shape {
            return x;
        }
        let dtype = self.dtype(x);
        self.push(Op::Broadcast(axes.to_vec()), &[x], dtype, shape)
    }

    /// The elements in another shape.
    pub fn reshape(&mut self, x: Value, shape: &[usize]) -> Value {
        if self.shape(x) == shape {
            return x;
        }
        let dtype = self.dtype(x);
        // A reshape of a reshape is one of what that reads.
        let from = match self.node(x) {
            Node { op: Op::Reshape, operands, .. } => operands[0],
            _ => x,
        };
        if self.shape(from) == shape {
            return from;
        }
        self.push(Op::Reshape, &[from], dtype, shape)
    }

    /// Axis i of the result is axis `axes[i]`.
    pub fn transpose(&mut self, x: Value, axes: &[usize]) -> Value {
        if axes.iter().enumerate().all(|(place, &axis)| place == axis) {
            return x;
        }
        let shape: Vec<usize> = axes.iter().map(|&axis| self.shape(x)[axis]).listed();
        let dtype = self.dtype(x);
        self.push(Op::Transpose(axes.to_vec()), &[x], dtype, &shape)
    }

    /// A part; see [`Op::Slice`].
    pub fn slice(&mut self, x: Value, start: &[usize], limit: &[usize], step: &[usize]) -> Value {
        let shape: Vec<usize> = (0..start.len()).map(|axis| (limit[axis] - start[axis]).div_ceil(step[axis])).listed();
        if self.shape(x) == shape {
            return x;
        }
        let dtype = self.dtype(x);
        let op = Op::Slice { start: start.to_vec(), limit: limit.to_vec(), step: step.to_vec() };
        self.push(op, &[x], dtype, &shape)
    }

    /// Zeros around.
    pub fn pad(&mut self, x: Value, low: &[usize], high: &[usize]) -> Value {
        let shape: Vec<usize> =
            self.shape(x).iter().zip(low).zip(high).map(|((side, low), high)| side + low + high).listed();
        if self.shape(x) == shape {
            return x;
        }
        let dtype = self.dtype(x);
        self.push(Op::Pad { low: low.to_vec(), high: high.to_vec() }, &[x], dtype, &shape)
    }

    /// The elements of a flat value at places, which are u32 and in range.
    pub fn take(&mut self, flat: Value, places: Value) -> Value {
        let (dtype, shape) = (self.dtype(flat), self.shape(places).to_vec());
        self.push(Op::Take, &[flat, places], dtype, &shape)
    }

    /// One number of all elements along these axes.
    pub fn reduce(&mut self, fold: Fold, x: Value, axes: &[usize]) -> Value {
        let kept = self.shape(x).iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let shape: Vec<usize> = kept.map(|(_, side)| *side).listed();
        let dtype = self.dtype(x);
        self.push(Op::Reduce(fold, axes.to_vec()), &[x], dtype, &shape)
    }

    /// The product of float32 matrices; see [`Op::Dot`].
    pub fn dot(&mut self, a: Value, b: Value) -> Value {
        let mut shape = self.shape(a).to_vec();
        let batch = shape.len().saturating_sub(2);
        shape.pop();
        shape.extend(self.shape(b).last());
        self.push(Op::Dot(batch), &[a, b], DType::F32, &shape)
    }

    /// A convolution of float32 images; `output` is the height and width of the result.
    pub fn convolution(&mut self, x: Value, weights: Value, window: Convolution, output: [usize; 2]) -> Value {
        let (images, channels) = (self.shape(x)[0], self.shape(weights)[0]);
        let shape = [images, channels, output[0], output[1]];
        self.push(Op::Convolution(window), &[x, weights], DType::F32, &shape)
    }
}
