//! The builder: gates by name, by kind and by matrix, measurements, resets and conditions. Parsers, Python and apps add every instruction here, so a
//! circuit holds no unchecked instruction: what does not fit the circuit or its bounds is refused.

use cantus::{Error, Result};
use num_complex::Complex;

use crate::angle::{Angle, MOST_NODES, Node};
use crate::circuit::{Circuit, Gate, Instruction, MOST_INSTRUCTIONS, Span, fault, short};
use crate::condition::Condition;
use crate::gate::{self, Kind, MOST_TARGETS};

/// The most parts of all angles and conditions together, and the most matrices.
const MOST_PARTS: usize = 1 << 23;
const MOST_MATRICES: usize = 1 << 20;

impl Circuit {
    /// Adds a gate by its name in OpenQASM's or Qiskit's library: controls first, then targets.
    ///
    /// ```
    /// # let mut circuit = cantus_circuits::Circuit::new(3)?;
    /// circuit.gate("ccx", &[], &[0, 1, 2])?.gate("u3", &[0.1.into(), 0.2.into(), 0.3.into()], &[1])?;
    /// assert!(circuit.gate("ccx", &[], &[0, 1, 1]).is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an unknown name, a wrong number of angles or qubits, and a qubit that is not there or named twice.
    pub fn gate(&mut self, name: &str, angles: &[Angle], qubits: &[usize]) -> Result<&mut Self> {
        let named = gate::named(name).ok_or_else(|| fault(format!("there is no gate {name}")))?;
        self.kind(named.kind, angles, &qubits.iter().take(named.controls).map(|_| true).collect::<Vec<_>>(), qubits)
    }

    /// Adds a gate with controls: `controls` says of the first qubits whether the gate acts where each is 1, or where it is 0. The rest are its targets.
    ///
    /// # Errors
    /// As [`Circuit::gate`].
    pub fn kind(&mut self, kind: Kind, angles: &[Angle], controls: &[bool], qubits: &[usize]) -> Result<&mut Self> {
        let (angles_needed, needed) = (kind.angles(), controls.len() + kind.targets());
        if angles.len() != angles_needed {
            return Err(fault(format!("{} takes {angles_needed} angles, not {}", kind.label(), angles.len())));
        }
        if qubits.len() != needed || kind == Kind::Matrix {
            return Err(fault(format!("{} takes {needed} qubits, not {}", kind.label(), qubits.len())));
        }
        self.push_gate(kind, 0, false, angles, controls, qubits)
    }

    /// Adds any unitary gate: its matrix by rows. Bit k of an index is `qubits[k]`.
    ///
    /// # Errors
    /// As [`Circuit::gate`]; also if the matrix has another size, is not unitary within 1e-6, or spans more than [`MOST_TARGETS`] qubits.
    pub fn unitary(&mut self, matrix: &[Complex<f64>], qubits: &[usize]) -> Result<&mut Self> {
        self.controlled_unitary(matrix, &[], qubits)
    }

    /// [`Circuit::unitary`] with controls, as [`Circuit::kind`] has them.
    ///
    /// # Errors
    /// As [`Circuit::unitary`].
    pub fn controlled_unitary(
        &mut self,
        matrix: &[Complex<f64>],
        controls: &[bool],
        qubits: &[usize],
    ) -> Result<&mut Self> {
        let targets = qubits.len().saturating_sub(controls.len());
        if targets > MOST_TARGETS {
            return Err(fault(format!("a matrix spans at most {MOST_TARGETS} qubits, not {targets}")));
        }
        if matrix.len() != 1 << (2 * targets) {
            return Err(fault(format!("{targets} qubits take {} entries, not {}", 1 << (2 * targets), matrix.len())));
        }
        let error = gate::unitary_error(matrix);
        if error > 1e-6 {
            return Err(fault(format!("the matrix is not unitary: M†M differs from 1 by {error:.1e}")));
        }
        if self.matrices.len() >= MOST_MATRICES {
            return Err(fault(format!("it would have more than {MOST_MATRICES} matrices (run it in parts)")));
        }
        let place = short(self.matrices.len());
        self.matrices.push(matrix.to_vec());
        self.push_gate(Kind::Matrix, place, false, &[], controls, qubits)
    }

    pub(crate) fn push_gate(
        &mut self,
        kind: Kind,
        matrix: u32,
        inverse: bool,
        angles: &[Angle],
        controls: &[bool],
        qubits: &[usize],
    ) -> Result<&mut Self> {
        if controls.len() > 63 {
            return Err(fault(format!("a gate has at most 63 controls, not {}", controls.len())));
        }
        let qubits = self.span_of(qubits)?;
        let first = short(self.angles.len());
        for angle in angles {
            if angle.0.len() > MOST_NODES {
                return Err(fault(format!("an angle has at most {MOST_NODES} parts, not {}", angle.0.len())));
            }
            if angle.constant().is_some_and(|value| !value.is_finite()) {
                return Err(fault(format!("an angle of {} is not finite", kind.label())));
            }
            let unknown =
                |node: &Node| matches!(node, Node::Parameter(index) if *index as usize >= self.parameters().len());
            if angle.0.iter().any(unknown) {
                return Err(fault("an angle has a parameter of another circuit"));
            }
            if self.nodes.len() + angle.0.len() > MOST_PARTS {
                return Err(fault(format!("its angles would have more than {MOST_PARTS} parts (run it in parts)")));
            }
            let span = Span { start: short(self.nodes.len()), len: short(angle.0.len()) };
            self.nodes.extend_from_slice(&angle.0);
            self.angles.push(span);
        }
        let open = controls.iter().enumerate().filter(|(_, one)| !**one).map(|(place, _)| 1_u64 << place).sum();
        let angles = Span { start: first, len: short(angles.len()) };
        let controls = short(controls.len());
        self.push(Instruction::Gate(Gate { kind, matrix, inverse, controls, open, qubits, angles }))
    }

    pub(crate) fn push(&mut self, instruction: Instruction) -> Result<&mut Self> {
        if self.instructions.len() >= MOST_INSTRUCTIONS {
            return Err(Error::limit(
                "the circuit",
                format!("it would have more than {MOST_INSTRUCTIONS} instructions (run it in parts)"),
            ));
        }
        self.instructions.push(instruction);
        Ok(self)
    }

    /// Keeps qubits that are there and unlike.
    fn span_of(&mut self, qubits: &[usize]) -> Result<Span> {
        for &qubit in qubits {
            self.check_qubit(qubit)?;
        }
        let mut sorted = qubits.to_vec();
        sorted.sort_unstable();
        if let Some([twice, ..]) = sorted.windows(2).find(|pair| pair.first() == pair.last()) {
            return Err(fault(format!("qubit {twice} is named twice in one gate")));
        }
        let span = Span { start: short(self.operands.len()), len: short(qubits.len()) };
        self.operands.extend(qubits.iter().map(|&qubit| short(qubit)));
        Ok(span)
    }

    fn check_qubit(&self, qubit: usize) -> Result<()> {
        match qubit < self.qubits() {
            true => Ok(()),
            false => Err(fault(format!("there is no qubit {qubit} among {}", self.qubits()))),
        }
    }

    /// Adds a measurement of a qubit into a classical bit.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the qubit or the bit is not there.
    pub fn measure(&mut self, qubit: usize, bit: usize) -> Result<&mut Self> {
        self.check_qubit(qubit)?;
        if bit >= self.bits() {
            return Err(fault(format!("there is no classical bit {bit} among {}", self.bits())));
        }
        self.push(Instruction::Measure { qubit: short(qubit), bit: short(bit) })
    }

    /// Adds a register `meas` of as many bits as there are qubits, and measures each qubit into its bit.
    ///
    /// # Errors
    /// [`Error::Limit`] if there would be more than [`MOST_BITS`].
    pub fn measure_all(&mut self) -> Result<&mut Self> {
        let bits = self.bit_register("meas", self.qubits())?;
        for (qubit, bit) in bits.enumerate() {
            self.measure(qubit, bit)?;
        }
        Ok(self)
    }

    /// Sets a qubit to 0: measures it, and flips it if it was 1.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the qubit is not there.
    pub fn reset(&mut self, qubit: usize) -> Result<&mut Self> {
        self.check_qubit(qubit)?;
        self.push(Instruction::Reset { qubit: short(qubit) })
    }

    /// Adds a barrier, which pictures show: no gate moves across it in a picture, and results do not depend on it.
    ///
    /// # Errors
    /// As [`Circuit::gate`].
    pub fn barrier(&mut self, qubits: &[usize]) -> Result<&mut Self> {
        let qubits = self.span_of(qubits)?;
        self.push(Instruction::Barrier { qubits })
    }

    /// Adds what `then` adds, run only where the condition on classical bits holds.
    ///
    /// ```
    /// use cantus_circuits::{Circuit, Condition};
    /// let mut circuit = Circuit::new(2)?;
    /// circuit.bit_register("c", 1)?;
    /// circuit.h(0)?.measure(0, 0)?.only_if(&Condition::bit(0), |then| then.x(1).map(drop))?;
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a bit that is not there, and what `then` returns.
    pub fn only_if(&mut self, condition: &Condition, then: impl FnOnce(&mut Self) -> Result<()>) -> Result<&mut Self> {
        let branch = self.begin_branch(condition)?;
        then(self)?;
        self.end_branch(branch);
        Ok(self)
    }

    pub(crate) fn begin_branch(&mut self, condition: &Condition) -> Result<usize> {
        if let Some(bit) = condition.most().filter(|bit| *bit >= self.bits()) {
            return Err(fault(format!("there is no classical bit {bit} among {}", self.bits())));
        }
        if self.tests.len() + condition.0.len() > MOST_PARTS {
            return Err(fault(format!("its conditions would have more than {MOST_PARTS} parts")));
        }
        let span = Span { start: short(self.tests.len()), len: short(condition.0.len()) };
        self.tests.extend_from_slice(&condition.0);
        self.push(Instruction::Branch { condition: span, otherwise: 0 })?;
        Ok(self.instructions.len() - 1)
    }

    /// The branch or jump at `place` goes on behind what there is now.
    pub(crate) fn end_branch(&mut self, place: usize) {
        let end = short(self.instructions.len());
        match self.instructions.get_mut(place) {
            Some(Instruction::Branch { otherwise, .. }) => *otherwise = end,
            Some(Instruction::Jump { to }) => *to = end,
            _ => {}
        }
    }
}

/// The gates that have methods: name, kind, angles, controls and targets.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($($angle:ident),*; $($qubit:ident),+) $library:literal;)*) => {
        impl Circuit {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Error::InvalidInput`] for a qubit that is not there or named twice, and an angle that is not finite.
            #[allow(clippy::too_many_arguments, reason = "as many as the gate has angles and qubits")]
            pub fn $name(&mut self, $($angle: impl Into<Angle>,)* $($qubit: usize),+) -> Result<&mut Self> {
                self.gate($library, &[$($angle.into()),*], &[$($qubit),+])
            }
        )*}
    };
}
methods! {
    /// Adds Pauli's X.
    x(; qubit) "x";
    /// Adds Pauli's Y.
    y(; qubit) "y";
    /// Adds Pauli's Z.
    z(; qubit) "z";
    /// Adds Hadamard's gate.
    h(; qubit) "h";
    /// Adds the square root of Z.
    s(; qubit) "s";
    /// Adds the inverse of S.
    sdg(; qubit) "sdg";
    /// Adds the square root of S.
    t(; qubit) "t";
    /// Adds the inverse of T.
    tdg(; qubit) "tdg";
    /// Adds the square root of X.
    sx(; qubit) "sx";
    /// Adds a rotation about x.
    rx(theta; qubit) "rx";
    /// Adds a rotation about y.
    ry(theta; qubit) "ry";
    /// Adds a rotation about z.
    rz(theta; qubit) "rz";
    /// Adds a phase.
    p(lambda; qubit) "p";
    /// Adds the gate of three angles, as Qiskit has it.
    u(theta, phi, lambda; qubit) "u";
    /// Adds a controlled X.
    cx(; control, target) "cx";
    /// Adds a controlled Y.
    cy(; control, target) "cy";
    /// Adds a controlled Z.
    cz(; control, target) "cz";
    /// Adds a controlled Hadamard gate.
    ch(; control, target) "ch";
    /// Adds a controlled phase.
    cp(lambda; control, target) "cp";
    /// Adds a controlled rotation about x.
    crx(theta; control, target) "crx";
    /// Adds a controlled rotation about y.
    cry(theta; control, target) "cry";
    /// Adds a controlled rotation about z.
    crz(theta; control, target) "crz";
    /// Adds an exchange of two qubits.
    swap(; a, b) "swap";
    /// Adds a rotation about X⊗X.
    rxx(theta; a, b) "rxx";
    /// Adds a rotation about Y⊗Y.
    ryy(theta; a, b) "ryy";
    /// Adds a rotation about Z⊗Z.
    rzz(theta; a, b) "rzz";
    /// Adds an X with two controls.
    ccx(; a, b, target) "ccx";
    /// Adds an exchange of two qubits with a control.
    cswap(; control, a, b) "cswap";
}
