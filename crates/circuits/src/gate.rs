//! Gates: the names that OpenQASM's and Qiskit's libraries have, and the matrices that define them, with Qiskit's phases. Everything else takes
//! its matrices from here: the planner, the pictures, the gradient.

use num_complex::Complex;

use std::f64::consts::FRAC_1_SQRT_2;

pub(crate) type C = Complex<f64>;

/// A square matrix by rows; its side is a power of two. Bit k of an index is the k-th qubit that the gate acts on.
pub(crate) type Matrix = Vec<C>;

/// The most qubits that a gate's matrix spans, without its controls.
pub const MOST_TARGETS: usize = 5;

const fn c(re: f64, im: f64) -> C {
    Complex { re, im }
}

pub(crate) const ZERO: C = c(0.0, 0.0);
pub(crate) const ONE: C = c(1.0, 0.0);
pub(crate) const I: C = c(0.0, 1.0);

/// e^(i angle).
pub(crate) fn phase(angle: f64) -> C {
    c(angle.cos(), angle.sin())
}

/// The gates that have matrices of their own. Others are these with controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A global phase e^(iθ), on no qubit.
    GlobalPhase,
    /// Nothing.
    Identity,
    /// Pauli's X.
    X,
    /// Pauli's Y.
    Y,
    /// Pauli's Z.
    Z,
    /// Hadamard's gate.
    H,
    /// The square root of Z.
    S,
    /// The inverse of S.
    Sdg,
    /// The square root of S.
    T,
    /// The inverse of T.
    Tdg,
    /// The square root of X.
    Sx,
    /// The inverse of the square root of X.
    Sxdg,
    /// A rotation about x: e^(-iθX/2).
    Rx,
    /// A rotation about y: e^(-iθY/2).
    Ry,
    /// A rotation about z: e^(-iθZ/2).
    Rz,
    /// A phase: diag(1, e^(iθ)).
    P,
    /// A rotation by θ about an axis at the angle φ in the plane of x and y.
    R,
    /// U(π/2, φ, λ).
    U2,
    /// Any gate of one qubit up to a phase: [[cos θ/2, -e^(iλ) sin θ/2], [e^(iφ) sin θ/2, e^(i(φ+λ)) cos θ/2]], as Qiskit has it.
    U,
    /// e^(iγ) U(θ, φ, λ).
    PhasedU,
    /// Two qubits change places.
    Swap,
    /// They change places, and unequal ones get a phase of i.
    ISwap,
    /// e^(-iθ/2 X⊗X).
    Rxx,
    /// e^(-iθ/2 Y⊗Y).
    Ryy,
    /// e^(-iθ/2 Z⊗Z).
    Rzz,
    /// e^(-iθ/2 X⊗Z), with Z on the first qubit.
    Rzx,
    /// The echoed cross resonance: (I⊗X - X⊗Y) / √2, with the last factor on the first qubit.
    Ecr,
    /// Two CX in turn, the second the other way round.
    Dcx,
    /// A matrix of the circuit's.
    Matrix,
}

impl Kind {
    /// The number of qubits of the matrix; none for a matrix of the circuit's.
    #[must_use]
    pub fn targets(self) -> usize {
        match self {
            Self::GlobalPhase | Self::Matrix => 0,
            Self::Swap | Self::ISwap | Self::Rxx | Self::Ryy | Self::Rzz | Self::Rzx | Self::Ecr | Self::Dcx => 2,
            _ => 1,
        }
    }

    /// The number of angles.
    #[must_use]
    pub fn angles(self) -> usize {
        match self {
            Self::Rx | Self::Ry | Self::Rz | Self::P | Self::GlobalPhase => 1,
            Self::Rxx | Self::Ryy | Self::Rzz | Self::Rzx => 1,
            Self::R | Self::U2 => 2,
            Self::U => 3,
            Self::PhasedU => 4,
            _ => 0,
        }
    }

    /// True if the matrix is diagonal for all angles.
    pub(crate) fn is_diagonal(self) -> bool {
        use Kind::{GlobalPhase, Identity, P, Rz, Rzz, S, Sdg, T, Tdg, Z};
        matches!(self, GlobalPhase | Identity | Z | S | Sdg | T | Tdg | Rz | P | Rzz)
    }

    /// Its name in pictures.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::GlobalPhase => "gphase",
            Self::Identity => "I",
            Self::X => "X",
            Self::Y => "Y",
            Self::Z => "Z",
            Self::H => "H",
            Self::S => "S",
            Self::Sdg => "S†",
            Self::T => "T",
            Self::Tdg => "T†",
            Self::Sx => "√X",
            Self::Sxdg => "√X†",
            Self::Rx => "Rx",
            Self::Ry => "Ry",
            Self::Rz => "Rz",
            Self::P => "P",
            Self::R => "R",
            Self::U2 | Self::U | Self::PhasedU => "U",
            Self::Swap => "swap",
            Self::ISwap => "iswap",
            Self::Rxx => "Rxx",
            Self::Ryy => "Ryy",
            Self::Rzz => "Rzz",
            Self::Rzx => "Rzx",
            Self::Ecr => "Ecr",
            Self::Dcx => "Dcx",
            Self::Matrix => "matrix",
        }
    }

    /// The matrix for angles.
    pub(crate) fn matrix(self, angles: &[f64]) -> Matrix {
        let angle = |place: usize| angles.get(place).copied().unwrap_or(f64::NAN);
        let (cos, sin) = ((angle(0) / 2.0).cos(), (angle(0) / 2.0).sin());
        let r = FRAC_1_SQRT_2;
        let u = |theta: f64, phi: f64, lambda: f64, gamma: f64| {
            let (cos, sin) = ((theta / 2.0).cos(), (theta / 2.0).sin());
            vec![
                phase(gamma) * cos,
                -phase(gamma + lambda) * sin,
                phase(gamma + phi) * sin,
                phase(gamma + phi + lambda) * cos,
            ]
        };
        let diagonal = |entries: &[C]| {
            let side = entries.len();
            let mut matrix = vec![ZERO; side * side];
            for (place, entry) in entries.iter().enumerate() {
                matrix[place * (side + 1)] = *entry;
            }
            matrix
        };
        // The places of a matrix that are not zero.
        let sparse = |places: &[(usize, usize, C)]| {
            let mut matrix = vec![ZERO; 16];
            for (row, column, entry) in places {
                matrix[4 * row + column] = *entry;
            }
            matrix
        };
        let half = angle(0) / 2.0;
        match self {
            Self::GlobalPhase => vec![phase(angle(0))],
            Self::Identity | Self::Matrix => diagonal(&[ONE, ONE]),
            Self::X => vec![ZERO, ONE, ONE, ZERO],
            Self::Y => vec![ZERO, -I, I, ZERO],
            Self::Z => diagonal(&[ONE, -ONE]),
            Self::H => vec![c(r, 0.0), c(r, 0.0), c(r, 0.0), c(-r, 0.0)],
            Self::S => diagonal(&[ONE, I]),
            Self::Sdg => diagonal(&[ONE, -I]),
            Self::T => diagonal(&[ONE, c(r, r)]),
            Self::Tdg => diagonal(&[ONE, c(r, -r)]),
            Self::Sx => vec![c(0.5, 0.5), c(0.5, -0.5), c(0.5, -0.5), c(0.5, 0.5)],
            Self::Sxdg => vec![c(0.5, -0.5), c(0.5, 0.5), c(0.5, 0.5), c(0.5, -0.5)],
            Self::Rx => vec![c(cos, 0.0), c(0.0, -sin), c(0.0, -sin), c(cos, 0.0)],
            Self::Ry => vec![c(cos, 0.0), c(-sin, 0.0), c(sin, 0.0), c(cos, 0.0)],
            Self::Rz => diagonal(&[phase(-half), phase(half)]),
            Self::P => diagonal(&[ONE, phase(angle(0))]),
            Self::R => {
                vec![c(cos, 0.0), -I * phase(-angle(1)) * sin, -I * phase(angle(1)) * sin, c(cos, 0.0)]
            }
            Self::U2 => u(std::f64::consts::FRAC_PI_2, angle(0), angle(1), 0.0),
            Self::U => u(angle(0), angle(1), angle(2), 0.0),
            Self::PhasedU => u(angle(0), angle(1), angle(2), angle(3)),
            Self::Swap => sparse(&[(0, 0, ONE), (1, 2, ONE), (2, 1, ONE), (3, 3, ONE)]),
            Self::ISwap => sparse(&[(0, 0, ONE), (1, 2, I), (2, 1, I), (3, 3, ONE)]),
            Self::Rxx => {
                let mut matrix = diagonal(&[c(cos, 0.0); 4]);
                for place in 0..4 {
                    matrix[4 * place + 3 - place] = c(0.0, -sin);
                }
                matrix
            }
            Self::Ryy => {
                let mut matrix = diagonal(&[c(cos, 0.0); 4]);
                for (place, sign) in [1.0, -1.0, -1.0, 1.0].into_iter().enumerate() {
                    matrix[4 * place + 3 - place] = c(0.0, sign * sin);
                }
                matrix
            }
            Self::Rzz => diagonal(&[phase(-half), phase(half), phase(half), phase(-half)]),
            Self::Rzx => {
                let (less, more) = (c(0.0, -sin), c(0.0, sin));
                let mut matrix = diagonal(&[c(cos, 0.0); 4]);
                for (row, column, entry) in [(0, 2, less), (2, 0, less), (1, 3, more), (3, 1, more)] {
                    matrix[4 * row + column] = entry;
                }
                matrix
            }
            Self::Ecr => {
                let (one, more, less) = (c(r, 0.0), c(0.0, r), c(0.0, -r));
                let (right, left) =
                    ([(0, 1, one), (1, 0, one), (2, 3, one), (3, 2, one)], [(0, 3, more), (1, 2, less)]);
                let lower = [(2, 1, more), (3, 0, less)];
                sparse(&[&right[..], &left, &lower].concat())
            }
            Self::Dcx => sparse(&[(0, 0, ONE), (1, 3, ONE), (2, 1, ONE), (3, 2, ONE)]),
        }
    }

    /// The derivative of the matrix by one of its angles.
    pub(crate) fn derivative(self, angles: &[f64], by: usize) -> Matrix {
        let angle = |place: usize| angles.get(place).copied().unwrap_or(f64::NAN);
        let times = |factor: C, matrix: Matrix| matrix.into_iter().map(|entry| factor * entry).collect::<Matrix>();
        let without = |keep: [f64; 4]| {
            let whole = self.matrix(angles);
            whole.into_iter().zip(keep).map(|(entry, factor)| I * entry * factor).collect::<Matrix>()
        };
        match (self, by) {
            (Self::GlobalPhase, _) | (Self::PhasedU, 3) => times(I, self.matrix(angles)),
            (Self::P, _) => vec![ZERO, ZERO, ZERO, I * phase(angle(0))],
            // Rows and columns of U whose phase has the angle.
            (Self::U2, 0) | (Self::U | Self::PhasedU, 1) => without([0.0, 0.0, 1.0, 1.0]),
            (Self::U2, _) | (Self::U | Self::PhasedU, 2) => without([0.0, 1.0, 0.0, 1.0]),
            (Self::R, 1) => without([0.0, -1.0, 1.0, 0.0]),
            // The rest turns by half of its first angle: half a turn further on is the derivative, doubled.
            _ => {
                let mut moved = angles.to_vec();
                if let Some(first) = moved.first_mut() {
                    *first += std::f64::consts::PI;
                }
                times(c(0.5, 0.0), self.matrix(&moved))
            }
        }
    }
}

/// A gate by name: what it is, and the number of its controls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub name: &'static str,
    pub kind: Kind,
    pub controls: usize,
}

macro_rules! named {
    ($($name:literal $kind:ident $controls:literal;)*) => {
        &[$(Named { name: $name, kind: Kind::$kind, controls: $controls },)*]
    };
}

/// The gates of OpenQASM's and Qiskit's libraries.
pub(crate) const NAMED: &[Named] = named! {
    "gphase" GlobalPhase 0; "id" Identity 0; "u0" Identity 0; "x" X 0; "y" Y 0; "z" Z 0; "h" H 0; "s" S 0; "sdg" Sdg 0; "t" T 0; "tdg" Tdg 0;
    "sx" Sx 0; "sxdg" Sxdg 0; "rx" Rx 0; "ry" Ry 0; "rz" Rz 0; "p" P 0; "phase" P 0; "u1" P 0; "r" R 0;
    "u2" U2 0; "u3" U 0; "u" U 0;
    "cx" X 1; "CX" X 1; "cnot" X 1; "cy" Y 1; "cz" Z 1; "ch" H 1; "cs" S 1; "csdg" Sdg 1; "csx" Sx 1;
    "crx" Rx 1; "cry" Ry 1; "crz" Rz 1; "cp" P 1; "cphase" P 1; "cu1" P 1; "cu3" U 1; "cu" PhasedU 1;
    "swap" Swap 0; "iswap" ISwap 0; "rxx" Rxx 0; "ryy" Ryy 0; "rzz" Rzz 0; "rzx" Rzx 0; "ecr" Ecr 0; "dcx" Dcx 0;
    "ccx" X 2; "ccz" Z 2; "cswap" Swap 1; "c3x" X 3; "c3sx" Sx 3; "c3sqrtx" Sx 3; "c4x" X 4;
};

/// The gate of a name.
pub(crate) fn named(name: &str) -> Option<Named> {
    NAMED.iter().find(|gate| gate.name == name).copied()
}

/// The conjugate transpose.
pub(crate) fn adjoint(matrix: &[C]) -> Matrix {
    let side = matrix.len().isqrt();
    (0..matrix.len()).map(|at| matrix[at % side * side + at / side].conj()).collect()
}

/// True if all entries off the diagonal are zero.
pub(crate) fn is_diagonal(matrix: &[C]) -> bool {
    let side = matrix.len().isqrt();
    matrix.iter().enumerate().all(|(at, entry)| at / side == at % side || *entry == ZERO)
}

/// The largest entry of M†M - 1.
pub(crate) fn unitary_error(matrix: &[C]) -> f64 {
    let side = matrix.len().isqrt();
    let mut worst = 0.0_f64;
    for a in 0..side {
        for b in 0..side {
            let sum: C = (0..side).map(|row| matrix[row * side + a].conj() * matrix[row * side + b]).sum();
            let error = (sum - if a == b { ONE } else { ZERO }).norm();
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    worst
}

/// The principal power of a gate of one qubit, or of one that is its own inverse; `None` for others.
pub(crate) fn power(matrix: &[C], exponent: f64) -> Option<Matrix> {
    let side = matrix.len().isqrt();
    let squared = |row: usize, column: usize| -> C {
        (0..side).map(|k| matrix[row * side + k] * matrix[k * side + column]).sum()
    };
    let is_own_inverse = (0..side * side)
        .all(|at| (squared(at / side, at % side) - if at / side == at % side { ONE } else { ZERO }).norm() < 1e-12);
    // Of both eigenvalues of a unitary matrix M, each projector is (M - other) / (one - other).
    let (one, other) = if is_own_inverse {
        (ONE, -ONE)
    } else if side == 2 {
        let (trace, determinant) = (matrix[0] + matrix[3], matrix[0] * matrix[3] - matrix[1] * matrix[2]);
        let root = (trace * trace - determinant * 4.0).sqrt();
        ((trace + root) / 2.0, (trace - root) / 2.0)
    } else {
        return None;
    };
    let raised = |value: C| {
        // -1 lies at π, whatever sign its zero has.
        let angle = if value.im.abs() < 1e-12 && value.re < 0.0 { std::f64::consts::PI } else { value.arg() };
        phase(angle * exponent)
    };
    let difference = one - other;
    if difference.norm() < 1e-9 {
        return Some(
            matrix.iter().enumerate().map(|(at, _)| if at / side == at % side { raised(one) } else { ZERO }).collect(),
        );
    }
    let (high, low) = (raised(one), raised(other));
    let entry = |(at, entry): (usize, &C)| {
        let unit = if at / side == at % side { ONE } else { ZERO };
        ((entry - unit * other) * high - (entry - unit * one) * low) / difference
    };
    Some(matrix.iter().enumerate().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANGLES: [f64; 4] = [0.7, -1.1, 2.3, 0.4];

    fn product(a: &[C], b: &[C]) -> Matrix {
        let side = a.len().isqrt();
        (0..side * side).map(|at| (0..side).map(|k| a[at / side * side + k] * b[k * side + at % side]).sum()).collect()
    }

    fn distance(a: &[C], b: &[C]) -> f64 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
    }

    #[test]
    fn all_matrices_are_unitary_and_of_their_size() {
        for gate in NAMED {
            let matrix = gate.kind.matrix(&ANGLES);
            assert_eq!(matrix.len(), 1 << (2 * gate.kind.targets()), "{}", gate.name);
            assert!(unitary_error(&matrix) < 1e-14, "{}", gate.name);
            assert!(!gate.kind.is_diagonal() || is_diagonal(&matrix), "{}", gate.name);
        }
    }

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        for gate in NAMED {
            for by in 0..gate.kind.angles() {
                let moved = |step: f64| {
                    let mut angles = ANGLES;
                    angles[by] += step;
                    gate.kind.matrix(&angles)
                };
                let (more, less) = (moved(1e-6), moved(-1e-6));
                let expected: Matrix = more.iter().zip(&less).map(|(a, b)| (a - b) / 2e-6).collect();
                let found = gate.kind.derivative(&ANGLES, by);
                assert!(distance(&found, &expected) < 1e-9, "{} by {by}", gate.name);
            }
        }
    }

    #[test]
    fn powers_multiply() {
        for kind in
            [Kind::X, Kind::Y, Kind::H, Kind::S, Kind::Tdg, Kind::Sx, Kind::Rx, Kind::U, Kind::Swap, Kind::Identity]
        {
            let matrix = kind.matrix(&ANGLES);
            let third = power(&matrix, 1.0 / 3.0).expect("it has powers");
            assert!(distance(&product(&product(&third, &third), &third), &matrix) < 1e-12, "{kind:?}");
            let inverse = power(&matrix, -1.0).expect("it has powers");
            assert!(distance(&inverse, &adjoint(&matrix)) < 1e-12, "{kind:?}");
        }
        assert!(distance(&power(&Kind::X.matrix(&[]), 0.5).expect("a root"), &Kind::Sx.matrix(&[])) < 1e-12);
        assert!(power(&Kind::ISwap.matrix(&[]), 0.5).is_none());
    }
}
