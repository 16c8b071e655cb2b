"""Circuits: beside NumPy's products of matrices, and Qiskit where it is installed."""

from __future__ import annotations

import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import cantus
from cantus import circuits

H = np.array([[1, 1], [1, -1]]) / math.sqrt(2)
X = np.array([[0, 1], [1, 0]])


def rotation(theta: float) -> np.ndarray:
    return np.array([[math.cos(theta / 2), -math.sin(theta / 2)], [math.sin(theta / 2), math.cos(theta / 2)]])


def test_amplitudes_are_products_of_matrices(device: cantus.Device) -> None:
    circuit = circuits.Circuit(3)
    theta = circuit.parameter("theta")
    circuit.h(0).ry(2 * theta + 0.1, 2).cx(0, 2)
    # Qubit 0 is the last factor.
    flips = np.kron(np.eye(4), np.diag([1, 0])) + np.kron(np.kron(X, np.eye(2)), np.diag([0, 1]))
    expected = []
    for value in (0.3, -1.2):
        start = np.kron(np.kron(rotation(2 * value + 0.1), np.eye(2)), H)[:, 0]
        expected.append(flips @ start)
    compiled = circuit.compile()
    np.testing.assert_allclose(compiled.states([[0.3], {"theta": -1.2}]).numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(compiled.state({"theta": 0.3}).numpy(), expected[0], atol=1e-6)
    assert compiled.state([0.3]).dtype == cantus.complex64
    value, slope = compiled.gradient([("ZII", 1.0)], [0.3])
    # The ry is followed by a flip by qubit 0 that is even: ⟨Z⟩ = 0.
    assert abs(value) < 1e-6 and abs(slope[0]) < 1e-6
    with pytest.raises(ValueError, match="theta"):
        compiled.state({"phi": 1.0})
    with pytest.raises(ValueError, match="values are given"):
        compiled.state()


def test_gradients_are_derivatives() -> None:
    circuit = circuits.Circuit(2)
    a, b = circuit.parameter("a"), circuit.parameter("b")
    circuit.ry(a.sin(), 0).rx(a * b, 1).cx(0, 1).rz(b / 2, 1).ry(b, 1)
    compiled = circuit.compile(double=True, device="cpu")
    terms = [("ZI", 0.5), ("XY", 2.0), ("IZ", -1.0)]
    value, slope = compiled.gradient(terms, [0.7, -0.4])
    assert value == pytest.approx(compiled.expectation(terms, [0.7, -0.4]), abs=1e-12)
    for at in range(2):
        step = np.zeros(2)
        step[at] = 1e-5
        high, low = (compiled.expectation(terms, list(np.array([0.7, -0.4]) + sign * step)) for sign in (1, -1))
        assert slope[at] == pytest.approx((high - low) / 2e-5, abs=1e-8)


def test_programs_count_and_draw(device: cantus.Device) -> None:
    program = 'OPENQASM 3; include "stdgates.inc"; qubit[2] q; bit[2] c; h q[0]; c[0] = measure q[0]; if (c[0]) x q[1]; c[1] = measure q[1];'
    circuit = circuits.from_qasm(program)
    counts = circuit.counts(200, seed=3)
    assert set(counts) == {"00", "11"} and sum(counts.values()) == 200
    assert counts == circuit.counts(200, seed=3)
    assert "M→0" in circuit.draw() and circuit.svg().startswith("<svg")
    noisy = circuits.Circuit(1).x(0).counts(2000, readout=(0.0, 0.5), seed=1)
    assert 800 < noisy["0"] < 1200
    with pytest.raises(ValueError, match="line 1: there is no gate foo"):
        circuits.from_qasm("qubit q; foo q;")
    with pytest.raises(ValueError, match="8.0 TiB"):
        circuits.Circuit(40).compile()


def test_states_in_files_and_strips_are_those_on_the_device(device: cantus.Device, tmp_path: pathlib.Path) -> None:
    circuit = circuits.Circuit(5)
    theta = circuit.parameter("theta")
    for qubit in range(5):
        circuit.h(qubit).ry(theta, (qubit + 2) % 5).cx(qubit, (qubit + 1) % 5)
    compiled = circuit.compile()
    expected = compiled.state([0.4]).numpy()
    (strip,) = compiled.strips({"theta": 0.4})
    np.testing.assert_array_equal(strip.numpy(), expected)
    path = tmp_path / "state.npy"
    path.write_bytes(b"replaced")
    np.testing.assert_allclose(circuit.stream(path, [0.4]), expected, atol=1e-6)
    assert np.load(path).dtype == np.complex64
    whole = path.read_bytes()
    with pytest.raises(OSError, match="are free there"):
        circuits.Circuit(55).stream(path)
    with pytest.raises(OSError, match="are free there"):
        circuits.Circuit(4000).stream(path)
    with pytest.raises(ValueError, match="theta"):
        circuit.stream(path, {"phi": 1.0})
    with pytest.raises(ValueError, match="values are given"):
        circuit.stream(path, [0.1, 0.2])
    dynamic = circuits.Circuit(1, 1).measure(0, 0).h(0)
    for name in ("dynamic.npy", "state.npy"):
        with pytest.raises(ValueError, match="no one final state"):
            dynamic.stream(tmp_path / name)
    with pytest.raises(OSError, match="not a file"):
        circuit.stream(tmp_path, [0.4])
    with pytest.raises(FileNotFoundError):
        circuit.stream(tmp_path / "missing" / "state.npy", [0.4])
    # What fails leaves the file before it, and nothing else.
    assert path.read_bytes() == whole and [file.name for file in tmp_path.iterdir()] == ["state.npy"]


def test_streams_in_complex128_are_those_in_memory(tmp_path: pathlib.Path) -> None:
    circuit = circuits.Circuit(3).h(0).cx(0, 1).gate("rzx", [1, 2], [0.7])
    expected = circuit.compile(double=True, device="cpu").state().numpy()
    state = circuit.stream(tmp_path / "state.npy", double=True, device="cpu")
    assert state.dtype == np.complex128
    np.testing.assert_allclose(state, expected, atol=1e-15)


def test_an_interrupt_ends_a_stream_and_removes_its_file(tmp_path: pathlib.Path) -> None:
    program = """
import _thread, sys, threading, cantus
circuit = cantus.circuits.Circuit(22)
for qubit in range(22):
    circuit.h(qubit).cx(qubit, (qubit + 7) % 22)
threading.Timer(0.01, _thread.interrupt_main).start()
try:
    circuit.stream(sys.argv[1], device="cpu")
except KeyboardInterrupt:
    print("stopped")
"""
    path = tmp_path / "state.npy"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_unitaries_are_checked() -> None:
    matrix = np.kron(H, X)
    state = circuits.Circuit(2).unitary(matrix, [0, 1]).compile(device="cpu").state().numpy()
    np.testing.assert_allclose(state, matrix[:, 0], atol=1e-6)
    with pytest.raises(ValueError, match="not unitary"):
        circuits.Circuit(1).unitary([[1, 1], [0, 1]], [0])


def test_circuits_of_qiskit_are_converted() -> None:
    qiskit = pytest.importorskip("qiskit")
    from qiskit.circuit.library import efficient_su2
    from qiskit.circuit.random import random_circuit
    from qiskit.quantum_info import SparsePauliOp, Statevector

    for seed in range(30):
        circuit = random_circuit(2 + seed % 4, 6, max_operands=4, seed=seed)
        state = circuits.from_qiskit(circuit).compile(double=True, device="cpu").state().numpy()
        np.testing.assert_allclose(state, Statevector(circuit).data, atol=1e-9)
    ansatz = efficient_su2(3, reps=1)
    values = np.linspace(-1, 1, ansatz.num_parameters)
    compiled = circuits.from_qiskit(ansatz).compile(double=True, device="cpu")
    expected = Statevector(ansatz.assign_parameters(values)).expectation_value(SparsePauliOp(["ZXY", "IZZ"], [1.0, 0.5])).real
    assert compiled.gradient([("ZXY", 1.0), ("IZZ", 0.5)], list(values))[0] == pytest.approx(expected, abs=1e-10)
    phase = qiskit.circuit.Parameter("t")
    bent = qiskit.QuantumCircuit(1, global_phase=0.3)
    bent.rx(2 * phase**2 + phase.sin(), 0)
    bent.ry(phase.tan() / 3 - phase.arctan() + phase.arcsin() * phase.arccos() - 2**phase + (-phase).exp() - (phase + 1).log(), 0)
    state = circuits.from_qiskit(bent).compile(double=True, device="cpu").state([0.4]).numpy()
    np.testing.assert_allclose(state, Statevector(bent.assign_parameters([0.4])).data, atol=1e-12)
    vector = qiskit.circuit.ParameterVector("v w", 2)
    two = qiskit.QuantumCircuit(2)
    two.crx(vector[1] - vector[0] / 3, 0, 1)
    two.h(0)
    two.global_phase = vector[0] * vector[1]
    assert circuits.from_qiskit(two).parameters == ["v w[0]", "v w[1]"]
    state = circuits.from_qiskit(two).compile(double=True, device="cpu").state([0.4, 1.1]).numpy()
    np.testing.assert_allclose(state, Statevector(two.assign_parameters([0.4, 1.1])).data, atol=1e-12)
    # A gate without qubits, in a circuit and in a gate.
    turned = qiskit.QuantumCircuit(1)
    turned.append(qiskit.circuit.library.GlobalPhaseGate(0.7), [])
    outer = qiskit.QuantumCircuit(2, global_phase=0.1)
    outer.h(0)
    outer.append(turned.to_gate(), [1])
    outer.append(qiskit.circuit.library.GlobalPhaseGate(phase), [])
    state = circuits.from_qiskit(outer).compile(double=True, device="cpu").state([0.4]).numpy()
    np.testing.assert_allclose(state, Statevector(outer.assign_parameters([0.4])).data, atol=1e-12)
    # Controls that act at 0, powers, and gates that are defined by others.
    odd = qiskit.QuantumCircuit(3, 1)
    inner = qiskit.QuantumCircuit(2, name="inner", global_phase=0.2)
    inner.h(0)
    inner.cp(phase, 0, 1)
    odd.append(qiskit.circuit.library.XGate().control(2, ctrl_state=1), [2, 0, 1])
    odd.append(inner.to_gate(), [2, 0])
    odd.append(qiskit.circuit.library.SXGate().power(0.3), [1])
    state = circuits.from_qiskit(odd).compile(double=True, device="cpu").state([0.9]).numpy()
    np.testing.assert_allclose(state, Statevector(odd.assign_parameters([0.9])).data, atol=1e-12)
    with odd.if_test((odd.clbits[0], 1)):
        odd.x(0)
    with pytest.raises(ValueError, match="control flow"):
        circuits.from_qiskit(odd)
    with pytest.raises(ValueError, match="not taken"):
        absolute = qiskit.QuantumCircuit(1)
        absolute.rx(abs(phase), 0)
        circuits.from_qiskit(absolute)


def test_samples_and_expectation_values_are_those_of_the_amplitudes(device: cantus.Device) -> None:
    circuit = circuits.Circuit(4)
    theta = circuit.parameter("theta")
    for qubit in range(4):
        circuit.ry(theta + 0.4 * qubit, qubit).rz(0.3 - theta, qubit)
    circuit.cx(0, 1).cx(2, 3).cz(1, 2).gate("rxx", [0, 3], [theta])
    compiled = circuit.compile()
    amplitudes = compiled.state([0.8]).numpy()
    probabilities = np.abs(amplitudes) ** 2
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-5)
    shots = 20_000
    drawn = compiled.sample(shots, [0.8], seed=5)
    assert drawn.dtype == np.uint64 and (drawn == compiled.sample(shots, {"theta": 0.8}, seed=5)).all()
    counts = np.bincount(drawn.astype(np.int64), minlength=16)
    # χ² with 15 degrees of freedom is above 55 in one of 10^6 runs; the seed is fixed.
    assert (((counts - shots * probabilities) ** 2) / np.maximum(shots * probabilities, 1)).sum() < 55
    letters = {"I": np.eye(2), "X": X, "Y": np.array([[0, -1j], [1j, 0]]), "Z": np.diag([1, -1])}
    terms = [("XYZI", 0.7), ("ZZII", -1.3), ("IIYX", 2.0)]
    whole = 0.0
    for text, factor in terms:
        matrix = np.eye(1)
        for letter in text:
            matrix = np.kron(matrix, letters[letter])
        whole += factor * float((amplitudes.conj() @ matrix @ amplitudes).real)
    assert compiled.expectation(terms, [0.8]) == pytest.approx(whole, abs=2e-5)
    with pytest.raises(ValueError):
        compiled.expectation([("XX", 1.0)], [0.8])


def test_amplitudes_share_their_memory_and_replay_for_many_parameters() -> None:
    circuit = circuits.Circuit(10)
    theta = circuit.parameter("theta")
    for qubit in range(10):
        circuit.rx(theta * (qubit + 1), qubit)
    compiled = circuit.compile(device="cpu")
    states = compiled.states([[0.1], [0.2], [0.3]])
    assert states.shape == (3, 1024) and states.dtype == cantus.complex64
    first, second = np.from_dlpack(states), np.from_dlpack(states)
    assert np.shares_memory(first, second)
    for row, value in zip(first, (0.1, 0.2, 0.3)):
        expected = np.ones(1)
        for qubit in range(10):
            angle = value * (qubit + 1) / 2
            expected = np.kron([math.cos(angle), -1j * math.sin(angle)], expected)
        np.testing.assert_allclose(row, expected, atol=1e-6)
    # Further arithmetic stays on the device.
    total = cantus.sum(cantus.abs(states) ** 2, axis=1)
    np.testing.assert_allclose(total.numpy(), np.ones(3), atol=1e-5)


def test_circuits_are_loaded_where_they_are_used() -> None:
    code = "import sys, cantus; assert 'cantus.circuits' not in sys.modules; cantus.circuits.Circuit(1); assert 'cantus.circuits' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
