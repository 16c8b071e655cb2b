//! Operations that a device may compute natively: by a vendor's library, or by code for the processor. This module describes them and computes
//! nothing; [`super::Device::native`] says whether the device takes one.

pub use super::chain::{ElementsShape, One, ReduceShape, Roll, RowFunction, Step, Two};
pub use super::function::{Function, Stop, Threads};
pub use super::images::{Conv2dShape, PoolShape, ResampleKernel, ResampleShape};

use crate::tensor::DType;

/// An operation, with all its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NativeOperation {
    /// Bindings: a, b, and the product.
    Matmul(MatmulShape),
    /// Bindings: numbers, and the same in another dtype.
    Convert(ConvertShape),
    /// Bindings: images, weights, and the result.
    Conv2d(Conv2dShape),
    /// Bindings: the rows, and for each element of the order two words of u32: its key and its place.
    Sort(SortShape),
    /// Bindings: the rows, and the same rows in order.
    Order(OrderShape),
    /// Bindings: the rows, and each element combined with those before it.
    Scan(ScanShape),
    /// Bindings: the rows, and the place of each row's best element, as u32.
    Find(FindShape),
    /// Bindings: elements of 32 bits, and those of a view in its order.
    Copy(CopyShape),
    /// Bindings: for each part the elements of 32 bits that it is read from, and the whole.
    Assemble(AssembleShape),
    /// Bindings: elements, the places, and the elements there.
    Gather(GatherShape),
    /// Bindings: words, and the greatest of them.
    Greatest(GreatestShape),
    /// Bindings: elements, places, values for them, and the elements with the values.
    Scatter(ScatterShape),
    /// Bindings: numbers, the edges of the bins as float32 where numbers are floats, and the counts as u32.
    Count(CountShape),
    /// Bindings: images, and the images in another size.
    Resample(ResampleShape),
    /// Bindings: images, and the value of each window.
    Pool(PoolShape),
    /// Bindings: the inputs, and the results.
    Elements(ElementsShape),
    /// Bindings: the inputs, and the result.
    Reduce(ReduceShape),
    /// Bindings: the elements, and the result.
    Fold(FoldShape),
    /// Bindings: the numbers.
    Random(RandomShape),
    /// Bindings: rows of complex numbers, and their transforms.
    Fft(FftShape),
    /// Bindings: queries, keys, values, and the means of values.
    Attention(AttentionShape),
    /// A function that an app or a crate defines. Bindings: the inputs, and the result.
    Function(Function),
    /// Bindings: the expression's arguments, and its result.
    Expression(std::sync::Arc<crate::expression::Expression>),
}

impl NativeOperation {
    /// Returns the number of results, which are the last bindings.
    #[must_use]
    pub fn results(&self) -> usize {
        match self {
            Self::Elements(shape) => shape.more.len() + 1,
            _ => 1,
        }
    }

    /// Returns the number of floating-point operations, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        match self {
            Self::Matmul(shape) => shape.flops(),
            Self::Conv2d(shape) => shape.flops(),
            Self::Attention(shape) => shape.flops(),
            Self::Elements(shape) => shape.operations(0),
            Self::Reduce(shape) => shape.elements.operations(1),
            Self::Fold(shape) => product_of(1, &shape.view.sides),
            Self::Scan(shape) => product_of(1, &[shape.rows, shape.length]),
            Self::Fft(shape) => product_of(5, &[shape.rows, shape.length, shape.length.max(1).ilog2() as usize]),
            Self::Expression(expression) => expression.flops(),
            _ => 0,
        }
    }
}

/// Multiplies a number by sizes.
pub(crate) fn product_of(first: u64, sizes: &[usize]) -> u64 {
    sizes.iter().fold(first, |product, &size| product.saturating_mul(size as u64))
}

/// A product of matrices, `m` x `k` and `k` x `n`, for each batch. Floats are summed in float32, float64 in float64, complex64 in its parts, integers in
/// 32 bits, which wrap. The result is contiguous and has the dtype of the sums.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MatmulShape {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
    /// The left operand.
    pub a: Operand,
    /// The right operand.
    pub b: Operand,
    /// The dtype of both operands: float32, or another one that a device multiplies.
    pub dtype: DType,
}

/// A product of matrices with the rest of its kernel. Sums are in float32 for float32, f16 or bf16, and in i32 for i8.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProductShape {
    /// Its sizes and operands.
    pub matmul: MatmulShape,
    /// The dtype of the result: float32, or the one that it is rounded to; i32 for products of integers.
    pub result: DType,
    /// Offset of a bias for each column, contiguous and of the result's dtype.
    pub bias: Option<usize>,
    /// True if negative results become 0.
    pub relu: bool,
}

impl ProductShape {
    /// Creates a product of float32 with no further steps.
    #[must_use]
    pub fn new(matmul: MatmulShape) -> Self {
        Self { matmul, result: DType::F32, bias: None, relu: false }
    }
}

/// A product, and the bindings of its kernel: a, b, the result, and the bias if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The product.
    pub product: ProductShape,
    /// The bindings.
    pub places: Vec<usize>,
}

impl MatmulShape {
    /// Returns the number of floating-point operations, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        product_of(2, &[self.a.offsets.len(), self.m, self.n, self.k])
    }

    /// Creates the product of two contiguous square matrices of this side; with a side of 1, of vectors.
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn square(side: usize, dtype: DType) -> Self {
        let one = || Operand { offsets: vec![0], row: side, column: 1 };
        Self { m: side, n: side, k: side, a: one(), b: one(), dtype }
    }
}

/// The layout of an operand, counted in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The first element of each batch.
    pub offsets: Vec<usize>,
    /// The distance from one row to the next.
    pub row: usize,
    /// The distance from one column to the next.
    pub column: usize,
}

impl Operand {
    /// Returns the number of elements up to the last one, for an operand of these sides.
    #[doc(hidden)]
    pub fn reach(&self, rows: usize, columns: usize) -> Option<usize> {
        let down = rows.checked_sub(1)?.checked_mul(self.row)?;
        let last = columns.checked_sub(1)?.checked_mul(self.column)?.checked_add(down)?;
        self.offsets.iter().max()?.checked_add(last)?.checked_add(1)
    }
}

/// A conversion of contiguous numbers to another dtype, rounded to the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ConvertShape {
    /// Their number.
    pub count: usize,
    /// The dtype before.
    pub from: DType,
    /// The dtype after.
    pub to: DType,
}

#[cfg(feature = "wgsl")]
impl ConvertShape {
    /// Creates a conversion of `count` numbers.
    #[doc(hidden)]
    pub fn new(count: usize, from: DType, to: DType) -> Self {
        Self { count, from, to }
    }
}

/// The greatest of words, to each of which a number is added before they are compared; sums wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GreatestShape {
    /// Their number.
    pub count: usize,
    /// The number that is added.
    pub more: u32,
}

#[cfg(feature = "wgsl")]
impl GreatestShape {
    /// Creates the greatest of `count` words, with the number that is added to each.
    #[doc(hidden)]
    pub fn new(count: usize, more: u32) -> Self {
        Self { count, more }
    }
}

/// A copy of a view to contiguous memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CopyShape {
    /// Lengths of its axes.
    pub sides: Vec<usize>,
    /// Steps along them in the source, in elements.
    pub strides: Vec<usize>,
    /// The first element.
    pub offset: usize,
    /// Bytes of an element: 1, 2, 4, or 8.
    pub bytes: usize,
}

impl CopyShape {
    /// Creates a view of elements of 4 bytes.
    #[must_use]
    pub fn new(sides: &[usize], strides: &[usize], offset: usize) -> Self {
        Self { sides: sides.to_vec(), strides: strides.to_vec(), offset, bytes: 4 }
    }

    /// Sets the bytes of an element.
    #[must_use]
    pub fn of_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

/// A reduction of the last axes of a view. Elements widen before they are combined: integers and bools to 64 bits, where they wrap, floats to float64,
/// and complex numbers part by part. The result is contiguous.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FoldShape {
    /// The elements.
    pub view: CopyShape,
    /// The number of axes that stay, which come first.
    pub kept: usize,
    /// The dtype of the elements.
    pub from: DType,
    /// The dtype of the result: of sums and products one that is at least as wide as the elements, of a kind that holds them. The greatest and the
    /// least have the dtype in which the elements are computed.
    pub to: DType,
    /// The combination; complex numbers have sums only.
    pub by: Combination,
}

impl FoldShape {
    /// Creates a reduction of the axes from `kept` on.
    #[must_use]
    pub fn new(view: CopyShape, kept: usize, [from, to]: [DType; 2], by: Combination) -> Self {
        Self { view: view.of_bytes(from.bytes()), kept, from, to, by }
    }
}

/// A copy of views to parts of a contiguous tensor. Elements have one size, and parts do not overlap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AssembleShape {
    /// Lengths of the tensor's axes.
    pub sides: Vec<usize>,
    /// The parts, each with its first index along every axis.
    pub parts: Vec<(CopyShape, Vec<usize>)>,
}

impl AssembleShape {
    /// Creates a copy of parts.
    #[must_use]
    pub fn new(sides: &[usize], parts: Vec<(CopyShape, Vec<usize>)>) -> Self {
        Self { sides: sides.to_vec(), parts }
    }
}

/// A gather: reads the element of a view at each index in another view; the result is contiguous. Negative indices count from the end, and
/// indices out of range take the nearest element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GatherShape {
    /// The elements at index 0, in the result's axes.
    pub from: CopyShape,
    /// The indices, in the same axes.
    pub places: CopyShape,
    /// The distance from one index to the next, in elements of the source.
    pub step: usize,
    /// The number of positions: at least one.
    pub length: usize,
    /// True if indices are signed.
    pub signed: bool,
}

impl GatherShape {
    /// Creates a gather from two views of the same axes.
    #[must_use]
    pub fn new(from: CopyShape, places: CopyShape, [step, length]: [usize; 2], signed: bool) -> Self {
        Self { from, places, step, length, signed }
    }
}

/// A scatter: combines values with elements of contiguous rows, in the order of the values. Indices from `length` on have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ScatterShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// Values for a row.
    pub count: usize,
    /// True if the indices are the same for all rows.
    pub shared: bool,
    /// The dtype of the elements and values.
    pub dtype: DType,
    /// The combination of an element and a value; `None` overwrites the element.
    pub by: Option<Combination>,
    /// True if indices are signed: negative ones count from the end.
    pub signed: bool,
}

impl ScatterShape {
    /// Creates a scatter into rows, with `count` values for the `length` elements of each.
    #[must_use]
    pub fn new([rows, length, count]: [usize; 3], shared: bool, dtype: DType, by: Option<Combination>) -> Self {
        Self { rows, length, count, shared, dtype, by, signed: false }
    }
}

impl ScatterShape {
    /// Allows negative indices.
    #[must_use]
    pub fn by_signed(self) -> Self {
        Self { signed: true, ..self }
    }
}

/// A count of the numbers in each bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CountShape {
    /// Numbers.
    pub count: usize,
    /// Bins.
    pub bins: usize,
    /// The bits of the float32 at the upper end of the last bin. If set, the numbers are float32, and a bin goes from its edge (of `bins` + 1,
    /// ascending) to below the next. Otherwise they are u32, and each is the number of its bin. Numbers without a bin are not counted.
    pub last: Option<u32>,
}

impl CountShape {
    /// Creates a count of integers.
    #[must_use]
    pub fn whole(count: usize, bins: usize) -> Self {
        Self { count, bins, last: None }
    }

    /// Creates a count of float32 by edges; `last` still belongs to the last bin.
    #[must_use]
    pub fn by_edges(count: usize, bins: usize, last: f32) -> Self {
        Self { count, bins, last: Some(last.to_bits()) }
    }
}

/// Random numbers of Philox 4x32-10: word i % 4 of block i / 4 for index i.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RandomShape {
    /// Number of elements.
    pub count: usize,
    /// The key.
    pub seed: u64,
    /// True for the upper 24 bits as float32 in [0, 1), instead of the words.
    pub uniform: bool,
}

/// Discrete Fourier transforms of contiguous rows of complex numbers, pairs of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FftShape {
    /// Rows.
    pub rows: usize,
    /// Complex numbers of a row.
    pub length: usize,
    /// True for the inverse, which divides by the length.
    pub inverse: bool,
    /// True for pairs of float64.
    pub wide: bool,
}

/// Attention: for each query of each head the mean of the values, weighted by the softmax of its scaled products with the keys. The result is contiguous.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    /// The queries of each head, as rows.
    pub query: Operand,
    /// The keys of each head, as rows.
    pub key: Operand,
    /// The values of each head, as rows.
    pub value: Operand,
    /// Queries of a head.
    pub queries: usize,
    /// Keys of a head; at least as many as queries if a query sees no later keys.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub depth: usize,
    /// Elements of a value.
    pub width: usize,
    /// True if a query sees no later keys; the last query is aligned with the last key.
    pub causal: bool,
    /// The bits of the factor of the products, a float32.
    pub scale: u32,
}

impl AttentionShape {
    /// Returns the number of floating-point operations, an addition and a multiplication for each term of both products.
    #[must_use]
    pub fn flops(&self) -> u64 {
        product_of(2, &[self.query.offsets.len(), self.queries, self.keys, self.depth.saturating_add(self.width)])
    }
}

/// The kind of numbers in contiguous rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// IEEE 754's binary32.
    F32,
    /// Signed, of 32 bits, wrapping.
    I32,
    /// Unsigned, of 32 bits, wrapping.
    U32,
    /// IEEE 754's binary64.
    F64,
    /// Signed, of 64 bits, wrapping.
    I64,
    /// Unsigned, of 64 bits, wrapping.
    U64,
    /// Two of binary32, the real part first.
    Complex64,
    /// Two of binary64, the real part first.
    Complex128,
}

impl Number {
    /// Returns the bytes of a number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }
}

/// The indices of the first greatest or least elements of contiguous rows; NaN wins over all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FindShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row, at least one.
    pub length: usize,
    /// The kind of the elements.
    pub number: Number,
    /// True for the least elements, not the greatest.
    pub least: bool,
}

/// The first elements of contiguous rows in sorted order. Equal elements keep their order, NaN counts as greater than all others, -0 as 0.
///
/// An element's key is a u32 with the same order as the elements: for unsigned integers the number itself; for signed ones the number with its first
/// bit flipped; for floats the bits, with those of negative numbers flipped below those of positive ones, and all ones for NaN. In descending order
/// all bits of the keys are flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// The number of a row's first elements to keep.
    pub keep: usize,
    /// The kind of the elements.
    pub number: Number,
    /// True if the greatest comes first.
    pub descending: bool,
}

/// Rows, whose elements are put in order: NaN counts as greater than all others, -0 as 0. Equal elements keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OrderShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// The dtype of the elements, which has an order.
    pub dtype: DType,
    /// True if the greatest comes first.
    pub descending: bool,
}

impl OrderShape {
    /// Creates the order of `rows` rows of `length` elements.
    #[must_use]
    pub fn new([rows, length]: [usize; 2], dtype: DType, descending: bool) -> Self {
        Self { rows, length, dtype, descending }
    }
}

/// The combination of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combination {
    /// Integers wrap.
    Sum,
    /// Integers wrap.
    Product,
    /// NaN if there is one.
    Greatest,
    /// NaN if there is one.
    Least,
}

/// A scan: each element of contiguous rows combined with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// The kind of the elements.
    pub number: Number,
    /// Combination of the elements.
    pub by: Combination,
}
