//! Elements at places that another tensor names. Losses, embeddings, slices by tensors and sorts use it. `Places` copies the indices and ties a check to
//! what reads them (`engine/index_checks.rs`); `taken` and `gathered` are for indices known to be in range. The gather itself clamps, so results are
//! defined even where the check will fail.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
#[cfg(feature = "graph")]
use crate::backend::expression::Part;
use crate::backend::native::{GreatestShape, NativeOperation};
use crate::engine::Tensor;
use crate::engine::index_checks::Axis;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::evaluate::{compute, copied};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View, is_whole};
use crate::ops::expr::operation::{Call, Operation};
use crate::ops::expr::shape::{broadcast, broadcast_strides, contiguous};
use crate::ops::expr::view::{axis_of, reshaped};
use crate::tensor::DType;

impl Expr {
    /// Returns the elements at the indices, an i32 or u32 tensor, along an axis; the shape of the indices replaces the axis. Negative indices count from
    /// the end. The device checks the indices: if one is out of range, reading a result computed from it returns [`Error::Index`], in captures
    /// too. Devices that run operation graphs take the nearest element instead.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
    /// let rows = x.take(engine.tensor(&[2_i32, 0, -1])?, 0).eval()?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn take(&self, index: impl Into<Self>, axis: isize) -> Self {
        self.taken(&self.within(&index.into(), axis, "take"), axis)
    }

    /// [`Expr::take`] at places that are known to be within the axis, or of which the nearest are taken.
    pub(in crate::ops) fn taken(&self, index: &Self, axis: isize) -> Self {
        self.derived(|typed| {
            let index = self.beside(index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut shape = typed.shape[..axis].to_vec();
            shape.extend(&index.shape);
            shape.extend(&typed.shape[axis + 1..]);
            // The index runs along the axes that took the axis's place.
            let mut wide = index.shape.clone();
            wide.extend(std::iter::repeat_n(1, rank - axis - 1));
            let index = reshaped(&index, &wide);
            gathered(typed, axis, index, shape, |strides| {
                let mut wider = strides[..axis].to_vec();
                wider.extend(std::iter::repeat_n(0, wide.len() - (rank - axis - 1)));
                wider.extend(&strides[axis + 1..]);
                wider
            })
        })
    }

    /// Looks up rows of a table (words, width) by the indices in this i32 or u32 tensor. The result has a last axis of `width` elements. Indices are
    /// as in [`Expr::take`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let table = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let words = engine.tensor(&[1_u32, 0, 1])?;
    /// assert_eq!(words.embedding(&table).eval()?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn embedding(&self, table: impl Into<Self>) -> Self {
        let table = table.into();
        match table.shape() {
            Ok([_, _]) => self.of(Ok(table.taken(&table.within(self, 0, "embedding"), 0))),
            Ok(shape) => self.failed(&Error::shape(
                format!("embedding from the shape {shape:?}"),
                "a table needs two axes: words, and the vector of each",
            )),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns for each element of `index`, an i32 or u32 tensor with the same number of axes, the element at that index along an axis, as NumPy's
    /// `take_along_axis`. The other axes broadcast. Indices are as in [`Expr::take`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let index = engine.tensor_from(&[1_u32, 0], &[2, 1])?;
    /// assert_eq!(x.gather(index, 1).eval()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn gather(&self, index: impl Into<Self>, axis: isize) -> Self {
        self.gathered(&self.within(&index.into(), axis, "gather"), axis)
    }

    /// [`Expr::gather`] at places as those of [`Expr::taken`].
    pub(in crate::ops) fn gathered(&self, index: &Self, axis: isize) -> Self {
        self.derived(|typed| {
            let index = self.beside(index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut from = typed.shape.clone();
            from[axis] = 1;
            if index.shape.len() != rank {
                return Err(Error::shape(
                    format!("gather by {:?} from {:?}", index.shape, typed.shape),
                    "the index must have the same number of axes",
                ));
            }
            let shape = broadcast(&from, &index.shape)?;
            let to = shape.clone();
            gathered(typed, axis, index, shape, move |strides| {
                let mut inner = strides.to_vec();
                inner[axis] = 0;
                broadcast_strides(&from, &inner, &to)
            })
        })
    }
}

impl Expr {
    /// Indices along an axis, checked where they are computed.
    pub(super) fn within(&self, index: &Self, axis: isize, operation: &'static str) -> Self {
        let Ok(shape) = self.shape() else { return index.clone() };
        if self.engine.shared().trusts_places {
            return index.clone();
        }
        index.derived(|typed| {
            let axis = axis_of(axis, shape.len())?;
            Ok(within(typed, Axis { operation, axis, length: shape[axis], is_signed: true }))
        })
    }
}

/// Indices of an axis, in the dtype that they are computed in, checked where they are computed. Whoever reads the result gets an error for an index out of range.
pub(super) fn within(index: &Arc<Typed>, axis: Axis) -> Arc<Typed> {
    let index = if is_whole(index.dtype) { index.widened() } else { index.clone() };
    let is_signed = match index.dtype {
        DType::I32 => true,
        DType::U32 => false,
        _ => return index,
    };
    if index.shape.contains(&0) || axis.length == 0 {
        return index;
    }
    let (shape, dtype) = (index.shape.clone(), index.dtype);
    let axis = Axis { is_signed, ..axis };
    // A loop with the same indices checks them once.
    let is_known =
        matches!(&index.node, Node::Read(view) if view.source.tensor().is_some_and(|tensor| tensor.is_within(axis)));
    Typed::deferred(Places { index, axis, is_known }, shape, dtype)
}

/// Indices, with a check on which everything that reads them depends.
struct Places {
    index: Arc<Typed>,
    axis: Axis,
    /// True if they were within the axis when this was recorded.
    is_known: bool,
}

impl Operation for Places {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.index]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.axis, self.is_known).hash(digest);
        true
    }

    fn lowers(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let (engine, given) = (call.engine, call.compute(&self.index).await?);
            // A graph is replayed with other contents.
            if self.is_known && given.is_within(self.axis) && !engine.shared().is_captured() {
                return Ok(given);
            }
            let version = given.version();
            let read = Typed::read(&given);
            let sum = |typed: &Arc<Typed>, number: usize| {
                let number = Typed::new(Node::Constant(number as f64), Vec::new(), typed.dtype);
                Typed::new(Node::Binary(Binary::Add, typed.clone(), number), typed.shape.clone(), typed.dtype)
            };
            // The check belongs to a copy, because the tensor itself may have other readers that need no check.
            let view = View { source: Source::Tensor(given.clone()), offset: 0, strides: contiguous(&read.shape) };
            let places = match copied(engine, &read, &view).await? {
                Some(places) => places,
                None => compute(engine, &sum(&read, 0)).await?,
            };
            // The length is added to signed indices, so an index beyond either end becomes too large.
            let more = if self.axis.is_signed { self.axis.length } else { 0 };
            let own = NativeOperation::Greatest(GreatestShape::new(given.len(), more as u32));
            let greatest = match engine.native_async(own, &[&given], (DType::U32, &[]), "greatest").await? {
                Some(greatest) => greatest,
                None => {
                    let words = Typed::new(Node::Cast(read.clone()), read.shape.clone(), DType::U32);
                    let counted = Expr { engine: engine.clone(), state: Ok(sum(&words, more)) };
                    counted.max(&[], false).eval_async().await?
                }
            };
            engine.shared().watch(&places, &greatest, self.axis, (&given, version)).await;
            Ok(places)
        })
    }

    #[cfg(feature = "graph")]
    fn part(&self) -> Option<Part> {
        // A device that takes no kernels checks nothing: indices out of range take the nearest element.
        Some(Part::View { offset: 0, strides: contiguous(&self.index.shape) })
    }
}

/// A gather node; `spread` makes strides of the source into strides of the result.
fn gathered(
    typed: &Arc<Typed>,
    axis: usize,
    index: Arc<Typed>,
    shape: Vec<usize>,
    spread: impl Fn(&[usize]) -> Vec<usize>,
) -> Result<Arc<Typed>> {
    if !is_whole(index.dtype) {
        return Err(Error::dtype(
            format!("an index of {}", index.dtype),
            "it must be i32, u32 or a narrower integer (cast it)",
        ));
    }
    let length = typed.shape[axis];
    if length == 0 && !shape.contains(&0) {
        return Err(Error::shape(format!("axis {axis} of {:?}", typed.shape), "it is empty"));
    }
    // The source must be in memory.
    let source = match &typed.node {
        Node::Read(_) => typed.clone(),
        _ => typed.computed(),
    };
    let Node::Read(view) = &source.node else { return Ok(source) };
    let strides = broadcast_strides(&source.shape, &view.strides, &typed.shape);
    let stride = strides[axis];
    let view = View { source: view.source.clone(), offset: view.offset, strides: spread(&strides) };
    let node = Node::Gather { view, stride, length: length.max(1), index };
    Ok(Typed::new(node, shape, typed.dtype))
}

/// The elements at places along the last axis, where there are as many places.
pub(super) fn along_rows(typed: &Arc<Typed>, places: Arc<Typed>) -> Result<Arc<Typed>> {
    gathered(typed, typed.shape.len().saturating_sub(1), places, typed.shape.clone(), |strides| {
        let mut inner = strides.to_vec();
        inner.last_mut().into_iter().for_each(|last| *last = 0);
        inner
    })
}

tensor_methods! {
    fn take(index: impl Into<Expr>, axis: isize);
    fn gather(index: impl Into<Expr>, axis: isize);
    fn embedding(table: impl Into<Expr>);
}
