"""Runs circuits on every device beside Qiskit Aer: amplitudes, gradients, samples, noise, and rounds of the surface code.

    python aer.py [--circuits 1000] [--seed 1] [--from 0]

It needs `cantus`, `qiskit` and `qiskit_aer`. Random circuits have 2 to 12 qubits and all gates of Qiskit's library, gates with open controls, and random
matrices; each comes by `from_qiskit`, or is written as OpenQASM 2 or 3 and read here, where Qiskit loses its global phase. Amplitudes of complex64 have to be within 1e-5 of Aer's, and those of
complex128 within 1e-12. Counts are held against Aer's exact probabilities (its density matrix, where there is noise) by Pearson's χ²: seeds are fixed, so a run
always gives the same. The exit status says whether all held.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import sys
from collections.abc import Callable, Iterable

import cantus
import numpy as np
import qiskit.qasm2
import qiskit.qasm3
from qiskit import QuantumCircuit, transpile
from qiskit.circuit.library import QFT, GroverOperator, QuantumVolume, UnitaryGate, efficient_su2, get_standard_gate_name_mapping
from qiskit.quantum_info import SparsePauliOp, Statevector, random_unitary
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, amplitude_damping_error, depolarizing_error

LIBRARY = {name: gate for name, gate in get_standard_gate_name_mapping().items() if name not in ("measure", "reset", "delay")}
EXACT = AerSimulator(method="statevector", precision="double")
FAULTS: list[str] = []
WORST: collections.defaultdict[str, float] = collections.defaultdict(float)


def fault(text: str) -> None:
    FAULTS.append(text)
    if len(FAULTS) <= 20:
        print("FAULT", text, flush=True)


def amplitudes(circuit: QuantumCircuit) -> np.ndarray:
    """Those of Aer."""
    copy = circuit.copy()
    copy.save_statevector()
    return np.asarray(EXACT.run(transpile(copy, EXACT, optimization_level=0)).result().get_statevector())


def random_circuit(rng: random.Random, qubits: int, gates: int, matrices: bool) -> QuantumCircuit:
    circuit = QuantumCircuit(qubits, global_phase=rng.uniform(0, 6))
    while len(circuit.data) < gates:
        kind = rng.randrange(12 if matrices else 10)
        if kind >= 10:
            count = rng.randint(1, min(3, qubits))
            gate = UnitaryGate(random_unitary(2**count, seed=rng.randrange(2**31)))
        else:
            gate = LIBRARY[rng.choice(list(LIBRARY))]
            gate = gate.base_class(*(rng.uniform(-7, 7) for _ in gate.params))
            if kind == 9 and 0 < gate.num_qubits < 3:
                count = rng.randint(1, 2)
                gate = gate.control(count, ctrl_state=rng.randrange(2**count), annotated=False)
            elif kind == 8 and gate.num_qubits:
                gate = gate.inverse(annotated=False)
        if gate.num_qubits <= qubits:
            circuit.append(gate, rng.sample(range(qubits), gate.num_qubits))
    return circuit


def beside(name: str, circuit: QuantumCircuit, way: int, devices: dict[str, bool]) -> None:
    """The amplitudes on every device, of a circuit that comes by `from_qiskit` (0), OpenQASM 3 (1) or OpenQASM 2 (2)."""
    if way == 0:
        own = cantus.circuits.from_qiskit(circuit)
    else:
        # Qiskit defines a gate without qubits there, which no grammar has.
        circuit.data = [row for row in circuit.data if row.operation.name != "global_phase"]
        own = cantus.circuits.from_qasm(qiskit.qasm3.dumps(circuit) if way == 1 else qiskit.qasm2.dumps(circuit))
    expected = amplitudes(circuit)
    if way > 0:
        # It writes no global phases, of circuits and of the gates that it defines.
        place = int(np.abs(expected).argmax())
        turn = own.compile(double=True, device="cpu").state().numpy()[place] / expected[place]
        expected = expected * turn / abs(turn)
    for device, has_double in devices.items():
        for double in (False, True) if has_double else (False,):
            found = own.compile(double=double, device=device).state().numpy()
            distance = float(np.abs(found - expected).max())
            kind = f"{device}, complex{128 if double else 64}"
            WORST[kind] = max(WORST[kind], distance)
            if not distance < (1e-12 if double else 1e-5):
                fault(f"{name} on {kind}: amplitudes are {distance} apart")


def named() -> Iterable[tuple[str, QuantumCircuit]]:
    for qubits in (2, 3, 5, 8, 11):
        yield f"QFT of {qubits} qubits", QFT(qubits).decompose(reps=3)
    for qubits in (3, 4, 6):
        oracle = QuantumCircuit(qubits)
        oracle.append(LIBRARY["z"].base_class().control(qubits - 1, annotated=False), list(range(qubits)))
        grover = QuantumCircuit(qubits)
        grover.h(range(qubits))
        for _ in range(3):
            grover.compose(GroverOperator(oracle), inplace=True)
        yield f"Grover's search in {qubits} qubits", grover.decompose(reps=4)
    for qubits in (2, 5, 8, 11):
        yield f"quantum volume of {qubits} qubits", QuantumVolume(qubits, qubits, seed=qubits).decompose()


def gradients(devices: dict[str, bool]) -> None:
    """An ansatz: each parameter turns one qubit, so its derivative is half the difference of the values a quarter turn to both sides."""
    rng = np.random.default_rng(1)
    for qubits, repetitions in ((2, 1), (4, 2), (6, 1)):
        ansatz = efficient_su2(qubits, reps=repetitions)
        terms = [("".join(rng.choice(list("IXYZ"), qubits)), float(rng.normal())) for _ in range(4)]
        observable = SparsePauliOp([letters for letters, _ in terms], [factor for _, factor in terms])
        values = rng.uniform(-3, 3, ansatz.num_parameters)

        def energy(values: np.ndarray) -> float:
            return float(Statevector(amplitudes(ansatz.assign_parameters(values))).expectation_value(observable).real)

        quarter = np.eye(len(values)) * math.pi / 2
        expected = [(energy(values + step) - energy(values - step)) / 2 for step in quarter]
        own = cantus.circuits.from_qiskit(ansatz)
        for device, has_double in devices.items():
            compiled = own.compile(double=has_double, device=device)
            value, slope = compiled.gradient(terms, list(values))
            within = 1e-9 if has_double else 1e-4
            distance = max(abs(value - energy(values)), float(np.abs(np.array(slope) - expected).max()))
            kind = f"{device}, gradients{'' if has_double else ' in complex64'}"
            WORST[kind] = max(WORST[kind], distance)
            if not distance < within:
                fault(f"the gradient of {qubits} qubits on {device} is {distance} apart")


def fits(name: str, counts: dict[str, int], probabilities: dict[str, float]) -> None:
    """Pearson's χ², with rare outcomes as one class. Wilson and Hilferty: its cube root is nearly normal; 4.3 deviations come once in 10^5."""
    shots = sum(counts.values())
    total, classes, rare, rare_expected = 0.0, 0, 0.0, 0.0
    for outcome in set(counts) | set(probabilities):
        count, expected = counts.get(outcome, 0), shots * probabilities.get(outcome, 0.0)
        if expected < 5:
            rare, rare_expected = rare + count, rare_expected + expected
        else:
            total, classes = total + (count - expected) ** 2 / expected, classes + 1
    if rare_expected >= 1:
        total, classes = total + (rare - rare_expected) ** 2 / rare_expected, classes + 1
    elif rare > 5:
        return fault(f"{name}: {rare} outcomes that do not happen")
    degrees = max(classes, 2) - 1
    deviation = 2 / (9 * degrees)
    normal = ((total / degrees) ** (1 / 3) - (1 - deviation)) / math.sqrt(deviation)
    WORST["χ², in deviations of a normal distribution"] = max(WORST["χ², in deviations of a normal distribution"], normal)
    if normal > 4.3:
        fault(f"{name}: χ² = {total:.1f} with {degrees} degrees of freedom")
    return None


def exact(circuit: QuantumCircuit, noise: NoiseModel | None) -> dict[str, float]:
    """The probabilities of what a circuit measures at its end: Aer's, by its density matrix."""
    simulator = AerSimulator(method="density_matrix", noise_model=noise)
    measured = {circuit.find_bit(row.qubits[0]).index: circuit.find_bit(row.clbits[0]).index for row in circuit.data if row.operation.name == "measure"}
    copy = circuit.remove_final_measurements(inplace=False)
    copy.save_density_matrix()
    diagonal = np.real(np.diag(np.asarray(simulator.run(copy).result().data()["density_matrix"])))
    probabilities: collections.Counter[str] = collections.Counter()
    for state, probability in enumerate(diagonal):
        outcome = ["0"] * len(measured)
        for qubit, bit in measured.items():
            outcome[len(outcome) - 1 - bit] = str(state >> qubit & 1)
        probabilities["".join(outcome)] += float(probability)
    return dict(probabilities)


def model(one: float, two: float, damping: float) -> NoiseModel:
    """The noise of `counts`: depolarising, then damping of each qubit."""
    noise, damped = NoiseModel(), amplitude_damping_error(damping)
    single, pair = depolarizing_error(one, 1), depolarizing_error(two, 2)
    if damping > 0:
        single, pair = single.compose(damped), pair.compose(damped.tensor(damped))
    noise.add_all_qubit_quantum_error(single, ["u", "x", "y", "z", "h", "s", "t", "rx", "ry", "rz"])
    noise.add_all_qubit_quantum_error(pair, ["cx", "cz"])
    return noise


def misread(probabilities: dict[str, float], zero: float, one: float) -> dict[str, float]:
    """The probabilities of what is read."""
    for bit in range(len(next(iter(probabilities)))):
        after: collections.Counter[str] = collections.Counter()
        for outcome, probability in probabilities.items():
            wrong = one if outcome[bit] == "1" else zero
            flipped = outcome[:bit] + ("0" if outcome[bit] == "1" else "1") + outcome[bit + 1 :]
            after[outcome] += probability * (1 - wrong)
            after[flipped] += probability * wrong
        probabilities = dict(after)
    return probabilities


def samples(devices: dict[str, bool]) -> None:
    rng = random.Random(5)
    for qubits in (2, 4, 6):
        circuit = random_circuit(rng, qubits, 30, True)
        probabilities = {format(state, f"0{qubits}b"): abs(value) ** 2 for state, value in enumerate(amplitudes(circuit))}
        for device in devices:
            counts = cantus.circuits.from_qiskit(circuit).counts(20_000, seed=qubits, device=device)
            fits(f"samples of {qubits} qubits on {device}", counts, probabilities)
    for qubits in (2, 3):
        circuit = QuantumCircuit(qubits, qubits)
        for _ in range(4):
            for qubit in range(qubits):
                getattr(circuit, rng.choice(["rx", "ry", "rz"]))(rng.uniform(0, 3), qubit)
            circuit.cx(*rng.sample(range(qubits), 2))
        circuit.measure(range(qubits), range(qubits))
        for one, two, damping in ((0.1, 0.2, 0.0), (0.0, 0.0, 0.15), (0.05, 0.1, 0.08)):
            probabilities = misread(exact(circuit, model(one, two, damping)), 0.03, 0.1)
            own = cantus.circuits.from_qiskit(circuit)
            for device in devices:
                shots = 4000 if device == "cpu" else 500
                counts = own.counts(shots, seed=7, depolarising=(one, two), damping=damping, readout=(0.03, 0.1), device=device)
                fits(f"noise {one}, {two}, {damping} on {qubits} qubits on {device}", counts, probabilities)


def surface(devices: dict[str, bool]) -> None:
    """Two rounds of the rotated surface code of distance 2, with resets between: the outcomes of all shots beside those of Aer's."""
    stabilizers = [("X", (0, 1, 2, 3)), ("Z", (0, 2)), ("Z", (1, 3))]
    circuit = QuantumCircuit(7, 10)
    for turn in range(2):
        for at, (kind, qubits) in enumerate(stabilizers):
            if kind == "X":
                circuit.h(4 + at)
            for qubit in qubits:
                circuit.cx(*((4 + at, qubit) if kind == "X" else (qubit, 4 + at)))
            if kind == "X":
                circuit.h(4 + at)
            circuit.measure(4 + at, 3 * turn + at)
            circuit.reset(4 + at)
    circuit.measure(range(4), range(6, 10))
    own = cantus.circuits.from_qiskit(circuit)
    for noise, given in ((None, (0.0, 0.0)), (model(0.02, 0.02, 0.0), (0.02, 0.02))):
        simulator = AerSimulator(method="stabilizer", noise_model=noise, seed_simulator=1)
        shots = 100_000
        raw = simulator.run(circuit, shots=shots).result().get_counts()
        known = {outcome: count / shots for outcome, count in raw.items()}

        def detectors(outcome: str) -> str:
            bits = [int(letter) for letter in reversed(outcome)]
            changed = [bits[at] ^ bits[3 + at] for at in range(3)]
            parity = [bits[1] ^ bits[6] ^ bits[8], bits[2] ^ bits[7] ^ bits[9]]
            return "".join(map(str, [*changed, *parity]))

        def folded(rows: dict[str, float], key: Callable[[str], str]) -> dict[str, float]:
            after: collections.Counter[str] = collections.Counter()
            for outcome, count in rows.items():
                after[key(outcome)] += count
            return dict(after)

        for device in devices:
            counts = own.counts(4000 if device == "cpu" else 300, seed=3, depolarising=given, device=device)
            name = f"the surface code, {'noisy' if noise else 'without noise'}, on {device}"
            fits(f"{name}: detectors", {k: int(v) for k, v in folded(counts, detectors).items()}, folded(known, detectors))
            if noise is None:
                fits(f"{name}: outcomes", counts, known)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--circuits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    options = parser.parse_args()
    devices = {row["device"]: row["float64"] == "yes" or row["float64"] is True for row in cantus.devices() if not row.get("reason")}
    print("devices:", devices, flush=True)
    ways: collections.Counter[str] = collections.Counter()
    for at in range(options.first, options.first + options.circuits):
        rng, way = random.Random(f"{options.seed} {at}"), at % 3
        circuit = random_circuit(rng, 2 + at % 11, rng.randint(10, 60), way == 0)
        ways[("from_qiskit", "OpenQASM 3", "OpenQASM 2")[way]] += 1
        beside(f"circuit {at}", circuit, way, devices)
        if at % 100 == 99:
            print(at + 1, dict(WORST), flush=True)
    for name, circuit in named():
        ways["named"] += 1
        beside(name, circuit, 0, devices)
    gradients(devices)
    samples(devices)
    surface(devices)
    print(f"circuits: {dict(ways)}")
    for kind, distance in WORST.items():
        print(f"{distance:9.2g} at most: {kind}")
    print(f"{len(FAULTS)} faults")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
