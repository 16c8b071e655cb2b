//! A graph as StableHLO text: MLIR's generic form, which every version of StableHLO reads. PJRT devices compile this text, and `parse` reads it back, so
//! the simulator runs what a device would get. Floats are written by their bits. Only the generic form is used, which no version of StableHLO has changed.

use std::fmt::Write as _;

use super::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary, Value};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// The name of a dtype in MLIR.
pub(super) fn element(dtype: DType) -> String {
    match dtype.kind() {
        Kind::Bool => "i1".to_owned(),
        Kind::Unsigned => format!("ui{}", 8 * dtype.bytes()),
        Kind::Complex => format!("complex<f{}>", 4 * dtype.bytes()),
        Kind::Signed | Kind::Float => dtype.name().to_owned(),
    }
}

/// An argument whose memory the first result takes.
pub(super) const REUSED: &str = " {tf.aliasing_output = 0 : i32}";

pub(super) fn tensor(dtype: DType, shape: &[usize]) -> String {
    let sides: String = shape.iter().map(|side| format!("{side}x")).collect();
    format!("tensor<{sides}{}>", element(dtype))
}

impl Unary {
    pub(super) const NAMES: [(Self, &'static str); 17] = [
        (Self::Negate, "negate"),
        (Self::Abs, "abs"),
        (Self::Floor, "floor"),
        (Self::Ceil, "ceil"),
        (Self::RoundEven, "round_nearest_even"),
        (Self::Sqrt, "sqrt"),
        (Self::Rsqrt, "rsqrt"),
        (Self::Exp, "exponential"),
        (Self::Log, "log"),
        (Self::Sine, "sine"),
        (Self::Cosine, "cosine"),
        (Self::Tanh, "tanh"),
        (Self::Not, "not"),
        (Self::Popcnt, "popcnt"),
        (Self::LeadingZeros, "count_leading_zeros"),
        (Self::Real, "real"),
        (Self::Imag, "imag"),
    ];
}

impl Binary {
    pub(super) const NAMES: [(Self, &'static str); 14] = [
        (Self::Add, "add"),
        (Self::Subtract, "subtract"),
        (Self::Multiply, "multiply"),
        (Self::Divide, "divide"),
        (Self::Remainder, "remainder"),
        (Self::Minimum, "minimum"),
        (Self::Maximum, "maximum"),
        (Self::Power, "power"),
        (Self::Atan2, "atan2"),
        (Self::And, "and"),
        (Self::Or, "or"),
        (Self::Xor, "xor"),
        (Self::ShiftLeft, "shift_left"),
        (Self::Complex, "complex"),
    ];
}

impl Compare {
    pub(super) const NAMES: [(Self, &'static str); 6] =
        [(Self::Eq, "EQ"), (Self::Ne, "NE"), (Self::Lt, "LT"), (Self::Le, "LE"), (Self::Gt, "GT"), (Self::Ge, "GE")];
}

impl Fold {
    pub(super) const NAMES: [(Self, &'static str); 4] =
        [(Self::Sum, "add"), (Self::Prod, "multiply"), (Self::Max, "maximum"), (Self::Min, "minimum")];

    /// The bits of what a reduction begins with.
    pub(super) fn start(self, dtype: DType) -> u64 {
        let bits = 8 * dtype.bytes().min(8) as u32;
        let mask = u64::MAX >> (64 - bits);
        let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        let least = 1_u64 << (bits - 1);
        match (self, dtype) {
            (Self::Sum, _) => 0,
            (Self::Prod, DType::F32) => u64::from(1.0_f32.to_bits()),
            (Self::Prod, DType::F64) => 1.0_f64.to_bits(),
            (Self::Prod, _) => 1,
            (Self::Max, DType::F32) => u64::from(f32::NEG_INFINITY.to_bits()),
            (Self::Max, DType::F64) => f64::NEG_INFINITY.to_bits(),
            (Self::Min, DType::F32) => u64::from(f32::INFINITY.to_bits()),
            (Self::Min, DType::F64) => f64::INFINITY.to_bits(),
            (Self::Max, DType::Bool) => 0,
            (Self::Min, DType::Bool) => 1,
            (Self::Max, _) => {
                if signed {
                    least
                } else {
                    0
                }
            }
            (Self::Min, _) => {
                if signed {
                    least - 1
                } else {
                    mask
                }
            }
        }
    }
}

/// The name of one of a list.
fn name<T: Copy + PartialEq>(names: &[(T, &'static str)], of: T) -> &'static str {
    names.iter().find(|(known, _)| *known == of).map_or("", |(_, name)| name)
}

/// The attributes of a convolution.
fn of_window(window: &Convolution) -> String {
    let [down, across] = window.padding;
    format!(
        "batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, \
         feature_group_count = {} : i64, lhs_dilation = array<i64: 1, 1>, \
         padding = dense<[[{down}, {down}], [{across}, {across}]]> : tensor<2x2xi64>, {HIGHEST}, \
         rhs_dilation = {}, window_strides = {}",
        window.groups,
        array(&window.dilation),
        array(&window.stride)
    )
}

fn array(numbers: &[usize]) -> String {
    if numbers.is_empty() {
        return "array<i64>".to_owned();
    }
    let list: Vec<String> = numbers.iter().map(usize::to_string).listed();
    format!("array<i64: {}>", list.join(", "))
}

/// Numbers in brackets.
fn list(numbers: impl IntoIterator<Item = usize>) -> String {
    let list: Vec<String> = numbers.into_iter().map(|number| number.to_string()).listed();
    format!("[{}]", list.join(", "))
}

/// The text of a number: floats by their bits.
fn literal(bits: u64, dtype: DType) -> String {
    let beyond = 64 - 8 * dtype.bytes().min(8);
    match dtype.kind() {
        Kind::Bool => (bits != 0).to_string(),
        Kind::Float => format!("0x{bits:0width$X}", width = 2 * dtype.bytes()),
        Kind::Signed => (bits.cast_signed() << beyond >> beyond).to_string(),
        Kind::Unsigned | Kind::Complex => bits.to_string(),
    }
}

struct Writer<'a> {
    graph: &'a Graph,
    text: String,
    /// Numbers that operations need besides those of the graph.
    extra: usize,
}

const HIGHEST: &str = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";

impl Writer<'_> {
    fn typed(&self, value: Value) -> String {
        let node = self.graph.node(value);
        tensor(node.dtype, &node.shape)
    }

    fn constant(&mut self, bits: u64, dtype: DType) -> String {
        let name = format!("%c{}", self.extra);
        self.extra += 1;
        self.constant_line(&name, bits, dtype);
        name
    }

    fn constant_line(&mut self, name: &str, bits: u64, dtype: DType) {
        let (ty, literal) = (tensor(dtype, &[]), literal(bits, dtype));
        let _ = writeln!(
            self.text,
            "    {name} = \"stablehlo.constant\"() {{value = dense<{literal}> : {ty}}} : () -> {ty}"
        );
    }

    /// A line: the operation, its attributes, and operands besides those of the node.
    fn line(&mut self, place: usize, node: &Node, op: &str, attributes: &str, more: &[(String, String)]) {
        let own = node.operands.iter().map(|value| (format!("%{}", value.index()), self.typed(*value)));
        let all: Vec<(String, String)> = own.chain(more.iter().cloned()).listed();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).listed();
        let types: Vec<&str> = all.iter().map(|(_, ty)| ty.as_str()).listed();
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {{{attributes}}}") };
        let _ = writeln!(
            self.text,
            "    %{place} = \"stablehlo.{op}\"({}){attributes} : ({}) -> {}",
            names.join(", "),
            types.join(", "),
            tensor(node.dtype, &node.shape)
        );
    }

    fn node(&mut self, place: usize, node: &Node) {
        match &node.op {
            Op::Input(_) => {}
            Op::Constant(bits) => self.constant_line(&format!("%{place}"), *bits, node.dtype),
            Op::Iota(axis) => self.line(place, node, "iota", &format!("iota_dimension = {axis} : i64"), &[]),
            Op::Unary(op) => self.line(place, node, name(&Unary::NAMES, *op), "", &[]),
            Op::Binary(Binary::ShiftRight) => {
                let signed = matches!(node.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
                let op = if signed { "shift_right_arithmetic" } else { "shift_right_logical" };
                self.line(place, node, op, "", &[]);
            }
            Op::Binary(op) => self.line(place, node, name(&Binary::NAMES, *op), "", &[]),
            Op::Compare(op) => {
                let direction = name(&Compare::NAMES, *op);
                let attribute = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
                self.line(place, node, "compare", &attribute, &[]);
            }
            Op::Select => self.line(place, node, "select", "", &[]),
            Op::Convert => self.line(place, node, "convert", "", &[]),
            Op::Bitcast => self.line(place, node, "bitcast_convert", "", &[]),
            Op::Broadcast(axes) => {
                let attribute = format!("broadcast_dimensions = {}", array(axes));
                self.line(place, node, "broadcast_in_dim", &attribute, &[]);
            }
            Op::Reshape => self.line(place, node, "reshape", "", &[]),
            Op::Transpose(axes) => {
                self.line(place, node, "transpose", &format!("permutation = {}", array(axes)), &[]);
            }
            Op::Slice { start, limit, step } => {
                let attributes = format!(
                    "limit_indices = {}, start_indices = {}, strides = {}",
                    array(limit),
                    array(start),
                    array(step)
                );
                self.line(place, node, "slice", &attributes, &[]);
            }
            Op::Pad { low, high } => {
                let zero = self.constant(0, node.dtype);
                let attributes = format!(
                    "edge_padding_high = {}, edge_padding_low = {}, interior_padding = {}",
                    array(high),
                    array(low),
                    array(&vec![0; low.len()])
                );
                self.line(place, node, "pad", &attributes, &[(zero, tensor(node.dtype, &[]))]);
            }
            Op::Take => {
                let attributes = format!(
                    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], \
                     index_vector_dim = {}>, indices_are_sorted = false, slice_sizes = array<i64: 1>",
                    node.shape.len()
                );
                self.line(place, node, "gather", &attributes, &[]);
            }
            Op::Reduce(fold, axes) => self.reduce(place, node, *fold, axes),
            Op::Dot(batch) => {
                let batches = list(0..*batch);
                let attributes = format!(
                    "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {batches}, \
                     rhs_batching_dimensions = {batches}, lhs_contracting_dimensions = [{}], \
                     rhs_contracting_dimensions = [{batch}]>, {HIGHEST}",
                    batch + 1
                );
                self.line(place, node, "dot_general", &attributes, &[]);
            }
            Op::Convolution(window) => {
                self.line(place, node, "convolution", &of_window(window), &[]);
            }
        }
    }

    fn reduce(&mut self, place: usize, node: &Node, fold: Fold, axes: &[usize]) {
        let start = self.constant(fold.start(node.dtype), node.dtype);
        let (op, scalar) = (name(&Fold::NAMES, fold), tensor(node.dtype, &[]));
        let operand = node.operands[0];
        let _ = writeln!(
            self.text,
            "    %{place} = \"stablehlo.reduce\"(%{}, {start}) ({{\n    ^bb0(%a: {scalar}, %b: {scalar}):\n      \
             %r = \"stablehlo.{op}\"(%a, %b) : ({scalar}, {scalar}) -> {scalar}\n      \
             \"stablehlo.return\"(%r) : ({scalar}) -> ()\n    }}) {{dimensions = {}}} : ({}, {scalar}) -> {}",
            operand.index(),
            array(axes),
            self.typed(operand),
            tensor(node.dtype, &node.shape)
        );
    }
}

impl Graph {
    /// The graph as a StableHLO module whose function `main` takes the arguments and returns the results.
    #[must_use]
    pub fn stablehlo(&self) -> String {
        self.written(None)
    }

    /// The same program, whose first result takes the memory of an input of its type: whoever runs it gives that input away. `None` for an
    /// input of another type.
    #[must_use]
    pub fn stablehlo_reusing(&self, input: usize) -> Option<String> {
        let (value, result) = (*self.inputs.get(input)?, *self.outputs.first()?);
        let same = self.dtype(value) == self.dtype(result) && self.shape(value) == self.shape(result);
        same.then(|| self.written(Some(input)))
    }

    fn written(&self, reused: Option<usize>) -> String {
        let mut writer = Writer { graph: self, text: String::new(), extra: 0 };
        let parameter = |(place, value): (usize, &Value)| {
            let attribute = if reused == Some(place) { REUSED } else { "" };
            format!("%{}: {}{attribute}", value.index(), writer.typed(*value))
        };
        let parameters: Vec<String> = self.inputs.iter().enumerate().map(parameter).listed();
        let types: Vec<String> = self.outputs.iter().map(|value| writer.typed(*value)).listed();
        let names: Vec<String> = self.outputs.iter().map(|value| format!("%{}", value.index())).listed();
        let types = types.join(", ");
        let name: String = self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let _ = writeln!(
            writer.text,
            "module @{name} {{\n  func.func public @main({}) -> ({types}) {{",
            parameters.join(", ")
        );
        for (place, node) in self.nodes.iter().enumerate() {
            writer.node(place, node);
        }
        let _ = writeln!(writer.text, "    \"func.return\"({}) : ({types}) -> ()\n  }}\n}}", names.join(", "));
        writer.text
    }
}
