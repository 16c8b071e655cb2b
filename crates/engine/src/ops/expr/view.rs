//! Views: expressions whose elements are read in another order, another shape, or in part. Nothing is copied where strides can say it. The array operations
//! on shapes call `view`. Of memory a view is new strides; of a computed expression it is a read of that expression's value, into which the evaluation may
//! push the view (`pushed`). A reshape that no strides express computes the value first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::methods::tensor_methods;
use super::node::{Expr, Node, Source, Typed, View};
use super::shape::{self, broadcast_strides, contiguous};
use crate::error::{Error, Result, ShapeError};
use cantus_base::listed::Listed;

/// A change of strides and offset by a view.
type Change<'a> = dyn Fn(&[usize], usize) -> Option<(Vec<usize>, usize)> + 'a;

/// The expression with every read changed, or `None` where a read cannot be.
fn changed(typed: &Arc<Typed>, to: &[usize], change: &Change<'_>) -> Option<Arc<Typed>> {
    struct Walk<'a> {
        from: &'a [usize],
        to: &'a [usize],
        change: &'a Change<'a>,
        known: HashMap<*const Typed, Arc<Typed>>,
    }
    impl Walk<'_> {
        fn view(&self, view: &View, shape: &[usize]) -> Option<View> {
            let strides = broadcast_strides(shape, &view.strides, self.from);
            let (strides, offset) = (self.change)(&strides, view.offset)?;
            Some(View { source: view.source.clone(), offset, strides })
        }

        fn step(&mut self, typed: &Arc<Typed>) -> Option<Arc<Typed>> {
            if let Some(known) = self.known.get(&Arc::as_ptr(typed)) {
                return Some(known.clone());
            }
            let children: Option<Vec<Arc<Typed>>> =
                typed.children().into_iter().map(|child| self.step(child)).try_listed();
            let children = children?;
            let result = match &typed.node {
                Node::Constant(_) => typed.clone(),
                Node::Read(view) => {
                    Typed::new(Node::Read(self.view(view, &typed.shape)?), self.to.to_vec(), typed.dtype)
                }
                Node::Gather { view, stride, length, .. } => {
                    let view = self.view(view, &typed.shape)?;
                    let index = children.first()?.clone();
                    let node = Node::Gather { view, stride: *stride, length: *length, index };
                    Typed::new(node, self.to.to_vec(), typed.dtype)
                }
                _ => {
                    // What is the same everywhere stays a scalar.
                    let scalar = children.iter().all(|child| child.shape.is_empty());
                    typed.over(&children, if scalar { Vec::new() } else { self.to.to_vec() })
                }
            };
            self.known.insert(Arc::as_ptr(typed), result.clone());
            Some(result)
        }
    }
    let mut walk = Walk { from: &typed.shape, to, change, known: HashMap::new() };
    let result = match &typed.node {
        // Most are: nothing else can be the same node.
        Node::Read(view) => Typed::new(Node::Read(walk.view(view, &typed.shape)?), to.to_vec(), typed.dtype),
        _ => walk.step(typed)?,
    };
    if result.shape == to {
        return Some(result);
    }
    // Only constants inside: their shape is the view's. That of a view before this one is of no use any more.
    let value = match &result.node {
        Node::Cast(value) if value.dtype == result.dtype => value.clone(),
        _ => result,
    };
    let (dtype, depth) = (value.dtype, value.depth + 1);
    Some(Arc::new(Typed::at_depth(Node::Cast(value), to.to_vec(), dtype, depth)))
}

/// A view: of what lies in memory, or of an expression's value, which an evaluation may replace by the expression (see [`pushed`]).
pub(in crate::ops) fn view(typed: &Arc<Typed>, to: &[usize], change: &Change<'_>) -> Arc<Typed> {
    if typed.is_plain()
        && let Some(changed) = changed(typed, to, change)
    {
        return changed;
    }
    let computed = typed.computed();
    changed(&computed, to, change).unwrap_or(computed)
}

/// The expression `value` seen as `read` sees its elements, contiguous in its shape; `None` where its reads cannot be changed so.
pub(super) fn pushed(value: &Arc<Typed>, read: &Typed, view: &View) -> Option<Arc<Typed>> {
    let to = &read.shape;
    let strides = contiguous(&value.shape);
    if view.offset == 0 && value.shape == *to && view.strides == broadcast_strides(to, &strides, to) {
        return Some(value.clone());
    }
    if to.contains(&0) {
        return None;
    }
    let moves = |axis: &usize| to[*axis] > 1 && view.strides[*axis] > 0;
    // Each axis of the view moves along one axis of the value and stays within it.
    let start: Vec<usize> = value.shape.iter().zip(&strides).map(|(side, stride)| view.offset / stride % side).listed();
    let mut last = start.clone();
    let along = |axis: usize| {
        (0..strides.len()).find(|&at| value.shape[at] > 1 && view.strides[axis].is_multiple_of(strides[at]))
    };
    let steps: Option<Vec<Option<(usize, usize)>>> = (0..to.len())
        .map(|axis| {
            if !moves(&axis) {
                return Some(None);
            }
            let at = along(axis)?;
            let step = view.strides[axis] / strides[at];
            last[at] = last[at].checked_add(step.checked_mul(to[axis] - 1)?)?;
            Some(Some((at, step)))
        })
        .try_listed();
    if let Some(steps) = steps.filter(|_| last.iter().zip(&value.shape).all(|(last, side)| last < side)) {
        return changed(value, to, &|strides, offset| {
            let start: usize = start.iter().zip(strides).map(|(start, stride)| start * stride).sum();
            let step = |step: &Option<(usize, usize)>| step.map_or(0, |(axis, step)| strides[axis] * step);
            Some((steps.iter().map(step).listed(), offset + start))
        });
    }
    // Or what is read is one row.
    changed(value, to, &|strides, offset| {
        let [flat] = shape::reshaped_strides(&value.shape, strides, &[value.count()])?.try_into().ok()?;
        let steps = (0..to.len()).map(|axis| if moves(&axis) { view.strides[axis] * flat } else { 0 });
        Some((steps.listed(), offset + view.offset * flat))
    })
}

pub(in crate::ops) fn permuted(typed: &Arc<Typed>, axes: &[usize]) -> Arc<Typed> {
    if axes.iter().enumerate().all(|(place, &axis)| place == axis) {
        return typed.clone();
    }
    let to: Vec<usize> = axes.iter().map(|&axis| typed.shape[axis]).listed();
    view(typed, &to, &|strides, offset| Some((axes.iter().map(|&axis| strides[axis]).listed(), offset)))
}

pub(in crate::ops) fn reshaped(typed: &Arc<Typed>, to: &[usize]) -> Arc<Typed> {
    if typed.shape == to {
        return typed.clone();
    }
    let from = typed.shape.clone();
    view(typed, to, &|strides, offset| shape::reshaped_strides(&from, strides, to).map(|strides| (strides, offset)))
}

pub(in crate::ops) fn broadcast_to(typed: &Arc<Typed>, to: &[usize]) -> Arc<Typed> {
    if typed.shape == to {
        return typed.clone();
    }
    let from = typed.shape.clone();
    view(typed, to, &|strides, offset| Some((broadcast_strides(&from, strides, to), offset)))
}

pub(in crate::ops) fn sliced(typed: &Arc<Typed>, ranges: &[Range<usize>], steps: &[usize]) -> Arc<Typed> {
    let begun = begun(typed, ranges);
    let typed = begun.as_ref().unwrap_or(typed);
    let is_whole = ranges.iter().zip(&typed.shape).all(|(range, &side)| *range == (0..side));
    if begun.is_some() && is_whole && steps.iter().all(|&step| step == 1) {
        return typed.clone();
    }
    let to: Vec<usize> = ranges.iter().zip(steps).map(|(range, &step)| range.len().div_ceil(step)).listed();
    view(typed, &to, &|strides, offset| {
        let start: usize = ranges.iter().zip(strides).map(|(range, stride)| range.start * stride).sum();
        let strides = strides.iter().zip(steps).map(|(stride, step)| stride * step).listed();
        // An empty slice may begin behind the end.
        Some((strides, if to.contains(&0) { 0 } else { offset + start }))
    })
}

/// Returns the slice from the beginning of each row of what an operation finds in the order of rows, or of values at those places: the operation then
/// looks for no more elements than the slice has.
fn begun(typed: &Arc<Typed>, ranges: &[Range<usize>]) -> Option<Arc<Typed>> {
    if let Node::Read(View { source: Source::Deferred(deferred), offset: 0, strides }) = &typed.node
        && deferred.shape == typed.shape
        && *strides == contiguous(&typed.shape)
        && let Some(gathered) = deferred.with_places()
    {
        return begun(&gathered, ranges);
    }
    let found = match &typed.node {
        Node::Gather { index, .. } if index.shape == typed.shape => index,
        _ => typed,
    };
    let Node::Read(View { source: Source::Deferred(deferred), offset, strides }) = &found.node else { return None };
    let [.., length, each] = deferred.shape[..] else { return None };
    let row = length.checked_mul(each).filter(|&row| row > each)?;
    // One axis runs along the rows, from their beginning; the others from row to row.
    let along = |axis: &usize| found.shape[*axis] == length && strides[*axis] == each;
    let axis = (0..found.shape.len()).find(along)?;
    let by_rows = |at: usize| at == axis || found.shape[at] == 1 || strides[at].is_multiple_of(row);
    if !(0..found.shape.len()).all(by_rows) || offset % row >= each {
        return None;
    }
    let keep = ranges.get(axis)?.end;
    let begun = deferred.beginning(keep)?;
    let rows = |stride: usize| stride / row * keep * each;
    let mut shorter: Vec<usize> = strides.iter().map(|&stride| rows(stride)).listed();
    *shorter.get_mut(axis)? = each;
    let mut shape = found.shape.clone();
    *shape.get_mut(axis)? = keep;
    let view = View { source: Source::Deferred(begun), offset: rows(*offset) + offset % row, strides: shorter };
    let places = Typed::new(Node::Read(view), shape.clone(), found.dtype);
    let Node::Gather { view, stride, length, .. } = &typed.node else { return Some(places) };
    // The values' own places along the axis are those that were found.
    let is_still = view.strides.get(axis) == Some(&0);
    let node = Node::Gather { view: view.clone(), stride: *stride, length: *length, index: places };
    is_still.then(|| Typed::new(node, shape, typed.dtype))
}

/// Applies an operation on rows along the last axis to another axis. It keeps the shape; its float32 is narrowed for halves.
pub(in crate::ops) fn along_last(
    typed: &Arc<Typed>,
    axis: isize,
    make: impl FnOnce(Arc<Typed>) -> Arc<Typed>,
) -> Result<Arc<Typed>> {
    let axis = axis_of(axis, typed.shape.len())?;
    if typed.shape.contains(&0) {
        return Ok(typed.clone());
    }
    Ok(with_last(&make(to_last(typed, axis)), axis).narrowed(typed.dtype))
}

/// Moves an axis behind the others.
pub(in crate::ops) fn to_last(typed: &Arc<Typed>, axis: usize) -> Arc<Typed> {
    let mut order: Vec<usize> = (0..typed.shape.len()).filter(|&other| other != axis).listed();
    order.push(axis);
    permuted(typed, &order)
}

/// Moves the last axis to the place of another one.
pub(in crate::ops) fn with_last(typed: &Arc<Typed>, axis: usize) -> Arc<Typed> {
    let mut order: Vec<usize> = (0..typed.shape.len() - 1).listed();
    order.insert(axis, typed.shape.len() - 1);
    permuted(typed, &order)
}

/// An axis, counted from the end where it is negative.
pub(in crate::ops) fn axis_of(axis: isize, rank: usize) -> Result<usize> {
    let place = if axis < 0 { axis + rank.cast_signed() } else { axis };
    usize::try_from(place).ok().filter(|&place| place < rank).ok_or_else(|| ShapeError::Axis { axis, rank }.into())
}

/// Distinct axes; all of them for an empty list.
pub(in crate::ops) fn axes_of(axes: &[isize], rank: usize) -> Result<Vec<usize>> {
    if axes.is_empty() {
        return Ok((0..rank).listed());
    }
    let mut places = Vec::new();
    for &axis in axes {
        let place = axis_of(axis, rank)?;
        if places.contains(&place) {
            return Err(Error::shape(format!("the axes {axes:?}"), "one occurs twice"));
        }
        places.push(place);
    }
    places.sort_unstable();
    Ok(places)
}

impl Expr {
    /// Broadcasts to a shape.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2])?;
    /// assert_eq!(x.broadcast_to(&[2, 2]).eval()?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        self.derived(|typed| {
            if shape::broadcast(&typed.shape, shape)? != shape {
                return Err(Error::shape(
                    format!("the shape {:?}", typed.shape),
                    format!("it does not broadcast to {shape:?}"),
                ));
            }
            Ok(broadcast_to(typed, shape))
        })
    }

    /// Changes the shape; the elements stay in row-major order.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.reshape(&[3, 2]).eval()?.shape(), [3, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn reshape(&self, shape: &[usize]) -> Self {
        self.derived(|typed| {
            if shape::count(shape)? != typed.count() {
                return Err(Error::shape(
                    format!("the shape {shape:?}"),
                    format!("{:?} has {} elements, and a reshape keeps their number", typed.shape, typed.count()),
                ));
            }
            Ok(reshaped(typed, shape))
        })
    }

    /// Reorders the axes: axis i of the result is axis `axes[i]`.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.permute(&[1, 0]).eval()?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn permute(&self, axes: &[isize]) -> Self {
        self.derived(|typed| {
            let rank = typed.shape.len();
            let order: Vec<usize> = axes.iter().map(|&axis| axis_of(axis, rank)).try_listed()?;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted != (0..rank).listed() {
                return Err(Error::shape(
                    format!("the axes {axes:?}"),
                    format!("each of the {rank} axes must occur exactly once"),
                ));
            }
            Ok(permuted(typed, &order))
        })
    }

    /// Exchanges the last two axes.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.transpose().eval()?.shape(), [3, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn transpose(&self) -> Self {
        self.derived(|typed| {
            let rank = typed.shape.len();
            if rank < 2 {
                return Err(Error::shape(
                    format!("the shape {:?}", typed.shape),
                    "a transpose needs at least two axes",
                ));
            }
            let mut order: Vec<usize> = (0..rank).listed();
            order.swap(rank - 2, rank - 1);
            Ok(permuted(typed, &order))
        })
    }

    /// Selects a part: one range for each of the first axes. The other axes stay whole.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.slice(&[0..2, 1..3]).eval()?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn slice(&self, ranges: &[Range<usize>]) -> Self {
        self.slice_steps(ranges, &vec![1; ranges.len()])
    }

    /// Selects a part with steps: every `steps[i]`-th element of `ranges[i]`.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.slice_steps(&[0..2, 0..3], &[1, 2]).eval()?.to_vec::<i32>()?, [1, 3, 4, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn slice_steps(&self, ranges: &[Range<usize>], steps: &[usize]) -> Self {
        self.derived(|typed| {
            let fault = |reason: String| Error::shape(format!("the slice {ranges:?}"), reason);
            if ranges.len() > typed.shape.len() || ranges.len() != steps.len() {
                return Err(fault(format!("{:?} has {} axes", typed.shape, typed.shape.len())));
            }
            if steps.contains(&0) {
                return Err(fault("a step must be at least 1".to_owned()));
            }
            let (mut whole, mut all_steps) = (ranges.to_vec(), steps.to_vec());
            for (axis, range) in ranges.iter().enumerate() {
                if range.start > range.end || range.end > typed.shape[axis] {
                    return Err(fault(format!("axis {axis} has {} elements", typed.shape[axis])));
                }
            }
            whole.extend(typed.shape[ranges.len()..].iter().map(|&side| 0..side));
            all_steps.resize(typed.shape.len(), 1);
            // A step beyond the end finds the first element, as does one just there.
            for (step, range) in all_steps.iter_mut().zip(&whole) {
                *step = (*step).min(range.len().max(1));
            }
            Ok(sliced(typed, &whole, &all_steps))
        })
    }

    /// Inserts an axis of length 1 before `axis` (`-1`: at the end).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.expand(0).eval()?.shape(), [1, 2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn expand(&self, axis: isize) -> Self {
        self.derived(|typed| {
            let place = axis_of(axis, typed.shape.len() + 1)?;
            let mut shape = typed.shape.clone();
            shape.insert(place, 1);
            Ok(reshaped(typed, &shape))
        })
    }

    /// Removes an axis of length 1.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2, 1, 3])?;
    /// assert_eq!(x.squeeze(1).eval()?.shape(), [2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn squeeze(&self, axis: isize) -> Self {
        self.derived(|typed| {
            let place = axis_of(axis, typed.shape.len())?;
            let mut shape = typed.shape.clone();
            if shape.remove(place) != 1 {
                return Err(Error::shape(format!("axis {axis} of {:?}", typed.shape), "its length is not 1"));
            }
            Ok(reshaped(typed, &shape))
        })
    }
}

tensor_methods! {
    fn broadcast_to(shape: &[usize]);
    fn reshape(shape: &[usize]);
    fn permute(axes: &[isize]);
    fn transpose();
    fn slice(ranges: &[Range<usize>]);
    fn slice_steps(ranges: &[Range<usize>], steps: &[usize]);
    fn expand(axis: isize);
    fn squeeze(axis: isize);
}
