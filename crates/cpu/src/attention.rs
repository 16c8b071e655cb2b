//! Attention: some queries at a time meet all keys that they see, by two products with a softmax between. Their scores stay in a processor's own cache.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::multiply::product;
use super::native::{Call, Operation, Work, exactly};
use super::product::with_scratch;
use super::slabs::THREADS_PAY;
use crate::backend::native::AttentionShape;
use crate::spmd::math::{self, Isa};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Queries that meet their keys together, and scores that a thread keeps of them: fewer queries where there are many keys.
const TOGETHER: usize = 64;
const SCORES: usize = 1 << 19;
/// Scores that are looked at together.
const LANES: usize = 16;

impl Operation for AttentionShape {
    fn serves(&self) -> bool {
        let heads = self.query.offsets.len();
        [&self.key, &self.value].iter().all(|operand| operand.offsets.len() == heads)
            && [self.queries, self.keys, self.depth, self.width].iter().all(|&side| side > 0)
            && (!self.causal || self.queries <= self.keys)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let AttentionShape { queries, keys, depth, width, .. } = *self;
        let all = queries.checked_mul(width)?.checked_mul(self.query.offsets.len())?;
        Some(vec![self.query.reach(queries, depth)?, self.key.reach(keys, depth)?, self.value.reach(keys, width)?, all])
    }

    fn work(&self) -> Work {
        Work { size: self.flops() as usize / 2, pays: THREADS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let bindings = exactly(bindings)?;
        Ok(attend(self, bindings, call.limits)?)
    }
}

/// Computes it; the sizes were checked.
fn attend(shape: &AttentionShape, [q, k, v, y]: [Floats; 4], limits: &Limits<'_>) -> Result<(), Stopped> {
    let AttentionShape { queries, keys, depth, width, causal, .. } = *shape;
    let scale = f32::from_bits(shape.scale);
    let together = (SCORES / keys).clamp(1, TOGETHER);
    let blocks = queries.div_ceil(together);
    threads::try_each(shape.query.offsets.len() * blocks, |task| {
        limits.begin().check()?;
        // Those that see the most come first.
        let (head, first) = (task / blocks, (blocks - 1 - task % blocks) * together);
        let rows = together.min(queries - first);
        // Of the first of these queries, and of the last.
        let least = if causal { keys - queries + first + 1 } else { keys };
        let seen = if causal { least + rows - 1 } else { keys };
        let pitch = seen.next_multiple_of(LANES);
        let (q_at, k_at, v_at) =
            (shape.query.offsets[head] + first * shape.query.row, shape.key.offsets[head], shape.value.offsets[head]);
        with_scratch([rows * pitch, rows], |[scores, sums]| {
            // SAFETY: `run` checked that every element that the strides reach lies within the bindings; tasks write distinct rows.
            let results = unsafe {
                product(
                    [rows, seen, depth],
                    (scores.as_mut_ptr(), pitch),
                    (q.start().add(q_at), shape.query.row, shape.query.column),
                    (k.start().add(k_at), shape.key.column, shape.key.row),
                    false,
                );
                std::slice::from_raw_parts_mut(y.at((head * queries + first) * width), rows * width)
            };
            for (row, (line, sum)) in scores.chunks_exact_mut(pitch).zip(sums.iter_mut()).enumerate() {
                let sees = if causal { least + row } else { keys };
                let (line, rest) = line.split_at_mut(sees);
                *sum = weights(line, scale);
                rest.fill(0.0);
            }
            // SAFETY: `run` checked that every element that the strides reach lies within the bindings; results and scores have these rows.
            unsafe {
                product(
                    [rows, width, seen],
                    (results.as_mut_ptr(), width),
                    (scores.as_ptr(), pitch, 1),
                    (v.start().add(v_at), shape.value.row, shape.value.column),
                    false,
                );
            }
            for (line, sum) in results.chunks_exact_mut(width).zip(sums) {
                line.iter_mut().for_each(|value| *value /= *sum);
            }
        });
        Ok(())
    })
}

forms! {
    /// Makes weights of scores, e^(scaled score - the greatest one), and gives their sum.
    fn weights(scores: &mut [f32], scale: f32) -> f32 = weights_by
}

#[inline(always)]
fn weights_by<I: Isa>(scores: &mut [f32], scale: f32) -> f32 {
    let mut greatest = [f32::NEG_INFINITY; LANES];
    for line in scores.chunks_mut(LANES) {
        for (greatest, score) in greatest.iter_mut().zip(line) {
            *score *= scale;
            *greatest = if *score > *greatest { *score } else { *greatest };
        }
    }
    let greatest = greatest.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; LANES];
    for line in scores.chunks_mut(LANES) {
        for (sum, score) in sums.iter_mut().zip(line) {
            *score = math::exp::<I>(*score - greatest);
            *sum += *score;
        }
    }
    sums.into_iter().sum()
}
