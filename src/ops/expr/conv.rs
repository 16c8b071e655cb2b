//! Convolutions and pooling of images (NCHW).

use std::sync::Arc;

use super::deferred::{Deferred, Epilogue, Launch, Operation};
use super::emit::{Writer, stored, too_large};
use super::evaluate::compute;
use super::node::{Expr, Node, Typed, is_float};
use crate::backend::native::{Conv2dShape, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::tensor::DType;

const CONV: &str = include_str!("../../../shaders/tensor/conv2d.wgsl");
const POOL: &str = include_str!("../../../shaders/tensor/pool2d.wgsl");

/// How a window moves over an image; height before width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A window that moves by `stride`, without padding and dilation.
    #[must_use]
    pub fn strided(stride: usize) -> Self {
        Self { stride: [stride; 2], ..Self::default() }
    }

    /// The same with padding on all sides.
    #[must_use]
    pub fn padded(self, padding: usize) -> Self {
        Self { padding: [padding; 2], ..self }
    }

    /// The same with steps within the window.
    #[must_use]
    pub fn dilated(self, dilation: usize) -> Self {
        Self { dilation: [dilation; 2], ..self }
    }

    /// Height and width of the result: floor((size + 2 padding - dilation (window - 1) - 1) / stride) + 1.
    fn output(&self, input: [usize; 2], kernel: [usize; 2]) -> Result<[usize; 2]> {
        let fault =
            |reason: String| Error::InvalidSize { what: format!("a window of {kernel:?} over {input:?}"), reason };
        if kernel.contains(&0) || self.stride.contains(&0) || self.dilation.contains(&0) {
            return Err(fault("the window, its stride and its dilation must be 1 at least".to_owned()));
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
                    "it reaches over {reach}, the padded image has {padded} on axis {}",
                    axis + 2
                )));
            };
            sides[axis] = room / self.stride[axis] + 1;
        }
        Ok(sides)
    }
}

/// A convolution.
pub(super) struct Conv {
    pub(super) input: Arc<Typed>,
    pub(super) weight: Arc<Typed>,
    pub(super) shape: Conv2dShape,
}

/// The greatest or the mean value of windows.
pub(super) struct Pool {
    pub(super) input: Arc<Typed>,
    pub(super) kernel: [usize; 2],
    pub(super) window: Window,
    /// The mean, and whether padding counts towards it.
    pub(super) mean: Option<bool>,
}

/// A tensor, contiguous in memory.
async fn whole(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    compute(engine, typed).await
}

/// The words of a kernel: they were checked to fit when the operation was recorded.
fn words(sizes: &[usize]) -> Result<Vec<u32>> {
    sizes.iter().map(|&size| u32::try_from(size).map_err(|_| too_large(size))).collect()
}

/// The end of a kernel that stores a value of an image, a channel and a pixel.
fn store(writer: &mut Writer, of: &Deferred, epilogue: Option<&Epilogue<'_>>) -> Result<(String, DType)> {
    let (mut value, mut dtype) = ("value", of.dtype);
    if let Some(epilogue) = epilogue {
        let groups = [("image", 0..1), ("channel", 1..2), ("y_at", 2..3), ("x_at", 3..4)];
        writer.function("finished", epilogue.typed, &of.shape, &groups, Some(epilogue.of))?;
        (value, dtype) = ("finished(value, image, channel, y_at, x_at)", epilogue.typed.dtype);
    }
    let text = format!(
        "\nfn store(image: u32, channel: u32, y_at: u32, x_at: u32, value: f32) {{\n    \
         y[((image * words[0].z + channel) * words[0].x + y_at) * words[0].y + x_at] = {value};\n}}\n\n"
    );
    Ok((text, dtype))
}

const IMAGE: [(&str, std::ops::Range<usize>); 4] =
    [("image", 0..1), ("channel", 1..2), ("row", 2..3), ("column", 3..4)];

impl Conv {
    pub(super) async fn run(
        &self,
        engine: &Engine,
        of: &Arc<Deferred>,
        epilogue: Option<&Epilogue<'_>>,
    ) -> Result<Tensor> {
        let (x, w) = (whole(engine, &self.input).await?, whole(engine, &self.weight).await?);
        let shape = self.shape;
        if x.dtype() == DType::F32 && w.dtype() == DType::F32 {
            let operation = NativeOperation::Conv2d(shape);
            if let Some(result) = engine.native(operation, &[&x, &w], &of.shape, "conv2d").await? {
                let Some(epilogue) = epilogue else { return Ok(result) };
                return compute(engine, &epilogue.typed.with_result(epilogue.of, &result)).await;
            }
        }
        let [height, width] = shape.output;
        let sizes = [
            [height, width, shape.channels[1], shape.channels[0]],
            [shape.input[0], shape.input[1], shape.kernel[0], shape.kernel[1]],
            [shape.stride[0], shape.stride[1], shape.padding[0], shape.padding[1]],
            [shape.dilation[0], shape.dilation[1], shape.groups, shape.images],
        ];
        let mut writer = Writer::new(&words(sizes.as_flattened())?);
        let (x, w) = (Typed::read(&x), Typed::read(&w));
        writer.function("load_x", &x, &x.shape, &IMAGE, None)?;
        writer.function("load_w", &w, &w.shape, &IMAGE, None)?;
        let (text, dtype) = store(&mut writer, of, epilogue)?;
        let output = engine.output(writer.tensors().first(), dtype, &of.shape, "conv2d").await?;
        let blocks = (shape.channels[1] / shape.groups).div_ceil(4) * shape.groups;
        let workgroups = [(height * width).div_ceil(64), blocks, shape.images];
        let body = text + CONV;
        let flops = usize::try_from(shape.flops()).unwrap_or(0);
        Launch { name: "conv2d", writer: &writer, output: stored(dtype), body: &body, workgroups, flops }
            .run(engine, &output)
            .await?;
        Ok(output)
    }
}

impl Pool {
    pub(super) async fn run(
        &self,
        engine: &Engine,
        of: &Arc<Deferred>,
        epilogue: Option<&Epilogue<'_>>,
    ) -> Result<Tensor> {
        let x = Typed::read(&whole(engine, &self.input).await?);
        let [images, channels, height, width] = [of.shape[0], of.shape[1], of.shape[2], of.shape[3]];
        let window = self.window;
        let sizes = [
            [height, width, channels, images],
            [x.shape[2], x.shape[3], self.kernel[0], self.kernel[1]],
            [window.stride[0], window.stride[1], window.padding[0], window.padding[1]],
            [window.dilation[0], window.dilation[1], usize::from(self.mean == Some(true)), 0],
        ];
        let mut writer = Writer::new(&words(sizes.as_flattened())?);
        writer.function("load_x", &x, &x.shape, &IMAGE, None)?;
        let (text, dtype) = store(&mut writer, of, epilogue)?;
        let body = match self.mean {
            Some(_) => text + &POOL.replace("const MEAN = false;", "const MEAN = true;"),
            None => text + POOL,
        };
        let output = engine.output(writer.tensors().first(), dtype, &of.shape, "pool2d").await?;
        let workgroups = [(height * width).div_ceil(64), channels, images];
        Launch { name: "pool2d", writer: &writer, output: stored(dtype), body: &body, workgroups, flops: 0 }
            .run(engine, &output)
            .await?;
        Ok(output)
    }
}

fn images(typed: &Typed, what: &str) -> Result<[usize; 4]> {
    let fault = |reason: String| Error::InvalidSize { what: what.to_owned(), reason };
    if !is_float(typed.dtype) {
        return Err(Error::InvalidInput {
            what: format!("{what} of {}", typed.dtype),
            reason: "it is for floats (cast first)".to_owned(),
        });
    }
    <[usize; 4]>::try_from(&typed.shape[..]).map_err(|_| {
        fault(format!("it takes four axes (images, channels, height, width), the shape is {:?}", typed.shape))
    })
}

impl Expr {
    /// The convolution (as neural networks have it: without turning the weights over) of images (N, C, H, W) with weights (O, C / groups,
    /// h, w). f16 is multiplied and summed in f32. Add a bias of the shape (O, 1, 1): it becomes part of the kernel.
    #[must_use]
    pub fn conv2d(&self, weight: impl Into<Self>, window: Window, groups: usize) -> Self {
        let weight = weight.into();
        self.derived(|x| {
            let w = self.beside(&weight)?;
            let [n, c, h, width] = images(x, "conv2d")?;
            let [outputs, per_group, kh, kw] = images(&w, "the weights of conv2d")?;
            let fault = |reason: String| Error::InvalidSize {
                what: format!("conv2d of {:?} with weights {:?}", x.shape, w.shape),
                reason,
            };
            if x.dtype != w.dtype {
                return Err(Error::InvalidInput {
                    what: format!("conv2d of {} with weights {}", x.dtype, w.dtype),
                    reason: "both must be f32, or both f16 (cast first)".to_owned(),
                });
            }
            if groups == 0 || c % groups != 0 || outputs % groups != 0 {
                return Err(fault(format!("{groups} groups do not divide {c} and {outputs} channels")));
            }
            if per_group != c / groups {
                return Err(fault(format!(
                    "the weights are for {per_group} channels of each group, there are {}",
                    c / groups
                )));
            }
            let output = window.output([h, width], [kh, kw])?;
            let shape = vec![n, outputs, output[0], output[1]];
            if shape.contains(&0) || c == 0 {
                let zero = Typed::new(Node::Constant(0.0), Vec::new(), x.dtype);
                return Ok(Typed::new(Node::Cast(zero), shape, x.dtype));
            }
            let sizes = Conv2dShape {
                images: n,
                channels: [c, outputs],
                input: [h, width],
                kernel: [kh, kw],
                output,
                stride: window.stride,
                padding: window.padding,
                dilation: window.dilation,
                groups,
            };
            let operation = Operation::Conv(Conv { input: x.clone(), weight: w, shape: sizes });
            Ok(narrowed(Typed::deferred(operation, shape, DType::F32), x.dtype))
        })
    }

    /// The greatest value of each window; NaN if there is one.
    #[must_use]
    pub fn max_pool2d(&self, kernel: [usize; 2], window: Window) -> Self {
        self.pooled(kernel, window, None)
    }

    /// The mean of each window. With `count_padding` the zeros around the image count as elements.
    #[must_use]
    pub fn avg_pool2d(&self, kernel: [usize; 2], window: Window, count_padding: bool) -> Self {
        self.pooled(kernel, window, Some(count_padding))
    }

    fn pooled(&self, kernel: [usize; 2], window: Window, mean: Option<bool>) -> Self {
        self.derived(|x| {
            let [n, c, h, w] = images(x, "pooling")?;
            let output = window.output([h, w], kernel)?;
            for axis in 0..2 {
                if window.padding[axis] * 2 > kernel[axis] {
                    return Err(Error::InvalidSize {
                        what: format!("a padding of {:?}", window.padding),
                        reason: format!(
                            "it may be half of the window {kernel:?} at most, or windows would hold padding alone"
                        ),
                    });
                }
            }
            let shape = vec![n, c, output[0], output[1]];
            if shape.contains(&0) {
                let zero = Typed::new(Node::Constant(0.0), Vec::new(), x.dtype);
                return Ok(Typed::new(Node::Cast(zero), shape, x.dtype));
            }
            let operation = Operation::Pool(Pool { input: x.clone(), kernel, window, mean });
            Ok(narrowed(Typed::deferred(operation, shape, DType::F32), x.dtype))
        })
    }
}

/// A result of float32 in the dtype of what it was made from.
fn narrowed(result: Arc<Typed>, dtype: DType) -> Arc<Typed> {
    match dtype {
        DType::F16 => Typed::new(Node::Cast(result.clone()), result.shape.clone(), DType::F16),
        _ => result,
    }
}
