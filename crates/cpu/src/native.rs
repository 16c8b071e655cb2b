//! Operations on the processor in place of the WGSL kernels. Each kind implements [`Operation`] beside the code that computes it; [`own`] lists them. The
//! device calls `Native::new` for each `NativeOperation`; `None` means that the operation's kernel runs. An operation declares the words that it reads and
//! writes of each binding, which are checked before it runs, so its own code relies on them. `Threads` of rayon belong to the queue's thread.

use std::sync::Arc;

use super::fault::Fault;
use super::floats::Floats;
use super::memory::Keeper;
use crate::backend::native::{Function, NativeOperation, Threads};
use crate::spmd::Limits;
use crate::threads;
use cantus_base::listed::Listed;

/// Elements below which one thread is enough: those that are copied, gathered, and scanned.
pub(super) const COPIES_PAY: usize = 1 << 15;
pub(super) const GATHERS_PAY: usize = 1 << 14;
pub(super) const SCANS_PAY: usize = 1 << 16;

/// The work of an operation, and the work from which a second thread pays, in one unit of the operation's own.
pub(super) struct Work {
    pub(super) size: usize,
    pub(super) pays: usize,
}

/// The circumstances of one run.
pub(super) struct Call<'a> {
    /// Keeps results made from a binding's contents; `None` unless the binding starts where its buffer does.
    pub(super) keeper: &'a dyn Fn(usize) -> Option<&'a Arc<Keeper>>,
    pub(super) limits: &'a Limits<'a>,
}

/// An operation that this processor computes by itself.
pub(super) trait Operation: Send + Sync {
    /// Returns whether its sizes hold together, and the processor has what it needs.
    fn serves(&self) -> bool {
        true
    }

    /// Returns the words of 32 bits that it reads or writes of each binding; `None` if they cannot be counted.
    fn sizes(&self) -> Option<Vec<usize>>;

    /// Returns its work.
    fn work(&self) -> Work;

    /// Returns whether any thread may run it, however large it is. Work that rayon spreads belongs to the queue's thread.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "the web has no thread of the queue's own"))]
    fn runs_anywhere(&self) -> bool {
        true
    }

    /// Runs it over bindings that hold what [`Self::sizes`] counts: inputs first.
    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault>;
}

/// Returns the operation's own implementation, if there is one.
fn own(operation: &NativeOperation) -> Option<Box<dyn Operation>> {
    Some(match operation {
        NativeOperation::Matmul(shape) => Box::new(shape.clone()),
        NativeOperation::Convert(shape) => Box::new(*shape),
        NativeOperation::Conv2d(shape) => Box::new(*shape),
        NativeOperation::Sort(shape) => Box::new(*shape),
        NativeOperation::Order(shape) => Box::new(*shape),
        NativeOperation::Scan(shape) => Box::new(*shape),
        NativeOperation::Find(shape) => Box::new(*shape),
        NativeOperation::Copy(shape) => Box::new(shape.clone()),
        NativeOperation::Assemble(shape) => Box::new(shape.clone()),
        NativeOperation::Gather(shape) => Box::new(shape.clone()),
        NativeOperation::Greatest(shape) => Box::new(*shape),
        NativeOperation::Scatter(shape) => Box::new(*shape),
        NativeOperation::Count(shape) => Box::new(*shape),
        NativeOperation::Resample(shape) => Box::new(*shape),
        NativeOperation::Pool(shape) => Box::new(*shape),
        NativeOperation::Elements(shape) => Box::new(shape.clone()),
        NativeOperation::Reduce(shape) => Box::new(shape.clone()),
        NativeOperation::Fold(shape) => Box::new(shape.clone()),
        NativeOperation::Random(shape) => Box::new(*shape),
        #[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
        NativeOperation::Fft(shape) => Box::new(*shape),
        #[cfg(not(all(feature = "fft", not(target_arch = "wasm32"))))]
        NativeOperation::Fft(_) => return None,
        NativeOperation::Attention(shape) => Box::new(shape.clone()),
        NativeOperation::Function(function) => Box::new(function.clone()),
        // It has kernels.
        NativeOperation::Expression(_) => return None,
    })
}

/// An operation as a program of this device.
pub(super) struct Native {
    operation: Box<dyn Operation>,
    results: usize,
}

impl Native {
    /// Creates the program, if this processor computes the operation.
    pub(super) fn new(operation: &NativeOperation) -> Option<Self> {
        let results = operation.results();
        own(operation).filter(|operation| operation.serves()).map(|operation| Self { operation, results })
    }

    /// Returns the number of results, which are the last bindings.
    pub(super) fn results(&self) -> usize {
        self.results
    }

    /// Returns whether a second thread would not pay.
    fn is_small(&self) -> bool {
        let work = self.operation.work();
        work.size < work.pays
    }

    /// Returns whether it may run on any thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn runs_anywhere(&self) -> bool {
        self.is_small() || self.operation.runs_anywhere()
    }

    /// Runs it over its bindings, inputs first, or says which does not hold what the operation takes.
    pub(super) fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let needed = self.operation.sizes().ok_or("its sizes are too large to count")?;
        if bindings.len() != needed.len() {
            return Err(Fault::Misfit(format!("it takes {} bindings, there are {}", needed.len(), bindings.len())));
        }
        let short = bindings.iter().map(|binding| binding.1).zip(&needed).position(|(has, &needed)| has < needed);
        if let Some(place) = short {
            let (number, count, needed) = (place + 1, bindings[place].1, needed[place]);
            return Err(Fault::Misfit(format!("binding {number} has {count} elements, {needed} are read or written")));
        }
        let run = || self.operation.run(bindings, call);
        if self.is_small() { threads::alone(run) } else { run() }
    }
}

/// Returns the bindings of an operation with a fixed number of them.
pub(super) fn exactly<const N: usize>(bindings: &[Floats]) -> Result<[Floats; N], Fault> {
    bindings.try_into().map_err(|_| unlike())
}

/// Returns the fault of bindings that are not an operation's.
pub(super) fn unlike() -> Fault {
    Fault::from("its bindings are not those of the kernel")
}

impl Operation for Function {
    fn sizes(&self) -> Option<Vec<usize>> {
        Some(self.sizes().iter().map(|bytes| bytes.div_ceil(4)).listed())
    }

    fn work(&self) -> Work {
        let size = if self.threads() == Threads::One { 0 } else { usize::MAX };
        Work { size, pays: 1 }
    }

    fn runs_anywhere(&self) -> bool {
        self.threads() == Threads::Any
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let (limits, sizes) = (call.limits, Function::sizes(self));
        let ([inputs @ .., y], [sizes @ .., size]) = (bindings, sizes) else { return Err(unlike()) };
        limits.begin().check()?;
        // SAFETY: `Native::run` checked that the bindings hold that many bytes, and nothing writes to them while the function runs.
        let bytes =
            |(of, &bytes): (&Floats, &usize)| unsafe { std::slice::from_raw_parts(of.start().cast::<u8>(), bytes) };
        let inputs: Vec<&[u8]> = inputs.iter().zip(sizes).map(bytes).listed();
        // SAFETY: it holds as many bytes, and is a tensor of its own, which nothing else touches.
        let result = unsafe { std::slice::from_raw_parts_mut(y.start().cast::<u8>(), *size) };
        let outcome = Function::run(self, &inputs, result, &|| limits.begin().check().is_err());
        // If the run was stopped, that is reported first.
        limits.begin().check()?;
        outcome.map_err(Fault::Misfit)
    }
}
