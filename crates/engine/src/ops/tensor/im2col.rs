//! Windows of images as columns of matrices.

use super::arrange::windowed;
use super::images::{Window, images};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::view::{permuted, reshaped};

impl Expr {
    /// Returns the windows of images (N, C, H, W) as columns (N, C h w, number of windows), with a window's elements by channel, row and column, as
    /// PyTorch's `nn.functional.unfold`. Elements beyond the image are 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Window;
    /// let x = engine.tensor_from(&[1_f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// let columns = x.im2col([1, 2], Window::default()).eval()?;
    /// assert_eq!((columns.shape(), columns.to_vec::<f32>()?), (&[1, 2, 2][..], vec![1.0, 3.0, 2.0, 4.0]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn im2col(&self, kernel: [usize; 2], window: Window) -> Self {
        let found = self.state.as_ref().map_err(Clone::clone).and_then(|typed| {
            let [_, _, height, width] = images(typed, "im2col")?;
            window.output([height, width], kernel)
        });
        let output = match found {
            Ok(output) => output,
            Err(error) => return self.failed(&error),
        };
        let [down, across] = window.padding;
        let padded = if [down, across] == [0, 0] {
            self.clone()
        } else {
            self.pad(&[(0, 0), (0, 0), (down, down), (across, across)], 0.0)
        };
        padded.derived(|typed| {
            let [n, c] = [typed.shape[0], typed.shape[1]];
            let rows = windowed(typed, 2, [output[0], window.stride[0]], [kernel[0], window.dilation[0]]);
            let all = windowed(&rows, 3, [output[1], window.stride[1]], [kernel[1], window.dilation[1]]);
            // (N, C, y, x, i, j) becomes (N, C, i, j, y, x).
            let columns = permuted(&all, &[0, 1, 4, 5, 2, 3]);
            let depth = c.saturating_mul(kernel[0]).saturating_mul(kernel[1]);
            Ok(reshaped(&columns, &[n, depth, output[0] * output[1]]))
        })
    }
}

tensor_methods! {
    fn im2col(kernel: [usize; 2], window: Window);
}
