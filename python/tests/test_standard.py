"""The standard's functions beside NumPy, over random shapes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cantus

FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL = WHOLE + FLOATS
NUMBERS = REAL + COMPLEX

# Name, dtypes, and the range of numbers.
UNARY = [
    ("abs", NUMBERS, 9), ("acos", FLOATS + COMPLEX, 0.9), ("acosh", COMPLEX, 3), ("asin", FLOATS + COMPLEX, 0.9),
    ("asinh", FLOATS + COMPLEX, 9), ("atan", FLOATS + COMPLEX, 9), ("atanh", FLOATS + COMPLEX, 0.9), ("ceil", REAL, 9),
    ("conj", COMPLEX, 9), ("cos", FLOATS + COMPLEX, 9), ("cosh", FLOATS + COMPLEX, 4), ("exp", FLOATS + COMPLEX, 4),
    ("expm1", FLOATS + COMPLEX, 4), ("floor", REAL, 9), ("imag", COMPLEX, 9), ("isfinite", NUMBERS, 9),
    ("isnan", NUMBERS, 9), ("log", COMPLEX, 9), ("log1p", FLOATS + COMPLEX, 0.9), ("log2", COMPLEX, 9),
    ("log10", COMPLEX, 9), ("negative", NUMBERS, 9), ("positive", NUMBERS, 9), ("real", COMPLEX, 9),
    ("round", FLOATS + COMPLEX, 9), ("sign", REAL + COMPLEX, 9), ("signbit", FLOATS, 9), ("sin", FLOATS + COMPLEX, 9),
    ("sinh", FLOATS + COMPLEX, 4), ("sqrt", COMPLEX, 9), ("square", NUMBERS, 9), ("tan", FLOATS + COMPLEX, 1.4),
    ("tanh", FLOATS + COMPLEX, 4), ("trunc", REAL, 9), ("bitwise_invert", WHOLE, 9),
]  # fmt: skip
BINARY = [
    ("add", NUMBERS), ("subtract", NUMBERS), ("multiply", NUMBERS), ("divide", FLOATS + COMPLEX), ("atan2", FLOATS),
    ("hypot", FLOATS), ("maximum", REAL), ("minimum", REAL), ("equal", NUMBERS), ("not_equal", NUMBERS), ("less", REAL),
    ("less_equal", REAL), ("greater", REAL), ("greater_equal", REAL), ("bitwise_and", WHOLE), ("bitwise_or", WHOLE),
    ("bitwise_xor", WHOLE), ("copysign", FLOATS), ("logaddexp", FLOATS), ("nextafter", FLOATS),
]  # fmt: skip
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all"]

some = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
shapes = st.lists(st.integers(1, 5), max_size=3).map(tuple)


def numbers(shape, dtype, limit, seed):
    generator = np.random.default_rng(seed)
    values = generator.uniform(-limit, limit, shape)
    kind = np.dtype(dtype).kind
    if kind == "c":
        values = values + 1j * generator.uniform(-limit, limit, shape)
    if kind == "u":
        values = np.abs(values)
    return np.asarray(values).astype(dtype)


def near(got, expected, dtype):
    got = np.asarray(got)
    assert got.shape == np.shape(expected)
    if np.asarray(expected).dtype.kind in "biu" and got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    single = np.dtype(dtype) in (np.dtype("float32"), np.dtype("complex64"))
    tolerance = 2e-5 if single else 1e-12
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def has(device, dtype):
    return device.has(getattr(cantus, dtype))


@pytest.mark.parametrize(("name", "dtypes", "limit"), UNARY, ids=[row[0] for row in UNARY])
@some
@given(shape=shapes, seed=st.integers(0, 2**31))
def test_functions_of_one(device, name, dtypes, limit, shape, seed):
    dtype = dtypes[seed % len(dtypes)]
    if not has(device, dtype):
        return
    x = numbers(shape, dtype, limit, seed)
    near(getattr(cantus, name)(cantus.asarray(x)), getattr(np, name)(x), dtype)


@pytest.mark.parametrize(("name", "dtypes"), BINARY, ids=[row[0] for row in BINARY])
@some
@given(shape=shapes, seed=st.integers(0, 2**31), cut=st.integers(0, 3))
def test_functions_of_two(device, name, dtypes, shape, seed, cut):
    dtype = dtypes[seed % len(dtypes)]
    if not has(device, dtype):
        return
    x, y = numbers(shape, dtype, 9, seed), numbers(shape[cut:], dtype, 9, seed + 1)
    near(getattr(cantus, name)(cantus.asarray(x), cantus.asarray(y)), getattr(np, name)(x, y), dtype)


@pytest.mark.parametrize("name", REDUCTIONS)
@some
@given(shape=shapes, seed=st.integers(0, 2**31), keep=st.booleans())
def test_reductions(device, name, shape, seed, keep):
    dtype = (FLOATS if name in ("mean", "std", "var") else REAL)[seed % (2 if name in ("mean", "std", "var") else len(REAL))]
    if not has(device, dtype) or not has(device, "int64"):
        return
    x = numbers(shape, dtype, 3, seed)
    axis = None if not shape or seed % 3 == 0 else seed % len(shape)
    near(getattr(cantus, name)(cantus.asarray(x), axis=axis, keepdims=keep), getattr(np, name)(x, axis=axis, keepdims=keep), dtype)


@some
@given(seed=st.integers(0, 2**31))
def test_order_and_sets(device, seed):
    dtype = REAL[seed % len(REAL)]
    if not has(device, dtype):
        return
    x = numbers((4, 9), dtype, 5, seed)
    y = cantus.asarray(x)
    near(cantus.sort(y, axis=seed % 2), np.sort(x, axis=seed % 2), dtype)
    near(cantus.argsort(y), np.argsort(x, stable=True), "int64")
    found, expected = cantus.unique_all(y), np.unique_all(x)
    for ours, theirs in zip(found, expected, strict=True):
        near(ours, theirs, dtype)
    row = np.sort(x.ravel())
    near(cantus.searchsorted(cantus.asarray(row), y), np.searchsorted(row, x), "int64")
    near(cantus.argmax(y, axis=1), np.argmax(x, axis=1), "int64")


KEYS = [
    0, -1, (1, 2), (slice(None), 1), (..., 0), (slice(None, None, -1),), (slice(3, 0, -2), slice(1, None, 2)), (None, 1, ..., None),
    ([0, 2, -1],), (slice(None), [1, 1]), ([0, 1], [2, 0]), (slice(None), [0, 1], [1, 0]), (0, slice(None), [1, 0]),
    ([[0, 1], [2, 3]],), ([0, 1], slice(None), [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool"])
def test_parts_are_numpys(device, key, dtype):
    x = np.arange(4 * 3 * 5).reshape(4, 3, 5).astype(dtype)
    y = cantus.asarray(x)
    near(y[key], x[key], dtype)
    changed = y + cantus.zeros_like(y) if dtype != "bool" else cantus.asarray(x)
    view, kept = changed[...], np.asarray(changed).copy()
    changed[key] = 1
    x = x.copy()
    x[key] = 1
    near(changed, x, dtype)
    near(view, kept, dtype)


def test_masks(device):
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    y = cantus.asarray(x)
    near(y[y > 4], x[x > 4], "float32")
    near(y[cantus.asarray([True, False, True])], x[[True, False, True]], "float32")
    y[y > 4] = 0
    x[x > 4] = 0
    near(y, x, "float32")
    y[cantus.asarray([True, False, True])] = cantus.asarray([1.0, 2.0, 3.0, 4.0])
    x[[True, False, True]] = [1, 2, 3, 4]
    near(y, x, "float32")


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(40,), (40, 3), (40, 3, 2), (1, 5)])
def test_sums_down_masked_rows(device, dtype, shape):
    x = numbers(shape, dtype, 2, 1) if dtype in ("float32", "complex64") else (np.arange(np.prod(shape)) % 7 % (2 if dtype == "bool" else 7)).reshape(shape).astype(dtype)
    if dtype == "float32":
        # What is not selected is not added, whatever it is.
        x[0] = np.inf
    y = cantus.asarray(x)
    for mask in (np.arange(shape[0]) % 3 == 1, np.ones(shape[0], bool) & (np.arange(shape[0]) > 0), np.zeros(shape[0], bool)):
        key = cantus.asarray(mask)
        near(cantus.sum(y[key], axis=0), np.sum(x[mask], axis=0), "float32")
        near(y[key].sum(axis=-len(shape), keepdims=True), x[mask].sum(axis=0, keepdims=True), "float32")
        near(y[key].sum(), x[mask].sum(), "float32")
        if mask.any():
            near(cantus.mean(y[key], axis=0), np.mean(x[mask], axis=0), "float32")
            near(y[key].mean(), x[mask].mean(), "float32")
            near(y[key].max(axis=0), x[mask].max(axis=0), "float32") if dtype != "complex64" else None
        elif dtype == "float32":
            assert np.isnan(np.asarray(y[key].mean(axis=0))).all()
        # Whatever else is asked for looks for the rows.
        assert y[key].shape == x[mask].shape and len(y[key]) == mask.sum() and y[key].dtype == y.dtype
        near(y[key], x[mask], "float32")
        near(y[key] == y[key], np.ones(x[mask].shape), "float32")


def test_masked_rows_are_those_of_when_they_were_selected(device):
    x = np.arange(12, dtype="f4").reshape(6, 2)
    y, mask = cantus.asarray(x.copy()), cantus.asarray([True, False] * 3)
    rows, total = y[mask], cantus.sum(y[mask], axis=0)
    double = cantus.kernel("""
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&x) { x[id.x] *= 2.0; } }
    """)
    double(x=y, invocations=12)
    mask[...] = False
    near(rows, x[::2], "float32")
    near(total, x[::2].sum(axis=0), "float32")
    near(y, 2 * x, "float32")
    # No row is looked for: a sum of rows is one evaluation.
    late = y[cantus.asarray([True] * 6)]
    assert late._late is not None and cantus.sum(late, axis=0) is not None and late._late is not None
    assert late.shape == (6, 2) and late._late is None


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_linear_algebra(device, dtype):
    if not has(device, dtype):
        pytest.skip(f"no {dtype}")
    x = numbers((2, 5, 5), dtype, 2, 1) + 5 * np.eye(5, dtype=dtype)
    y = cantus.asarray(x)
    one = np.broadcast_to(np.eye(5, dtype=dtype), x.shape)
    near(y @ cantus.linalg.inv(y), one, "float32")
    near(cantus.linalg.det(y), np.linalg.det(x), "float32") if dtype != "float32" else None
    u, s, vh = cantus.linalg.svd(y, full_matrices=False)
    near((u * s[:, None, :].astype(u.dtype)) @ vh, x, "float32")
    near(s, np.linalg.svdvals(x), "float32")
    q, r = cantus.linalg.qr(y)
    near(q @ r, x, "float32")
    h = y @ cantus.asarray(x.conj().mT)
    values, vectors = cantus.linalg.eigh(h)
    np.testing.assert_allclose(np.asarray(values), np.linalg.eigvalsh(np.asarray(h)), rtol=1e-4)
    near(cantus.linalg.pinv(y), np.linalg.pinv(x), "float32")
    assert np.asarray(cantus.linalg.matrix_rank(y)).tolist() == [5, 5]


@pytest.mark.parametrize("n", [1, 4, 7, 12, 37])
@pytest.mark.parametrize("dtype", FLOATS)
def test_fourier_transforms(device, n, dtype):
    if not has(device, dtype):
        pytest.skip(f"no {dtype}")
    x = numbers((3, n), dtype, 2, n)
    y = cantus.asarray(x)
    for ours, theirs in [
        (cantus.fft.fft(y), np.fft.fft(x)),
        (cantus.fft.rfft(y), np.fft.rfft(x)),
        (cantus.fft.ifft(cantus.fft.fft(y, axis=0), axis=0), x),
        (cantus.fft.irfft(cantus.fft.rfft(y), n=n), x),
        (cantus.fft.fftn(y, norm="ortho"), np.fft.fftn(x, norm="ortho")),
        (cantus.fft.hfft(y + 0j, n=n), np.fft.hfft(x, n=n)),
        (cantus.fft.fftshift(y), np.fft.fftshift(x)),
    ]:
        np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-4 if dtype == "float32" else 1e-11)


def test_promotion_and_errors():
    one = cantus.asarray([1, 2])
    # The standard leaves integers beside floats open: they are NumPy's.
    assert (one + cantus.asarray([1.5])).tolist() == [2.5, 3.5] and (one + 1.5).tolist() == [2.5, 3.5]
    with pytest.raises(TypeError, match="cast"):
        cantus.asarray(np.ones(2, "u8")) + one
    with pytest.raises(ValueError, match="broadcast"):
        cantus.ones(2) + cantus.ones(3)
    with pytest.raises(IndexError):
        one[2]
    with pytest.raises(OverflowError):
        cantus.asarray([1], dtype="uint8") + 256
    with pytest.raises(RuntimeError, match="no device"):
        cantus.ones(1).to("nothing")
    assert cantus.result_type(cantus.int8, cantus.uint8) is cantus.int16
    assert (cantus.asarray([1], dtype="uint8") + 1).dtype == np.uint8
