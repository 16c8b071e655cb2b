//! Text generation: an expression as a WGSL function that returns the value of one element, given its position.
//!
//! # What comes in
//! A lowered expression of which every read has its tensor; a name; the iteration `space` (a shape to which the expression broadcasts); and `Group`s of
//! its axes. A group is counted by one variable: `row` and `column` of an elementwise kernel, `row` and `place` of a reduction. With `fused`, the
//! function takes the result of that operation as its first parameter `value`.
//!
//! # Stages
//! `Writer::function` runs an `Emitter` over the expression.
//! 1. `Emitter::value` goes from a node to its inputs and writes one `let` for each node. A node that is read twice is written once (`known`, by
//!    address).
//! 2. `Emitter::read` notes what is read: the binding, the offset, and the strides in the iteration's space. Equal reads share one position.
//! 3. `Emitter::write` computes the positions. Within a group, axes that lie in memory without gaps are joined (`shape::collapse`), so most groups need
//!    one product and no division. Only a group that does not collapse is split with `%` and `/`.
//! 4. `Writer::text` joins the uniform, the bindings `x0`, `x1`, … and `y`, the functions, and the frame: a file of `shaders/tensor` that calls the
//!    functions by name. `library::linked` adds the library's functions that the text calls. `Grid` (in `evaluate`) chooses the groups of an elementwise
//!    kernel.
//!
//! # What carries it
//! The `words` of a `Writer` are its uniform: the frame's own words first, then offsets, strides, sides and constants in the order in which they are
//! used. Numbers that are equal as bits share one constant within a function.
//!
//! # What holds
//! - The text has no sizes and, except some float64 constants, no numbers. `evaluate::kernel` keeps kernels by their text, so another size compiles
//!   nothing.
//! - Sizes and strides fit in 32 bits (`word`), and at most `MOST_TENSORS` tensors are bound.
//! - Types narrower than a word are loaded as parts of words and computed in i32, u32 or f32 (`number`). A result of an operator on narrow integers is
//!   wrapped at once, so it has the bits that its dtype has.
//!
//! # What is surprising
//! - A gather's index is clamped in the kernel. Indices out of range are reported elsewhere (`engine/index_checks.rs`).
//! - Two shapes share a kernel only if their axes collapse alike.
//!
//! # An example
//! The input of `(x * 2 + 1).sum(&[1], false)`, where `x` has shape `[3, 1000]`. The frame has four words (`words[0]`): rows, length, part, parts.
//! ```text
//! fn element(row: u32, place: u32) -> f32 {
//!     let at0 = row * words[1].x + place;     // 1000
//!     let constant0 = words[1].y;             // the bits of 2.0
//!     let constant1 = words[1].z;             // the bits of 1.0
//!     let v0 = x0[at0];
//!     let v1 = bitcast<f32>(constant0);
//!     let v2 = v0 * v1;
//!     let v3 = bitcast<f32>(constant1);
//!     let v4 = v2 + v3;
//!     return v4;
//! }
//! ```
//! The comments are not part of the text.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::deferred::Deferred;
use super::node::{Node, RandomKind, Source, Typed, View};
use super::number::{converted, loaded, scalar, stored, wrapped};
use super::shape::{broadcast_strides, collapse};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Distinct tensors that a kernel reads, at most: with the output and the uniform, what every device binds.
pub(in crate::ops) const MOST_TENSORS: usize = 7;

/// The names of the bindings of what a kernel reads.
pub(in crate::ops) const NAMES: [&str; MOST_TENSORS] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6"];

/// The distinct tensors that an expression reads; what is not computed yet is not among them.
pub(in crate::ops) fn tensors(typed: &Arc<Typed>, into: &mut Vec<Tensor>) {
    let mut known = Vec::new();
    typed.walk(&mut |node| {
        if let Node::Read(view) | Node::Gather { view, .. } = &node.node
            && let Some(tensor) = view.source.tensor()
        {
            known.push(tensor);
        }
    });
    for tensor in known {
        if !into.iter().any(|other| Arc::ptr_eq(&other.inner, &tensor.inner)) {
            into.push(tensor);
        }
    }
}

/// Some axes of an iteration that a kernel counts with one variable.
pub(in crate::ops) type Group<'a> = (&'a str, Range<usize>);

/// A kernel being written: its functions, the words of its uniform, and the tensors that it reads.
pub(in crate::ops) struct Writer {
    words: Vec<u32>,
    tensors: Vec<Tensor>,
    functions: String,
}

impl Writer {
    /// A kernel whose uniform `words` begins with these.
    pub(in crate::ops) fn new(words: &[u32]) -> Self {
        Self { words: words.to_vec(), tensors: Vec::new(), functions: String::new() }
    }

    /// Adds the function `name(groups…)`, the expression's value at a place of `space`, whose axes the groups cover in order. With `fused`,
    /// its first parameter `value` is the element of that operation's result.
    pub(in crate::ops) fn function(
        &mut self,
        name: &str,
        typed: &Arc<Typed>,
        space: &[usize],
        groups: &[Group<'_>],
        fused: Option<&Arc<Deferred>>,
    ) -> Result<()> {
        let mut emitter = Emitter {
            space,
            fused,
            writer: self,
            reads: Vec::new(),
            constants: Vec::new(),
            known: HashMap::new(),
            lines: String::new(),
            next: 0,
        };
        let result = emitter.value(typed)?;
        emitter.write(name, groups, &result, scalar(typed.dtype))
    }

    fn word(&mut self, value: usize) -> Result<String> {
        let place = self.words.len();
        self.words.push(word(value)?);
        Ok(word_text(place))
    }

    /// The whole text: what `body` enables, the uniform, the bindings `x0`, `x1`, …, then `y`, the functions, and the rest of `body`.
    pub(in crate::ops) fn text(&self, output: &str, body: &str) -> String {
        let enabled = body.split_inclusive('\n').take_while(|line| line.starts_with("enable ")).map(str::len).sum();
        let (enabled, body) = body.split_at(enabled);
        let mut text = format!(
            "{enabled}@group(0) @binding(0) var<uniform> words: array<vec4u, {}>;\n",
            self.words.len().div_ceil(4).max(1)
        );
        for (number, tensor) in self.tensors.iter().enumerate() {
            let (binding, stored) = (number + 1, stored(tensor.dtype()));
            let _ = writeln!(text, "@group(0) @binding({binding}) var<storage, read> x{number}: array<{stored}>;");
        }
        let binding = self.tensors.len() + 1;
        let _ = writeln!(text, "@group(0) @binding({binding}) var<storage, read_write> y: array<{output}>;");
        text + &self.functions + body
    }

    /// The tensors that are bound to `x0`, `x1`, …
    pub(in crate::ops) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The uniform's bytes.
    pub(in crate::ops) fn bytes(&self) -> Vec<u8> {
        let mut padded = self.words.clone();
        padded.resize(self.words.len().div_ceil(4).max(1) * 4, 0);
        padded.iter().flat_map(|word| word.to_le_bytes()).listed()
    }
}

/// A read: its binding (none for indices, whose value is their place), and where it begins and how it runs in the iteration.
#[derive(PartialEq)]
struct Read {
    binding: Option<usize>,
    offset: usize,
    strides: Vec<usize>,
}

struct Emitter<'a> {
    space: &'a [usize],
    fused: Option<&'a Arc<Deferred>>,
    writer: &'a mut Writer,
    reads: Vec<Read>,
    constants: Vec<u32>,
    known: HashMap<*const Typed, String>,
    lines: String,
    next: usize,
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
            Node::Read(view) => match (&view.source, self.fused) {
                (Source::Deferred(deferred), Some(fused)) if Arc::ptr_eq(deferred, fused) => "value".to_owned(),
                _ => {
                    let number = self.read(view, &typed.shape)?;
                    self.element(number, typed.dtype, &format!("at{number}"))
                }
            },
            Node::Gather { view, stride, length, index } => {
                let number = self.read(view, &typed.shape)?;
                let j = self.value(index)?;
                let (stride, length) = (self.constant_word(*stride)?, self.constant_word(*length)?);
                // Negative ones count from the end; what is out of range then is the nearest.
                let j = if index.dtype.computed() == DType::I32 {
                    format!("u32(clamp(select({j}, {j} + i32({length}), {j} < 0), 0, i32({length}) - 1))")
                } else {
                    format!("min({j}, {length} - 1u)")
                };
                let place = self.name(&format!("at{number} + {j} * {stride}"));
                self.element(number, typed.dtype, &place)
            }
            Node::Constant(value) => self.constant(*value, typed.dtype),
            Node::Unary(op, a) => {
                let x = self.value(a)?;
                op.function().wgsl(a.dtype, [&x, ""])?
            }
            Node::Binary(op, a, b) => {
                let (x, y) = (self.value(a)?, self.value(b)?);
                op.function().wgsl(a.dtype, [&x, &y])?
            }
            Node::Select(condition, a, b) => {
                let (c, x, y) = (self.value(condition)?, self.value(a)?, self.value(b)?);
                format!("select({y}, {x}, {c} != 0u)")
            }
            Node::Random { kind, seed, counter } => {
                let counter = self.value(counter)?;
                let [low, high] = [*seed as u32, (*seed >> 32) as u32].map(|bits| self.constant_bits(bits));
                let function = match kind {
                    RandomKind::Bits => "random_bits",
                    RandomKind::Uniform => "float_random_uniform",
                    RandomKind::Normal => "float_random_normal",
                };
                format!("{function}({counter}, vec2u({low}, {high}))")
            }
            Node::Cast(a) => {
                let x = self.value(a)?;
                converted(&x, a.dtype, typed.dtype)
            }
        };
        let line = match &typed.node {
            Node::Unary(..) | Node::Binary(..) => wrapped(typed.dtype, &line).unwrap_or(line),
            _ => line,
        };
        let name = self.name(&line);
        self.known.insert(Arc::as_ptr(typed), name.clone());
        Ok(name)
    }

    /// Notes a read; its number.
    fn read(&mut self, view: &View, shape: &[usize]) -> Result<usize> {
        let binding = match &view.source {
            Source::Indices => None,
            source => {
                let tensor =
                    source.tensor().ok_or_else(|| Error::fault("an expression", "a part of it is not computed yet"))?;
                let tensors = &mut self.writer.tensors;
                let known = tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner));
                Some(known.unwrap_or_else(|| {
                    tensors.push(tensor);
                    tensors.len() - 1
                }))
            }
        };
        let strides = broadcast_strides(shape, &view.strides, self.space);
        let read = Read { binding, offset: view.offset, strides };
        let known = self.reads.iter().position(|known| *known == read);
        Ok(known.unwrap_or_else(|| {
            self.reads.push(read);
            self.reads.len() - 1
        }))
    }

    /// An element of a read, by its number.
    fn element(&self, read: usize, dtype: DType, place: &str) -> String {
        match self.reads.get(read).and_then(|read| read.binding) {
            Some(binding) => loaded(dtype, &format!("x{binding}"), place),
            None => place.to_owned(),
        }
    }

    fn constant(&mut self, value: f64, dtype: DType) -> String {
        match dtype.computed() {
            DType::I32 => format!("bitcast<i32>({})", self.constant_bits((value as i32).cast_unsigned())),
            DType::U32 => format!("bitcast<u32>({})", self.constant_bits(value as u32)),
            DType::I64 => {
                let [low, high] = self.constant_words((value as i64).cast_unsigned());
                format!("i64(bitcast<i32>({high})) * 4294967296li + i64(u64({low}))")
            }
            DType::U64 => {
                let [low, high] = self.constant_words(value as u64);
                format!("u64({high}) * 4294967296lu + u64({low})")
            }
            DType::F64 => self.constant_double(value),
            DType::Complex64 => format!("vec2f(bitcast<f32>({}), 0.0)", self.constant_bits((value as f32).to_bits())),
            DType::Complex128 => format!("vec2<f64>({}, 0.0lf)", self.constant_double(value)),
            _ => format!("bitcast<f32>({})", self.constant_bits((value as f32).to_bits())),
        }
    }

    /// A float64 as a sum of float32s in the uniform, or in the text where no such sum equals it.
    fn constant_double(&mut self, value: f64) -> String {
        let (mut parts, mut rest) = (Vec::new(), value);
        for _ in 0..3 {
            let part = rest as f32;
            parts.push(part);
            rest -= f64::from(part);
            if rest == 0.0 || !value.is_finite() {
                break;
            }
        }
        if value.is_finite() && (rest != 0.0 || parts.iter().any(|part| !(part.is_normal() || *part == 0.0))) {
            return format!("{value:e}lf");
        }
        let terms: Vec<String> =
            parts.iter().map(|part| format!("f64(bitcast<f32>({}))", self.constant_bits(part.to_bits()))).listed();
        terms.join(" + ")
    }

    /// Low and high half.
    fn constant_words(&mut self, bits: u64) -> [String; 2] {
        [bits as u32, (bits >> 32) as u32].map(|word| self.constant_bits(word))
    }

    fn constant_word(&mut self, value: usize) -> Result<String> {
        Ok(self.constant_bits(word(value)?))
    }

    fn constant_bits(&mut self, bits: u32) -> String {
        let place = self.constants.iter().position(|&known| known == bits).unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        });
        format!("constant{place}")
    }

    /// The function, with the places of its reads before it.
    fn write(self, name: &str, groups: &[Group<'_>], result: &str, gives: &'static str) -> Result<()> {
        let mut index = String::new();
        let mut places: Vec<Vec<String>> = vec![Vec::new(); self.reads.len()];
        for (read, terms) in self.reads.iter().zip(&mut places) {
            if read.offset != 0 {
                terms.push(self.writer.word(read.offset)?);
            }
        }
        for (variable, range) in groups {
            let views: Vec<Vec<usize>> = self.reads.iter().map(|read| read.strides[range.clone()].to_vec()).listed();
            let collapsed = collapse(&self.space[range.clone()], &views);
            let rank = collapsed.shape.len();
            let mut split = false;
            for (strides, terms) in collapsed.strides.iter().zip(&mut places) {
                if strides.iter().all(|&stride| stride == 0) {
                    continue;
                }
                let step = strides[rank - 1];
                let straight = (1..rank).all(|axis| strides[axis - 1] == strides[axis] * collapsed.shape[axis]);
                if straight {
                    terms.push(self.writer.product(variable, step)?);
                    continue;
                }
                if !split {
                    split = true;
                    let _ = writeln!(index, "    var {variable}_rest = {variable};");
                    for axis in (1..rank).rev() {
                        let side = self.writer.word(collapsed.shape[axis])?;
                        let _ = writeln!(
                            index,
                            "    let {variable}_{axis} = {variable}_rest % {side};\n    {variable}_rest /= {side};"
                        );
                    }
                    let _ = writeln!(index, "    let {variable}_0 = {variable}_rest;");
                }
                for (axis, &stride) in strides.iter().enumerate() {
                    if stride != 0 {
                        terms.push(self.writer.product(&format!("{variable}_{axis}"), stride)?);
                    }
                }
            }
        }
        for (number, terms) in places.iter().enumerate() {
            let place = if terms.is_empty() { "0u".to_owned() } else { terms.join(" + ") };
            let _ = writeln!(index, "    let at{number} = {place};");
        }
        for (number, &bits) in self.constants.iter().enumerate() {
            let _ = writeln!(index, "    let constant{number} = {};", word_text(self.writer.words.len()));
            self.writer.words.push(bits);
        }
        let mut parameters: Vec<String> = groups.iter().map(|(variable, _)| format!("{variable}: u32")).listed();
        if let Some(fused) = self.fused {
            parameters.insert(0, format!("value: {}", scalar(fused.dtype)));
        }
        let _ = write!(
            self.writer.functions,
            "\nfn {name}({}) -> {gives} {{\n{index}{}    return {result};\n}}\n",
            parameters.join(", "),
            self.lines
        );
        Ok(())
    }
}

impl Writer {
    fn product(&mut self, variable: &str, stride: usize) -> Result<String> {
        if stride == 1 {
            return Ok(variable.to_owned());
        }
        Ok(format!("{variable} * {}", self.word(stride)?))
    }
}

/// Word `place` of the uniform.
pub(in crate::ops) fn word_text(place: usize) -> String {
    format!("words[{}].{}", place / 4, ["x", "y", "z", "w"][place % 4])
}

/// A size as a kernel counts it.
pub(in crate::ops) fn word(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| too_large(value))
}

pub(in crate::ops) fn too_large(value: usize) -> Error {
    Error::limit(
        "an operation",
        format!("{value} elements, or strides between them, exceed 32 bits: use smaller parts"),
    )
}
