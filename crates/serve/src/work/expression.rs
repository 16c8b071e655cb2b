//! Expressions: `["mul", "x", ["add", "y", 2]]`. A function is a list that begins with its name; texts are inputs, and an object at the end says
//! its other arguments: `["sum", "x", {"axes": [0]}]`. Functions of elements are those of the library's table.

use cantus::ops::{Binary, Expr, Unary};
use cantus::{DType, Engine};
use serde::Deserialize;

use super::array::{Array, DTypeName, EXACT, Number};
use super::forms::ExpressionWork;
use super::output::Output;
use super::{Failure, escaped};
use crate::body::MOST_ARRAYS;
use crate::job::Shape;
use crate::problem::Problem;

/// A part of an expression.
#[derive(Debug, Clone)]
pub enum Node {
    /// A number, beside something with a dtype.
    Number(Number),
    /// An input.
    Input(String),
    /// A function of parts.
    Call(String, Vec<Self>, Box<Options>),
}

impl Node {
    /// Returns the number of its parts.
    pub fn parts(&self) -> usize {
        match self {
            Self::Call(_, operands, _) => 1 + operands.iter().map(Self::parts).sum::<usize>(),
            _ => 1,
        }
    }
}

/// The arguments of functions besides their operands.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    axis: Option<isize>,
    #[serde(default)]
    axes: Vec<isize>,
    #[serde(default)]
    keep: bool,
    correction: Option<f64>,
    shape: Option<Vec<usize>>,
    dtype: Option<DTypeName>,
    low: Option<Number>,
    high: Option<Number>,
    #[serde(default)]
    descending: bool,
    ranges: Option<Vec<(usize, usize)>>,
}

impl Options {
    /// The names of the arguments that are given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("axis", self.axis.is_some()),
            ("axes", !self.axes.is_empty()),
            ("keep", self.keep),
            ("correction", self.correction.is_some()),
            ("shape", self.shape.is_some()),
            ("dtype", self.dtype.is_some()),
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("descending", self.descending),
            ("ranges", self.ranges.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
    }
}

/// The arguments that a function takes besides its operands.
fn taken(function: &str) -> &'static [&'static str] {
    match function {
        "clamp" => &["low", "high"],
        "cast" => &["dtype"],
        "sum" | "prod" | "max" | "min" | "mean" | "any" | "all" => &["axes", "keep"],
        "variance" | "std" => &["axes", "keep", "correction"],
        "argmax" | "argmin" => &["axis", "keep"],
        "softmax" | "log_softmax" | "cumsum" | "cumprod" | "fft" | "ifft" | "concat" => &["axis"],
        "sort" | "argsort" => &["axis", "descending"],
        "reshape" | "broadcast_to" => &["shape"],
        "permute" => &["axes"],
        "slice" => &["ranges"],
        _ => &[],
    }
}

crate::work::described!(Node, "", { "type": "array" });

/// The schema of [`Node`], which utoipa's types cannot say: generators take no schema that refers to itself, so what is within a list is left open.
pub fn node_schema() -> serde_json::Value {
    let options = serde_json::json!({ "type": "object", "additionalProperties": true });
    let list = serde_json::json!({ "type": "array", "items": { "description": "A part." } });
    serde_json::json!({
        "description": "A number, the name of an input, or a list: a function's name, its operands, and an object of its other arguments, as in [\"add\", \"x\", [\"mul\", \"y\", 2]] and [\"sum\", \"x\", {\"axes\": [0]}]. The page /docs lists the functions.",
        "anyOf": [
            { "type": "number" },
            { "type": "string" },
            { "type": "array", "minItems": 2, "items": { "anyOf": [{ "type": "number" }, { "type": "string" }, options, list] } },
        ],
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// An item of a list: a part, or what is needed besides.
        enum Item {
            Part(Node),
            Options(Box<Options>),
        }
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Item;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, an input's name, or a list that begins with a function's name")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Item, E> {
                Ok(Item::Part(Node::Number(Number::Natural(value))))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Item, E> {
                Ok(Item::Part(Node::Number(Number::Integer(value))))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Item, E> {
                Ok(Item::Part(Node::Number(Number::Float(value))))
            }
            fn visit_str<E>(self, value: &str) -> Result<Item, E> {
                Ok(Item::Part(Node::Input(value.to_owned())))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
                Options::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(|options| Item::Options(Box::new(options)))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
                use serde::de::Error as _;
                let name: String = items.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let (mut parts, mut options) = (Vec::new(), None);
                while let Some(item) = items.next_element::<Wrapped>()? {
                    match item.0 {
                        _ if options.is_some() => return Err(A::Error::custom("the object must come last")),
                        Item::Part(part) => parts.push(part),
                        Item::Options(given) => options = Some(given),
                    }
                }
                Ok(Item::Part(Node::Call(name, parts, options.unwrap_or_default())))
            }
        }
        struct Wrapped(Item);
        impl<'de> Deserialize<'de> for Wrapped {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Visitor).map(Self)
            }
        }
        match Wrapped::deserialize(from)?.0 {
            Item::Part(part) => Ok(part),
            Item::Options(_) => Err(serde::de::Error::custom("an expression is not an object")),
        }
    }
}

/// Functions that are not of elements alone, with the number of their operands (0: one or more) and what they are.
pub const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("where", 3, "the second where the first is true, elsewhere the third"),
    ("clamp", 1, "limited to low and high"),
    ("cast", 1, "converted to dtype"),
    ("sum", 1, "the sum over axes (all without); keep leaves them with length 1"),
    ("prod", 1, "the product over axes"),
    ("max", 1, "the largest over axes"),
    ("min", 1, "the smallest over axes"),
    ("mean", 1, "the mean over axes"),
    ("variance", 1, "the variance over axes, with correction"),
    ("std", 1, "the standard deviation over axes, with correction"),
    ("any", 1, "whether any is not 0 over axes"),
    ("all", 1, "whether none is 0 over axes"),
    ("argmax", 1, "the place of the largest along axis"),
    ("argmin", 1, "the place of the smallest along axis"),
    ("softmax", 1, "exponentials that sum to 1 along axis"),
    ("log_softmax", 1, "their logarithms"),
    ("cumsum", 1, "running sums along axis"),
    ("cumprod", 1, "running products along axis"),
    ("sort", 1, "sorted along axis, descending or not"),
    ("argsort", 1, "the places of what is sorted along axis"),
    ("fft", 1, "the discrete Fourier transform along axis"),
    ("ifft", 1, "its inverse"),
    ("matmul", 2, "the product of matrices"),
    ("solve", 2, "the solution of a system of equations"),
    ("inverse", 1, "the inverse of a matrix"),
    ("det", 1, "the determinant of a matrix"),
    ("cholesky", 1, "the Cholesky factor of a matrix"),
    ("reshape", 1, "with this shape"),
    ("broadcast_to", 1, "repeated to this shape"),
    ("permute", 1, "with its axes in this order"),
    ("transpose", 1, "with its last two axes exchanged"),
    ("slice", 1, "the part in ranges, a [start, stop] for each axis"),
    ("concat", 0, "joined along axis"),
];

/// The most parts of an expression.
const MOST: usize = 1000;

fn unary(name: &str) -> Option<Unary> {
    Unary::ALL.iter().copied().find(|function| function.name() == name)
}

fn binary(name: &str) -> Option<Binary> {
    Binary::ALL.iter().copied().find(|function| function.name() == name)
}

/// Checks names and numbers of operands, and the inputs.
pub fn check(work: &mut ExpressionWork, memory: u64) -> Result<(), Problem> {
    if work.inputs.len() > MOST_ARRAYS {
        return Err(Problem::invalid(format!("an expression has at most {MOST_ARRAYS} inputs")).at("/inputs"));
    }
    let mut bytes = 0_u64;
    for (name, array) in &mut work.inputs {
        array.check(&format!("/inputs/{}", escaped(name)))?;
        bytes = bytes.saturating_add(array.length().unwrap_or(usize::MAX) as u64);
    }
    if bytes > memory / 2 {
        return Err(Problem::too_large(format!("inputs may take at most {} bytes here", memory / 2)).at("/inputs"));
    }
    if let Node::Number(_) = work.expression {
        return Err(Problem::invalid("a number alone has no dtype: combine it with an input").at("/expression"));
    }
    let mut parts = 0;
    check_node(&work.expression, work, "/expression", &mut parts)
}

fn check_node(node: &Node, work: &ExpressionWork, pointer: &str, parts: &mut usize) -> Result<(), Problem> {
    *parts += 1;
    if *parts > MOST {
        return Err(Problem::invalid(format!("an expression has at most {MOST} parts")).at(pointer));
    }
    match node {
        Node::Number(_) => Ok(()),
        Node::Input(name) if work.inputs.contains_key(name) => Ok(()),
        Node::Input(name) => Err(Problem::invalid(format!("there is no input \"{}\"", cut(name))).at(pointer)),
        Node::Call(name, operands, options) => {
            let count = if unary(name).is_some() {
                1
            } else if binary(name).is_some() {
                2
            } else {
                let known = FUNCTIONS.iter().find(|(known, ..)| known == name);
                known.map(|(_, count, _)| *count).ok_or_else(|| {
                    Problem::invalid(format!("there is no function \"{}\"", cut(name))).at(format!("{pointer}/0"))
                })?
            };
            if operands.is_empty() || count != 0 && operands.len() != count {
                return Err(Problem::invalid(format!("{name} takes {} operands", count.max(1))).at(pointer));
            }
            if operands.iter().all(|operand| matches!(operand, Node::Number(_))) {
                return Err(Problem::invalid("numbers alone have no dtype: combine them with an input").at(pointer));
            }
            if let Some(argument) = options.given().find(|given| !taken(name).contains(given)) {
                return Err(Problem::invalid(format!("{name} does not take {argument}")).at(pointer));
            }
            let needed = match name.as_str() {
                "clamp" => {
                    options.low.and_then(Number::real).is_some() && options.high.and_then(Number::real).is_some()
                }
                "cast" => options.dtype.is_some(),
                "reshape" | "broadcast_to" => options.shape.is_some(),
                "slice" => options.ranges.is_some(),
                _ => true,
            };
            if !needed {
                return Err(Problem::invalid(format!("{name} needs an object: see /docs")).at(pointer));
            }
            let (low, high) = (options.low, options.high);
            if low.zip(high).is_some_and(|(low, high)| match (low.whole(), high.whole()) {
                (Some(low), Some(high)) => low > high,
                _ => low.real() > high.real(),
            }) {
                return Err(Problem::invalid("the lower limit exceeds the upper").at(pointer));
            }
            for (place, operand) in operands.iter().enumerate() {
                check_node(operand, work, &format!("{pointer}/{}", place + 1), parts)?;
            }
            Ok(())
        }
    }
}

fn cut(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Returns the common key of requests that can become one: an expression of elements over inputs of one shape.
pub fn alike(work: &ExpressionWork, most: usize) -> Option<String> {
    fn elementwise(node: &Node) -> bool {
        match node {
            Node::Number(_) | Node::Input(_) => true,
            Node::Call(name, operands, _) => {
                (unary(name).is_some() || binary(name).is_some() || matches!(name.as_str(), "where" | "clamp" | "cast"))
                    && operands.iter().all(elementwise)
            }
        }
    }
    let mut inputs = work.inputs.values();
    let shape = inputs.next()?.sides();
    let small = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))? <= most;
    if !small || inputs.any(|input| input.sides() != shape) || !elementwise(&work.expression) {
        return None;
    }
    let dtypes: Vec<_> = work.inputs.iter().map(|(name, input)| (name, input.dtype)).collect();
    Some(format!("{dtypes:?} {:?}", work.expression))
}

/// The inputs on a device.
type Inputs = std::collections::BTreeMap<String, Expr>;

pub fn run(engine: &Engine, work: &ExpressionWork, memory: u64) -> Result<Output, Failure> {
    let mut inputs = Inputs::new();
    for (name, array) in &work.inputs {
        let tensor = engine.tensor_from_bytes(array.dtype.dtype(), &array.sides(), array.bytes()?)?;
        inputs.insert(name.clone(), tensor.expr());
    }
    let result = build(&work.expression, &inputs, "/expression", memory)?.eval()?;
    Ok(Output::of(&result)?)
}

/// Several requests with the same expression of elements, as one.
pub fn run_alike(engine: &Engine, works: &[&ExpressionWork], memory: u64) -> Result<Vec<Output>, Failure> {
    let Some(first) = works.first() else { return Ok(Vec::new()) };
    let mut inputs = Inputs::new();
    for (name, array) in &first.inputs {
        let mut bytes = Vec::new();
        for work in works {
            bytes.extend_from_slice(work.inputs.get(name).ok_or_else(Problem::internal)?.bytes()?);
        }
        let dtype = array.dtype.dtype();
        let tensor = engine.tensor_from_bytes(dtype, &[bytes.len() / dtype.bytes()], &bytes)?;
        inputs.insert(name.clone(), tensor.expr());
    }
    let result = Output::of(&build(&first.expression, &inputs, "/expression", memory)?.eval()?)?;
    let dtype: DType = result.shape.dtype.parse()?;
    let mut rest = result.bytes.as_slice();
    works
        .iter()
        .map(|work| {
            let sides = work.inputs.values().next().map(Array::sides).unwrap_or_default();
            let length = sides.iter().product::<usize>() * dtype.bytes();
            let (own, after) = rest.split_at_checked(length).ok_or_else(Problem::internal)?;
            rest = after;
            let shape = Shape { dtype: result.shape.dtype.clone(), shape: sides, hex: None };
            Ok(Output { shape, bytes: super::copied(own)? })
        })
        .collect()
}

/// Builds an expression; a part that does not fit is named by its place, before anything is computed.
fn build(node: &Node, inputs: &Inputs, pointer: &str, memory: u64) -> Result<Expr, Problem> {
    let expr = match node {
        Node::Input(name) => return inputs.get(name).cloned().ok_or_else(Problem::internal),
        Node::Number(_) => return Err(Problem::invalid("a number alone has no dtype").at(pointer)),
        Node::Call(name, operands, options) => {
            #[expect(clippy::disallowed_methods, reason = "an expression has a bounded number of parts")]
            let mut parts: Vec<Option<Expr>> = Vec::with_capacity(operands.len());
            for (place, operand) in operands.iter().enumerate() {
                parts.push(match operand {
                    Node::Number(_) => None,
                    _ => Some(build(operand, inputs, &format!("{pointer}/{}", place + 1), memory)?),
                });
            }
            // A number takes the dtype of what it is beside; of a choice the first is a condition.
            let beside = parts.iter().skip(usize::from(name == "where")).flatten().next().cloned();
            let beside = beside.or_else(|| parts.iter().flatten().next().cloned()).ok_or_else(Problem::internal)?;
            let parts: Vec<Expr> = operands
                .iter()
                .zip(parts)
                .map(|(operand, part)| match (operand, part) {
                    (Node::Number(value), _) => constant(&beside, *value),
                    (_, Some(part)) => part,
                    _ => beside.clone(),
                })
                .collect();
            call(name, &parts, options).ok_or_else(Problem::internal)?
        }
    };
    let shaped = expr.shape().and_then(|shape| Ok((shape.to_vec(), expr.dtype()?)));
    let (shape, dtype) = shaped.map_err(|error| Problem::of(&error).at(pointer))?;
    let bytes = shape.iter().try_fold(dtype.bytes(), |product, &side| product.checked_mul(side));
    if bytes.is_none_or(|bytes| bytes as u64 > memory / 2) {
        return Err(Problem::too_large(format!(
            "a result may take at most {} bytes here; its shape is {shape:?}",
            memory / 2
        ))
        .at(pointer));
    }
    Ok(expr)
}

/// A number of its neighbour's dtype. The library's constants are float64s; a whole number that none is exactly is put together from its
/// halves.
fn constant(beside: &Expr, number: Number) -> Expr {
    let exactly = |whole: &i128| match beside.dtype() {
        Ok(DType::I64) => i64::try_from(*whole).is_ok(),
        Ok(DType::U64) => u64::try_from(*whole).is_ok(),
        _ => false,
    };
    match number.whole().filter(|whole| whole.abs() > EXACT).filter(exactly) {
        Some(whole) => {
            let (high, low) = ((whole >> 32) as f64, (whole & 0xffff_ffff) as f64);
            beside.constant(high) * beside.constant(4_294_967_296.0) + beside.constant(low)
        }
        // What is no number of the dtype is refused by the library, which says why.
        None => beside.constant(number.real().unwrap_or(f64::NAN)),
    }
}

fn call(name: &str, parts: &[Expr], options: &Options) -> Option<Expr> {
    let x = parts.first()?;
    if let Some(function) = unary(name) {
        return Some(x.unary(function));
    }
    if let Some(function) = binary(name) {
        return Some(x.binary(function, parts.get(1)?));
    }
    let (axes, keep) = (options.axes.as_slice(), options.keep);
    let axis = options.axis.unwrap_or(-1);
    let correction = options.correction.unwrap_or(0.0);
    Some(match name {
        "where" => x.select(parts.get(1)?, parts.get(2)?),
        "clamp" => {
            let (low, high) = (options.low?, options.high?);
            if [low, high].iter().any(|limit| limit.whole().is_some_and(|whole| whole.abs() > EXACT)) {
                x.maximum(constant(x, low)).minimum(constant(x, high))
            } else {
                x.clamp(low.real()?, high.real()?)
            }
        }
        "cast" => x.cast(options.dtype?.dtype()),
        "sum" => x.sum(axes, keep),
        "prod" => x.prod(axes, keep),
        "max" => x.max(axes, keep),
        "min" => x.min(axes, keep),
        "mean" => x.mean(axes, keep),
        "variance" => x.variance(axes, correction, keep),
        "std" => x.std(axes, correction, keep),
        "any" => x.any(axes, keep),
        "all" => x.all(axes, keep),
        "argmax" => x.argmax(options.axis, keep),
        "argmin" => x.argmin(options.axis, keep),
        "softmax" => x.softmax(axis),
        "log_softmax" => x.log_softmax(axis),
        "cumsum" => x.cumsum(axis),
        "cumprod" => x.cumprod(axis),
        "sort" => x.sort(axis, options.descending),
        "argsort" => x.argsort(axis, options.descending),
        "fft" => x.fft(axis),
        "ifft" => x.ifft(axis),
        "matmul" => x.matmul(parts.get(1)?),
        "solve" => x.solve(parts.get(1)?),
        "inverse" => x.inverse(),
        "det" => x.det(),
        "cholesky" => x.cholesky(),
        "reshape" => x.reshape(options.shape.as_ref()?),
        "broadcast_to" => x.broadcast_to(options.shape.as_ref()?),
        "permute" => x.permute(axes),
        "transpose" => x.transpose(),
        "slice" => {
            let ranges: Vec<_> = options.ranges.as_ref()?.iter().map(|&(start, stop)| start..stop).collect();
            x.slice(&ranges)
        }
        "concat" => x.concat(parts.get(1..)?, options.axis.unwrap_or(0)),
        _ => return None,
    })
}

/// Every function, for the page.
pub fn functions() -> Vec<(String, String)> {
    let elements = Unary::ALL.iter().map(|function| (function.name(), "of one element", function.accuracy()));
    let pairs = Binary::ALL.iter().map(|function| (function.name(), "of two elements", function.accuracy()));
    let elements = elements.chain(pairs).map(|(name, of, error)| (name.to_owned(), format!("{of}; error {error}")));
    elements.chain(FUNCTIONS.iter().map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()))).collect()
}
