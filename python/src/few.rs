//! Arrays whose numbers the host holds: few of them, on which it computes at once, since recording an operation would take longer than the operation; and
//! those that a program writes to element by element. What is here rounds once, as IEEE 754 does, or wraps; everything else makes a tensor of the numbers
//! and records. How many are few depends on who computes otherwise: beside a device with memory of its own it is what a matrix of a filter has, beside the
//! CPU what fits into a core's cache, where one operation takes as long as its recording.

use std::borrow::Cow;
use std::sync::Arc;

use cantus::DType;
use cantus::ops::{Binary, Unary};

use crate::numbers::{Fold, Number, Numbers, each, mapped};

/// Numbers of a result, and terms of a product.
const MOST: usize = 64;
/// Runs of elements that are taken one after the other.
const MOST_RUNS: usize = 4096;
/// Numbers of an array that comes from outside, and of a part that is written or lies in many pieces.
pub(crate) const KEPT: usize = 1024;
/// Bytes of a result, and of an array from outside, where the CPU is the device: what fits into a core's cache beside its operands. Up to there a chain of
/// several operations takes no longer one after the other than recorded and computed together.
const HOST: usize = 96 << 10;

/// How many numbers are few.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Most {
    /// Beside a device whose kernels have to be waited for.
    Device,
    /// The CPU is the device.
    Host,
}

impl Most {
    fn or_host(self, numbers: usize, dtype: DType) -> usize {
        if self == Self::Host { HOST / dtype.bytes().max(1) } else { numbers }
    }

    /// Numbers of an array from outside.
    pub(crate) fn kept(self, dtype: DType) -> usize {
        self.or_host(KEPT, dtype)
    }

    /// Returns whether an array from outside is kept as its numbers.
    pub(crate) fn keeps(self, shape: &[usize], dtype: DType) -> bool {
        count(shape).is_some_and(|count| count <= self.kept(dtype))
    }

    /// Returns whether an array that is made is kept as its numbers.
    pub(crate) fn makes(self, shape: &[usize], dtype: DType) -> bool {
        count(shape).is_some_and(|count| count <= self.or_host(MOST, dtype))
    }
}

/// The numbers of an array, row-major.
#[derive(Clone)]
pub(crate) struct Few {
    pub(crate) shape: Vec<usize>,
    numbers: Numbers,
    most: Most,
}

/// A part of an array: a range and a step along each of its axes, and the part's own shape, which has as many elements.
pub(crate) struct Part {
    pub(crate) ranges: Vec<std::ops::Range<usize>>,
    pub(crate) steps: Vec<usize>,
    pub(crate) shape: Vec<usize>,
}

impl Part {
    /// Returns whether it has every element of an array of this shape, in order.
    pub(crate) fn has_all(&self, shape: &[usize]) -> bool {
        let is_whole = self.ranges.iter().zip(shape).all(|(range, &side)| *range == (0..side));
        is_whole && self.steps.iter().all(|&step| step == 1)
    }

    /// Where its elements lie in an array of this shape: the places where runs begin, and the length of each.
    fn runs(&self, shape: &[usize]) -> (Vec<usize>, usize) {
        let (mut starts, mut length, mut is_joined) = (vec![0], 1, true);
        // Elements of one step along an axis.
        let mut inner = 1;
        for (&side, (range, &step)) in shape.iter().zip(self.ranges.iter().zip(&self.steps)).rev() {
            if is_joined && step == 1 {
                length *= range.len();
                starts.iter_mut().for_each(|start| *start += range.start * inner);
                is_joined = range.len() == side;
            } else {
                is_joined = false;
                let along = range.clone().step_by(step.max(1));
                starts = along.flat_map(|at| starts.iter().map(move |start| start + at * inner)).collect();
            }
            inner *= side;
        }
        (starts, length)
    }
}

pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side))
}

/// The shape that two broadcast to.
fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let (mut shape, other) = if a.len() >= b.len() { (a.to_vec(), b) } else { (b.to_vec(), a) };
    let from = shape.len() - other.len();
    for (side, &other) in shape.iter_mut().skip(from).zip(other) {
        match (*side, other) {
            (one, other) if one == other => {}
            (1, _) => *side = other,
            (_, 1) => {}
            _ => return None,
        }
    }
    Some(shape)
}

impl Few {
    pub(crate) fn new(shape: Vec<usize>, numbers: Numbers, most: Most) -> Arc<Self> {
        Arc::new(Self { shape, numbers, most })
    }

    /// Numbers of another shape, which come from these.
    fn made(&self, shape: Vec<usize>, numbers: Numbers) -> Arc<Self> {
        Self::new(shape, numbers, self.most)
    }

    /// The numbers of an array in the host's memory; None of dtypes that are not held, of other sizes, and without room.
    pub(crate) fn from_bytes(shape: &[usize], dtype: DType, bytes: &[u8], most: Most) -> Option<Arc<Self>> {
        let numbers = Numbers::from_bytes(dtype, bytes)?;
        (count(shape) == Some(numbers.len())).then(|| Self::new(shape.to_vec(), numbers, most))
    }

    /// Returns whether numbers of a dtype can be held.
    pub(crate) fn holds(dtype: DType) -> bool {
        Numbers::empty(dtype).is_some()
    }

    pub(crate) fn dtype(&self) -> DType {
        self.numbers.dtype()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.numbers.bytes()
    }

    pub(crate) fn most(&self) -> Most {
        self.most
    }

    /// Returns whether a tensor has its memory and no copy.
    pub(crate) fn is_lent(&self) -> bool {
        self.len() > KEPT
    }

    /// Returns whether it may be kept as numbers if it comes from outside.
    fn is_kept(&self) -> bool {
        self.most.keeps(&self.shape, self.dtype())
    }

    fn is_few(&self) -> bool {
        self.most.makes(&self.shape, self.dtype())
    }

    pub(crate) fn unary(&self, op: Unary) -> Option<Arc<Self>> {
        let of = |numbers: &Numbers| mapped!(numbers, x => Number::unary(op)?(x));
        self.is_few().then(|| of(&self.numbers))?.map(|numbers| self.made(self.shape.clone(), numbers))
    }

    /// A function of these numbers and of one, which is the first operand if `reflected`.
    pub(crate) fn with_number(&self, op: Binary, number: f64, reflected: bool) -> Option<Arc<Self>> {
        if !self.is_few() {
            return None;
        }
        let other = Numbers::repeated(self.dtype(), number, 1)?;
        let both = if reflected {
            Numbers::combined(op, &other, &self.numbers)
        } else {
            Numbers::combined(op, &self.numbers, &other)
        };
        both.map(|numbers| self.made(self.shape.clone(), numbers))
    }

    pub(crate) fn binary(&self, op: Binary, other: &Self) -> Option<Arc<Self>> {
        if !self.is_few() || !other.is_few() || self.dtype() != other.dtype() {
            return None;
        }
        if self.shape == other.shape {
            return Some(self.made(self.shape.clone(), Numbers::combined(op, &self.numbers, &other.numbers)?));
        }
        let most = if other.most == Most::Host { other.most } else { self.most };
        let shape = broadcast(&self.shape, &other.shape).filter(|shape| most.makes(shape, self.dtype()))?;
        let numbers = Numbers::combined(op, &self.beside(&shape), &other.beside(&shape))?;
        Some(Self::new(shape, numbers, most))
    }

    /// The numbers for a function of arrays of a shape: as they are, if there are as many, or one that goes with each of the others.
    fn beside(&self, shape: &[usize]) -> Cow<'_, Numbers> {
        if self.len() == 1 || self.shape == shape {
            Cow::Borrowed(&self.numbers)
        } else {
            Cow::Owned(self.spread(shape))
        }
    }

    /// The numbers broadcast to a shape.
    fn spread(&self, shape: &[usize]) -> Numbers {
        let before = shape.len() - self.shape.len();
        let mut numbers = self.numbers.clone();
        // From the last axis on: each element and what lies behind it is repeated.
        let mut inner = 1;
        for (axis, &side) in shape.iter().enumerate().rev() {
            let own = axis.checked_sub(before).map_or(1, |axis| self.shape[axis]);
            if own != side {
                each!(&mut numbers, x => *x = x.chunks_exact(inner.max(1)).flat_map(|chunk| chunk.repeat(side)).collect());
            }
            inner *= side;
        }
        numbers
    }

    /// The result of an operation of the table by name, and the only one: see [`crate::call`]. None of what is not computed here.
    pub(crate) fn called(&self, name: &str, others: &[Arc<Self>], ints: &[i64]) -> Option<Arc<Self>> {
        let fold = match (name, others) {
            ("inverse", []) => return self.inverse(),
            ("reshape" | "broadcast_to", []) => return self.in_shape(name, ints),
            ("roll", []) => return self.rolled(ints),
            ("slice_scatter", [other]) => return self.written(ints, other),
            ("select", [yes, no]) => return self.chosen(yes, no),
            ("concat", _) => return self.joined(others, ints),
            ("take", [places]) => return self.taken(places, ints),
            ("max", []) => Fold::Max,
            ("min", []) => Fold::Min,
            ("argmax", []) => Fold::ArgMax,
            ("argmin", []) => Fold::ArgMin,
            ("any", []) => Fold::Any,
            ("all", []) => Fold::All,
            ("sum", []) => Fold::Sum,
            _ => return None,
        };
        self.folded(fold, ints)
    }

    /// The numbers as those of another dtype.
    pub(crate) fn cast(&self, to: DType) -> Option<Arc<Self>> {
        if !self.is_few() || !self.most.makes(&self.shape, to) {
            return None;
        }
        Some(self.made(self.shape.clone(), self.numbers.cast(to)?))
    }

    /// Of two others the first where these are true, and the second elsewhere.
    fn chosen(&self, yes: &Self, no: &Self) -> Option<Arc<Self>> {
        let all = [self, yes, no];
        let most = if all.iter().any(|of| of.most == Most::Host) { Most::Host } else { self.most };
        let shape = broadcast(&broadcast(&self.shape, &yes.shape)?, &no.shape)?;
        if !most.makes(&shape, yes.dtype()) || !all.iter().all(|of| of.is_few()) {
            return None;
        }
        let numbers = if self.shape == shape {
            self.numbers.chosen(&yes.beside(&shape), &no.beside(&shape))
        } else {
            self.spread(&shape).chosen(&yes.beside(&shape), &no.beside(&shape))
        };
        Some(Self::new(shape, numbers?, most))
    }

    /// These and others along an axis.
    fn joined(&self, others: &[Arc<Self>], ints: &[i64]) -> Option<Arc<Self>> {
        let [axis] = *ints else { return None };
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < self.shape.len())?;
        let inner: usize = self.shape[axis + 1..].iter().product();
        let mut shape = self.shape.clone();
        let mut parts = vec![(&self.numbers, self.shape[axis] * inner)];
        for other in others {
            let side = *other.shape.get(axis)?;
            let is_alike = other.shape.len() == shape.len()
                && (0..shape.len()).all(|at| at == axis || other.shape[at] == shape[at]);
            if !is_alike || !other.is_few() {
                return None;
            }
            shape[axis] = shape[axis].checked_add(side)?;
            parts.push((&other.numbers, side * inner));
        }
        if !self.is_few() || !self.most.makes(&shape, self.dtype()) {
            return None;
        }
        let turns = self.shape[..axis].iter().product();
        Some(self.made(shape, Numbers::joined(&parts, turns)?))
    }

    /// The elements at places along an axis, negative ones from its end; None if one is outside.
    fn taken(&self, places: &Self, ints: &[i64]) -> Option<Arc<Self>> {
        let [axis] = *ints else { return None };
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < self.shape.len())?;
        let (side, inner) = (self.shape[axis], self.shape[axis + 1..].iter().product::<usize>());
        let shape = [&self.shape[..axis], &places.shape, &self.shape[axis + 1..]].concat();
        let turns: usize = self.shape[..axis].iter().product();
        let is_few = self.is_few() && places.is_few() && self.most.makes(&shape, self.dtype());
        if !is_few || turns.checked_mul(places.len())? > MOST_RUNS {
            return None;
        }
        let length = i64::try_from(side).ok()?;
        let place = |place: i64| {
            let place = if place < 0 { place.checked_add(length)? } else { place };
            usize::try_from(place).ok().filter(|&place| place < side)
        };
        let places: Vec<usize> = places.numbers.places()?.into_iter().map(place).collect::<Option<_>>()?;
        let starts: Vec<usize> =
            (0..turns).flat_map(|turn| places.iter().map(move |place| (turn * side + place) * inner)).collect();
        let numbers = if inner == 1 { self.numbers.at(&starts) } else { self.numbers.runs(&starts, inner) };
        Some(self.made(shape, numbers?))
    }

    /// One number for all along neighbouring axes: `ints` are whether the axes stay, and the axes; all without one.
    fn folded(&self, fold: Fold, ints: &[i64]) -> Option<Arc<Self>> {
        let (&keep, axes) = ints.split_first()?;
        let rank = self.shape.len();
        let mut axes: Vec<usize> = axes.iter().map(|&axis| usize::try_from(axis).ok()).collect::<Option<_>>()?;
        axes.sort_unstable();
        let (from, to) = match axes[..] {
            [] => (0, rank),
            [first, ..] => (first, first + axes.len()),
        };
        let are_neighbours = axes.iter().copied().zip(from..).all(|(axis, expected)| axis == expected);
        if !self.is_few() || to > rank || !are_neighbours {
            return None;
        }
        let [side, inner] = [from..to, to..rank].map(|range| self.shape[range].iter().product());
        let numbers = self.numbers.folded(fold, side, inner)?;
        let middle = if keep == 0 { Vec::new() } else { vec![1; to - from] };
        Some(self.made([&self.shape[..from], &middle, &self.shape[to..]].concat(), numbers))
    }

    /// The product of two matrices, or vectors, of float32: a row on the left, a column on the right. Summed in float64, and rounded once.
    pub(crate) fn product(&self, other: &Self) -> Option<Arc<Self>> {
        let (Numbers::F32(left), Numbers::F32(right)) = (&self.numbers, &other.numbers) else { return None };
        let ([m, k], own) = match self.shape[..] {
            [k] => ([1, k], None),
            [m, k] => ([m, k], Some(m)),
            _ => return None,
        };
        let (n, more) = match other.shape[..] {
            [rows] if rows == k => (1, None),
            [rows, n] if rows == k => (n, Some(n)),
            _ => return None,
        };
        if k > MOST || !Most::Device.makes(&[m, n], DType::F32) {
            return None;
        }
        let mut numbers = vec![0.0; m * n];
        for (row, to) in numbers.chunks_exact_mut(n.max(1)).enumerate() {
            let left = &left[row * k..(row + 1) * k];
            for (column, to) in to.iter_mut().enumerate() {
                let right = right.iter().skip(column).step_by(n);
                // Each product of two float32 numbers is one of float64.
                *to = left.iter().zip(right).fold(0.0_f64, |sum, (&a, &b)| sum + f64::from(a) * f64::from(b)) as f32;
            }
        }
        Some(self.made(own.into_iter().chain(more).collect(), Numbers::F32(numbers)))
    }

    /// The transpose of a matrix.
    pub(crate) fn turned(&self) -> Option<Arc<Self>> {
        let [rows, columns] = self.shape[..] else { return None };
        if self.len() > MOST {
            return None;
        }
        let places: Vec<usize> = (0..columns * rows).map(|at| at % rows * columns + at / rows).collect();
        Some(self.made(vec![columns, rows], self.numbers.at(&places)?))
    }

    /// The elements of a part, if they are few.
    pub(crate) fn part(&self, part: &Part) -> Option<Arc<Self>> {
        if !self.most.makes(&part.shape, self.dtype()) {
            return None;
        }
        let (starts, length) = part.runs(&self.shape);
        (starts.len() <= KEPT).then_some(())?;
        Some(self.made(part.shape.clone(), self.numbers.runs(&starts, length)?))
    }

    /// The elements moved along an axis, and those that leave it at its beginning.
    fn rolled(&self, ints: &[i64]) -> Option<Arc<Self>> {
        let [by, axis] = *ints else { return None };
        let axis = usize::try_from(axis).ok().filter(|_| self.is_few())?;
        let side = *self.shape.get(axis)?;
        let inner: usize = self.shape.get(axis + 1..)?.iter().product();
        let by = usize::try_from(by).ok().filter(|&by| by < side.max(1))?;
        Some(self.made(self.shape.clone(), self.numbers.rolled(side * inner, by * inner)))
    }

    /// The same numbers in another shape, if it has as many, or repeated to it.
    fn in_shape(&self, name: &str, ints: &[i64]) -> Option<Arc<Self>> {
        if !self.is_kept() {
            return None;
        }
        let shape = ints.iter().map(|&side| usize::try_from(side).ok()).collect::<Option<Vec<_>>>()?;
        match name {
            "reshape" if count(&shape)? == self.len() => Some(self.made(shape, self.numbers.clone())),
            "broadcast_to" if self.most.makes(&shape, self.dtype()) && broadcast(&shape, &self.shape)? == shape => {
                let numbers = self.spread(&shape);
                Some(self.made(shape, numbers))
            }
            _ => None,
        }
    }

    /// These numbers with others in a box, which has as many axes: `ends` are where it begins and ends along each.
    fn written(&self, ends: &[i64], other: &Self) -> Option<Arc<Self>> {
        let rank = self.shape.len();
        if ends.len() != 2 * rank || !self.is_kept() || other.shape.len() != rank {
            return None;
        }
        let mut ranges = Vec::new();
        for (axis, (&side, &length)) in self.shape.iter().zip(&other.shape).enumerate() {
            let (start, end) = (usize::try_from(ends[2 * axis]).ok()?, usize::try_from(ends[2 * axis + 1]).ok()?);
            if end > side || end.checked_sub(start)? != length {
                return None;
            }
            ranges.push(start..end);
        }
        let part = Part { steps: vec![1; rank], ranges, shape: other.shape.clone() };
        let mut written = self.clone();
        written.write(&part, &other.numbers).then(|| Arc::new(written))
    }

    /// Its numbers for a part of this shape: as they are, or the one for all.
    pub(crate) fn numbers_for(&self, shape: &[usize]) -> Option<Numbers> {
        let own = self.shape.iter().skip_while(|&&side| side == 1);
        if own.eq(shape.iter().skip_while(|&&side| side == 1)) {
            return Some(self.numbers.clone());
        }
        (self.len() == 1).then(|| self.numbers.at(&vec![0; count(shape)?]))?
    }

    /// Writes to a part, as many numbers as it has elements; false, and nothing is written, if these are of another dtype or count.
    pub(crate) fn write(&mut self, part: &Part, from: &Numbers) -> bool {
        let (starts, length) = part.runs(&self.shape);
        self.numbers.write(&starts, length, from)
    }

    /// The inverse of a matrix by elimination with pivots in float64; NaN if it is singular.
    fn inverse(&self) -> Option<Arc<Self>> {
        let Numbers::F32(numbers) = &self.numbers else { return None };
        let n = match self.shape[..] {
            [rows, columns] if rows == columns && rows * rows <= MOST => rows,
            _ => return None,
        };
        // The matrix, and beside it what becomes its inverse.
        let wide = 2 * n;
        let mut all = vec![0.0_f64; n * wide];
        for (row, (to, from)) in all.chunks_exact_mut(wide.max(1)).zip(numbers.chunks_exact(n.max(1))).enumerate() {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
            to[n + row] = 1.0;
        }
        let mut is_regular = numbers.iter().all(|x| x.is_finite());
        for column in 0..n {
            let size = |row: usize| all[row * wide + column].abs();
            let pivot = (column + 1..n).fold(column, |best, row| if size(row) > size(best) { row } else { best });
            is_regular &= size(pivot) > 0.0;
            for at in 0..wide {
                all.swap(column * wide + at, pivot * wide + at);
            }
            let by = all[column * wide + column];
            all[column * wide..][..wide].iter_mut().for_each(|x| *x /= by);
            for row in (0..n).filter(|&row| row != column) {
                let factor = all[row * wide + column];
                for at in column..wide {
                    all[row * wide + at] -= factor * all[column * wide + at];
                }
            }
        }
        let of = |x: &f64| if is_regular { *x as f32 } else { f32::NAN };
        let numbers = all.chunks_exact(wide.max(1)).flat_map(|row| row[n..].iter().map(of)).collect();
        Some(self.made(vec![n, n], Numbers::F32(numbers)))
    }
}
