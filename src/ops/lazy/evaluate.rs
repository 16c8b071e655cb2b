//! Evaluation: an expression becomes one kernel, which is kept by its text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::emit::{self, Emitted, MOST_TENSORS, emit, libraries, stored, too_large};
use super::graph::{Lazy, Node, Typed, View};
use super::shape::contiguous;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::tensor::{DType, Tensor};

/// Kernels made so far, by their portable text.
fn kernels() -> &'static Mutex<HashMap<String, Kernel>> {
    static KERNELS: OnceLock<Mutex<HashMap<String, Kernel>>> = OnceLock::new();
    KERNELS.get_or_init(Mutex::default)
}

/// The kernel of a body of WGSL, with the functions that it uses before it.
pub(super) fn kernel(name: &str, body: &str) -> Result<Kernel> {
    if let Some(known) = kernels().lock().unwrap_or_else(PoisonError::into_inner).get(body) {
        return Ok(known.clone());
    }
    let [portable, native] = libraries().map(|library| format!("{}\n{body}", used(library, body)));
    let kernel = Kernel::from_wgsl_pair(name, &portable, &native)?;
    kernels().lock().unwrap_or_else(PoisonError::into_inner).insert(body.to_owned(), kernel.clone());
    Ok(kernel)
}

/// The library where the body calls it, and nothing where it does not: what is not parsed costs no time.
fn used<'a>(library: &'a str, body: &str) -> &'a str {
    if body.contains("float_") { library } else { "" }
}

/// A uniform of so many words, as declared in every kernel of this module.
pub(super) fn words_text(count: usize) -> String {
    format!("@group(0) @binding(0) var<uniform> words: array<vec4u, {}>;\n", count.div_ceil(4).max(1))
}

/// Words as the uniform's bytes.
pub(super) fn words_bytes(words: &[u32]) -> Vec<u8> {
    let mut padded = words.to_vec();
    padded.resize(words.len().div_ceil(4).max(1) * 4, 0);
    padded.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(super) const NAMES: [&str; MOST_TENSORS] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6"];

/// The kernel's text for an expression, and its words.
fn elementwise(emitted: &Emitted, dtype: DType, count: u32) -> (String, Vec<u32>) {
    let mut words = vec![count];
    words.extend(&emitted.words);
    let (binding, stored) = (emitted.tensors.len() + 1, stored(dtype));
    let store = if dtype == DType::F16 {
        "    let i = 2u * id.x;\n    if i >= words[0].x { return; }\n    \
         var pair = vec2f(element(i), 0.0);\n    if i + 1u < words[0].x { pair.y = element(i + 1u); }\n    \
         y[id.x] = pack2x16float(pair);\n"
    } else {
        "    if id.x < words[0].x { y[id.x] = element(id.x); }\n"
    };
    let text = format!(
        "{}@group(0) @binding({binding}) var<storage, read_write> y: array<{stored}>;\n{}\n\
         @compute @workgroup_size(256)\nfn elementwise(@builtin(global_invocation_id) id: vec3u) {{\n{store}}}\n",
        words_text(words.len()),
        emitted.text,
    );
    (text, words)
}

/// The expression with few enough inputs: parts of it are computed first where it has more.
pub(super) async fn narrowed(engine: &Engine, typed: &Arc<Typed>, most: usize) -> Result<Arc<Typed>> {
    let mut inputs = Vec::new();
    emit::tensors(typed, &mut inputs);
    if inputs.len() <= most {
        return Ok(typed.clone());
    }
    let part = |part: &Arc<Typed>| {
        let (engine, part) = (engine.clone(), part.clone());
        async move {
            match part.node {
                Node::Read(_) | Node::Constant(_) => Ok(part),
                _ => Ok(read(Box::pin(compute(&engine, &part)).await?)),
            }
        }
    };
    let node = match &typed.node {
        Node::Unary(op, a) => Node::Unary(*op, part(a).await?),
        Node::Cast(a) => Node::Cast(part(a).await?),
        Node::Binary(op, a, b) => Node::Binary(*op, part(a).await?, part(b).await?),
        Node::Select(a, b, c) => Node::Select(part(a).await?, part(b).await?, part(c).await?),
        Node::Read(_) | Node::Constant(_) => return Ok(typed.clone()),
    };
    Ok(Arc::new(Typed { node, shape: typed.shape.clone(), dtype: typed.dtype }))
}

/// A tensor as an expression.
pub(super) fn read(tensor: Tensor) -> Arc<Typed> {
    let (shape, dtype) = (tensor.shape().to_vec(), tensor.dtype());
    let view = View { offset: 0, strides: contiguous(&shape), tensor };
    Arc::new(Typed { node: Node::Read(view), shape, dtype })
}

/// Computes an expression into a new tensor.
pub(super) async fn compute(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    let typed = narrowed(engine, typed, MOST_TENSORS).await?;
    let count: usize = typed.shape.iter().product();
    let count = u32::try_from(count).map_err(|_| too_large(count))?;
    let emitted = emit(&typed, &typed.shape, 1)?;
    let output = engine.output(emitted.tensors.first(), typed.dtype, &typed.shape, "elementwise").await?;
    if count == 0 {
        return Ok(output);
    }
    let (text, words) = elementwise(&emitted, typed.dtype, count);
    let kernel = kernel("elementwise", &text)?;
    let bytes = words_bytes(&words);
    let mut dispatch = engine.dispatch(&kernel).set_bytes("words", &bytes).bind("y", &output);
    for (name, tensor) in NAMES.iter().zip(&emitted.tensors) {
        dispatch = dispatch.bind(name, tensor);
    }
    let invocations = if typed.dtype == DType::F16 { count.div_ceil(2) } else { count };
    dispatch.invocations(u64::from(invocations)).run_async().await?;
    Ok(output)
}

impl Lazy {
    /// Computes all that was recorded, in one kernel (or several, where it reads more tensors than a kernel binds). What is not read
    /// contiguously is gathered on the way: no input is copied first.
    ///
    /// # Errors
    /// The first mistake in what was recorded, and as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn eval_async(&self) -> Result<Tensor> {
        let typed = self.state.as_ref().map_err(Clone::clone)?;
        compute(&self.engine, typed).await
    }

    /// [`Lazy::eval_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn eval(&self) -> Result<Tensor> {
        pollster::block_on(self.eval_async())
    }

    /// The WGSL that [`Lazy::eval`] would run, without the library's functions.
    ///
    /// # Errors
    /// The first mistake in what was recorded.
    pub fn wgsl(&self) -> Result<String> {
        let typed = self.state.as_ref().map_err(Clone::clone)?;
        let emitted = emit(typed, &typed.shape, 1)?;
        Ok(elementwise(&emitted, typed.dtype, 0).0)
    }
}
