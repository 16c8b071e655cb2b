//! Convolutions of other dimensions, and transposed ones, as convolutions of images. There is no kernel here: everything becomes `conv2d`. A transposed
//! convolution inserts zeros between the elements and turns the weights over (`spread`), which multiplies zeros; planes of a volume become channels, which
//! takes as many times the memory.

use super::arrange::windowed;
use super::images::Window;
use crate::error::{Error, Result};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::view::{permuted, reshaped};
use cantus_base::listed::Listed;

/// The steps of a transposed convolution along each of its axes.
#[derive(Clone, Copy)]
struct Spread<const N: usize> {
    stride: [usize; N],
    padding: [usize; N],
    dilation: [usize; N],
    output_padding: [usize; N],
}

impl Expr {
    /// Returns the convolution of signals (N, C, L) with weights (O, C / groups, l), as [`Expr::conv2d`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 4.0, 9.0], &[1, 1, 3])?;
    /// let w = engine.tensor_from(&[-1.0_f32, 1.0], &[1, 1, 2])?;
    /// assert_eq!(x.conv1d(&w, 1, 0, 1, 1).eval()?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv1d(
        &self,
        weight: impl Into<Self>,
        stride: usize,
        padding: usize,
        dilation: usize,
        groups: usize,
    ) -> Self {
        let weight = weight.into();
        if let Err(error) = self.axes_are(3, "conv1d").and_then(|()| weight.axes_are(3, "the weights of conv1d")) {
            return self.failed(&error);
        }
        let window = Window::new([1, stride], [0, padding], [1, dilation]);
        self.expand(2).conv2d(weight.expand(2), window, groups).squeeze(2)
    }

    /// Returns the convolution of volumes (N, C, D, H, W) with weights (O, C / groups, d, h, w), as [`Expr::conv2d`]. The planes of each window
    /// become channels, which takes d times the memory of the volume.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 4.0, 9.0], &[1, 1, 3, 1, 1])?;
    /// let w = engine.tensor_from(&[-1.0_f32, 1.0], &[1, 1, 2, 1, 1])?;
    /// assert_eq!(x.conv3d(&w, [1; 3], [0; 3], [1; 3], 1).eval()?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv3d(
        &self,
        weight: impl Into<Self>,
        stride: [usize; 3],
        padding: [usize; 3],
        dilation: [usize; 3],
        groups: usize,
    ) -> Self {
        let weight = weight.into();
        let result = self.axes_are(5, "conv3d").and_then(|()| {
            weight.axes_are(5, "the weights of conv3d")?;
            let (x, w) = (self.shape()?, weight.shape()?);
            // Checks these axes. Their output size is not needed here.
            let deep = Window::new([stride[0], 1], [padding[0], 0], [dilation[0], 1]);
            let [depth, _] = deep.output([x[2], 1], [w[2], 1])?;
            let around = [(0, 0), (0, 0), (padding[0], padding[0]), (0, 0), (0, 0)];
            let padded = if padding[0] == 0 { self.clone() } else { self.pad(&around, 0.0) };
            let (taps, images) = (w[2], x[0].saturating_mul(depth));
            let planes = padded.derived(|typed| {
                let windows = windowed(typed, 2, [depth, stride[0]], [taps, dilation[0]]);
                // (N, C, D, H, W, d) becomes (N D, C d, H, W).
                let planes = permuted(&windows, &[0, 2, 1, 5, 3, 4]);
                Ok(reshaped(&planes, &[images, x[1].saturating_mul(taps), x[3], x[4]]))
            });
            let flat = weight.reshape(&[w[0], w[1].saturating_mul(taps), w[3], w[4]]);
            let window = Window::new([stride[1], stride[2]], [padding[1], padding[2]], [dilation[1], dilation[2]]);
            let result = planes.conv2d(flat, window, groups);
            let &[_, outputs, height, width] = result.shape()? else { return Ok(result) };
            Ok(result.reshape(&[x[0], depth, outputs, height, width]).permute(&[0, 2, 1, 3, 4]))
        });
        self.of(result)
    }

    /// Returns the transposed convolution of images (N, C, H, W) with weights (C, O / groups, h, w). Each pixel adds the weights, multiplied by it, to
    /// the result, at steps of `stride`. `padding` is cut off on all sides, and `output_padding` is added at the bottom and the right.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Window;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0], &[1, 1, 1, 2])?;
    /// let w = engine.tensor_from(&[1.0_f32, 10.0], &[1, 1, 1, 2])?;
    /// let y = x.conv_transpose2d(&w, Window::default(), [0, 0], 1).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv_transpose2d(
        &self,
        weight: impl Into<Self>,
        window: Window,
        output_padding: [usize; 2],
        groups: usize,
    ) -> Self {
        let Window { stride, padding, dilation } = window;
        let sizes = Spread { stride, padding, dilation, output_padding };
        match self.spread(&weight.into(), sizes, groups, "conv_transpose2d") {
            Ok((spread, turned)) => spread.conv2d(turned, Window::new([1; 2], [0; 2], dilation), groups),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns the transposed convolution of signals (N, C, L) with weights (C, O / groups, l), as [`Expr::conv_transpose2d`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0], &[1, 1, 2])?;
    /// let w = engine.tensor_from(&[1.0_f32, 10.0], &[1, 1, 2])?;
    /// assert_eq!(x.conv_transpose1d(&w, 2, 0, 1, 0, 1).eval()?.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv_transpose1d(
        &self,
        weight: impl Into<Self>,
        stride: usize,
        padding: usize,
        dilation: usize,
        output_padding: usize,
        groups: usize,
    ) -> Self {
        let sizes =
            Spread { stride: [stride], padding: [padding], dilation: [dilation], output_padding: [output_padding] };
        match self.spread(&weight.into(), sizes, groups, "conv_transpose1d") {
            Ok((spread, turned)) => spread.conv1d(turned, 1, 0, dilation, groups),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns the transposed convolution of volumes (N, C, D, H, W) with weights (C, O / groups, d, h, w), as [`Expr::conv_transpose2d`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0], &[1, 1, 2, 1, 1])?;
    /// let w = engine.tensor_from(&[1.0_f32, 10.0], &[1, 1, 2, 1, 1])?;
    /// let y = x.conv_transpose3d(&w, [1; 3], [0; 3], [1; 3], [0; 3], 1).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv_transpose3d(
        &self,
        weight: impl Into<Self>,
        stride: [usize; 3],
        padding: [usize; 3],
        dilation: [usize; 3],
        output_padding: [usize; 3],
        groups: usize,
    ) -> Self {
        let sizes = Spread { stride, padding, dilation, output_padding };
        match self.spread(&weight.into(), sizes, groups, "conv_transpose3d") {
            Ok((spread, turned)) => spread.conv3d(turned, [1; 3], [0; 3], dilation, groups),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns the operands of a convolution that computes a transposed one: this (N, C, sides…) with zeros between its elements, and as many around
    /// as the weights reach beyond them; and the weights of each group with inputs and outputs exchanged, turned over.
    fn spread<const N: usize>(
        &self,
        weight: &Self,
        sizes: Spread<N>,
        groups: usize,
        what: &str,
    ) -> Result<(Self, Self)> {
        self.axes_are(N + 2, what)?;
        weight.axes_are(N + 2, &format!("the weights of {what}"))?;
        let Spread { stride, padding, dilation, output_padding } = sizes;
        let (x, w) = (self.shape()?, weight.shape()?);
        let fault = |reason: String| Error::shape(format!("{what} of {x:?} with weights {w:?}"), reason);
        if groups == 0 || x[1] % groups != 0 || w[0] != x[1] {
            return Err(fault(format!(
                "{groups} groups of {} channels were given, but the weights are for {}",
                x[1], w[0]
            )));
        }
        if x[2..].contains(&0) || w[2..].contains(&0) || stride.contains(&0) || dilation.contains(&0) {
            return Err(fault("sides, stride and dilation must be at least 1".to_owned()));
        }
        let (mut single, mut between, mut wide) = (x[..2].to_vec(), vec![(0, 0); 2], x[..2].to_vec());
        let (mut kept, mut around) = (vec![0..x[0], 0..x[1]], vec![(0, 0), (0, 0)]);
        for axis in 0..N {
            let side = x[axis + 2];
            single.extend([side, 1]);
            between.extend([(0, 0), (0, stride[axis] - 1)]);
            wide.push(side.saturating_mul(stride[axis]));
            let reach = dilation[axis].saturating_mul(w[axis + 2] - 1);
            let (cut, extra) = (padding[axis], output_padding[axis]);
            let length = (side - 1).saturating_mul(stride[axis]).saturating_add(1);
            // More padding than reach cuts elements off.
            let before = cut.saturating_sub(reach);
            let end = length.saturating_add(extra).saturating_sub(before).min(length);
            if before >= end || extra >= stride[axis].max(dilation[axis]) {
                return Err(fault(format!(
                    "padding {cut} leaves nothing, or output_padding {extra} is not below stride and dilation"
                )));
            }
            kept.push(before..end);
            around.push((reach.saturating_sub(cut), reach.saturating_add(extra).saturating_sub(cut)));
        }
        let spread = self.reshape(&single).pad(&between, 0.0).reshape(&wide).slice(&kept).pad(&around, 0.0);
        let (inputs, outputs) = (x[1] / groups, w[1]);
        let mut order: Vec<isize> = (0..=(N + 2).cast_signed()).listed();
        order.swap(1, 2);
        let turned = weight
            .reshape(&[&[groups, inputs, outputs], &w[2..]].concat())
            .permute(&order)
            .reshape(&[&[groups.saturating_mul(outputs), inputs], &w[2..]].concat())
            .flip(&(2..(N + 2).cast_signed()).listed());
        Ok((spread, turned))
    }

    fn axes_are(&self, rank: usize, what: &str) -> Result<()> {
        let shape = self.shape()?;
        if shape.len() == rank {
            return Ok(());
        }
        Err(Error::shape(what, format!("it needs {rank} axes, but the shape is {shape:?}")))
    }
}

tensor_methods! {
    fn conv1d(weight: impl Into<Expr>, stride: usize, padding: usize, dilation: usize, groups: usize);
    fn conv3d(weight: impl Into<Expr>, stride: [usize; 3], padding: [usize; 3], dilation: [usize; 3], groups: usize);
    fn conv_transpose1d(weight: impl Into<Expr>, stride: usize, padding: usize, dilation: usize, output_padding: usize, groups: usize);
    fn conv_transpose2d(weight: impl Into<Expr>, window: Window, output_padding: [usize; 2], groups: usize);
    fn conv_transpose3d(weight: impl Into<Expr>, stride: [usize; 3], padding: [usize; 3], dilation: [usize; 3], output_padding: [usize; 3], groups: usize);
}
