//! Normalisations of channels, composed of those of rows.

use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;

impl Expr {
    /// Returns (x - mean) / sqrt(variance + eps) over each group of channels of each image (N, C, …), times `gain`, plus `bias`, both of the shape (C)
    /// (Wu and He, 2018).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 3.0, 10.0, 30.0], &[1, 4, 1])?;
    /// let (gain, bias) = (engine.tensor(&[1.0_f32; 4])?, engine.zeros::<f32>(&[4])?);
    /// assert_eq!(x.group_norm(2, &gain, &bias, 0.0).eval()?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn group_norm(&self, groups: usize, gain: impl Into<Self>, bias: impl Into<Self>, eps: f32) -> Self {
        let normalised = self.channels("group_norm").and_then(|channels| {
            let shape = self.shape()?;
            if groups == 0 || channels % groups != 0 {
                return Err(Error::shape(
                    format!("group_norm of {shape:?}"),
                    format!("{groups} groups do not divide {channels} channels"),
                ));
            }
            let rest = shape[1..].iter().product::<usize>() / groups;
            Ok(self.reshape(&[shape[0], groups, rest]).normalised(eps).reshape(shape))
        });
        self.of(normalised).scaled_by_channel(gain.into(), bias.into(), "group_norm")
    }

    /// Returns (x - mean) / sqrt(variance + eps) over each channel of each image (N, C, …), times `gain`, plus `bias`, both of the shape (C) (Ulyanov,
    /// Vedaldi and Lempitsky, 2016).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 3.0, 10.0, 30.0], &[1, 2, 2])?;
    /// let (gain, bias) = (engine.tensor(&[1.0_f32; 2])?, engine.zeros::<f32>(&[2])?);
    /// assert_eq!(x.instance_norm(&gain, &bias, 0.0).eval()?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn instance_norm(&self, gain: impl Into<Self>, bias: impl Into<Self>, eps: f32) -> Self {
        match self.channels("instance_norm") {
            Ok(channels) => self.group_norm(channels.max(1), gain, bias, eps),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns (x - mean) / sqrt(variance + eps) by channel of images (N, C, …), times `gain`, plus `bias`, each of the shape (C). The mean and the
    /// variance come from training, as in inference (Ioffe and Szegedy, 2015).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 3.0], &[1, 2])?;
    /// let (mean, variance) = (engine.tensor(&[0.0_f32, 1.0])?, engine.tensor(&[1.0_f32, 4.0])?);
    /// let (gain, bias) = (engine.tensor(&[1.0_f32, 1.0])?, engine.tensor(&[0.0_f32, 5.0])?);
    /// let y = x.batch_norm(&mean, &variance, &gain, &bias, 0.0).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn batch_norm(
        &self,
        mean: impl Into<Self>,
        variance: impl Into<Self>,
        gain: impl Into<Self>,
        bias: impl Into<Self>,
        eps: f32,
    ) -> Self {
        let (mean, variance) = (mean.into(), variance.into());
        let centred = self.by_channel(&mean, "batch_norm").and_then(|mean| {
            let deviation = self.by_channel(&variance, "batch_norm")?.binary(Binary::Add, f64::from(eps)).sqrt();
            Ok(self.binary(Binary::Sub, mean).binary(Binary::Div, deviation))
        });
        self.of(centred).scaled_by_channel(gain.into(), bias.into(), "batch_norm")
    }

    fn scaled_by_channel(&self, gain: Self, bias: Self, what: &str) -> Self {
        let scaled = self.by_channel(&gain, what).and_then(|gain| {
            let bias = self.by_channel(&bias, what)?;
            Ok(self.binary(Binary::Mul, gain).binary(Binary::Add, bias))
        });
        self.of(scaled)
    }

    /// Numbers of the shape (C), beside images (N, C, …).
    fn by_channel(&self, numbers: &Self, what: &str) -> Result<Self> {
        let channels = self.channels(what)?;
        if numbers.shape()? != [channels] {
            return Err(Error::shape(
                format!("{what} by numbers of the shape {:?}", numbers.shape()?),
                format!("each of the {channels} channels needs one number"),
            ));
        }
        let mut shape = vec![1; self.shape()?.len() - 1];
        shape[0] = channels;
        Ok(numbers.reshape(&shape))
    }

    fn channels(&self, what: &str) -> Result<usize> {
        match self.shape()? {
            [_, channels, ..] => Ok(*channels),
            shape => Err(Error::shape(
                format!("{what} of the shape {shape:?}"),
                "the first two axes must be images and channels",
            )),
        }
    }
}

tensor_methods! {
    fn group_norm(groups: usize, gain: impl Into<Expr>, bias: impl Into<Expr>, eps: f32);
    fn instance_norm(gain: impl Into<Expr>, bias: impl Into<Expr>, eps: f32);
    fn batch_norm(mean: impl Into<Expr>, variance: impl Into<Expr>, gain: impl Into<Expr>, bias: impl Into<Expr>, eps: f32);
}
