//! Chains of operations on elements as data, which a device may run natively in one pass. The evaluator makes them (`ops/expr/chain.rs`), and the CPU runs
//! them (`crates/cpu/src/chain.rs`). Steps refer to earlier steps by number. Words (i32, u32) travel in the bits of float32 lanes, and what a lane means is
//! the function's business: there are functions of floats and functions of words.

use super::native::{Combination, CopyShape, Number};

/// Numbers computed element by element from other tensors; the result is contiguous. They are float32, except in functions named after words, which
/// take the bits of i32 or u32. Inputs of one byte are unsigned bytes or bools; [`One::SignedByte`] converts them to signed ones.
///
/// In a wide chain numbers are float64, and words have 64 bits. Inputs and results of 4 bytes are the low halves of words there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ElementsShape {
    /// Lengths of the result's axes. A row is the elements along the last one.
    pub sides: Vec<usize>,
    /// The inputs' views, in these axes.
    pub inputs: Vec<CopyShape>,
    /// Views of indices: numbers equal to their position, without memory.
    pub places: Vec<CopyShape>,
    /// How inputs are rolled that are read by [`Step::Rolled`].
    pub rolls: Vec<Roll>,
    /// The function of each row in between, and the steps that compute its input.
    pub row: Option<(RowFunction, Vec<Step>)>,
    /// The steps that compute the result; the last one is the result.
    pub steps: Vec<Step>,
    /// Bytes of a number of the result, or of a part of one: 4 for float32 and words, 8 for those of a wide chain, 1 for bytes and bools.
    pub bytes: usize,
    /// Further results: the step of each, and the bytes of its numbers. They are bound before the last step's result.
    pub more: Vec<(u16, usize)>,
    /// Numbers are float64, and words have 64 bits.
    pub wide: bool,
    /// Where results are complex numbers, the step of their real parts: the last step is that of their imaginary ones.
    pub pair: Option<u16>,
}

impl ElementsShape {
    /// Creates a chain of steps that end with the result.
    #[must_use]
    pub fn new(sides: &[usize], inputs: Vec<CopyShape>, steps: Vec<Step>) -> Self {
        let (places, rolls, more) = (Vec::new(), Vec::new(), Vec::new());
        Self { sides: sides.to_vec(), inputs, places, rolls, row: None, steps, bytes: 4, more, wide: false, pair: None }
    }

    /// Sets the step of the real parts of complex results.
    #[must_use]
    pub fn in_pairs(self, pair: Option<u16>) -> Self {
        Self { pair, ..self }
    }

    /// Sets whether numbers are float64, and words have 64 bits.
    #[must_use]
    pub fn widely(self, wide: bool) -> Self {
        Self { wide, ..self }
    }

    /// Sets the bytes of a number of the result.
    #[must_use]
    pub fn to_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Adds views of places.
    #[must_use]
    pub fn with_places(self, places: Vec<CopyShape>) -> Self {
        Self { places, ..self }
    }

    /// Adds the rolls of inputs.
    #[must_use]
    pub fn with_rolls(self, rolls: Vec<Roll>) -> Self {
        Self { rolls, ..self }
    }

    /// Adds further results.
    #[must_use]
    pub fn and(self, more: Vec<(u16, usize)>) -> Self {
        Self { more, ..self }
    }

    /// Adds a function of rows before the steps, which read it by [`Step::Row`].
    #[must_use]
    pub fn after_rows(mut self, function: RowFunction, steps: Vec<Step>) -> Self {
        self.row = Some((function, steps));
        self
    }

    /// The operations of the steps, plus `more` for each element.
    pub(super) fn operations(&self, more: usize) -> u64 {
        let steps = self.steps.iter().chain(self.row.iter().flat_map(|(_, steps)| steps));
        let computing = more + steps.filter(|step| step.reads().next().is_some()).count();
        self.sides.iter().fold(computing as u64, |all, &side| all.saturating_mul(side as u64))
    }
}

/// A view along whose axis the last element is followed by the first one, as after a roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Roll {
    /// The axis.
    pub axis: usize,
    /// The element that is read first.
    pub start: usize,
    /// The distance from one to the next.
    pub step: usize,
    /// The elements along the axis of the memory that is read: at least those of the view, times `step`, so that the first one comes once again at most.
    pub length: usize,
}

impl Roll {
    /// Creates a roll of an axis.
    #[must_use]
    pub fn new(axis: usize, [start, step, length]: [usize; 3]) -> Self {
        Self { axis, start, step, length }
    }

    /// Returns the same along another axis.
    #[must_use]
    pub fn along(self, axis: usize) -> Self {
        Self { axis, ..self }
    }

    /// The element that is read at a place of the view.
    #[must_use]
    pub fn place(&self, place: usize) -> usize {
        let at = self.start + place * self.step;
        if at < self.length { at } else { at - self.length }
    }

    /// The place of the view from which on the memory is read from its begin again.
    #[must_use]
    pub fn wraps_at(&self) -> usize {
        (self.length - self.start).div_ceil(self.step)
    }
}

/// A reduction: the steps compute elements, which are then combined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReduceShape {
    /// The elements, without a function of rows.
    pub elements: ElementsShape,
    /// Results along the first axes; then the elements combined into each, and the results beside it.
    pub outer: usize,
    /// The last axis stays: elements are combined down columns.
    pub down_columns: bool,
    /// The combination of elements; products are not allowed.
    pub by: Combination,
    /// The kind of numbers.
    pub number: Number,
}

impl ReduceShape {
    /// Creates a reduction to `outer` results along the first axes, and one for each place of the last axis if it stays.
    #[must_use]
    pub fn new(elements: ElementsShape, outer: usize, down_columns: bool, by: Combination, number: Number) -> Self {
        Self { elements, outer, down_columns, by, number }
    }
}

/// A function that turns a row into a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowFunction {
    /// e^x over the sum of e^x.
    Softmax,
    /// Its logarithm.
    LogSoftmax,
    /// (x - mean) / sqrt(variance + eps), with the bits of eps.
    LayerNorm(u32),
    /// x / sqrt(mean of x² + eps), with the bits of eps.
    RmsNorm(u32),
}

/// A step: it computes an element from the results of earlier steps, which it names by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The element of an input.
    Input(u16),
    /// The element of an input that is rolled, and the number of its roll.
    Rolled(u16, u16),
    /// The place in a view of places, as a word.
    Place(u16),
    /// The float32, or the word, with these bits; in a wide chain the low half of a word.
    Constant(u32),
    /// The float64, or the word, with these bits, in a wide chain.
    WideConstant(u64),
    /// The result of the function of rows.
    Row,
    /// A function of one element.
    One(One, u16),
    /// A function of two.
    Two(Two, u16, u16),
    /// The second where the first is not 0, else the third.
    Choose(u16, u16, u16),
}

impl Step {
    /// The steps that it reads.
    pub fn reads(&self) -> impl Iterator<Item = u16> {
        let all = match *self {
            Self::Input(_)
            | Self::Rolled(..)
            | Self::Place(_)
            | Self::Constant(_)
            | Self::WideConstant(_)
            | Self::Row => [None; 3],
            Self::One(_, a) => [Some(a), None, None],
            Self::Two(_, a, b) => [Some(a), Some(b), None],
            Self::Choose(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        all.into_iter().flatten()
    }
}

/// Functions of one element, as those of [`crate::ops::Unary`]; true is 1 and false is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum One {
    Neg,
    Abs,
    Sign,
    Floor,
    Ceil,
    Round,
    Trunc,
    Square,
    Reciprocal,
    Sqrt,
    Rsqrt,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tanh,
    Relu,
    Relu6,
    Sigmoid,
    Silu,
    Gelu,
    GeluTanh,
    Erf,
    Selu,
    Softplus,
    LogSigmoid,
    HardSigmoid,
    HardSwish,
    IsNan,
    Not,
    /// A whole number modulo 256, from 0 to 255.
    Byte,
    /// A whole number modulo 256, from -128 to 127.
    SignedByte,
    WordNeg,
    WordAbs,
    WordSign,
    WordNot,
    /// A whole number as i32.
    ToWord,
    /// Towards zero, the nearest where it is beyond i32, and 0 for NaN.
    SaturatedToSigned,
    /// The same for u32.
    SaturatedToUnsigned,
    /// Towards zero, the nearest where it is beyond u8, and 0 for NaN; as float32.
    SaturatedToByte,
    /// The same for i8.
    SaturatedToSignedByte,
    /// An i32 as float32.
    OfSigned,
    /// A u32 as float32.
    OfUnsigned,
    /// A word modulo 256, from 0 to 255, as float32.
    LowByte,
    /// A wide word without its upper half.
    LowWord,
    /// The low half of a wide word as i32, with its sign.
    OfLowWord,
    /// The float32 in the low half of a wide word as float64.
    OfSingle,
    /// A float64 rounded to float32, in the low half of a wide word.
    ToSingle,
    /// An i64 rounded to float32, in the low half of a wide word.
    SignedToSingle,
    /// A u64 rounded to float32, in the low half of a wide word.
    UnsignedToSingle,
}

/// Functions of two elements, as those of [`crate::ops::Binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum Two {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
    Elu,
    LeakyRelu,
    /// The square root of the sum of both squares.
    Hypot,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    WordAdd,
    WordSub,
    WordMul,
    WordAnd,
    WordOr,
    WordXor,
    SignedMin,
    SignedMax,
    UnsignedMin,
    UnsignedMax,
    /// Of words: the quotient rounded down, and the remainder with the divisor's sign. By 0 as by 1, as those below.
    SignedQuotient,
    SignedRemainder,
    /// The remainder of words with the dividend's sign.
    SignedRest,
    UnsignedQuotient,
    UnsignedRemainder,
    /// Truths as float32, as those below.
    WordEq,
    WordNe,
    SignedLt,
    SignedLe,
    UnsignedLt,
    UnsignedLe,
}
