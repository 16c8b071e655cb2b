//! Images read wherever a grid says, with the weights of `interpolate` and what `Padding` puts beyond the edges. One invocation computes a pixel. The grid
//! is float32 and bounded: positions beyond 10^6 pixels count as 10^6, so no index overflows.

use std::hash::Hash;
use std::sync::Arc;

use super::images::images;
use super::interpolate::Interpolation;
use super::pad::Padding;
use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Group, Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Typed};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::tensor::DType;
use cantus_base::listed::Listed;

const GRID_SAMPLE: &str = cantus_shaders::tensor::GRID_SAMPLE;

struct GridSample {
    input: Arc<Typed>,
    grid: Arc<Typed>,
    by: Interpolation,
    outside: Padding,
    aligned: bool,
}

impl Operation for GridSample {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input, &self.grid]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        let outside = match self.outside {
            Padding::Constant(value) => (0, value.to_bits()),
            Padding::Edge => (1, 0),
            Padding::Reflect => (2, 0),
            Padding::Wrap => (3, 0),
        };
        (self.by as usize, outside, self.aligned).hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.narrowed(&self.input, 1).await?;
            let grid = call.narrowed(&self.grid, 1).await?;
            let [images, channels, rows, columns] =
                [call.of.shape[0], call.of.shape[1], call.of.shape[2], call.of.shape[3]];
            let (outside, value) = match self.outside {
                Padding::Constant(value) => (0, value as f32),
                Padding::Edge => (1, 0.0),
                Padding::Reflect => (2, 0.0),
                Padding::Wrap => (3, 0.0),
            };
            let sizes = [input.shape[2], input.shape[3], rows, columns, channels];
            let mut words = sizes.iter().map(|&size| word(size)).try_listed()?;
            words.push(value.to_bits());
            word(call.of.shape.iter().product())?;
            let mut writer = Writer::new(&words);
            let groups: [Group<'_>; 4] = [("image_at", 0..1), ("channel", 1..2), ("row", 2..3), ("column", 3..4)];
            writer.function("image", &input, &input.shape, &groups, None)?;
            writer.function("grid", &grid, &grid.shape, &groups, None)?;
            let body = format!(
                "\n{}\nconst ALIGNED = {};\nconst OUTSIDE = {outside}u;\n\
                 fn store(image: u32, channel: u32, y_at: u32, x_at: u32, value: f32) {{\n    \
                 y[((image * words[1].x + channel) * words[0].z + y_at) * words[0].w + x_at] = value;\n}}\n\n{GRID_SAMPLE}",
                self.by.kernel(),
                self.aligned
            );
            let output = call.output(&writer, DType::F32, "grid_sample").await?;
            let workgroups = [(rows * columns).div_ceil(64), channels, images];
            Composed {
                name: "grid_sample",
                writer: &writer,
                output: "f32",
                body: &body,
                workgroups,
                flops: 0,
                rounds: 0,
            }
            .run(call.engine, &output)
            .await?;
            call.followed(output).await
        })
    }
}

impl Expr {
    /// Samples images (N, C, H, W) at the positions of a grid (N, height, width, 2), x before y: -1 is the left or upper end of the image and 1 the
    /// right or lower one. With `align_corners` the ends are the centres of the outermost pixels, otherwise their outer edges. `outside` sets the values
    /// beyond the image; reflections are at the ends. The grid is f32; positions beyond 10^6 pixels count as 10^6.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::{Interpolation, Padding};
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// let grid = engine.tensor_from(&[0.0_f32, 0.0, -1.0, 1.0], &[1, 1, 2, 2])?;
    /// let y = x.grid_sample(&grid, Interpolation::Bilinear, Padding::Edge, true).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.5, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn grid_sample(
        &self,
        grid: impl Into<Self>,
        by: Interpolation,
        outside: impl Into<Padding>,
        align_corners: bool,
    ) -> Self {
        let (grid, outside) = (grid.into(), outside.into());
        self.derived(|typed| {
            let grid = self.beside(&grid)?;
            let [n, c, h, w] = images(typed, "grid_sample")?;
            let fault =
                |reason: &str| Error::shape(format!("grid_sample of {:?} by {:?}", typed.shape, grid.shape), reason);
            let &[batch, rows, columns, 2] = &grid.shape[..] else {
                return Err(fault("the grid must have the shape (images, height, width, 2)"));
            };
            if grid.dtype != DType::F32 {
                return Err(Error::dtype(
                    format!("grid_sample by a grid of {}", grid.dtype),
                    "the grid must be f32 (cast it)",
                ));
            }
            if matches!(by, Interpolation::BilinearAntialiased | Interpolation::BicubicAntialiased) {
                return Err(Error::invalid(format!("grid_sample by {by:?}"), "it takes Nearest, Bilinear and Bicubic"));
            }
            if batch != n || h == 0 || w == 0 || h.max(w) > 1_000_000 {
                return Err(fault("each image needs a grid, and must have 1 to 10^6 rows and columns"));
            }
            let shape = vec![n, c, rows, columns];
            if shape.contains(&0) {
                let zero = Typed::new(Node::Constant(0.0), Vec::new(), typed.dtype);
                return Ok(Typed::new(Node::Cast(zero), shape, typed.dtype));
            }
            let operation = GridSample { input: typed.clone(), grid, by, outside, aligned: align_corners };
            Ok(Typed::deferred(operation, shape, DType::F32).narrowed(typed.dtype))
        })
    }
}

tensor_methods! {
    fn grid_sample(grid: impl Into<Expr>, by: Interpolation, outside: impl Into<Padding>, align_corners: bool);
}
