//! Elements in another order, repeated, or in part: composed of views and of gathers whose index is computed. Nothing has a kernel of its own. Each
//! function is strides, or a gather whose index is an expression of `places_along`, so all of it fuses into whatever reads it. Rolls are recognised again
//! by the shape of that expression (`expr/roll.rs`): change both together.

use std::sync::Arc;

use super::create::places;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View, is_whole};
use crate::ops::expr::view::{axes_of, axis_of, sliced, view};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The index along one axis of each element of a shape, as u32.
pub(in crate::ops) fn places_along(engine: &Engine, shape: &[usize], axis: usize) -> Expr {
    Expr::made(engine, || {
        places(shape)?;
        let mut strides = vec![0; shape.len()];
        strides[axis] = 1;
        let view = View { source: Source::Indices, offset: 0, strides };
        Ok(Typed::new(Node::Read(view), shape.to_vec(), DType::U32))
    })
}

impl Expr {
    /// Takes `count` elements along an axis, at the positions that `index` computes from 0, 1, … (as u32) and the axis's length.
    pub(super) fn picked(&self, axis: usize, count: usize, index: impl FnOnce(Self, usize) -> Self) -> Self {
        let length = match self.shape() {
            Ok(shape) => shape[axis],
            Err(error) => return self.failed(&error),
        };
        let place = Self::made(&self.engine, || places(&[count]));
        self.taken(&index(place, length), axis.cast_signed())
    }

    /// Stacks this and others of the same shape along a new axis, which is inserted before `axis` (`-1`: at the end).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (a, b) = (engine.tensor(&[1_i32, 2])?.expr(), engine.tensor(&[3_i32, 4])?.expr());
    /// assert_eq!(a.stack(&[b.clone()], 0).eval()?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// assert_eq!(a.stack(&[b], -1).eval()?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn stack(&self, others: &[Self], axis: isize) -> Self {
        if let Ok(shape) = self.shape()
            && let Some(other) = others.iter().filter_map(|other| other.shape().ok()).find(|other| *other != shape)
        {
            return self
                .failed(&Error::shape(format!("a stack of {shape:?} and {other:?}"), "the shapes must be equal"));
        }
        let others: Vec<Self> = others.iter().map(|other| other.expand(axis)).listed();
        self.expand(axis).concat(&others, axis)
    }

    /// Splits an axis into parts of these lengths, whose sum is the axis's length. The parts are views: nothing is copied.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let parts = engine.tensor(&[1_i32, 2, 3])?.split(&[1, 2], 0);
    /// assert_eq!(parts[1].eval()?.to_vec::<i32>()?, [2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn split(&self, lengths: &[usize], axis: isize) -> Vec<Self> {
        let mut from = 0_usize;
        let parts = lengths.iter().map(|&length| {
            let start = from;
            from = from.saturating_add(length);
            (start, from)
        });
        let parts: Vec<_> = parts.listed();
        parts
            .into_iter()
            .map(|(start, end)| {
                self.derived(|typed| {
                    let axis = axis_of(axis, typed.shape.len())?;
                    if from != typed.shape[axis] {
                        return Err(Error::shape(
                            format!("a split into {lengths:?}"),
                            format!("they add up to {from}, but axis {axis} has {} elements", typed.shape[axis]),
                        ));
                    }
                    let mut ranges: Vec<_> = typed.shape.iter().map(|&side| 0..side).listed();
                    ranges[axis] = start..end;
                    Ok(sliced(typed, &ranges, &vec![1; ranges.len()]))
                })
            })
            .listed()
    }

    /// Repeats the whole tensor the given number of times along each axis. If there are fewer numbers than axes, they apply to the last axes; if there
    /// are more, new axes are added at the front.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2])?;
    /// assert_eq!(x.tile(&[2]).eval()?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(x.tile(&[2, 1]).eval()?.shape(), [2, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn tile(&self, times: &[usize]) -> Self {
        let Ok(shape) = self.shape() else { return self.clone() };
        let rank = shape.len().max(times.len());
        let at = |list: &[usize], axis: usize| (axis + list.len()).checked_sub(rank).map_or(1, |place| list[place]);
        let pairs: Vec<[usize; 2]> = (0..rank).map(|axis| [at(times, axis), at(shape, axis)]).listed();
        let once: Vec<usize> = pairs.iter().flat_map(|&[_, side]| [1, side]).listed();
        let tiled: Vec<usize> = pairs.iter().map(|&[times, side]| times.saturating_mul(side)).listed();
        self.reshape(&once).broadcast_to(pairs.as_flattened()).reshape(&tiled)
    }

    /// Repeats each element the given number of times along an axis: 1, 2 becomes 1, 1, 2, 2.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.tensor(&[1_i32, 2])?.repeat(2, 0).eval()?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "repeat_interleave")]
    pub fn repeat(&self, times: usize, axis: isize) -> Self {
        let place = match self.shape().and_then(|shape| axis_of(axis, shape.len())) {
            Ok(place) => place,
            Err(error) => return self.failed(&error),
        };
        let Ok(shape) = self.shape() else { return self.clone() };
        let (mut wide, mut result) = (shape.to_vec(), shape.to_vec());
        wide.insert(place + 1, times);
        result[place] = result[place].saturating_mul(times);
        self.expand(place.cast_signed() + 1).broadcast_to(&wide).reshape(&result)
    }

    /// Rotates the elements along axes, by one number per axis; positive numbers move elements to higher indices. Elements that leave at one end
    /// enter at the other.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.roll(&[1], &[0]).eval()?.to_vec::<i32>()?, [4, 1, 2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn roll(&self, shifts: &[isize], axes: &[isize]) -> Self {
        let mut result = self.clone();
        if shifts.len() != axes.len() {
            return self
                .failed(&Error::shape(format!("a roll by {shifts:?} along {axes:?}"), "it needs one shift per axis"));
        }
        for (&shift, &axis) in shifts.iter().zip(axes) {
            let (axis, length) = match result.side(axis) {
                Ok(found) => found,
                Err(error) => return self.failed(&error),
            };
            if length == 0 {
                continue;
            }
            let back = (-(shift as i128)).rem_euclid(length as i128);
            if back == 0 {
                continue;
            }
            // No sum here may exceed a word. The CPU recognises these indices by their form and reads runs (`Typed::rolled`).
            let (back, from_end) = (back as f64, length as f64 - back as f64);
            let mut beside = vec![1; result.shape().map_or(0, <[usize]>::len)];
            beside.get_mut(axis).into_iter().for_each(|side| *side = length);
            let place = Self::made(&self.engine, || places(&beside));
            let index =
                place.less(from_end).select(place.binary(Binary::Add, back), place.binary(Binary::Sub, from_end));
            result = result.gathered(&index, axis.cast_signed());
        }
        result
    }

    /// Reverses the order of the elements along axes (all of them for `&[]`).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.flip(&[1]).eval()?.to_vec::<i32>()?, [2, 1, 4, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn flip(&self, axes: &[isize]) -> Self {
        let axes = match self.shape().and_then(|shape| axes_of(axes, shape.len())) {
            Ok(axes) => axes,
            Err(error) => return self.failed(&error),
        };
        let mut result = self.clone();
        for axis in axes {
            let Ok((_, length)) = result.side(axis.cast_signed()) else { return result };
            if length > 1 {
                result = result.picked(axis, length, |place, length| place.constant(length as f64 - 1.0) - place);
            }
        }
        result
    }

    /// An axis, and its length.
    fn side(&self, axis: isize) -> Result<(usize, usize)> {
        let shape = self.shape()?;
        let axis = axis_of(axis, shape.len())?;
        Ok((axis, shape[axis]))
    }

    /// Returns 1 at the index along a new last axis that an i32 or u32 element gives, and 0 elsewhere; all 0 if the index is out of range.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[2_u32, 0])?;
    /// assert_eq!(x.one_hot(3, cantus::DType::F32).eval()?.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn one_hot(&self, classes: usize, dtype: DType) -> Self {
        let checked = self.derived(|typed| match is_whole(typed.dtype) {
            true => Ok(typed.clone()),
            false => Err(Error::dtype(
                format!("one_hot of {}", typed.dtype),
                "it needs i32, u32 or narrower integers (cast first)",
            )),
        });
        // As u32 a negative index is beyond every class.
        let class = Self::made(&self.engine, || places(&[classes]));
        checked.cast(DType::U32).expand(-1).equal(class).cast(dtype)
    }

    /// Keeps the elements on and below the diagonal that begins `offset` columns to the right, in the last two axes, and sets the others to 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.tril(0).eval()?.to_vec::<i32>()?, [1, 0, 3, 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn tril(&self, offset: isize) -> Self {
        self.beside_diagonal(offset, Binary::Le)
    }

    /// Keeps the elements on and above the diagonal that begins `offset` columns to the right, in the last two axes, and sets the others to 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.triu(0).eval()?.to_vec::<i32>()?, [1, 2, 0, 4]);
    /// assert_eq!(x.triu(1).eval()?.to_vec::<i32>()?, [0, 2, 0, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn triu(&self, offset: isize) -> Self {
        self.beside_diagonal(offset, Binary::Ge)
    }

    fn beside_diagonal(&self, offset: isize, kept: Binary) -> Self {
        let shape = match self.matrices("a triangle") {
            Ok(shape) => shape,
            Err(error) => return self.failed(&error),
        };
        let sides = &shape[shape.len() - 2..];
        let [row, column] = [0, 1].map(|axis| places_along(&self.engine, sides, axis).cast(DType::I32));
        // All offsets beyond the matrix mean the same.
        let limit = sides[0].max(sides[1]).min(1 << 30).cast_signed();
        let distance = column - row;
        let mask = distance.binary(kept, offset.clamp(-limit, limit) as f64);
        mask.select(self, self.constant(0.0))
    }

    /// The shape of something with at least two axes.
    fn matrices(&self, what: &str) -> Result<Vec<usize>> {
        let shape = self.shape()?.to_vec();
        if shape.len() < 2 {
            return Err(Error::shape(format!("{what} of the shape {shape:?}"), "it needs at least two axes"));
        }
        Ok(shape)
    }

    /// Returns the diagonal of the last two axes that begins `offset` columns to the right (below the main one if negative). A view: nothing is
    /// copied.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.diagonal(0).eval()?.to_vec::<i32>()?, [1, 5]);
    /// assert_eq!(x.diagonal(1).eval()?.to_vec::<i32>()?, [2, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn diagonal(&self, offset: isize) -> Self {
        let shape = match self.matrices("a diagonal") {
            Ok(shape) => shape,
            Err(error) => return self.failed(&error),
        };
        self.derived(|typed| {
            let rank = shape.len();
            let (down, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
            let length = shape[rank - 2].saturating_sub(down).min(shape[rank - 1].saturating_sub(right));
            let mut to = shape[..rank - 2].to_vec();
            to.push(length);
            Ok(view(typed, &to, &|strides, start| {
                let (row, column) = (strides[rank - 2], strides[rank - 1]);
                let mut along = strides[..rank - 2].to_vec();
                along.push(row + column);
                Some((along, if to.contains(&0) { 0 } else { start + down * row + right * column }))
            }))
        })
    }

    /// Returns the sum of the main diagonal of the last two axes.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_i32, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.trace().eval()?.item::<i32>()?, 5);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn trace(&self) -> Self {
        self.diagonal(0).sum(&[-1], false)
    }

    /// Returns the matrix of the products of each element with each element of `other`. Both have one axis.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2])?;
    /// assert_eq!(x.outer(engine.tensor(&[3_i32, 4])?).eval()?.to_vec::<i32>()?, [3, 4, 6, 8]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn outer(&self, other: impl Into<Self>) -> Self {
        let other = other.into();
        for side in [self, &other] {
            if let Ok(shape) = side.shape()
                && shape.len() != 1
            {
                return self.failed(&Error::shape(
                    format!("an outer product of the shape {shape:?}"),
                    "both sides must have one axis",
                ));
            }
        }
        self.expand(-1).binary(Binary::Mul, other)
    }

    /// Returns all windows of `size` neighbours along an axis, `step` apart. The axis counts the windows, and a new last axis has the elements of
    /// each. A view: nothing is copied.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 2, 3, 4])?;
    /// assert_eq!(x.unfold(0, 2, 1).eval()?.to_vec::<i32>()?, [1, 2, 2, 3, 3, 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Self {
        self.derived(|typed| {
            let axis = axis_of(axis, typed.shape.len())?;
            let room = typed.shape[axis].checked_sub(size).filter(|_| step > 0 && size > 0);
            let Some(room) = room else {
                return Err(Error::shape(
                    format!("windows of {size} by steps of {step} along axis {axis} of {:?}", typed.shape),
                    "size and step must be at least 1, and a window must fit",
                ));
            };
            Ok(windowed(typed, axis, [room / step + 1, step], [size, 1]))
        })
    }
}

/// Windows along an axis: their number and the steps between them, what each holds and the steps within.
pub(super) fn windowed(
    typed: &Arc<Typed>,
    axis: usize,
    [count, step]: [usize; 2],
    [size, within]: [usize; 2],
) -> Arc<Typed> {
    let mut to = typed.shape.clone();
    to[axis] = count;
    to.push(size);
    view(typed, &to, &|strides, offset| {
        let mut all = strides.to_vec();
        all.push(strides[axis].saturating_mul(within));
        all[axis] = strides[axis].saturating_mul(step);
        Some((all, offset))
    })
}

/// Returns a grid of one-dimensional expressions. The i-th result varies along axis i only, and is as long as the other expressions along their
/// axes. The results are views: nothing is copied.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let (y, x) = (engine.tensor(&[1_i32, 2])?.expr(), engine.tensor(&[5_i32, 6])?.expr());
/// let grid = cantus::ops::meshgrid(&[y, x]);
/// assert_eq!(grid[0].eval()?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// assert_eq!(grid[1].eval()?.to_vec::<i32>()?, [5, 6, 5, 6]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn meshgrid(axes: &[Expr]) -> Vec<Expr> {
    let sides: Result<Vec<usize>> = axes
        .iter()
        .map(|axis| match axis.shape()? {
            [side] => Ok(*side),
            shape => Err(Error::shape(format!("an axis of a grid of the shape {shape:?}"), "it must have one axis")),
        })
        .try_listed();
    axes.iter()
        .enumerate()
        .map(|(place, axis)| match &sides {
            Ok(sides) => {
                let mut along = vec![1; sides.len()];
                along[place] = sides[place];
                axis.reshape(&along).broadcast_to(sides)
            }
            Err(error) => axis.failed(error),
        })
        .listed()
}

impl crate::engine::Tensor {
    /// See [`Expr::split`].
    #[must_use]
    pub fn split(&self, lengths: &[usize], axis: isize) -> Vec<Expr> {
        self.expr().split(lengths, axis)
    }
}

tensor_methods! {
    fn stack(others: &[Expr], axis: isize);
    fn tile(times: &[usize]);
    fn repeat(times: usize, axis: isize);
    fn roll(shifts: &[isize], axes: &[isize]);
    fn flip(axes: &[isize]);
    fn one_hot(classes: usize, dtype: DType);
    fn tril(offset: isize);
    fn triu(offset: isize);
    fn diagonal(offset: isize);
    fn trace();
    fn outer(other: impl Into<Expr>);
    fn unfold(axis: isize, size: usize, step: usize);
}
