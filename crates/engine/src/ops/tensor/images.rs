//! Images (NCHW) and the windows that move over them: what conv2d and pool2d share.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ops::expr::emit::{Group, Writer, word};
use crate::ops::expr::node::{Typed, is_float};
use crate::ops::expr::operation::Call;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The movement of a window over an image; height before width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Window {
    /// Steps from one window to the next.
    pub stride: [usize; 2],
    /// Rows and columns around the image: zeros for a convolution, nothing for pooling.
    pub padding: [usize; 2],
    /// Steps within the window.
    pub dilation: [usize; 2],
}

impl Default for Window {
    fn default() -> Self {
        Self { stride: [1; 2], padding: [0; 2], dilation: [1; 2] }
    }
}

impl Window {
    /// Creates a window from numbers for height and width.
    #[must_use]
    pub fn new(stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2]) -> Self {
        Self { stride, padding, dilation }
    }

    /// Creates a window that moves by `stride`, without padding and dilation.
    #[must_use]
    pub fn strided(stride: usize) -> Self {
        Self { stride: [stride; 2], ..Self::default() }
    }

    /// Returns the window with padding on all sides.
    #[must_use]
    pub fn padded(self, padding: usize) -> Self {
        Self { padding: [padding; 2], ..self }
    }

    /// Returns the window with steps between its elements.
    #[must_use]
    pub fn dilated(self, dilation: usize) -> Self {
        Self { dilation: [dilation; 2], ..self }
    }

    /// Height and width of the result: floor((size + 2 padding - dilation (window - 1) - 1) / stride) + 1.
    pub(super) fn output(&self, input: [usize; 2], kernel: [usize; 2]) -> Result<[usize; 2]> {
        let fault = |reason: String| Error::shape(format!("a window of {kernel:?} over {input:?}"), reason);
        if kernel.contains(&0) || self.stride.contains(&0) || self.dilation.contains(&0) {
            return Err(fault("the window, its stride and its dilation must be at least 1".to_owned()));
        }
        let mut sides = [0; 2];
        for axis in 0..2 {
            let reach = self.dilation[axis].checked_mul(kernel[axis] - 1).and_then(|reach| reach.checked_add(1));
            let padded = self.padding[axis].checked_mul(2).and_then(|padding| padding.checked_add(input[axis]));
            let (Some(reach), Some(padded)) = (reach, padded) else {
                return Err(fault("its sizes are too large to count".to_owned()));
            };
            let Some(room) = padded.checked_sub(reach) else {
                return Err(fault(format!(
                    "it covers {reach}, but the padded image has {padded} on axis {}",
                    axis + 2
                )));
            };
            sides[axis] = room / self.stride[axis] + 1;
        }
        Ok(sides)
    }
}

/// The words of a kernel.
pub(super) fn words(sizes: &[usize]) -> Result<Vec<u32>> {
    sizes.iter().map(|&size| word(size)).try_listed()
}

/// The end of a kernel that stores a value of an image, a channel and a pixel; the dtype of what it stores.
pub(super) fn store(writer: &mut Writer, call: Call<'_>) -> Result<(String, DType)> {
    let groups: [Group<'_>; 4] = [("image", 0..1), ("channel", 1..2), ("y_at", 2..3), ("x_at", 3..4)];
    let (value, dtype) = call.finished(writer, "value", &groups)?;
    let text = format!(
        "\nfn store(image: u32, channel: u32, y_at: u32, x_at: u32, value: f32) {{\n    \
         y[((image * words[0].z + channel) * words[0].x + y_at) * words[0].y + x_at] = {value};\n}}\n\n"
    );
    Ok((text, dtype))
}

/// The axes of images.
pub(super) const AXES: [(&str, Range<usize>); 4] =
    [("image", 0..1), ("channel", 1..2), ("row", 2..3), ("column", 3..4)];

/// The sides of images, checked.
pub(super) fn images(typed: &Typed, what: &str) -> Result<[usize; 4]> {
    let fault = |reason: String| Error::shape(what, reason);
    if !is_float(typed.dtype) {
        return Err(Error::dtype(format!("{what} of {}", typed.dtype), "it needs floats (cast first)"));
    }
    <[usize; 4]>::try_from(&typed.shape[..]).map_err(|_| {
        fault(format!("it needs four axes (images, channels, height, width), but the shape is {:?}", typed.shape))
    })
}
