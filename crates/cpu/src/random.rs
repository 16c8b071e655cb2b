//! Random numbers by place: Philox 4x32-10 (Salmon et al., 2011), several blocks at a time.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, Operation, SCANS_PAY, Work, exactly};
use crate::backend::native::RandomShape;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Blocks that are computed at once, and the words that they give.
const BLOCKS: usize = 16;
const WORDS: usize = 4 * BLOCKS;
/// Words that a task makes at least.
const TASK: usize = 1 << 13;

impl Operation for RandomShape {
    fn serves(&self) -> bool {
        // Places are words of 32 bits.
        u32::try_from(self.count).is_ok()
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        Some(vec![self.count])
    }

    fn work(&self) -> Work {
        Work { size: self.count, pays: SCANS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [y] = exactly(bindings)?;
        Ok(fill(self, y, call.limits)?)
    }
}

/// Fills the binding, whose size was checked.
fn fill(shape: &RandomShape, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let count = shape.count;
    let key = [shape.seed as u32, (shape.seed >> 32) as u32];
    threads::try_each(count.div_ceil(TASK), |task| {
        limits.begin().check()?;
        let from = task * TASK;
        // SAFETY: within the binding; tasks write distinct parts.
        let part = unsafe { std::slice::from_raw_parts_mut(y.at(from).cast::<u32>(), TASK.min(count - from)) };
        stretch(part, from as u32, key, shape.uniform);
        Ok(())
    })
}

forms! {
    /// The words from a place on that is a multiple of four.
    fn stretch(words: &mut [u32], from: u32, key: [u32; 2], uniform: bool) = stretch_by
}

#[inline(always)]
fn stretch_by<I>(words: &mut [u32], from: u32, key: [u32; 2], uniform: bool) {
    let mut counter = from / 4;
    for words in words.chunks_mut(WORDS) {
        let state = blocks(counter, key);
        counter = counter.wrapping_add(BLOCKS as u32);
        let mut whole = [0_u32; WORDS];
        for (block, line) in whole.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *line = std::array::from_fn(|word| state[word][block]);
        }
        if uniform {
            for word in &mut whole {
                // 2^-24.
                *word = ((*word >> 8) as f32 * 5.960_464_5e-8).to_bits();
            }
        }
        words.copy_from_slice(&whole[..words.len()]);
    }
}

/// The words of blocks that follow each other, word by word.
#[inline(always)]
fn blocks(counter: u32, key: [u32; 2]) -> [[u32; BLOCKS]; 4] {
    let mut state = [std::array::from_fn(|at| counter.wrapping_add(at as u32)), [0; BLOCKS], [0; BLOCKS], [0; BLOCKS]];
    let mut key = key;
    for _ in 0..10 {
        let [x, y, z, w] = state;
        for at in 0..BLOCKS {
            let a = u64::from(x[at]) * 0xD251_1F53;
            let b = u64::from(z[at]) * 0xCD9E_8D57;
            state[0][at] = (b >> 32) as u32 ^ y[at] ^ key[0];
            state[1][at] = b as u32;
            state[2][at] = (a >> 32) as u32 ^ w[at] ^ key[1];
            state[3][at] = a as u32;
        }
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    state
}
