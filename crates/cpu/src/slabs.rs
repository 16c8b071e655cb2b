//! The two rules that all products share: from which size on threads pay, and how a product is cut into slabs, between which a timeout or a cancellation
//! can stop it.

use std::ops::Range;

use crate::spmd::{Limits, Stopped};

/// Products below this take one thread: waking another costs more.
pub(super) const THREADS_PAY: usize = 1 << 20;

/// Multiplications between two looks at what stops a product: some 20 ms.
const SLAB: usize = 1 << 31;
/// A slab has at least the area of this square: smaller ones take longer to pack than to multiply.
const SLAB_SIDE: usize = 256;

/// Rows and columns of the slabs that a product is cut into where something may stop it. Each slab packs its rows and its columns anew, so
/// slabs are as square as they can be, and of nearly equal size.
fn slab([m, n, k]: [usize; 3]) -> [usize; 2] {
    let area = (SLAB / k.max(1)).max(SLAB_SIDE * SLAB_SIDE);
    let most = |other: usize| area / other.clamp(1, area.isqrt());
    let part = |whole: usize, most: usize| match whole.div_ceil(most) {
        0 | 1 => whole,
        parts => whole.div_ceil(parts).next_multiple_of(16),
    };
    [part(m, most(n)), part(n, most(m))]
}

/// A product by slabs of rows and columns, between which it can be stopped.
pub(super) fn by_slabs(
    [m, n, k]: [usize; 3],
    limits: &Limits<'_>,
    work: impl Fn(Range<usize>, Range<usize>),
) -> Result<(), Stopped> {
    let [rows, columns] = if limits.are_set() { slab([m, n, k]) } else { [m, n] };
    for column in (0..n).step_by(columns) {
        for row in (0..m).step_by(rows) {
            limits.begin().check()?;
            work(row..m.min(row + rows), column..n.min(column + columns));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SLAB, slab};

    #[test]
    fn slabs_are_square_and_no_longer_than_they_may_be() {
        for [m, n, k] in [
            [2048, 2048, 2048],
            [4096, 4096, 4096],
            [100_000, 64, 4096],
            [64, 100_000, 4096],
            [4097, 3000, 11_008],
            [513, 515, 9_000_001],
        ] {
            let [rows, columns] = slab([m, n, k]);
            assert!(rows * columns <= (SLAB / k).max(256 * 256) * 5 / 4, "{m} x {n} x {k}: {rows} x {columns}");
            // What is packed for all slabs, beside what a few large ones would pack.
            let packed = m.div_ceil(rows) * n.div_ceil(columns) * (rows + columns);
            let side = (SLAB / k).max(256 * 256).isqrt();
            let least = (m.div_ceil(side) * n).min(m * n.div_ceil(side)) + m.max(n);
            assert!(packed <= 3 * least, "{m} x {n} x {k}: {rows} x {columns} pack {packed}, not {least}");
        }
        assert_eq!(slab([1024, 1024, 1024]), [1024, 1024], "what takes a moment is not cut");
        assert_eq!(slab([7, 5, 3]), [7, 5]);
    }
}
