//! The variants of an operation's kernel: the default before any measurement, and how a variant is measured. `matmul` and `reduce` describe themselves as a
//! `Job` and ask `tune` for its `Variant`. Sizes are powers of two here, so a measurement serves a range of sizes. Nothing is measured unless
//! `Engine::tune` is called; `shipped` is what runs before.

use std::fmt;

use crate::backend::{DeviceInfo, DeviceKind, Execution};
use crate::engine::Engine;
use crate::error::Result;
use crate::ops::{self, Expr};
use crate::tensor::DType;

/// The kind of machine, which decides before anything was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The CPU backend, which has products of its own.
    Cpu,
    /// A processor behind a compiler of its own (OpenCL).
    Compiler,
    /// A processor that imitates a GPU and loads lane by lane (llvmpipe).
    Lanes,
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that multiplies small matrices of f16 in hardware.
    Matrices,
    /// Any other GPU.
    Gpu,
}

impl Machine {
    pub(crate) fn of(device: &DeviceInfo) -> Self {
        match device.kind {
            DeviceKind::Cpu if device.capabilities.execution == Execution::Executor => Self::Cpu,
            DeviceKind::Cpu | DeviceKind::Software if device.capabilities.execution == Execution::Compiler => {
                Self::Compiler
            }
            DeviceKind::Cpu | DeviceKind::Software => Self::Lanes,
            _ if device.capabilities.cooperative_matrix && device.capabilities.features.cooperative_matrix => {
                Self::Matrices
            }
            DeviceKind::DiscreteGpu => Self::Discrete,
            DeviceKind::IntegratedGpu | DeviceKind::VirtualGpu | DeviceKind::Other => Self::Gpu,
        }
    }
}

/// An operation with the sizes that decide which variant is quickest: each rounded to a power of two, given by its exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Products of m x k and k x n matrices.
    Matmul {
        /// Size class of the number of matrices, m, n and k.
        size: [u8; 4],
        /// For each operand, left and right: true if it is transposed in memory.
        transposed: [bool; 2],
        /// Their dtype is f16.
        half: bool,
    },
    /// Rows that are reduced, each by as many workgroups as the variant says.
    Reduce {
        /// Size class of the number of rows and their length.
        size: [u8; 2],
        /// True if neighbouring rows are adjacent in memory, and not the elements of a row.
        down_columns: bool,
    },
}

/// A way to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Variant {
    /// The device's native operation.
    Native,
    /// Workgroups of `side` x `side` invocations with `parts` x `parts` blocks of 4 x 4 values each, `depth` steps of k in workgroup
    /// memory.
    Tile {
        /// Invocations along each side.
        side: u8,
        /// Steps of k in workgroup memory.
        depth: u8,
        /// Blocks along each side of an invocation's own tile.
        parts: u8,
    },
    /// Cooperative matrices, of f16 alone.
    Cooperative,
    /// Products of this many parts of k, which are added up by another kernel.
    Split(u8),
    /// The most workgroups for a row.
    Parts(u16),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Matmul { size, transposed, half } => {
                let [batches, m, n, k] = size.map(length);
                let mark = |transposed| if transposed { "^T" } else { "" };
                let dtype = if half { "f16" } else { "f32" };
                let [left, right] = transposed.map(mark);
                write!(f, "matmul {dtype} {batches} x ({m} x {k}){left} ({k} x {n}){right}")
            }
            Self::Reduce { size: [rows, count], down_columns } => {
                let order = if down_columns { "columns" } else { "rows" };
                write!(f, "reduce {} {order} of {}", length(rows), length(count))
            }
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Native => f.write_str("native"),
            Self::Tile { side, depth, parts } => write!(f, "tile {side} x {} depth {depth}", 4 * parts),
            Self::Cooperative => f.write_str("cooperative"),
            Self::Split(parts) => write!(f, "split {parts}"),
            Self::Parts(parts) => write!(f, "parts {parts}"),
        }
    }
}

/// Returns the exponent of the least power of two that is at least `size`; at most `most`.
fn exponent(size: usize, most: u8) -> u8 {
    let power = size.max(1).checked_next_power_of_two().map_or(usize::BITS, usize::trailing_zeros);
    u8::try_from(power).unwrap_or(most).min(most)
}

fn length(exponent: u8) -> usize {
    1 << exponent
}

/// Elements of a row that one workgroup may sum: more would cost accuracy.
const MOST_PART: usize = 1 << 18;

impl Job {
    /// A product of `batches` pairs of matrices. Sides beyond 2048 count as 2048: the variants no longer differ there.
    pub(crate) fn matmul(batches: usize, [m, n, k]: [usize; 3], transposed: [bool; 2], half: bool) -> Self {
        Self::Matmul {
            size: [exponent(batches, 4), exponent(m, 11), exponent(n, 11), exponent(k, 11)],
            transposed,
            half,
        }
    }

    /// A reduction of `rows` rows of `length` elements.
    pub(crate) fn reduce(rows: usize, length: usize, down_columns: bool) -> Self {
        let length = exponent(length, 24);
        Self::Reduce { size: [exponent(rows, 24 - length), length], down_columns }
    }

    /// Returns the variant for a kind of device before anything was measured on it.
    pub(crate) fn shipped(self, machine: Machine) -> Variant {
        match self {
            Self::Matmul { .. } if machine == Machine::Cpu => Variant::Native,
            // Smaller sides than half a tile waste most of it.
            Self::Matmul { size: [_, m, n, _], half: true, .. } if machine == Machine::Matrices && m.min(n) >= 5 => {
                Variant::Cooperative
            }
            Self::Matmul { .. } => self.tiled(machine),
            Self::Reduce { size: [rows, count], down_columns } => {
                let rows = if down_columns { length(rows).div_ceil(64) } else { length(rows) };
                // Discrete GPUs stall on memory unless some 2^18 other invocations are ready to run.
                let (least, wanted) = match (machine, down_columns) {
                    (Machine::Discrete | Machine::Matrices, true) => (64, 4096_usize.div_ceil(rows)),
                    (Machine::Discrete | Machine::Matrices, false) => (1 << 13, 1024_usize.div_ceil(rows)),
                    (_, true) => (256, 64_usize.div_ceil(rows)),
                    (_, false) if rows >= 64 => (1 << 15, 1),
                    (_, false) => (1 << 15, 256),
                };
                let parts = length(count).div_ceil(least).min(wanted).max(1);
                Variant::Parts(u16::try_from(parts).unwrap_or(u16::MAX))
            }
        }
    }

    /// Returns the variant of a matrix product if nothing was measured and the device has no product of its own.
    pub(crate) fn tiled(self, machine: Machine) -> Variant {
        let Self::Matmul { size, .. } = self else { return Variant::Parts(1) };
        let [batches, m, n, k] = size.map(length);
        let tiles = |side: usize| batches * m.div_ceil(side) * n.div_ceil(side);
        let tile = |side, depth, parts| Variant::Tile { side, depth, parts };
        let small = m.min(n) <= 32;
        match machine {
            // A load costs the most where lanes are loaded one by one: the larger the block in registers, the better. But llvmpipe compiles
            // the largest for a second and a half when it first runs.
            Machine::Lanes if m.min(n) > 512 => tile(8, 8, 4),
            Machine::Lanes if m.min(n) > 128 => tile(16, 8, 2),
            Machine::Lanes if !small => tile(8, 16, 2),
            // With few tiles most of a GPU's cores would be idle.
            Machine::Discrete | Machine::Matrices | Machine::Gpu if tiles(64) <= 16 && k >= 1024 => Variant::Split(4),
            Machine::Discrete | Machine::Matrices if tiles(128) >= 64 => tile(16, 8, 2),
            _ if small => tile(8, 16, 1),
            _ => tile(16, 16, 1),
        }
    }

    /// Returns all variants, including the shipped one.
    pub(crate) fn variants(self, machine: Machine) -> Vec<Variant> {
        let mut variants = vec![self.shipped(machine)];
        match self {
            Self::Matmul { size, half, .. } => {
                let [batches, m, n, k] = size.map(length);
                // The processor's executor multiplies them too.
                if half && matches!(machine, Machine::Matrices | Machine::Cpu) {
                    variants.push(Variant::Cooperative);
                }
                let tiles = [(16, 16, 1), (16, 8, 1), (8, 16, 1), (8, 32, 1), (8, 16, 2), (16, 8, 2), (8, 8, 4)];
                variants.extend(tiles.map(|(side, depth, parts)| Variant::Tile { side, depth, parts }));
                for split in [2, 4, 8, 16] {
                    if k / usize::from(split) >= 64 && batches * m * n <= 1 << 18 {
                        variants.push(Variant::Split(split));
                    }
                }
            }
            Self::Reduce { size, .. } => {
                let [_, count] = size.map(length);
                for parts in [1, 4, 16, 64, 256] {
                    if count / usize::from(parts) >= 256 && count / usize::from(parts) <= MOST_PART {
                        variants.push(Variant::Parts(parts));
                    }
                }
            }
        }
        let mut distinct = Vec::new();
        for variant in variants {
            if !distinct.contains(&variant) {
                distinct.push(variant);
            }
        }
        distinct
    }

    /// Its operands, on the engine's device.
    pub(crate) async fn prepare(self, engine: &Engine) -> Result<Prepared> {
        let full = |shape: &[usize], dtype| {
            let value = ops::full(engine, shape, 0.5, dtype);
            async move { value.eval_async().await }
        };
        match self {
            Self::Matmul { size, transposed, half } => {
                let [batches, m, n, k] = size.map(length);
                let dtype = if half { DType::F16 } else { DType::F32 };
                let shaped = |rows: usize, columns: usize, turned: bool| {
                    if turned { [batches, columns, rows] } else { [batches, rows, columns] }
                };
                let a = full(&shaped(m, k, transposed[0]), dtype).await?;
                let b = full(&shaped(k, n, transposed[1]), dtype).await?;
                let turned = |tensor: &crate::Tensor, turned: bool| match turned {
                    true => tensor.expr().permute(&[0, 2, 1]),
                    false => tensor.expr(),
                };
                Ok(Prepared::Matmul(turned(&a, transposed[0]), turned(&b, transposed[1])))
            }
            Self::Reduce { size, down_columns } => {
                let [rows, count] = size.map(length);
                let shape = if down_columns { [count, rows] } else { [rows, count] };
                Ok(Prepared::Sum(full(&shape, DType::F32).await?.expr(), if down_columns { 0 } else { -1 }))
            }
        }
    }

    /// Returns the jobs that `cantus tune` measures in addition to those of a program: products of usual sides, sums of
    /// usual lengths.
    pub(crate) fn usual() -> Vec<Self> {
        let mut jobs = Vec::new();
        for side in [256, 512, 1024, 2048] {
            jobs.push(Self::matmul(1, [side; 3], [false; 2], false));
        }
        for [m, n, k] in [[16, 1024, 1024], [64, 64, 2048]] {
            jobs.push(Self::matmul(1, [m, n, k], [false; 2], false));
        }
        jobs.push(Self::matmul(16, [256, 256, 64], [false, true], false));
        jobs.push(Self::matmul(1, [512; 3], [false, true], false));
        jobs.push(Self::matmul(1, [512; 3], [false; 2], true));
        for [rows, count] in [[1, 1 << 20], [1, 1 << 24], [16, 1 << 16], [1024, 1024]] {
            jobs.push(Self::reduce(rows, count, false));
        }
        jobs.push(Self::reduce(1024, 4096, true));
        jobs.push(Self::reduce(64, 1 << 16, true));
        jobs
    }
}

/// A job's operands on a device.
pub(crate) enum Prepared {
    Matmul(Expr, Expr),
    /// A sum over the axis.
    Sum(Expr, isize),
}

impl Prepared {
    /// Runs it once, to the end.
    pub(crate) async fn run(&self, engine: &Engine) -> Result<()> {
        let result = match self {
            Self::Matmul(a, b) => a.matmul(b.clone()),
            Self::Sum(x, axis) => x.sum(&[*axis], false),
        };
        let result = result.eval_async().await?;
        engine.finish_async().await?;
        drop(result);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINES: [Machine; 6] =
        [Machine::Cpu, Machine::Compiler, Machine::Lanes, Machine::Discrete, Machine::Matrices, Machine::Gpu];

    #[test]
    fn variants_are_told_apart_by_name_and_begin_with_the_shipped_one() {
        for machine in MACHINES {
            for job in Job::usual() {
                let variants = job.variants(machine);
                assert_eq!(variants.first(), Some(&job.shipped(machine)), "{job}");
                let names: std::collections::BTreeSet<String> = variants.iter().map(ToString::to_string).collect();
                assert_eq!(names.len(), variants.len(), "{job}: {names:?}");
                assert!(variants.len() > 1, "{job}");
            }
        }
    }

    #[test]
    fn gpus_with_memory_of_their_own_are_filled_by_a_reduction() {
        let parts = |rows, length, down_columns, machine| match Job::reduce(rows, length, down_columns).shipped(machine)
        {
            Variant::Parts(parts) => parts,
            other => panic!("{other}"),
        };
        assert_eq!(parts(4096, 4096, true, Machine::Discrete), 64);
        assert_eq!(parts(4096, 4096, true, Machine::Gpu), 1);
        assert_eq!(parts(1, 1 << 24, false, Machine::Matrices), 1024);
        assert_eq!(parts(4096, 4096, false, Machine::Matrices), 1);
        assert_eq!(parts(1, 1 << 24, false, Machine::Gpu), 256);
    }

    #[test]
    fn jobs_of_one_class_have_one_name() {
        let name = |m, n, k| Job::matmul(1, [m, n, k], [false; 2], false).to_string();
        assert_eq!(name(1000, 700, 513), name(1024, 1024, 1024));
        assert_ne!(name(1000, 700, 512), name(1024, 1024, 1024));
        assert_eq!(name(1_000_000, 9000, 2049), name(2048, 2048, 2048));
        assert_eq!(Job::reduce(1, usize::MAX, false).to_string(), "reduce 1 rows of 16777216");
        assert_eq!(Job::reduce(0, 0, true).to_string(), "reduce 1 columns of 1");
    }
}
