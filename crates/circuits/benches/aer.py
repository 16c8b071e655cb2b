"""Writes circuits as OpenQASM files, and times Qiskit Aer's statevector method on them, in turn with this crate: single precision, fusion, two threads.

    cargo bench -p cantus-circuits --no-run          names the program that times this crate
    python aer.py FOLDER PROGRAM [qft16 volume20 layers26]    a table row for each circuit, of 16, 20, 24 and 26 qubits: medians in milliseconds

Each circuit runs in the program, in Aer, and in the program again. Aer runs once to warm up and then seven times, or for as long as a minute if that is less,
but at least once. Files that are there already are not written again.
"""

import math
import pathlib
import random
import statistics
import subprocess
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


def made(name: str, qubits: int) -> QuantumCircuit:
    if name == "qft":
        return synth_qft_full(qubits)
    if name == "layers":
        return layered(qubits, 20)
    return transpile(quantum_volume(qubits, qubits, seed=1), basis_gates=["u", "cx"], optimization_level=1)


def aer(circuit: QuantumCircuit) -> tuple[float, float]:
    """The median of elapsed times, and of those that Aer itself reports."""
    simulator = AerSimulator(method="statevector", precision="single", max_parallel_threads=2, fusion_enable=True)
    # One amplitude is asked for, so that Aer computes the state and does not copy it.
    circuit.save_amplitudes([0])
    ready = transpile(circuit, simulator, optimization_level=0)
    times = []
    begin = time.perf_counter()
    while len(times) < 2 or (len(times) < 8 and time.perf_counter() - begin < 60):
        start = time.perf_counter()
        result = simulator.run(ready, shots=1).result()
        assert result.success, result.status
        times.append((1e3 * (time.perf_counter() - start), 1e3 * result.results[0].time_taken))
    return tuple(statistics.median(column) for column in zip(*times[1:]))


def main() -> None:
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(exist_ok=True)
    print("| circuit | this crate, before and after Aer | Aer | of which Aer itself reports | of Aer's time | of this crate |", flush=True)
    everything = [f"{name}{qubits}" for qubits in (16, 20, 24, 26) for name in ("qft", "volume", "layers")]
    for title in sys.argv[3:] or everything:
        file = folder / f"{title}.qasm"
        if file.exists():
            circuit = QuantumCircuit.from_qasm_file(str(file))
        else:
            circuit = made(title[:-2], int(title[-2:]))
            file.write_text(qiskit.qasm2.dumps(circuit))
        ours = []
        for turn in range(2):
            line = subprocess.run([program, str(file)], check=True, capture_output=True, text=True).stdout.split(": ", 1)[1].strip()
            ours.append(float(line.split()[0]))
            if turn == 0:
                whole, inside = aer(circuit)
        said = line.partition("(")[2]
        print(f"| {title} | {ours[0]:.2f}, {ours[1]:.2f} | {whole:.2f} | {inside:.2f} | {max(ours) / whole:.3f} | ({said} |", flush=True)


if __name__ == "__main__":
    main()
