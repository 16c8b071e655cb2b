//! Images in another size: first the width, then the height, each by weighted sums. A kernel does both for a tile, with the rows between in workgroup memory
//! (`Tile`); where these do not fit, or only one axis changes, an axis is a pass of its own. Weights are made in the kernel, in float32 step by step, and the
//! CPU, which does both axes in one operation, makes its tables by the same steps. `grid_sample` shares the methods.

use std::hash::Hash;
use std::sync::Arc;

use super::images::images;
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, ResampleKernel, ResampleShape};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{self, Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::{to_last, with_last};
use crate::ops::tune::Machine;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const INTERPOLATE: &str = cantus_shaders::tensor::INTERPOLATE;
const INTERPOLATE_TILE: &str = cantus_shaders::tensor::INTERPOLATE_TILE;
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

    /// The step from one new pixel to the next, and the place of the first one, in old pixels of that axis.
    fn places(self, length: usize, to: usize) -> (f32, f32) {
        let step = length as f64 / to as f64;
        // The middle of the first new pixel, from the middle of the first old one.
        let first = if self == Self::Nearest { 0.0 } else { 0.5 * step - 0.5 };
        (step as f32, first as f32)
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

/// The pixels of a row that count for one of another length, at most: as wide as the step, by two pixels to each side.
fn taps(length: usize, to: usize) -> usize {
    length.max(4).min(length.div_ceil(to).saturating_add(1).saturating_mul(4))
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

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.by as usize).hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        2
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            // Elements are read more than once.
            let input = call.narrowed(&self.input, 1).await?;
            let rank = input.shape.len();
            let (rows, length) = (product(&input.shape[..rank - 1]), input.shape[rank - 1]);
            let width = call.of.shape[rank - 1];
            word(product(&[rows, length.max(width)]))?;
            let (step, first) = self.by.places(length, width);
            let words = [word(length)?, word(width)?, step.to_bits(), first.to_bits()];
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
                rounds: looped(taps(length, width), 0),
            }
            .run(call.engine, &output)
            .await?;
            Ok(output)
        })
    }
}

/// Columns of a tile, and rows of an image that are scaled along themselves for it, at most: 16 KiB of workgroup memory, which every device has.
const WIDTH: usize = 64;
const ROWS: usize = 64;
/// Workgroups that keep a GPU's processors busy: with fewer, tiles are lower.
const BUSY: usize = 128;

/// A tile of images in another size: the kernel that reads an image once.
struct Tile {
    height: usize,
}

impl Tile {
    /// Returns `None` where a tile would need more rows than fit, or many that no pixel needs.
    fn of(images: usize, from: [usize; 2], to: [usize; 2], by: Interpolation, machine: Machine) -> Option<Self> {
        let (reach, wide, _) = by.parameters();
        let step = from[0] as f64 / to[0] as f64;
        let around = 2.0 * f64::from(reach) * if wide { step.max(1.0) } else { 1.0 };
        // With what rounding may add.
        let rows = |height: usize| (((height - 1) as f64 * step + around).ceil() as usize).saturating_add(3);
        let fits = |height: usize| rows(height) <= if wide { ROWS } else { ROWS.min(4 * height + 8) };
        let heights = [16, 8, 4, 2, 1].into_iter().filter(|&height| fits(height)).listed();
        let wanted = match machine {
            Machine::Discrete | Machine::Matrices | Machine::Gpu => BUSY,
            Machine::Cpu | Machine::Compiler | Machine::Lanes => 1,
        };
        let is_enough = |height: usize| product(&Self { height }.workgroups(images, to)) >= wanted;
        // Lower ones scale most rows several times.
        let low = heights.iter().rfind(|&&height| height >= 4).or(heights.first());
        let height = heights.iter().find(|&&height| height >= 4 && is_enough(height)).or(low)?;
        Some(Self { height: *height })
    }

    fn workgroups(&self, images: usize, [height, width]: [usize; 2]) -> [usize; 3] {
        [width.div_ceil(WIDTH), height.div_ceil(self.height), images]
    }

    /// The rounds of an invocation's loops.
    fn rounds(&self, from: [usize; 2], to: [usize; 2]) -> usize {
        let [down, across] = [0, 1].map(|axis| looped(taps(from[axis], to[axis]), 0));
        looped(ROWS / 16, across) + looped(self.height.div_ceil(4), down)
    }
}

/// Both axes at once: by a device natively, or by tiles.
struct Resample {
    input: Arc<Typed>,
    size: [usize; 2],
    by: Interpolation,
    /// A device does it natively.
    is_native: bool,
}

impl Resample {
    fn shape(&self) -> ResampleShape {
        let (reach, wide, curve) = self.by.parameters();
        let kernel = ResampleKernel::new(reach, wide, curve);
        ResampleShape::new(self.images(), self.sides(), self.size, kernel)
    }

    fn images(&self) -> usize {
        product(&self.input.shape[..2])
    }

    fn sides(&self) -> [usize; 2] {
        [self.input.shape[2], self.input.shape[3]]
    }

    /// The tile of the kernel, if both axes change.
    fn tile(&self, machine: Machine) -> Option<Tile> {
        let (from, to) = (self.sides(), self.size);
        let both = from[0] != to[0] && from[1] != to[1];
        both.then(|| Tile::of(self.images(), from, to, self.by, machine)).flatten()
    }

    async fn by_tiles(&self, call: Call<'_>, input: &Arc<Typed>, tile: Tile) -> Result<Tensor> {
        let (from, to) = (self.sides(), self.size);
        word(product(&[self.images(), from[0].max(to[0]), from[1].max(to[1])]))?;
        let [(down, top), (across, left)] = [0, 1].map(|axis| self.by.places(from[axis], to[axis]));
        let bits = [down, across, top, left].map(f32::to_bits);
        let sides = [word(from[0])?, word(from[1])?, word(to[0])?, word(to[1])?];
        let mut writer = Writer::new([sides, bits].as_flattened());
        let groups = |y, x| [("image", 0..2), (y, 2..3), (x, 3..4)];
        writer.function("element", input, &input.shape, &groups("row", "column"), None)?;
        let (value, dtype) = call.finished(&mut writer, "value", &groups("y_at", "x_at"))?;
        let body = format!(
            "\nconst HEIGHT = {}u;\n{}\n\
             fn store(image: u32, y_at: u32, x_at: u32, value: f32) {{\n    \
             y[(image * words[0].z + y_at) * words[0].w + x_at] = {value};\n}}\n\n{INTERPOLATE_TILE}",
            tile.height,
            self.by.kernel()
        );
        let output = call.output(&writer, dtype, "interpolate").await?;
        let (workgroups, rounds) = (tile.workgroups(self.images(), to), tile.rounds(from, to));
        let output_type = stored(dtype);
        Composed {
            name: "interpolate_tile",
            writer: &writer,
            output: output_type,
            body: &body,
            workgroups,
            flops: 0,
            rounds,
        }
        .run(call.engine, &output)
        .await?;
        Ok(output)
    }
}

impl Operation for Resample {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.by as usize, self.size).hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        if self.is_native { 0 } else { 2 }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let operation = NativeOperation::Resample(self.shape());
            if call.engine.has_native(&operation) {
                let input = call.compute(&self.input).await?;
                let like = (DType::F32, &*call.of.shape);
                if let Some(images) = call.engine.native_async(operation, &[&input], like, "interpolate").await? {
                    return call.followed(images).await;
                }
            }
            // Elements are read more than once.
            let input = call.narrowed(&self.input, 1).await?;
            let mut tensors = Vec::new();
            emit::tensors(&input, &mut tensors);
            match self.tile(call.engine.shared().machine(tensors.first())) {
                Some(tile) => self.by_tiles(call, &input, tile).await,
                None => call.followed(call.compute(&scaled(&self.input, self.size, self.by)).await?).await,
            }
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
                let mut both = Resample { input: images.clone(), size, by, is_native: false };
                both.is_native = self.engine.has_native(&NativeOperation::Resample(both.shape()));
                match both.is_native || both.tile(Machine::Gpu).is_some() {
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
