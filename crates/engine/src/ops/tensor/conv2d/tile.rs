//! The tiles of a convolution: how many pixels and channels a workgroup and an invocation compute, and what of the input a tile holds. An invocation keeps
//! its sums in registers, so a value in workgroup memory serves several of them: with four pixels below each other and weights of three rows, six values
//! and six vectors of weights are loaded for 96 multiplications. Its statements are written out, since WGSL's compilers do not unroll loops over registers.

use std::fmt::Write as _;

use crate::backend::native::Conv2dShape;
use crate::ops::expr::operation::looped;
use crate::ops::frame::Frame;
use crate::ops::tune::Machine;

const CONV2D: Frame<5> =
    Frame::new(cantus_shaders::tensor::CONV2D, ["PARTS", "SHARES", "// SUMS", "// TAPS", "// STORE"]);
/// Numbers of the input and vectors of weights in workgroup memory: 16 KiB, which every device has.
const CELLS: usize = 2560;
const WEIGHTS: usize = 384;
/// Invocations that have the same channels.
const BESIDE: usize = 64;
/// Rows of taps that are written out for GPUs, at most.
const WRITTEN: usize = 5;
/// Workgroups that keep a GPU's processors busy: with fewer, tiles are smaller.
const BUSY: usize = 128;

/// How planes cover an axis of a tile.
#[derive(Clone, Copy)]
struct Axis {
    /// The taps of a plane.
    taps: usize,
    /// The planes for all taps.
    planes: usize,
    /// Elements of the image from one of the plane to the next.
    step: usize,
    /// Elements of the plane from one pixel of the tile to the next, and from one tap to the next.
    pixel: usize,
    tap: usize,
}

impl Axis {
    /// All taps in one plane, without what lies between the elements that they meet.
    fn dense(kernel: usize, stride: usize, dilation: usize) -> Self {
        if kernel == 1 {
            return Self::sparse(kernel, stride);
        }
        let step = divisor(stride, dilation);
        Self { taps: kernel, planes: 1, step, pixel: stride / step, tap: dilation / step }
    }

    /// A plane for each tap.
    fn sparse(kernel: usize, stride: usize) -> Self {
        Self { taps: 1, planes: kernel, step: stride, pixel: 1, tap: 0 }
    }

    /// The elements of a plane for that many pixels.
    fn side(&self, pixels: usize) -> usize {
        let reach = (self.taps - 1).saturating_mul(self.tap);
        (pixels - 1).saturating_mul(self.pixel).saturating_add(reach).saturating_add(1)
    }
}

/// The greatest common divisor of numbers above 0.
fn divisor(a: usize, b: usize) -> usize {
    if a.is_multiple_of(b) { b } else { divisor(b, a % b) }
}

/// A tile, and how an invocation computes its part.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// Vectors of four channels of an invocation, and invocations that have the same pixels.
    parts: usize,
    shares: usize,
    /// Pixels of an invocation.
    pixels: usize,
    /// They lie below each other, and not invocations apart in a row.
    is_upright: bool,
    /// Invocations beside each other in a row.
    across: usize,
    sides: [usize; 2],
    axes: [Axis; 2],
    /// Rows of taps that are written out, at most.
    written: usize,
}

impl Tile {
    /// The tile of a convolution on a kind of machine.
    pub(super) fn of(shape: &Conv2dShape, machine: Machine) -> Self {
        // Of a group, which has at least one channel.
        let outputs = shape.channels[1] / shape.groups;
        // Compilers of software devices take seconds for a kernel, so all convolutions share few there.
        let (most, wanted, written) = match machine {
            Machine::Discrete | Machine::Matrices | Machine::Gpu => (4, BUSY, WRITTEN),
            Machine::Lanes => (1, 1, 3),
            Machine::Cpu | Machine::Compiler => (1, 1, 0),
        };
        let (parts, shares) = match outputs {
            ..=4 => (1, 1),
            5..=8 => (2, 1),
            9..=16 => (2, 2),
            _ => (2, 4),
        };
        let shares = most.min(shares);
        let of = |pixels| Self { written, ..Self::arranged(shape, [parts, shares, pixels]) };
        let is_enough = |tile: &Self| tile.workgroups(shape).iter().product::<usize>() >= wanted;
        [4, 2].map(of).into_iter().find(is_enough).unwrap_or_else(|| of(1))
    }

    /// The arrangement of an invocation's pixels with the least work.
    fn arranged(shape: &Conv2dShape, [parts, shares, pixels]: [usize; 3]) -> Self {
        let of = |across: usize, is_upright: bool| {
            let down = BESIDE / across;
            let sides = if is_upright { [down * pixels, across] } else { [down, across * pixels] };
            let axes = planes(shape, sides, parts * shares);
            Self { parts, shares, pixels, is_upright, across, sides, axes, written: 0 }
        };
        // Rows of 32 meet no bank of workgroup memory twice: others must save an eighth.
        let wide = of(32, true);
        let others = [16, 64, 8, 4, 2, 1].into_iter().map(|across| of(across, true));
        let flat = [64, 32, 16].into_iter().map(|across| of(across, false));
        let least = others.chain(flat).min_by_key(|tile| tile.work(shape));
        least.filter(|tile| tile.work(shape) < wide.work(shape) / 8 * 7).unwrap_or(wide)
    }

    /// The work of a tile of each image and channel, roughly in instructions: a number is loaded and stored by some 28, and a pixel takes some twelve at
    /// each tap.
    fn work(&self, shape: &Conv2dShape) -> usize {
        let [down, across] = self.axes;
        let cells = [down.planes, across.planes, self.cells()].into_iter().fold(28, usize::saturating_mul);
        let pixels = 12 * BESIDE * self.pixels * self.shares;
        let taps = pixels.saturating_mul(shape.kernel[0]).saturating_mul(shape.kernel[1]);
        self.tiles(shape).saturating_mul(cells.saturating_add(taps))
    }

    /// The numbers of a plane.
    fn cells(&self) -> usize {
        cells(self.axes, self.sides)
    }

    fn tiles(&self, shape: &Conv2dShape) -> usize {
        shape.output[0].div_ceil(self.sides[0]).saturating_mul(shape.output[1].div_ceil(self.sides[1]))
    }

    /// Blocks of a group's channels.
    fn blocks(&self, shape: &Conv2dShape) -> usize {
        (shape.channels[1] / shape.groups).div_ceil(4 * self.parts * self.shares)
    }

    /// Planes of a channel of the input.
    fn of_channel(&self) -> usize {
        self.axes[0].planes.saturating_mul(self.axes[1].planes)
    }

    /// Planes in workgroup memory at a time.
    fn together(&self) -> usize {
        let taps = self.axes[0].taps * self.axes[1].taps;
        (CELLS / self.cells()).min(WEIGHTS / (taps * pitch(self.parts * self.shares))).max(1)
    }

    pub(super) fn workgroups(&self, shape: &Conv2dShape) -> [usize; 3] {
        [self.tiles(shape), self.blocks(shape).saturating_mul(shape.groups), shape.images]
    }

    /// The words of the kernel.
    pub(super) fn words(&self, shape: &Conv2dShape) -> [[usize; 4]; 9] {
        let [down, across] = self.axes;
        let [rows, columns] = [down.side(self.sides[0]), across.side(self.sides[1])];
        let each = if self.is_upright { self.pixels } else { 1 };
        let [from_row, from_column] = if self.is_upright { [1, 0] } else { [0, self.across] };
        // A single row has no next one, however far that would be.
        let next_row = if self.sides[0] > 1 { down.pixel * columns } else { 0 };
        let between = from_row * next_row + from_column * across.pixel;
        let [outputs, inputs] = [shape.channels[1], shape.channels[0]].map(|channels| channels / shape.groups);
        [
            [shape.output[0], shape.output[1], shape.channels[1], shape.channels[0]],
            [shape.input[0], shape.input[1], shape.padding[0], shape.padding[1]],
            [outputs, inputs, self.blocks(shape), shape.output[1].div_ceil(self.sides[1])],
            [shape.stride[0], shape.stride[1], shape.dilation[0], shape.dilation[1]],
            [self.sides[0], self.sides[1], self.across, each],
            [down.taps, across.taps, rows, columns],
            [down.step, across.step, down.planes, across.planes],
            [next_row, across.pixel, down.tap * columns, across.tap],
            [self.together(), between, from_row, from_column],
        ]
    }

    /// The rounds of an invocation's loops.
    pub(super) fn rounds(&self, shape: &Conv2dShape) -> usize {
        let (lanes, together) = (BESIDE * self.shares, self.together());
        let [down, across] = self.axes;
        let loads = looped((together * self.cells()).div_ceil(lanes), 0);
        let vectors = together * down.taps * across.taps * self.parts * self.shares;
        let column = if self.written().is_some() { 0 } else { looped(down.taps, 0) };
        let all = loads + looped(vectors.div_ceil(lanes), 0) + looped(together, looped(across.taps, column));
        let steps = (shape.channels[0] / shape.groups).saturating_mul(self.of_channel());
        looped(steps.div_ceil(together), all)
    }

    /// The taps of a column if they are written out: where a pixel's next tap is the next pixel's, or the column has one.
    fn written(&self) -> Option<usize> {
        let [down, _] = self.axes;
        let is_shared = self.is_upright && down.tap == down.pixel;
        (down.taps <= self.written && (down.taps == 1 || is_shared)).then_some(down.taps)
    }

    /// The text of the kernel.
    pub(super) fn text(&self) -> String {
        let Self { parts, shares, pixels, .. } = *self;
        let (mut sums, mut store) = (String::new(), String::new());
        for (pixel, part) in (0..pixels).flat_map(|pixel| (0..parts).map(move |part| (pixel, part))) {
            let _ = writeln!(sums, "    var sum{pixel}_{part} = vec4f();");
            let _ = writeln!(
                store,
                "    store_four(image, block + 4u * (own + {part}u), last, top + row + {pixel}u * words[8].z, \
                 left + column + {pixel}u * words[8].w, sum{pixel}_{part});"
            );
        }
        let taps = match self.written() {
            Some(taps) => self.taps(taps, "origin", "weight"),
            None => format!(
                "for (var i = 0u; i < words[5].x; i++) {{\nlet place = origin + i * words[7].z;\n\
                 let row_weight = weight + i * PITCH;\n{}}}\n",
                self.taps(1, "place", "row_weight")
            ),
        };
        let [parts, shares] = [parts, shares].map(|count| format!("{count}u"));
        let frame = CONV2D.filled([
            Some(&parts),
            Some(&shares),
            Some(sums.trim_start()),
            Some(&taps),
            Some(store.trim_start()),
        ]);
        format!("\nconst CELLS = {CELLS}u;\nconst WEIGHTS = {WEIGHTS}u;\n\n{frame}")
    }

    /// The statements for taps below each other, from a word of the plane and one of the weights.
    fn taps(&self, taps: usize, origin: &str, weight: &str) -> String {
        let mut text = String::new();
        for value in 0..self.pixels + taps - 1 {
            let _ = writeln!(text, "let value{value} = tile[{origin} + {value}u * words[8].y];");
        }
        for (tap, part) in (0..taps).flat_map(|tap| (0..self.parts).map(move |part| (tap, part))) {
            let _ = writeln!(text, "let w{tap}_{part} = weights[{weight} + {tap}u * PITCH + {part}u];");
            for pixel in 0..self.pixels {
                let _ = writeln!(text, "sum{pixel}_{part} += value{} * w{tap}_{part};", pixel + tap);
            }
        }
        text
    }
}

/// The vectors of weights from one tap to the next.
fn pitch(vectors: usize) -> usize {
    vectors | 1
}

/// The numbers of a plane for a tile of that many pixels.
fn cells([down, across]: [Axis; 2], sides: [usize; 2]) -> usize {
    down.side(sides[0]).saturating_mul(across.side(sides[1]))
}

/// The planes that hold the fewest numbers for all taps and fit, with their weights, into workgroup memory.
fn planes(shape: &Conv2dShape, sides: [usize; 2], vectors: usize) -> [Axis; 2] {
    let of = |axis: usize, is_dense: bool| match is_dense {
        true => Axis::dense(shape.kernel[axis], shape.stride[axis], shape.dilation[axis]),
        false => Axis::sparse(shape.kernel[axis], shape.stride[axis]),
    };
    let all = |axes: [Axis; 2]| cells(axes, sides).saturating_mul(axes[0].planes).saturating_mul(axes[1].planes);
    let fits = |axes: &[Axis; 2]| {
        let taps = axes[0].taps.saturating_mul(axes[1].taps);
        cells(*axes, sides) <= CELLS && taps.saturating_mul(pitch(vectors)) <= WEIGHTS
    };
    let choices = [[true, true], [true, false], [false, true]].map(|[down, across]| [of(0, down), of(1, across)]);
    // A plane for each tap fits always.
    let single = [of(0, false), of(1, false)];
    choices.into_iter().filter(fits).fold(single, |best, axes| if all(axes) <= all(best) { axes } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(channels: [usize; 2], output: [usize; 2], kernel: [usize; 2], window: [[usize; 2]; 2]) -> Conv2dShape {
        let [stride, dilation] = window;
        let side = |axis: usize| (output[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1;
        let (images, padding, groups) = (1, [0; 2], 1);
        Conv2dShape { images, channels, input: [side(0), side(1)], kernel, output, stride, padding, dilation, groups }
    }

    #[test]
    fn tiles_fit_and_cover_every_tap() {
        let one = [[1; 2]; 2];
        for (kernel, window) in [
            ([3, 3], one),
            ([1, 1], one),
            ([7, 7], [[2; 2], [1; 2]]),
            ([16, 16], [[16; 2], [1; 2]]),
            ([3, 3], [[1; 2], [3001; 2]]),
            ([101, 99], one),
            ([3, 5], [[4, 6], [6, 4]]),
        ] {
            for (channels, machine) in [([3, 3], Machine::Lanes), ([16, 64], Machine::Gpu), ([64, 1], Machine::Gpu)] {
                let shape = shape(channels, [40, 50], kernel, window);
                let tile = Tile::of(&shape, machine);
                for (axis, of) in tile.axes.iter().enumerate() {
                    assert_eq!(of.taps * of.planes, kernel[axis]);
                    assert_eq!(of.step * of.pixel, window[0][axis]);
                    assert!(of.taps == 1 || of.step * of.tap == window[1][axis]);
                }
                let taps = tile.axes[0].taps * tile.axes[1].taps;
                assert!(tile.together() * tile.cells() <= CELLS, "{kernel:?}");
                assert!(tile.together() * taps * pitch(tile.parts * tile.shares) <= WEIGHTS, "{kernel:?}");
                assert_eq!(tile.sides[0] * tile.sides[1], BESIDE * tile.pixels);
            }
        }
    }

    #[test]
    fn usual_tiles_are_read_once_for_all_taps() {
        let usual = shape([16, 16], [256, 256], [3, 3], [[1; 2]; 2]);
        let tile = Tile::of(&usual, Machine::Discrete);
        assert_eq!((tile.pixels, tile.sides, tile.cells(), tile.written()), (4, [8, 32], 340, Some(3)));
        // A row of pixels lies in a row of invocations.
        let signal = shape([16, 16], [1, 1 << 16], [1, 5], [[1; 2]; 2]);
        assert_eq!(Tile::of(&signal, Machine::Discrete).sides, [1, 256]);
        // Few pixels are shared among more workgroups.
        let few = shape([16, 16], [16, 16], [3, 3], [[1; 2]; 2]);
        assert_eq!(Tile::of(&few, Machine::Discrete).pixels, 1);
        assert_eq!(Tile::of(&few, Machine::Lanes).pixels, 4);
    }
}
