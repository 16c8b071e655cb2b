//! Pictures of the crate `image`: buffers of any pixel whose parts have a dtype (`u8`, `u16`, `f32`).

use cantus::{Element, Error, Result, Tensor};
use image::{ImageBuffer, Pixel};

use crate::{HostArray, View};

impl HostArray {
    /// Creates an array of a picture, in its memory: `[height, width, parts of a pixel]`.
    ///
    /// ```
    /// use cantus_data::{HostArray, to_image};
    /// use image::{Rgb, RgbImage};
    ///
    /// let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let picture = RgbImage::from_pixel(3, 2, Rgb([1, 2, 3]));
    /// let x = HostArray::from_image(picture.clone())?.into_tensor(&engine)?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3, 3][..], cantus::DType::U8));
    /// assert_eq!(to_image::<Rgb<u8>>(&x)?, picture);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Limit`] if the system cannot address its bytes.
    pub fn from_image<P: Pixel<Subpixel: Element + Send + Sync>>(
        picture: ImageBuffer<P, Vec<P::Subpixel>>,
    ) -> Result<Self> {
        let parts = usize::from(P::CHANNEL_COUNT);
        let shape = [picture.height() as usize, picture.width() as usize, parts];
        let mut values = picture.into_raw();
        // A container may be longer than the picture.
        values.truncate(shape.iter().product());
        Self::from_vec(values, &shape)
    }
}

/// Copies a tensor to a picture: `[height, width, parts of a pixel]`, or `[height, width]` where a pixel has one part.
///
/// # Errors
/// [`Error::Shape`] for another shape, and as [`Tensor::to_vec`].
#[cfg(not(target_arch = "wasm32"))]
pub fn to_image<P: Pixel<Subpixel: Element>>(tensor: &Tensor) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
    let sides = sides::<P>(tensor.shape())?;
    buffer(sides, tensor.to_vec()?)
}

/// [`to_image`], as a future.
///
/// # Errors
/// As [`to_image`].
pub async fn to_image_async<P: Pixel<Subpixel: Element>>(tensor: &Tensor) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
    let sides = sides::<P>(tensor.shape())?;
    buffer(sides, tensor.to_vec_async().await?)
}

impl<T: bytemuck::AnyBitPattern + image::Primitive> View<T> {
    /// Makes it a picture in the same memory.
    ///
    /// # Errors
    /// [`Error::Shape`] for a shape other than those of [`to_image_async`].
    pub fn image<P: Pixel<Subpixel = T>>(self) -> Result<ImageBuffer<P, Self>> {
        let sides = sides::<P>(self.shape())?;
        buffer(sides, self)
    }
}

fn buffer<P: Pixel, C: std::ops::Deref<Target = [P::Subpixel]>>(
    (height, width): (u32, u32),
    values: C,
) -> Result<ImageBuffer<P, C>> {
    ImageBuffer::from_raw(width, height, values).ok_or_else(|| {
        Error::shape(format!("a picture of {width} by {height} pixels"), "it has fewer values than pixels")
    })
}

fn sides<P: Pixel>(shape: &[usize]) -> Result<(u32, u32)> {
    let parts = usize::from(P::CHANNEL_COUNT);
    let sides = match *shape {
        [height, width, own] if own == parts => Some((height, width)),
        [height, width] if parts == 1 => Some((height, width)),
        _ => None,
    };
    let sides = sides.and_then(|(height, width)| Some((u32::try_from(height).ok()?, u32::try_from(width).ok()?)));
    sides.ok_or_else(|| {
        Error::shape(format!("the shape {shape:?}"), format!("a picture of such pixels is [height, width, {parts}]"))
    })
}
