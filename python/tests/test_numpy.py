"""NumPy's own functions of Cantus's arrays: on the array's device, of NumPy's dtypes, never silently by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import cantus

X = np.random.default_rng(4).uniform(-3, 3, (4, 6)).astype("f4")
W = np.arange(-12, 12, dtype="i4").reshape(4, 6)

SAME = [
    np.abs, np.exp, np.tanh, np.arctan, np.cbrt, np.rint, np.isnan, np.degrees, np.negative, np.square, np.sign,
    lambda x: np.add(x, 1), lambda x: np.arctan2(x, 2.0), lambda x: np.power(x, 2), lambda x: np.hypot(x, x), lambda x: np.maximum(x, 0),
    lambda x: np.greater(x, 0), lambda x: np.logical_and(x, x > 1), lambda x: np.divide(x, 2), lambda x: x + np.float64(1), lambda x: 2 * x,
    lambda x: np.ones((4, 6), "f4") * x, lambda x: x - np.ones(6), lambda x: np.multiply(x, 2, dtype="f8"), lambda x: np.matmul(x, x.T),
    np.sum, np.mean, np.std, lambda x: np.var(x, axis=0, ddof=1), lambda x: np.max(x, axis=1, keepdims=True), lambda x: np.prod(x, 0), np.any,
    lambda x: np.argmax(x, axis=1), lambda x: np.cumsum(x), lambda x: np.cumprod(x, axis=1), np.add.reduce, lambda x: np.maximum.reduce(x, axis=1),
    lambda x: np.concatenate([x, x], axis=1), lambda x: np.stack([x, x]), lambda x: np.vstack([x, x]), lambda x: np.hstack([x, x]),
    lambda x: np.reshape(x, (6, 4)), np.ravel, np.transpose, lambda x: np.swapaxes(x, 0, 1), lambda x: np.moveaxis(x, 0, 1),
    lambda x: np.expand_dims(x, (0, 2)), lambda x: np.squeeze(np.expand_dims(x, 0)), lambda x: np.broadcast_to(x, (2, 4, 6)),
    lambda x: np.where(x > 0, x, 0), lambda x: np.clip(x, -1, 1), lambda x: np.round(x, 1), lambda x: np.take(x, [1, 0, 3], axis=0),
    lambda x: np.tile(x, (2, 1)), lambda x: np.repeat(x, 2, axis=1), lambda x: np.roll(x, 2, axis=1), lambda x: np.flip(x, axis=0),
    lambda x: np.pad(x, 1), lambda x: np.pad(x, ((0, 1), (2, 0)), mode="edge"), lambda x: np.pad(x, 2, mode="reflect"),
    lambda x: np.pad(x, 3, mode="wrap"), lambda x: np.diagonal(x[:4, :4]), lambda x: np.trace(x[:4, :4]), np.tril, np.triu,
    lambda x: np.dot(x, x.T), lambda x: np.inner(x, x), lambda x: np.outer(x[0], x[1]), lambda x: np.tensordot(x, x, axes=((0,), (0,))),
    lambda x: np.einsum("ij,kj->ik", x, x), lambda x: np.sort(x, axis=0), lambda x: np.argsort(x, axis=1), lambda x: np.unique(x),
    lambda x: np.searchsorted(np.sort(x.ravel()), x[0]), lambda x: np.isclose(x, x * 2), lambda x: np.zeros_like(x),
    lambda x: np.full_like(x, 3, shape=(2,)), lambda x: np.diff(x), lambda x: np.nansum(x), lambda x: np.nan_to_num(x), np.copy,
    lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), lambda x: x.sum(axis=0), lambda x: x.mean(), lambda x: x.transpose(),
    lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, [25, 50], axis=1), lambda x: np.median(x, axis=0), lambda x: np.median(x),
    lambda x: np.quantile(x, 0.4, axis=1, method="nearest"), lambda x: np.nanquantile(x, 0.3, axis=0, keepdims=True), lambda x: np.nanmedian(x),
    lambda x: np.histogram(x, 5)[0], lambda x: np.histogram(x, 5, range=(-1, 2), density=True)[0], lambda x: np.histogram(x, [-1, 0, 2])[0],
    lambda x: np.bincount(abs(x).astype("i4").ravel(), minlength=7), lambda x: np.bincount(abs(x).astype("i4").ravel(), weights=x.ravel()),
    lambda x: np.digitize(x, np.array([-1, 0, 2])), lambda x: np.digitize(x, np.array([2, 0, -1]), right=True), lambda x: np.diag(x[0], -1),
    lambda x: np.interp(x, [-1, 0.0, 2], [3, 4, 9.0]), lambda x: np.gradient(x, axis=0), lambda x: np.gradient(x, 0.5)[1],
    lambda x: np.sort(np.partition(x, 2, axis=1)[:, :2], axis=1), lambda x: np.apply_along_axis(lambda row: row[::2] + 0, 0, x),
    lambda x: np.linalg.norm(x), lambda x: np.linalg.norm(x, axis=1), lambda x: np.linalg.norm(x, "nuc"), lambda x: np.fft.fft(x, 4, 0),
    lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=((1, 2), (3, 4))), lambda x: x.astype("f8").var(ddof=1), lambda x: x.dot(x.T), lambda x: x.cumsum(axis=1), lambda x: x.clip(0, 1), lambda x: x.flatten(),
]  # fmt: skip


@pytest.mark.parametrize("of", [X, W], ids=["float32", "int32"])
@pytest.mark.parametrize("program", SAME, ids=[str(place) for place in range(len(SAME))])
def test_functions_are_numpys(program, of):
    with np.errstate(all="ignore"):
        try:
            expected = program(of)
        except TypeError:
            return
        found = program(cantus.asarray(of))
    assert isinstance(found, cantus.Array), type(found)
    assert found.dtype == np.asarray(expected).dtype and found.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5, atol=2e-5)


def test_linear_algebra_and_transforms():
    x = cantus.asarray(X[:4, :4])
    assert isinstance(np.linalg.inv(x), cantus.Array) and isinstance(np.fft.fft(x), cantus.Array)
    np.testing.assert_allclose(np.asarray(np.linalg.inv(x) @ x), np.eye(4), atol=1e-3)


def test_what_is_not_there_is_an_error_with_a_remedy():
    x = cantus.asarray(X)
    for program in (np.real_if_close, np.spacing, np.power.accumulate, np.linalg.eig, lambda x: np.pad(x, 1, mode=lambda *_: None)):
        with pytest.raises(TypeError, match="np.asarray"):
            program(x)


def test_results_into_arrays_and_dtypes():
    x, out = cantus.asarray(X), cantus.zeros((4, 6))
    assert np.add(x, 1, out=out) is out
    np.testing.assert_allclose(np.asarray(out), X + 1)
    host = np.zeros((4, 6))
    assert np.multiply(x, 2, out=host) is host
    np.testing.assert_allclose(host, X * 2, rtol=1e-6)
    assert np.dtype(cantus.float32) == np.float32 and np.result_type(cantus.int8, "f4") == np.float32
    assert np.empty(2, dtype=cantus.complex64).dtype == "complex64" and cantus.int16.kind == "i" and cantus.int16.hasobject is False
    assert np.allclose(x, X) and np.array_equal(x, X) and np.shape(x) == (4, 6)
    assert np.array2string(x[0, :2]).startswith("[")
