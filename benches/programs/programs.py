"""Programs as NumPy's users write them, in the array API's names, so that one text runs on every library.

A program has its inputs, made by NumPy from a seed, and a function of a namespace and those inputs. None says when to evaluate. `beyond` of a namespace has what
the standard lacks: bincount with weights, erf. The step of a loop is a function, which compilers compile; a program without one is compiled whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Program:
    name: str
    inputs: Callable[[np.random.Generator], dict[str, np.ndarray]]
    run: Callable[..., Any]
    # How far a result may be from float64's, of its largest number.
    tolerance: float = 1e-4
    # Whole numbers, which must be the same.
    exact: bool = False


PROGRAMS: list[Program] = []


class Steps:
    """How the step of a loop is called: as it is, or compiled, once for all calls of a program."""

    compiler: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    compiled: dict[str, Callable[..., Any]] = {}


def step(run: Callable[..., Any]) -> Callable[..., Any]:
    if Steps.compiler is None:
        return run
    name = run.__qualname__
    if name not in Steps.compiled:
        Steps.compiled[name] = Steps.compiler(run)
    return Steps.compiled[name]


def program(inputs: Callable[[np.random.Generator], dict[str, np.ndarray]], **options: Any) -> Callable[..., Any]:
    def kept(run: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Program(run.__name__, inputs, run, **options))
        return run

    return kept


def f4(array: Any) -> np.ndarray:
    return np.asarray(array, dtype="f4")


@program(lambda r: {"world": (r.random((512, 512)) < 0.3).astype("u1")}, exact=True)
def life(xp, world):
    """Conway's game, 50 generations."""
    one, two, three = (xp.asarray(n, dtype=xp.uint8) for n in (1, 2, 3))

    @step
    def generation(world, one, two, three):
        rows = world + xp.roll(world, 1, axis=0) + xp.roll(world, -1, axis=0)
        around = rows + xp.roll(rows, 1, axis=1) + xp.roll(rows, -1, axis=1) - world
        return xp.astype((around == three) | ((world == one) & (around == two)), xp.uint8)

    for _ in range(50):
        world = generation(world, one, two, three)
    return world


@program(lambda r: {"x": f4(r.standard_normal((2000, 64))), "y": f4(r.random(2000) < 0.5)})
def logistic_regression(xp, x, y):
    """100 steps of gradient descent."""
    w = xp.zeros(64, dtype=xp.float32)

    @step
    def descent(w, x, y):
        p = 1 / (1 + xp.exp(-(x @ w)))
        return w - 0.1 * (x.T @ (p - y)) / 2000

    for _ in range(100):
        w = descent(w, x, y)
    return w


@program(
    lambda r: {
        "x": f4(r.standard_normal((60, 32, 128))),
        "w": f4(r.standard_normal((128, 512)) / 12),
        "u": f4(r.standard_normal((128, 512)) / 12),
    }
)
def lstm(xp, x, w, u):
    """60 steps of 32 rows with 128 cells."""
    h = c = xp.zeros((32, 128), dtype=xp.float32)

    @step
    def cell(h, c, x, w, u):
        gates = x @ w + h @ u
        i, f, g, o = (gates[:, 128 * k : 128 * (k + 1)] for k in range(4))
        c = c / (1 + xp.exp(-f)) + xp.tanh(g) / (1 + xp.exp(-i))
        return xp.tanh(c) / (1 + xp.exp(-o)), c

    for t in range(60):
        h, c = cell(h, c, x[t, :, :], w, u)
    return h


@program(
    lambda r: {
        "x": f4(r.standard_normal((60, 32, 128))),
        "w": f4(r.standard_normal((128, 384)) / 12),
        "u": f4(r.standard_normal((128, 384)) / 12),
    }
)
def gru(xp, x, w, u):
    """60 steps of 32 rows with 128 cells."""
    h = xp.zeros((32, 128), dtype=xp.float32)

    @step
    def cell(h, x, w, u):
        a, b = x @ w, h @ u
        z = 1 / (1 + xp.exp(-(a[:, :128] + b[:, :128])))
        r = 1 / (1 + xp.exp(-(a[:, 128:256] + b[:, 128:256])))
        n = xp.tanh(a[:, 256:] + r * b[:, 256:])
        return n + z * (h - n)

    for t in range(60):
        h = cell(h, x[t, :, :], w, u)
    return h


def edges(r: np.random.Generator) -> dict[str, np.ndarray]:
    source = r.integers(0, 20_000, 200_000).astype("i4")
    out = np.bincount(source, minlength=20_000)
    return {"source": source, "target": r.integers(0, 20_000, 200_000).astype("i4"), "share": f4(1 / np.maximum(out, 1))}


@program(edges)
def pagerank(xp, beyond, source, target, share):
    """20 rounds over 200,000 edges of 20,000 pages."""
    rank = xp.ones(20_000, dtype=xp.float32) / 20_000

    @step
    def spread(rank, source, target, share):
        given = xp.take(rank * share, source, axis=0)
        return 0.15 / 20_000 + 0.85 * beyond.bincount(target, given, 20_000)

    for _ in range(20):
        rank = spread(rank, source, target, share)
    return rank


@program(lambda r: {"x": f4(np.linspace(-2, 0.6, 600)[None, :]), "y": f4(np.linspace(-1.2, 1.2, 480)[:, None])}, exact=True)
def mandelbrot(xp, x, y):
    """600 x 480 points, 50 rounds."""
    zero = xp.zeros((480, 600), dtype=xp.float32)
    a, b, count = zero, zero, xp.zeros((480, 600), dtype=xp.int32)

    @step
    def squared(a, b, count, x, y):
        inside = a * a + b * b <= 4
        a, b = xp.where(inside, a * a - b * b + x, a), xp.where(inside, 2 * a * b + y, b)
        return a, b, count + xp.astype(inside, xp.int32)

    for _ in range(50):
        a, b, count = squared(a, b, count, x, y)
    return count


@program(lambda r: {"x": f4(r.standard_normal((20_000, 64)) @ np.diag(np.linspace(1, 8, 64)))}, tolerance=1e-3)
def pca(xp, x):
    """The variances along the principal axes of 20,000 points."""
    x = x - xp.mean(x, axis=0)
    values, _ = xp.linalg.eigh(x.T @ x / 20_000)
    return values


@program(lambda r: {"p": f4(r.standard_normal((1000, 3))), "m": f4(r.random(1000))}, tolerance=1e-3)
def n_body(xp, p, m):
    """1,000 bodies, 5 steps."""
    v = xp.zeros((1000, 3), dtype=xp.float32)

    @step
    def moved(p, v, m):
        d = p[None, :, :] - p[:, None, :]
        r2 = xp.sum(d * d, axis=2) + 0.01
        v = v + 0.001 * xp.sum(d * (m / (r2 * xp.sqrt(r2)))[:, :, None], axis=1)
        return p + 0.001 * v, v

    for _ in range(5):
        p, v = moved(p, v, m)
    return p


@program(lambda r: {name: f4(r.standard_normal((8, 256, 64))) for name in "qkv"})
def attention(xp, q, k, v):
    """Eight heads of 256 queries and keys."""
    scores = q @ xp.matrix_transpose(k) / 8
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return weights @ v / xp.sum(weights, axis=-1, keepdims=True)


def clusters(r: np.random.Generator) -> dict[str, np.ndarray]:
    centres = r.standard_normal((4, 8)) * 4
    return {"x": f4(centres[r.integers(0, 4, 40_000)] + r.standard_normal((40_000, 8))), "c": f4(centres + r.standard_normal((4, 8)))}


@program(clusters, tolerance=1e-3)
def k_means_masks(xp, x, c):
    """40,000 points, 10 rounds; the means by masks."""

    @step
    def labels(x, c):
        return xp.argmin(xp.sum((x[:, None, :] - c[None, :, :]) ** 2, axis=2), axis=1)

    for _ in range(10):
        label = labels(x, c)
        c = xp.stack([xp.mean(x[label == k], axis=0) for k in range(4)])
    return c


@program(clusters, tolerance=1e-3)
def k_means_one_hot(xp, x, c):
    """40,000 points, 10 rounds; the means by a product."""

    @step
    def centres(x, c):
        label = xp.argmin(xp.sum((x[:, None, :] - c[None, :, :]) ** 2, axis=2), axis=1)
        hot = xp.astype(label[:, None] == xp.arange(4)[None, :], xp.float32)
        return (hot.T @ x) / xp.sum(hot, axis=0)[:, None]

    for _ in range(10):
        c = centres(x, c)
    return c


@program(lambda r: {"x": f4(r.standard_normal((400, 1024))), "window": f4(np.hanning(1024))}, tolerance=1e-4)
def spectrogram(xp, x, window):
    """400 frames of 1,024 samples."""
    bins = xp.fft.rfft(x * window, axis=1)
    return xp.log(1e-6 + xp.real(bins) ** 2 + xp.imag(bins) ** 2)


@program(lambda r: {"i": f4(r.random((1024, 1024)))})
def sobel_slices(xp, i):
    """Edges of an image of 1,024 x 1,024, by slices."""
    a = i[:-2, :] + 2 * i[1:-1, :] + i[2:, :]
    b = i[:, :-2] + 2 * i[:, 1:-1] + i[:, 2:]
    gx, gy = a[:, 2:] - a[:, :-2], b[2:, :] - b[:-2, :]
    return xp.sqrt(gx * gx + gy * gy)


@program(lambda r: {"i": f4(r.random((1024, 1024)))})
def sobel_roll(xp, i):
    """The same by roll."""
    a = xp.roll(i, 1, axis=0) + 2 * i + xp.roll(i, -1, axis=0)
    b = xp.roll(i, 1, axis=1) + 2 * i + xp.roll(i, -1, axis=1)
    gx = xp.roll(a, -1, axis=1) - xp.roll(a, 1, axis=1)
    gy = xp.roll(b, -1, axis=0) - xp.roll(b, 1, axis=0)
    return xp.sqrt(gx * gx + gy * gy)


@program(lambda r: {"s": f4(50 + 100 * r.random(1_000_000)), "k": f4(50 + 100 * r.random(1_000_000)), "t": f4(0.1 + r.random(1_000_000))})
def black_scholes(xp, beyond, s, k, t):
    """A million calls."""
    root = 0.3 * xp.sqrt(t)
    d = (xp.log(s / k) + (0.02 + 0.045) * t) / root
    below = lambda x: 0.5 * (1 + beyond.erf(x / math.sqrt(2)))  # noqa: E731
    return s * below(d) - k * xp.exp(-0.02 * t) * below(d - root)


@program(lambda r: {"z": f4(r.standard_normal((200, 2, 1)))}, tolerance=1e-3)
def kalman(xp, z):
    """200 steps of a filter of position and speed."""
    f = xp.asarray([[1, 0.1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1]], dtype=xp.float32)
    h = xp.asarray([[1, 0, 0, 0], [0, 0, 1, 0]], dtype=xp.float32)
    x, p = xp.zeros((4, 1), dtype=xp.float32), xp.eye(4, dtype=xp.float32)

    @step
    def update(x, p, z, f, h):
        x, p = f @ x, f @ p @ f.T + 0.01 * xp.eye(4, dtype=xp.float32)
        gain = p @ h.T @ xp.linalg.inv(h @ p @ h.T + 0.5 * xp.eye(2, dtype=xp.float32))
        return x + gain @ (z - h @ x), p - gain @ h @ p

    for t in range(200):
        x, p = update(x, p, z[t, :, :], f, h)
    return x


@program(lambda r: {"u": f4(r.random((256, 256)))})
def heat(xp, u):
    """200 steps of the heat equation on 256 x 256 points."""

    @step
    def flowed(u):
        inner = u[1:-1, 1:-1] + 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        middle = xp.concat([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        return xp.concat([u[:1, :], middle, u[-1:, :]], axis=0)

    for _ in range(200):
        u = flowed(u)
    return u


@program(lambda r: {"d": f4(1 + 99 * r.random((200, 200)))})
def floyd_warshall(xp, d):
    """All shortest ways between 200 places."""

    @step
    def shorter(d, to, onward):
        return xp.minimum(d, to + onward)

    for k in range(200):
        d = shorter(d, d[:, k : k + 1], d[k : k + 1, :])
    return d


@program(lambda r: {"u": f4(r.random((2, 1_000_000)))})
def monte_carlo(xp, u):
    """Pi from a million points, and the mean of an option's gain."""
    inside = xp.astype(u[0, :] ** 2 + u[1, :] ** 2 < 1, xp.float32)
    normal = xp.sqrt(-2 * xp.log(u[0, :] + 1e-7)) * xp.cos(2 * math.pi * u[1, :])
    gain = xp.where(xp.exp(0.3 * normal) > 1.1, xp.exp(0.3 * normal) - 1.1, xp.zeros_like(normal))
    return xp.stack([4 * xp.mean(inside), xp.mean(gain)])


@program(
    lambda r: {
        "x": f4(r.standard_normal((16, 28, 28))),
        "w": f4(r.standard_normal((9, 16)) / 3),
        "v": f4(r.standard_normal((144, 32)) / 12),
        "d": f4(r.standard_normal((800, 10)) / 28),
    }
)
def conv_net(xp, x, w, v, d):
    """Two convolutions by slices, pools, a dense layer, for 16 images of 28 x 28."""

    def windows(x, n):
        return [x[:, i : i + n, j : j + n] for i in range(3) for j in range(3)]

    def pool(x, n):
        return xp.max(xp.reshape(x[:, : 2 * n, : 2 * n, :], (16, n, 2, n, 2, -1)), axis=(2, 4))

    zero = xp.asarray(0, dtype=xp.float32)
    x = pool(xp.maximum(xp.stack(windows(x, 26), axis=-1) @ w, zero), 13)
    x = pool(xp.maximum(xp.concat(windows(x, 11), axis=-1) @ v, zero), 5)
    return xp.reshape(x, (16, 800)) @ d


def block(r: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "x": f4(r.standard_normal((32, 1, 256))),
        "qkv": f4(r.standard_normal((256, 768)) / 16),
        "out": f4(r.standard_normal((256, 256)) / 16),
        "up": f4(r.standard_normal((256, 1024)) / 16),
        "down": f4(r.standard_normal((1024, 256)) / 32),
    }


@program(block)
def transformer_cache(xp, x, qkv, out, up, down):
    """A block of four heads, one token after the other, with keys and values kept."""

    def normed(x):
        return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5)

    @step
    def token_by_token(token, keys, values, qkv, out, up, down):
        parts = xp.reshape(normed(token) @ qkv, (3, 4, 1, 64))
        q, k, v = parts[0, ...], parts[1, ...], parts[2, ...]
        keys = k if keys is None else xp.concat([keys, k], axis=1)
        values = v if values is None else xp.concat([values, v], axis=1)
        scores = q @ xp.matrix_transpose(keys) / 8
        weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        mixed = weights @ values / xp.sum(weights, axis=-1, keepdims=True)
        token = token + xp.reshape(mixed, (1, 256)) @ out
        wide = normed(token) @ up
        return token + (wide / (1 + xp.exp(-wide))) @ down, keys, values

    keys = values = None
    for t in range(32):
        token, keys, values = token_by_token(x[t, :, :], keys, values, qkv, out, up, down)
    return token


@program(lambda r: {"angle": f4(2 * math.pi * r.random(17 * 17))})
def perlin(xp, angle):
    """Perlin's noise on 512 x 512 points, a lattice of 16 x 16."""
    at = (xp.arange(512, dtype=xp.float32) + 0.5) / 32
    cell = xp.floor(at)
    f, c = at - cell, xp.astype(cell, xp.int32)
    fade = f * f * f * (f * (f * 6 - 15) + 10)

    def corner(dy, dx):
        index = (c + dy)[:, None] * 17 + (c + dx)[None, :]
        turn = xp.reshape(xp.take(angle, xp.reshape(index, (-1,)), axis=0), (512, 512))
        return xp.cos(turn) * (f - dx)[None, :] + xp.sin(turn) * (f - dy)[:, None]

    u, v = fade[None, :], fade[:, None]
    upper = corner(0, 0) * (1 - u) + corner(0, 1) * u
    lower = corner(1, 0) * (1 - u) + corner(1, 1) * u
    return upper * (1 - v) + lower * v


@program(lambda r: {"x": f4(r.standard_normal((2000, 16))), "y": f4(r.standard_normal((500, 16)))}, tolerance=1e-3)
def nearest(xp, x, y):
    """The distances of 500 points to their five nearest of 2,000."""
    squares = xp.sum(y * y, axis=1)[:, None] + xp.sum(x * x, axis=1)[None, :] - 2 * (y @ x.T)
    return xp.sort(squares, axis=1)[:, :5]


@program(lambda r: {"x": f4(r.standard_normal((64, 64)))})
def symmetric_loop(xp, x):
    """`x = (x + x.T) / 2 + x * 0.1`, 200 times, with slices that overlap."""

    @step
    def halved(x):
        x = (x + x.T) / 2 - 0.1 * xp.roll(x, 1, axis=0) * x
        return x / (1 + xp.max(xp.abs(x)))

    for _ in range(200):
        x = halved(x)
    return x
