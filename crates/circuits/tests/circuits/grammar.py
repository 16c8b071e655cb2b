"""Reads random OpenQASM 3 programs beside the package `openqasm3`, and runs what both read beside Qiskit.

    python grammar.py [--programs 10000] [--seed 1] [--from 0] [--show 3]

It needs `cantus`, `openqasm3[parser]` and `qiskit`. Programs are made by the grammar of what `Circuit::from_qasm` takes; in every second one a word is then left
out, put in, exchanged or doubled. Both have to refuse it, or both have to take it with the same qubits, bits, parameters and amplitudes: those of a circuit that
this script builds from the syntax tree of `openqasm3`. `openqasm3` checks the syntax alone, so what only Cantus refuses has to be for one of the reasons in
MEANING, which are counted. Anything else is a disagreement, and the exit status says whether there are any.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import math
import random
import re
import sys

import cantus
import numpy as np
import openqasm3
from openqasm3 import ast
from qiskit import QuantumCircuit
from qiskit.circuit import library
from qiskit.quantum_info import Statevector

# What a program means, which `openqasm3` does not check, and what is not taken: the reasons of errors that only Cantus gives.
MEANING = {
    "a name is not declared": r"is not declared$|there is no gate|there is no function|is no function|is no variable|is no register of bits",
    "a name is declared twice": r"is declared already|have one name|is taken already|twice",
    "a name of another kind": r"is not of qubits|is of qubits|is a gate, and|does not change",
    "a gate with other qubits or angles": r"takes \d+ (angles|qubits|one)|has \d+ controls and|does not take \d+ values|takes one value|at most 63 controls|from 1 to 63 controls",
    "a gate on one qubit twice": r"more than once|distinct|the same qubit|are equal",
    "registers of unequal sizes": r"unequal sizes|qubits are measured into",
    "an index outside a register": r"in a register of|a size is above 0|limit",
    "a value that is not defined": r"an integer is expected|is not defined|the value is|is no integer of|has no value|step of a range|is no text of|is not finite|not negative|takes no",
    "a value that is not constant": r"depends on (a parameter|measurements)|depend on measurements|depends on a parameter",
    "a construct that is not taken": r"(is|are) not taken|only whole powers|only assigned by measurements|include|above 1,000,000|is not allowed in a gate|have no parts",
    "a declaration inside a block": r"are declared outside of blocks",
    "limits of steps and sizes": r"steps|nests deeper|more than \d+ (bits|parts|names|bytes)",
}

ONE = "x y z h s sdg t tdg sx id".split()
ANGLED = {"rx": 1, "ry": 1, "rz": 1, "p": 1, "phase": 1, "u1": 1, "u2": 2, "u3": 3, "U": 3}
TWO = "cx cy cz ch swap CX".split()
TWO_ANGLED = {"cp": 1, "crx": 1, "cry": 1, "crz": 1, "cphase": 1, "cu": 4}
THREE = "ccx cswap".split()


class Generator:
    """One program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.qubits: dict[str, int] = {}
        self.bits: dict[str, int] = {}
        self.numbers: list[str] = []
        self.integers: dict[str, int] = {}
        self.variables: list[str] = []
        self.inputs: list[str] = []
        self.gates: dict[str, tuple[int, int]] = {}
        self.names = 0
        self.wires = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self) -> str:
        self.names += 1
        return self.rng.choice(["a", "q_", "reg", "Gate", "_x", "θ", "αβ", "k1"]) + str(self.names)

    def integer(self, value: int) -> str:
        forms = [str(value), str(value), hex(value), bin(value), oct(value), f"({value})", f"{value} + 0", f"2 * {value} - {value}", f"int({value})"]
        forms += [f"{value:03d}", f"(1 << {value.bit_length()}) - {(1 << value.bit_length()) - value}", f"{value} % 1_000", f"int[16]({value})"]
        forms += [name for name, known in self.integers.items() if known == value]
        return self.rng.choice(forms)

    def number(self, depth: int = 0) -> str:
        """A constant expression, never far from 1."""
        pick = self.rng.randrange(14 if depth < 3 else 5)
        if pick < 2:
            return self.rng.choice(["0.5", "1.25", ".75", "1.", "2e-1", "1.5E0", "12_0.5e-2", "3", "0x2", "0b11", "1e+0"])
        if pick < 4:
            return self.rng.choice(["pi", "π", "tau", "τ", "euler", "ℇ", "pi / 2", "-pi / 4"])
        if pick == 4:
            return self.rng.choice(self.numbers) if self.numbers else "0.3"
        a, b = self.number(depth + 1), self.number(depth + 1)
        forms = [f"{a} + {b}", f"{a} - {b}", f"({a}) * {b}", f"({a}) / 3", f"-({a})", f"({a})", f"- {a}", f"sin({a})", f"cos({a} * 2)"]
        forms += [f"exp(-({a}) * ({a}))", f"sqrt(({a}) * ({a}))", f"arctan({a})", f"2 ** -1 * {a}", f"float({a})", f"ceiling({a})", f"floor({a})", f"({a}) * 2 ** 2 / 5"]
        return self.rng.choice(forms)

    def angle(self) -> str:
        if self.inputs and self.chance(0.3):
            name = self.rng.choice(self.inputs)
            return self.rng.choice([name, f"2 * {name}", f"{name} / 3 + {self.number(2)}", f"-{name}", f"sin({name})", f"({name} - 1) * {name}"])
        return self.number()

    def index(self, size: int) -> str:
        value = self.rng.randrange(size)
        return f"-{size - value}" if self.chance(0.15) else self.integer(value)

    def one(self, used: set[tuple[str, int]]) -> str | None:
        free = [(name, at) for name, size in self.qubits.items() for at in range(size) if (name, at) not in used]
        if not free:
            return None
        name, at = self.rng.choice(free)
        used.add((name, at))
        size = self.qubits[name]
        if size == 1 and self.chance(0.5):
            return name
        return f"{name}[{self.integer(at) if self.chance(0.85) else f'-{size - at}'}]"

    def register(self, name: str) -> str:
        """A register, or a part of it."""
        size = self.qubits[name]
        pick = self.rng.randrange(5)
        if size < 2 or pick < 2:
            return name
        first = self.rng.randrange(size - 1)
        last = self.rng.randrange(first + 1, size)
        if pick == 2:
            return f"{name}[{first}:{last}]"
        if pick == 3:
            return self.rng.choice([f"{name}[{first}:1:{last}]", f"{name}[{last}:-1:{first}]", f"{name}[:{last}]", f"{name}[{first}:]", f"{name}[:]"])
        return f"{name}[{{{first}, {last}{', ' if self.chance(0.1) else ''}}}]"

    def call(self, operands: list[str] | None = None, angles: list[str] | None = None) -> str | None:
        """A call of a gate: on qubits of the program, or inside a gate's body on its own ones."""
        modifiers, controls = "", 0
        while self.chance(0.25) and controls < 3:
            pick = self.rng.randrange(6)
            if pick == 0:
                modifiers += "inv @ "
            elif pick == 1:
                modifiers += f"pow({self.rng.choice(['2', '0', '-1', '3', '1 + 1', '-2'])}) @ "
            elif pick == 2:
                modifiers += "ctrl(2) @ "
                controls += 2
            else:
                modifiers += self.rng.choice(["ctrl @ ", "negctrl @ ", "ctrl(1)@ "])
                controls += 1
        kinds = [(name, 0, 1) for name in ONE] + [(name, count, 1) for name, count in ANGLED.items()] + [(name, 0, 2) for name in TWO]
        kinds += [(name, count, 2) for name, count in TWO_ANGLED.items()] + [(name, 0, 3) for name in THREE]
        kinds += [(name, *of) for name, of in self.gates.items()] * 3 + [("gphase", 1, 0)] * 2
        name, count, targets = self.rng.choice(kinds)
        needed = controls + targets
        if operands is None:
            used: set[tuple[str, int]] = set()
            chosen = [self.one(used) for _ in range(needed)]
            if self.chance(0.2) and needed == 1:
                chosen = [self.register(self.rng.choice(list(self.qubits)))]
        else:
            chosen = self.rng.sample(operands, needed) if needed <= len(operands) else [None]
        if None in chosen:
            return None
        given = [self.rng.choice(angles) if angles and self.chance(0.5) else (self.number() if operands is not None else self.angle()) for _ in range(count)]
        call = f"({', '.join(given)}{', ' if self.chance(0.02) else ''})" if count or self.chance(0.02) else ""
        return f"{modifiers}{name}{call} {', '.join(chosen)};"

    def definition(self) -> str:
        name = self.name()
        parameters, targets = [f"p{k}" for k in range(self.rng.randrange(3))], [f"w{k}" for k in range(self.rng.randrange(1, 4))]
        body = []
        for _ in range(self.rng.randrange(4)):
            angles = [form.replace("P", p) for p in parameters for form in ("P", "P / 2", "-P", "P * P", "sin(P) + 1")]
            body.append(self.call(targets, angles) or "")
        header = f"({', '.join(parameters)})" if parameters or self.chance(0.2) else ""
        self.gates[name] = (len(parameters), len(targets))
        return f"gate {name}{header} {', '.join(targets)} {{ {' '.join(body)} }}"

    def condition(self) -> str:
        name = self.rng.choice(list(self.bits))
        size = self.bits[name]
        at = self.rng.randrange(size)
        forms = [f"{name}[{at}]", f"!{name}[{at}]", f"{name}[{at}] == 1", f"{name}[{at}] != true", f"{name} == {self.rng.randrange(2**size)}"]
        forms += [f"{name} < {2**size - 1}", f"{name}[{at}] && !{name}[0]", f"({name} >= 1) || {name}[{at}]"]
        return self.rng.choice(forms)

    def block(self, depth: int) -> str:
        if self.chance(0.2):
            return self.simple()
        return "{ " + " ".join(self.statement(depth + 1) for _ in range(self.rng.randrange(3))) + " }"

    def simple(self) -> str:
        for _ in range(4):
            if text := self.call():
                return text
        return "gphase(0.5);"

    def statement(self, depth: int) -> str:
        pick = self.rng.randrange(40)
        if depth == 0 and pick < 3 and self.wires < 6:
            size = self.rng.randrange(1, 3)
            name = self.name()
            self.qubits[name], self.wires = size, self.wires + size
            return self.rng.choice([f"qubit[{self.integer(size)}] {name};", f"qreg {name}[{self.integer(size)}];"]) if size > 1 else f"qubit {name};"
        if depth == 0 and pick == 3:
            size = self.rng.randrange(1, 4)
            name = self.name()
            self.bits[name] = size
            return self.rng.choice([f"bit[{size}] {name};", f"creg {name}[{size}];"])
        if depth == 0 and pick == 4:
            name = self.name()
            value = self.rng.randrange(4)
            text = f"const {self.rng.choice(['int', 'uint', 'uint[8]', 'int[32]'])} {name} = {self.integer(value)};"
            self.integers[name] = value
            return text
        if depth == 0 and pick == 5:
            name = self.name()
            text = f"const {self.rng.choice(['float', 'float[64]', 'angle'])} {name} = {self.number()};"
            self.numbers.append(name)
            return text
        if depth == 0 and pick == 6:
            name = self.name()
            self.inputs.append(name)
            return f"input {self.rng.choice(['float', 'angle', 'float[64]', 'angle[32]'])} {name};"
        if depth == 0 and pick < 10:
            return self.definition()
        if depth == 0 and pick == 10:
            name = self.name()
            source = self.rng.choice(list(self.qubits))
            text = f"let {name} = {self.register(source)};"
            return text
        if pick == 11 and depth < 3:
            name = self.name()
            values = self.rng.choice(["[0:1]", "[0:2]", "[2:-1:0]", "{0, 1}", "[1:0]", "[0:2:3]", "{1}", "[-1:1]", "{0, 3,}"])
            kind = self.rng.choice(["int", "uint", "int[16]", "uint[8]"])
            self.numbers.append(name)
            text = f"for {kind} {name} in {values} {self.block(depth)}"
            self.numbers.remove(name)
            return text
        if pick == 12 and depth < 3:
            name = self.name()
            outer = f"{{ int {name} = 0; while ({name} < {self.rng.randrange(3)}) {{ {name} += 1; {self.simple()} }} }}"
            return outer if depth else outer[2:-2]
        if pick == 13 and depth < 3:
            test = self.rng.choice(["true", "false", "1 < 2", "3 == 2", "!false", "2 >= 2 && true", "1 > 2 || false", "1 != 1"])
            tail = f" else {self.block(depth)}" if self.chance(0.5) else ""
            return f"if ({test}) {self.block(depth)}{tail}"
        if pick == 14 and depth < 3 and self.bits:
            tail = f" else {self.block(depth)}" if self.chance(0.4) else ""
            return f"if ({self.condition()}) {self.block(depth)}{tail}"
        if pick in (15, 16) and self.bits:
            name = self.rng.choice(list(self.bits))
            bit = f"{name}[{self.index(self.bits[name])}]" if self.bits[name] > 1 or self.chance(0.5) else name
            qubit = self.one(set())
            return self.rng.choice([f"{bit} = measure {qubit};", f"measure {qubit} -> {bit};"])
        if pick == 17 and self.chance(0.5):
            return f"reset {self.register(self.rng.choice(list(self.qubits)))};"
        if pick == 18:
            return self.rng.choice(["barrier;", f"barrier {self.register(self.rng.choice(list(self.qubits)))};", "// a note\n", "/* a\nnote */", "end;" if self.chance(0.05) else ""])
        if pick == 19 and self.chance(0.15):
            return self.rng.choice(
                ["delay[10ns] q;", "def f(int a) -> int { return a; }", "box { x q; }", "array[int, 3] z;", "switch (1) { case 1 { } }", "stretch a;"]
                + ["duration d = 3us;", "extern g(int) -> int;", "output float o;", "@note here\nx q;", "pragma here\n", "complex z = 1im;", "defcalgrammar \"openpulse\";"]
                + ["input int n;", "$0;", "x $0;", "measure q;", "nop;", "opaque g q;", "break;", "continue;", "return;", "cal { }"]
            )
        return self.simple()

    def program(self) -> str:
        lines = [self.rng.choice(["OPENQASM 3;", "OPENQASM 3.0;", "OPENQASM 3.1;", ""]), 'include "stdgates.inc";', "qubit[2] q;"]
        self.qubits["q"], self.wires = 2, 2
        # All qubits leave the computational basis, so that wrong phases show.
        lines += ["U(0.7, 0.2, 0.4) q[0];", "U(1.1, -0.3, 0.9) q[1];", "cx q[0], q[1];"]
        lines += [self.statement(0) for _ in range(self.rng.randrange(2, 14))]
        return "\n".join(line for line in lines if line) + "\n"


WORDS = re.compile(r'//[^\n]*\n|/\*.*?\*/|"[^"]*"|[^\W\d]\w*|\d[\w.]*|\s+|\*\*=?|->|[-+*/<>=!&|^%]=|<<|>>|&&|\|\||\+\+|.', re.S)
EXTRA = "; , ( ) [ ] { } : @ -> = == + - * / ** ++ += ! ~ 0 1 2.5 1_ 0x 1__0 q x cx gate qubit bit int const if else for in while ctrl inv pow measure reset let input end true pi \" ' # $ 'a' \"01\" 3ns é ½ \\".split()


def mutated(rng: random.Random, text: str) -> str:
    words = WORDS.findall(text)
    places = [at for at, word in enumerate(words) if not word.isspace()]
    at, pick = rng.choice(places), rng.randrange(6)
    if pick == 0:
        words[at] = ""
    elif pick == 1:
        words[at] += " " + words[at]
    elif pick == 2:
        other = rng.choice(places)
        words[at], words[other] = words[other], words[at]
    elif pick == 3:
        words[at] = rng.choice(EXTRA)
    elif pick == 4:
        words[at] = f"{words[at]} {rng.choice(EXTRA)} "
    else:
        words[at] = f"{words[at]} {words[rng.choice(places)]} "
    return "".join(words)


class Beyond(Exception):
    """The program goes beyond what this script builds: it depends on measurements, or means nothing."""


class Builder:
    """A circuit of Qiskit's from a syntax tree. Gates on qubits, by constants and the values of inputs; others raise Beyond."""

    FUNCTIONS = {"sin": math.sin, "cos": math.cos, "tan": math.tan, "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan, "exp": math.exp}
    FUNCTIONS |= {"log": math.log, "sqrt": math.sqrt, "ceiling": math.ceil, "floor": math.floor}
    CONSTANTS = {"pi": math.pi, "π": math.pi, "tau": math.tau, "τ": math.tau, "euler": math.e, "ℇ": math.e}
    GATES = {
        "x": library.XGate, "y": library.YGate, "z": library.ZGate, "h": library.HGate, "s": library.SGate, "sdg": library.SdgGate, "t": library.TGate,
        "tdg": library.TdgGate, "sx": library.SXGate, "id": library.IGate, "rx": library.RXGate, "ry": library.RYGate, "rz": library.RZGate,
        "p": library.PhaseGate, "phase": library.PhaseGate, "u1": library.U1Gate, "u2": library.U2Gate, "u3": library.U3Gate, "cx": library.CXGate,
        "CX": library.CXGate, "cy": library.CYGate, "cz": library.CZGate, "ch": library.CHGate, "swap": library.SwapGate, "cp": library.CPhaseGate,
        "cphase": library.CPhaseGate, "crx": library.CRXGate, "cry": library.CRYGate, "crz": library.CRZGate, "cu": library.CUGate, "ccx": library.CCXGate,
        "cswap": library.CSwapGate,
    }  # fmt: skip

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values
        self.scopes: list[dict[str, object]] = [{}]
        self.gates: dict[str, ast.QuantumGateDefinition] = {}
        self.qubits = self.bits = self.steps = 0
        self.dynamic = False
        self.measured: set[int] = set()
        self.calls: list[tuple[object, list[int]]] = []
        self.parameters: list[str] = []

    def look(self, name: str) -> object:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.CONSTANTS:
            return self.CONSTANTS[name]
        raise Beyond(name)

    def value(self, node: object) -> object:
        match node:
            case ast.IntegerLiteral() | ast.FloatLiteral() | ast.BooleanLiteral():
                return node.value
            case ast.BitstringLiteral():
                return node.value
            case ast.Identifier():
                found = self.look(node.name)
                if isinstance(found, tuple):
                    raise Beyond("bits and qubits")
                return found
            case ast.UnaryExpression():
                one = self.value(node.expression)
                return {"-": lambda: -one, "!": lambda: not one, "~": lambda: ~one}[node.op.name]()
            case ast.BinaryExpression():
                a, b, sign = self.value(node.lhs), self.value(node.rhs), node.op.name
                whole = isinstance(a, int) and isinstance(b, int)
                try:
                    operations = {
                        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: int(a / b) if whole else a / b, "%": lambda: a % b, "**": lambda: a**b,
                        "<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b, "==": lambda: a == b, "!=": lambda: a != b,
                        "&&": lambda: bool(a and b), "||": lambda: bool(a or b), "<<": lambda: a << b, ">>": lambda: a >> b, "&": lambda: a & b,
                        "|": lambda: a | b, "^": lambda: a ^ b,
                    }  # fmt: skip
                    return operations[sign]()
                except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
                    raise Beyond(str(error)) from error
            case ast.FunctionCall():
                if node.name.name not in self.FUNCTIONS:
                    raise Beyond(node.name.name)
                try:
                    return float(self.FUNCTIONS[node.name.name](*(self.value(one) for one in node.arguments)))
                except (ValueError, OverflowError, TypeError) as error:
                    raise Beyond(str(error)) from error
            case ast.Cast():
                one = self.value(node.argument)
                if isinstance(node.type, (ast.IntType, ast.UintType)):
                    return int(one)
                return bool(one) if isinstance(node.type, ast.BoolType) else float(one)
        raise Beyond(type(node).__name__)

    def range(self, node: ast.RangeDefinition, size: int | None = None) -> list[int]:
        first = self.value(node.start) if node.start is not None else 0
        last = self.value(node.end) if node.end is not None else -1
        step = self.value(node.step) if node.step is not None else 1
        if size is not None:
            first, last = first % size if -size <= first < size else 10**6, last % size if -size <= last < size else 10**6
        if step == 0 or not all(isinstance(one, int) for one in (first, last, step)):
            raise Beyond("range")
        values = range(first, last + (1 if step > 0 else -1), step)
        self.steps += len(values)
        if self.steps > 10**5:
            raise Beyond("steps")
        return list(values)

    def places(self, index: object, size: int) -> list[int]:
        if isinstance(index, ast.DiscreteSet):
            found = [self.value(one) for one in index.values]
        elif isinstance(index, list) and len(index) == 1:
            found = self.range(index[0], size) if isinstance(index[0], ast.RangeDefinition) else [self.value(index[0])]
        else:
            raise Beyond("index")
        if not all(isinstance(one, int) and -size <= one < size for one in found):
            raise Beyond("index")
        return [one % size for one in found]

    def operand(self, node: object, kind: str = "qubits") -> tuple[list[int], bool]:
        match node:
            case ast.Identifier():
                found = self.look(node.name)
            case ast.IndexedIdentifier():
                found = self.look(node.name.name)
                if not isinstance(found, tuple) or len(node.indices) != 1:
                    raise Beyond("index")
                found = (found[0], [found[1][at] for at in self.places(node.indices[0], len(found[1]))])
            case ast.IndexExpression():
                found = (kind, self.operand(node.collection, kind)[0])
                found = (kind, [found[1][at] for at in self.places(node.index, len(found[1]))])
            case ast.Concatenation():
                found = (kind, self.operand(node.lhs, kind)[0] + self.operand(node.rhs, kind)[0])
            case _:
                raise Beyond(type(node).__name__)
        if not isinstance(found, tuple) or found[0] != kind:
            raise Beyond("operand")
        return found[1], len(found[1]) != 1

    def gate(self, name: str, angles: list[float], count: int, depth: int) -> object:
        """A gate or a circuit of Qiskit's."""
        if name in self.gates:
            definition = self.gates[name]
            if len(definition.arguments) != len(angles) or len(definition.qubits) != count or depth > 20:
                raise Beyond("call")
            outer, self.scopes, calls, self.calls = self.scopes, [self.scopes[0]], self.calls, []
            scope: dict[str, object] = {argument.name: angle for argument, angle in zip(definition.arguments, angles)}
            scope |= {qubit.name: ("qubits", [at]) for at, qubit in enumerate(definition.qubits)}
            self.scopes.append(scope)
            made = QuantumCircuit(count)
            for statement in definition.body:
                self.run(statement, depth + 1)
            for one, places in self.calls:
                made.append(one, places)
            self.scopes, self.calls = outer, calls
            return made.to_gate()
        if name == "gphase":
            if len(angles) != 1 or count:
                raise Beyond("call")
            return library.GlobalPhaseGate(angles[0])
        if name == "U":
            if len(angles) != 3 or count != 1:
                raise Beyond("call")
            return library.UGate(*angles)
        if name not in self.GATES:
            raise Beyond(name)
        try:
            made = self.GATES[name](*angles)
        except TypeError as error:
            raise Beyond("call") from error
        if made.num_qubits != count:
            raise Beyond("call")
        return made

    def call(self, node: object, depth: int) -> None:
        is_phase = isinstance(node, ast.QuantumPhase)
        name = "gphase" if is_phase else node.name.name
        angles = [float(self.value(one)) for one in ([node.argument] if is_phase else node.arguments)]
        operands = [self.operand(one) for one in node.qubits]
        sizes = {len(qubits) for qubits, whole in operands if whole}
        if len(sizes) > 1:
            raise Beyond("sizes")
        for round in range(sizes.pop() if sizes else 1):
            places = [qubits[round if whole else 0] for qubits, whole in operands]
            if len(set(places)) != len(places):
                raise Beyond("one qubit twice")
            controls = 0
            modifiers: list[tuple[str, object]] = []
            for modifier in node.modifiers:
                argument = self.value(modifier.argument) if modifier.argument is not None else 1
                modifiers.append((modifier.modifier.name, argument))
                if modifier.modifier.name in ("ctrl", "negctrl"):
                    if not isinstance(argument, int) or not 1 <= argument < 60:
                        raise Beyond("controls")
                    controls += argument
            if controls > len(places):
                raise Beyond("controls")
            made = self.gate(name, angles, len(places) - controls, depth)
            for kind, argument in reversed(modifiers):
                self.steps += 1
                if kind == "inv":
                    made = made.inverse()
                elif kind == "pow":
                    if argument != int(argument) or abs(argument) > 100:
                        raise Beyond("power")
                    if made.num_qubits == 0:
                        made = library.GlobalPhaseGate(made.params[0] * argument)
                        continue
                    powered = QuantumCircuit(made.num_qubits)
                    for _ in range(abs(int(argument))):
                        powered.append(made.inverse() if argument < 0 else made, range(made.num_qubits))
                    made = powered.to_gate()
                else:
                    # Qiskit's own controls of an empty gate or of a phase alone need qubits: matrices do not.
                    made = controlled(made, argument, kind == "ctrl")
            self.calls.append((made, places))
            if self.measured & set(places):
                self.dynamic = True

    def run(self, node: object, depth: int = 0) -> None:
        self.steps += 1
        if self.steps > 10**5:
            raise Beyond("steps")
        match node:
            case ast.Include():
                pass
            case ast.QubitDeclaration():
                count = self.value(node.size) if node.size is not None else 1
                if not isinstance(count, int) or not 0 < count <= 12 - self.qubits:
                    raise Beyond("qubits")
                self.scopes[-1][node.qubit.name] = ("qubits", list(range(self.qubits, self.qubits + count)))
                self.qubits += count
            case ast.ClassicalDeclaration(type=ast.BitType()):
                count = self.value(node.type.size) if node.type.size is not None else 1
                if not isinstance(count, int) or not 0 < count < 100:
                    raise Beyond("bits")
                places = list(range(self.bits, self.bits + count))
                self.scopes[-1][node.identifier.name] = ("bits", places)
                self.bits += count
                if node.init_expression is not None:
                    self.measure(node.init_expression, places)
            case ast.ClassicalDeclaration() | ast.ConstantDeclaration():
                one = self.value(node.init_expression) if node.init_expression is not None else 0
                if isinstance(node.type, (ast.IntType, ast.UintType)):
                    if one != int(one):
                        raise Beyond("an integer")
                    one = int(one)
                elif isinstance(node.type, ast.BoolType):
                    one = bool(one)
                elif isinstance(node.type, (ast.FloatType, ast.AngleType)):
                    one = float(one)
                else:
                    raise Beyond(type(node.type).__name__)
                self.scopes[-1][node.identifier.name] = one
            case ast.IODeclaration():
                name = node.identifier.name
                self.parameters.append(name)
                self.scopes[-1][name] = self.values.setdefault(name, 0.3 + 0.37 * len(self.values))
            case ast.QuantumGateDefinition():
                self.gates[node.name.name] = node
            case ast.QuantumGate() | ast.QuantumPhase():
                self.call(node, depth)
            case ast.AliasStatement():
                self.scopes[-1][node.target.name] = ("qubits", self.operand(node.value)[0])
            case ast.ForInLoop():
                values = (
                    self.range(node.set_declaration)
                    if isinstance(node.set_declaration, ast.RangeDefinition)
                    else [self.value(one) for one in node.set_declaration.values]
                )
                for one in values:
                    self.block(node.block, depth, {node.identifier.name: one})
            case ast.WhileLoop():
                while self.value(node.while_condition):
                    self.block(node.block, depth)
            case ast.BranchingStatement():
                try:
                    holds = self.value(node.condition)
                except Beyond:
                    self.dynamic = True
                    self.block(node.if_block, depth)
                    self.block(node.else_block, depth)
                    return
                self.block(node.if_block if holds else node.else_block, depth)
            case ast.ClassicalAssignment():
                self.assign(node)
            case ast.QuantumMeasurementStatement():
                if node.target is None:
                    raise Beyond("target")
                self.measure(node.measure, self.operand(node.target, "bits")[0])
            case ast.QuantumReset():
                self.operand(node.qubits)
                self.dynamic = True
            case ast.QuantumBarrier():
                for one in node.qubits:
                    self.operand(one)
            case ast.CompoundStatement():
                self.block(node.statements, depth)
            case _:
                raise Beyond(type(node).__name__)

    def block(self, statements: list[object], depth: int, scope: dict[str, object] | None = None) -> None:
        self.scopes.append(dict(scope or {}))
        for statement in statements:
            self.run(statement, depth)
        self.scopes.pop()

    def measure(self, node: object, bits: list[int]) -> None:
        if not isinstance(node, ast.QuantumMeasurement):
            raise Beyond("bits")
        qubits = self.operand(node.qubit)[0]
        if len(qubits) != len(bits):
            raise Beyond("sizes")
        if self.measured & set(qubits):
            self.dynamic = True
        self.measured |= set(qubits)

    def assign(self, node: ast.ClassicalAssignment) -> None:
        if not isinstance(node.lvalue, ast.Identifier):
            raise Beyond("assignment")
        name = node.lvalue.name
        self.look(name)
        scope = next(scope for scope in reversed(self.scopes) if name in scope)
        if node.op.name == "=":
            scope[name] = self.value(node.rvalue)
            return
        sign = getattr(ast.BinaryOperator, node.op.name[:-1])
        scope[name] = self.value(ast.BinaryExpression(op=sign, lhs=node.lvalue, rhs=node.rvalue))

    def circuit(self) -> QuantumCircuit:
        made = QuantumCircuit(self.qubits)
        for one, places in self.calls:
            made.append(one, places)
        return made


def controlled(gate: object, count: int, one: bool) -> object:
    """A gate with controls, by its matrix."""
    from qiskit.quantum_info import Operator

    matrix = Operator(gate).data if gate.num_qubits else gate.to_matrix()
    side, whole = len(matrix), np.eye(len(matrix) * 2**count, dtype=complex)
    # The controls come first, so they are the lowest bits.
    acting = [at for at in range(len(whole)) if at % 2**count == (2**count - 1 if one else 0)]
    whole[np.ix_(acting, acting)] = matrix
    assert len(acting) == side
    return library.UnitaryGate(whole)


def theirs(text: str) -> ast.Program | str:
    # ANTLR says there what is wrong.
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return openqasm3.parse(text)
    except Exception as error:  # Its parser raises many kinds.
        return f"{type(error).__name__}: {error} {said.getvalue().strip()}"


def compare(text: str, counts: collections.Counter[str]) -> str | None:
    """A disagreement, if there is one."""
    program = theirs(text)
    try:
        circuit = cantus.circuits.from_qasm(text)
        refused = None
    except ValueError as error:
        refused = str(error)
    if refused is not None:
        if isinstance(program, str):
            counts["both refuse"] += 1
            return None
        reason = refused.split(": ", 1)[-1].split("\n")[0]
        for name, pattern in MEANING.items():
            if re.search(pattern, reason):
                counts[f"only Cantus refuses: {name}"] += 1
                return None
        return f"only Cantus refuses: {refused}"
    if isinstance(program, str):
        return f"only openqasm3 refuses: {program}"
    builder = Builder({})
    try:
        for statement in program.statements:
            if isinstance(statement, ast.EndStatement):
                break
            builder.run(statement)
        facts = (builder.qubits, builder.bits, builder.parameters)
        ours = (circuit.qubits, circuit.bits, circuit.parameters)
        if facts != ours:
            return f"qubits, bits and parameters are {facts} and {ours} here"
        if builder.dynamic:
            counts["both take, with measurements in the middle: qubits, bits and parameters alike"] += 1
            return None
        expected = Statevector(builder.circuit()).data
    except Beyond as error:
        counts[f"both take, not built here ({error})"] += 1
        return None
    try:
        found = circuit.compile(double=True, device="cpu").state(builder.values).numpy()
    except ValueError as error:
        return f"it has amplitudes, and here: {error}"
    distance = float(np.abs(found - expected).max())
    if not distance < 1e-9:
        return f"amplitudes are {distance} apart"
    counts["both take: qubits, bits, parameters and amplitudes alike"] += 1
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="how many of each kind of disagreement are printed")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    for at in range(options.first, options.first + options.programs):
        rng = random.Random(f"{options.seed} {at}")
        text = Generator(rng).program()
        if at % 2 == 1:
            text = mutated(rng, text)
        fault = compare(text, counts)
        if fault is not None:
            kind = re.sub(r"line \d+|\d+(\.\d+)?(e-?\d+)?|'[^']*'|\"[^\"]*\"", "…", fault.split("\n")[0])
            kinds[kind] += 1
            if kinds[kind] <= options.show:
                print(f"--- {at}: {fault}\n{text}", flush=True)
    for name, count in sorted(counts.items(), key=lambda one: -one[1]):
        print(f"{count:6} {name}")
    print(f"{sum(kinds.values()):6} disagreements")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
