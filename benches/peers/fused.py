"""The field and three chains of elementwise operations, float32, by torch.compile, JAX and numba: peers of `fused`. Each library in a process of its own.

Reads "LIBRARY:NAME SIDE SECONDS", repeats the operation for SECONDS, and answers with the seconds that each call took; for -1 seconds with the sum of
the result's squares."""
import math
import platform

import numpy as np

from turns import answer

PHI, LAMBDA = 1.618033988749895, 0.618033988749895


def inputs(side):
    """The same as the bench's."""
    at = np.arange(side * side, dtype=np.float64).reshape(side, side)
    return np.sin(at * 0.37).astype(np.float32) * np.float32(2), np.cos(at * 0.73).astype(np.float32)


def operations(m):
    """In the terms of a module of functions."""

    def field(x):
        y = x[:, None]
        r = PHI * m.sqrt(x * x + y * y)
        return m.sin(5.28 * r + PHI * m.arctan2(y, x)) * m.exp(-LAMBDA * r)

    def gate(x, y):
        return x / (1.0 + m.exp(-x)) * y + 0.5 * m.tanh(y)

    def falloff(x, y):
        return m.exp(-(x - y) * (x - y)) * (x + y) / (1.0 + x * x)

    def ten(x, y):
        t = x * y * 0.5 + x
        t = m.maximum(t, x * 0.0 - 1.0)
        t = m.minimum(t * t + y, y * 0.0 + 2.0)
        return (m.sqrt(m.abs(t)) - x) * 0.25 + 1.0

    return {"field": field, "gate": gate, "falloff": falloff, "ten": ten}


def by_torch(name, side):
    import torch

    torch.set_grad_enabled(False)
    work = torch.compile(operations(torch)[name], dynamic=False)
    given = [torch.linspace(-1, 1, side)] if name == "field" else [torch.from_numpy(array) for array in inputs(side)]
    return lambda: work(*given)


def by_jax(name, side):
    import jax
    import jax.numpy as jnp

    work = jax.jit(operations(jnp)[name])
    given = [jnp.linspace(-1, 1, side, dtype=jnp.float32)] if name == "field" else [jnp.asarray(array) for array in inputs(side)]
    return lambda: work(*given).block_until_ready()


def by_numba(name, side):
    from numba import njit, prange

    phi, decay, half, wave = (np.float32(number) for number in (PHI, LAMBDA, 0.5, 5.28))
    one, quarter, two = np.float32(1), np.float32(0.25), np.float32(2)
    loops = {}

    @njit(parallel=True)
    def field(x, out):
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                r = phi * math.sqrt(x[j] * x[j] + x[i] * x[i])
                out[i, j] = math.sin(wave * r + phi * math.atan2(x[i], x[j])) * math.exp(-decay * r)

    @njit(parallel=True)
    def gate(x, y, out):
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = x[i, j] / (one + math.exp(-x[i, j])) * y[i, j] + half * math.tanh(y[i, j])

    @njit(parallel=True)
    def falloff(x, y, out):
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                a, b = x[i, j], y[i, j]
                out[i, j] = math.exp(-(a - b) * (a - b)) * (a + b) / (one + a * a)

    @njit(parallel=True)
    def ten(x, y, out):
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                a, b = x[i, j], y[i, j]
                t = max(a * b * half + a, -one)
                t = min(t * t + b, two)
                out[i, j] = (math.sqrt(abs(t)) - a) * quarter + one

    loops = {"field": field, "gate": gate, "falloff": falloff, "ten": ten}
    loop, out = loops[name], np.empty((side, side), np.float32)
    given = [np.linspace(-1, 1, side, dtype=np.float32)] if name == "field" else list(inputs(side))

    def work():
        loop(*given, out)
        return out

    return work


def prepare(name, side):
    library, operation = name.split(":")
    return {"torch": by_torch, "jax": by_jax, "numba": by_numba}[library](operation, side)


def main():
    print(f"Python {platform.python_version()}", flush=True)
    answer(prepare, lambda result: [float((np.asarray(result).astype(np.float64) ** 2).sum())])


main()
