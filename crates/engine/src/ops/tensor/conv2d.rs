//! Convolutions of images. The CPU has its own form; where a vendor's library multiplies, windows are laid out as columns for one product (`by_product`);
//! else a kernel of tiles runs (`tile`). Weights are not flipped. A bias and an activation that follow become part of the kernel.

mod tile;

use std::hash::Hash;
use std::sync::Arc;

use self::tile::Tile;
use super::images::{AXES, Window, images, store, words};
use crate::backend::BoxFuture;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::{Conv2dShape, MatmulShape, NativeOperation, Operand, ProductShape};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::Writer;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Typed};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::tensor::DType;
use cantus_base::listed::Listed;

struct Conv2d {
    input: Arc<Typed>,
    weight: Arc<Typed>,
    shape: Conv2dShape,
}

impl Operation for Conv2d {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input, &self.weight]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.shape.hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        4
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(self.convolve(call))
    }

    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        Some(Part::Convolution(self.shape))
    }
}

/// From this many channels of the result on, laying windows out for a library's product pays: each element of a window is written and read once
/// more, and multiplied that many times.
const PRODUCT_PAYS: usize = 64;
/// Elements of the windows, at most: 256 MiB.
const MOST_COLUMNS: usize = 1 << 26;

impl Conv2d {
    /// The product of the weights and the windows as columns, where a library of the vendor's multiplies.
    async fn by_product(&self, engine: &Engine, x: &Tensor, w: &Tensor) -> Result<Option<Tensor>> {
        let Conv2dShape { images, channels, kernel, output, stride, padding, dilation, groups, .. } = self.shape;
        let (k, n) = (product(&[channels[0], kernel[0], kernel[1]]), product(&output));
        if groups != 1 || channels[1] < PRODUCT_PAYS || n < 2 || product(&[images, k, n]) > MOST_COLUMNS {
            return Ok(None);
        }
        let a = Operand { offsets: vec![0; images], row: k, column: 1 };
        let b = Operand { offsets: (0..images).map(|image| image * k * n).listed(), row: n, column: 1 };
        if !engine.takes(x, &ProductShape::new(MatmulShape { m: channels[1], n, k, a, b, dtype: DType::F32 })) {
            return Ok(None);
        }
        let columns = x.expr().im2col(kernel, Window { stride, padding, dilation });
        let result = w.expr().reshape(&[channels[1], k]).matmul(columns);
        result.reshape(&[images, channels[1], output[0], output[1]]).eval_async().await.map(Some)
    }

    async fn convolve(&self, call: Call<'_>) -> Result<Tensor> {
        let (x, w) = (call.compute(&self.input).await?, call.compute(&self.weight).await?);
        let shape = self.shape;
        if x.dtype() == DType::F32 && w.dtype() == DType::F32 {
            let operation = NativeOperation::Conv2d(shape);
            if let Some(result) =
                call.engine.native_async(operation, &[&x, &w], (DType::F32, &call.of.shape), "conv2d").await?
            {
                return call.followed(result).await;
            }
            if let Some(result) = self.by_product(call.engine, &x, &w).await? {
                return call.followed(result).await;
            }
        }
        let tile = Tile::of(&shape, call.engine.shared().machine(Some(&x)));
        // What lies before and behind the image is counted too.
        words(&[0, 1].map(|axis| shape.input[axis].saturating_add(shape.padding[axis].saturating_mul(2))))?;
        let mut writer = Writer::new(&words(tile.words(&shape).as_flattened())?);
        let (x, w) = (Typed::read(&x), Typed::read(&w));
        writer.function("load_x", &x, &x.shape, &AXES, None)?;
        writer.function("load_w", &w, &w.shape, &AXES, None)?;
        let (text, dtype) = store(&mut writer, call)?;
        let output = call.output(&writer, dtype, "conv2d").await?;
        let body = text + &tile.text();
        let workgroups = tile.workgroups(&shape);
        let flops = usize::try_from(shape.flops()).unwrap_or(0);
        let rounds = tile.rounds(&shape);
        Composed { name: "conv2d", writer: &writer, output: stored(dtype), body: &body, workgroups, flops, rounds }
            .run(call.engine, &output)
            .await?;
        Ok(output)
    }
}

impl Expr {
    /// Returns the convolution of images (N, C, H, W) with weights (O, C / groups, h, w), which are not flipped, as usual in neural networks. f16 is
    /// multiplied and summed in f32. Add a bias of the shape (O, 1, 1): it becomes part of the kernel.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Window;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1, 1, 3, 3])?;
    /// let edges = engine.tensor_from(&[-1.0_f32, 1.0], &[1, 1, 1, 2])?;
    /// let y = x.conv2d(&edges, Window::default(), 1).eval()?;
    /// assert_eq!((y.shape(), y.to_vec::<f32>()?), (&[1, 1, 3, 2][..], vec![1.0; 6]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn conv2d(&self, weight: impl Into<Self>, window: Window, groups: usize) -> Self {
        let weight = weight.into();
        self.derived(|x| {
            let w = self.beside(&weight)?;
            let [n, c, h, width] = images(x, "conv2d")?;
            let [outputs, per_group, kh, kw] = images(&w, "the weights of conv2d")?;
            let fault =
                |reason: String| Error::shape(format!("conv2d of {:?} with weights {:?}", x.shape, w.shape), reason);
            if x.dtype != w.dtype {
                return Err(Error::dtype(
                    format!("conv2d of {} with weights {}", x.dtype, w.dtype),
                    "both must be f32, or both f16 (cast first)",
                ));
            }
            if groups == 0 || c % groups != 0 || outputs % groups != 0 {
                return Err(fault(format!("{groups} groups do not divide {c} and {outputs} channels")));
            }
            if per_group != c / groups {
                return Err(fault(format!(
                    "the weights are for {per_group} channels per group, but there are {}",
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
            let operation = Conv2d { input: x.clone(), weight: w, shape: sizes };
            Ok(Typed::deferred(operation, shape, DType::F32).narrowed(x.dtype))
        })
    }
}

tensor_methods! {
    fn conv2d(weight: impl Into<Expr>, window: Window, groups: usize);
}
