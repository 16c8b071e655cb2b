//! An expression as a WGSL function `element(i)`: the value of its element `i`, row-major. The text holds no sizes and no numbers, which come
//! from a uniform, so that one kernel serves all of them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::graph::{Binary, Node, Typed, Unary, View};
use super::shape::{broadcast_strides, collapse};
use crate::error::{Error, Result};
use crate::tensor::{DType, Tensor};

/// The functions that expressions use, linked for devices whose own functions are not accurate.
const PORTABLE: &str = include_str!("../prepared/elementwise_functions.portable.wgsl");
/// The same for devices whose own functions are.
const NATIVE: &str = include_str!("../prepared/elementwise_functions.native.wgsl");

/// An expression's part of a kernel.
pub(super) struct Emitted {
    /// Declarations of its storage bindings `x0`, `x1`, … at the bindings 1, 2, …, and `fn element(i: u32)`.
    pub(super) text: String,
    /// Its words of the uniform `words`: `word(0)` is the first of them.
    pub(super) words: Vec<u32>,
    /// What is bound to `x0`, `x1`, …
    pub(super) tensors: Vec<Tensor>,
}

/// The functions for both kinds of device.
pub(super) fn libraries() -> [&'static str; 2] {
    [PORTABLE, NATIVE]
}

/// The WGSL type in which elements of a dtype are computed.
pub(super) fn scalar(dtype: DType) -> &'static str {
    match dtype {
        DType::I32 => "i32",
        DType::U32 => "u32",
        _ => "f32",
    }
}

/// The WGSL type that elements of a dtype are stored as: two f16 in a word, so that no device needs to have f16.
pub(super) fn stored(dtype: DType) -> &'static str {
    if dtype == DType::F16 { "u32" } else { scalar(dtype) }
}

struct Emitter<'a> {
    output: &'a [usize],
    tensors: Vec<Tensor>,
    /// Binding and view of each distinct read.
    reads: Vec<(usize, usize, Vec<usize>)>,
    constants: Vec<u32>,
    known: HashMap<*const Typed, String>,
    lines: String,
    next: usize,
}

/// Emits an expression, whose output has the shape `output`. `first` is the place of its first word.
pub(super) fn emit(typed: &Arc<Typed>, output: &[usize], first: usize) -> Result<Emitted> {
    let mut emitter = Emitter {
        output,
        tensors: Vec::new(),
        reads: Vec::new(),
        constants: Vec::new(),
        known: HashMap::new(),
        lines: String::new(),
        next: 0,
    };
    let result = emitter.value(typed)?;
    emitter.finish(&result, scalar(typed.dtype), first)
}

/// Distinct tensors that an expression reads, at most: with the output and the uniform, what every device binds.
pub(super) const MOST_TENSORS: usize = 7;

/// The distinct tensors that an expression reads.
pub(super) fn tensors(typed: &Arc<Typed>, into: &mut Vec<Tensor>) {
    match &typed.node {
        Node::Read(view) => {
            if !into.iter().any(|known| Arc::ptr_eq(&known.inner, &view.tensor.inner)) {
                into.push(view.tensor.clone());
            }
        }
        Node::Constant(_) => {}
        Node::Unary(_, a) | Node::Cast(a) => tensors(a, into),
        Node::Binary(_, a, b) => [a, b].into_iter().for_each(|node| tensors(node, into)),
        Node::Select(a, b, c) => [a, b, c].into_iter().for_each(|node| tensors(node, into)),
    }
}

impl Emitter<'_> {
    fn name(&mut self, line: &str) -> String {
        let name = format!("v{}", self.next);
        self.next += 1;
        let _ = writeln!(self.lines, "    let {name} = {line};");
        name
    }

    fn value(&mut self, typed: &Arc<Typed>) -> Result<String> {
        if let Some(name) = self.known.get(&Arc::as_ptr(typed)) {
            return Ok(name.clone());
        }
        let line = match &typed.node {
            Node::Read(view) => self.read(view, typed),
            Node::Constant(value) => self.constant(*value, typed.dtype),
            Node::Unary(op, a) => unary(*op, &self.value(a)?),
            Node::Binary(op, a, b) => {
                let (x, y) = (self.value(a)?, self.value(b)?);
                binary(*op, &x, &y, scalar(a.dtype))
            }
            Node::Select(condition, a, b) => {
                let (c, x, y) = (self.value(condition)?, self.value(a)?, self.value(b)?);
                format!("select({y}, {x}, {c} != 0u)")
            }
            Node::Cast(a) => {
                let x = self.value(a)?;
                match (scalar(a.dtype), scalar(typed.dtype)) {
                    (from, to) if from == to => x,
                    // NaN has no order: it would come out as any number.
                    ("f32", to) => format!("{to}(select({x}, 0.0, {x} != {x}))"),
                    (_, to) => format!("{to}({x})"),
                }
            }
        };
        let rounded = typed.dtype == DType::F16 && matches!(typed.node, Node::Cast(_));
        let line = if rounded { format!("unpack2x16float(pack2x16float(vec2f({line}, 0.0))).x") } else { line };
        let name = self.name(&line);
        self.known.insert(Arc::as_ptr(typed), name.clone());
        Ok(name)
    }

    fn read(&mut self, view: &View, typed: &Typed) -> String {
        let place = self.tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &view.tensor.inner));
        let binding = place.unwrap_or_else(|| {
            self.tensors.push(view.tensor.clone());
            self.tensors.len() - 1
        });
        let strides = broadcast_strides(&typed.shape, &view.strides, self.output);
        let read = (binding, view.offset, strides);
        let number = self.reads.iter().position(|known| *known == read).unwrap_or_else(|| {
            self.reads.push(read);
            self.reads.len() - 1
        });
        if typed.dtype == DType::F16 {
            format!("unpack2x16float(x{binding}[at{number} >> 1u])[at{number} & 1u]")
        } else {
            format!("x{binding}[at{number}]")
        }
    }

    fn constant(&mut self, value: f64, dtype: DType) -> String {
        let bits = match dtype {
            DType::I32 => (value as i32).cast_unsigned(),
            DType::U32 => value as u32,
            _ => (value as f32).to_bits(),
        };
        let place = self.constants.iter().position(|&known| known == bits).unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        });
        format!("bitcast<{}>(constant{place})", scalar(dtype))
    }

    /// The function, with the indices of its reads before it.
    fn finish(self, result: &str, scalar: &'static str, first: usize) -> Result<Emitted> {
        let views: Vec<Vec<usize>> = self.reads.iter().map(|(_, _, strides)| strides.clone()).collect();
        let collapsed = collapse(self.output, &views);
        let mut words = Vec::new();
        let mut index = String::new();
        let rank = collapsed.shape.len();
        let word = |value: usize, words: &mut Vec<u32>| -> Result<String> {
            let place = first + words.len();
            words.push(u32::try_from(value).map_err(|_| too_large(value))?);
            Ok(word_text(place))
        };
        // A view along which the output runs straight on needs no coordinates.
        let straight = |strides: &[usize]| rank == 0 || rank == 1 && strides[0] <= 1;
        let coordinates = collapsed.strides.iter().any(|strides| !straight(strides) && strides.iter().any(|&s| s != 0));
        if coordinates {
            let _ = writeln!(index, "    var rest = i;");
            for axis in (1..rank).rev() {
                let side = word(collapsed.shape[axis], &mut words)?;
                let _ = writeln!(index, "    let c{axis} = rest % {side};\n    rest /= {side};");
            }
            let _ = writeln!(index, "    let c0 = rest;");
        }
        for (number, ((_, offset, _), strides)) in self.reads.iter().zip(&collapsed.strides).enumerate() {
            let start = if *offset == 0 { String::new() } else { format!("{} + ", word(*offset, &mut words)?) };
            let place = if strides.iter().all(|&stride| stride == 0) {
                "0u".to_owned()
            } else if straight(strides) {
                "i".to_owned()
            } else {
                let mut terms = Vec::new();
                for (axis, &stride) in strides.iter().enumerate() {
                    match stride {
                        0 => {}
                        1 => terms.push(format!("c{axis}")),
                        _ => terms.push(format!("c{axis} * {}", word(stride, &mut words)?)),
                    }
                }
                terms.join(" + ")
            };
            let _ = writeln!(index, "    let at{number} = {start}{place};");
        }
        for (number, bits) in self.constants.iter().enumerate() {
            let _ = writeln!(index, "    let constant{number} = {};", word_text(first + words.len()));
            words.push(*bits);
        }
        let mut text = String::new();
        for (number, tensor) in self.tensors.iter().enumerate() {
            let (binding, stored) = (number + 1, stored(tensor.dtype()));
            let _ = writeln!(text, "@group(0) @binding({binding}) var<storage, read> x{number}: array<{stored}>;");
        }
        let _ = write!(text, "\nfn element(i: u32) -> {scalar} {{\n{index}{}    return {result};\n}}\n", self.lines);
        Ok(Emitted { text, words, tensors: self.tensors })
    }
}

/// Word `place` of the uniform.
pub(super) fn word_text(place: usize) -> String {
    format!("words[{}].{}", place / 4, ["x", "y", "z", "w"][place % 4])
}

pub(super) fn too_large(value: usize) -> Error {
    Error::InvalidSize {
        what: "an operation".to_owned(),
        reason: format!("{value} elements or steps between them are more than 32 bits hold: use smaller parts"),
    }
}

fn unary(op: Unary, x: &str) -> String {
    match op {
        Unary::Neg => format!("-{x}"),
        Unary::Abs => format!("abs({x})"),
        Unary::Sqrt => format!("sqrt({x})"),
        Unary::Exp => format!("float_exp({x})"),
        Unary::Log => format!("float_log({x})"),
        Unary::Sin => format!("float_sin({x})"),
        Unary::Cos => format!("float_cos({x})"),
        Unary::Tanh => format!("float_tanh({x})"),
        Unary::Relu => format!("float_relu({x})"),
        Unary::Sigmoid => format!("float_sigmoid({x})"),
        Unary::Silu => format!("float_silu({x})"),
        Unary::Gelu => format!("float_gelu({x})"),
        Unary::GeluTanh => format!("float_gelu_tanh({x})"),
        Unary::Erf => format!("float_erf({x})"),
    }
}

fn binary(op: Binary, x: &str, y: &str, scalar: &str) -> String {
    let floats = scalar == "f32";
    let compare = |sign: &str| format!("select(0u, 1u, {x} {sign} {y})");
    match op {
        Binary::Add => format!("{x} + {y}"),
        Binary::Sub => format!("{x} - {y}"),
        Binary::Mul => format!("{x} * {y}"),
        Binary::Div => format!("{x} / {y}"),
        Binary::Pow => format!("float_power({x}, {y})"),
        Binary::Min if floats => format!("float_min({x}, {y})"),
        Binary::Max if floats => format!("float_max({x}, {y})"),
        Binary::Min => format!("min({x}, {y})"),
        Binary::Max => format!("max({x}, {y})"),
        Binary::Eq => compare("=="),
        Binary::Ne => compare("!="),
        Binary::Lt => compare("<"),
        Binary::Le => compare("<="),
        Binary::Gt => compare(">"),
        Binary::Ge => compare(">="),
    }
}
