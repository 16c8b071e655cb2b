//! Losses: how far predictions are from targets, each the mean over all elements. Computed in float32. All are compositions, which fuse into a reduction.
//! Targets of classes are indices and are checked as those of `take`: one out of range is an error when the loss is read. Halves and integers are converted
//! to float32 first.

use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::tensor::DType;
use cantus_base::listed::Listed;

impl Expr {
    /// Returns the mean of (x - target)².
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 5.0])?;
    /// assert_eq!(x.mse_loss(engine.tensor(&[2.0_f32, 2.0])?).eval()?.item::<f32>()?, 5.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn mse_loss(&self, target: impl Into<Self>) -> Self {
        self.loss(&target.into(), "mse_loss", |x, target| x.binary(Binary::Sub, target).square())
    }

    /// Returns the mean of |x - target|.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 5.0])?;
    /// assert_eq!(x.l1_loss(engine.tensor(&[2.0_f32, 2.0])?).eval()?.item::<f32>()?, 2.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn l1_loss(&self, target: impl Into<Self>) -> Self {
        self.loss(&target.into(), "l1_loss", |x, target| x.binary(Binary::Sub, target).abs())
    }

    /// Returns the mean of d²/2 for distances d = |x - target| up to `delta`, and of delta (d - delta/2) beyond (Huber, 1964).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 5.0])?;
    /// assert_eq!(x.huber_loss(engine.tensor(&[2.0_f32, 2.0])?, 1.0).eval()?.item::<f32>()?, 1.5);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn huber_loss(&self, target: impl Into<Self>, delta: f64) -> Self {
        if delta.is_nan() || delta <= 0.0 {
            return self
                .failed(&Error::invalid(format!("huber_loss with a delta of {delta}"), "it is a positive number"));
        }
        self.loss(&target.into(), "huber_loss", |x, target| {
            let distance = x.binary(Binary::Sub, target).abs();
            let near = distance.minimum(delta);
            // Both cases in one: near (distance - near / 2).
            let rest = distance.binary(Binary::Sub, near.binary(Binary::Mul, 0.5));
            near.binary(Binary::Mul, rest)
        })
    }

    /// Returns the mean of -(t log x + (1 - t) log(1 - x)) for probabilities x and targets t from 0 to 1. Logarithms below -100 count as -100, as in
    /// PyTorch.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.5_f32, 0.5])?;
    /// let loss = x.binary_cross_entropy(engine.tensor(&[1.0_f32, 0.0])?).eval()?.item::<f32>()?;
    /// assert!((loss - 2.0_f32.ln()).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn binary_cross_entropy(&self, target: impl Into<Self>) -> Self {
        self.loss(&target.into(), "binary_cross_entropy", |x, target| {
            let (yes, no) = (x.log().maximum(-100.0), x.negate().log1p().maximum(-100.0));
            // -(no + t (yes - no))
            no.negate().binary(Binary::Sub, target.binary(Binary::Mul, yes.binary(Binary::Sub, &no)))
        })
    }

    /// Returns [`Expr::binary_cross_entropy`] of the logistic function of x, without the loss of precision of computing that first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[200.0_f32, 0.0])?;
    /// let loss = x.binary_cross_entropy_with_logits(engine.tensor(&[0.0_f32, 1.0])?).eval()?.item::<f32>()?;
    /// assert!((loss - (200.0 + 2.0_f32.ln()) / 2.0).abs() < 1e-4);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn binary_cross_entropy_with_logits(&self, target: impl Into<Self>) -> Self {
        // softplus(x) - t x
        self.loss(&target.into(), "binary_cross_entropy_with_logits", |x, target| {
            x.softplus().binary(Binary::Sub, target.binary(Binary::Mul, x))
        })
    }

    /// Returns the mean of t (log t - x) for logarithms of probabilities x and targets t, the Kullback-Leibler divergence per element. Terms with t = 0
    /// are 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.5_f32, 0.5])?.log();
    /// let loss = x.kl_div(engine.tensor(&[1.0_f32, 0.0])?).eval()?.item::<f32>()?;
    /// assert!((loss - 2.0_f32.ln() / 2.0).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn kl_div(&self, target: impl Into<Self>) -> Self {
        self.loss(&target.into(), "kl_div", |x, target| {
            let each = target.binary(Binary::Mul, target.log().binary(Binary::Sub, x));
            target.greater(0.0).select(each, target.constant(0.0))
        })
    }

    /// Returns the mean of -x at the class that an i32 or u32 target gives, for logarithms of probabilities x (N, C, …) and targets (N, …). A target
    /// out of range is an error when the result is read, as in [`Expr::take`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[-1.0_f32, -2.0, -3.0, -4.0], &[2, 2])?;
    /// assert_eq!(x.nll_loss(engine.tensor(&[0_u32, 1])?).eval()?.item::<f32>()?, 2.5);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn nll_loss(&self, target: impl Into<Self>) -> Self {
        let target = target.into();
        let checked = || -> Result<()> {
            let (x, t) = (self.shape()?, target.shape()?);
            let expected: Vec<usize> = x.iter().take(1).chain(x.iter().skip(2)).copied().listed();
            if x.len() < 2 || t != expected {
                return Err(Error::shape(
                    format!("a loss of {x:?} with targets {t:?}"),
                    "classes must be the second axis, and targets must have the other axes",
                ));
            }
            Ok(())
        };
        match checked() {
            Ok(()) => self
                .in_float(|x| Ok(x.gathered(&x.within(&target.expand(1), 1, "nll_loss"), 1).negate().mean(&[], false))),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns [`Expr::nll_loss`] of the logarithm of the softmax over the classes, for scores (N, C, …) and targets (N, …).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[0.0_f32, 0.0], &[1, 2])?;
    /// let loss = x.cross_entropy(engine.tensor(&[1_u32])?).eval()?.item::<f32>()?;
    /// assert!((loss - 2.0_f32.ln()).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cross_entropy(&self, target: impl Into<Self>) -> Self {
        let target = target.into();
        match self.shape().map(<[usize]>::len) {
            Ok(0 | 1) => self.nll_loss(target),
            _ => self.in_float(|x| Ok(x.log_softmax(1).nll_loss(target))),
        }
    }

    /// The mean of what `of` makes of each element and its target, in float32.
    fn loss(&self, target: &Self, what: &str, of: impl FnOnce(&Self, &Self) -> Self) -> Self {
        let target = target.clone();
        let checked = self.derived(|typed| {
            let other = self.beside(&target)?;
            if typed.shape != other.shape {
                return Err(Error::shape(
                    format!("{what} of {:?} with targets {:?}", typed.shape, other.shape),
                    "the shapes must be equal",
                ));
            }
            Ok(typed.clone())
        });
        checked.in_float(|x| Ok(of(x, &target.cast(DType::F32)).mean(&[], false)))
    }
}

tensor_methods! {
    fn mse_loss(target: impl Into<Expr>);
    fn l1_loss(target: impl Into<Expr>);
    fn huber_loss(target: impl Into<Expr>, delta: f64);
    fn binary_cross_entropy(target: impl Into<Expr>);
    fn binary_cross_entropy_with_logits(target: impl Into<Expr>);
    fn kl_div(target: impl Into<Expr>);
    fn nll_loss(target: impl Into<Expr>);
    fn cross_entropy(target: impl Into<Expr>);
}
