"""The field family in NumPy, float32: a peer of the benches. Reads "field N" or "coherence N", answers "SECONDS VALUE"."""
import platform
import sys
import time

import numpy as np

PHI = np.float32(1.618033988749895)
LAMBDA = np.float32(0.618033988749895)


def field(side):
    x = np.linspace(-1, 1, side, dtype=np.float32)
    y = x[:, None]
    r = PHI * np.sqrt(x * x + y * y)
    a = np.arctan2(y, x)
    return np.sin(np.float32(5.28) * r + PHI * a) * np.exp(-LAMBDA * r)


def coherence(values):
    z = (values - values.mean(dtype=np.float64).astype(np.float32)) / values.std(dtype=np.float64).astype(np.float32)
    here = z[1:, 1:]
    total = np.abs(PHI * here * z[:-1, 1:] + PHI * here * z[1:, :-1]).sum(dtype=np.float64) * LAMBDA
    return min(1.0, total / values.size)


def main():
    print(f"NumPy {np.__version__}, Python {platform.python_version()}", flush=True)
    kept = {}
    for line in sys.stdin:
        operation, side = line.split()
        side = int(side)
        if operation == "coherence" and side not in kept:
            kept[side] = field(side)
        start = time.perf_counter()
        value = field(side)[0, 0] if operation == "field" else coherence(kept[side])
        print(time.perf_counter() - start, value, flush=True)


main()
