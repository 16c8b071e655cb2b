//! Evaluation: from an expression to a tensor, by the first form that takes it.
//!
//! # What comes in
//! A `Typed` node as it was recorded (`compute`, `planned`), or one whose known values are reads already (`computed`; `Schedule::lowered` makes it); and the
//! schedule of the evaluation that it is a part of.
//!
//! # Stages
//! 1. `compute_in` returns the tensor if the expression only reads one. On a device that takes graphs it asks `described` next. It plans only where
//!    something is missing that the schedule does not have, so that what is computed within a plan is not planned again. What an operation makes while it
//!    runs has a schedule of its own.
//! 2. `planned` asks `plan` for the groups to compute first, and computes each by itself or `together`. It waits whenever results of more than
//!    `Slot::most_under_way` bytes are under way, except in captures and scopes, which keep everything to their end.
//! 3. `computed` computes the lowered expression. It takes the first of these forms:
//!    1. the end of an operation's kernel (`fusable`, `fused`), if all its reads of that operation are in the operation's own order;
//!    2. a tensor that is there by now;
//!    3. a copy, gather, conversion or random numbers by the device itself (`native`);
//!    4. a chain on the CPU (`chain::computed`), with inputs turned (`turned`) or unrolled (`unrolled`) first where that is quicker;
//!    5. a kernel that `emit` writes (`elementwise`), after `narrowed` has computed parts of it if it reads too many tensors.
//! 4. `kernel` returns the kernel of a text, which is parsed once and kept.
//!
//! # What holds
//! - What is read is computed before its reader (`resolve`).
//!
//! # What is surprising
//! - `fused` may find that an operation and the expression read too many tensors together. The operation then gets a result of its own.
//! - An operation that `fused` took once (`note_fused`) gets its own result the next time: two readers one after the other would otherwise each
//!   compute it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::chain;
use super::deferred::Deferred;
use super::emit::{self, MOST_TENSORS, Writer, word};
use super::library::linked;
use super::node::{Expr, Node, RandomKind, Source, Typed, View, is_float};
use super::number::{packed_frame, stored};
use super::operation::{Composed, Epilogue};
use super::plan::plan;
use super::replay::{self, evaluate};
use super::schedule::Schedule;
use super::shape::{broadcast_strides, collapse, contiguous, is_contiguous, product};
use super::survey::Facts;
use crate::backend::BoxFuture;
use crate::backend::native::{ConvertShape, CopyShape, GatherShape, NativeOperation, RandomShape};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::ops::tune::Machine;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Kernels kept, at most, so that an app that keeps making new ones does not grow without bound.
const KEPT: usize = 4096;

/// Kernels made so far, by their portable text.
fn kernels() -> &'static Mutex<HashMap<String, Kernel>> {
    static KERNELS: OnceLock<Mutex<HashMap<String, Kernel>>> = OnceLock::new();
    KERNELS.get_or_init(Mutex::default)
}

/// The kernel of a body of WGSL, with the functions that it uses before it.
pub(in crate::ops) fn kernel(name: &str, body: &str) -> Result<Kernel> {
    if let Some(known) = kernels().lock().unwrap_or_else(PoisonError::into_inner).get(body) {
        return Ok(known.clone());
    }
    let kernel = fresh_kernel(name, body)?;
    let mut kernels = kernels().lock().unwrap_or_else(PoisonError::into_inner);
    if kernels.len() >= KEPT {
        kernels.clear();
    }
    kernels.insert(body.to_owned(), kernel.clone());
    Ok(kernel)
}

/// Returns the kernels composed so far, by text.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn composed() -> Vec<Kernel> {
    let kernels = kernels().lock().unwrap_or_else(PoisonError::into_inner);
    let mut sorted: Vec<(&String, &Kernel)> = kernels.iter().collect();
    sorted.sort_unstable_by_key(|(text, _)| *text);
    sorted.into_iter().map(|(_, kernel)| kernel.clone()).collect()
}

/// Forgets the composed kernels.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn forget_composed() {
    kernels().lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Parses the kernel of a body.
fn fresh_kernel(name: &str, body: &str) -> Result<Kernel> {
    let [portable, native] = linked(body);
    Kernel::from_wgsl_pair(name, &portable, &native)
}

/// The variables that count the elements of an output.
pub(in crate::ops) enum Grid {
    /// One variable.
    Flat,
    /// Rows and columns; the columns are the axes from this one on. Needs no division.
    Rows(usize),
}

/// Returns whether rows leave at most a quarter of their workgroups of 256 idle, which would cost more than divisions.
fn fills(width: usize) -> bool {
    width.saturating_mul(4) >= width.div_ceil(256).saturating_mul(256 * 3)
}

/// Chooses the grid with the fewest divisions.
pub(in crate::ops) fn grid(typed: &Arc<Typed>) -> Grid {
    if typed.dtype.is_packed() {
        return Grid::Flat;
    }
    let rank = typed.shape.len();
    let mut views = vec![contiguous(&typed.shape)];
    typed.walk(&mut |node| {
        if let Node::Read(view) | Node::Gather { view, .. } = &node.node {
            views.push(broadcast_strides(&node.shape, &view.strides, &typed.shape));
        }
    });
    let axes = |from: usize| {
        let views: Vec<Vec<usize>> = views.iter().map(|view| view[from..].to_vec()).listed();
        collapse(&typed.shape[from..], &views).shape.len()
    };
    let split = (0..=rank).find(|&from| axes(from) <= 1).unwrap_or(rank);
    let width = product(&typed.shape[split..]);
    if split == 0 || !fills(width) { Grid::Flat } else { Grid::Rows(split) }
}

const FLAT: &str = cantus_shaders::tensor::ELEMENTWISE_FLAT;
const ROWS: &str = cantus_shaders::tensor::ELEMENTWISE_ROWS;

/// The kernel of an expression: its writer, body and workgroups.
pub(in crate::ops) fn elementwise(typed: &Arc<Typed>) -> Result<(Writer, String, [usize; 3])> {
    let count = typed.count();
    let rank = typed.shape.len();
    word(count)?;
    let (words, groups, body, workgroups): (_, Vec<emit::Group<'_>>, _, _) = match grid(typed) {
        Grid::Flat if typed.dtype.is_packed() => {
            let all = count.div_ceil(4 / typed.dtype.bytes());
            (count, vec![("i", 0..rank)], packed_frame(typed.dtype), [all.div_ceil(256), 1, 1])
        }
        Grid::Flat => (count, vec![("i", 0..rank)], FLAT.to_owned(), [count.div_ceil(256), 1, 1]),
        Grid::Rows(split) => {
            let width = product(&typed.shape[split..]);
            let rows = product(&typed.shape[..split]);
            let body = ROWS.to_owned();
            (width, vec![("row", 0..split), ("column", split..rank)], body, [width.div_ceil(256), rows, 1])
        }
    };
    let mut writer = Writer::new(&[words as u32]);
    writer.function("element", typed, &typed.shape, &groups, None)?;
    Ok((writer, body, workgroups))
}

/// The expression with at most `most` inputs. If it has more, its parts are computed first.
pub(in crate::ops) async fn narrowed(
    engine: &Engine,
    schedule: &Schedule,
    typed: &Arc<Typed>,
    most: usize,
) -> Result<Arc<Typed>> {
    let typed = &schedule.lowered(typed);
    let mut inputs = Vec::new();
    emit::tensors(typed, &mut inputs);
    if inputs.len() <= most {
        return Ok(typed.clone());
    }
    let mut children = Vec::new();
    for child in typed.children() {
        children.push(match child.node {
            Node::Read(_) | Node::Constant(_) => child.clone(),
            // Kept with the expression: others read it too.
            _ => Typed::read(&child.value().compute(engine, schedule).await?),
        });
    }
    Ok(typed.over(&children, typed.shape.clone()))
}

/// The operations that an expression reads and that have no result yet.
fn missing(typed: &Arc<Typed>) -> Vec<Arc<Deferred>> {
    let mut found: Vec<Arc<Deferred>> = Vec::new();
    typed.walk(&mut |node| {
        if let Node::Read(view) | Node::Gather { view, .. } = &node.node
            && let Source::Deferred(deferred) = &view.source
            && deferred.live_result().is_none()
            && !found.iter().any(|known| Arc::ptr_eq(known, deferred))
        {
            found.push(deferred.clone());
        }
    });
    found
}

/// Computes what an expression reads, except for one operation.
pub(in crate::ops) async fn resolve(
    engine: &Engine,
    schedule: &Schedule,
    typed: &Arc<Typed>,
    but: Option<&Arc<Deferred>>,
) -> Result<()> {
    for deferred in missing(typed) {
        if !but.is_some_and(|but| Arc::ptr_eq(but, &deferred)) {
            deferred.compute(engine, schedule).await?;
        }
    }
    Ok(())
}

/// Returns an operation whose kernel can end with the expression. It has the expression's shape, and every read of it is in its own order.
fn fusable(schedule: &Schedule, typed: &Arc<Typed>) -> Option<Arc<Deferred>> {
    let mut candidates = missing(typed);
    candidates.retain(|deferred| deferred.shape == typed.shape && deferred.ends_with_reader(schedule));
    typed.walk(&mut |node| {
        let (Node::Read(view) | Node::Gather { view, .. }) = &node.node else { return };
        let Source::Deferred(deferred) = &view.source else { return };
        let plain = matches!(node.node, Node::Read(_))
            && view.offset == 0
            && node.shape == typed.shape
            && is_contiguous(&typed.shape, &view.strides);
        if !plain {
            candidates.retain(|candidate| !Arc::ptr_eq(candidate, deferred));
        }
    });
    candidates.into_iter().max_by_key(|deferred| deferred.fusable())
}

/// Operations of an expression, each counted once for each of its elements (a function counts as one).
fn arithmetic(typed: &Arc<Typed>) -> usize {
    let mut count = 0_usize;
    typed.walk(&mut |node| {
        let is_operation = matches!(node.node, Node::Unary(..) | Node::Binary(..));
        count = count.saturating_add(if is_operation { typed.count() } else { 0 });
    });
    count
}

/// A view or random numbers, computed natively; `None` if the device cannot.
async fn native(engine: &Engine, typed: &Arc<Typed>) -> Result<Option<Tensor>> {
    match &typed.node {
        Node::Read(view) => copied(engine, typed, view).await,
        Node::Gather { view, stride, length, index } => match straight(engine, typed).await? {
            Some(tensor) => Ok(Some(tensor)),
            None => gathered(engine, typed, view, [*stride, *length], index).await,
        },
        Node::Random { kind, seed, counter } => {
            let uniform = match kind {
                RandomKind::Bits => false,
                RandomKind::Uniform => true,
                RandomKind::Normal => return Ok(None),
            };
            let by_place = matches!(&counter.node, Node::Read(View { source: Source::Indices, offset: 0, strides })
                if *strides == contiguous(&typed.shape));
            let count = typed.count();
            if !by_place || count == 0 || counter.shape != typed.shape {
                return Ok(None);
            }
            let operation = NativeOperation::Random(RandomShape { count, seed: *seed, uniform });
            match engine.native_async(operation, &[], (typed.dtype, &typed.shape), "random").await? {
                Some(tensor) => Ok(Some(tensor)),
                None => random(engine, typed, *seed, uniform).await.map(Some),
            }
        }
        Node::Cast(inner) => match &inner.node {
            Node::Read(view) => converted(engine, typed, inner, view).await,
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Random numbers in the order of elements. A block gives four; a function of elements would compute a block for each.
async fn random(engine: &Engine, typed: &Typed, seed: u64, uniform: bool) -> Result<Tensor> {
    let count = typed.count();
    let writer = Writer::new(&[word(count)?, seed as u32, (seed >> 32) as u32]);
    let (dtype, number) = match uniform {
        true => ("f32", "f32(bits >> 8u) * 5.9604645e-8"),
        false => ("u32", "bits"),
    };
    let body =
        format!("\nfn number(bits: u32) -> {dtype} {{ return {number}; }}\n\n{}", cantus_shaders::tensor::RANDOM);
    let output = engine.output_async(None, typed.dtype, &typed.shape, "random").await?;
    let workgroups = [count.div_ceil(4).div_ceil(64), 1, 1];
    Composed { name: "random", writer: &writer, output: dtype, body: &body, workgroups, flops: 0, rounds: 10 }
        .run(engine, &output)
        .await?;
    Ok(output)
}

/// Converts contiguous halves to float32, or float32 to halves, natively.
async fn converted(engine: &Engine, typed: &Typed, inner: &Typed, view: &View) -> Result<Option<Tensor>> {
    let is_whole = view.offset == 0 && view.strides == contiguous(&typed.shape) && inner.shape == typed.shape;
    let Some(tensor) = view.source.tensor().filter(|_| is_whole && typed.count() > 0) else { return Ok(None) };
    let operation = NativeOperation::Convert(ConvertShape::new(typed.count(), inner.dtype, typed.dtype));
    engine.native_async(operation, &[&tensor], (typed.dtype, &typed.shape), "cast").await
}

/// Copies the elements of a view into contiguous memory natively.
pub(in crate::ops) async fn copied(engine: &Engine, typed: &Typed, view: &View) -> Result<Option<Tensor>> {
    let bytes = typed.dtype.bytes();
    let Some(tensor) = view.source.tensor().filter(|_| matches!(bytes, 1 | 2 | 4 | 8 | 16) && typed.count() > 0) else {
        return Ok(None);
    };
    let operation = NativeOperation::Copy(CopyShape::new(&typed.shape, &view.strides, view.offset).of_bytes(bytes));
    engine.native_async(operation, &[&tensor], (typed.dtype, &typed.shape), "copy").await
}

/// A roll by copies of runs, on a processor.
async fn straight(engine: &Engine, typed: &Typed) -> Result<Option<Tensor>> {
    let bytes = typed.dtype.bytes();
    let is_copied = engine.is_processors() && matches!(bytes, 1 | 2 | 4 | 8 | 16) && typed.count() > 0;
    let Some(rolled) = typed.rolled().filter(|_| is_copied) else { return Ok(None) };
    let Some(tensor) = rolled.source.tensor() else { return Ok(None) };
    let operation = rolled.copy(&typed.shape, bytes);
    let parts = vec![&tensor; operation.parts.len()];
    engine.native_async(NativeOperation::Assemble(operation), &parts, (typed.dtype, &typed.shape), "roll").await
}

/// The expression with its rolls and gathers copied beforehand, for a processor that cannot read them as they are.
pub(super) async fn unrolled(engine: &Engine, typed: &Arc<Typed>) -> Result<Option<Arc<Typed>>> {
    let mut found = Vec::new();
    if engine.is_processors() {
        typed.walk(&mut |node| {
            if let Node::Gather { index, .. } = &node.node {
                // Gathers inside its index are copied with it.
                index.walk(&mut |inner| found.retain(|known| !Arc::ptr_eq(known, inner)));
                found.push(node.clone());
            }
        });
    }
    let mut result = None;
    for node in found {
        if let Some(tensor) = native(engine, &node).await? {
            result = Some(result.as_ref().unwrap_or(typed).replaced(&node, &Typed::read(&tensor)));
        }
    }
    Ok(result)
}

/// Elements at places that a tensor names.
async fn gathered(
    engine: &Engine,
    typed: &Typed,
    view: &View,
    along: [usize; 2],
    index: &Arc<Typed>,
) -> Result<Option<Tensor>> {
    // The low halves of 64-bit words are read where they lie. Another computed index is computed first: it has no more elements than the result.
    let (half, known) = match &index.node {
        Node::Read(_) => (false, index.clone()),
        Node::Cast(whole) if is_low_half(engine, whole, index.dtype) => (true, whole.clone()),
        _ if !engine.is_processors() || index.count() > typed.count() || index.dtype.bytes() != 4 => return Ok(None),
        _ => (false, Typed::read(&compute(engine, index).await?)),
    };
    let Node::Read(places) = &known.node else { return Ok(None) };
    let sources = view.source.tensor().zip(places.source.tensor());
    let bytes = typed.dtype.bytes();
    let Some((tensor, words)) = sources.filter(|_| matches!(bytes, 1 | 2 | 4 | 8 | 16) && index.dtype.bytes() == 4)
    else {
        return Ok(None);
    };
    if typed.count() == 0 {
        return Ok(None);
    }
    let apart = if half { 2 } else { 1 };
    let strides = broadcast_strides(&known.shape, &places.strides, &typed.shape);
    let strides = strides.iter().map(|stride| apart * stride).listed();
    let from = CopyShape::new(&typed.shape, &view.strides, view.offset).of_bytes(bytes);
    let places = CopyShape::new(&typed.shape, &strides, apart * places.offset);
    let operation = NativeOperation::Gather(GatherShape::new(from, places, along, index.dtype == DType::I32));
    engine.native_async(operation, &[&tensor, &words], (typed.dtype, &typed.shape), "gather").await
}

/// Returns whether a cast of whole numbers takes the first half of each word in memory.
fn is_low_half(engine: &Engine, whole: &Typed, to: DType) -> bool {
    let words = matches!(whole.dtype, DType::I64 | DType::U64) && matches!(to, DType::I32 | DType::U32);
    cfg!(target_endian = "little") && engine.is_processors() && words && matches!(whole.node, Node::Read(_))
}

/// The least number of elements for which inputs that are read across their order are transposed first.
const TURNS_PAY: usize = 1 << 12;

/// The expression with inputs that lie across its order transposed first, on the CPU, where a transpose is quicker than such reads.
pub(super) async fn turned(engine: &Engine, typed: &Arc<Typed>) -> Result<Arc<Typed>> {
    let lies_across = |node: &Typed| match &node.node {
        Node::Read(view) => view.lies_across(&node.shape) && node.shape == typed.shape && !node.dtype.is_packed(),
        _ => false,
    };
    if typed.count() < TURNS_PAY || engine.shared().machine(None) != Machine::Cpu {
        return Ok(typed.clone());
    }
    let mut found = Vec::new();
    typed.walk(&mut |node| {
        if lies_across(node) {
            found.push(node.clone());
        }
    });
    let mut result = typed.clone();
    for node in found {
        let Node::Read(view) = &node.node else { continue };
        if let Some(tensor) = copied(engine, &node, view).await? {
            result = result.replaced(&node, &Typed::read(&tensor));
        }
    }
    Ok(result)
}

/// Returns the tensor, if the expression does nothing but read it whole and in order.
fn whole(typed: &Typed) -> Option<Tensor> {
    let Node::Read(view) = &typed.node else { return None };
    let is_whole = view.offset == 0 && is_contiguous(&typed.shape, &view.strides);
    view.source.tensor().filter(|tensor| is_whole && tensor.shape() == typed.shape)
}

/// Computes an expression into a new tensor, under a schedule of its own.
pub(in crate::ops) fn compute<'a>(engine: &'a Engine, typed: &'a Arc<Typed>) -> BoxFuture<'a, Result<Tensor>> {
    Box::pin(async move { compute_in(engine, &Schedule::default(), typed).await })
}

/// Computes an expression into a new tensor, under a schedule that has decided how everything that it reads is computed, or else under one of its own.
pub(super) fn compute_in<'a>(
    engine: &'a Engine,
    schedule: &'a Schedule,
    typed: &'a Arc<Typed>,
) -> BoxFuture<'a, Result<Tensor>> {
    Box::pin(async move {
        if let Some(tensor) = whole(typed) {
            return Ok(tensor);
        }
        #[cfg(feature = "graph")]
        if let Some(tensor) = super::described::computed(engine, schedule, typed).await? {
            return Ok(tensor);
        }
        let ready = schedule.lowered(typed);
        if missing(&ready).iter().all(|deferred| deferred.left(schedule).is_some()) {
            return computed(engine, schedule, &ready).await;
        }
        planned(engine, typed, Facts::of_evaluation(typed), false).await
    })
}

/// Rehearses a plan ([`Engine::rehearse`]): does everything that computing it does, up to its commands.
#[cfg(not(target_arch = "wasm32"))]
async fn rehearse(engine: &Engine, schedule: &Schedule, typed: &Arc<Typed>, groups: &[Vec<Arc<Deferred>>]) {
    let work = async {
        for group in groups {
            replay::step(engine, schedule, group).await?;
        }
        computed(engine, schedule, &schedule.lowered(typed)).await
    };
    engine.rehearse(work).await;
}

/// The kind of the device that the engine uses first: plans are made for it.
fn machine(engine: &Engine) -> Machine {
    let slot = engine.shared().primary();
    #[cfg(feature = "_test")]
    if slot.beside::<AsGpu>().0.load(std::sync::atomic::Ordering::Relaxed) {
        return Machine::Discrete;
    }
    Machine::of(slot.device().info())
}

/// Plans are those of a discrete GPU, whatever the device is.
#[cfg(feature = "_test")]
#[derive(Default)]
struct AsGpu(std::sync::atomic::AtomicBool);

/// See [`crate::testing::plan_as_gpu`].
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn plan_as_gpu(engine: &Engine) {
    engine.shared().primary().beside::<AsGpu>().0.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Computes an expression into a new tensor, and before it what [`plan`] finds. The first plan of an evaluation is rehearsed.
pub(super) fn planned<'a>(
    engine: &'a Engine,
    typed: &'a Arc<Typed>,
    facts: Facts,
    first: bool,
) -> BoxFuture<'a, Result<Tensor>> {
    Box::pin(async move {
        if let Some(tensor) = whole(typed) {
            return Ok(tensor);
        }
        #[cfg(feature = "graph")]
        if let Some(tensor) = super::described::computed(engine, &Schedule::default(), typed).await? {
            return Ok(tensor);
        }
        let (mut under_way, mut passing) = (0, Vec::new());
        // A group is dropped once it is computed, with everything that nothing else reads. In captures and scopes all are dropped at the end.
        let grouped = engine.is_processors() && !engine.shared().is_passing();
        let (groups, schedule) = plan(typed, &facts, machine(engine), grouped);
        #[cfg(not(target_arch = "wasm32"))]
        if first {
            rehearse(engine, &schedule, typed, &groups).await;
        }
        #[cfg(target_arch = "wasm32")]
        let _ = first;
        for group in groups {
            let tensor = replay::step(engine, &schedule, &group).await?;
            under_way += group.iter().map(|one| one.result().map_or(0, |tensor| tensor.byte_len())).sum::<u64>();
            if engine.shared().is_passing() {
                passing.push(group);
            }
            let slot = tensor.place().slot;
            if under_way > slot.most_under_way() && !engine.shared().is_passing() {
                under_way = 0;
                engine.shared().finish_slot(&slot).await;
            }
        }
        computed(engine, &schedule, &schedule.lowered(typed)).await
    })
}

/// Computes the values of a group, several in one native operation where the device has it. Returns the last value.
pub(super) async fn together(engine: &Engine, schedule: &Schedule, group: &[Arc<Deferred>]) -> Result<Tensor> {
    let (mut rest, mut last) = (group, None);
    while let [first, ..] = rest {
        let made = chain::together(engine, schedule, rest).await?;
        let taken = made.len().max(1);
        if made.is_empty() {
            last = Some(first.compute(engine, schedule).await?);
        }
        for (deferred, tensor) in rest.iter().zip(made) {
            deferred.keep(&tensor);
            last = Some(tensor);
        }
        rest = &rest[taken..];
    }
    // There are some.
    last.ok_or_else(|| Error::fault("a group of values", "it is empty"))
}

/// Computes a lowered expression, except operations that may end with it.
pub(super) fn computed<'a>(
    engine: &'a Engine,
    schedule: &'a Schedule,
    typed: &'a Arc<Typed>,
) -> BoxFuture<'a, Result<Tensor>> {
    Box::pin(async move {
        if let Some(tensor) = whole(typed) {
            return Ok(tensor);
        }
        if let Some(candidate) = fusable(schedule, typed) {
            resolve(engine, schedule, typed, Some(&candidate)).await?;
            // Another operation that was resolved may have computed it.
            if candidate.live_result().is_none() {
                if let Node::Read(_) = typed.node {
                    return candidate.compute(engine, schedule).await;
                }
                if let Some(tensor) = fused(engine, schedule, typed, &candidate).await? {
                    return Ok(tensor);
                }
            }
        }
        resolve(engine, schedule, typed, None).await?;
        // If the expression only reads an operation, its result exists now.
        if let Some(tensor) = whole(typed) {
            return Ok(tensor);
        }
        if let Some(tensor) = native(engine, typed).await? {
            return Ok(tensor);
        }
        let mut typed = turned(engine, typed).await?;
        if let Some(tensor) = chain::computed(engine, &typed).await? {
            return Ok(tensor);
        }
        if let Some(unrolled) = unrolled(engine, &typed).await? {
            typed = unrolled;
            if let Some(tensor) = chain::computed(engine, &typed).await? {
                return Ok(tensor);
            }
        }
        let typed = narrowed(engine, schedule, &typed, MOST_TENSORS).await?;
        let mut inputs = Vec::new();
        emit::tensors(&typed, &mut inputs);
        let output = engine.output_async(inputs.first(), typed.dtype, &typed.shape, "elementwise").await?;
        if !typed.shape.contains(&0) {
            let (writer, body, workgroups) = elementwise(&typed)?;
            let launch = Composed {
                name: "elementwise",
                writer: &writer,
                output: stored(typed.dtype),
                body: &body,
                workgroups,
                // Counting takes a walk over the expression.
                flops: if engine.shared().profiler().is_active() { arithmetic(&typed) } else { 0 },
                rounds: 0,
            };
            launch.run(engine, &output).await?;
        }
        Ok(output)
    })
}

/// The expression as the end of an operation's kernel, or `None` where it does not fit there.
async fn fused(engine: &Engine, schedule: &Schedule, typed: &Arc<Typed>, of: &Arc<Deferred>) -> Result<Option<Tensor>> {
    if typed.shape.contains(&0) {
        return Ok(None);
    }
    let (mut own, mut computed) = (Vec::new(), 0);
    for input in of.inputs() {
        let input = if of.lowers() { schedule.lowered(&input) } else { input };
        resolve(engine, schedule, &input, None).await?;
        emit::tensors(&input, &mut own);
        // The operation may compute this input first, into a further tensor.
        computed += usize::from(!matches!(input.node, Node::Read(_) | Node::Constant(_)));
    }
    // Kernels store whole words. A further kernel packs narrower types, and rounds floats.
    let wide = match &typed.node {
        Node::Cast(inner) if typed.dtype.is_packed() && is_float(typed.dtype) && inner.dtype == DType::F32 => {
            inner.clone()
        }
        _ => typed.widened(),
    };
    emit::tensors(&wide, &mut own);
    if own.len() + computed > MOST_TENSORS {
        return Ok(None);
    }
    of.note_fused(engine);
    let tensor = of.run(engine, schedule, Some(Epilogue { typed: &wide, of })).await?;
    if typed.dtype.is_packed() {
        return compute(engine, &Typed::read(&tensor).narrowed(typed.dtype)).await.map(Some);
    }
    Ok(Some(tensor))
}

impl Expr {
    /// Computes the expression in as few kernels as possible. A chain of elementwise operations becomes one kernel, together with the matrix
    /// product, convolution, normalisation or reduction before it. Inputs that are not contiguous are gathered while they are read, not
    /// copied first.
    ///
    /// A value that several parts of the expression read is computed once, unless computing it again is cheaper than storing it. If two
    /// evaluations need the same part, it is kept after the first one while its own `Expr` lives.
    ///
    /// # Errors
    /// The first mistake in the recorded expressions, and as [`crate::engine::DispatchBuilder::run_async`].
    pub fn eval_async(&self) -> BoxFuture<'_, Result<Tensor>> {
        Box::pin(async move {
            let typed = self.state.as_ref().map_err(Clone::clone)?;
            evaluate(&self.engine, typed).await
        })
    }

    /// [`Expr::eval_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    /// let y = (2.0 * &x + 1.0).sqrt().sum(&[], false).eval()?; // two kernels at most
    /// assert!((y.item::<f32>()? - (3.0_f32.sqrt() + 5.0_f32.sqrt() + 7.0_f32.sqrt())).abs() < 1e-5);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn eval(&self) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.eval_async())
    }

    /// Returns the WGSL that [`Expr::eval`] would run for the expression's last kernel, without the library's functions; operations that it reads
    /// are computed for it.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    /// assert!((x.expr().exp() * 2.0).wgsl()?.contains("@compute"));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wgsl(&self) -> Result<String> {
        let typed = self.state.as_ref().map_err(Clone::clone)?;
        let typed = crate::engine::blocking::block_on(async {
            let (groups, schedule) = plan(typed, &Facts::of_evaluation(typed), machine(&self.engine), false);
            for one in groups.into_iter().flatten() {
                one.compute(&self.engine, &schedule).await?;
            }
            let typed = schedule.lowered(typed);
            resolve(&self.engine, &schedule, &typed, None).await?;
            Ok::<_, Error>(typed)
        })?;
        let (writer, body, _) = elementwise(&typed)?;
        Ok(writer.text(stored(typed.dtype), &body))
    }
}
