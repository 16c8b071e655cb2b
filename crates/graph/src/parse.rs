//! StableHLO text as a graph: what [`Graph::stablehlo`] writes, and no more. The simulator runs what is read here, so that it runs the text
//! that a device would get.

use std::collections::HashMap;

use super::stablehlo::{REUSED, element};
use super::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary, Value};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

type Typed = (DType, Vec<usize>);

fn tensor(text: &str) -> Option<Typed> {
    let inside = text.trim().strip_prefix("tensor<")?.strip_suffix('>')?;
    let name = |text: &str| DType::ALL.iter().copied().find(|dtype| element(*dtype) == text);
    let mut rest = inside;
    let mut shape = Vec::new();
    loop {
        if let Some(dtype) = name(rest) {
            return Some((dtype, shape));
        }
        let (side, after) = rest.split_once('x')?;
        shape.push(side.parse().ok()?);
        rest = after;
    }
}

/// The text between the first opening and the last closing mark.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let from = text.find(open)? + open.len();
    let to = from + text.get(from..)?.find(close)?;
    text.get(from..to)
}

fn numbers(text: &str) -> Option<Vec<usize>> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).try_listed()
}

/// The numbers of `name = array<i64: ..>`.
fn array(attributes: &str, name: &str) -> Option<Vec<usize>> {
    let list = between(attributes, &format!("{name} = array<i64"), ">")?;
    numbers(list.trim_start_matches(':'))
}

/// The number of `name = N`.
fn number(attributes: &str, name: &str) -> Option<usize> {
    let rest = attributes.split_once(&format!("{name} = "))?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn literal(text: &str, dtype: DType) -> Option<u64> {
    let mask = u64::MAX >> (64 - 8 * dtype.bytes().min(8));
    Some(match (text, text.strip_prefix("0x")) {
        ("true", _) => 1,
        ("false", _) => 0,
        (_, Some(hex)) => u64::from_str_radix(hex, 16).ok()?,
        _ if text.starts_with('-') => text.parse::<i64>().ok()?.cast_unsigned() & mask,
        _ => text.parse().ok()?,
    })
}

/// The one of a list with that name.
fn named<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(op, _)| *op)
}

struct Line<'a> {
    op: &'a str,
    operands: Vec<Value>,
    attributes: &'a str,
    region: &'a str,
}

impl Line<'_> {
    fn op(&self) -> Option<(Op, usize)> {
        let attributes = self.attributes;
        let unary = named(&Unary::NAMES, self.op).map(|op| (Op::Unary(op), 1));
        let binary = named(&Binary::NAMES, self.op).map(|op| (Op::Binary(op), 2));
        Some(match self.op {
            "shift_right_arithmetic" | "shift_right_logical" => (Op::Binary(Binary::ShiftRight), 2),
            "iota" => (Op::Iota(number(attributes, "iota_dimension")?), 0),
            "compare" => {
                let direction = between(attributes, "<comparison_direction ", ">")?;
                (Op::Compare(named(&Compare::NAMES, direction)?), 2)
            }
            "select" => (Op::Select, 3),
            "convert" => (Op::Convert, 1),
            "bitcast_convert" => (Op::Bitcast, 1),
            "broadcast_in_dim" => (Op::Broadcast(array(attributes, "broadcast_dimensions")?), 1),
            "reshape" => (Op::Reshape, 1),
            "transpose" => (Op::Transpose(array(attributes, "permutation")?), 1),
            "slice" => {
                let part = |name| array(attributes, name);
                let (start, limit, step) = (part("start_indices")?, part("limit_indices")?, part("strides")?);
                (Op::Slice { start, limit, step }, 1)
            }
            "pad" => {
                let (low, high) = (array(attributes, "edge_padding_low")?, array(attributes, "edge_padding_high")?);
                // The last operand is the zero.
                (Op::Pad { low, high }, 1)
            }
            "gather" => (Op::Take, 2),
            "reduce" => {
                let op = between(self.region, "\"stablehlo.", "\"")?;
                (Op::Reduce(named(&Fold::NAMES, op)?, array(attributes, "dimensions")?), 1)
            }
            "dot_general" => (Op::Dot(numbers(between(attributes, "lhs_batching_dimensions = [", "]")?)?.len()), 2),
            "convolution" => {
                let pair = |name| array(attributes, name)?.try_into().ok();
                let padding = between(attributes, "padding = dense<[[", "]]>")?;
                let padding = numbers(&padding.replace(['[', ']'], ""))?;
                let window = Convolution {
                    stride: pair("window_strides")?,
                    padding: [*padding.first()?, *padding.get(2)?],
                    dilation: pair("rhs_dilation")?,
                    groups: number(attributes, "feature_group_count")?,
                };
                (Op::Convolution(window), 2)
            }
            _ => return unary.or(binary),
        })
    }
}

#[derive(Default)]
struct Reader {
    nodes: Vec<Node>,
    values: HashMap<String, Value>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl Reader {
    fn add(&mut self, name: &str, node: Node) -> Option<Value> {
        let value = Value(u32::try_from(self.nodes.len()).ok()?);
        self.nodes.push(node);
        self.values.insert(name.trim().to_owned(), value);
        Some(value)
    }

    fn values(&self, list: &str) -> Option<Vec<Value>> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| self.values.get(name).copied()).try_listed()
    }

    fn parameters(&mut self, line: &str) -> Option<()> {
        let list = between(line, "@main(", ") ->")?;
        for (number, parameter) in list.split(", ").filter(|parameter| !parameter.is_empty()).enumerate() {
            let (name, ty) = parameter.split_once(':')?;
            let (dtype, shape) = tensor(ty.strip_suffix(REUSED).unwrap_or(ty))?;
            let value = self.add(name, Node { op: Op::Input(number), operands: Vec::new(), dtype, shape })?;
            self.inputs.push(value);
        }
        Some(())
    }

    fn statement(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.trim().strip_prefix("\"func.return\"(") {
            self.outputs = self.values(rest.split_once(')')?.0)?;
            return Some(());
        }
        let (name, rest) = line.split_once(" = ")?;
        let op = between(rest, "\"stablehlo.", "\"")?;
        let (_, rest) = rest.split_once("\"(")?;
        let (operands, rest) = rest.split_once(')')?;
        let (region, rest) = match rest.trim_start().strip_prefix("({") {
            Some(inside) => inside.split_once("})")?,
            None => ("", rest),
        };
        let (attributes, signature) = rest.rsplit_once(" : (")?;
        let (dtype, shape) = tensor(signature.rsplit_once("-> ")?.1)?;
        let line = Line { op, operands: self.values(operands)?, attributes, region };
        let node = if op == "constant" {
            let bits = literal(between(attributes, "dense<", ">")?, dtype)?;
            Node { op: Op::Constant(bits), operands: Vec::new(), dtype, shape }
        } else {
            let (op, count) = line.op()?;
            Node { op, operands: line.operands.get(..count)?.to_vec(), dtype, shape }
        };
        self.add(name, node).map(|_| ())
    }
}

/// The argument whose memory the first result takes, if the text says so.
#[cfg(feature = "pjrt")]
#[doc(hidden)]
pub fn reused_input(text: &str) -> Option<usize> {
    let list = between(text, "@main(", ") ->")?;
    list.split(", ").position(|parameter| parameter.ends_with(REUSED))
}

impl Graph {
    /// Reads what [`Graph::stablehlo`] writes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the line that is something else.
    pub fn from_stablehlo(text: &str) -> Result<Self> {
        let mut reader = Reader::default();
        let mut lines = text.lines();
        let mut name = "main";
        while let Some(line) = lines.next() {
            let mut whole = line.to_owned();
            // A region goes over several lines.
            if line.trim_end().ends_with("({") {
                for more in lines.by_ref() {
                    whole += more;
                    if more.trim_start().starts_with("})") {
                        break;
                    }
                }
            }
            let read = match line.trim() {
                "" | "}" => Some(()),
                trimmed if trimmed.starts_with("module") => {
                    name = between(trimmed, "@", " ").unwrap_or("main");
                    Some(())
                }
                trimmed if trimmed.starts_with("func.func") => reader.parameters(line),
                _ => reader.statement(&whole),
            };
            read.ok_or_else(|| Error::Unsupported {
                kernel: "StableHLO".to_owned(),
                device: "the simulator".to_owned(),
                construct: line.trim().chars().take(120).collect(),
                report: String::new(),
            })?;
        }
        let mut graph = Self::new(name);
        graph.nodes = reader.nodes;
        graph.inputs = reader.inputs;
        graph.outputs = reader.outputs;
        Ok(graph)
    }
}
