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
}

impl NativeOperation {
    /// Floating-point operations that it takes, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let factors: &[usize] = match self {
            Self::Matmul(shape) => &[shape.a.offsets.len(), shape.m, shape.n, shape.k],
            Self::Conv2d(shape) => return shape.flops(),
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
