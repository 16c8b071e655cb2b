//! Factorisations of float64 and complex matrices, one after the other. Everything is computed in complex128, of which real matrices fill the
//! real parts.
//!
//! # Why these are here, and not a library's
//! Factorisations must work in every build, the web's among them: a function that one build has and another lacks is worse than a slow one. `faer`
//! (feature `linalg`) is the quick form, of real and complex matrices of all sizes. It brings 42 packages more, and wasm32 has no use for its threads.
//! `nalgebra` has all of these functions for complex matrices, and would serve; it and what it needs would be built by each app with default features,
//! which is more than 490 lines of textbook forms cost. So these stay, for builds without `linalg`.

use std::sync::Arc;

use super::{C, Values, part_of, recorded};
use crate::ops::elementwise::Unary;
use crate::ops::expr::node::{Node, Typed};
use crate::ops::expr::view::{reshaped, sliced};
use crate::tensor::DType;
use cantus_base::listed::{Listed, Ordered};

/// A factorisation, or a result of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Factorisation {
    /// X with A X = B; the inverse where B is the identity. NaN for singular matrices.
    Solve,
    Det,
    /// The sign (for complex matrices of magnitude 1), and the logarithm of the magnitude.
    SlogDet,
    Cholesky,
    /// Q and R; with all columns of Q.
    Qr(bool),
    /// Eigenvalues and vectors of Hermitian matrices, of which the lower triangle is read.
    Eigh,
    /// U, the singular values, and V, transposed and conjugated; with all vectors.
    Svd(bool),
}

const ZERO: C = C::new(0.0, 0.0);
const ONE: C = C::new(1.0, 0.0);
const NAN: C = C::new(f64::NAN, f64::NAN);
/// Rounds over all pairs after which Jacobi's methods give up.
const SWEEPS: usize = 60;

/// A matrix, row-major.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<C>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, values: Vec<C>) -> Self {
        Self { rows, columns, values }
    }

    fn identity(rows: usize, columns: usize) -> Self {
        let mut result = Self::new(rows, columns, vec![ZERO; rows * columns]);
        for k in 0..rows.min(columns) {
            *result.at(k, k) = ONE;
        }
        result
    }

    fn get(&self, row: usize, column: usize) -> C {
        self.values[row * self.columns + column]
    }

    fn at(&mut self, row: usize, column: usize) -> &mut C {
        &mut self.values[row * self.columns + column]
    }

    /// Transposed and conjugated.
    fn adjoint(&self) -> Self {
        let values =
            (0..self.columns).flat_map(|column| (0..self.rows).map(move |row| self.get(row, column).conj())).listed();
        Self::new(self.columns, self.rows, values)
    }

    fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.re.is_finite() && value.im.is_finite())
    }

    /// Columns p and q as [c p - s ē q, s e p + c q].
    fn rotate(&mut self, [p, q]: [usize; 2], c: f64, s: f64, e: C) {
        for row in 0..self.rows {
            let (x, y) = (self.get(row, p), self.get(row, q));
            *self.at(row, p) = x * c - y * e.conj() * s;
            *self.at(row, q) = x * e * s + y * c;
        }
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for column in 0..self.columns {
            self.values.swap(a * self.columns + column, b * self.columns + column);
        }
    }

    fn column_norm(&self, column: usize) -> f64 {
        let greatest = (0..self.rows).map(|row| self.get(row, column).norm()).fold(0.0, f64::max);
        if greatest == 0.0 || !greatest.is_finite() {
            return greatest;
        }
        greatest * (0..self.rows).map(|row| (self.get(row, column) / greatest).norm_sqr()).sum::<f64>().sqrt()
    }
}

/// The angle by which a pair is turned: c and s, of the diagonal's difference over twice the element beside it.
fn turn(ratio: f64) -> (f64, f64) {
    let t = 1.0_f64.copysign(ratio) / (ratio.abs() + ratio.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    (c, t * c)
}

/// Elimination with row exchanges, applied to `b` too: the upper triangle in `a`. The determinant's sign by the exchanges.
fn eliminate(a: &mut Matrix, b: &mut Matrix) -> f64 {
    let n = a.rows;
    let mut sign = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&x, &y| a.get(x, k).norm().total_cmp(&a.get(y, k).norm())).unwrap_or(k);
        if pivot != k {
            a.swap_rows(pivot, k);
            b.swap_rows(pivot, k);
            sign = -sign;
        }
        let head = a.get(k, k);
        if head == ZERO {
            continue;
        }
        for row in k + 1..n {
            let factor = a.get(row, k) / head;
            if factor == ZERO {
                continue;
            }
            for column in k..n {
                let above = a.get(k, column);
                *a.at(row, column) -= factor * above;
            }
            for column in 0..b.columns {
                let above = b.get(k, column);
                *b.at(row, column) -= factor * above;
            }
        }
    }
    sign
}

fn solve(mut a: Matrix, mut b: Matrix) -> Vec<C> {
    eliminate(&mut a, &mut b);
    if (0..a.rows).any(|k| a.get(k, k) == ZERO) {
        return vec![NAN; b.values.len()];
    }
    for column in 0..b.columns {
        for row in (0..a.rows).rev() {
            let rest: C = (row + 1..a.rows).map(|k| a.get(row, k) * b.get(k, column)).sum();
            *b.at(row, column) = (b.get(row, column) - rest) / a.get(row, row);
        }
    }
    b.values
}

fn det(mut a: Matrix) -> C {
    let mut nothing = Matrix::new(a.rows, 0, Vec::new());
    let sign = eliminate(&mut a, &mut nothing);
    (0..a.rows).map(|k| a.get(k, k)).fold(C::from(sign), |product, value| product * value)
}

fn slogdet(mut a: Matrix) -> Vec<C> {
    let mut nothing = Matrix::new(a.rows, 0, Vec::new());
    let mut sign = C::from(eliminate(&mut a, &mut nothing));
    let mut log = 0.0;
    for k in 0..a.rows {
        let value = a.get(k, k);
        let size = value.norm();
        log += size.ln();
        sign = if size == 0.0 { ZERO } else { sign * (value / size) };
    }
    vec![sign, C::from(log)]
}

fn cholesky(a: &Matrix) -> Vec<C> {
    let n = a.rows;
    let mut l = Matrix::new(n, n, vec![ZERO; n * n]);
    for row in 0..n {
        for column in 0..=row {
            let sum: C = (0..column).map(|k| l.get(row, k) * l.get(column, k).conj()).sum();
            let rest = a.get(row, column) - sum;
            if row != column {
                *l.at(row, column) = rest / l.get(column, column);
            } else if rest.re > 0.0 {
                *l.at(row, row) = C::from(rest.re.sqrt());
            } else {
                return vec![NAN; n * n];
            }
        }
    }
    l.values
}

/// Householder's reflections: Q with as many columns as asked for, and R.
fn qr(mut a: Matrix, columns: usize) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let mut vectors: Vec<Vec<C>> = Vec::new();
    let reflect = |of: &mut Matrix, v: &[C], from: usize, first: usize| {
        for column in first..of.columns {
            let inner: C = v.iter().enumerate().map(|(k, v)| v.conj() * of.get(from + k, column)).sum();
            for (k, v) in v.iter().enumerate() {
                *of.at(from + k, column) -= v * inner * 2.0;
            }
        }
    };
    for k in 0..m.min(n) {
        let mut v: Vec<C> = (k..m).map(|row| a.get(row, k)).listed();
        let greatest = v.iter().map(|value| value.norm()).fold(0.0, f64::max);
        let mut length = 0.0;
        if greatest > 0.0 && greatest.is_finite() {
            v.iter_mut().for_each(|value| *value /= greatest);
            let norm = v.iter().map(C::norm_sqr).sum::<f64>().sqrt();
            let phase = if v[0] == ZERO { ONE } else { v[0] / v[0].norm() };
            v[0] += phase * norm;
            length = v.iter().map(C::norm_sqr).sum::<f64>().sqrt();
        }
        if length > 0.0 {
            v.iter_mut().for_each(|value| *value /= length);
            reflect(&mut a, &v, k, k);
        } else {
            v.iter_mut().for_each(|value| *value = ZERO);
        }
        vectors.push(v);
    }
    let mut q = Matrix::identity(m, columns);
    for (k, v) in vectors.iter().enumerate().rev() {
        reflect(&mut q, v, k, 0);
    }
    let mut r = Matrix::new(columns, n, vec![ZERO; columns * n]);
    for row in 0..columns.min(m) {
        for column in row..n {
            *r.at(row, column) = a.get(row, column);
        }
    }
    (q, r)
}

/// Jacobi's method: the eigenvalues, ascending, and then the vectors as columns.
fn eigh(mut a: Matrix) -> Vec<C> {
    let n = a.rows;
    if !a.is_finite() {
        return vec![NAN; n + n * n];
    }
    for row in 0..n {
        for column in row + 1..n {
            *a.at(row, column) = a.get(column, row).conj();
        }
        a.at(row, row).im = 0.0;
    }
    let mut vectors = Matrix::identity(n, n);
    let size = a.values.iter().map(C::norm_sqr).sum::<f64>().sqrt();
    for _ in 0..SWEEPS {
        let mut off = 0.0_f64;
        for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
            let beside = a.get(p, q);
            let g = beside.norm();
            off = off.max(g);
            if g <= f64::MIN_POSITIVE || g <= size * 1e-18 {
                continue;
            }
            let (c, s) = turn((a.get(q, q).re - a.get(p, p).re) / (2.0 * g));
            let e = beside / g;
            a.rotate([p, q], c, s, e);
            for column in 0..n {
                let (x, y) = (a.get(p, column), a.get(q, column));
                *a.at(p, column) = x * c - y * e * s;
                *a.at(q, column) = x * e.conj() * s + y * c;
            }
            vectors.rotate([p, q], c, s, e);
        }
        if off <= size * 1e-17 {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).listed();
    order.order_by(|&x, &y| a.get(x, x).re.total_cmp(&a.get(y, y).re));
    let mut result: Vec<C> = order.iter().map(|&k| C::from(a.get(k, k).re)).listed();
    for row in 0..n {
        result.extend(order.iter().map(|&k| vectors.get(row, k)));
    }
    result
}

/// Columns of length 1 at right angles: those from `known` on are made up.
fn complete(u: &mut Matrix, known: &[bool]) {
    let m = u.rows;
    let mut done: Vec<usize> = (0..u.columns).filter(|&column| known[column]).listed();
    let mut next = 0;
    for column in (0..u.columns).filter(|&column| !known[column]) {
        while next < m {
            let mut v = vec![ZERO; m];
            v[next] = ONE;
            next += 1;
            // Twice, since the first leaves errors of the size of what it takes away.
            for _ in 0..2 {
                for &other in &done {
                    let inner: C = (0..m).map(|row| u.get(row, other).conj() * v[row]).sum();
                    for (row, value) in v.iter_mut().enumerate() {
                        *value -= u.get(row, other) * inner;
                    }
                }
            }
            let length = v.iter().map(C::norm_sqr).sum::<f64>().sqrt();
            if length > 0.5 / (m as f64).sqrt() {
                for (row, value) in v.iter().enumerate() {
                    *u.at(row, column) = value / length;
                }
                break;
            }
        }
        done.push(column);
    }
}

/// Jacobi's method from one side: U, the values, descending, and V as columns, of a matrix that is not wider than high.
fn singular(a: &Matrix, left: usize) -> (Matrix, Vec<f64>, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let (mut turned, mut v) = (a.clone(), Matrix::identity(n, n));
    for _ in 0..SWEEPS {
        let mut greatest = 0.0_f64;
        for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
            let (mut x, mut y, mut inner) = (0.0, 0.0, ZERO);
            for row in 0..m {
                let (a, b) = (turned.get(row, p), turned.get(row, q));
                x += a.norm_sqr();
                y += b.norm_sqr();
                inner += a.conj() * b;
            }
            let g = inner.norm();
            if g <= f64::MIN_POSITIVE || g <= 1e-16 * (x * y).sqrt() {
                continue;
            }
            greatest = greatest.max(g / (x * y).sqrt());
            let (c, s) = turn((y - x) / (2.0 * g));
            turned.rotate([p, q], c, s, inner / g);
            v.rotate([p, q], c, s, inner / g);
        }
        if greatest < 1e-15 {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|column| turned.column_norm(column)).listed();
    let mut order: Vec<usize> = (0..n).listed();
    order.order_by(|&x, &y| norms[y].total_cmp(&norms[x]));
    let mut u = Matrix::new(m, left, vec![ZERO; m * left]);
    let mut sorted_v = Matrix::new(n, n, vec![ZERO; n * n]);
    let limit = norms.iter().copied().fold(0.0, f64::max) * 1e-15;
    let mut known = vec![false; left];
    for (place, &from) in order.iter().enumerate() {
        known[place] = norms[from] > limit;
        for row in 0..m {
            if known[place] {
                *u.at(row, place) = turned.get(row, from) / norms[from];
            }
        }
        for row in 0..n {
            *sorted_v.at(row, place) = v.get(row, from);
        }
    }
    complete(&mut u, &known);
    (u, order.into_iter().map(|from| norms[from]).listed(), sorted_v)
}

fn svd(a: &Matrix, full: bool) -> Vec<C> {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (left, right) = if full { (m, n) } else { (k, k) };
    if !a.is_finite() {
        return vec![NAN; m * left + k + right * n];
    }
    // Scaled by a power of two, so that squares stay in range.
    let greatest = a.values.iter().map(|value| value.norm()).fold(0.0, f64::max);
    let scale = if greatest > 0.0 { greatest.log2().floor().exp2() } else { 1.0 };
    let scaled = Matrix::new(m, n, a.values.iter().map(|value| value / scale).listed());
    let (u, values, vh) = if m >= n {
        let (u, values, v) = singular(&scaled, left);
        (u, values, v.adjoint())
    } else {
        let (v, values, u) = singular(&scaled.adjoint(), right);
        (u, values, v.adjoint())
    };
    let values = values.into_iter().map(|value| C::from(value * scale));
    u.values.into_iter().chain(values).chain(vh.values).listed()
}

impl Factorisation {
    /// Returns a number of its own.
    fn number(self) -> usize {
        match self {
            Self::Solve => 0,
            Self::Det => 1,
            Self::SlogDet => 2,
            Self::Cholesky => 3,
            Self::Eigh => 4,
            Self::Qr(complete) => 5 + usize::from(complete),
            Self::Svd(full) => 7 + usize::from(full),
        }
    }

    /// Returns the shape of each part of the result, and whether it is real, for matrices (m, n) and a right side with `columns`.
    fn parts(self, [m, n]: [usize; 2], columns: usize) -> Vec<(Vec<usize>, bool)> {
        let k = m.min(n);
        match self {
            Self::Solve => vec![(vec![n, columns], false)],
            Self::Det => vec![(vec![], false)],
            Self::SlogDet => vec![(vec![], false), (vec![], true)],
            Self::Cholesky => vec![(vec![n, n], false)],
            Self::Qr(complete) => {
                let columns = if complete { m } else { k };
                vec![(vec![m, columns], false), (vec![columns, n], false)]
            }
            Self::Eigh => vec![(vec![n], true), (vec![n, n], false)],
            Self::Svd(full) => {
                let (left, right) = if full { (m, n) } else { (k, k) };
                vec![(vec![m, left], false), (vec![k], true), (vec![right, n], false)]
            }
        }
    }

    fn of(self, a: Matrix, b: Option<Matrix>) -> Vec<C> {
        match self {
            Self::Solve => {
                let n = a.rows;
                solve(a, b.unwrap_or_else(|| Matrix::identity(n, n)))
            }
            Self::Det => vec![det(a)],
            Self::SlogDet => slogdet(a),
            Self::Cholesky => cholesky(&a),
            Self::Qr(complete) => {
                let columns = if complete { a.rows } else { a.rows.min(a.columns) };
                let (q, r) = qr(a, columns);
                q.values.into_iter().chain(r.values).listed()
            }
            Self::Eigh => eigh(a),
            Self::Svd(full) => svd(&a, full),
        }
    }
}

/// A factorisation of each matrix (…, m, n), with a right side (…, n, columns) where there is one: the parts of the result. Those that are
/// real for complex matrices too have the dtype of their parts.
pub(in crate::ops) fn factorised(which: Factorisation, a: &Arc<Typed>, b: Option<&Arc<Typed>>) -> Vec<Arc<Typed>> {
    let rank = a.shape.len();
    let (batch, sides @ [m, n]) = (a.shape[..rank - 2].to_vec(), [a.shape[rank - 2], a.shape[rank - 1]]);
    let columns = b.map_or(n, |b| b.shape[rank - 1]);
    let parts = which.parts(sides, columns);
    let sizes: Vec<usize> = parts.iter().map(|(shape, _)| shape.iter().product()).listed();
    let count: usize = batch.iter().product();
    let has_right = b.is_some();
    let inputs = [Some(a), b].into_iter().flatten().cloned().listed();
    let size = sizes.iter().sum();
    let key = vec![which.number(), m, n, columns];
    let all = recorded(("factorisation", key), inputs, vec![count, size], a.dtype, move |inputs, stop| {
        #[cfg(all(feature = "linalg", not(target_arch = "wasm32")))]
        if m * n > 0 {
            return super::factors::all(which, inputs, sides, (columns, size), stop);
        }
        let mut inputs = inputs.into_iter();
        let a = inputs.next();
        let is_real = matches!(a, Some(Values::Reals(_)));
        let a = a.map(Values::complexes).unwrap_or_default();
        let b = inputs.next().map(Values::complexes).unwrap_or_default();
        let result: Vec<C> = (0..count)
            .take_while(|_| !stop())
            .flat_map(|batch| {
                let matrix = a[batch * m * n..(batch + 1) * m * n].to_vec();
                let right = has_right
                    .then(|| Matrix::new(n, columns, b[batch * n * columns..(batch + 1) * n * columns].to_vec()));
                which.of(Matrix::new(m, n, matrix), right)
            })
            .listed();
        if is_real {
            Values::Reals(result.into_iter().map(|value| value.re).listed())
        } else {
            Values::Complexes(result)
        }
    });
    let mut from = 0;
    parts
        .into_iter()
        .zip(sizes)
        .map(|((shape, is_real), size)| {
            let part = sliced(&all, &[0..count, from..from + size], &[1, 1]);
            from += size;
            let part = reshaped(&part, &[&batch[..], &shape].concat());
            let is_complex = matches!(a.dtype, DType::Complex64 | DType::Complex128);
            if is_real && is_complex {
                let dtype = part_of(part.dtype);
                return Typed::new(Node::Unary(Unary::Real, part.clone()), part.shape.clone(), dtype);
            }
            part
        })
        .listed()
}
