"""Quantum circuits on every device: from OpenQASM, from Qiskit, or built here; amplitudes, samples, expectation values and gradients.

Qubit 0 is the lowest bit of an amplitude's number and the last letter of texts, as in Qiskit.

>>> import cantus
>>> bell = cantus.circuits.Circuit(2).h(0).cx(0, 1)
>>> abs(bell.compile(device="cpu").state()).numpy().round(3)
array([0.707, 0.   , 0.   , 0.707], dtype=float32)
"""

from __future__ import annotations

import ast
import errno
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, _devices
from ._array import Array, wrap

_Parts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Angle:
    """An expression of parameters. `Circuit.parameter` makes the first one; arithmetic and `sin`, `cos`, `tan`, their inverses, `exp`, `log` and `sqrt` make others.

    >>> import cantus
    >>> theta = cantus.circuits.Circuit(1).parameter("theta")
    >>> isinstance(2 * theta + 1, cantus.circuits.Angle)
    True
    """

    _parts: _Parts

    def _with(self, operation: str, other: float | Angle, reflected: bool = False) -> Angle:
        a, b = self._parts, _parts(other)
        return Angle((*b, *a, (operation, 0.0)) if reflected else (*a, *b, (operation, 0.0)))

    def __add__(self, other: float | Angle) -> Angle:
        return self._with("add", other)

    def __radd__(self, other: float) -> Angle:
        return self._with("add", other, True)

    def __sub__(self, other: float | Angle) -> Angle:
        return self._with("subtract", other)

    def __rsub__(self, other: float) -> Angle:
        return self._with("subtract", other, True)

    def __mul__(self, other: float | Angle) -> Angle:
        return self._with("multiply", other)

    def __rmul__(self, other: float) -> Angle:
        return self._with("multiply", other, True)

    def __truediv__(self, other: float | Angle) -> Angle:
        return self._with("divide", other)

    def __rtruediv__(self, other: float) -> Angle:
        return self._with("divide", other, True)

    def __pow__(self, other: float | Angle) -> Angle:
        return self._with("power", other)

    def __rpow__(self, other: float) -> Angle:
        return self._with("power", other, True)

    def __neg__(self) -> Angle:
        return self._of("negative")

    def _of(self, function: str) -> Angle:
        return Angle((*self._parts, (function, 0.0)))

    def sin(self) -> Angle:
        """The sine."""
        return self._of("sin")

    def cos(self) -> Angle:
        """The cosine."""
        return self._of("cos")

    def tan(self) -> Angle:
        """The tangent."""
        return self._of("tan")

    def arcsin(self) -> Angle:
        """The inverse sine."""
        return self._of("arcsin")

    def arccos(self) -> Angle:
        """The inverse cosine."""
        return self._of("arccos")

    def arctan(self) -> Angle:
        """The inverse tangent."""
        return self._of("arctan")

    def exp(self) -> Angle:
        """The exponential."""
        return self._of("exp")

    def log(self) -> Angle:
        """The natural logarithm."""
        return self._of("log")

    def sqrt(self) -> Angle:
        """The square root."""
        return self._of("sqrt")


def _parts(angle: float | Angle) -> _Parts:
    return angle._parts if isinstance(angle, Angle) else (("", float(angle)),)


class Circuit:
    """A quantum circuit of qubits and classical bits.

    >>> import cantus
    >>> ghz = cantus.circuits.Circuit(3).h(0).cx(0, 1).cx(1, 2)
    >>> sorted(ghz.counts(100, seed=1, device="cpu"))
    ['000', '111']
    """

    __slots__ = ("_circuit",)

    def __init__(self, qubits: int, bits: int = 0) -> None:
        self._circuit = _core.Circuit(qubits, bits)

    @property
    def qubits(self) -> int:
        """The number of qubits."""
        return self._circuit.qubits

    @property
    def bits(self) -> int:
        """The number of classical bits."""
        return self._circuit.bits

    @property
    def gates(self) -> int:
        """The number of gates."""
        return self._circuit.gates

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, in order."""
        return self._circuit.parameters

    def parameter(self, name: str) -> Angle:
        """Adds a parameter: a number that is given when the circuit runs."""
        self._circuit.parameter(name)
        return Angle(((f"${name}", 0.0),))

    def gate(self, name: str, qubits: Sequence[int], angles: Iterable[float | Angle] = ()) -> Circuit:
        """Adds a gate by its name in OpenQASM's or Qiskit's library: controls first, then targets.

        >>> import cantus
        >>> cantus.circuits.Circuit(3).gate("ccx", [0, 1, 2]).gates
        1
        """
        self._circuit.gate(name, [list(_parts(angle)) for angle in angles], list(qubits))
        return self

    def unitary(self, matrix: Any, qubits: Sequence[int], controls: Sequence[bool] = ()) -> Circuit:
        """Adds any unitary matrix. Bit k of its rows is the k-th qubit behind the controls, which act where their qubit is 1 (True) or 0."""
        entries = np.asarray(matrix, np.complex128).ravel()
        self._circuit.unitary([(value.real, value.imag) for value in entries.tolist()], list(controls), list(qubits))
        return self

    def x(self, qubit: int) -> Circuit:
        """Adds Pauli's X."""
        return self.gate("x", [qubit])

    def y(self, qubit: int) -> Circuit:
        """Adds Pauli's Y."""
        return self.gate("y", [qubit])

    def z(self, qubit: int) -> Circuit:
        """Adds Pauli's Z."""
        return self.gate("z", [qubit])

    def h(self, qubit: int) -> Circuit:
        """Adds Hadamard's gate."""
        return self.gate("h", [qubit])

    def s(self, qubit: int) -> Circuit:
        """Adds the square root of Z."""
        return self.gate("s", [qubit])

    def t(self, qubit: int) -> Circuit:
        """Adds the square root of S."""
        return self.gate("t", [qubit])

    def rx(self, theta: float | Angle, qubit: int) -> Circuit:
        """Adds a rotation about x."""
        return self.gate("rx", [qubit], [theta])

    def ry(self, theta: float | Angle, qubit: int) -> Circuit:
        """Adds a rotation about y."""
        return self.gate("ry", [qubit], [theta])

    def rz(self, theta: float | Angle, qubit: int) -> Circuit:
        """Adds a rotation about z."""
        return self.gate("rz", [qubit], [theta])

    def p(self, theta: float | Angle, qubit: int) -> Circuit:
        """Adds a phase."""
        return self.gate("p", [qubit], [theta])

    def cx(self, control: int, target: int) -> Circuit:
        """Adds a controlled X."""
        return self.gate("cx", [control, target])

    def cz(self, control: int, target: int) -> Circuit:
        """Adds a controlled Z."""
        return self.gate("cz", [control, target])

    def cp(self, theta: float | Angle, control: int, target: int) -> Circuit:
        """Adds a controlled phase."""
        return self.gate("cp", [control, target], [theta])

    def swap(self, a: int, b: int) -> Circuit:
        """Adds an exchange of two qubits."""
        return self.gate("swap", [a, b])

    def rzz(self, theta: float | Angle, a: int, b: int) -> Circuit:
        """Adds a rotation about Z⊗Z."""
        return self.gate("rzz", [a, b], [theta])

    def measure(self, qubit: int, bit: int) -> Circuit:
        """Measures a qubit into a classical bit."""
        self._circuit.measure(qubit, bit)
        return self

    def measure_all(self) -> Circuit:
        """Adds as many bits as there are qubits, and measures each qubit into its bit."""
        self._circuit.measure_all()
        return self

    def reset(self, qubit: int) -> Circuit:
        """Sets a qubit to 0."""
        self._circuit.reset(qubit)
        return self

    def barrier(self, *qubits: int) -> Circuit:
        """Adds a barrier, which pictures show."""
        self._circuit.barrier(list(qubits or range(self.qubits)))
        return self

    def draw(self) -> str:
        """The circuit as text.

        >>> import cantus
        >>> print(cantus.circuits.Circuit(1).h(0).draw(), end="")
        q: ─H─
        """
        return self._circuit.draw()

    def svg(self) -> str:
        """The circuit as an SVG picture."""
        return self._circuit.draw_svg()

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<cantus.circuits.Circuit of {self.qubits} qubits and {self.gates} gates>"

    def _values(self, parameters: Mapping[str, float] | Sequence[float]) -> list[float]:
        if not isinstance(parameters, Mapping):
            return [float(value) for value in parameters]
        names = self.parameters
        unknown = sorted(set(parameters) - set(names))
        if unknown or len(parameters) < len(names):
            missing = [name for name in names if name not in parameters]
            raise ValueError(f"the parameters are {names}: {unknown} are none of them, and {missing} have no value")
        return [float(parameters[name]) for name in names]

    def counts(
        self,
        shots: int = 1024,
        parameters: Mapping[str, float] | Sequence[float] = (),
        *,
        seed: int = 0,
        depolarising: tuple[float, float] = (0.0, 0.0),
        damping: float = 0.0,
        readout: tuple[float, float] = (0.0, 0.0),
        device: Any = None,
    ) -> dict[str, int]:
        """Runs the circuit for a number of shots, and counts the outcomes. A circuit without classical bits is measured whole. The noise is that of
        trajectories: depolarising probabilities after gates of one qubit and of two, the probability to fall from 1 to 0 after a gate, and
        those of reading a 0 as 1 and a 1 as 0.

        >>> import cantus
        >>> cantus.circuits.Circuit(1).x(0).counts(10, device="cpu")
        {'1': 10}
        """
        engine = _devices.device(device).engine
        rows = self._circuit.counts(engine, self._values(parameters), shots, seed, depolarising, damping, readout)
        return dict(rows)

    def stream(
        self,
        path: str | os.PathLike[str],
        parameters: Mapping[str, float] | Sequence[float] = (),
        *,
        double: bool = False,
        device: Any = None,
    ) -> np.memmap:
        """Computes the amplitudes in an .npy file, for a state that is larger than memory, and returns them as an array that reads the file. The file
        gets its name when it is complete, and replaces one that is there.

        >>> import cantus, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "bell.npy")
        >>> state = cantus.circuits.Circuit(2).h(0).cx(0, 1).stream(path, device="cpu")
        >>> state.shape, str(state.dtype), round(abs(complex(state[3])) ** 2, 3)
        ((4,), 'complex64', 0.5)
        """
        engine, path, values = _devices.device(device).engine, os.fspath(path), self._values(parameters)
        # Known before hours of work.
        free = shutil.disk_usage(os.path.dirname(os.path.realpath(path))).free
        power = self.qubits + (4 if double else 3)
        if 1 << power > free:
            raise OSError(
                errno.ENOSPC, f"the amplitudes take 2**{power} bytes, and {free / 2**30:.1f} GiB are free there (choose another folder)", path
            )
        self._circuit.stream(engine, values, double, path)
        state: np.memmap = np.load(path, mmap_mode="r")
        return state

    def compile(self, *, double: bool = False, device: Any = None) -> Compiled:
        """Plans the circuit for a device: complex64 amplitudes, or complex128 on the CPU and on devices with float64."""
        return Compiled(self, double, _devices.device(device))


class Compiled:
    """A circuit that is planned for a device, and runs for any parameters.

    >>> import cantus
    >>> circuit = cantus.circuits.Circuit(1)
    >>> circuit.ry(circuit.parameter("theta"), 0).gates
    1
    >>> value, slope = circuit.compile(device="cpu").gradient([("Z", 1.0)], {"theta": 0.0})
    >>> round(value, 6), [round(abs(one), 6) for one in slope]
    (1.0, [0.0])
    """

    __slots__ = ("_circuit", "_compiled", "_device")

    def __init__(self, circuit: Circuit, double: bool, device: _devices.Device) -> None:
        self._circuit = circuit
        self._device = device
        self._compiled = circuit._circuit.compiled(device.engine, double)

    def state(self, parameters: Mapping[str, float] | Sequence[float] = ()) -> Array:
        """The amplitudes: 2**qubits complex numbers, on the device."""
        return self.states([parameters])[0]

    def strips(self, parameters: Mapping[str, float] | Sequence[float] = ()) -> list[Array]:
        """The amplitudes in order, in arrays of equal size: one array unless the state is larger than the device binds (on the CPU from 29 qubits on)."""
        return [wrap(strip, self._device)[0] for strip in self._compiled.strips(self._circuit._values(parameters))]

    def states(self, sets: Sequence[Mapping[str, float] | Sequence[float]]) -> Array:
        """The amplitudes for sets of parameters at once: (sets, 2**qubits)."""
        return wrap(self._compiled.states([self._circuit._values(one) for one in sets]), self._device)

    def sample(self, shots: int, parameters: Mapping[str, float] | Sequence[float] = (), *, seed: int = 0) -> np.ndarray:
        """Numbers of basis states, drawn by their probabilities."""
        return np.array(self._compiled.sample(self._circuit._values(parameters), shots, seed), np.uint64)

    def expectation(self, terms: Sequence[tuple[str, float]], parameters: Mapping[str, float] | Sequence[float] = ()) -> float:
        """The expectation value of a sum of Pauli strings with factors."""
        return self._compiled.expectation(self._circuit._values(parameters), list(terms))

    def gradient(
        self, terms: Sequence[tuple[str, float]], parameters: Mapping[str, float] | Sequence[float] = ()
    ) -> tuple[float, list[float]]:
        """The expectation value, and its derivative by each parameter, by the adjoint method."""
        return self._compiled.gradient(self._circuit._values(parameters), list(terms))


def from_qasm(text: str, name: str = "OpenQASM") -> Circuit:
    """Reads an OpenQASM 2 or 3 program.

    >>> import cantus
    >>> cantus.circuits.from_qasm('include "stdgates.inc"; qubit[2] q; h q[0]; cx q[0], q[1];')
    <cantus.circuits.Circuit of 2 qubits and 2 gates>
    """
    circuit = Circuit.__new__(Circuit)
    circuit._circuit = _core.Circuit.from_qasm(name, text)
    return circuit


def load(path: str | os.PathLike[str]) -> Circuit:
    """Reads an OpenQASM file."""
    with open(path, encoding="utf-8") as file:
        return from_qasm(file.read(), os.fspath(path))


# Qiskit's names that differ from the library's here.
_QISKIT = {"cu1": "cp", "u1": "p", "u3": "u", "mcx": "c3x"}
_KNOWN = frozenset(
    "id x y z h s sdg t tdg sx sxdg rx ry rz p r u2 u cx cy cz ch cs csdg csx crx cry crz cp cu3 cu swap iswap rxx ryy rzz rzx ecr dcx "
    "ccx ccz cswap c3x c3sx c4x".split()
)


def from_qiskit(circuit: Any) -> Circuit:
    """Converts a `qiskit.QuantumCircuit` of gates, measurements, resets and barriers. Its parameters keep their names and order. Control flow is not
    converted: write it with `qiskit.qasm3.dumps` and read it with `from_qasm`.
    """
    whole = [bit for register in circuit.cregs for bit in register]
    apart = whole == list(circuit.clbits)
    made = Circuit(circuit.num_qubits, 0 if apart else circuit.num_clbits)
    if apart:
        for register in circuit.cregs:
            made._circuit.bit_register(register.name, register.size)
    names = {parameter: made.parameter(parameter.name) for parameter in circuit.parameters}
    _convert(made, circuit, list(range(circuit.num_qubits)), list(range(circuit.num_clbits)), names, 0)
    return made


def _is_known(operation: Any) -> bool:
    """Returns whether the library has the gate, with all controls acting at 1."""
    controls = getattr(operation, "num_ctrl_qubits", 0)
    closed = getattr(operation, "ctrl_state", 2**controls - 1) == 2**controls - 1
    return closed and _QISKIT.get(operation.name, operation.name) in _KNOWN and (operation.name != "mcx" or controls == 3)


def _angle(value: Any, names: dict[Any, Angle]) -> float | Angle:
    free = list(getattr(value, "parameters", ()))
    if not free:
        return float(value)
    from qiskit.circuit import Parameter

    # Qiskit writes expressions as Python does; its parameters may have any names, so they are numbered first.
    numbered = {parameter: Parameter(f"p{at}") for at, parameter in enumerate(free)}
    known = {f"p{at}": names[parameter] for at, parameter in enumerate(free)}
    return _expression(ast.parse(str(value.subs(numbered)), mode="eval").body, known)


_BINARY: dict[type[ast.AST], str] = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
_FUNCTIONS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"} | {name: name for name in ("sin", "cos", "tan", "exp", "log")}


def _expression(node: ast.expr, names: dict[str, Angle]) -> Angle:
    match node:
        case ast.Constant(value=int() | float() as value):
            return Angle(_parts(float(value)))
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_expression(operand, names)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
            return _expression(left, names)._with(_BINARY[type(operation)], _expression(right, names))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _FUNCTIONS:
            return _expression(argument, names)._of(_FUNCTIONS[name])
    raise ValueError(f"the expression {ast.unparse(node)} of parameters is not taken")


def _convert(
    made: Circuit, circuit: Any, qubits: list[int], bits: list[int], names: dict[Any, Angle], depth: int
) -> None:
    """Adds the instructions of a circuit of Qiskit's at qubits."""
    if depth > 16:
        raise ValueError("gates are defined by others more than 16 levels deep")
    for instruction in circuit.data:
        operation = instruction.operation
        name = operation.name
        targets = [qubits[circuit.find_bit(bit).index] for bit in instruction.qubits]
        places = [bits[circuit.find_bit(bit).index] for bit in instruction.clbits]
        if getattr(operation, "blocks", None) or getattr(operation, "condition", None) is not None:
            raise ValueError(f"{name}: control flow is not converted (qiskit.qasm3.dumps writes it for from_qasm)")
        if name == "measure":
            made.measure(targets[0], places[0])
        elif name == "reset":
            made.reset(targets[0])
        elif name == "barrier":
            made.barrier(*targets)
        elif name == "delay":
            continue
        elif _is_known(operation):
            made.gate(_QISKIT.get(name, name), targets, [_angle(value, names) for value in operation.params])
        elif len(targets) <= 5 and not any(getattr(value, "parameters", None) for value in operation.params) and targets:
            from qiskit.quantum_info import Operator

            made.unitary(Operator(operation).data, targets)
        elif operation.definition is not None:
            _convert(made, operation.definition, targets, places, names, depth + 1)
        else:
            raise ValueError(f"the instruction {name} is not taken")
    # A global phase is one on any qubit, also that of a gate without qubits.
    phase = circuit.global_phase
    if made.qubits and (getattr(phase, "parameters", None) or float(phase) != 0.0):
        made.gate("gphase", [], [_angle(phase, names)])


__all__ = ["Angle", "Circuit", "Compiled", "from_qasm", "from_qiskit", "load"]
