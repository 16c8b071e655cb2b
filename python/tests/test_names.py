"""NumPy's functions for cutting, choosing, sets, signals, curves and samples: what NumPy gives, with arguments of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import cantus

RANDOM = np.random.default_rng(1)
A, B = (RANDOM.uniform(-3, 3, (4, 6)).astype("f4") for _ in range(2))
WHOLE = RANDOM.integers(-5, 9, (4, 6)).astype("i4")
C = (A + 1j * B).astype("c8")
HOLES = A.copy()
HOLES[1, 2] = HOLES[:, 5] = np.nan
PLACES = np.array([0, 1, 1.5, 3, 3.2, 7.0])
QUANTILES = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear median_unbiased normal_unbiased "
    "lower higher midpoint nearest"
).split()


def changed(of):
    """A function that changes an array, as one that gives a changed copy."""

    def copied(x):
        x = x.copy()
        of(x)
        return x

    return copied


ALL = [
    (A, [
        lambda x: np.array_split(x, 4, axis=1), lambda x: np.split(x, [1, 3], axis=1), lambda x: np.hsplit(x, 2), lambda x: np.vsplit(x, [3]), np.atleast_3d,
        lambda x: np.column_stack([x[0], x[1]]), lambda x: np.dstack([x, x]), lambda x: np.block([[x, x], [x, x]]), lambda x: np.block([x[0], x[1]]),
        lambda x: np.append(x, x[:1], axis=0), lambda x: np.delete(x, [1, -1], axis=1), lambda x: np.delete(x, slice(0, 4, 2)), lambda x: np.insert(x, 1, 5, axis=1),
        lambda x: np.insert(x[0], [1, 3], [7, 8]), lambda x: np.insert(x, 1, [1, 2, 3, 4], axis=1), lambda x: np.insert(x, 2, [[1], [2], [3], [4]], axis=1),
        lambda x: np.resize(x, (3, 11)), lambda x: np.trim_zeros(x[0] * (x[0] > 0)), np.fliplr, np.flipud, *(lambda x, k=k: np.rot90(x, k) for k in range(5)),
        lambda x: np.rollaxis(x[None], 2), lambda x: np.extract(x > 0, x), lambda x: np.compress([True, False, True], x, axis=0),
        lambda x: np.select([x > 1, x < -1], [x, -x], 0), lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: -v, 2.0]),
        changed(lambda x: np.fill_diagonal(x, 5)), lambda x: changed(lambda y: np.fill_diagonal(y, [1, 2], wrap=True))(x.T.copy()),
        changed(lambda x: np.put(x, [0, 3, -1], [9, 8])), changed(lambda x: np.place(x, x > 0, [1, 2])), changed(lambda x: np.putmask(x, x > 0, x * 2)),
        changed(lambda x: np.put_along_axis(x, np.argmax(x, axis=1, keepdims=True), 0, axis=1)), changed(lambda x: np.copyto(x, 1.5, where=x > 0)),
        lambda x: np.kron(x, x[:2, :2]), lambda x: np.cross(x[:, :3], x[:, 3:]), lambda x: np.cross(x[:, :2], x[:, 3:]), lambda x: np.cross(x[:, :3], x[:, 4:]),
        lambda x: np.diagflat(x[0], 1), np.tril_indices_from, lambda x: np.diag_indices_from(x[:4, :4]), np.trapezoid, lambda x: np.trapezoid(x, dx=0.5, axis=0),
        lambda x: np.trapezoid(x, PLACES), lambda x: np.unwrap(x * 4), lambda x: np.unwrap(x * 3, discont=2, axis=0), np.ediff1d,
        lambda x: np.ediff1d(x, to_end=x[0, :1], to_begin=x[0, :2]), np.sinc, lambda x: np.angle(x, deg=True), lambda x: np.vander(x[0], 4),
        lambda x: np.polyval(np.array([1, 2, 3], "f4"), x), lambda x: np.polymul(x[0], x[1, :2]), lambda x: np.polyadd(x[0, :2], x[1]), lambda x: np.polyint(x[0], 2),
        lambda x: np.polyder(x[0], 2), lambda x: np.matvec(x, x[0]), lambda x: np.vecmat(x[:, 0], x), np.cov, lambda x: np.cov(x, rowvar=False), lambda x: np.cov(x[0], x[1]), lambda x: np.cov(x[0]),
        lambda x: np.cov(x, fweights=[1, 2, 3, 1, 1, 2], aweights=[0.1, 0.2, 0.3, 0.4, 0.5, 1]), np.corrcoef, lambda x: np.corrcoef(x[0], x[1]), lambda x: np.corrcoef(x[0]),
        lambda x: np.histogram2d(x[0], x[1], 4), lambda x: np.histogram2d(x[0], x[1], [3, [-2, 0, 2]], density=True), lambda x: np.histogramdd(x.T[:, :3], (2, 3, 4)),
        lambda x: np.average(x, axis=0, weights=[1, 2, 3, 4]), lambda x: np.average(x, weights=abs(x), returned=True), np.ptp,
        lambda x: np.cumulative_sum(x, axis=1, include_initial=True), lambda x: np.gradient(x, PLACES, axis=1), lambda x: np.gradient(x, PLACES, axis=1, edge_order=2),
        lambda x: np.gradient(x, edge_order=2), lambda x: np.interp(x, [-1, 0.5, 2], [3, 1, 4], period=3), lambda x: np.einsum(x, [0, 1], x, [2, 1], [0, 2]),
        lambda x: np.einsum(x[:4, :4], [0, 1], x, [1, 2]), lambda x: np.einsum(x, [..., 1], [1, ...]), lambda x: np.einsum(x[:4, :4], [0, 0]),
        np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.fftn, lambda x: np.fft.irfft2(np.fft.rfft2(x)), lambda x: np.fft.fft2(x, s=(8, 8)),
        lambda x: np.fft.fft2(x, axes=(1, 0), norm="ortho"), lambda x: np.linalg.lstsq(x.T, x[0] * 2 + 1)[:2], lambda x: np.linalg.lstsq(x, x[:, 0])[3],
        lambda x: np.linalg.lstsq(x[:, [0, 0, 1]], np.ones(4))[0], np.linalg.pinv, lambda x: np.linalg.cond(x[:, :4]), lambda x: np.linalg.multi_dot([x, x.T, x, x[0]]),
        lambda x: divmod(x, 2), np.modf, np.add.accumulate, lambda x: np.maximum.accumulate(x, axis=1), lambda x: np.multiply.accumulate(x, 1),
        lambda x: np.subtract.outer(x[0], x), changed(lambda x: np.add.at(x, [0, 0, 2], 1.0)), changed(lambda x: np.add.at(x, ([0, 0, 2], [1, 1, 1]), [1.0, 2.0, 3.0])),
        lambda x: x.cumprod(axis=0), lambda x: x.repeat(2, axis=0), changed(lambda x: x.fill(2)), changed(lambda x: x.sort(axis=0)), lambda x: x.diagonal(1),
        lambda x: np.pad(x, 3, mode="linear_ramp", end_values=((1, 2), (3, -4))), lambda x: np.pad(x[:1, :1], 3, mode="reflect"),
        *(lambda x, m=m: np.pad(x, ((3, 9), (2, 14)), mode=m, reflect_type="odd") for m in ("reflect", "symmetric")),
        *(lambda x, m=m: np.pad(x, 2, mode=m, stat_length=((2, 3), (1, 2))) for m in ("maximum", "mean", "median", "minimum")),
    ]),
    (WHOLE, [
        np.flatnonzero, np.argwhere, lambda x: np.append(x, [1, 2]), lambda x: np.choose(abs(x) % 3, [x, x * 2, x * 3]), lambda x: np.unravel_index(abs(x), (3, 4)),
        lambda x: np.ravel_multi_index((abs(x) % 3, abs(x) % 4), (3, 4)), lambda x: np.isin(x, [1, 2, 3]), lambda x: np.union1d(x, [100, 2]),
        lambda x: np.intersect1d(x, [1, 2, 3, 4, 77]), lambda x: np.intersect1d(x, [1, 2, 3, 4, 77], return_indices=True), lambda x: np.setdiff1d(x, [1, 2]),
        lambda x: np.setxor1d(x, [1, 2, 88]), lambda x: np.lexsort((x[0], x[1] % 2)), lambda x: np.kron(x[0], x), lambda x: np.unwrap(x * 3, period=4), np.sinc,
        lambda x: np.vander(x[0], 3, increasing=True), lambda x: np.average(x, axis=1, weights=PLACES), lambda x: np.gradient(x, 0.5, axis=0), lambda x: x.trace(),
        lambda x: divmod(x, 3), lambda x: np.minimum.accumulate(x, axis=0), lambda x: x.nonzero(), changed(lambda x: np.subtract.at(x, ([0, 0, 2], [1, 1, 1]), 2)),
    ]),
    (C, [lambda x: np.vdot(x, x * 2), lambda x: np.cov(x, bias=True), np.corrcoef, np.angle, np.isreal]),
    (A.astype("f8"), [
        lambda x: np.polyfit(x[0], x[0] * x[0] + 1, 2), lambda x: np.polyfit(x[0], x.T, 3, w=abs(x[1])), lambda x: np.linalg.lstsq(x.T, x.T[:, :2], rcond=None)[:2],
    ]),
    *((of, [
        getattr(np, name), lambda x, of=getattr(np, name): of(x, axis=0), lambda x, of=getattr(np, name): of(x, axis=1, keepdims=True),
    ]) for name in "nanmean nanvar nanstd nanprod nanmin nanmax nansum nanmedian".split() for of in (HOLES, WHOLE)),
    (HOLES, [
        np.nancumsum, np.nancumprod, lambda x: np.nanargmax(x, axis=1), np.nanargmin, lambda x: np.nanvar(x, axis=1, ddof=1, keepdims=True), np.isposinf,
        *(lambda x, of=of: of(x, x[::-1]) for of in (np.heaviside, np.fmax, np.fmin, np.logaddexp2)),
    ]),
]  # fmt: skip
MODES = ("constant", "edge", "reflect", "wrap", "symmetric", "linear_ramp", "maximum", "mean", "median", "minimum")


def same(found, expected):
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert isinstance(found, cantus.Array)
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, found.shape, expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def agrees(program, *arrays):
    expected = program(*arrays)
    same(program(*map(cantus.asarray, arrays)), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of, program", [(of, program) for of, programs in ALL for program in programs])
def test_names_are_numpys(of, program):
    with np.errstate(all="ignore"):
        agrees(program, of)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1, 3, ((0, 2), (9, 4)), ((5, 1), (13, 0))])
def test_every_mode_of_pad(mode, width):
    for of in (A, WHOLE):
        agrees(lambda x: np.pad(x, width, mode=mode), of)


@pytest.mark.parametrize("method", QUANTILES)
def test_every_method_of_quantiles(method):
    for q in (0, 0.1, 0.25, 0.4, 0.5, 0.7, 0.77, 1, [0.2, 0.9]):
        agrees(lambda x: np.quantile(x, q, axis=1, method=method), A)
        agrees(lambda x: np.quantile(x, q, method=method), A)
        agrees(lambda x: np.nanquantile(x, q, axis=1, method=method), HOLES)
    agrees(lambda x: np.percentile(x, 30, axis=0, method=method), WHOLE)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("of", [np.convolve, np.correlate])
def test_sliding_sums(of, mode):
    for size in (1, 2, 3, 6, 17, 40, 100):
        for kind in ("f4", "i4", "f8", "c8", "?"):
            x, v = (RANDOM.uniform(-3, 3, count) for count in (50, size))
            x, v = (x > 0, v > 0) if kind == "?" else (x + 1j * x[::-1], v - 1j * v[::-1]) if kind == "c8" else (x, v)
            agrees(lambda x, v: of(x, v, mode), x.astype(kind), v.astype(kind))


def test_long_sliding_sums():
    for kind, sizes in (("f4", (20000, 3000)), ("i4", (3001, 700)), ("f8", (70000, 66000))):
        x, v = (RANDOM.integers(-9, 9, size).astype(kind) for size in sizes)
        agrees(np.convolve, x, v)


def test_numpys_names_are_the_modules():
    x, y = cantus.asarray(A), cantus.asarray(B)
    assert np.allclose(cantus.kron(x, y), np.kron(A, B)) and np.allclose(cantus.arctan2(x, y), np.arctan2(A, B))
    assert cantus.argwhere([[0, 1], [2, 0]]).tolist() == [[0, 1], [1, 0]] and cantus.vstack([[1, 2], [3, 4]]).shape == (2, 2)
    assert isinstance(cantus.einsum("ij,ij->", np.ones((2, 2)), np.ones((2, 2))), cantus.Array)
    assert {"kron", "cbrt", "median", "sum"} <= set(dir(cantus)) and cantus.kron.__name__ == "kron"
    for name in ("nothing_of_the_kind", "ndarray", "memmap", "_core_of"):
        with pytest.raises(AttributeError):
            getattr(cantus, name)


def test_mistakes_are_named():
    x = cantus.asarray(A)
    for program, match in (
        (lambda: np.split(x, 5, axis=1), "equal parts"), (lambda: np.convolve(x, x), "two lines"), (lambda: np.convolve(x[0], x[0][:0]), "no elements"),
        (lambda: np.gradient(x[:1], axis=0), "elements along"), (lambda: np.pad(x, -1), "negative"), (lambda: np.pad(x, 1, mode="edge", end_values=1), "end_values"),
        (lambda: np.choose(cantus.asarray([7]), [x, x]), "places from 0"), (lambda: np.linalg.lstsq(x, x[:, 0][:3]), "the same number of rows"),
        (lambda: cantus.searchsorted(x, 1.0), "one axis"), (lambda: np.nanargmax(x * np.nan), "holds only NaN"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            program()
