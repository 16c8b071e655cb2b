//! Passes of a transform whose radix is a power of two up to 4,096: a workgroup makes the transforms of some columns, in steps of up to sixteen numbers
//! in registers. A row of 4,096 numbers is read and written once, one of 2^20 twice, one of 2^24 three times. `transform` composes the passes, and
//! `butterfly` those of other radices. The statements are text, unrolled, because WGSL's compilers do not unroll loops over registers.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::butterfly::{ROOT, eight, four};
use crate::ops::frame::Frame;
use cantus_base::listed::Listed;

const FRAME: Frame<1> = Frame::new(cantus_shaders::tensor::FFT_TILE, ["// STEPS"]);
/// Numbers that an invocation holds.
const EACH: usize = 16;
/// The exponents of the greatest radix of the only pass over a row, and of one of several. The columns of the latter then lie side by side in 32 bytes.
const ONLY: u32 = 12;
const ONE_OF_SEVERAL: u32 = 10;
/// The exponent of the least radix.
const LEAST: u32 = 4;

/// Exponents that add up to a given one, as equal as can be, so that none is greater than `most`.
fn shares(exponent: u32, most: u32) -> impl Iterator<Item = u32> {
    let count = exponent.div_ceil(most);
    (0..count).map(move |number| exponent / count + u32::from(number < exponent % count))
}

/// The radices of the passes for a power of two: none if it is too small for a tile.
pub(super) fn radices(exponent: u32) -> Vec<usize> {
    let most = if exponent <= ONLY { ONLY } else { ONE_OF_SEVERAL };
    if exponent < LEAST { Vec::new() } else { shares(exponent, most).map(|bits| 1 << bits).listed() }
}

/// How a pass runs.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    points: usize,
    columns: usize,
    /// Numbers of a column lie side by side: no other pass has columns between them.
    alone: bool,
    /// No pass came before.
    first: bool,
}

impl Tile {
    /// A pass with a radix over rows of `length` numbers, `count` in all, after passes whose radices multiply to `span`.
    pub(super) fn new(points: usize, length: usize, count: usize, span: usize) -> Self {
        // Few numbers are shared among more workgroups.
        let numbers = match count.ilog2() {
            0..18 => 1024,
            18..20 => 2048,
            _ => 4096,
        };
        let least = if length == points { 1 } else { 4 };
        Self { points, columns: (numbers / points).max(least), alone: length == points, first: span == 1 }
    }

    /// The number of workgroups for that many numbers.
    pub(super) fn workgroups(self, count: usize) -> usize {
        (count / self.points).div_ceil(self.columns)
    }

    /// The text of the pass.
    pub(super) fn text(self) -> String {
        let Self { points, columns, .. } = self;
        let lanes = points * columns / EACH;
        let frame = FRAME.filled([Some(self.steps().trim_start())]);
        format!("\nconst POINTS = {points}u;\nconst COLUMNS = {columns}u;\nconst LANES = {lanes}u;\n\n{ROOT}{frame}")
    }

    fn steps(self) -> String {
        let radices: Vec<usize> = shares(self.points.ilog2(), LEAST).map(|bits| 1 << bits).listed();
        let mut text = String::new();
        let mut span = 1;
        for (number, &radix) in radices.iter().enumerate() {
            let is_last = number + 1 == radices.len();
            let step = Step { tile: self, number, radix, span, is_last };
            if number == 0 {
                step.load(&mut text)
            } else {
                step.take(&mut text)
            }
            step.butterflies(&mut text);
            if is_last {
                step.store(&mut text)
            } else {
                step.give(&mut text)
            }
            span *= radix;
        }
        text
    }
}

/// A step of a pass: `EACH / radix` butterflies of an invocation. Butterfly `j` of a column reads the points `j + t points / radix`.
struct Step {
    tile: Tile,
    number: usize,
    radix: usize,
    /// The product of the radices of the steps before.
    span: usize,
    is_last: bool,
}

impl Step {
    fn butterflies_each(&self) -> usize {
        EACH / self.radix
    }

    /// The numbers `j` and columns of an invocation's butterflies. Neighbours take neighbouring columns, or neighbouring numbers of one where those are what
    /// lies side by side in memory.
    fn places(&self, text: &mut String) {
        let (number, stride) = (self.number, self.tile.points / self.radix);
        let beside = (number == 0 && self.tile.alone) || (self.is_last && self.tile.first);
        for b in 0..self.butterflies_each() {
            let id = format!("{number}_{b}");
            let _ = writeln!(text, "    let q{id} = lane + {b}u * LANES;");
            let _ = match beside {
                true => writeln!(text, "    let j{id} = q{id} % {stride}u;\n    let c{id} = q{id} / {stride}u;"),
                false => writeln!(text, "    let c{id} = q{id} % COLUMNS;\n    let j{id} = q{id} / COLUMNS;"),
            };
        }
    }

    /// Reads what the pass before left, times its roots.
    fn load(&self, text: &mut String) {
        self.places(text);
        let (number, radix, stride) = (self.number, self.radix, self.tile.points / self.radix);
        for b in 0..self.butterflies_each() {
            let id = format!("{number}_{b}");
            let _ = writeln!(text, "    let column{id} = column(group.x * COLUMNS + c{id});");
            if !self.tile.first {
                let _ = writeln!(text, "    let w{id}_0 = unit_root(column{id}.k * j{id}, words[0].z * POINTS);");
                text.push_str(&roots(&id, &format!("column{id}.k"), &format!("words[0].z * {radix}u"), radix));
            }
            for t in 0..radix {
                let read = format!("load(column{id}, j{id} + {}u)", t * stride);
                let _ = match (self.tile.first, t) {
                    (true, _) => writeln!(text, "    let x{id}_{t} = {read};"),
                    (false, 0) => writeln!(text, "    let x{id}_0 = times({read}, w{id}_0);"),
                    (false, _) => writeln!(text, "    let x{id}_{t} = times(times({read}, w{id}_0), w{id}_{t});"),
                };
            }
        }
    }

    /// Takes what the step before gave, times its roots.
    fn take(&self, text: &mut String) {
        self.places(text);
        let (number, radix, span, stride) = (self.number, self.radix, self.span, self.tile.points / self.radix);
        let all = |of: &str, text: &mut String| {
            for (b, t) in (0..self.butterflies_each()).flat_map(|b| (0..radix).map(move |t| (b, t))) {
                let id = format!("{number}_{b}");
                let _ = writeln!(text, "    let {of}{id}_{t} = tile[spot(c{id}, j{id} + {}u)];", t * stride);
            }
        };
        text.push_str("    workgroupBarrier();\n");
        all("real", text);
        text.push_str("    workgroupBarrier();\n");
        self.before().put("y", text);
        text.push_str("    workgroupBarrier();\n");
        all("imaginary", text);
        for b in 0..self.butterflies_each() {
            let id = format!("{number}_{b}");
            text.push_str(&roots(&id, &format!("(j{id} % {span}u)"), &format!("{}u", span * radix), radix));
            for t in 0..radix {
                let number = format!("vec2f(real{id}_{t}, imaginary{id}_{t})");
                let _ = match t {
                    0 => writeln!(text, "    let x{id}_0 = {number};"),
                    _ => writeln!(text, "    let x{id}_{t} = times({number}, w{id}_{t});"),
                };
            }
        }
    }

    /// The step before.
    fn before(&self) -> Self {
        let radices: Vec<usize> = shares(self.tile.points.ilog2(), LEAST).map(|bits| 1 << bits).listed();
        let number = self.number.saturating_sub(1);
        let radix = radices.get(number).copied().unwrap_or(1);
        Self { tile: self.tile, number, radix, span: self.span / radix, is_last: false }
    }

    fn butterflies(&self, text: &mut String) {
        for b in 0..self.butterflies_each() {
            let id = format!("{}_{b}", self.number);
            let names: Vec<String> = (0..self.radix).map(|t| format!("x{id}_{t}")).listed();
            let _ = writeln!(text, "    // Butterfly {b} of step {}.", self.number);
            text.push_str(&butterfly(&names, &id));
        }
    }

    /// Point `s` of what a butterfly made.
    fn point(&self, id: &str, s: usize) -> String {
        let (radix, span) = (self.radix, self.span);
        if span == 1 {
            return format!("j{id} * {radix}u + {s}u");
        }
        format!("(j{id} / {span}u) * {}u + j{id} % {span}u + {}u", radix * span, s * span)
    }

    fn put(&self, part: &str, text: &mut String) {
        for (b, s) in (0..self.butterflies_each()).flat_map(|b| (0..self.radix).map(move |s| (b, s))) {
            let id = format!("{}_{b}", self.number);
            let _ = writeln!(text, "    tile[spot(c{id}, {})] = z{id}_{s}.{part};", self.point(&id, s));
        }
    }

    /// Gives the real parts to the step that follows, which asks for the others.
    fn give(&self, text: &mut String) {
        if self.number > 0 {
            text.push_str("    workgroupBarrier();\n");
        }
        self.put("x", text);
    }

    fn store(&self, text: &mut String) {
        let number = self.number;
        for b in 0..self.butterflies_each() {
            let id = format!("{number}_{b}");
            if number > 0 {
                let _ = writeln!(text, "    let column{id} = column(group.x * COLUMNS + c{id});");
            }
            for s in 0..self.radix {
                let _ = writeln!(text, "    store(column{id}, {}, z{id}_{s});", self.point(&id, s));
            }
        }
    }
}

/// The statements that make the powers `w{id}_1` and on of root `k` of `n`: those of powers of two by angles, as the error of a root's square is twice the
/// root's, and the others as products of these.
fn roots(id: &str, k: &str, n: &str, radix: usize) -> String {
    let mut text = String::new();
    for t in 1..radix {
        let two = 1 << t.ilog2();
        let _ = match t - two {
            0 => writeln!(text, "    let w{id}_{t} = unit_root({t}u * {k}, {n});"),
            rest => writeln!(text, "    let w{id}_{t} = times(w{id}_{two}, w{id}_{rest});"),
        };
    }
    text
}

/// The statements that make `z{id}_0` and on of the named numbers.
fn butterfly(names: &[String], id: &str) -> String {
    let to = format!("z{id}_");
    let name = |t: usize| names.get(t).map_or("", String::as_str);
    match names.len() {
        4 => four([0, 1, 2, 3].map(name), &to),
        8 => eight([0, 1, 2, 3, 4, 5, 6, 7].map(name), &to),
        _ => sixteen(&name, &to),
    }
}

/// Sixteen numbers: four times four, roots between, and four times four.
fn sixteen<'a>(name: &impl Fn(usize) -> &'a str, to: &str) -> String {
    let mut text = String::new();
    for b in 0..4 {
        text += &four([0, 1, 2, 3].map(|a| name(4 * a + b)), &format!("{to}f{b}_"));
    }
    for p in 0..4 {
        for b in 0..4 {
            let from = format!("{to}f{b}_{p}");
            let rooted = format!("{to}g{p}_{b}");
            let angle = TAU * (b * p) as f64 / 16.0;
            let _ = match b * p {
                0 => writeln!(text, "let {rooted} = {from};"),
                4 => writeln!(text, "let {rooted} = turned_back({from});"),
                2 => writeln!(text, "let {rooted} = 0.70710678 * ({from} + turned_back({from}));"),
                6 => writeln!(text, "let {rooted} = 0.70710678 * (turned_back({from}) - {from});"),
                _ => {
                    let (cos, sin) = (angle.cos() as f32, angle.sin() as f32);
                    writeln!(text, "let {rooted} = {cos:?} * {from} + {sin:?} * turned_back({from});")
                }
            };
        }
        let names: Vec<String> = (0..4).map(|b| format!("{to}g{p}_{b}")).listed();
        let of = |b: usize| names.get(b).map_or("", String::as_str);
        text += &four([0, 1, 2, 3].map(of), &format!("{to}h{p}_"));
        for q in 0..4 {
            let _ = writeln!(text, "let {to}{} = {to}h{p}_{q};", p + 4 * q);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::radices;

    #[test]
    fn passes_are_few_and_multiply_to_the_length() {
        for exponent in 4..=29 {
            let radices = radices(exponent);
            assert_eq!(radices.iter().product::<usize>(), 1 << exponent);
            assert!(radices.iter().all(|radix| (16..=4096).contains(radix)));
        }
        assert_eq!([12, 16, 20, 24].map(|exponent| radices(exponent).len()), [1, 2, 2, 3]);
        assert!(radices(3).is_empty());
    }
}
