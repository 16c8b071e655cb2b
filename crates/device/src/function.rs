//! Functions of the host as native operations: an app or a crate defines them, and devices that work in the host's memory run them. The engine passes them
//! on as it does its own operations (`NativeOperation::Function`). Equality is that of the closure's code and its parameters, by which programs are cached:
//! what a closure captures must follow from the parameters.

use std::any::{Any, TypeId};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Returns true once a function should return early: its work was cancelled, or has taken longer than the engine allows. Any of the function's threads
/// may call it; a call reads a clock.
pub type Stop<'a> = dyn Fn() -> bool + Sync + 'a;

/// Bytes of a binding from which a function is taken for more than one thread's work.
const LARGE: usize = 1 << 13;

/// The threads that run a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// One thread, also that of a caller who waits for the result: for work of some ten microseconds.
    One,
    /// Any thread, also that of a caller who waits for the result: for work that is spread over threads without rayon, if at all.
    Any,
    /// A thread of the device's pool: rayon spreads the function's work over that pool.
    Pool,
}

/// A function of the host over contiguous tensors, as an operation that the CPU runs in place of a kernel:
/// [`NativeOperation::Function`](super::native::NativeOperation::Function). Any crate can define one; a portable kernel serves the other devices.
///
/// ```
/// # use std::sync::LazyLock;
/// use cantus::backend::native::{Function, NativeOperation};
/// use cantus::{DType, Engine, Kernel, Result, Tensor};
///
/// /// Rotates the bits of each element of a tensor of u32 to the left.
/// fn rotated(x: &Tensor, bits: u32) -> Result<Tensor> {
///     let engine = x.engine();
///     // The native form. Beside the inputs, the result depends on `bits` alone.
///     let rotate = Function::new(bits, vec![4 * x.len(); 2], |bits, inputs, result, stop| {
///         let [x] = inputs else { return Err(format!("{} inputs", inputs.len())) };
///         for (from, to) in x.as_chunks::<4>().0.chunks(4096).zip(result.as_chunks_mut::<4>().0.chunks_mut(4096)) {
///             if stop() {
///                 break; // what was written is never read
///             }
///             for (from, to) in from.iter().zip(to) {
///                 *to = u32::from_ne_bytes(*from).rotate_left(*bits).to_ne_bytes();
///             }
///         }
///         Ok(())
///     });
///     let operation = NativeOperation::Function(rotate);
///     if let Some(y) = engine.native(operation, &[x], (DType::U32, x.shape()), "rotate")? {
///         return Ok(y);
///     }
///     // Every other device runs the kernel, which writes each element of `y`.
///     static KERNEL: LazyLock<Result<Kernel>> = LazyLock::new(|| Kernel::from_wgsl("
///         @group(0) @binding(0) var<uniform> bits: u32;
///         @group(0) @binding(1) var<storage> x: array<u32>;
///         @group(0) @binding(2) var<storage, read_write> y: array<u32>;
///         @compute @workgroup_size(64) fn rotate(@builtin(global_invocation_id) id: vec3u) {
///             if id.x < arrayLength(&y) { y[id.x] = (x[id.x] << (bits % 32u)) | (x[id.x] >> ((32u - bits % 32u) % 32u)); }
///         }
///     "));
///     let y = engine.output(Some(x), DType::U32, x.shape(), "rotate")?;
///     engine.dispatch(&KERNEL.clone()?).bind("x", x).bind("y", &y).set("bits", bits).invocations(x.len()).run()?;
///     Ok(y)
/// }
///
/// // Both forms on the CPU: the function, and the kernel.
/// for native in [true, false] {
///     let engine = Engine::builder().backend("cpu").native(native).build()?;
///     let x = engine.tensor(&[1_u32, 0x8000_0001])?;
///     assert_eq!(rotated(&x, 1)?.to_vec::<u32>()?, [2, 3]);
/// }
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// Two functions are equal if they were made of the same closure or function item with equal parameters, sizes and threads. Code that caches or compares
/// operations may use one in place of the other.
#[derive(Clone)]
pub struct Function {
    sizes: Arc<[usize]>,
    threads: Threads,
    body: Arc<dyn Body>,
}

/// Parameters, and a function of them and the bytes of tensors.
struct With<P, F> {
    parameters: P,
    run: F,
}

/// [`With`] of any parameters.
trait Body: Any + Send + Sync {
    fn run(&self, inputs: &[&[u8]], result: &mut [u8], stop: &Stop<'_>) -> Result<(), String>;
    fn parameters(&self) -> &dyn Debug;
    fn equals(&self, other: &dyn Any) -> bool;
    fn feed(&self, hasher: &mut dyn Hasher);
}

impl<P, F> Body for With<P, F>
where
    P: Debug + Eq + Hash + Send + Sync + 'static,
    F: Fn(&P, &[&[u8]], &mut [u8], &Stop<'_>) -> Result<(), String> + Send + Sync + 'static,
{
    fn run(&self, inputs: &[&[u8]], result: &mut [u8], stop: &Stop<'_>) -> Result<(), String> {
        (self.run)(&self.parameters, inputs, result, stop)
    }

    fn parameters(&self) -> &dyn Debug {
        &self.parameters
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.parameters == other.parameters)
    }

    fn feed(&self, mut hasher: &mut dyn Hasher) {
        TypeId::of::<Self>().hash(&mut hasher);
        self.parameters.hash(&mut hasher);
    }
}

impl Function {
    /// Creates a function.
    ///
    /// - `parameters` are everything that the result depends on beside the inputs. What `run` captures must follow from them.
    /// - `sizes` are the bytes that it reads of each input, in their order, and last the bytes that it writes of the result. A bound tensor may be
    ///   larger; a smaller one fails the call.
    /// - `run` gets the parameters, the inputs, the result and a stop flag. Slices have the bytes of `sizes` and begin at multiples of 16 bytes, so
    ///   numbers lie in them as in an array, in the machine's order. It writes every byte of the result, whose contents before are unspecified.
    ///
    /// An error of `run` is a text that says what is wrong with the inputs. It fails the call: the result is lost, and reading it returns the text in an
    /// [`Error::Device`](crate::error::Error::Device). `run` must not panic, because that ends the device. It must not use the engine or its tensors: the
    /// device's other work waits until `run` returns.
    ///
    /// Functions whose bindings are all below 8 KiB run on [`Threads::One`], others on [`Threads::Pool`].
    pub fn new<P, F>(parameters: P, sizes: Vec<usize>, run: F) -> Self
    where
        P: Debug + Eq + Hash + Send + Sync + 'static,
        F: Fn(&P, &[&[u8]], &mut [u8], &Stop<'_>) -> Result<(), String> + Send + Sync + 'static,
    {
        let is_small = sizes.iter().all(|&bytes| bytes < LARGE);
        let threads = if is_small { Threads::One } else { Threads::Pool };
        Self { sizes: sizes.into(), threads, body: Arc::new(With { parameters, run }) }
    }

    /// Sets the threads that run it.
    #[must_use]
    pub fn on(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// Returns the bytes of each input, and last those of the result.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the threads that run it.
    #[must_use]
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// Computes the result, for a device that works in the host's memory. Slices are as [`Function::new`] describes them.
    ///
    /// # Errors
    /// The function's text. The result is then unspecified.
    pub fn run(&self, inputs: &[&[u8]], result: &mut [u8], stop: &Stop<'_>) -> Result<(), String> {
        self.body.run(inputs, result, stop)
    }
}

impl Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Function");
        text.field("parameters", self.body.parameters()).field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.sizes == other.sizes && self.threads == other.threads && self.body.equals(&*other.body)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sizes.hash(state);
        self.body.feed(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;

    fn hash(function: &Function) -> u64 {
        let mut hasher = DefaultHasher::new();
        function.hash(&mut hasher);
        hasher.finish()
    }

    /// Adds `more` to each byte.
    fn adds(more: u8, count: usize) -> Function {
        Function::new(more, vec![count; 2], |more, inputs, result, stop| {
            let [x] = inputs else { return Err("one input".to_owned()) };
            if !stop() {
                result.iter_mut().zip(*x).for_each(|(to, from)| *to = from.wrapping_add(*more));
            }
            Ok(())
        })
    }

    #[test]
    fn functions_are_equal_by_code_and_parameters() {
        assert_eq!(adds(1, 8), adds(1, 8));
        assert_eq!(hash(&adds(1, 8)), hash(&adds(1, 8)));
        assert_ne!(adds(1, 8), adds(2, 8), "another parameter");
        assert_ne!(adds(1, 8), adds(1, 9), "another size");
        assert_ne!(adds(1, 8), adds(1, 8).on(Threads::Any), "other threads");
        let fails = |more: u8| Function::new(more, vec![8; 2], |_, _, _, _| Err("never".to_owned()));
        assert_ne!(adds(1, 8), fails(1), "other code");
        let wide = Function::new(1_u16, vec![8; 2], |_, _, _, _| Err("never".to_owned()));
        assert_ne!(fails(1), wide, "a parameter of another type");
        assert_ne!(hash(&adds(1, 8)), hash(&adds(2, 8)));
    }

    #[test]
    fn a_function_computes_stops_and_says_what_is_wrong() {
        let (add, mut result) = (adds(3, 2), [0; 2]);
        assert_eq!(add.run(&[&[1, 255]], &mut result, &|| false), Ok(()));
        assert_eq!(result, [4, 2]);
        assert_eq!(add.run(&[&[7, 7]], &mut result, &|| true), Ok(()));
        assert_eq!(result, [4, 2], "it was stopped");
        assert_eq!(add.run(&[], &mut result, &|| false), Err("one input".to_owned()));
        assert!(format!("{add:?}").contains("parameters: 3"), "{add:?}");
    }

    #[test]
    fn small_functions_run_on_one_thread() {
        assert_eq!(adds(1, 8).threads(), Threads::One);
        assert_eq!(adds(1, 1 << 13).threads(), Threads::Pool);
        assert_eq!(adds(1, 8).on(Threads::Any).threads(), Threads::Any);
    }
}
