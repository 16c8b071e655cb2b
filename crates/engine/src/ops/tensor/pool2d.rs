//! The greatest or the mean value of windows of images.

use std::hash::Hash;
use std::sync::Arc;

use super::images::{AXES, Window, images, store, words};
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, PoolShape};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::Writer;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::shape::product;
use crate::ops::frame::Frame;
use crate::tensor::DType;

const POOL2D: Frame<1> = Frame::new(cantus_shaders::tensor::POOL2D, ["MEAN"]);

struct Pool2d {
    input: Arc<Typed>,
    shape: PoolShape,
}

impl Operation for Pool2d {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.shape.hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        3
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(self.pool(call))
    }
}

impl Pool2d {
    async fn pool(&self, call: Call<'_>) -> Result<Tensor> {
        let shape = self.shape;
        let x = call.compute(&self.input).await?;
        if x.dtype() == DType::F32 {
            let (operation, like) = (NativeOperation::Pool(shape), (DType::F32, &*call.of.shape));
            if let Some(result) = call.engine.native_async(operation, &[&x], like, "pool2d").await? {
                return call.followed(result).await;
            }
        }
        let x = Typed::read(&x);
        let ([height, width], [images, channels]) = (shape.output, [call.of.shape[0], call.of.shape[1]]);
        let sizes = [
            [height, width, channels, images],
            [shape.input[0], shape.input[1], shape.kernel[0], shape.kernel[1]],
            [shape.stride[0], shape.stride[1], shape.padding[0], shape.padding[1]],
            [shape.dilation[0], shape.dilation[1], usize::from(shape.mean == Some(true)), 0],
        ];
        let mut writer = Writer::new(&words(sizes.as_flattened())?);
        writer.function("load_x", &x, &x.shape, &AXES, None)?;
        let (text, dtype) = store(&mut writer, call)?;
        let body = text + &POOL2D.filled([shape.mean.map(|_| "true")]);
        let output = call.output(&writer, dtype, "pool2d").await?;
        let workgroups = [(height * width).div_ceil(64), channels, images];
        let rounds = looped(shape.kernel[0], looped(shape.kernel[1], 0));
        Composed { name: "pool2d", writer: &writer, output: stored(dtype), body: &body, workgroups, flops: 0, rounds }
            .run(call.engine, &output)
            .await?;
        Ok(output)
    }
}

impl Expr {
    /// Returns the greatest value of each window; NaN if there is one.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Window;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1, 1, 3, 3])?;
    /// assert_eq!(x.max_pool2d([2, 2], Window::default()).eval()?.to_vec::<f32>()?, [5.0, 6.0, 8.0, 9.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn max_pool2d(&self, kernel: [usize; 2], window: Window) -> Self {
        self.pooled(kernel, window, None)
    }

    /// Returns the mean of each window. With `count_padding` the zeros around the image count as elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Window;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1, 1, 3, 3])?;
    /// let mean = x.avg_pool2d([2, 2], Window::strided(2).padded(1), false).eval()?;
    /// assert_eq!(mean.to_vec::<f32>()?, [1.0, 2.5, 5.5, 7.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
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
                    return Err(Error::shape(format!("a padding of {:?}", window.padding), format!(
                            "it may be at most half of the window {kernel:?}; beyond that a window would hold only padding"
                        )));
                }
            }
            let shape = vec![n, c, output[0], output[1]];
            if shape.contains(&0) {
                return Ok(Typed::filled(0.0, &shape, x.dtype));
            }
            let Window { stride, padding, dilation } = window;
            let sizes =
                PoolShape { planes: product(&[n, c]), input: [h, w], kernel, output, stride, padding, dilation, mean };
            let operation = Pool2d { input: x.clone(), shape: sizes };
            Ok(Typed::deferred(operation, shape, DType::F32).narrowed(x.dtype))
        })
    }
}

tensor_methods! {
    fn max_pool2d(kernel: [usize; 2], window: Window);
    fn avg_pool2d(kernel: [usize; 2], window: Window, count_padding: bool);
}
