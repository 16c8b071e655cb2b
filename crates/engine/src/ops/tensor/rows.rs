//! Kernels that give a workgroup to each row: what softmax, rms_norm and layer_norm share. A frame gets `element` and `store` and a row's length; epilogues
//! join the store. Rows along another axis are moved last and back, as views. The CPU has these functions natively with steps before and after the row;
//! devices with neither run one workgroup for each row. Its invocations read a row once and hold it in registers if it is not too long (`held`), else they
//! read it as often as they need it.

use std::hash::Hash;
use std::sync::Arc;

use super::unrolled::unrolled;
use crate::backend::BoxFuture;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::RowFunction;
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::chain;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::node::{Expr, Typed, is_float};
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::along_last;
use crate::ops::tune::Machine;
use crate::tensor::DType;

/// A frame that makes a row of a row: the last axis.
#[derive(Clone)]
pub(super) struct Rows {
    /// The frame's name.
    pub(super) name: &'static str,
    /// The frame's text, with that number of invocations for a row. Given: `element(row, place)`, `lanes_sum`, `store(row, place, value)`, `words[0]` = (rows,
    /// length of a row, bits of eps).
    pub(super) frame: fn(lanes: Option<&str>) -> String,
    /// The same for a row that the registers of that number of invocations hold, with lines to be written out for each element of an invocation.
    pub(super) held: fn(lanes: Option<&str>) -> String,
    /// The logarithm of softmax.
    pub(super) is_logarithm: bool,
    pub(super) eps: f32,
}

impl Rows {
    /// The frame as a function that devices may compute natively.
    fn function(&self) -> Option<RowFunction> {
        Some(match (self.name, self.is_logarithm) {
            ("softmax", false) => RowFunction::Softmax,
            ("softmax", true) => RowFunction::LogSoftmax,
            ("layer_norm", false) => RowFunction::LayerNorm(self.eps.to_bits()),
            ("rms_norm", false) => RowFunction::RmsNorm(self.eps.to_bits()),
            _ => return None,
        })
    }
}

struct RowsOf {
    rows: Rows,
    input: Arc<Typed>,
}

impl Operation for RowsOf {
    fn lowers(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.rows.name, self.rows.is_logarithm, self.rows.eps.to_bits()).hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        2
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let Rows { name, frame, eps, .. } = &self.rows;
            if let Some(function) = self.rows.function() {
                let after = call.epilogue.map(|epilogue| (epilogue.typed, epilogue.of));
                let input = call.schedule.lowered(&self.input);
                if let Some(rows) = chain::rows(call.engine, function, &input, after, name).await? {
                    return Ok(rows);
                }
                // The device computes the rows natively, but not the epilogue, which follows in a kernel.
                if after.is_some()
                    && let Some(rows) = chain::rows(call.engine, function, &input, None, name).await?
                {
                    return call.followed(rows).await;
                }
            }
            let input = call.slim(&self.input).await?;
            let rank = input.shape.len();
            let length = input.shape[rank - 1];
            let rows = product(&input.shape[..rank - 1]);
            word(input.count())?;
            let mut writer = Writer::new(&[word(rows)?, word(length)?, eps.to_bits(), 0]);
            let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
            writer.function("element", &input, &input.shape, &groups, None)?;
            let (value, dtype) = call.finished(&mut writer, "value", &groups)?;
            let machine = call.engine.shared().machine(writer.tensors().first());
            let frame = match held(length, machine) {
                Some([lanes, each]) => unrolled(&(self.rows.held)(Some(&format!("{lanes}u"))), each),
                None => frame(lanes_for(length, machine)),
            };
            let body = format!(
                "\nfn store(row: u32, place: u32, value: f32) {{ y[row * words[0].y + place] = {value}; }}\n\n{lanes}\n{frame}",
                lanes = cantus_shaders::LANES,
            );
            let output = call.output(&writer, dtype, name).await?;
            let workgroups = [rows, 1, 1];
            // Three passes over the row by at least 64 invocations, and their partial results combined.
            let rounds = 3 * length.div_ceil(64) + 64;
            Composed { name, writer: &writer, output: stored(dtype), body: &body, workgroups, flops: 0, rounds }
                .run(call.engine, &output)
                .await?;
            Ok(output)
        })
    }

    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        self.rows.function().map(Part::Rows)
    }
}

/// The longest row that registers hold. Longer ones are a cluster's of NVIDIA's, where one has clusters.
const LONGEST_HELD: usize = 8191;
/// Elements that an invocation holds, at most: of a row that 256 invocations share, twice as many.
const HELD: usize = 16;

/// The invocations for a row that registers hold, and the elements of each.
fn held(length: usize, machine: Machine) -> Option<[usize; 2]> {
    // What imitates a GPU spends its time on barriers, which it takes invocation by invocation.
    let few = if machine == Machine::Lanes { 16 } else { 64 };
    let lanes = [few, 64, 256].into_iter().find(|lanes| length <= lanes * HELD).unwrap_or(256);
    (1..=LONGEST_HELD).contains(&length).then(|| [lanes, length.div_ceil(lanes).next_power_of_two()])
}

/// The invocations for a row of that length, if the frame's own number does not suit the kind of device: a short row keeps few of them busy, and what
/// imitates a GPU spends its time on barriers, which it takes invocation by invocation.
pub(super) fn lanes_for(length: usize, machine: Machine) -> Option<&'static str> {
    match (machine, length) {
        (Machine::Lanes, ..=1024) => Some("16u"),
        (Machine::Lanes, ..=8192) | (Machine::Discrete | Machine::Matrices | Machine::Gpu, ..=1024) => Some("64u"),
        _ => None,
    }
}

impl Expr {
    /// The frame over each row along an axis.
    pub(super) fn rows(&self, rows: &Rows, axis: isize) -> Self {
        self.derived(|typed| {
            if !is_float(typed.dtype) {
                return Err(Error::dtype(format!("{} of {}", rows.name, typed.dtype), "it needs floats (cast first)"));
            }
            if rows.eps.is_nan() || rows.eps.is_infinite() || rows.eps < 0.0 {
                return Err(Error::invalid(format!("eps {}", rows.eps), "it must not be negative"));
            }
            along_last(typed, axis, |input| {
                let shape = input.shape.clone();
                Typed::deferred(RowsOf { rows: rows.clone(), input }, shape, DType::F32)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_hold_rows_of_up_to_thirty_two_elements_for_an_invocation() {
        for machine in [Machine::Lanes, Machine::Compiler, Machine::Discrete] {
            for length in [1, 63, 64, 256, 257, 1024, 1025, 4096, 4097, 8191] {
                let [lanes, each] = held(length, machine).expect("it is short");
                assert!(lanes * each >= length && each <= 32, "{length}");
            }
            assert_eq!([0, 8192].map(|length| held(length, machine)), [None, None]);
        }
        assert_eq!(held(4096, Machine::Discrete), Some([256, 16]));
        assert_eq!(held(256, Machine::Lanes), Some([16, 16]));
    }
}
