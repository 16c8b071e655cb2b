"""Time for each element of NumPy's operations from 2^8 to 2^30 elements, and the largest steps beside those of `cantus bench --growth`.

python growth_numpy.py CANTUS.json...   (each written by `cantus --backend cpu bench --growth --filter NAME --json CANTUS.json`)

Outputs are there before the clock starts. A step is the time for each element at one size over that at half of it.
"""

import json
import sys
import time

import numpy as np

# Named as `cantus bench` names them; `a` and `b` are matrices, `out` another.
OPERATIONS = {
    "copy": lambda a, b, out: np.copyto(out, a),
    "add": lambda a, b, out: np.add(a, b, out=out),
    "cumsum": lambda a, b, out: np.cumsum(a, axis=1, out=out),
    "reduce_rows": lambda a, b, out: np.sum(a, axis=1, out=out[:, 0]),
    "transpose": lambda a, b, out: np.copyto(out.reshape(a.shape[::-1]), a.T),
}


def numpy_times(operation, largest):
    """Milliseconds by elements."""
    times = {}
    for power in range(8, largest + 1):
        height, width = 1 << (power // 2), 1 << ((power + 1) // 2)
        a = np.full((height, width), 1.25, np.float32)
        b = np.full((height, width), 0.5, np.float32) if operation is OPERATIONS["add"] else a
        out = np.zeros((height, width), np.float32)
        runs, start = [], time.perf_counter()
        operation(a, b, out)
        while len(runs) < 5 or (time.perf_counter() - start < 0.5 and len(runs) < 200):
            before = time.perf_counter()
            operation(a, b, out)
            runs.append(time.perf_counter() - before)
        times[1 << power] = sorted(runs)[len(runs) // 2] * 1e3
        if times[1 << power] > 2000:
            break
    return times


def steps(times):
    """Each size with the step that leads to it."""
    return {n: times[n] / n / (times[n // 2] / (n // 2)) for n in times if n // 2 in times}


ours = {}
for path in sys.argv[1:]:
    for row in json.load(open(path, encoding="utf-8"))["results"]:
        ours.setdefault(row["op"], {})[row["shape"][0] * row["shape"][1]] = row["median_ms"]
print("| operation | largest step, at | NumPy's there | NumPy's largest, at | above 1.5 where NumPy has none |")
print("| --- | --- | --- | --- | --- |")
for name, operation in OPERATIONS.items():
    if name not in ours:
        continue
    mine = steps(ours[name])
    theirs = steps(numpy_times(operation, max(ours[name]).bit_length() - 1))
    at, their_at = max(mine, key=mine.get), max(theirs, key=theirs.get)
    alone = [f"2^{n.bit_length() - 1}" for n, step in mine.items() if step > 1.5 and theirs.get(n, 0) <= 1.5]
    print(
        f"| `{name}` | {mine[at]:.2f}, 2^{at.bit_length() - 1} | {theirs.get(at, float('nan')):.2f} "
        f"| {theirs[their_at]:.2f}, 2^{their_at.bit_length() - 1} | {', '.join(alone) or 'none'} |"
    )
