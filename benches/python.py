"""Cantus from Python beside NumPy and PyTorch, in one process, by turns: medians in microseconds, results ready in each library's own memory.

    python benches/python.py [--quick] [--only NAME] [--markdown]

Each row is run by every library in turn, warm (four times in a row, of which the first is not counted), for as many rounds as fit its time. `torch` is eager and writes to new tensors, as its users' programs
do; NumPy likewise. `Cantus` is recorded, evaluated and waited for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

import cantus

try:
    import torch
except ImportError:
    torch = None

nn = cantus.nn
SIDES = (64, 256, 1024, 2048, 4096)
ENGINE = cantus.device("cpu").engine


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


# Name; in Cantus, NumPy and PyTorch, of two matrices and a row.
ROWS = {
    "add": (lambda x, y, w: x + y, lambda x, y, w: x + y, lambda x, y, w: x + y),
    "sum": (lambda x, y, w: cantus.sum(x), lambda x, y, w: x.sum(), lambda x, y, w: x.sum()),
    "silu": (lambda x, y, w: nn.silu(x), lambda x, y, w: x / (1 + np.exp(-x)), lambda x, y, w: torch.nn.functional.silu(x)),
    "gelu": (lambda x, y, w: nn.gelu(x), lambda x, y, w: gelu(x), lambda x, y, w: torch.nn.functional.gelu(x, approximate="tanh")),
    "rms_norm": (
        lambda x, y, w: nn.rms_norm(x, w),
        lambda x, y, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w,
        lambda x, y, w: torch.nn.functional.rms_norm(x, (x.shape[-1],), w, 1e-6),
    ),
    "matmul": (lambda x, y, w: x @ y, lambda x, y, w: x @ y, lambda x, y, w: x @ y),
    "chain of 3": (
        lambda x, y, w: nn.silu(x * 2.0 + y),
        lambda x, y, w: (z := x * 2 + y) / (1 + np.exp(-z)),
        lambda x, y, w: torch.nn.functional.silu(x * 2 + y),
    ),
    "chain of 6": (
        lambda x, y, w: cantus.tanh(cantus.exp(-(x * x)) + y) * w - x,
        lambda x, y, w: np.tanh(np.exp(-(x * x)) + y) * w - x,
        lambda x, y, w: torch.tanh(torch.exp(-(x * x)) + y) * w - x,
    ),
    "norm, gate": (
        lambda x, y, w: nn.silu(nn.rms_norm(x, w)) * y,
        lambda x, y, w: (z := x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w) / (1 + np.exp(-z)) * y,
        lambda x, y, w: torch.nn.functional.silu(torch.nn.functional.rms_norm(x, (x.shape[-1],), w, 1e-6)) * y,
    ),
    "matmul, gelu, add": (
        lambda x, y, w: nn.gelu(x @ y) + x,
        lambda x, y, w: gelu(x @ y) + x,
        lambda x, y, w: torch.nn.functional.gelu(x @ y, approximate="tanh") + x,
    ),
}


def ours(program):
    def run(*arguments):
        result = program(*arguments)
        result.eval()
        ENGINE.finish()
        return result

    return run


def measured(programs, seconds):
    """Medians of programs run by turns."""
    times = [[] for _ in programs]
    for program in programs:
        program()
        program()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 6:
        for program, kept in zip(programs, times):
            # Until the threads of the one before, which look for work a while, are asleep.
            time.sleep(0.002)
            program()
            for _ in range(3):
                begin = time.perf_counter()
                program()
                kept.append(time.perf_counter() - begin)
    return [1e6 * statistics.median(kept) for kept in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="64 and 1024 alone, a short time each")
    parser.add_argument("--only", help="operations whose names hold this")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, NumPy {np.__version__}, PyTorch {torch.__version__ if torch else 'not installed'}, {cantus.device('cpu').info['name']}")
    header = ["operation", "side", "Cantus µs", "NumPy µs", "PyTorch µs", "of NumPy", "of PyTorch"]
    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header) if options.markdown else "  ".join(f"{name:>12}" for name in header))
    with cantus.device("cpu"):
        for name, (mine, numpys, torchs) in ROWS.items():
            if options.only and options.only not in name:
                continue
            for side in (64, 1024) if options.quick else SIDES:
                generator = np.random.default_rng(side)
                arrays = [generator.standard_normal(shape).astype("f4") for shape in ((side, side), (side, side), (side,))]
                taken = [cantus.asarray(one).eval() for one in arrays]
                programs = [lambda: ours(mine)(*taken), lambda: numpys(*arrays)]
                if torch:
                    tensors = [torch.from_numpy(one) for one in arrays]
                    programs.append(lambda: torchs(*tensors))
                np.testing.assert_allclose(np.asarray(mine(*taken)), numpys(*arrays), rtol=2e-3, atol=2e-2)
                times = measured(programs, 0.2 if options.quick else 1.0)
                row = [name, str(side), *(f"{one:.1f}" for one in times), *([] if torch else ["-"])]
                row += [f"{times[0] / other:.2f}" for other in times[1:]] + ([] if torch else ["-"])
                print("| " + " | ".join(row) + " |" if options.markdown else "  ".join(f"{cell:>12}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
