//! Arrays of few float32 numbers, which the host computes at once: recording an operation on them would take longer than the operation. What is here
//! rounds once, as IEEE 754 does; everything else makes a tensor of the numbers and records.

use std::sync::Arc;

use cantus::ops::{Binary, Unary};

/// Numbers of a result, and terms of a product.
const MOST: usize = 64;
/// Numbers of an array that comes from outside: its parts are few.
const KEPT: usize = 1024;

/// The numbers of an array, row-major.
pub(crate) struct Few {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Vec<f32>,
}

/// Returns whether an array from outside is kept as its numbers.
pub(crate) fn is_kept(shape: &[usize]) -> bool {
    count(shape).is_some_and(|count| count <= KEPT)
}

/// Returns whether an array that is made is kept as its numbers.
pub(crate) fn is_few(shape: &[usize]) -> bool {
    count(shape).is_some_and(|count| count <= MOST)
}

fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side))
}

/// The function of two numbers, if one rounding gives its result.
fn function(op: Binary) -> Option<fn(f32, f32) -> f32> {
    Some(match op {
        Binary::Add => |a, b| a + b,
        Binary::Sub => |a, b| a - b,
        Binary::Mul => |a, b| a * b,
        Binary::Div => |a, b| a / b,
        _ => return None,
    })
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
    pub(crate) fn new(shape: Vec<usize>, numbers: Vec<f32>) -> Arc<Self> {
        Arc::new(Self { shape, numbers })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let numbers = self.numbers.as_slice();
        // SAFETY: floats are bytes without gaps.
        unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
    }

    /// The same numbers in another shape of as many.
    fn mapped(&self, of: impl Fn(f32) -> f32) -> Arc<Self> {
        Self::new(self.shape.clone(), self.numbers.iter().map(|&x| of(x)).collect())
    }

    fn is_few(&self) -> bool {
        self.numbers.len() <= MOST
    }

    pub(crate) fn unary(&self, op: Unary) -> Option<Arc<Self>> {
        if !self.is_few() {
            return None;
        }
        Some(match op {
            Unary::Neg => self.mapped(|x| -x),
            Unary::Abs => self.mapped(f32::abs),
            Unary::Sqrt => self.mapped(f32::sqrt),
            _ => return None,
        })
    }

    /// A function of these numbers and of one, which is the first operand if `reflected`.
    pub(crate) fn with_number(&self, op: Binary, number: f32, reflected: bool) -> Option<Arc<Self>> {
        let of = function(op).filter(|_| self.is_few())?;
        Some(if reflected { self.mapped(|x| of(number, x)) } else { self.mapped(|x| of(x, number)) })
    }

    pub(crate) fn binary(&self, op: Binary, other: &Self) -> Option<Arc<Self>> {
        let of = function(op).filter(|_| self.is_few() && other.is_few())?;
        if self.shape == other.shape {
            let numbers = self.numbers.iter().zip(&other.numbers).map(|(&a, &b)| of(a, b)).collect();
            return Some(Self::new(self.shape.clone(), numbers));
        }
        let shape = broadcast(&self.shape, &other.shape).filter(|shape| is_few(shape))?;
        let (a, b) = (self.spread(&shape), other.spread(&shape));
        let numbers = a.iter().zip(&b).map(|(&a, &b)| of(a, b)).collect();
        Some(Self::new(shape, numbers))
    }

    /// The numbers broadcast to a shape.
    fn spread(&self, shape: &[usize]) -> Vec<f32> {
        let before = shape.len() - self.shape.len();
        let mut numbers = self.numbers.clone();
        // From the last axis on: each element and what lies behind it is repeated.
        let mut inner = 1;
        for (axis, &side) in shape.iter().enumerate().rev() {
            let own = axis.checked_sub(before).map_or(1, |axis| self.shape[axis]);
            if own != side {
                numbers = numbers.chunks_exact(inner.max(1)).flat_map(|chunk| chunk.repeat(side)).collect();
            }
            inner *= side;
        }
        numbers
    }

    /// The product of two matrices, or vectors: a row on the left, a column on the right. Summed in float64, and rounded once.
    pub(crate) fn product(&self, other: &Self) -> Option<Arc<Self>> {
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
        if k > MOST || !is_few(&[m, n]) {
            return None;
        }
        let mut numbers = vec![0.0; m * n];
        for (row, to) in numbers.chunks_exact_mut(n.max(1)).enumerate() {
            let left = &self.numbers[row * k..(row + 1) * k];
            for (column, to) in to.iter_mut().enumerate() {
                let right = other.numbers.iter().skip(column).step_by(n);
                // Each product of two float32 numbers is one of float64.
                *to = left.iter().zip(right).fold(0.0_f64, |sum, (&a, &b)| sum + f64::from(a) * f64::from(b)) as f32;
            }
        }
        Some(Self::new(own.into_iter().chain(more).collect(), numbers))
    }

    /// The transpose of a matrix.
    pub(crate) fn turned(&self) -> Option<Arc<Self>> {
        let [rows, columns] = self.shape[..] else { return None };
        if !self.is_few() {
            return None;
        }
        let numbers = (0..columns * rows).map(|at| self.numbers[at % rows * columns + at / rows]).collect();
        Some(Self::new(vec![columns, rows], numbers))
    }

    /// Every `step`th element from `start` on, `length` of them, of each axis, in a shape of as many.
    pub(crate) fn part(&self, axes: &[[usize; 3]], shape: &[usize]) -> Option<Arc<Self>> {
        if !is_few(shape) {
            return None;
        }
        let mut places = vec![0];
        for (&side, &[start, length, step]) in self.shape.iter().zip(axes) {
            let along = |&place: &usize| (0..length).map(move |at| place * side + start + at * step);
            places = places.iter().flat_map(along).collect();
        }
        let numbers = places.into_iter().map(|place| self.numbers.get(place).copied()).collect::<Option<_>>()?;
        Some(Self::new(shape.to_vec(), numbers))
    }

    /// The same numbers in another shape, if it has as many, or repeated to it.
    pub(crate) fn in_shape(&self, name: &str, ints: &[i64]) -> Option<Arc<Self>> {
        let shape = ints.iter().map(|&side| usize::try_from(side).ok()).collect::<Option<Vec<_>>>()?;
        match name {
            "reshape" if count(&shape)? == self.numbers.len() => Some(Self::new(shape, self.numbers.clone())),
            "broadcast_to" if is_few(&shape) && broadcast(&shape, &self.shape)? == shape => {
                let numbers = self.spread(&shape);
                Some(Self::new(shape, numbers))
            }
            _ => None,
        }
    }

    /// These numbers with others in a box, which has as many axes: `ends` are where it begins and ends along each.
    pub(crate) fn written(&self, ends: &[i64], other: &Self) -> Option<Arc<Self>> {
        let rank = self.shape.len();
        if ends.len() != 2 * rank || self.numbers.len() > KEPT || other.shape.len() != rank {
            return None;
        }
        let mut places = vec![0_usize];
        for (axis, (&side, &length)) in self.shape.iter().zip(&other.shape).enumerate() {
            let (start, end) = (usize::try_from(ends[2 * axis]).ok()?, usize::try_from(ends[2 * axis + 1]).ok()?);
            if end > side || end.checked_sub(start)? != length {
                return None;
            }
            places = places.iter().flat_map(|&place| (start..end).map(move |at| place * side + at)).collect();
        }
        let mut numbers = self.numbers.clone();
        for (place, &number) in places.into_iter().zip(&other.numbers) {
            *numbers.get_mut(place)? = number;
        }
        Some(Self::new(self.shape.clone(), numbers))
    }

    /// The inverse of a matrix by elimination with pivots in float64; NaN if it is singular.
    pub(crate) fn inverse(&self) -> Option<Arc<Self>> {
        let n = match self.shape[..] {
            [rows, columns] if rows == columns && rows * rows <= MOST => rows,
            _ => return None,
        };
        // The matrix, and beside it what becomes its inverse.
        let wide = 2 * n;
        let mut all = vec![0.0_f64; n * wide];
        for (row, (to, from)) in all.chunks_exact_mut(wide.max(1)).zip(self.numbers.chunks_exact(n.max(1))).enumerate()
        {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
            to[n + row] = 1.0;
        }
        let mut is_regular = self.numbers.iter().all(|x| x.is_finite());
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
        Some(Self::new(vec![n, n], numbers))
    }
}
