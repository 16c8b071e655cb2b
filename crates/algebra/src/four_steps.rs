//! Long transforms of fields of 31 bits, by lanes (Bailey, 1990): the values are a matrix, whose columns are transformed, multiplied by powers of the
//! root and written as rows; then columns again, where they are. Sixteen columns go side by side, so that no vector's elements meet, and the result
//! is in order.

use super::field::powers;
use super::lanes::{COUNT, Lanes, Work, run as by_lanes};
use super::ntt::{Transform, bit_reversed};
use super::parallel;
use super::small::Montgomery31;
use cantus_base::instructions::InstructionSet;

/// The least length is 2^this: sixteen columns of sixteen.
pub(super) const LEAST: u32 = 8;
/// Vectors that the first cache holds beside others.
const NEAR: usize = 256;
/// The longest rows that have one thread: two would not pay; and where there are several: both steps find them in its cache.
const SHORT: usize = 1 << 13;
const ALONE: usize = 1 << 17;

/// Transforms rows, by the lanes of an instruction set that the processor has.
pub(super) fn run<F: Montgomery31>(set: InstructionSet, from: &[F], to: &mut [F], transform: Transform<F>) {
    let length = 1 << transform.log;
    let tables = &Tables::new(transform);
    let height = 1 << tables.height;
    // Sixteen columns become sixteen rows of the result.
    let columns =
        |from: &[F], place: usize, to: &mut [F]| by_lanes(set, Columns { tables, from, first: COUNT * place, to });
    let rows = |values, place| by_lanes(set, Rows { tables, values, first: COUNT * place });
    if length <= if to.len() > length { ALONE } else { SHORT } {
        parallel::for_chunks(to, length, |place, to| {
            let from = &from[place * length..][..length];
            to.chunks_mut(COUNT * height).enumerate().for_each(|(place, to)| columns(from, place, to));
            (0..height / COUNT).for_each(|place| rows(Values::new(to), place));
        });
        return;
    }
    for (from, to) in from.chunks_exact(length).zip(to.chunks_exact_mut(length)) {
        parallel::for_chunks(to, COUNT * height, |place, to| columns(from, place, to));
        let values = Values::new(to);
        parallel::each(height / COUNT, |place| rows(values, place));
    }
}

/// Powers that all columns share.
struct Tables<F> {
    /// Logarithms of a column's length in the first step, and of how many there are: a column's length in the second.
    height: u32,
    width: u32,
    /// Roots of the two lengths.
    roots: [Vec<F>; 2],
    /// Factors of the first step's rows, and of the second's results.
    before: Option<Vec<F>>,
    after: Option<Vec<F>>,
    /// The factors of each column between the steps, for row 0 of the first step's result, and the further factor of each row.
    between: [Vec<F>; 2],
}

impl<F: Montgomery31> Tables<F> {
    fn new(transform: Transform<F>) -> Self {
        let Transform { log, root, scale, before, after } = transform;
        let height = log / 2;
        let width = log - height;
        let roots = |log: u32, other: u32| powers(root.pow(&[1 << other]), F::ONE, 1 << (log - 1));
        let factors =
            |base: F, log: u32, other: u32| (base != F::ONE).then(|| powers(base.pow(&[1 << other]), F::ONE, 1 << log));
        Self {
            height,
            width,
            roots: [roots(height, width), roots(width, height)],
            before: factors(before, height, width),
            after: factors(after, width, height),
            between: [powers(before, scale, 1 << width), powers(root, after, 1 << width)],
        }
    }
}

/// The first step of sixteen columns.
struct Columns<'a, F> {
    tables: &'a Tables<F>,
    from: &'a [F],
    /// The first of them.
    first: usize,
    /// Column by column.
    to: &'a mut [F],
}

impl<F: Montgomery31> Work<F> for Columns<'_, F> {
    #[inline(always)]
    fn run<V: Lanes<Element = F>>(self) {
        let Tables { height: log, width, roots, before, between, .. } = self.tables;
        let (log, width, height) = (*log, 1_usize << width, 1_usize << log);
        let mut column = Vec::with_capacity(height);
        // By loops: what iterators call is not inlined here.
        for (place, row) in self.from.chunks_exact(width).enumerate() {
            let row = V::load(sixteen(row, self.first));
            column.push(match before {
                Some(before) => row.scaled(V::factor(before[place])),
                None => row,
            });
        }
        transform(&mut column, &roots[0]);
        let mut start = V::load(sixteen(&between[0], self.first));
        let step = V::load(sixteen(&between[1], self.first));
        let mut steps = [V::splat(F::ONE); COUNT];
        for i in 1..COUNT {
            steps[i] = steps[i - 1].mul(step);
        }
        let leap = steps[COUNT - 1].mul(step);
        for first in (0..height).step_by(COUNT) {
            let mut square = steps;
            for (i, value) in square.iter_mut().enumerate() {
                *value = column[bit_reversed(first + i, log)].mul(value.mul(start));
            }
            start = start.mul(leap);
            V::transpose(&mut square);
            for (value, to) in square.into_iter().zip(self.to.chunks_exact_mut(height)) {
                value.store(sixteen_mut(to, first));
            }
        }
    }
}

/// Memory that tasks share, each of which has columns of its own.
#[derive(Clone, Copy)]
struct Values<F>(*mut F, usize);

// SAFETY: a pointer to elements, which are `Send`; who follows it says why no other does.
unsafe impl<F: Montgomery31> Send for Values<F> {}
// SAFETY: a shared `Values` gives out elements by an `unsafe` function alone.
unsafe impl<F: Montgomery31> Sync for Values<F> {}

impl<F> Values<F> {
    fn new(values: &mut [F]) -> Self {
        Self(values.as_mut_ptr(), values.len())
    }

    /// Sixteen from `at` on.
    ///
    /// # Safety
    /// The memory lives, and nobody else has these.
    #[inline(always)]
    unsafe fn sixteen<'a>(self, at: usize) -> &'a mut [F; COUNT] {
        assert!(at + COUNT <= self.1);
        // SAFETY: within the memory, which lives, and nobody else has these (this function's contract).
        unsafe { &mut *self.0.add(at).cast() }
    }
}

/// The second step of sixteen of the first one's results.
struct Rows<'a, F> {
    tables: &'a Tables<F>,
    values: Values<F>,
    /// The first of them.
    first: usize,
}

impl<F: Montgomery31> Work<F> for Rows<'_, F> {
    #[inline(always)]
    fn run<V: Lanes<Element = F>>(self) {
        let Tables { height, width: log, roots, after, .. } = self.tables;
        let (log, width) = (*log, 1_usize << log);
        // SAFETY: `run` waits for its tasks, and these columns are this one's.
        let at = |row: usize| unsafe { self.values.sixteen((row << height) + self.first) };
        let mut column = Vec::with_capacity(width);
        for row in 0..width {
            column.push(V::load(at(row)));
        }
        transform(&mut column, &roots[1]);
        for row in 0..width {
            let mut value = column[bit_reversed(row, log)];
            if let Some(after) = after {
                value = value.scaled(V::factor(after[row]));
            }
            value.store(at(row));
        }
    }
}

#[inline(always)]
fn sixteen<F>(values: &[F], at: usize) -> &[F; COUNT] {
    let (whole, _) = values[at..].as_chunks();
    &whole[0]
}

#[inline(always)]
fn sixteen_mut<F>(values: &mut [F], at: usize) -> &mut [F; COUNT] {
    let (whole, _) = values[at..].as_chunks_mut();
    &mut whole[0]
}

/// Transforms a column of vectors; the result is in the order of reversed bits. Two halvings at a time, the later ones of what fits the first cache.
#[inline(always)]
fn transform<V: Lanes<Element: Montgomery31>>(column: &mut [V], roots: &[V::Element]) {
    let length = column.len();
    let mut span = length;
    while span > NEAR {
        quarters(column, span, roots);
        span /= 4;
    }
    let near = span;
    for part in column.chunks_exact_mut(near) {
        let mut span = near;
        while span > 4 {
            quarters(part, span, roots);
            span /= 4;
        }
        let fourth = V::factor(roots[roots.len() / 2]);
        if span == 4 {
            for four in part.as_chunks_mut::<4>().0 {
                let [a, b, c, d] = *four;
                let (a, c) = (a.add(c), a.sub(c));
                let (b, d) = b.butterfly(d, fourth);
                *four = [a.add(b), a.sub(b), c.add(d), c.sub(d)];
            }
        } else {
            for two in part.as_chunks_mut::<2>().0 {
                let [a, b] = *two;
                *two = [a.add(b), a.sub(b)];
            }
        }
    }
}

/// Two halvings of each `span` vectors.
#[inline(always)]
fn quarters<V: Lanes<Element: Montgomery31>>(column: &mut [V], span: usize, roots: &[V::Element]) {
    let quarter = span / 4;
    let step = 2 * roots.len() / span;
    for part in column.chunks_exact_mut(span) {
        let (low, high) = part.split_at_mut(2 * quarter);
        let (a, b) = low.split_at_mut(quarter);
        let (c, d) = high.split_at_mut(quarter);
        for i in 0..quarter {
            let of = |place: usize| V::factor(roots[place * step]);
            let (first, third) = a[i].butterfly(c[i], of(i));
            let (second, fourth) = b[i].butterfly(d[i], of(i + quarter));
            (a[i], b[i]) = first.butterfly(second, of(2 * i));
            (c[i], d[i]) = third.butterfly(fourth, of(2 * i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::tests::{elements, sets};
    use super::super::ntt::by_halves;
    use super::super::small::{BabyBear, KoalaBear};
    use super::*;

    fn all<F: Montgomery31>() {
        for log in LEAST..=15 {
            // Several rows, of which each has one thread, or one.
            let rows = if log % 2 == 0 { 3 } else { 1 };
            let from = elements::<F>(rows << log, u64::from(log));
            for (inverse, shift) in [(false, F::ONE), (true, F::ONE), (false, F::from_u64(31)), (true, -F::from_u64(5))]
            {
                let of = |run: &dyn Fn(&mut [F], Transform<F>)| {
                    let mut to = vec![F::ONE; from.len()];
                    run(&mut to, Transform::new(log, inverse, shift).expect("there is one"));
                    to
                };
                let expected = of(&|to, transform| by_halves(&from, to, transform));
                for set in sets() {
                    let values = of(&|to, transform| run(set, &from, to, transform));
                    assert!(values == expected, "2^{log} of {}, inverse {inverse}, shift {shift:?}, {set:?}", F::KIND);
                }
            }
        }
    }

    #[test]
    fn transforms_by_lanes_are_those_by_halves() {
        all::<BabyBear>();
        all::<KoalaBear>();
    }
}
