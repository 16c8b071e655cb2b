"""`python -m cantus.detect_and_benchmark`: the devices of the machine, whether they compute correctly, and how fast beside NumPy."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from . import tensor_ops

SHAPES = ((128, 4096), (4096, 4096))


def _calls(x: Any, weight: Any) -> dict[str, Any]:
    return {
        "rms_norm": lambda backend: backend.rms_norm(x, weight, 1e-6),
        "silu": lambda backend: backend.silu(x),
        "gelu": lambda backend: backend.gelu(x),
    }


def self_test(backend: Any) -> dict[str, float]:
    """The greatest error of each operation, beside NumPy in float64."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((33, 257)).astype(np.float32) * 4
    weight = generator.standard_normal(257).astype(np.float32)
    wide = x.astype(np.float64)
    expected = {
        "rms_norm": wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight,
        "silu": wide / (1 + np.exp(-wide)),
        "gelu": 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))),
    }
    return {name: float(np.abs(call(backend) - expected[name]).max()) for name, call in _calls(x, weight).items()}


def benchmark(backends: list[Any], rounds: int) -> list[dict[str, Any]]:
    """Medians in milliseconds, the backends by turns."""
    rows = []
    generator = np.random.default_rng(7)
    for shape in SHAPES:
        x = generator.standard_normal(shape).astype(np.float32)
        weight = np.ones(shape[1], np.float32)
        for name, call in _calls(x, weight).items():
            times: dict[str, list[float]] = {backend.name: [] for backend in backends}
            for turn in range(rounds + 1):
                for backend in backends:
                    begin = time.perf_counter()
                    call(backend)
                    # The first one compiles.
                    if turn:
                        times[backend.name].append(1000 * (time.perf_counter() - begin))
            medians = {name: statistics.median(of) for name, of in times.items()}
            rows.append({"operation": name, "shape": list(shape), "milliseconds": medians})
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Detects, tests and measures."""
    parser = argparse.ArgumentParser(prog="python -m cantus.detect_and_benchmark", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (5)")
    options = parser.parse_args(arguments)
    info = tensor_ops.get_backend_info()
    backends = [tensor_ops._backend(name) for name in info["available"]]
    tests: dict[str, Any] = {}
    sound = []
    for backend in backends:
        try:
            errors = self_test(backend)
        except Exception as error:  # noqa: BLE001 - whatever a driver says is reported
            tests[backend.name] = {"passed": False, "reason": str(error)}
            continue
        passed = max(errors.values()) < 1e-4
        tests[backend.name] = {"passed": passed, "errors": errors}
        if passed:
            sound.append(backend)
    rows = benchmark(sound, options.rounds)
    if options.json:
        print(json.dumps({"backend": info, "tests": tests, "benchmark": rows}, indent=2))
        return 0 if all(test["passed"] for test in tests.values()) else 1
    print(f"backend: {info['name']} on {info['device']} ({info['instruction_set']}, {info['threads']} threads)")
    for name, reason in info["reasons"].items():
        print(f"  {name}: {reason}")
    print("\nself-test")
    for name, test in tests.items():
        print(f"  {name:8}{'passed' if test['passed'] else 'FAILED: ' + str(test.get('reason', test.get('errors')))}")
    names = [backend.name for backend in sound]
    print("\nmilliseconds (times NumPy)")
    print("  " + "operation".ljust(10) + "shape".ljust(14) + "".join(name.rjust(18) for name in names))
    for row in rows:
        plain = row["milliseconds"].get("python")
        cells = "".join(
            f"{value:10.2f} ({plain / value:4.1f}x)".rjust(18) if plain else f"{value:18.2f}"
            for value in (row["milliseconds"][name] for name in names)
        )
        print("  " + row["operation"].ljust(10) + " x ".join(map(str, row["shape"])).ljust(14) + cells)
    return 0 if all(test["passed"] for test in tests.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
