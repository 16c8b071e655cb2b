//! Operations on the processor in place of the WGSL kernels: products and convolutions by `product` and `conv` where they serve, else by the
//! `gemm` crate; orders and scans of rows by `rows`.

use super::fault::Fault;
use super::floats::Floats;
use super::product::{self, Matrix};
use super::vector::{self, Rows};
use super::{conv, copies, random, rows};
use crate::backend::native::{Conv2dShape, MatmulShape, NativeOperation};
use crate::spmd::{Limits, Stopped};
use crate::threads;
use gemm_common::Parallelism;

/// An operation that this device runs by itself.
pub(super) struct Native(NativeOperation);

/// Products below this take one thread: waking another costs more.
const THREADS_PAY: usize = 1 << 20;
/// The same for elements that are copied, sorted, and scanned.
const COPIES_PAY: usize = 1 << 15;
const SORTS_PAY: usize = 1 << 12;
const SCANS_PAY: usize = 1 << 16;
/// Pixels of a convolution whose inputs are laid out for a product at a time: they fit the second cache.
const PIXELS: usize = 128;

impl Native {
    /// The operation, if its sizes hold together: every element that it names lies within `m`, `n`, `k` and the strides given.
    pub(super) fn new(operation: &NativeOperation) -> Option<Self> {
        let fits = match operation {
            NativeOperation::Matmul(shape) => {
                shape.a.offsets.len() == shape.b.offsets.len() && shape.m > 0 && shape.n > 0 && shape.k > 0
            }
            NativeOperation::Conv2d(shape) => {
                shape.groups > 0 && shape.channels.iter().all(|channels| channels % shape.groups == 0)
            }
            // Places are words of 32 bits.
            NativeOperation::Sort(shape) => shape.keep <= shape.length && u32::try_from(shape.length).is_ok(),
            NativeOperation::Scan(_) | NativeOperation::Copy(_) => true,
            // Places are words of 32 bits here too.
            NativeOperation::Random(shape) => u32::try_from(shape.count).is_ok(),
            // Its own kernels are quicker than the operations that a graph cuts them into.
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => false,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(operation) => operation.sizes().is_some(),
        };
        fits.then(|| Self(operation.clone()))
    }

    /// Operations below which it is not worth a second thread.
    fn is_small(&self) -> bool {
        let (work, pays) = match &self.0 {
            NativeOperation::Matmul(_) | NativeOperation::Conv2d(_) => (self.0.flops() as usize / 2, THREADS_PAY),
            NativeOperation::Sort(shape) => (shape.rows.saturating_mul(shape.length), SORTS_PAY),
            NativeOperation::Scan(shape) => (shape.rows.saturating_mul(shape.length), SCANS_PAY),
            NativeOperation::Copy(shape) => (copies::sizes(shape).map_or(0, |[_, count]| count), COPIES_PAY),
            NativeOperation::Random(shape) => (shape.count, SCANS_PAY),
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => (usize::MAX, 0),
            #[cfg(feature = "zk")]
            NativeOperation::Zk(_) => (usize::MAX, 0),
        };
        work < pays
    }

    /// Whether it may run on any thread: what is spread by rayon's own means belongs to the queue's.
    pub(super) fn runs_anywhere(&self) -> bool {
        match &self.0 {
            _ if self.is_small() => true,
            NativeOperation::Matmul(shape) => is_vector(shape) || product::serves([shape.m, shape.n, shape.k]),
            NativeOperation::Sort(shape) => !rows::is_split(shape),
            NativeOperation::Conv2d(_)
            | NativeOperation::Scan(_)
            | NativeOperation::Copy(_)
            | NativeOperation::Random(_) => true,
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => false,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(_) => true,
        }
    }

    /// Runs it over its bindings, inputs first, or says which does not hold what the operation takes.
    pub(super) fn run(&self, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Fault> {
        if self.is_small() {
            return threads::alone(|| self.run_spread(bindings, limits));
        }
        self.run_spread(bindings, limits)
    }

    fn run_spread(&self, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Fault> {
        let needed = match &self.0 {
            NativeOperation::Matmul(shape) => matmul_sizes(shape).map(Vec::from),
            NativeOperation::Conv2d(shape) => conv_sizes(shape).map(Vec::from),
            NativeOperation::Sort(shape) => rows::sort_sizes(shape).map(Vec::from),
            NativeOperation::Scan(shape) => rows::scan_sizes(shape).map(Vec::from),
            NativeOperation::Copy(shape) => copies::sizes(shape).map(Vec::from),
            NativeOperation::Random(shape) => Some(vec![shape.count]),
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => None,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(operation) => operation.sizes(),
        };
        let needed = needed.ok_or("its sizes are too large to count")?;
        if bindings.len() != needed.len() {
            return Err(Fault::Misfit(format!("it takes {} bindings, there are {}", needed.len(), bindings.len())));
        }
        for (place, (binding, needed)) in bindings.iter().zip(needed).enumerate() {
            if binding.1 < needed {
                let (number, count) = (place + 1, binding.1);
                return Err(Fault::Misfit(format!(
                    "binding {number} has {count} elements, {needed} are read or written"
                )));
            }
        }
        match (&self.0, bindings) {
            (NativeOperation::Matmul(shape), [a, b, c]) => matmul(shape, *a, *b, *c, limits),
            (NativeOperation::Conv2d(shape), [a, b, c]) => conv2d(shape, *a, *b, *c, limits),
            (NativeOperation::Sort(shape), [x, y]) => rows::sort(shape, *x, *y, limits),
            (NativeOperation::Scan(shape), [x, y]) => rows::scan(shape, *x, *y, limits),
            (NativeOperation::Copy(shape), [x, y]) => copies::copy(shape, *x, *y, limits),
            (NativeOperation::Random(shape), [y]) => random::fill(shape, *y, limits),
            #[cfg(feature = "zk")]
            (NativeOperation::Zk(operation), [inputs @ .., output]) => return zk(operation, inputs, *output, limits),
            _ => return Err(Fault::from("its bindings are none of its own")),
        }
        .map_err(Fault::from)
    }
}

/// Words are numbers of 32 bits, as floats are.
#[cfg(feature = "zk")]
fn zk(
    operation: &crate::algebra::Operation,
    inputs: &[Floats],
    output: Floats,
    limits: &Limits<'_>,
) -> Result<(), Fault> {
    // SAFETY: the bindings hold so many words, and nothing but this operation touches them. The output is a tensor of its own.
    let words = |binding: &Floats| unsafe { std::slice::from_raw_parts(binding.start().cast::<u32>(), binding.1) };
    let inputs: Vec<&[u32]> = inputs.iter().map(words).collect();
    // SAFETY: as above.
    let output = unsafe { std::slice::from_raw_parts_mut(output.start().cast::<u32>(), output.1) };
    limits.begin().check().map_err(Fault::from)?;
    let result = operation.run(&inputs, output, &|| limits.begin().check().is_err());
    // What was stopped is told first.
    limits.begin().check().map_err(Fault::from)?;
    result.map_err(Fault::Misfit)
}

/// Elements that a product reads of each operand and writes.
fn matmul_sizes(shape: &MatmulShape) -> Option<[usize; 3]> {
    let reach = |offsets: &[usize], rows: usize, columns: usize, row: usize, column: usize| {
        let last = (rows - 1).checked_mul(row)?.checked_add((columns - 1).checked_mul(column)?)?;
        offsets.iter().max()?.checked_add(last)?.checked_add(1)
    };
    let a = reach(&shape.a.offsets, shape.m, shape.k, shape.a.row, shape.a.column)?;
    let b = reach(&shape.b.offsets, shape.k, shape.n, shape.b.row, shape.b.column)?;
    let c = shape.m.checked_mul(shape.n)?.checked_mul(shape.a.offsets.len())?;
    Some([a, b, c])
}

fn conv_sizes(shape: &Conv2dShape) -> Option<[usize; 3]> {
    let product = |sizes: &[usize]| sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    let [c, o] = shape.channels;
    Some([
        product(&[shape.images, c, shape.input[0], shape.input[1]])?,
        product(&[o, c / shape.groups, shape.kernel[0], shape.kernel[1]])?,
        product(&[shape.images, o, shape.output[0], shape.output[1]])?,
    ])
}

/// Multiplications between two looks at what stops a product: about 10 ms.
const SLAB: usize = 1 << 28;
/// Rows and columns of a slab at least, so that a product's speed stays what it is.
const SLAB_SIDES: [usize; 2] = [64, 256];

/// Rows and columns of the slabs that a product is cut into where something may stop it.
fn slab([m, n, k]: [usize; 3], limits: &Limits<'_>) -> [usize; 2] {
    if !limits.are_set() {
        return [m, n];
    }
    let columns = n.min((SLAB / SLAB_SIDES[0] / k).max(SLAB_SIDES[1]));
    [m.min((SLAB / columns / k).max(SLAB_SIDES[0])), columns]
}

/// Whether one of the operands is a vector.
fn is_vector(shape: &MatmulShape) -> bool {
    shape.m == 1 || shape.n == 1
}

fn matmul(shape: &MatmulShape, a: Floats, b: Floats, c: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let (m, n, k) = (shape.m, shape.n, shape.k);
    if is_vector(shape) {
        for (batch, (&left, &right)) in shape.a.offsets.iter().zip(&shape.b.offsets).enumerate() {
            let (to, of_a, of_b) = (batch * m * n, (shape.a.row, shape.a.column), (shape.b.column, shape.b.row));
            // SAFETY: `run` checked that every element that the strides reach lies within the bindings.
            unsafe {
                if n == 1 {
                    let rows = Rows { first: left, rows: m, terms: k, row: of_a.0, term: of_a.1 };
                    vector::product(a, rows, b, (right, of_b.1), (c, to), limits)?;
                } else {
                    let rows = Rows { first: right, rows: n, terms: k, row: of_b.0, term: of_b.1 };
                    vector::product(b, rows, a, (left, of_a.1), (c, to), limits)?;
                }
            }
        }
        return Ok(());
    }
    let [rows, columns] = slab([m, n, k], limits);
    let one = |batch: usize, parallelism: Parallelism| {
        for column in (0..n).step_by(columns) {
            for row in (0..m).step_by(rows) {
                limits.begin().check()?;
                // SAFETY: `run` checked that every element that the strides reach lies within the bindings.
                unsafe {
                    let (a_at, b_at) = (shape.a.offsets[batch] + row * shape.a.row, shape.b.offsets[batch]);
                    product(
                        [rows.min(m - row), columns.min(n - column), k],
                        (c.start().add((batch * m + row) * n + column), n),
                        (a.start().add(a_at), shape.a.row, shape.a.column),
                        (b.start().add(b_at + column * shape.b.column), shape.b.row, shape.b.column),
                        parallelism,
                    );
                }
            }
        }
        Ok(())
    };
    let batches = shape.a.offsets.len();
    let large = m.saturating_mul(n).saturating_mul(k) >= THREADS_PAY && threads::count() > 1;
    if batches >= threads::count() && batches > 1 {
        threads::try_each(batches, |batch| one(batch, Parallelism::None))
    } else {
        (0..batches).try_for_each(|batch| one(batch, if large { Parallelism::Rayon(0) } else { Parallelism::None }))
    }
}

/// c = a b, with `c` by rows.
///
/// # Safety
/// Every element that the sizes and strides reach is valid: for reads of `a` and `b`, for writes of `c`, which nothing else touches.
unsafe fn product(
    [m, n, k]: [usize; 3],
    (c, c_row): (*mut f32, usize),
    (a, a_row, a_column): (*const f32, usize, usize),
    (b, b_row, b_column): (*const f32, usize, usize),
    parallelism: Parallelism,
) {
    if product::serves([m, n, k]) {
        let a = Matrix { start: a, row: a_row, column: a_column };
        let b = Matrix { start: b, row: b_row, column: b_column };
        let c = Matrix { start: c, row: c_row, column: 1 };
        // SAFETY: the caller's promise.
        return unsafe { product::product([m, n, k], c, a, b, !matches!(parallelism, Parallelism::None)) };
    }
    // Columns, each dense, are the crate's order; where the rows of C are, the transposed product is computed. Its own front does the same, for
    // all types of numbers at once.
    let by_columns = ([m, n], (1, c_row), (a, a_column, a_row), (b, b_column, b_row));
    let by_rows = ([n, m], (c_row, 1), (b, b_row, b_column), (a, a_row, a_column));
    let ([m, n], (c_column, c_row), (a, a_column, a_row), (b, b_column, b_row)) =
        if c_row > 1 { by_rows } else { by_columns };
    let step = usize::cast_signed;
    // The crate asks nobody on the web: what this module was compiled with is there.
    #[cfg(target_arch = "wasm32")]
    gemm_common::set_wasm_simd128(cfg!(target_feature = "simd128"));
    // SAFETY: the caller's promise.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            c,
            step(c_column),
            step(c_row),
            false,
            a,
            step(a_column),
            step(a_row),
            b,
            step(b_column),
            step(b_row),
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn conv2d(shape: &Conv2dShape, x: Floats, w: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let [height, width] = shape.output;
    let pixels = height * width;
    let (inputs, outputs) = (shape.channels[0] / shape.groups, shape.channels[1] / shape.groups);
    let depth = inputs * shape.kernel[0] * shape.kernel[1];
    if pixels == 0 || outputs == 0 || depth == 0 || conv::direct(shape, x, w, y, limits)? {
        return Ok(());
    }
    // Blocks of equal size, so that no task is left with a rest.
    let blocks = pixels.div_ceil(PIXELS).max(threads::count().div_ceil(shape.images * shape.groups));
    let block = pixels.div_ceil(blocks).next_multiple_of(16);
    let blocks = pixels.div_ceil(block);
    let tasks = shape.images * shape.groups * blocks;
    threads::try_each(tasks, |task| {
        limits.begin().check()?;
        let (image, rest) = (task / (shape.groups * blocks), task % (shape.groups * blocks));
        let (group, from) = (rest / blocks, rest % blocks * block);
        let count = block.min(pixels - from);
        let plane = shape.input[0] * shape.input[1];
        // SAFETY: `run` checked the sizes: channel `(image, group)` has `inputs` planes.
        let planes = unsafe {
            std::slice::from_raw_parts(
                x.start().add((image * shape.channels[0] + group * inputs) * plane).cast_const(),
                inputs * plane,
            )
        };
        product::with_scratch([depth * block, 0], |[columns, _]| {
            lay_out(shape, planes, columns, (from, count, block));
            // SAFETY: as checked by `run`; tasks write distinct columns of distinct planes.
            unsafe {
                product(
                    [outputs, count, depth],
                    (y.start().add((image * shape.channels[1] + group * outputs) * pixels + from), pixels),
                    (w.start().add(group * outputs * depth).cast_const(), depth, 1),
                    (columns.as_ptr(), block, 1),
                    Parallelism::None,
                );
            }
        });
        Ok(())
    })
}

/// Puts what the weights meet at `count` pixels from `from` on into `columns`, a row of `block` for each weight.
fn lay_out(shape: &Conv2dShape, planes: &[f32], columns: &mut [f32], (from, count, block): (usize, usize, usize)) {
    let [height, width] = shape.input;
    let mut rows = columns.chunks_exact_mut(block);
    for plane in planes.chunks_exact(height * width) {
        for i in 0..shape.kernel[0] {
            for j in 0..shape.kernel[1] {
                let Some(row) = rows.next() else { return };
                let (mut at, end) = (from, from + count);
                while at < end {
                    let (y, x) = (at / shape.output[1], at % shape.output[1]);
                    let run = (shape.output[1] - x).min(end - at);
                    let target = &mut row[at - from..at - from + run];
                    let source_y = (y * shape.stride[0] + i * shape.dilation[0]).wrapping_sub(shape.padding[0]);
                    let shift = j * shape.dilation[1];
                    if source_y >= height {
                        target.fill(0.0);
                    } else {
                        fill_row(
                            &plane[source_y * width..][..width],
                            target,
                            x,
                            shape.stride[1],
                            shift,
                            shape.padding[1],
                        );
                    }
                    at += run;
                }
            }
        }
    }
}

/// `target[i]` = `line[(x + i) stride + shift - padding]`, and 0 outside.
fn fill_row(line: &[f32], target: &mut [f32], x: usize, stride: usize, shift: usize, padding: usize) {
    if stride == 1 {
        // Where the run lies within the line it is copied as one.
        let before = padding.saturating_sub(x + shift).min(target.len());
        let start = (x + before + shift).saturating_sub(padding).min(line.len());
        let inner = (line.len() - start).min(target.len() - before);
        target[..before].fill(0.0);
        target[before..before + inner].copy_from_slice(&line[start..start + inner]);
        target[before + inner..].fill(0.0);
        return;
    }
    for (i, value) in target.iter_mut().enumerate() {
        let at = ((x + i) * stride + shift).wrapping_sub(padding);
        *value = line.get(at).copied().unwrap_or(0.0);
    }
}
