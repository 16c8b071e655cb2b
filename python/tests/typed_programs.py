"""Twenty programs that mypy --strict and pyright check, and that run: an array stays an array through operators and methods."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import cantus
from cantus import Array


def operators(x: Array) -> Array:
    assert_type(x - x, Array)
    assert_type(1 - x, Array)
    assert_type(x * 2.0, Array)
    assert_type(x / np.float32(2), Array)
    assert_type(x @ x.mT, Array)
    return -x + abs(x) // 2 % 3


def powers(x: Array) -> Array:
    assert_type(x**2, Array)
    assert_type(2.0**x, Array)
    return x**0.5


def comparisons(x: Array) -> Array:
    assert_type(x > 0, Array)
    assert_type(x == x, Array)
    assert_type(x != 1, Array)
    return (x > 0) & (x < 1) | ~(x >= 2)


def reductions(x: Array) -> float:
    assert_type(x.mean(), Array)
    assert_type(x.sum(axis=0), Array)
    assert_type(x.max(axis=1, keepdims=True), Array)
    assert_type(cantus.std(x), Array)
    return float(x.mean() + x.var() + x.min())


def parts(x: Array) -> list[tuple[int, ...]]:
    assert_type(x[0], Array)
    assert_type(x[..., 1:], Array)
    assert_type(x[x > 0], Array)
    return [row.shape for row in x]


def shapes(x: Array) -> tuple[int, ...]:
    y = x.reshape(-1).reshape((x.size, 1)).transpose().squeeze()
    assert_type(y, Array)
    assert_type(x.T, Array)
    return cantus.stack([y, y]).shape


def in_place(x: Array) -> Array:
    x += 1
    x *= 2.0
    x[0] = 7
    x[:, 0] = x[:, 1]
    assert_type(x, Array)
    return x


def standardised(x: Array) -> Array:
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)


def softmax(x: Array) -> Array:
    e = cantus.exp(x - cantus.max(x, axis=-1, keepdims=True))
    return e / cantus.sum(e, axis=-1, keepdims=True)


def logistic(x: Array, y: Array, steps: int) -> Array:
    w = cantus.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + cantus.exp(-(x @ w)))
        w = w - 0.1 * (x.T @ (p - y)) / x.shape[0]
    return w


def power_iteration(a: Array, steps: int) -> Array:
    v = cantus.ones(a.shape[0])
    for _ in range(steps):
        v = a @ v
        v = v / cantus.linalg.vector_norm(v)
    return v @ (a @ v)


def heat(u: Array, steps: int) -> Array:
    for _ in range(steps):
        u = u + 0.1 * (cantus.roll(u, 1, axis=0) + cantus.roll(u, -1, axis=0) - 2 * u)
    return u


def distances(x: Array) -> Array:
    return cantus.sqrt(cantus.sum((x[:, None] - x[None]) ** 2, axis=-1))


def life(cells: Array) -> Array:
    around = sum((cantus.roll(cells, (i, j), axis=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j), start=cantus.zeros_like(cells))
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


def solved(a: Array, b: Array) -> Array:
    u, s, vh = cantus.linalg.svd(a, full_matrices=False)
    assert_type(u, Array)
    return vh.mT @ ((u.mT @ b) / s)


def spectrum(x: Array) -> Array:
    f = cantus.fft.rfft(x)
    assert_type(f.real, Array)
    return f.real * f.real + f.imag * f.imag


def drawn(seed: int) -> Array:
    first, second = cantus.random.split(cantus.random.key(seed))
    return cantus.random.normal(first, (4, 4)) + cantus.random.uniform(second, (4, 4))


def sorted_by(x: Array) -> Array:
    return cantus.take(x, cantus.argsort(x[:, 0]), axis=0)


def mixed(x: Array) -> Array:
    whole = cantus.arange(3)
    assert_type(whole + 1.5, Array)
    return whole * 0.5 + x[0, :3]


def across(x: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    y: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = np.asarray(x, dtype=np.float32)
    return y


def main() -> None:
    x = cantus.asarray(np.random.default_rng(0).uniform(1, 2, (4, 4)).astype("f4"))
    for program in (operators, powers, comparisons, in_place, standardised, softmax, distances, sorted_by, mixed, spectrum):
        assert isinstance(program(cantus.array(x)), Array)
    assert reductions(x) > 0 and parts(x) == [(4,)] * 4 and shapes(x) == (2, 16)
    for found in (logistic(x, x[:, 0], 3), power_iteration(x, 3), heat(x, 3), solved(x, x[:, 0])):
        found.eval()
    assert life((x > 1.5).astype(cantus.int32)).dtype == cantus.int32 and drawn(1).shape == (4, 4) and across(x).shape == (4, 4)


main()
