"""One library running the programs, as a process of its own: names of programs come by standard input, lines of JSON go out."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from programs import PROGRAMS, Program, Steps


def library(name: str) -> tuple[Any, Any, Any, Any, Any]:
    """The namespace, what the standard lacks, how arrays go in, how they come out, and how a function is compiled, if the library does that."""
    if name == "numpy":
        from math import erf

        try:
            from scipy.special import erf
        except ImportError:
            erf = np.vectorize(erf, otypes=["f4"])
        beyond = SimpleNamespace(erf=erf, bincount=lambda x, w, n: np.bincount(x, w, n).astype("f4"))
        return np, beyond, lambda x: x, np.asarray, None
    if name == "cantus":
        import cantus

        beyond = SimpleNamespace(erf=cantus.erf, bincount=lambda x, w, n: np.bincount(x, w, n))
        return cantus, beyond, cantus.asarray, np.asarray, None
    if name.startswith("torch"):
        import array_api_compat.torch as xp
        import torch

        beyond = SimpleNamespace(erf=torch.erf, bincount=lambda x, w, n: torch.bincount(x, w, n))
        compiled = (lambda run: torch.compile(run, dynamic=False)) if name == "torch_compile" else None
        # A cache of keys and values has another length in each of 32 steps.
        torch._dynamo.config.recompile_limit = 64
        device = os.environ.get("CANTUS_PEER_DEVICE", "cpu")
        torch.set_default_device(device)
        return xp, beyond, lambda x: torch.from_numpy(x.copy()).to(device), lambda x: x.cpu().numpy(), compiled
    if name == "jax":
        import jax
        import jax.numpy as jnp

        beyond = SimpleNamespace(erf=jax.scipy.special.erf, bincount=lambda x, w, n: jnp.bincount(x, w, length=n))
        return jnp, beyond, jnp.asarray, np.asarray, jax.jit
    raise SystemExit(f"there is no peer {name}")


def expected(program: Program) -> np.ndarray:
    """NumPy's result in float64."""
    inputs = made(program)
    if not program.exact:
        inputs = {key: value.astype("f8") if value.dtype == np.float32 else value for key, value in inputs.items()}

    class Wide:
        float32 = np.float32 if program.exact else np.float64

        def __getattr__(self, attribute: str) -> Any:
            return getattr(np, attribute)

    _, beyond, *_ = library("numpy")
    beyond.bincount = lambda x, w, n: np.bincount(x, w, n)
    compiler, Steps.compiler = Steps.compiler, None
    try:
        return np.asarray(called(program, Wide(), beyond, inputs))
    finally:
        Steps.compiler = compiler


def made(program: Program) -> dict[str, np.ndarray]:
    return program.inputs(np.random.default_rng(7))


def called(program: Program, xp: Any, beyond: Any, inputs: dict[str, Any]) -> Any:
    takes = inspect.signature(program.run).parameters
    return program.run(xp, beyond, **inputs) if "beyond" in takes else program.run(xp, **inputs)


def runner(program: Program, xp: Any, beyond: Any) -> Any:
    """The program of its inputs: compiled whole if it has no step that is."""
    whole = lambda inputs: called(program, xp, beyond, inputs)  # noqa: E731
    has_step = "@step" in inspect.getsource(program.run)
    return whole if has_step or Steps.compiler is None else Steps.compiler(whole)


def main(name: str) -> None:
    xp, beyond, enter, leave, Steps.compiler = library(name)
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        wanted, runs = json.loads(line)
        program = next(program for program in PROGRAMS if program.name == wanted)
        answer: dict[str, Any] = {}
        try:
            if wanted not in ready:
                inputs = {key: enter(value) for key, value in made(program).items()}
                run = partial(runner(program, xp, beyond), inputs)
                begin = time.perf_counter()
                result = leave(run())
                answer["first"] = time.perf_counter() - begin
                right = expected(program)
                if program.exact:
                    answer["off"] = float((result.astype("i8") != right.astype("i8")).mean())
                else:
                    answer["off"] = float(np.abs(result.astype("f8") - right).max() / (np.abs(right).max() or 1))
                answer["right"] = answer["off"] <= (1e-3 if program.exact else program.tolerance)
                ready[wanted] = run
                leave(run())
            times = []
            for _ in range(runs):
                begin = time.perf_counter()
                leave(ready[wanted]())
                times.append(time.perf_counter() - begin)
            answer["times"] = times
        except Exception as error:  # noqa: BLE001: whatever a library does not have is a line of the table
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
