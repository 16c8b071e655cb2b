//! Reductions over axes: by workgroups along rows, by invocations down columns, in two steps where there are few and long ones. Norms, means and losses are
//! made of it. The prologue (what is reduced) and the epilogue (what follows in the same shape) are part of the kernel. `Cut` chooses how rows are shared
//! out, by sizes and the kind of machine; sums keep to a fixed tree within a cut, so results repeat on a device.

use std::hash::Hash;
use std::sync::Arc;

use super::fold::folded;
use super::rows::lanes_for;
use super::sort::number;
use crate::backend::BoxFuture;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::{Combination, FindShape, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::deferred::Deferred;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{self, Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, is_float};
use crate::ops::expr::number::scalar;
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::{axes_of, axis_of, permuted};
use crate::ops::frame::Frame;
use crate::ops::tune::{Job, Machine, Variant};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// Elements of a row from which on it takes workgroups of 1024 on the CPU.
const LONG: usize = 1 << 14;
const ROWS: Frame<1> = Frame::new(cantus_shaders::tensor::REDUCE_ROWS, ["LANES"]);
const COLUMNS: &str = cantus_shaders::tensor::REDUCE_COLUMNS;

/// The function that combines elements in a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fold {
    Sum,
    Prod,
    Max,
    Min,
    /// The place of the first greatest element.
    Argmax,
    /// The place of the first least element.
    Argmin,
}

impl Fold {
    /// The function of two elements that it applies, or by which it compares.
    fn by(self) -> Binary {
        match self {
            Self::Sum => Binary::Add,
            Self::Prod => Binary::Mul,
            Self::Max | Self::Argmax => Binary::Max,
            Self::Min | Self::Argmin => Binary::Min,
        }
    }

    fn finds(self) -> bool {
        matches!(self, Self::Argmax | Self::Argmin)
    }
}

/// A reduction of the last axes of an expression.
pub(super) struct Reduce {
    pub(super) fold: Fold,
    pub(super) input: Arc<Typed>,
    /// The first axis that is reduced.
    pub(super) from: usize,
}

/// Rows of up to this length are computed by one invocation each. On the executor so are longer rows, if there are many: it runs the invocations of a
/// workgroup as lanes, and starting a workgroup takes as long as hundreds of elements.
const SHORT: usize = 64;
const SHORT_OF_MANY: usize = 1024;

/// Returns whether rows are left to one invocation each.
fn is_alone(machine: Machine, rows: usize, length: usize) -> bool {
    length <= SHORT || machine == Machine::Cpu && length <= SHORT_OF_MANY && rows >= SHORT
}

/// Rows of fewer elements would leave most of a workgroup of 256 idle.
const HALF_EMPTY: usize = 256;

/// Returns the frame of a workgroup for each part of a row.
fn frame(machine: Machine, part: usize) -> String {
    ROWS.filled([match machine {
        // The processor reads long runs faster than many short ones, of 4 KiB than of 1.
        Machine::Cpu if part >= LONG => Some("1024u"),
        // Software GPUs spend their time on barriers.
        Machine::Lanes => lanes_for(part, machine),
        _ if part <= HALF_EMPTY => Some("64u"),
        _ => None,
    }])
}

/// The parts into which a reduction is cut.
struct Cut {
    /// Neighbouring rows lie side by side in memory.
    beside: bool,
    /// One invocation takes a whole row.
    down_columns: bool,
    part: usize,
    parts: usize,
}

impl Reduce {
    fn rows(&self) -> usize {
        product(&self.input.shape[..self.from])
    }

    fn length(&self) -> usize {
        product(&self.input.shape[self.from..])
    }

    fn cut(&self, engine: &Engine) -> Cut {
        let (rows, length) = (self.rows(), self.length());
        // Neighbouring rows are side by side if an axis that stays has the shortest step, in most of the memory that is read.
        let mut beside = 0_isize;
        self.input.walk(&mut |node| {
            if let Node::Read(view) = &node.node
                && node.shape.len() == self.input.shape.len()
                && !matches!(view.source, Source::Indices)
            {
                let step = |range: &[usize]| range.iter().copied().filter(|&step| step > 0).min().unwrap_or(usize::MAX);
                let (along, across) = (step(&view.strides[self.from..]), step(&view.strides[..self.from]));
                let sides = node.shape.iter().zip(&view.strides).filter(|(_, stride)| **stride > 0);
                let elements = sides.fold(1_isize, |product, (&side, _)| product.saturating_mul(side.cast_signed()));
                beside = beside.saturating_add(if across < along { elements } else { -elements });
            }
        });
        let mut tensors = Vec::new();
        emit::tensors(&self.input, &mut tensors);
        let near = tensors.iter().max_by_key(|tensor| tensor.byte_len());
        let machine = engine.shared().machine(near);
        let beside = beside > 0 && rows >= 16;
        let down_columns = beside || is_alone(machine, rows, length);
        let parts = match engine.shared().variant(near, Job::reduce(rows, length, down_columns)) {
            // A variant is for a size that is a power of two, and this one may be half of it.
            Variant::Parts(parts) => {
                usize::from(parts).min(length.div_ceil(if down_columns { 64 } else { 256 })).max(1)
            }
            _ => 1,
        };
        let part = length.div_ceil(parts).next_multiple_of(if down_columns { 1 } else { 256 });
        Cut { beside, down_columns, part, parts: length.div_ceil(part) }
    }

    /// The element type of the sums.
    fn total(&self) -> &'static str {
        scalar(self.input.dtype)
    }

    /// Computes the reduction of all rows into a tensor of the operation's shape, with the epilogue.
    pub(super) async fn reduce(&self, call: Call<'_>) -> Result<Tensor> {
        let this = Self { fold: self.fold, input: call.slim(&self.input).await?, from: self.from };
        let cut = this.cut(call.engine);
        if let Some(found) = this.native(call, &cut).await? {
            return call.followed(found).await;
        }
        if cut.parts == 1 {
            return this.launch(call, &cut, None).await;
        }
        let rows = this.rows();
        let shape = if cut.down_columns { vec![cut.parts, rows] } else { vec![rows, cut.parts] };
        let dtype = if self.fold.finds() { DType::U32 } else { call.of.dtype };
        let partial = Deferred::new(Self { input: this.input.clone(), ..this }, shape, dtype);
        let partials = this.launch(Call { of: &partial, epilogue: None, ..call }, &cut, None).await?;
        let read = Typed::read(&partials);
        let second = if cut.down_columns { permuted(&read, &[1, 0]) } else { read };
        if self.fold.finds() {
            // The second step compares the elements where the first one found the best.
            let places = if cut.down_columns { second } else { Typed::read(&partials) };
            let cut = Cut { beside: cut.beside, down_columns: true, part: cut.parts, parts: 1 };
            return this.launch(call, &cut, Some(&places)).await;
        }
        let second = Self { fold: self.fold, input: second, from: 1 };
        let cut =
            Cut { beside: cut.beside, down_columns: cut.down_columns || cut.parts <= SHORT, part: cut.parts, parts: 1 };
        second.launch(call, &cut, None).await
    }

    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>, cut: &Cut) -> Result<Option<Tensor>> {
        let by = match self.fold {
            Fold::Sum => Some(Combination::Sum),
            Fold::Prod => Some(Combination::Product),
            Fold::Max => Some(Combination::Greatest),
            Fold::Min => Some(Combination::Least),
            Fold::Argmax | Fold::Argmin => None,
        };
        if let Some(by) = by {
            // As many as a kernel takes, on every device.
            word(self.input.count())?;
            return folded(call.engine, &self.input, self.from, by, &call.of.shape).await;
        }
        let input = self.input.widened();
        let Some(number) = number(input.dtype) else { return Ok(None) };
        let (rows, length) = (self.rows(), self.length());
        let operation = NativeOperation::Find(FindShape { rows, length, number, least: self.fold == Fold::Argmin });
        // Rows that are close in memory are read side by side.
        if cut.beside && length > SHORT || !call.engine.has_native(&operation) {
            return Ok(None);
        }
        let elements = call.compute(&input).await?;
        call.engine.native_async(operation, &[&elements], (DType::U32, &call.of.shape), "reduce").await
    }

    /// The functions that a reduction's kernel takes.
    fn functions(&self, places: bool) -> Result<String> {
        if self.fold.finds() {
            return Ok(self.finding_functions(places));
        }
        let total = self.total();
        let initial = match (self.fold, self.input.dtype.kind()) {
            (Fold::Sum, _) => format!("{total}(0)"),
            (Fold::Prod, Kind::Complex) => format!("{total}(1, 0)"),
            (Fold::Prod, _) => format!("{total}(1)"),
            _ => "load(row, place)".to_owned(),
        };
        let combine = self.fold.by().function().wgsl(self.input.dtype, ["a", "b"])?;
        Ok(format!(
            "\nalias Total = {total};\n\
             fn load(row: u32, place: u32) -> Total {{ return element(row, place); }}\n\
             fn initial(row: u32, place: u32) -> Total {{ return {initial}; }}\n\
             fn combine(a: Total, b: Total) -> Total {{ return {combine}; }}\n"
        ))
    }

    /// The functions of argmax and argmin. NaN comes first, then the better element, then the earlier one.
    fn finding_functions(&self, places: bool) -> String {
        let total = self.total();
        let load = if places {
            "let at = best(row, place);\n    return Total(element(row, at), at);"
        } else {
            "return Total(element(row, place), place);"
        };
        let sign = if self.fold == Fold::Argmax { ">" } else { "<" };
        let (better, same) = if self.input.dtype.kind() == Kind::Float {
            let nan = if self.input.dtype == DType::F64 { "double_unordered" } else { "float_unordered" };
            (
                format!("!{nan}(a.value) && (b.value {sign} a.value || {nan}(b.value))"),
                format!("b.value == a.value || ({nan}(b.value) && {nan}(a.value))"),
            )
        } else {
            (format!("b.value {sign} a.value"), "b.value == a.value".to_owned())
        };
        format!(
            "\nstruct Total {{ value: {total}, place: u32 }}\n\
             fn load(row: u32, place: u32) -> Total {{\n    {load}\n}}\n\
             fn initial(row: u32, place: u32) -> Total {{ return load(row, place); }}\n\
             fn combine(a: Total, b: Total) -> Total {{\n    \
             let better = ({better}) || (({same}) && b.place < a.place);\n    \
             return Total(select(a.value, b.value, better), select(a.place, b.place, better));\n}}\n"
        )
    }

    async fn launch(&self, call: Call<'_>, cut: &Cut, places: Option<&Arc<Typed>>) -> Result<Tensor> {
        let (rows, length) = (self.rows(), places.map_or(self.length(), |places| places.shape[1]));
        word(self.input.count())?;
        let mut writer = Writer::new(&[word(rows)?, word(length)?, word(cut.part)?, word(cut.parts)?]);
        let rank = self.input.shape.len();
        let groups = [("row", 0..self.from), ("place", self.from..rank)];
        writer.function("element", &self.input, &self.input.shape, &groups, None)?;
        if let Some(places) = places {
            writer.function("best", places, &places.shape, &[("row", 0..1), ("place", 1..2)], None)?;
        }
        let mut body = self.functions(places.is_some())?;
        let found = if self.fold.finds() { "total.place" } else { "total" };
        let all = 0..call.epilogue.map_or(0, |epilogue| epilogue.typed.shape.len());
        let (value, dtype) = call.finished(&mut writer, found, &[("row", all)])?;
        body += &format!("fn store(at: u32, row: u32, total: Total) {{ y[at] = {value}; }}\n");
        let near = writer.tensors().first();
        body += &match cut.down_columns {
            true => COLUMNS.to_owned(),
            false => frame(call.engine.shared().machine(near), cut.part),
        };
        let output = call.output(&writer, dtype, "reduce").await?;
        let workgroups = if cut.down_columns { [rows.div_ceil(64), cut.parts, 1] } else { [cut.parts, rows, 1] };
        let name = if cut.down_columns { "reduce_columns" } else { "reduce_rows" };
        let flops = rows.saturating_mul(length);
        // Down a column an invocation reads a part alone, along a row at least 64 read one together.
        let rounds = match cut.down_columns {
            true => looped(cut.part.div_ceil(16), looped(cut.part.min(16), 0)),
            false => looped(cut.part.div_ceil(64), 0) + 64,
        };
        Composed { name, writer: &writer, output: scalar(dtype), body: &body, workgroups, flops, rounds }
            .run(call.engine, &output)
            .await?;
        Ok(output)
    }
}

impl Operation for Reduce {
    fn lowers(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.fold, self.from).hash(digest);
        true
    }

    fn fusable(&self) -> u32 {
        1
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(self.reduce(call))
    }

    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        let from = self.from;
        let by = match self.fold {
            Fold::Sum => Combination::Sum,
            _ if self.input.dtype.kind() == Kind::Complex => return None,
            Fold::Prod => Combination::Product,
            Fold::Max => Combination::Greatest,
            Fold::Min => Combination::Least,
            Fold::Argmax | Fold::Argmin => return Some(Part::Find { least: self.fold == Fold::Argmin, from }),
        };
        Some(Part::Reduce { by, from })
    }
}

/// The input with the reduced axes last, and the shape of the result.
fn arranged(typed: &Arc<Typed>, axes: &[usize], keep: bool) -> (Arc<Typed>, Vec<usize>) {
    let rank = typed.shape.len();
    let mut order: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).listed();
    let shape = match keep {
        true => (0..rank).map(|axis| if axes.contains(&axis) { 1 } else { typed.shape[axis] }).listed(),
        false => order.iter().map(|&axis| typed.shape[axis]).listed(),
    };
    order.extend(axes);
    (permuted(typed, &order), shape)
}

/// The least number of neighbours that stay.
const LONG_ENOUGH: usize = 8;
/// Elements that are combined by a chain of parts, at most: those of a pool's window.
const WINDOW: usize = 9;

impl Expr {
    /// The greatest or least of few elements, where neighbours of the last axis all stay: a chain of parts, which lie side by side, for a reduction
    /// would read across them.
    fn by_parts(&self, by: Binary, axes: &[isize], keep: bool) -> Option<Self> {
        let shape = self.shape().ok()?;
        let axes = axes_of(axes, shape.len()).ok()?;
        let (last, sides) = (shape.len().checked_sub(1)?, axes.iter().map(|&axis| shape[axis]).listed());
        let is_window = (2..=WINDOW).contains(&product(&sides)) && !axes.contains(&last) && shape[last] >= LONG_ENOUGH;
        if !is_window || !is_float(self.dtype().ok()?) || shape.contains(&0) {
            return None;
        }
        let part = |mut number: usize| {
            let mut ranges = shape.iter().map(|&side| 0..side).listed();
            for (&axis, &side) in axes.iter().zip(&sides).rev() {
                ranges[axis] = number % side..number % side + 1;
                number /= side;
            }
            self.slice(&ranges)
        };
        let found = (1..product(&sides)).fold(part(0), |found, number| found.binary(by, part(number)));
        let stays = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).listed();
        Some(if keep { found } else { found.reshape(&stays) })
    }

    fn folded(&self, fold: Fold, axes: &[isize], keep: bool) -> Self {
        self.derived(|typed| {
            let axes = axes_of(axes, typed.shape.len())?;
            let reduced = product(&axes.iter().map(|&axis| typed.shape[axis]).listed());
            let typed = &match fold {
                Fold::Sum | Fold::Prod => typed.summable(),
                _ => typed.rounded(),
            };
            fold.by().function().result(typed.dtype)?;
            let (input, shape) = arranged(typed, &axes, keep);
            let dtype = if fold.finds() { DType::U32 } else { typed.dtype.computed() };
            if reduced == 0 && !matches!(fold, Fold::Sum | Fold::Prod) && !shape.contains(&0) {
                return Err(Error::shape(
                    format!("{fold:?} over the axes {axes:?} of {:?}", typed.shape),
                    "an empty axis has no greatest or least element",
                ));
            }
            if reduced == 0 || shape.contains(&0) {
                let value = if fold == Fold::Prod { 1.0 } else { 0.0 };
                return Ok(Typed::filled(value, &shape, if fold.finds() { DType::U32 } else { typed.dtype }));
            }
            let from = typed.shape.len() - axes.len();
            let result = Typed::deferred(Reduce { fold, input, from }, shape.clone(), dtype);
            Ok(if fold.finds() { result } else { result.narrowed(typed.dtype) })
        })
    }

    /// Returns the sum over axes (all of them for `&[]`; negative ones count from the end). With `keep` they stay, with length 1. Integers wrap; bools
    /// and integers narrower than 32 bits give i32 or u32; f16 and bf16 are summed in f32. Sums of float32 are accurate to 1e-6 of the sum of magnitudes,
    /// up to 2^26 elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.sum(&[0], false).eval()?.to_vec::<f32>()?, [4.0, 6.0]);
    /// assert_eq!(x.sum(&[-1], true).eval()?.shape(), [2, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn sum(&self, axes: &[isize], keep: bool) -> Self {
        self.folded(Fold::Sum, axes, keep)
    }

    /// Returns the product over axes, as [`Expr::sum`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.prod(&[], false).eval()?.item::<f32>()?, 24.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn prod(&self, axes: &[isize], keep: bool) -> Self {
        self.folded(Fold::Prod, axes, keep)
    }

    /// Returns the greatest element over axes; NaN if there is one.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.max(&[1], false).eval()?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn max(&self, axes: &[isize], keep: bool) -> Self {
        self.by_parts(Binary::Max, axes, keep).unwrap_or_else(|| self.folded(Fold::Max, axes, keep))
    }

    /// Returns the least element over axes; NaN if there is one.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.min(&[0], false).eval()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn min(&self, axes: &[isize], keep: bool) -> Self {
        self.by_parts(Binary::Min, axes, keep).unwrap_or_else(|| self.folded(Fold::Min, axes, keep))
    }

    /// Returns the index of the first greatest element along an axis (of its first NaN, if there is one), as u32; without an axis, the index in
    /// the flattened array.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 9.0, 9.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.argmax(Some(1), false).eval()?.to_vec::<u32>()?, [1, 0]);
    /// assert_eq!(x.argmax(None, false).eval()?.item::<u32>()?, 1);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn argmax(&self, axis: Option<isize>, keep: bool) -> Self {
        self.found(Fold::Argmax, axis, keep)
    }

    /// Returns the index of the first least element, as [`Expr::argmax`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.argmin(Some(0), false).eval()?.to_vec::<u32>()?, [0, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn argmin(&self, axis: Option<isize>, keep: bool) -> Self {
        self.found(Fold::Argmin, axis, keep)
    }

    fn found(&self, fold: Fold, axis: Option<isize>, keep: bool) -> Self {
        match axis {
            Some(axis) => self.derived(|typed| axis_of(axis, typed.shape.len()).map(|_| typed.clone())).folded(
                fold,
                &[axis],
                keep,
            ),
            None => self.folded(fold, &[], keep),
        }
    }

    /// Returns the mean over axes; integers are converted to f32 first, those of 64 bits to f64.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.mean(&[0], false).eval()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn mean(&self, axes: &[isize], keep: bool) -> Self {
        self.in_float(|x| {
            let count = x.reduced_count(axes)?;
            let sum = x.sum(axes, keep);
            Ok(sum.binary(Binary::Div, sum.constant(count as f64)))
        })
    }

    /// Returns the variance over axes: the sum of squared distances from the mean, divided by the number of elements minus `correction` (0 for a
    /// population, 1 for a sample).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.variance(&[1], 1.0, false).eval()?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "var")]
    pub fn variance(&self, axes: &[isize], correction: f64, keep: bool) -> Self {
        self.in_float(|x| {
            let count = x.reduced_count(axes)?;
            // The variance of complex numbers is that of their distances from the mean.
            let distance = x.binary(Binary::Sub, x.mean(axes, true)).real_magnitude();
            let sum = distance.square().sum(axes, keep);
            Ok(sum.binary(Binary::Div, sum.constant((count as f64 - correction).max(0.0))))
        })
    }

    /// Applies `compute` to the elements as floats. Results of types narrower than f32 are narrowed again.
    pub(super) fn in_float(&self, compute: impl FnOnce(&Self) -> Result<Self>) -> Self {
        let wide = self.derived(|typed| {
            Ok(typed.cast(match typed.dtype {
                DType::I64 | DType::U64 | DType::F64 => DType::F64,
                complex @ (DType::Complex64 | DType::Complex128) => complex,
                _ => DType::F32,
            }))
        });
        let result = wide.shape().map(|_| ()).and_then(|()| compute(&wide));
        self.derived(|typed| {
            let result = result.and_then(|result| result.state)?;
            Ok(if is_float(typed.dtype) { result.narrowed(typed.dtype) } else { result })
        })
    }

    /// Returns the magnitudes of complex numbers, and real numbers unchanged.
    pub(super) fn real_magnitude(&self) -> Self {
        match self.dtype() {
            Ok(dtype) if dtype.kind() == Kind::Complex => self.abs(),
            _ => self.clone(),
        }
    }

    /// Returns the number of elements that a reduction over `axes` combines.
    pub(super) fn reduced_count(&self, axes: &[isize]) -> Result<usize> {
        let shape = self.shape()?;
        Ok(product(&axes_of(axes, shape.len())?.iter().map(|&axis| shape[axis]).listed()))
    }

    /// The shape of a reduction over axes.
    pub(super) fn reduced_shape(&self, axes: &[isize], keep: bool) -> Result<Vec<usize>> {
        let shape = self.shape()?;
        let axes = axes_of(axes, shape.len())?;
        let stays = |(axis, &side): (usize, &usize)| match (axes.contains(&axis), keep) {
            (false, _) => Some(side),
            (true, keep) => keep.then_some(1),
        };
        Ok(shape.iter().enumerate().filter_map(stays).listed())
    }
}

tensor_methods! {
    fn sum(axes: &[isize], keep: bool);
    fn prod(axes: &[isize], keep: bool);
    fn max(axes: &[isize], keep: bool);
    fn min(axes: &[isize], keep: bool);
    fn argmax(axis: Option<isize>, keep: bool);
    fn argmin(axis: Option<isize>, keep: bool);
    fn mean(axes: &[isize], keep: bool);
    fn variance(axes: &[isize], correction: f64, keep: bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps of all lanes together, waiting ones included.
    fn steps(machine: Machine, rows: usize, length: usize) -> usize {
        if is_alone(machine, rows, length) {
            return rows.next_multiple_of(64) * length;
        }
        let frame = frame(machine, length);
        let lanes = frame.split("const LANES = ").nth(1).and_then(|rest| rest.split('u').next()).unwrap();
        let lanes: usize = lanes.parse().unwrap();
        rows * lanes * length.div_ceil(lanes)
    }

    #[test]
    fn one_more_element_never_costs_twice_as_much() {
        for machine in [Machine::Cpu, Machine::Lanes, Machine::Discrete, Machine::Matrices, Machine::Gpu] {
            for rows in [64, 1000, 5003] {
                for length in 1..20_000 {
                    let (one, more) = (steps(machine, rows, length), steps(machine, rows, length + 1));
                    assert!(more <= 2 * one, "{rows} rows of {length}: {one}, then {more}");
                }
            }
        }
    }
}
