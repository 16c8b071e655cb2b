//! Rows in the order of their keys, on devices without an order of their own. A row of up to `LONGEST` elements is one workgroup's, which reads it once and
//! writes it once, and sorts it by four bits at a time in workgroup memory; in the shortest rows each element counts those before it. A longer row is cut
//! into tiles: each pass counts the tiles' digits of eight bits, adds the counts up, and moves each element to its place. All keep equal elements in their
//! order. Workgroups wait for no others, since neither WGSL nor Vulkan promises that a workgroup goes on while others wait for it.

use std::sync::Arc;

use super::scan::scanned;
use super::unrolled::unrolled;
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::node::Typed;
use crate::ops::expr::operation::Composed;
use crate::ops::expr::view::reshaped;
use crate::tensor::DType;

const BLOCKS: &str = cantus_shaders::tensor::SORT_BLOCKS;
const TILE: &str = cantus_shaders::tensor::SORT_TILE;
const ROWS: &str = cantus_shaders::tensor::SORT_ROWS;
const COUNT: &str = cantus_shaders::tensor::SORT_COUNT;
const MOVE: &str = cantus_shaders::tensor::SORT_MOVE;
/// The longest row that a workgroup sorts.
pub(super) const LONGEST: usize = 4096;
/// Invocations of a tile of a longer row, and elements of each: with the starts of 256 digits just what WebGPU guarantees of workgroup memory.
const TILED: [usize; 2] = [256, 15];
/// Bits that a pass over a long row takes at most, and that a workgroup takes at once.
const DIGIT: u32 = 8;
const SPLIT: u32 = 4;

/// A frame for tiles of `lanes` invocations with `each` elements.
fn framed(text: &str, [lanes, each]: [usize; 2]) -> String {
    // The elements, or eight words of counts of each invocation, their sums, and sums of sixteen.
    let words = (lanes * each).max(8 * (lanes + 4) + lanes + lanes / 8);
    let text = unrolled(&format!("{TILE}\n{text}"), each);
    format!("\nconst LANES = {lanes}u;\nconst EACH = {each}u;\nconst WORDS = {words}u;\n\n{text}")
}

/// Rows whose keys are given.
pub(super) struct Keys<'a> {
    /// The rows along the last axis, with few enough tensors for a kernel.
    pub(super) input: &'a Arc<Typed>,
    /// The function `order(row, place) -> u32` of `element(row, place)`: the key of an element.
    pub(super) order: &'a str,
    /// The number of bits of a key.
    pub(super) bits: u32,
    pub(super) rows: usize,
    pub(super) length: usize,
    /// The number of elements wanted from the start of each row.
    pub(super) keep: usize,
}

impl Keys<'_> {
    fn writer(&self, words: &[u32]) -> Result<Writer> {
        let rank = self.input.shape.len();
        let mut writer = Writer::new(words);
        let groups = [("row", 0..rank - 1), ("place", rank - 1..rank)];
        writer.function("element", self.input, &self.input.shape, &groups, None)?;
        Ok(writer)
    }

    /// The writer of the kernel for short rows.
    pub(super) fn short(&self) -> Result<Writer> {
        self.writer(&[word(self.rows)?, word(self.length)?, self.bits, word(self.keep)?])
    }

    /// Sorts rows of up to [`LONGEST`] elements into `y`, whose elements are of the WGSL type `output` and which `store(row, at, key, place)` writes.
    pub(super) async fn sort_short(
        &self,
        engine: &Engine,
        writer: &Writer,
        (output, store): (&str, &str),
        y: &Tensor,
    ) -> Result<()> {
        let (name, frame) = match self.length {
            ..=64 => ("sort_blocks", format!("\n{BLOCKS}")),
            65..=256 => ("sort_rows", framed(ROWS, [64, 4])),
            257..=1024 => ("sort_rows", framed(ROWS, [256, 4])),
            _ => ("sort_rows", framed(ROWS, [256, 16])),
        };
        let body = format!("{}\n{store}{frame}", self.order);
        let workgroups = [self.rows, 1, 1];
        Composed { name, writer, output, body: &body, workgroups, flops: 0, rounds: 0 }.run(engine, y).await
    }

    /// Sorts rows of any length: key and place of each element, in pairs along one axis more.
    pub(super) async fn sort_long(&self, engine: &Engine) -> Result<Tensor> {
        let mut shape = self.input.shape.clone();
        shape.push(2);
        let splits = self.bits.div_ceil(SPLIT).max(1);
        let mut shift = 0;
        let (mut from, mut spare): (Option<Tensor>, Option<Tensor>) = (None, None);
        loop {
            let bits = (SPLIT * splits - shift).min(DIGIT);
            let is_last = shift + bits == SPLIT * splits;
            let counts = self.counts(engine, from.as_ref(), shift, bits).await?;
            let before = scanned(engine, Binary::Add, &counts, true).await?;
            let (mut writer, functions) = self.pass(from.as_ref(), shift, bits)?;
            writer.function("before", &before, &before.shape, &[("row", 0..1), ("i", 1..2)], None)?;
            // Keys and places lie apart between passes, so that those who count read keys alone.
            let store = match is_last {
                true => "y[2u * at] = key;\n    y[2u * at + 1u] = place;",
                false => "y[at] = key;\n    y[words[1].x + at] = place;",
            };
            let frame = framed(MOVE, TILED);
            let body = format!("{functions}fn store(at: u32, key: u32, place: u32) {{\n    {store}\n}}\n{frame}");
            let to = match spare.take() {
                Some(spare) => spare,
                None => engine.output_async(writer.tensors().first(), DType::U32, &shape, "sort").await?,
            };
            let workgroups = [self.tiles(), self.rows, 1];
            let launch = Composed {
                name: "sort_move",
                writer: &writer,
                output: "u32",
                body: &body,
                workgroups,
                flops: 0,
                rounds: 0,
            };
            launch.run(engine, &to).await?;
            spare = from.replace(to.clone());
            shift += bits;
            if is_last {
                return Ok(to);
            }
        }
    }

    fn tiles(&self) -> usize {
        self.length.div_ceil(TILED[0] * TILED[1])
    }

    /// The writer of a pass over what the pass before left, or over the rows themselves, and the functions of the keys and places there.
    fn pass(&self, from: Option<&Tensor>, shift: u32, bits: u32) -> Result<(Writer, String)> {
        let elements = word(self.rows * self.length)?;
        let words = [word(self.rows)?, word(self.length)?, shift, word(self.tiles())?, elements, bits, 0, 0];
        let bins = format!("\nconst BINS = {}u;\n", 1 << bits);
        let Some(from) = from else {
            let own = "fn key_of(row: u32, place: u32) -> u32 { return order(row, place); }\n\
                       fn place_of(row: u32, place: u32) -> u32 { return place; }\n";
            return Ok((self.writer(&words)?, bins + self.order + own));
        };
        let mut writer = Writer::new(&words);
        let all = reshaped(&Typed::read(from), &[from.len()]);
        writer.function("word_of", &all, &all.shape, &[("i", 0..1)], None)?;
        let read = "fn key_of(row: u32, place: u32) -> u32 { return word_of(row * words[0].y + place); }\n\
                    fn place_of(row: u32, place: u32) -> u32 { return word_of(words[1].x + row * words[0].y + place); }\n";
        Ok((writer, bins + read))
    }

    /// How often each digit occurs in each tile: a row of them for each row.
    async fn counts(&self, engine: &Engine, from: Option<&Tensor>, shift: u32, bits: u32) -> Result<Arc<Typed>> {
        let (writer, functions) = self.pass(from, shift, bits)?;
        let [lanes, each] = TILED;
        let body = format!("{functions}\nconst LANES = {lanes}u;\nconst EACH = {each}u;\n\n{COUNT}");
        let length = self.tiles() << bits;
        let near = writer.tensors().first();
        let counts = engine.output_async(near, DType::U32, &[self.rows, length], "sort_count").await?;
        let workgroups = [self.tiles(), self.rows, 1];
        Composed { name: "sort_count", writer: &writer, output: "u32", body: &body, workgroups, flops: 0, rounds: 0 }
            .run(engine, &counts)
            .await?;
        Ok(Typed::read(&counts))
    }
}
