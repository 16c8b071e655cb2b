"""Writes circuits as OpenQASM files, and times Qiskit Aer's statevector method on them: single precision, fusion, two threads, the median of seven runs.

    python aer.py FOLDER [16 20 24]            writes the files and times Aer
    cargo bench -p cantus-circuits -- FOLDER/*.qasm    times this crate
"""

import math
import pathlib
import random
import statistics
import sys
import time

import qiskit.qasm2
from qiskit import QuantumCircuit, transpile
from qiskit.circuit.library import quantum_volume
from qiskit.synthesis.qft import synth_qft_full
from qiskit_aer import AerSimulator


def layered(qubits: int, depth: int) -> QuantumCircuit:
    """Random gates of one qubit on all qubits, and CX on random pairs, in turn."""
    random.seed(qubits)
    circuit = QuantumCircuit(qubits)
    for _ in range(depth):
        for qubit in range(qubits):
            circuit.u(*(random.uniform(0, 2 * math.pi) for _ in range(3)), qubit)
        order = random.sample(range(qubits), qubits)
        for a, b in zip(order[::2], order[1::2]):
            circuit.cx(a, b)
    return circuit


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    simulator = AerSimulator(method="statevector", precision="single", max_parallel_threads=2, fusion_enable=True)
    for qubits in map(int, sys.argv[2:] or ("16", "20", "24")):
        volume = transpile(quantum_volume(qubits, qubits, seed=1), basis_gates=["u", "cx"], optimization_level=1)
        made = {"qft": synth_qft_full(qubits), "volume": volume, "layers": layered(qubits, 20)}
        for name, circuit in made.items():
            (folder / f"{name}{qubits}.qasm").write_text(qiskit.qasm2.dumps(circuit))
            # One amplitude is asked for, so that Aer computes the state and does not copy it.
            circuit = circuit.copy()
            circuit.save_amplitudes([0])
            ready = transpile(circuit, simulator, optimization_level=0)
            times = []
            for run in range(8):
                start = time.perf_counter()
                result = simulator.run(ready, shots=1).result()
                assert result.success, result.status
                times.append(1e3 * time.perf_counter() - 1e3 * start)
                inside = 1e3 * result.results[0].time_taken
            print(f"{name}{qubits}: {statistics.median(times[1:]):.2f} ms, of which Aer itself reports {inside:.2f}", flush=True)


if __name__ == "__main__":
    main()
