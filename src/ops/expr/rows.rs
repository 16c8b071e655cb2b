//! Normalisations along an axis: a workgroup for each row.

use std::sync::Arc;

use super::deferred::{Deferred, Epilogue, Launch, Operation, slim};
use super::emit::{Writer, too_large};
use super::node::{Binary, Expr, Typed, is_float};
use super::view::{axis_of, permuted};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::tensor::DType;

const SOFTMAX: &str = include_str!("../../../shaders/tensor/softmax.wgsl");
const MOMENTS: &str = include_str!("../../../shaders/tensor/moments.wgsl");

/// What is made of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Normalisation {
    Softmax,
    LogSoftmax,
    /// By the root of the mean square, with eps.
    Rms(f32),
    /// By mean and deviation, with eps.
    Layer(f32),
}

/// A normalisation along the last axis.
pub(super) struct Rows {
    pub(super) normalisation: Normalisation,
    pub(super) input: Arc<Typed>,
}

impl Rows {
    pub(super) async fn run(
        &self,
        engine: &Engine,
        of: &Arc<Deferred>,
        epilogue: Option<&Epilogue<'_>>,
    ) -> Result<Tensor> {
        let mut others = Vec::new();
        if let Some(epilogue) = epilogue {
            super::emit::tensors(epilogue.typed, &mut others);
        }
        let input = slim(engine, &self.input, others.len()).await?;
        let rank = input.shape.len();
        let length = input.shape[rank - 1];
        let rows: usize = input.shape[..rank - 1].iter().product();
        let word = |value: usize| u32::try_from(value).map_err(|_| too_large(value));
        word(input.count())?;
        let (template, name, eps) = match self.normalisation {
            Normalisation::Softmax => (SOFTMAX.to_owned(), "softmax", 0.0),
            Normalisation::LogSoftmax => (enabled(SOFTMAX, "LOGARITHM"), "softmax", 0.0),
            Normalisation::Rms(eps) => (MOMENTS.to_owned(), "moments", eps),
            Normalisation::Layer(eps) => (enabled(MOMENTS, "CENTRED"), "moments", eps),
        };
        let mut writer = Writer::new(&[word(rows)?, word(length)?, eps.to_bits(), 0]);
        let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
        writer.function("element", &input, &input.shape, &groups, None)?;
        let mut value = "value";
        let mut dtype = of.dtype;
        if let Some(epilogue) = epilogue {
            writer.function("finished", epilogue.typed, &of.shape, &groups, Some(epilogue.of))?;
            (value, dtype) = ("finished(value, row, place)", epilogue.typed.dtype);
        }
        let body = format!(
            "\nfn store(row: u32, place: u32, value: f32) {{ y[row * words[0].y + place] = {value}; }}\n\n{template}"
        );
        let output = engine.output(writer.tensors().first(), dtype, &of.shape, name).await?;
        let stored = super::emit::stored(dtype);
        Launch { name, writer: &writer, output: stored, body: &body, workgroups: [rows, 1, 1], flops: 0 }
            .run(engine, &output)
            .await?;
        Ok(output)
    }
}

/// A template with one of its switches on.
fn enabled(template: &str, switch: &str) -> String {
    template.replace(&format!("const {switch} = false;"), &format!("const {switch} = true;"))
}

impl Expr {
    fn normalised(&self, normalisation: Normalisation, axis: isize) -> Self {
        self.derived(|typed| {
            if !is_float(typed.dtype) {
                return Err(Error::InvalidInput {
                    what: format!("{normalisation:?} of {}", typed.dtype),
                    reason: "it is for floats (cast first)".to_owned(),
                });
            }
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            if typed.shape.contains(&0) {
                return Ok(typed.clone());
            }
            let mut order: Vec<usize> = (0..rank).filter(|&other| other != axis).collect();
            order.push(axis);
            let input = permuted(typed, &order);
            let shape = input.shape.clone();
            let result = Typed::deferred(Operation::Rows(Rows { normalisation, input }), shape, DType::F32);
            let back: Vec<usize> =
                (0..rank).map(|axis| order.iter().position(|&from| from == axis).unwrap_or(axis)).collect();
            let result = permuted(&result, &back);
            Ok(match typed.dtype {
                DType::F16 => Typed::new(super::node::Node::Cast(result), typed.shape.clone(), DType::F16),
                _ => result,
            })
        })
    }

    /// e^x over the sum of e^x along an axis.
    #[must_use]
    pub fn softmax(&self, axis: isize) -> Self {
        self.normalised(Normalisation::Softmax, axis)
    }

    /// The logarithm of [`Expr::softmax`], without the loss of taking it afterwards.
    #[must_use]
    pub fn log_softmax(&self, axis: isize) -> Self {
        self.normalised(Normalisation::LogSoftmax, axis)
    }

    /// x / sqrt(mean of x² + `eps`) along the last axis, times `gain` (Zhang and Sennrich, 2019). A usual `eps` is 1e-6.
    #[must_use]
    pub fn rms_norm(&self, gain: impl Into<Self>, eps: f32) -> Self {
        self.checked_eps(eps).normalised(Normalisation::Rms(eps), -1).binary(Binary::Mul, gain.into())
    }

    /// (x - mean) / sqrt(variance + eps) along the last axis, times `gain`, plus `bias` (Ba, Kiros and Hinton, 2016).
    #[must_use]
    pub fn layer_norm(&self, gain: impl Into<Self>, bias: impl Into<Self>, eps: f32) -> Self {
        let normalised = self.checked_eps(eps).normalised(Normalisation::Layer(eps), -1);
        normalised.binary(Binary::Mul, gain.into()).binary(Binary::Add, bias.into())
    }

    fn checked_eps(&self, eps: f32) -> Self {
        self.derived(|typed| {
            if eps >= 0.0 && eps.is_finite() {
                return Ok(typed.clone());
            }
            Err(Error::InvalidInput {
                what: format!("eps {eps}"),
                reason: "it must be 0 or a positive number".to_owned(),
            })
        })
    }
}
