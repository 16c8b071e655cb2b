"""Every dtype and shape: Cantus from Python beside NumPy, and PyTorch where it is installed, in one process, by turns.

    python benches/shapes.py [--seed 56] [--rows 480] [--only TEXT] [--seconds 0.1] [--json FILE]

Rows are drawn by the seed: an operation, a dtype that it takes and a shape, most of whose sides are no powers of two. Each row is run by every library in
turn, warm, for as many rounds as fit its time, and the medians are compared. Results are ready in each library's own memory; NumPy's are in C order, and
`any` looks for what is nowhere. Results are compared too: a row whose numbers differ is an error. The tables count the rows of which NumPy takes at least
20 µs, by dtype: those at NumPy's speed, those above twice its time, and the geometric mean. Shorter rows are listed by the time that they take longer.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import statistics
import sys
import time

import numpy as np

import cantus

try:
    import torch
except ImportError:
    torch = None

FLOATS = ("float32", "float64")
COMPLEX = ("complex64",)
WHOLE = ("int32", "int64", "uint8")
NUMBERS = FLOATS + COMPLEX + WHOLE
ORDERED = FLOATS + WHOLE
ALL = NUMBERS + ("bool",)
# Rows of which NumPy takes less are compared by differences.
LEAST = 20e-6


def turned(x):
    """A copy in C order: NumPy keeps the order of what it reads."""
    return np.array(x, order="C", copy=True)


# Name; dtypes; kind of shape; the function of Cantus, NumPy and PyTorch. `x` and `y` have one shape, and `m` is the module.
OPERATIONS = [
    ("x + y", NUMBERS, "any", lambda m, x, y: x + y),
    ("x * y", NUMBERS, "any", lambda m, x, y: x * y),
    ("x - row", NUMBERS, "rows", lambda m, x, y: x - y[:1]),
    ("x * column", NUMBERS, "rows", lambda m, x, y: x * y[:, :1]),
    ("2 x + 1", FLOATS + COMPLEX, "any", lambda m, x, y: x * 2 + 1),
    ("abs", FLOATS + COMPLEX + ("int32", "int64"), "any", lambda m, x, y: m.abs(x)),
    ("sqrt", FLOATS, "any", lambda m, x, y: m.sqrt(m.abs(x))),
    ("exp", FLOATS, "any", lambda m, x, y: m.exp(x)),
    ("sin", FLOATS, "any", lambda m, x, y: m.sin(x)),
    ("x < y", ORDERED, "any", lambda m, x, y: x < y),
    ("x == y", ALL, "any", lambda m, x, y: x == y),
    ("maximum", ORDERED, "any", lambda m, x, y: m.maximum(x, y)),
    ("where", NUMBERS, "any", lambda m, x, y: m.where(x == y, x, y)),
    ("to float32", ("float64", "int32", "int64", "uint8", "bool"), "any", lambda m, x, y: cast(m, x, "float32")),
    ("to float64", ("float32", "int32", "int64", "uint8", "bool"), "any", lambda m, x, y: cast(m, x, "float64")),
    ("to uint8", ("float32", "int32", "int64"), "any", lambda m, x, y: cast(m, m.abs(x), "uint8")),
    ("sum", NUMBERS, "any", lambda m, x, y: m.sum(x)),
    ("sum of rows", NUMBERS, "rows", lambda m, x, y: m.sum(x, axis=1)),
    ("sum of columns", NUMBERS, "rows", lambda m, x, y: m.sum(x, axis=0)),
    ("mean of rows", FLOATS + COMPLEX, "rows", lambda m, x, y: m.mean(x, axis=1)),
    ("max of rows", ORDERED, "rows", lambda m, x, y: m.max(x, axis=1)),
    ("min of columns", ORDERED, "rows", lambda m, x, y: m.min(x, axis=0)),
    ("argmax of rows", ORDERED, "rows", lambda m, x, y: m.argmax(x, axis=1)),
    ("any of rows", ALL, "rows", lambda m, x, y: m.any(x != x, axis=1)),
    ("cumsum of rows", NUMBERS, "rows", lambda m, x, y: cumulative(m, x)),
    ("sort of rows", ORDERED, "rows", lambda m, x, y: m.sort(x, axis=1)),
    ("transposed", ALL, "rows", lambda m, x, y: copied(m, x.T)),
    ("every other column", ALL, "rows", lambda m, x, y: copied(m, x[:, ::2])),
    ("concat", ALL, "rows", lambda m, x, y: m.concat([x, y])),
    ("take", ALL, "rows", lambda m, x, y: m.take(x, places(m, x), axis=0)),
    ("X @ v", FLOATS + COMPLEX, "rows", lambda m, x, y: x @ y[0]),
    ("X.T @ v", FLOATS + COMPLEX, "rows", lambda m, x, y: x.T @ y[:, 0]),
    ("X.T @ Y", FLOATS + COMPLEX, "thin", lambda m, x, y: x.T @ y),
    ("X @ Y.T", FLOATS + COMPLEX, "small", lambda m, x, y: x @ y.T),
    ("fft of rows", COMPLEX + ("complex128",), "rows", lambda m, x, y: m.fft.fft(x)),
]
PLACES: dict = {}


def places(m, x):
    return PLACES[m is np or m is torch, x.shape[0], m is torch]


def cast(m, x, dtype):
    if m is torch:
        return x.to(getattr(torch, dtype))
    return x.astype(getattr(m, dtype))


def copied(m, x):
    if m is torch:
        return x.contiguous()
    return turned(x) if m is np else m.asarray(x, copy=True)


def cumulative(m, x):
    return torch.cumsum(x, 1) if m is torch else m.cumulative_sum(x, axis=1)


def shape_of(kind: str, numbers: random.Random) -> tuple[int, ...]:
    """Sides of up to four million elements, and of a few hundred."""
    side = lambda least, most: round(math.exp(numbers.uniform(math.log(least), math.log(most))))
    if kind == "small":
        return side(4, 300), side(4, 300)
    if kind == "thin":
        return side(500, 30_000), numbers.choice([3, 10, 30, 50, 64, 100])
    if kind == "rows":
        columns = numbers.choice([1, 2, 3, 7, 10, 16, 31, 50, 64, 65, 70, 100, 128, 255, 300, 1000, 1024, 4099])
        return max(2, side(100, 2_000_000) // columns), columns
    return numbers.choice([(side(300, 3_000_000),), (side(20, 1500), side(20, 1500)), (side(4, 60), side(4, 60), side(4, 600))])


def array_of(dtype: str, shape: tuple[int, ...], numbers: np.random.Generator) -> np.ndarray:
    if dtype == "bool":
        return numbers.random(shape) < 0.5
    if dtype in WHOLE:
        return numbers.integers(0 if dtype == "uint8" else -1000, 256 if dtype == "uint8" else 1000, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)).astype(dtype)
    return numbers.standard_normal(shape).astype(dtype)


def once(run, repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats


def medians(runs: dict, seconds: float) -> dict[str, float]:
    """The libraries by turns, for as many rounds as fit the time, at least five."""
    repeats = {}
    for name, run in runs.items():
        run(), run()
        repeats[name] = max(1, min(200, int(2e-4 / max(once(run, 1), 1e-7))))
    times: dict[str, list[float]] = {name: [] for name in runs}
    begin = time.perf_counter()
    while len(next(iter(times.values()))) < 5 or time.perf_counter() - begin < seconds:
        for name, run in runs.items():
            # Until the threads of the one before, which look for work a while, are asleep.
            time.sleep(0.002)
            run()
            times[name].append(once(run, repeats[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def compared(name: str, got: np.ndarray, want: np.ndarray) -> None:
    if want.dtype.kind in "fc":
        digits = 1e-3 if want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1) == 4 or got.dtype.itemsize < 8 else 1e-9
        size = float(np.max(np.abs(want), initial=1.0))
        assert np.allclose(got, want, rtol=digits, atol=digits * size), name
    else:
        assert np.array_equal(got.astype(want.dtype), want), name


def row(operation, dtype: str, shape: tuple[int, ...], seconds: float, seed: int) -> dict:
    name, _, _, function = operation
    numbers = np.random.default_rng(seed)
    x, y = array_of(dtype, shape, numbers), array_of(dtype, shape, numbers)
    device = cantus.device("cpu")
    ours = [cantus.asarray(one, device=device) for one in (x, y)]
    chosen = numbers.integers(0, shape[0], shape[0])
    PLACES.clear()
    PLACES[True, shape[0], False] = chosen
    PLACES[False, shape[0], False] = cantus.asarray(chosen, device=device)
    engine = device.engine

    def mine():
        result = function(cantus, *ours).eval()
        engine.finish()
        return result

    runs = {
        "cantus": mine,
        "numpy": lambda: function(np, x, y),
    }
    if torch is not None and dtype in ("float32", "float64", "complex64", "int64"):
        theirs = [torch.from_numpy(one) for one in (x, y)]
        PLACES[True, shape[0], True] = torch.from_numpy(chosen)
        try:
            function(torch, *theirs)
            runs["torch"] = lambda: function(torch, *theirs)
        except (AttributeError, TypeError, RuntimeError):
            pass  # It has another name there: NumPy is the peer.
    label = f"{name}, {dtype}{list(shape)}"
    compared(label, np.asarray(function(cantus, *ours)), function(np, x, y))
    found = medians(runs, seconds)
    return {"operation": name, "dtype": dtype, "shape": list(shape), **{library: round(1e6 * found[library], 3) for library in found}}


def mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios)) if ratios else math.nan


def table(rows: list[dict], by: str) -> str:
    lines = [f"| {by} (rows) | at NumPy's speed | above 2 | geometric mean |", "| --- | --- | --- | --- |"]
    groups: dict[str, list[float]] = {}
    for one in rows:
        if one["numpy"] >= 1e6 * LEAST:
            groups.setdefault(one[by], []).append(one["cantus"] / one["numpy"])
            groups.setdefault("all", []).append(one["cantus"] / one["numpy"])
    for name, ratios in groups.items():
        at, above = sum(ratio <= 1 for ratio in ratios), sum(ratio > 2 for ratio in ratios)
        lines.append(f"| {name} ({len(ratios)}) | {at} | {above} | {mean(ratios):.2f} |")
    return "\n".join(lines)


def drawn(seed: int, count: int) -> list:
    """Each operation with each of its dtypes at least once, and then by lot."""
    numbers = random.Random(seed)
    pairs = [(operation, dtype) for operation in OPERATIONS for dtype in operation[1]]
    pairs += [numbers.choice(pairs) for _ in range(max(0, count - len(pairs)))]
    return [(operation, dtype, shape_of(operation[2], numbers)) for operation, dtype in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=56)
    parser.add_argument("--rows", type=int, default=480)
    parser.add_argument("--only", default="", help="rows whose label has this text")
    parser.add_argument("--seconds", type=float, default=0.1, help="time of a row")
    parser.add_argument("--json", help="a file for the rows")
    given = parser.parse_args()
    rows, failed = [], []
    for number, (operation, dtype, shape) in enumerate(drawn(given.seed, given.rows)):
        label = f"{operation[0]}, {dtype}{list(shape)}"
        if given.only not in label:
            continue
        try:
            found = row(operation, dtype, shape, given.seconds, given.seed + number)
        except AssertionError:
            failed.append(label)
            continue
        rows.append(found)
        beside = f", {found['torch']:.1f} PyTorch" if "torch" in found else ""
        print(f"{found['cantus'] / found['numpy']:7.2f}  {label}: {found['cantus']:.1f} µs, {found['numpy']:.1f} NumPy{beside}", flush=True)
    for by in ("dtype", "operation"):
        print("\n" + table(rows, by))
    longer = sorted(one["cantus"] - one["numpy"] for one in rows if one["numpy"] < 1e6 * LEAST)
    if longer:
        print(f"\n{len(longer)} shorter rows: {statistics.median(longer):.1f} µs longer (median), {longer[-1]:.1f} at most")
    beside = [one["cantus"] / one["torch"] for one in rows if "torch" in one and one["numpy"] >= 1e6 * LEAST]
    if beside:
        print(f"beside PyTorch, {len(beside)} rows: {mean(beside):.2f}")
    if given.json:
        command = " ".join(["python", *sys.argv])
        about = {"command": command, "numpy": np.__version__, "machine": platform.processor() or platform.machine()}
        about["torch"] = None if torch is None else torch.__version__
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "rows": rows}, file, indent=1)
    if failed:
        sys.exit("different numbers: " + "; ".join(failed))


main()
