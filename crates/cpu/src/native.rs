//! Operations on the processor in place of the WGSL kernels: products and convolutions by `product`, orders and scans of rows by `rows`,
//! and so on.

use std::sync::Arc;

use super::fault::Fault;
use super::floats::Floats;
#[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
use super::fourier;
use super::memory::Keeper;
use super::multiply::{THREADS_PAY, matmul};
#[cfg(target_arch = "x86_64")]
use super::words::Part as _;
use super::{
    attention, converts, copies, counts, elements, gathers, random, reduce, resample, rows, scatters, windows,
};
use crate::backend::native::{Conv2dShape, FunctionShape, MatmulShape, NativeOperation};
use crate::spmd::{Limits, Stopped};
use crate::tensor::DType;
use crate::threads;
use cantus_base::listed::Listed;

/// An operation that this device runs by itself.
pub(super) struct Native(NativeOperation);

/// Elements below which one thread is enough: those that are copied, sorted, and scanned.
const COPIES_PAY: usize = 1 << 15;
const GATHERS_PAY: usize = 1 << 14;
const SORTS_PAY: usize = 1 << 12;
const SCANS_PAY: usize = 1 << 16;
const TRANSFORMS_PAY: usize = 1 << 13;
/// Bytes of the same.
const FUNCTIONS_PAY: usize = 1 << 13;

impl Native {
    /// The operation, if its sizes hold together: every element that it names lies within `m`, `n`, `k` and the strides given.
    pub(super) fn new(operation: &NativeOperation) -> Option<Self> {
        let fits = match operation {
            NativeOperation::Matmul(shape) => {
                let takes = match shape.dtype {
                    DType::F32 => true,
                    DType::I32 | DType::U32 => true,
                    #[cfg(target_arch = "x86_64")]
                    DType::BF16 => u16::serves(),
                    #[cfg(target_arch = "x86_64")]
                    DType::I8 => u8::serves(),
                    _ => false,
                };
                // Vectors are multiplied as they lie, which is for floats alone.
                let takes = takes && (shape.dtype == DType::F32 || shape.m > 1 && shape.n > 1);
                takes && shape.a.offsets.len() == shape.b.offsets.len() && shape.m > 0 && shape.n > 0 && shape.k > 0
            }
            NativeOperation::Conv2d(shape) => windows::serves(shape),
            // Places are words of 32 bits.
            NativeOperation::Sort(shape) => shape.keep <= shape.length && u32::try_from(shape.length).is_ok(),
            NativeOperation::Find(shape) => shape.length > 0 && u32::try_from(shape.length).is_ok(),
            NativeOperation::Convert(shape) => converts::serves(shape),
            NativeOperation::Elements(shape) => elements::serves(shape),
            NativeOperation::Reduce(shape) => reduce::serves(shape),
            NativeOperation::Scan(_)
            | NativeOperation::Copy(_)
            | NativeOperation::Assemble(_)
            | NativeOperation::Greatest(_) => true,
            NativeOperation::Gather(shape) => gathers::serves(shape),
            NativeOperation::Scatter(shape) => scatters::serves(shape),
            NativeOperation::Count(shape) => counts::serves(shape),
            NativeOperation::Resample(shape) => resample::serves(shape),
            // Places are words of 32 bits here too.
            NativeOperation::Random(shape) => u32::try_from(shape.count).is_ok(),
            NativeOperation::Attention(shape) => {
                let heads = shape.query.offsets.len();
                [&shape.key, &shape.value].iter().all(|operand| operand.offsets.len() == heads)
                    && [shape.queries, shape.keys, shape.depth, shape.width].iter().all(|&side| side > 0)
                    && (!shape.causal || shape.queries <= shape.keys)
            }
            #[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
            NativeOperation::Fft(shape) => fourier::serves(shape),
            #[cfg(not(all(feature = "fft", not(target_arch = "wasm32"))))]
            NativeOperation::Fft(_) => false,
            NativeOperation::Function(_) => true,
            // Its own kernels are quicker than the operations that a graph cuts them into.
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => false,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(operation) => operation.sizes().is_some(),
        };
        fits.then(|| Self(operation.clone()))
    }

    pub(super) fn results(&self) -> usize {
        self.0.results()
    }

    /// Operations below which it is not worth a second thread.
    fn is_small(&self) -> bool {
        let (work, pays) = match &self.0 {
            NativeOperation::Matmul(_) | NativeOperation::Conv2d(_) | NativeOperation::Attention(_) => {
                (self.0.flops() as usize / 2, THREADS_PAY)
            }
            NativeOperation::Sort(shape) => (shape.rows.saturating_mul(shape.length), SORTS_PAY),
            NativeOperation::Scan(shape) => (shape.rows.saturating_mul(shape.length), SCANS_PAY),
            NativeOperation::Find(shape) => (shape.rows.saturating_mul(shape.length), COPIES_PAY),
            NativeOperation::Convert(shape) => (shape.count, COPIES_PAY),
            NativeOperation::Greatest(shape) => (shape.count, COPIES_PAY),
            NativeOperation::Copy(shape) => (copies::sizes(shape).map_or(0, |[_, count]| count), COPIES_PAY),
            NativeOperation::Assemble(shape) => {
                (copies::whole_sizes(shape).and_then(|sizes| sizes.last().copied()).unwrap_or(0), COPIES_PAY)
            }
            NativeOperation::Gather(shape) => (gathers::sizes(shape).map_or(0, |[.., count]| count), GATHERS_PAY),
            NativeOperation::Scatter(shape) => (shape.rows.saturating_mul(shape.count.max(shape.length)), GATHERS_PAY),
            NativeOperation::Count(shape) => (shape.count, COPIES_PAY),
            NativeOperation::Resample(shape) => {
                (resample::sizes(shape).map_or(0, |[from, to]| from.max(to)), GATHERS_PAY)
            }
            NativeOperation::Elements(shape) => {
                (elements::sizes(shape).map_or(0, |sizes| *sizes.last().unwrap_or(&0)), COPIES_PAY)
            }
            NativeOperation::Reduce(shape) => (reduce::work(shape), SCANS_PAY),
            NativeOperation::Random(shape) => (shape.count, SCANS_PAY),
            NativeOperation::Fft(shape) => (shape.rows.saturating_mul(shape.length), TRANSFORMS_PAY),
            NativeOperation::Function(shape) => (shape.sizes().iter().copied().max().unwrap_or(0), FUNCTIONS_PAY),
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => (usize::MAX, 0),
            #[cfg(feature = "zk")]
            NativeOperation::Zk(_) => (usize::MAX, 0),
        };
        work < pays
    }

    /// Returns whether it may run on any thread. Work that rayon spreads belongs to the queue's thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn runs_anywhere(&self) -> bool {
        match &self.0 {
            _ if self.is_small() => true,
            NativeOperation::Sort(shape) => !rows::is_split(shape),
            NativeOperation::Function(_) => false,
            NativeOperation::Matmul(_)
            | NativeOperation::Conv2d(_)
            | NativeOperation::Convert(_)
            | NativeOperation::Greatest(_)
            | NativeOperation::Scan(_)
            | NativeOperation::Find(_)
            | NativeOperation::Copy(_)
            | NativeOperation::Assemble(_)
            | NativeOperation::Gather(_)
            | NativeOperation::Scatter(_)
            | NativeOperation::Count(_)
            | NativeOperation::Resample(_)
            | NativeOperation::Elements(_)
            | NativeOperation::Reduce(_)
            | NativeOperation::Random(_)
            | NativeOperation::Attention(_)
            | NativeOperation::Fft(_) => true,
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => false,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(_) => true,
        }
    }

    /// Runs it over its bindings, inputs first, of which what is made may be kept, or says which does not hold what the operation takes.
    pub(super) fn run<'a>(
        &self,
        bindings: &[Floats],
        keeper: &dyn Fn(usize) -> Option<&'a Arc<Keeper>>,
        limits: &Limits<'_>,
    ) -> Result<(), Fault> {
        if self.is_small() {
            return threads::alone(|| self.run_spread(bindings, keeper, limits));
        }
        self.run_spread(bindings, keeper, limits)
    }

    fn run_spread<'a>(
        &self,
        bindings: &[Floats],
        keeper: &dyn Fn(usize) -> Option<&'a Arc<Keeper>>,
        limits: &Limits<'_>,
    ) -> Result<(), Fault> {
        self.check(bindings)?;
        match (&self.0, bindings) {
            (NativeOperation::Matmul(shape), [a, b, c]) => matmul(shape, [*a, *b, *c], &|| keeper(1), limits),
            (NativeOperation::Conv2d(shape), [a, b, c]) => {
                windows::convolve(shape, [*a, *b, *c], &|| keeper(1), limits)
            }
            (NativeOperation::Sort(shape), [x, y]) => rows::sort(shape, *x, *y, limits),
            (NativeOperation::Scan(shape), [x, y]) => rows::scan(shape, *x, *y, limits),
            (NativeOperation::Find(shape), [x, y]) => rows::find(shape, *x, *y, limits),
            (NativeOperation::Convert(shape), [x, y]) => converts::convert(shape, *x, *y, limits),
            (NativeOperation::Greatest(shape), [x, y]) => gathers::greatest(shape, *x, *y, limits),
            (NativeOperation::Copy(shape), [x, y]) => copies::copy(shape, *x, *y, limits),
            (NativeOperation::Attention(shape), &[q, k, v, y]) => attention::attend(shape, [q, k, v, y], limits),
            (NativeOperation::Assemble(shape), bindings) => copies::assemble(shape, bindings, limits),
            (NativeOperation::Gather(shape), &[x, places, y]) => gathers::gather(shape, [x, places, y], limits),
            (NativeOperation::Scatter(shape), &[x, places, values, y]) => {
                scatters::scatter(shape, [x, places, values, y], limits)
            }
            (NativeOperation::Count(shape), [numbers, edges @ .., y]) => {
                counts::count(shape, *numbers, edges.first().copied(), *y, limits)
            }
            (NativeOperation::Resample(shape), [x, y]) => resample::resample(shape, *x, *y, limits),
            (NativeOperation::Elements(shape), bindings) => elements::compute(shape, bindings, limits),
            (NativeOperation::Reduce(shape), bindings) => reduce::reduce(shape, bindings, limits),
            (NativeOperation::Random(shape), [y]) => random::fill(shape, *y, limits),
            #[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
            (NativeOperation::Fft(shape), [x, y]) => fourier::transform(shape, *x, *y, limits),
            (NativeOperation::Function(shape), [inputs @ .., y]) => function(shape, inputs, *y, limits),
            #[cfg(feature = "zk")]
            (NativeOperation::Zk(operation), [inputs @ .., output]) => return zk(operation, inputs, *output, limits),
            _ => return Err(Fault::from("its bindings are not those of the kernel")),
        }
        .map_err(Fault::from)
    }

    /// Returns the elements of each binding, inputs first, if they can be counted.
    fn sizes(&self) -> Option<Vec<usize>> {
        match &self.0 {
            NativeOperation::Matmul(shape) => matmul_sizes(shape).map(Vec::from),
            NativeOperation::Conv2d(shape) => conv_sizes(shape).map(Vec::from),
            NativeOperation::Sort(shape) => rows::sort_sizes(shape).map(Vec::from),
            NativeOperation::Scan(shape) => rows::scan_sizes(shape).map(Vec::from),
            NativeOperation::Find(shape) => {
                shape.rows.checked_mul(shape.length).map(|elements| vec![elements, shape.rows])
            }
            NativeOperation::Convert(shape) => Some(converts::sizes(shape).to_vec()),
            NativeOperation::Greatest(shape) => Some(vec![shape.count, 1]),
            NativeOperation::Copy(shape) => copies::word_sizes(shape).map(Vec::from),
            NativeOperation::Assemble(shape) => copies::whole_sizes(shape),
            NativeOperation::Gather(shape) => gathers::sizes(shape).map(Vec::from),
            NativeOperation::Scatter(shape) => scatters::sizes(shape).map(Vec::from),
            NativeOperation::Count(shape) => Some(counts::sizes(shape)),
            NativeOperation::Resample(shape) => resample::sizes(shape).map(Vec::from),
            NativeOperation::Elements(shape) => elements::sizes(shape),
            NativeOperation::Reduce(shape) => reduce::sizes(shape),
            NativeOperation::Random(shape) => Some(vec![shape.count]),
            NativeOperation::Attention(shape) => attention::sizes(shape).map(Vec::from),
            #[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
            NativeOperation::Fft(shape) => fourier::sizes(shape).map(Vec::from),
            #[cfg(not(all(feature = "fft", not(target_arch = "wasm32"))))]
            NativeOperation::Fft(_) => None,
            NativeOperation::Function(shape) => Some(shape.sizes().iter().map(|bytes| bytes.div_ceil(4)).listed()),
            #[cfg(feature = "graph")]
            NativeOperation::Graph(_) => None,
            #[cfg(feature = "zk")]
            NativeOperation::Zk(operation) => operation.sizes(),
        }
    }

    /// Checks that the bindings hold what the operation takes.
    fn check(&self, bindings: &[Floats]) -> Result<(), Fault> {
        let needed = self.sizes().ok_or("its sizes are too large to count")?;
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
        Ok(())
    }
}

/// A function of the bytes that the bindings hold, of which there are as many as its sizes say.
fn function(shape: &FunctionShape, inputs: &[Floats], y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    limits.begin().check()?;
    let [sizes @ .., size] = shape.sizes() else { return Ok(()) };
    // SAFETY: the bindings hold that many bytes, and nothing writes to them while the function runs.
    let bytes = |(of, &bytes): (&Floats, &usize)| unsafe { std::slice::from_raw_parts(of.start().cast::<u8>(), bytes) };
    let inputs: Vec<&[u8]> = inputs.iter().zip(sizes).map(bytes).listed();
    // SAFETY: as above; the result is a tensor of its own, which nothing else touches.
    shape.run(&inputs, unsafe { std::slice::from_raw_parts_mut(y.start().cast::<u8>(), *size) });
    limits.begin().check()
}

/// Words are numbers of 32 bits, as floats are.
#[cfg(feature = "zk")]
fn zk(
    operation: &crate::algebra::Operation,
    inputs: &[Floats],
    output: Floats,
    limits: &Limits<'_>,
) -> Result<(), Fault> {
    // SAFETY: the bindings hold that many words, and only this operation uses them. The output is a separate tensor.
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

/// Words that a product reads of each operand and writes.
fn matmul_sizes(shape: &MatmulShape) -> Option<[usize; 3]> {
    let (a, b) = (shape.a.reach(shape.m, shape.k)?, shape.b.reach(shape.k, shape.n)?);
    let c = shape.m.checked_mul(shape.n)?.checked_mul(shape.a.offsets.len())?;
    let each = 4 / shape.dtype.bytes();
    Some([a.div_ceil(each), b.div_ceil(each), c])
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
