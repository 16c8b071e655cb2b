//! Operations that a device may have its own means for: a vendor's library, or a crate on the processor. They are described here and nowhere
//! computed; [`super::Device::native`] says whether the device takes one.

/// An operation, with all its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NativeOperation {
    /// Bindings: a, b, and the product.
    Matmul(MatmulShape),
    /// Bindings: images, weights, and the result.
    Conv2d(Conv2dShape),
    /// Bindings: the rows, and for each element of the order two words of u32: its key and its place.
    Sort(SortShape),
    /// Bindings: the rows, and each element combined with those before it.
    Scan(ScanShape),
    /// Bindings: elements of 32 bits, and those of a view in its order.
    Copy(CopyShape),
    /// Bindings: the numbers.
    Random(RandomShape),
    /// Bindings: the graph's arguments, and its one result.
    #[cfg(feature = "graph")]
    Graph(std::sync::Arc<crate::graph::Graph>),
    /// Bindings: as the operation says.
    #[cfg(feature = "zk")]
    Zk(crate::algebra::Operation),
}

impl NativeOperation {
    /// Floating-point operations that it takes, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let factors: &[usize] = match self {
            Self::Matmul(shape) => &[shape.a.offsets.len(), shape.m, shape.n, shape.k],
            Self::Conv2d(shape) => return shape.flops(),
            Self::Sort(_) | Self::Copy(_) | Self::Random(_) => return 0,
            #[cfg(feature = "graph")]
            Self::Graph(graph) => return graph.flops(),
            #[cfg(feature = "zk")]
            Self::Zk(_) => return 0,
            Self::Scan(shape) => return (shape.rows as u64).saturating_mul(shape.length as u64),
        };
        factors.iter().fold(2, |product, &factor| product.saturating_mul(factor as u64))
    }
}

impl Conv2dShape {
    /// Floating-point operations that it takes, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let [height, width] = self.kernel;
        let [rows, columns] = self.output;
        let factors =
            [self.images, self.channels[0] / self.groups.max(1), self.channels[1], height, width, rows, columns];
        factors.iter().fold(2, |product, &factor| product.saturating_mul(factor as u64))
    }
}

/// A product of float32 matrices, `m` x `k` and `k` x `n`, for each batch. The result is contiguous.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
}

#[cfg(feature = "wgsl")]
impl MatmulShape {
    /// The product of two vectors of one element.
    pub(crate) fn of_vectors() -> Self {
        let one = || Operand { offsets: vec![0], row: 1, column: 1 };
        Self { m: 1, n: 1, k: 1, a: one(), b: one() }
    }
}

/// Where the elements of an operand lie, counted in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Operand {
    /// The first element of each batch.
    pub offsets: Vec<usize>,
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub column: usize,
}

/// A convolution (in fact a correlation) of contiguous float32 images, NCHW, with weights OIHW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Conv2dShape {
    /// Images.
    pub images: usize,
    /// Channels of the images, and of the result.
    pub channels: [usize; 2],
    /// Height and width of the images.
    pub input: [usize; 2],
    /// Height and width of the weights.
    pub kernel: [usize; 2],
    /// Height and width of the result.
    pub output: [usize; 2],
    /// Steps of the window.
    pub stride: [usize; 2],
    /// Zeros around the images.
    pub padding: [usize; 2],
    /// Steps within the window.
    pub dilation: [usize; 2],
    /// Groups of channels that do not mix.
    pub groups: usize,
}

/// A view whose elements are copied to lie one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CopyShape {
    /// Lengths of its axes.
    pub sides: Vec<usize>,
    /// Steps along them in what is read, in elements.
    pub strides: Vec<usize>,
    /// The first element.
    pub offset: usize,
}

impl CopyShape {
    /// Of a view.
    #[must_use]
    pub fn new(sides: &[usize], strides: &[usize], offset: usize) -> Self {
        Self { sides: sides.to_vec(), strides: strides.to_vec(), offset }
    }
}

/// Random numbers of Philox 4x32-10: word i % 4 of block i / 4 for place i.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RandomShape {
    /// How many.
    pub count: usize,
    /// The key.
    pub seed: u64,
    /// The upper 24 bits as float32 in [0, 1), in place of the words.
    pub uniform: bool,
}

/// What contiguous rows of 32-bit numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Number {
    /// IEEE 754's binary32.
    F32,
    /// Signed, wrapping.
    I32,
    /// Unsigned, wrapping.
    U32,
}

/// The first elements of contiguous rows in their order; equal elements stay in theirs, NaN counts as greater than all others, -0 as 0.
///
/// An element's key is a u32 whose order is that of the elements. Of an unsigned number it is the number; of a signed one the number with its
/// first bit turned; of a float its bits, those of negative ones turned below those of positive ones, and all ones for NaN. In descending order
/// all bits of the keys are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SortShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// How many of a row's first elements are wanted.
    pub keep: usize,
    /// What the elements are.
    pub number: Number,
    /// The greatest comes first.
    pub descending: bool,
}

/// Sums or products of each element of contiguous rows and those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ScanShape {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// What the elements are.
    pub number: Number,
    /// Products in place of sums.
    pub product: bool,
}
