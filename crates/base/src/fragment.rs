//! The layout of a cooperative matrix over the 32 lanes of a subgroup. Each lane holds a fragment of 2 or 8 elements, as in `mma` of CUDA's
//! PTX. Fragments are values like small matrices of WGSL: `vec2` of a matrix of 8 x 8, `mat2x4` of one of 16 x 16.
//!
//! Element `e` of lane `l` has the row `l / 4 + 8 (e / 2 % 2)` and the column `2 (l % 4) + e % 2 + 8 (e / 4)`. In the right factor of a product rows
//! change faster: its row is `2 (l % 4) + e % 2 + 8 (e / 2 % 2)`, its column `l / 4 + 8 (e / 4)`.

use naga::{CooperativeRole, Scalar, TypeInner};

/// Lanes that share a matrix.
pub const LANES: u32 = 32;

/// A cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Rows, and columns: 8 or 16.
    pub size: u32,
    pub scalar: Scalar,
    pub role: CooperativeRole,
}

impl Fragment {
    /// Returns the fragment of a type; `None` for other types, and for matrices that are not square.
    pub fn of(inner: &TypeInner) -> Option<Self> {
        match *inner {
            TypeInner::CooperativeMatrix { columns, rows, scalar, role } if columns == rows => {
                Some(Self { size: columns as u32, scalar, role })
            }
            _ => None,
        }
    }

    /// Returns the elements in each lane.
    pub fn elements(self) -> u32 {
        self.size * self.size / LANES
    }

    /// Returns the offset of an element from its lane's row and column.
    pub fn place(self, element: u32) -> (u32, u32) {
        let (pair, half, other) = (element % 2, 8 * (element / 2 % 2), 8 * (element / 4));
        match self.role {
            CooperativeRole::A | CooperativeRole::C => (half, pair + other),
            CooperativeRole::B => (pair + half, other),
        }
    }

    /// Returns whether a lane's row is `l / 4` and its column `2 (l % 4)`, and not the other way about.
    pub fn rows_are_major(self) -> bool {
        self.role != CooperativeRole::B
    }

    /// Returns whether this is `c`, and `a` and `b` can be multiplied into it.
    pub fn takes(self, a: Self, b: Self) -> bool {
        use CooperativeRole as Role;
        (a.role, b.role, self.role) == (Role::A, Role::B, Role::C)
            && a.size == self.size
            && b.size == self.size
            && a.scalar == b.scalar
    }
}

/// A shuffle of a product: what a lane reads in the step of a row of the right factor.
pub struct Read {
    /// The element.
    pub element: u32,
    /// The offset of the first lane to read from: `4 (l / 4)` for the left factor, `8 (l % 4)` for the right one.
    pub lane: u32,
}

/// Column `k` of the left factor, in the rows of half `half`.
pub fn left(k: u32, half: u32) -> Read {
    Read { element: k % 2 + 2 * half + 4 * (k / 8), lane: k % 8 / 2 }
}

/// Row `k` of the right factor, in the columns of parity `pair` and of half `half`.
pub fn right(k: u32, pair: u32, half: u32) -> Read {
    Read { element: k % 2 + 2 * (k / 8) + 4 * half, lane: 4 * pair + k % 8 / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row and column of an element of a lane.
    fn at(fragment: Fragment, lane: u32, element: u32) -> (u32, u32) {
        let (row, column) = fragment.place(element);
        let (major, minor) = (lane / 4, lane % 4 * 2);
        if fragment.rows_are_major() { (major + row, minor + column) } else { (minor + row, major + column) }
    }

    #[test]
    fn every_element_is_held_once_and_products_read_what_they_multiply() {
        for size in [8, 16] {
            let of = |role| Fragment { size, scalar: Scalar::F16, role };
            let (a, b, c) = (of(CooperativeRole::A), of(CooperativeRole::B), of(CooperativeRole::C));
            assert!(c.takes(a, b) && !c.takes(b, a) && !a.takes(a, b));
            for fragment in [a, b, c] {
                let mut held: Vec<(u32, u32)> = Vec::new();
                for lane in 0..LANES {
                    held.extend((0..fragment.elements()).map(|element| at(fragment, lane, element)));
                }
                held.sort_unstable();
                let all: Vec<(u32, u32)> =
                    (0..size).flat_map(|row| (0..size).map(move |column| (row, column))).collect();
                assert_eq!(held, all);
            }
            for (lane, element) in (0..LANES).flat_map(|lane| (0..c.elements()).map(move |element| (lane, element))) {
                let (row, column) = at(c, lane, element);
                for k in 0..size {
                    let from = left(k, element / 2 % 2);
                    assert_eq!(at(a, lane / 4 * 4 + from.lane, from.element), (row, k));
                    let from = right(k, element % 2, element / 4);
                    assert_eq!(at(b, lane % 4 * 8 + from.lane, from.element), (k, column));
                }
            }
        }
    }
}
