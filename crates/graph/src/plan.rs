//! A plan of how a device with many cores, whose memories hold tiles, would divide a graph: to read, and for the simulator. The plugin of
//! such a device places its own work and does not use the plan.
//!
//! Values lie in tiles of 32 x 32 elements of their last two axes, padded with zeros. The work of an operation is the grid of the tiles of its
//! result, cut into one block for each core: by the golden section, or in rows.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Graph, Node, Op, Precision, Timeline};

/// The side of a tile.
pub const TILE: usize = 32;

/// A device of the cost model. The defaults are round figures of the size of a Wormhole card: 64 cores, 1 GHz, 16 cycles for a product of two
/// tiles, 32 bytes a cycle into a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Cores, each with its own memory.
    pub cores: usize,
    /// Cycles of a second.
    pub hertz: f64,
    /// Cycles for the product of two tiles.
    pub product_cycles: f64,
    /// Cycles for one function of the elements of a tile.
    pub tile_cycles: f64,
    /// Bytes that a core takes in or gives in a cycle.
    pub bytes_per_cycle: f64,
    /// Bytes of an element: 2 of bf16, 4 of float32.
    pub element_bytes: usize,
}

impl Default for Machine {
    fn default() -> Self {
        Self { cores: 64, hertz: 1e9, product_cycles: 16.0, tile_cycles: 32.0, bytes_per_cycle: 32.0, element_bytes: 2 }
    }
}

/// The division of a result's tiles among cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partition {
    /// The cores are halved by the golden section again and again, and with them the longer side of the grid.
    Golden,
    /// Each core takes a run of whole rows, or of tiles where there are fewer rows than cores.
    Plain,
}

/// A block of tiles: rows and columns of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The core.
    pub core: usize,
    /// Rows of tiles; batches lie one below the other.
    pub rows: std::ops::Range<usize>,
    /// Columns of tiles.
    pub columns: std::ops::Range<usize>,
}

impl Block {
    /// Number of tiles.
    #[must_use]
    pub fn tiles(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// The grid of tiles of a shape: rows and columns.
///
/// ```
/// assert_eq!(cantus::graph::plan::grid(&[37, 53]), [2, 2]);
/// assert_eq!(cantus::graph::plan::grid(&[3, 32, 65]), [3, 3]);
/// ```
#[must_use]
pub fn grid(shape: &[usize]) -> [usize; 2] {
    let side = |back: usize| shape.len().checked_sub(back).map_or(1, |axis| shape[axis]);
    let batches: usize = shape.iter().rev().skip(2).product();
    [batches * side(2).div_ceil(TILE), side(1).div_ceil(TILE)]
}

/// The bytes that a shape takes in padded tiles.
#[must_use]
pub fn padded_bytes(shape: &[usize], machine: &Machine) -> usize {
    let [rows, columns] = grid(shape);
    rows * columns * TILE * TILE * machine.element_bytes
}

/// Shares a grid out among cores. Each tile is in one block; no core has two.
///
/// ```
/// use cantus::graph::plan::{partition, Partition};
/// let blocks = partition([8, 8], 5, Partition::Golden);
/// assert_eq!(blocks.iter().map(|block| block.tiles()).sum::<usize>(), 64);
/// assert!(blocks.len() <= 5);
/// ```
#[must_use]
pub fn partition(grid: [usize; 2], cores: usize, by: Partition) -> Vec<Block> {
    let [rows, columns] = grid;
    let mut blocks = Vec::new();
    match by {
        _ if rows * columns == 0 || cores == 0 => {}
        Partition::Golden => golden(0..rows, 0..columns, 0, cores, &mut blocks),
        Partition::Plain if rows >= cores => {
            for core in 0..cores {
                let rows = rows * core / cores..rows * (core + 1) / cores;
                blocks.push(Block { core, rows, columns: 0..columns });
            }
        }
        Partition::Plain => {
            let per_row = cores / rows;
            for row in 0..rows {
                let parts = per_row.min(columns);
                for part in 0..parts {
                    let columns = columns * part / parts..columns * (part + 1) / parts;
                    blocks.push(Block { core: row * per_row + part, rows: row..row + 1, columns });
                }
            }
        }
    }
    blocks
}

fn golden(
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    core: usize,
    cores: usize,
    into: &mut Vec<Block>,
) {
    const SECTION: f64 = 0.618_033_988_749_894_9;
    let longer = rows.len().max(columns.len());
    if cores <= 1 || longer <= 1 {
        into.push(Block { core, rows, columns });
        return;
    }
    let first = ((cores as f64 * SECTION).round() as usize).clamp(1, cores - 1);
    // The side is cut as the cores are, so that each has as much.
    let cut = ((longer * first) as f64 / cores as f64).round() as usize;
    let cut = cut.clamp(1, longer - 1);
    if rows.len() >= columns.len() {
        let middle = rows.start + cut;
        golden(rows.start..middle, columns.clone(), core, first, into);
        golden(middle..rows.end, columns, core + first, cores - first, into);
    } else {
        let middle = columns.start + cut;
        golden(rows.clone(), columns.start..middle, core, first, into);
        golden(rows, middle..columns.end, core + first, cores - first, into);
    }
}

/// A node's cost by the cost model: the slowest core's work and what it must take in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Cores that have work.
    pub cores: usize,
    /// The slowest core's cycles of arithmetic.
    pub work: f64,
    /// The cycles of moving tiles, which overlap with the arithmetic.
    pub traffic: f64,
}

impl Cost {
    /// Cycles: of the longer of both.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        self.work.max(self.traffic)
    }
}

/// The cost of a node, `None` for what moves nothing and computes nothing.
#[must_use]
pub fn cost(graph: &Graph, node: &Node, machine: &Machine, by: Partition) -> Option<Cost> {
    let operand = |place: usize| node.operands.get(place).map(|value| graph.node(*value));
    let tile_bytes = (TILE * TILE * machine.element_bytes) as f64;
    let blocks = match &node.op {
        Op::Input(_) | Op::Constant(_) | Op::Reshape => return None,
        // The rows that are reduced are what is shared out.
        Op::Reduce(..) => partition(grid(&operand(0)?.shape), machine.cores, by),
        _ => partition(grid(&node.shape), machine.cores, by),
    };
    let each = |block: &Block| -> (f64, f64) {
        let tiles = block.tiles() as f64;
        match &node.op {
            Op::Dot(_) => {
                let depth = operand(0).and_then(|a| a.shape.last().copied()).unwrap_or(1).div_ceil(TILE) as f64;
                let taken = depth * (block.rows.len() + block.columns.len()) as f64;
                (tiles * depth * machine.product_cycles, (taken + tiles) * tile_bytes)
            }
            Op::Convolution(_) => {
                let taps = operand(1).map_or(1, |w| w.shape.iter().skip(1).product::<usize>());
                let depth = taps.div_ceil(TILE) as f64;
                (tiles * depth * machine.product_cycles, (tiles * depth + tiles) * tile_bytes)
            }
            Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Convert | Op::Reduce(..) => {
                (tiles * machine.tile_cycles, tiles * (node.operands.len() + 1) as f64 * tile_bytes)
            }
            _ => (0.0, 2.0 * tiles * tile_bytes),
        }
    };
    let costs = blocks.iter().map(each);
    let (work, bytes) = costs.fold((0.0_f64, 0.0_f64), |(work, bytes), (w, b)| (work.max(w), bytes.max(b)));
    Some(Cost { cores: blocks.len(), work, traffic: bytes / machine.bytes_per_cycle })
}

/// The steps of a graph in their order, one after the other.
#[must_use]
pub fn timeline(graph: &Graph, machine: &Machine, by: Partition) -> Timeline {
    let mut timeline = Timeline::default();
    let mut now = Duration::ZERO;
    for node in graph.nodes() {
        if let Some(cost) = cost(graph, node, machine, by) {
            let time = Duration::from_secs_f64(cost.cycles() / machine.hertz);
            timeline.steps.push((label(node), now, time));
            now += time;
        }
    }
    timeline
}

fn label(node: &Node) -> String {
    let op = match &node.op {
        Op::Unary(op) => format!("{op:?}"),
        Op::Binary(op) => format!("{op:?}"),
        Op::Compare(op) => format!("{op:?}"),
        Op::Reduce(fold, _) => format!("{fold:?} along axes"),
        other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
    };
    format!("{op} {:?}", node.shape)
}

/// The plan as a table: for each step its grid of tiles, and for both partitions the cores that work and the cycles of the cost model.
#[must_use]
pub fn describe(graph: &Graph, machine: &Machine, precision: Precision) -> String {
    let dtype = if precision == Precision::Bf16 || machine.element_bytes == 2 { "bf16" } else { "float32" };
    let mut text = format!(
        "{}: tiles of {TILE} x {TILE} in {dtype}, {} cores of {:.1} GHz; a cost model, not a measurement\n\n{:<34} {:>11} {:>22} {:>22}\n",
        graph.name(),
        machine.cores,
        machine.hertz / 1e9,
        "STEP",
        "TILES",
        "GOLDEN cores, cycles",
        "PLAIN cores, cycles"
    );
    let mut totals = [0.0; 2];
    for node in graph.nodes() {
        let both = [Partition::Golden, Partition::Plain].map(|by| cost(graph, node, machine, by));
        let [Some(first), Some(second)] = both else { continue };
        let [rows, columns] = grid(&node.shape);
        totals = [totals[0] + first.cycles(), totals[1] + second.cycles()];
        let _ = writeln!(
            text,
            "{:<34} {:>11} {:>10} {:>11.0} {:>10} {:>11.0}",
            label(node),
            format!("{rows} x {columns}"),
            first.cores,
            first.cycles(),
            second.cores,
            second.cycles()
        );
    }
    let micros = totals.map(|cycles| cycles / machine.hertz * 1e6);
    let _ = writeln!(text, "{:<34} {:>11} {:>19.1} us {:>19.1} us", "one after the other", "", micros[0], micros[1]);
    text
}
