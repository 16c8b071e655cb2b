"""Writes qiskit.json: OpenQASM programs, and the amplitudes that Qiskit computes after it has read them itself.

Run with qiskit 2.6 and qiskit-qasm3-import 0.6: python tests/circuits/record.py
"""

import json
import math
import pathlib
import random

import qiskit.qasm2
import qiskit.qasm3
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFT, GroverOperator, QuantumVolume, efficient_su2
from qiskit.circuit.random import random_circuit
from qiskit.quantum_info import Statevector

LEGACY = qiskit.qasm2.LEGACY_CUSTOM_INSTRUCTIONS

WRITTEN = {
    "modifiers": """OPENQASM 3.0; include "stdgates.inc";
gate pair(a) x, y { h x; ctrl @ rz(a) x, y; inv @ t y; }
qubit[4] q;
h q; ctrl @ pair(0.3) q[0], q[1], q[2]; negctrl @ x q[3], q[0]; inv @ pair(1.1) q[2], q[3];
ctrl(2) @ ry(0.7) q[0], q[1], q[2]; negctrl(2) @ ctrl @ h q[0], q[1], q[2], q[3]; ctrl @ inv @ s q[1], q[3];""",
    "loops": """OPENQASM 3.0; include "stdgates.inc";
const int n = 4; qubit[n] q; let odd = q[{1, 3}];
for uint i in [0:n - 1] { ry(pi / (i + 2)) q[i]; }
for int i in {0, 2} { cx q[i], q[i + 1]; }
rz(-pi / 3) odd; rx(sin(0.4) * 2) q[-1]; cp(2 * pi / 2 ** 3) q[0], q[3];""",
    "library": """OPENQASM 2.0; include "qelib1.inc";
gate mine(a, b) p, q { u3(a, b, -a/2) p; cu1(b^2) p, q; rzz(a*b) p, q; }
qreg q[5]; h q; mine(0.4, sin(1)) q[0], q[3]; rccx q[0], q[1], q[2]; c3x q[0], q[1], q[2], q[3]; cu3(0.1,0.2,0.3) q[1], q[4];
sxdg q[2]; csx q[0], q[4]; rxx(0.3) q[1], q[2]; c4x q[0], q[1], q[2], q[3], q[4]; cswap q[0], q[1], q[2]; ch q[4], q[0]; rc3x q[4], q[3], q[2], q[1];
u2(0.3, -0.4) q[1]; c3sqrtx q[1], q[2], q[3], q[4]; cu(0.1, 0.2, 0.3, 0.4) q[2], q[3]; crx(1.3) q[3], q[0]; cry(-0.3) q[2], q[0]; u0(1) q[0];""",
}


def read(text: str) -> QuantumCircuit:
    if text.startswith("OPENQASM 2"):
        return qiskit.qasm2.loads(text, custom_instructions=LEGACY)
    return qiskit.qasm3.loads(text)


def programs() -> dict[str, str]:
    random.seed(7)
    oracle = QuantumCircuit(3)
    oracle.ccz(0, 1, 2)
    grover = QuantumCircuit(3)
    grover.h(range(3))
    for _ in range(2):
        grover.compose(GroverOperator(oracle), inplace=True)
    ansatz = efficient_su2(4, reps=2)
    ansatz = ansatz.assign_parameters([random.uniform(-math.pi, math.pi) for _ in ansatz.parameters])
    made = {"grover": grover, "ansatz": ansatz, "qft": QFT(5), "volume": QuantumVolume(4, 4, seed=3)}
    for seed in range(24):
        made[f"random {seed}"] = random_circuit(2 + seed % 4, 6, max_operands=4, seed=seed)
    texts = dict(WRITTEN)
    for name, circuit in made.items():
        circuit = circuit.decompose(reps=4) if name in ("grover", "volume", "qft") else circuit
        texts[f"{name}, 2"] = qiskit.qasm2.dumps(circuit)
        texts[f"{name}, 3"] = qiskit.qasm3.dumps(circuit)
    return texts


def main() -> None:
    rows = []
    for name, text in programs().items():
        try:
            circuit = read(text)
        except Exception as error:  # What Qiskit itself does not read is no witness.
            print("left out:", name, str(error)[:100])
            continue
        values = Statevector(circuit).data
        rows.append({"name": name, "text": text, "amplitudes": [[float(f"{v.real:.9g}"), float(f"{v.imag:.9g}")] for v in values]})
    path = pathlib.Path(__file__).with_name("qiskit.json")
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(len(rows), "programs,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
