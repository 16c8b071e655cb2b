"""Whole array programs, written once for NumPy's interface and run by both: Cantus must give NumPy's numbers. Each is a textbook algorithm with loops,
writes in place, masks and mixed dtypes, as people bring them; sizes and inputs are drawn by a seed that is printed where a program differs."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import cantus
import numpy as np
import pytest

SEED = 20261129


def jacobi(m: Any, rng: np.random.Generator) -> Any:
    """Heat in a plate with a hot edge, by Jacobi's iteration."""
    heat = m.zeros((23, 31), dtype=m.float64)
    heat[0, :] = 100.0
    for _ in range(60):
        inner = (heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]) / 4
        heat[1:-1, 1:-1] = inner
    return heat


def sieve(m: Any, rng: np.random.Generator) -> Any:
    """Primes below 1,000, by Eratosthenes."""
    prime = m.ones(1000, dtype=m.bool)
    prime[:2] = False
    for number in range(2, 32):
        if bool(prime[number]):
            prime[number * number :: number] = False
    return m.nonzero(prime)[0]


def rule_30(m: Any, rng: np.random.Generator) -> Any:
    """Wolfram's rule 30 from one cell."""
    cells = m.zeros((40, 81), dtype=m.uint8)
    cells[0, 40] = 1
    for row in range(1, 40):
        before = cells[row - 1]
        cells[row] = m.roll(before, 1) ^ (before | m.roll(before, -1))
    return cells


def conjugate_gradients(m: Any, rng: np.random.Generator) -> Any:
    a = rng.standard_normal((40, 40))
    matrix, right = m.asarray(a @ a.T + 40 * np.eye(40)), m.asarray(rng.standard_normal(40))
    x = m.zeros(40, dtype=m.float64)
    residual = right - matrix @ x
    direction, norm = residual, residual @ residual
    for _ in range(40):
        image = matrix @ direction
        step = norm / (direction @ image)
        x = x + step * direction
        residual = residual - step * image
        following = residual @ residual
        direction, norm = residual + following / norm * direction, following
    return x


def householder(m: Any, rng: np.random.Generator) -> Any:
    """R of a QR factorisation."""
    r = m.asarray(rng.standard_normal((9, 6)))
    for column in range(6):
        x = m.asarray(r[column:, column], copy=True)
        x[0] = x[0] + m.sign(x[0]) * m.sqrt(m.sum(x * x))
        x = x / m.sqrt(m.sum(x * x))
        part = r[column:, column:]
        r[column:, column:] = part - 2 * x[:, None] * (x @ part)[None, :]
    return m.abs(r)


def elimination(m: Any, rng: np.random.Generator) -> Any:
    """Gauss's elimination with pivots: a solution and the determinant."""
    a = m.asarray(rng.standard_normal((12, 12)))
    b = m.asarray(rng.standard_normal(12))
    determinant = 1.0
    for column in range(12):
        pivot = column + int(m.argmax(m.abs(a[column:, column])))
        if pivot != column:
            order = np.arange(12)
            order[[column, pivot]] = order[[pivot, column]]
            a, b, determinant = m.take(a, m.asarray(order), axis=0), m.take(b, m.asarray(order), axis=0), -determinant
        determinant *= float(a[column, column])
        factors = a[column + 1 :, column] / a[column, column]
        a[column + 1 :] = a[column + 1 :] - factors[:, None] * a[column]
        b[column + 1 :] = b[column + 1 :] - factors * b[column]
    x = m.zeros(12, dtype=m.float64)
    for row in range(11, -1, -1):
        x[row] = (b[row] - m.sum(a[row] * x)) / a[row, row]
    return m.concat([x, m.asarray([determinant], dtype=m.float64)])


def levenshtein(m: Any, rng: np.random.Generator) -> Any:
    """The edit distance of two words, along the table's diagonals."""
    one, other = (m.asarray(rng.integers(0, 4, length)) for length in (17, 21))
    table = m.zeros((18, 22), dtype=m.int64)
    table[:, 0], table[0, :] = m.arange(18), m.arange(22)
    for row in range(1, 18):
        cost = m.astype(other != one[row - 1], m.int64)
        for column in range(1, 22):
            best = m.minimum(table[row - 1, column] + 1, table[row, column - 1] + 1)
            table[row, column] = m.minimum(best, table[row - 1, column - 1] + cost[column - 1])
    return table


def floyd_warshall(m: Any, rng: np.random.Generator) -> Any:
    weights = rng.integers(1, 50, (19, 19)).astype(np.float32)
    weights[rng.random((19, 19)) < 0.6] = np.inf
    ways = m.asarray(weights)
    for middle in range(19):
        ways = m.minimum(ways, ways[:, middle : middle + 1] + ways[middle : middle + 1, :])
    return ways


def viterbi(m: Any, rng: np.random.Generator) -> Any:
    """The likeliest states of a hidden Markov model."""
    change, sight = (m.asarray(np.log(rng.dirichlet(np.ones(5), 5))) for _ in range(2))
    seen = rng.integers(0, 5, 30)
    score, back = sight[:, int(seen[0])], []
    for symbol in seen[1:]:
        ways = score[:, None] + change
        back.append(m.argmax(ways, axis=0))
        score = m.max(ways, axis=0) + sight[:, int(symbol)]
    states = [int(m.argmax(score))]
    for came in back[::-1]:
        states.append(int(came[states[-1]]))
    return m.asarray(states[::-1])


def kalman(m: Any, rng: np.random.Generator) -> Any:
    """A Kalman filter that follows a point in the plane."""
    step = m.asarray(np.array([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]]))
    sight = m.asarray(np.eye(2, 4))
    state, spread, found = m.zeros(4, dtype=m.float64), m.eye(4, dtype=m.float64), []
    for seen in rng.standard_normal((25, 2)).cumsum(0):
        state, spread = step @ state, step @ spread @ step.T + 0.01 * m.eye(4, dtype=m.float64)
        gain = spread @ sight.T @ m.linalg.inv(sight @ spread @ sight.T + 0.5 * m.eye(2, dtype=m.float64))
        state = state + gain @ (m.asarray(seen) - sight @ state)
        spread = spread - gain @ sight @ spread
        found.append(state)
    return m.stack(found)


def k_means(m: Any, rng: np.random.Generator) -> Any:
    points = rng.standard_normal((150, 2)) + np.repeat([[0, 0], [6, 1], [2, 7]], 50, 0)
    points, centres = m.asarray(points), m.asarray(points[[3, 60, 120]])
    for _ in range(8):
        far = m.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        nearest = m.argmin(far, axis=1)
        centres = m.stack([m.mean(points[nearest == group], axis=0) for group in range(3)])
    return m.concat([centres, m.astype(nearest, m.float64)[:, None] * m.ones((1, 2), dtype=m.float64)])


def soft_classes(m: Any, rng: np.random.Generator) -> Any:
    """Multinomial logistic regression by gradient steps, in float32."""
    x, y = m.asarray(rng.standard_normal((90, 7)).astype(np.float32)), m.asarray(rng.integers(0, 4, 90))
    wanted = m.astype(y[:, None] == m.arange(4)[None, :], m.float32)
    weights = m.zeros((7, 4), dtype=m.float32)
    for _ in range(25):
        scores = x @ weights
        powers = m.exp(scores - m.max(scores, axis=1, keepdims=True))
        weights -= 0.1 * (x.T @ (powers / m.sum(powers, axis=1, keepdims=True) - wanted)) / 90
    return weights


def equalized(m: Any, rng: np.random.Generator) -> Any:
    """The equalisation of a picture's histogram, in bytes."""
    picture = rng.normal(90, 20, (37, 53)).clip(0, 255).astype(np.uint8)
    pixels = m.asarray(picture)
    counts = m.sum(m.astype(m.reshape(pixels, (-1, 1)) == m.arange(256, dtype=m.uint8)[None, :], m.int64), axis=0)
    whole = m.cumulative_sum(counts)
    table = m.astype((whole - 1) * 255 // (picture.size - 1), m.uint8)
    return m.reshape(m.take(table, m.astype(m.reshape(pixels, (-1,)), m.int64)), picture.shape)


def eroded(m: Any, rng: np.random.Generator) -> Any:
    """The opening of a mask: three by three erosion, then dilation."""
    mask = m.asarray(rng.random((29, 41)) < 0.8)

    def spread(mask: Any, combine: Callable[..., Any], edge: bool) -> Any:
        wide = m.full((31, 43), edge, dtype=m.bool)
        wide[1:-1, 1:-1] = mask
        found = wide[1:-1, 1:-1]
        for row in range(3):
            for column in range(3):
                found = combine(found, wide[row : row + 29, column : column + 41])
        return found

    return spread(spread(mask, m.logical_and, True), m.logical_or, False)


def low_pass(m: Any, rng: np.random.Generator) -> Any:
    """A picture without its high frequencies."""
    picture = m.asarray(rng.standard_normal((30, 50)))
    spectrum = m.fft.fftn(picture)
    rows, columns = m.fft.fftfreq(30), m.fft.fftfreq(50)
    near = rows[:, None] ** 2 + columns[None, :] ** 2 < 0.0423
    kept = m.where(near, spectrum, m.zeros_like(spectrum))
    return m.real(m.fft.ifftn(kept))


def mandelbrot(m: Any, rng: np.random.Generator) -> Any:
    c = m.linspace(-2, 1, 60)[None, :] + 1j * m.linspace(-1.2, 1.2, 40)[:, None]
    z, count = m.zeros_like(c), m.zeros((40, 60), dtype=m.int32)
    for _ in range(30):
        inside = m.abs(z) <= 2
        z = m.where(inside, z * z + c, z)
        count += m.astype(inside, m.int32)
    return count


def planets(m: Any, rng: np.random.Generator) -> Any:
    """Bodies that attract each other, by leapfrog steps."""
    places, speeds = (m.asarray(rng.standard_normal((6, 3))) for _ in range(2))
    masses = m.asarray(rng.random(6) + 0.5)

    def pull(places: Any) -> Any:
        apart = places[None, :, :] - places[:, None, :]
        cubes = (m.sum(apart * apart, axis=2) + 0.05) ** 1.5
        return m.sum(apart * (masses[None, :] / cubes)[:, :, None], axis=1)

    for _ in range(20):
        speeds += 0.005 * pull(places)
        places += 0.01 * speeds
        speeds += 0.005 * pull(places)
    return m.concat([places, speeds])


def checksums(m: Any, rng: np.random.Generator) -> Any:
    """CRC-32 of many messages side by side, by its table; zlib's is the same."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, 0xEDB88320 ^ (table >> 1), table >> 1).astype(np.uint32)
    messages = rng.integers(0, 256, (50, 33), np.uint8)
    words, lookup = m.asarray(messages.astype(np.uint32)), m.asarray(table)
    crc = m.full(50, 0xFFFFFFFF, dtype=m.uint32)
    for column in range(33):
        place = m.astype((crc ^ words[:, column]) & 255, m.int64)
        crc = m.take(lookup, place) ^ (crc >> 8)
    found = crc ^ m.asarray(0xFFFFFFFF, dtype=m.uint32)
    assert [int(one) for one in np.asarray(found)] == [zlib.crc32(message.tobytes()) for message in messages]
    return found


def runs(m: Any, rng: np.random.Generator) -> Any:
    """Run-length coding and back."""
    values = m.asarray(np.repeat(rng.integers(0, 5, 60), rng.integers(1, 6, 60)).astype(np.int16))
    begins = m.concat([m.ones(1, dtype=m.bool), values[1:] != values[:-1]])
    places = m.nonzero(begins)[0]
    lengths = m.diff(m.concat([places, m.asarray([values.shape[0]])]))
    back = m.repeat(values[begins], lengths)
    assert bool(m.all(back == values))
    return m.stack([m.astype(values[begins], m.int64), lengths])


def options(m: Any, rng: np.random.Generator) -> Any:
    """An Asian option's value by paths, in float32, with antithetic numbers."""
    normals = rng.standard_normal((400, 24)).astype(np.float32)
    steps = m.asarray(np.concatenate([normals, -normals]))
    paths = 100 * m.exp(m.cumulative_sum(m.asarray(0.0004, dtype=m.float32) + 0.03 * steps, axis=1))
    gain = m.maximum(m.mean(paths, axis=1) - 101, m.zeros(800, dtype=m.float32))
    return m.stack([m.mean(gain), m.std(gain), m.max(gain), m.min(paths)])


def pages(m: Any, rng: np.random.Generator) -> Any:
    """PageRank of a sparse graph, by its edges."""
    to, ways = rng.integers(0, 70, 400), rng.integers(0, 70, 400)
    degree = np.maximum(np.bincount(ways, minlength=70), 1)
    ways_at, to_order = m.asarray(ways), m.asarray(np.argsort(to, kind="stable"))
    ends = m.asarray(np.searchsorted(np.sort(to), np.arange(71)))
    rank, share = m.full(70, 1 / 70, dtype=m.float64), m.asarray(1.0 / degree)
    for _ in range(30):
        sent = m.take(m.take(rank * share, ways_at), to_order)
        sums = m.concat([m.zeros(1, dtype=m.float64), m.cumulative_sum(sent)])
        rank = 0.15 / 70 + 0.85 * (m.take(sums, ends[1:]) - m.take(sums, ends[:-1]))
    return rank


def sorted_by_bits(m: Any, rng: np.random.Generator) -> Any:
    """A radix sort of unsigned words, bit by bit, and the place of each."""
    keys = m.asarray(rng.integers(0, 2**16, 300).astype(np.uint32))
    order = m.arange(300)
    for bit in range(16):
        ones = (m.take(keys, order) >> bit) & 1 == 1
        order = m.concat([order[~ones], order[ones]])
    return m.stack([m.astype(m.take(keys, order), m.int64), order])


PROGRAMS = [
    jacobi, sieve, rule_30, conjugate_gradients, householder, elimination, levenshtein, floyd_warshall, viterbi, kalman, k_means, soft_classes,
    equalized, eroded, low_pass, mandelbrot, planets, checksums, runs, options, pages, sorted_by_bits,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_numpys_numbers(program: Callable[..., Any]) -> None:
    found = np.asarray(program(cantus, np.random.default_rng(SEED)))
    wanted = np.asarray(program(np, np.random.default_rng(SEED)))
    assert found.shape == wanted.shape, f"seed {SEED}"
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {SEED}")
    else:
        digits = 2e-4 if wanted.dtype.itemsize == 4 else 1e-9
        np.testing.assert_allclose(found, wanted, rtol=digits, atol=digits * np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1), err_msg=f"seed {SEED}")
