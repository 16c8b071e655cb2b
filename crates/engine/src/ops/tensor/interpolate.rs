//! Images in another size, one axis after the other: first the width, then the height, each one pass of weighted sums. Weights are made in the kernel, in
//! float32 step by step, and the CPU, which does both axes in one operation, makes its tables by the same steps. `grid_sample` shares the methods.

use std::hash::Hash;
use std::sync::Arc;

use super::images::images;
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, ResampleKernel, ResampleShape};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::evaluate::{compute, narrowed};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::replay::KeyWords;
use crate::ops::expr::shape::product;
use crate::ops::expr::view::{to_last, with_last};
use crate::tensor::DType;

const INTERPOLATE: &str = cantus_shaders::tensor::INTERPOLATE;
const WEIGHT: &str = cantus_shaders::tensor::INTERPOLATE_WEIGHT;

/// The method by which [`Expr::interpolate`] computes new pixels. Pixels are squares, and the edges of both images coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interpolation {
    /// The pixel in which the new one begins, as PyTorch's `nearest`.
    Nearest,
    /// Between two pixels on each axis, by straight lines.
    Bilinear,
    /// Between four pixels on each axis, by Keys's curves with a = -0.75.
    Bicubic,
    /// `Bilinear` with kernels as wide as the new pixels, so a smaller image uses all pixels. The same as PyTorch's `antialias`.
    BilinearAntialiased,
    /// `BilinearAntialiased` with Keys's cubic curves, a = -0.5.
    BicubicAntialiased,
}

impl Interpolation {
    /// Returns the constants of its frames: how far its kernel reaches, whether it is widened, and `weight` of a
    /// distance.
    pub(super) fn kernel(self) -> String {
        let (reach, wide, curve) = self.parameters();
        format!("const KERNEL = {reach}u;\nconst WIDE = {wide};\nconst CURVE = {curve:?};\n\n{WEIGHT}")
    }

    /// The pixels to each side that count, whether the kernel is widened, and Keys's parameter.
    fn parameters(self) -> (u8, bool, f32) {
        match self {
            Self::Nearest => (0, false, -0.75),
            Self::Bilinear => (1, false, -0.75),
            Self::Bicubic => (2, false, -0.75),
            Self::BilinearAntialiased => (1, true, -0.5),
            Self::BicubicAntialiased => (2, true, -0.5),
        }
    }
}

/// Rows along the last axis, scaled.
struct Interpolate {
    input: Arc<Typed>,
    by: Interpolation,
}

impl Operation for Interpolate {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, words: &mut KeyWords) -> bool {
        (self.by as usize).hash(words);
        true
    }

    fn fusable(&self) -> u32 {
        2
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            // Elements are read more than once.
            let input = narrowed(call.engine, &self.input, 1).await?;
            let rank = input.shape.len();
            let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
            let width = call.of.shape[rank - 1];
            word(product(&[rows, length.max(width)]))?;
            let step = length as f64 / width as f64;
            // The middle of the first new pixel, from the middle of the first old one.
            let first = if self.by == Interpolation::Nearest { 0.0 } else { 0.5 * step - 0.5 };
            let words = [word(length)?, word(width)?, (step as f32).to_bits(), (first as f32).to_bits()];
            let mut writer = Writer::new(&words);
            let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
            writer.function("element", &input, &input.shape, &groups, None)?;
            let (value, dtype) = call.finished(&mut writer, "value", &groups)?;
            let body = format!(
                "\n{}\n\
                 fn store(row: u32, place: u32, value: f32) {{ y[row * words[0].y + place] = {value}; }}\n\n{INTERPOLATE}",
                self.by.kernel()
            );
            let output = call.output(&writer, dtype, "interpolate").await?;
            let workgroups = [width.div_ceil(64), rows, 1];
            Composed {
                name: "interpolate",
                writer: &writer,
                output: stored(dtype),
                body: &body,
                workgroups,
                flops: 0,
                // As wide as the step, by two pixels to each side at most.
                rounds: looped(length.min(4 * (step.ceil() as usize).saturating_add(1)), 0),
            }
            .run(call.engine, &output)
            .await?;
            Ok(output)
        })
    }
}

/// Both axes at once, computed natively by a device.
struct Resample {
    input: Arc<Typed>,
    size: [usize; 2],
    by: Interpolation,
}

impl Resample {
    fn shape(&self) -> ResampleShape {
        let (reach, wide, curve) = self.by.parameters();
        let sides = &self.input.shape;
        let kernel = ResampleKernel::new(reach, wide, curve);
        ResampleShape::new(product(&sides[..2]), [sides[2], sides[3]], self.size, kernel)
    }
}

impl Operation for Resample {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, words: &mut KeyWords) -> bool {
        (self.by as usize, self.size).hash(words);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let operation = NativeOperation::Resample(self.shape());
            if call.engine.has_native(&operation) {
                let input = compute(call.engine, &self.input).await?;
                let like = (DType::F32, &*call.of.shape);
                if let Some(images) = call.engine.native_async(operation, &[&input], like, "interpolate").await? {
                    return Ok(images);
                }
            }
            compute(call.engine, &scaled(&self.input, self.size, self.by)).await
        })
    }
}

/// One axis after the other, by kernels.
fn scaled(images: &Arc<Typed>, size: [usize; 2], by: Interpolation) -> Arc<Typed> {
    let mut result = images.clone();
    for (axis, to) in [(3, size[1]), (2, size[0])] {
        let input = to_last(&result, axis);
        let mut shape = input.shape.clone();
        if shape[3] != to {
            shape[3] = to;
            result = with_last(&Typed::deferred(Interpolate { input, by }, shape, DType::F32), axis);
        }
    }
    result
}

impl Expr {
    /// Resizes images (N, C, H, W) to another height and width. f16 is computed in f32.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Interpolation;
    /// let x = engine.tensor_from(&[0.0_f32, 4.0], &[1, 1, 1, 2])?;
    /// assert_eq!(x.interpolate([1, 4], Interpolation::Nearest).eval()?.to_vec::<f32>()?, [0.0, 0.0, 4.0, 4.0]);
    /// assert_eq!(x.interpolate([1, 4], Interpolation::Bilinear).eval()?.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn interpolate(&self, size: [usize; 2], by: Interpolation) -> Self {
        self.derived(|typed| {
            let sides = images(typed, "interpolate")?;
            if size.contains(&0) || sides[2..].contains(&0) {
                return Err(Error::shape(
                    format!("interpolate of {:?} to {size:?}", typed.shape),
                    "images must have at least one row and one column",
                ));
            }
            let images = typed.widened();
            let mut shape = images.shape.clone();
            shape[2..].copy_from_slice(&size);
            let result = if images.shape.contains(&0) {
                // No images give no images.
                Typed::filled(0.0, &shape, DType::F32)
            } else if images.shape == shape {
                // With the same number of pixels each stays as it is.
                images
            } else {
                let both = Resample { input: images.clone(), size, by };
                match self.engine.has_native(&NativeOperation::Resample(both.shape())) {
                    true => Typed::deferred(both, shape, DType::F32),
                    false => scaled(&images, size, by),
                }
            };
            Ok(result.narrowed(typed.dtype))
        })
    }
}

tensor_methods! {
    fn interpolate(size: [usize; 2], by: Interpolation);
}
