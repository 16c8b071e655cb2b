//! Operations on images (NCHW), with all their sizes.

use crate::native::product_of;

/// A convolution (in fact a correlation) of contiguous float32 images, NCHW, with weights OIHW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Conv2dShape {
    /// Returns the number of floating-point operations, an addition and a multiplication for each term.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let [height, width] = self.kernel;
        let [rows, columns] = self.output;
        let inputs = self.channels[0] / self.groups.max(1);
        product_of(2, &[self.images, inputs, self.channels[1], height, width, rows, columns])
    }
}

/// The greatest value, or the mean, of each window of contiguous float32 images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolShape {
    /// Images, by channels.
    pub planes: usize,
    /// Height and width of the images.
    pub input: [usize; 2],
    /// Height and width of a window.
    pub kernel: [usize; 2],
    /// Height and width of the result.
    pub output: [usize; 2],
    /// Steps of the window.
    pub stride: [usize; 2],
    /// Rows and columns around the images, which hold no values.
    pub padding: [usize; 2],
    /// Steps within the window.
    pub dilation: [usize; 2],
    /// For a mean: true if padding counts as zeros. `None` for the greatest value, which is NaN if the window holds one.
    pub mean: Option<bool>,
}

/// Resamples contiguous float32 images to another height and width. Pixels are squares, and the edges of both images coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ResampleShape {
    /// Images, by channels.
    pub planes: usize,
    /// Height and width of the images.
    pub input: [usize; 2],
    /// Height and width of the result.
    pub output: [usize; 2],
    /// The weights of the pixels that make a new one.
    pub kernel: ResampleKernel,
}

impl ResampleShape {
    /// Creates a resampling of this number of planes.
    #[must_use]
    pub fn new(planes: usize, input: [usize; 2], output: [usize; 2], kernel: ResampleKernel) -> Self {
        Self { planes, input, output, kernel }
    }
}

/// The weight of a pixel by its distance from the sampled position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ResampleKernel {
    /// Pixels to each side that count: 0 for the nearest pixel, 1 for linear interpolation, 2 for Keys's cubic curves.
    pub reach: u8,
    /// True if the kernel is as wide as the new pixels when those are larger. Positions beyond the edges then do not count.
    pub wide: bool,
    /// The bits of the curves' parameter, a float32.
    pub curve: u32,
}

impl ResampleKernel {
    /// Creates a kernel of this reach.
    #[must_use]
    pub fn new(reach: u8, wide: bool, curve: f32) -> Self {
        Self { reach, wide, curve: curve.to_bits() }
    }
}
